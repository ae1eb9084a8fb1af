//! What a run found, ready to be printed: plain data, nothing is computed from the world any more.

use std::collections::BTreeMap;

use jiff::Timestamp;
use plumb_io::counters::Counters;
use plumb_io::topology::Topology;
use plumb_io::{Errno, QueueFacts};
use plumb_units::Nanos;

use crate::arrivals::OpenLoop;
use crate::pattern::EffectiveDistribution;
use crate::profile::model::RawProfile;
use crate::result::stamp_error::StampError;
use crate::result::verify::VerifyResult;
use crate::tally::interval_log::IntervalLog;
use crate::tally::span_series::{TargetSeries, ThreadSeries};
use crate::tally::{Histogram, LatencySet, OpenTally};
use crate::witness::Truth;

/// Everything about one run of a profile.
#[derive(Debug, Clone)]
pub struct RunResult {
    /// argv joined by single blanks, program name included.
    pub command_line: String,
    /// The profile that was run.
    pub profile: RawProfile,
    /// The machine.
    pub host: HostFacts,
    /// Start of the run (D-30).
    pub started_at: Timestamp,
    /// One per time span of the profile, those not run included.
    pub time_spans: Vec<SpanResult>,
    /// Seed of the generator, ours: program version and date as in `Tool`.
    pub tool: Tool,
    /// Whether Ctrl-C or SIGTERM ended the run early.
    pub interrupted: bool,
    /// Storage spaces whose virtual disks were targets.
    pub spaces: Vec<SpaceUse>,
}

/// What a storage space did during a run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SpaceUse {
    /// Its pool's name.
    pub pool: String,
    /// Requests that entered on another thread than the owner's and reached it over its ring.
    pub forwarded: u64,
    /// Blocks whose checksum was compared on a read.
    pub blocks_verified: u64,
    /// Blocks that did not match on one copy.
    pub mismatches: u64,
    /// Blocks rewritten from a good copy.
    pub healed: u64,
    /// Blocks without a good copy.
    pub unrecoverable: u64,
    /// Disks that were expelled.
    pub disks_lost: u64,
    /// Extents brought up to date on disks that returned.
    pub resynced: u64,
}

/// Who made a result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tool {
    /// `plumb`, or `diskspd` for imports.
    pub name: String,
    /// Version.
    pub version: String,
    /// `YYYY/M/D`.
    pub version_date: String,
    /// Measurement epoch (spec 15.14); `None` for imports.
    pub epoch: Option<u32>,
}

/// The machine, as the System block shows it (spec 7.3, 8, 15.10, 15.11).
#[derive(Debug, Clone)]
pub struct HostFacts {
    /// hostname.
    pub computer_name: String,
    /// `model name` of /proc/cpuinfo, blanks collapsed; `<unknown>`.
    pub processor_name: String,
    /// cpufreq governor, `mixed`, or `<unknown>`.
    pub power_scheme: String,
    /// Bytes.
    pub page_size: u64,
    /// `uname -r`.
    pub kernel: String,
    /// Bytes of RAM.
    pub memory_bytes: u64,
    /// Processors, cores, groups, nodes, sockets, caches.
    pub topology: Topology,
}

/// One time span.
#[derive(Debug, Clone, Default)]
pub struct SpanResult {
    /// Measured time; 0 when no measurement was made (interrupted before it, or not run).
    pub elapsed: Nanos,
    /// When each phase began, since the start of the run: warm-up, measurement, cool-down, end.
    pub phases: PhaseTimes,
    /// CPU time by processor over the measurement, in group order.
    pub cpus: Vec<CpuUsage>,
    /// One per thread.
    pub threads: Vec<ThreadResult>,
    /// (group, processor) taken by the threads, in order; `None` with `-n`.
    pub effective_affinity: Option<Vec<(u16, u8)>>,
    /// Whether the effective affinity mixes the highest class with others (spec 15.5).
    pub mixed_classes: bool,
    /// Bytes, 0 for none (spec 15.4).
    pub effective_buffer_separation: u64,
    /// What was really in force (spec 15.14); one entry per distinct value over the threads.
    pub queues: Vec<QueueFacts>,
    /// Submission cap in force (D-32).
    pub batch: u32,
    /// The same while a burst of completions has left more requests idle; never less.
    pub burst: u32,
    /// `latency`, `peak`, `ring`, `routines` or `synchronous`: how submissions are gathered.
    pub submission: String,
    /// Targets that asked for BypassIO and ran without it.
    pub bypass_io_missing: Vec<String>,
    /// The open loop that was asked for (`--rate`).
    pub open_loop: Option<OpenLoop>,
    /// How late completions may have been seen, where I/Os were stamped.
    pub stamp_error: Option<StampError>,
    /// Latencies held against what the block device saw (`--truth`).
    pub truth: Option<Truth>,
    /// What verification did and found (`--verify`).
    pub verify: Option<VerifyResult>,
    /// Whole-process CPU time over the measurement, io-wq workers included.
    pub process_cpu: Nanos,
    /// The part of it spent in io-wq workers.
    pub io_wq_cpu: Nanos,
    /// What happened in each interval, by target over all threads, ascending; present with `-D`.
    pub series: Vec<TargetSeries>,
    /// Latencies by interval over all threads and targets; present with `-D`.
    pub interval_latencies: IntervalLog,
    /// Kernel events counted over the measurement (`-e`).
    pub trace: Option<TraceCounts>,
    /// What speaks for or against the numbers.
    pub plausibility: Vec<PlausibilityItem>,
    /// Fatal errors of this span.
    pub failures: Vec<Failure>,
    /// What was seen beside the measurement, once per second; `None` where nobody looked.
    pub counters: Option<Counters>,
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure {
    /// Its class, a stable keyword: `unaligned`, `open`, `io`.
    pub class: String,
    /// In words; behind a line end and `help: ` what to do.
    pub text: String,
}

impl Failure {
    /// A failure of a class.
    #[must_use]
    pub fn new(class: &str, text: impl Into<String>) -> Self {
        Self { class: class.to_owned(), text: text.into() }
    }
}

impl std::fmt::Display for Failure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.text)
    }
}

/// When phases began, since the start of the run. `None`: the phase was not reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PhaseTimes {
    /// Threads were ready and the start signal was given.
    pub warmup: Option<Nanos>,
    /// Accounting was switched on.
    pub measurement: Option<Nanos>,
    /// Accounting was switched off.
    pub cooldown: Option<Nanos>,
    /// All threads had ended.
    pub end: Option<Nanos>,
}

/// One processor over the measurement, in percent of its time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct CpuUsage {
    /// Socket number.
    pub socket: u32,
    /// NUMA node.
    pub node: u32,
    /// Block of 64 CPU numbers.
    pub group: u16,
    /// Core number within the group.
    pub core: u32,
    /// Efficiency class, 0 slowest.
    pub class: u8,
    /// Number within the group.
    pub cpu: u8,
    /// User time, %.
    pub user: f64,
    /// Kernel time without idle, %.
    pub kernel: f64,
    /// Idle time, %.
    pub idle: f64,
}

/// One thread.
#[derive(Debug, Clone, Default)]
pub struct ThreadResult {
    /// Its number.
    pub id: u32,
    /// Submissions with `-u`.
    pub submit_count: Option<u64>,
    /// Counters of spec 6.10.
    pub waits: WaitStatistics,
    /// One per target that it works on, in target order.
    pub targets: Vec<TargetResult>,
}

/// Counters of the dispatch loop (spec 6.10, 10.2, 15.11).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WaitStatistics {
    /// Waits without limit.
    pub wait: u64,
    /// Waits bounded by a throttle.
    pub throttle_wait: u64,
    /// Sleeps with nothing in flight.
    pub throttle_sleep: u64,
    /// Looks at the completion queue while idle requests remained.
    pub lookaside: u64,
    /// Waits by completions that they yielded, 7 and more together.
    pub wait_completion: [u64; 8],
    /// Looks by completions that they yielded, 7 and more together.
    pub lookaside_completion: [u64; 8],
}

/// One target of one thread.
#[derive(Debug, Clone, Default)]
pub struct TargetResult {
    /// As in the profile.
    pub path: String,
    /// Bytes.
    pub file_size: u64,
    /// Place of the target in the time span.
    pub index: u32,
    /// Reads.
    pub read: DirectionResult,
    /// Writes.
    pub write: DirectionResult,
    /// The ranges that random offsets were drawn from.
    pub effective: Option<EffectiveDistribution>,
    /// Failed I/Os by error number, and I/Os that moved fewer bytes than asked for.
    pub errors: BTreeMap<Errno, u64>,
    /// I/Os that moved fewer bytes than asked for.
    pub short_transfers: u64,
    /// In an open loop; latencies are response times then.
    pub open: Option<OpenTally>,
    /// What happened in each interval (`-D`).
    pub series: Option<ThreadSeries>,
}

/// Reads or writes of one thread and target.
#[derive(Debug, Clone, Default)]
pub struct DirectionResult {
    /// Bytes moved.
    pub bytes: u64,
    /// I/Os completed.
    pub io_count: u64,
    /// With `-L` or `-D` (spec 6.13); printed as tables with `-L` only.
    pub latency: Option<LatencySet>,
    /// What failed meanwhile; in none of the above.
    pub failed: FailedIos,
}

/// I/Os that failed during the measurement. They are none of the figures, but they took up outstanding
/// I/Os, and a device may have seen them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct FailedIos {
    /// I/Os.
    pub count: u64,
    /// Bytes that they asked for.
    pub bytes: u64,
    /// Sum of the times from their submissions to their failures in nanoseconds; 0 where latencies are not
    /// measured.
    pub latency_sum: u64,
}

impl FailedIos {
    /// Adds what `other` counted.
    pub fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.bytes += other.bytes;
        self.latency_sum = self.latency_sum.saturating_add(other.latency_sum);
    }
}

/// Latencies of one interval over all threads and targets.
#[derive(Debug, Clone)]
pub struct IntervalLatency {
    /// Interval number from 0.
    pub number: u64,
    /// Reads.
    pub read: Histogram,
    /// Writes.
    pub write: Histogram,
}

/// Kernel events of the measured part (spec 10.3). `None`: the class was not asked for.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TraceCounts {
    /// (title, counters) in the order of spec 10.3.
    pub classes: Vec<(String, Vec<(String, u64)>)>,
    /// Events that the kernel's buffers lost.
    pub lost: u64,
}

/// One line of the plausibility block.
#[derive(Debug, Clone, PartialEq)]
pub struct PlausibilityItem {
    /// Stable key, e.g. `device_bytes_ratio`.
    pub key: &'static str,
    /// The target concerned, if it is about one.
    pub target: Option<String>,
    /// The figure, if there is one.
    pub value: Option<f64>,
    /// What it says.
    pub verdict: Plausibility,
    /// A full sentence.
    pub sentence: String,
}

/// Whether a plausibility figure is as it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Plausibility {
    /// As it should be.
    Ok,
    /// Could not be found out.
    Unknown,
    /// Suspicious: the sentence says why.
    Suspicious,
}
