//! Histories: change points found, missed and invented.

use plumb_study::compare::Metric;
use plumb_study::{decision, history};

use crate::random::Random;
use crate::score::Score;

struct Case {
    values: Vec<f64>,
    changes: Vec<usize>,
}

/// Up to five levels with noise, some with a memory, some with a lone outlier.
fn case(seed: u64) -> Case {
    let mut random = Random::seeded(seed);
    let levels = random.one_of(&[1, 2, 2, 3, 4, 5]);
    let sigma = random.one_of(&[0.003, 0.005, 0.01, 0.02, 0.03]);
    let phi = random.one_of(&[0.0, 0.0, 0.0, 0.3]);
    let lengths: Vec<usize> = (0..levels).map(|_| random.one_of(&LENGTHS)).collect();
    let (mut values, mut changes, mut level) = (Vec::new(), Vec::new(), 0.0);
    for (place, length) in lengths.iter().enumerate() {
        if place > 0 {
            changes.push(values.len());
            let shorter = lengths[place - 1].min(*length) as f64;
            let error = sigma * (2.0 / shorter).sqrt();
            let size = f64::max(0.03, 6.0 * error) * random.between(1.0, 2.0);
            level += random.one_of(&[size, -size]);
        }
        let noise = random.autoregressive(phi, *length);
        values.extend(noise.iter().map(|z| 1000.0 * (level + sigma * z).exp()));
    }
    if random.unit() < 0.3 {
        let inside: Vec<usize> = (2..values.len() - 2).collect();
        values[random.one_of(&inside)] *= random.one_of(&[0.6, 1.5]);
    }
    Case { values, changes }
}

const LENGTHS: [usize; 8] = [8, 9, 10, 12, 15, 20, 25, 30];

#[test]
fn changes_of_level_are_found_and_none_invented() {
    let mut score = Score::default();
    for seed in 0..1500 {
        let case = case(seed + 90_000);
        let found: Vec<usize> = history::change_points(&case.values)
            .expect("long enough")
            .iter()
            .map(|point| point.index)
            .collect();
        let near = |places: &[usize], place: usize, reach| {
            places.iter().any(|other| other.abs_diff(place) <= reach)
        };
        for change in &case.changes {
            score.add("found", near(&found, *change, 2));
            score.add("found at its place", near(&found, *change, 0));
        }
        for point in &found {
            score.add("invented", !near(&case.changes, *point, 3));
        }
        if case.changes.is_empty() {
            score.add("quiet", found.is_empty());
        }
    }
    score.at_least("found", 0.95);
    score.at_least("found at its place", 0.85);
    score.at_most("invented", 0.04);
    score.at_least("quiet", 0.96);
}

/// The longer a series, the more places it has for a step that is none: what is asked of one grows with it (0271).
#[test]
fn a_long_series_without_a_change_has_none() {
    for length in [30_usize, 60, 100, 200, 365] {
        let mut score = Score::default();
        for seed in 0..150 {
            let mut random = Random::seeded(seed + 777_000 + length as u64);
            let noise = random.autoregressive(0.0, length);
            let values: Vec<f64> = noise.iter().map(|z| 1000.0 * (0.03 * z).exp()).collect();
            let found = history::change_points(&values).expect("long enough");
            score.add("invented", !found.is_empty());
        }
        println!("{length} values");
        score.at_most("invented", 0.05);
    }
}

/// The verdict on a history, and why.
fn verdict(values: &[f64]) -> (String, String) {
    let metric = Metric::named("iops", true);
    let found = decision::of_history(values, &metric, history::STEP_LEAST).expect("positive");
    let text = |key: &str| found[key].as_str().expect("text").to_owned();
    (text("verdict"), text("reason"))
}

#[test]
fn the_same_is_said_of_one_level_only() {
    let wobble = |i: u32| 1.0 + 0.001 * (f64::from(i * 7 % 10) - 4.5);
    for fall in [0.95, 0.9, 0.8] {
        let falling: Vec<f64> = (0..9).map(|i| 1000.0 * f64::powi(fall, i)).collect();
        let (found, why) = verdict(&falling);
        assert_eq!(found, "unclear", "{fall}: {why}");
        assert!(why.contains("from first to last -"), "{why}");
    }
    let (found, why) = verdict(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]);
    assert_eq!(found, "unclear", "{why}");
    // Three values are too few for a level of their own, at the beginning as at the end.
    let mut late = vec![600.0, 605.0, 602.0];
    late.extend((0..12).map(|i| 1000.0 * wobble(i)));
    let (found, why) = verdict(&late);
    assert_eq!(found, "unclear", "{why}");
    assert!(why.contains("the first 3 values are -39"), "{why}");
    let calm: Vec<f64> = (0..12).map(|i| 1000.0 * wobble(i)).collect();
    let (found, why) = verdict(&calm);
    assert_eq!(found, "same", "{why}");
    // One level as far as is known, but known too badly.
    let wild: Vec<f64> = (0..12).map(|i| 1000.0 * wobble(i).powi(20)).collect();
    assert_eq!(verdict(&wild).0, "unclear");
    // A lone outlier belongs to no level.
    let mut alone = calm.clone();
    alone[5] = 500.0;
    assert_eq!(verdict(&alone).0, "same");
}

#[test]
fn steady_histories_are_the_same_and_trends_are_not() {
    let mut score = Score::default();
    for seed in 0..1000 {
        let mut random = Random::seeded(seed + 70_000);
        let sigma = random.one_of(&[0.001, 0.002, 0.004]);
        let count = random.one_of(&[12, 15, 20, 30]);
        let noise = random.autoregressive(0.0, count);
        let trend = random.one_of(&[0.0, 0.0, 0.06, -0.06, 0.15, -0.15]);
        let values: Vec<f64> = (0..count)
            .zip(&noise)
            .map(|(i, z)| 1000.0 * (trend * i as f64 / (count - 1) as f64 + sigma * z).exp())
            .collect();
        let (found, _) = verdict(&values);
        if trend == 0.0 {
            score.add("steady is the same", found == "same");
            score.add("steady is changed", found == "better" || found == "worse");
        } else {
            score.add("a trend is the same", found == "same");
        }
    }
    score.at_least("steady is the same", 0.9);
    score.at_most("steady is changed", 0.05);
    score.at_most("a trend is the same", 0.0);
}
