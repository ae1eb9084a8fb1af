//! Nominal 95 % intervals of single runs, on series that remember.

use plumb_study::precision;

use crate::random::Random;
use crate::score::Score;

#[test]
fn intervals_cover_what_they_promise() {
    let mut random = Random::seeded(5);
    let mut score = Score::default();
    let mut long_enough = 0;
    while long_enough < 2000 {
        let phi = random.one_of(&[0.0, 0.3, 0.5, 0.7, 0.8, 0.9]);
        let count = random.one_of(&[60_u32, 120, 180, 300, 600]);
        let length = usize::try_from(count).expect("a short series");
        let series: Vec<f64> =
            random.autoregressive(phi, length).iter().map(|x| 1000.0 + 20.0 * x).collect();
        let interval = precision::of_series(&series).expect("long enough");
        let covered = (interval.mean - 1000.0).abs() <= interval.half_width;
        if f64::from(count) * (1.0 - phi) / (1.0 + phi) >= precision::EFFECTIVE_LEAST {
            long_enough += 1;
            score.add("covered, worth 15 values", covered);
        }
        if interval.is_long_enough() {
            score.add("covered, said to be worth 15 values", covered);
        }
    }
    for what in ["covered, worth 15 values", "covered, said to be worth 15 values"] {
        score.at_least(what, 0.93);
        score.at_most(what, 0.98);
    }
}
