//! One request at a time (spec 6.10): issue, wait, account.

use plumb_io::clock::Clock;
use plumb_io::{Errno, IoQueue, Slot};
use plumb_units::Nanos;

use super::{Issuer, Level, LoopCounts, Surroundings, sleep};

pub(super) fn run<Q: IoQueue, C: Clock, L: Level>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    counts: &mut LoopCounts,
) -> Result<(), Errno> {
    let paced = issuer.is_paced();
    let requests = issuer.requests();
    while !around.controls.is_stopping() {
        let mut issued = 0;
        let mut pause = Nanos::NEVER;
        for slot in 0..requests {
            if around.controls.is_stopping() {
                break;
            }
            let start = around.stamp::<L>(paced);
            let elapsed = around.elapsed(start, paced);
            match issuer.op_of_slot(queue, Slot(slot), start, elapsed) {
                Ok(op) => queue.push(op),
                Err(wait) => {
                    pause = pause.min(wait);
                    continue;
                }
            }
            issued += 1;
            queue.submit_and_wait(1, Nanos::NEVER)?;
            queue.look();
            let seen = if L::STAMPS { around.clock.now() } else { Nanos::ZERO };
            while let Some(done) = queue.pop() {
                let since = around.controls.measuring_since();
                issuer.finish(done, seen, since, (around.controls, around.live));
                issuer.completed(1);
            }
            issuer.rearm(around.live);
        }
        if issued == 0 && pause > Nanos::ZERO && !around.controls.is_stopping() {
            if L::OPEN {
                queue.submit_and_wait(1, pause)?;
            } else {
                sleep(pause, around.controls);
            }
            counts.waits.throttle_sleep += 1;
        }
    }
    Ok(())
}
