//! Whether a time span's buffers fit into memory. They are reserved without a promise and touched one
//! by one, so too many of them end not in an error but in the kernel killing programs.

use plumb_io::BufferPlacement;
use plumb_io::system_tree::SystemTree;
use plumb_units::{Bytes, convert};

use crate::plan::{ThreadPlan, takes_from_source};
use crate::profile::model::{TimeSpan, WriteContent};

/// More buffers than memory.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error(
    "the I/O buffers of this time span take {}, and {} of memory are available",
    Bytes(*wanted),
    Bytes(*available)
)]
#[diagnostic(
    code(plumb::load::memory),
    help(
        "choose smaller values of -b, -o, -O, -t, -F or -Z<size>: each thread has a buffer per request"
    )
)]
pub(super) struct TooMuch {
    wanted: u64,
    available: u64,
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

/// Compares what the threads will map with what the kernel allows.
///
/// # Errors
/// When it is more.
pub(super) fn check_threads(plans: &[ThreadPlan], tree: &SystemTree) -> Result<(), TooManyThreads> {
    let allowed = tree.text("/proc/sys/vm/max_map_count").unwrap_or_default();
    let Ok(allowed) = allowed.trim().parse::<u64>() else { return Ok(()) };
    let threads = convert::to_u64(plans.len());
    let needed = threads * MAPPINGS_PER_THREAD + MAPPINGS_OF_PROCESS;
    if needed > allowed { Err(TooManyThreads { threads, needed, allowed }) } else { Ok(()) }
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
    let wanted = wanted(span, plans);
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
        let options = PlanOptions { processors: &[], separation, batch: None };
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
            let options = PlanOptions { processors: &[], separation: 0, batch: None };
            wanted(&span, &plan(&span, options).threads) - (1 << 20)
        };
        check_sum(sourced, 16 << 20, buffers + (1 << 20) + 3 * (1 << 20));
    }

    #[test]
    fn what_is_available_is_read() {
        assert_eq!(available("MemTotal: 9 kB\nMemAvailable:      24 kB\n"), Some(24 << 10));
        assert_eq!(available("MemTotal: 9 kB\n"), None);
    }
}
