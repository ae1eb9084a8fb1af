//! CPU time by processor over the measurement (spec 9, 11.2).

use std::collections::BTreeMap;

use plumb_io::system_tree::SystemTree;
use plumb_io::topology::Topology;

use crate::result::model::CpuUsage;

/// The counters of /proc/stat at one moment, in ticks, by CPU.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CpuTimes(BTreeMap<u32, Ticks>);

/// One CPU's counters.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Ticks {
    /// user + nice. The kernel counts the time of guests in these two already.
    user: u64,
    /// system + irq + softirq.
    kernel: u64,
    /// Time that the hypervisor gave to others while this CPU wanted to run.
    steal: u64,
    /// idle + iowait.
    idle: u64,
}

impl CpuTimes {
    /// Reads /proc/stat; a machine that does not tell has no counters and reads as idle.
    #[must_use]
    pub fn read(tree: &SystemTree) -> Self {
        Self::parse(&tree.text("/proc/stat").unwrap_or_default())
    }

    fn parse(stat: &str) -> Self {
        Self(stat.lines().filter_map(parse_line).collect())
    }

    /// Usage of every online processor since `earlier`, in group order.
    ///
    /// Kernel time holds the time stolen by the hypervisor. A counter that went backwards counts as
    /// unchanged (idle and iowait may); a processor whose counters show no time at all was idle.
    #[must_use]
    pub fn since(&self, earlier: &Self, topology: &Topology) -> Vec<CpuUsage> {
        topology
            .processors
            .iter()
            .zip(topology.cores_in_groups())
            .map(|(processor, core)| {
                let spent = self.spent(earlier, processor.cpu());
                let [user, kernel, idle] = spent.percentages();
                CpuUsage {
                    socket: processor.socket,
                    node: processor.node,
                    group: processor.group,
                    core,
                    class: processor.class,
                    cpu: processor.number,
                    user,
                    kernel,
                    idle,
                }
            })
            .collect()
    }

    /// The share of all CPU time since `earlier` that the hypervisor gave to others, 0 to 1.
    #[must_use]
    pub fn steal_share_since(&self, earlier: &Self) -> f64 {
        let spent = self.0.keys().map(|&cpu| self.spent(earlier, cpu));
        let (steal, total) = spent
            .fold((0, 0), |(steal, total), spent| (steal + spent.steal, total + spent.total()));
        if total == 0 { 0.0 } else { steal as f64 / total as f64 }
    }

    fn spent(&self, earlier: &Self, cpu: u32) -> Ticks {
        let now = self.0.get(&cpu).copied().unwrap_or_default();
        let then = earlier.0.get(&cpu).copied().unwrap_or_default();
        Ticks {
            user: now.user.saturating_sub(then.user),
            kernel: now.kernel.saturating_sub(then.kernel),
            steal: now.steal.saturating_sub(then.steal),
            idle: now.idle.saturating_sub(then.idle),
        }
    }
}

impl Ticks {
    fn total(&self) -> u64 {
        self.user + self.kernel + self.steal + self.idle
    }

    /// User, kernel and idle in percent of the whole.
    fn percentages(&self) -> [f64; 3] {
        let total = self.total();
        if total == 0 {
            return [0.0, 0.0, 100.0];
        }
        [self.user, self.kernel + self.steal, self.idle]
            .map(|part| 100.0 * part as f64 / total as f64)
    }
}

/// A line `cpu<n> user nice system idle iowait irq softirq steal guest guest_nice`; old kernels end
/// earlier.
fn parse_line(line: &str) -> Option<(u32, Ticks)> {
    let mut words = line.split_whitespace();
    let cpu = words.next()?.strip_prefix("cpu")?.parse().ok()?;
    let counters: Vec<u64> = words.map_while(|word| word.parse().ok()).collect();
    let sum = |places: &[usize]| {
        places
            .iter()
            .filter_map(|&place| counters.get(place))
            .fold(0, |a: u64, b| a.wrapping_add(*b))
    };
    let ticks =
        Ticks { user: sum(&[0, 1]), kernel: sum(&[2, 5, 6]), steal: sum(&[7]), idle: sum(&[3, 4]) };
    Some((cpu, ticks))
}

#[cfg(test)]
mod tests {
    use plumb_io::topology::{Processor, place_of};

    use super::*;

    /// Usage of CPUs with two threads per core, as `group/cpu core user kernel idle`.
    fn check(earlier: &str, later: &str, cpus: &[u32], want: &[&str]) {
        let processors = cpus.iter().map(|&cpu| {
            let (group, number) = place_of(cpu);
            Processor { group, number, core: cpu / 2, node: 0, socket: 0, class: 0, allowed: true }
        });
        let topology = Topology { processors: processors.collect(), caches: Vec::new() };
        let usage = CpuTimes::parse(later).since(&CpuTimes::parse(earlier), &topology);
        let lines: Vec<String> = usage
            .iter()
            .map(|u| {
                let CpuUsage { group, cpu, core, user, kernel, idle, .. } = u;
                format!("{group}/{cpu} c{core} {user:.2} {kernel:.2} {idle:.2}")
            })
            .collect();
        assert_eq!(lines, want);
    }

    #[test]
    fn states_are_gathered_into_three() {
        // Guest time (ninth and tenth) is inside user and nice.
        check(
            "cpu  9 9 9 9\ncpu0 100 0 100 100 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0 0 0\nintr 1",
            "cpu  9 9 9 9\ncpu0 110 10 110 120 20 5 5 20 20 10\ncpu1 0 0 0 50 50 0 0 0 0 0\nintr 2",
            &[0, 1],
            &["0/0 c0 20.00 40.00 40.00", "0/1 c0 0.00 0.00 100.00"],
        );
    }

    #[test]
    fn counters_that_go_backwards_count_as_unchanged() {
        check(
            "cpu0 100 0 100 100 500",
            "cpu0 150 0 150 100 400",
            &[0],
            // iowait fell by 100: idle is 0.
            &["0/0 c0 50.00 50.00 0.00"],
        );
        check("cpu0 100 0 100 100", "cpu0 90 0 175 125", &[0], &["0/0 c0 0.00 75.00 25.00"]);
    }

    #[test]
    fn a_processor_without_any_time_was_idle() {
        check(
            "cpu0 5 5 5 5",
            "cpu0 5 5 5 5",
            &[0, 66],
            &["0/0 c0 0.00 0.00 100.00", "1/2 c0 0.00 0.00 100.00"],
        );
    }

    #[test]
    fn short_lines_of_old_kernels_are_read() {
        check("cpu0 0 0 0 0", "cpu0 1 1 1 1", &[0], &["0/0 c0 50.00 25.00 25.00"]);
    }

    #[test]
    fn stolen_time_is_known_apart() {
        let earlier = CpuTimes::parse("cpu0 0 0 0 0 0 0 0 0\ncpu1 0 0 0 0 0 0 0 0");
        let later = CpuTimes::parse("cpu0 60 0 0 0 0 0 0 40\ncpu1 0 0 0 100 0 0 0 0");
        assert!((later.steal_share_since(&earlier) - 0.2).abs() < 1e-9);
        assert!(later.steal_share_since(&later).abs() < 1e-9);
    }

    #[test]
    fn this_machine_adds_up_to_100_percent() {
        let tree = SystemTree::default();
        let topology = Topology::read(&tree);
        let usage = CpuTimes::read(&tree).since(&CpuTimes::default(), &topology);
        assert_eq!(usage.len(), topology.processors.len());
        for cpu in usage {
            assert!((cpu.user + cpu.kernel + cpu.idle - 100.0).abs() < 1e-6, "{cpu:?}");
            assert!(cpu.idle < 100.0, "{cpu:?}");
        }
    }
}
