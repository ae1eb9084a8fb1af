//! A line of the journal: a finished run.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::summary::{GENERATOR_LIMITED, INCONSISTENT, STOOD_STILL};
use super::{Beside, Setting};
use crate::identities::{Consistency, Law};
use crate::knee::{Row, RunLaw};
use crate::percentile;
use crate::reading::Remark;

/// What a run is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Purpose {
    /// It measures its setting for the first time.
    Measure,
    /// It repeats a setting.
    Repeat,
    /// The reference setting, which shows drift (method, 4.2).
    Anchor,
}

/// How a run ended.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It was measured to its end, or until it was steady and precise.
    Measured,
    /// Interrupted by the user; its figures are in no finding, and it is run again.
    Aborted,
    /// It failed; why.
    Failed(String),
}

/// A percentile of the latencies of all I/Os of a run.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Percentile {
    /// 0…100.
    pub percent: f64,
    /// Milliseconds.
    pub ms: f64,
    /// Intervals of the run with an I/O that took as long or longer, and all of them (5.4); `None` below the tail, and
    /// where latencies were not kept per interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spread: Option<(usize, usize)>,
}

/// The figures of a run, of its steady part where it was not steady from the start.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Summary {
    /// I/Os in the whole measurement.
    pub io_count: u64,
    /// I/Os per second.
    pub iops: f64,
    /// MiB (2^20 B) per second.
    pub mib_per_s: f64,
    /// Half the width of the 95 % interval of `iops`, relative; within the run only.
    pub half_width: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_ms: Option<f64>,
    /// Latencies, by percent ascending.
    #[serde(default)]
    pub percentiles: Vec<Percentile>,
    /// Median latency of writes in milliseconds.
    #[serde(default)]
    pub write_p50_ms: Option<f64>,
    /// Measured seconds.
    pub seconds: f64,
    /// Seconds cut off at the beginning of the measurement: not steady yet (5.1).
    pub cut_s: f64,
    /// Whether it became steady (5.1).
    pub steady: bool,
    /// Whether its level shifted (5.1 c): the later level is the one that counts.
    #[serde(default)]
    pub two_phase: bool,
    /// How many independent values its series is worth (5.2).
    pub effective: Option<f64>,
    /// X·L/N − 1 (1.3).
    pub residual: Option<f64>,
    /// Achieved share of writes, 0…1.
    pub write_share: Option<f64>,
    /// Mean use of all processors, 0…100.
    pub cpu_percent: Option<f64>,
    /// Microseconds of processor time of the whole machine per I/O.
    pub cpu_us_per_io: Option<f64>,
    /// I/Os that failed.
    pub errors: u64,
    /// Words such as `not-steady`, `two-phase`, `too-short`, `inconsistent`.
    #[serde(default)]
    pub flags: Vec<String>,
    /// What the reading rules say of it, but for those that need the whole study (method, section 8).
    #[serde(default)]
    pub remarks: Vec<Remark>,
    /// What was seen beside it; `None` where no counters were recorded, or too few.
    #[serde(default)]
    pub beside: Option<Beside>,
    /// Seconds of counters that were recorded beside it.
    #[serde(default)]
    pub counted_s: u64,
}

impl Summary {
    /// A percentile of its latencies, by percent.
    #[must_use]
    pub fn percentile(&self, percent: f64) -> Option<&Percentile> {
        self.percentiles.iter().find(|found| (found.percent - percent).abs() < 1e-6)
    }
}

impl Summary {
    /// Whether it has a flag.
    #[must_use]
    pub fn has(&self, flag: &str) -> bool {
        self.flags.iter().any(|found| found == flag)
    }

    /// What the run said of its rate, latency and outstanding I/Os (1.3).
    fn law(&self) -> RunLaw {
        let Some(residual) = self.residual else { return RunLaw::NotAsked };
        let verdict = [
            (INCONSISTENT, Consistency::AccountingError),
            (GENERATOR_LIMITED, Consistency::GeneratorLimited),
            (STOOD_STILL, Consistency::StoodStill),
        ];
        let found = verdict.into_iter().find(|(flag, _)| self.has(flag));
        let verdict = found.map_or(Consistency::Consistent, |(_, verdict)| verdict);
        RunLaw::Asked(Law { residual, verdict })
    }
}

/// What the runs of a setting say of how far a percentile can be relied on: the fewest I/Os, and the spread that says
/// least.
pub(super) fn weakest<'a>(
    summaries: impl Iterator<Item = &'a Summary> + Clone,
    percent: f64,
) -> (Option<u64>, Option<(usize, usize)>) {
    let spreads = summaries.clone().map(|summary| summary.percentile(percent)?.spread);
    (summaries.map(|summary| summary.io_count).min(), percentile::weakest(spreads))
}

/// A finished run, as a line of the journal.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct RunRecord {
    /// From 1, in the order of the study; `runs/<run>.json` with four digits.
    pub run: u32,
    /// Hash of setting, target, step and repetition: the same key is not run twice.
    pub key: String,
    /// The step of the workflow: `sweep`, `pretest-1`, `random-1`, …
    pub step: String,
    /// What it is for.
    pub purpose: Purpose,
    /// Of this setting, from 1.
    pub repetition: u32,
    /// What was run.
    pub setting: Setting,
    /// Seconds since the study began; virtual ones of a simulated device.
    pub started_s: f64,
    /// The same at its end.
    pub ended_s: f64,
    /// Wall-clock time of its end, RFC 3339 in UTC; `None` in virtual time.
    pub ended: Option<String>,
    /// How it ended.
    pub outcome: Outcome,
    /// Its figures; `None` unless it was measured.
    pub summary: Option<Summary>,
    /// The whole result, relative to the study's folder; `None` where there is none.
    pub result: Option<String>,
    /// The command that does the same by hand; empty on a simulated device.
    #[serde(default)]
    pub command: Vec<String>,
    /// What was seen beside the run, as a document of its own; what a result holds is not repeated here.
    #[serde(default)]
    pub counters: Option<Value>,
}

impl RunRecord {
    /// How findings refer to it: `run 7`.
    #[must_use]
    pub fn name(&self) -> String {
        format!("run {}", self.run)
    }

    /// Its row of a curve, where its figures may enter one. What the run says of itself is not asked of its means again.
    #[must_use]
    pub fn row(&self) -> Option<Row> {
        let summary = self.usable()?;
        Some(Row {
            o: self.setting.outstanding.into(),
            iops: summary.iops,
            latency_ms: summary.latency_ms,
            latency_half_unit_ms: 0.0,
            law: Some(summary.law()),
        })
    }

    /// The figures of a run that may enter a finding: it was measured, something completed in it, and it is not contradictory
    /// (1.3).
    #[must_use]
    pub fn usable(&self) -> Option<&Summary> {
        let is_sound = |summary: &&Summary| {
            summary.errors == 0 && summary.iops > 0.0 && !summary.has(INCONSISTENT)
        };
        match self.outcome {
            Outcome::Measured => self.summary.as_ref().filter(is_sound),
            Outcome::Aborted | Outcome::Failed(_) => None,
        }
    }
}
