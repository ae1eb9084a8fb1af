//! Whether baselines and sweeps tell that the device changed while it was measured.

use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Findings, Preset, RunRecord, SimulatedDevice, Simulation,
    SweepOptions, SweepPlanner, Told, baseline_findings, rehearse, sweep_findings,
};
use serde_json::Value;

/// The plans of a baseline by name.
fn presets() -> [(&'static str, BaselineOptions); 4] {
    let usual = || BaselineOptions { size: Some(64 << 30), ..BaselineOptions::default() };
    [
        ("default", usual()),
        ("quick", BaselineOptions { preset: Preset::Quick, size: Some(1 << 30), ..usual() }),
        ("exhaustive", BaselineOptions { exhaustive: true, ..usual() }),
        ("published", BaselineOptions { preset: Preset::Published, ..usual() }),
    ]
}

/// A device with a soft corner at fifteen to twenty-two outstanding I/Os of each of eight threads.
fn device(noise: f64, seed: u64) -> SimulatedDevice {
    SimulatedDevice {
        max_iops: 45_500.0,
        latency_us: 743.8,
        sharpness: 2.0,
        write_cost: 2.09,
        max_mib_per_s: 8000.0,
        noise,
        seed,
        ..SimulatedDevice::default()
    }
}

fn baseline(device: SimulatedDevice, options: &BaselineOptions) -> (Vec<RunRecord>, Findings) {
    let planner = BaselinePlanner::new(options.clone());
    let runs = rehearse(&planner, &mut Simulation::new(device));
    let told = Told { study: "s", runs_exhaustive: 97, ..Told::default() };
    let findings = baseline_findings(options, &runs, told);
    (runs, findings)
}

/// Verdict and value of the finding on drift; `None` where there is none.
fn drift(findings: &Findings) -> Option<(&str, f64)> {
    let found = findings.findings.iter().find(|finding| finding.id == "drift")?;
    Some((found.decision["verdict"].as_str()?, found.decision["value"].as_f64()?))
}

#[test]
fn every_preset_of_a_baseline_tells_that_the_device_changed() {
    for (name, options) in presets() {
        let (still, _) = baseline(device(0.003, 1), &options);
        let hours = still.last().expect("runs").ended_s / 3600.0;
        for share in [-0.05, -0.10, -0.30_f64] {
            const SEEDS: u64 = 2;
            let (mut least, mut disturbed) = (f64::INFINITY, 0);
            for seed in 1..=SEEDS {
                let drift_per_hour = share.ln_1p() / hours;
                let moving = SimulatedDevice { drift_per_hour, ..device(0.003, seed) };
                let (runs, findings) = baseline(moving, &options);
                let (verdict, value) = drift(&findings).expect("a finding");
                assert!(["drift", "disturbed"].contains(&verdict), "{name}, {share}: {verdict}");
                // How long it takes, and so how far the device goes, depends on what it finds.
                let took = runs.last().expect("runs").ended_s / 3600.0;
                let really = (drift_per_hour * took).exp_m1();
                assert!((value / really - 1.0).abs() < 0.3, "{name}: {value}, not {really}");
                least = f64::min(least, -value);
                let is_disturbed = verdict == "disturbed";
                disturbed += u64::from(is_disturbed);
                let first = &findings.findings[0];
                assert_eq!(first.sentence.contains("is disturbed"), is_disturbed, "{name}");
                let flags = first.decision["flags"].as_array().expect("flags");
                assert_eq!(flags.contains(&Value::from("disturbed")), is_disturbed, "{name}");
            }
            println!("{name}, {share}: {disturbed} of {SEEDS} disturbed, at least {least:.3}");
            assert!(share > -0.2 || disturbed == SEEDS, "{name}, {share}");
            assert!(share < -0.07 || disturbed == 0, "{name}, {share}");
        }
    }
}

/// Devices that stay the same; `PLUMB_DRIFT_SEEDS` sets how many. A day of runs takes longer.
fn seeds(options: &BaselineOptions) -> u64 {
    let set = std::env::var("PLUMB_DRIFT_SEEDS").ok().and_then(|seeds| seeds.parse().ok());
    set.unwrap_or(if options.is_exhaustive() { 5 } else { 20 })
}

#[test]
fn a_device_that_stays_the_same_is_not_told_to_have_changed() {
    for (name, options) in presets() {
        let (mut told, mut open) = (0, 0);
        let seeds = seeds(&options);
        for seed in 1..=seeds {
            let (runs, findings) = baseline(device(0.005, seed), &options);
            assert!(options.is_exhaustive() || runs.len() <= 40, "{name}: {}", runs.len());
            match drift(&findings).expect("a finding").0 {
                "stable" => {}
                "unclear" => open += 1,
                _ => told += 1,
            }
        }
        println!("{name}: {told} of {seeds} changed, {open} unclear");
        assert!(told * 20 <= seeds, "{name}: {told} of {seeds}");
        assert!(open * 10 <= seeds, "{name}: {open} of {seeds}");
    }
}

#[test]
fn an_exhaustive_plan_finds_the_corner_of_a_device_that_drifts() {
    for preset in [Preset::Published, Preset::Standard] {
        let options = BaselineOptions {
            size: Some(64 << 30),
            preset,
            exhaustive: true,
            ..BaselineOptions::default()
        };
        let plateau = |drift_per_hour: f64| {
            let moving = SimulatedDevice { drift_per_hour, ..device(0.003, 1) };
            let (_, findings) = baseline(moving, &options);
            ["random-1", "sequential-read", "sequential-write"].map(|id| {
                let found = findings.findings.iter().find(|finding| finding.id == id).expect(id);
                let verdict = found.decision["verdict"].as_str().expect("a word").to_owned();
                (verdict, found.decision["plateau_o"].as_u64())
            })
        };
        let per_hour = if preset == Preset::Published { -0.02 } else { -0.2 };
        let (still, moving) = (plateau(0.0), plateau(per_hour));
        println!("{preset:?}: {still:?}, {moving:?}");
        for ((verdict, o), (other, moved)) in still.into_iter().zip(moving) {
            assert_eq!(verdict, other, "{preset:?}");
            let (o, moved) = (o.expect("a plateau") as f64, moved.expect("a plateau") as f64);
            assert!((moved / o).ln().abs() < 0.15, "{preset:?}: {moved}, not {o}");
        }
    }
}

fn sweep(moving: &SimulatedDevice, toml: &str) -> Findings {
    let plan = SweepOptions::of_toml(toml).expect("a plan").plan().expect("settings");
    let planner = SweepPlanner::new(plan.clone());
    let runs = rehearse(&planner, &mut Simulation::new(moving.clone()));
    sweep_findings(&plan, &runs, Told { study: "s", ..Told::default() })
}

#[test]
fn a_sweep_of_a_few_runs_tells_drift_by_what_it_repeats() {
    let plan = "vary = [\"o=4,8,12\"]\nrepetitions = 3";
    let mut told = 0;
    for seed in 1..=20 {
        let still = device(0.003, seed);
        let moving = SimulatedDevice { drift_per_hour: -1.0, ..still.clone() };
        let found = sweep(&moving, plan);
        let (verdict, value) = drift(&found).expect("a finding");
        assert_eq!(verdict, "disturbed", "{value}");
        assert!((-0.22..-0.08).contains(&value), "{value}");
        let is_ceiling = |text: &str| text.contains("a ceiling");
        assert!(!found.findings.iter().any(|f| is_ceiling(&f.sentence)), "{seed}");
        told += u32::from(drift(&sweep(&device(0.005, seed), plan)).expect("one").0 != "stable");
    }
    assert!(told <= 1, "{told} of 20 that stayed the same");
}

/// A device that becomes faster makes the first of each setting's repetitions the slowest one: that is no warm-up, and not what
/// its runs differ by.
#[test]
fn a_drift_is_no_warm_up_and_no_noise_between_runs() {
    let plan = "vary = [\"o=1..16\"]\nrepetitions = 3\nfull-length = true";
    for seed in 1..=3 {
        let moving = SimulatedDevice { drift_per_hour: 0.05, ..device(0.01, seed) };
        let found = sweep(&moving, plan);
        let (verdict, value) = drift(&found).expect("a finding");
        assert!(verdict != "stable" && value > 0.03, "{verdict}: {value}");
        let notes = found.notes.join("\n");
        assert!(!notes.contains("warm-up may be needed"), "{notes}");
        let said = notes.split("runs of one setting differ by ").nth(1);
        let noise = said.and_then(|rest| rest.split(' ').next()?.parse::<f64>().ok());
        assert!(noise.is_none_or(|percent| percent < 1.5), "{notes}");
    }
}

/// Three reference runs know nothing of noise that all repetitions of the sweep tell.
#[test]
fn noise_of_a_sweep_with_few_reference_runs_is_no_drift() {
    let plan = "vary = [\"o=1,2,4,8,16,32\"]\nrepetitions = 2";
    let (mut told, mut stable) = ([0, 0, 0], 0);
    for seed in 1..=40 {
        let cases = [(0.1, 0.0), (0.03, 0.0), (0.01, -2.0)];
        for (count, (noise, drift_per_hour)) in told.iter_mut().zip(cases) {
            let of = SimulatedDevice { drift_per_hour, ..device(noise, seed) };
            let found = sweep(&of, plan);
            let (verdict, value) = drift(&found).expect("a finding");
            *count += u32::from(matches!(verdict, "drift" | "disturbed") && value.abs() > 0.02);
            // Nobody knows that a device stayed the same by runs that differ by as much, unless they agree by chance.
            stable += u32::from(noise >= 0.03 && verdict == "stable");
        }
    }
    println!(
        "told of 40: {} and {} without drift, {} with it; {stable} of 80 stable",
        told[0], told[1], told[2]
    );
    assert!(told[0] <= 2 && told[1] <= 2 && told[2] == 40 && stable <= 2, "{told:?}, {stable}");
}
