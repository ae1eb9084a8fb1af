//! Ring submission, `-u` (spec 15.2, to the letter).

use plumb_io::clock::Clock;
use plumb_io::{Errno, IoQueue};
use plumb_units::Nanos;

use super::{Issuer, Level, Looks, LoopCounts, Next, Surroundings, bucket, probe, reap, sleep};

pub(super) fn run<Q: IoQueue, C: Clock, L: Level, const PACED: bool>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    batch: u32,
    counts: &mut LoopCounts,
) -> Result<(), Errno> {
    let mut queued: u32 = 0;
    issuer.looks.wait_for_all();
    while !around.controls.is_stopping() {
        // The clock of an I/O starts when its entry is prepared: waiting for the batch counts.
        let start = around.stamp::<L>(PACED);
        if L::STAMPS && PACED && issuer.outstanding() == 0 {
            // It may have slept without anything in flight.
            issuer.looks.found_nothing_after(start);
        }
        let next = issuer.next_op::<Q, PACED>(queue, start, around.elapsed(start, PACED));
        if let Next::Op(op) = next {
            queue.push(op);
            queued += 1;
        }
        match next {
            Next::Throttled(wait) if !L::OPEN && issuer.outstanding() == 0 => {
                sleep(wait, around.controls);
                issuer.looks.sleeps_elsewhere();
                issuer.rearm(around.live);
                counts.waits.throttle_sleep += 1;
            }
            Next::Throttled(wait) => {
                // With nothing queued upstream spins here; a completion or the time ends the wait.
                counts.submits += u64::from(queued > 0 && measures(around));
                probe(queue, issuer, around, queued, Looks::probes_at_first)?;
                let wanted = queued.min(batch).max(1);
                queue.submit_and_wait(wanted, wait)?;
                queued = 0;
                reap(queue, issuer, around, u32::MAX, wanted);
                counts.waits.throttle_wait += 1;
            }
            Next::Op(_) if issuer.idle() > 0 => {
                if issuer.may_try() {
                    let found = reap(queue, issuer, around, u32::MAX, 0);
                    if L::STAMPS {
                        if found == 0 {
                            // What takes long to prepare is no sleep of the entry behind it.
                            issuer.looks.found_nothing_after(start);
                        }
                        counts.waits.lookaside += 1;
                        counts.waits.lookaside_completion[bucket(found)] += 1;
                    }
                }
            }
            Next::Op(_) | Next::Busy => {
                counts.submits += u64::from(queued > 0 && measures(around));
                probe(queue, issuer, around, queued, Looks::probes_at_first)?;
                let wanted = queued.min(batch).max(1);
                queue.submit_and_wait(wanted, Nanos::NEVER)?;
                queued = 0;
                let found = reap(queue, issuer, around, u32::MAX, wanted);
                counts.waits.wait += 1;
                counts.waits.wait_completion[bucket(found)] += 1;
            }
        }
    }
    Ok(())
}

/// Whether a submission now is part of the measurement, as its rate is.
#[inline(always)]
fn measures<C: Clock>(around: &Surroundings<'_, C>) -> bool {
    around.controls.measuring_since().is_some()
}
