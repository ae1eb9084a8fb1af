//! The published vectors, and machines that they do not cover.

use std::path::PathBuf;

use serde_json::Value;

use super::*;

fn vectors() -> Value {
    let folder = std::env::var_os("PLUMB_CONFORMANCE_DIR").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance"),
        PathBuf::from,
    );
    let text = std::fs::read_to_string(folder.join("semantics/vectors.json")).expect("vectors");
    serde_json::from_str(&text).expect("vectors are JSON")
}

fn number<T: TryFrom<u64>>(value: &Value) -> T {
    let number = value.as_u64().expect("a number");
    T::try_from(number).unwrap_or_else(|_| panic!("{number} is out of range"))
}

/// A made-up machine of the vectors.
fn machine(cpus: &Value) -> Topology {
    let processors = cpus.as_array().expect("an array").iter().map(|cpu| Processor {
        group: number(&cpu["group"]),
        number: number(&cpu["cpu"]),
        core: number(&cpu["core"]),
        node: 0,
        socket: 0,
        class: number(&cpu["class"]),
        allowed: true,
    });
    Topology { processors: processors.collect(), caches: Vec::new() }
}

/// Enough of `-a` for the vectors; the command line's own reader is tested where it lives.
fn options(args: &Value) -> (Vec<AffinityEntry>, AffinityTraversal) {
    let mut entries = Vec::new();
    let mut traversal = AffinityTraversal::default();
    for arg in args.as_array().expect("an array") {
        let value = arg.as_str().and_then(|arg| arg.strip_prefix("-a")).expect("-a");
        if value == "up" {
            traversal.efficiency = EfficiencyOrder::Unordered;
        } else if value.starts_with(|c: char| c == 'g' || c.is_ascii_digit()) {
            let mut group = 0;
            for item in value.split(',') {
                if let Some(next) = item.strip_prefix('g') {
                    group = next.parse().expect("a group");
                    continue;
                }
                let (first, last) = item.split_once('-').unwrap_or((item, item));
                let range: std::ops::RangeInclusive<u8> =
                    first.parse().expect("a CPU")..=last.parse().expect("a CPU");
                entries.extend(range.map(|cpu| AffinityEntry { group, processor: Some(cpu) }));
            }
            if !value.contains(',') && value.starts_with('g') {
                entries.push(AffinityEntry { group, processor: None });
            }
        } else {
            for letter in value.chars() {
                match letter {
                    'c' => traversal.order = ProcessorOrder::CoreAware,
                    's' => traversal.group = GroupOrder::Span,
                    'p' => traversal.efficiency = EfficiencyOrder::PFirst,
                    'P' => traversal.efficiency = EfficiencyOrder::FillPFirst,
                    'e' => traversal.efficiency = EfficiencyOrder::EFirst,
                    'E' => traversal.efficiency = EfficiencyOrder::FillEFirst,
                    other => panic!("no order letter: {other}"),
                }
            }
        }
    }
    (entries, traversal)
}

#[test]
fn published_orders() {
    let vectors = vectors();
    let cases = vectors["affinity_order"].as_array().expect("an array");
    assert!(!cases.is_empty());
    for case in cases {
        let name = case["machine"].as_str().expect("a machine");
        let topology = machine(&vectors["affinity_machines"][name]);
        let (entries, traversal) = options(&case["args"]);
        let got = order(&topology, &entries, traversal).expect("CPUs of the machine");
        let want: Vec<Place> = case["order"]
            .as_array()
            .expect("an array")
            .iter()
            .map(|place| (number(&place[0]), number(&place[1])))
            .collect();
        assert_eq!(got, want, "{}", case["id"]);
    }
}

#[test]
fn published_separations() {
    let vectors = vectors();
    let cases = vectors["buffer_separation"].as_array().expect("an array");
    assert!(!cases.is_empty());
    for case in cases {
        let got = separation_alignment(number(&case["page_size"]), number(&case["cache_line"]));
        assert_eq!(got, number::<u64>(&case["alignment"]), "{case}");
    }
}

/// 130 online CPUs in three groups; CPUs 4 and 70 may not be used; CPU 5 is offline.
fn large() -> Topology {
    let processors = (0..130_u32).filter(|cpu| *cpu != 5).map(|cpu| {
        let (group, number) = plumb_io::topology::place_of(cpu);
        Processor {
            group,
            number,
            core: cpu,
            node: 0,
            socket: 0,
            class: 0,
            allowed: ![4, 70].contains(&cpu),
        }
    });
    Topology { processors: processors.collect(), caches: Vec::new() }
}

fn check(entries: &[(u16, Option<u8>)], want: Result<&[Place], &str>) {
    let entries: Vec<_> =
        entries.iter().map(|&(group, processor)| AffinityEntry { group, processor }).collect();
    let got = order(&large(), &entries, AffinityTraversal::default());
    match (got, want) {
        (Ok(got), Ok(want)) => assert_eq!(got, want),
        (Err(got), Err(want)) => assert_eq!(got.to_string(), want),
        (got, want) => panic!("{got:?} is not {want:?}"),
    }
}

#[test]
fn processors_above_63_count_on() {
    check(
        &[(0, Some(100)), (1, Some(36)), (1, Some(65)), (0, Some(128))],
        Ok(&[(1, 36), (1, 36), (2, 1), (2, 0)]),
    );
}

#[test]
fn whole_groups_leave_out_what_may_not_be_used() {
    let topology = large();
    let all = |group| AffinityEntry { group, processor: None };
    let got = order(&topology, &[all(1), all(0)], AffinityTraversal::default()).expect("groups");
    assert_eq!(got.len(), 63 + 62);
    assert_eq!(got[..6], [(0, 0), (0, 1), (0, 2), (0, 3), (0, 6), (0, 7)]);
    assert!(!got.contains(&(1, 6)));
    let got = order(&topology, &[], AffinityTraversal::default()).expect("no list");
    assert_eq!(got.len(), 127);
}

#[test]
fn what_cannot_be_used_is_named() {
    check(
        &[(0, Some(0)), (0, Some(5)), (2, Some(2)), (2, Some(3)), (u16::MAX, Some(255))],
        Err("affinity names CPU 5,130-131,4194495, but only CPU 0-4,6-129 are online"),
    );
    check(
        &[(0, Some(4)), (0, Some(70))],
        Err("affinity names CPU 4,70, but this process may only run on CPU 0-3,6-69,71-129"),
    );
    check(
        &[(7, None), (0, Some(5))],
        Err("affinity names processor group 7, but this machine has group 0-2"),
    );
    let mut topology = large();
    topology.processors.retain(|processor| processor.cpu() < 71);
    topology.processors.retain(|processor| processor.group == 0 || !processor.allowed);
    let entry = AffinityEntry { group: 1, processor: None };
    let got = order(&topology, &[entry], AffinityTraversal::default());
    assert_eq!(
        got,
        Err(AffinityError::NotAllowed { cpus: "70".into(), allowed: "0-3,6-63".into() })
    );
}

#[test]
fn effective_affinity_is_what_the_threads_reach() {
    let order = [(0, 3), (0, 1)];
    assert_eq!(effective(&order, 1), [(0, 3)]);
    assert_eq!(effective(&order, 9), order);
    assert_eq!(effective(&order, 0), []);
}

#[test]
fn classes_are_mixed_only_with_the_highest() {
    let topology = machine(&serde_json::json!([
        {"group": 0, "cpu": 0, "core": 0, "class": 0},
        {"group": 0, "cpu": 1, "core": 1, "class": 2},
        {"group": 0, "cpu": 2, "core": 2, "class": 1},
        {"group": 0, "cpu": 3, "core": 3, "class": 2},
    ]));
    for (effective, want) in [
        (&[(0, 1), (0, 3)][..], false),
        (&[(0, 1), (0, 2)], true),
        (&[(0, 0), (0, 3)], true),
        (&[(0, 0), (0, 2)], false),
        (&[], false),
    ] {
        assert_eq!(mixes_classes(&topology, effective), want, "{effective:?}");
    }
}
