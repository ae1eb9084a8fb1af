//! The decision on a curve.

use serde_json::{Map, Value, json};

use super::{Rule, evidence, number, object};
use crate::findings::Layout;
use crate::knee::{
    self, BALANCE_WITHIN, Flag, KEPT, Knee, Limit, Marks, Options, Policy, TAU, Verdict, WINDOW,
};
use crate::usl::{self, Usl};

/// The decision on a curve; `layout` says what is behind the target.
#[must_use]
pub fn of_knee(knee: &Knee, options: &Options, layout: &Layout) -> Map<String, Value> {
    // Without a plateau in the range there is nothing to choose; a flat range is all plateau.
    let shown = match knee.verdict {
        Verdict::Knee | Verdict::Flat => knee.marks,
        Verdict::Extend | Verdict::Unclear => None,
    };
    let flat_o = knee.settings.first().map(|setting| setting.o);
    let is_flat = knee.verdict == Verdict::Flat;
    let plateau =
        shown.map(|marks| if is_flat { flat_o.unwrap_or(marks.plateau) } else { marks.plateau });
    let recommended = if is_flat { plateau } else { shown.map(|marks| marks.recommended) };
    // A budget lowers any recommendation; what no setting keeps is recommended for none.
    let is_over = shown.is_some_and(|marks| options.budget_ms.is_some() && marks.budget.is_none());
    let recommended = recommended.filter(|_| !is_over);
    let interval = shown.map(|marks| [marks.indifferent.0, marks.indifferent.1]);
    let mut decision = object(json!({
        "rule": Rule::Knee.keyword(),
        "verdict": knee.verdict.keyword(),
        "reason": knee.reason,
        "value": recommended,
        "interval": interval,
        "plateau_o": plateau,
        "recommended_o": recommended,
        "balance_o": shown.map(|marks| marks.balance),
        "lean_o": knee.marks.map(|marks| marks.lean),
        "budget_o": knee.marks.and_then(|marks| marks.budget),
        "indifferent_o": interval,
        "flags": knee.flags.iter().map(|flag| flag.keyword()).collect::<Vec<_>>(),
        "outlier_o": knee.outliers(),
        "named_cap": knee.named_cap.as_ref().map(|cap| &cap.name),
        "next_range_o": knee.next_range.map(|(first, last)| [first, last]),
        "repeat_o": knee.repeat,
        "dropped": knee.dropped.iter().map(|row| json!({ "o": row.o, "reason": row.reason }))
            .collect::<Vec<_>>(),
        "notes": over_budget(knee, options)
            .into_iter()
            .chain(notes(knee, shown.is_some() && !is_flat && !is_over))
            .collect::<Vec<_>>(),
        "settings": settings(knee),
        "parameters": parameters(knee, options, layout),
        "evidence": all_evidence(knee)
            .into_iter()
            .chain(shown.iter().flat_map(|marks| choice(knee, marks, options, plateau, recommended)))
            .collect::<Vec<_>>(),
    }));
    let law = scalability(knee);
    if let (Some(law), Some(Value::Array(notes))) = (law, decision.get_mut("notes")) {
        notes.push(
            format!(
                "by the scalability law throughput peaks at N = {:.0}: a peak, which decides nothing here",
                law.peak.unwrap_or_default()
            )
            .into(),
        );
    }
    decision.insert(
        "usl".to_owned(),
        law.map_or(Value::Null, |law| {
            json!({ "gamma": law.gamma, "alpha": law.alpha, "beta": law.beta, "peak_n": law.peak })
        }),
    );
    let setting = recommended.and_then(|o| knee.settings.iter().find(|setting| setting.o == o));
    if let Some(setting) = setting {
        let outstanding = knee.outstanding_per_o * setting.o as f64;
        let row =
            layout.finding(outstanding, setting.iops(), setting.latency_ms, options.block_bytes);
        decision.insert("finding".to_owned(), row.to_json());
    }
    decision
}

/// What is said where no setting keeps the latency budget.
pub(crate) fn over_budget(knee: &Knee, options: &Options) -> Option<String> {
    let budget =
        options.budget_ms.filter(|_| knee.marks.is_some_and(|marks| marks.budget.is_none()))?;
    let counted = knee.settings.iter().filter(|setting| setting.counts());
    let (o, least) = counted
        .map(|setting| (setting.o, setting.latency_ms))
        .min_by(|a, b| a.1.total_cmp(&b.1))?;
    Some(format!(
        "no setting keeps the latency budget of {budget} ms: the shortest is {least:.3} ms at o = {o}; nothing is \
         recommended"
    ))
}

/// The scalability law through the settings that count, where its peak may be told (3.4).
fn scalability(knee: &Knee) -> Option<Usl> {
    knee.told_fit()?;
    let counted = knee.settings.iter().filter(|setting| setting.counts());
    let points: Vec<(f64, f64)> = counted
        .map(|setting| (knee.outstanding_per_o * setting.o as f64, setting.iops()))
        .collect();
    usl::fit(&points).filter(|law| law.is_told)
}

fn notes(knee: &Knee, has_choice: bool) -> Vec<String> {
    let mut notes = knee.notes.clone();
    if let Some(marks) = knee.marks.filter(|_| has_choice) {
        let (first, last) = marks.indifferent;
        notes.push(match first == last {
            true => format!(
                "no other tested setting gives the same throughput as o = {first} within noise"
            ),
            false => format!("any of o = {first}…{last} gives the same throughput within noise"),
        });
    }
    match knee.next_range {
        Some((first, last)) if first == last => notes.push(format!("next: o = {first}")),
        Some((first, last)) => notes.push(format!("next range: o = {first}…{last}")),
        None => {}
    }
    if knee.flags.contains(&Flag::Capped) {
        let named = knee.named_cap.as_ref().map_or_else(
            || format!("unknown ceiling at {:.0} I/Os per second", knee.cap.level_iops),
            |cap| {
                format!(
                    "ceiling: {} ({:.0} I/Os per second, measured {:+.1} %)",
                    cap.name,
                    cap.iops,
                    cap.distance * 100.0
                )
            },
        );
        notes.push(format!("{named}; raising the queue depth only adds waiting"));
    }
    notes
}

fn settings(knee: &Knee) -> Vec<Value> {
    let fitted = |index: usize| knee.told_fit().map(|fit| fit.ln_x[index].exp());
    knee.settings
        .iter()
        .enumerate()
        .map(|(index, setting)| {
            json!({
                "o": setting.o,
                "outstanding": knee.outstanding_per_o * setting.o as f64,
                "runs": setting.runs.iter().map(|ln| ln.exp()).collect::<Vec<_>>(),
                "iops": setting.iops(),
                "fitted_iops": fitted(index),
                "latency_ms": setting.latency_ms,
                "irreproducible": setting.irreproducible,
                "excluded": setting.excluded,
                "off_curve": setting.off_curve,
            })
        })
        .collect()
}

fn parameters(knee: &Knee, options: &Options, layout: &Layout) -> Value {
    let caps: Vec<Value> = options
        .caps
        .iter()
        .map(|cap| match cap.limit {
            Limit::Iops(iops) => json!({ "name": cap.name, "iops": iops }),
            Limit::MibPerS(mib) => json!({ "name": cap.name, "mib_per_s": mib }),
        })
        .collect();
    json!({
        "tau": TAU,
        "policy": options.policy.keyword(),
        "searched": options.searched,
        "threads": options.threads,
        "files": options.files,
        "outstanding_per_o": knee.outstanding_per_o,
        "block_bytes": options.block_bytes,
        "budget_ms": options.budget_ms,
        "devices": layout.devices,
        "copies": layout.copies,
        "write_share": layout.write_share,
        "caps": caps,
        "noise_elsewhere": options
            .noise
            .map(|noise| json!({ "sd": noise.deviation, "freedom": noise.freedom })),
    })
}

fn all_evidence(knee: &Knee) -> Vec<Value> {
    let Some(fit) = &knee.fit else { return Vec::new() };
    let is_told = knee.told_fit().is_some();
    let told = |value: f64| if is_told { number(value) } else { Value::Null };
    let mut list = Vec::new();
    let low = fit.ln_x.first().copied().unwrap_or_default();
    let high = fit.ln_x.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    // What is too noisy for a gain is unclear by its noise alone, what has too few settings by neither.
    let has_settings = knee.settings.iter().filter(|s| s.counts()).count() >= knee::FEWEST;
    let is_decided_by_gain = has_settings && fit.sigma <= knee::NOISE_MOST;
    let sigma = if has_settings { number(fit.noise) } else { Value::Null };
    list.push(evidence(
        "sigma",
        sigma,
        match fit.is_noise_known {
            true => "SD of ln X about the fit, or of repetitions if larger",
            false => {
                "noise is not known: too few settings and repetitions; at least 1.5 % is taken"
            }
        },
    ));
    let sum = format!("exp({high:.4} − {low:.4}) − 1: highest fitted value over the first");
    list.push(match is_told || is_decided_by_gain {
        true => evidence("gain", (high - low).exp_m1(), sum),
        false => evidence("gain", Value::Null, UNTOLD),
    });
    let corners: Vec<String> =
        fit.corners.iter().map(|(o, change)| format!("o{o} −{change:.3}")).collect();
    let sum = format!("elasticity changes at {}", corners.join(", "));
    let sum = if is_told { sum } else { UNTOLD.to_owned() };
    list.push(evidence("end_slope_of_fit", told(fit.end_slope), sum));
    if let Some((elasticity, error)) = knee.end_elasticity {
        let sum = format!(
            "median of slopes of the last settings; rises when > {TAU} and {elasticity:.3} − \
             {error:.3} = {:.3} > {:.3}",
            elasticity - error,
            0.8 * TAU
        );
        let sum = if is_told { sum } else { UNTOLD.to_owned() };
        list.push(evidence("end_elasticity", told(elasticity), sum));
        list.push(evidence("end_elasticity_error", told(error), ""));
    }
    let cap = knee.cap;
    let approach = cap.approach.map_or(Value::Null, told);
    for (name, value, sum) in [
        ("plateau_iops", told(cap.level_iops), "median from the plateau on"),
        ("plateau_slope", told(cap.slope), "a ceiling has 0 ± 0.03, or 2 of its errors"),
        ("plateau_deviation", told(cap.deviation), "SD of ln X from the plateau on"),
        ("plateau_range", told(cap.range), "a ceiling is seen over 1.5 or more"),
        ("approach_elasticity", approach, "over the octave below; a ceiling's is 0.6 or more"),
    ] {
        list.push(evidence(name, value, if is_told { sum } else { UNTOLD }));
    }
    list
}

/// How the marks and the recommendation came about.
fn choice(
    knee: &Knee,
    marks: &Marks,
    options: &Options,
    plateau: Option<u64>,
    recommended: Option<u64>,
) -> Vec<Value> {
    let is_flat = knee.verdict == Verdict::Flat;
    let fitted = |o: u64| {
        let nth = knee.settings.iter().position(|setting| setting.o == o)?;
        knee.told_fit().map(|fit| fit.ln_x[nth].exp())
    };
    let told = |o: u64| fitted(o).map_or(String::new(), |iops| format!("{iops:.1} at o{o}"));
    let sum = match is_flat {
        true => "flat: the first setting".to_owned(),
        false => slopes(knee, marks.plateau),
    };
    let mut list = vec![evidence("plateau_o", plateau, sum)];
    list.push(evidence(
        "balance_o",
        marks.balance,
        format!(
            "last tested setting up to o{:.0} ({WINDOW} times the plateau) whose normalised throughput less normalised \
             latency, by the fit, is within {BALANCE_WITHIN} of the highest",
            (WINDOW * marks.plateau as f64).floor()
        ),
    ));
    if let Some(lean) = knee.settings.iter().find(|setting| setting.o == marks.lean) {
        let sum = format!(
            "{:.1} / {:.3} ms = {:.1}: the most of all tested",
            lean.iops(),
            lean.latency_ms,
            lean.iops() / lean.latency_ms
        );
        list.push(evidence("lean_o", marks.lean, sum));
    }
    if let Some(kept) = marks.kept.filter(|_| !is_flat) {
        let of = match options.searched {
            true => "balance or plateau, whichever is less, on the fit at every o, tested or not",
            false => "balance or plateau, whichever is less",
        };
        let sum = format!("{KEPT} · {:.1}, the fit at o{} ({of})", kept.iops / KEPT, kept.from);
        list.push(evidence("kept_iops", number(kept.iops), sum));
    }
    let by_policy = match (is_flat, options.policy) {
        (true, _) => "flat: one is enough".to_owned(),
        (_, Policy::Throughput) => "throughput: the plateau".to_owned(),
        (_, Policy::Latency) => "latency: lean".to_owned(),
        (_, Policy::Balanced) => {
            "balanced: the first tested setting whose fit is not below kept_iops".to_owned()
        }
    };
    let sum = match (options.budget_ms, marks.budget) {
        (Some(budget), Some(o)) => {
            format!(
                "{by_policy}, or o{o} if less, the last within the latency budget of {budget} ms"
            )
        }
        (Some(budget), None) => {
            format!("none: no setting keeps the latency budget of {budget} ms")
        }
        (None, _) => by_policy,
    };
    let sum = match recommended.filter(|_| !is_flat).map(told) {
        Some(rate) => format!("{sum}: {rate}"),
        None => sum,
    };
    list.push(evidence("recommended_o", recommended, sum));
    list
}

/// What the fit rises by on both sides of the plateau.
fn slopes(knee: &Knee, plateau: u64) -> String {
    let (Some(fit), Some(at)) =
        (knee.told_fit(), knee.settings.iter().position(|setting| setting.o == plateau))
    else {
        return String::new();
    };
    let between = |from: usize| {
        let (here, next) = (knee.settings.get(from)?, knee.settings.get(from + 1)?);
        let rise = fit.ln_x[from + 1] - fit.ln_x[from];
        Some((rise / (next.o as f64 / here.o as f64).ln(), here.o, next.o))
    };
    let (before, behind) = (at.checked_sub(1).and_then(between), between(at));
    let sides: Vec<String> = [before, behind]
        .into_iter()
        .flatten()
        .map(|(slope, here, next)| format!("{slope:.3} from o{here} to o{next}"))
        .collect();
    let is_moved =
        before.is_some_and(|side| side.0 < TAU) || behind.is_some_and(|side| side.0 >= TAU);
    let moved = if is_moved { "; moved here, as the measured values say so" } else { "" };
    format!("fitted elasticity {}; tau {TAU}{moved}", sides.join(", "))
}

/// Said of a figure that would be one of a fit that does not hold.
const UNTOLD: &str = "not told: the verdict is unclear, and no fit holds";
