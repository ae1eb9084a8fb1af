//! Facts about the machine for the System block (spec 7.3, 15.10).

use std::collections::BTreeSet;

use plumb_io::system_tree::SystemTree;
use plumb_io::topology::Topology;

use crate::result::model::HostFacts;

/// What a fact reads as when the kernel does not tell it.
const UNKNOWN: &str = "<unknown>";

impl HostFacts {
    /// Reads what the System block shows. Needs no privilege; what the kernel does not tell is
    /// `<unknown>` or 0.
    #[must_use]
    pub fn read(tree: &SystemTree) -> Self {
        let text = |path: &str| {
            tree.text(path).filter(|text| !text.is_empty()).unwrap_or_else(|| UNKNOWN.to_owned())
        };
        let topology = Topology::read(tree);
        Self {
            computer_name: text("/proc/sys/kernel/hostname"),
            processor_name: processor_name(&tree.text("/proc/cpuinfo").unwrap_or_default()),
            power_scheme: power_scheme(tree, &topology),
            page_size: plumb_units::convert::to_u64(rustix::param::page_size()),
            kernel: text("/proc/sys/kernel/osrelease"),
            memory_bytes: memory_bytes(&tree.text("/proc/meminfo").unwrap_or_default()),
            topology,
        }
    }
}

/// `model name`, else implementer and part (arm64), blanks collapsed; of a machine with several
/// kinds the first.
fn processor_name(cpuinfo: &str) -> String {
    let value = |key: &str| {
        cpuinfo.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            let value = value.split_whitespace().collect::<Vec<_>>().join(" ");
            (name.trim() == key && !value.is_empty()).then_some(value)
        })
    };
    value("model name")
        .or_else(|| {
            let implementer = value("CPU implementer")?;
            Some(format!("implementer {implementer} part {}", value("CPU part")?))
        })
        .unwrap_or_else(|| UNKNOWN.to_owned())
}

/// The cpufreq governor of the online processors; `mixed` when they differ.
fn power_scheme(tree: &SystemTree, topology: &Topology) -> String {
    let governors: BTreeSet<String> = topology
        .processors
        .iter()
        .map(|processor| {
            let cpu = processor.cpu();
            tree.text(format!("/sys/devices/system/cpu/cpu{cpu}/cpufreq/scaling_governor"))
                .unwrap_or_else(|| UNKNOWN.to_owned())
        })
        .collect();
    match governors.into_iter().collect::<Vec<_>>().as_slice() {
        [only] => only.clone(),
        [] => UNKNOWN.to_owned(),
        _ => "mixed".to_owned(),
    }
}

/// `MemTotal` of /proc/meminfo, which counts in KiB.
fn memory_bytes(meminfo: &str) -> u64 {
    meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemTotal:")?.trim().strip_suffix(" kB")?.parse().ok())
        .map_or(0, |kib: u64| kib.saturating_mul(1024))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine made of files.
    fn read(files: &[(&str, &str)]) -> HostFacts {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let tree = SystemTree::new(folder.path());
        for (path, text) in files {
            let path = tree.path(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
            std::fs::write(path, text).expect("a file");
        }
        HostFacts::read(&tree)
    }

    #[test]
    fn names_memory_and_governor_are_read() {
        let host = read(&[
            ("/proc/sys/kernel/hostname", "store-1\n"),
            ("/proc/sys/kernel/osrelease", "6.18.44\n"),
            ("/proc/cpuinfo", "processor\t: 0\nmodel name\t:  Fast   CPU  @ 3 GHz \n"),
            ("/proc/meminfo", "MemFree: 5 kB\nMemTotal:       24682416 kB\n"),
            ("/sys/devices/system/cpu/online", "0-1\n"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "performance\n"),
        ]);
        assert_eq!(host.computer_name, "store-1");
        assert_eq!(host.kernel, "6.18.44");
        assert_eq!(host.processor_name, "Fast CPU @ 3 GHz");
        assert_eq!(host.memory_bytes, 24_682_416 * 1024);
        assert_eq!(host.power_scheme, "performance");
        assert!(host.page_size.is_power_of_two());
        assert_eq!(host.topology.processors.len(), 2);
    }

    #[test]
    fn governors_that_differ_are_mixed() {
        let host = read(&[
            ("/sys/devices/system/cpu/online", "0-1\n"),
            ("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor", "performance\n"),
            ("/sys/devices/system/cpu/cpu1/cpufreq/scaling_governor", "powersave\n"),
        ]);
        assert_eq!(host.power_scheme, "mixed");
    }

    #[test]
    fn arm_is_named_by_implementer_and_part() {
        let host = read(&[("/proc/cpuinfo", "CPU implementer : 0x41\nCPU part\t: 0xd0c\n")]);
        assert_eq!(host.processor_name, "implementer 0x41 part 0xd0c");
    }

    #[test]
    fn a_silent_kernel_is_unknown() {
        let host = read(&[]);
        for name in [&host.computer_name, &host.processor_name, &host.power_scheme, &host.kernel] {
            assert_eq!(name, "<unknown>");
        }
        assert_eq!(host.memory_bytes, 0);
    }
}
