//! One goal after the other, by pairs of runs until it is decided: ours and the peer's directly behind each other, in turn the one
//! and the other first.
//!
//! After every few pairs the interval of the median quotient is held against the goal. Who looks often sees chance agree with him
//! sooner or later, so each look asks for more than one look would: of 200 intervals at most one may miss the median by chance (for
//! twenty looks and 5 % in all, Pocock 1977, "Group sequential methods in the design and analysis of clinical trials", table 1).

use std::time::{Duration, Instant};

use super::options::Options;
use super::report::{Measure, Question, Row, questions};
use super::spread::Ratio;
use super::target::Target;
use super::tool::{Programs, Sample, Setting};

/// Pairs before the first look: the fewest whose order alone leaves so little to chance.
const PAIRS_MIN: usize = 9;
/// Pairs between two looks.
const PAIRS_STEP: usize = 3;
/// How often an interval of one look may miss the median.
const CHANCE: f64 = 0.005;

/// The rule, for reports.
pub(super) const RULE: &str = "pairs of runs, in turn the one and the other first, until the interval of the median of \
    their quotients (99.5 % by order statistics, looked at after 9 pairs and every 3 more) lies on one side of the goal";

/// What came of a question.
#[derive(Debug, PartialEq)]
struct Answer {
    ratio: Option<Ratio>,
    pairs: usize,
    verdict: String,
}

/// Every question of one target that its depths ask.
pub(super) fn measure(
    target: &Target,
    programs: &Programs,
    options: &Options,
    limit: Duration,
    rows: &mut Vec<Row>,
) {
    for depth in &options.depths {
        let setting = Setting::new(target, *depth, options.seconds);
        for question in questions(target.kind, *depth) {
            let mut tools = programs.tools(target.kind);
            let place = |name| tools.iter().position(|tool| tool.name == name);
            let (Some(ours), Some(peer)) = (place(question.ours), place(question.peer)) else {
                println!("skipped {}: there is no {}", question.name(*depth), question.peer);
                continue;
            };
            let places = [ours, peer];
            let mut pair = places.map(|place| super::empty_row(&tools[place], setting));
            let began = Instant::now();
            let answer = ask(
                question,
                || began.elapsed() >= limit,
                |which| {
                    let sample = super::sample(&mut tools[places[which]], setting);
                    pair[which].samples.push(sample.as_ref().ok().copied());
                    sample
                },
            );
            println!("{}", line(question, *depth, &answer, began.elapsed()));
            rows.extend(pair);
        }
    }
}

/// Pairs of runs until the goal is decided or the time is over.
fn ask(
    question: Question,
    is_late: impl Fn() -> bool,
    mut run: impl FnMut(usize) -> Result<Sample, String>,
) -> Answer {
    let (mut ours, mut theirs) = (Vec::new(), Vec::new());
    let mut failed = 0;
    loop {
        let turn = ours.len() + failed;
        let first = run(turn % 2);
        let second = run((turn + 1) % 2);
        match first.and_then(|first| Ok((first, second?))) {
            Ok((first, second)) => {
                let (our, their) = if turn % 2 == 0 { (first, second) } else { (second, first) };
                // The one whose being less is good stands above.
                let (above, below) = match question.measure {
                    Measure::Cpu => (our.cpu_ns_per_io, their.cpu_ns_per_io),
                    Measure::Iops => (their.iops, our.iops),
                };
                ours.push(above);
                theirs.push(below);
            }
            Err(why) => {
                println!("a pair is left out: {why}");
                failed += 1;
            }
        }
        let pairs = ours.len();
        let is_over = is_late();
        let looks = pairs >= PAIRS_MIN && (pairs - PAIRS_MIN).is_multiple_of(PAIRS_STEP);
        if !looks && !is_over {
            continue;
        }
        let ratio = Ratio::of_pairs(&ours, &theirs, CHANCE).filter(|_| pairs >= PAIRS_MIN);
        let verdict = ratio.map(|ratio| ratio.verdict(question.at_most()));
        if let Some(verdict @ ("met" | "MISSED")) = verdict {
            return Answer { ratio, pairs, verdict: verdict.to_owned() };
        }
        if is_over {
            let verdict = match ratio {
                Some(ratio) => ratio.verdict(question.at_most()).to_owned(),
                None => format!("undecided: {pairs} pairs, and {PAIRS_MIN} are the fewest"),
            };
            return Answer { ratio, pairs, verdict };
        }
    }
}

/// `| nop | 32 | t/io_uring | ≤ 1.08 | 1.06 (1.05 to 1.07) | 12 pairs in 71 s | met |`
fn line(question: Question, depth: u32, answer: &Answer, took: Duration) -> String {
    let Answer { ratio, pairs, verdict } = answer;
    // Of rates the inverse was judged, and theirs is shown. What the spread hides is not.
    let shown = ratio.map_or_else(String::new, |ratio| match question.measure {
        Measure::Cpu => ratio.to_string(),
        Measure::Iops => ratio.inverse().to_string(),
    });
    let seconds = took.as_secs();
    format!("{} | {shown} | {pairs} pairs in {seconds} s | {verdict} |", question.name(depth))
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;
    use crate::bench::target::Kind;

    /// Ours takes `ratio` times what theirs does, give or take `noise`; `limit` pairs at most.
    fn answer(question: Question, ratio: f64, noise: f64, limit: usize) -> Answer {
        let runs = Cell::new(0_usize);
        ask(
            question,
            || runs.get() >= 2 * limit,
            |which| {
                let number = runs.get();
                runs.set(number + 1);
                // Up and down by turns, the same for neither of a pair.
                let noise = if number.is_multiple_of(3) { 1.0 + noise } else { 1.0 - noise };
                let cost = if which == 0 { 100.0 * ratio * noise } else { 100.0 * noise };
                Ok(Sample { cpu_ns_per_io: cost, iops: 1e6 / cost })
            },
        )
    }

    #[test]
    fn what_is_clear_is_decided_at_the_first_look() {
        let questions = questions(Kind::Nop, 32);
        let [question] = questions[..] else { panic!("one goal of nop at 32") };
        for (ratio, verdict) in [(1.0, "met"), (1.2, "MISSED")] {
            let answer = answer(question, ratio, 0.01, 100);
            assert_eq!((answer.pairs, answer.verdict.as_str()), (PAIRS_MIN, verdict), "{ratio}");
        }
        let line = line(question, 32, &answer(question, 1.0, 0.0, 100), Duration::from_secs(71));
        assert_eq!(
            line,
            "| nop | 32 | t/io_uring | ≤ 1.08 | 1.00 (1.00 to 1.00) | 9 pairs in 71 s | met |"
        );
    }

    #[test]
    fn what_is_not_goes_on_to_the_limit_and_says_so() {
        let question = questions(Kind::Nop, 32)[0];
        let late = answer(question, 1.08, 0.2, 30);
        assert_eq!((late.pairs, late.verdict.as_str()), (30, "undecided: the spread covers it"));
        let line = line(question, 32, &late, Duration::from_secs(240));
        assert!(line.contains("| hidden by the spread ("), "{line}");
        let few = answer(question, 1.0, 0.0, 4);
        assert_eq!((few.pairs, few.ratio), (4, None));
        assert!(few.verdict.starts_with("undecided"), "{}", few.verdict);
    }

    #[test]
    fn rates_are_to_be_kept() {
        let question = questions(Kind::Ext4, 32).pop().expect("the goal for rates");
        assert_eq!(
            (question.peer, question.name(32).as_str()),
            ("plumb, no latencies", "| ext4 | 32 | IOPS without latencies | ≥ 0.97")
        );
        // Twice as dear is half the rate.
        for (cost, verdict, shown) in [(1.0, "met", "1.00"), (1.25, "MISSED", "0.80")] {
            let answer = answer(question, cost, 0.0, 30);
            assert_eq!(answer.verdict, verdict, "{cost}");
            let line = line(question, 32, &answer, Duration::ZERO);
            assert!(line.contains(&format!("| {shown} (")), "{line}");
        }
    }
}
