//! Copies of the logs of write-back caches on a disk that lacks what others have: each header and each block of data is
//! taken from a copy that has it as it should be, and nothing else is written over what the disk itself has (WBC-1).

use plumb_io::FlushQueue;
use plumb_units::convert::{to_u32, to_u64, to_usize};

use crate::core::Core;
use crate::events::Event;
use crate::format::checksum;
use crate::format::frame::Link;
use crate::format::log::{self, LogHeader};
use crate::format::{BLOCK_BYTES, BLOCK_LEN};
use crate::io::Work;
use crate::mutation::{Mutation, active};

/// A part of a log that lies beside itself on each copy, while it is copied.
struct Stretch {
    bytes: Vec<u8>,
    /// Which of its blocks are as they should be.
    good: Vec<bool>,
    /// Where it begins on each copy that may be read: disk and offset; last, on the disk that lacks it.
    places: Vec<(u16, u64)>,
    /// The one that `bytes` came from.
    from: Option<usize>,
}

/// What was found of one block.
enum Found {
    Yes,
    /// All copies were read, and none is as it should be.
    Rotten,
    /// Nobody knows: a copy could not be read.
    Unread,
}

impl<Q: FlushQueue> Core<Q> {
    /// Makes the log copies on a disk that returns current: copies everything between tail and head; which
    /// virtual disks' copies are current then. Nothing is under way.
    pub(crate) fn copy_logs(&mut self, disk: u16) -> Vec<usize> {
        let mut done = Vec::new();
        for vdisk in 0..self.logs.len() {
            if self.logs[vdisk].as_ref().is_none_or(|log| log.is_away) {
                continue;
            }
            let lacks = self.members.config.vdisks[vdisk]
                .cache
                .as_ref()
                .is_some_and(|cache| cache.copies.iter().any(|c| c.disk == disk && !c.current));
            if lacks && (active(Mutation::LogReturnUncopied) || self.copy_log(vdisk, disk)) {
                done.push(vdisk);
            }
        }
        done
    }

    /// Copies record by record. A block of data that no copy has as it should be stays what it is: the copy has no less than
    /// the others then. Without a header nobody knows what follows: that is no copy.
    fn copy_log(&mut self, vdisk: usize, disk: u16) -> bool {
        let Some(log) = &self.logs[vdisk] else { return false };
        let (mut link, end) = (log.tail, log.link);
        let mut needed = self.io.control_bytes().max(self.io.plan().log_bytes().into());
        while link.position < end.position {
            let Some(log) = &self.logs[vdisk] else { return false };
            let left = log.contiguous(link.position).min(end.position - link.position);
            let len = left.min(needed) / BLOCK_BYTES * BLOCK_BYTES;
            let Some(mut stretch) = self.read_stretch((vdisk, disk), link.position, len) else {
                return false;
            };
            let from = link.position;
            while link.position - from < len {
                let at = to_usize(link.position - from);
                let Some(header) = self.copy_header(vdisk, &mut stretch, &link, at) else {
                    return false;
                };
                if header.span > left - to_u64(at) {
                    return false;
                }
                let blocks = BLOCK_BYTES * (1 + to_u64(header.sums.len()));
                if to_u64(at) + blocks > len {
                    // The next stretch begins with it.
                    needed = needed.max(blocks);
                    break;
                }
                stretch.good[at / BLOCK_LEN] = true;
                if !self.copy_blocks(vdisk, &mut stretch, &header, at + BLOCK_LEN) {
                    return false;
                }
                link = Link {
                    lsn: link.lsn + u64::from(!header.pad),
                    position: link.position + header.span,
                    chain: header.crc,
                    epoch: header.epoch,
                };
            }
            if !self.write_stretch(&stretch) {
                return false;
            }
        }
        // What lies behind the head must not be taken for the next record: its LSN, position and chain are
        // those of the past, and its epoch is lower.
        let is_whole = (link.lsn, link.position, link.chain) == (end.lsn, end.position, end.chain);
        is_whole && (active(Mutation::LogReturnUnflushed) || self.io.flush(&[disk]).is_empty())
    }

    /// Reads the next part from any current copy. `None` where the disk has no place for it.
    fn read_stretch(
        &mut self,
        (vdisk, disk): (usize, u16),
        position: u64,
        len: u64,
    ) -> Option<Stretch> {
        let log = self.logs[vdisk].as_ref()?;
        let sources: Vec<(u8, u16)> = self.members.log_copies(vdisk).collect();
        let all = self.log_places(vdisk, log, position);
        let own = all.iter().find(|place| place.1 == disk)?;
        let current = all.iter().filter(|one| one.1 != disk && sources.contains(&(one.0, one.1)));
        let places: Vec<(u16, u64)> = current.chain([own]).map(|one| (one.1, one.2)).collect();
        let mut bytes = vec![0; to_usize(len)];
        let (others, _) = places.split_at(places.len() - 1);
        let from = others.iter().position(|one| self.io.read(one.0, one.1, &mut bytes));
        let good = vec![false; bytes.len() / BLOCK_LEN];
        Some(Stretch { bytes, good, places, from })
    }

    /// The header of the record that follows `link`, `at` so many bytes of the part, from a copy that has it.
    fn copy_header(
        &mut self,
        vdisk: usize,
        stretch: &mut Stretch,
        link: &Link,
        at: usize,
    ) -> Option<LogHeader> {
        let log = self.logs[vdisk].as_ref()?;
        let least = if link.position >= log.head.0 { log.head.1 } else { 0 };
        let seed = log.seed;
        let decode = |bytes: &[u8]| log::decode(bytes, seed, link, least);
        let (found, rotten) = self.find_block(stretch, at, |bytes| decode(bytes).is_some());
        for disk in rotten {
            self.io.events.note(Event::MetadataDamaged { disk, what: "write cache" });
        }
        let bytes = &stretch.bytes[at..at + BLOCK_LEN];
        matches!(found, Found::Yes).then(|| decode(bytes)).flatten()
    }

    /// The data of a record, each block from a copy that has it; `false` where nobody knows whether one has.
    fn copy_blocks(
        &mut self,
        vdisk: usize,
        stretch: &mut Stretch,
        header: &LogHeader,
        mut at: usize,
    ) -> bool {
        let seed = self.members.data_seeds[vdisk];
        let data = header.ranges.iter().filter(|range| !range.zeros);
        let data = data.flat_map(|range| range.block..range.block + u64::from(range.count));
        for (block, sum) in data.zip(&header.sums) {
            let verifies = |bytes: &[u8]| checksum::block(seed, block, bytes) == *sum;
            let (found, rotten) = self.find_block(stretch, at, verifies);
            let first = self.members.config.vdisks[vdisk].first_extent;
            let extent = first + to_u32(to_usize(block / u64::from(self.extents.blocks)));
            let healed = matches!(found, Found::Yes);
            for disk in rotten {
                self.counters.mismatches += 1;
                self.counters.healed += u64::from(healed);
                self.io.uses[usize::from(disk)].healed += u64::from(healed);
                self.io.events.note(Event::BadCopy { disk, extent });
            }
            match found {
                Found::Yes => stretch.good[at / BLOCK_LEN] = true,
                Found::Rotten => {}
                Found::Unread => return false,
            }
            at += BLOCK_LEN;
        }
        true
    }

    /// Looks for a block on all copies until one is as it should be, and writes it to those that were asked before; what was
    /// found, and which of the others are rotten.
    fn find_block(
        &mut self,
        stretch: &mut Stretch,
        at: usize,
        verifies: impl Fn(&[u8]) -> bool,
    ) -> (Found, Vec<u16>) {
        let own = at..at + BLOCK_LEN;
        let verified = verifies(&stretch.bytes[own.clone()]) || active(Mutation::RotCopied);
        if stretch.from.is_some() && verified {
            return (Found::Yes, Vec::new());
        }
        let (mut rotten, mut unread) = (Vec::new(), false);
        let mut bytes = vec![0; BLOCK_LEN];
        let last = stretch.places.len() - 1;
        for (nth, (disk, offset)) in stretch.places.iter().enumerate() {
            let read = self.io.read(*disk, offset + to_u64(at), &mut bytes);
            if read && verifies(&bytes) {
                stretch.bytes[own].copy_from_slice(&bytes);
                let lacks = |one: &&(u16, u64)| rotten.contains(&one.0);
                let work = stretch.places.iter().filter(lacks).map(|one| Work::Write {
                    disk: one.0,
                    offset: one.1 + to_u64(at),
                    bytes: &bytes,
                });
                // Who does not take it is noticed with the next record.
                self.io.wait_for(work.collect());
                return (Found::Yes, rotten);
            }
            if nth < last {
                unread |= !read;
                rotten.extend(read.then_some(*disk));
            }
        }
        (if unread { Found::Unread } else { Found::Rotten }, rotten)
    }

    /// Writes to the disk that lacks it what is as it should be.
    fn write_stretch(&mut self, stretch: &Stretch) -> bool {
        let Some((disk, offset)) = stretch.places.last().copied() else { return false };
        let mut at = 0;
        let mut work = Vec::new();
        for run in stretch.good.chunk_by(|one, other| one == other) {
            let bytes = &stretch.bytes[at..at + run.len() * BLOCK_LEN];
            if run[0] {
                work.push(Work::Write { disk, offset: offset + to_u64(at), bytes });
            }
            at += bytes.len();
        }
        self.io.wait_for(work).is_empty()
    }
}
