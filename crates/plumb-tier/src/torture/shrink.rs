//! Makes a failing history shorter.

use std::time::{Duration, Instant};

use super::history::{Shape, Step};
use super::states::{Broken, Tally, check};

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
    let mut size = best.0.len().div_ceil(2);
    while size > 0 && start.elapsed() < limit {
        let mut from = 0;
        let mut shorter = false;
        while from < best.0.len() && start.elapsed() < limit {
            let to = (from + size).min(best.0.len());
            let rest: Vec<Step> = best.0[..from].iter().chain(&best.0[to..]).copied().collect();
            match check(shape, &rest, states, seed, &mut Tally::default()) {
                Err(broken) => {
                    best = (rest, broken);
                    shorter = true;
                }
                Ok(()) => from = to,
            }
        }
        if !shorter {
            size /= 2;
        }
    }
    best
}
