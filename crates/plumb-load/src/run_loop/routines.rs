//! Completion routines, `-x` (spec 6.10): every completion issues the next I/O of its own request.

use plumb_io::clock::Clock;
use plumb_io::{Errno, IoQueue, Slot};
use plumb_units::Nanos;

use super::{Issuer, Level, Looks, LoopCounts, Surroundings, bucket, probe};

pub(super) fn run<Q: IoQueue, C: Clock, L: Level>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    batch: u32,
    counts: &mut LoopCounts,
) -> Result<(), Errno> {
    let (mut queued, mut since_look) = (0, issuer.requests());
    for slot in 0..issuer.requests() {
        issue(queue, issuer, around, Slot(slot));
        queued += 1;
        if queued >= batch {
            queue.submit_and_wait(0, Nanos::ZERO)?;
            queued = 0;
        }
    }
    while !around.controls.is_stopping() && issuer.outstanding() > 0 {
        probe(queue, issuer, around, queued, Looks::probes)?;
        // The time since the last look has the submissions of its routines in it.
        issuer.looks.enters(since_look);
        queue.submit_and_wait(1, Nanos::NEVER)?;
        queued = 0;
        let found = queue.look();
        since_look = found;
        counts.waits.wait += 1;
        counts.waits.wait_completion[bucket(found)] += 1;
        let mut first = None;
        for left in (0..found).rev() {
            let Some(done) = queue.pop() else { break };
            // Each routine reads the clock on entry.
            let seen = if L::STAMPS { around.clock.now() } else { Nanos::ZERO };
            let since = around.controls.measuring_since();
            if L::STAMPS {
                let first =
                    *first.get_or_insert_with(|| (seen, issuer.looks.slept(seen, 1, around.clock)));
                let bound = issuer.looks.saw_next(seen, first, left, since.is_some());
                if L::WITNESSED
                    && let Some(witness) = &mut issuer.witness
                {
                    witness.is_late_by(bound);
                }
            }
            issuer.finish(done, seen, since, (around.controls, around.live));
            issuer.completed(1);
            if around.controls.is_stopping() {
                continue;
            }
            issue(queue, issuer, around, done.slot);
            queued += 1;
            if queued >= batch {
                queue.submit_and_wait(0, Nanos::ZERO)?;
                queued = 0;
            }
        }
        issuer.rearm(around.live);
    }
    Ok(())
}

/// Issues the next I/O of a request. Meters do not go with completion routines: a plan has none here.
#[inline(always)]
fn issue<Q: IoQueue, C: Clock, L: Level>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    slot: Slot,
) {
    assert!(!issuer.is_paced(), "completion routines have no meters");
    let start = around.stamp::<L>(false);
    if let Ok(op) = issuer.op_of_slot(queue, slot, start, Nanos::ZERO) {
        queue.push(op);
    }
}
