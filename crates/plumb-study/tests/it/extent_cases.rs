//! How many runs an exhaustive plan says it takes, before and while its ranges are extended (method, 2.6).

use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Extent, Part, Planner, RunRecord, SimulatedDevice,
    Simulation, rehearse,
};

/// What is told after each run of a plan that takes so many.
fn told(options: &BaselineOptions, device: SimulatedDevice) -> (Vec<Extent>, Vec<RunRecord>) {
    let planner = BaselinePlanner::new(options.clone());
    let runs = rehearse(&planner, &mut Simulation::new(device));
    let of = |done: usize| planner.extent(&runs[..done]).expect("an exhaustive plan");
    ((0..=runs.len()).map(of).collect(), runs)
}

/// (2.6, 4.5) The number of runs is told before the first one, anew when a range is extended, and in no other way: no run is beyond
/// what was told, and at the end it is what was run.
#[test]
fn what_an_exhaustive_plan_takes_is_told_when_a_range_is_extended() {
    let shallow = SimulatedDevice { noise: 0.001, ripple: 0.0, ..SimulatedDevice::default() };
    let deep = SimulatedDevice {
        latency_us: 5e3,
        max_mib_per_s: 3000.0,
        max_iops: 400_000.0,
        ..shallow.clone()
    };
    let skip = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    let size = Some(64 << 30);
    let all = BaselineOptions { exhaustive: true, size, ..BaselineOptions::default() };
    for (name, device, options, is_extended) in [
        ("shallow", shallow.clone(), all.clone(), false),
        ("sequential", deep.clone(), BaselineOptions { part: Part::Olap, ..all.clone() }, true),
        ("random", deep.clone(), BaselineOptions { part: Part::Oltp, ..all.clone() }, true),
        (
            "few steps",
            deep.clone(),
            BaselineOptions { skip: skip(&["random-1", "sequential-write"]), ..all.clone() },
            true,
        ),
        ("few in all", deep, BaselineOptions { outstanding_most: 40, ..all.clone() }, false),
    ] {
        let (told, runs) = told(&options, device);
        let last = told.last().expect("one more than runs");
        let count = runs.len() as u64;
        assert_eq!((last.planned, last.extended), (count, count), "{name}");
        assert_eq!(options.runs_most(), told[0].planned, "{name}");
        let mut steps = vec![told[0].planned];
        for (done, pair) in told.windows(2).enumerate() {
            let (before, after) = (pair[0], pair[1]);
            let said = format!("{name}, {done} runs: {before:?} {after:?}");
            assert!((done as u64) < before.planned, "{said}");
            assert!(after.planned <= after.extended && after.extended <= before.extended, "{said}");
            let settled = told[..=done].iter().enumerate();
            let is_settled =
                settled.clone().any(|(at, extent)| ((done + 1 - at) as u64) < extent.settled);
            if after.planned != before.planned {
                assert!(!is_settled, "{said}");
                steps.push(after.planned);
            }
        }
        println!("{name}: {steps:?}, at most {}", told[0].extended);
        // The pairs of random test 2, two or three ranges with one or two extensions each, and what lies below a range.
        assert!(steps.len() <= 7, "{name}: {steps:?}");
        let is_more = steps.iter().any(|planned| *planned > told[0].planned + 12);
        assert_eq!(is_more, is_extended, "{name}: {steps:?}");
    }
    // One that runs no range has nothing to tell beyond its plan.
    assert_eq!(BaselinePlanner::new(BaselineOptions::default()).extent(&[]), None);
}
