//! Makes a failing history shorter.

use std::time::{Duration, Instant};

use super::history::{Shape, Step};
use super::states::{Broken, Points, Tally, check, check_again, events};
use crate::random::Random;

/// Points on either side of the known crash's where a shorter history is tried, both counted from the end: what is left out
/// before a crash moves it, and what comes behind it stays about as long.
const POINTS: usize = 64;
/// Other crashes that are tried in the middle of these, for the known one's writes may be others now.
const DRAWS: u64 = 6;
/// Points on either side for those.
const CLOSE: usize = 16;

/// Leaves out steps as long as the rest still fails, for at most `limit`; what is left and how it fails.
pub(super) fn shrink(
    shape: &Shape,
    history: &[Step],
    seed: u64,
    states: u64,
    found: Broken,
    limit: Duration,
) -> (Vec<Step>, Broken) {
    let start = Instant::now();
    let mut best = (history.to_vec(), found);
    if limit.is_zero() {
        return best;
    }
    // What was asked for after the crash has no part in it.
    if let Some((point, drawn)) = best.1.crash.clone() {
        let lens: Vec<usize> = (0..history.len()).collect();
        let is_before = |len: &usize| events(shape, &history[..*len], seed) < Some(point);
        let needed = &history[..lens.partition_point(is_before)];
        let there = Points::FromStart(point..=point);
        if let Err(broken) = check_again(shape, needed, seed, (&there, &[drawn])) {
            best = (needed.to_vec(), broken);
        }
    }
    let mut size = best.0.len().div_ceil(2);
    while size > 0 && start.elapsed() < limit {
        let mut shorter = false;
        // The last steps lead to the crash: the first ones are tried first.
        let mut from = 0;
        while from < best.0.len() && start.elapsed() < limit {
            let to = (from + size).min(best.0.len());
            let rest: Vec<Step> = best.0[..from].iter().chain(&best.0[to..]).copied().collect();
            match fails(shape, &rest, (seed, states), &best) {
                Some(broken) => {
                    best = (rest, broken);
                    shorter = true;
                }
                None => from = to,
            }
        }
        if !shorter {
            size /= 2;
        }
    }
    best
}

/// How a history fails: by the crash that is known, about where it came, else by others there, else by any.
fn fails(
    shape: &Shape,
    history: &[Step],
    (seed, states): (u64, u64),
    (longer, known): &(Vec<Step>, Broken),
) -> Option<Broken> {
    let again = |(point, drawn): &(usize, Random)| {
        let behind = events(shape, longer, seed)?.checked_sub(*point)?;
        let near = |off| Points::FromEnd(behind.saturating_sub(off)..=behind + off);
        let tried =
            |off, draws: &[Random]| check_again(shape, history, seed, (&near(off), draws)).err();
        let others: Vec<Random> = (0..DRAWS).map(|nth| Random::new(seed ^ nth)).collect();
        tried(POINTS, std::slice::from_ref(drawn)).or_else(|| tried(CLOSE, &others))
    };
    let known = known.crash.as_ref().and_then(again);
    known.or_else(|| check(shape, history, states, seed, &mut Tally::default()).err())
}
