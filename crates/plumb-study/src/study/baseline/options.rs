//! What a baseline is to do.

use std::sync::LazyLock;

use plumb_units::convert::to_u64;
use serde::{Deserialize, Serialize};

use super::planner::BaselinePlanner;
use crate::findings::Layout;
use crate::knee::{DeclaredCap, Options, Policy};
use crate::profiles::NamedProfile;
use crate::study::conditioning::PUBLISHED_WARM_UP_S;
use crate::study::record::RunRecord;
use crate::study::sweep::noise_elsewhere;
use crate::study::{Access, Conditioning, Setting};

/// The profile `oltp`: what `plumb profile show oltp` prints is what is measured.
static OLTP: LazyLock<Setting> = LazyLock::new(|| NamedProfile::named("oltp").settings().remove(0));
/// The profile `olap`: reads, and writes.
static OLAP: LazyLock<Vec<Setting>> = LazyLock::new(|| NamedProfile::named("olap").settings());

/// Most runs of a plan that is not exhaustive.
const RUNS_MOST: usize = 40;

/// Most new runs of a search: of small random I/O, of large sequential I/O.
pub(super) const CURVE_MOST: (usize, usize) = (13, 9);
/// Most runs that split N.
pub(super) const PAIRS_MOST: usize = 6;
/// Repetitions of pre-test 2 and of what is confirmed.
pub(super) const REPETITIONS: usize = 3;
/// Numbers of files that pre-test 2 compares.
pub(super) const FILE_COUNTS: usize = 3;
/// Most settings of throughput without latencies and latencies without load.
const APART_MOST: usize = 5;

/// Extensions of an exhaustive range.
pub(super) const EXTENSIONS: u32 = 4;

/// A step of the workflow that performs runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    /// 2.4: one run, explained.
    PretestOne,
    /// 2.5: number of files.
    PretestTwo,
    /// 2.6: outstanding I/Os of small random I/O.
    RandomOne,
    /// 2.7: splitting them between threads.
    RandomTwo,
    /// 2.8: sequential reads.
    Reads,
    /// 2.8: sequential writes.
    Writes,
    /// 2.10: throughput without latencies, latencies without load.
    Latency,
    /// 3.2, 8: what the choices rest on, again.
    Confirm,
}

impl Step {
    /// Every step, in order.
    pub const ALL: [Self; 8] = [
        Self::PretestOne,
        Self::PretestTwo,
        Self::RandomOne,
        Self::RandomTwo,
        Self::Reads,
        Self::Writes,
        Self::Latency,
        Self::Confirm,
    ];

    /// Its name, as in `--skip`.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::PretestOne => "pretest-1",
            Self::PretestTwo => "pretest-2",
            Self::RandomOne => "random-1",
            Self::RandomTwo => "random-2",
            Self::Reads => "sequential-read",
            Self::Writes => "sequential-write",
            Self::Latency => "latency",
            Self::Confirm => "confirm",
        }
    }

    /// The step of a name.
    #[must_use]
    pub fn of_keyword(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|step| step.keyword() == word)
    }

    fn is_random(self) -> bool {
        matches!(
            self,
            Self::PretestOne | Self::PretestTwo | Self::RandomOne | Self::RandomTwo | Self::Latency
        )
    }

    fn is_sequential(self) -> bool {
        matches!(self, Self::Reads | Self::Writes)
    }

    /// First and last o of the documents' scripts.
    pub(super) fn published_range(self) -> (u64, u64) {
        match self {
            Self::Reads => (8, 36),
            Self::Writes => (4, 32),
            _ => (1, 12),
        }
    }

    /// Runs of the documents' own plan.
    pub(super) fn published_runs(self) -> u64 {
        match self {
            Self::PretestOne => 1,
            Self::PretestTwo => 2,
            Self::RandomOne => 24,
            Self::RandomTwo => 12,
            Self::Reads | Self::Writes => 29,
            Self::Latency | Self::Confirm => 0,
        }
    }
}

/// How long runs are, and how many.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Preset {
    /// Ten minutes: 2 s of warm-up and 8 s of measurement.
    Quick,
    /// 10 s of warm-up, up to 60 s of measurement.
    #[default]
    Standard,
    /// As in the documents: 300 s and 600 s, every setting of their ranges.
    Published,
}

/// Which workload is asked about.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Part {
    /// Both.
    #[default]
    All,
    /// Small random I/O only: the profile `oltp`.
    Oltp,
    /// Large sequential I/O only: the profile `olap`.
    Olap,
}

/// What a baseline is to do; kept as the request of its study.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct BaselineOptions {
    /// Bytes of all files together; `None` for a device, which is taken as it is.
    pub size: Option<u64>,
    /// How long runs are.
    pub preset: Preset,
    /// Which workload.
    pub part: Part,
    /// Whether every setting is run instead of searched.
    pub exhaustive: bool,
    /// Names of steps that are left out.
    pub skip: Vec<String>,
    /// S.
    pub devices: Option<u32>,
    /// c.
    pub copies: u32,
    /// t₀: threads to begin with.
    pub threads: u32,
    /// Most threads per file when N is split.
    pub threads_most: u32,
    /// Most outstanding I/Os in all.
    pub outstanding_most: u64,
    /// Seed of random offsets.
    pub seed: u64,
    /// Limits that are known.
    pub caps: Vec<String>,
    /// Seconds of warm-up, where the preset's are not wanted.
    pub warm_up_s: Option<u32>,
    /// Seconds of measurement, likewise.
    pub measured_s: Option<u32>,
    /// Whether runs take their whole duration, steady and precise before or not.
    #[serde(default)]
    pub full_length: bool,
    /// Seconds between two runs in which the device is left alone.
    #[serde(default)]
    pub gap_s: u32,
    /// What is done before the first run.
    #[serde(default)]
    pub conditioning: Conditioning,
    /// Bytes of the device that is filled for that.
    #[serde(default)]
    pub device_bytes: Option<u64>,
    /// Bytes of a cache of controller, array or device that is known (R12).
    #[serde(default)]
    pub device_cache: Option<u64>,
}

impl Default for BaselineOptions {
    fn default() -> Self {
        Self {
            size: None,
            preset: Preset::Standard,
            part: Part::All,
            exhaustive: false,
            skip: Vec::new(),
            devices: None,
            copies: 1,
            threads: 8,
            threads_most: 64,
            outstanding_most: 4096,
            seed: 1,
            caps: Vec::new(),
            warm_up_s: None,
            measured_s: None,
            full_length: false,
            gap_s: 0,
            conditioning: Conditioning::None,
            device_bytes: None,
            device_cache: None,
        }
    }
}

impl BaselineOptions {
    /// Whether a step is done.
    #[must_use]
    pub fn has(&self, step: Step) -> bool {
        let is_part = match self.part {
            Part::All => true,
            Part::Oltp => !step.is_sequential(),
            Part::Olap => !step.is_random(),
        };
        let is_for_files = step == Step::PretestTwo;
        is_part
            && !(is_for_files && self.size.is_none())
            && !self.skip.iter().any(|name| name == step.keyword())
    }

    /// Whether every setting of the ranges is run.
    #[must_use]
    pub fn is_exhaustive(&self) -> bool {
        self.exhaustive || self.preset == Preset::Published
    }

    /// Seconds of warm-up and of measurement.
    #[must_use]
    pub fn timing(&self) -> (u32, u32) {
        let (warm_up, measured) = match self.preset {
            Preset::Quick => (2, 8),
            Preset::Standard => (10, 60),
            Preset::Published => (OLTP.warm_up_s, OLTP.measured_s),
        };
        let warm_up = match self.conditioning {
            Conditioning::D0 => warm_up.max(PUBLISHED_WARM_UP_S),
            _ => warm_up,
        };
        (self.warm_up_s.unwrap_or(warm_up), self.measured_s.unwrap_or(measured).max(1))
    }

    /// Runs of the documents' own plan for the same steps: 97 for all of them.
    #[must_use]
    pub fn published_runs(&self) -> u64 {
        Step::ALL.into_iter().filter(|step| self.has(*step)).map(Step::published_runs).sum()
    }

    /// Most runs of this plan; of an exhaustive one as many as there are before a range is extended.
    #[must_use]
    pub fn runs_most(&self) -> u64 {
        if self.is_exhaustive() {
            return BaselinePlanner::new(self.clone()).extent(&[]).planned;
        }
        let all: u64 = Step::ALL
            .into_iter()
            .filter(|step| self.has(*step))
            .map(|step| self.runs_most_of(step))
            .sum();
        all.min(to_u64(RUNS_MOST))
    }

    /// Most runs of a step for which it need not leave any to others.
    fn runs_most_of(&self, step: Step) -> u64 {
        let most = match step {
            Step::PretestOne => 1,
            // The first of them is pre-test 1's, where that is done.
            Step::PretestTwo => FILE_COUNTS * REPETITIONS - usize::from(self.has(Step::PretestOne)),
            Step::RandomOne => CURVE_MOST.0,
            Step::Reads | Step::Writes => CURVE_MOST.1,
            Step::RandomTwo => PAIRS_MOST,
            Step::Latency => APART_MOST,
            Step::Confirm => {
                let chosen = [
                    self.has(Step::RandomOne) || self.has(Step::RandomTwo),
                    self.has(Step::Reads),
                    self.has(Step::Writes),
                    self.has(Step::Latency),
                ];
                let chosen = chosen.into_iter().filter(|is_there| *is_there).count();
                chosen * (self.confirmations() - 1)
            }
        };
        to_u64(most)
    }

    /// How often what the choices rest on is run in the end.
    pub(super) fn confirmations(&self) -> usize {
        if self.preset == Preset::Quick { 2 } else { REPETITIONS }
    }

    /// Small random I/O with `files` files: the profile `oltp`, with no more outstanding in all than is wanted.
    #[must_use]
    pub fn random(&self, files: u32) -> Setting {
        let each = u32::try_from(self.outstanding_most / u64::from(files)).unwrap_or(u32::MAX);
        let threads = (self.threads / files).clamp(1, each.max(1));
        let outstanding = OLTP.outstanding.min(each / threads).max(1);
        Setting { threads, outstanding, ..self.with(files, OLTP.clone()) }
    }

    /// Large sequential I/O with `files` files, one thread each: more would walk over the same blocks. The profile
    /// `olap`; `write_percent` is 0 or 100.
    #[must_use]
    pub fn sequential(&self, files: u32, write_percent: u32) -> Setting {
        let mut all = OLAP.iter();
        let setting = all.find(|setting| setting.write_percent == write_percent);
        let setting = setting.expect("the profile reads, and writes").clone();
        let each = self.outstanding_most / u64::from(files);
        let outstanding = u64::from(setting.outstanding).min(each).max(1);
        let outstanding = u32::try_from(outstanding).unwrap_or(setting.outstanding);
        self.with(files, Setting { outstanding, ..setting })
    }

    fn with(&self, files: u32, setting: Setting) -> Setting {
        let (warm_up_s, measured_s) = self.timing();
        let file_bytes = self.size.map(|size| size / u64::from(files));
        Setting { files, file_bytes, warm_up_s, measured_s, ..setting }
    }

    /// Most outstanding I/Os per thread that a step goes up to for such settings: what the limit on all of them leaves,
    /// and of an exhaustive range, and of sequential I/O, four extensions.
    #[must_use]
    pub fn o_most(&self, step: Step, setting: &Setting) -> u64 {
        let each = u64::from(setting.files) * u64::from(setting.threads);
        let limit = (self.outstanding_most / each.max(1)).max(1);
        match step {
            Step::RandomOne if !self.is_exhaustive() => limit,
            _ => limit.min(step.published_range().1 << EXTENSIONS),
        }
    }

    /// Whether that is what `--max-outstanding` allows, and no other bound.
    #[must_use]
    pub fn is_most_by_outstanding(&self, step: Step, setting: &Setting) -> bool {
        let more =
            Self { outstanding_most: self.outstanding_most.saturating_mul(2), ..self.clone() };
        more.o_most(step, setting) > self.o_most(step, setting)
    }

    /// How a curve of such settings is judged among the runs of its study.
    #[must_use]
    pub fn knee_options(&self, setting: &Setting, runs: &[RunRecord]) -> Options {
        let is_random = setting.access == Access::Random;
        Options {
            threads: Some(f64::from(setting.threads)),
            files: Some(f64::from(setting.files)),
            block_bytes: Some(setting.block_bytes as f64),
            policy: if is_random { Policy::Balanced } else { Policy::Throughput },
            searched: true,
            budget_ms: None,
            caps: self.caps.iter().filter_map(|cap| DeclaredCap::parse(cap).ok()).collect(),
            noise: noise_elsewhere(setting, runs),
        }
    }

    /// What is behind the target.
    #[must_use]
    pub fn layout(&self, setting: &Setting) -> Layout {
        Layout {
            devices: self.devices.map(f64::from),
            copies: Some(f64::from(self.copies)),
            write_share: Some(setting.write_share()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (2.6) A search that may go no further says which bound it met: more of that helps, and no other.
    #[test]
    fn the_bound_that_is_met_is_known() {
        let usual = BaselineOptions::default();
        let by_outstanding = |options: &BaselineOptions, step: Step| {
            let template =
                if step.is_random() { options.random(1) } else { options.sequential(1, 0) };
            options.is_most_by_outstanding(step, &template)
        };
        assert!(by_outstanding(&usual, Step::RandomOne));
        assert!(!by_outstanding(&usual, Step::Reads));
        let few = BaselineOptions { outstanding_most: 64, ..usual.clone() };
        assert!(by_outstanding(&few, Step::Reads));
        let exhaustive = BaselineOptions { exhaustive: true, ..usual };
        assert!(!by_outstanding(&exhaustive, Step::RandomOne));
    }
}
