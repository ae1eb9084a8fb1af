//! A place of a row that is on its way from one working disk to another, as the configuration names it.

use plumb_units::convert::index;

use super::bytes::{Reader, TEXT_MAX, Writer};
use super::config::{Config, DiskState, Row};

/// Which slab of a row, and where it comes from; where it goes is what the row says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moving {
    /// The virtual disk, in the configuration's order.
    pub vdisk: u16,
    /// Its tier.
    pub tier: u8,
    /// The tier's row.
    pub row: u32,
    /// The row's slab.
    pub nth: u16,
    /// Disk and slab that still hold the extents that were not moved yet.
    pub from: (u16, u32),
}

impl Moving {
    pub(crate) fn encode(&self, out: &mut Writer) {
        out.u16(self.vdisk);
        out.u8(self.tier);
        out.u32(self.row);
        out.u16(self.nth);
        out.u16(self.from.0);
        out.u32(self.from.1);
    }

    pub(crate) fn decode(from: &mut Reader) -> Option<Self> {
        Some(Self {
            vdisk: from.u16()?,
            tier: from.u8()?,
            row: from.u32()?,
            nth: from.u16()?,
            from: (from.u16()?, from.u32()?),
        })
    }
}

impl Config {
    /// Whether a place that moves is one that there is, and comes from none of its row's disks.
    pub(crate) fn can_move(&self, moving: &Moving) -> bool {
        usize::from(moving.from.0) < self.disks.len()
            && self.row_of(moving).is_some_and(|row| {
                usize::from(moving.nth) < row.slabs.len()
                    && row.slabs.iter().all(|slab| slab.0 != moving.from.0)
            })
    }

    fn row_of(&self, moving: &Moving) -> Option<&Row> {
        let tiers = &self.vdisks.get(usize::from(moving.vdisk))?.tiers;
        tiers.get(usize::from(moving.tier))?.rows.get(index(moving.row))
    }

    /// Disk and slab that what moves goes to.
    pub(crate) fn moving_to(&self) -> Option<(u16, u32)> {
        let moving = self.moving.as_ref()?;
        self.row_of(moving)?.slabs.get(usize::from(moving.nth)).copied()
    }

    /// Disks that the places of a row lie on, or lay on until all of it has moved: of a virtual disk, a tier and a row.
    pub(crate) fn disks_of_row(&self, (vdisk, tier, row): (usize, usize, usize)) -> Vec<u16> {
        let slabs = &self.vdisks[vdisk].tiers[tier].rows[row].slabs;
        let is_of_row = |moving: &Moving| {
            let tier = tier == usize::from(moving.tier);
            vdisk == usize::from(moving.vdisk) && tier && row == index(moving.row)
        };
        let own = self.moving.filter(is_of_row);
        slabs.iter().map(|slab| slab.0).chain(own.map(|moving| moving.from.0)).collect()
    }

    /// Slabs of a disk that hold something.
    pub(crate) fn used_slabs(&self, disk: u16) -> Vec<u32> {
        self.taken_slabs().filter(|slab| slab.0 == disk).map(|slab| slab.1).collect()
    }

    pub(crate) fn is_retired(&self, disk: u16) -> bool {
        self.disks[usize::from(disk)].state == DiskState::Retired
    }

    /// Whether a disk that was given up still holds something that belongs elsewhere.
    #[must_use]
    pub fn holds_retired(&self) -> bool {
        self.taken_slabs().any(|slab| self.is_retired(slab.0))
    }

    /// Whether a disk that is to be removed still holds something.
    #[must_use]
    pub fn holds_leaving(&self) -> bool {
        self.taken_slabs().any(|slab| self.disks[usize::from(slab.0)].leaving)
    }

    /// Whether a disk left for good: nothing of the pool is on it, and it never comes back as a member.
    #[must_use]
    pub fn is_gone(&self, disk: u16) -> bool {
        self.disks.get(usize::from(disk)).is_some_and(|own| {
            own.leaving
                && own.state == DiskState::Retired
                && self.taken_slabs().all(|slab| slab.0 != disk)
        })
    }

    /// The disk that has this name, of those that have not left.
    #[must_use]
    pub fn disk_named(&self, name: &str) -> Option<u16> {
        let mut disks = (0_u16..).zip(&self.disks);
        disks.find(|(nth, disk)| disk.name == name && !self.is_gone(*nth)).map(|(nth, _)| nth)
    }

    /// Disks that were in the place, and had the name, of this one before.
    pub fn formers_of(&self, disk: u16) -> impl Iterator<Item = u16> {
        let name = &self.disks[usize::from(disk)].name;
        let is_it = move |nth: &u16| self.disk_named(&format!("{name}#{nth}")) == Some(*nth);
        (0_u16..).take(self.disks.len()).filter(is_it)
    }

    /// What a disk is called once another one has come to its place, and its name: that, with its number behind it.
    #[must_use]
    pub fn former_name(&self, disk: u16) -> String {
        let mut name = self.disks[usize::from(disk)].name.clone();
        if name.len() > TEXT_MAX - 8 {
            "disk".clone_into(&mut name);
        }
        loop {
            name = format!("{name}#{disk}");
            if self.disk_named(&name).is_none() {
                return name;
            }
        }
    }
}
