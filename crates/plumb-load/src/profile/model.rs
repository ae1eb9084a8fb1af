//! The workload as the user stated it, defaults filled in (spec 2 and 4).

use std::ops::Deref;

/// The whole workload: time spans and some global switches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RawProfile {
    /// `-v`.
    pub verbose: bool,
    /// `-vs`.
    pub verbose_stats: bool,
    /// `-P`: completions per progress dot, 0 for none.
    pub progress: u32,
    /// `-R`.
    pub result_format: ResultFormat,
    /// `-Rp`: print the profile, run nothing. Never in XML.
    pub profile_only: bool,
    /// `-:`: a bit mask; bit 0 lets throughput limits sleep more than 1 ms.
    pub experiment_flags: u32,
    /// XML only: create files before the first time span (spec 6.3).
    pub precreate: Option<PrecreateFiles>,
    /// `-e`.
    pub etw: Option<Etw>,
    /// `-y`.
    pub synchronization: Synchronization,
    /// One run after the other.
    pub time_spans: Vec<TimeSpan>,
}

/// A profile that obeys every rule of spec 3.7 and 15.8: see [`RawProfile::check`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Profile(pub(super) RawProfile);

impl Deref for Profile {
    type Target = RawProfile;
    fn deref(&self) -> &RawProfile {
        &self.0
    }
}

/// How results are printed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResultFormat {
    /// Tables.
    #[default]
    Text,
    /// An XML document.
    Xml,
}

/// Which files are created once, before the first time span (spec 6.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrecreateFiles {
    /// Always, with the largest size seen.
    UseMaxSize,
    /// When all sizes are equal and none is 0.
    OnlyConstantSizes,
    /// When all non-zero sizes are equal.
    OnlyConstantOrZeroSizes,
}

/// Kernel events asked for with `-e`, in the order of spec 2.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[expect(missing_docs, reason = "the names are the documentation: they are the XML elements")]
pub struct Etw {
    pub process: bool,
    pub thread: bool,
    pub image_load: bool,
    pub disk_io: bool,
    pub memory_page_faults: bool,
    pub memory_hard_faults: bool,
    pub network: bool,
    pub registry: bool,
    pub use_paged_memory: bool,
    pub use_perf_timer: bool,
    pub use_system_timer: bool,
    pub use_cycles_counter: bool,
}

impl Etw {
    /// XML names and values, in the order in which they are written.
    #[must_use]
    pub fn fields(&self) -> [(&'static str, bool); 12] {
        [
            ("Process", self.process),
            ("Thread", self.thread),
            ("ImageLoad", self.image_load),
            ("DiskIO", self.disk_io),
            ("MemoryPageFaults", self.memory_page_faults),
            ("MemoryHardFaults", self.memory_hard_faults),
            ("Network", self.network),
            ("Registry", self.registry),
            ("UsePagedMemory", self.use_paged_memory),
            ("UsePerfTimer", self.use_perf_timer),
            ("UseSystemTimer", self.use_system_timer),
            ("UseCyclesCounter", self.use_cycles_counter),
        ]
    }
}

/// Named events between processes (spec 3.6).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Synchronization {
    /// `-ys`: signalled when the measurement starts.
    pub started_event: Option<String>,
    /// `-yf`: signalled when it ends.
    pub finished_event: Option<String>,
    /// `-yr`: waited for before the warm-up.
    pub start_wait_event: Option<String>,
    /// `-yp`: stops the run when signalled.
    pub stop_event: Option<String>,
}

/// One run: warm-up, measured duration, cool-down, over a list of targets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TimeSpan {
    /// Measured seconds, `-d`.
    pub duration: u32,
    /// Seconds before, `-W`.
    pub warmup: u32,
    /// Seconds after, `-C`.
    pub cooldown: u32,
    /// `-z`.
    pub rand_seed: u32,
    /// `-F`: threads of the pool, 0 for per-target mode.
    pub thread_count: u32,
    /// `-O`: requests per pool thread, 0 to use the targets'.
    pub request_count: u32,
    /// `-D`: milliseconds per interval.
    pub io_bucket_duration: u32,
    /// `-Zr`: fresh random content for every write.
    pub random_write_data: bool,
    /// `-n`.
    pub disable_affinity: bool,
    /// `-x`.
    pub completion_routines: bool,
    /// `-L`.
    pub measure_latency: bool,
    /// `-D`.
    pub calculate_iops_std_dev: bool,
    /// `-a` lists, in the order given.
    pub affinity: Vec<AffinityEntry>,
    /// `-ac -as -ap …`; `None` when no order option was given (the default order then holds).
    pub affinity_traversal: Option<AffinityTraversal>,
    /// `-bs`; `None` when not given ([`BufferSeparation::PdeCacheLine`] then holds).
    pub buffer_separation: Option<BufferSeparation>,
    /// `-oc`; `None` when not given (16 then holds).
    pub completion_depth: Option<u32>,
    /// `-u`.
    pub io_ring: Option<IoRing>,
    /// The targets.
    pub targets: Vec<Target>,
}

impl Default for TimeSpan {
    fn default() -> Self {
        Self {
            duration: 10,
            warmup: 5,
            cooldown: 0,
            rand_seed: 0,
            thread_count: 0,
            request_count: 0,
            io_bucket_duration: 1000,
            random_write_data: false,
            disable_affinity: false,
            completion_routines: false,
            measure_latency: false,
            calculate_iops_std_dev: false,
            affinity: Vec::new(),
            affinity_traversal: None,
            buffer_separation: None,
            completion_depth: None,
            io_ring: None,
            targets: Vec::new(),
        }
    }
}

impl TimeSpan {
    /// The completion depth in force (spec 15.3).
    #[must_use]
    pub fn effective_completion_depth(&self) -> u32 {
        self.completion_depth.unwrap_or(16)
    }

    /// Completions that a visit takes at most (`-oc`), where something binds them: its default binds where I/Os are stamped only.
    #[must_use]
    pub fn binding_completion_depth(&self) -> Option<u32> {
        let visits = self.io_ring.is_none() && !self.completion_routines;
        let binds = self.completion_depth.is_some() || self.stamps_latency();
        (visits && binds).then(|| self.effective_completion_depth())
    }

    /// The order of processors in force (spec 15.5).
    #[must_use]
    pub fn effective_traversal(&self) -> AffinityTraversal {
        self.affinity_traversal.unwrap_or_default()
    }

    /// The buffer separation in force (spec 15.4).
    #[must_use]
    pub fn effective_buffer_separation(&self) -> BufferSeparation {
        self.buffer_separation.unwrap_or_default()
    }

    /// Whether every pool thread owns `request_count` requests that pick a target anew (spec 1).
    #[must_use]
    pub fn is_weighted_pool(&self) -> bool {
        self.thread_count > 0 && self.request_count > 0
    }

    /// Whether each I/O is stamped (spec 6.13).
    #[must_use]
    pub fn stamps_latency(&self) -> bool {
        self.measure_latency || self.calculate_iops_std_dev
    }

    /// The loop's profile (D-32): `latency` where each I/O is stamped, else `peak`.
    #[must_use]
    pub fn loop_profile(&self) -> &'static str {
        if self.stamps_latency() { "latency" } else { "peak" }
    }

    /// Threads of the whole span.
    #[must_use]
    pub fn total_threads(&self) -> u64 {
        if self.thread_count > 0 {
            self.thread_count.into()
        } else {
            self.targets.iter().map(|target| u64::from(target.threads_per_file)).sum()
        }
    }
}

/// A processor, or all of a group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AffinityEntry {
    /// Block of 64 CPU numbers.
    pub group: u16,
    /// Number within the group; `None` for every active processor of it.
    pub processor: Option<u8>,
}

/// In which order threads take processors (spec 15.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AffinityTraversal {
    /// `-ac` or processor order.
    pub order: ProcessorOrder,
    /// `-as` or group by group.
    pub group: GroupOrder,
    /// `-ap -aP -ae -aE -aup`.
    pub efficiency: EfficiencyOrder,
}

/// Whether cores or processors are taken in turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProcessorOrder {
    /// By number.
    #[default]
    Cpu,
    /// First processors of all cores before second ones.
    CoreAware,
}

/// Whether groups are filled one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GroupOrder {
    /// One after the other.
    #[default]
    Fill,
    /// Across all groups.
    Span,
}

/// Which efficiency class comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EfficiencyOrder {
    /// `-ap`: within a pass, fast ones first.
    #[default]
    PFirst,
    /// `-aP`: all passes of fast ones, then the others.
    FillPFirst,
    /// `-ae`.
    EFirst,
    /// `-aE`.
    FillEFirst,
    /// `-aup`.
    Unordered,
}

/// Where I/O buffers lie (spec 15.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum BufferSeparation {
    /// `-bsp`: no two threads share a cache line of page-table pointers.
    #[default]
    PdeCacheLine,
    /// `-bsn`: wherever the allocator puts them.
    SystemDefault,
}

/// Ring submission (spec 15.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct IoRing {
    /// I/Os, or percent of the thread's requests.
    pub batch: RingBatch,
    /// Whether buffers are registered.
    pub registered_buffers: bool,
}

/// How many completions are gathered before the next submission.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RingBatch {
    /// 1..=65536 I/Os.
    Ios(u32),
    /// 1..=100 percent of the thread's requests.
    Percent(u32),
}

impl RingBatch {
    /// Completions to gather for a thread of `requests` (spec 15.2).
    #[must_use]
    pub fn for_requests(self, requests: u32) -> u32 {
        match self {
            Self::Ios(count) => count.min(requests).max(1),
            Self::Percent(percent) => {
                let batch = (u64::from(requests) * u64::from(percent)).div_ceil(100);
                u32::try_from(batch).unwrap_or(requests).max(1)
            }
        }
    }
}

impl Default for IoRing {
    fn default() -> Self {
        Self { batch: RingBatch::Percent(25), registered_buffers: true }
    }
}

/// A file, drive or partition with its I/O parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    /// As given.
    pub path: String,
    /// Bytes per I/O, `-b`.
    pub block_size: u32,
    /// The effective alignment or stride in bytes, never 0 (`-r`, `-s`; default: the block size).
    pub alignment: u64,
    /// Percent of random I/O: 0 sequential, 100 random.
    pub random_ratio: u32,
    /// `-si`.
    pub interlocked: bool,
    /// `-B`.
    pub base_file_offset: u64,
    /// `-f`, or `-B` with a length: exclusive upper offset, 0 for none.
    pub max_file_size: u64,
    /// `-c`: create with that size.
    pub file_size: Option<u64>,
    /// `-o`.
    pub request_count: u32,
    /// `-t`.
    pub threads_per_file: u32,
    /// `-T`.
    pub thread_stride: u64,
    /// `-w`, percent.
    pub write_ratio: u32,
    /// `-g`.
    pub throughput: Throughput,
    /// `-i`.
    pub burst_size: u32,
    /// `-j`, milliseconds.
    pub think_time: u32,
    /// `-fs`.
    pub sequential_scan: bool,
    /// `-fr`.
    pub random_access: bool,
    /// `-ft`.
    pub temporary_file: bool,
    /// `-l`.
    pub use_large_pages: bool,
    /// `-Sb -Su -Sr`.
    pub cache: CacheMode,
    /// `-Sw`.
    pub write_through: bool,
    /// `-Sm`.
    pub memory_mapped: bool,
    /// `-N`.
    pub flush: Option<FlushType>,
    /// `-Sy -SY`.
    pub bypass_io: Option<BypassIo>,
    /// `-Z`.
    pub write_content: WriteContent,
    /// `-p`.
    pub parallel_async: bool,
    /// `-I`: 1 very low, 2 low, 3 normal.
    pub io_priority: u32,
    /// Share in a weighted pool.
    pub weight: u32,
    /// `-rd`, including the tail that was added (spec 6.6).
    pub distribution: Option<Distribution>,
    /// Threads of the pool that work on it; empty for all.
    pub thread_targets: Vec<ThreadTarget>,
}

impl Default for Target {
    fn default() -> Self {
        Self {
            path: String::new(),
            block_size: 65536,
            alignment: 65536,
            random_ratio: 0,
            interlocked: false,
            base_file_offset: 0,
            max_file_size: 0,
            file_size: None,
            request_count: 2,
            threads_per_file: 1,
            thread_stride: 0,
            write_ratio: 0,
            throughput: Throughput::default(),
            burst_size: 0,
            think_time: 0,
            sequential_scan: false,
            random_access: false,
            temporary_file: false,
            use_large_pages: false,
            cache: CacheMode::Cached,
            write_through: false,
            memory_mapped: false,
            flush: None,
            bypass_io: None,
            write_content: WriteContent::Sequential,
            parallel_async: false,
            io_priority: 3,
            weight: 1,
            distribution: None,
            thread_targets: Vec::new(),
        }
    }
}

impl Target {
    /// Whether the path is a place to be filled in (`*1`).
    #[must_use]
    pub fn is_template(&self) -> bool {
        self.path.starts_with('*')
    }

    /// Whether a limit or a burst holds it back.
    #[must_use]
    pub fn is_paced(&self) -> bool {
        self.throughput.value > 0 || self.think_time > 0
    }
}

/// A throughput limit per thread and target (spec 6.9).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Throughput {
    /// 0 for none.
    pub value: u32,
    /// Its unit.
    pub unit: ThroughputUnit,
}

/// Unit of a throughput limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ThroughputUnit {
    /// Bytes per millisecond.
    #[default]
    BytesPerMilli,
    /// I/Os per second at the block size.
    Iops,
}

/// Which caches a target's I/O passes (spec 11.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CacheMode {
    /// The page cache.
    #[default]
    Cached,
    /// O_DIRECT.
    NoOsCache,
    /// Remote file systems only.
    NoLocalCache,
}

/// What follows a write to a mapped target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FlushType {
    /// `-Nv`.
    ViewOfFile,
    /// `-Nn`.
    NonVolatileMemory,
    /// `-Ni`.
    NonVolatileMemoryNoDrain,
}

/// How far a storage stack may be bypassed (spec 15.6); Linux has no such switch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BypassIo {
    /// `-Sy`.
    Partial,
    /// `-SY`.
    Full,
}

/// What writes contain (spec 6.8).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum WriteContent {
    /// Bytes 0, 1, … 255 repeating.
    #[default]
    Sequential,
    /// `-Z`.
    Zero,
    /// `-Z<size>[,<file>]`.
    Random {
        /// Bytes of the shared source.
        size: u64,
        /// Where they come from; `None` for random fill.
        file: Option<String>,
    },
}

/// Random I/O that prefers parts of the target (spec 3.5, 6.6).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Distribution {
    /// What sizes mean.
    pub kind: DistributionKind,
    /// Cumulative, tail included.
    pub ranges: Vec<DistributionRange>,
}

/// Unit of a distribution's sizes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DistributionKind {
    /// Percent of the target.
    Percent,
    /// Bytes; 0 in the last range means to the end.
    Absolute,
}

/// One range of a distribution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DistributionRange {
    /// Percent of the I/O; 0 is a hole.
    pub io: u32,
    /// Percent of the target, or bytes.
    pub size: u64,
}

/// A pool thread that works on a target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ThreadTarget {
    /// Its number.
    pub thread: u32,
    /// 0 for the target's own weight.
    pub weight: u32,
}
