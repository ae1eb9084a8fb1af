//! What came of device I/Os goes to whom they were for; the journal's frames and flushes.

use plumb_io::{Errno, FlushQueue};
use plumb_units::Nanos;

use super::{Engine, OVERDUE_CHECK};
use crate::events::Event;
use crate::format::frame::FrameKind;
use crate::io::Tag;
use crate::journal::{Flushing, Room};
use crate::mutation::{Mutation, active};
use plumb_units::convert::index;

impl<Q: FlushQueue> Engine<Q> {
    pub(super) fn finish_io(&mut self, tag: Tag, slot: u32, outcome: Result<u32, Errno>) {
        match tag {
            Tag::Part { part, copy } => self.part_done(part, copy, slot, outcome),
            Tag::Log { vdisk, copy, disk } => {
                self.record_written(vdisk, copy, disk, outcome.is_ok());
            }
            Tag::Frame { disk } => {
                if outcome.is_err() {
                    self.trouble.push(disk);
                }
                if let Some(frame) = &mut self.core.journal.frame {
                    frame.left -= 1;
                    frame.done += u32::from(outcome.is_ok());
                }
            }
            Tag::FrameFlush { disk } => {
                if outcome.is_err() {
                    self.core.io.unflushed.push(disk);
                    self.trouble.push(disk);
                }
                if let Some(flush) = &mut self.core.journal.flush {
                    flush.left -= 1;
                    flush.done += u32::from(outcome.is_ok());
                }
            }
            Tag::RoundFlush { disk } => {
                if outcome.is_err() {
                    self.round.failed.push(disk);
                    self.trouble.push(disk);
                }
                self.round.flushed();
            }
            Tag::LogFlush { disk } => {
                if outcome.is_err() {
                    self.core.io.unflushed.push(disk);
                    self.trouble.push(disk);
                }
                self.log_flush.flushed();
            }
            Tag::Move { nth, disk } => self.move_io_done(nth, (disk, false), slot, outcome),
            Tag::MoveFlush { nth, disk } => self.move_io_done(nth, (disk, true), slot, outcome),
            Tag::Idle | Tag::Abandoned | Tag::Waited { .. } => {}
        }
    }

    /// Takes all that devices have answered: the kernel hands on some at a time, and only to who asks.
    fn hear_all(&mut self) {
        let mut in_vain = 0;
        while in_vain < 2 {
            let before = self.core.io.in_flight();
            self.submit_and_wait(1, Nanos::ZERO);
            self.reap();
            in_vain = if self.core.io.in_flight() < before { 0 } else { in_vain + 1 };
        }
    }

    /// I/Os whose time is over count as failed; their slots stay taken.
    pub(super) fn give_up_overdue(&mut self) {
        if self.now.since(self.last_missing) >= OVERDUE_CHECK {
            self.last_missing = self.now;
            self.note_missing();
        }
        if self.core.io.in_flight() == 0 || self.now.since(self.last_overdue) < OVERDUE_CHECK {
            return;
        }
        self.last_overdue = self.now;
        if self.core.io.may_be_overdue(self.now) {
            self.hear_all();
        }
        let overdue = self.core.io.overdue(self.now);
        if !overdue.is_empty() {
            // Whoever waits for slots that hang looks anew.
            self.ready.extend(self.slot_wait.drain(..));
        }
        for (tag, slot) in overdue {
            if let Tag::Part { part, copy } = tag {
                self.trouble.push(self.parts[index(part)].copies.at[usize::from(copy)].0);
            } else if let Tag::Move { disk, .. } | Tag::MoveFlush { disk, .. } = tag {
                self.trouble.push(disk);
            }
            let late = self.core.io.disk_of(slot);
            self.core.io.events.note(Event::DiskTimeout(late));
            self.finish_io(tag, slot, Err(Errno(110)));
        }
    }

    /// Starts frames and flushes of the journal, and wakes who waits for them.
    pub(super) fn pump_journal(&mut self) {
        let journal = &mut self.core.journal;
        let first_is_enough = active(Mutation::CommitFirstCopy);
        if let Some(frame) = journal.frame {
            if frame.left == 0 && self.trouble.is_empty() {
                journal.frame = None;
                journal.appended = frame.lsn;
            } else if first_is_enough && frame.done > 0 {
                journal.appended = frame.lsn;
            }
        }
        if let Some(flush) = journal.flush {
            if flush.left == 0 && self.trouble.is_empty() {
                journal.flush = None;
                journal.durable = journal.durable.max(flush.covers);
                self.core.prove();
                self.core.release_slots();
            } else if first_is_enough && flush.done > 0 {
                journal.durable = journal.durable.max(flush.covers);
            }
        }
        if !self.frozen && self.halted.is_none() {
            self.start_frame();
            self.start_journal_flush();
        }
        self.wake_journal();
    }

    fn start_frame(&mut self) {
        let journal = &mut self.core.journal;
        if journal.frame.is_some() || !journal.has_batch() {
            return;
        }
        if journal.room(false) == Room::Full {
            self.crowded = true;
            return;
        }
        let (seed, epoch) = (self.core.members.pool_seed, self.core.members.epoch);
        let (bytes, position, mut made) = journal.make(seed, FrameKind::Records, epoch);
        let offset = self.core.members.geometry.ring(position);
        for disk in self.core.members.each_metadata() {
            if self.core.io.push_frame(disk, offset, bytes) {
                made.left += 1;
            } else {
                self.trouble.push(disk);
            }
        }
        journal.link = made.next;
        journal.frame = Some(made);
    }

    /// A flush covers what is written, and waits for a frame under way that somebody needs, too: one does for both. Not while writes wait for
    /// a move, whose record could be put off by one frame after the other.
    fn start_journal_flush(&mut self) {
        let holding = self.moves.are_holding();
        let journal = &mut self.core.journal;
        if active(Mutation::CommitUnflushed) {
            journal.durable = journal.appended;
        }
        let due = journal.wanted > journal.durable && journal.appended > journal.durable;
        let soon = journal.frame.is_some() && journal.appended < journal.wanted && !holding;
        if journal.flush.is_some() || !due || soon {
            return;
        }
        let mut flush = Flushing { covers: journal.appended, left: 0, done: 0 };
        for disk in self.core.members.each_metadata() {
            if self.core.io.push_frame_flush(disk) {
                flush.left += 1;
            } else {
                self.trouble.push(disk);
            }
        }
        self.core.journal.flush = Some(flush);
    }

    /// Lets parts go on whose record is where they need it.
    fn wake_journal(&mut self) {
        let journal = &self.core.journal;
        while let Some(part) = self.durable_wait.front() {
            if self.parts[index(*part)].lsn > journal.durable {
                break;
            }
            self.ready.extend(self.durable_wait.pop_front());
        }
        while let Some(part) = self.appended_wait.front() {
            if self.parts[index(*part)].lsn > journal.appended {
                break;
            }
            self.ready.extend(self.appended_wait.pop_front());
        }
    }
}
