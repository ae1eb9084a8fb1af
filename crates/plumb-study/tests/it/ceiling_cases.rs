//! Ceilings whose corner lies between two settings, on lists of settings as users write them, and curves that are none.

use plumb_study::knee::{self, DeclaredCap, Flag, Limit, Options, Row, Verdict};

use crate::random::Random;
use crate::score::Score;

/// Throughput without noise; ln of `n` over the corner.
#[derive(Debug, Clone, Copy)]
enum Curve {
    /// Elasticity this, then a ceiling.
    Ceiling(f64),
    /// A queue that would go on, under a ceiling.
    Throttled(f64),
    /// The smooth minimum of load and capacity.
    Smooth(f64),
    /// 1 − e^(−3n).
    Exponential,
    /// A queue and a delay.
    Queue,
    /// Steep, and then on at this elasticity.
    Creeping(f64),
}

impl Curve {
    fn ln_rate(self, v: f64) -> f64 {
        match self {
            Self::Ceiling(slope) => (slope * v).min(0.0),
            Self::Throttled(k) => (v.exp() * (1.0 + k) / (v.exp() + k)).ln().min(0.0),
            Self::Smooth(p) => -((-p * v).exp() + 1.0).ln() / p,
            Self::Exponential => (1.0 - (-3.0 * v.exp()).exp()).ln(),
            Self::Queue => (v.exp() / (v.exp() + 0.15)).ln(),
            Self::Creeping(after) => v * if v < 0.0 { 0.9 } else { after },
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Ceiling(_) | Self::Throttled(_) => "ceiling",
            Self::Smooth(_) => "smooth",
            Self::Exponential => "exponential",
            Self::Queue => "queue",
            Self::Creeping(_) => "creeping",
        }
    }

    fn is_ceiling(self) -> bool {
        matches!(self, Self::Ceiling(_) | Self::Throttled(_))
    }
}

/// Settings up to the first beyond `reach`.
fn grid(random: &mut Random, reach: f64) -> Vec<u64> {
    const MIXED: [f64; 14] =
        [1.0, 2.0, 4.0, 6.0, 8.0, 12.0, 16.0, 24.0, 32.0, 48.0, 64.0, 96.0, 128.0, 192.0];
    let kind = random.one_of(&[0, 0, 1, 2, 3, 4]);
    let first = random.one_of(&[1.0, 2.0]);
    let ratio = random.one_of(&[1.26, 1.41, 1.5, 1.62]);
    let step = (reach / random.between(7.0, 14.0)).round().max(1.0);
    let mut all = vec![if kind == 4 { step } else { first }];
    while all[all.len() - 1] < reach {
        let o: f64 = all[all.len() - 1];
        all.push(match kind {
            0 => o * 2.0,
            1 => MIXED.into_iter().find(|next| *next > o).unwrap_or(o * 2.0),
            2 | 3 => (o * ratio).round().max(o + 1.0),
            _ => o + step,
        });
    }
    all.iter().map(|o| format!("{o}").parse().expect("a whole number")).collect()
}

#[test]
fn corners_between_two_settings() {
    let mut score = Score::default();
    for seed in 0..3000 {
        let mut random = Random::seeded(0x274_0000 + seed);
        let corner = random.between(5.0_f64.ln(), 60.0_f64.ln()).exp();
        let smooth = random.between(2.0, 4.0);
        let creeping = random.between(0.05, 0.12);
        let slope = random.between(0.75, 1.0);
        let curve = random.one_of(&[
            Curve::Ceiling(slope),
            Curve::Ceiling(1.0),
            Curve::Throttled(2.0 + 4.0 * slope),
            Curve::Smooth(smooth),
            Curve::Exponential,
            Curve::Queue,
            Curve::Creeping(creeping),
        ]);
        let reach = corner * random.between(1.7, 4.0);
        let os = grid(&mut random, reach);
        let sigma = random.one_of(&[0.001, 0.003, 0.005, 0.01, 0.015]);
        let repetitions = random.one_of(&[1, 1, 2, 3]);
        let top = random.between(7.0, 13.0);
        if os.len() < 5 {
            continue;
        }
        let mut rows = Vec::new();
        for o in &os {
            for _ in 0..repetitions {
                let ln = top + curve.ln_rate((*o as f64 / corner).ln()) + sigma * random.normal();
                let latency_ms = Some(4.0 * *o as f64 / ln.exp() * 1e3);
                rows.push(Row {
                    o: *o,
                    iops: ln.exp(),
                    latency_ms,
                    latency_half_unit_ms: 0.0005,
                    law: None,
                });
            }
        }
        let height = top.exp() * random.between(0.98, 1.02);
        let caps = vec![DeclaredCap { name: "the limit".to_owned(), limit: Limit::Iops(height) }];
        let bare = Options { threads: Some(4.0), ..Options::default() };
        let found = knee::find(&rows, &bare);
        score.add("verdict", found.verdict == Verdict::Knee);
        if found.verdict != Verdict::Knee {
            continue;
        }
        let has_flag = found.flags.contains(&Flag::Capped);
        let beyond: Vec<u64> = os.iter().copied().filter(|o| *o as f64 >= corner).collect();
        if curve.is_ceiling() {
            let named = knee::find(&rows, &Options { caps, ..bare.clone() }).named_cap.is_some();
            let level = beyond.len();
            score.add("capped", has_flag);
            score.add(&format!("capped, {} settings at the level", level.min(4)), has_flag);
            score.add("named", named);
        } else {
            score.add("none, and none seen", !has_flag);
            score.add(&format!("none seen, {}", curve.name()), !has_flag);
        }
    }
    score.print();
    score.at_least("verdict", 0.95);
    score.at_least("capped", 0.96);
    score.at_least("capped, 3 settings at the level", 0.965);
    score.at_least("named", 0.96);
    score.at_least("none, and none seen", 0.985);
}

#[test]
fn the_first_setting_of_a_level_may_lie_below_the_next() {
    let capped = |rates: [f64; 6]| {
        let row = |(place, iops): (u32, f64)| {
            let o = 1 << place;
            let latency_ms = Some(4.0 * o as f64 / iops * 1e3);
            Row { o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None }
        };
        let rows: Vec<Row> = (0..).zip(rates).map(row).collect();
        let found = knee::find(&rows, &Options { threads: Some(4.0), ..Options::default() });
        assert_eq!(found.verdict, Verdict::Knee, "{}", found.reason);
        found.flags.contains(&Flag::Capped)
    };
    assert!(capped([12_500.0, 25_000.0, 50_000.0, 96_000.0, 100_000.0, 96_200.0]));
    // It bends before its level, as a queue does.
    assert!(!capped([25_000.0, 40_000.0, 60_000.0, 90_000.0, 96_000.0, 100_000.0]));
}

/// (2.11) Every o from 1 on, run once, with the corner where the range that a ceiling has to be seen over just ends.
#[test]
fn ceilings_on_dense_settings_that_were_run_once() {
    let mut score = Score::default();
    for seed in 0..1500 {
        let mut random = Random::seeded(0x327_0000 + seed);
        let (last, corner) = random.one_of(&[(24, 16.0), (24, 15.5), (48, 32.0), (12, 6.0_f64)]);
        let sigma = random.one_of(&[0.005, 0.01, 0.02]);
        let smooth = random.between(2.0, 4.0);
        let falls = random.between(0.02, 0.25);
        let slope = random.one_of(&[0.8, 1.0]);
        let rises = |n: f64| slope * (n / corner).ln().min(0.0);
        let kind = random.one_of(&["ceiling", "ceiling", "smooth", "law"]);
        let row = |o: u64| {
            let n = o as f64;
            let truth = match kind {
                "ceiling" => rises(n),
                "smooth" => Curve::Smooth(smooth).ln_rate((n / corner).ln()),
                _ => {
                    let x = 2.0 * n / corner;
                    (x / (1.0 + x + falls * x * x)).ln()
                }
            };
            let iops = (10.0 + truth + sigma * random.normal()).exp();
            let latency_ms = Some(4.0 * n / iops * 1e3);
            Row { o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None }
        };
        let rows: Vec<Row> = (1..=last).map(row).collect();
        let found = knee::find(&rows, &Options { threads: Some(4.0), ..Options::default() });
        let has_flag = found.flags.contains(&Flag::Capped);
        if kind == "ceiling" {
            score.add(&format!("capped, noise {sigma}"), has_flag);
            // The first setting at the corner or beyond, or one beside it.
            let near = |o: u64| (o as f64 - corner.ceil()).abs() <= 1.0;
            score.add("plateau", found.marks.is_some_and(|marks| near(marks.plateau)));
        } else {
            score.add("none, and none seen", !has_flag);
        }
    }
    for (noise, wanted) in [("0.005", 0.95), ("0.01", 0.9), ("0.02", 0.84)] {
        score.at_least(&format!("capped, noise {noise}"), wanted);
    }
    score.at_least("plateau", 0.95);
    score.at_least("none, and none seen", 0.99);
}

/// (2.11) Every o, run once: what goes on rising beyond its corner, or falls, is level only where noise hides that it is not.
#[test]
fn slopes_that_many_settings_show_are_no_levels() {
    let mut score = Score::default();
    for seed in 0..2400 {
        let mut random = Random::seeded(0x343_0000 + seed);
        let (last, low, high) =
            random.one_of(&[(24, 9.0, 16.0), (48, 18.0, 32.0), (36, 14.0, 24.0)]);
        let corner = random.between(low, high);
        let sigma = random.one_of(&[0.003, 0.005, 0.01, 0.02]);
        let after = random.one_of(&[0.0, 0.05, 0.08, -0.06, -0.1]);
        let row = |o: u64| {
            let v = (o as f64 / corner).ln();
            let truth = v * if v < 0.0 { 0.9 } else { after };
            let iops = (10.0 + truth + sigma * random.normal()).exp();
            let latency_ms = Some(4.0 * o as f64 / iops * 1e3);
            Row { o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None }
        };
        let rows: Vec<Row> = (1..=last).map(row).collect();
        let found = knee::find(&rows, &Options { threads: Some(4.0), ..Options::default() });
        let has_flag = found.flags.contains(&Flag::Capped);
        match after {
            0.0 => score.add(&format!("capped, noise {sigma}"), has_flag),
            _ if sigma <= 0.005 => score.add(&format!("none seen, slope {after}"), !has_flag),
            _ => score.add(&format!("none seen, noise {sigma}"), !has_flag),
        }
    }
    score.print();
    for (noise, wanted) in [("0.003", 0.98), ("0.005", 0.98), ("0.01", 0.95), ("0.02", 0.9)] {
        score.at_least(&format!("capped, noise {noise}"), wanted);
    }
    for slope in ["0.05", "0.08", "-0.06", "-0.1"] {
        score.at_least(&format!("none seen, slope {slope}"), 0.97);
    }
    score.at_least("none seen, noise 0.01", 0.92);
    score.at_least("none seen, noise 0.02", 0.6);
}
