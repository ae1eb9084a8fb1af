//! Tables and objects as users write them, of devices made by their mechanism and with noise that is not always normal:
//! a generator apart from those of the other modules, scored on the whole way from text to decision.

use plumb_study::decision;
use plumb_study::findings::Layout;
use plumb_study::knee::{self, Options, TAU};
use plumb_study::{samples, table};
use serde_json::{Value, json};

use crate::random::Random;
use crate::score::Score;

/// Throughput without noise; it saturates about `corner`.
#[derive(Debug, Clone, Copy)]
enum Device {
    /// Several servers: the smooth minimum of load and capacity.
    Servers(f64),
    /// A queue and a delay.
    Queue,
    /// Each request in flight keeps some others waiting.
    Exponential,
    /// Elasticity this, then a ceiling.
    Ceiling(f64),
    /// A queue that would go on, under a ceiling.
    Throttled(f64),
    /// Like a ceiling, but it creeps on.
    Creeping { before: f64, after: f64 },
    /// Falls with this elasticity from so many times the corner on.
    Thrashing { from: f64, by: f64 },
    /// Coherence costs [Gunther 2007].
    Law(f64),
}

impl Device {
    fn ln_rate(self, n: f64, corner: f64) -> f64 {
        let v = (n / corner).ln();
        let servers = |p: f64| -((-p * v).exp() + 1.0).ln() / p;
        match self {
            Self::Servers(p) => servers(p),
            Self::Queue => (n / (n + corner / 7.0)).ln(),
            Self::Exponential => (1.0 - (-2.9 * n / corner).exp()).ln(),
            Self::Ceiling(slope) => (slope * v).min(0.0),
            Self::Throttled(k) => ((1.0 + k) * n / (n + k * corner)).ln().min(0.0),
            Self::Creeping { before, after } => v * if v < 0.0 { before } else { after },
            Self::Thrashing { from, by } => servers(8.0) - by * (v - from.ln()).max(0.0),
            Self::Law(alpha) => {
                let beta = (1.0 - alpha) / (1.2 * corner).powi(2);
                (n / (1.0 + alpha * (n - 1.0) + beta * n * (n - 1.0))).ln()
            }
        }
    }

    fn elasticity(self, n: f64, corner: f64) -> f64 {
        let step = 1.01_f64;
        (self.ln_rate(n * step, corner) - self.ln_rate(n / step, corner)) / (2.0 * step.ln())
    }

    /// Where its elasticity falls below `limit`.
    fn crossing(self, limit: f64, corner: f64) -> f64 {
        let mut n = 0.5;
        while n < 60.0 * corner && self.elasticity(n, corner) >= limit {
            n *= 1.005;
        }
        n
    }
}

/// What a curve is made to show.
const CLASSES: [&str; 16] = [
    "knee", "knee", "knee", "knee", "capped", "capped", "drop", "drop", "extend", "extend", "flat",
    "flat", "unclear", "outlier", "outlier", "bad run",
];

fn device(random: &mut Random, class: &str) -> Device {
    let law = random.between(0.01, 0.06);
    match class {
        "capped" => {
            random.one_of(&[Device::Ceiling(1.0), Device::Ceiling(0.8), Device::Throttled(0.9)])
        }
        "drop" => {
            let thrashing =
                Device::Thrashing { from: random.between(1.1, 1.6), by: random.between(0.3, 0.8) };
            random.one_of(&[thrashing, thrashing, Device::Law(law)])
        }
        _ => {
            let (before, after) = (random.between(0.4, 0.95), random.between(0.0, 0.07));
            let sharpness = random.between(3.0, 12.0);
            random.one_of(&[
                Device::Servers(sharpness),
                Device::Queue,
                Device::Exponential,
                Device::Ceiling(0.9),
                Device::Creeping { before, after },
            ])
        }
    }
}

/// Settings from about `low` to `high`: each one, in steps, or by a factor.
fn settings(random: &mut Random, low: f64, high: f64) -> Vec<u64> {
    let low = low.round().max(1.0);
    let step = match random.one_of(&[0, 1]) {
        0 if high - low <= 60.0 => 1.0,
        _ => ((high - low) / random.between(6.0, 16.0)).round().max(1.0),
    };
    let factor = random.one_of(&[None, Some(1.2), Some(1.4), Some(1.62), Some(2.0)]);
    let mut all = vec![low];
    while all[all.len() - 1] < high {
        let o = all[all.len() - 1];
        all.push(factor.map_or(o + step, |factor: f64| (o * factor).round().max(o + 1.0)));
    }
    all.iter().map(|o| format!("{o}").parse().expect("a whole number")).collect()
}

/// Standard normal, or of Student's distribution with 5 degrees of freedom, its SD 1.
fn noise(random: &mut Random, is_heavy: bool) -> f64 {
    let z = random.normal();
    if !is_heavy {
        return z;
    }
    let chi: f64 = (0..5).map(|_| random.normal().powi(2)).sum();
    z / (chi / 5.0).sqrt() / (5.0_f64 / 3.0).sqrt()
}

/// A curve as a table, and what is true of it.
struct Curve {
    class: &'static str,
    text: String,
    options: Options,
    verdict: &'static str,
    /// First and last setting that may be called the plateau.
    plateau: (u64, u64),
    flags: Vec<&'static str>,
    /// Flags for which either answer is right.
    borderline: Vec<&'static str>,
}

/// `None` where a draw shows nothing that could be told.
fn curve(seed: u64) -> Option<Curve> {
    let mut random = Random::seeded(0x3217_0000 + seed);
    let class = random.one_of(&CLASSES);
    let device = device(&mut random, class);
    let corner = random.between(5.0_f64.ln(), 90.0_f64.ln()).exp();
    let knee = device.crossing(TAU, corner);
    let (low, high) = match class {
        "extend" => {
            let rises = device.crossing(0.3, corner);
            (rises / random.between(5.0, 16.0), rises * random.between(0.45, 1.0))
        }
        "flat" => {
            let still = device.crossing(0.07, corner);
            (still * random.between(1.3, 2.5), still * random.between(4.5, 10.0))
        }
        _ => (knee / random.between(4.0, 14.0), knee * random.between(1.8, 4.0)),
    };
    let os = settings(&mut random, low, high);
    let (first, last) = (os[0] as f64, os[os.len() - 1] as f64);
    let fewest = match class {
        "outlier" | "unclear" => 9,
        "bad run" => 7,
        _ => 5,
    };
    let is_told = match class {
        "extend" => device.elasticity(last, corner) > 0.25,
        "flat" => device.elasticity(first, corner) < 0.09,
        _ => last >= 1.6 * knee,
    };
    if os.len() < fewest || !is_told {
        return None;
    }
    let sigma = match class {
        "unclear" => random.between(0.15, 0.25),
        "bad run" => random.one_of(&[0.003, 0.01]),
        _ => random.one_of(&[0.002, 0.005, 0.008, 0.01, 0.015, 0.02]),
    };
    let repetitions = match class {
        "unclear" => 1,
        "bad run" => random.one_of(&[3, 5]),
        _ => random.one_of(&[1, 1, 2, 3, 3, 5]),
    };
    let is_heavy = random.unit() < 0.2;
    let off = (
        random.one_of(&os[2..os.len() - 2]),
        random.one_of(&[-1.0, 1.0]) * random.between(0.14, 0.35),
    );
    let bad = (random.one_of(&os[1..os.len() - 1]), random.between(0.2, 0.5));
    let threads = random.one_of(&[1.0, 4.0, 8.0, 32.0]);
    let top = random.between(7.0, 13.0);
    let has_latency = random.unit() < 0.85;
    let mut text =
        String::from(if has_latency { "rep,o,iops,avg_lat_ms,cpu_pct\n" } else { "o,iops\n" });
    for repetition in 1..=repetitions {
        for o in &os {
            let mut ln =
                top + device.ln_rate(*o as f64, corner) + sigma * noise(&mut random, is_heavy);
            if class == "outlier" && *o == off.0 {
                ln += off.1;
            }
            if class == "bad run" && (*o, repetition) == (bad.0, 1) {
                ln -= bad.1;
            }
            let iops = ln.exp();
            let latency = threads * *o as f64 / iops * 1e3 * (1.0 - random.between(0.0, 0.004));
            text.push_str(&match has_latency {
                true => format!("{repetition},{o},{iops:.2},{latency:.6},12.5\n"),
                false => format!("{o},{iops:.2}\n"),
            });
        }
    }
    let truth: Vec<f64> = os.iter().map(|o| device.ln_rate(*o as f64, corner)).collect();
    let peak = truth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let fall = peak - truth[truth.len() - 1];
    let (mut flags, mut borderline) = (Vec::new(), Vec::new());
    let has_ceiling = matches!(device, Device::Ceiling(_) | Device::Throttled(_));
    let octave = (device.ln_rate(knee, corner) - device.ln_rate(knee / 2.0, corner)) / 2.0_f64.ln();
    let behind = (truth[truth.len() - 1] - device.ln_rate(knee, corner)) / (last / knee).ln();
    if has_ceiling && octave >= 0.66 && last >= 1.7 * knee {
        flags.push("capped");
    } else if behind.abs() < 0.05 && octave > 0.5 {
        borderline.push("capped");
    }
    if fall > f64::max(0.05, 4.5 * sigma) {
        flags.push("drop");
    } else if fall > f64::max(0.02, 1.5 * sigma) {
        borderline.push("drop");
    }
    if matches!(class, "outlier" | "bad run") {
        flags.push("outlier");
    }
    // Between where 10 % more brings 1.8 % and where it brings 0.8 %, and the settings about that.
    let at = |index: usize| os[index.min(os.len() - 1)];
    let (early, late) = (device.crossing(0.19, corner), device.crossing(0.085, corner));
    let chord =
        |i: &usize| (truth[i + 1] - truth[*i]) / (at(i + 1) as f64 / at(*i) as f64).ln() < TAU;
    let by_chord = (0..os.len() - 1).find(chord).unwrap_or(os.len() - 1);
    let from = os.partition_point(|o| *o as f64 <= early).saturating_sub(1).min(by_chord);
    let to = os.partition_point(|o| (*o as f64) < late).max(by_chord);
    let options =
        Options { threads: (random.unit() < 0.7).then_some(threads), ..Options::default() };
    let verdict = match class {
        "extend" | "flat" | "unclear" => class,
        _ => "knee",
    };
    Some(Curve { class, text, options, verdict, plateau: (at(from), at(to)), flags, borderline })
}

#[test]
fn tables_of_devices_by_their_mechanism() {
    let mut score = Score::default();
    for (seed, curve) in (0..).filter_map(|seed| Some((seed, curve(seed)?))).take(600) {
        let read = table::read(&curve.text, None).expect("a table");
        let found = decision::of_knee(
            &knee::find(&read.rows, &curve.options),
            &curve.options,
            &Layout::default(),
        );
        let is_right = found["verdict"] == curve.verdict;
        score.add("verdict", is_right);
        score.add(&format!("verdict, {}", curve.class), is_right);
        if !is_right {
            println!("seed {seed}: {}: {}", curve.class, found["reason"]);
            continue;
        }
        if curve.verdict != "knee" {
            continue;
        }
        let plateau = found["plateau_o"].as_u64().expect("a knee has a plateau");
        score.add("plateau", (curve.plateau.0..=curve.plateau.1).contains(&plateau));
        let named: Vec<&str> =
            found["flags"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
        let is_settled = |flag: &&&str| !curve.borderline.contains(*flag);
        let mut flags: Vec<&str> = named.iter().filter(is_settled).copied().collect();
        flags.sort_unstable();
        score.add("flags", flags == curve.flags);
        score.add(&format!("flags, {}", curve.class), flags == curve.flags);
        if flags != curve.flags {
            println!("seed {seed}: {}: {flags:?}, not {:?}", curve.class, curve.flags);
        }
    }
    score.print();
    score.at_least("verdict", 0.95);
    for class in ["knee", "capped", "drop", "extend", "flat", "outlier", "bad run"] {
        score.at_least(&format!("verdict, {class}"), 0.95);
    }
    score.at_least("plateau", 0.95);
    score.at_least("flags", 0.9);
    for class in ["knee", "capped", "drop", "outlier", "bad run"] {
        score.at_least(&format!("flags, {class}"), 0.85);
    }
}

/// An object to compare, and its true effect with + for better.
fn comparison(seed: u64) -> (&'static str, Value, f64) {
    let mut random = Random::seeded(0x3218_0000 + seed);
    let (metric, is_higher, delta) = random.one_of(&[
        ("iops", true, 0.02),
        ("mib_per_s", true, 0.02),
        ("avg_lat_ms", false, 0.03),
        ("p99_ms", false, 0.05),
        ("p999_us", false, 0.1),
        ("cpu_us_per_io", false, 0.05),
    ]);
    let form = random.one_of(&[
        "runs", "runs", "runs", "runs", "in order", "in order", "in order", "in order", "series",
    ]);
    let sigma = random.one_of(&[0.001, 0.005, 0.01, 0.02, 0.03]);
    let is_heavy = random.unit() < 0.3;
    let level = random.between(0.0, 12.0).exp();
    let sides = (random.one_of(&[3, 4, 5, 6, 8, 12]), random.one_of(&[3, 4, 5, 6, 8, 12]));
    // Series cost the most to read.
    let sides = if form == "series" { (sides.0.min(5), sides.1) } else { sides };
    let (phi, intervals) =
        (random.one_of(&[0.0, 0.3, 0.6, 0.8]), random.one_of(&[90_usize, 120, 180]));
    let runs = f64::from(sides.0);
    let error = match form {
        "runs" => sigma * (1.0 / runs + 1.0 / f64::from(sides.1)).sqrt(),
        // An order that alternates is not all free of the drift.
        "in order" => sigma * (2.0 / runs).sqrt() * 1.1,
        _ => {
            let worth = intervals as f64 * (1.0 - phi) / (1.0 + phi);
            ((0.005_f64.powi(2) + sigma.powi(2) / worth) * 2.0 / runs).sqrt()
        }
    };
    let size = f64::max(delta, 5.0 * error) * random.between(1.05, 3.0);
    let ratio = 1.0 + random.one_of(&[0.0, size, -size.min(0.8)]);
    let drift = random.one_of(&[0.0, 0.003, -0.003]);
    let mut value = |is_candidate: bool, order: u32| {
        let scatter = 1.0 + sigma * noise(&mut random, is_heavy);
        level * if is_candidate { ratio } else { 1.0 } * scatter * (1.0 + drift * f64::from(order))
    };
    let mut object = match form {
        "runs" => {
            let baseline: Vec<f64> = (0..sides.0).map(|_| value(false, 0)).collect();
            let candidate: Vec<f64> = (0..sides.1).map(|_| value(true, 0)).collect();
            json!({ "baseline_runs": baseline, "candidate_runs": candidate })
        }
        "in order" => {
            let runs = (0..2 * sides.0).map(|order| {
                let is_candidate = order % 4 == 1 || order % 4 == 2;
                json!({ "order": order, "arm": if is_candidate { "B" } else { "A" }, "value": value(is_candidate, order) })
            });
            json!({ "runs_in_order": runs.collect::<Vec<_>>() })
        }
        _ => {
            let mut side = |ratio: f64| -> Vec<Vec<f64>> {
                let mut run = || {
                    let level = level * ratio * (1.0 + 0.005 * random.normal());
                    let series = random.autoregressive(phi, intervals);
                    series.iter().map(|z| level * (1.0 + sigma * z)).collect()
                };
                (0..sides.0).map(|_| run()).collect()
            };
            json!({ "baseline_series": side(1.0), "candidate_series": side(ratio), "interval_s": 1 })
        }
    };
    object["metric"] = json!(metric);
    object["higher_is_better"] = json!(is_higher);
    (form, object, if is_higher { ratio - 1.0 } else { 1.0 - ratio })
}

#[test]
fn comparisons_as_objects() {
    let mut score = Score::default();
    for seed in 0..1000 {
        let (form, object, change) = comparison(seed);
        let found = samples::compare(&object).expect("an object of this shape");
        let verdict = found["verdict"].as_str().expect("a word");
        let calls = matches!(verdict, "better" | "worse");
        if change == 0.0 {
            score.add("false alarm", calls);
            continue;
        }
        let right = if change > 0.0 { "better" } else { "worse" };
        score.add("found", verdict == right);
        score.add(&format!("found, {form}"), verdict == right);
        score.add("wrong sign", calls && verdict != right);
    }
    score.print();
    score.at_most("false alarm", 0.05);
    score.at_most("wrong sign", 0.0);
    for what in ["found", "found, runs", "found, in order", "found, series"] {
        score.at_least(what, 0.95);
    }
}

/// Values over time and where their level changes; steps are 3 % or more and five standard errors or more.
fn history(random: &mut Random) -> (Value, Vec<usize>) {
    let levels = random.one_of(&[1_usize, 2, 2, 3, 4]);
    let lengths: Vec<usize> = (0..levels).map(|_| random.one_of(&[6, 8, 10, 14, 20, 30])).collect();
    let sigma = random.one_of(&[0.002, 0.005, 0.01, 0.015, 0.02, 0.03]);
    let is_heavy = random.unit() < 0.25;
    let slope = random.one_of(&[0.0, 0.0, 0.01]);
    let (mut values, mut changes, mut level) = (Vec::new(), Vec::new(), 1.0);
    for (place, length) in lengths.iter().enumerate() {
        if place > 0 {
            changes.push(values.len());
            let error = sigma * (1.0 / lengths[place - 1] as f64 + 1.0 / *length as f64).sqrt();
            let size =
                f64::max(random.one_of(&[0.03, 0.06, 3.0 * sigma, 5.0 * sigma]), 5.0 * error)
                    .max(0.03);
            level *= 1.0 + random.one_of(&[size, -size.min(0.5)]);
        }
        for _ in 0..*length {
            values.push(9000.0 * level * (1.0 + sigma * noise(random, is_heavy)));
        }
    }
    let count = values.len() as f64;
    let drifting =
        values.iter().enumerate().map(|(i, value)| value * (1.0 + slope * i as f64 / count));
    let mut values: Vec<f64> = drifting.collect();
    if random.unit() < 0.3 {
        let place = random.one_of(&(0..values.len()).collect::<Vec<_>>());
        if changes.iter().all(|change| change.abs_diff(place) > 3) {
            values[place] *= random.one_of(&[0.5, 0.8, 1.3]);
        }
    }
    (json!({ "values": values, "higher_is_better": random.one_of(&[true, false]) }), changes)
}

#[test]
fn histories_as_objects() {
    let mut score = Score::default();
    for seed in 0..600 {
        let (object, changes) = history(&mut Random::seeded(0x3219_0000 + seed));
        // Fewer than eight have no change points.
        if object["values"].as_array().expect("a list").len() < 8 {
            continue;
        }
        let found = samples::history(&object).expect("an object of this shape");
        let points: Vec<usize> =
            serde_json::from_value(found["change_points"].clone()).expect("a list");
        let is_near =
            |places: &[usize], place: usize| places.iter().any(|other| other.abs_diff(place) <= 2);
        for change in &changes {
            score.add("found", is_near(&points, *change));
        }
        for point in &points {
            score.add("invented", !is_near(&changes, *point));
        }
        if changes.is_empty() {
            score.add("false alarm", !points.is_empty());
        }
    }
    score.print();
    score.at_least("found", 0.9);
    score.at_most("invented", 0.06);
    score.at_most("false alarm", 0.05);
}
