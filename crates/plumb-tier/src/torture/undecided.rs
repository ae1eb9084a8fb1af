//! A start that follows one which was cut short puts away what it replayed before it has settled anything: what is open stays open,
//! however many extents may be.

use plumb_io::sim::power::{CrashKind, Image, Replay, Survivors, Trace};

use super::faults::{MIRROR, done, fill, images, shape, start, write};
use super::oracle::{Oracle, Promise};
use super::run::Run;
use crate::mutation::{Mutation, set};

/// Starts, and what the disks show when the engine is killed at moments of that.
fn killed_starts(left: &[Image], expected: &Oracle, every: usize) -> Vec<Vec<Image>> {
    let started = Run::start(&shape(MIRROR), left.to_vec(), &[], expected.clone(), 3);
    let trace: Trace = started.expect("all disks are here").engine.queue_mut().take_trace();
    let mut replay = Replay::new(&trace, 512);
    let at = |point| {
        replay.advance_to(point);
        replay.crash(CrashKind::Engine, &[], Survivors::All, 1).0
    };
    (0..=trace.events.len()).step_by(every).map(at).collect()
}

/// All extents in use are open, and of the newest write nobody knows yet that it is durable. Two starts are killed, and then one is not.
fn is_read_behind_two_starts() -> Result<(), String> {
    let mut run = start(MIRROR);
    fill(&mut run);
    done(&mut run, &[write(0)])?;
    let mut expected = run.witness.oracle.clone();
    expected.crash(Promise::Acknowledged);
    let left = images(&mut run, MIRROR.0);
    for first in killed_starts(&left, &expected, 7) {
        for second in killed_starts(&first, &expected, 3) {
            let mut run = Run::start(&shape(MIRROR), second, &[], expected.clone(), 4)
                .map_err(|error| error.to_string())?;
            run.sound = false;
            run.read_all(Promise::Acknowledged, 0)?;
        }
    }
    Ok(())
}

#[test]
fn a_start_behind_one_that_was_cut_short_closes_nothing_that_is_not_settled() {
    for (mutation, holds) in [(Mutation::FewAreOpen, true), (Mutation::UndecidedClosed, false)] {
        set(Some(mutation));
        let went = is_read_behind_two_starts();
        set(None);
        println!("{mutation:?}: {went:?}");
        assert_eq!(went.is_ok(), holds, "{mutation:?}: {went:?}");
    }
}
