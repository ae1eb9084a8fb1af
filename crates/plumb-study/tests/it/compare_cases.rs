//! Comparisons: false alarms, detection, direction, and intervals.

use plumb_study::compare::{self, Comparison, Metric, SteadyRun, Verdict};
use plumb_study::stats::distribution::normal_two_sided;

use crate::random::Random;
use crate::score::Score;

/// Counts one comparison; `change` is the true effect, + being better.
fn count(score: &mut Score, found: &Comparison, change: f64, error: f64) {
    let is = |verdict| found.verdict == verdict;
    if change == 0.0 {
        score.add("false alarm", is(Verdict::Better) || is(Verdict::Worse));
        if found.delta > 5.0 * error {
            score.add("same", is(Verdict::Same));
        }
    } else {
        let (right, wrong) = match change > 0.0 {
            true => (Verdict::Better, Verdict::Worse),
            false => (Verdict::Worse, Verdict::Better),
        };
        score.add("detected", is(right));
        score.add("wrong direction", is(wrong));
    }
    let (low, high) = found.interval;
    score.add("covered", low <= change && change <= high);
}

fn judge(score: &Score) {
    score.at_most("false alarm", 0.05);
    score.at_least("detected", 0.95);
    score.at_most("wrong direction", 0.0);
    score.at_least("same", 0.95);
    score.at_least("covered", 0.93);
}

fn metric(random: &mut Random) -> Metric {
    let (name, higher) = random.one_of(&[("iops", true), ("p99_ms", false), ("avg_lat_ms", false)]);
    Metric::named(name, higher)
}

/// A change of five standard errors or more, above what is relevant; or none. As ln of the values.
fn change(random: &mut Random, metric: &Metric, error: f64) -> (f64, f64) {
    let size = f64::max(5.0 * error, 1.3 * metric.delta) * random.between(1.0, 1.5);
    let ln = random.one_of(&[0.0, size, -size]);
    (ln, if metric.higher_is_better { ln.exp_m1() } else { -ln.exp_m1() })
}

#[test]
fn independent_runs() {
    let mut score = Score::default();
    for seed in 0..3000 {
        let mut random = Random::seeded(seed);
        let runs = random.one_of(&[2_u32, 3, 4, 5, 6, 8, 10]);
        let sigma = random.one_of(&[0.002, 0.005, 0.01, 0.02, 0.03]);
        let error = sigma * (2.0 / f64::from(runs)).sqrt();
        let metric = metric(&mut random);
        let (ln, effect) = change(&mut random, &metric, error);
        let mut draw = |level: f64| -> Vec<f64> {
            (0..runs).map(|_| 1000.0 * (level + sigma * random.normal()).exp()).collect()
        };
        let (baseline, candidate) = (draw(0.0), draw(ln));
        let estimate = compare::independent(&baseline, &candidate).expect("positive values");
        count(&mut score, &compare::judge(estimate, &metric), effect, error);
    }
    judge(&score);
}

#[test]
fn interleaved_runs_that_drift() {
    let mut score = Score::default();
    for seed in 0..2000 {
        let mut random = Random::seeded(seed + 10_000);
        let pairs = random.one_of(&[3_u32, 4, 5, 6, 8, 10]);
        let sigma = random.one_of(&[0.002, 0.005, 0.01, 0.02]);
        let error = sigma * (2.0 / f64::from(pairs)).sqrt();
        let drift = random.between(-0.01, 0.01);
        let metric = metric(&mut random);
        let (ln, effect) = change(&mut random, &metric, error);
        let runs: Vec<(f64, bool, f64)> = (0..2 * pairs)
            .map(|order| {
                // Each pair in an order of its own would do as well.
                let candidate = order % 4 == 1 || order % 4 == 2;
                let level = if candidate { ln } else { 0.0 } + drift * f64::from(order);
                let value = 1000.0 * (level + sigma * random.normal()).exp();
                (f64::from(order), candidate, value)
            })
            .collect();
        let estimate = compare::interleaved(&runs).expect("both arms");
        count(&mut score, &compare::judge(estimate, &metric), effect, error);
    }
    judge(&score);
}

/// Runs as series with a memory, some with a warm-up.
struct SeriesMaker {
    phi: f64,
    intervals: usize,
    noise: f64,
    between: f64,
    warm_up: usize,
}

impl SeriesMaker {
    fn run(&self, random: &mut Random, level: f64) -> Vec<f64> {
        let level = level + self.between * random.normal();
        let series = random.autoregressive(self.phi, self.intervals);
        let value = |(place, z): (usize, &f64)| {
            let cold = if place < self.warm_up { 0.7 } else { 1.0 };
            1000.0 * level.exp() * cold * (1.0 + self.noise * z)
        };
        series.iter().enumerate().map(value).collect()
    }

    /// Standard error of a difference of means of so many runs a side.
    fn error(&self, runs: u32) -> f64 {
        let kept = (self.intervals - self.warm_up) as f64;
        let worth = kept * (1.0 - self.phi) / (1.0 + self.phi);
        let within = self.noise.powi(2) / worth;
        let between = if runs == 1 { 0.015 } else { self.between };
        ((between.powi(2) + within) * 2.0 / f64::from(runs)).sqrt()
    }
}

#[test]
fn runs_as_series() {
    let mut score = Score::default();
    for seed in 0..600 {
        let mut random = Random::seeded(seed + 50_000);
        let runs = random.one_of(&[1_u32, 3, 4, 5, 6]);
        let intervals = random.one_of(&[60_usize, 120, 300]);
        let maker = SeriesMaker {
            phi: random.one_of(&[0.0, 0.3, 0.6, 0.8]),
            intervals,
            noise: random.one_of(&[0.01, 0.02, 0.05]),
            between: random.one_of(&[0.0, 0.003, 0.01]),
            warm_up: random.one_of(&[0, 0, intervals / 6]),
        };
        let metric = Metric::named("iops", true);
        let error = maker.error(runs);
        let (ln, effect) = change(&mut random, &metric, error);
        let mut side = |level: f64| -> Vec<SteadyRun> {
            (0..runs)
                .map(|_| SteadyRun::of(&maker.run(&mut random, level), 1.0).expect("a series"))
                .collect()
        };
        let (baseline, candidate) = (side(0.0), side(ln));
        let estimate = compare::of_series(&baseline, &candidate).expect("positive values");
        count(&mut score, &compare::judge(estimate, &metric), effect, error);
    }
    judge(&score);
}

/// What a normal estimate about `mean` exceeds `limit` with.
fn exceeds(limit: f64, mean: f64, error: f64) -> f64 {
    let z = (mean - limit) / error;
    let outside = normal_two_sided(z.abs()) / 2.0;
    if z > 0.0 { 1.0 - outside } else { outside }
}

/// Changes that the rule of 6.2 itself cannot find more often: its ceiling beside what is found (decision 0146).
fn against_ceiling(score: &Score, ceiling: f64) {
    let found = score.share("detected");
    println!("the rule allows {:.1} %", ceiling * 100.0);
    // From six runs a side on ranks have to agree with means, which takes some more.
    assert!((ceiling - 0.05..=ceiling + 0.03).contains(&found), "{found} of {ceiling}");
    score.at_most("false alarm", 0.05);
    score.at_most("wrong direction", 0.0);
}

#[test]
fn one_series_a_side_finds_what_its_rule_lets_it() {
    // Degrees of freedom of the spread that is assumed, and its quantile.
    const ASSUMED: f64 = 0.015;
    const T_95: f64 = 2.262;
    let mut score = Score::default();
    let (mut ceiling, mut changed) = (0.0, 0.0);
    for seed in 0..3000 {
        let mut random = Random::seeded(seed + 90_000);
        let intervals = random.one_of(&[120_usize, 180, 300]);
        let maker = SeriesMaker {
            phi: random.one_of(&[0.0, 0.3, 0.6]),
            intervals,
            noise: random.one_of(&[0.005, 0.01, 0.02, 0.05]),
            between: random.one_of(&[0.0, 0.005, 0.015]),
            warm_up: 0,
        };
        let metric = Metric::named("iops", true);
        let worth = intervals as f64 * (1.0 - maker.phi) / (1.0 + maker.phi);
        let inside = maker.noise / worth.sqrt() * std::f64::consts::SQRT_2;
        // Five of the errors that a series knows of itself, which is not all that it may be off by.
        let size = f64::max(5.0 * inside, 1.05 * metric.delta) * random.between(1.0, 1.5);
        let ln = random.one_of(&[0.0, size, -size]);
        let mut side =
            |level: f64| [SteadyRun::of(&maker.run(&mut random, level), 1.0).expect("a series")];
        let (baseline, candidate) = (side(0.0), side(ln));
        let estimate = compare::of_series(&baseline, &candidate).expect("positive values");
        count(&mut score, &compare::judge(estimate, &metric), ln.exp_m1(), inside);
        if ln != 0.0 {
            let apart = |between: f64| (2.0 * between.powi(2) + inside.powi(2)).sqrt();
            let matters = if ln > 0.0 { metric.delta.ln_1p() } else { -(-metric.delta).ln_1p() };
            let limit = f64::max(T_95 * apart(ASSUMED), matters);
            ceiling += exceeds(limit, ln.abs(), apart(maker.between));
            changed += 1.0;
        }
    }
    against_ceiling(&score, ceiling / changed);
}

#[test]
fn changes_just_above_what_matters_are_found_as_often_as_they_are_seen_to_be() {
    let mut score = Score::default();
    let (mut ceiling, mut changed) = (0.0, 0.0);
    for seed in 0..4000 {
        let mut random = Random::seeded(seed + 120_000);
        let runs = random.one_of(&[4_u32, 5, 6, 8, 10]);
        let metric = metric(&mut random);
        let matters = metric.delta.ln_1p();
        // 1.0 to 1.1 of what matters, five to ten standard errors.
        let size = matters * random.between(1.0, 1.1);
        let error = size / random.between(5.0, 10.0);
        let sigma = error / (2.0 / f64::from(runs)).sqrt();
        let ln = random.one_of(&[0.0, size]);
        let mut draw = |level: f64| -> Vec<f64> {
            (0..runs).map(|_| 1000.0 * (level + sigma * random.normal()).exp()).collect()
        };
        let (baseline, candidate) = (draw(0.0), draw(ln));
        let estimate = compare::independent(&baseline, &candidate).expect("positive values");
        let effect = if metric.higher_is_better { ln.exp_m1() } else { -ln.exp_m1() };
        count(&mut score, &compare::judge(estimate, &metric), effect, error);
        if ln != 0.0 {
            ceiling += exceeds(matters, ln, error);
            changed += 1.0;
        }
    }
    against_ceiling(&score, ceiling / changed);
}

/// How often a difference that a comparison says to be found in nine of ten cases is told as better, of runs that are drawn like those that it was told of.
fn share_found(each: usize, deviation: f64, delta: f64) -> f64 {
    let metric = Metric { delta, ..Metric::named("iops", true) };
    let mut random = Random::seeded(u64::try_from(each).expect("few"));
    let mut compared = |difference: f64| {
        let mut draw = |mean: f64| -> Vec<f64> {
            (0..each).map(|_| (mean + deviation * random.normal()).exp()).collect()
        };
        let (baseline, candidate) = (draw(9.0), draw(9.0 + difference));
        let estimate = compare::independent(&baseline, &candidate).expect("runs of both");
        compare::judge(estimate, &metric)
    };
    let found = (0..2000).filter(|_| {
        let told = compare::detectable(&compared(0.0)).expect("runs of both");
        compared(told.ln_1p()).verdict == Verdict::Better
    });
    found.count() as f64 / 2000.0
}

/// 5.3, "printed with the detectable difference": few runs know little of how far they differ, and a verdict asks for a relevant effect (6.2).
#[test]
fn what_is_said_to_be_found_in_nine_of_ten_cases_is() {
    let mut off = Vec::new();
    for each in [2, 3, 5, 8, 20] {
        for deviation in [0.004, 0.01, 0.03] {
            let share = share_found(each, deviation, 0.02);
            println!("{each} runs a side, {deviation}: {share:.3} found");
            // No smaller an error is taken for runs than for few of a quiet device: more are found.
            let most = if deviation < 0.01 { 0.95 } else { 0.93 };
            if !(0.87..=most).contains(&share) {
                off.push((each, deviation, share));
            }
        }
    }
    assert!(off.is_empty(), "{off:?}");
}
