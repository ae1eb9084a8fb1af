//! The `System` element (spec 8, 15.11); `-Rsxml` prints it alone.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write};

use jiff::Timestamp;
use plumb_io::topology::{CacheKind, Processor, Topology};

use super::element::Elements;
use crate::result::model::{HostFacts, Tool};
use crate::result::text::processors;
use crate::result::text::system::{is_heterogeneous, time};

/// Writes the element as a document of its own.
///
/// # Errors
/// What `out` reports.
pub fn write_system(
    host: &HostFacts,
    tool: &Tool,
    started_at: Timestamp,
    out: &mut dyn Write,
) -> io::Result<()> {
    write(host, tool, started_at, &mut Elements::new(out, 0))
}

pub(super) fn write(
    host: &HostFacts,
    tool: &Tool,
    started_at: Timestamp,
    out: &mut Elements<'_>,
) -> io::Result<()> {
    out.open("System", &[])?;
    out.text("ComputerName", &host.computer_name)?;
    out.text("ProcessorName", &host.processor_name)?;
    out.open("Tool", &[])?;
    out.text("Version", &tool.version)?;
    out.text("VersionDate", &tool.version_date)?;
    if let Some(epoch) = tool.epoch {
        out.text("Epoch", epoch)?;
    }
    out.close("Tool")?;
    out.text("RunTime", time(started_at))?;
    out.empty("PowerScheme", &[("Name", &host.power_scheme), ("Guid", &"")])?;
    out.text("PageSize", host.page_size)?;
    write_topology(&host.topology, out)?;
    out.close("System")
}

fn write_topology(topology: &Topology, out: &mut Elements<'_>) -> io::Result<()> {
    let processors = &topology.processors;
    out.open("ProcessorTopology", &[("Heterogeneous", &is_heterogeneous(topology))])?;
    for (group, online) in masks(processors.iter()) {
        let in_group = |cpu: &&Processor| cpu.group == group && cpu.allowed;
        let active = masks(processors.iter().filter(in_group)).remove(&group).unwrap_or(0);
        out.empty(
            "Group",
            &[
                ("Group", &group),
                ("MaximumProcessors", &online.count_ones()),
                ("ActiveProcessors", &active.count_ones()),
                ("ActiveProcessorMask", &format!("{active:#x}")),
            ],
        )?;
    }
    write_sets("Node", processors, |cpu| cpu.node, out)?;
    write_sets("Socket", processors, |cpu| cpu.socket, out)?;
    write_cores(processors, out)?;
    write_caches(topology, out)?;
    out.close("ProcessorTopology")
}

/// Bit masks of processors by group.
fn masks<'a>(processors: impl Iterator<Item = &'a Processor>) -> BTreeMap<u16, u64> {
    let mut masks = BTreeMap::new();
    for cpu in processors {
        *masks.entry(cpu.group).or_default() |= 1_u64 << (cpu.number % 64);
    }
    masks
}

fn write_masks(masks: &BTreeMap<u16, u64>, out: &mut Elements<'_>) -> io::Result<()> {
    for (group, mask) in masks {
        write_mask(*group, *mask, out)?;
    }
    Ok(())
}

/// A `Group` element with a mask.
pub(super) fn write_mask(group: u16, mask: u64, out: &mut Elements<'_>) -> io::Result<()> {
    out.empty("Group", &[("Group", &group), ("Mask", &format!("{mask:#x}"))])
}

fn write_sets(
    name: &str,
    processors: &[Processor],
    set_of: impl Fn(&Processor) -> u32,
    out: &mut Elements<'_>,
) -> io::Result<()> {
    let sets: BTreeSet<u32> = processors.iter().map(&set_of).collect();
    for set in sets {
        out.open(name, &[(name, &set)])?;
        write_masks(&masks(processors.iter().filter(|cpu| set_of(cpu) == set)), out)?;
        out.close(name)?;
    }
    Ok(())
}

/// Cores, numbered within their group.
fn write_cores(processors: &[Processor], out: &mut Elements<'_>) -> io::Result<()> {
    let groups: BTreeSet<u16> = processors.iter().map(|cpu| cpu.group).collect();
    for group in groups {
        let members: Vec<&Processor> = processors.iter().filter(|cpu| cpu.group == group).collect();
        let mut cores: Vec<u32> = Vec::new();
        for cpu in &members {
            if !cores.contains(&cpu.core) {
                cores.push(cpu.core);
            }
        }
        for (number, core) in cores.iter().enumerate() {
            let of_core = || members.iter().copied().filter(|cpu| cpu.core == *core);
            let mask = masks(of_core()).remove(&group).unwrap_or(0);
            let class = of_core().map(|cpu| cpu.class).max().unwrap_or(0);
            out.empty(
                "Core",
                &[
                    ("Group", &group),
                    ("Core", &number),
                    ("Mask", &format!("{mask:#x}")),
                    ("EfficiencyClass", &class),
                ],
            )?;
        }
    }
    Ok(())
}

fn write_caches(topology: &Topology, out: &mut Elements<'_>) -> io::Result<()> {
    for cache in &topology.caches {
        let kind = match cache.kind {
            CacheKind::Unified => "Unified",
            CacheKind::Instruction => "Instruction",
            CacheKind::Data => "Data",
        };
        // 255 says fully associative; a cache of so many ways and more is as good as that.
        let ways = if cache.ways == 0 { 255 } else { cache.ways.min(255) };
        out.open(
            "Cache",
            &[
                ("Level", &cache.level),
                ("Associativity", &ways),
                ("LineSize", &cache.line),
                ("CacheSize", &cache.size),
                ("Type", &kind),
            ],
        )?;
        let mut masks: BTreeMap<u16, u64> = BTreeMap::new();
        for (group, cpu) in processors::grouped(&cache.cpus) {
            *masks.entry(group).or_default() |= 1 << cpu;
        }
        write_masks(&masks, out)?;
        out.close("Cache")?;
    }
    Ok(())
}
