//! What happened to a pool, for people and programs: an event for each change of a disk's or virtual disk's state,
//! and for everything that was found damaged (MOD-4, section 18).

use std::collections::VecDeque;

use crate::core::Halt;
use crate::format::Config;
use crate::waits::Wait;

/// Events that wait until somebody takes them, at most; more are counted.
const WAITING_MAX: usize = 256;

/// How much an event matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// As it should be.
    Information,
    /// Something has less than it should, or was mended.
    Warning,
    /// Something is lost, or does not work.
    Error,
}

impl Severity {
    /// As it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Information => "information",
            Self::Warning => "warning",
            Self::Error => "error",
        }
    }
}

/// Something that happened. Disks are ordinals, virtual disks numbers in the configuration's order, extents are
/// counted over the pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Event {
    /// A disk stopped taking part: the pool goes on without it.
    DiskLost(u16),
    /// A disk answered a write or a flush with an error, and is lost for that.
    DiskErred(u16),
    /// A disk failed that holds the last copy of something: it stays for that, and keeps no metadata any more.
    DiskFailing(u16),
    /// By an operator's word it is told no more that a disk failed before, or that blocks of it were healed.
    DiskCleared(u16),
    /// A disk was to go offline, and holds the last copy of something: it stays.
    DiskNeeded(u16),
    /// A disk did not answer in time.
    DiskTimeout(u16),
    /// A disk is an older copy of itself: it was put back as it had been before the pool was served last.
    DiskOutdated(u16),
    /// A disk was to take part again, and its path leads to something else than what is open, or to nothing.
    DiskElsewhere(u16),
    /// A disk takes part again.
    DiskBack(u16),
    /// All places on a disk are up to date.
    DiskUpToDate(u16),
    /// A disk was given up.
    DiskRetired {
        /// Which.
        disk: u16,
        /// What some of what it held waits for; `None` if others can take all of it, which is rebuilt there.
        waits: Option<Wait>,
    },
    /// A disk is to be removed: it is being emptied.
    DiskLeaving(u16),
    /// A disk stays after all.
    DiskStays(u16),
    /// A disk was to be removed, and stays: the others have no room for what it holds, or nobody else has it.
    DiskCannotLeave(u16),
    /// A disk was removed.
    DiskRemoved(u16),
    /// A disk was added.
    DiskAdded(u16),
    /// A slab of a virtual disk is given from one disk to another.
    SlabMoves {
        /// Whose.
        vdisk: u16,
        /// From.
        from: u16,
        /// To.
        to: u16,
    },
    /// A copy of a block could not be read, or was not what it should be.
    BadCopy {
        /// On which disk.
        disk: u16,
        /// In which extent.
        extent: u32,
    },
    /// Blocks of an extent were rewritten from a good copy.
    Healed {
        /// Which extent.
        extent: u32,
        /// Copies of blocks.
        blocks: u32,
    },
    /// Blocks have no good copy: reads of them fail.
    Unrecoverable {
        /// In which extent.
        extent: u32,
        /// How many.
        blocks: u32,
    },
    /// Blocks cannot be read while disks are away: one of these has what is good of them.
    Unreadable {
        /// In which extent.
        extent: u32,
        /// How many.
        blocks: u32,
    },
    /// The checksums of blocks are lost on all copies: reads of them fail until they are accepted or written (LAY-7).
    Unverified {
        /// In which extent.
        extent: u32,
        /// How many.
        blocks: u32,
    },
    /// Blocks whose checksums were lost were taken for what their copies hold, by an operator's word.
    Accepted {
        /// In which extent.
        extent: u32,
        /// How many.
        blocks: u32,
    },
    /// After an unclean stop a block matched no checksum, and was taken for an interrupted write (CRC-3, C8).
    Interrupted {
        /// In which extent.
        extent: u32,
    },
    /// A copy of metadata was damaged, and another one served.
    MetadataDamaged {
        /// On which disk.
        disk: u16,
        /// What it is part of.
        what: &'static str,
    },
    /// No disk has a page of metadata whole: what it holds is in memory, and the next checkpoint writes it.
    MetadataLost {
        /// What it is part of.
        what: &'static str,
    },
    /// Copies of metadata that were damaged are written anew.
    MetadataHealed {
        /// How many.
        copies: u64,
    },
    /// The last copy of something could not be flushed: every FLUSH fails until the next start.
    FlushFailed,
    /// No copy of a write cache took a record: it takes no more.
    CacheClosed(u16),
    /// No copy of a write cache's log is here: its virtual disk serves nothing until one is.
    CacheAway(u16),
    /// A copy of a write cache's log that was away is here again: its virtual disk serves.
    CacheBack(u16),
    /// A write cache was given up by an operator's word: what only its log held is lost.
    CacheGivenUp(u16),
    /// The last copy of something of a virtual disk could not be flushed: every FLUSH of it fails until the next start, and the
    /// others go on without that disk.
    FlushFailedOf(u16),
    /// A scan came to its end, and has read every copy.
    Scanned,
    /// A scan came to its end without disks that are away, or copies that are out of date.
    ScannedInPart {
        /// Extents that have blocks which cannot be read while disks are away.
        extents: u32,
    },
    /// The pool was started by an operator's word without more than half of its voters.
    WithoutQuorum {
        /// Voters that are here.
        present: usize,
        /// All that there were.
        voters: usize,
    },
    /// What was kept of a heat map is damaged: what it says of so many pages is lost, of all with `None`.
    HeatLost {
        /// Whose.
        vdisk: u16,
        /// Pages of 256 extents.
        pages: Option<u64>,
    },
    /// A program that counted host I/O ended without a word: what it counted of a virtual disk since it kept that last is lost.
    HeatNotCounted {
        /// Whose.
        vdisk: u16,
        /// Seconds, at most.
        seconds: u64,
    },
    /// The pool stopped.
    Halted(Halt),
}

impl Event {
    /// What happened, in one word.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::DiskLost(_) => "disk-lost",
            Self::DiskErred(_) => "disk-error",
            Self::DiskFailing(_) => "disk-failing",
            Self::DiskCleared(_) => "disk-cleared",
            Self::DiskNeeded(_) => "disk-needed",
            Self::DiskTimeout(_) => "disk-timeout",
            Self::DiskOutdated(_) => "disk-outdated",
            Self::DiskElsewhere(_) => "disk-elsewhere",
            Self::DiskBack(_) => "disk-back",
            Self::DiskUpToDate(_) => "disk-up-to-date",
            Self::DiskRetired { .. } => "disk-retired",
            Self::DiskLeaving(_) => "disk-leaving",
            Self::DiskStays(_) => "disk-stays",
            Self::DiskCannotLeave(_) => "disk-cannot-leave",
            Self::DiskRemoved(_) => "disk-removed",
            Self::DiskAdded(_) => "disk-added",
            Self::SlabMoves { .. } => "slab-moves",
            Self::BadCopy { .. } => "bad-copy",
            Self::Healed { .. } => "healed",
            Self::Unrecoverable { .. } => "unrecoverable",
            Self::Unreadable { .. } => "unreadable",
            Self::Unverified { .. } => "unverified",
            Self::Accepted { .. } => "accepted-unverified",
            Self::Interrupted { .. } => "interrupted-write",
            Self::MetadataDamaged { .. } => "metadata-damaged",
            Self::MetadataLost { .. } => "metadata-lost",
            Self::MetadataHealed { .. } => "metadata-healed",
            Self::FlushFailed => "flush-failed",
            Self::CacheClosed(_) => "cache-closed",
            Self::CacheAway(_) => "cache-away",
            Self::CacheBack(_) => "cache-back",
            Self::CacheGivenUp(_) => "cache-given-up",
            Self::FlushFailedOf(_) => "flush-failed",
            Self::Scanned => "scanned",
            Self::ScannedInPart { .. } => "scanned-in-part",
            Self::WithoutQuorum { .. } => "without-quorum",
            Self::HeatLost { .. } => "heat-lost",
            Self::HeatNotCounted { .. } => "heat-not-counted",
            Self::Halted(_) => "halted",
        }
    }

    /// How much it matters.
    #[must_use]
    pub const fn severity(&self) -> Severity {
        match self {
            Self::DiskBack(_)
            | Self::DiskUpToDate(_)
            | Self::DiskCleared(_)
            | Self::DiskLeaving(_)
            | Self::DiskStays(_)
            | Self::DiskRemoved(_)
            | Self::DiskAdded(_)
            | Self::SlabMoves { .. }
            | Self::CacheBack(_)
            | Self::Scanned => Severity::Information,
            Self::DiskLost(_)
            | Self::DiskErred(_)
            | Self::DiskElsewhere(_)
            | Self::DiskNeeded(_)
            | Self::DiskCannotLeave(_)
            | Self::DiskTimeout(_)
            | Self::DiskOutdated(_)
            | Self::DiskRetired { .. }
            | Self::BadCopy { .. }
            | Self::Healed { .. }
            | Self::Interrupted { .. }
            | Self::WithoutQuorum { .. }
            | Self::CacheGivenUp(_)
            | Self::HeatLost { .. }
            | Self::HeatNotCounted { .. }
            | Self::MetadataDamaged { .. }
            | Self::MetadataHealed { .. }
            | Self::ScannedInPart { .. }
            | Self::Accepted { .. } => Severity::Warning,
            Self::DiskFailing(_)
            | Self::MetadataLost { .. }
            | Self::Unrecoverable { .. }
            | Self::Unreadable { .. }
            | Self::Unverified { .. }
            | Self::FlushFailed
            | Self::FlushFailedOf(_)
            | Self::CacheAway(_)
            | Self::CacheClosed(_)
            | Self::Halted(_) => Severity::Error,
        }
    }

    /// What happened, in words, with the names of what it happened to.
    #[must_use]
    pub fn tell(&self, config: &Config) -> String {
        let disk = |nth: u16| match config.disks.get(usize::from(nth)) {
            Some(disk) => format!("disk {}", disk.name),
            None => format!("disk number {nth}"),
        };
        let vdisk = |nth: u16| match config.vdisks.get(usize::from(nth)) {
            Some(vdisk) => format!("virtual disk {}", vdisk.name),
            None => format!("virtual disk number {nth}"),
        };
        let extent = |extent: u32| {
            let own = config.vdisks.iter().find(|vdisk| {
                (vdisk.first_extent..vdisk.first_extent + vdisk.extents).contains(&extent)
            });
            let first = own.map_or(0, |vdisk| vdisk.first_extent);
            let at = u64::from(extent - first) * u64::from(config.extent_bytes);
            match own {
                Some(vdisk) => format!("virtual disk {} at {at}", vdisk.name),
                None => format!("extent {extent}"),
            }
        };
        match *self {
            Self::DiskLost(nth) => format!("{} is lost: the pool goes on without it", disk(nth)),
            Self::DiskErred(nth) => format!("{} answered a write or a flush with an error", disk(nth)),
            Self::DiskFailing(nth) => {
                format!("{} fails, and holds the last copy of something", disk(nth))
            }
            Self::DiskCleared(nth) => {
                format!("{}: failures and healed blocks before count no more, by an operator's word", disk(nth))
            }
            Self::DiskNeeded(nth) => {
                format!("{} stays: it holds the last copy of something", disk(nth))
            }
            Self::DiskTimeout(nth) => format!("{} did not answer in time", disk(nth)),
            Self::DiskOutdated(nth) => {
                format!("{} is an older copy of itself: nothing on it is taken for current", disk(nth))
            }
            Self::DiskElsewhere(nth) => format!(
                "{} is not what its path leads to: it was replaced or removed while it was open, and the next start takes back what is there",
                disk(nth)
            ),
            Self::DiskBack(nth) => format!("{} takes part again", disk(nth)),
            Self::DiskUpToDate(nth) => format!("{} is up to date", disk(nth)),
            Self::DiskRetired { disk: nth, waits: None } => {
                format!("{} was given up: what it held is rebuilt on others", disk(nth))
            }
            Self::DiskRetired { disk: nth, waits: Some(Wait::Room) } => format!(
                "{} was given up, and the others have no room for all that it held, of which there is a copy less until they do: add a \
                 disk of its kind (plumb pool add-disk), or connect it again",
                disk(nth)
            ),
            Self::DiskRetired { disk: nth, waits: Some(Wait::Disk) } => format!(
                "{} was given up, and nobody here has all that it held to rebuild it from: connect it again, or another one that \
                 has a copy",
                disk(nth)
            ),
            Self::DiskLeaving(nth) => format!("{} is to be removed: it is emptied", disk(nth)),
            Self::DiskStays(nth) => format!("{} stays", disk(nth)),
            Self::DiskCannotLeave(nth) => format!(
                "{} was to be removed and stays: the others have no room for what it holds, or nobody else has it",
                disk(nth)
            ),
            Self::DiskRemoved(nth) => format!("{} was removed", disk(nth)),
            Self::DiskAdded(nth) => format!("{} was added", disk(nth)),
            Self::SlabMoves { vdisk: of, from, to } => {
                format!("a slab of {} goes from {} to {}", vdisk(of), disk(from), disk(to))
            }
            Self::BadCopy { disk: nth, extent: of } => {
                format!("{}: a bad copy on {}", extent(of), disk(nth))
            }
            Self::Healed { extent: of, blocks } => {
                format!("{}: {blocks} blocks rewritten from a good copy", extent(of))
            }
            Self::Unrecoverable { extent: of, blocks } => {
                format!("{}: {blocks} blocks without a good copy", extent(of))
            }
            Self::Unreadable { extent: of, blocks } => {
                format!("{}: {blocks} blocks cannot be read while disks are away", extent(of))
            }
            Self::Unverified { extent: of, blocks } => {
                format!("{}: the checksums of {blocks} blocks are lost; reads of them fail", extent(of))
            }
            Self::Accepted { extent: of, blocks } => {
                format!("{}: {blocks} blocks without a checksum were accepted as they are", extent(of))
            }
            Self::Interrupted { extent: of } => {
                format!("{}: a block was taken for an interrupted write", extent(of))
            }
            Self::MetadataDamaged { disk: nth, what } => {
                format!("{}: a copy of the {what} was damaged; another one served", disk(nth))
            }
            Self::MetadataLost { what } => {
                format!(
                    "no disk has a page of the {what} whole: what it holds is in memory, and the next checkpoint writes it"
                )
            }
            Self::MetadataHealed { copies } => {
                format!("{copies} damaged copies of metadata were written anew")
            }
            Self::FlushFailed => {
                "the last copy of something could not be flushed: every flush fails until the pool is started again"
                    .to_owned()
            }
            Self::CacheClosed(nth) => {
                format!("{}: no copy of its write cache took a record: it is closed", vdisk(nth))
            }
            Self::CacheAway(nth) => {
                format!("{} is detached: no copy of its write cache's log is here", vdisk(nth))
            }
            Self::CacheBack(nth) => format!("{} serves again: its write cache is here", vdisk(nth)),
            Self::CacheGivenUp(nth) => format!(
                "{}: its write cache was given up by an operator's word: what only its log held is lost",
                vdisk(nth)
            ),
            Self::FlushFailedOf(nth) => format!(
                "{}: the last copy of something could not be flushed: every flush of it fails until the pool is started \
                 again; the others go on",
                vdisk(nth)
            ),
            Self::Scanned => "a scan has read every copy of everything".to_owned(),
            Self::ScannedInPart { extents: 0 } => {
                "a scan has read and verified what is here and up to date: other copies were not read".to_owned()
            }
            Self::ScannedInPart { extents } => format!(
                "a scan has read and verified what is here and up to date: blocks of {extents} extents cannot be read while \
                 disks are away"
            ),
            Self::WithoutQuorum { present, voters } => format!(
                "the pool was started with {present} of {voters} voting disks by an operator's word: what the others \
                 took alone is lost"
            ),
            Self::HeatLost { vdisk: of, pages: None } => {
                format!("{}: its heat map cannot be read: heat is counted anew", vdisk(of))
            }
            Self::HeatLost { vdisk: of, pages: Some(pages) } => {
                format!("{}: {pages} pages of its heat map are damaged: their heat is lost", vdisk(of))
            }
            Self::HeatNotCounted { vdisk: of, seconds } => format!(
                "{}: a program ended without a word: host I/O of up to {} is not in its heat map and reports",
                vdisk(of),
                minutes(seconds)
            ),
            Self::Halted(why) => format!("the pool stopped: {why}"),
        }
    }
}

/// Seconds in whole minutes, rounded up.
pub(crate) fn minutes(seconds: u64) -> String {
    match seconds.div_ceil(60) {
        0 | 1 => "1 minute".to_owned(),
        more => format!("{more} minutes"),
    }
}

/// Events that nobody has taken yet.
#[derive(Debug, Default)]
pub(crate) struct Events {
    waiting: VecDeque<Event>,
    /// How many found no room.
    pub(crate) dropped: u64,
    /// Copies of metadata that were found damaged.
    pub(crate) damaged: u64,
}

impl Events {
    /// Notes one; the same twice in a row is one.
    pub(crate) fn note(&mut self, event: Event) {
        if self.waiting.back() == Some(&event) {
            return;
        }
        if self.waiting.len() >= WAITING_MAX {
            self.dropped += 1;
            return;
        }
        self.waiting.push_back(event);
    }

    /// A copy of metadata is damaged.
    pub(crate) fn damaged(&mut self, disk: u16, what: &'static str) {
        self.damaged += 1;
        self.note(Event::MetadataDamaged { disk, what });
    }

    pub(crate) fn take(&mut self) -> Option<Event> {
        self.waiting.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_wait_until_they_are_taken_and_never_without_bound() {
        let mut events = Events::default();
        events.note(Event::DiskLost(1));
        events.note(Event::DiskLost(1));
        assert_eq!((events.take(), events.take()), (Some(Event::DiskLost(1)), None));
        for nth in 0..1000 {
            events.note(Event::DiskLost(nth));
        }
        assert_eq!(events.dropped, 1000 - 256);
        assert_eq!(events.take(), Some(Event::DiskLost(0)), "the first are the causes");
    }

    #[test]
    fn each_is_told_with_the_name_of_what_it_happened_to() {
        let config = Config::default();
        for (event, name, severity) in [
            (Event::DiskLost(3), "disk-lost", Severity::Warning),
            (Event::DiskBack(3), "disk-back", Severity::Information),
            (Event::DiskRetired { disk: 3, waits: None }, "disk-retired", Severity::Warning),
            (
                Event::DiskRetired { disk: 3, waits: Some(Wait::Room) },
                "disk-retired",
                Severity::Warning,
            ),
            (
                Event::DiskRetired { disk: 3, waits: Some(Wait::Disk) },
                "disk-retired",
                Severity::Warning,
            ),
            (Event::Unrecoverable { extent: 3, blocks: 1 }, "unrecoverable", Severity::Error),
            (Event::Unreadable { extent: 3, blocks: 1 }, "unreadable", Severity::Error),
            (Event::ScannedInPart { extents: 3 }, "scanned-in-part", Severity::Warning),
            (Event::Unverified { extent: 3, blocks: 1 }, "unverified", Severity::Error),
            (Event::Accepted { extent: 3, blocks: 1 }, "accepted-unverified", Severity::Warning),
            (Event::MetadataHealed { copies: 3 }, "metadata-healed", Severity::Warning),
            (Event::MetadataLost { what: "map 3" }, "metadata-lost", Severity::Error),
            (Event::HeatLost { vdisk: 3, pages: None }, "heat-lost", Severity::Warning),
            (Event::HeatLost { vdisk: 3, pages: Some(2) }, "heat-lost", Severity::Warning),
            (
                Event::HeatNotCounted { vdisk: 3, seconds: 61 },
                "heat-not-counted",
                Severity::Warning,
            ),
            (Event::Halted(Halt::Voters), "halted", Severity::Error),
        ] {
            assert_eq!((event.name(), event.severity()), (name, severity));
            let told = event.tell(&config);
            assert!(told.contains('3') || told.contains("too many disks"), "{told}");
        }
    }
}
