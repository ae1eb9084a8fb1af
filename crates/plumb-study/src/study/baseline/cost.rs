//! What measuring latencies costs, and which rate of a study is the highest (method, 2.10).

use plumb_units::convert::to_u64;
use plumb_units::words::number_of;
use serde_json::json;

use super::findings::{Study, median_of, numbers};
use super::options::Step;
use crate::compare::{self, Between, Metric};
use crate::decision::{self, Rule};
use crate::reading::LatencyCost;
use crate::study::findings::Finding;
use crate::study::sweep_findings::rates;
use crate::study::{RunRecord, Setting};

/// The setting with the highest rate of those that do the same kind of I/O.
pub(super) struct Highest<'a> {
    pub(super) setting: &'a Setting,
    /// Median over its runs, in I/Os per second.
    pub(super) iops: f64,
    /// Its runs.
    runs: u64,
    /// Whether the 95 % interval of how far it lies above the other one is above 0.
    pub(super) is_beyond: bool,
}

impl Highest<'_> {
    /// Its rate and its setting in words.
    pub(super) fn told(&self) -> String {
        let latency = if self.setting.latency { "" } else { ", latencies not measured" };
        let runs = number_of(self.runs, "run");
        format!("{:.0} with {}{latency} ({runs})", self.iops, self.setting.short())
    }
}

/// What measuring latencies costs at the chosen setting.
struct Cost {
    /// Median rates without and with latencies.
    rates: (f64, f64),
    /// Runs of each.
    runs: (u64, u64),
    /// 1 − X_L/X_noL.
    share: f64,
    /// Its 95 % interval.
    interval: (f64, f64),
}

impl Cost {
    /// Whether more than none is told from none.
    fn is_told(&self) -> bool {
        self.interval.0 > 0.0
    }
}

impl Study<'_> {
    /// The highest rate of the study's settings that do the same kind of I/O as `than`; `None` where that was not
    /// measured.
    pub(super) fn highest(&self, than: &Setting) -> Option<Highest<'_>> {
        let kind = |s: &Setting| (s.access, s.block_bytes, s.write_percent, s.rate);
        let alike = self.runs.iter().map(|run| &run.setting).filter(|s| kind(s) == kind(than));
        let level = |setting: &Setting| median_of(&rates(setting, self.runs).0);
        let (setting, iops) = alike
            .filter_map(|setting| Some((setting, level(setting)?)))
            .max_by(|a, b| a.1.total_cmp(&b.1))?;
        let (own, all) = (rates(than, self.runs).0, rates(setting, self.runs).0);
        let found = compare::of_runs_among(&own, &all, between_runs(self.runs).as_ref())?;
        let found = compare::judge(found, &Metric::named("iops", true));
        let is_beyond = setting != than && found.interval.0 > 0.0;
        Some(Highest { setting, iops, runs: to_u64(all.len()), is_beyond })
    }

    fn costs(&self) -> Option<Cost> {
        let with = &self.choices.random;
        let without = Setting { latency: false, ..with.clone() };
        let (a, b) = (rates(&without, self.runs).0, rates(with, self.runs).0);
        let (x, y) = (median_of(&a)?, median_of(&b)?);
        let among = between_runs(self.runs);
        let found = compare::of_runs_among(&a, &b, among.as_ref())?;
        let found = compare::judge(found, &Metric::named("iops", true));
        Some(Cost {
            rates: (x, y),
            runs: (to_u64(a.len()), to_u64(b.len())),
            share: 1.0 - y / x,
            interval: (-found.interval.1, -found.interval.0),
        })
    }

    /// What measuring latencies costs, for the reading rules.
    pub(super) fn latency_cost(&self) -> Option<LatencyCost> {
        let cost = self.costs()?;
        Some(match cost.is_told() {
            true => LatencyCost::Told(cost.share),
            false => LatencyCost::Open(cost.share),
        })
    }

    /// 2.10: what the measurement of latencies costs.
    pub(super) fn cost(&self) -> Option<Finding> {
        let with = self.choices.random.clone();
        let without = Setting { latency: false, ..with.clone() };
        let cost = self.costs()?;
        let ((x, y), (low, high)) = (cost.rates, cost.interval);
        let figures =
            format!("{:.1} % ({:.1} to {:.1} %)", cost.share * 100.0, low * 100.0, high * 100.0);
        let mut sentence = format!(
            "At the chosen setting, {}: {x:.0} I/Os per second without measuring latencies, {y:.0} with",
            with.short()
        );
        sentence.push_str(&match (cost.is_told(), high < 0.0) {
            (true, _) => format!(": measuring them costs {figures}."),
            (_, true) => format!(
                ". What measuring them costs cannot be told: it came out as {figures}, below 0, which only what \
                 runs differ by explains."
            ),
            _ => format!(
                ". What measuring them costs cannot be told: it came out as {figures}, which holds 0."
            ),
        });
        let highest = self.highest(&without)?;
        sentence.push_str(&match highest.setting == &without {
            true => " The first is the highest rate of small random I/O in this study: quote it as the maximum, \
                     the second with its latencies."
                .to_owned(),
            false => format!(
                " Neither is a maximum: the highest rate of small random I/O in this study is {}.",
                highest.told()
            ),
        });
        if cost.is_told() && cost.share > 0.10 {
            sentence.push_str(" Latencies at this load include time of the tool.");
        }
        let verdict = match cost.is_told() {
            false => "unclear",
            true if cost.share > 0.10 => "costly",
            true => "measured",
        };
        let mut decision = decision::plain(Rule::Figure, "latency-cost", verdict, &sentence);
        decision.insert("value".to_owned(), json!(cost.share));
        decision.insert("interval".to_owned(), json!([low, high]));
        let median = |count: u64| format!("median of {}", number_of(count, "run"));
        decision.insert(
            "evidence".to_owned(),
            json!([
                { "name": "iops_without_latency", "value": x, "arithmetic": median(cost.runs.0) },
                { "name": "iops_with_latency", "value": y, "arithmetic": median(cost.runs.1) },
                { "name": "cost", "value": cost.share, "arithmetic": format!("1 − {y:.1}/{x:.1}") },
                { "name": "highest_iops", "value": highest.iops, "arithmetic": highest.told() },
            ]),
        );
        Some(Finding {
            id: "latency-cost".to_owned(),
            title: "Throughput without measuring latencies".to_owned(),
            sentence,
            step: Step::Latency.keyword().to_owned(),
            decision,
            runs: numbers(self.runs, &[with, without, highest.setting.clone()]),
            table: None,
        })
    }
}

/// What throughputs of one setting differ by in a study: of all that it repeated.
fn between_runs(runs: &[RunRecord]) -> Option<Between> {
    let mut groups: Vec<(&Setting, Vec<f64>)> = Vec::new();
    for run in runs {
        let Some(summary) = run.usable() else { continue };
        match groups.iter_mut().find(|(setting, _)| **setting == run.setting) {
            Some((_, iops)) => iops.push(summary.iops),
            None => groups.push((&run.setting, vec![summary.iops])),
        }
    }
    Between::pooled(groups.into_iter().map(|(_, iops)| iops))
}
