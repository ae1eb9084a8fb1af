//! Whether the device changed while it was measured: by its reference setting (method, 4.2), or by all that was run again.

use serde_json::{Map, Value, json};

use super::Setting;
use super::findings::{Finding, Table};
use super::record::{Purpose, RunRecord};
use crate::decision::{self, Rule};
use crate::stats::describe::mean;
use crate::stats::distribution::t_95;
use crate::stats::line::{Line, spread};

/// What runs of the same setting at different times say.
#[derive(Debug, Clone, PartialEq)]
pub struct Drift {
    /// Runs that it rests on.
    pub count: usize,
    /// Change of ln X from the first to the last of them, by a straight line.
    pub total: f64,
    /// Half the width of its 95 % interval: by what all repetitions of the study differ by beside it; where they are too few,
    /// by the scatter of the runs about the line, or what is assumed between runs.
    pub half_width: f64,
    /// Settings that were run again.
    pub settings: usize,
    /// SD of ln X about the line.
    pub scatter: f64,
    /// A run without which the others say something else.
    pub of_one: Option<u32>,
    /// Change of ln X per second.
    per_second: f64,
    /// Second in the middle of the runs.
    centre_s: f64,
    /// Numbers of the runs.
    runs: Vec<u32>,
}

/// SD of ln X between runs where nothing is known (6.2).
const ASSUMED: f64 = 0.015;
/// Of the normal distribution.
const NORMAL_95: f64 = 1.96;
/// Degrees of freedom that what is assumed is worth beside the scatter about the line of several settings.
const ASSUMED_FREEDOM: f64 = 4.0;
/// Half widths by which a fit without one run may differ from that with it.
const CONTRADICTS: f64 = 1.5;
/// Scatter about the line of several settings from which on it is none.
const SCATTER_MOST: f64 = 0.1;
/// Drift that is told.
const TOLD: f64 = 0.02;
/// Degrees of freedom from which on repetitions tell what runs differ by.
const KNOWN_FREEDOM: f64 = 4.0;
/// Half width of its interval beyond which nobody knows whether a device stayed the same.
const KNOWN: f64 = 0.05;
/// Drift that spoils a sweep.
const SPOILS: f64 = 0.10;

impl Drift {
    /// Of the anchors among these runs; `None` with fewer than three.
    #[must_use]
    pub fn of(runs: &[RunRecord]) -> Option<Self> {
        let anchors = runs.iter().filter(|run| run.purpose == Purpose::Anchor);
        let anchors: Vec<(&RunRecord, f64)> =
            anchors.filter_map(|run| Some((run, run.usable()?.iops.ln()))).collect();
        if anchors.len() < 3 {
            return None;
        }
        let times: Vec<f64> = anchors.iter().map(|(run, _)| run.started_s).collect();
        let centre_s = mean(&times);
        let spread = spread(&times);
        if spread <= 0.0 {
            return None;
        }
        // From their middle, so that nothing is lost where a study lasts long.
        let centred: Vec<(f64, f64)> =
            anchors.iter().map(|(run, y)| (run.started_s - centre_s, *y)).collect();
        let line = Line::through(&centred);
        let length = times[times.len() - 1] - times[0];
        let own = t_95(anchors.len() as f64 - 2.0) * line.slope_error * length;
        // What runs of one setting differ by beside any drift, where enough of them tell it: three that lie on a line by chance know nothing of it.
        let all = runs.iter().filter_map(|run| Some((run, run.usable()?.iops.ln())));
        let all = Slope::through(&all.collect::<Vec<Point>>());
        let known = all.filter(|slope| slope.freedom >= KNOWN_FREEDOM);
        let half_width = match known {
            Some(slope) => t_95(slope.freedom) * slope.scatter / spread.sqrt() * length,
            None => own.min(NORMAL_95 * ASSUMED / spread.sqrt() * length),
        };
        Some(Self {
            count: anchors.len(),
            total: line.slope * length,
            half_width,
            settings: 1,
            scatter: line.deviation,
            of_one: None,
            per_second: line.slope,
            centre_s,
            runs: anchors.iter().map(|(run, _)| run.run).collect(),
        })
    }

    /// Of all settings that were run again: each has a level of its own, and all the same slope. `None` where that has no
    /// scatter left to be judged by.
    #[must_use]
    pub fn of_repetitions(runs: &[RunRecord]) -> Option<Self> {
        let points = runs.iter().filter_map(|run| Some((run, run.usable()?.iops.ln())));
        let points: Vec<Point> = points.collect();
        let slope = Slope::through(&points)?;
        let again = |run: &Point| slope.settings.contains(&&run.0.setting);
        let again: Vec<Point> = points.iter().copied().filter(again).collect();
        let times: Vec<f64> = again.iter().map(|(run, _)| run.started_s).collect();
        let length = times[times.len() - 1] - times[0];
        // One run may be slow for a reason of its own.
        let contradicts = |run: &&Point| {
            let others: Vec<Point> =
                again.iter().copied().filter(|other| other.0.run != run.0.run).collect();
            Slope::through(&others).is_some_and(|found| {
                (found.per_second - slope.per_second).abs() > CONTRADICTS * found.half_width
            })
        };
        Some(Self {
            count: again.len(),
            total: slope.per_second * length,
            half_width: slope.half_width * length,
            settings: slope.settings.len(),
            scatter: slope.scatter,
            of_one: again.iter().find(contradicts).map(|(run, _)| run.run),
            per_second: slope.per_second,
            centre_s: mean(&times),
            runs: again.iter().map(|(run, _)| run.run).collect(),
        })
    }

    /// Whether it is more than 2 % and more than chance, and no single run alone says so.
    #[must_use]
    pub fn is_real(&self) -> bool {
        let is_told = self.total.abs() > TOLD && self.total.abs() > self.half_width;
        // Several settings of which runs are slow now and then look like any line.
        let is_line = self.settings == 1 || (self.scatter < SCATTER_MOST && self.of_one.is_none());
        is_told && is_line
    }

    /// Whether it may be more than 2 %, but chance as well; or so much more that nothing is known.
    #[must_use]
    pub fn is_open(&self) -> bool {
        (self.total.abs() > TOLD || self.half_width > KNOWN) && !self.is_real()
    }

    /// Whether it is so much that the study is not to be relied on.
    #[must_use]
    pub fn is_disturbed(&self) -> bool {
        self.is_real() && self.total.exp_m1().abs() > SPOILS
    }

    /// The change in percent, as it is told.
    #[must_use]
    pub fn percent(&self) -> f64 {
        self.total.exp_m1() * 100.0
    }

    /// The rate of a run at `started_s` without the drift, where there is one.
    #[must_use]
    pub fn corrected(&self, iops: f64, started_s: f64) -> f64 {
        if self.is_real() {
            iops * (-self.per_second * (started_s - self.centre_s)).exp()
        } else {
            iops
        }
    }

    /// The finding on it in a study of this kind, `sweep` or `baseline`.
    pub(super) fn finding(&self, runs: &[RunRecord], kind: &str) -> Finding {
        let verdict = match (self.is_disturbed(), self.is_real()) {
            (true, _) => "disturbed",
            (_, true) => "drift",
            _ if self.is_open() => "unclear",
            _ => "stable",
        };
        let percent = self.percent();
        let (low, high) = (self.total - self.half_width, self.total + self.half_width);
        let range = format!("{:+.1} to {:+.1} %", low.exp_m1() * 100.0, high.exp_m1() * 100.0);
        let is_one = self.settings == 1;
        let of_them = if is_one { "it".to_owned() } else { format!("{} settings", self.settings) };
        let sentence = match (verdict, is_one) {
            ("stable", true) => format!(
                "The reference setting stayed the same: {percent:+.1} % from first to last ({range})."
            ),
            ("stable", false) => format!(
                "What was run again stayed the same: {percent:+.1} % from first to last ({range})."
            ),
            ("unclear", _) if self.of_one.is_some() => format!(
                "Whether the device changed cannot be told: {percent:+.1} % from first to last, which run {} alone says. Nothing \
                 is taken out of the figures; repeat the {kind}.",
                self.of_one.unwrap_or_default()
            ),
            ("unclear", _) => format!(
                "Whether the device changed cannot be told: {} moved by {percent:+.1} % from first to \
                 last ({range}), over {} runs of {of_them} that lie {:.1} % (SD) off that line. Nothing is taken out of the figures; repeat the {kind} with more \
                 runs.",
                if is_one { "the reference setting" } else { "what was run again" },
                self.count,
                self.scatter * 100.0,
            ),
            ("drift", _) => format!(
                "The device changed by {percent:+.1} % while it was measured; that is taken out of the figures."
            ),
            _ => format!(
                "The device changed by {percent:+.1} % while it was measured: the {kind} is disturbed. Find the cause \
                 (temperature, wear, other load) and run it again."
            ),
        };
        let mut decision: Map<String, Value> =
            decision::plain(Rule::Drift, "drift", verdict, &sentence);
        decision.insert("value".to_owned(), json!(self.total.exp_m1()));
        decision.insert("interval".to_owned(), json!([low.exp_m1(), high.exp_m1()]));
        let (name, arithmetic) = match is_one {
            true => ("anchors", "ln X ~ time, least squares"),
            false => {
                ("runs of settings that were run again", "ln X ~ setting + time, least squares")
            }
        };
        decision.insert(
            "evidence".to_owned(),
            json!([
                { "name": name, "value": self.count, "arithmetic": arithmetic },
                { "name": "slope_percent_per_hour", "value": self.per_second * 3600.0 * 100.0,
                  "arithmetic": format!("{percent:+.2} % from the first to the last of them, {range} (95 %)") },
                { "name": "scatter_percent", "value": self.scatter * 100.0, "arithmetic": "SD of ln X about that line" },
            ]),
        );
        let own = runs.iter().filter(|run| self.runs.contains(&run.run));
        let mut columns = vec!["run".to_owned(), "started [s]".to_owned(), "iops [1/s]".to_owned()];
        if !is_one {
            columns.push("setting".to_owned());
        }
        let row = |run: &RunRecord| {
            let mut row =
                vec![json!(run.run), json!(run.started_s), json!(run.usable().map(|s| s.iops))];
            if !is_one {
                row.push(json!(run.setting.short()));
            }
            row
        };
        Finding {
            id: "drift".to_owned(),
            title: "Drift".to_owned(),
            sentence,
            step: if kind == "sweep" { super::sweep::SWEEP } else { ANCHOR }.to_owned(),
            decision,
            runs: self.runs.clone(),
            table: Some(Table { columns, rows: own.map(row).collect() }),
        }
    }
}

/// A run with the logarithm of its rate.
type Point<'a> = (&'a RunRecord, f64);

/// How ln X of settings that were run several times changes with time.
struct Slope<'a> {
    settings: Vec<&'a Setting>,
    per_second: f64,
    /// Half of its 95 % interval.
    half_width: f64,
    /// SD of ln X about it, and the degrees of freedom that it was estimated with.
    scatter: f64,
    freedom: f64,
}

impl<'a> Slope<'a> {
    /// By least squares, each setting from its own mean.
    fn through(points: &[Point<'a>]) -> Option<Self> {
        let mut settings: Vec<(&Setting, Vec<Point>)> = Vec::new();
        for point in points {
            match settings.iter_mut().find(|(setting, _)| **setting == point.0.setting) {
                Some((_, own)) => own.push(*point),
                None => settings.push((&point.0.setting, vec![*point])),
            }
        }
        settings.retain(|(_, own)| own.len() > 1);
        let mut centred: Vec<(f64, f64)> = Vec::new();
        for (_, own) in &settings {
            let time = mean(&own.iter().map(|(run, _)| run.started_s).collect::<Vec<_>>());
            let level = mean(&own.iter().map(|(_, ln)| *ln).collect::<Vec<_>>());
            centred.extend(own.iter().map(|(run, ln)| (run.started_s - time, ln - level)));
        }
        let freedom = centred.len() as f64 - settings.len() as f64 - 1.0;
        let spread: f64 = centred.iter().map(|(x, _)| x * x).sum();
        if freedom < 1.0 || spread <= 0.0 {
            return None;
        }
        let per_second = centred.iter().map(|(x, y)| x * y).sum::<f64>() / spread;
        let residual: f64 = centred.iter().map(|(x, y)| (y - per_second * x).powi(2)).sum();
        // What is assumed counts as a few runs: of a handful the scatter is too small by chance now and then.
        let known = freedom + ASSUMED_FREEDOM;
        let deviation = ((residual + ASSUMED_FREEDOM * ASSUMED.powi(2)) / known).sqrt();
        Some(Self {
            settings: settings.into_iter().map(|(setting, _)| setting).collect(),
            per_second,
            half_width: t_95(known) * deviation / spread.sqrt(),
            scatter: (residual / freedom).sqrt(),
            freedom,
        })
    }
}

/// The step of reference runs of a baseline.
pub(super) const ANCHOR: &str = "anchor";

/// A run as it would have been without the drift.
pub(super) fn without_drift(run: &RunRecord, drift: Option<&Drift>) -> RunRecord {
    let mut run = run.clone();
    if let (Some(drift), Some(summary)) = (drift, run.summary.as_mut()) {
        let iops = drift.corrected(summary.iops, run.started_s);
        summary.latency_ms = summary.latency_ms.map(|ms| ms * summary.iops / iops);
        summary.mib_per_s *= iops / summary.iops;
        summary.iops = iops;
    }
    run
}
