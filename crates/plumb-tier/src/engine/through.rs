//! Writes through that went to a write-back cache: durable when its log is, whatever other disks are doing (WBC-1).
//!
//! A round flushes all disks, rotating ones with requests in line among them. The record that such a write waits for is on the
//! copies of its log alone. They are flushed beside rounds, the journal says how far that log is durable, and what it said before
//! is durable then, too.

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32};

use super::{EIO, Engine};
use crate::mutation::{Mutation, active};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
enum Phase {
    #[default]
    Idle,
    /// The copies of logs are being flushed.
    Copies,
    /// The records up to that frame must be durable.
    Journal(u64),
}

/// The flush of logs that runs.
#[derive(Debug, Default)]
pub(super) struct LogFlush {
    phase: Phase,
    left: u32,
    disks: Vec<u16>,
    /// How many writes wait for one.
    waiting: u32,
}

impl LogFlush {
    pub(super) fn is_idle(&self) -> bool {
        self.phase == Phase::Idle && self.waiting == 0
    }

    pub(super) fn flushed(&mut self) {
        self.left = self.left.saturating_sub(1);
    }
}

impl<Q: FlushQueue> Engine<Q> {
    /// A write through ended, and all of it is in the log: it waits until the record that it came with, or a later one, is durable.
    pub(super) fn wait_for_log(&mut self, client: u32) {
        let vdisk = index(self.clients[index(client)].request.vdisk);
        let (Some(log), Some(cache)) = (&self.core.logs[vdisk], &mut self.caches[vdisk]) else {
            self.join_round(client);
            return;
        };
        cache.through.push_back((log.link.lsn - 1, client));
        self.log_flush.waiting += 1;
    }

    /// Takes the flush of logs a step on, begins the next one, and answers whose record is durable.
    pub(super) fn pump_log_flush(&mut self) {
        if self.log_flush.is_idle() {
            return;
        }
        self.answer_logged();
        if self.frozen || self.halted.is_some() {
            return;
        }
        match self.log_flush.phase {
            Phase::Idle => self.flush_logs(),
            Phase::Copies => {
                if self.log_flush.left == 0 && self.trouble.is_empty() {
                    self.commit_flushed();
                }
            }
            Phase::Journal(lsn) => {
                if lsn <= self.core.journal.durable {
                    self.core.end_log_flush();
                    self.log_flush.phase = Phase::Idle;
                    self.answer_logged();
                    self.flush_logs();
                }
            }
        }
    }

    fn flush_logs(&mut self) {
        if self.core.flush_broken {
            return;
        }
        let mut disks = std::mem::take(&mut self.log_flush.disks);
        disks.clear();
        for vdisk in 0..self.caches.len() {
            let waits = self.caches[vdisk].as_ref().is_some_and(|own| !own.through.is_empty());
            if waits && self.core.seal_log_flush(vdisk) {
                disks.extend(self.core.members.log_copies(vdisk).map(|copy| copy.1));
            }
        }
        disks.sort_unstable();
        disks.dedup();
        if !disks.is_empty() {
            self.log_flush.phase = Phase::Copies;
        }
        self.log_flush.left = 0;
        for &disk in &disks {
            if active(Mutation::LogUnflushed) {
                continue;
            }
            if self.core.io.push_log_flush(disk) {
                self.log_flush.left += 1;
            } else {
                // Its last flush hangs.
                self.core.io.unflushed.push(disk);
                self.trouble.push(disk);
            }
        }
        // The list is used again.
        self.log_flush.disks = disks;
    }

    fn commit_flushed(&mut self) {
        self.core.commit_log_flush();
        let lsn = self.core.journal.last_lsn();
        self.core.journal.want(lsn);
        self.log_flush.phase = Phase::Journal(lsn);
    }

    /// Answers whose record is durable by now, by whatever made it so, and those for whom nothing will be.
    fn answer_logged(&mut self) {
        for vdisk in 0..self.caches.len() {
            let nth = to_u32(vdisk);
            let fails = self.flush_fails(nth) || self.is_detached(nth) || self.halted.is_some();
            let flushed = self.core.logs[vdisk].as_ref().map_or(0, |log| log.flushed);
            while let Some(cache) = &mut self.caches[vdisk] {
                let due = |own: &mut (u64, u32)| fails || own.0 <= flushed;
                let Some((_, client)) = cache.through.pop_front_if(due) else { break };
                self.log_flush.waiting -= 1;
                if fails {
                    self.clients[index(client)].error = Some(EIO);
                }
                self.answer(client);
            }
        }
    }

    /// Nothing is flushed any more: who waits is told.
    pub(super) fn fail_log_flush(&mut self) {
        self.log_flush.phase = Phase::Idle;
        self.answer_logged();
    }
}
