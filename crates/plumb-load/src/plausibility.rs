//! What speaks for or against the figures of a run.
//!
//! A wrong figure looks like a right one: reads that the page cache served, a file of holes, direct
//! I/O that was not direct, a generator at its limit. Each check yields one sentence and a verdict.
//! What is read from the system stands here; what follows from it is in the modules below, pure.

mod processor;
mod target;
mod traffic;

pub(crate) use processor::per_io_item;

use std::os::fd::BorrowedFd;

use plumb_io::block_stack::{BlockDevice, BlockStack, DiskFacts, DiskStats};
use plumb_io::io_wq::{CpuSpent, ProcessCpu};
use plumb_io::system_tree::SystemTree;
use plumb_io::topology::Topology;
use plumb_units::Nanos;

use crate::result::model::{CpuUsage, Plausibility, PlausibilityItem};
use crate::tally::cpu::CpuTimes;

pub use target::{Allocation, DirectProbe, allocation, probe_direct};
pub use traffic::{Issued, Traffic};

/// A target as the checks see it.
#[derive(Debug, Clone, Copy)]
pub struct CheckedTarget<'a> {
    /// As the user named it.
    pub path: &'a str,
    /// An open descriptor of it, in whatever mode.
    pub descriptor: BorrowedFd<'a>,
    /// Bytes of it.
    pub size: u64,
    /// First byte that the run touches.
    pub start: u64,
    /// End of what the run touches, exclusive.
    pub end: u64,
    /// What lies under it.
    pub stack: &'a BlockStack,
    /// Whether the run reads it.
    pub is_read: bool,
    /// Whether the run writes it.
    pub is_written: bool,
    /// Whether its I/O goes past the page cache (O_DIRECT).
    pub is_direct: bool,
}

/// Checks targets before the run. Reads at most three pieces of 64 KiB of each, and drops these from
/// the page cache where the target is to be used past it.
#[must_use]
pub fn before_run(
    targets: &[CheckedTarget<'_>],
    memory_bytes: u64,
    tree: &SystemTree,
) -> Vec<PlausibilityItem> {
    let mut items = Vec::new();
    for checked in targets {
        items.extend(target::medium_item(checked.path, checked.stack));
        if let Some(allocation) = allocation(checked.descriptor, checked.start, checked.end) {
            items.push(target::allocation_item(checked.path, allocation, checked.is_read));
        }
        if checked.is_direct {
            let probe = probe_direct(checked.descriptor, checked.size);
            items.push(target::direct_item(checked.path, &probe));
            for device in checked.stack.devices.iter().chain(&checked.stack.leaves) {
                let facts = DiskFacts::read(tree, device);
                items.extend(target::loop_item(checked.path, &device.name, &facts));
            }
        } else {
            let used = checked.end.saturating_sub(checked.start);
            items.push(target::memory_item(checked.path, used, memory_bytes));
        }
    }
    // A target named twice has its sentences once.
    let mut distinct: Vec<PlausibilityItem> = Vec::new();
    for item in items {
        if !distinct.contains(&item) {
            distinct.push(item);
        }
    }
    distinct
}

/// Counters at the start of the measurement. Read before accounting is switched on: it takes about a
/// millisecond, more with many threads.
#[derive(Debug)]
pub struct Baseline {
    process: ProcessCpu,
    cpus: CpuTimes,
    disks: DiskStats,
}

impl Baseline {
    /// Reads the counters.
    #[must_use]
    pub fn read(tree: &SystemTree) -> Self {
        let process = ProcessCpu::read(tree);
        Self { process, cpus: CpuTimes::read(tree), disks: DiskStats::read(tree) }
    }

    /// What happened since. To be called when accounting is switched off, before threads end.
    #[must_use]
    pub fn elapse(self, tree: &SystemTree, topology: &Topology, elapsed: Nanos) -> Observed {
        let disks = DiskStats::read(tree);
        let cpus = CpuTimes::read(tree);
        let process = ProcessCpu::read(tree);
        let threads = process.threads_since(&self.process);
        let busiest = threads.into_iter().map(|(_, time)| time).max().unwrap_or_default();
        Observed {
            elapsed,
            cpus: cpus.since(&self.cpus, topology),
            steal_share: cpus.steal_share_since(&self.cpus),
            process: process.since(&self.process),
            busiest_thread: busiest,
            disks: (self.disks, disks),
        }
    }
}

/// What the machine did during the measurement.
#[derive(Debug)]
pub struct Observed {
    /// Measured time.
    pub elapsed: Nanos,
    /// By processor, in group order.
    pub cpus: Vec<CpuUsage>,
    /// Share of all processors' time that the hypervisor gave to others.
    pub steal_share: f64,
    /// CPU time of this process and of its io-wq workers.
    pub process: CpuSpent,
    /// CPU time of the busiest thread of this process.
    pub busiest_thread: Nanos,
    disks: (DiskStats, DiskStats),
}

impl Observed {
    /// Checks what was counted against what the machine did. `issued` are the bytes of each target
    /// over the measurement, in the order of `targets`; `polls` is whether load threads asked for completions without
    /// a pause (`--poll`).
    ///
    /// # Panics
    /// When the two differ in length.
    #[must_use]
    pub fn items(
        &self,
        targets: &[CheckedTarget<'_>],
        issued: &[Issued],
        polls: bool,
    ) -> Vec<PlausibilityItem> {
        assert_eq!(targets.len(), issued.len(), "traffic of every target");
        let mut items = Vec::new();
        let (earlier, later) = &self.disks;
        for group in traffic::groups(targets, issued) {
            let seen = |devices: &[BlockDevice]| {
                let counters = devices.iter().map(|device| later.since(earlier, device.number));
                let seen = counters.map(|counters| {
                    let counters = counters?;
                    Some(Traffic { read: counters.read_bytes, written: counters.written_bytes })
                });
                seen.sum::<Option<Traffic>>()
            };
            if let Some(seen) = seen(&group.devices) {
                items.extend(traffic::items(&group, seen));
            }
            if !group.leaves.is_empty()
                && let Some(seen) = seen(&group.leaves)
            {
                items.extend(traffic::items_below(&group, seen));
            }
        }
        items.extend(traffic::without_device(targets));
        items.extend(processor::generator_item(self.busiest_thread, self.elapsed, polls));
        items.extend(processor::saturation_item(&self.cpus));
        items.push(processor::io_wq_item(self.process));
        items.push(processor::steal_item(self.steal_share));
        items
    }
}

fn item(
    key: &'static str,
    target: Option<&str>,
    value: Option<f64>,
    verdict: Plausibility,
    sentence: String,
) -> PlausibilityItem {
    PlausibilityItem { key, target: target.map(str::to_owned), value, verdict, sentence }
}

/// A share as a percentage: with one decimal below 10 %, `less than 0.1 %` below that.
fn percent(share: f64) -> String {
    let percent = share * 100.0;
    if percent > 0.0 && percent < 0.1 {
        "less than 0.1 %".to_owned()
    } else if percent < 9.95 {
        format!("{percent:.1} %")
    } else {
        format!("{percent:.0} %")
    }
}

#[cfg(test)]
mod tests;
