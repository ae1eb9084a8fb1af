//! The logs of write-back caches while no request is under way: reading them at a start, bringing a copy
//! up to date, what a round and a checkpoint say of them.

use plumb_io::FlushQueue;
use plumb_units::convert::index;

use crate::chain::UnreadEnd;
use crate::core::{Core, Halt};
use crate::events::Event;
use crate::format::checksum;
use crate::format::frame::{Link, Record};
use crate::format::log::{self, LogHeader};
use crate::format::{BLOCK_BYTES, BLOCK_LEN, Config, Geometry};
use crate::log::Log;
use crate::log_ahead::{LogAhead, Next};
use crate::members::Members;
use crate::mutation::{Mutation, active};
use crate::recover::StartError;

/// No record follows: the epoch that none has.
pub(crate) const CLOSED: u32 = u32::MAX;

/// The empty logs of all virtual disks.
pub(crate) fn new_logs(config: &Config, geometry: &Geometry, seeds: &[u32]) -> Vec<Option<Log>> {
    let own = |(vdisk, seed): (&crate::format::VirtualDisk, &u32)| {
        vdisk.cache.as_ref().map(|cache| Log::new(cache, geometry, *seed))
    };
    config.vdisks.iter().zip(seeds).map(own).collect()
}

impl Config {
    /// Copies of logs on disks that do not take part are not current any more, unless none would be left: then they are
    /// what their virtual disk waits for.
    pub(crate) fn expire_log_copies(&mut self, here: impl Fn(u16) -> bool) {
        for cache in self.vdisks.iter_mut().filter_map(|vdisk| vdisk.cache.as_mut()) {
            let left = cache.copies.iter().any(|copy| copy.current && here(copy.disk));
            if left && !active(Mutation::LogCopyKept) {
                cache.copies.iter_mut().for_each(|copy| copy.current &= here(copy.disk));
            }
        }
    }
}

impl Members {
    /// Copies of a log that take part: number and disk.
    pub(crate) fn log_copies(&self, vdisk: usize) -> impl Iterator<Item = (u8, u16)> + Clone + '_ {
        let copies = self.config.vdisks[vdisk].cache.as_ref().map_or(&[][..], |c| &c.copies);
        (0..).zip(copies).filter_map(|(nth, copy)| {
            (copy.current && self.is_online(copy.disk)).then_some((nth, copy.disk))
        })
    }

    /// Whether a disk has a log's copy that may be read.
    pub(crate) fn log_readable(&self, vdisk: usize, disk: u16) -> bool {
        self.log_copies(vdisk).any(|copy| copy.1 == disk)
    }

    /// Whether a virtual disk's log has another current copy if that disk has one.
    pub(crate) fn log_spares(&self, vdisk: usize, disk: u16) -> bool {
        let mut others = self.log_copies(vdisk).filter(|copy| copy.1 != disk);
        !self.log_readable(vdisk, disk) || others.next().is_some()
    }

    /// What a disk has of logs is of its past: none of it is read.
    pub(crate) fn distrust_logs(&mut self, disk: u16) {
        let caches = self.config.vdisks.iter_mut().filter_map(|vdisk| vdisk.cache.as_mut());
        let copies = caches.flat_map(|cache| &mut cache.copies);
        copies.filter(|copy| copy.disk == disk).for_each(|copy| copy.current = false);
    }

    /// The copies of these virtual disks' logs on a disk have all that the others have.
    pub(crate) fn make_current(&mut self, disk: u16, logs: &[usize]) {
        for vdisk in logs {
            let cache = self.config.vdisks.get_mut(*vdisk).and_then(|own| own.cache.as_mut());
            let copies = cache.into_iter().flat_map(|cache| &mut cache.copies);
            copies.filter(|copy| copy.disk == disk).for_each(|copy| copy.current = true);
        }
    }

    /// A disk keeps the last copy of something and failed: logs go on without it if they can.
    pub(crate) fn leave_logs(&mut self, disk: u16) {
        let online = self.online.clone();
        self.config.expire_log_copies(|other| other != disk && online[usize::from(other)]);
    }
}

/// A record: its header, its bytes, and the disks that lack it.
type Found = (LogHeader, Vec<u8>, Vec<u16>);

impl<Q: FlushQueue> Core<Q> {
    /// Devices are about to be flushed.
    pub(crate) fn seal_logs(&mut self) {
        let logs = self.logs.iter_mut().zip(&self.unflushable);
        logs.filter(|own| !own.1).filter_map(|own| own.0.as_mut()).for_each(Log::seal);
    }

    /// Devices were flushed: what the journal has to say.
    pub(crate) fn commit_logs(&mut self) {
        for (vdisk, log) in (0_u16..).zip(&mut self.logs) {
            let Some(log) = log else { continue };
            for record in log.records_of_round(vdisk) {
                self.journal.append(record);
            }
        }
    }

    /// The journal is durable.
    pub(crate) fn end_logs(&mut self) {
        self.logs.iter_mut().flatten().for_each(Log::end_round);
    }

    /// The copies of a log are about to be flushed beside rounds; `false` if that is of no use.
    pub(crate) fn seal_log_flush(&mut self, vdisk: usize) -> bool {
        let unflushable = self.unflushable.get(vdisk) == Some(&true);
        let log = self.logs[vdisk].as_mut().filter(|log| !unflushable && !log.is_away);
        log.is_some_and(Log::seal_through)
    }

    /// They were: what the journal has to say.
    pub(crate) fn commit_log_flush(&mut self) {
        for (vdisk, log) in (0_u16..).zip(&mut self.logs) {
            let record = log.as_mut().and_then(|log| log.record_through(vdisk));
            if let Some(record) = record {
                self.journal.append(record);
            }
        }
    }

    /// The journal is durable.
    pub(crate) fn end_log_flush(&mut self) {
        self.logs.iter_mut().flatten().for_each(Log::end_through);
    }

    /// Whether a round would let the tail of a log move, or clean lines.
    pub(crate) fn logs_want_round(&self) -> bool {
        let wants = |log: &Log| {
            let (home, passable) = log.wants_round();
            home > 0 || passable
        };
        let logs = self.logs.iter().zip(&self.unflushable);
        logs.filter(|own| !own.1).filter_map(|own| own.0.as_ref()).any(wants)
    }

    /// Reads the logs from their tails on, makes their copies equal and flushes them (WBC-1).
    pub(crate) fn recover_logs(&mut self, unread_end: UnreadEnd) -> Result<(), StartError> {
        for vdisk in 0..self.logs.len() {
            let Some(mut log) = self.logs[vdisk].take() else { continue };
            let outcome = self.recover_log(vdisk, &mut log, unread_end);
            let unread = matches!(outcome, Err(StartError::Metadata { .. }));
            if unread {
                self.detach(vdisk, &mut log);
            }
            self.logs[vdisk] = Some(log);
            if !unread {
                outcome?;
            }
        }
        Ok(())
    }

    /// Reads a log of which a copy is here again; whether that went well.
    pub(crate) fn read_returned_log(&mut self, vdisk: usize) -> Result<bool, Halt> {
        let Some(mut log) = self.logs[vdisk].take() else { return Ok(false) };
        let outcome = self.recover_log(vdisk, &mut log, UnreadEnd::Unknown);
        if outcome.is_err() {
            // What was read until now is not all there is; the next start tries again.
            log.forget();
        }
        self.logs[vdisk] = Some(log);
        match outcome {
            Ok(()) => {}
            Err(StartError::Halted { source }) => return Err(source),
            Err(_) => return Ok(false),
        }
        if self.is_detached(vdisk) {
            return Ok(false);
        }
        self.go_on_without_copies(vdisk)?;
        self.begin_epoch_of_log(vdisk);
        Ok(true)
    }

    /// Copies that are away miss what is appended from now on: durably said before anything is. Until this one was read they might
    /// have been what its virtual disk waited for.
    fn go_on_without_copies(&mut self, vdisk: usize) -> Result<(), Halt> {
        let online = self.members.online.clone();
        let cache = self.members.config.vdisks[vdisk].cache.as_mut();
        let copies = cache.into_iter().flat_map(|cache| &mut cache.copies);
        let mut missing: Vec<_> =
            copies.filter(|copy| copy.current && !online[usize::from(copy.disk)]).collect();
        if missing.is_empty() || active(Mutation::ReturnedLogShared) {
            return Ok(());
        }
        missing.iter_mut().for_each(|copy| copy.current = false);
        self.publish()
    }

    fn recover_log(
        &mut self,
        vdisk: usize,
        log: &mut Log,
        unread_end: UnreadEnd,
    ) -> Result<(), StartError> {
        let copies: Vec<(u8, u16)> = self.members.log_copies(vdisk).collect();
        let start = log.tail;
        log.link = start;
        log.is_away = copies.is_empty() && !active(Mutation::LostLogTakenAsEmpty);
        if log.is_away {
            self.detach(vdisk, log);
            return Ok(());
        }
        let mut repaired = false;
        let mut failed = Vec::new();
        let (mut ahead, mut span) = (LogAhead::new(self.log_far_from), 0);
        let blocks =
            u64::from(self.members.config.vdisks[vdisk].extents) * u64::from(self.extents.blocks);
        while log.link.position - start.position < log.ring_bytes {
            let link = log.link;
            if link.position >= log.head.0 && log.head.1 == CLOSED {
                break;
            }
            let least = if link.position >= log.head.0 { log.head.1 } else { 0 };
            let places = self.log_places(vdisk, log, link.position);
            let places = places.iter().filter(|(nth, disk, _)| copies.contains(&(*nth, *disk)));
            let places: Vec<(u16, u64)> = places.map(|place| (place.1, place.2)).collect();
            let durable = link.lsn <= log.flushed;
            let next = Next { span, room: log.room(link.position), durable };
            ahead.reach(&mut self.io, &places, next);
            let found = match self.read_record(&ahead, log, &places, least) {
                // What is known to be durable is not given up; the look behind the loop sees to it.
                Err(StartError::Metadata { .. }) if unread_end == UnreadEnd::Taken => {
                    places
                        .iter()
                        .for_each(|own| self.io.events.damaged(own.0, "end of a cache's log"));
                    None
                }
                found => found?,
            };
            let Some((header, bytes, lacking)) = found else { break };
            let inside = header.span <= log.ring_bytes - (link.position - start.position);
            let known = |range: &log::LogRange| range.block + u64::from(range.count) <= blocks;
            if !inside || !header.ranges.iter().all(known) {
                break;
            }
            if !lacking.is_empty() && !active(Mutation::LogCopiesDiffer) {
                repaired = true;
                for (_, disk, offset) in self.log_places(vdisk, log, link.position) {
                    if lacking.contains(&disk) {
                        ahead.forget(disk, (offset, &bytes));
                        failed.extend(self.io.write(&[disk], offset, &bytes));
                    }
                }
            }
            span = header.span;
            let lsn = link.lsn + u64::from(!header.pad);
            let position = link.position + header.span;
            let next = Link { lsn, position, chain: header.crc, epoch: header.epoch };
            if header.pad {
                log.link = next;
            } else {
                log.recovered(link, &header.ranges, &header.sums, next);
            }
        }
        if log.link.lsn <= log.flushed && !copies.is_empty() {
            // A record is durable and no current copy has it.
            return Err(StartError::Metadata { what: "write cache" });
        }
        if repaired {
            let disks: Vec<u16> = copies.iter().map(|copy| copy.1).collect();
            if !active(Mutation::LogRepairUnflushed) {
                failed.extend(self.io.flush(&disks));
            }
            self.do_without(failed)?;
            if self.members.log_copies(vdisk).next().is_none() {
                // The last of them went for the sake of others (C10).
                self.detach(vdisk, log);
                return Ok(());
            }
        }
        log.flushed = log.link.lsn - 1;
        Ok(())
    }

    /// What a log holds is not known, and is newer than what lies at home: nothing of its virtual disk is told before it is
    /// read.
    fn detach(&mut self, vdisk: usize, log: &mut Log) {
        log.forget();
        self.io.events.note(Event::CacheAway(u16::try_from(vdisk).unwrap_or(u16::MAX)));
    }

    pub(crate) fn log_places(&self, vdisk: usize, log: &Log, position: u64) -> Vec<(u8, u16, u64)> {
        let Some(cache) = self.members.config.vdisks[vdisk].cache.as_ref() else {
            return Vec::new();
        };
        log.locate(cache, &self.members.geometry, position).iter().collect()
    }

    /// Reads the next record from all copies: its header, its bytes from a copy that has all of it, and the
    /// disks that do not. Of records known to be durable only headers are read, and of those of a long log one that is right is
    /// enough: a scan looks at the others. That it cannot be read is not that there is none.
    fn read_record(
        &mut self,
        ahead: &LogAhead,
        log: &Log,
        places: &[(u16, u64)],
        least: u32,
    ) -> Result<Option<Found>, StartError> {
        let link = log.link;
        let durable = link.lsn <= log.flushed;
        let mut best: Option<(LogHeader, Vec<u8>)> = None;
        let mut lacking = Vec::new();
        let (mut was_read, mut failed) = (false, false);
        let is_enough = durable && ahead.is_far();
        let places = if is_enough { ahead.in_turn(places) } else { places.to_vec() };
        for (disk, offset) in places {
            if is_enough && best.is_some() {
                break;
            }
            let whole = self.read_copy_of_record(ahead, (disk, offset), log, (least, durable));
            was_read |= whole.is_some();
            failed |= whole.is_none();
            match (whole.flatten(), &best) {
                (Some(one), None) => best = Some(one),
                (Some((head, _)), Some((other, _))) if head.crc == other.crc => {}
                _ => lacking.push(disk),
            }
        }
        if failed && !was_read && !active(Mutation::UnreadEndsJournal) {
            return Err(StartError::Metadata { what: "write cache" });
        }
        Ok(best.map(|(head, bytes)| (head, bytes, lacking)))
    }

    /// `None` when it cannot be read; and within, when there is no such record.
    fn read_copy_of_record(
        &mut self,
        ahead: &LogAhead,
        (disk, offset): (u16, u64),
        log: &Log,
        (least, durable): (u32, bool),
    ) -> Option<Option<(LogHeader, Vec<u8>)>> {
        let mut bytes = vec![0; BLOCK_LEN];
        if !ahead.read(&mut self.io, (disk, offset), &mut bytes) {
            return None;
        }
        let Some(header) = log::decode(&bytes, log.seed, &log.link, least) else {
            return Some(None);
        };
        let blocks = header.sums.len();
        if durable || active(Mutation::LogDataUnverified) {
            return Some(Some((header, bytes)));
        }
        bytes.resize(BLOCK_LEN * (1 + blocks), 0);
        let data = (disk, offset + BLOCK_BYTES);
        if blocks > 0 && !ahead.read(&mut self.io, data, &mut bytes[BLOCK_LEN..]) {
            return None;
        }
        Some(data_verifies(log.seed, &header, &bytes).then_some((header, bytes)))
    }

    /// A start of the log's new epoch: what was read before is all there is of earlier ones.
    pub(crate) fn begin_log_epoch(&mut self) {
        (0..self.logs.len()).for_each(|vdisk| self.begin_epoch_of_log(vdisk));
    }

    /// Of one of which a copy is here: what others say is not known.
    fn begin_epoch_of_log(&mut self, vdisk: usize) {
        let log = self.logs[vdisk].as_mut().filter(|log| !log.is_away);
        let vdisk = u16::try_from(vdisk).unwrap_or(u16::MAX);
        if let Some(log) = log {
            log.closed = false;
            log.link.epoch = log.link.epoch.max(self.members.epoch);
            if !active(Mutation::LogEpochKept) {
                log.head = (log.link.position, self.members.epoch);
            }
            for record in log.snapshot(vdisk) {
                self.journal.append(record);
            }
        }
    }

    /// An append failed on every copy: the log ends before it.
    pub(crate) fn close_log(&mut self, vdisk: usize) {
        let Some(log) = &mut self.logs[vdisk] else { return };
        log.closed = true;
        self.io.events.note(Event::CacheClosed(u16::try_from(vdisk).unwrap_or(u16::MAX)));
        log.head = (log.link.position, CLOSED);
        let (position, epoch) = log.head;
        let vdisk = u16::try_from(vdisk).unwrap_or(u16::MAX);
        self.journal.append(Record::LogHead { vdisk, position, epoch });
    }

    /// Applies a record about a log.
    pub(crate) fn replay_log(&mut self, record: Record) {
        let vdisk = match record {
            Record::LogTail { vdisk, .. }
            | Record::LogHead { vdisk, .. }
            | Record::LogFlushed { vdisk, .. } => index(vdisk.into()),
            _ => return,
        };
        let Some(log) = self.logs.get_mut(vdisk).and_then(Option::as_mut) else { return };
        match record {
            Record::LogTail { link, .. } => log.tail = link,
            Record::LogHead { position, epoch, .. } => log.head = (position, epoch),
            Record::LogFlushed { lsn, .. } => log.flushed = lsn,
            _ => {}
        }
    }
}

/// Whether the data of a record is what its header says.
fn data_verifies(seed: u32, head: &LogHeader, bytes: &[u8]) -> bool {
    let mut blocks = bytes[BLOCK_LEN..].chunks(BLOCK_LEN).zip(&head.sums);
    let data = head.ranges.iter().filter(|range| !range.zeros);
    data.flat_map(|range| range.block..range.block + u64::from(range.count)).all(|block| {
        blocks.next().is_some_and(|(bytes, sum)| checksum::block(seed, block, bytes) == *sum)
    })
}
