//! Curves of simulated devices: verdict, plateau and flags against the truth.

use plumb_study::knee::{self, DeclaredCap, Flag, Limit, Options, Row, Verdict};

use crate::random::Random;
use crate::score::Score;

/// Throughput without noise at `n` outstanding.
#[derive(Debug, Clone, Copy)]
enum Shape {
    /// min(N/L₀, X_max).
    Hard,
    /// The smooth minimum of both with this sharpness.
    Smooth(f64),
    /// Elasticity `before` up to the corner, `after` behind it.
    Bent { before: f64, after: f64 },
    /// X_max·(1 − e^(−N/c)).
    Exponential,
    /// A peak at the corner, and `after` (negative) some way behind it.
    Falling { before: f64, after: f64, hold: f64 },
}

impl Shape {
    /// Whether the device has a ceiling (2.11), by how it was made: throughput stands still from the corner on, and rises
    /// steeply before it. `None` where it nearly does: then either answer is right.
    fn has_ceiling(self) -> Option<bool> {
        match self {
            Self::Hard => Some(true),
            Self::Bent { before, after } if before >= 0.65 && after.abs() <= 0.02 => Some(true),
            Self::Bent { before, after } if before >= 0.55 && after.abs() <= 0.045 => None,
            // The octave below its plateau rises by less than 0.55 in all.
            Self::Smooth(sharpness) if sharpness > 6.0 => None,
            Self::Smooth(_) | Self::Bent { .. } | Self::Exponential | Self::Falling { .. } => {
                Some(false)
            }
        }
    }

    fn ln_rate(self, n: f64, corner: f64) -> f64 {
        let v = (n / corner).ln();
        match self {
            Self::Hard => v.min(0.0),
            Self::Smooth(p) => -((-p * v).exp() + 1.0).ln() / p,
            Self::Bent { before, after } => {
                if v < 0.0 {
                    before * v
                } else {
                    after * v
                }
            }
            Self::Exponential => (1.0 - (-3.0 * n / corner).exp()).ln(),
            Self::Falling { before, after, hold } => {
                if v < 0.0 {
                    before * v
                } else {
                    after * (v - hold.ln()).max(0.0)
                }
            }
        }
    }
}

#[derive(Debug)]
struct Case {
    shape: Shape,
    os: Vec<u64>,
    /// ln X without noise.
    truth: Vec<f64>,
    rows: Vec<Row>,
    verdict: Verdict,
    /// Index of the first setting beyond which the elasticity is below τ.
    plateau: usize,
    flags: Vec<Flag>,
    outlier: Option<u64>,
    /// Declared limits in I/Os per second; the first is in force where there is a ceiling.
    caps: Vec<f64>,
}

/// Settings from `first` to `last`: each one, about 16 evenly, or by thirds, halves or whole octaves.
fn outstanding(random: &mut Random, first: f64, last: f64) -> Vec<u64> {
    let (first, last) = (first.round().max(1.0), last.round());
    let even = random.one_of(&[true, true, false]);
    let ratio = random.one_of(&[1.26, 1.5, 2.0]);
    let step = match random.one_of(&[true, false]) {
        true if last - first < 64.0 => 1.0,
        _ => ((last - first) / 15.0).ceil().max(1.0),
    };
    let mut settings: Vec<f64> = vec![first];
    let mut o = first;
    while o < last {
        o = if even { o + step } else { (o * ratio).round().max(o + 1.0) };
        settings.push(o);
    }
    settings.iter().map(|o| format!("{o}").parse().expect("a whole number")).collect()
}

const KINDS: [&str; 10] =
    ["knee", "knee", "knee", "extend", "flat", "unclear", "cap", "drop", "outlier", "outlier"];

fn case(seed: u64) -> Case {
    let mut random = Random::seeded(seed);
    let kind = random.one_of(&KINDS);
    let corner = random.between(8.0, 40.0);
    let shape = match kind {
        "cap" => Shape::Hard,
        "drop" => Shape::Falling {
            before: random.between(0.4, 0.95),
            after: -random.between(0.25, 0.6),
            hold: random.between(1.0, 1.4),
        },
        "extend" => Shape::Bent { before: random.between(0.3, 0.95), after: 0.05 },
        _ => match random.one_of(&[0, 1, 2, 3]) {
            0 => Shape::Smooth(random.between(3.0, 8.0)),
            1 => Shape::Exponential,
            _ => {
                Shape::Bent { before: random.between(0.3, 0.9), after: random.between(-0.02, 0.06) }
            }
        },
    };
    let (first, last) = match kind {
        "extend" => (random.between(1.0, corner / 4.0), corner * random.between(0.6, 1.0)),
        "flat" => (corner * random.between(1.6, 2.0), corner * random.between(3.0, 4.5)),
        "drop" => (random.between(1.0, corner / 3.0), corner * random.between(2.2, 3.0)),
        "cap" => (random.between(1.0, corner / 3.0), corner * random.between(2.0, 3.0)),
        _ => (random.between(1.0, corner / 3.0), corner * random.between(1.8, 3.0)),
    };
    let os = outstanding(&mut random, first, last);
    let sigma = match kind {
        "unclear" => random.between(0.12, 0.2) * 1.3,
        _ => random.one_of(&[0.002, 0.005, 0.01, 0.02]),
    };
    let reps = random.one_of(if kind == "unclear" { &[1, 1, 2] } else { &[1, 1, 2, 3, 5] });
    let truth: Vec<f64> = os.iter().map(|o| shape.ln_rate(*o as f64, corner)).collect();
    let plateau = (0..os.len() - 1)
        .find(|i| (truth[i + 1] - truth[*i]) / (os[i + 1] as f64 / os[*i] as f64).ln() < 0.125)
        .unwrap_or(os.len() - 1);
    let mut outlier = None;
    if kind == "outlier" && os.len() > 6 {
        // Away from the ends: there a curve may bend as it likes.
        let inner: Vec<u64> = os[2..os.len() - 2].to_vec();
        outlier = Some(random.one_of(&inner));
    }
    let size = random.one_of(&[-0.25, -0.15, 0.15]);
    let top = random.between(2000.0, 200_000.0).ln();
    let mut rows = Vec::new();
    for (o, ln) in os.iter().zip(&truth) {
        for _ in 0..reps {
            let off = if outlier == Some(*o) { size } else { 0.0 };
            let iops = (top + ln + off + sigma * random.normal()).exp();
            let latency = 4.0 * *o as f64 / iops * 1e3;
            rows.push(Row {
                o: *o,
                iops: (iops * 100.0).round() / 100.0,
                latency_ms: Some((latency * 1000.0).round() / 1000.0),
                latency_half_unit_ms: 0.0005,
                law: None,
            });
        }
    }
    let peak = truth.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let verdict = match kind {
        "extend" => Verdict::Extend,
        "flat" => Verdict::Flat,
        "unclear" => Verdict::Unclear,
        _ => Verdict::Knee,
    };
    let mut flags = Vec::new();
    let has_ceiling = shape.has_ceiling();
    if verdict == Verdict::Knee && has_ceiling == Some(true) {
        flags.push(Flag::Capped);
    }
    if verdict == Verdict::Knee && peak - truth[os.len() - 1] > f64::max(0.03, 3.0 * sigma) {
        flags.push(Flag::Drop);
    }
    if outlier.is_some() {
        flags.push(Flag::Outlier);
    }
    // Limits are enforced on averages: measured a little above or below.
    let height = (top + truth[plateau]).exp() * random.between(0.965, 1.03);
    let caps = vec![height, height * random.between(1.3, 3.0), height * 0.7];
    Case { shape, os, truth, rows, verdict, plateau, flags, outlier, caps }
}

#[test]
fn curves_of_simulated_devices() {
    let mut score = Score::default();
    for seed in 0..2000 {
        let case = case(seed);
        let declared =
            |iops: &f64| DeclaredCap { name: iops.to_string(), limit: Limit::Iops(*iops) };
        let is_capped = case.flags.contains(&Flag::Capped);
        let caps = case.caps.iter().skip(usize::from(!is_capped)).map(declared).collect();
        let options = Options { threads: Some(4.0), caps, ..Options::default() };
        let found = knee::find(&case.rows, &options);
        score.add("verdict", found.verdict == case.verdict);
        if found.verdict != case.verdict {
            println!("seed {seed}: {:?} {}, not {:?}", case.shape, found.reason, case.verdict);
        }
        if case.verdict != Verdict::Knee || found.verdict != Verdict::Knee {
            continue;
        }
        let marks = found.marks.expect("a knee has marks");
        let at = case.os.iter().position(|o| *o == marks.plateau).expect("a tested setting");
        let apart = (case.os[at] as f64 / case.os[case.plateau] as f64).ln().abs();
        let is_near = apart <= 0.2 || at.abs_diff(case.plateau) <= 1;
        let costs = (case.truth[at] - case.truth[case.plateau]).abs();
        score.add("plateau", is_near && costs < 0.04);
        let has_ceiling = case.shape.has_ceiling();
        let counts = |flag: &&Flag| has_ceiling.is_some() || **flag != Flag::Capped;
        let flags: Vec<Flag> = found.flags.iter().filter(counts).copied().collect();
        score.add("flags", flags == case.flags);
        let named = found.named_cap.as_ref().map(|cap| cap.iops);
        match has_ceiling {
            Some(true) => score.add("ceiling named", named == case.caps.first().copied()),
            Some(false) => score.add("nothing else named", named.is_none()),
            None => {}
        }
        if let Some(outlier) = case.outlier {
            score.add("the outlier and no other", found.outliers() == [outlier]);
        }
    }
    score.at_least("verdict", 0.95);
    score.at_least("plateau", 0.95);
    score.at_least("flags", 0.9);
    score.at_least("the outlier and no other", 0.85);
    score.at_least("ceiling named", 0.9);
    score.at_least("nothing else named", 0.99);
}

/// Settings that double: beyond a corner there are two of them, or three.
#[test]
fn ceilings_on_settings_that_double() {
    let mut score = Score::default();
    for seed in 0..1200 {
        let mut random = Random::seeded(seed + 700_000);
        let corner = random.between(6.0, 40.0);
        let shape = match random.one_of(&[0, 0, 0, 1, 2, 3]) {
            0 => Shape::Hard,
            // Sharper ones rise as a ceiling's approach does, seen at octaves.
            1 => Shape::Smooth(random.between(2.0, 4.0)),
            2 => Shape::Exponential,
            _ => Shape::Bent { before: random.between(0.3, 0.5), after: random.between(0.0, 0.06) },
        };
        let reach = random.between(2.0, 4.0) * corner;
        let sigma = random.one_of(&[0.002, 0.005, 0.01, 0.02]);
        let reps = random.one_of(&[1, 1, 2, 3]);
        let top = random.between(2000.0, 200_000.0).ln();
        let mut rows = Vec::new();
        let mut o = 1_u64;
        loop {
            for _ in 0..reps {
                let ln = top + shape.ln_rate(o as f64, corner) + sigma * random.normal();
                let latency_ms = Some(4.0 * o as f64 / ln.exp() * 1e3);
                rows.push(Row {
                    o,
                    iops: ln.exp(),
                    latency_ms,
                    latency_half_unit_ms: 0.0005,
                    law: None,
                });
            }
            if o as f64 >= reach {
                break;
            }
            o *= 2;
        }
        let height = top.exp() * random.between(0.97, 1.03);
        let declared = |iops: f64| DeclaredCap { name: iops.to_string(), limit: Limit::Iops(iops) };
        let caps = vec![declared(height * 2.0), declared(height), declared(height * 0.7)];
        let is_capped = shape.has_ceiling().expect("clear cases only");
        let caps = if is_capped { caps } else { vec![] };
        let options = Options { threads: Some(4.0), caps, ..Options::default() };
        let found = knee::find(&rows, &options);
        score.add("verdict", found.verdict == Verdict::Knee);
        let has_flag = found.flags.contains(&Flag::Capped);
        if is_capped {
            let named = found.named_cap.as_ref().map(|cap| cap.name == height.to_string());
            score.add("capped and named", has_flag && named == Some(true));
            let bare = knee::find(&rows, &Options { caps: Vec::new(), ..options });
            score.add("capped", bare.flags.contains(&Flag::Capped));
        } else {
            score.add("no ceiling, and none seen", !has_flag);
        }
    }
    score.at_least("verdict", 0.95);
    score.at_least("capped", 0.95);
    score.at_least("capped and named", 0.95);
    score.at_least("no ceiling, and none seen", 0.95);
}

/// The balanced recommendation by the rule as it is written (method, 3.1 and 3.2): K among the tested settings up to 1.4·P,
/// and the first tested one that keeps 97 % of the throughput at K or P, whichever is less.
fn balanced_as_written(os: &[u64], ln_rate: &[f64], plateau: usize) -> usize {
    let inside = os.iter().filter(|o| **o as f64 <= 1.4 * os[plateau] as f64).count();
    let rates: Vec<f64> = ln_rate[..inside].iter().map(|ln| ln.exp()).collect();
    let latencies: Vec<f64> = os.iter().zip(&rates).map(|(o, rate)| *o as f64 / rate).collect();
    let normalised = |values: &[f64]| -> Vec<f64> {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        let high = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        values.iter().map(|value| (value - low) / (high - low)).collect()
    };
    let apart: Vec<f64> =
        normalised(&rates).iter().zip(normalised(&latencies)).map(|(x, l)| x - l).collect();
    let most = apart.iter().copied().fold(f64::NEG_INFINITY, f64::max);
    let balance = apart.iter().rposition(|apart| *apart >= most - 0.02).expect("the largest");
    let kept = ln_rate[balance.min(plateau)] + 0.97_f64.ln();
    ln_rate.iter().position(|ln| *ln >= kept).expect("at the balance at the latest")
}

/// Tables of a user are judged by what is in them, however far apart their settings lie.
#[test]
fn balanced_recommendations_are_those_of_the_rule() {
    let mut score = Score::default();
    for seed in 0..400 {
        let mut random = Random::seeded(seed + 300_000);
        let corner = random.between(4.0, 16.0);
        let sharpness = random.between(2.0, 8.0);
        let last = corner * random.between(1.6, 3.0);
        let grid = random.one_of(&["every o", "steps", "doubling", "ratio"]);
        let step = random.one_of(&[2.0, 4.0]);
        let ratio = random.one_of(&[1.25, 1.5]);
        let mut at = if grid == "steps" { step } else { 1.0 };
        let mut os: Vec<u64> = Vec::new();
        while os.last().is_none_or(|o| (*o as f64) < last) {
            os.push(format!("{at}").parse().expect("a whole number"));
            at = match grid {
                "every o" => at + 1.0,
                "steps" => at + step,
                "doubling" => at * 2.0,
                _ => f64::max(at + 1.0, (at * ratio).round()),
            };
        }
        let shape = Shape::Smooth(sharpness);
        let truth: Vec<f64> = os.iter().map(|o| shape.ln_rate(*o as f64, corner)).collect();
        let rises = |i: &usize| {
            let (up, out) = (truth[i + 1] - truth[*i], (os[i + 1] as f64 / os[*i] as f64).ln());
            up / out >= 0.125
        };
        let Some(plateau) = (0..os.len() - 1).find(|i| !rises(i)).filter(|i| *i > 0) else {
            continue;
        };
        let wanted = balanced_as_written(&os, &truth, plateau);
        for sigma in [0.0, 0.003] {
            let row = |(o, ln): (&u64, &f64)| {
                let iops = (10.0 + ln + sigma * random.normal()).exp();
                let latency_ms = Some(4.0 * *o as f64 / iops * 1e3);
                Row { o: *o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None }
            };
            let rows: Vec<Row> = os.iter().zip(&truth).map(row).collect();
            let options = Options { threads: Some(4.0), ..Options::default() };
            let found = knee::find(&rows, &options);
            let Some(marks) = found.marks.filter(|_| found.verdict == Verdict::Knee) else {
                continue;
            };
            let at = os.iter().position(|o| *o == marks.recommended).expect("a tested setting");
            // With noise, a neighbour that is about as good.
            let is_near = sigma > 0.0 && (truth[at] - truth[wanted]).abs() <= 0.06;
            score.add(&format!("noise {sigma}, {grid}"), at == wanted || is_near);
        }
    }
    for grid in ["every o", "steps", "doubling", "ratio"] {
        score.at_least(&format!("noise 0, {grid}"), 0.95);
        score.at_least(&format!("noise 0.003, {grid}"), 0.8);
    }
}
