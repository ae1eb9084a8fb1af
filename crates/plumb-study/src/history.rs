//! A series of results over time: where its level changes (method, 6.4).
//!
//! E-divisive [Matteson & James 2014] with a free right end, t-tests instead of permutations, weakly
//! accepted candidates pruned strictly [Daly et al. 2020; Fleming et al. 2023].

use crate::stats::describe::{MAD_TO_SD, mean, median, squares};
use crate::stats::distribution::{t_95, t_two_sided};
use crate::stats::line::Line;

/// A change of level.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct ChangePoint {
    /// The first value of the new level.
    pub index: usize,
    /// Geometric mean of the level before.
    pub before: f64,
    /// Geometric mean of the level from there on.
    pub after: f64,
    /// p-value of the step between both.
    pub p: f64,
}

impl ChangePoint {
    /// Relative step.
    #[must_use]
    pub fn step(&self) -> f64 {
        self.after / self.before - 1.0
    }
}

/// Shortest level.
pub const SEGMENT_LEAST: usize = 4;
/// Series shorter than this have no change points: the last value is compared with those before.
pub const SERIES_LEAST: usize = 8;
/// Candidates are accepted weakly …
const P_WEAK: f64 = 0.01;
/// … and pruned strictly,
const P_STRICT: f64 = 0.001;
/// in series of up to so many values. A step is the best of all pairs of a split and a right end, whose number grows with the
/// square of theirs: so does what is asked of it.
const STRICT_TO: usize = 30;
/// and below this step where no other is asked for.
pub const STEP_LEAST: f64 = 0.02;
/// Width of the running median that lone outliers are measured from.
const MEDIAN_WIDTH: usize = 7;
/// Robust standard deviations beyond which a value is an outlier.
const OUTLIER_DEVIATIONS: f64 = 6.0;

/// The part of those levels that counts in a series of so many values.
fn strictness(count: usize) -> f64 {
    (STRICT_TO as f64 / count.max(STRICT_TO) as f64).powi(2)
}

/// The change points of a series of positive values, ascending; `None` for fewer than eight values.
#[must_use]
pub fn change_points(values: &[f64]) -> Option<Vec<ChangePoint>> {
    change_points_beyond(values, STEP_LEAST)
}

/// The same, where a step counts from this relative size on instead of 2 %.
#[must_use]
pub fn change_points_beyond(values: &[f64], step_least: f64) -> Option<Vec<ChangePoint>> {
    changes(values, step_least, strictness(values.len()))
}

/// Where the level within a run changes: of intervals, which are many, as much is asked as of few.
pub(crate) fn phases(values: &[f64]) -> Option<Vec<ChangePoint>> {
    changes(values, STEP_LEAST, 1.0)
}

fn changes(values: &[f64], step_least: f64, part: f64) -> Option<Vec<ChangePoint>> {
    if values.len() < SERIES_LEAST {
        return None;
    }
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let (mut clipped, _) = clip(&logarithms);
    // They belong to no level yet.
    clipped.truncate(values.len() - unsettled(&logarithms));
    let mut bounds = Vec::new();
    split(&clipped, (0, clipped.len()), P_WEAK * part, &mut bounds);
    bounds.sort_unstable();
    prune(&clipped, &mut bounds, P_WEAK * part, 0.0);
    settle(&clipped, &mut bounds);
    prune(&clipped, &mut bounds, P_STRICT * part, step_least);
    settle(&clipped, &mut bounds);
    let point = |place: usize| {
        let (start, end) = neighbours(&bounds, place, clipped.len());
        let index = bounds[place];
        ChangePoint {
            index,
            before: mean(&clipped[start..index]).exp(),
            after: mean(&clipped[index..end]).exp(),
            p: p_value(&clipped[start..index], &clipped[index..end]),
        }
    };
    Some((0..bounds.len()).map(point).collect())
}

/// Places of lone outliers: further than six robust standard deviations from the running median.
#[must_use]
pub fn outliers(values: &[f64]) -> Vec<usize> {
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    clip(&logarithms).1
}

/// The first of the last values that stand off those before them together, two or three of them: too few for a level
/// of their own, too many for lone outliers. `None` where there are no such.
#[must_use]
pub fn unsettled_from(values: &[f64]) -> Option<usize> {
    let logarithms: Vec<f64> = values.iter().map(|value| value.ln()).collect();
    let count = unsettled(&logarithms);
    (count > 0).then(|| values.len() - count)
}

/// The first value of the level that follows where the first two or three stand off it together: too few for a level of
/// their own. `None` where there are no such.
#[must_use]
pub fn unsettled_until(values: &[f64]) -> Option<usize> {
    let logarithms: Vec<f64> = values.iter().rev().map(|value| value.ln()).collect();
    let count = unsettled(&logarithms);
    (count > 0).then_some(count)
}

/// How far a series without a change of level moves, in ln x with 95 % intervals: (estimate, low, high).
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Movement {
    /// From the first value to the last, by the line through all.
    pub trend: (f64, f64, f64),
    /// From all values but the last four to those.
    pub last: (f64, f64, f64),
}

/// How far the values of a series move that has no change of level, its lone outliers left out; `None` for fewer than
/// eight others.
#[must_use]
pub fn movement(values: &[f64]) -> Option<Movement> {
    let outliers = outliers(values);
    let points: Vec<(f64, f64)> = (0..values.len())
        .filter(|index| !outliers.contains(index))
        .map(|index| (index as f64, values[index].ln()))
        .collect();
    if points.len() < SERIES_LEAST {
        return None;
    }
    let around = |estimate: f64, reach: f64| (estimate, estimate - reach, estimate + reach);
    let freedom = points.len() as f64 - 2.0;
    let line = Line::through(&points);
    let span = points[points.len() - 1].0 - points[0].0;
    let trend = around(line.slope * span, t_95(freedom) * line.slope_error * span);
    let logarithms: Vec<f64> = points.iter().map(|(_, ln)| *ln).collect();
    let (before, after) = logarithms.split_at(logarithms.len() - SEGMENT_LEAST);
    let variance = (squares(before) + squares(after)) / freedom;
    let error = (variance * (1.0 / before.len() as f64 + 1.0 / after.len() as f64)).sqrt();
    let last = around(mean(after) - mean(before), t_95(freedom) * error);
    Some(Movement { trend, last })
}

/// How many of the last values those are; 0 for none.
///
/// Those before them are the up to seven next ones: all of the last must be outliers on one side of their median and of
/// their line. Where that holds for a whole segment it is no matter of outliers.
fn unsettled(values: &[f64]) -> usize {
    let scale = OUTLIER_DEVIATIONS * sides(values).scale;
    let stand_off = |count: usize| {
        let (before, last) = values.split_at(values.len() - count);
        let before = &before[before.len().saturating_sub(MEDIAN_WIDTH)..];
        let (middle, line) = (median(before), TheilSen::through(before));
        let side = |(i, value): (usize, &f64)| {
            let ahead = line.at(before.len() + i);
            let (low, high) = (middle.min(ahead), middle.max(ahead));
            i32::from(*value > high + scale) - i32::from(*value < low - scale)
        };
        let first = side((0, &last[0]));
        first != 0 && last.iter().enumerate().all(|value| side(value) == first)
    };
    if values.len() < 2 * SEGMENT_LEAST + 1 || stand_off(SEGMENT_LEAST) {
        return 0;
    }
    (2..SEGMENT_LEAST).rev().find(|count| stand_off(*count)).unwrap_or(0)
}

/// Values in a row that are off to the same side and still lone.
const LONE_MOST: usize = 2;

/// The series with lone outliers put back to the running median, and their places. Three in a row on one side of the
/// median are a curve or the beginning of a level; the last ones are none where they are `unsettled`.
fn clip(values: &[f64]) -> (Vec<f64>, Vec<usize>) {
    let Sides { medians, sides, .. } = sides(values);
    let mut clipped = values.to_vec();
    let mut places = Vec::new();
    let reversed: Vec<f64> = values.iter().rev().copied().collect();
    // The first ones are no level of their own either, and nothing more will be known of them.
    let head = unsettled(&reversed);
    let tail = values.len() - unsettled(values);
    if head > 0 {
        let level = median(&values[head..(head + MEDIAN_WIDTH).min(values.len())]);
        clipped[..head].fill(level);
        places.extend(0..head);
    }
    let mut start = 0;
    for group in sides.chunk_by(|a, b| a == b) {
        let end = start + group.len();
        if group[0] != 0 && group.len() <= LONE_MOST && start >= head && end <= tail {
            clipped[start..end].copy_from_slice(&medians[start..end]);
            places.extend(start..end);
        }
        start = end;
    }
    (clipped, places)
}

/// What a series looks like from its running median.
struct Sides {
    /// The median of each value.
    medians: Vec<f64>,
    /// 1 for an outlier above it, −1 for one below, 0 for none.
    sides: Vec<i8>,
    /// A robust SD of the distances.
    scale: f64,
}

/// Towards the ends, where the window lies more on one side of the value, it is the median of the last window or the
/// line through it, whichever is nearer: neither a trend nor a new level has outliers there.
fn sides(values: &[f64]) -> Sides {
    let half = MEDIAN_WIDTH / 2;
    let width = MEDIAN_WIDTH.min(values.len());
    let middle = |index: usize| {
        let start = index.saturating_sub(half).min(values.len() - width);
        let window = &values[start..start + width];
        let (level, value) = (median(window), values[index]);
        let line = TheilSen::through(window).at(index - start);
        let is_nearer = (line - value).abs() < (level - value).abs();
        if start + half != index && is_nearer { line } else { level }
    };
    let medians: Vec<f64> = (0..values.len()).map(middle).collect();
    let distances: Vec<f64> = values.iter().zip(&medians).map(|(v, m)| (v - m).abs()).collect();
    // On a trend a value is often its own median: what neighbours scatter by is seen in second differences as well.
    let bends: Vec<f64> =
        values.windows(3).map(|three| (three[0] - 2.0 * three[1] + three[2]).abs()).collect();
    let by_neighbours =
        if bends.is_empty() { 0.0 } else { MAD_TO_SD * median(&bends) / 6.0_f64.sqrt() };
    let scale = (MAD_TO_SD * median(&distances)).max(by_neighbours).max(1e-4);
    let side = |(value, middle): (&f64, &f64)| match value - middle {
        off if off > OUTLIER_DEVIATIONS * scale => 1,
        off if off < -OUTLIER_DEVIATIONS * scale => -1,
        _ => 0,
    };
    let sides = values.iter().zip(&medians).map(side).collect();
    Sides { medians, sides, scale }
}

/// A line by the median of the slopes between all pairs [Theil 1950; Sen 1968].
struct TheilSen {
    level: f64,
    slope: f64,
}

impl TheilSen {
    /// Through values one step apart.
    fn through(values: &[f64]) -> Self {
        let mut slopes = Vec::new();
        for (i, a) in values.iter().enumerate() {
            let after = values.iter().enumerate().skip(i + 1);
            slopes.extend(after.map(|(j, b)| (b - a) / (j - i) as f64));
        }
        let slope = if slopes.is_empty() { 0.0 } else { median(&slopes) };
        let levels: Vec<f64> =
            values.iter().enumerate().map(|(i, value)| value - slope * i as f64).collect();
        Self { level: median(&levels), slope }
    }

    /// At that step from the first value.
    fn at(&self, step: usize) -> f64 {
        self.level + self.slope * step as f64
    }
}

/// Splits a segment where the energy statistic is largest, and its parts again.
fn split(values: &[f64], (start, end): (usize, usize), p_most: f64, bounds: &mut Vec<usize>) {
    let Some((at, right)) = best_split(&values[start..end]) else { return };
    let (left, right) = (&values[start..start + at], &values[start + at..start + right]);
    if p_value(left, right) >= p_most {
        return;
    }
    bounds.push(start + at);
    split(values, (start, start + at), p_most, bounds);
    split(values, (start + at, end), p_most, bounds);
}

/// Where `Q = mn/(m+n)·(2·mean|x−y| − mean|x−x'| − mean|y−y'|)` is largest, over every split and every
/// right end behind it.
fn best_split(values: &[f64]) -> Option<(usize, usize)> {
    let count = values.len();
    if count < 2 * SEGMENT_LEAST {
        return None;
    }
    let distance = |a: usize, b: usize| (values[a] - values[b]).abs();
    // Of each value: the distances from all before it, and from all left of the split.
    let before: Vec<f64> =
        (0..count).map(|j| (0..j).map(|i| distance(i, j)).sum::<f64>()).collect();
    let mut left: Vec<f64> = vec![0.0; count];
    let mut within_left = 0.0;
    let mut best: Option<(f64, usize, usize)> = None;
    for at in 1..=count - SEGMENT_LEAST {
        within_left += before[at - 1];
        for (j, sum) in left.iter_mut().enumerate() {
            *sum += distance(at - 1, j);
        }
        if at < SEGMENT_LEAST {
            continue;
        }
        let (mut across, mut within_right) = (0.0, 0.0);
        for end in at + 1..=count {
            across += left[end - 1];
            within_right += before[end - 1] - left[end - 1];
            let size = end - at;
            if size < SEGMENT_LEAST {
                continue;
            }
            let (m, n) = (at as f64, size as f64);
            let energy = 2.0 * across / (m * n)
                - 2.0 * within_left / (m * (m - 1.0))
                - 2.0 * within_right / (n * (n - 1.0));
            let q = m * n / (m + n) * energy;
            if best.is_none_or(|(most, ..)| q > most) {
                best = Some((q, at, end));
            }
        }
    }
    best.map(|(_, at, end)| (at, end))
}

/// A step of just the least size is one in whatever unit the values are.
const ROUNDING: f64 = 1e-9;

/// Removes the weakest bound until all hold.
fn prune(values: &[f64], bounds: &mut Vec<usize>, p_most: f64, step_least: f64) {
    loop {
        let weakness = |place: usize| {
            let (start, end) = neighbours(bounds, place, values.len());
            let (left, right) = (&values[start..bounds[place]], &values[bounds[place]..end]);
            let step = (mean(right) - mean(left)).exp_m1().abs();
            let p = p_value(left, right);
            (
                if step < step_least * (1.0 - ROUNDING) { 1.0 + (step_least - step) } else { p },
                place,
            )
        };
        let weakest = (0..bounds.len()).map(weakness).max_by(|a, b| a.0.total_cmp(&b.0));
        match weakest {
            Some((p, place)) if p >= p_most => {
                bounds.remove(place);
            }
            _ => return,
        }
    }
}

/// Moves each bound to where its neighbours' levels differ most in least squares.
fn settle(values: &[f64], bounds: &mut [usize]) {
    for _ in 0..4 {
        let before = bounds.to_vec();
        for place in 0..bounds.len() {
            let (start, end) = neighbours(bounds, place, values.len());
            let cost = |at: usize| squares(&values[start..at]) + squares(&values[at..end]);
            let best = (start + SEGMENT_LEAST..=end.saturating_sub(SEGMENT_LEAST))
                .min_by(|a, b| cost(*a).total_cmp(&cost(*b)));
            if let Some(best) = best {
                bounds[place] = best;
            }
        }
        if bounds == before {
            return;
        }
    }
}

fn neighbours(bounds: &[usize], place: usize, count: usize) -> (usize, usize) {
    let start = place.checked_sub(1).map_or(0, |before| bounds[before]);
    (start, bounds.get(place + 1).copied().unwrap_or(count))
}

/// p of Student's t-test between two segments.
fn p_value(left: &[f64], right: &[f64]) -> f64 {
    let (m, n) = (left.len() as f64, right.len() as f64);
    let freedom = m + n - 2.0;
    if freedom < 1.0 {
        return 1.0;
    }
    let difference = (mean(right) - mean(left)).abs();
    let variance = (squares(left) + squares(right)) / freedom;
    let error = (variance * (1.0 / m + 1.0 / n)).sqrt();
    if error > 0.0 {
        t_two_sided(difference / error, freedom)
    } else {
        f64::from(u8::from(difference == 0.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Levels of ten values each with a fixed wobble.
    fn series(levels: &[f64]) -> Vec<f64> {
        let wobble = |i: u32| 1.0 + 0.004 * (f64::from(i * 7 % 10) - 4.5) / 4.5;
        let values = levels.iter().flat_map(|level| (0..10).map(move |i| (level, i)));
        values.map(|(level, i)| level * wobble(i)).collect()
    }

    #[track_caller]
    fn check(values: &[f64], wanted: &[usize]) {
        let found = change_points(values).expect("long enough");
        let found: Vec<usize> = found.iter().map(|point| point.index).collect();
        assert_eq!(found, wanted);
    }

    #[test]
    fn levels_are_told_apart() {
        check(&series(&[100.0, 100.0]), &[]);
        check(&series(&[100.0, 95.0]), &[10]);
        check(&series(&[100.0, 110.0, 104.0, 104.0, 90.0]), &[10, 20, 40]);
        check(&series(&[100.0, 101.0]), &[]);
        check(&[5.0; 12], &[]);
        check(&[5.0, 5.0, 5.0, 5.0, 6.0, 6.0, 6.0, 6.0], &[4]);
    }

    #[test]
    fn a_step_counts_from_the_size_that_is_asked_for() {
        let steps = |levels: &[f64], least: f64| {
            change_points_beyond(&series(levels), least).expect("long enough").len()
        };
        assert_eq!((steps(&[100.0, 101.0], 0.005), steps(&[100.0, 101.0], 0.02)), (1, 0));
        assert_eq!((steps(&[100.0, 95.0], 0.02), steps(&[100.0, 95.0], 0.1)), (1, 0));
    }

    #[test]
    fn a_lone_outlier_is_no_change() {
        let mut values = series(&[100.0, 100.0, 90.0]);
        values[7] = 40.0;
        check(&values, &[20]);
        assert_eq!(outliers(&values), [7]);
        let point = change_points(&values).expect("long enough")[0];
        assert!((point.step() + 0.1).abs() < 0.002 && point.p < 1e-6);
    }

    #[test]
    fn the_last_values_are_not_called_outliers_where_there_are_several() {
        for (count, wanted) in [(1, None), (2, Some(20)), (3, Some(20)), (4, None), (6, None)] {
            let mut values = series(&[100.0, 100.0]);
            values.extend((0..count).map(|i| 80.0 + 0.1 * f64::from(i)));
            assert_eq!(unsettled_from(&values), wanted, "{count}");
            let points = if count < 4 { vec![] } else { vec![20] };
            check(&values, &points);
            assert_eq!(outliers(&values), if count == 1 { vec![20] } else { vec![] }, "{count}");
            // At the beginning they are outliers: nothing more will be known of that level.
            values.reverse();
            if count < 4 {
                check(&values, &[]);
                assert_eq!(outliers(&values).len(), usize::try_from(count).expect("few"));
            }
        }
    }

    #[test]
    fn neither_trends_nor_waves_have_outliers() {
        let wobble = |i: u32| f64::from(i * 7 % 10) - 4.5;
        for noise in [0.01, 0.03, 0.06, 0.1] {
            let trend: Vec<f64> =
                (0..40).map(|i| 100.0 - 0.5 * f64::from(i) + noise * wobble(i)).collect();
            assert_eq!((outliers(&trend), unsettled_from(&trend)), (vec![], None), "{noise}");
            let wave: Vec<f64> = (0..60)
                .map(|i| 100.0 + 5.0 * (f64::from(i) / 3.0).sin() + noise * wobble(i))
                .collect();
            assert!(outliers(&wave).len() <= 6, "{noise}: {:?}", outliers(&wave));
        }
    }

    #[test]
    fn short_series_have_none() {
        assert_eq!(change_points(&[1.0; 7]), None);
    }
}
