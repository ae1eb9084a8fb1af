//! What was found in a result that somebody else wrote, or that Plumb wrote earlier.

use crate::profile::model::RawProfile;
use crate::result::model::{Tool, WaitStatistics};

/// A result, as far as its form holds it: text reports round sizes and name no tool.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedResult {
    /// Who made it; `None` in text reports.
    pub tool: Option<Tool>,
    /// Text reports only.
    pub command_line: Option<String>,
    /// Host name.
    pub computer_name: Option<String>,
    /// Processor name, from 2.3 on.
    pub processor_name: Option<String>,
    /// `YYYY/MM/DD HH:MM:SS UTC`: the end of the run from DISKSPD, its start from Plumb (D-30).
    pub run_time: Option<String>,
    /// Power scheme; its `<unknown>` is none.
    pub power_scheme: Option<PowerScheme>,
    /// What was run. Sizes of a text report are as exact as it shows them.
    pub profile: Option<RawProfile>,
    /// One per time span.
    pub time_spans: Vec<ImportedSpan>,
    /// What could not be taken over, in sentences.
    pub notes: Vec<String>,
}

/// A named power scheme.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PowerScheme {
    /// Its name.
    pub name: String,
    /// Its identifier, empty on Linux.
    pub guid: String,
}

/// The measurement epochs of DISKSPD (spec 15.14): results of different ones are not comparable.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ForeignEpoch {
    /// Up to 2.0.18.
    UpTo2018,
    /// 2.0.20 to 2.1.
    From2020,
    /// 2.2.
    From22,
    /// 2.3 and later.
    From23,
}

impl ForeignEpoch {
    /// The epoch of a DISKSPD version such as `2.0.21a`; `None` when it does not start with numbers.
    #[must_use]
    pub fn of_version(version: &str) -> Option<Self> {
        let mut numbers = version.split('.').map(|part| {
            let digits = part.len() - part.trim_start_matches(|c: char| c.is_ascii_digit()).len();
            part[..digits].parse::<u32>().ok()
        });
        let mut next = || numbers.next().unwrap_or(Some(0));
        let version = (next()?, next()?, next()?);
        let first_versions = [
            ((2, 3, 0), Self::From23),
            ((2, 2, 0), Self::From22),
            ((2, 0, 20), Self::From2020),
            ((0, 0, 0), Self::UpTo2018),
        ];
        first_versions.into_iter().find(|(first, _)| version >= *first).map(|(_, epoch)| epoch)
    }
}

/// One time span. Without threads: it was interrupted before the measurement.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedSpan {
    /// Measured seconds; 0 when it was interrupted before.
    pub seconds: f64,
    /// Threads as stated.
    pub thread_count: u64,
    /// Requests per thread of a weighted pool, 0 for none.
    pub request_count: u64,
    /// One per processor.
    pub cpus: Vec<ImportedCpu>,
    /// Means over the processors.
    pub cpu_average: Option<CpuPercents>,
    /// Over all threads and targets.
    pub figures: ByDirection<Figures>,
    /// Percentiles over all threads and targets, ascending.
    pub latency: Vec<LatencyBucket>,
    /// Percentiles by path, where more than one was used; text reports only.
    pub path_latency: Vec<PathLatency>,
    /// Intervals over all threads and targets.
    pub intervals: Vec<Interval>,
    /// One per thread, in order.
    pub threads: Vec<ImportedThread>,
    /// Bytes between the buffers of threads (2.3).
    pub effective_buffer_separation: Option<u64>,
    /// How I/Os were handed in; results of Plumb's own only.
    pub submission: Option<ImportedSubmission>,
}

/// How I/Os were handed in (15.14).
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedSubmission {
    /// The loop's profile, `latency` or `peak`; empty where the result does not say.
    pub profile: String,
    /// How submissions are gathered: `latency`, `peak`, `ring`, `routines` or `synchronous`; empty where the result does
    /// not say.
    pub gathering: String,
    /// I/Os per call at most.
    pub batch: Option<u64>,
    /// The same while a burst of completions has left more requests idle.
    pub burst: Option<u64>,
    /// Engine and flags in force, of each thread's queue.
    pub queues: Vec<(String, Vec<String>)>,
    /// I/Os per second and kind of arrivals of an open loop.
    pub open_loop: Option<(f64, String)>,
    /// Whether the kernel traced it (`--truth`), where the result says so or would.
    pub traced: Option<bool>,
}

/// A value for reads, writes, and both together.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ByDirection<T> {
    /// Reads.
    pub read: T,
    /// Writes.
    pub write: T,
    /// Both.
    pub total: T,
}

/// Statistics, where they were measured and there was something to measure.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Figures {
    /// Mean latency in milliseconds.
    pub latency_mean_ms: Option<f64>,
    /// Standard deviation of the latency in milliseconds.
    pub latency_std_dev_ms: Option<f64>,
    /// Standard deviation of the IOPS of the intervals.
    pub iops_std_dev: Option<f64>,
}

/// One processor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct ImportedCpu {
    /// Socket number, where stated.
    pub socket: Option<u32>,
    /// NUMA node, where stated.
    pub node: Option<u32>,
    /// Processor group, where stated.
    pub group: Option<u32>,
    /// Core number within the group, where stated.
    pub core: Option<u32>,
    /// Efficiency class, where stated as a number.
    pub class: Option<u32>,
    /// Number within the group.
    pub id: u32,
    /// How busy it was.
    pub percents: CpuPercents,
}

/// Shares of the time of a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct CpuPercents {
    /// Kernel and user.
    pub usage: f64,
    /// User.
    pub user: f64,
    /// Kernel without idle.
    pub kernel: f64,
    /// Idle.
    pub idle: f64,
}

/// One percentile.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LatencyBucket {
    /// 0 is the minimum, 100 the maximum.
    pub percentile: f64,
    /// Reads; `None` without samples.
    pub read_ms: Option<f64>,
    /// Writes; `None` without samples.
    pub write_ms: Option<f64>,
    /// Both; `None` without samples.
    pub total_ms: Option<f64>,
}

/// Percentiles of one path.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct PathLatency {
    /// The path.
    pub path: String,
    /// Ascending.
    pub latency: Vec<LatencyBucket>,
}

/// One interval.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Interval {
    /// Its end, in milliseconds since the measurement's start.
    pub end_ms: u64,
    /// Reads per second.
    pub read_iops: f64,
    /// Writes per second.
    pub write_iops: f64,
    /// Both.
    pub total_iops: f64,
    /// Latencies of the reads, where stated.
    pub read: Option<IntervalLatency>,
    /// Latencies of the writes, where stated.
    pub write: Option<IntervalLatency>,
}

/// Latencies of an interval in milliseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct IntervalLatency {
    /// Smallest.
    pub min_ms: f64,
    /// Largest.
    pub max_ms: f64,
    /// Mean.
    pub mean_ms: f64,
    /// Standard deviation.
    pub std_dev_ms: f64,
}

/// One thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedThread {
    /// Its number.
    pub id: u32,
    /// Submissions with `-u` (2.3).
    pub submit_count: Option<u64>,
    /// With `-vs`.
    pub waits: Option<WaitStatistics>,
    /// One per target that it worked on.
    pub targets: Vec<ImportedTarget>,
}

/// One target of one thread.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ImportedTarget {
    /// As in the report.
    pub path: String,
    /// Size of the target.
    pub file_size: ImportedSize,
    /// Reads.
    pub read: IoCount,
    /// Writes.
    pub write: IoCount,
    /// Statistics.
    pub figures: ByDirection<Figures>,
    /// (percent of the I/O, bytes) of the ranges that offsets were drawn from; XML only.
    pub ranges: Vec<(u32, u64)>,
    /// Intervals; XML only.
    pub intervals: Vec<Interval>,
}

/// What one direction moved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IoCount {
    /// Bytes.
    pub bytes: u64,
    /// I/Os.
    pub ios: u64,
}

/// A size, exact or as rounded as a text report shows it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ImportedSize {
    /// Bytes.
    pub bytes: u64,
    /// Whether that is the very number.
    pub exact: bool,
}

impl ImportedResult {
    /// The epoch of a result of DISKSPD; `None` for Plumb's own and where no version is stated.
    #[must_use]
    pub fn foreign_epoch(&self) -> Option<ForeignEpoch> {
        let tool = self.tool.as_ref().filter(|tool| tool.epoch.is_none())?;
        ForeignEpoch::of_version(&tool.version)
    }
}

impl ImportedSpan {
    /// Whether the run was stopped before anything was measured.
    #[must_use]
    pub fn is_interrupted(&self) -> bool {
        self.seconds == 0.0 && self.threads.is_empty()
    }

    /// Reads of all threads and targets: bytes and I/Os, which may exceed 64 bits.
    #[must_use]
    pub fn reads(&self) -> (u128, u128) {
        self.sum(|target| target.read)
    }

    /// Writes of all threads and targets: bytes and I/Os.
    #[must_use]
    pub fn writes(&self) -> (u128, u128) {
        self.sum(|target| target.write)
    }

    fn sum(&self, direction: fn(&ImportedTarget) -> IoCount) -> (u128, u128) {
        let targets = self.threads.iter().flat_map(|thread| &thread.targets);
        targets.map(direction).fold((0, 0), |(bytes, ios), count| {
            (bytes + u128::from(count.bytes), ios + u128::from(count.ios))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_fall_into_four_epochs() {
        for (version, epoch) in [
            ("1.0", Some(ForeignEpoch::UpTo2018)),
            ("2.0.18a", Some(ForeignEpoch::UpTo2018)),
            ("2.0.20", Some(ForeignEpoch::From2020)),
            ("2.1.0-dev", Some(ForeignEpoch::From2020)),
            ("2.2.0", Some(ForeignEpoch::From22)),
            ("2.3", Some(ForeignEpoch::From23)),
            ("3", Some(ForeignEpoch::From23)),
            ("x2", None),
            ("2.x", None),
            ("", None),
        ] {
            assert_eq!(ForeignEpoch::of_version(version), epoch, "{version}");
        }
    }
}
