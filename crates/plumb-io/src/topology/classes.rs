//! Efficiency classes: which processors are faster (spec 15.13).

use crate::system_tree::SystemTree;

/// The class of each online CPU, 0 slowest; all 0 when no source tells two classes apart.
///
/// Sources in order: `cpu_capacity` of every CPU, the CPU lists of the hybrid event sources, those
/// of cpu/types. A source that puts all CPUs in one class does not end the search: x86 kernels give
/// every CPU the capacity 1024 unless they schedule by capacity, hybrid or not. Maximum frequencies
/// are not looked at: boost bins differ among equal cores.
pub(super) fn read(tree: &SystemTree, online: &[u32]) -> Vec<u8> {
    [capacities, event_sources, cpu_types]
        .iter()
        .filter_map(|source| source(tree, online))
        .map(|speeds| classes(&speeds))
        .find(|classes| classes.iter().any(|class| *class > 0))
        .unwrap_or_else(|| vec![0; online.len()])
}

/// Capacities, if every CPU has one.
fn capacities(tree: &SystemTree, online: &[u32]) -> Option<Vec<u64>> {
    online
        .iter()
        .map(|cpu| tree.number(format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity")))
        .collect()
}

/// Event sources of hybrid x86, fastest first.
const EVENT_SOURCES: [&str; 3] = ["cpu_core", "cpu_atom", "cpu_lowpower"];

fn event_sources(tree: &SystemTree, online: &[u32]) -> Option<Vec<u64>> {
    let lists = EVENT_SOURCES.map(|name| {
        ["/sys/bus/event_source/devices", "/sys/devices"]
            .iter()
            .find_map(|folder| tree.cpu_list(format!("{folder}/{name}/cpus")))
            .unwrap_or_default()
    });
    ranks(&lists, online)
}

/// Folders of cpu/types such as `intel_core_0` and `intel_atom_1`.
fn cpu_types(tree: &SystemTree, online: &[u32]) -> Option<Vec<u64>> {
    const FOLDER: &str = "/sys/devices/system/cpu/types";
    let mut lists = [Vec::new(), Vec::new()];
    for name in tree.names(FOLDER) {
        let Some(name) = name.to_str() else { continue };
        let cpus = tree.cpu_list(format!("{FOLDER}/{name}/cpulist")).unwrap_or_default();
        if name.contains("core") {
            lists[0].extend(cpus);
        } else if name.contains("atom") {
            lists[1].extend(cpus);
        }
    }
    ranks(&lists, online)
}

/// One speed per CPU from lists, the fastest list first; `None` when a CPU is in none of them.
/// A step of 10 between lists keeps them in classes of their own.
fn ranks(lists: &[Vec<u32>], online: &[u32]) -> Option<Vec<u64>> {
    online
        .iter()
        .map(|cpu| {
            let place = lists.iter().position(|list| list.contains(cpu))?;
            Some(10_u64.pow(plumb_units::convert::to_u32(lists.len() - place)))
        })
        .collect()
}

/// Clusters speeds: a class reaches down to 90 % of its largest value, 0 is the slowest class.
fn classes(speeds: &[u64]) -> Vec<u8> {
    let mut distinct = speeds.to_vec();
    distinct.sort_unstable_by(|a, b| b.cmp(a));
    distinct.dedup();
    // Upper ends of the classes, fastest first.
    let mut tops: Vec<u64> = Vec::new();
    for speed in distinct {
        let inside = |top: &u64| u128::from(speed) * 10 >= u128::from(*top) * 9;
        if !tops.last().is_some_and(inside) {
            tops.push(speed);
        }
    }
    speeds
        .iter()
        .map(|speed| {
            let slower = tops.iter().filter(|top| *top < speed).count();
            // `speed` belongs to the lowest top that is not below it.
            u8::try_from(slower).unwrap_or(u8::MAX)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::classes;

    #[test]
    fn a_class_reaches_down_to_90_percent_of_its_largest_value() {
        for (speeds, want) in [
            (vec![1024, 1024], vec![0, 0]),
            (vec![446, 446, 871, 1024], vec![0, 0, 1, 2]),
            (vec![1000, 900, 899, 810, 809], vec![2, 2, 1, 1, 0]),
            (vec![0, 0], vec![0, 0]),
            (vec![], vec![]),
        ] {
            assert_eq!(classes(&speeds), want, "{speeds:?}");
        }
    }
}
