//! The bell by which requests wake an owner that waits for its disks (T7): every schedule of an owner and three
//! threads that ask, with stores that others see late. It is what is lock-free here by design; the rings are the
//! standard library's.
//!
//! As in `space/server.rs`: who asks puts a message into the ring, fences, and rings if the owner waits; the owner
//! says that it waits, fences, looks into the ring once more, and waits. Stores lie in a buffer of their thread until
//! they reach memory, in order, at any time; a fence, or an exchange, empties it.

use std::collections::BTreeMap;

use super::explore::{Model, Until, explore};

const ASKERS: usize = 3;

/// What may be left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Without {
    Nothing,
    FenceOfAsker,
    FenceOfOwner,
    SecondLook,
    /// The owner's word comes after its last look.
    WordBeforeLook,
    Ring,
}

struct Doorbell(Without);

/// Stores under way: at most two at a time.
type Buffer = [Option<bool>; 2];

#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Asker {
    step: u8,
    /// Its message is in the ring for others to see.
    seen: bool,
    taken: bool,
}

#[derive(Clone, PartialEq, Eq, Hash)]
struct State {
    askers: [Asker; ASKERS],
    owner: u8,
    /// The owner's word that it waits, as memory has it, and on the way there.
    waits: bool,
    buffer: Buffer,
    bell: bool,
}

impl State {
    fn take_all(&mut self) {
        self.askers.iter_mut().filter(|asker| asker.seen).for_each(|asker| asker.taken = true);
    }

    fn store(&mut self, waits: bool) {
        if self.buffer[1].is_some() {
            self.reach_memory();
        }
        self.buffer[usize::from(self.buffer[0].is_some())] = Some(waits);
    }

    /// The oldest store of the owner reaches memory.
    fn reach_memory(&mut self) {
        if let Some(waits) = self.buffer[0] {
            self.waits = waits;
            self.buffer = [self.buffer[1], None];
        }
    }

    fn drain(&mut self) {
        self.reach_memory();
        self.reach_memory();
    }
}

const ASKED: u8 = 5;
const WAITING: u8 = 4;

impl Doorbell {
    fn step_asker(&self, state: &State, nth: usize, into: &mut Vec<State>) {
        let asker = state.askers[nth];
        let mut next = state.clone();
        let own = &mut next.askers[nth];
        own.step += 1;
        match asker.step {
            // Into the ring: others see it later, at the fence at the latest.
            0 => {}
            1 => own.seen |= self.0 != Without::FenceOfAsker,
            2 => own.step = if state.waits { 3 } else { ASKED },
            // The exchange.
            3 => {
                own.seen = true;
                own.step = if state.waits { 4 } else { ASKED };
                next.waits = false;
            }
            4 => next.bell |= self.0 != Without::Ring,
            _ => return,
        }
        into.push(next);
    }

    fn step_owner(&self, state: &State, into: &mut Vec<State>) {
        let mut next = state.clone();
        next.owner += 1;
        let late = self.0 == Without::WordBeforeLook;
        match state.owner {
            0 if late => next.take_all(),
            0 => next.store(true),
            1 if late => {}
            1 if self.0 != Without::FenceOfOwner => next.drain(),
            1 => {}
            2 if late => next.store(true),
            2 if self.0 != Without::SecondLook => next.take_all(),
            2 => {}
            3 if late => next.drain(),
            3 => {}
            WAITING if state.bell => next.bell = false,
            WAITING => return,
            5 => next.store(false),
            _ => {
                next.take_all();
                next.owner = 0;
            }
        }
        into.push(next);
    }
}

impl Model for Doorbell {
    type State = State;

    fn start(&self) -> State {
        let asker = Asker { step: 0, seen: false, taken: false };
        let buffer = [None; 2];
        State { askers: [asker; ASKERS], owner: 0, waits: false, buffer, bell: false }
    }

    fn next(&self, state: &State, into: &mut Vec<State>) {
        for nth in 0..ASKERS {
            self.step_asker(state, nth, into);
            let asker = state.askers[nth];
            if asker.step > 0 && !asker.seen {
                let mut next = state.clone();
                next.askers[nth].seen = true;
                into.push(next);
            }
        }
        if state.buffer[0].is_some() {
            let mut next = state.clone();
            next.reach_memory();
            into.push(next);
        }
        self.step_owner(state, into);
    }

    /// Nothing can happen any more, and a message lies in the ring.
    fn crash(&self, state: &State, wrong: &mut BTreeMap<&'static str, u64>) -> u64 {
        let mut next = Vec::new();
        self.next(state, &mut next);
        if next.is_empty() && state.askers.iter().any(|asker| !asker.taken) {
            *wrong.entry("a message that nobody takes").or_default() += 1;
        }
        1
    }
}

#[test]
fn no_schedule_loses_a_wake_up() {
    let found = explore(&Doorbell(Without::Nothing), Until::Exhausted);
    super::is_recorded("wake-up of an owner", &found);
    for without in [
        Without::FenceOfAsker,
        Without::FenceOfOwner,
        Without::SecondLook,
        Without::WordBeforeLook,
        Without::Ring,
    ] {
        let found = explore(&Doorbell(without), Until::Wrong);
        assert!(!found.wrong.is_empty(), "{without:?} is not missed");
    }
}
