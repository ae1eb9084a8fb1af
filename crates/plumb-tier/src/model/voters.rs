//! The voters (LAY-3): disks drop out in groups, generations are written disk by disk, engines die at any
//! point, and any subset of the disks is there at the next start. Wrong is a start, with nobody's word, that
//! does not know of the generation under which writes were acknowledged last.

use std::collections::BTreeMap;

use super::explore::Model;

/// Rules that can be left out.
#[derive(Debug, Clone, Copy)]
pub(super) struct Rules {
    /// Going on needs at least half of the voters before.
    pub(super) half: bool,
    /// A start needs more than half.
    pub(super) majority: bool,
    /// A start raises the epoch on the voters before it writes a generation.
    pub(super) epoch_first: bool,
    /// A generation that adds voters is on the whole list before, then on the new ones.
    pub(super) old_first: bool,
    /// Nothing is acknowledged under a generation that is not on all its voters.
    pub(super) all_have_it: bool,
}

pub(super) const ALL: Rules =
    Rules { half: true, majority: true, epoch_first: true, old_first: true, all_have_it: true };

/// A generation: order, voters, and every one that it descends from.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Generation {
    order: (u8, u8),
    voters: u8,
    line: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    /// Per disk: its newest generation, the highest epoch started.
    disks: Vec<(Generation, u8)>,
    /// The disks of the engine that runs.
    running: Option<u8>,
    /// The generation under which writes were acknowledged last.
    acknowledged: Vec<u8>,
    steps: u8,
    ids: u8,
    diverged: bool,
}

pub(super) struct Voters {
    pub(super) rules: Rules,
    pub(super) disks: u8,
    pub(super) steps: u8,
    pub(super) begins: Begins,
}

/// Where a history begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Begins {
    /// All disks are voters, and nothing runs.
    Whole,
    /// It runs on one disk: the others were lost before, one after the other.
    Alone,
}

fn subsets(of: u8) -> impl Iterator<Item = u8> {
    (1..=of).filter(move |part| part & !of == 0)
}

impl Voters {
    fn newest(state: &State, among: u8) -> Generation {
        let here = |nth: usize| among >> nth & 1 == 1;
        let all = (0..state.disks.len()).filter(|nth| here(*nth)).map(|nth| &state.disks[nth].0);
        all.max_by_key(|one| one.order).cloned().expect("subsets are not empty")
    }

    fn successor(state: &mut State, of: &Generation, order: (u8, u8), voters: u8) -> Generation {
        state.ids += 1;
        let mut line = of.line.clone();
        line.push(state.ids);
        Generation { order, voters, line }
    }

    /// Writes a generation to every part of `on`: to all, and the engine goes on; else it died.
    fn publish(
        &self,
        from: &State,
        (new, on): (&Generation, u8),
        parts: &[u8],
        into: &mut Vec<State>,
    ) {
        for &part in parts {
            let mut next = from.clone();
            for (nth, disk) in next.disks.iter_mut().enumerate() {
                if part >> nth & 1 == 1 {
                    disk.0 = new.clone();
                }
            }
            if part == on || !self.rules.all_have_it {
                let mut goes_on = next.clone();
                goes_on.running = Some(on);
                goes_on.acknowledged = new.line.clone();
                into.push(goes_on);
            }
            if part != on {
                next.running = None;
                into.push(next);
            }
        }
    }

    fn lose(&self, state: &State, running: u8, into: &mut Vec<State>) {
        let current = Self::newest(state, running);
        for lost in subsets(running) {
            let left = running & !lost;
            let voters = left & current.voters;
            if voters == 0 {
                continue;
            }
            let mut next = state.clone();
            next.steps += 1;
            let enough = 2 * voters.count_ones() >= current.voters.count_ones();
            if self.rules.half && !enough {
                next.running = None;
                into.push(next);
                continue;
            }
            let order = (current.order.0, current.order.1 + 1);
            let new = Self::successor(&mut next, &current, order, voters);
            self.publish(&next, (&new, voters), &subsets(voters).collect::<Vec<_>>(), into);
        }
    }

    fn add(&self, state: &State, running: u8, into: &mut Vec<State>) {
        let current = Self::newest(state, running);
        let all = (1_u8 << self.disks) - 1;
        for added in subsets(all & !current.voters) {
            let mut next = state.clone();
            next.steps += 1;
            let voters = current.voters | added;
            let order = (current.order.0, current.order.1 + 1);
            let new = Self::successor(&mut next, &current, order, voters);
            let ordered = |part: &u8| {
                let old = part & current.voters == current.voters;
                !self.rules.old_first || part & added == 0 || old
            };
            // Durable on those before first.
            let parts: Vec<u8> = subsets(voters).filter(ordered).collect();
            self.publish(&next, (&new, voters), &parts, into);
        }
    }

    fn start_from(&self, state: &State, here: u8, into: &mut Vec<State>) {
        let current = Self::newest(state, here);
        let voters = here & current.voters;
        let (present, all) = (2 * voters.count_ones(), current.voters.count_ones());
        if present < all || self.rules.majority && present == all || voters == 0 {
            return;
        }
        let known = |disk: &(Generation, u8)| disk.1.max(disk.0.order.0);
        let highest = (0..state.disks.len()).filter(|nth| here >> nth & 1 == 1);
        let epoch = highest.map(|nth| known(&state.disks[nth])).max().unwrap_or(0);
        let epoch = if self.rules.epoch_first { epoch + 1 } else { current.order.0 };
        let mut raised = state.clone();
        raised.steps += 1;
        if self.rules.epoch_first {
            for part in subsets(voters) {
                let mut next = raised.clone();
                for (nth, disk) in next.disks.iter_mut().enumerate() {
                    if part >> nth & 1 == 1 {
                        disk.1 = epoch;
                    }
                }
                if part == voters {
                    raised = next;
                } else {
                    into.push(next);
                }
            }
        }
        raised.diverged = !current.line.starts_with(&state.acknowledged);
        let order = (epoch, current.order.1 + 1);
        let new = Self::successor(&mut raised, &current, order, voters);
        let parts: Vec<u8> = subsets(voters).collect();
        // One that dies before all have its generation has not served.
        let mut all = Vec::new();
        self.publish(&raised, (&new, voters), &parts, &mut all);
        for mut next in all {
            next.diverged &= next.running.is_some();
            into.push(next);
        }
    }
}

impl Model for Voters {
    type State = State;

    fn start(&self) -> State {
        let all = (1_u8 << self.disks) - 1;
        let first = Generation { order: (0, 1), voters: all, line: vec![0] };
        let mut state = State {
            disks: vec![(first, 0); usize::from(self.disks)],
            running: None,
            acknowledged: vec![0],
            steps: 0,
            ids: 0,
            diverged: false,
        };
        for lost in (1..self.disks).rev().filter(|_| self.begins == Begins::Alone) {
            let left = (1_u8 << lost) - 1;
            let current = Self::newest(&state, left);
            let order = (0, current.order.1 + 1);
            let new = Self::successor(&mut state, &current, order, left);
            state.disks[..usize::from(lost)].iter_mut().for_each(|disk| disk.0 = new.clone());
            state.running = Some(left);
            state.acknowledged = new.line;
        }
        state
    }

    fn next(&self, state: &State, into: &mut Vec<State>) {
        if state.steps >= self.steps || state.diverged {
            return;
        }
        match state.running {
            Some(running) => {
                self.lose(state, running, into);
                self.add(state, running, into);
                into.push(State { running: None, steps: state.steps + 1, ..state.clone() });
            }
            None => {
                let all = (1_u8 << self.disks) - 1;
                subsets(all).for_each(|here| self.start_from(state, here, into));
            }
        }
    }

    fn crash(&self, state: &State, wrong: &mut BTreeMap<&'static str, u64>) -> u64 {
        if state.diverged {
            *wrong.entry("a start does not know what was acknowledged").or_default() += 1;
        }
        1
    }
}
