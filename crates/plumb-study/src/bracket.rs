//! Which setting to measure next: the knee in fewer runs than settings (method, 4.4).

use std::f64::consts::{FRAC_1_SQRT_2, SQRT_2};

use crate::knee::{self, Knee, Options, Row, TAU};

/// What to do after the runs so far.
#[derive(Debug, Clone, PartialEq)]
pub enum Step {
    /// Measure this o.
    Measure(u64),
    /// Nothing more is to be learnt: this is the answer.
    Done(Box<Knee>),
}

/// When a search stops climbing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Climb {
    /// When two doublings in a row brought less than τ each (4.4).
    #[default]
    Twice,
    /// When one brought less than half of τ as well: where runs are few, no second one has to say it again.
    Once,
    /// The same, where some o far above the first was run before: what lies on a steep line to it is left out, and from
    /// there the climb goes by fours as long as it is steep.
    Leaping,
    /// As once, and by fours from the first on as long as it is steep. What was run far above the first before all else is its
    /// first step.
    Striding,
}

/// The largest gap beside the plateau that is left alone, relative to it.
const GAP: f64 = 0.08;
/// Runs up to which the search may go on, whatever it finds.
const RUNS_MOST: usize = 200;

/// The next step of the search in `first..=last`, given the rows so far.
///
/// First it climbs, doubling o until two successive doublings bring less than τ each; then it splits the
/// wider gap beside what is recommended at its geometric mean until both are narrow, and the same beside the
/// plateau, where that is another setting. By the balanced policy it looks first where the fit says that balance
/// and recommendation are, tested or not: what it is asked for need not be near a tested setting. A climb by fours looks where
/// the curve has its plateau, or where a coarse gap may bend, and beyond that only where the plateau is not seen below.
#[must_use]
pub fn next(rows: &[Row], first: u64, last: u64, options: &Options, until: Climb) -> Step {
    let mut tested: Vec<u64> = rows.iter().map(|row| row.o).collect();
    tested.sort_unstable();
    tested.dedup();
    let up = climb(rows, &tested, (first, last), until);
    if let Some(Up { o, bend: None }) = up {
        return Step::Measure(o);
    }
    let knee = knee::find(rows, options);
    let may_ask = tested.len() < RUNS_MOST;
    let inside = may_ask.then(|| inside(&tested, &knee, options, until)).flatten();
    if let Some(Up { o, bend: Some((low, high)) }) = up {
        // What lies in the step tells whether what lies beyond it is needed: not where the knee is far enough from its end to
        // stay there.
        let is_split = tested.iter().any(|between| (low + 1..high).contains(between));
        let marks = knee.marks.filter(|_| knee.verdict == knee::Verdict::Knee);
        let clear = if high < STRIDE * low { CLEAR.0 } else { CLEAR.1 };
        let is_clear = marks.is_some_and(|marks| clear * marks.plateau as f64 <= high as f64);
        if (is_split || inside.is_none()) && !is_clear {
            return Step::Measure(o);
        }
    }
    let is_end = may_ask && up.is_none() && until == Climb::Striding;
    let inside = inside.or_else(|| is_end.then(|| end_gap(&tested, &knee)).flatten());
    inside.map_or_else(|| Step::Done(Box::new(knee)), Step::Measure)
}

/// The setting that tells most of where the knee lies among those that were tested; `None` where they tell enough.
fn inside(tested: &[u64], knee: &Knee, options: &Options, until: Climb) -> Option<u64> {
    let marks = knee.marks?;
    // A recommendation below the plateau is the smallest tested o that does: what lies beside it matters too.
    let beside = [marks.recommended, marks.plateau];
    let aims = [marks.aims.1, marks.aims.0];
    if options.policy != knee::Policy::Throughput {
        let near = (GAP / 2.0, GAP / 2.0);
        let aim = aims.into_iter().find(|o| is_far(tested, *o, near));
        return aim.or_else(|| beside.into_iter().find_map(|o| refine(tested, o)));
    }
    if until != Climb::Striding {
        return refine(tested, marks.plateau);
    }
    let aim = Some(marks.aims.0).filter(|o| is_far(tested, *o, NEAR));
    let aim = aim.filter(|o| !hides_nothing(tested, knee, *o, marks.plateau));
    let aim = aim.map(|o| bent_at(tested, knee, o).unwrap_or(o)).filter(|o| !tested.contains(o));
    // Where one I/O more is as much as a gap may be, each of them counts.
    let is_shallow = GAP * marks.plateau as f64 <= 1.0;
    aim.or_else(|| match is_shallow {
        true => refine(tested, marks.plateau),
        false => open_gap(tested, knee, marks.plateau),
    })
}

/// How far below and above where the curve has its plateau a setting tells as much, as shares of that: somewhat above costs no
/// throughput.
const NEAR: (f64, f64) = (0.07, 0.2);
/// The narrowest gap whose ends do not tell where it bends.
const WIDE: u64 = 2;
/// What a gap above the plateau may hide, in ln X, that matters: half of what a choice may lose.
const ROOM: f64 = 0.015;
/// How far the end of a range lies above a plateau that is seen with less than four settings beyond it (3.2, 5).
const SEEN: f64 = 1.25;
/// How near to the last plateau that would be seen a setting tells less than that one itself.
const NEAR_LAST: f64 = 1.15;
/// Elasticity behind a corner up to which it is one: where a curve bends slowly, it goes on rising.
const LEVEL: f64 = 0.03;
/// How far a plateau lies above a sharp corner at least that is looked for below it.
const SHARP: f64 = 1.3;
/// The narrowest gap that is looked into for it, relative to the plateau.
const SPLIT: f64 = 0.2;

/// Whether what lies there is in a wide gap above the plateau that hides no throughput that matters.
fn hides_nothing(tested: &[u64], knee: &Knee, aim: u64, plateau: u64) -> bool {
    let [_, above] = beside(tested, plateau);
    let is_there = |(low, high): &(u64, u64)| (low..high).contains(&&aim) && *high >= WIDE * *low;
    above
        .filter(is_there)
        .is_some_and(|gap| triangle(knee, gap).is_none_or(|corner| corner.hidden <= ROOM))
}

/// Where the gap in which something lies may bend, where that is too wide for a curve through its ends to tell.
fn bent_at(tested: &[u64], knee: &Knee, aim: u64) -> Option<u64> {
    let above = tested.partition_point(|other| *other < aim);
    let (low, high) = (*tested.get(above.checked_sub(1)?)?, *tested.get(above)?);
    let corner = || triangle(knee, (low, high));
    (high >= WIDE * low).then(corner).flatten().map(|corner| corner.wanted)
}

/// Where to split a gap beside the plateau: above it where that may hide throughput, then below it where many outstanding I/Os
/// less may do.
fn open_gap(tested: &[u64], knee: &Knee, plateau: u64) -> Option<u64> {
    let [below, above] = beside(tested, plateau);
    let is_wide = |(low, high): &(u64, u64)| (high - low) as f64 > SPLIT * plateau as f64;
    let corner = |gap: Option<(u64, u64)>| triangle(knee, gap.filter(is_wide)?);
    let hides = corner(above).filter(|corner| corner.hidden > ROOM);
    let saves = || corner(below).filter(|corner| corner.saves(plateau));
    let found = hides.or_else(saves);
    found.map(|corner| corner.wanted).filter(|o| !tested.contains(o))
}

/// Where to split the gap below the plateau of a curve that could not be told to have one, as it would begin too near the end of
/// all that may be run: where it may begin further below. Not where it rises steeply up to there.
fn end_gap(tested: &[u64], knee: &Knee) -> Option<u64> {
    let marks = knee.marks.filter(|_| knee.verdict == knee::Verdict::Extend)?;
    let (low, high) = beside(tested, marks.plateau)[0]?;
    let least = *tested.last()? as f64 / SEEN;
    let corner = triangle(knee, (low, high)).filter(|corner| corner.bend <= least)?;
    // Near the last that would be seen, that tells whether any is.
    let is_near = corner.wanted as f64 * NEAR_LAST > least;
    let seen = if is_near { plumb_units::convert::floor_u64(least) } else { corner.wanted };
    (seen > low && high as f64 > SEEN * low as f64).then_some(seen)
}

/// Elasticity from which on a curve still rises as straight as it can: what lies between tells little.
const STEEP: f64 = 0.9;
/// How far a climb goes where it is that steep and runs are few.
const STRIDE: u64 = 4;
/// Settings below which no curve says anything.
const FEWEST: usize = 3;

/// Elasticity over a step by fours up to which the curve bends far enough below its end that what lies inside is looked at before
/// what lies beyond. Over a doubling it is τ.
const BENT: f64 = 2.0 / 3.0;

/// How far the end of a doubling, and of a step by fours, lies above a knee that needs nothing beyond it: somewhat more than a
/// verdict asks for (3.2, 5).
const CLEAR: (f64, f64) = (1.3, 1.5);

/// The next step of a climb.
struct Up {
    o: u64,
    /// The step below it, where the knee may lie in that.
    bend: Option<(u64, u64)>,
}

/// The next doubling; `None` when two in a row, or one, brought too little, or the range ends.
fn climb(rows: &[Row], tested: &[u64], (first, last): (u64, u64), until: Climb) -> Option<Up> {
    let rate = |o: u64| {
        let of = |row: &&Row| row.o == o && row.iops > 0.0;
        let rates: Vec<f64> = rows.iter().filter(of).map(|row| row.iops.ln()).collect();
        (!rates.is_empty()).then(|| crate::stats::describe::median(&rates))
    };
    let elasticity =
        |low: u64, high: u64| Some((rate(high)? - rate(low)?) / (high as f64 / low as f64).ln());
    let is_steep = |low: u64, high: u64| {
        matches!(until, Climb::Leaping | Climb::Striding)
            && elasticity(low, high).is_some_and(|elasticity| elasticity >= STEEP)
    };
    let mut o = first;
    let mut flat = 0;
    let mut stride = if until == Climb::Striding { STRIDE } else { 2 };
    let mut has_leapt = until == Climb::Striding;
    let mut bend = None;
    loop {
        if !tested.contains(&o) {
            return Some(Up { o, bend });
        }
        if o >= last && tested.len() < FEWEST {
            // A leap to the end: what lies below that tells whether it still rises there.
            let mut below = (first + 1).max(last / 2)..last;
            return below.find(|o| !tested.contains(o)).map(|o| Up { o, bend: None });
        }
        if o >= last || (flat >= 2 && tested.len() >= FEWEST) {
            return None;
        }
        let mut above = tested.iter().copied().filter(|high| *high >= 2 * o);
        // Behind a leap there are no doublings: whatever was run in reach of one is a step.
        let step = (o * stride).min(last);
        let in_reach = |high: &u64| has_leapt && *high <= STRIDE * o;
        let near = match until {
            // What splits a step is none of the climb's.
            Climb::Striding if tested.contains(&step) => None,
            Climb::Striding => above.clone().rfind(in_reach),
            _ => above.clone().find(in_reach),
        };
        let may_leap = until == Climb::Leaping && o == first && !tested.contains(&(2 * o));
        let leap = above.rfind(|high| may_leap && is_steep(o, *high));
        has_leapt |= leap.is_some();
        // What was run a little below the next doubling tells what that would, where the doubling was not run.
        let most = 2 * o;
        let short = tested.iter().copied().find(|high| 2 * *high >= 3 * o && *high < most);
        let short = short.filter(|_| until == Climb::Leaping && !tested.contains(&most));
        // Where something far above the first was run before all else, that is the first step.
        let far = tested.iter().copied().find(|high| *high > STRIDE * o);
        let far = far.filter(|_| until == Climb::Striding && o == first && !tested.contains(&step));
        let next = leap.or(near).or(short).or(far).unwrap_or(step);
        if let Some(elasticity) = elasticity(o, next) {
            flat = match elasticity {
                e if until != Climb::Twice && e < TAU / 2.0 => 2,
                e if e < TAU => flat + 1,
                _ => 0,
            };
            let bent = if next >= STRIDE * o { BENT } else { TAU };
            let is_bent = until == Climb::Striding && elasticity < bent;
            bend = is_bent.then_some((o, next));
            if is_bent && tested.len() < FEWEST && next > o + 1 {
                let bend = corner((o, next), [1.0, elasticity, 0.0]);
                let o = bend.map_or(o + 1, |corner| corner.wanted);
                return Some(Up { o, bend: None });
            }
        }
        stride = if has_leapt && is_steep(o, next) { STRIDE } else { 2 };
        o = next;
    }
}

/// Whether no tested setting is near: within such shares of it below and above.
fn is_far(tested: &[u64], o: u64, (below, above): (f64, f64)) -> bool {
    let is_near = |other: &u64| {
        let share = if *other < o { below } else { above };
        other.abs_diff(o) as f64 <= f64::max(0.5, share * o as f64)
    };
    !tested.iter().any(is_near)
}

/// How far from where a curve may bend to the end of the gap a setting is wanted: it bends slowly, and flattens above its corner.
const BEYOND: f64 = 0.4;
/// The largest factor between a knee and the settings beside it that is not told.
const COARSE: f64 = 1.5;

/// The wider gap beside the plateau, at its geometric mean; `None` when both are narrow.
fn refine(tested: &[u64], plateau: u64) -> Option<u64> {
    let narrow = f64::max(1.0, GAP * plateau as f64);
    let is_wide = |(low, high): &(u64, u64)| (high - low) as f64 > narrow;
    let gaps = beside(tested, plateau).into_iter().flatten().filter(is_wide);
    let split = |(low, high)| Some((high - low, halved(tested, plateau, (low, high))?));
    gaps.filter_map(split).max().map(|(_, middle)| middle)
}

/// The gaps below and above a tested setting.
fn beside(tested: &[u64], o: u64) -> [Option<(u64, u64)>; 2] {
    let Some(place) = tested.iter().position(|other| *other == o) else { return [None; 2] };
    let below = place.checked_sub(1).map(|before| (tested[before], o));
    [below, tested.get(place + 1).map(|after| (o, *after))]
}

/// The middle of a gap beside the plateau.
fn halved(tested: &[u64], plateau: u64, (low, high): (u64, u64)) -> Option<u64> {
    // Where a climb left more than doublings, what lies far off tells less than what is near.
    let middle = (low as f64 * high as f64).sqrt();
    let near = plateau as f64 * if high == plateau { FRAC_1_SQRT_2 } else { SQRT_2 };
    let is_near = (middle < near) == (high == plateau);
    let middle = if is_near { near } else { middle }.round();
    let middle = plumb_units::convert::floor_u64(middle).clamp(low + 1, high - 1);
    (!tested.contains(&middle)).then_some(middle)
}

/// What lies in a gap at most.
struct Corner {
    /// Throughput above the straight line, in ln X.
    hidden: f64,
    /// Where the lines through the neighbours meet.
    bend: f64,
    /// Which o tells most of it.
    wanted: u64,
    /// Whether the curve is level behind it, as far as settings beyond it show.
    is_level: bool,
}

impl Corner {
    /// Whether a look below a plateau may save as many outstanding I/Os as matter. Where a curve is level behind a corner, that is
    /// where the lines meet; elsewhere it is noise that moves a plateau down for little.
    fn saves(&self, plateau: u64) -> bool {
        let plateau = plateau as f64;
        COARSE * (self.wanted as f64) < plateau || (self.is_level && SHARP * self.bend < plateau)
    }
}

/// What a gap may hide by the settings on either side. A concave curve lies above the straight line and below the
/// lines through the settings on either side, which meet where it may bend.
fn triangle(knee: &Knee, (low, high): (u64, u64)) -> Option<Corner> {
    let fit = knee.fit.as_ref()?;
    let place = knee.settings.iter().position(|setting| setting.o == low)?;
    knee.settings.get(place + 1).filter(|setting| setting.o == high)?;
    let level = |place: usize| Some((knee.settings.get(place)?, *fit.ln_x.get(place)?));
    let slope = |from: usize| {
        let ((a, low), (b, high)) = (level(from)?, level(from + 1)?);
        Some((high - low) / (b.o as f64 / a.o as f64).ln())
    };
    let own = slope(place)?;
    // No throughput rises by more than its load does.
    let before = place.checked_sub(1).and_then(slope).unwrap_or(1.0);
    // Beyond the last setting it does not rise, as far as is known.
    let beyond = slope(place + 1);
    let corner = corner((low, high), [before, own, beyond.unwrap_or_else(|| own.min(0.0))])?;
    Some(Corner { is_level: beyond.is_some_and(|slope| slope <= LEVEL), ..corner })
}

/// The same by the elasticities before the gap, over it, and after it.
fn corner((low, high): (u64, u64), [before, own, after]: [f64; 3]) -> Option<Corner> {
    let width = (high as f64 / low as f64).ln();
    let (rise, fall) = (before - own, own - after);
    if rise <= 0.0 || fall <= 0.0 {
        return None;
    }
    let bend = fall / (rise + fall) * width;
    let wanted = low as f64 * (bend + BEYOND * (width - bend)).exp();
    let wanted = plumb_units::convert::floor_u64(wanted.round()).clamp(low + 1, high - 1);
    Some(Corner { hidden: rise * bend, bend: low as f64 * bend.exp(), wanted, is_level: false })
}

/// The settings next to what is recommended, where one is so far off that the knee may be another one altogether.
#[must_use]
pub fn coarse(knee: &Knee) -> Option<(u64, u64)> {
    let marks = knee.marks.filter(|_| knee.verdict == knee::Verdict::Knee)?;
    let tested: Vec<u64> = knee.settings.iter().map(|setting| setting.o).collect();
    let gaps = beside(&tested, marks.recommended);
    let is_coarse =
        |(low, high): &(u64, u64)| *high > low + 1 && *high as f64 > COARSE * *low as f64;
    gaps.iter().flatten().any(is_coarse).then(|| {
        let [below, above] = gaps;
        (below.map_or(marks.recommended, |gap| gap.0), above.map_or(marks.recommended, |gap| gap.1))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knee::Policy;
    use crate::table;

    /// Searches a table of all settings: what was run, in order, and the answer.
    fn search(all: &[Row]) -> (Vec<u64>, u64) {
        search_with(all, &[], Climb::Twice)
    }

    /// The same, where some were run before.
    fn search_with(all: &[Row], before: &[u64], climb: Climb) -> (Vec<u64>, u64) {
        let (first, last) = (all[0].o, all[all.len() - 1].o);
        // As a baseline asks, which climbs by fours.
        let searched = climb == Climb::Striding;
        let options = Options { policy: Policy::Throughput, searched, ..Options::default() };
        let of = |o: u64| *all.iter().find(|row| row.o == o).expect("a setting of the range");
        let mut rows: Vec<Row> = before.iter().map(|o| of(*o)).collect();
        loop {
            match next(&rows, first, last, &options, climb) {
                Step::Measure(o) => {
                    assert!(rows.iter().all(|row| row.o != o), "o{o} again");
                    rows.push(of(o));
                }
                Step::Done(knee) => {
                    let plateau = knee.marks.map_or(last, |marks| marks.plateau);
                    let run = rows[before.len()..].iter().map(|row| row.o).collect();
                    return (run, plateau);
                }
            }
        }
    }

    #[test]
    fn no_climb_ends_before_there_is_a_curve() {
        let row = |o: u64| Row {
            o,
            iops: 1000.0,
            latency_ms: None,
            latency_half_unit_ms: 0.0,
            law: None,
        };
        let options = Options::default();
        for climb in [Climb::Twice, Climb::Once, Climb::Leaping, Climb::Striding] {
            let mut rows = Vec::new();
            let found = loop {
                match next(&rows, 2, 64, &options, climb) {
                    Step::Measure(o) => rows.push(row(o)),
                    Step::Done(found) => break found,
                }
            };
            assert_eq!(found.verdict, knee::Verdict::Flat, "{climb:?}: {}", found.reason);
        }
    }

    #[test]
    fn published_sweeps_take_31_runs_instead_of_82() {
        let mut runs = 0;
        let mut exhaustive = 0;
        for (csv, count, answer) in [
            (include_str!("../tests/data/sequential-reads.csv"), 9, 27),
            (include_str!("../tests/data/sequential-writes.csv"), 11, 15),
            (include_str!("../tests/data/random-test-1-extended-illustration.csv"), 11, 17),
        ] {
            let all = table::read(csv, None).expect("a table").rows;
            let (run, plateau) = search(&all);
            assert_eq!((run.len(), plateau), (count, answer), "{run:?}");
            runs += run.len();
            exhaustive += all.len();
        }
        assert_eq!((runs, exhaustive), (31, 82));
    }

    /// A device with this many servers of 1 ms, less smooth the larger `sharpness`; noise by a fixed
    /// sequence.
    fn device(last: u32, servers: f64, sharpness: f64, noise: f64) -> Vec<Row> {
        (1..=last)
            .map(|o| {
                let v = (f64::from(o) / servers).ln();
                let ln = -((-sharpness * v).exp() + 1.0).ln() / sharpness;
                let wobble = f64::from((o * 7919) % 101) / 50.0 - 1.0;
                let iops = 1e3 * servers * (ln + noise * wobble).exp();
                let latency_ms = Some(f64::from(o) / iops * 1e3);
                Row { o: o.into(), iops, latency_ms, latency_half_unit_ms: 0.0005, law: None }
            })
            .collect()
    }

    #[test]
    fn a_climb_leaps_to_what_was_run_before_where_the_line_is_steep() {
        for servers in [30.0, 60.0, 90.0] {
            let all = device(256, servers, 6.0, 0.0);
            let (stepped, wanted) = search_with(&all, &[12], Climb::Once);
            let (leapt, found) = search_with(&all, &[12], Climb::Leaping);
            assert_eq!(leapt[..2], [1, 48], "{servers}: {leapt:?}");
            assert!(leapt.len() < stepped.len(), "{servers}: {leapt:?} {stepped:?}");
            let rate = |o: u64| all.iter().find(|row| row.o == o).expect("in the range").iops;
            let off = rate(found) / rate(wanted) - 1.0;
            assert!(off.abs() <= 0.03, "{servers}: {found} instead of {wanted}: {off}");
        }
        // Where it is full before, it goes by doublings up to there.
        for servers in [4.0, 9.0] {
            let all = device(256, servers, 6.0, 0.0);
            let (stepped, wanted) = search_with(&all, &[12], Climb::Once);
            let (short, found) = search_with(&all, &[12], Climb::Leaping);
            assert_eq!(short[..4], [1, 2, 4, 8], "{servers}: {short:?}");
            assert!(stepped.contains(&16) && !short.contains(&16), "{short:?} {stepped:?}");
            assert!(short.len() <= stepped.len(), "{servers}: {short:?} {stepped:?}");
            let rate = |o: u64| all.iter().find(|row| row.o == o).expect("in the range").iops;
            let off = rate(found) / rate(wanted) - 1.0;
            assert!(off.abs() <= 0.03, "{servers}: {found} instead of {wanted}: {off}");
        }
        let all = device(256, 4.0, 6.0, 0.0);
        let stepped = search_with(&all, &[], Climb::Once);
        assert_eq!(search_with(&all, &[], Climb::Leaping), stepped);
    }

    #[test]
    fn a_climb_by_fours_reaches_far_corners_in_fewer_runs() {
        for servers in [30.0, 60.0, 150.0] {
            let all = device(600, servers, 6.0, 0.0)[1..].to_vec();
            let climb = |climb| search_with(&all, &[], climb).0;
            let (stepped, strode) = (climb(Climb::Once), climb(Climb::Striding));
            assert_eq!(strode[..3], [2, 8, 32], "{servers}: {strode:?}");
            let runs = |run: &[u64]| run.iter().position(|o| *o as f64 > servers);
            assert!(runs(&strode) < runs(&stepped), "{servers}: {strode:?} {stepped:?}");
        }
        // Near ones in no more runs.
        for servers in [2.0, 4.0] {
            let all = device(600, servers, 4.0, 0.0)[1..].to_vec();
            let (stepped, wanted) = search_with(&all, &[], Climb::Once);
            let (strode, found) = search_with(&all, &[], Climb::Striding);
            assert_eq!(found, wanted, "{strode:?} {stepped:?}");
            assert!(strode.len() <= stepped.len(), "{strode:?} {stepped:?}");
        }
    }

    #[test]
    fn a_step_by_fours_is_split_where_its_corner_may_lie() {
        for servers in [24.0, 40.0, 60.0, 80.0, 100.0, 130.0, 160.0] {
            for sharpness in [2.5, 4.0, 8.0, 20.0] {
                let all = device(576, servers, sharpness, 0.0);
                let options =
                    Options { policy: Policy::Throughput, searched: true, ..Options::default() };
                // As good as all, and sooner fitted.
                let dense: Vec<Row> = all.iter().filter(|row| row.o % 8 == 0).copied().collect();
                let wanted = knee::find(&dense, &options).marks.expect("a knee").plateau as f64;
                let mut rows: Vec<Row> = Vec::new();
                // As many as a baseline keeps for a curve.
                while rows.len() < 7 {
                    match next(&rows, 2, 576, &options, Climb::Striding) {
                        Step::Measure(o) => rows.extend(all.iter().find(|row| row.o == o)),
                        Step::Done(_) => break,
                    }
                }
                let run: Vec<u64> = rows.iter().map(|row| row.o).collect();
                let found = knee::find(&rows, &options).marks.expect("a knee").plateau as f64;
                println!("{servers} {sharpness}: {found} {wanted}: {run:?}");
                let off = f64::max(found / wanted, wanted / found);
                assert!(off <= 1.5, "{servers} {sharpness}: {found} instead of {wanted}: {run:?}");
            }
        }
    }

    /// What a search that climbs by fours measures in at most so many runs, where every o was run before, and what it finds.
    fn strode(all: &[Row], before: &[u64], last: u64, most: usize) -> (Vec<u64>, Knee) {
        let options = Options { policy: Policy::Throughput, searched: true, ..Options::default() };
        let of = |o: u64| *all.iter().find(|row| row.o == o).expect("a setting of the range");
        let mut rows: Vec<Row> = before.iter().map(|o| of(*o)).collect();
        while rows.len() < most {
            match next(&rows, 2, last, &options, Climb::Striding) {
                Step::Measure(o) => rows.push(of(o)),
                Step::Done(_) => break,
            }
        }
        (rows.iter().map(|row| row.o).collect(), knee::find(&rows, &options))
    }

    /// A ceiling below what the device gives.
    fn capped(last: u32, servers: f64, cap: f64) -> Vec<Row> {
        let mut all = device(last, servers, 4.0, 0.0);
        for row in &mut all {
            row.iops = row.iops.min(cap * 1e3);
            row.latency_ms = Some(row.o as f64 / row.iops * 1e3);
        }
        all
    }

    #[test]
    fn a_sharp_corner_is_looked_for_below_the_plateau() {
        for corner in [11.0, 17.0, 20.0, 40.0, 55.0, 75.0, 150.0] {
            for (name, all, top) in [
                ("capped", capped(576, 8.0 * corner, corner), corner),
                ("sharp", device(576, corner, 16.0, 0.0), corner),
            ] {
                // As a search for reads goes, and one for writes that begins with what reads needed.
                for before in [vec![], vec![2, 2 * plumb_units::convert::floor_u64(top)]] {
                    let (run, found) = strode(&all, &before, 576, 9);
                    let plateau = found.marks.expect("a knee").plateau as f64;
                    let said = format!("{name} {top} {before:?}: {plateau}: {run:?}");
                    assert_eq!(found.verdict, knee::Verdict::Knee, "{said}");
                    assert!(plateau >= 0.98 * top && plateau <= 1.5 * top, "{said}");
                }
            }
        }
    }

    #[test]
    fn a_plateau_near_the_end_of_the_range_is_looked_for_below_it() {
        for (servers, sharpness, before, last) in [
            (283.0, 8.3, vec![], 576),
            (283.0, 8.3, vec![2, 512], 512),
            (257.0, 5.5, vec![], 576),
            (257.0, 5.5, vec![2, 512], 512),
            (330.0, 16.0, vec![], 576),
        ] {
            let all = device(576, servers, sharpness, 0.0);
            let (run, found) = strode(&all, &before, last, 9);
            let said = format!("{servers} {sharpness} {last}: {}: {run:?}", found.reason);
            assert_eq!(found.verdict, knee::Verdict::Knee, "{said}");
            let plateau = found.marks.expect("a knee").plateau as f64;
            // Where its elasticity is τ.
            let wanted = servers * (1.0_f64 / TAU - 1.0).powf(1.0 / sharpness);
            assert!(plateau >= 0.95 * servers && plateau <= 1.5 * wanted, "{plateau}: {said}");
        }
        // What rises up to the end has none, and no run is spent on that.
        let all = device(576, 900.0, 8.0, 0.0);
        let (run, found) = strode(&all, &[], 576, 20);
        assert_eq!((found.verdict, run), (knee::Verdict::Extend, vec![2, 8, 32, 128, 512, 576]));
    }

    #[test]
    fn what_was_run_far_above_is_the_first_step() {
        for servers in [20.0, 60.0, 100.0, 150.0] {
            let all = device(576, servers, 4.0, 0.0)[1..].to_vec();
            let (climbed, wanted) = search_with(&all, &[], Climb::Striding);
            let (near, found) = search_with(&all, &[2, 130], Climb::Striding);
            assert!(near.len() + 1 < climbed.len(), "{servers}: {near:?} {climbed:?}");
            assert!(!near.contains(&8), "{servers}: {near:?}");
            let rate = |o: u64| all.iter().find(|row| row.o == o).expect("in the range").iops;
            let off = rate(found) / rate(wanted) - 1.0;
            assert!(off.abs() <= 0.03, "{servers}: {found} instead of {wanted}: {off}");
        }
    }

    #[test]
    fn a_leap_to_the_end_is_no_curve() {
        let all: Vec<Row> = device(12, 400.0, 6.0, 0.0);
        for (last, third) in [(12, 6), (6, 3), (3, 2)] {
            let (run, _) = search_with(&all[..last], &[last as u64], Climb::Leaping);
            assert_eq!(run[..2], [1, third], "{last}: {run:?}");
        }
        // Nothing lies between.
        assert_eq!(search_with(&all[..2], &[2], Climb::Leaping).0, [1]);
    }

    #[test]
    fn wide_ranges_take_less_than_half_of_the_runs() {
        let (mut run, mut exhaustive, mut near, mut all) = (0, 0, 0, 0);
        for last in [24, 32, 48, 64] {
            for servers in [4.0, 7.0, 11.0, 16.0] {
                for sharpness in [3.0, 5.0, 20.0] {
                    for noise in [0.0, 0.005, 0.015] {
                        let rows = device(last, servers, sharpness, noise);
                        let options = Options { policy: Policy::Throughput, ..Options::default() };
                        let knee = knee::find(&rows, &options);
                        if knee.verdict != knee::Verdict::Knee {
                            continue;
                        }
                        let wanted = knee.marks.expect("a knee").plateau;
                        let (tried, found) = search(&rows);
                        let rate = |o: u64| {
                            let quiet = device(last, servers, sharpness, 0.0);
                            quiet.iter().find(|row| row.o == o).expect("in the range").iops
                        };
                        run += tried.len();
                        exhaustive += rows.len();
                        all += 1;
                        let off = (rate(found) / rate(wanted) - 1.0).abs();
                        near += u32::from(off <= 0.03);
                        // Single runs: noise moves both answers until they are confirmed.
                        assert!(off <= 0.03 + noise, "{found} instead of {wanted}: {off}");
                    }
                }
            }
        }
        println!("{run} runs instead of {exhaustive}; {near} of {all} within 3 %");
        assert!(all > 80);
        assert!(f64::from(near) >= 0.9 * f64::from(all));
        assert!(run as f64 <= 0.45 * exhaustive as f64);
    }
}
