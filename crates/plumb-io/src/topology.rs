//! Processors of this machine: groups, cores, nodes, sockets, efficiency classes (spec 11.2, 15.13).

mod caches;
mod classes;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use crate::system_tree::SystemTree;

pub use caches::{Cache, CacheKind};

/// CPU numbers per processor group.
pub const GROUP_SIZE: u32 = 64;

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

impl Processor {
    /// The kernel's number: 64 × group + number.
    #[must_use]
    pub fn cpu(&self) -> u32 {
        cpu_of(self.group, self.number)
    }
}

/// The kernel's number of a processor; numbers of 64 and more count on into the next group.
#[must_use]
pub fn cpu_of(group: u16, number: u8) -> u32 {
    u32::from(group) * GROUP_SIZE + u32::from(number)
}

/// Group and number of a CPU.
///
/// # Panics
/// Above CPU 4194303, the last one of group 65535: [`SystemTree::cpu_list`] yields none.
#[must_use]
pub fn place_of(cpu: u32) -> (u16, u8) {
    let group = u16::try_from(cpu / GROUP_SIZE).expect("CPU lists end at group 65535");
    let number = u8::try_from(cpu % GROUP_SIZE).expect("a remainder below 64");
    (group, number)
}

impl Topology {
    /// Reads the online processors and their caches.
    ///
    /// What the kernel does not tell falls back to one plain answer: without a topology folder a
    /// CPU is a core of its own in socket 0, without nodes all are in node 0, without a list of
    /// allowed CPUs all are allowed. There is always at least one processor.
    ///
    /// Allowed is what `/proc/self/status` calls `Cpus_allowed_list`: the affinity of the process
    /// within its cpuset. Read this before any thread is bound.
    #[must_use]
    pub fn read(tree: &SystemTree) -> Self {
        let online = online(tree);
        let allowed = allowed(tree);
        let classes = classes::read(tree, &online);
        let nodes = nodes(tree);
        let packages: Vec<i64> = online.iter().map(|&cpu| package(tree, cpu)).collect();
        let mut sockets = packages.clone();
        sockets.sort_unstable();
        sockets.dedup();
        let mut cores: BTreeMap<Vec<u32>, u32> = BTreeMap::new();

        let processors = online
            .iter()
            .zip(&packages)
            .zip(classes)
            .map(|((&cpu, package), class)| {
                let core_next = plumb_units::convert::to_u32(cores.len());
                let core = *cores.entry(siblings(tree, cpu)).or_insert(core_next);
                let socket = sockets.partition_point(|other| other < package);
                let (group, number) = place_of(cpu);
                Processor {
                    group,
                    number,
                    core,
                    node: nodes.get(&cpu).copied().unwrap_or(0),
                    socket: plumb_units::convert::to_u32(socket),
                    class,
                    allowed: allowed.as_ref().is_none_or(|list| list.contains(&cpu)),
                }
            })
            .collect();
        Self { processors, caches: caches::read(tree, &online) }
    }

    /// The processor with that group and number (below 64), if it is online.
    #[must_use]
    pub fn processor(&self, group: u16, number: u8) -> Option<&Processor> {
        let place = self.processors.binary_search_by_key(&(group, number), |processor| {
            (processor.group, processor.number)
        });
        place.ok().map(|place| &self.processors[place])
    }

    /// Each processor's core number counted within its group, in order of first appearance: the
    /// number that the CPU table shows (spec 7.4).
    #[must_use]
    pub fn cores_in_groups(&self) -> Vec<u32> {
        let mut seen: BTreeMap<(u16, u32), u32> = BTreeMap::new();
        let mut count_by_group: BTreeMap<u16, u32> = BTreeMap::new();
        self.processors
            .iter()
            .map(|processor| {
                *seen.entry((processor.group, processor.core)).or_insert_with(|| {
                    let count = count_by_group.entry(processor.group).or_default();
                    *count += 1;
                    *count - 1
                })
            })
            .collect()
    }

    /// The fastest class there is; 0 when all processors are alike.
    #[must_use]
    pub fn class_max(&self) -> u8 {
        self.processors.iter().map(|processor| processor.class).max().unwrap_or(0)
    }

    /// The largest cache line of any level in bytes; 0 when the kernel tells none (spec 15.4).
    #[must_use]
    pub fn cache_line_max(&self) -> u32 {
        self.caches.iter().map(|cache| cache.line).max().unwrap_or(0)
    }
}

const CPU_FOLDER: &str = "/sys/devices/system/cpu";
const NODE_FOLDER: &str = "/sys/devices/system/node";

/// Online CPUs, ascending: sysfs, else the lines of /proc/stat, else CPU 0.
fn online(tree: &SystemTree) -> Vec<u32> {
    tree.cpu_list(format!("{CPU_FOLDER}/online"))
        .filter(|list| !list.is_empty())
        .or_else(|| {
            let stat = tree.text("/proc/stat")?;
            let mut list: Vec<u32> = stat
                .lines()
                .filter_map(|line| {
                    line.split_whitespace().next()?.strip_prefix("cpu")?.parse().ok()
                })
                .collect();
            list.sort_unstable();
            (!list.is_empty()).then_some(list)
        })
        .unwrap_or_else(|| vec![0])
}

/// The CPUs that this process may use; `None` when the kernel does not tell.
fn allowed(tree: &SystemTree) -> Option<Vec<u32>> {
    let status = tree.text("/proc/self/status")?;
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
    crate::system_tree::parse_cpu_list(list)
}

/// Node by CPU.
fn nodes(tree: &SystemTree) -> BTreeMap<u32, u32> {
    let mut nodes = BTreeMap::new();
    for name in tree.names(NODE_FOLDER) {
        let Some(name) = name.to_str() else { continue };
        let Some(node) = name.strip_prefix("node").and_then(|number| number.parse().ok()) else {
            continue;
        };
        let cpus = tree.cpu_list(format!("{NODE_FOLDER}/{name}/cpulist")).unwrap_or_default();
        nodes.extend(cpus.into_iter().map(|cpu| (cpu, node)));
    }
    nodes
}

/// The package number as the kernel gives it; -1, or no answer, is one package for all.
fn package(tree: &SystemTree, cpu: u32) -> i64 {
    let text = tree.text(format!("{CPU_FOLDER}/cpu{cpu}/topology/physical_package_id"));
    text.and_then(|text| text.parse().ok()).unwrap_or(-1)
}

/// The CPUs of this CPU's core. `core_id` is not read: it repeats per package, and on some kernels
/// per die.
fn siblings(tree: &SystemTree, cpu: u32) -> Vec<u32> {
    let folder = format!("{CPU_FOLDER}/cpu{cpu}/topology");
    tree.cpu_list(format!("{folder}/core_cpus_list"))
        .or_else(|| tree.cpu_list(format!("{folder}/thread_siblings_list")))
        .filter(|list| list.contains(&cpu))
        .unwrap_or_else(|| vec![cpu])
}
