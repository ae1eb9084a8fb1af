//! What the reading rules say of several runs: of what was chosen, of the study as a whole, and of nothing else
//! (method, section 8).

use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Findings, SimulatedDevice, Simulation, State, SweepOptions,
    SweepPlanner, Told, baseline_findings, rehearse, sweep_findings,
};
use serde_json::{Value, json};

/// A rotating disk with a write cache and a link of 250 MB/s, behind a network.
fn machine() -> Value {
    json!({ "groups": {
        "device": [{ "rotational": true, "link_speed": "2.5 GT/s PCIe", "link_width": "1" }],
        "queue": [{ "write_cache": "write back" }],
        "fs": [{ "kind": "nfs4" }],
    } })
}

/// A device that is faster than all that: 655 MB/s of 8 KiB, half of all writes below 100 µs.
fn fast() -> SimulatedDevice {
    SimulatedDevice { max_iops: 80_000.0, latency_us: 10.0, write_cost: 1.0, ..slow() }
}

/// 20 MB/s, and no write below 100 µs.
fn slow() -> SimulatedDevice {
    SimulatedDevice {
        max_iops: 2500.0,
        latency_us: 400.0,
        noise: 0.001,
        ..SimulatedDevice::default()
    }
}

/// `R11 of the best setting`, and so on.
fn said(findings: &Findings) -> Vec<String> {
    let reading = findings.findings.iter().find(|finding| finding.id == "reading");
    let evidence = reading.and_then(|finding| finding.decision["evidence"].as_array());
    let names = evidence.into_iter().flatten().filter_map(|item| item["name"].as_str());
    names.map(str::to_owned).collect()
}

fn sweep(vary: &[&str], set: &[&str], device: SimulatedDevice, machine: &Value) -> Vec<String> {
    let own = |list: &[&str]| list.iter().map(|text| (*text).to_owned()).collect();
    let options = SweepOptions {
        vary: own(vary),
        set: own(set),
        repetitions: Some(2),
        ..SweepOptions::default()
    };
    let plan = options.plan().expect("a plan");
    let runs = rehearse(&SweepPlanner::new(plan.clone()), &mut Simulation::new(device));
    let told =
        Told { study: "s", state: State::Complete, environment: Some(machine), ..Told::default() };
    said(&sweep_findings(&plan, &runs, told))
}

/// Of whom a rule speaks, each remark on its own.
fn of(said: &[String], rule: &str) -> Vec<String> {
    let start = format!("{rule} of ");
    said.iter().filter_map(|name| name.strip_prefix(&start)).map(str::to_owned).collect()
}

const RULES: [&str; 3] = ["R11", "R16", "R22"];

#[test]
fn a_chosen_setting_is_held_against_its_devices() {
    let all = sweep(&["o=1..12"], &["t=1", "w=50"], fast(), &machine());
    for rule in ["R11", "R16"] {
        assert_eq!(of(&all, rule), ["the best setting"], "{rule}: {all:?}");
    }
    assert_eq!(of(&all, "R22"), ["the whole"], "{all:?}");
    // A device that does what a disk can do, behind nothing.
    let own = json!({ "groups": { "device": [{
        "rotational": true, "link_speed": "2.5 GT/s PCIe", "link_width": "1",
    }] } });
    let all = sweep(&["o=1..12"], &["t=1", "w=50"], slow(), &own);
    assert!(RULES.iter().all(|rule| of(&all, rule).is_empty()), "{all:?}");
    // Without a look at the machine nothing is known of it.
    let all = sweep(&["o=1..12"], &["t=1", "w=50"], fast(), &Value::Null);
    assert!(RULES.iter().all(|rule| of(&all, rule).is_empty()), "{all:?}");
    // Reads are not written.
    let all = sweep(&["o=1..12"], &["t=1", "w=0"], fast(), &machine());
    assert!(of(&all, "R16").is_empty() && !of(&all, "R11").is_empty(), "{all:?}");
}

#[test]
fn of_settings_among_which_nobody_chose_nothing_is_said() {
    // One setting of each workload: none is better than another.
    let all = sweep(&["b=8K,64K"], &["t=1", "w=50", "o=8"], fast(), &machine());
    assert!(all.iter().any(|name| name.ends_with("of the first setting")), "{all:?}");
    for rule in ["R11", "R16", "R21", "R23"] {
        assert!(of(&all, rule).is_empty(), "{rule}: {all:?}");
    }
    // What is of the machine is of every setting.
    assert_eq!(of(&all, "R22"), ["the whole"], "{all:?}");
}

#[test]
fn the_only_setting_needs_no_choice() {
    let all = sweep(&["o=8"], &["t=1", "w=50"], fast(), &machine());
    for rule in ["R11", "R16"] {
        assert_eq!(of(&all, rule), ["the only setting"], "{rule}: {all:?}");
    }
}

#[test]
fn each_workload_is_held_against_the_devices_by_itself() {
    // 8 KiB are above what the link carries, 512 bytes are not.
    let all = sweep(&["b=512,8K", "o=1..8"], &["t=1", "w=50"], fast(), &machine());
    assert_eq!(of(&all, "R11"), ["the best setting of b8K"], "{all:?}");
    let both = "the best setting of b512 and the best setting of b8K";
    assert!(of(&all, "R16").concat().contains("the best setting of b8K"), "{all:?}");
    assert!(of(&all, "R21").len() == 2 || of(&all, "R21") == [both], "{all:?}");
    assert_eq!(of(&all, "R22"), ["the whole"], "{all:?}");
}

#[test]
fn a_baseline_holds_sequential_io_against_the_link_too() {
    let options = BaselineOptions { size: Some(1 << 30), ..BaselineOptions::default() };
    let device = SimulatedDevice { max_iops: 20_000.0, max_mib_per_s: 1000.0, ..slow() };
    let planner = BaselinePlanner::new(options.clone());
    let runs = rehearse(&planner, &mut Simulation::new(device));
    let machine = machine();
    let told = Told { study: "s", environment: Some(&machine), ..Told::default() };
    let all = said(&baseline_findings(&options, &runs, told));
    let links = of(&all, "R11");
    assert!(links.iter().any(|of| of == "sequential reads"), "{all:?}");
    assert!(links.iter().any(|of| of == "sequential writes"), "{all:?}");
    // 20,000 × 8 KiB are 164 MB/s.
    assert!(!links.iter().any(|of| of.contains("small random I/O")), "{all:?}");
}
