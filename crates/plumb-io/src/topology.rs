//! Processors of this machine: groups, cores, nodes, sockets, efficiency classes (spec 11.2, 15.13).

/// The machine's processors and caches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Topology {
    /// Online processors, ascending by (group, number).
    pub processors: Vec<Processor>,
    /// Data and instruction caches.
    pub caches: Vec<Cache>,
}

/// One online processor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Processor {
    /// Block of 64 CPU numbers: CPU / 64.
    pub group: u16,
    /// CPU mod 64.
    pub number: u8,
    /// Machine-wide core number, in order of first appearance.
    pub core: u32,
    /// NUMA node.
    pub node: u32,
    /// Physical package, renumbered from 0.
    pub socket: u32,
    /// Efficiency class, 0 slowest.
    pub class: u8,
    /// Whether this process may run on it (cpuset, sched_getaffinity).
    pub allowed: bool,
}

/// One cache and the processors that share it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cache {
    /// 1, 2, 3.
    pub level: u8,
    /// What it holds.
    pub kind: CacheKind,
    /// Bytes.
    pub size: u64,
    /// Bytes.
    pub line: u32,
    /// Ways; 0 for fully associative.
    pub ways: u32,
    /// CPU numbers, machine-wide, ascending.
    pub cpus: Vec<u32>,
}

/// What a cache holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CacheKind {
    /// Both.
    Unified,
    /// Code.
    Instruction,
    /// Data.
    Data,
}
