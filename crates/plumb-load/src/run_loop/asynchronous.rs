//! The default loop (spec 6.10 with D-32): fills the queue to its depth before it waits.

use plumb_io::clock::Clock;
use plumb_io::{Errno, IoQueue};
use plumb_units::Nanos;

use super::{
    Issuer, Level, Looks, LoopCounts, Next, Surroundings, bucket, probe, reap,
    reap_after_submission, sleep,
};

/// Why the filling of the queue paused.
#[derive(PartialEq)]
enum Pause {
    /// Every request is in flight.
    Full,
    /// A batch is in line.
    Batch,
    /// Completions were seen between two entries.
    Found,
    /// Every idle request is held back.
    Throttled(Nanos),
}

/// Limits of one thread.
pub(super) struct Caps {
    /// Submissions per call.
    pub(super) batch: u32,
    /// The same while more than that are idle; not less than `batch`.
    pub(super) burst: u32,
    /// Completions per visit.
    pub(super) completions: u32,
}

pub(super) fn run<Q: IoQueue, C: Clock, L: Level, const PACED: bool>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    Caps { batch, burst, completions }: Caps,
    counts: &mut LoopCounts,
) -> Result<(), Errno> {
    let (mut queued, mut looks): (u32, u64) = (0, 0);
    while !around.controls.is_stopping() {
        // A stamp of its own: the last reaping is not charged to the next I/O.
        let start = around.stamp::<L>(PACED);
        let elapsed = around.elapsed(start, PACED);
        if L::STAMPS && PACED && issuer.outstanding() == 0 {
            // It may have slept without anything in flight.
            issuer.looks.found_nothing_after(start);
        }
        let (queued_before, mut tried) = (queued, 0);
        // Requests that a burst of completions left idle would wait for the call before theirs, and no
        // latency would tell.
        let cap = if PACED { batch } else { (queued + issuer.idle()).clamp(batch, burst) };
        let pause = loop {
            match issuer.next_op::<Q, PACED>(queue, start, elapsed) {
                Next::Op(op) => queue.push(op),
                Next::Throttled(wait) => break Pause::Throttled(wait),
                Next::Busy => break Pause::Full,
            }
            queued += 1;
            if issuer.idle() == 0 {
                break Pause::Full;
            }
            if L::STAMPS && (!PACED || issuer.may_try()) {
                if PACED {
                    tried += 1;
                }
                let found = queue.look();
                if found > 0 {
                    counts.waits.lookaside_completion[bucket(found.min(completions))] += 1;
                    break Pause::Found;
                }
            }
            if queued >= cap {
                break Pause::Batch;
            }
        };
        if L::STAMPS {
            // Every I/O is followed by a look, but for the one that takes the last request. Counting them there
            // would cost as much as the look.
            if !PACED {
                tried = (queued - queued_before).saturating_sub(u32::from(pause == Pause::Full));
            }
            looks += u64::from(tried);
            if tried > u32::from(pause == Pause::Found) {
                issuer.looks.found_nothing_after(start);
            }
        }
        match pause {
            Pause::Full => {
                probe(queue, issuer, around, queued, Looks::probes)?;
                let wanted = wanted::<L>(issuer.outstanding(), batch, completions);
                queue.submit_and_wait(wanted, Nanos::NEVER)?;
                queued = 0;
                let found = reap(queue, issuer, around, completions, wanted);
                counts.waits.wait += 1;
                counts.waits.wait_completion[bucket(found)] += 1;
            }
            Pause::Batch => {
                queue.submit_and_wait(0, Nanos::ZERO)?;
                if L::STAMPS {
                    reap_after_submission(queue, issuer, around, completions, (start, queued));
                }
                queued = 0;
            }
            Pause::Found => {
                reap(queue, issuer, around, completions, 0);
                // A mapped target's I/Os are found after every push: those of others go to the kernel
                // when a batch is there all the same.
                if queued >= cap {
                    submit_found::<Q, C, L, PACED>(queue, issuer, around, completions, queued)?;
                    queued = 0;
                }
            }
            // An open loop sleeps in its queue, to the microsecond.
            Pause::Throttled(wait) if !L::OPEN && issuer.outstanding() == 0 => {
                sleep(wait, around.controls);
                issuer.looks.sleeps_elsewhere();
                issuer.rearm(around.live);
                counts.waits.throttle_sleep += 1;
            }
            // What completes while it is submitted is seen then, and not behind the wait for others.
            Pause::Throttled(_) if L::STAMPS && queued > 0 => {
                queue.submit_and_wait(0, Nanos::ZERO)?;
                reap_after_submission(queue, issuer, around, completions, (start, queued));
                queued = 0;
            }
            Pause::Throttled(wait) => {
                issuer.looks.enters(queued);
                queue.submit_and_wait(1, wait)?;
                queued = 0;
                reap(queue, issuer, around, completions, 1);
                counts.waits.throttle_wait += 1;
            }
        }
    }
    // Looks that found nothing are what is left: they are the common case.
    let found: u64 = counts.waits.lookaside_completion.iter().sum();
    counts.waits.lookaside_completion[0] += looks - found;
    counts.waits.lookaside = looks;
    Ok(())
}

/// Hands a batch over behind completions that were found: rare, and kept out of the loop's path.
#[cold]
#[inline(never)]
fn submit_found<Q: IoQueue, C: Clock, L: Level, const PACED: bool>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    completions: u32,
    queued: u32,
) -> Result<(), Errno> {
    let start = around.stamp::<L>(PACED);
    queue.submit_and_wait(0, Nanos::ZERO)?;
    reap_after_submission(queue, issuer, around, completions, (start, queued));
    Ok(())
}

/// Completions to wait for with the queue full (D-32): one where latencies are measured, at most a
/// sixteenth of what is in flight; else a batch, at most a quarter of it. Never more than `batch`, nor than `completions`, which
/// are taken at a visit (`-oc`): others would lie finished in the ring, and the device have as many less.
#[inline(always)]
fn wanted<L: Level>(outstanding: u32, batch: u32, completions: u32) -> u32 {
    let share = if L::STAMPS { outstanding / 16 } else { outstanding / 4 };
    share.clamp(1, batch.min(completions).max(1))
}

#[cfg(test)]
mod tests {
    use super::super::{Counts, Latencies};
    use super::*;

    #[test]
    fn a_wait_is_for_one_where_latencies_are_measured_and_for_a_batch_where_not() {
        for (outstanding, batch, latency, peak) in [
            (2, 8, 1, 1),
            (16, 8, 1, 4),
            (31, 8, 1, 7),
            (32, 8, 2, 8),
            (128, 8, 8, 8),
            (256, 8, 8, 8),
            (32, 32, 2, 8),
            (256, 32, 16, 32),
            (256, 1, 1, 1),
        ] {
            let waits = |most| {
                let latency = wanted::<Latencies>(outstanding, batch, most);
                (latency, wanted::<Counts>(outstanding, batch, most))
            };
            let told = format!("{outstanding} in flight, batches of {batch}");
            assert_eq!(waits(u32::MAX), (latency, peak), "{told}");
            // No more than are taken.
            assert_eq!(waits(2), (latency.min(2), peak.min(2)), "{told}");
            assert_eq!(waits(1), (1, 1), "{told}");
        }
    }
}
