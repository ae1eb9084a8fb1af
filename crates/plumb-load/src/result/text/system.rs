//! The System block (spec 7.3, 15.10); `-Rs` prints it alone.

use std::collections::BTreeSet;
use std::io::{self, Write};

use jiff::Timestamp;
use plumb_io::topology::{Cache, CacheKind, Topology};
use plumb_units::Bytes;

use super::processors;
use crate::result::model::HostFacts;

/// Writes the block; the empty line before it is the end of the profile block.
///
/// # Errors
/// What `out` reports.
pub fn write(host: &HostFacts, started_at: Timestamp, out: &mut dyn Write) -> io::Result<()> {
    let topology = &host.topology;
    writeln!(out, "System information:\n")?;
    writeln!(out, "\tcomputer name: {}", host.computer_name)?;
    writeln!(out, "\tprocessor name: {}", host.processor_name)?;
    writeln!(out, "\tstart time: {}\n", time(started_at))?;
    writeln!(out, "\tcpu count:\t\t{}", topology.processors.len())?;
    writeln!(out, "\tcore count:\t\t{}", count(topology, |cpu| cpu.core))?;
    writeln!(out, "\tgroup count:\t\t{}", count(topology, |cpu| u32::from(cpu.group)))?;
    writeln!(out, "\tnode count:\t\t{}", count(topology, |cpu| cpu.node))?;
    writeln!(out, "\tsocket count:\t\t{}", count(topology, |cpu| cpu.socket))?;
    let heterogeneous = if is_heterogeneous(topology) { 'y' } else { 'n' };
    writeln!(out, "\theterogeneous cores:\t{heterogeneous}\n")?;
    writeln!(out, "\tactive power scheme:\t{}", host.power_scheme)?;
    writeln!(out, "\tpage size:\t\t{}", Bytes(host.page_size))?;
    write_caches(topology, out)
}

/// `YYYY/MM/DD HH:MM:SS UTC`.
#[must_use]
pub fn time(at: Timestamp) -> String {
    at.strftime("%Y/%m/%d %H:%M:%S UTC").to_string()
}

/// Whether processors differ in efficiency class.
#[must_use]
pub fn is_heterogeneous(topology: &Topology) -> bool {
    count(topology, |cpu| u32::from(cpu.class)) > 1
}

fn count(topology: &Topology, of: impl Fn(&plumb_io::topology::Processor) -> u32) -> usize {
    topology.processors.iter().map(of).collect::<BTreeSet<u32>>().len()
}

/// Nothing where the kernel shows no caches, as in many virtual machines.
fn write_caches(topology: &Topology, out: &mut dyn Write) -> io::Result<()> {
    let rows = cache_rows(topology);
    if rows.is_empty() {
        return Ok(());
    }
    let groups = if rows.iter().any(|row| row.words == "group/cpu") { "Group/CPU" } else { "CPU" };
    writeln!(out, "\n\tcache information:\n")?;
    writeln!(out, "\tCache |    Size   |  Line  |  Assoc  | {groups}")?;
    writeln!(out, "\t{}", "-".repeat(46))?;
    for CacheRow { name, cache, list, note, .. } in rows {
        let (size, line) = (Bytes(cache.size), Bytes(cache.line.into()));
        let ways = match cache.ways {
            0 => "full".to_owned(),
            ways => format!("{ways}-way"),
        };
        writeln!(out, "\t{name:<5} | {size:>9} | {line:>6} | {ways:>7} | {list}{note}")?;
    }
    Ok(())
}

struct CacheRow<'a> {
    name: String,
    cache: &'a Cache,
    words: &'static str,
    list: String,
    note: &'static str,
}

/// One row per cache; equal ones that belong to one processor, core or group each share a row.
fn cache_rows(topology: &Topology) -> Vec<CacheRow<'_>> {
    let mut left: Vec<&Cache> = topology.caches.iter().collect();
    left.sort_by_key(|cache| (cache.level, letter(cache.kind), cache.cpus.first().copied()));
    let mut rows = Vec::new();
    while let Some(first) = left.first().copied() {
        let equal = |cache: &&Cache| traits(cache) == traits(first);
        let (alike, others): (Vec<&Cache>, Vec<&Cache>) = left.into_iter().partition(equal);
        left = others;
        let name = format!("L{}{}", first.level, letter(first.kind));
        let row = |cache, cpus: &[u32], note| {
            let (words, list) = processors::list(&processors::grouped(cpus));
            CacheRow { name: name.clone(), cache, words, list, note }
        };
        match owner(topology, &alike) {
            Some(note) if alike.len() > 1 => {
                let mut cpus: Vec<u32> =
                    alike.iter().flat_map(|cache| cache.cpus.iter().copied()).collect();
                cpus.sort_unstable();
                rows.push(row(first, &cpus, note));
            }
            _ => rows.extend(alike.into_iter().map(|cache| row(cache, &cache.cpus, ""))),
        }
    }
    rows
}

fn letter(kind: CacheKind) -> &'static str {
    match kind {
        CacheKind::Data => "d",
        CacheKind::Instruction => "i",
        CacheKind::Unified => "",
    }
}

/// What equal caches have in common.
fn traits(cache: &Cache) -> (u8, &'static str, u64, u32, u32) {
    (cache.level, letter(cache.kind), cache.size, cache.line, cache.ways)
}

/// What each of the caches belongs to, if it is the same for all.
fn owner(topology: &Topology, caches: &[&Cache]) -> Option<&'static str> {
    let all = |owned: &dyn Fn(&Cache) -> bool| caches.iter().all(|cache| owned(cache));
    let sharing = |cache: &Cache, same: &dyn Fn(usize, usize) -> bool| {
        let number = |at: usize| {
            let cpu = &topology.processors[at];
            u32::from(cpu.group) * 64 + u32::from(cpu.number)
        };
        let places = 0..topology.processors.len();
        let first = places.clone().find(|at| cache.cpus.first() == Some(&number(*at)));
        first.is_some_and(|first| {
            let owners = places.filter(|at| same(first, *at)).map(number);
            owners.eq(cache.cpus.iter().copied())
        })
    };
    let cpus = &topology.processors;
    if all(&|cache| cache.cpus.len() == 1) {
        Some(" (per cpu)")
    } else if all(&|cache| sharing(cache, &|a, b| cpus[a].core == cpus[b].core)) {
        Some(" (per core)")
    } else if all(&|cache| sharing(cache, &|a, b| cpus[a].group == cpus[b].group)) {
        Some(" (per group)")
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use plumb_io::topology::Processor;

    use super::*;

    fn host(processors: u32, smt: u32) -> HostFacts {
        let processor = |cpu: u32| Processor {
            group: u16::try_from(cpu / 64).expect("small"),
            number: u8::try_from(cpu % 64).expect("small"),
            core: cpu / smt,
            node: 0,
            socket: 0,
            class: 0,
            allowed: true,
        };
        HostFacts {
            computer_name: "host1".to_owned(),
            processor_name: "Made Up CPU".to_owned(),
            power_scheme: "performance".to_owned(),
            page_size: 4096,
            kernel: "6.12.0".to_owned(),
            memory_bytes: 1 << 34,
            topology: Topology {
                processors: (0..processors).map(processor).collect(),
                caches: Vec::new(),
            },
        }
    }

    fn cache(level: u8, kind: CacheKind, size: u64, cpus: std::ops::Range<u32>) -> Cache {
        Cache { level, kind, size, line: 64, ways: 8, cpus: cpus.collect() }
    }

    fn check(host: &HostFacts, want: &str) {
        let at = "2025-03-04T09:08:07Z".parse().expect("a time");
        let mut out = Vec::new();
        write(host, at, &mut out).expect("a vector takes everything");
        assert_eq!(String::from_utf8(out).expect("text"), want);
    }

    #[test]
    fn a_machine_without_known_caches_has_no_cache_table() {
        check(
            &host(4, 2),
            "System information:\n\n\
             \tcomputer name: host1\n\tprocessor name: Made Up CPU\n\
             \tstart time: 2025/03/04 09:08:07 UTC\n\n\
             \tcpu count:\t\t4\n\tcore count:\t\t2\n\tgroup count:\t\t1\n\tnode count:\t\t1\n\
             \tsocket count:\t\t1\n\theterogeneous cores:\tn\n\n\
             \tactive power scheme:\tperformance\n\tpage size:\t\t4KiB\n",
        );
    }

    #[test]
    fn equal_caches_are_joined_by_what_they_belong_to() {
        let mut host = host(4, 2);
        let kib = 1024;
        host.topology.caches = vec![
            cache(1, CacheKind::Data, 32 * kib, 0..2),
            cache(1, CacheKind::Data, 32 * kib, 2..4),
            cache(1, CacheKind::Instruction, 64 * kib, 0..1),
            cache(1, CacheKind::Instruction, 64 * kib, 1..2),
            Cache { ways: 0, ..cache(2, CacheKind::Unified, 1536 * kib, 0..2) },
            cache(2, CacheKind::Unified, 2048 * kib, 2..4),
            cache(3, CacheKind::Unified, 32 * kib * kib, 0..4),
        ];
        let rows: Vec<String> = cache_rows(&host.topology)
            .iter()
            .map(|row| format!("{} {} {}{}", row.name, row.cache.size, row.list, row.note))
            .collect();
        assert_eq!(
            rows,
            [
                "L1d 32768 0-3 (per core)",
                "L1i 65536 0-1 (per cpu)",
                "L2 1572864 0-1",
                "L2 2097152 2-3",
                "L3 33554432 0-3"
            ]
        );
        let mut out = Vec::new();
        write_caches(&host.topology, &mut out).expect("a vector takes everything");
        let text = String::from_utf8(out).expect("text");
        assert!(text.contains("\tCache |    Size   |  Line  |  Assoc  | CPU\n"), "{text}");
        assert!(
            text.contains("\tL1d   |     32KiB |     64 |   8-way | 0-3 (per core)\n"),
            "{text}"
        );
        assert!(text.contains("\tL2    |   1.50MiB |     64 |    full | 0-1\n"), "{text}");
    }
}
