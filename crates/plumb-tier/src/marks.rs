//! Which places are stale, by what the journal says alone: for whoever tells of a pool that it does not start (HLT-1). A start
//! knows more, the map beside it, and can leave out marks of disks that are away and hold the last copy; never one
//! that is told here of less.

use plumb_units::convert::to_u32;

use crate::extents::{ExtentSet, of_word};
use crate::format::frame::Record;
use crate::format::{Config, VirtualDisk};
use crate::mutation::{Mutation, active};

/// What records say of stale places, so far.
#[derive(Debug)]
pub(crate) struct Marks {
    /// By ordinal.
    stale: Vec<ExtentSet>,
    open: ExtentSet,
    lost: Vec<bool>,
}

impl Marks {
    /// Of a pool with so many disks, before the first record.
    pub(crate) fn new(disks: usize) -> Self {
        Self {
            stale: vec![ExtentSet::default(); disks],
            open: ExtentSet::default(),
            lost: vec![false; disks],
        }
    }

    /// Applies a record, as a start does. What cannot be is left out.
    pub(crate) fn replay(&mut self, config: &Config, record: Record) {
        let known = |extent: u32| extent < config.extents();
        match record {
            Record::MapSet { extent, .. } | Record::Open { extent } if known(extent) => {
                let is_mapped = matches!(record, Record::MapSet { .. });
                if is_mapped && !active(Mutation::UnmappedStayStale) {
                    self.forget(extent);
                }
                self.open.insert(extent);
                self.mark_missing(config, extent);
            }
            Record::Moved { extent, .. } => self.forget(extent),
            Record::MapFree { extent } => {
                self.open.remove(extent);
                self.forget(extent);
            }
            Record::Close { extent } => self.open.remove(extent),
            Record::DiskLost { disk } => {
                if let Some(lost) = self.lost.get_mut(usize::from(disk)) {
                    *lost = true;
                    self.mark_open(config);
                }
            }
            Record::DiskBack { disk } => {
                if let Some(lost) = self.lost.get_mut(usize::from(disk)) {
                    *lost = false;
                    self.mark_open(config);
                }
            }
            Record::AllStale { disk } => {
                if let Some(stale) = self.stale.get_mut(usize::from(disk)) {
                    (0..config.extents()).for_each(|extent| stale.insert(extent));
                }
            }
            Record::StaleSet { disk, extent } | Record::PlaceKept { disk, extent }
                if known(extent) =>
            {
                if let Some(stale) = self.stale.get_mut(usize::from(disk)) {
                    stale.insert(extent);
                }
            }
            Record::StaleWord { disk, word, bits } => {
                if let Some(stale) = self.stale.get_mut(usize::from(disk)) {
                    of_word(word, bits).filter(|one| known(*one)).for_each(|one| stale.insert(one));
                }
            }
            Record::StaleClear { disk, extent } => {
                if let Some(stale) = self.stale.get_mut(usize::from(disk)) {
                    stale.remove(extent);
                }
            }
            _ => {}
        }
    }

    /// Places of a virtual disk's extents on a disk that are stale.
    pub(crate) fn of(&self, vdisk: &VirtualDisk, disk: u16) -> u32 {
        let Some(stale) = self.stale.get(usize::from(disk)).filter(|stale| stale.len() > 0) else {
            return 0;
        };
        let slabs = vdisk.tiers.iter().flat_map(|tier| &tier.rows).flat_map(|row| &row.slabs);
        // Marks are set on every disk that is away, also where nothing of the extent lies.
        if !slabs.into_iter().any(|slab| slab.0 == disk) {
            return 0;
        }
        let range = vdisk.first_extent..vdisk.first_extent.saturating_add(vdisk.extents);
        to_u32(stale.iter().filter(|extent| range.contains(extent)).count())
    }

    fn forget(&mut self, extent: u32) {
        self.stale.iter_mut().for_each(|stale| stale.remove(extent));
    }

    /// What is open misses writes on disks that are away.
    fn mark_open(&mut self, config: &Config) {
        if !self.lost.contains(&true) {
            return;
        }
        let open: Vec<u32> = self.open.iter().collect();
        open.into_iter().for_each(|extent| self.mark_missing(config, extent));
    }

    fn mark_missing(&mut self, config: &Config, extent: u32) {
        if !self.lost.contains(&true) || !has_copies(config, extent) {
            return;
        }
        for (stale, _) in self.stale.iter_mut().zip(&self.lost).filter(|one| *one.1) {
            stale.insert(extent);
        }
    }
}

/// Whether an extent has several copies: of one that is alone a disk misses nothing while it is away.
fn has_copies(config: &Config, extent: u32) -> bool {
    let holds = |vdisk: &&VirtualDisk| {
        (vdisk.first_extent..vdisk.first_extent.saturating_add(vdisk.extents)).contains(&extent)
    };
    config.vdisks.iter().find(holds).is_none_or(|vdisk| vdisk.copies > 1)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use crate::format::{MediaType, Row, Tier};
    use crate::members::Members;

    /// Asserts that whoever reads only the journal is told of every stale place that a start finds: called by every start of
    /// every test.
    pub(crate) fn tell_of_all(members: &Members, records: impl Iterator<Item = Record>) {
        let mut marks = Marks::new(members.config.disks.len());
        records.for_each(|record| marks.replay(&members.config, record));
        for (disk, stale) in members.stale.iter().enumerate() {
            let untold: Vec<u32> =
                stale.iter().filter(|extent| !marks.stale[disk].has(*extent)).collect();
            assert!(untold.is_empty(), "stale on disk {disk}, and not told: {untold:?}");
        }
    }

    /// A mirror of 8 extents on disks 0 and 1, and a simple one of 8 on disk 0; disk 2 holds nothing.
    fn config() -> Config {
        let vdisk = |id: u128, copies: u8, slabs: Vec<(u16, u32)>| VirtualDisk {
            id,
            first_extent: 8 * (u32::try_from(id).expect("small") - 1),
            extents: 8,
            name: format!("v{id}"),
            copies,
            columns: 1,
            interleave: 64 << 10,
            tiers: vec![Tier { media: MediaType::Ssd, rows: vec![Row { slabs }] }],
            cache: None,
        };
        let vdisks = vec![vdisk(1, 2, vec![(0, 1), (1, 1)]), vdisk(2, 1, vec![(0, 2)])];
        Config { vdisks, ..Config::default() }
    }

    fn after(records: &[Record]) -> [u32; 3] {
        let config = config();
        let mut marks = Marks::new(3);
        records.iter().for_each(|record| marks.replay(&config, *record));
        assert!((0..3).all(|disk| marks.of(&config.vdisks[1], disk) == 0), "it has one copy");
        [0, 1, 2].map(|disk| marks.of(&config.vdisks[0], disk))
    }

    #[test]
    fn what_opens_while_a_disk_is_away_is_stale_on_it_until_it_is_cleared() {
        let open = |extent| Record::Open { extent };
        let clear = |extent| Record::StaleClear { disk: 1, extent };
        let (lost, back) = (Record::DiskLost { disk: 1 }, Record::DiskBack { disk: 1 });
        assert_eq!(after(&[open(1), Record::Close { extent: 1 }, lost]), [0, 0, 0]);
        // Open when it is lost, opened later, and mapped later.
        let while_away = [open(1), lost, open(2), Record::MapSet { extent: 3, place: 3 }, open(9)];
        assert_eq!(after(&while_away), [0, 3, 0]);
        let returned = [&while_away[..], &[back, open(4)]].concat();
        assert_eq!(after(&returned), [0, 3, 0], "it takes part in what opens from now on");
        let cleared = |extents: &[u32]| {
            let clears: Vec<Record> = extents.iter().map(|extent| clear(*extent)).collect();
            after(&[&returned[..], &clears].concat())
        };
        assert_eq!(cleared(&[1, 3]), [0, 1, 0]);
        assert_eq!(cleared(&[1, 2, 3]), [0, 0, 0]);
        let gone = [Record::MapFree { extent: 2 }, Record::Moved { extent: 3, place: 9 }];
        assert_eq!(after(&[&returned[..], &gone].concat()), [0, 1, 0]);
    }

    #[test]
    fn marks_of_a_checkpoint_count_where_the_virtual_disk_lies() {
        let set = |disk, extent| Record::StaleSet { disk, extent };
        assert_eq!(after(&[set(0, 3), set(0, 4), set(2, 3), set(1, 15), set(1, 99)]), [2, 0, 0]);
        assert_eq!(after(&[Record::PlaceKept { disk: 1, extent: 7 }]), [0, 1, 0]);
        assert_eq!(after(&[Record::AllStale { disk: 1 }]), [0, 8, 0]);
        // Of disks that there are not, and extents beyond the last: a damaged record.
        let none = [set(9, 1), Record::AllStale { disk: 9 }, Record::DiskLost { disk: 9 }];
        assert_eq!(after(&none), [0, 0, 0]);
        assert_eq!(after(&[Record::Open { extent: u32::MAX }, set(0, u32::MAX)]), [0, 0, 0]);
    }
}
