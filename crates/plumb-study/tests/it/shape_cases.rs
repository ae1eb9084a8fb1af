//! Curves that corners and queueing theory do not make: steps down, two settings off, slopes that change twice.

use std::collections::BTreeSet;

use plumb_study::knee::{self, Flag, Options, Row, Verdict};

use crate::random::Random;
use crate::score::Score;

/// What is wrong with a curve, or nothing.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    /// It falls by this in ln X from this many times its corner on.
    Step { by: f64, from: f64 },
    /// Two inner settings are off by these.
    Pair([f64; 2]),
    /// It rises by two slopes: no ceiling, although it ends flat.
    Twice,
}

/// ln X at `o`, its most 0.
fn ln_rate(kind: Kind, slope: f64, corner: f64, o: f64) -> f64 {
    let rise = match kind {
        Kind::Twice => {
            let middle = corner * 0.5;
            let above = 0.35 * (o.clamp(middle, corner) / corner).ln();
            above + slope * (o.min(middle) / middle).ln()
        }
        _ => slope * (o.min(corner) / corner).ln(),
    };
    match kind {
        Kind::Step { by, from } if o >= corner * from => rise - by,
        _ => rise,
    }
}

#[test]
fn curves_with_steps_and_pairs_off() {
    let mut score = Score::default();
    for seed in 0..600 {
        let mut random = Random::seeded(0x97_0000 + seed);
        let corner = random.between(8.0, 40.0);
        let kind = match random.one_of(&[0, 1, 2]) {
            0 => Kind::Step { by: random.between(0.1, 0.35), from: random.between(1.3, 1.6) },
            1 => {
                let mut off = || random.one_of(&[-0.3, -0.2, -0.15, 0.15, 0.2]);
                Kind::Pair([off(), off()])
            }
            _ => Kind::Twice,
        };
        let slope = random.between(0.5, 0.95);
        let last = corner * random.between(2.2, 3.0);
        let ratio = random.one_of(&[1.2, 1.3]);
        let mut os: Vec<f64> = vec![(corner / random.between(5.0, 9.0)).round().max(1.0)];
        while os[os.len() - 1] < last {
            let o = os[os.len() - 1];
            os.push((o * ratio).round().max(o + 1.0));
        }
        let inner: Vec<usize> = (2..os.len() - 2).collect();
        let mut off = BTreeSet::new();
        while matches!(kind, Kind::Pair(_)) && off.len() < 2 {
            off.insert(random.one_of(&inner));
        }
        let sigma = random.one_of(&[0.002, 0.005, 0.01]);
        let repetitions = random.one_of(&[1, 3]);
        let mut rows = Vec::new();
        for (index, o) in os.iter().enumerate() {
            let moved = match (kind, off.iter().position(|place| *place == index)) {
                (Kind::Pair(by), Some(place)) => by[place],
                _ => 0.0,
            };
            for _ in 0..repetitions {
                let ln = ln_rate(kind, slope, corner, *o) + moved + sigma * random.normal();
                let iops = 50_000.0 * ln.exp();
                rows.push(Row {
                    o: format!("{o}").parse().expect("a whole number"),
                    iops,
                    latency_ms: Some(4.0 * o / iops * 1e3),
                    latency_half_unit_ms: 0.0005,
                    law: None,
                });
            }
        }
        let found = knee::find(&rows, &Options { threads: Some(4.0), ..Options::default() });
        let name = match kind {
            Kind::Step { .. } => "step",
            Kind::Pair(_) => "pair",
            Kind::Twice => "twice",
        };
        score.add("verdict", found.verdict == Verdict::Knee);
        if found.verdict != Verdict::Knee {
            println!("seed {seed}: {kind:?}: {}", found.reason);
            continue;
        }
        let has = |flag| found.flags.contains(&flag);
        let wanted: Vec<u64> =
            off.iter().map(|index| format!("{}", os[*index]).parse().expect("whole")).collect();
        let right = match kind {
            Kind::Step { .. } => has(Flag::Drop) && !has(Flag::Outlier) && !has(Flag::Capped),
            Kind::Pair(_) => found.outliers() == wanted && !has(Flag::Drop),
            Kind::Twice => found.flags.is_empty(),
        };
        score.add(name, right);
        if !right {
            println!("seed {seed}: {kind:?}, {wanted:?}: {:?} {:?}", found.flags, found.outliers());
        }
        let plateau = found.marks.expect("a knee has marks").plateau as f64;
        let index = os.iter().position(|o| *o == plateau).expect("a tested setting");
        let near = os.partition_point(|o| *o < corner);
        score.add("plateau", index.abs_diff(near) <= 1);
    }
    score.at_least("verdict", 0.98);
    score.at_least("plateau", 0.95);
    score.at_least("step", 0.85);
    score.at_least("pair", 0.85);
    score.at_least("twice", 0.85);
}

#[test]
fn one_run_far_above_at_an_end_is_an_outlier_and_no_rise() {
    let mut score = Score::default();
    for seed in 0..400 {
        let mut random = Random::seeded(0x13_2000 + seed);
        let corner = random.between(8.0, 30.0);
        let sharpness: f64 = random.one_of(&[4.0, 6.0, 10.0, 50.0]);
        let last = corner * random.between(2.6, 3.4);
        let ratio = random.one_of(&[1.15, 1.3, 1.45]);
        let mut os: Vec<f64> = vec![(corner / random.between(3.0, 6.0)).round().max(1.0)];
        while os[os.len() - 1] < last {
            let o = os[os.len() - 1];
            os.push((o * ratio).round().max(o + 1.0));
        }
        let is_last = random.one_of(&[true, false]);
        let bad = if is_last { os.len() - 1 } else { 0 };
        let by = random.one_of(&[0.15, 0.2, 0.25]);
        let sigma = random.one_of(&[0.003, 0.008, 0.015]);
        let repetitions = random.one_of(&[1, 1, 3]);
        let mut rows = Vec::new();
        for (index, o) in os.iter().enumerate() {
            let (off, count) = if index == bad { (by, 1) } else { (0.0, repetitions) };
            for _ in 0..count {
                let rise = -((corner / o).powf(sharpness) + 1.0).ln() / sharpness;
                let iops = 50_000.0 * (rise + off + sigma * random.normal()).exp();
                rows.push(Row {
                    o: format!("{o}").parse().expect("a whole number"),
                    iops,
                    latency_ms: Some(4.0 * o / iops * 1e3),
                    latency_half_unit_ms: 0.0005,
                    law: None,
                });
            }
        }
        let found = knee::find(&rows, &Options { threads: Some(4.0), ..Options::default() });
        let end = if is_last { "last" } else { "first" };
        score.add(&format!("{end}: verdict"), found.verdict == Verdict::Knee);
        let wanted: u64 = format!("{}", os[bad]).parse().expect("a whole number");
        let is_named = found.outliers() == [wanted];
        score.add(&format!("{end}: named, and no other"), is_named);
        if !is_named {
            println!("seed {seed}: {wanted}: {} {:?}", found.reason, found.outliers());
        }
    }
    for end in ["last", "first"] {
        score.at_least(&format!("{end}: verdict"), 0.95);
        score.at_least(&format!("{end}: named, and no other"), 0.9);
    }
}

/// What the last three settings of a curve that has long been level look like.
#[derive(Debug, Clone, Copy, PartialEq)]
enum End {
    /// The middle one is low.
    One,
    /// The last two are.
    Two,
}

#[test]
fn next_to_the_last_one_setting_is_off_and_two_are_a_step() {
    let mut score = Score::default();
    for seed in 0..600 {
        let mut random = Random::seeded(0x265_0000 + seed);
        let corner = random.between(8.0, 30.0);
        let sharpness: f64 = random.one_of(&[4.0, 6.0, 10.0, 50.0]);
        let last = corner * random.between(2.2, 3.4);
        let ratio = random.one_of(&[1.15, 1.3, 1.45]);
        let mut os: Vec<f64> = vec![(corner / random.between(4.0, 8.0)).round().max(1.0)];
        while os[os.len() - 1] < last {
            let o = os[os.len() - 1];
            os.push((o * ratio).round().max(o + 1.0));
        }
        let end = random.one_of(&[End::One, End::Two]);
        let by = random.between(0.12, 0.3);
        let sigma = random.one_of(&[0.002, 0.005, 0.01]);
        let repetitions = random.one_of(&[1, 2, 3]);
        let mut rows = Vec::new();
        for (index, o) in os.iter().enumerate() {
            let is_off = match end {
                End::One => index + 2 == os.len(),
                End::Two => index + 2 >= os.len(),
            };
            for _ in 0..repetitions {
                let rise = -((corner / o).powf(sharpness) + 1.0).ln() / sharpness;
                let off = if is_off { by } else { 0.0 };
                let iops = 50_000.0 * (rise - off + sigma * random.normal()).exp();
                rows.push(Row {
                    o: format!("{o}").parse().expect("a whole number"),
                    iops,
                    latency_ms: Some(4.0 * o / iops * 1e3),
                    latency_half_unit_ms: 0.0005,
                    law: None,
                });
            }
        }
        let found = knee::find(&rows, &Options { threads: Some(4.0), ..Options::default() });
        score.add("verdict", found.verdict == Verdict::Knee);
        let is_drop = found.flags.contains(&Flag::Drop);
        let beside: u64 = format!("{}", os[os.len() - 2]).parse().expect("a whole number");
        let (name, is_right) = match end {
            End::One => ("one is off", !is_drop && found.outliers() == [beside]),
            End::Two => ("two are a step", is_drop && found.outliers().is_empty()),
        };
        score.add(name, is_right);
        if !is_right {
            let (count, outliers) = (os.len(), found.outliers());
            println!("seed {seed}: {end:?} {by:.2} of {count}: {:?} {outliers:?}", found.flags);
        }
    }
    score.at_least("verdict", 0.98);
    score.at_least("one is off", 0.9);
    score.at_least("two are a step", 0.9);
}
