//! Histories in which a disk is emptied and removed while requests, faults and power cuts go on.

use super::history::{Shape, Step, steps};
#[cfg(test)]
use super::states::{Broken, Tally, check};
use crate::random::Random;

/// The history of a seed, with a disk that leaves early; with `faults`, others fail meanwhile.
fn history(shape: &Shape, count: usize, seed: u64) -> Vec<Step> {
    let mut out = steps(shape, count, seed);
    let mut random = Random::new(seed ^ 0x1ea4);
    let at = usize::try_from(8 + random.below(30)).unwrap_or(8).min(out.len());
    let disk = u32::try_from(random.below(u64::from(shape.disks))).unwrap_or(0);
    out.insert(at, Step::Leave { disk });
    // Emptying takes turns, and time.
    for _ in 0..12 {
        let at = at + 1 + usize::try_from(random.below(30)).unwrap_or(0);
        out.insert(at.min(out.len()), Step::Sleep { millis: 2 });
    }
    out
}

/// The history of a seed: in one of 64 a disk leaves.
pub(super) fn of(shape: &Shape, count: usize, seed: u64) -> Vec<Step> {
    if seed % 64 == 3 { history(shape, count, seed) } else { steps(shape, count, seed) }
}

/// Checks one such history.
#[cfg(test)]
fn one(seed: u64, states: u64, tally: &mut Tally) -> Result<(), (Shape, Broken)> {
    let shape = Shape::new(seed);
    let history = history(&shape, super::STEPS, seed);
    check(&shape, &history, states, seed, tally).map_err(|broken| (shape, broken))
}

#[cfg(test)]
mod tests {
    use plumb_io::sim::power::{CrashKind, Replay, Survivors};
    use plumb_units::Nanos;

    use super::super::faults::{
        MIRROR, done, fill, flush, rest, restart, shape, start, state, write,
    };
    use super::super::history::Fault;
    use super::super::left_out::needs;
    use super::super::oracle::Promise;
    use super::super::run::Run;
    use super::*;
    use crate::format::DiskState;
    use crate::mutation::{Mutation, set};
    use crate::optimizer::TierName;

    /// Three solid-state disks and two rotating ones, and one copy of all.
    const ONE_COPY: (u32, u32, u8, u64) = (5, 2, 1, 0);

    fn seed(nth: u64) -> u64 {
        super::super::history_seed(0x1ea7e, nth)
    }

    /// The combination by name: a disk leaves, with writes, faults and power cuts.
    #[test]
    fn a_disk_that_leaves_takes_nothing_with_it() {
        let named = std::env::var("PLUMB_LEAVING").ok().and_then(|text| text.parse().ok());
        let mut tally = Tally::default();
        for nth in 0..named.unwrap_or(24) {
            if let Err((shape, broken)) = one(seed(nth), 24, &mut tally) {
                panic!("history {nth} of {shape:?}: {broken:?}");
            }
        }
        println!("{} states, {} after a failed disk", tally.states, tally.failed_disk);
        assert!(tally.states > 200 && tally.failed_disk > 50, "{tally:?}");
        assert!(tally.emptied > 60, "{tally:?}");
    }

    #[test]
    fn broken_rules_of_leaving_are_noticed() {
        for mutation in [Mutation::MoveUncopied, Mutation::MoveUnmarked, Mutation::LeaverUnseen] {
            set(Some(mutation));
            let mut tally = Tally::default();
            let caught = (60..120).find(|nth| one(seed(*nth), 24, &mut tally).is_err());
            set(None);
            println!("{mutation:?}: history {caught:?}, {} states", tally.states);
            assert!(caught.is_some(), "{mutation:?} is not noticed");
        }
    }

    /// A disk of three leaves, and another one dies so many I/Os later. Whether it died before the first one was gone, and what
    /// is wrong.
    fn lost_while_another_one_leaves(after: u64) -> (bool, Result<(), String>) {
        let mut run = start(MIRROR);
        fill(&mut run);
        run.let_any_fail((0..3).collect(), (0..3).collect());
        let die = Step::Fault { disk: 2, fault: Fault::Dies { after } };
        run.take(&[Step::Leave { disk: 0 }, die]).expect("nothing is wrong yet");
        let leaves = |run: &Run| !run.engine.config().is_gone(0) && run.engine.halted().is_none();
        for _ in 0..60 {
            if leaves(&run) && state(&run, 2) == DiskState::Online {
                rest(&mut run, 1);
            }
        }
        rest(&mut run, 1);
        let died = state(&run, 2) != DiskState::Online || run.engine.halted().is_some();
        let served = done(&mut run, &[write(0), write(17), flush()]).and_then(|()| {
            let halted = run.engine.halted().map(|halt| format!("it serves nothing: {halt:?}"));
            halted.map_or(Ok(()), Err)
        });
        (died, served.and_then(|()| run.read_all(Promise::Acknowledged, 0)))
    }

    /// Any one disk may be lost at any moment of that (LAY-3).
    #[test]
    fn a_disk_may_be_lost_while_another_one_leaves() {
        let moments = || (0..).map(lost_while_another_one_leaves).take_while(|one| one.0);
        let wrong: Vec<String> = moments().filter_map(|one| one.1.err()).collect();
        assert!(wrong.is_empty(), "{wrong:?}");
        assert!(moments().count() > 30, "{}", moments().count());
        set(Some(Mutation::ToldListsKept));
        let wrong = moments().filter(|one| one.1.is_err()).count();
        set(None);
        assert!(wrong > 0, "it is not noticed");
    }

    /// A disk leaves, and the one extent on it moves to the other tier meanwhile, and is written. After so many polls of that the pause
    /// between two steps of emptying is over, and the power goes at each event of the poll in which that is noticed. Whether the place
    /// was given up in it.
    fn given_up_beside_a_move(polls: u32) -> Result<bool, String> {
        let mut run = start(ONE_COPY);
        done(&mut run, &[write(0), flush()])?;
        rest(&mut run, 8);
        run.let_any_fail((0..5).collect(), (0..5).collect());
        let leaver = run.engine.config().vdisks[0].tiers[0].rows[0].slabs[0].0;
        run.engine.leave(leaver).expect("there is room");
        while run.engine.config().moving.is_none() {
            run.poll();
        }
        run.engine.move_extent(0, 0, TierName::Capacity);
        let began = run.engine.queue_mut().now();
        for nth in 0..polls {
            if nth == 4 {
                // So that something is copied last, and flushed, while writes are held.
                run.take(&[write(0)])?;
            }
            run.engine.queue_mut().advance(Nanos(20_000));
            run.engine.poll(began, Nanos::ZERO);
        }
        let from = run.engine.queue_mut().events();
        run.engine.queue_mut().advance(Nanos(20_000));
        let later = Nanos::from_millis(50).0;
        run.engine.poll(Nanos(began.0 + later), Nanos::ZERO);
        if run.engine.config().moving.is_some() {
            return Ok(false);
        }
        let to = run.engine.queue_mut().events();
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Durable);
        let trace = run.engine.queue_mut().take_trace();
        let mut replay = Replay::new(&trace, 512);
        for point in from..=to {
            replay.advance_to(point);
            let (left, _) = replay.crash(CrashKind::Power, &[], Survivors::None, 7);
            let again = Run::start(&shape(ONE_COPY), left, &[], oracle.clone(), 2);
            let read = again.map_err(|error| error.to_string()).and_then(|mut again| {
                again.sound = false;
                again.read_all(Promise::Durable, 0)
            });
            read.map_err(|wrong| format!("{polls} polls, {point} of {from} to {to}: {wrong}"))?;
        }
        Ok(true)
    }

    /// What left an emptied place last did so durably before the place is given up (C1): a crash would bring it back there.
    #[test]
    fn a_place_is_given_up_when_what_left_it_did_so_durably() {
        needs(Mutation::PlaceGivenUpEarly, || {
            let given_up: Result<Vec<bool>, String> = (0..36).map(given_up_beside_a_move).collect();
            assert!(given_up?.contains(&true), "it is never given up");
            Ok(())
        });
    }

    /// A disk of three leaves; another one goes away, and what is on its way to the third is written. All of the row arrives, and
    /// the engine dies. Then the one that was away is back, and the third one goes.
    fn read_after_a_place_was_given_up() -> Result<(), String> {
        let mut run = start(MIRROR);
        fill(&mut run);
        rest(&mut run, 8);
        run.let_any_fail((0..3).collect(), (0..3).collect());
        let row = |run: &Run| {
            [0, 1].map(|nth| run.engine.config().vdisks[0].tiers[0].rows[0].slabs[nth].0)
        };
        let [leaver, away] = row(&run);
        let third = (0..3).find(|disk| ![leaver, away].contains(disk)).expect("three disks");
        run.engine.leave(leaver).expect("there is room");
        while run.engine.config().moving.is_none() {
            run.poll();
        }
        assert_eq!(row(&run), [third, away]);
        run.engine.take_offline(away);
        while state(&run, away.into()) == DiskState::Online {
            run.poll();
        }
        assert_eq!(run.engine.counters().moved, 0, "nothing has arrived");
        done(&mut run, &[write(0), flush()])?;
        rest(&mut run, 16);
        assert!(run.engine.config().moving.is_none(), "all has arrived");
        let mut again = restart(&mut run, MIRROR, &[]).map_err(|error| error.to_string())?;
        again.let_any_fail((0..3).collect(), (0..3).collect());
        again.attach_returning();
        rest(&mut again, 2);
        assert_eq!(state(&again, away.into()), DiskState::Online);
        again.engine.take_offline(third);
        rest(&mut again, 1);
        assert_eq!(state(&again, third.into()), DiskState::Missing, "it is not needed");
        again.read_all(Promise::Acknowledged, 0)
    }

    /// What a disk that is away misses is known after a start, though the row that it was missed in has changed.
    #[test]
    fn a_place_is_given_up_when_the_journal_says_what_its_row_lacks() {
        needs(Mutation::PlaceGivenUpUntold, read_after_a_place_was_given_up);
    }
}
