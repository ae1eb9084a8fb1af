//! Adaptive sweeps on ranges of 24 settings and more, against every setting run (method, 4.4): runs, verdict, throughput.
//!
//! Both kinds of sweep have the same repetitions, and the anchors of both are counted.

use std::collections::BTreeMap;

use plumb_study::knee::Policy;
use plumb_study::study::{
    RunRecord, Setting, SimulatedDevice, Simulation, SweepOptions, SweepPlan, SweepPlanner, Told,
    rehearse, sweep_findings,
};

use crate::choice_cases::quiet;
use crate::random::Random;
use crate::score::Score;

/// Given in the environment: `PLUMB_ADAPTIVE_DEVICES` for more devices of each range, `PLUMB_ADAPTIVE_FROM` for others.
fn given(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// SD between runs; `PLUMB_ADAPTIVE_NOISE=0.002,0.005` for others.
fn noises() -> Vec<f64> {
    let given = std::env::var("PLUMB_ADAPTIVE_NOISE").ok();
    let listed = given.as_deref().unwrap_or("0.003,0.01").split(',');
    listed.map(|word| word.parse().expect("a number")).collect()
}

const RANGES: [u64; 6] = [24, 31, 32, 40, 48, 64];

/// A device of a shape drawn at random, whose corner lies anywhere in a range of o, now and then beyond it.
fn device(seed: u64, last: u64, noise: f64) -> SimulatedDevice {
    let mut random = Random::seeded(seed);
    let mut between = |low: f64, high: f64| random.between(low.ln(), high.ln()).exp();
    let corner = between(1.5, 1.3 * last as f64);
    // Nothing here depends on how long an I/O takes, and remarks on millions of them take their time.
    let latency_us = 10_000.0;
    let max_iops = corner / (latency_us * 1e-6);
    let sharpness = between(1.5, 16.0);
    let usual = SimulatedDevice {
        seed,
        max_iops,
        max_mib_per_s: 1e8,
        latency_us,
        sharpness,
        noise,
        ripple: noise,
        ..SimulatedDevice::default()
    };
    match seed % 6 {
        0 => SimulatedDevice { cap_iops: max_iops * between(0.3, 0.9), ..usual },
        1 => SimulatedDevice { beyond: -between(0.03, 0.2), ..usual },
        2 => SimulatedDevice { beyond: between(0.01, 0.04), ..usual },
        3 => SimulatedDevice { drift_per_hour: -noise * between(1.0, 6.0), ..usual },
        _ => usual,
    }
}

struct Answer {
    runs: usize,
    verdict: String,
    recommended: Option<u64>,
    plateau: Option<u64>,
}

/// A plan without its policy, which has no say in which runs an exhaustive one makes.
fn options(last: u64, repetitions: u32, seed: u64) -> SweepOptions {
    SweepOptions {
        vary: vec![format!("o=1..{last}")],
        set: vec!["t=1".to_owned(), "w=0".to_owned()],
        repetitions: Some(repetitions),
        seed: Some(seed),
        // Nothing here depends on how long a run is: what runs differ by is given.
        duration: Some(10),
        full_length: Some(true),
        ..SweepOptions::default()
    }
}

fn runs(plan: SweepPlan, device: &SimulatedDevice) -> Vec<RunRecord> {
    rehearse(&SweepPlanner::new(plan), &mut Simulation::new(device.clone()))
}

fn answer(options: &SweepOptions, policy: Policy, runs: &[RunRecord]) -> Answer {
    let found = sweep_findings(&plan(options, policy), runs, Told::default());
    let knee = found.findings.iter().find(|of| of.id.starts_with("knee")).expect("a curve");
    let decision = &knee.decision;
    Answer {
        runs: runs.len(),
        verdict: decision["verdict"].as_str().expect("a word").to_owned(),
        recommended: decision["recommended_o"].as_u64(),
        plateau: decision["plateau_o"].as_u64(),
    }
}

fn plan(options: &SweepOptions, policy: Policy) -> SweepPlan {
    let policy = Some(policy.keyword().to_owned());
    SweepOptions { policy, ..options.clone() }.plan().expect("a plan")
}

/// Distance in true throughput that counts as none.
const WITHIN: f64 = 0.03;

/// How the throughput of what one sweep recommends stands to that of another, where both recommend something.
fn off(device: &SimulatedDevice, found: &Answer, wanted: &Answer) -> Option<f64> {
    let of = |o: u64| {
        let outstanding = u32::try_from(o).expect("o is in the range");
        let setting = Setting { threads: 1, outstanding, write_percent: 0, ..Setting::default() };
        device.truth(&setting).0
    };
    Some(of(found.recommended?) / of(wanted.recommended?) - 1.0)
}

/// What came out.
#[derive(Default)]
struct Outcome {
    score: Score,
    /// Distances in throughput.
    off: BTreeMap<String, Vec<f64>>,
}

impl Outcome {
    fn compare(&mut self, whose: &str, device: &SimulatedDevice, found: &Answer, wanted: &Answer) {
        let is_same = found.verdict == wanted.verdict;
        self.score.add(&format!("{whose}: verdict"), is_same);
        let seed = device.seed;
        if !is_same {
            let (found_at, wanted_at) = (found.plateau, wanted.plateau);
            let (found, wanted) = (&found.verdict, &wanted.verdict);
            println!(
                "  {whose}: {found} instead of {wanted} (seed {seed}, P {found_at:?} {wanted_at:?})"
            );
        }
        if found.verdict != "knee" || wanted.verdict != "knee" {
            return;
        }
        let off = off(device, found, wanted).expect("a knee recommends");
        self.score.add(&format!("{whose}: within 3 %"), off.abs() <= WITHIN);
        self.off.entry(whose.to_owned()).or_default().push(off);
        if off.abs() > WITHIN {
            println!(
                "  {whose}: o{:?} instead of o{:?}: {:+.1} % (seed {seed}, P {:?} {:?}, sharpness {:.1})",
                found.recommended.unwrap_or(0),
                wanted.recommended.unwrap_or(0),
                off * 100.0,
                found.plateau,
                wanted.plateau,
                device.sharpness
            );
        }
    }

    /// A device by both policies: the search and, where there is noise, all settings, twice.
    fn add(&mut self, last: u64, repetitions: u32, seed: u64) -> Vec<f64> {
        let exhaustive = options(last, repetitions, seed);
        let searched = SweepOptions { adaptive: Some(true), ..exhaustive.clone() };
        let single = options(last, 1, seed);
        let all =
            |device: &SimulatedDevice, options| runs(plan(options, Policy::Throughput), device);
        let truth = all(&quiet(&device(seed, last, 0.0)), &single);
        let most = SweepPlanner::new(plan(&exhaustive, Policy::Throughput)).runs_exhaustive();
        let mut saved = Vec::new();
        for noise in std::iter::once(0.0).chain(noises()) {
            let device = device(seed, last, noise);
            let other = SimulatedDevice { seed: seed * 7919 + 3, ..device.clone() };
            let noisy = (noise > 0.0).then(|| [&device, &other].map(|of| all(of, &exhaustive)));
            for policy in [Policy::Throughput, Policy::Balanced] {
                let name = format!("noise {noise}, {}", policy.keyword());
                let truth = answer(&single, policy, &truth);
                let found = answer(&searched, policy, &runs(plan(&searched, policy), &device));
                saved.push(1.0 - found.runs as f64 / most as f64);
                self.compare(&format!("search with truth, {name}"), &device, &found, &truth);
                // Without noise all settings are the truth.
                let Some(noisy) = &noisy else { continue };
                let [all, again] = noisy.each_ref().map(|runs| answer(&exhaustive, policy, runs));
                assert_eq!(all.runs as u64, most);
                self.compare(&format!("search with all, {name}"), &device, &found, &all);
                self.compare(&format!("all with truth, {name}"), &device, &all, &truth);
                self.compare(&format!("all with itself, {name}"), &device, &again, &all);
            }
        }
        saved
    }
}

#[test]
fn a_search_saves_more_than_half_of_the_runs_and_finds_the_same() {
    let devices = given("PLUMB_ADAPTIVE_DEVICES", 2);
    let from = given("PLUMB_ADAPTIVE_FROM", 100);
    let mut outcome = Outcome::default();
    let mut least_saved = Vec::new();
    for last in RANGES {
        for repetitions in [1, 2, 3] {
            let seed = |index: u64| (index * 101 + last) * 7 + u64::from(repetitions);
            let mut saved: Vec<f64> = (from..from + devices)
                .flat_map(|index| outcome.add(last, repetitions, seed(index)))
                .collect();
            saved.sort_by(f64::total_cmp);
            let mean = saved.iter().sum::<f64>() / saved.len() as f64;
            println!(
                "o=1..{last}, {repetitions} repetitions: saved {:.1} % at least, {:.1} % on average",
                saved[0] * 100.0,
                mean * 100.0
            );
            least_saved.push((last, repetitions, saved[0]));
        }
    }
    let Outcome { score, off } = outcome;
    score.print();
    for (whose, off) in &off {
        let mean = off.iter().sum::<f64>() / off.len() as f64;
        println!("{whose}: {:+.2} % on average", mean * 100.0);
    }
    for (last, repetitions, saved) in least_saved {
        assert!(saved >= 0.55, "o=1..{last}, {repetitions} repetitions: {saved}");
    }
    // In the mean throughput is nearer than 3 %, of every kind; a search is none that recommends too few or too many.
    for (whose, off) in &off {
        let mean = |of: fn(&f64) -> f64| off.iter().map(of).sum::<f64>() / off.len() as f64;
        let (signed, size) = (mean(|off| *off), mean(|off| off.abs()));
        assert!(size <= WITHIN, "{whose}: {size} on average, either way");
        assert!(signed.abs() <= WITHIN / 2.0, "{whose}: {signed} on average");
    }
    // By the policy that asks for throughput each case is, where noise is not as large as what is asked for.
    for (whose, off) in off.iter().filter(|(whose, _)| whose.starts_with("search with")) {
        if whose.ends_with("noise 0, throughput") || whose.ends_with("noise 0.003, throughput") {
            let most = off.iter().fold(0.0, |most: f64, off| most.max(off.abs()));
            assert!(most <= WITHIN, "{whose}: {most} off");
        }
    }
    for policy in [Policy::Throughput, Policy::Balanced].map(Policy::keyword) {
        // Without noise there is nothing that could excuse a search.
        let exact = format!("search with truth, noise 0, {policy}");
        score.at_least(&format!("{exact}: verdict"), 0.98);
        score.at_least(&format!("{exact}: within 3 %"), 0.95);
        for noise in noises() {
            for what in ["verdict", "within 3 %"] {
                // With it all runs of all settings do not agree with themselves either: no less often than that, within two standard
                // errors of the difference.
                let whose = |whose: &str| format!("{whose}, noise {noise}, {policy}: {what}");
                let itself = score.share(&whose("all with itself"));
                let count = f64::from(score.count(&whose("search with all")));
                let error = (2.0 * itself.min(0.95) * (1.0 - itself.min(0.95)) / count).sqrt();
                score.at_least(&whose("search with all"), itself - 2.0 * error);
            }
        }
    }
}
