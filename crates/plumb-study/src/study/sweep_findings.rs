//! What a sweep says.

use plumb_units::words::number_of;
use serde_json::{Value, json};

use super::behind::Behind;
use super::best::{Best, Candidate, FILE_SIZE, choose_best};
use super::bottleneck::Plateau;
use super::conditioning::counted;
use super::document::FORMAT;
use super::drift::{Drift, without_drift};
use super::findings::{Finding, Findings, State, Table};
use super::options::{RunOrder, SweepPlan};
use super::record::{RunRecord, Summary, weakest};
use super::remarks::{Chosen, Whole};
use super::run_notes::notes;
use super::sweep::{SWEEP, SweepPlanner, rows, same_but_o};
use super::workloads::{Workload, workloads};
use super::{Conditioning, Resumption, Setting, bottleneck, machine, remarks};
use crate::decision;
use crate::findings::Layout;
use crate::knee::{self, Flag, Knee, Marks, Options, Row, Verdict};
use crate::percentile::{self, Mark};
use crate::stats::describe::{deviation, mean, median};
use crate::stats::distribution::t_95;

/// What the findings are told of beside plan and runs.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Told<'a> {
    /// The study's name.
    pub study: &'a str,
    /// How far it is.
    pub state: State,
    /// Runs of an exhaustive plan.
    pub runs_exhaustive: u64,
    /// The environment record before the first run, with the preflight; `None` where none was taken.
    pub environment: Option<&'a Value>,
    /// Each time that it went on after an interruption.
    pub resumptions: &'a [Resumption],
    /// What of the environment changed between the first run and the last, in words.
    pub changed: &'a [String],
}

impl Told<'_> {
    /// Remarks on the machine: interruptions that changed something, and what changed on the way.
    pub(super) fn notes(&self, runs: &[RunRecord]) -> Vec<String> {
        let mut notes = machine::resumptions(self.resumptions, runs);
        let changed = self.changed.iter();
        notes.extend(changed.map(|what| format!("this changed while it was measured: {what}")));
        notes
    }
}

/// Findings of a sweep: the best setting, a knee per curve, drift; a pure function of plan and runs.
#[must_use]
pub fn sweep_findings(plan: &SweepPlan, all: &[RunRecord], told: Told) -> Findings {
    let runs = &*counted(all);
    let drift = Drift::of(runs).or_else(|| Drift::of_repetitions(runs));
    let corrected: Vec<RunRecord> =
        runs.iter().map(|run| without_drift(run, drift.as_ref())).collect();
    let mut findings = Vec::new();
    let settings = tested(&corrected);
    let workloads = workloads(&settings);
    let mut chosen: Vec<(String, &Setting)> = Vec::new();
    for workload in workloads.iter().filter(|workload| workload.settings.len() > 1) {
        let Some((finding, at)) = best(workload, &settings, &corrected) else { continue };
        chosen.push((lower(&finding.title), &workload.settings[at]));
        findings.push(finding);
    }
    // What is the only one needs no choice.
    if let [only] = &*settings {
        chosen.push(("the only setting".to_owned(), only));
    }
    let mut subjects: Vec<(&str, &Setting)> =
        chosen.iter().map(|(name, setting)| (name.as_str(), *setting)).collect();
    let curves = curves(plan, &settings, &corrected);
    let whole = Whole {
        chosen: subjects.iter().filter_map(|of| figures(*of, &settings, &corrected)).collect(),
        ceiling: ceilings(&curves),
        differing: differing(&settings),
        remote: machine::remote(told.environment),
        behind: Behind::of(told.environment, None),
    };
    if subjects.is_empty() {
        // A run can be read without being anybody's choice.
        subjects.extend(settings.first().map(|first| ("the first setting", first)));
    }
    let reading = remarks::finding(&subjects, &corrected, &whole);
    for curve in curves {
        findings.push(curve.finding);
        findings.extend(curve.limit);
    }
    findings.extend(drift.as_ref().map(|drift| drift.finding(runs, "sweep")));
    findings.extend(reading);
    findings.extend(machine::preflight(told.environment));
    // A drift is no warm-up, and nothing by which runs of a setting differ.
    let mut notes = notes(&corrected);
    notes.extend(told.notes(runs));
    if plan.conditioning != Conditioning::None {
        notes.extend(SweepPlanner::new(plan.clone()).conditioning_note(all));
    }
    notes.extend(match plan.order {
        RunOrder::Random => None,
        _ if plan.adaptive => None,
        RunOrder::AsGiven => Some("as given"),
        RunOrder::Sorted => Some("sorted"),
    }.map(|order| {
        format!("the settings were run in one order ({order}): what changes with time looks as if an axis did it")
    }));
    if told.state == State::Partial {
        notes.push("the sweep is not finished: settings or repetitions are missing".to_owned());
    }
    if plan.adaptive {
        let measured = runs.len() as u64;
        let saved = told.runs_exhaustive.saturating_sub(measured);
        notes.push(format!(
            "{} instead of {} exhaustive; saved {saved}",
            number_of(measured, "run"),
            told.runs_exhaustive
        ));
    }
    Findings {
        format: FORMAT,
        study: told.study.to_owned(),
        state: told.state,
        runs: runs.len() as u64,
        runs_exhaustive: told.runs_exhaustive,
        findings: findings.into_iter().map(|finding| finding.with_unsteady(runs)).collect(),
        notes,
    }
}

/// Settings in the order of their numbers, each once.
pub(super) fn tested(runs: &[RunRecord]) -> Vec<Setting> {
    let mut list: Vec<Setting> = Vec::new();
    for run in runs {
        if !list.contains(&run.setting) {
            list.push(run.setting.clone());
        }
    }
    list.sort_by(|a, b| {
        let key = |s: &Setting| (s.block_bytes, s.write_percent, s.files, s.threads, s.outstanding);
        key(a).cmp(&key(b)).then_with(|| a.short().cmp(&b.short()))
    });
    list
}

/// Usable rates of a setting, and the runs they come from.
pub(super) fn rates(setting: &Setting, runs: &[RunRecord]) -> (Vec<f64>, Vec<u32>) {
    runs.iter()
        .filter(|run| run.setting == *setting)
        .filter_map(|run| Some((run.usable()?.iops, run.run)))
        .unzip()
}

/// In what settings differ that makes them incomparable (R13).
fn differing(settings: &[Setting]) -> Vec<String> {
    let Some(first) = settings.first() else { return Vec::new() };
    let differs = |is_other: &dyn Fn(&Setting) -> bool| settings.iter().any(is_other);
    let total =
        |setting: &Setting| setting.file_bytes.map(|bytes| bytes * u64::from(setting.files));
    let found = [
        (FILE_SIZE, differs(&|setting| total(setting) != total(first))),
        (
            "data pattern",
            differs(&|setting| setting.write_source_bytes != first.write_source_bytes),
        ),
        ("cache mode", differs(&|setting| setting.cache != first.cache)),
    ];
    found.iter().filter(|(_, differs)| *differs).map(|(name, _)| (*name).to_owned()).collect()
}

fn lower(title: &str) -> String {
    title.replacen('T', "t", 1)
}

/// The finding, and the place of the chosen setting.
fn best(workload: &Workload, all: &[Setting], runs: &[RunRecord]) -> Option<(Finding, usize)> {
    let settings = &*workload.settings;
    let (id, title) = match workload.name.as_str() {
        "" => ("best".to_owned(), "The best setting".to_owned()),
        name => (format!("best-{}", name.replace(' ', "-")), format!("The best setting of {name}")),
    };
    let (candidates, numbers): (Vec<Candidate>, Vec<Vec<u32>>) = settings
        .iter()
        .map(|setting| {
            let (iops, numbers) = rates(setting, runs);
            let cost = setting.total_outstanding() * 10_000 + u64::from(setting.threads);
            (setting.candidate(setting.name_among(all), iops, cost), numbers)
        })
        .unzip();
    let found = choose_best(&candidates, None)?;
    let label = |index: usize| candidates[index].label.clone();
    let set: Vec<String> = found.set.iter().map(|index| label(*index)).collect();
    // As they are judged, and drawn.
    let level = |index: usize| geometric(&candidates[index].iops);
    let mut reason = format!(
        "{} has most, {:.0} I/Os per second; {} of {} settings are not worse, and of those that were not seen to give 5 % less \
         {} is the one with fewest outstanding I/Os",
        label(found.best),
        level(found.best),
        found.set.len(),
        candidates.len(),
        label(found.chosen)
    );
    let standings = found.standings(&candidates);
    if !standings.is_empty() {
        reason.push_str(&format!("; {standings}"));
    }
    let differing = differing(settings);
    if found.is_single || !differing.is_empty() {
        reason.push_str(&format!("; {}", found.reservations(&candidates, &differing)));
    }
    let flags = [("single_runs", found.is_single), ("not_comparable", !differing.is_empty())];
    let doubt = found.doubt(&candidates);
    if !doubt.is_empty() {
        reason.push_str(&format!("; not certain yet: {doubt}"));
    }
    let decision = decision::of_choice(&decision::ChoiceMade {
        id: id.clone(),
        value: label(found.chosen),
        best: label(found.best),
        set: set.clone(),
        how: decision::HOLM,
        reason: reason.clone(),
        flags: flags.into_iter().filter(|(_, is_so)| *is_so).map(|(flag, _)| flag).collect(),
        verdict: found.verdict(),
        deviation: (found.noise.deviation, found.noise.freedom, found.noise.told()),
    });
    let table = table(settings, all, runs, &found);
    let finding = Finding {
        id,
        title,
        sentence: format!("{reason}."),
        step: SWEEP.to_owned(),
        decision,
        runs: numbers.concat(),
        table: Some(table),
    };
    Some((finding, found.chosen))
}

/// The geometric mean.
fn geometric(values: &[f64]) -> f64 {
    mean(&values.iter().map(|value| value.ln()).collect::<Vec<_>>()).exp()
}

/// A row per setting.
fn table(settings: &[Setting], all: &[Setting], runs: &[RunRecord], found: &Best) -> Table {
    let columns = [
        "setting",
        "F",
        "t",
        "o",
        "N",
        "block [B]",
        "write [%]",
        "runs",
        "iops [1/s]",
        "ci95 [%]",
        "mib_per_s",
        "avg_lat [ms]",
        "p99 [ms]",
        "p99 rests on",
        "off best [%]",
        "± [%]",
        "in the best set",
    ];
    let rows = settings
        .iter()
        .zip(&found.standing)
        .enumerate()
        .map(|(index, (setting, (off, reach)))| {
            let own: Vec<&RunRecord> = runs
                .iter()
                .filter(|run| run.setting == *setting && run.usable().is_some())
                .collect();
            let of = |f: &dyn Fn(&RunRecord) -> Option<f64>| -> Value {
                let values: Vec<f64> = own.iter().filter_map(|run| f(run)).collect();
                if values.is_empty() { Value::Null } else { json!(median(&values)) }
            };
            let logs: Vec<f64> =
                own.iter().filter_map(|run| Some(run.usable()?.iops.ln())).collect();
            let count = logs.len() as f64;
            let own_reach = (logs.len() > 1)
                .then(|| t_95(count - 1.0) * deviation(&logs) / count.sqrt() * 100.0);
            // The run that has fewest says how far the percentile can be relied on.
            let (fewest, spread) = weakest(own.iter().filter_map(|run| run.usable()), 99.0);
            let p99 = |run: &RunRecord| Some(run.usable()?.percentile(99.0)?.ms);
            let (slow, slow_on) = fewest
                .map_or((Value::Null, Value::Null), |count| told(&of(&p99), 99.0, count, spread));
            vec![
                json!(setting.name_among(all)),
                json!(setting.files),
                json!(setting.threads),
                json!(setting.outstanding),
                json!(setting.total_outstanding()),
                json!(setting.block_bytes),
                json!(setting.write_percent),
                json!(own.len()),
                match logs.is_empty() {
                    true => Value::Null,
                    false => json!(mean(&logs).exp()),
                },
                json!(own_reach),
                of(&|run| Some(run.usable()?.mib_per_s)),
                of(&|run| run.usable()?.latency_ms),
                slow,
                slow_on,
                if off.is_finite() { json!(off.exp_m1() * 100.0) } else { Value::Null },
                // What the best is off itself is known.
                if off.is_finite() && index != found.best {
                    json!(reach.exp_m1() * 100.0)
                } else {
                    Value::Null
                },
                json!(found.set.contains(&index)),
            ]
        })
        .collect();
    Table { columns: columns.map(str::to_owned).to_vec(), rows }
}

/// A percentile in milliseconds as it may be printed, and what it rests on: null where it rests on nothing (5.4).
pub(super) fn told(
    ms: &Value,
    percent: f64,
    count: u64,
    spread: Option<(usize, usize)>,
) -> (Value, Value) {
    let support = percentile::support(percent / 100.0, count);
    let marked = |mark: &str| json!(percentile::with_episodes(mark, percent, spread));
    match support.mark {
        _ if ms.is_null() => (Value::Null, Value::Null),
        Mark::None => (Value::Null, json!("none: too few I/Os")),
        Mark::Good => (ms.clone(), marked("good")),
        mark => (ms.clone(), marked(&format!("{}: {:.0} I/Os", mark.keyword(), support.above))),
    }
}

/// What several runs say of a chosen setting.
fn figures<'a>(
    (name, setting): (&'a str, &'a Setting),
    settings: &[Setting],
    runs: &[RunRecord],
) -> Option<Chosen<'a>> {
    let level = |setting: &Setting, of: &dyn Fn(&Summary) -> Option<f64>| {
        let own = runs.iter().filter(|run| run.setting == *setting);
        let values: Vec<f64> = own.filter_map(|run| of(run.usable()?)).collect();
        (!values.is_empty()).then(|| median(&values))
    };
    let is_alone = |other: &&Setting| other.outstanding == 1 && same_but_o(other, setting);
    let alone = settings.iter().find(is_alone);
    Some(Chosen {
        name,
        setting,
        iops: level(setting, &|s| Some(s.iops))?,
        lowest_latency_ms: alone.and_then(|alone| level(alone, &|s| s.latency_ms)),
        latency_cost: None,
        write_p50_ms: level(setting, &|s| s.write_p50_ms),
    })
}

/// The ceilings of all curves, in words (R8).
fn ceilings(curves: &[Curve]) -> Option<String> {
    let capped = |curve: &Curve| {
        let knee = &curve.knee;
        let is_capped = knee.named_cap.is_some() || knee.flags.contains(&Flag::Capped);
        is_capped.then(|| match &knee.named_cap {
            Some(cap) => format!("{} for {}", cap.name, curve.name),
            None => format!("{:.0} I/Os per second for {}", knee.cap.level_iops, curve.name),
        })
    };
    let all: Vec<String> = curves.iter().filter_map(capped).collect();
    (!all.is_empty()).then(|| all.join(", "))
}

/// A curve of a sweep with what is said of it.
struct Curve {
    name: String,
    knee: Knee,
    finding: Finding,
    limit: Option<Finding>,
}

/// A knee for each set of settings that differ in o alone, three of them or more, and what limits each.
fn curves(plan: &SweepPlan, settings: &[Setting], runs: &[RunRecord]) -> Vec<Curve> {
    let mut seen: Vec<&Setting> = Vec::new();
    let mut list = Vec::new();
    for setting in settings {
        if seen.iter().any(|other| same_but_o(other, setting)) {
            continue;
        }
        seen.push(setting);
        let own: Vec<&RunRecord> =
            runs.iter().filter(|run| same_but_o(&run.setting, setting)).collect();
        let mut os: Vec<u32> = own.iter().map(|run| run.setting.outstanding).collect();
        os.sort_unstable();
        os.dedup();
        if os.len() < 3 {
            continue;
        }
        let name =
            Setting { outstanding: 0, ..setting.clone() }.name_among(settings).replace(" o0", "");
        let id = format!("knee-{}", name.replace([' ', '='], "-"));
        let rows = rows(own.iter().copied());
        let numbers = own.iter().map(|run| run.run).collect();
        let named = Named { id, name, step: SWEEP };
        let judged = (&plan.knee_options(setting, runs), &plan.layout(setting));
        let (finding, knee) = of_curve(judged, &rows, &named, numbers);
        let limit = bottleneck::finding(&Plateau {
            of: &named.id,
            title: &named.name,
            knee: &knee,
            runs: &own,
            gain_by_threads: None,
        });
        list.push(Curve { name: named.name, knee, finding, limit });
    }
    list
}

/// What a curve is called.
pub(super) struct Named<'a> {
    pub(super) id: String,
    pub(super) name: String,
    pub(super) step: &'a str,
}

/// The finding on a curve, judged with these options and what is behind the target.
pub(super) fn of_curve(
    (options, layout): (&Options, &Layout),
    rows: &[Row],
    named: &Named,
    runs: Vec<u32>,
) -> (Finding, Knee) {
    let found = knee::find(rows, options);
    let mut decision = decision::of_knee(&found, options, layout);
    decision.insert("id".to_owned(), named.id.clone().into());
    let finding = Finding {
        title: format!("Queue depth of {}", named.name),
        sentence: match decision::over_budget(&found, options) {
            Some(why) => format!("Not within the budget: {why}."),
            None => sentence(&found),
        },
        id: named.id.clone(),
        step: named.step.to_owned(),
        table: Some(curve_table(&found)),
        decision,
        runs,
    };
    (finding, found)
}

/// A curve in plain words.
pub(super) fn sentence(found: &Knee) -> String {
    match (found.verdict, found.marks) {
        (Verdict::Knee, Some(marks)) => {
            let at = |o: u64| found.settings.iter().find(|setting| setting.o == o);
            let figures = at(marks.recommended).map_or(String::new(), |setting| {
                format!(" ({:.0} I/Os per second, {:.3} ms)", setting.iops(), setting.latency_ms)
            });
            let cap = found.named_cap.as_ref().map_or(String::new(), |cap| {
                format!(" The ceiling is {}: more outstanding I/Os only add waiting.", cap.name)
            });
            format!(
                "Use o = {}{figures}: beyond o = {} more outstanding I/Os are useless{}{}.{cap}",
                marks.recommended,
                marks.plateau,
                alike(found, marks),
                outside(found, marks.recommended)
            )
        }
        (Verdict::Extend, _) => match found.next_range {
            Some((first, last)) => {
                format!("Not yet: {}. Measure o = {first} to {last} too.", found.reason)
            }
            None => format!("Not yet: {}.", found.reason),
        },
        (Verdict::Flat, _) => {
            format!("No queue depth of the range is better than another: {}.", found.reason)
        }
        _ => format!("The data cannot tell: {}.", found.reason),
    }
}

/// What another setting gives more, in ln X, before that is told.
const TOLD: f64 = 0.01;

/// Which settings have the plateau's throughput, in words. Of one alone nothing is said but what others give more, each of their
/// I/Os too little.
fn alike(found: &Knee, marks: Marks) -> String {
    let (first, last) = marks.indifferent;
    if first < last {
        return format!("; any of o = {first}…{last} gives the same throughput within noise");
    }
    let counted = || found.settings.iter().filter(|setting| setting.counts());
    let own = counted().find(|setting| setting.o == marks.plateau);
    let most = counted().max_by(|a, b| a.ln_x.total_cmp(&b.ln_x));
    let is_told = |(own, most): &(&knee::Setting, &knee::Setting)| {
        most.o > own.o && most.ln_x - own.ln_x > TOLD
    };
    own.zip(most).filter(is_told).map_or_else(String::new, |(own, most)| {
        format!(
            "; o = {} gives {:.1} % more, which is less than its share",
            most.o,
            (most.ln_x - own.ln_x).exp_m1() * 100.0
        )
    })
}

/// What a recommended o gives less that lies below those with the plateau's throughput, in words; empty for one of them.
fn outside(found: &Knee, recommended: u64) -> String {
    let Some((marks, fit)) = found.marks.zip(found.fit.as_ref()) else { return String::new() };
    let (first, last) = marks.indifferent;
    if (first..=last).contains(&recommended) {
        return String::new();
    }
    let level = |o: u64| {
        let at = found.settings.iter().position(|setting| setting.o == o)?;
        Some(fit.ln_x[at])
    };
    let less = level(recommended).zip(level(marks.plateau)).map(|(own, all)| -(own - all).exp_m1());
    less.map_or_else(String::new, |less| {
        let whose = match first < last {
            true => format!("lies outside and gives {:.1} % less", less * 100.0),
            false => format!("gives {:.1} % less than o = {}", less * 100.0, marks.plateau),
        };
        format!("; o = {recommended} {whose}, at a shorter latency")
    })
}

fn curve_table(found: &Knee) -> Table {
    let columns = ["o", "N", "runs", "iops [1/s]", "fitted [1/s]", "avg_lat [ms]", "left out"];
    let rows = found
        .settings
        .iter()
        .enumerate()
        .map(|(index, setting)| {
            vec![
                json!(setting.o),
                json!(found.outstanding_per_o * setting.o as f64),
                json!(setting.runs.len()),
                json!(setting.iops()),
                json!(found.told_fit().map(|fit| fit.ln_x[index].exp())),
                json!(setting.latency_ms),
                json!(!setting.counts()),
            ]
        })
        .collect();
    Table { columns: columns.map(str::to_owned).to_vec(), rows }
}
