//! What holds throughput down at a plateau, by what was seen beside its runs (method, 2.12).

use plumb_units::convert::to_u64;
use plumb_units::words::number_of;
use serde_json::{Map, Value, json};

use super::beside::SECONDS_LEAST;
use super::findings::Finding;
use super::record::{RunRecord, Summary};
use super::summary::STOOD_STILL;
use crate::attribution::{Attribution, Bottleneck, Seen, attribute};
use crate::decision::{self, Rule};
use crate::knee::{Flag, Knee, Verdict};
use crate::stats::describe::median;

/// A curve whose plateau is looked at.
pub(super) struct Plateau<'a> {
    /// Name of the curve's finding.
    pub(super) of: &'a str,
    /// A few words for people.
    pub(super) title: &'a str,
    /// The curve.
    pub(super) knee: &'a Knee,
    /// Its runs.
    pub(super) runs: &'a [&'a RunRecord],
    /// What more threads bring at equal N, relative, where that was tried.
    pub(super) gain_by_threads: Option<f64>,
}

/// Median of a figure over the runs that have it.
fn middle(runs: &[(&RunRecord, &Summary)], of: impl Fn(&Summary) -> Option<f64>) -> Option<f64> {
    let values: Vec<f64> = runs.iter().filter_map(|(_, summary)| of(summary)).collect();
    (!values.is_empty()).then(|| median(&values))
}

/// The finding; `None` where the curve has no plateau, or no run at it or beyond.
pub(super) fn finding(plateau: &Plateau) -> Option<Finding> {
    // A curve that still rises has no plateau yet: whatever is busy, it is not at its limit.
    let marks = plateau.knee.marks.filter(|_| plateau.knee.verdict != Verdict::Extend)?;
    let at: Vec<(&RunRecord, &Summary)> = plateau
        .runs
        .iter()
        .filter(|run| u64::from(run.setting.outstanding) >= marks.plateau)
        .filter_map(|run| Some((*run, run.usable()?)))
        .collect();
    if at.is_empty() {
        return None;
    }
    let seen = seen(plateau, &at);
    let named = attribute(&seen);
    let mut sentence = format!("{}: {}.", plateau.title, named.bottleneck.sentence());
    if let Some(cap) = seen.cap.as_ref().filter(|_| named.bottleneck == Bottleneck::Cap) {
        sentence =
            format!("{}: a ceiling ({cap}): more queue depth only adds waiting.", plateau.title);
    }
    if let Some(why) = unseen(&at) {
        sentence.push_str(&format!(" {why}: what the devices did is unknown."));
    }
    let runs: Vec<u32> = at.iter().map(|(run, _)| run.run).collect();
    Some(Finding {
        id: format!("bottleneck-{}", plateau.of),
        title: format!("What limits {}", lower(plateau.title)),
        decision: decision(plateau, &seen, &named, &sentence, &runs),
        sentence,
        step: plateau.of.to_owned(),
        runs,
        table: None,
    })
}

/// Why nothing of the devices was seen; `None` where it was.
fn unseen(at: &[(&RunRecord, &Summary)]) -> Option<String> {
    let most = at.iter().map(|(_, summary)| summary.counted_s).max().unwrap_or(0);
    let beside: Vec<&super::Beside> =
        at.iter().filter_map(|(_, summary)| summary.beside.as_ref()).collect();
    if beside.iter().any(|beside| beside.device_busy.is_some()) {
        return None;
    }
    Some(match (beside.is_empty(), most) {
        (true, 0) => "No counters were recorded beside the runs".to_owned(),
        (true, seconds) => format!(
            "Counters of {seconds} s beside a run say nothing; measure {SECONDS_LEAST} s or more"
        ),
        (false, _) if at.iter().all(|(run, _)| !run.setting.bypasses_page_cache()) => {
            "The page cache lies between the load and the devices".to_owned()
        }
        (false, _) => "The counters beside the runs see no device under the target".to_owned(),
    })
}

fn lower(title: &str) -> String {
    let mut letters = title.chars();
    letters.next().map_or(String::new(), |first| first.to_lowercase().chain(letters).collect())
}

fn seen(plateau: &Plateau, at: &[(&RunRecord, &Summary)]) -> Seen {
    let of = |f: &dyn Fn(&super::Beside) -> Option<f64>| {
        middle(at, |summary| f(summary.beside.as_ref()?))
    };
    let outstanding: Vec<f64> =
        at.iter().map(|(run, _)| run.setting.total_outstanding() as f64).collect();
    // Runs at the plateau differ in N: what they have in common is the share of it that is at the device. The
    // device on top does what the load does, so A is 1 there.
    let shares: Vec<f64> = at
        .iter()
        .filter(|(run, _)| run.setting.rate.is_none())
        .filter_map(|(run, summary)| {
            let in_flight = summary.beside.as_ref()?.device_in_flight?;
            Some(in_flight / run.setting.total_outstanding() as f64)
        })
        .collect();
    let n = median(&outstanding);
    let widest = at.iter().filter_map(|(_, s)| Some(s.beside.as_ref()?.cores.len())).max();
    let cores = (0..widest.unwrap_or(0))
        .filter_map(|core| of(&|beside| beside.cores.get(core).copied()))
        .collect();
    let below = at.iter().filter_map(|(_, s)| Some(s.beside.as_ref()?.below_iops.len())).max();
    let device_rates = (0..below.unwrap_or(0))
        .filter_map(|device| of(&|beside| beside.below_iops.get(device).copied()))
        .collect();
    let throttled = |(run, summary): &(&RunRecord, &Summary)| {
        let times = summary.beside.as_ref()?.throttled;
        (times > 0)
            .then(|| format!("processors or drives were throttled {times} times in {}", run.name()))
    };
    let knee = plateau.knee;
    let is_capped = knee.flags.contains(&Flag::Capped) || knee.named_cap.is_some();
    let cap = is_capped.then(|| {
        knee.named_cap.as_ref().map_or_else(
            || format!("not a known one, at {:.0} I/Os per second", knee.cap.level_iops),
            |cap| format!("{}, measured {:+.1} % off it", cap.name, cap.distance * 100.0),
        )
    });
    Seen {
        disturbances: at.iter().filter_map(throttled).collect(),
        cap,
        busiest_worker: of(&|beside| beside.workers),
        // Where the device stood still it says nothing of the generator.
        residual: middle(at, |summary| summary.residual.filter(|_| !summary.has(STOOD_STILL))),
        gain_by_threads: plateau.gain_by_threads,
        cores,
        device_busy: of(&|beside| beside.device_busy),
        device_in_flight: (!shares.is_empty()).then(|| median(&shares) * n),
        expected_in_flight: (!shares.is_empty()).then_some(n),
        device_rates,
    }
}

fn decision(
    plateau: &Plateau,
    seen: &Seen,
    named: &Attribution,
    sentence: &str,
    runs: &[u32],
) -> Map<String, Value> {
    let id = format!("bottleneck-{}", plateau.of);
    let word = named.bottleneck.keyword();
    let mut decision = decision::plain(Rule::Bottleneck, &id, word, sentence);
    decision.insert("value".to_owned(), json!(named.bottleneck.rule()));
    let figures = [
        ("generator_threads_busy", seen.busiest_worker, "processor time over time and threads"),
        ("residual", seen.residual, "X·L/N − 1"),
        ("gain_by_threads", seen.gain_by_threads, "most more threads bring at equal N"),
        (
            "device_busy",
            seen.device_busy,
            "share of time with an I/O in flight at the device on top",
        ),
        ("device_in_flight", seen.device_in_flight, "share of N at the device, times N"),
        ("outstanding", seen.expected_in_flight, "N of the runs at the plateau"),
    ];
    let mut evidence: Vec<Value> = figures
        .iter()
        .map(|(name, value, how)| match value {
            Some(value) => json!({ "name": name, "value": value, "arithmetic": format!("median of {}: {how}", number_of(to_u64(runs.len()), "run")) }),
            None => json!({ "name": name, "value": null, "arithmetic": "not seen" }),
        })
        .collect();
    let list = |name: &str, values: &[f64], how: &str| {
        (!values.is_empty()).then(|| json!({ "name": name, "value": values, "arithmetic": how }))
    };
    evidence.extend(list("cores_busy", &seen.cores, "median of each processor, 0…1"));
    evidence.extend(list(
        "device_rates",
        &seen.device_rates,
        "I/Os per second of each device below",
    ));
    evidence.extend(seen.cap.iter().map(|cap| json!({ "name": "ceiling", "value": cap })));
    decision.insert("evidence".to_owned(), evidence.into());
    decision.insert("notes".to_owned(), json!(named.evidence));
    decision
}
