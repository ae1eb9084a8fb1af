//! Whether what a run takes fits into memory. Buffers are reserved without a promise and touched one by
//! one, so too many of them end not in an error but in the kernel killing programs. Intervals and threads
//! grow with numbers that a profile may make as large as it likes; they are known before a file is made.

use plumb_io::BufferPlacement;
use plumb_io::system_tree::SystemTree;
use plumb_units::{Bytes, convert};

use crate::plan::{ThreadPlan, takes_from_source};
use crate::profile::model::{TimeSpan, WriteContent};
use crate::tally::IopsSeries;

/// More buffers than memory.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error(
    "the I/O buffers and intervals of this time span take {}, and {} of memory are available",
    Bytes(*wanted).in_words(),
    Bytes(*available).in_words()
)]
#[diagnostic(
    code(plumb::load::memory),
    help(
        "choose smaller values of -b, -o, -O, -t, -F or -Z<size>: each thread has a buffer per request; with \
         -D, a larger one or a shorter -d"
    )
)]
pub(super) struct TooMuch {
    wanted: u64,
    available: u64,
}

/// More intervals than memory.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error(
    "the intervals of -D take {}, and {} of memory are available: the largest time span has {intervals} \
     intervals of {interval_ms} ms in {seconds} s, kept for each target",
    Bytes(*wanted).in_words(),
    Bytes(*available).in_words()
)]
#[diagnostic(
    code(plumb::load::intervals),
    help("choose a larger -D (IoBucketDuration), a shorter -d (Duration), or fewer targets")
)]
pub(super) struct TooManyIntervals {
    wanted: u64,
    available: u64,
    intervals: u64,
    interval_ms: u32,
    seconds: u32,
}

/// More threads than the kernel has room for: it would end the process in the middle of their start.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error(
    "{threads} threads need some {needed} memory mappings, and this system allows a process {allowed} \
     (vm.max_map_count)"
)]
#[diagnostic(
    code(plumb::load::threads),
    help("use fewer threads (-t, -F), or raise the limit: sysctl vm.max_map_count={needed}")
)]
pub(super) struct TooManyThreads {
    threads: u64,
    needed: u64,
    allowed: u64,
}

/// Mappings of a thread: its stack, its signal stack and the guards of both, ring, entries, buffers.
const MAPPINGS_PER_THREAD: u64 = 9;
/// Mappings of everything else.
const MAPPINGS_OF_PROCESS: u64 = 1000;

/// Compares what `threads` will map with what the kernel allows. Their plans need not be made for that:
/// those of too many threads are too large themselves.
///
/// # Errors
/// When it is more.
pub(super) fn check_threads(threads: u64, tree: &SystemTree) -> Result<(), TooManyThreads> {
    let allowed = tree.text("/proc/sys/vm/max_map_count").unwrap_or_default();
    let Ok(allowed) = allowed.trim().parse::<u64>() else { return Ok(()) };
    let needed = threads.saturating_mul(MAPPINGS_PER_THREAD).saturating_add(MAPPINGS_OF_PROCESS);
    if needed > allowed { Err(TooManyThreads { threads, needed, allowed }) } else { Ok(()) }
}

/// Series that reports make of all targets' series of a time span: reads, writes and both, beside the reads and the
/// writes of one thread.
const SERIES_OF_REPORTS: u64 = 5;

/// Compares the counters of all intervals, which results keep to the end, with what is to be had.
///
/// # Errors
/// When they are more.
pub(super) fn check_intervals(
    spans: &[TimeSpan],
    tree: &SystemTree,
) -> Result<(), TooManyIntervals> {
    let wanted = spans.iter().map(of_intervals).fold(0, u64::saturating_add);
    let Some(available) = of_system(tree).filter(|available| wanted > *available) else {
        return Ok(());
    };
    let Some(largest) = spans.iter().max_by_key(|span| of_intervals(span)) else { return Ok(()) };
    Err(TooManyIntervals {
        wanted,
        available,
        intervals: IopsSeries::capacity(largest.io_bucket_duration, largest.duration),
        interval_ms: largest.io_bucket_duration,
        seconds: largest.duration,
    })
}

/// Bytes of the intervals of a time span: two directions of each target, and the reports'.
fn of_intervals(span: &TimeSpan) -> u64 {
    if !span.calculate_iops_std_dev {
        return 0;
    }
    let series = convert::to_u64(span.targets.len()) * 2 + SERIES_OF_REPORTS;
    IopsSeries::bytes(span.io_bucket_duration, span.duration).saturating_mul(series)
}

/// Compares what the threads will touch with what the kernel says is to be had.
///
/// # Errors
/// When it is more.
pub(super) fn check(
    span: &TimeSpan,
    plans: &[ThreadPlan],
    tree: &SystemTree,
) -> Result<(), TooMuch> {
    let Some(available) = of_system(tree) else { return Ok(()) };
    let wanted = wanted(span, plans).saturating_add(of_intervals(span));
    if wanted > available { Err(TooMuch { wanted, available }) } else { Ok(()) }
}

/// Bytes of all buffers and write sources. Large pages are not counted: they are set aside already.
fn wanted(span: &TimeSpan, plans: &[ThreadPlan]) -> u64 {
    let source = |index: usize| match &span.targets[index].write_content {
        WriteContent::Random { size, .. } if takes_from_source(&span.targets[index]) => *size,
        _ => 0,
    };
    let shared = (0..span.targets.len()).map(source).fold(0, u64::saturating_add);
    let threads = plans.iter().filter(|plan| plan.placement != BufferPlacement::LargePages);
    threads.fold(shared, |sum, plan| {
        let lanes = plan.regions(span).into_iter().flat_map(|region| region.lanes);
        let buffers = lanes.map(|lane| u64::from(lane.slots) * u64::from(lane.bytes));
        // Threads whose buffers lie apart have copies of the sources (spec 15.4).
        let apart = matches!(plan.placement, BufferPlacement::Separated(_));
        let copies = plan.sources(span).map(source).filter(|_| apart);
        buffers.chain(copies).fold(sum, u64::saturating_add)
    })
}

/// Bytes that are to be had, if the kernel says.
pub(super) fn of_system(tree: &SystemTree) -> Option<u64> {
    available(&tree.text("/proc/meminfo").unwrap_or_default())
}

/// `MemAvailable` of /proc/meminfo, which counts in KiB.
fn available(meminfo: &str) -> Option<u64> {
    let value = meminfo.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    value.trim().strip_suffix(" kB")?.parse().ok().map(|kib: u64| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{PlanOptions, SpanPlan, plan};
    use crate::profile::model::Target;

    fn check_sum(target: Target, separation: u64, want: u64) {
        let span = TimeSpan { targets: vec![target], ..TimeSpan::default() };
        let options = PlanOptions { separation, ..PlanOptions::default() };
        let SpanPlan { threads } = plan(&span, options);
        assert_eq!(wanted(&span, &threads), want, "{span:?}");
    }

    #[test]
    fn each_thread_has_a_buffer_per_request_and_direction() {
        let reads =
            Target { block_size: 4096, request_count: 8, threads_per_file: 3, ..Target::default() };
        check_sum(reads.clone(), 0, 3 * 8 * 4096);
        check_sum(Target { write_ratio: 100, ..reads.clone() }, 0, 3 * 8 * 4096);
        check_sum(Target { write_ratio: 50, ..reads.clone() }, 0, 2 * 3 * 8 * 4096);
        check_sum(Target { use_large_pages: true, ..reads.clone() }, 0, 0);
        let content = WriteContent::Random { size: 1 << 20, file: None };
        let sourced = Target { write_ratio: 50, write_content: content, ..reads };
        let buffers = {
            let span = TimeSpan { targets: vec![sourced.clone()], ..TimeSpan::default() };
            let options = PlanOptions::default();
            wanted(&span, &plan(&span, options).threads) - (1 << 20)
        };
        check_sum(sourced, 16 << 20, buffers + (1 << 20) + 3 * (1 << 20));
    }

    #[test]
    fn intervals_are_counted_by_target_and_direction() {
        let target = |threads| Target { threads_per_file: threads, ..Target::default() };
        let mut span = TimeSpan {
            duration: 3,
            io_bucket_duration: 500,
            targets: vec![target(2), target(3)],
            ..TimeSpan::default()
        };
        assert_eq!(of_intervals(&span), 0, "without -D");
        span.calculate_iops_std_dev = true;
        let series = 6 * convert::to_u64(size_of::<crate::tally::IntervalCell>());
        assert_eq!(IopsSeries::bytes(500, 3), series);
        assert_eq!(of_intervals(&span), (2 * 2 + SERIES_OF_REPORTS) * series);
        span.thread_count = 800;
        assert_eq!(
            of_intervals(&span),
            (2 * 2 + SERIES_OF_REPORTS) * series,
            "whatever the threads"
        );
        span =
            TimeSpan { duration: u32::MAX, io_bucket_duration: 1, targets: span.targets, ..span };
        let intervals = u64::from(u32::MAX) * 1000;
        assert_eq!(of_intervals(&span) / intervals, (2 * 2 + SERIES_OF_REPORTS) * (series / 6));
    }

    #[test]
    fn what_is_available_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:      24 kB\n"), Some(24 << 10));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }
}
