//! Machines that we do not have, as faked trees.

use super::*;
use crate::fake_tree::FakeTree;

/// A CPU of a made-up machine: number, package, node, siblings.
fn cpu(fake: &FakeTree, cpu: u32, package: i64, siblings: &str) {
    let folder = format!("/sys/devices/system/cpu/cpu{cpu}/topology");
    fake.file(&format!("{folder}/physical_package_id"), format!("{package}\n"));
    fake.file(&format!("{folder}/thread_siblings_list"), format!("{siblings}\n"));
}

/// One line per processor: `group/number core node socket class allowed`.
fn check(fake: &FakeTree, want: &str) {
    let topology = Topology::read(&fake.tree());
    let lines: Vec<String> = topology
        .processors
        .iter()
        .map(|p| {
            let allowed = if p.allowed { "" } else { " not-allowed" };
            format!(
                "{}/{} c{} n{} s{} e{}{allowed}",
                p.group, p.number, p.core, p.node, p.socket, p.class
            )
        })
        .collect();
    let want: Vec<&str> = want.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    assert_eq!(lines, want);
}

#[test]
fn far_siblings_in_two_sockets_and_nodes() {
    // The usual numbering of Linux: first the first threads of all cores, then the second ones;
    // packages are numbered 3 and 36, as some firmware does.
    let fake = FakeTree::new();
    fake.file("/sys/devices/system/cpu/online", "0-7\n");
    for number in 0..8_u32 {
        let first = number % 4;
        cpu(&fake, number, if first < 2 { 3 } else { 36 }, &format!("{first},{}", first + 4));
    }
    fake.file("/sys/devices/system/node/node0/cpulist", "0-1,4-5\n");
    fake.file("/sys/devices/system/node/node1/cpulist", "2-3,6-7\n");
    fake.file("/sys/devices/system/node/possible", "0-1\n");
    check(
        &fake,
        "0/0 c0 n0 s0 e0
         0/1 c1 n0 s0 e0
         0/2 c2 n1 s1 e0
         0/3 c3 n1 s1 e0
         0/4 c0 n0 s0 e0
         0/5 c1 n0 s0 e0
         0/6 c2 n1 s1 e0
         0/7 c3 n1 s1 e0",
    );
}

#[test]
fn cores_split_across_groups_and_counted_within_them() {
    let fake = FakeTree::new();
    fake.file("/sys/devices/system/cpu/online", "62-66,127-129\n");
    for (first, second) in [(62, 127), (63, 128), (64, 129)] {
        cpu(&fake, first, 0, &format!("{first},{second}"));
        cpu(&fake, second, 0, &format!("{first},{second}"));
    }
    cpu(&fake, 65, 0, "65-66");
    cpu(&fake, 66, 0, "65-66");
    check(
        &fake,
        "0/62 c0 n0 s0 e0
         0/63 c1 n0 s0 e0
         1/0 c2 n0 s0 e0
         1/1 c3 n0 s0 e0
         1/2 c3 n0 s0 e0
         1/63 c0 n0 s0 e0
         2/0 c1 n0 s0 e0
         2/1 c2 n0 s0 e0",
    );
    let topology = Topology::read(&fake.tree());
    assert_eq!(topology.cores_in_groups(), [0, 1, 0, 1, 1, 2, 0, 1]);
    assert_eq!(topology.processor(1, 63).map(Processor::cpu), Some(127));
    assert_eq!(topology.processor(1, 3), None);
}

#[test]
fn core_cpus_list_wins_over_the_older_name() {
    let fake = FakeTree::new();
    fake.file("/sys/devices/system/cpu/online", "0-1\n");
    for number in 0..2 {
        cpu(&fake, number, 0, &number.to_string());
        fake.file(&format!("/sys/devices/system/cpu/cpu{number}/topology/core_cpus_list"), "0-1");
    }
    check(
        &fake,
        "0/0 c0 n0 s0 e0
         0/1 c0 n0 s0 e0",
    );
}

#[test]
fn offline_processors_are_absent_and_excluded_ones_not_allowed() {
    let fake = FakeTree::new();
    fake.file("/sys/devices/system/cpu/online", "0,2-3\n");
    fake.file("/sys/devices/system/cpu/possible", "0-3\n");
    fake.file("/proc/self/status", "Name:\tplumb\nCpus_allowed:\t7\nCpus_allowed_list:\t0-2\n");
    for number in 0..4 {
        cpu(&fake, number, 0, &number.to_string());
    }
    check(
        &fake,
        "0/0 c0 n0 s0 e0
         0/2 c1 n0 s0 e0
         0/3 c2 n0 s0 e0 not-allowed",
    );
}

#[test]
fn capacities_make_classes() {
    let fake = FakeTree::new();
    fake.file("/sys/devices/system/cpu/online", "0-3\n");
    for (number, capacity) in [(0, 446), (1, 1024), (2, 940), (3, 871)] {
        cpu(&fake, number, 0, &number.to_string());
        fake.file(
            &format!("/sys/devices/system/cpu/cpu{number}/cpu_capacity"),
            capacity.to_string(),
        );
    }
    check(
        &fake,
        "0/0 c0 n0 s0 e0
         0/1 c1 n0 s0 e2
         0/2 c2 n0 s0 e2
         0/3 c3 n0 s0 e1",
    );
}

#[test]
fn hybrid_event_sources_make_classes_also_beside_equal_capacities() {
    for capacity in [None, Some("1024\n")] {
        let fake = FakeTree::new();
        fake.file("/sys/devices/system/cpu/online", "0-4\n");
        for number in 0..5 {
            let siblings = if number < 2 { "0-1".to_owned() } else { number.to_string() };
            cpu(&fake, number, 0, &siblings);
            if let Some(capacity) = capacity {
                fake.file(&format!("/sys/devices/system/cpu/cpu{number}/cpu_capacity"), capacity);
            }
        }
        fake.file("/sys/bus/event_source/devices/cpu_core/cpus", "0-1\n");
        fake.file("/sys/bus/event_source/devices/cpu_atom/cpus", "2-3\n");
        fake.file("/sys/bus/event_source/devices/cpu_lowpower/cpus", "4\n");
        check(
            &fake,
            "0/0 c0 n0 s0 e2
             0/1 c0 n0 s0 e2
             0/2 c1 n0 s0 e1
             0/3 c2 n0 s0 e1
             0/4 c3 n0 s0 e0",
        );
    }
}

#[test]
fn cpu_types_make_classes() {
    let fake = FakeTree::new();
    fake.file("/sys/devices/system/cpu/online", "0-2\n");
    fake.file("/sys/devices/system/cpu/types/intel_core_0/cpulist", "2\n");
    fake.file("/sys/devices/system/cpu/types/intel_atom_0/cpulist", "0-1\n");
    check(
        &fake,
        "0/0 c0 n0 s0 e0
         0/1 c1 n0 s0 e0
         0/2 c2 n0 s0 e1",
    );
}

#[test]
fn a_silent_kernel_gives_plain_answers() {
    check(&FakeTree::new(), "0/0 c0 n0 s0 e0");
    let fake = FakeTree::new();
    fake.file("/proc/stat", "cpu  1 2\ncpu0 1 2\ncpu3 1 2\nintr 5\n");
    check(
        &fake,
        "0/0 c0 n0 s0 e0
         0/3 c1 n0 s0 e0",
    );
}

/// A cache folder.
fn cache(fake: &FakeTree, cpu: u32, index: u32, facts: &[(&str, &str)]) {
    for (file, text) in facts {
        let path = format!("/sys/devices/system/cpu/cpu{cpu}/cache/index{index}/{file}");
        fake.file(&path, format!("{text}\n"));
    }
}

#[test]
fn caches_are_listed_once_with_their_processors() {
    let fake = FakeTree::new();
    fake.file("/sys/devices/system/cpu/online", "0-1\n");
    for number in 0..2 {
        let own = number.to_string();
        cache(
            &fake,
            number,
            0,
            &[
                ("level", "1"),
                ("type", "Data"),
                ("size", "32K"),
                ("coherency_line_size", "64"),
                ("number_of_sets", "64"),
                ("ways_of_associativity", "8"),
                ("shared_cpu_list", &own),
            ],
        );
        // No ways: found from size, line and sets. CPU 2 shares it, but is offline.
        cache(
            &fake,
            number,
            1,
            &[
                ("level", "2"),
                ("type", "Unified"),
                ("size", "1M"),
                ("coherency_line_size", "128"),
                ("number_of_sets", "512"),
                ("shared_cpu_list", "0-2"),
            ],
        );
        cache(
            &fake,
            number,
            2,
            &[
                ("level", "3"),
                ("type", "Unified"),
                ("size", "8K"),
                ("coherency_line_size", "64"),
                ("number_of_sets", "1"),
                ("ways_of_associativity", "128"),
                ("shared_cpu_list", "0-1"),
            ],
        );
        cache(&fake, number, 3, &[("level", "1"), ("type", "Instruction"), ("size", "32K")]);
    }
    let topology = Topology::read(&fake.tree());
    let lines: Vec<String> = topology
        .caches
        .iter()
        .map(|c| format!("L{} {:?} {} {} {} {:?}", c.level, c.kind, c.size, c.line, c.ways, c.cpus))
        .collect();
    assert_eq!(
        lines,
        [
            "L1 Data 32768 64 8 [0]",
            "L1 Data 32768 64 8 [1]",
            "L1 Instruction 32768 0 0 [0]",
            "L1 Instruction 32768 0 0 [1]",
            "L2 Unified 1048576 128 16 [0, 1]",
            "L3 Unified 8192 64 0 [0, 1]",
        ]
    );
    assert_eq!(topology.cache_line_max(), 128);
}

#[test]
fn this_machine_agrees_with_the_standard_library() {
    let topology = Topology::read(&SystemTree::default());
    let allowed = topology.processors.iter().filter(|p| p.allowed).count();
    let affinity = rustix::thread::sched_getaffinity(None).expect("our own affinity");
    assert!(allowed > 0);
    for processor in &topology.processors {
        let cpu = plumb_units::convert::index(processor.cpu());
        assert_eq!(processor.allowed, affinity.is_set(cpu), "CPU {cpu}");
    }
}
