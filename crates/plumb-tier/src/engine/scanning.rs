//! A Data Integrity Scan: what it reads one step after the other, beside requests (RES-8).

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u64};

use super::standstill::Job;
use super::{Engine, Halt};
use crate::events::Event;
use crate::format::BLOCK_BYTES;
use crate::unverified::UnverifiedRun;

/// What a scan takes as it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Accept {
    /// Nothing.
    Nothing,
    /// Blocks whose checksums are lost.
    Unverified,
}

/// What a scan reads next.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Stage {
    /// An extent, and those behind it.
    Extent(u32),
    /// The log of a virtual disk's write-back cache from that record on, and those behind it.
    Log(u16, u64),
    /// Pages of map and checksums, from that place in their order on.
    Pages(u64),
    /// Superblock and checkpoint page of a disk, and of those behind it: all of them before any configuration, for who gets a
    /// new one has its superblocks written.
    Superblock(u16),
    /// The configuration of a disk, and of those behind it.
    Record(u16),
}

impl<Q: FlushQueue> Engine<Q> {
    /// Whether a scan was asked for and has not ended.
    #[must_use]
    pub fn is_scanning(&self) -> bool {
        self.jobs.iter().any(|job| matches!(job, Job::Scan(..)))
    }

    /// Reads and verifies every copy of every written block, of what lies in write-back caches, and of all metadata but the journal, heals what can be
    /// healed (RES-8), and ends with a checkpoint, behind which the journal begins anew.
    pub fn scan(&mut self) {
        self.jobs.push_back(Job::Scan(Stage::Extent(0), Accept::Nothing));
    }

    /// The same, and what lies where checksums are lost on all copies is taken for what it should be (LAY-7): of copies
    /// that differ, what most of them hold.
    pub fn scan_accepting_unverified(&mut self) {
        self.jobs.push_back(Job::Scan(Stage::Extent(0), Accept::Unverified));
    }

    /// All blocks whose checksums are lost: reads of them fail until they are written, or accepted (LAY-7).
    #[must_use]
    pub fn unverified(&self) -> Vec<UnverifiedRun> {
        self.core.unverified_runs()
    }

    /// One step of a scan; the next one waits for its turn.
    pub(super) fn scan_step(&mut self, stage: Stage, accept: Accept) -> Result<(), Halt> {
        self.scanned = true;
        if stage == Stage::Extent(0) && !self.is_scanning() {
            self.core.unread.clear();
            self.core.lost_extents.clear();
        }
        let is_disk = |disk: u16| usize::from(disk) < self.core.members.online.len();
        let next = match stage {
            Stage::Extent(extent) if index(extent) < self.core.extents.list.len() => {
                self.settle_late(extent)?;
                self.core.scan(extent)?;
                self.core.compare_unverified(extent, accept == Accept::Unverified)?;
                Stage::Extent(extent + 1)
            }
            Stage::Extent(_) => Stage::Log(0, 0),
            Stage::Log(vdisk, from) if usize::from(vdisk) < self.core.logs.len() => {
                match self.core.scan_log(vdisk.into(), from)? {
                    Some(next) => Stage::Log(vdisk, next),
                    None => Stage::Log(vdisk + 1, 0),
                }
            }
            Stage::Log(..) => Stage::Pages(0),
            Stage::Pages(from) => match self.core.scan_pages(from)? {
                Some(next) => Stage::Pages(next),
                None => Stage::Superblock(0),
            },
            Stage::Superblock(disk) if is_disk(disk) => {
                self.core.scan_superblock(disk)?;
                Stage::Superblock(disk + 1)
            }
            Stage::Superblock(_) => Stage::Record(0),
            Stage::Record(disk) if is_disk(disk) => {
                self.core.scan_record(disk)?;
                Stage::Record(disk + 1)
            }
            Stage::Record(_) => return self.end_scan(),
        };
        self.jobs.push_back(Job::Scan(next, accept));
        Ok(())
    }

    /// What is damaged of map and checksums is written anew, and no frame of the journal from before is read by a start any
    /// more: it is not read, but behind the checkpoint what has rotted of it costs nothing.
    fn end_scan(&mut self) -> Result<(), Halt> {
        if !self.core.flush_broken {
            self.checkpoint_now()?;
        }
        self.core.counters.metadata_unhealed += self.core.to_mend;
        let event = match self.is_all_here() {
            true => Event::Scanned,
            false => Event::ScannedInPart { extents: self.core.unread.len() },
        };
        self.core.io.events.note(event);
        Ok(())
    }

    /// Whether every disk of the pool is here, and up to date, and every log of a write-back cache that there is was read.
    fn is_all_here(&self) -> bool {
        let vdisks = 0..self.core.members.config.vdisks.len();
        if vdisks.into_iter().any(|vdisk| self.core.is_detached(vdisk)) {
            return false;
        }
        let members = &self.core.members;
        let mut disks = members.online.iter().zip(&members.gone).zip(&members.stale);
        disks.all(|((online, gone), stale)| *gone || *online && stale.len() == 0)
    }

    /// Whether the last scan read a good copy of each block of an extent, or found that there is none: it left none out that a
    /// disk has which is away.
    #[must_use]
    pub fn was_scanned(&self, extent: u32) -> bool {
        !self.core.unread.has(extent)
    }

    /// Bytes that a scan has to go.
    pub(super) fn scan_left(&self, stage: Stage) -> u64 {
        let pages = |from: u64| self.core.trees.pages_left(from) * BLOCK_BYTES;
        match stage {
            Stage::Extent(next) => {
                let extents = to_u64(self.core.extents.list.len().saturating_sub(index(next)));
                let extents = extents * u64::from(self.core.members.config.extent_bytes);
                extents + self.core.log_bytes_left(0) + pages(0)
            }
            Stage::Log(vdisk, _) => self.core.log_bytes_left(vdisk.into()) + pages(0),
            Stage::Pages(from) => pages(from),
            Stage::Superblock(_) | Stage::Record(_) => 0,
        }
    }
}
