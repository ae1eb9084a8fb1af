//! Histories: change points found, missed and invented.

use plumb_study::history;

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
