//! Tables of which a few settings were run twice: whether those runs contradict each other (method, 3.3).

use plumb_study::knee::{self, Options, Row, Spread};

use crate::random::Random;
use crate::score::Score;

/// Settings as users and searches run them.
fn settings(random: &mut Random) -> Vec<u64> {
    const MIXED: [u64; 12] = [1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64];
    let few = random.one_of(&[6, 7, 8]);
    let more = random.one_of(&[9, 10, 12]);
    let dense = random.one_of(&[12, 16, 24]);
    match random.one_of(&[0, 1, 2, 3]) {
        0 => [2, 3, 4, 5, 6, 8, 12, 16][..few].to_vec(),
        1 => [1, 2, 4, 8, 16, 32, 64, 128][..few].to_vec(),
        2 => (1..=dense).collect(),
        _ => MIXED[..more].to_vec(),
    }
}

/// (3.3) σ of one to three pairs is told by few: the curve's residuals and the study's other repetitions. Chance names few
/// of them; one that is a fifth or more off is named.
#[test]
fn few_pairs_contradict_each_other_by_chance_and_bad_ones_do() {
    let mut score = Score::default();
    for seed in 0..6000 {
        let mut random = Random::seeded(0x343_0000 + seed);
        let os = settings(&mut random);
        let sigma = random.one_of(&[0.01, 0.02, 0.03]);
        let corner = os[os.len() - 1] as f64 / random.between(1.8, 5.0);
        let sharpness = random.between(2.5, 8.0);
        let pairs = random.one_of(&[1, 2, 3]);
        let mut twice: Vec<u64> = Vec::new();
        while twice.len() < pairs {
            let o = random.one_of(&os);
            if !twice.contains(&o) {
                twice.push(o);
            }
        }
        let (more, less) = (random.between(1.2, 1.4), random.between(0.6, 0.8));
        let bad = random.one_of(&[None, None, Some(more), Some(less)]);
        // What is known of the noise elsewhere in the study, if anything.
        let freedom = random.one_of(&[0_u32, 5, 10]);
        let squares: f64 = (0..freedom).map(|_| random.normal().powi(2)).sum();
        let freedom = f64::from(freedom);
        let noise = (freedom > 0.0)
            .then(|| Spread { deviation: sigma * (squares / freedom).sqrt(), freedom });
        let mut rows = Vec::new();
        for o in &os {
            let v = (*o as f64 / corner).ln();
            let truth = 8.0 - ((-sharpness * v).exp() + 1.0).ln() / sharpness;
            for run in 0..=u8::from(twice.contains(o)) {
                let off = bad.filter(|_| run == 1 && *o == twice[0]).unwrap_or(1.0);
                let iops = off * (truth + sigma * random.normal()).exp();
                let latency_ms = Some(*o as f64 / iops * 1e3);
                rows.push(Row { o: *o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None });
            }
        }
        let options = Options { threads: Some(1.0), noise, ..Options::default() };
        let found = knee::find(&rows, &options);
        let named: Vec<u64> =
            found.settings.iter().filter(|one| one.irreproducible).map(|one| one.o).collect();
        let told = if noise.is_some() { "told" } else { "alone" };
        if bad.is_some() {
            let is_it = named.contains(&twice[0]);
            score.add(&format!("the bad pair, noise {sigma}, {told}"), is_it);
            score.add(&format!("the bad pair of {pairs}, noise {sigma}"), is_it);
        } else {
            score.add(&format!("chance names one, noise {sigma}, {told}"), !named.is_empty());
            score.add(&format!("chance names one of {pairs}, noise {sigma}"), !named.is_empty());
        }
    }
    score.print();
    for noise in ["0.01", "0.02", "0.03"] {
        for told in ["told", "alone"] {
            score.at_most(&format!("chance names one, noise {noise}, {told}"), 0.05);
            score.at_least(&format!("the bad pair, noise {noise}, {told}"), 0.85);
        }
    }
}
