//! The choices of whole baselines over many seeds, against the curve that the device really has.

use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Choices, Setting, SimulatedDevice, Simulation, rehearse,
};

use crate::baseline_cases::{devices, scored};
use crate::score::Score;

/// Seeds of each device; `PLUMB_BASELINE_SEEDS` for more.
fn seeds() -> u64 {
    let given = std::env::var("PLUMB_BASELINE_SEEDS").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(1)
}

/// The device without anything that differs from run to run or from second to second.
pub(crate) fn quiet(device: &SimulatedDevice) -> SimulatedDevice {
    SimulatedDevice {
        noise: 0.0,
        ripple: 0.0,
        drift_per_hour: 0.0,
        burst: 0.0,
        stall_every_s: 0.0,
        slow_run_every: 0,
        ..device.clone()
    }
}

fn choices(device: &SimulatedDevice, options: &BaselineOptions) -> (usize, Choices) {
    let planner = BaselinePlanner::new(options.clone());
    let runs = rehearse(&planner, &mut Simulation::new(device.clone()));
    (runs.len(), planner.choices(&runs))
}

fn chosen(choices: &Choices) -> [(&'static str, Setting); 3] {
    let of = |curve: &Option<(_, Setting)>| curve.as_ref().expect("it is run").1.clone();
    [
        ("random", choices.random.clone()),
        ("reads", of(&choices.reads)),
        ("writes", of(&choices.writes)),
    ]
}

/// Distance from the true choice that counts as none, in throughput of the curve without noise.
const WITHIN: f64 = 0.03;

/// `PLUMB_BASELINE_EXHAUSTIVE` scores the exhaustive plan on the same noise as well, and how far two of them agree, which
/// is the most that a search can; it takes long.
fn with_exhaustive() -> bool {
    std::env::var_os("PLUMB_BASELINE_EXHAUSTIVE").is_some()
}

/// Counts the choices of a baseline: right is what was wanted, or what gives as much to 3 % either way.
fn count(
    score: &mut Score,
    whose: &str,
    device: &SimulatedDevice,
    found: &Choices,
    wanted: &Choices,
) {
    score.add(&format!("{whose}: files"), found.files == wanted.files);
    for ((what, found), (_, wanted)) in chosen(found).into_iter().zip(chosen(wanted)) {
        let off = device.truth(&found).0 / device.truth(&wanted).0 - 1.0;
        let is_right = found == wanted || off.abs() <= WITHIN;
        score.add(&format!("{whose}: {what}"), is_right);
        if !is_right {
            let (found, wanted) = (found.short(), wanted.short());
            println!(
                "{whose}, seed {}: {what}: {found} ({wanted}): {:+.1} %",
                device.seed,
                off * 100.0
            );
        }
    }
}

#[test]
fn choices_are_the_true_ones_whatever_the_noise() {
    let mut score = Score::default();
    for (name, device) in devices() {
        let options = scored();
        let exhaustive = BaselineOptions { exhaustive: true, ..options.clone() };
        // What the exhaustive plan would choose if no run differed from another.
        let (_, wanted) = choices(&quiet(&device), &exhaustive);
        for seed in 1..=seeds() {
            println!("{name}");
            let device = SimulatedDevice { seed: seed * 7919 + 1, ..device.clone() };
            let (runs, found) = choices(&device, &BaselineOptions { seed, ..options.clone() });
            assert!(runs <= 40, "{name}, seed {seed}: {runs} runs");
            count(&mut score, "searched", &device, &found, &wanted);
            if with_exhaustive() {
                let exhaustive = BaselineOptions { seed, ..exhaustive.clone() };
                let (_, all) = choices(&device, &exhaustive);
                count(&mut score, "exhaustive", &device, &all, &wanted);
                // The same plan on another day: more agreement with it cannot be had.
                let other = SimulatedDevice { seed: seed * 104_729 + 7, ..device.clone() };
                let (_, again) = choices(&other, &exhaustive);
                count(&mut score, "exhaustive against another exhaustive", &device, &again, &all);
                let (_, again) = choices(&other, &BaselineOptions { seed, ..options.clone() });
                count(&mut score, "searched against an exhaustive", &device, &again, &all);
            }
        }
    }
    score.print();
    score.at_least("searched: files", 0.98);
    // Between two settings that are nearly equally good, noise of single runs decides, in the exhaustive plan as well.
    score.at_least("searched: random", 0.8);
    score.at_least("searched: reads", 0.9);
    score.at_least("searched: writes", 0.9);
}
