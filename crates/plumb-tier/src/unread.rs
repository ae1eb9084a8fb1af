//! What of the data has no copy here that is up to date: it is lost, or a disk that is away has it.

use plumb_io::FlushQueue;

use crate::core::Core;
use crate::events::Event;
use crate::extents::UNMAPPED;

/// What of a virtual disk cannot be read as the disks are here now: whatever is mapped there, written or not.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Unreadable {
    /// Bytes.
    pub bytes: u64,
    /// First byte and length of the extents that they are in, those behind each other as one.
    pub ranges: Vec<(u64, u64)>,
}

impl<Q: FlushQueue> Core<Q> {
    /// Blocks were met of which no good copy is here, from `within` on, alike in where they lie: lost, unless a disk that is
    /// away has them.
    pub(crate) fn note_unread(&mut self, extent: u32, within: u32, blocks: u32) {
        if self.is_away(extent, within) {
            self.io.events.note(Event::Unreadable { extent, blocks });
        } else {
            self.note_lost(extent, blocks);
        }
    }

    /// Whether a disk that is not here has a copy of a block that is up to date.
    pub(crate) fn is_away(&self, extent: u32, within: u32) -> bool {
        let has = |disk: u16| {
            let nth = usize::from(disk);
            let members = &self.members;
            !members.online[nth] && !members.gone[nth] && !members.stale[nth].has(extent)
        };
        self.copies_at(extent, within * 4096).iter().any(|copy| has(copy.1))
    }

    /// What of a virtual disk has no copy here that is up to date.
    pub(crate) fn unreadable_of(&self, vdisk: usize) -> Unreadable {
        let config = &self.members.config;
        let own = &config.vdisks[vdisk];
        let (extent_bytes, step) = (config.extent_bytes, own.interleave.min(config.extent_bytes));
        let mut found = Unreadable::default();
        let mapped =
            (0..own.extents).filter(|nth| self.extents.place(own.first_extent + nth) != UNMAPPED);
        for nth in mapped {
            let extent = own.first_extent + nth;
            let lacks = |part: &u32| {
                let copies = self.copies_at(extent, part * step);
                !copies.iter().any(|copy| self.members.in_sync(copy.1, extent))
            };
            let parts = (0..extent_bytes / step).filter(lacks).count();
            if parts == 0 {
                continue;
            }
            found.bytes += u64::try_from(parts).unwrap_or(0) * u64::from(step);
            let (from, len) = (u64::from(nth) * u64::from(extent_bytes), u64::from(extent_bytes));
            match found.ranges.last_mut() {
                Some((first, before)) if *first + *before == from => *before += len,
                _ => found.ranges.push((from, len)),
            }
        }
        found
    }
}
