//! I/Os that were not answered in time: given up, and answered late or never (RES-10).

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::{Io, LOG_PER_DISK, LOG_SLOTS, Tag};
use crate::mutation::{Mutation, active};

impl<Q: FlushQueue> Io<Q> {
    /// Whether the disk has yet to answer an I/O that was given up (RES-10).
    pub(crate) fn owes(&self, disk: u16) -> bool {
        let owed = |(tag, other): (&Tag, &u16)| *tag == Tag::Abandoned && *other == disk;
        self.tags.iter().zip(&self.disks).any(owed)
    }

    /// Whether a disk has yet to answer a write that was given up: it may land on whatever is written now.
    pub(crate) fn owes_write(&self, disk: u16) -> bool {
        let owed = |slot: usize| {
            self.writes[slot] && self.tags[slot] == Tag::Abandoned && self.disks[slot] == disk
        };
        self.owed > 0 && (0..self.tags.len()).any(owed)
    }

    /// Whether any disk has.
    pub(crate) fn owes_writes(&self) -> bool {
        self.owed > 0
    }

    /// Slots for data whose I/O was given up and not answered, of some disks.
    fn hung_slots(&self, of: impl Fn(u16) -> bool) -> usize {
        let data = 0..index(self.plan.all_data_slots());
        data.filter(|slot| self.tags[*slot] == Tag::Abandoned && of(self.disks[*slot])).count()
    }

    /// Whether a disk keeps as many slots as it may: half of them are for the others, however many of those hang.
    pub(super) fn owes_many(&self, disk: u16) -> bool {
        let share = index(self.plan.data_slots) / (2 * self.files.len().max(1));
        self.hung_slots(|other| other == disk) >= share.max(1)
    }

    /// Whether so many slots for data can be had at all, now or when others are done.
    pub(crate) fn may_have(&self, count: usize) -> bool {
        let all = index(self.plan.all_data_slots()) - self.data_spare.len();
        self.hung == 0 || self.hung_slots(|_| true) + count <= all
    }

    /// Whether a record of a log can be begun on all of these disks now, and so many slots are left for others; `None`: disks that
    /// hang keep so many that it cannot before they answer.
    pub(crate) fn may_log(
        &self,
        disks: impl Iterator<Item = u16> + Clone,
        others: usize,
    ) -> Option<bool> {
        let slots = index(self.plan.first_log_slot())..index(self.plan.depth());
        let tags = &self.tags[slots];
        let count = disks.clone().count();
        let hung = tags.iter().filter(|tag| **tag == Tag::Abandoned).count();
        if hung + count > index(LOG_SLOTS) {
            return None;
        }
        let has = |tag: &&Tag, on: u16| matches!(**tag, Tag::Log { disk, .. } if disk == on);
        let under_way = |disk| tags.iter().filter(|tag| has(tag, disk)).count();
        let free = self.log_free.len() >= count + others;
        Some(free && disks.into_iter().all(|disk| under_way(disk) < LOG_PER_DISK))
    }

    /// Nobody waits for a slot's I/O any more; the slot stays taken until the device answers.
    pub(super) fn give_up(&mut self, slot: u32) {
        self.tags[index(slot)] = Tag::Abandoned;
        self.in_flight -= 1;
        self.owed += u32::from(self.writes[index(slot)]);
        self.hung += 1;
        if slot < self.plan.all_data_slots() && !active(Mutation::HungNotReplaced) {
            self.data_free.extend(self.data_spare.pop());
        }
        self.count_failed(slot, None);
        self.end_busy(slot, None);
    }

    /// A slot for data that was given up is answered: it can be used again, and is kept aside if enough can.
    pub(super) fn take_back(&mut self, slot: u32) {
        let others = index(self.plan.all_data_slots()) - 1 - self.data_spare.len();
        let usable = others - self.hung_slots(|_| true);
        if usable >= index(self.plan.data_slots) {
            self.data_spare.push(slot);
        } else {
            self.data_free.push(slot);
        }
    }

    /// Whether an I/O has taken longer than it may.
    fn is_overdue(&self, now: Nanos) -> bool {
        let runs = |tag: &Tag| *tag != Tag::Idle && *tag != Tag::Abandoned;
        let late =
            |begun: &Nanos| *begun != Nanos::NEVER && now.since(*begun) >= self.plan.time_out;
        self.tags.iter().zip(&self.begun).any(|(tag, begun)| runs(tag) && late(begun))
    }

    /// Whether that is so though all that the kernel has of answers was asked for: whoever stood still, stopped by a signal, was
    /// not told of any.
    pub(crate) fn may_be_overdue(&self, now: Nanos) -> bool {
        self.is_overdue(now) && !active(Mutation::BlamedUnheard)
    }

    /// I/Os that were first seen here more than the time-out ago: they are given up, and what they were
    /// for. Their slots stay taken until the device answers (RES-10).
    pub(crate) fn overdue(&mut self, now: Nanos) -> Vec<(Tag, u32)> {
        let mut late = Vec::new();
        for slot in 0..self.plan.depth() {
            let tag = self.tags[index(slot)];
            let runs = tag != Tag::Idle && tag != Tag::Abandoned;
            if runs && self.begun[index(slot)] == Nanos::NEVER {
                self.begun[index(slot)] = now;
            } else if runs && now.since(self.begun[index(slot)]) >= self.plan.time_out {
                self.give_up(slot);
                late.push((tag, slot));
            }
        }
        late
    }
}
