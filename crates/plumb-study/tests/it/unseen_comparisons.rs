//! Comparisons as somebody may write them who has only the formats and the goals (method, 6.3), judged as objects; beside
//! what is found stands what the rule of 6.2 finds as it is written.

use plumb_study::compare::{Metric, SteadyRun, Verdict};
use plumb_study::samples;
use plumb_study::stats::describe::{deviation, mean, variance};
use plumb_study::stats::distribution::t_95;
use plumb_study::stats::ranks::hodges_lehmann;
use serde_json::{Value, json};

use crate::random::Random;
use crate::score::Score;

/// Runs or series by side, or runs in order.
const FORMS: [&str; 7] = [
    "runs",
    "series",
    "one and many",
    "one series",
    "order, alternating",
    "order, mixed",
    "order, one after the other",
];

/// What runs of one setting are taken to differ by where nothing says it (6.2).
const ASSUMED: f64 = 0.015;

/// ln of the means of one side, and the relative error inside each.
struct Side {
    logs: Vec<f64>,
    inside: f64,
}

impl Side {
    fn of_runs(runs: &[f64]) -> Self {
        Self { logs: runs.iter().map(|run| run.ln()).collect(), inside: 0.0 }
    }

    fn of_series(series: &[Vec<f64>]) -> Self {
        let runs: Vec<SteadyRun> =
            series.iter().map(|run| SteadyRun::of(run, 1.0).expect("a series")).collect();
        let squares: Vec<f64> = runs.iter().map(|run| (run.error / run.mean).powi(2)).collect();
        let logs = runs.iter().map(|run| run.mean.ln()).collect();
        Self { logs, inside: mean(&squares).sqrt() }
    }

    fn count(&self) -> f64 {
        self.logs.len() as f64
    }
}

/// Welch, ranks from six runs a side on, and where one run stands alone the spread of the baseline's or 1.5 % (6.2).
fn as_written(baseline: &Side, candidate: &Side, metric: &Metric) -> Verdict {
    let (m, n) = (baseline.count(), candidate.count());
    let turn = |ln: f64| if metric.higher_is_better { ln.exp_m1() } else { -ln.exp_m1() };
    let of = |estimate: f64, low: f64, high: f64| {
        let (a, b) = (turn(low), turn(high));
        Verdict::of(turn(estimate), a.min(b), a.max(b), metric.delta)
    };
    let difference = mean(&candidate.logs) - mean(&baseline.logs);
    let about = |reach: f64| of(difference, difference - reach, difference + reach);
    let least = baseline.logs.len().min(candidate.logs.len());
    if least < 2 {
        let many = baseline.logs.len() > 2;
        let (between, freedom) =
            if many { (deviation(&baseline.logs), m - 1.0) } else { (ASSUMED, 9.0) };
        let inside = baseline.inside.powi(2) / m + candidate.inside.powi(2) / n;
        return about(t_95(freedom) * (between.powi(2) * (1.0 / m + 1.0 / n) + inside).sqrt());
    }
    let (a, b) = (variance(&baseline.logs) / m, variance(&candidate.logs) / n);
    let freedom = (a + b).powi(2) / (a.powi(2) / (m - 1.0) + b.powi(2) / (n - 1.0));
    let verdict = about(t_95(freedom) * (a + b).sqrt());
    if least < 6 {
        return verdict;
    }
    let shift = hodges_lehmann(&baseline.logs, &candidate.logs).expect("few runs");
    let by_ranks = of(shift.estimate, shift.low, shift.high);
    if by_ranks == verdict { verdict } else { Verdict::Unclear }
}

struct Case {
    form: &'static str,
    object: Value,
    /// The true effect, + being better.
    change: f64,
    /// Its size in units of δ, and of the standard error that its maker knows.
    size: (f64, f64),
    /// The same with 1.5 % between single runs.
    size_assumed: f64,
    /// By 6.2 as it is written; runs in order have no second reading.
    written: Option<Verdict>,
}

/// One side as series: levels that lie apart, noise that remembers, a warm-up.
struct Series {
    level: f64,
    between: f64,
    noise: f64,
    phi: f64,
    intervals: usize,
    warm_up: usize,
}

impl Series {
    fn drawn(random: &mut Random, level: f64) -> Self {
        let intervals = random.one_of(&[60_usize, 120, 180, 300]);
        Self {
            level,
            between: random.one_of(&[0.0, 0.003, 0.005, 0.01, 0.015]),
            noise: random.one_of(&[0.01, 0.02, 0.03, 0.05]),
            phi: random.one_of(&[0.0, 0.3, 0.5, 0.7, 0.8, 0.9]),
            intervals,
            warm_up: random.one_of(&[0, 0, 0, 10, intervals / 6]),
        }
    }

    /// Standard error of one run's mean, its runs lying apart by so much.
    fn error(&self, between: f64) -> f64 {
        let kept = (self.intervals - self.warm_up) as f64;
        let worth = kept * (1.0 - self.phi) / (1.0 + self.phi);
        (between.powi(2) + self.noise.powi(2) / worth).sqrt()
    }

    fn side(&self, random: &mut Random, ratio: f64, runs: usize) -> Vec<Vec<f64>> {
        let mut run = || -> Vec<f64> {
            let level = self.level * ratio * (1.0 + self.between * random.normal());
            let series = random.autoregressive(self.phi, self.intervals);
            let cold = |place: usize| if place < self.warm_up { 0.7 } else { 1.0 };
            let values = series.iter().enumerate();
            values.map(|(place, z)| level * (1.0 + self.noise * z) * cold(place)).collect()
        };
        (0..runs).map(|_| run()).collect()
    }
}

/// Which of the runs in order are the candidate's.
fn arms(random: &mut Random, form: &str, each: usize) -> Vec<bool> {
    let mut arms: Vec<bool> = match form {
        "order, alternating" => (0..2 * each).map(|place| place % 2 == 1).collect(),
        _ => (0..2 * each).map(|place| place >= each).collect(),
    };
    if form == "order, mixed" {
        for place in (1..arms.len()).rev() {
            let others: Vec<usize> = (0..=place).collect();
            arms.swap(place, random.one_of(&others));
        }
    }
    arms
}

fn case(seed: u64) -> Case {
    let mut random = Random::seeded(0x7719_0000 + seed);
    let (name, is_higher) = random.one_of(&[
        ("iops", true),
        ("mib_per_s", true),
        ("avg_lat_ms", false),
        ("p99_ms", false),
    ]);
    let metric = Metric::named(name, is_higher);
    let form = random.one_of(&FORMS);
    let sigma = random.one_of(&[0.002, 0.005, 0.01, 0.015, 0.02, 0.03]);
    let level = random.between(3.0, 12.0).exp();
    let series = Series::drawn(&mut random, level);
    let m = random.one_of(&[2_usize, 3, 4, 5, 5, 5, 6, 8, 10]);
    let other = random.one_of(&[3_usize, 4, 5, 6, 8, 10]);
    let (m, n) = match form {
        "one series" => (1, 1),
        "one and many" => (m.max(3), 1),
        "runs" | "series" => (m, if random.unit() < 0.7 { m } else { other }),
        _ => (m.max(3), m.max(3)),
    };
    let is_series = form.contains("series");
    // In one of three, where numbers of runs differ, the side with more of them is three times as calm.
    let mut apart = Random::seeded(0x3b1c_0000 + seed);
    let calm: f64 =
        if form == "runs" && m != n && apart.unit() < 0.33 { sigma / 3.0 } else { sigma };
    let sigmas: (f64, f64) = if m < n { (sigma, calm) } else { (calm, sigma) };
    let sides = (1.0 / m as f64 + 1.0 / n as f64).sqrt();
    let error = match is_series {
        true => series.error(series.between) * sides,
        false => (sigmas.0.powi(2) / m as f64 + sigmas.1.powi(2) / n as f64).sqrt(),
    };
    let assumed = if form == "one series" { series.error(ASSUMED) * sides } else { error };
    // As large as has to be found and up to three times that, or a round figure.
    let size = match random.unit() < 0.5 {
        true => f64::max(metric.delta, 5.0 * error) * random.between(1.0, 3.0),
        false => random.one_of(&[0.025, 0.03, 0.04, 0.05, 0.06, 0.08, 0.1, 0.12, 0.15, 0.2]),
    };
    let ratio = 1.0 + size * random.one_of(&[0.0, 1.0, -1.0]);
    let mut written = None;
    let mut object = if is_series {
        let baseline = series.side(&mut random, 1.0, m);
        let candidate = series.side(&mut random, ratio, n);
        let sides = [&baseline, &candidate].map(|side| Side::of_series(side));
        written = Some(as_written(&sides[0], &sides[1], &metric));
        json!({ "baseline_series": baseline, "candidate_series": candidate, "interval_s": 1 })
    } else if form.starts_with("order") {
        let arms = arms(&mut random, form, m);
        // Where the arms share no time a drift is no other than an effect.
        let is_mixed = form != "order, one after the other";
        let drift = if is_mixed { random.one_of(&[0.0, 0.002, -0.004]) } else { 0.0 };
        let runs = (0_u32..).zip(&arms).map(|(place, is_candidate)| {
            let arm = if *is_candidate { "candidate" } else { "baseline" };
            let scatter = 1.0 + sigma * random.normal();
            let value = if *is_candidate { ratio } else { 1.0 } * level * scatter;
            json!({ "order": place + 1, "arm": arm, "value": value * (1.0 + drift * f64::from(place)) })
        });
        json!({ "runs_in_order": runs.collect::<Vec<Value>>() })
    } else {
        let mut side = |ratio: f64, runs: usize, sigma: f64| -> Vec<f64> {
            (0..runs).map(|_| level * ratio * (1.0 + sigma * random.normal())).collect()
        };
        let (baseline, candidate) = (side(1.0, m, sigmas.0), side(ratio, n, sigmas.1));
        let sides = [&baseline, &candidate].map(|side| Side::of_runs(side));
        written = Some(as_written(&sides[0], &sides[1], &metric));
        json!({ "baseline_runs": baseline, "candidate_runs": candidate })
    };
    object["metric"] = json!(name);
    object["higher_is_better"] = json!(is_higher);
    let change = if is_higher { ratio - 1.0 } else { 1.0 - ratio };
    let size = (change.abs() / metric.delta, change.abs() / error);
    Case { form, object, change, size, size_assumed: change.abs() / assumed, written }
}

/// How many times δ, in steps.
fn step(size: f64) -> &'static str {
    let from = [(2.0, "2 and more"), (1.6, "1.6 to 2"), (1.3, "1.3 to 1.6"), (1.1, "1.1 to 1.3")];
    from.iter().find(|(least, _)| size >= *least).map_or("1 to 1.1", |(_, name)| name)
}

impl Case {
    fn add(&self, score: &mut Score, who: &str, verdict: &str) {
        let form = self.form;
        let calls = matches!(verdict, "better" | "worse");
        if self.change == 0.0 {
            score.add(&format!("false alarm, {who}, {form}"), calls);
            return;
        }
        let is_right = verdict == if self.change > 0.0 { "better" } else { "worse" };
        let is_wrong = calls && !is_right;
        if is_wrong {
            let (deltas, errors) = self.size;
            println!(
                "wrong sign, {who}, {form}: {:+.2} %, {deltas:.2} δ, {errors:.2} errors",
                self.change * 100.0
            );
        }
        score.add(&format!("wrong sign, {who}, {form}"), is_wrong);
        if self.size.0 <= 1.0 {
            return;
        }
        if self.size.1 >= 5.0 {
            score.add(&format!("wrong sign, {who}, of those to be found"), is_wrong);
            score.add(&format!("found, {who}, {form}"), is_right);
            score.add(&format!("found, {who}, {form}, {} δ", step(self.size.0)), is_right);
        }
        if form == "one series" && self.size_assumed >= 5.0 {
            score.add(&format!("found, {who}, {form}, 1.5 % known"), is_right);
        }
    }
}

/// `PLUMB_COMPARE_CASES` for more of them.
#[test]
fn what_has_to_be_found_is_found_in_every_form() {
    let given = std::env::var("PLUMB_COMPARE_CASES").ok();
    let count = given.and_then(|text| text.parse().ok()).unwrap_or(1500);
    let mut score = Score::default();
    for seed in 0..count {
        let case = case(seed);
        let found = samples::compare(&case.object).expect("an object of this shape");
        let verdict = found["verdict"].as_str().expect("a word");
        case.add(&mut score, "ours", verdict);
        if let Some(written) = case.written {
            case.add(&mut score, "as written", written.keyword());
        }
    }
    score.print();
    for form in FORMS {
        score.at_most(&format!("false alarm, ours, {form}"), 0.05);
        score.at_most(&format!("wrong sign, ours, {form}"), 0.0);
    }
    for form in ["runs", "series", "one and many", "order, alternating", "order, mixed"] {
        score.at_least(&format!("found, ours, {form}"), 0.95);
    }
    score.at_most("wrong sign, ours, of those to be found", 0.0);
    // One series a side: with what runs are assumed to differ by (docs/decisions/0146-what-one-series-a-side-can-tell.md).
    score.at_least("found, ours, one series, 1.5 % known", 0.95);
    // Nothing is lost that the rule finds by the letter.
    for form in ["runs", "series", "one and many", "one series"] {
        let written = score.share(&format!("found, as written, {form}"));
        score.at_least(&format!("found, ours, {form}"), written);
    }
}

/// Few runs of a noisy side against more or as many of a calm one: the calm side's spread says nothing of the other's.
#[test]
fn the_side_with_fewer_runs_may_be_the_noisier() {
    let mut score = Score::default();
    for seed in 0..3000 {
        let mut random = Random::seeded(0x51de_0000 + seed);
        let few = random.one_of(&[2_usize, 2, 3, 3, 4]);
        let many = random.one_of(&[few + 1, few + 2, 9, 12, 20]);
        // As many of each: from three on spreads can be told apart.
        let many = if few > 2 && random.unit() < 0.2 { few } else { many };
        let sigma = random.one_of(&[0.02_f64, 0.03]);
        let calm = sigma / random.one_of(&[2.0, 3.0, 5.0, 10.0]);
        let error = (sigma.powi(2) / few as f64 + calm.powi(2) / many as f64).sqrt();
        let metric = Metric::named("iops", true);
        let size = f64::max(metric.delta, 5.0 * error) * random.between(1.0, 3.0);
        let change = size * random.one_of(&[0.0, 1.0, -1.0]);
        let mut side = |level: f64, sigma: f64, runs: usize| -> Vec<f64> {
            (0..runs).map(|_| level * (sigma * random.normal()).exp()).collect()
        };
        let level = 1000.0 * (1.0 + change);
        let (noisy, quiet) = (side(level, sigma, few), side(1000.0, calm, many));
        let mut object = json!({ "metric": "iops", "higher_is_better": true });
        // Every eighth as series whose runs are calm inside.
        let is_series = seed % 8 == 0;
        let form = if is_series { "series" } else { "runs" };
        let mut values = |runs: &[f64]| -> Value {
            let mut of = |level: f64| -> Value {
                let part = (0..60).map(|_| level * (1.0 + 0.005 * random.normal()));
                part.collect::<Vec<f64>>().into()
            };
            if is_series { runs.iter().map(|run| of(*run)).collect() } else { json!(runs) }
        };
        object[format!("candidate_{form}")] = values(&noisy);
        object[format!("baseline_{form}")] = values(&quiet);
        let found = samples::compare(&object).expect("an object of this shape");
        let verdict = found["verdict"].as_str().expect("a word");
        let calls = matches!(verdict, "better" | "worse");
        let ends = [0, 1].map(|end| found["ci"][end].as_f64().expect("an end"));
        score.add(&format!("covered, {form}"), ends[0] <= change && change <= ends[1]);
        if change == 0.0 {
            score.add(&format!("false alarm, {form}"), calls);
            score.add(&format!("false alarm, {form}, {few} runs"), calls);
            continue;
        }
        let is_right = verdict == if change > 0.0 { "better" } else { "worse" };
        score.add("wrong sign", calls && !is_right);
        // Two runs cannot tell their own spread: Student's factor with one degree of freedom is 12.7.
        let who = if few > 2 { "three and more" } else { "two" };
        score.add(&format!("found, {form}, {who}"), is_right);
    }
    score.print();
    for form in ["runs", "series"] {
        score.at_most(&format!("false alarm, {form}"), 0.05);
        score.at_least(&format!("covered, {form}"), 0.9);
    }
    score.at_least("found, runs, three and more", 0.95);
    score.at_most("wrong sign", 0.0);
}

/// Two runs beside one, in every form that has both, and histories of three values: no change, whatever runs differ by.
#[test]
fn two_runs_beside_one_differ_by_what_the_two_say() {
    let mut score = Score::default();
    for seed in 0..4000 {
        let mut random = Random::seeded(0x0201_0000 + seed);
        let sigma = random.one_of(&[0.01_f64, 0.03, 0.06, 0.1]);
        let mut runs =
            || -> Vec<f64> { (0..3).map(|_| 1000.0 * (sigma * random.normal()).exp()).collect() };
        let runs = runs();
        let split = 1 + usize::try_from(seed % 2).expect("small");
        let mut object = json!({ "metric": "iops", "higher_is_better": true });
        let who = format!("{} %", sigma * 100.0);
        let mut calls = |object: &Value| {
            let found = samples::compare(object).expect("an object of this shape");
            let ends = [0, 1].map(|end| found["ci"][end].as_f64().expect("an end"));
            score.add(&format!("covered, {who}"), ends[0] <= 0.0 && 0.0 <= ends[1]);
            let verdict = found["verdict"].as_str().expect("a word");
            score.add(&format!("false alarm, {who}"), matches!(verdict, "better" | "worse"));
        };
        object["baseline_runs"] = json!(runs[..split]);
        object["candidate_runs"] = json!(runs[split..]);
        calls(&object);
        let in_order = (0..).zip(&runs).map(|(order, value)| {
            let arm = if order < split { "baseline" } else { "candidate" };
            json!({ "order": order, "arm": arm, "value": value })
        });
        calls(&json!({
            "metric": "iops", "higher_is_better": true, "runs_in_order": in_order.collect::<Vec<_>>(),
        }));
        let found = samples::history(&json!({ "values": runs, "higher_is_better": true }));
        let found = found.expect("a history of three");
        let verdict = found["verdict"].as_str().expect("a word");
        score.add(&format!("history, {who}"), matches!(verdict, "better" | "worse"));
    }
    score.print();
    for sigma in ["1 %", "3 %", "6 %", "10 %"] {
        score.at_most(&format!("false alarm, {sigma}"), 0.05);
        score.at_most(&format!("history, {sigma}"), 0.05);
        score.at_least(&format!("covered, {sigma}"), 0.93);
    }
}
