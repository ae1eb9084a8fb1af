//! What a write-back cache's log holds, looked at record by record (RES-8): a copy that has rotted is healed from another one, a block
//! that no copy of the log has is at home if its home has it, and what nobody has holds the log's tail no longer.

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32, to_usize};

use crate::core::{Core, Halt};
use crate::events::Event;
use crate::extents::{Sum, UNMAPPED, UNSETTLED};
use crate::format::checksum::{self, UNVERIFIED};
use crate::format::frame::{Link, Record};
use crate::format::{BLOCK_LEN, log};
use crate::io::Work;
use crate::log::{Line, LineState, Log};
use crate::mutation::{Mutation, active};

/// Blocks that are looked at in one step of a scan, or one record's.
const AT_ONCE: usize = 64;

/// What was found of a record's copies.
#[derive(Debug, Default)]
struct Found {
    /// What has to be written: disk, offset, extent of the block (`None` of a header), content.
    heals: Vec<(u16, u64, Option<u32>, Vec<u8>)>,
    /// Disks that did not answer: they are not asked again.
    silent: Vec<u16>,
    /// Blocks that no copy here has, and whether all copies could be read.
    nowhere: Vec<(u64, Line, bool)>,
}

/// Whether a copy has what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copies {
    Good,
    /// All were read, and none has it.
    Bad,
    /// None of those that were read has it.
    Unread,
}

impl<Q: FlushQueue> Core<Q> {
    /// Looks at records from that one on, some at a time; the LSN of the next one, `None` behind the last. Nothing is under way.
    pub(crate) fn scan_log(&mut self, vdisk: usize, from: u64) -> Result<Option<u64>, Halt> {
        let (mut blocks, mut next) = (0, from);
        while blocks < AT_ONCE {
            let log = self.logs.get(vdisk).and_then(Option::as_ref).filter(|log| !log.is_away);
            let Some((link, lines)) = log.and_then(|log| log.record_from(next)) else {
                return Ok(None);
            };
            blocks += 1 + lines.len();
            next = link.lsn + 1;
            self.look_at_record(vdisk, link, lines)?;
        }
        Ok(Some(next))
    }

    /// Looks at one record, if it is in the log still: a request met a copy of it that does not verify.
    pub(crate) fn heal_record(&mut self, vdisk: usize, lsn: u64) -> Result<(), Halt> {
        let log = self.logs.get(vdisk).and_then(Option::as_ref).filter(|log| !log.is_away);
        match log.and_then(|log| log.record_from(lsn)).filter(|found| found.0.lsn == lsn) {
            Some((link, lines)) => self.look_at_record(vdisk, link, lines),
            None => Ok(()),
        }
    }

    fn look_at_record(
        &mut self,
        vdisk: usize,
        link: Link,
        lines: Vec<(u64, Line)>,
    ) -> Result<(), Halt> {
        let Some(log) = &self.logs[vdisk] else { return Ok(()) };
        let mut found = Found::default();
        let (seed, data_seed) = (log.seed, self.members.data_seeds[vdisk]);
        let is_header = |bytes: &[u8]| log::decode(bytes, seed, &link, 0).is_some();
        let _ = self.look_at_copies(vdisk, (link.position, None), is_header, &mut found);
        for (block, line) in lines {
            let (extent, _) = self.home_of(vdisk, block);
            let verifies = |bytes: &[u8]| checksum::block(data_seed, block, bytes) == line.crc;
            match self.look_at_copies(vdisk, (line.position, Some(extent)), verifies, &mut found) {
                Copies::Good => {}
                seen => found.nowhere.push((block, line, seen == Copies::Bad)),
            }
        }
        if !found.silent.is_empty() {
            self.lose_spare(std::mem::take(&mut found.silent))?;
        }
        self.heal_log(std::mem::take(&mut found.heals))?;
        for (block, line, all_read) in found.nowhere {
            self.find_elsewhere(vdisk, (block, line), all_read)?;
        }
        if self.journal.has_batch() { self.sync() } else { Ok(()) }
    }

    /// Reads the copies of a block of the log. Current ones that do not have it are to be healed; one that is not may have it all the same.
    fn look_at_copies(
        &mut self,
        vdisk: usize,
        (position, extent): (u64, Option<u32>),
        verifies: impl Fn(&[u8]) -> bool,
        found: &mut Found,
    ) -> Copies {
        let Some(log) = &self.logs[vdisk] else { return Copies::Unread };
        let places = self.log_places(vdisk, log, position);
        let current: Vec<(u8, u16)> = self.members.log_copies(vdisk).collect();
        let mut good: Option<Vec<u8>> = None;
        let (mut bad, mut unread) = (Vec::new(), false);
        for (copy, disk, offset) in places {
            if !self.members.is_online(disk) || found.silent.contains(&disk) {
                unread |= !self.members.gone[usize::from(disk)];
                continue;
            }
            let mut bytes = vec![0; BLOCK_LEN];
            let read = self.io.read(disk, offset, &mut bytes);
            if self.io.was_silent(disk) {
                found.silent.push(disk);
                unread = true;
                continue;
            }
            unread |= !read;
            self.counters.blocks_verified += u64::from(extent.is_some());
            if read && verifies(&bytes) {
                good.get_or_insert(bytes);
            } else if current.contains(&(copy, disk)) {
                bad.push((disk, offset));
            }
        }
        for &(disk, _) in &bad {
            self.counters.mismatches += u64::from(extent.is_some());
            self.io.events.note(match extent {
                Some(extent) => Event::BadCopy { disk, extent },
                None => Event::MetadataDamaged { disk, what: "write cache" },
            });
        }
        let Some(good) = good else {
            return if unread { Copies::Unread } else { Copies::Bad };
        };
        let heals = bad.into_iter().map(|(disk, offset)| (disk, offset, extent, good.clone()));
        found.heals.extend(heals);
        Copies::Good
    }

    /// Writes to copies what they should hold, durably.
    fn heal_log(&mut self, mut heals: Vec<(u16, u64, Option<u32>, Vec<u8>)>) -> Result<(), Halt> {
        heals.retain(|heal| self.members.is_online(heal.0));
        if heals.is_empty() || active(Mutation::LogUnhealed) {
            return Ok(());
        }
        let work = heals.iter().map(|(disk, offset, _, bytes)| Work::Write {
            disk: *disk,
            offset: *offset,
            bytes,
        });
        let failed = self.io.wait_for(work.collect());
        let kept = self.lose_spare(failed)?;
        heals.retain(|heal| self.members.is_online(heal.0) && !kept.contains(&heal.0));
        for (disk, _, extent, _) in &heals {
            match extent {
                Some(extent) => {
                    self.counters.healed += 1;
                    self.io.uses[usize::from(*disk)].healed += 1;
                    self.io.events.note(Event::Healed { extent: *extent, blocks: 1 });
                }
                None => self.io.events.note(Event::MetadataHealed { copies: 1 }),
            }
        }
        let mut disks: Vec<u16> = heals.iter().map(|heal| heal.0).collect();
        disks.sort_unstable();
        disks.dedup();
        self.flush_some(&disks).map(|_| ())
    }

    /// No copy of the log that is here has a block.
    fn find_elsewhere(
        &mut self,
        vdisk: usize,
        (block, line): (u64, Line),
        all_read: bool,
    ) -> Result<(), Halt> {
        let (extent, within) = self.home_of(vdisk, block);
        if self.home_has(extent, within, line.crc) {
            let contents = self.read_extent(extent)?;
            let own = contents.iter().find(|one| one.0 == within);
            let good = own.is_some_and(|(_, contents)| {
                contents.copies.iter().any(|copy| {
                    let bytes = copy.2.as_deref();
                    bytes.is_some_and(|bytes| self.sum_of(extent, within, bytes) == line.crc)
                })
            });
            if good && !active(Mutation::HomeUnasked) {
                self.release_line(vdisk, block, line);
                return Ok(());
            }
        }
        if self.is_log_away(vdisk) {
            self.counters.away += 1;
            self.unread.insert(extent);
            self.io.events.note(Event::Unreadable { extent, blocks: 1 });
            return Ok(());
        }
        self.note_lost(extent, 1);
        // What cannot be read now may be readable later.
        if all_read || active(Mutation::UnreadGivenUp) {
            self.give_up_line(vdisk, block, line);
        }
        Ok(())
    }

    /// A block whose newest content nobody has: its home holds an older one, which nobody may take for it. It is unverified until it is
    /// written anew, or an operator accepts what lies there, and the log goes on.
    fn give_up_line(&mut self, vdisk: usize, block: u64, line: Line) {
        let (extent, within) = self.home_of(vdisk, block);
        let is_open = matches!(line.state, LineState::Dirty | LineState::Destaging);
        let own = self.extents.get(extent);
        let settled = self.extents.place(extent) != UNMAPPED
            && !self.deferred.has(extent)
            && own.sums.get(index(within)).is_some_and(|sum| sum.flags == 0);
        let flushes = !self.flush_broken && !self.unflushable[vdisk];
        if !is_open || !settled || !flushes || active(Mutation::LineHeldByRot) {
            return;
        }
        let number = self.extents.block(extent, within);
        self.extents.get_mut(extent).sums.set(index(within), UNVERIFIED);
        self.journal.append(Record::CrcCommit { block: number, crc: UNVERIFIED });
        self.trees.touch_sum(number);
        self.unverified.insert(extent);
        let sums = &self.extents.get(extent).sums;
        let blocks = to_u32(sums.iter().filter(|sum| sum.is_unverified()).count());
        self.io.events.note(Event::Unverified { extent, blocks });
        self.release_line(vdisk, block, line);
    }

    /// Nothing of a line has to be copied home.
    fn release_line(&mut self, vdisk: usize, block: u64, line: Line) {
        if let Some(log) = &mut self.logs[vdisk]
            && matches!(line.state, LineState::Dirty | LineState::Destaging)
        {
            log.set_home(block);
        }
    }

    /// Extent of a block of a virtual disk, and block within it.
    fn home_of(&self, vdisk: usize, block: u64) -> (u32, u32) {
        let blocks = u64::from(self.extents.blocks);
        let first = self.members.config.vdisks[vdisk].first_extent;
        (first + to_u32(to_usize(block / blocks)), to_u32(to_usize(block % blocks)))
    }

    /// Whether the home of a block holds, as far as is known, what has that checksum.
    pub(crate) fn home_has(&self, extent: u32, within: u32, crc: u32) -> bool {
        let own = self.extents.get(extent);
        let is = |sum: Sum| sum.newest == crc && !sum.is_first() && sum.flags & UNSETTLED == 0;
        self.extents.place(extent) != UNMAPPED
            && !self.deferred.has(extent)
            && own.sums.get(index(within)).is_some_and(is)
    }

    /// Whether a copy of a log is on a disk that is away and may come back.
    pub(crate) fn is_log_away(&self, vdisk: usize) -> bool {
        let cache = self.members.config.vdisks[vdisk].cache.as_ref();
        let away = |disk: usize| !self.members.online[disk] && !self.members.gone[disk];
        cache.is_some_and(|cache| cache.copies.iter().any(|copy| away(usize::from(copy.disk))))
    }

    /// Bytes of logs that a scan has to go, from that virtual disk on.
    pub(crate) fn log_bytes_left(&self, vdisk: usize) -> u64 {
        self.logs.iter().skip(vdisk).flatten().map(Log::used).sum()
    }
}
