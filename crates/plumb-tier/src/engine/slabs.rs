//! Slabs of virtual disks, by what lies in them.

use std::collections::BTreeSet;

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u64};

use super::Engine;
use crate::extents::{UNMAPPED, locate, row_of};
use crate::format::DiskState;

/// Places that are not up to date, on disks that take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Stale {
    /// Bytes of extents in them.
    pub(super) bytes: u64,
    /// Slabs that they lie in.
    pub(super) slabs: u64,
}

impl<Q: FlushQueue> Engine<Q> {
    /// Tier and row of an extent that has a place.
    fn row(&self, vdisk: u32, extent: u32) -> Option<(usize, usize)> {
        let config = &self.core.members.config;
        let (own, geometry) = (&config.vdisks[index(vdisk)], &self.core.members.geometry);
        let place = self.core.extents.place(extent);
        (place != UNMAPPED).then(|| row_of(own, geometry, config.extent_bytes, place))
    }

    /// What of a virtual disk is not up to date.
    pub(super) fn stale_places_of(&self, vdisk: u32) -> Stale {
        let own = &self.core.members.config.vdisks[index(vdisk)];
        let range = own.first_extent..own.first_extent + own.extents;
        let mut found = Stale::default();
        for disk in self.core.members.online() {
            let mut rows = BTreeSet::new();
            let stale = &self.core.members.stale[usize::from(disk)];
            for extent in stale.iter().filter(|extent| range.contains(extent)) {
                let bytes = self.core.share_on(disk, extent);
                found.bytes += bytes;
                rows.extend(self.row(vdisk, extent).filter(|_| bytes > 0));
            }
            let slabs = rows.into_iter().flat_map(|(tier, row)| &own.tiers[tier].rows[row].slabs);
            found.slabs += to_u64(slabs.filter(|slab| slab.0 == disk).count());
        }
        found
    }

    /// Checks what is told of stale places, block by block.
    ///
    /// # Errors
    /// What it should be.
    pub(crate) fn stale_is_right(&self, vdisk: u32) -> Result<(), String> {
        let core = &self.core;
        let (config, geometry) = (&core.members.config, &core.members.geometry);
        let own = &config.vdisks[index(vdisk)];
        let (mut bytes, mut slabs) = (0, BTreeSet::new());
        for extent in own.first_extent..own.first_extent + own.extents {
            let place = core.extents.place(extent);
            if place == UNMAPPED {
                continue;
            }
            for block in 0..core.extents.blocks {
                let at = locate(own, geometry, config.extent_bytes, place, block * 4096);
                let behind = |disk: u16| {
                    let stale = &core.members.stale[usize::from(disk)];
                    core.members.is_online(disk) && stale.has(extent)
                };
                for (_, disk, offset) in at.iter().filter(|copy| behind(copy.1)) {
                    bytes += 4096;
                    slabs.insert((disk, (offset - geometry.slab(0)) / geometry.envelope_bytes()));
                }
            }
        }
        let (found, wanted) = (self.stale_places_of(vdisk), (bytes, to_u64(slabs.len())));
        match (found.bytes, found.slabs) == wanted {
            true => Ok(()),
            false => Err(format!("stale are {found:?}, not {wanted:?}")),
        }
    }

    /// Slabs of a virtual disk in which extents have places, on disks that take part and stay.
    pub(super) fn active_slabs(&self, vdisk: u32) -> u64 {
        let config = &self.core.members.config;
        let own = &config.vdisks[index(vdisk)];
        let mut used: Vec<Vec<bool>> =
            own.tiers.iter().map(|tier| vec![false; tier.rows.len()]).collect();
        for extent in own.first_extent..own.first_extent + own.extents {
            if let Some((tier, row)) = self.row(vdisk, extent) {
                used[tier][row] = true;
            }
        }
        let rows = own.tiers.iter().zip(&used).flat_map(|(tier, used)| tier.rows.iter().zip(used));
        let slabs = rows.filter(|(_, used)| **used).flat_map(|(row, _)| &row.slabs);
        let stays = |disk: u16| {
            let disk = &config.disks[usize::from(disk)];
            disk.state == DiskState::Online && !disk.leaving
        };
        to_u64(slabs.filter(|(disk, _)| stays(*disk)).count())
    }
}
