//! Moves beside a flush that fails: what was copied to that disk is not taken for being there (C10).

use super::faults::{done, fill, flush, rest, start};
use super::history::Step;
use super::left_out::needs;
use super::oracle::Promise;
use crate::mutation::Mutation;

/// A solid-state disk and a rotating one, and one copy of all.
const TWO_TIERS: (u32, u32, u8, u64) = (2, 1, 1, 0);

/// All that lies on the first disk moves to the second one. So many polls later a checkpoint's flush of that fails, and it forgets what that was
/// for; all later ones are good. What is not as it was.
fn moved_beside_a_failed_flush(polls: u32) -> Result<(), String> {
    let mut run = start(TWO_TIERS);
    fill(&mut run);
    done(&mut run, &[flush()])?;
    rest(&mut run, 2);
    run.let_any_fail((0..2).collect(), (0..2).collect());
    done(&mut run, &[Step::Move { which: 0b1111_1111, fast: 0 }])?;
    (0..polls).for_each(|_| run.poll());
    let flushes = run.engine.queue_mut().flushes(1);
    run.engine.queue_mut().faults_mut(1).flush_errors = vec![flushes];
    run.engine.checkpoint();
    rest(&mut run, 2);
    run.read_all(Promise::Durable, 0)
}

#[test]
fn what_a_failed_flush_forgot_of_a_move_is_where_it_was() {
    needs(Mutation::MovesOutliveFlush, || {
        (0..60).try_for_each(|polls| {
            let went = moved_beside_a_failed_flush(polls);
            went.map_err(|wrong| format!("{polls} polls: {wrong}"))
        })
    });
}
