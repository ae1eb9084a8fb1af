//! I/O that is waited for, while nothing else is under way.

use plumb_io::{FlushQueue, Memory, Op, OpKind, Slot};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

use super::{CONTROL, CONTROL_PER_DISK, CONTROL_SLOTS, Io, Tag, Work};
use crate::events::Event;
use crate::mutation::{Mutation, active};

impl<Q: FlushQueue> Io<Q> {
    /// Performs all of `work` and waits for it; the disks that failed, each once: with an error, or when none
    /// answers for the time-out. A disk that fails is given nothing more of it, and one that owes as many answers as
    /// it may fails at once: it must not keep the slots of all. Nothing else may be in flight. Where all is only tried, writes and
    /// flushes count as done.
    pub(crate) fn wait_for(&mut self, mut work: Vec<Work>) -> Vec<u16> {
        let mut failed = Vec::new();
        self.silent.clear();
        if self.tries {
            work.retain(|item| matches!(item, Work::Read { .. }));
        }
        let mut pieces = Vec::new();
        let step = self.plan.control_bytes;
        for (nth, item) in work.iter().enumerate() {
            let len = match item {
                Work::Read { into, .. } => into.len(),
                Work::Write { bytes, .. } => bytes.len(),
                Work::Flush { .. } => 0,
            };
            let len = to_u32(len);
            let mut start = 0;
            loop {
                pieces.push((nth, start, step.min(len - start)));
                start += step.min(len - start);
                if start == len {
                    break;
                }
            }
        }
        let mut next = 0;
        let mut under_way = Vec::new();
        // When something was heard last.
        let mut heard = self.queue.time();
        let mut asked_again = false;
        while next < pieces.len() || !under_way.is_empty() {
            while next < pieces.len() {
                let piece = pieces[next];
                let disk = disk_of(&work[piece.0]);
                let writes = matches!(work[piece.0], Work::Write { .. });
                let late = writes && self.owes_write(disk);
                if failed.contains(&disk) || self.file(disk).is_none() || late {
                    fail(&mut failed, disk);
                    next += 1;
                    continue;
                }
                let owed = self.control_owed(disk);
                if owed >= CONTROL_PER_DISK {
                    fail(&mut self.silent, disk);
                    fail(&mut failed, disk);
                    next += 1;
                    continue;
                }
                let waits = under_way.iter().filter(|slot| self.waits_on(**slot, disk)).count();
                if owed + waits >= CONTROL_PER_DISK {
                    break;
                }
                let Some(slot) = self.control_free.pop() else { break };
                self.begin_piece(&work[piece.0], (to_u32(next), piece.1, piece.2), slot);
                under_way.push(slot);
                next += 1;
            }
            if under_way.is_empty() {
                if next < pieces.len() {
                    // Every slot hangs: so do the disks that are left.
                    pieces[next..]
                        .iter()
                        .for_each(|piece| fail(&mut failed, disk_of(&work[piece.0])));
                }
                break;
            }
            let silent = self.queue.time().since(heard);
            let time_out = self.plan.time_out;
            let left = Nanos(time_out.0.saturating_sub(silent.0));
            let submitted = self.queue.submit_and_wait(1, left);
            self.queue.look();
            let mut any = false;
            while let Some((tag, slot, outcome)) = self.pop() {
                let Tag::Waited { nth, disk } = tag else { continue };
                any = true;
                under_way.retain(|other| *other != slot);
                let (item, start, len) = pieces[index(nth)];
                if outcome != Ok(len) {
                    fail(&mut failed, disk);
                } else if let Work::Read { into, .. } = &mut work[item] {
                    let bytes = &self.queue.buffer_mut(Slot(slot), CONTROL)[..index(len)];
                    into[index(start)..index(start + len)].copy_from_slice(bytes);
                }
            }
            if any {
                heard = self.queue.time();
                asked_again = false;
            }
            // Whoever stood still himself was told of nothing.
            let is_over = self.queue.time().since(heard) >= time_out && submitted.is_ok();
            if is_over && !asked_again && !active(Mutation::BlamedUnheard) {
                asked_again = true;
                continue;
            }
            // A signal, a bell or the late answer to an I/O that was given up ends a wait as well.
            if self.queue.time().since(heard) >= time_out || submitted.is_err() {
                for slot in under_way.drain(..) {
                    if let Tag::Waited { disk, .. } = self.tags[index(slot)] {
                        if submitted.is_ok() && self.named && !failed.contains(&disk) {
                            self.events.note(Event::DiskTimeout(disk));
                        }
                        fail(&mut self.silent, disk);
                        fail(&mut failed, disk);
                        self.give_up(slot);
                    }
                }
                // What comes next has its own time.
                if !active(Mutation::TimeOutShared) {
                    heard = self.queue.time();
                    asked_again = false;
                }
            }
        }
        self.lines_stood();
        failed
    }

    /// Whether a disk did not answer in time when somebody waited last.
    pub(crate) fn was_silent(&self, disk: u16) -> bool {
        self.silent.contains(&disk)
    }

    /// I/Os for metadata that were given up and that a disk has not answered.
    fn control_owed(&self, disk: u16) -> usize {
        let first = index(self.plan.all_data_slots());
        let slots = first..first + index(CONTROL_SLOTS);
        let owed = |slot: &usize| self.tags[*slot] == Tag::Abandoned && self.disks[*slot] == disk;
        slots.filter(owed).count()
    }

    fn waits_on(&self, slot: u32, disk: u16) -> bool {
        matches!(self.tags[index(slot)], Tag::Waited { disk: other, .. } if other == disk)
    }

    fn begin_piece(&mut self, work: &Work, piece: (u32, u32, u32), slot: u32) {
        let (nth, start, len) = piece;
        let disk = disk_of(work);
        let Some(file) = self.file(disk) else { return };
        self.mark(slot, disk, Tag::Waited { nth, disk });
        let (kind, offset) = match work {
            Work::Flush { .. } => return self.hand_in_flush(disk, file, slot),
            Work::Read { offset, .. } => (OpKind::Read, *offset),
            Work::Write { offset, bytes, .. } => {
                let part = &bytes[index(start)..index(start + len)];
                self.queue.buffer_mut(Slot(slot), CONTROL)[..part.len()].copy_from_slice(part);
                (OpKind::Write, *offset)
            }
        };
        let offset = offset + u64::from(start);
        let memory = Memory::Lane(CONTROL);
        if self.hand_in(disk, Op { kind, file, slot: Slot(slot), len, offset, memory }) {
            self.count_metadata(disk, kind, len);
        }
    }

    /// Reads and waits.
    pub(crate) fn read(&mut self, disk: u16, offset: u64, into: &mut [u8]) -> bool {
        self.wait_for(vec![Work::Read { disk, offset, into }]).is_empty()
    }

    /// Writes the same to all `disks` and waits; those that failed.
    pub(crate) fn write(&mut self, disks: &[u16], offset: u64, bytes: &[u8]) -> Vec<u16> {
        self.wait_for(disks.iter().map(|&disk| Work::Write { disk, offset, bytes }).collect())
    }

    /// Flushes all `disks` and waits; those that failed.
    pub(crate) fn flush(&mut self, disks: &[u16]) -> Vec<u16> {
        let failed = self.wait_for(disks.iter().map(|&disk| Work::Flush { disk }).collect());
        if !active(Mutation::FlushForgotten) {
            self.unflushed.extend(&failed);
        }
        failed
    }
}

fn disk_of(work: &Work) -> u16 {
    match work {
        Work::Read { disk, .. } | Work::Write { disk, .. } | Work::Flush { disk } => *disk,
    }
}

fn fail(failed: &mut Vec<u16>, disk: u16) {
    if !failed.contains(&disk) {
        failed.push(disk);
    }
}
