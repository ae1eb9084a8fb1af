//! Default baselines of devices without noise, whose shapes are drawn at random, against the exhaustive plan's choice of
//! small random I/O: nothing but the settings that were run can make a difference.

use plumb_study::study::Choices;

use crate::baseline_cases::devices;
use crate::choice_cases::{drawn_device, quiet};
use crate::peak_cases::choices;
use crate::score::Score;

/// `PLUMB_QUIET_DEVICES` for more of them, `PLUMB_QUIET_FROM` for others.
fn given(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Distance in true throughput that counts as none.
const WITHIN: f64 = 0.03;

fn told(choices: &Choices) -> String {
    let Some(curve) = &choices.random_curve else { return String::new() };
    let os: Vec<u64> = curve.settings.iter().map(|setting| setting.o).collect();
    let marks = curve.marks.map(|m| (m.plateau, m.balance, m.recommended, m.aims));
    format!("{} {marks:?} of {os:?}", curve.verdict.keyword())
}

#[test]
fn choices_without_noise_are_the_exhaustive_plans() {
    let from = given("PLUMB_QUIET_FROM", 0);
    let drawn = (from..from + given("PLUMB_QUIET_DEVICES", 48)).map(drawn_device);
    let all = devices().into_iter().map(|(_, device)| device).chain(drawn);
    let mut score = Score::default();
    for (number, device) in all.enumerate() {
        let device = quiet(&device);
        let (runs, found) = choices(&device, 1, false);
        let (_, wanted) = choices(&device, 1, true);
        let rate = |choices: &Choices| device.truth(&choices.random).0;
        let off = rate(&found) / rate(&wanted) - 1.0;
        score.add("within 3 %", off.abs() <= WITHIN);
        score.add("not 3 % less", off >= -WITHIN);
        let verdict = |choices: &Choices| choices.random_curve.as_ref().map(|c| c.verdict);
        score.add("verdict", verdict(&found) == verdict(&wanted));
        if off.abs() > WITHIN || verdict(&found) != verdict(&wanted) {
            println!(
                "{number}: {} ({}): {:+.1} %, {runs} runs\n  {}\n  {}",
                found.random.short(),
                wanted.random.short(),
                off * 100.0,
                told(&found),
                told(&wanted)
            );
        }
    }
    score.print();
    score.at_least("verdict", 1.0);
    score.at_least("not 3 % less", 0.98);
    score.at_least("within 3 %", 0.96);
}
