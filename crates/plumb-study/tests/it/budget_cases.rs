//! Sweeps with less time than their settings need (method, 4.5).

use plumb_study::study::{
    Purpose, RunRecord, SimulatedDevice, Simulation, SweepOptions, SweepPlan, SweepPlanner,
    rehearse,
};

fn plan(budget: &str, order: &str) -> SweepPlan {
    let text = format!(
        "vary = [\"o=1..32\", \"b=4K,64K\"]\nbudget = \"{budget}\"\norder = \"{order}\"\nfull-length = true"
    );
    SweepOptions::of_toml(&text).expect("keys").plan().expect("a plan")
}

fn runs(plan: &SweepPlan) -> Vec<RunRecord> {
    let device = SimulatedDevice { noise: 0.004, ..SimulatedDevice::default() };
    let mut runs = rehearse(&SweepPlanner::new(plan.clone()), &mut Simulation::new(device));
    runs.retain(|run| run.purpose != Purpose::Anchor);
    runs
}

fn depths(runs: &[RunRecord], block_bytes: u64) -> Vec<u32> {
    let own = runs.iter().filter(|run| run.setting.block_bytes == block_bytes);
    own.map(|run| run.setting.outstanding).collect()
}

#[test]
fn the_coarse_look_at_every_curve_comes_first_then_what_lies_between() {
    let runs = runs(&plan("2h", "random"));
    for block_bytes in [4096, 65_536] {
        let mut coarse = depths(&runs[..12], block_bytes);
        coarse.sort_unstable();
        assert_eq!(coarse, [1, 2, 4, 8, 16, 32]);
        let mut finer = depths(&runs[12..20], block_bytes);
        finer.sort_unstable();
        assert_eq!(finer, [3, 6, 12, 24]);
    }
    // Each once before any is repeated.
    assert_eq!(runs[..64].iter().filter(|run| run.repetition == 1).count(), 64);
}

#[test]
fn repetitions_go_where_they_decide_and_the_least_known_is_first() {
    let runs = runs(&plan("2h", "random"));
    let repeats = &runs[64..];
    // What is recommended of both curves (o = 4 and 2), and what has the throughput of their plateaus (6 and 7; 3).
    let first: Vec<(u32, u32)> =
        repeats[..5].iter().map(|run| (run.setting.outstanding, run.repetition)).collect();
    assert!(
        first.iter().all(|(o, repetition)| (2..=7).contains(o) && *repetition == 2),
        "{first:?}"
    );
    for recommended in [2, 4] {
        assert!(first.iter().any(|(o, _)| *o == recommended), "{first:?}");
    }
}

#[test]
fn an_order_that_was_asked_for_stays() {
    let plan = plan("20m", "sorted");
    let runs = runs(&plan);
    let load: Vec<u64> = runs.iter().map(|run| run.setting.total_outstanding()).collect();
    assert!(load.is_sorted(), "{load:?}");
}
