//! In which order threads take processors, and how far apart their buffers lie (spec 15.4, 15.5).

use std::cmp::Reverse;
use std::collections::BTreeMap;

use plumb_io::system_tree::format_cpu_list;
use plumb_io::topology::{GROUP_SIZE, Processor, Topology, cpu_of};

use crate::profile::model::{
    AffinityEntry, AffinityTraversal, EfficiencyOrder, GroupOrder, ProcessorOrder,
};

/// A group and a processor number in it (below 64).
pub type Place = (u16, u8);

/// Why threads cannot be bound as asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum AffinityError {
    /// Whole groups that hold no online processor.
    #[error("affinity names processor group {groups}, but this machine has group {existing}")]
    #[diagnostic(
        code(plumb::affinity::no_group),
        help("a group is a block of 64 CPU numbers; with at most 64 CPUs there is only group 0")
    )]
    NoGroup {
        /// Those that were named, as a list.
        groups: String,
        /// Those that exist, as a list.
        existing: String,
    },
    /// Processors that are offline or do not exist.
    #[error("affinity names CPU {cpus}, but only CPU {online} are online")]
    #[diagnostic(
        code(plumb::affinity::not_online),
        help(
            "name online CPUs, or bring it online with `echo 1 > \
             /sys/devices/system/cpu/cpu<n>/online`; processor c of group g is CPU 64 * g + c"
        )
    )]
    NotOnline {
        /// Machine-wide numbers, as a list.
        cpus: String,
        /// The online ones.
        online: String,
    },
    /// Online processors that this process may not use.
    #[error("affinity names CPU {cpus}, but this process may only run on CPU {allowed}")]
    #[diagnostic(
        code(plumb::affinity::not_allowed),
        help(
            "a cpuset, a container limit, isolcpus or taskset keeps it away: widen it there (see \
             Cpus_allowed_list in /proc/self/status), or name CPUs of that list"
        )
    )]
    NotAllowed {
        /// Machine-wide numbers, as a list.
        cpus: String,
        /// Those that it may use.
        allowed: String,
    },
}

/// The processors that threads take in turn: thread i gets entry i mod length.
///
/// Without entries these are all processors that the process may use. A processor number of 64 or
/// more counts on into the next groups. Pure: decides from the topology alone.
///
/// Each entry gets a pass: 0, or with core-aware order the number of earlier entries on the same
/// core. Entries are then sorted, stably, by what [`AffinityTraversal`] says (spec 15.5).
///
/// # Errors
/// Every group without an online processor, every CPU that is not online, every CPU that the process
/// may not use: all that are named, by kind in this order.
pub fn order(
    topology: &Topology,
    entries: &[AffinityEntry],
    traversal: AffinityTraversal,
) -> Result<Vec<Place>, AffinityError> {
    let listed = listed(topology, entries)?;
    let core_aware = traversal.order == ProcessorOrder::CoreAware;
    let mut passes: BTreeMap<u32, u32> = BTreeMap::new();
    let mut keyed: Vec<_> = listed
        .into_iter()
        .map(|processor| {
            let pass = passes.entry(processor.core).or_default();
            let key = sort_key(processor, if core_aware { *pass } else { 0 }, traversal);
            *pass += 1;
            (key, (processor.group, processor.number))
        })
        .collect();
    keyed.sort_by_key(|(key, _)| *key);
    Ok(keyed.into_iter().map(|(_, place)| place).collect())
}

/// The part of an order that is used: the first min(threads, length) entries.
#[must_use]
pub fn effective(order: &[Place], threads: u64) -> &[Place] {
    let used = usize::try_from(threads).unwrap_or(usize::MAX).min(order.len());
    &order[..used]
}

/// Whether an effective affinity holds processors of the machine's highest class and others: rates
/// and latencies of its threads then differ by processor (spec 15.5).
#[must_use]
pub fn mixes_classes(topology: &Topology, effective: &[Place]) -> bool {
    let highest = topology.class_max();
    let mut classes = effective
        .iter()
        .filter_map(|&(group, number)| Some(topology.processor(group, number)?.class == highest));
    let first = classes.next();
    first.is_some_and(|first| classes.any(|other| other != first))
}

/// Every buffer of a thread starts at a multiple of this many bytes, so that no two threads'
/// page-table pointers share a cache line: (L / 8) · (P / 8) · P for pages of P bytes and cache
/// lines of L (0: unknown, taken as 64). 8 bytes is the size of a table entry (spec 15.4).
///
/// # Panics
/// When the product leaves 64 bits, which no machine's page size and cache line come near.
#[must_use]
pub fn separation_alignment(page_size: u64, cache_line: u64) -> u64 {
    let cache_line = if cache_line == 0 { 64 } else { cache_line };
    let table = page_size / 8;
    (cache_line / 8)
        .checked_mul(table)
        .and_then(|entries| entries.checked_mul(page_size))
        .expect("page size and cache line of a real machine")
}

/// What entries are sorted by: five numbers, compared in turn. A criterion that a policy leaves out
/// is 0 for all entries; the place in the list breaks ties because the sort is stable.
type SortKey = (u16, (u32, Reverse<u8>, u8), (Reverse<u8>, u8, u32), u16);

fn sort_key(processor: &Processor, pass: u32, traversal: AffinityTraversal) -> SortKey {
    let (fill, span) = match traversal.group {
        GroupOrder::Fill => (processor.group, 0),
        GroupOrder::Span => (0, processor.group),
    };
    let class = processor.class;
    let none = Reverse(0);
    let (by_pass, by_class) = match traversal.efficiency {
        EfficiencyOrder::PFirst => ((pass, Reverse(class), 0), (none, 0, 0)),
        EfficiencyOrder::EFirst => ((pass, none, class), (none, 0, 0)),
        EfficiencyOrder::FillPFirst => ((0, none, 0), (Reverse(class), 0, pass)),
        EfficiencyOrder::FillEFirst => ((0, none, 0), (none, class, pass)),
        EfficiencyOrder::Unordered => ((pass, none, 0), (none, 0, 0)),
    };
    (fill, by_pass, by_class, span)
}

/// The processors named, in the order given; all allowed ones when none is.
fn listed<'a>(
    topology: &'a Topology,
    entries: &[AffinityEntry],
) -> Result<Vec<&'a Processor>, AffinityError> {
    let mut listed = Vec::new();
    let mut offenders = Offenders::default();
    for entry in entries {
        match entry.processor {
            Some(number) => match find(topology, entry.group, number) {
                Some(processor) if processor.allowed => listed.push(processor),
                Some(processor) => offenders.not_allowed.push(processor.cpu()),
                None => offenders.not_online.push(cpu_of(entry.group, number)),
            },
            None => {
                let of_group = || topology.processors.iter().filter(|p| p.group == entry.group);
                let before = listed.len();
                listed.extend(of_group().filter(|processor| processor.allowed));
                if of_group().next().is_none() {
                    offenders.no_group.push(entry.group.into());
                } else if listed.len() == before {
                    offenders.not_allowed.extend(of_group().map(Processor::cpu));
                }
            }
        }
    }
    offenders.check(topology)?;
    if entries.is_empty() {
        listed.extend(topology.processors.iter().filter(|processor| processor.allowed));
    }
    Ok(listed)
}

/// The online processor of a group; numbers of 64 and more count on.
fn find(topology: &Topology, group: u16, number: u8) -> Option<&Processor> {
    let cpu = cpu_of(group, number);
    let group = u16::try_from(cpu / GROUP_SIZE).ok()?;
    topology.processor(group, u8::try_from(cpu % GROUP_SIZE).ok()?)
}

/// What entries named in vain.
#[derive(Default)]
struct Offenders {
    no_group: Vec<u32>,
    not_online: Vec<u32>,
    not_allowed: Vec<u32>,
}

impl Offenders {
    fn check(self, topology: &Topology) -> Result<(), AffinityError> {
        let all = || topology.processors.iter();
        if !self.no_group.is_empty() {
            let existing = all().map(|processor| processor.group.into()).collect();
            return Err(AffinityError::NoGroup {
                groups: list(self.no_group),
                existing: list(existing),
            });
        }
        if !self.not_online.is_empty() {
            let online = all().map(Processor::cpu).collect();
            return Err(AffinityError::NotOnline {
                cpus: list(self.not_online),
                online: list(online),
            });
        }
        if !self.not_allowed.is_empty() {
            let allowed = all().filter(|processor| processor.allowed).map(Processor::cpu).collect();
            return Err(AffinityError::NotAllowed {
                cpus: list(self.not_allowed),
                allowed: list(allowed),
            });
        }
        Ok(())
    }
}

/// Numbers as a list such as `0-3,8`.
fn list(mut numbers: Vec<u32>) -> String {
    numbers.sort_unstable();
    numbers.dedup();
    format_cpu_list(&numbers)
}

#[cfg(test)]
mod tests;
