//! Nominal 95 % intervals of single runs, on series that remember.

use plumb_study::precision;
use plumb_study::study::{
    Due, Order, Perform, Performance, Purpose, Setting, SimulatedDevice, Simulation, SteadyPart,
    says_enough, summarise,
};

use crate::random::Random;
use crate::score::Score;

#[test]
fn intervals_cover_what_they_promise() {
    let mut random = Random::seeded(5);
    let mut score = Score::default();
    let mut long_enough = 0;
    while long_enough < 2000 {
        let phi = random.one_of(&[0.0, 0.3, 0.5, 0.7, 0.8, 0.9]);
        let count = random.one_of(&[60_u32, 120, 180, 300, 600]);
        let length = usize::try_from(count).expect("a short series");
        let series: Vec<f64> =
            random.autoregressive(phi, length).iter().map(|x| 1000.0 + 20.0 * x).collect();
        let interval = precision::of_series(&series).expect("long enough");
        let covered = (interval.mean - 1000.0).abs() <= interval.half_width;
        if f64::from(count) * (1.0 - phi) / (1.0 + phi) >= precision::EFFECTIVE_LEAST {
            long_enough += 1;
            score.add("covered, worth 15 values", covered);
        }
        if interval.is_long_enough() {
            score.add("covered, said to be worth 15 values", covered);
        }
    }
    for what in ["covered, worth 15 values", "covered, said to be worth 15 values"] {
        score.at_least(what, 0.93);
        score.at_most(what, 0.98);
    }
}

/// A run that is looked at each five seconds and ends as soon as it says enough, or after `most` seconds.
fn run_that_ends_early(random: &mut Random, phi: f64, most: usize) -> SteadyPart {
    let whole: Vec<f64> =
        random.autoregressive(phi, most).iter().map(|x| 1e4 * (0.02 * x).exp()).collect();
    let enough = |count: &usize| {
        let latencies: Vec<f64> = whole[..*count].iter().map(|rate| 1.0 / rate).collect();
        says_enough(&whole[..*count], &latencies)
    };
    let end = (5..most).step_by(5).find(enough).unwrap_or(most);
    let latencies: Vec<f64> = whole[..end].iter().map(|rate| 1.0 / rate).collect();
    SteadyPart::of(&whole[..end], &latencies, 1.0, end < most)
}

#[test]
fn intervals_cover_what_they_promise_when_runs_end_as_soon_as_they_say_enough() {
    // 2,400 in all with 400; the whole takes a while.
    let given = std::env::var("PLUMB_INTERVAL_SERIES").ok();
    let each: u32 = given.and_then(|text| text.parse().ok()).unwrap_or(150);
    let mut random = Random::seeded(17);
    let mut score = Score::default();
    let truth = 1e4 * (0.02_f64 * 0.02 / 2.0).exp();
    for (most, phi) in [(60, 0.0), (60, 0.3), (60, 0.5), (180, 0.3), (180, 0.5), (180, 0.8)] {
        for _ in 0..each {
            let part = run_that_ends_early(&mut random, phi, most);
            // What is too short for an interval promises none.
            let Some(half) = part.half_width.filter(|_| part.steadiness.warm_up.settled) else {
                continue;
            };
            let covered = (part.mean / truth - 1.0).abs() <= half;
            score.add("covered, worth 15 values", covered);
            score.add(&format!("covered, {most} s at most, correlation {phi}"), covered);
            if part.is_long_enough() {
                score.add("covered, said to be worth 15 values", covered);
            }
        }
    }
    score.print();
    for what in ["covered, worth 15 values", "covered, said to be worth 15 values"] {
        score.at_least(what, 0.93);
        score.at_most(what, 0.98);
    }
    for (most, phi) in [(60, 0.5), (180, 0.5), (180, 0.8)] {
        score.at_least(&format!("covered, {most} s at most, correlation {phi}"), 0.9);
    }
}

/// Runs of a study on a device whose seconds resemble each other, judged as the study judges them.
fn covered(ripple: f64, correlation: f64, early_end: bool) -> f64 {
    let device = SimulatedDevice {
        seed: 11,
        noise: 0.0,
        ripple,
        ripple_correlation: correlation,
        latency_cost: 0.0,
        sharpness: 20.0,
        max_mib_per_s: 100_000.0,
        ..SimulatedDevice::default()
    };
    let setting = Setting {
        threads: 1,
        outstanding: 300,
        write_percent: 0,
        measured_s: 180,
        ..Setting::default()
    };
    let truth = device.truth(&setting).0 * (ripple * ripple / 2.0).exp();
    let order = Order {
        step: "sweep".to_owned(),
        purpose: Purpose::Measure,
        repetition: 1,
        setting: setting.clone(),
    };
    let mut simulation = Simulation::new(device);
    let (mut all, mut inside) = (0, 0);
    for run in 1..=300 {
        let performed = simulation.perform(Due { run, seed: 1, order: &order, early_end });
        let Performance::Result(result) = performed.outcome else { panic!("it is measured") };
        let summary = summarise(&result, &setting).expect("figures");
        if summary.steady && summary.effective.is_some_and(|effective| effective >= 15.0) {
            all += 1;
            let off = (summary.iops / truth - 1.0).abs();
            inside += i32::from(off <= summary.half_width.expect("an interval"));
        }
    }
    assert!(all >= 200, "{all} runs were long enough");
    f64::from(inside) / f64::from(all)
}

#[test]
fn intervals_of_whole_runs_cover_what_they_promise_with_warm_ups_cut_and_early_ends() {
    for (ripple, correlation) in [(0.03, 0.0), (0.03, 0.5)] {
        for early_end in [true, false] {
            let share = covered(ripple, correlation, early_end);
            println!("ripple {ripple}, correlation {correlation}, early {early_end}: {share:.3}");
            assert!(share >= 0.93, "{ripple} {correlation} {early_end}: {share}");
        }
    }
}
