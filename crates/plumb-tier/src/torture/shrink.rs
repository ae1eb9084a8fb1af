//! Makes a failing history shorter.

use std::time::{Duration, Instant};

use super::history::{Shape, Step};
use super::states::{Broken, Tally, check, check_again, events};
use crate::random::Random;

/// Points before the one of the crash where a shorter history is tried: it has fewer events.
const POINTS: usize = 64;

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
        if let Err(broken) = check_again(shape, needed, seed, (point..=point, &drawn)) {
            best = (needed.to_vec(), broken);
        }
    }
    let mut size = best.0.len().div_ceil(2);
    while size > 0 && start.elapsed() < limit {
        let mut from = 0;
        let mut shorter = false;
        while from < best.0.len() && start.elapsed() < limit {
            let to = (from + size).min(best.0.len());
            let rest: Vec<Step> = best.0[..from].iter().chain(&best.0[to..]).copied().collect();
            match fails(shape, &rest, (seed, states), &best.1) {
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

/// How a history fails: by the crash that is known, there or a little sooner, else by any.
fn fails(
    shape: &Shape,
    history: &[Step],
    (seed, states): (u64, u64),
    known: &Broken,
) -> Option<Broken> {
    let again = |(point, drawn): &(usize, Random)| {
        check_again(shape, history, seed, (point.saturating_sub(POINTS)..=*point, drawn)).err()
    };
    let known = known.crash.as_ref().and_then(again);
    known.or_else(|| check(shape, history, states, seed, &mut Tally::default()).err())
}
