//! Caches and who shares them.

use crate::system_tree::SystemTree;

/// One cache and the processors that share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Bytes; 0 when the kernel does not tell.
    pub size: u64,
    /// Bytes; 0 when the kernel does not tell.
    pub line: u32,
    /// Ways; 0 for fully associative, or when the kernel tells neither ways nor sets.
    pub ways: u32,
    /// CPU numbers, machine-wide, ascending.
    pub cpus: Vec<u32>,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum CacheKind {
    /// Both.
    Unified,
    /// Code.
    Instruction,
    /// Data.
    Data,
}

/// Every cache of the online CPUs once: by level, data before instructions, then by its first CPU.
pub(super) fn read(tree: &SystemTree, online: &[u32]) -> Vec<Cache> {
    let mut caches: Vec<Cache> = Vec::new();
    for &cpu in online {
        let folder = format!("/sys/devices/system/cpu/cpu{cpu}/cache");
        for name in tree.names(&folder) {
            let Some(name) = name.to_str().filter(|name| name.starts_with("index")) else {
                continue;
            };
            let Some(cache) = read_one(tree, &format!("{folder}/{name}"), cpu, online) else {
                continue;
            };
            let known = |other: &Cache| {
                (other.level, other.kind) == (cache.level, cache.kind) && other.cpus == cache.cpus
            };
            if !caches.iter().any(known) {
                caches.push(cache);
            }
        }
    }
    caches.sort_by_key(|cache| {
        (cache.level, std::cmp::Reverse(cache.kind), cache.cpus.first().copied())
    });
    caches
}

/// A cache folder; `None` when it lacks level or type.
fn read_one(tree: &SystemTree, folder: &str, cpu: u32, online: &[u32]) -> Option<Cache> {
    let number = |file: &str| tree.number(format!("{folder}/{file}"));
    let level = u8::try_from(number("level")?).ok()?;
    let kind = match tree.text(format!("{folder}/type"))?.as_str() {
        "Unified" => CacheKind::Unified,
        "Instruction" => CacheKind::Instruction,
        "Data" => CacheKind::Data,
        _ => return None,
    };
    let size = tree.text(format!("{folder}/size")).and_then(|text| parse_size(&text)).unwrap_or(0);
    let line = number("coherency_line_size").and_then(|line| u32::try_from(line).ok()).unwrap_or(0);
    let sets = number("number_of_sets");
    // A fully associative cache has one set; the kernel then gives its lines as ways, or hides them.
    // Some processors answer 0xffff.
    let ways = match number("ways_of_associativity").and_then(|ways| u32::try_from(ways).ok()) {
        _ if sets == Some(1) => 0,
        Some(0xffff..) => 0,
        Some(ways) => ways,
        None => ways_from_size(size, line, sets),
    };
    let mut cpus = tree
        .cpu_list(format!("{folder}/shared_cpu_list"))
        .filter(|list| list.contains(&cpu))
        .unwrap_or_else(|| vec![cpu]);
    cpus.retain(|cpu| online.contains(cpu));
    Some(Cache { level, kind, size, line, ways, cpus })
}

/// Ways from bytes, line and sets: size / (line × sets); 0 when one of them is missing.
fn ways_from_size(size: u64, line: u32, sets: Option<u64>) -> u32 {
    let way = sets.unwrap_or(0).saturating_mul(u64::from(line));
    size.checked_div(way).and_then(|ways| u32::try_from(ways).ok()).unwrap_or(0)
}

/// The kernel's cache sizes: `32K`, sometimes `1M` or plain bytes.
fn parse_size(text: &str) -> Option<u64> {
    plumb_units::parse_size(text, 1).ok()
}
