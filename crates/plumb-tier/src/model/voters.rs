//! The voters (LAY-3): disks drop out in groups, also while the others are told of it or start, generations are written disk
//! by disk, engines die at any point, and any subset of the disks is there at the next start. Wrong is a start, with nobody's
//! word, that does not know of the generation under which writes were acknowledged last.

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
    /// A generation names the other lists that disks may still go by, and a start is held to those as well.
    pub(super) lists: bool,
    /// A generation that a crash left on a disk in one copy, which others have to confirm, counts as one that it lacks.
    pub(super) alone: bool,
    /// Who goes on without a disk that failed to take a generation goes by an older list until half of that have it.
    pub(super) half_told: bool,
}

pub(super) const ALL: Rules = Rules {
    half: true,
    majority: true,
    epoch_first: true,
    old_first: true,
    all_have_it: true,
    lists: true,
    alone: true,
    half_told: true,
};

/// A generation: order, voters, every one that it descends from, and other lists that disks may go by.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Generation {
    order: (u8, u8),
    voters: u8,
    line: Vec<u8>,
    lists: Vec<u8>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct Disk {
    /// The newest that it has by itself.
    generation: Generation,
    /// A newer one in one copy, which it has where another disk has it as well.
    lone: Option<Generation>,
    /// The highest epoch started.
    epoch: u8,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(super) struct State {
    disks: Vec<Disk>,
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
    /// It died when every other disk had been lost, and all but one of those that are left had been told; that one in part.
    HalfTold,
}

/// Whether at least half of every list is left.
fn enough(lists: &[u8], left: u8) -> bool {
    lists.iter().all(|list| 2 * (list & left).count_ones() >= list.count_ones())
}

fn subsets(of: u8) -> impl Iterator<Item = u8> {
    (1..=of).filter(move |part| part & !of == 0)
}

impl Voters {
    fn newest(state: &State, among: u8) -> Generation {
        let here = |nth: usize| among >> nth & 1 == 1;
        let all =
            (0..state.disks.len()).filter(|nth| here(*nth)).map(|nth| &state.disks[nth].generation);
        all.max_by_key(|one| one.order).cloned().expect("subsets are not empty")
    }

    /// The next generation: those that vote, and the lists that somebody may go by, its own last.
    fn successor(
        state: &mut State,
        of: &Generation,
        order: (u8, u8),
        (voters, lists): (u8, &mut Vec<u8>),
    ) -> Generation {
        state.ids += 1;
        let mut line = of.line.clone();
        line.push(state.ids);
        if lists.last() != Some(&voters) {
            lists.push(voters);
        }
        let others = lists.split_last().map_or(&[][..], |(_, others)| others);
        Generation { order, voters, line, lists: others.to_vec() }
    }

    /// Writes a generation to every part of `on`, its voters and those that it is told beside, that may come to have it. To all of
    /// its voters, and the engine goes on; else it dies, or does without those that failed to take it.
    fn publish(
        &self,
        from: &State,
        (new, on): (&Generation, u8),
        (lists, may_have): (&[u8], &dyn Fn(u8) -> bool),
        into: &mut Vec<State>,
    ) {
        for part in subsets(on).filter(|part| may_have(*part)) {
            let mut next = from.clone();
            for (nth, disk) in next.disks.iter_mut().enumerate() {
                if part >> nth & 1 == 1 {
                    (disk.generation, disk.lone) = (new.clone(), None);
                }
            }
            for failed in
                subsets(on).filter(|failed| on & !failed != 0 && on & !failed & !part == 0)
            {
                let told = on & !failed;
                let kept = |list: &&u8| {
                    let few = 2 * (*list & told).count_ones() < list.count_ones();
                    **list == new.voters || few && self.rules.half_told
                };
                let lists: Vec<u8> = lists.iter().filter(kept).copied().collect();
                if told & new.voters != 0 {
                    self.expel((&next, new), (told & new.voters, &lists), into);
                }
            }
            if part & new.voters == new.voters || !self.rules.all_have_it {
                let mut goes_on = next.clone();
                goes_on.running = Some(new.voters);
                goes_on.acknowledged = new.line.clone();
                into.push(goes_on);
            }
            if part != on {
                next.running = None;
                into.push(next);
            }
        }
    }

    /// Goes on with fewer, if they are enough of every list.
    fn expel(
        &self,
        (state, of): (&State, &Generation),
        (left, lists): (u8, &[u8]),
        into: &mut Vec<State>,
    ) {
        if state.steps >= self.steps {
            return;
        }
        let mut next = State { steps: state.steps + 1, ..state.clone() };
        if self.rules.half && !enough(lists, left) {
            next.running = None;
            into.push(next);
            return;
        }
        let mut lists = lists.to_vec();
        let order = (of.order.0, of.order.1 + 1);
        let new = Self::successor(&mut next, of, order, (left, &mut lists));
        self.publish(&next, (&new, left), (&lists, &|_| true), into);
    }

    fn lose(&self, state: &State, running: u8, into: &mut Vec<State>) {
        let current = Self::newest(state, running);
        for lost in subsets(running) {
            let voters = running & !lost & current.voters;
            if voters != 0 {
                self.expel((state, &current), (voters, &[current.voters]), into);
            }
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
            let mut lists = vec![current.voters];
            let new = Self::successor(&mut next, &current, order, (voters, &mut lists));
            // Durable on those before first.
            let ordered = |part: u8| {
                let old = part & current.voters == current.voters;
                !self.rules.old_first || part & added == 0 || old
            };
            self.publish(&next, (&new, voters), (&lists, &ordered), into);
        }
    }

    /// A disk leaves, and learns of that like the others.
    fn leave(&self, state: &State, running: u8, into: &mut Vec<State>) {
        let current = Self::newest(state, running);
        for left in (0..self.disks).map(|nth| 1 << nth).filter(|left| current.voters & left != 0) {
            let voters = current.voters & !left;
            if voters == 0 {
                continue;
            }
            let mut next = State { steps: state.steps + 1, ..state.clone() };
            let order = (current.order.0, current.order.1 + 1);
            let mut lists = vec![current.voters];
            let new = Self::successor(&mut next, &current, order, (voters, &mut lists));
            self.publish(&next, (&new, current.voters), (&lists, &|_| true), into);
        }
    }

    /// The newest generation's list, and others that a part may go by that knows nothing of it.
    fn lists(&self, state: &State, current: &Generation, here: u8) -> Vec<u8> {
        let has_it = |nth: &usize| {
            let Disk { generation, lone, .. } = &state.disks[*nth];
            let lone = lone.as_ref().filter(|_| !self.rules.alone);
            let mut has = [Some(generation), lone].into_iter().flatten();
            here >> nth & 1 == 1 && has.any(|one| one.line == current.line)
        };
        let know: u8 = (0..state.disks.len()).filter(has_it).map(|nth| 1 << nth).sum();
        let in_force =
            |list: &&u8| self.rules.lists && 2 * (*list & know).count_ones() < list.count_ones();
        current.lists.iter().filter(in_force).chain([&current.voters]).copied().collect()
    }

    fn start_from(&self, state: &State, here: u8, into: &mut Vec<State>) {
        let current = Self::newest(state, here);
        let lists = self.lists(state, &current, here);
        let voters = here & current.voters;
        let majority = |list: u8, of: u8| {
            let (present, all) = (2 * (list & of).count_ones(), list.count_ones());
            present > all || !self.rules.majority && present == all
        };
        // Of its own list more than half go on; of the others it sees more than half, and half go on.
        let seen = lists.iter().all(|list| majority(*list, here));
        if voters == 0 || !seen || !majority(current.voters, voters) || !enough(&lists, voters) {
            return;
        }
        let known = |disk: &Disk| disk.epoch.max(disk.generation.order.0);
        let highest = (0..state.disks.len()).filter(|nth| here >> nth & 1 == 1);
        let epoch = highest.map(|nth| known(&state.disks[nth])).max().unwrap_or(0);
        let epoch = if self.rules.epoch_first { epoch + 1 } else { current.order.0 };
        let diverged = !current.line.starts_with(&state.acknowledged);
        let order = (epoch, current.order.1 + 1);
        let first = State { steps: state.steps + 1, ..state.clone() };
        for part in subsets(voters) {
            let mut raised = first.clone();
            if self.rules.epoch_first {
                for (nth, disk) in raised.disks.iter_mut().enumerate() {
                    if part >> nth & 1 == 1 {
                        disk.epoch = epoch;
                        // All copies are written: what another one confirmed it has by itself.
                        let confirmed = disk.lone.take().filter(|lone| lone.line == current.line);
                        disk.generation = confirmed.unwrap_or_else(|| disk.generation.clone());
                    }
                }
                if part != voters {
                    into.push(raised.clone());
                }
            }
            // Those that fail while they are raised are done without.
            if part != voters && !(majority(current.voters, part) && enough(&lists, part)) {
                continue;
            }
            raised.diverged = diverged;
            let mut lists = lists.clone();
            let new = Self::successor(&mut raised, &current, order, (part, &mut lists));
            let mut all = Vec::new();
            self.publish(&raised, (&new, part), (&lists, &|_| true), &mut all);
            // One that dies before all have its generation has not served.
            for mut next in all {
                next.diverged &= next.running.is_some();
                into.push(next);
            }
        }
    }
}

impl Model for Voters {
    type State = State;

    fn start(&self) -> State {
        let all = (1_u8 << self.disks) - 1;
        let first = Generation { order: (0, 1), voters: all, line: vec![0], lists: Vec::new() };
        let mut state = State {
            disks: vec![Disk { generation: first, lone: None, epoch: 0 }; usize::from(self.disks)],
            running: None,
            acknowledged: vec![0],
            steps: 0,
            ids: 0,
            diverged: false,
        };
        if self.begins == Begins::HalfTold {
            let left = 0b0101_0101 & all;
            let current = state.disks[0].generation.clone();
            let mut lists = vec![all];
            let new = Self::successor(&mut state, &current, (0, 2), (left, &mut lists));
            let told = (0..state.disks.len()).filter(|nth| nth.is_multiple_of(2) && *nth != 2);
            told.for_each(|nth| state.disks[nth].generation = new.clone());
            // The one that was being told has it in one copy.
            state.disks[2].lone = Some(new);
        }
        for lost in (1..self.disks).rev().filter(|_| self.begins == Begins::Alone) {
            let left = (1_u8 << lost) - 1;
            let current = Self::newest(&state, left);
            let order = (0, current.order.1 + 1);
            let mut lists = vec![left];
            let new = Self::successor(&mut state, &current, order, (left, &mut lists));
            state.disks[..usize::from(lost)]
                .iter_mut()
                .for_each(|disk| disk.generation = new.clone());
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
                self.leave(state, running, into);
                into.push(State { running: None, ..state.clone() });
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
