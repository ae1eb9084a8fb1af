//! How much memory is to be had.

use crate::system_tree::SystemTree;

/// Bytes that this program can still have: what the machine has available, or less if a control group of its own says
/// so. `None` when the kernel does not tell.
#[must_use]
pub fn available(tree: &SystemTree) -> Option<u64> {
    let machine = tree.text("/proc/meminfo")?;
    let line = machine.lines().find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let machine = line.trim().strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)?;
    let groups = tree.text("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| line.strip_prefix("0::"));
    let mut left = machine;
    let mut group = own.unwrap_or_default().trim_end_matches('/');
    // Each group above limits as well; the root has no limit.
    while !group.is_empty() {
        let number = |name: &str| {
            let text = tree.text(format!("/sys/fs/cgroup{group}/{name}"))?;
            text.trim().parse::<u64>().ok()
        };
        if let (Some(most), Some(used)) = (number("memory.max"), number("memory.current")) {
            // What is cached of files goes when it has to.
            let cached = number_of(tree, group, "file").unwrap_or(0);
            left = left.min(most.saturating_sub(used.saturating_sub(cached)));
        }
        group = group.rsplit_once('/').map_or("", |(above, _)| above);
    }
    Some(left)
}

fn number_of(tree: &SystemTree, group: &str, word: &str) -> Option<u64> {
    let text = tree.text(format!("/sys/fs/cgroup{group}/memory.stat"))?;
    let mut words = text.lines().filter_map(|line| line.split_once(' '));
    words.find(|(name, _)| *name == word)?.1.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_smallest_limit_counts() {
        let folder = tempfile::tempdir().expect("a folder");
        let tree = SystemTree::new(folder.path());
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().expect("it has one")).expect("made");
            std::fs::write(path, text).expect("written");
        };
        assert_eq!(available(&tree), None);
        write("proc/meminfo", "MemTotal: 9 kB\nMemAvailable:     4000 kB\n");
        assert_eq!(available(&tree), Some(4_096_000));
        write("proc/self/cgroup", "0::/a/b\n");
        write("sys/fs/cgroup/a/b/memory.max", "max\n");
        write("sys/fs/cgroup/a/b/memory.current", "5\n");
        assert_eq!(available(&tree), Some(4_096_000), "it has no limit");
        write("sys/fs/cgroup/a/memory.max", "1000\n");
        write("sys/fs/cgroup/a/memory.current", "800\n");
        assert_eq!(available(&tree), Some(200));
        write("sys/fs/cgroup/a/memory.stat", "anon 300\nfile 500\n");
        assert_eq!(available(&tree), Some(700), "caches give way");
    }
}
