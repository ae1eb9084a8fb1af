//! What a baseline says.

use plumb_units::convert::to_u64;
use plumb_units::words::number_of;
use serde_json::{Value, json};

use super::doubt::{self, Contradiction};
use super::open::NEVER;
use super::options::{BaselineOptions, Step};
use super::planner::{BaselinePlanner, Choices, apart, chosen, without_anchors};
use crate::decision::{self, Rule};
use crate::findings::Finding as Row;
use crate::identities;
use crate::knee;
use crate::stats::describe::{deviation, median};
use crate::stats::distribution::t_95;
use crate::study::amplification;
use crate::study::behind::Behind;
use crate::study::bottleneck::{self, Plateau};
use crate::study::conditioning::counted;
use crate::study::document::FORMAT;
use crate::study::drift::{Drift, without_drift};
use crate::study::findings::{Finding, Findings, State, Table};
use crate::study::record::{RunRecord, Summary};
use crate::study::remarks::{self, Chosen, Whole};
use crate::study::run_notes::notes;
use crate::study::sweep::{rows, same_but_o};
use crate::study::sweep_findings::{Named, Told, of_curve, rates};
use crate::study::{Access, Setting, machine};

/// Findings of a baseline: a pure function of its options and its runs.
#[must_use]
pub fn baseline_findings(options: &BaselineOptions, all: &[RunRecord], told: Told) -> Findings {
    let counted = &*counted(all);
    let planner = BaselinePlanner::new(options.clone());
    let mut choices = planner.choices(counted);
    let drift = Drift::of_repetitions(counted);
    let without = |run: &RunRecord| without_drift(run, drift.as_ref());
    let runs: &[RunRecord] = &counted.iter().map(without).collect::<Vec<_>>();
    let is_drifting = drift.as_ref().is_some_and(Drift::is_real);
    if is_drifting {
        planner.judge_again(&mut choices, runs);
    }
    let random_curve = choices.random_curve.as_ref().map(|_| {
        let template = options.random(choices.files);
        let own = runs.iter().filter(|run| same_but_o(&run.setting, &template));
        knee::find(&rows(own), &options.knee_options(&template, runs))
    });
    let irreproducible = doubt::irreproducible(runs, random_curve.as_ref());
    let disturbed = drift.as_ref().filter(|drift| drift.is_disturbed()).map(Drift::percent);
    let study = Study {
        options,
        choices: &choices,
        random_curve,
        irreproducible,
        runs,
        is_drifting,
        is_complete: told.state == State::Complete,
        disturbed,
    };
    let has = |step| options.has(step);
    let mut findings = Vec::new();
    let mut limits = Vec::new();
    findings.extend(study.table());
    if has(Step::RandomOne) {
        let template = options.random(choices.files);
        let found = study.curve(Step::RandomOne, "Small random I/O", &template);
        if let Some((curve, limit)) = found {
            findings.push(curve);
            limits.extend(limit);
        }
    }
    if has(Step::RandomTwo) {
        findings.extend(study.pair());
    }
    for (step, title, chosen) in [
        (Step::Reads, "Sequential reads", &choices.reads),
        (Step::Writes, "Sequential writes", &choices.writes),
    ] {
        let found = chosen.as_ref().and_then(|(_, setting)| study.curve(step, title, setting));
        if let Some((curve, limit)) = found {
            findings.push(curve);
            limits.extend(limit);
        }
    }
    findings.extend(limits);
    // What cannot be told yet may be told at the end.
    let is_told = |drift: &&Drift| told.state == State::Complete || drift.is_real();
    let drift = drift.as_ref().filter(is_told);
    findings.extend(drift.map(|drift| drift.finding(counted, "baseline")));
    if has(Step::PretestTwo) {
        findings.extend(study.files());
    }
    if has(Step::Latency) {
        findings.extend(study.cost());
        findings.extend(study.alone());
    }
    if has(Step::PretestOne) {
        findings.extend(study.first());
    }
    findings.extend(study.reading(told.environment));
    findings.extend(study.amplification());
    findings.extend(machine::preflight(told.environment));
    // A drift is no warm-up, and nothing by which runs of a setting differ.
    let mut remarks = notes(runs);
    // One run at the end of everything must not move what an interruption is judged by.
    remarks.extend(told.notes(&without_anchors(counted)));
    remarks.push(options.conditioning.note(&options.random(1), options.device_bytes, all));
    for name in &options.skip {
        remarks.push(format!("the step {name} was left out"));
    }
    if told.state == State::Partial {
        remarks.push("the baseline is not finished: later steps are missing".to_owned());
    }
    if !options.is_exhaustive() {
        let count = number_of(to_u64(counted.len()), "run");
        remarks.push(format!("{count} instead of {} exhaustive", told.runs_exhaustive));
    }
    Findings {
        format: FORMAT,
        study: told.study.to_owned(),
        state: told.state,
        runs: counted.len() as u64,
        runs_exhaustive: told.runs_exhaustive,
        findings: findings.into_iter().map(|finding| finding.with_unsteady(counted)).collect(),
        notes: remarks,
    }
}

/// Outstanding I/Os per device that the published method advises for SSDs of its time.
const HINT_DEPTH: f64 = 16.0;

pub(super) struct Study<'a> {
    pub(super) options: &'a BaselineOptions,
    pub(super) choices: &'a Choices,
    /// The curve of random test 1 with what was repeated after it was chosen from.
    pub(super) random_curve: Option<knee::Knee>,
    /// Settings whose runs contradict each other (3.3).
    pub(super) irreproducible: Vec<Setting>,
    /// Without the drift that the reference and what was run again show.
    pub(super) runs: &'a [RunRecord],
    /// Whether there is such a drift.
    is_drifting: bool,
    /// Whether the baseline is finished.
    pub(super) is_complete: bool,
    /// Percent of it where it is so much that nothing is to be relied on.
    disturbed: Option<f64>,
}

/// The numbers of runs that measured any of these settings.
pub(super) fn numbers(runs: &[RunRecord], settings: &[Setting]) -> Vec<u32> {
    let is_one = |run: &&RunRecord| settings.contains(&run.setting);
    runs.iter().filter(is_one).map(|run| run.run).collect()
}

/// Median over usable runs of a setting.
pub(super) fn middle(
    runs: &[RunRecord],
    setting: &Setting,
    of: impl Fn(&Summary) -> Option<f64>,
) -> Option<f64> {
    let values: Vec<f64> = runs
        .iter()
        .filter(|run| run.setting == *setting)
        .filter_map(|run| of(run.usable()?))
        .collect();
    (!values.is_empty()).then(|| median(&values))
}

impl Study<'_> {
    /// What a curve says, and what limits its plateau.
    fn curve(
        &self,
        step: Step,
        title: &str,
        template: &Setting,
    ) -> Option<(Finding, Option<Finding>)> {
        let own: Vec<&RunRecord> =
            self.runs.iter().filter(|run| same_but_o(&run.setting, template)).collect();
        if own.is_empty() {
            return None;
        }
        let all = rows(own.iter().copied());
        let options = self.options.knee_options(template, self.runs);
        let layout = self.options.layout(template);
        let named =
            Named { id: step.keyword().into(), name: template.short(), step: step.keyword() };
        let numbers = own.iter().map(|run| run.run).collect();
        let (mut finding, knee) = of_curve((&options, &layout), &all, &named, numbers);
        finding.title = title.to_owned();
        if self.never_plateaued(step, template, &knee) {
            self.say_never(&mut finding, step, template);
        } else if self.is_complete && self.is_cut_short(step, template, &knee) {
            self.say_cut_short(&mut finding, step, template, &knee);
        }
        let before = own.iter().copied().filter(|run| run.step != Step::Confirm.keyword());
        self.add_confirmation(&mut finding, &rows(before), &options);
        if step == Step::RandomOne {
            self.add_hint(&mut finding, template);
        }
        let limit = bottleneck::finding(&Plateau {
            of: step.keyword(),
            title,
            knee: &knee,
            runs: &own,
            gain_by_threads: (step == Step::RandomOne).then(|| self.gain_by_threads()).flatten(),
        });
        Some((finding, limit))
    }

    /// (1.5) What the devices did for each I/O of the chosen settings.
    fn amplification(&self) -> Option<Finding> {
        let choices = self.choices;
        let mut subjects = vec![("small random I/O", &choices.random)];
        subjects.extend(choices.reads.as_ref().map(|(_, s)| ("sequential reads", s)));
        subjects.extend(choices.writes.as_ref().map(|(_, s)| ("sequential writes", s)));
        amplification::finding(&subjects, f64::from(self.options.copies), self.runs)
    }

    /// What the most throughput with more threads, but the same N, is above that of the curve's threads.
    fn gain_by_threads(&self) -> Option<f64> {
        let template = self.options.random(self.choices.files);
        let level = |pair: &Setting| median_of(&rates(pair, self.runs).0);
        let base = self.choices.pairs.iter().find(|pair| pair.threads == template.threads)?;
        let more = self.choices.pairs.iter().filter(|pair| pair.threads > base.threads);
        let most = more.filter_map(level).reduce(f64::max)?;
        Some(most / level(base)? - 1.0)
    }

    /// 2.4 and 8: what the reading rules say of the first run, of the chosen ones, and of the whole.
    fn reading(&self, environment: Option<&Value>) -> Option<Finding> {
        let choices = self.choices;
        let first = self.options.random(1);
        let mut subjects = vec![("the first run", &first)];
        subjects.push(("small random I/O", &choices.random));
        subjects.extend(choices.reads.as_ref().map(|(_, s)| ("sequential reads", s)));
        subjects.extend(choices.writes.as_ref().map(|(_, s)| ("sequential writes", s)));
        let level = |setting: &Setting| middle(self.runs, setting, |s| Some(s.iops));
        let curves = [
            ("small random I/O", self.random_curve.as_ref()),
            ("sequential reads", choices.reads.as_ref().map(|(curve, _)| curve)),
            ("sequential writes", choices.writes.as_ref().map(|(curve, _)| curve)),
        ];
        let ceilings: Vec<String> = curves
            .into_iter()
            .filter_map(|(name, curve)| {
                let is_capped = |curve: &&knee::Knee| {
                    curve.named_cap.is_some() || curve.flags.contains(&knee::Flag::Capped)
                };
                let curve = curve.filter(is_capped)?;
                Some(match &curve.named_cap {
                    Some(cap) => format!("{} for {name}", cap.name),
                    None => format!("{:.0} I/Os per second for {name}", curve.cap.level_iops),
                })
            })
            .collect();
        let alone = &apart(&choices.random, self.options)[2];
        // The first run teaches to read; nobody chose it.
        let chosen = subjects[1..].iter().filter_map(|(name, setting)| {
            let iops = level(setting)?;
            let is_random = setting.access == Access::Random;
            Some(Chosen {
                name,
                setting,
                iops,
                lowest_latency_ms: middle(self.runs, alone, |s| s.latency_ms).filter(|_| is_random),
                latency_cost: if is_random { self.latency_cost() } else { None },
                write_p50_ms: middle(self.runs, setting, |s| s.write_p50_ms),
            })
        });
        let whole = Whole {
            chosen: chosen.collect(),
            ceiling: (!ceilings.is_empty()).then(|| ceilings.join(", ")),
            differing: Vec::new(),
            remote: machine::remote(environment),
            behind: Behind::of(environment, self.options.device_cache),
        };
        remarks::finding(&subjects, self.runs, &whole)
    }

    /// (3.2, 8) Whether the answer moved when it was confirmed.
    fn add_confirmation(
        &self,
        finding: &mut Finding,
        before: &[knee::Row],
        options: &knee::Options,
    ) {
        let recommended = |found: &knee::Knee| found.marks.map(|marks| marks.recommended);
        let first = knee::find(before, options);
        let now = finding.decision["recommended_o"].as_u64();
        let note = match recommended(&first).filter(|_| first.verdict == knee::Verdict::Knee) {
            Some(o) if now == Some(o) => format!("repeated runs confirm o = {o}"),
            Some(o) => format!(
                "repeated runs move the answer: o = {o} before, {} now",
                now.map_or("none".to_owned(), |o| format!("o = {o}"))
            ),
            None => return,
        };
        if before.len() == finding.runs.len() {
            return;
        }
        if let Some(Value::Array(notes)) = finding.decision.get_mut("notes") {
            notes.push(note.into());
        }
    }

    /// (1.9) What the published depth per device comes to: a hint beside what was measured.
    fn add_hint(&self, finding: &mut Finding, template: &Setting) {
        let Some(devices) = self.options.devices.map(f64::from) else { return };
        let copies = f64::from(self.options.copies);
        let a = identities::amplification(f64::from(template.write_percent) / 100.0, copies);
        let outstanding = identities::outstanding_for_depth(HINT_DEPTH, devices, a);
        if let Some(Value::Array(notes)) = finding.decision.get_mut("notes") {
            notes.push(
                format!(
                    "a depth of {HINT_DEPTH:.0} per device, published for SATA and SAS SSDs, would be {outstanding:.0} \
                     outstanding I/Os: a hint only, the measured curve decides"
                )
                .into(),
            );
        }
    }

    /// The curve of an operation.
    fn of_operation(&self, operation: &str) -> Option<&knee::Knee> {
        match operation {
            "read" => self.choices.reads.as_ref().map(|(curve, _)| curve),
            "write" => self.choices.writes.as_ref().map(|(curve, _)| curve),
            _ => self.random_curve.as_ref(),
        }
    }

    /// What the curve of small random I/O says now, where that gives another throughput than what was chosen from it:
    /// the steps after it were not begun anew.
    fn moved(&self) -> Option<u32> {
        let curve = self.random_curve.as_ref()?;
        let now = chosen(curve)?;
        let before = chosen(self.choices.random_curve.as_ref()?)?;
        let fit = curve.fit.as_ref()?;
        let level = |o: u32| {
            let at = curve.settings.iter().position(|setting| setting.o == u64::from(o))?;
            Some(fit.ln_x[at])
        };
        let off = (level(now)? - level(before)?).abs();
        (off > f64::max(0.03, 2.0 * fit.sigma)).then_some(now)
    }

    /// The verdict on the curve of an operation, as a word.
    fn verdict(&self, operation: &str, setting: &Setting, curve: &knee::Knee) -> &'static str {
        let (step, template) = match operation {
            "read" => (Step::Reads, setting.clone()),
            "write" => (Step::Writes, setting.clone()),
            _ => (Step::RandomOne, self.options.random(self.choices.files)),
        };
        match self.never_plateaued(step, &template, curve) {
            true => NEVER,
            false => curve.verdict.keyword(),
        }
    }

    /// Half the 95 % interval of a setting's throughput in percent: between its runs where there are several, else
    /// within the only one.
    fn half_width(&self, setting: &Setting) -> Option<f64> {
        let logs: Vec<f64> = rates(setting, self.runs).0.iter().map(|iops| iops.ln()).collect();
        let count = logs.len() as f64;
        if logs.len() > 1 {
            return Some(t_95(count - 1.0) * deviation(&logs) / count.sqrt() * 100.0);
        }
        middle(self.runs, setting, |summary| summary.half_width).map(|half| half * 100.0)
    }

    /// That a figure is of one run, and where the spread between runs is taken from that it does not show itself.
    fn of_one_run(&self, setting: &Setting, curve: Option<&knee::Knee>) -> String {
        let random = self.choices.noise.filter(|_| setting.access == Access::Random);
        let of_curve = curve.and_then(|curve| curve.fit.as_ref());
        let spread = match (random, of_curve) {
            (Some(noise), _) => {
                format!("an SD of {:.1} % is that {}", noise.deviation * 100.0, noise.told())
            }
            (None, Some(fit)) if fit.is_noise_known => {
                format!(
                    "an SD of {:.1} % is that of the other settings of its curve",
                    fit.noise * 100.0
                )
            }
            (None, Some(fit)) => {
                format!(
                    "an SD of {:.1} % between runs is taken and was not measured",
                    fit.noise * 100.0
                )
            }
            (None, None) => "how far runs differ was not measured".to_owned(),
        };
        format!(", which rests on one run ({spread})")
    }

    /// What a headline has against it, in words that follow its figure. A figure of a setting that the curve does not vouch
    /// for is no answer yet, nor is one that its own runs contradict.
    fn doubt(
        &self,
        setting: &Setting,
        curve: Option<&knee::Knee>,
        contradiction: Option<&Contradiction>,
    ) -> String {
        let moved = self.moved().filter(|_| setting.access == Access::Random);
        let since = match self.is_drifting {
            true => "without the drift",
            false => "with what was repeated since",
        };
        let moved = moved.map(|o| format!("{since}, the curve says o = {o}"));
        let is_open = matches!(
            curve.map(|curve| curve.verdict),
            Some(knee::Verdict::Unclear | knee::Verdict::Extend)
        );
        let why: Vec<String> =
            contradiction.map(Contradiction::told).into_iter().chain(moved).collect();
        match (is_open, why.is_empty()) {
            (false, true) => String::new(),
            (true, true) => ", not certain yet".to_owned(),
            (_, false) => format!(", not certain yet: {}", why.join("; and ")),
        }
    }

    /// 2.9: a row per operation.
    fn table(&self) -> Option<Finding> {
        let mut subjects: Vec<(&str, &Setting)> = Vec::new();
        if self.options.has(Step::RandomOne) || self.options.has(Step::RandomTwo) {
            subjects.push(("random", &self.choices.random));
        }
        subjects.extend(self.choices.reads.as_ref().map(|(_, setting)| ("read", setting)));
        subjects.extend(self.choices.writes.as_ref().map(|(_, setting)| ("write", setting)));
        let mut lines = Vec::new();
        let mut said = Vec::new();
        let mut evidence = Vec::new();
        let (mut flags, mut irreproducible) = (Vec::new(), Vec::new());
        for (name, setting) in &subjects {
            let Some(iops) = middle(self.runs, setting, |s| Some(s.iops)) else { continue };
            let latency = middle(self.runs, setting, |s| s.latency_ms).unwrap_or(f64::NAN);
            let block = Some(setting.block_bytes as f64);
            let outstanding = setting.total_outstanding() as f64;
            let row = self.options.layout(setting).finding(outstanding, iops, latency, block);
            let curve = self.of_operation(name);
            let contradiction = self.contradiction(setting);
            let doubt = self.doubt(setting, curve, contradiction.as_ref());
            if !doubt.is_empty() {
                flags.push(format!("not_certain_{name}"));
            }
            if let Some(found) = &contradiction {
                flags.push(format!("runs_differ_{name}"));
                if found.is_irreproducible {
                    irreproducible.push(json!({ "setting": setting.short(), "iops": found.iops }));
                }
            }
            // What is chosen is not always what gives most: another setting may, at longer latencies.
            let each = rates(setting, self.runs).0;
            let alone =
                if each.len() == 1 { self.of_one_run(setting, curve) } else { String::new() };
            if each.len() == 1 {
                flags.push(format!("single_run_{name}"));
            }
            let highest = self.highest(setting).filter(|highest| highest.is_beyond);
            let most = highest.as_ref().map_or_else(String::new, |highest| {
                format!(", the chosen setting; the highest I/Os per second are {}", highest.told())
            });
            said.push(match setting.access {
                Access::Random => format!(
                    "small random I/O: {iops:.0} I/Os per second at {latency:.3} ms with {}{alone}{most}{doubt}",
                    setting.short()
                ),
                _ => format!(
                    "sequential {name}s: {:.1} MiB/s at {latency:.3} ms with {}{alone}{most}{doubt}",
                    row.mib_per_s.unwrap_or_default(),
                    setting.short()
                ),
            });
            let mut line = line(name, setting, &row, self.options.devices);
            let alike = curve.and_then(|curve| curve.marks).map(|marks| marks.indifferent);
            let covers = match each.len() {
                0 | 1 => "variation inside its one run only",
                _ => "between its runs",
            };
            evidence.push(json!({
                "name": format!("iops of {name}, {}", setting.short()),
                "value": each,
                "arithmetic": format!("of each run; the median of these is told; its interval covers: {covers}"),
            }));
            line.extend([
                json!(self.half_width(setting)),
                json!(each.len()),
                json!(curve.map(|curve| self.verdict(name, setting, curve))),
                json!(alike.map(|(first, last)| {
                    // The curve's o are those of its own threads.
                    let threads = self.options.random(self.choices.files).threads;
                    match setting.access {
                        Access::Random if threads != setting.threads => {
                            format!("{first} to {last} with t{threads}")
                        }
                        _ => format!("{first} to {last}"),
                    }
                })),
                json!(highest.as_ref().map(|highest| highest.iops)),
                json!(highest.as_ref().map(|highest| highest.setting.short())),
                json!(covers),
            ]);
            lines.push(line);
        }
        if lines.is_empty() {
            return None;
        }
        let sentence = match self.disturbed {
            Some(percent) => format!(
                "{}. The baseline is disturbed: the device changed by {percent:+.1} % while it was measured.",
                said.join("; ")
            ),
            None => format!("{}.", said.join("; ")),
        };
        if self.disturbed.is_some() {
            flags.push("disturbed".to_owned());
        }
        let mut decision = decision::plain(Rule::Figure, "findings", "measured", &sentence);
        decision.insert(
            "parameters".to_owned(),
            json!({
                "devices": self.options.devices, "copies": self.options.copies,
            }),
        );
        decision.insert("evidence".to_owned(), json!(evidence));
        decision.insert("flags".to_owned(), json!(flags));
        decision.insert("irreproducible".to_owned(), json!(irreproducible));
        let settings: Vec<Setting> =
            subjects.iter().map(|(_, setting)| (*setting).clone()).collect();
        let columns = [
            "operation",
            "setting",
            "N",
            "iops [1/s]",
            "mib_per_s",
            "avg_lat [ms]",
            "A",
            "S",
            "mib_per_s per device",
            "N·A per device",
            "client mib_per_s per device",
            "ci95 [%]",
            "runs",
            "verdict",
            "o with the same throughput",
            "highest iops [1/s]",
            "highest with",
            "ci95 covers",
        ];
        Some(Finding {
            id: "findings".to_owned(),
            title: "Findings".to_owned(),
            sentence,
            step: "findings".to_owned(),
            decision,
            runs: numbers(self.runs, &settings),
            table: Some(Table { columns: columns.map(str::to_owned).to_vec(), rows: lines }),
        })
    }
}

pub(super) fn median_of(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| median(values))
}

fn line(name: &str, setting: &Setting, row: &Row, devices: Option<u32>) -> Vec<Value> {
    let finite = |value: f64| if value.is_finite() { json!(value) } else { Value::Null };
    vec![
        json!(name),
        json!(setting.short()),
        json!(row.outstanding),
        json!(row.iops),
        json!(row.mib_per_s),
        finite(row.latency_ms),
        json!(row.amplification),
        json!(devices),
        json!(row.mib_per_s_per_device),
        json!(row.depth_per_device),
        json!(row.client_mib_per_s_per_device),
    ]
}
