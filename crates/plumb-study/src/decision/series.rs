//! The decision on a history.

use serde_json::{Map, Value, json};

use super::{Rule, evidence, object};
use crate::compare::{self, Comparison, Metric, Verdict};
use crate::history::{self, ChangePoint};

/// The decision on a series of positive values, oldest first; `None` for fewer than two values or ones
/// that are not positive. A change of level counts from `step_least` on, relative.
#[must_use]
pub fn of_history(values: &[f64], metric: &Metric, step_least: f64) -> Option<Map<String, Value>> {
    if values.len() < 2 || values.iter().any(|value| !value.is_finite() || *value <= 0.0) {
        return None;
    }
    Some(match history::change_points_beyond(values, step_least) {
        Some(points) => of_points(values, &points, metric, step_least),
        None => of_last(values, metric, step_least),
    })
}

fn of_points(
    values: &[f64],
    points: &[ChangePoint],
    metric: &Metric,
    step_least: f64,
) -> Map<String, Value> {
    let direction = |point: &ChangePoint| match (point.step() > 0.0) == metric.higher_is_better {
        true => Verdict::Better,
        false => Verdict::Worse,
    };
    let outliers = history::outliers(values);
    let last = points.last();
    let start = last.map_or(0, |point| point.index);
    let before = points.len().checked_sub(2).map_or(0, |place| points[place].index);
    let turn = |step: f64| if metric.higher_is_better { step } else { -step };
    let step = last.and_then(|point| {
        let kept = |range: std::ops::Range<usize>| -> Vec<f64> {
            range.filter(|index| !outliers.contains(index)).map(|index| values[index]).collect()
        };
        let estimate =
            compare::of_runs(&kept(before..point.index), &kept(point.index..values.len()))?;
        Some(compare::judge(estimate, metric))
    });
    // Too few for a level of their own, and they stand off the last one: not yet.
    let unsettled = history::unsettled_from(values).filter(|from| *from > start);
    let off = unsettled.map(|from| {
        let middle = |part: &[f64]| crate::stats::describe::median(part);
        middle(&values[from..]) / middle(&values[start..from]) - 1.0
    });
    let mut notes: Vec<String> = unsettled
        .zip(off)
        .map(|(from, off)| {
            format!(
                "the last {} values are {:+.1} % off the level before: too few for a level of their own ({} are needed); \
                 whether it stays so is not known yet",
                values.len() - from,
                off * 100.0,
                history::SEGMENT_LEAST
            )
        })
        .into_iter()
        .collect();
    let is_unsettled = off.is_some_and(|off| off.abs() >= metric.delta);
    let steadiness = Steadiness::of(values, metric);
    if last.is_none() {
        notes.extend(steadiness.note.clone());
    }
    let verdict = match last {
        _ if is_unsettled => Verdict::Unclear,
        Some(point) => direction(point),
        None => steadiness.verdict,
    };
    let reason = match last {
        _ if is_unsettled => notes[0].clone(),
        None if steadiness.verdict == Verdict::Same => format!(
            "one level over all {} values: {}, {}",
            values.len(),
            steadiness.trend,
            steadiness.last
        ),
        None => format!("no change of level found, and no one level: {}", notes[notes.len() - 1]),
        Some(point) => format!(
            "{} of level; the last at index {}: {:+.1} %, {}",
            if points.len() == 1 {
                "1 change".to_owned()
            } else {
                format!("{} changes", points.len())
            },
            point.index,
            point.step() * 100.0,
            direction(point).keyword()
        ),
    };
    let changes: Vec<Value> = points
        .iter()
        .map(|point| {
            json!({
                "index": point.index,
                "before": point.before,
                "after": point.after,
                "step": point.step(),
                "effect": turn(point.step()),
                "verdict": direction(point).keyword(),
                "p": point.p,
            })
        })
        .collect();
    let level: Vec<f64> = values[start..].to_vec();
    let mut flags = Vec::new();
    flags.extend((!outliers.is_empty()).then_some("outlier"));
    flags.extend(is_unsettled.then_some("unsettled"));
    object(json!({
        "rule": Rule::History.keyword(),
        "metric": metric.name,
        "verdict": verdict.keyword(),
        "reason": reason,
        "value": last.map(|point| turn(point.step())),
        "interval": step.as_ref().map(|step| [step.interval.0, step.interval.1]),
        "change_points": points.iter().map(|point| point.index).collect::<Vec<_>>(),
        "changes": changes,
        "outliers": outliers,
        "flags": flags,
        "notes": notes,
        "parameters": parameters(metric, step_least),
        "evidence": [
            evidence("values", values.to_vec(), ""),
            evidence("current_level", crate::stats::describe::median(&level),
                format!("median of the {} values from index {start} on", level.len())),
        ],
    }))
}

/// Whether values without a change of level are one level (6.2, 6.4): their trend, and the last four against those before,
/// lie within the smallest relevant effect, intervals and all.
struct Steadiness {
    verdict: Verdict,
    trend: String,
    last: String,
    /// Why it is not.
    note: Option<String>,
}

impl Steadiness {
    fn of(values: &[f64], metric: &Metric) -> Self {
        let percent = |ln: f64| ln.exp_m1() * 100.0;
        let told = |(estimate, low, high): (f64, f64, f64)| {
            format!("{:+.1} % ({:+.1} to {:+.1} %)", percent(estimate), percent(low), percent(high))
        };
        let Some(movement) = history::movement(values) else {
            let note = "too few values without the outliers to tell one level".to_owned();
            let none = String::new;
            return Self {
                verdict: Verdict::Unclear,
                trend: none(),
                last: none(),
                note: Some(note),
            };
        };
        let is_within = |(estimate, low, high): (f64, f64, f64)| {
            let of = f64::exp_m1;
            Verdict::of(of(estimate), of(low), of(high), metric.delta) == Verdict::Same
        };
        let trend = format!("from first to last {}", told(movement.trend));
        let last = format!("the last four against those before {}", told(movement.last));
        let delta = metric.delta * 100.0;
        let start = history::unsettled_until(values).map(|until| {
            let middle = crate::stats::describe::median;
            (until, middle(&values[..until]) / middle(&values[until..]) - 1.0)
        });
        let start = start.filter(|(_, off)| off.abs() >= metric.delta);
        let note = match (start, is_within(movement.trend), is_within(movement.last)) {
            (Some((until, off)), ..) => Some(format!(
                "the first {until} values are {:+.1} % off the level after them: too few for a level of their own",
                off * 100.0
            )),
            (None, true, true) => None,
            (None, false, _) => Some(format!("{trend}, which is not within ±{delta:.1} %")),
            (None, true, false) => Some(format!("{last}, which is not within ±{delta:.1} %")),
        };
        let verdict = if note.is_none() { Verdict::Same } else { Verdict::Unclear };
        Self { verdict, trend, last, note }
    }
}

/// Too short for change points: the last value against those before it.
fn of_last(values: &[f64], metric: &Metric, step_least: f64) -> Map<String, Value> {
    let (last, before) = values.split_last().expect("two values or more");
    let found: Comparison = compare::judge(
        compare::of_runs(before, &[*last]).expect("the values are positive"),
        metric,
    );
    let mut notes = vec![format!(
        "{} values: change points need {}; the last is compared with those before",
        values.len(),
        history::SERIES_LEAST
    )];
    notes.extend(found.notes.iter().cloned());
    object(json!({
        "rule": Rule::History.keyword(),
        "metric": metric.name,
        "verdict": found.verdict.keyword(),
        "reason": format!("the last value is {:+.1} % off those before", found.effect * 100.0),
        "value": found.effect,
        "interval": [found.interval.0, found.interval.1],
        "change_points": [],
        "changes": [],
        "outliers": [],
        "flags": ["short"],
        "notes": notes,
        "parameters": parameters(metric, step_least),
        "evidence": [
            evidence("values", values.to_vec(), ""),
            evidence("p", found.p, "of no change between the last value and those before"),
        ],
    }))
}

fn parameters(metric: &Metric, step_least: f64) -> Value {
    json!({
        "higher_is_better": metric.higher_is_better,
        "delta": metric.delta,
        "step_least": step_least,
        "segment_least": history::SEGMENT_LEAST,
        "series_least": history::SERIES_LEAST,
    })
}
