//! Logs in line for slots: all write-back caches of a pool share those for records.

use std::collections::VecDeque;

use plumb_io::FlushQueue;

use super::cache::Cache;
use super::{EIO, Engine};
use crate::mutation::{Mutation, active};

/// Logs that have something to write and no slots for all copies of it.
#[derive(Debug, Default)]
pub(super) struct LogLine {
    /// Their virtual disks, in order.
    logs: VecDeque<usize>,
    /// The disks that they wait for in this turn, and how many slots one of them waits for at most: those behind them
    /// leave them these, or one that needs several would wait for ever.
    disks: Vec<u16>,
    most: usize,
}

impl<Q: FlushQueue> Engine<Q> {
    /// Begins records of logs that waited for slots, those first that have waited longest.
    pub(super) fn begin_waiting_records(&mut self) {
        self.log_line.disks.clear();
        self.log_line.most = 0;
        if self.frozen || self.halted.is_some() {
            return;
        }
        for _ in 0..self.log_line.logs.len() {
            let Some(vdisk) = self.log_line.logs.pop_front() else { return };
            if self.may_begin_record(vdisk) {
                self.start_record(vdisk);
            }
        }
    }

    /// Whether there are slots for a record on all copies of a log, if it has one to write; else it is in line from now on. Where
    /// disks that hang keep too many, what it was to hold fails.
    pub(super) fn may_begin_record(&mut self, vdisk: usize) -> bool {
        let has_work = self.caches.get(vdisk).and_then(Option::as_ref).is_some_and(Cache::has_work);
        if !has_work || self.log_line.logs.contains(&vdisk) {
            return false;
        }
        if active(Mutation::LogSlotsUnasked) {
            return true;
        }
        let may = self.may_take_log_slots(vdisk);
        if may.is_none() {
            self.fail_record(vdisk);
        }
        may == Some(true)
    }

    /// Whether a log may take them now; else it is in line for them. `None`: in vain.
    fn may_take_log_slots(&mut self, vdisk: usize) -> Option<bool> {
        let line = &mut self.log_line;
        let disks = self.core.members.log_copies(vdisk).map(|copy| copy.1);
        let free = self.core.io.may_log(disks.clone(), line.most)?;
        if free && !disks.clone().any(|disk| line.disks.contains(&disk)) {
            return Some(true);
        }
        line.most = line.most.max(disks.clone().count());
        line.disks.extend(disks);
        line.logs.push_back(vdisk);
        Some(false)
    }

    /// What is in line for the next record of a log.
    fn fail_record(&mut self, vdisk: usize) {
        while let Some(part) = self.caches[vdisk].as_mut().and_then(|own| own.line.pop_front()) {
            self.forget_old(part);
            self.end_part(part, Some(EIO));
        }
    }
}
