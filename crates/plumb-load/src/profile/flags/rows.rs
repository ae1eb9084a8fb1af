//! The one table of all options: parsing, help and reference are made from it.

use super::table::Value::{None as Nothing, Optional, Required};
use super::table::{Group, Id, OptionRow, Scope, Shape};
use crate::profile::error::ErrorClass;

/// A row each: what it does, short form, long name, value, shape of a value of the long form, class of
/// an error in the value, what it is said of: one line of help (default in brackets), details.
macro_rules! options {
    ($($group:ident {$(
        $id:ident $short:literal $long:literal $value:expr, $shape:expr, $class:ident, $scope:ident:
        $help:literal, $details:literal;
    )+})+) => {
        /// Every option, in the order of the help.
        pub static OPTIONS: &[OptionRow] = &[$($(OptionRow {
            id: Id::$id,
            short: $short,
            long: $long,
            value: $value,
            shape: $shape,
            group: Group::$group,
            scope: Scope::$scope,
            class: ErrorClass::$class,
            help: $help,
            details: $details,
        }),+),+];
    };
}

options! {
Pattern {
    BlockSize "-b" "block-size" Required("<size>"), Shape::Digit, BlockSize, Target:
        "size of each I/O [64K]",
        "Above 0 and below 4 GiB - 1. The last one wins and counts for every size in blocks (`b`) on the \
         line, before it too; in `-b` itself `b` is the block size so far.";
    Random "-r" "random" Optional("<size>"), Shape::Digit, Alignment, Target:
        "random I/O, aligned to <size> [block size]",
        "Once. Not after `-s`.";
    RandomPercent "-rs" "random-percent" Required("<pct>"), Shape::Any, RandomRatio, Target:
        "<pct> percent random I/O, the rest sequential",
        "1..100; the alignment is that of `-r`, which may come before or after. A second one only \
         replaces 100. Not after `-s`.";
    Distribution "-rd" "distribution" Required("<dist>"), Shape::Any, Distribution, Target:
        "where random I/O goes: pct90/10:5/20, abs90/10G",
        "`pct<io>/<target>[:<io>/<target>...]` or `abs<io>/<size>[:...]`: each pair sends `io` percent of \
         the I/O to the next `target` percent, or bytes, of the target. An `io` of 0 leaves a hole. What is \
         missing to 100 percent of the I/O goes to the rest of the target. The last one wins. Needs \
         random I/O.";
    Sequential "-s" "sequential" Optional("<size>"), Shape::Digit, Stride, Target:
        "sequential I/O in steps of <size> [block size]",
        "Once, and not after `-r` or `-rs`. 0 means the block size.";
    Interlocked "-si" "interlocked" Optional("<size>"), Shape::Any, Stride, Target:
        "sequential across all threads of a target",
        "As `-s`, but the threads share one position, so that together they are sequential.";
    ParallelAsync "-p" "parallel-async" Nothing, Shape::Fixed(""), BadNumber, Target:
        "all requests of a thread walk the same sequence",
        "Sequential I/O only; without effect with `-o1`.";
    WritePercent "-w" "write-percent" Required("<pct>"), Shape::Any, WriteRatio, Target:
        "percent of writes [0]",
        "0..100. The last one wins.";
}
Area {
    Create "-c" "create" Required("<size>"), Shape::Any, FileSize, Target:
        "create the files with that size before the run",
        "Existing files are made anew. 0 creates nothing. Drives and partitions are never created. \
         The last one wins.";
    BaseOffset "-B" "base-offset" Required("<base>[:<len>]"), Shape::Any, BaseOffset, Target:
        "first offset, and how much after it is used [0]",
        "Once. With a length, not together with `-f<size>`: both set the maximum offset.";
    MaxOffset "-f" "max-offset" Required("<size>"), Shape::Digit, MaxOffset, Target:
        "stay below this offset [0: size of the target]",
        "Once, and not together with a length of `-B`.";
    OpenHint "-f" "open-hint" Required("<r|s|t>..."), Shape::NotDigit, Hint, Target:
        "expect random or sequential access, temporary file",
        "Any of the letters `r`, `s`, `t`; repeats add up.";
    ThreadStride "-T" "thread-stride" Required("<size>"), Shape::Any, ThreadStride, Target:
        "distance between the starts of consecutive threads",
        "Above 0. Sequential I/O with several threads on a target; not with `-si`. The last one wins.";
}
Content {
    ZeroBuffers "-Z" "zero-buffers" Nothing, Shape::Fixed(""), WriteBuffer, Target:
        "write zeros [bytes 0, 1, ... 255, repeating]",
        "Without effect beside `-Z<size>`.";
    RandomWriteData "-Zr" "random-write-data" Nothing, Shape::Fixed(""), WriteBuffer, TimeSpan:
        "fresh random content for every write",
        "Costs processor time for every write: compare only results that were made with it.";
    WriteSource "-Z" "write-source" Required("<size>[,<file>]"), Shape::Digit, WriteBuffer, Target:
        "writes take their content from a shared buffer",
        "The buffer of that size, at least a block, is filled from the file, or with random bytes if there \
         is none. Everything after the first comma is the path. The last one wins.";
    LargePages "-l" "large-pages" Nothing, Shape::Fixed(""), BadNumber, Target:
        "large pages for I/O buffers",
        "Takes precedence over `-bsp`.";
    BufferSeparation "-bs" "buffer-separation" Required("<n|p>"), Shape::Any, BufferSeparation, TimeSpan:
        "place of the threads' buffers: n system, p apart [p]",
        "`p` places the buffers so that no two threads share a cache line of page-table entries; `n` leaves \
         them where the system puts them. The last one wins. Accepted beside `-X` without effect.";
}
Threads {
    Threads "-t" "threads" Required("<n>"), Shape::Any, BadNumber, Target:
        "threads per target [1]",
        "The last one wins. Not above 1 together with `-F`.";
    PoolThreads "-F" "pool-threads" Required("<n>"), Shape::Any, BadNumber, TimeSpan:
        "a pool of <n> threads that work on all targets",
        "The last one wins. Not with `-t` above 1.";
    Outstanding "-o" "outstanding" Required("<n>"), Shape::Not("c"), BadNumber, Target:
        "outstanding I/Os per target and thread [2]",
        "At most 65536. The last one wins.";
    ThreadOutstanding "-O" "thread-outstanding" Required("<n>"), Shape::Any, BadNumber, TimeSpan:
        "outstanding I/Os per pool thread, with -F",
        "At most 65536. Each request picks a target anew for every I/O. Without effect unless `-F` is given.";
    CompletionDepth "-oc" "completion-depth" Required("<n>"), Shape::Any, CompletionDepth, TimeSpan:
        "completions taken per visit, 1..16 [16]",
        "The last one wins. Not with `-x` nor for mapped targets alone; without effect with `-u`.";
    IoRing "-u" "io-ring" Optional("<batch>[p]"), Shape::Not("n"), IoRing, TimeSpan:
        "submit through a ring, registered buffers [25p]",
        "Completions to gather before the next submission: 1..65536 I/Os or, with `p`, 1..100 percent of a \
         thread's requests. A later one without a number keeps the batch. Not with `-x` or `-Sm`.";
    IoRingUnregistered "-un" "io-ring-unregistered" Optional("<batch>[p]"), Shape::Any, IoRing, TimeSpan:
        "the same without registered buffers",
        "As `-u`; the last one decides whether buffers are registered.";
    CompletionRoutines "-x" "completion-routines" Nothing, Shape::Fixed(""), BadNumber, TimeSpan:
        "completion routines instead of completion ports",
        "Not with `-g`, `-u`, `-oc` or `-Sm`.";
    Throughput "-g" "throughput" Required("<n>[i]"), Shape::Any, Throughput, Target:
        "limit per thread and target: bytes/ms, i: IOPS",
        "The last one wins, unit included. Not with `-x`.";
    BurstSize "-i" "burst-size" Required("<n>"), Shape::Any, BadNumber, Target:
        "I/Os per burst, with -j",
        "The last one wins.";
    ThinkTime "-j" "think-time" Required("<ms>"), Shape::Any, BadNumber, Target:
        "pause between bursts in milliseconds, with -i",
        "The last one wins.";
    IoPriority "-I" "io-priority" Required("<n>"), Shape::Any, Priority, Target:
        "I/O priority: 1 very low, 2 low, 3 normal [3]",
        "The last one wins. Needs an I/O scheduler that knows priorities.";
}
Time {
    Duration "-d" "duration" Required("<s>"), Shape::Any, BadNumber, TimeSpan:
        "measured seconds [10]",
        "The last one wins.";
    Warmup "-W" "warmup" Required("<s>"), Shape::Any, BadNumber, TimeSpan:
        "seconds before the measurement [5]",
        "The last one wins.";
    Cooldown "-C" "cooldown" Required("<s>"), Shape::Any, BadNumber, TimeSpan:
        "seconds after the measurement [0]",
        "The last one wins.";
    Seed "-z" "seed" Optional("<seed>"), Shape::Any, Seed, TimeSpan:
        "seed of the random numbers [0; without a value: time]",
        "32 bits: larger values count as 4294967295, negative ones wrap around. Without a value the \
         milliseconds since the system was started.";
}
Cache {
    Cache "-S, -Su" "unbuffered" Nothing, Shape::Fixed("u"), CacheMode, Target:
        "without the page cache (O_DIRECT)",
        "Letters of `-S` combine: `-Suw`. Not with `-Sb`, `-Sr`, `-Sm`.";
    Cache "-Sb" "cached" Nothing, Shape::Fixed("b"), CacheMode, Target:
        "with the page cache, the default",
        "Not with `-Su`, `-Sr`.";
    Cache "-Sr" "no-local-cache" Nothing, Shape::Fixed("r"), CacheMode, Target:
        "without the local cache of a remote file system",
        "Not with `-Su`, `-Sb`.";
    Cache "-Sw" "write-through" Nothing, Shape::Fixed("w"), CacheMode, Target:
        "writes reach stable storage before they complete",
        "With every cache mode.";
    Cache "-Sh" "no-cache" Nothing, Shape::Fixed("h"), CacheMode, Target:
        "-Su and -Sw",
        "Not with any other of `-Su`, `-Sb`, `-Sr`, `-Sw`, `-Sm`.";
    Cache "-Sm" "mmap" Nothing, Shape::Fixed("m"), CacheMode, Target:
        "memory mapped I/O",
        "Not with `-Su`, `-Sh`, `-x`, `-u`.";
    Cache "-Sy, -SY" "bypass-io" Required("<partial|full>"),
        Shape::Words(&["partial", "full"]), BypassIo, Target:
        "skip file system filters; needs -Su and no writes",
        "Linux has no such switch: partial runs without it and says so, full fails.";
    DisableAllCache "-h" "disable-all-cache" Nothing, Shape::Fixed(""), CacheMode, Target:
        "deprecated spelling of -Sh",
        "Not with any other of `-Su`, `-Sb`, `-Sr`, `-Sw`, `-Sm`.";
    MmapFlush "-N" "mmap-flush" Required("<v|n|i>"), Shape::Any, FlushMode, Target:
        "flush mapped writes: v view, n nonvolatile, i no drain",
        "In either case. The last one wins. Needs `-Sm`.";
}
Processors {
    AffinityDefault "-a, -ag" "affinity-default" Nothing, Shape::Fixed(""), Affinity, TimeSpan:
        "threads take the processors in turn, the default",
        "";
    Affinity "-a" "affinity" Required("<list>"), Shape::Affinity, Affinity, TimeSpan:
        "processors for the threads: 0,4-7 or g1,0-3 or g1",
        "`[g<group>,]<cpu>[-<cpu>][,...]`; `g<group>` alone is the whole group. A group is 64 processor \
         numbers; processors up to 255 are accepted in each. Every option starts at group 0, repeats append. \
         Not with `-n`.";
    AffinityOrder "-ac" "affinity-core-aware" Nothing, Shape::Fixed("c"), Affinity, TimeSpan:
        "one processor of each core before second ones",
        "The letters of the order combine: `-acsE`.";
    AffinityOrder "-as" "affinity-span-groups" Nothing, Shape::Fixed("s"), Affinity, TimeSpan:
        "across all groups, not group by group",
        "";
    AffinityOrder "-ap" "affinity-p-first" Nothing, Shape::Fixed("p"), Affinity, TimeSpan:
        "faster processors first, the default",
        "One efficiency order per line.";
    AffinityOrder "-aP" "affinity-fill-p" Nothing, Shape::Fixed("P"), Affinity, TimeSpan:
        "second ones of faster cores before slower ones",
        "One efficiency order per line.";
    AffinityOrder "-ae" "affinity-e-first" Nothing, Shape::Fixed("e"), Affinity, TimeSpan:
        "slower processors first",
        "One efficiency order per line.";
    AffinityOrder "-aE" "affinity-fill-e" Nothing, Shape::Fixed("E"), Affinity, TimeSpan:
        "second ones of slower cores before faster ones",
        "One efficiency order per line.";
    AffinityOrder "-aup" "affinity-unordered" Nothing, Shape::Fixed("up"), Affinity, TimeSpan:
        "no order between fast and slow processors",
        "One efficiency order per line; not combined with other letters.";
    NoAffinity "-n" "no-affinity" Nothing, Shape::Fixed(""), BadNumber, TimeSpan:
        "let the system place the threads",
        "Not with a list or an order of processors.";
}
Results {
    Latency "-L" "latency" Nothing, Shape::Fixed(""), BadNumber, TimeSpan:
        "measure latency",
        "";
    IopsInterval "-D" "iops-interval" Optional("<ms>"), Shape::Any, BadNumber, TimeSpan:
        "count I/Os per interval, for their deviation [1000]",
        "A value of 0 or less keeps the interval. The latencies of each interval go to a scratch file without a \
         name in `TMPDIR` (`/tmp`) as it ends: name a folder beside the disk that is measured.";
    ResultFormat "-R" "result-format" Required("<text|xml>"), Shape::Not("ps"), ResultFormat, Profile:
        "format of the result [text]",
        "The last one wins.";
    Verbose "-v" "verbose" Nothing, Shape::Fixed(""), Verbose, Profile:
        "say what happens while it happens",
        "";
    VerboseStats "-vs" "verbose-stats" Nothing, Shape::Fixed(""), Verbose, Profile:
        "additional statistics: how threads waited",
        "";
    Progress "-P" "progress" Optional("<n>"), Shape::Any, BadNumber, Profile:
        "a dot for every <n> I/Os of a thread [65536]",
        "A value below 1 counts as 65536.";
    Trace "-e" "trace" Required("<x>"), Shape::Any, Etw, Profile:
        "kernel events: DISK_IO, PROCESS, THREAD, ...",
        "One of PROCESS, THREAD, IMAGE_LOAD, DISK_IO, MEMORY_PAGE_FAULTS, MEMORY_HARD_FAULTS, NETWORK, \
         REGISTRY, or `q`, `s`, `c` for the clock and `p` for paged memory. Repeats add up.";
}
Profiles {
    Profile "-X" "profile" Required("<file>"), Shape::Any, XmlLoad, Profile:
        "read the workload from an XML profile",
        "Targets replace `*1`, `*2`, ... in it. Other options of the workload do not go with it, but for \
         those marked so. Once.";
    ProfileOnly "-Rp" "profile-only" Optional("<text|xml>"), Shape::Not("s"), ResultFormat, Profile:
        "print the profile, run nothing",
        "Without a value in the format of `-R`.";
    ExperimentFlags "-:" "experiment-flags" Required("<n>"), Shape::Any, BadNumber, Profile:
        "bit mask; 1: limits may sleep more than 1 ms",
        "";
}
Events {
    SignalStart "-ys" "signal-start" Required("<name>"), Shape::Any, Sync, Profile:
        "signal an event when the measurement starts",
        "Events are created unless they exist.";
    SignalFinish "-yf" "signal-finish" Required("<name>"), Shape::Any, Sync, Profile:
        "signal an event when the measurement ends",
        "Events are created unless they exist.";
    WaitStart "-yr" "wait-start" Required("<name>"), Shape::Any, Sync, Profile:
        "wait for an event before the warm-up",
        "Events are created unless they exist.";
    StopEvent "-yp" "stop-event" Required("<name>"), Shape::Any, Sync, Profile:
        "stop when an event is signalled",
        "Events are created unless they exist.";
    SignalEvent "-ye" "signal-event" Required("<name>"), Shape::Any, Sync, Program:
        "signal an existing event and exit (code 1)",
        "Needs no target.";
}
General {
    Help "-?" "help" Nothing, Shape::Fixed(""), LongOption, Program:
        "print this help",
        "";
    Version "" "version" Nothing, Shape::Fixed(""), LongOption, Program:
        "print name and version",
        "";
    SystemInfo "-Rs" "system-info" Optional("<text|xml>"), Shape::Any, ResultFormat, Program:
        "print what is known of this system",
        "Goes with no other option and with no target.";
}
Plumb {
    Json "" "json" Nothing, Shape::Fixed(""), LongOption, Program:
        "result as JSON on standard output",
        "It takes the place of the format of `-R` there; `--output json=<file>` writes a file.";
    Output "" "output" Required("<format>=<file>"), Shape::Any, LongOption, Program:
        "additionally write the result to a file",
        "The format is text, xml or json. May be repeated, with a file of its own each.";
    Store "" "store" Optional("<label>"), Shape::Any, LongOption, Program:
        "keep the result, to be found by plumb runs",
        "With the environment before and after the run, and under a label if one is given; several runs may \
         share it. `plumb runs list` shows what is kept. The last one wins.";
    ProfileJson "" "profile-json" Nothing, Shape::Fixed(""), LongOption, Program:
        "print the normalised profile as JSON, run nothing",
        "The profile is checked as for a run, unless `-Rp` is given too.";
    ErrorFormat "" "error-format" Required("<text|json>"),
        Shape::Words(&["text", "json"]), LongOption, Program:
        "how errors are reported [text]",
        "json: one object with error_class, message, token and help. Holds wherever it stands on the line. \
         Standard error is then JSON lines: warnings and notes have severity and message; progress is shown \
         only if `--progress-style` asks for it. What `-v` says remains text, with a document on standard \
         output there too.";
    ProgressStyle "" "progress-style" Required("<style>"),
        Shape::Words(&["auto", "plain", "json", "none"]), LongOption, Program:
        "auto, plain, json or none [auto]",
        "How the progress of a run is shown on standard error.";
    Engine "" "engine" Required("<name>"),
        Shape::Words(&["auto", "uring", "aio", "threads", "sync", "null", "nop", "nop-file"]), LongOption, Program:
        "uring, aio, threads, sync, null, nop, nop-file [auto]",
        "Who performs the I/O. null completes everything at once, nop makes the kernel do nothing, nop-file has it look up a file \
         and a buffer first, as for a read: all three measure Plumb itself.";
    Destroy "" "destroy" Required("<path>"), Shape::Any, LongOption, Program:
        "a target whose content may be overwritten",
        "Needed to write to a device that holds data. May be repeated.";
    Batch "" "batch" Required("<n>"), Shape::Any, BadNumber, Program:
        "submissions gathered per system call, 1..4096",
        "Without it 8 when latency is measured, and up to 3/4 of a thread's requests (24 of 32), at most 64, while a burst of \
         completions leaves that many idle; else 32. Of no account with `-u`, which has a batch of its own, and for threads \
         with one request. The last one wins.";
    Rate "" "rate" Required("<n>"), Shape::Any, BadNumber, Program:
        "open loop: <n> I/Os per second of the whole run",
        "I/Os start at times fixed in advance, whatever the device does. Targets share the rate by weight, \
         threads of a target evenly. Latencies are then response times, from the intended start; service \
         times and lag stand beside them. Implies `-L`; without `-o`, with `-X` where the profile has no \
         `RequestCount`, requests are plenty. Does not go with \
         `-g`, `-i`, `-j` and `-x`. The last one wins.";
    Arrival "" "arrival" Required("<how>"), Shape::Any, LongOption, Program:
        "of --rate: uniform, poisson, burst:<n>/<ms> [uniform]",
        "uniform: at equal distances. poisson: at random, by the seed (`-z`). burst: <n> I/Os spread over \
         <ms> milliseconds, 0 for all at once, then none until the rate asks for the next burst.";
    Poll "" "poll" Nothing, Shape::Fixed(""), LongOption, Program:
        "ask the device for completions (IOPOLL)",
        "For I/O past the page cache (`-Su`, `-Sh`) on devices with polled queues (NVMe with poll_queues); \
         refused elsewhere. Takes io_uring. A waiting thread spins.";
    SubmitThread "" "sqpoll" Nothing, Shape::Fixed(""), LongOption, Program:
        "a thread of the kernel submits (SQPOLL)",
        "Takes io_uring, and a processor more for each load thread. Its CPU time is in the result. Does not go \
         with `-u`, which says when to submit.";
    Truth "" "truth" Nothing, Shape::Fixed(""), LongOption, Program:
        "hold latencies against what the block device saw",
        "Follows the kernel's block tracepoints, matched I/O by I/O: device latencies beside the reported ones, \
         and how late completions were seen. Takes root and tracefs; implies `-L`. Tracing costs time of its \
         own. Writes that a flush follows (`-Sw`, `-Sh`) are left out. Does not go with `-D`, `--rate` and `-Sm`.";
    Verify "" "verify" Required("<crc32c>"), Shape::Words(&["crc32c"]), LongOption, Program:
        "check that what is read is what was written",
        "Every 512 bytes written carry target, offset, generation and a CRC-32C; reads are compared with the \
         last acknowledged write, and after the run all that was written is read back. A mismatch is stale, \
         misplaced, torn or foreign; it ends the run with exit code 1. Rates are not those of a run without. \
         Does not go with `-Z`, `-Sm`, and engines that keep nothing.";
    VerifyState "" "verify-state" Required("<file>"), Shape::Any, LongOption, Program:
        "of --verify: keep what was acknowledged in a file",
        "A file of its own: no target and no output. The next run with the file first checks that all of it is still there, also after a crash or a \
         power cut. Targets that the file knows are not made anew (`-c`).";
    OnError "" "on-error" Required("<stop|continue>"),
        Shape::Words(&["stop", "continue"]), LongOption, Program:
        "what a failed I/O does to the run [stop]",
        "Failed I/Os are counted and reported either way.";
    AcceptOlder "" "accept-older" Nothing, Shape::Fixed(""), LongOption, Program:
        "read a pool also from disks that it went on without",
        "Of virtual disks (`space:POOL/VDISK`) that are only read, where half of the pool's voting disks or fewer are here and this \
         machine saw the pool go on without them. Blocks that were written since are zeros or what they held before; nothing is \
         written to the pool.";
}
}
