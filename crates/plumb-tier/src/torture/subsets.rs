//! Every subset of what a crash may lose, one point after the other of short histories (T1).

use std::ops::ControlFlow;

use plumb_io::sim::power::{CrashKind, Event, Replay, Survivors};
use plumb_units::convert::{to_u64, to_usize};

use super::history::Step;
use super::optimizing;
use super::states::{Broken, Course, Crash, Here, Known, guarded};
use super::witness::Witness;
use super::{Shape, history_seed, usual};
use crate::mutation::Mutation;
use crate::random::Random;

/// Writes that may be lost up to which all subsets are checked.
const ALL_UP_TO: usize = 10;
/// Subsets that are drawn, with torn sectors, where there are more.
const SAMPLES: u64 = 64;
/// Steps of a history.
const STEPS: usize = 10;

/// What was checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Checked {
    /// States that count.
    states: u64,
    /// Crashes, by point and by what died, of which all subsets were checked.
    whole: u64,
    /// Of these, those with two writes or more that may be lost.
    wide: u64,
    /// Crashes of which some subsets were drawn.
    drawn: u64,
}

/// Checks the subsets at each point of a history, from one on that is drawn, until so many states count.
fn check(
    (shape, history): (&Shape, &[Step]),
    seed: u64,
    states: u64,
    checked: &mut Checked,
) -> Result<(), Broken> {
    guarded(|| {
        let course = Course::of(shape, history, seed)?;
        let mut random = Random::new(seed ^ 0x5b5e);
        let events = &course.trace.events;
        let optimizes = optimizing::are_in(history);
        let mut replay = Replay::new(&course.trace, 512);
        let mut witness = Witness::new(course.oracle.clone());
        let mut seen = course.log.iter().peekable();
        let until = checked.states + states;
        for point in to_usize(random.below(to_u64(events.len())))..=events.len() {
            replay.advance_to(point);
            while let Some((_, event)) = seen.next_if(|(position, _)| *position <= point) {
                witness.see(event);
            }
            let here = Here { shape, witness: &witness, point, nth: to_u64(point), optimizes };
            for kind in [CrashKind::Power, CrashKind::Engine] {
                if is_last_with_these(kind, events.get(point))
                    && here.subsets(kind, &mut replay, &mut random, (until, checked))?.is_break()
                {
                    return Ok(());
                }
            }
        }
        Ok(())
    })
}

/// Whether the next event changes what a crash may lose: until then the same may be lost, and more was promised.
fn is_last_with_these(kind: CrashKind, next: Option<&Event>) -> bool {
    match next {
        Some(Event::Written { .. }) => kind == CrashKind::Engine,
        Some(Event::Flush { .. }) => false,
        Some(Event::Flushed { .. }) => kind == CrashKind::Power,
        Some(
            Event::Write { .. }
            | Event::FlushFailed { .. }
            | Event::Replaced { .. }
            | Event::Rotten { .. },
        )
        | None => true,
    }
}

impl Here<'_> {
    /// Checks what may be left here, until so many states count in all.
    fn subsets(
        &self,
        kind: CrashKind,
        replay: &mut Replay<'_>,
        random: &mut Random,
        (until, checked): (u64, &mut Checked),
    ) -> Result<ControlFlow<()>, Broken> {
        let open = replay.open(kind, &self.witness.unplugged());
        let all = open <= ALL_UP_TO;
        let mut known = Known::default();
        for nth in 0..if all { 1 << open } else { SAMPLES } {
            let survivors = if all { Survivors::Exactly(nth) } else { Survivors::Some };
            let crash = Crash { kind, survivors, seed: random.next() };
            let counts = self.check_crash(replay, &mut known, (crash, None), random)?;
            checked.states += u64::from(counts.is_some());
            if checked.states >= until {
                return Ok(ControlFlow::Break(()));
            }
        }
        checked.whole += u64::from(all);
        checked.wide += u64::from(all && open > 1);
        checked.drawn += u64::from(!all);
        Ok(ControlFlow::Continue(()))
    }
}

/// Checks histories of a seed, `each` states of one at most, until so many states count.
fn check_histories(seed: u64, states: u64, each: u64) -> (Checked, Option<Broken>) {
    let mut checked = Checked::default();
    for nth in 0.. {
        let left = states.saturating_sub(checked.states);
        if left == 0 {
            break;
        }
        let history = history_seed(seed, nth);
        let (shape, taken, _) = usual(history, STEPS);
        let found = check((&shape, &taken), history, each.min(left), &mut checked);
        if let Err(mut broken) = found {
            broken.wrong = format!("history {history}, {shape:?}: {}", broken.wrong);
            return (checked, Some(broken));
        }
    }
    (checked, None)
}

/// `PLUMB_SUBSET_STATES` makes it longer, `PLUMB_SUBSET_SEED` another one.
#[test]
fn every_subset_of_what_a_crash_may_lose_keeps_the_promises() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let states = number("PLUMB_SUBSET_STATES").unwrap_or(1500);
    let each = (states / 12).clamp(100, 20_000);
    let (checked, broken) = check_histories(number("PLUMB_SUBSET_SEED").unwrap_or(1), states, each);
    println!("{checked:?}");
    assert_eq!(broken, None, "{checked:?}");
    assert!(checked.states >= states && checked.wide > 20, "{checked:?}");
}

#[test]
fn a_broken_rule_is_met_by_a_subset() {
    crate::mutation::set(Some(Mutation::CommitUnflushed));
    let (checked, broken) = check_histories(7, 3000, 250);
    crate::mutation::set(None);
    assert!(broken.is_some(), "{checked:?}");
}
