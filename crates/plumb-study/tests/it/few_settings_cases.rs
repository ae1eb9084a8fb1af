//! Tables of 7 to 12 settings that were each run once: few residuals to tell noise by.

use plumb_study::knee::{self, Flag, Options, Row, Spread, Verdict};

use crate::random::Random;
use crate::score::Score;

/// What is the matter with a table.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Matter {
    Nothing,
    /// One setting lies off by this, in ln X.
    Off(f64),
    /// Throughput falls by this over the last two settings, in ln X.
    Falls(f64),
}

struct Table {
    rows: Vec<Row>,
    off: Option<u64>,
}

fn table(random: &mut Random, count: usize, sigma: f64, matter: Matter) -> Table {
    let ratio = random.one_of(&[1.4, 2.0, 2.0]);
    let mut os: Vec<u64> = vec![1];
    while os.len() < count {
        let last = os[os.len() - 1];
        let next = format!("{:.0}", last as f64 * ratio).parse().expect("a whole number");
        os.push(u64::max(last + 1, next));
    }
    let end = os[count - 1] as f64;
    let corner = end / random.between(2.5, 8.0);
    let shape = random.one_of(&[0, 1, 2]);
    let (sharpness, before) = (random.between(2.0, 8.0), random.between(0.4, 0.9));
    let truth = |n: f64| {
        let v = (n / corner).ln();
        match shape {
            0 => -((-sharpness * v).exp() + 1.0).ln() / sharpness,
            1 => (1.0 - (-3.0 * n / corner).exp()).ln(),
            _ => before * v.min(0.0),
        }
    };
    let inner = os[2..count - 2].to_vec();
    let off = matches!(matter, Matter::Off(_)).then(|| random.one_of(&inner));
    let top = random.between(2000.0, 200_000.0).ln();
    let rows = os.iter().enumerate().map(|(index, o)| {
        let beside = match matter {
            Matter::Off(size) if off == Some(*o) => size,
            Matter::Falls(size) if index == count - 1 => -size,
            Matter::Falls(size) if index == count - 2 => -size / 2.0,
            _ => 0.0,
        };
        let iops = (top + truth(*o as f64) + beside + sigma * random.normal()).exp();
        let latency_ms = Some(4.0 * *o as f64 / iops * 1e3);
        Row { o: *o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None }
    });
    Table { rows: rows.collect(), off }
}

#[test]
fn flags_of_few_settings_that_were_run_once() {
    let mut score = Score::default();
    for seed in 0..6000 {
        let mut random = Random::seeded(seed + 900_000);
        let count = random.one_of(&[7, 8, 9, 10, 10, 11, 12]);
        let sigma = random.one_of(&[0.005, 0.01, 0.015, 0.02]);
        let matter = match random.one_of(&[0, 0, 1, 2]) {
            0 => Matter::Nothing,
            1 => Matter::Off(random.one_of(&[-0.25, -0.15, 0.15, 0.25])),
            _ => Matter::Falls(random.between(0.1, 0.3)),
        };
        let Table { rows, off } = table(&mut random, count, sigma, matter);
        let found = knee::find(&rows, &Options { threads: Some(4.0), ..Options::default() });
        if found.verdict != Verdict::Knee {
            score.add("a knee", false);
            continue;
        }
        score.add("a knee", true);
        let has = |flag| found.flags.contains(&flag);
        match matter {
            Matter::Nothing => {
                score.add(&format!("no outlier, noise {sigma}"), !has(Flag::Outlier));
                score.add(&format!("no drop, noise {sigma}"), !has(Flag::Drop));
            }
            Matter::Off(size) => {
                let is_it = found.outliers().iter().any(|o| Some(*o) == off);
                score.add(&format!("the outlier {size:.2}, noise {sigma}"), is_it);
                score.add("the outlier and no other", is_it && found.outliers().len() == 1);
                score.add(&format!("no drop beside an outlier, noise {sigma}"), !has(Flag::Drop));
            }
            Matter::Falls(_) => {
                score.add(&format!("the drop, noise {sigma}"), has(Flag::Drop));
                score.add(&format!("no outlier beside a drop, noise {sigma}"), !has(Flag::Outlier));
            }
        }
    }
    score.at_least("a knee", 0.98);
    for (noise, outlier, drop) in
        [("0.005", 0.99, 0.99), ("0.01", 0.98, 0.98), ("0.015", 0.96, 0.93), ("0.02", 0.93, 0.91)]
    {
        score.at_least(&format!("no outlier, noise {noise}"), outlier);
        score.at_least(&format!("no drop, noise {noise}"), drop);
        score.at_least(&format!("no outlier beside a drop, noise {noise}"), outlier - 0.02);
        score.at_least(&format!("the drop, noise {noise}"), 0.92);
        for size in ["-0.25", "0.25"] {
            score.at_least(&format!("the outlier {size}, noise {noise}"), 0.85);
        }
    }
    score.at_least("the outlier and no other", 0.75);
}

/// (3.2, 2) Noise that a concave fit of so few settings hides; with what other curves of the study say of it, and without.
#[test]
fn noise_makes_few_outliers_of_few_settings() {
    let mut score = Score::default();
    for seed in 0..3000 {
        let mut random = Random::seeded(seed + 319_000);
        let count = random.one_of(&[7, 8, 9]);
        let sigma = random.one_of(&[0.03, 0.05, 0.08]);
        let rows = table(&mut random, count, sigma, Matter::Nothing).rows;
        for (name, noise) in
            [("alone", None), ("told", Some(Spread { deviation: sigma, freedom: 6.0 }))]
        {
            let options = Options { threads: Some(4.0), noise, ..Options::default() };
            let found = knee::find(&rows, &options);
            let has = |flag| found.flags.contains(&flag);
            score.add(&format!("no outlier, {name}, noise {sigma}"), !has(Flag::Outlier));
            score.add(&format!("no drop, {name}, noise {sigma}"), !has(Flag::Drop));
        }
    }
    score.print();
    for (noise, outlier, drop) in [("0.03", 0.87, 0.85), ("0.05", 0.73, 0.78), ("0.08", 0.68, 0.76)]
    {
        score.at_least(&format!("no outlier, alone, noise {noise}"), outlier);
        score.at_least(&format!("no drop, alone, noise {noise}"), drop);
        score.at_least(&format!("no outlier, told, noise {noise}"), 0.93);
        score.at_least(&format!("no drop, told, noise {noise}"), 0.95);
    }
}

/// (3.2, 8) What a sentence rests on leaving out is in it.
#[test]
fn a_setting_that_is_left_out_is_in_the_sentence() {
    let row = |(o, iops): (u64, f64)| {
        let latency_ms = Some(4.0 * o as f64 / iops * 1e3);
        Row { o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None }
    };
    let rates = [12_500.0, 25_000.0, 50_000.0, 95_000.0, 75_000.0, 100_500.0, 100_000.0, 100_200.0];
    let rows: Vec<Row> = [1, 2, 4, 8, 16, 32, 64, 128].into_iter().zip(rates).map(row).collect();
    let find =
        |noise| knee::find(&rows, &Options { threads: Some(4.0), noise, ..Options::default() });
    let found = find(None);
    assert_eq!((found.verdict, found.outliers()), (Verdict::Knee, vec![16]), "{}", found.reason);
    assert!(found.reason.contains("left out, as off the curve: o16"), "{}", found.reason);
    // Runs elsewhere differ by as much as this one is off.
    let noisy = find(Some(Spread { deviation: 0.08, freedom: 6.0 }));
    assert!(noisy.outliers().is_empty() && !noisy.reason.contains("left out"), "{}", noisy.reason);
}

/// (3.2, 2) A setting that is put back among the others is measured from a curve through all of them: without the last ones that
/// goes on where they do not.
#[test]
fn what_is_put_back_is_no_noise_of_the_others() {
    let os = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96];
    let rates = [
        1521.0, 3105.0, 4719.0, 6354.0, 9585.0, 12_973.0, 18_500.0, 25_381.0, 35_450.0, 38_744.0,
        39_529.0, 37_717.0, 39_783.0,
    ];
    let row = |(o, iops): (u64, f64)| {
        let latency_ms = Some(4.0 * o as f64 / iops * 1e3);
        Row { o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None }
    };
    let rows: Vec<Row> = os.into_iter().zip(rates).map(row).collect();
    let found = knee::find(&rows, &Options { threads: Some(4.0), ..Options::default() });
    assert_eq!(found.verdict, Verdict::Knee, "{}", found.reason);
    let sigma = found.fit.expect("a fit").sigma;
    assert!(sigma < 0.04, "{sigma}");
}

/// (3.2, 2) Smooth curves at loads as users list them, run once: their noise is hardly ever told as several times what it is.
#[test]
fn noise_of_few_settings_is_not_told_too_large() {
    let mut score = Score::default();
    for seed in 0..3000 {
        let mut random = Random::seeded(seed + 342_000);
        let grid = random.one_of(&[0, 1, 2]);
        let count = random.one_of(&[8, 10, 12, 13, 14]);
        let os: Vec<u64> = match grid {
            0 => (0..count.min(9)).map(|place| 1 << place).collect(),
            1 => [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128][..count].to_vec(),
            _ => (1..15).take(count).map(|place| place * 3).collect(),
        };
        let corner = os[os.len() - 1] as f64 / random.between(2.0, 6.0);
        let sharpness = random.between(3.0, 12.0);
        let sigma = random.one_of(&[0.02, 0.03]);
        let row = |o: &u64| {
            let v = (*o as f64 / corner).ln();
            let truth = 9.0 - ((-sharpness * v).exp() + 1.0).ln() / sharpness;
            let iops = (truth + sigma * random.normal()).exp();
            let latency_ms = Some(4.0 * *o as f64 / iops * 1e3);
            Row { o: *o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None }
        };
        let rows: Vec<Row> = os.iter().map(row).collect();
        let found = knee::find(&rows, &Options { threads: Some(4.0), ..Options::default() });
        score.add("not unclear", found.verdict != Verdict::Unclear);
        score.add("noise", found.fit.is_some_and(|fit| fit.sigma < 3.0 * sigma));
    }
    score.at_least("not unclear", 0.999);
    score.at_least("noise", 0.999);
}
