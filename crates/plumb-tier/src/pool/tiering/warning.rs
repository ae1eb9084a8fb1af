//! The early warning of a virtual disk: when its Performance tier will be full, as status and reports have it.

use plumb_io::FlushQueue;
use plumb_units::convert::index;

use super::figures::{note_sample, samples};
use super::{TieringStore, unix_seconds};
use crate::engine::Engine;
use crate::format::{Config, VirtualDisk};
use crate::tier_report::{Filling, Warning, expected_iops};

impl TieringStore {
    /// That of a virtual disk with two tiers, by what was kept of it last; `None` while nothing was, or if that cannot be read.
    #[must_use]
    pub fn warning(&self, config: &Config, vdisk: &VirtualDisk) -> Option<Warning> {
        if !is_tiered(vdisk) {
            return None;
        }
        let found = self.filling(vdisk.id).ok()??;
        let measured = self.measured(vdisk.id).ok()?;
        let iops = expected_iops(&measured, vdisk.capacity_disks(), vdisk.copies);
        let told = Warning::of(&vdisk.name, &found, config.extent_bytes.into(), iops);
        Some(told.dated(unix_seconds().saturating_sub(found.at_s)))
    }

    /// The same by how full the tier is now.
    #[must_use]
    pub fn warning_now<Q: FlushQueue>(&self, engine: &Engine<Q>, nth: u32) -> Option<Warning> {
        let config = engine.config();
        let vdisk = config.vdisks.get(index(nth)).filter(|vdisk| is_tiered(vdisk))?;
        let extent_bytes: u64 = config.extent_bytes.into();
        let kept = self.figures(vdisk.id).ok().flatten();
        let mut samples = kept.as_ref().map(samples).unwrap_or_default();
        note_sample(&mut samples, (unix_seconds(), engine.mapped_bytes(nth)[0] / extent_bytes));
        let found = Filling::of(&samples, engine.performance_slots(nth))?;
        let measured = engine.measured(nth);
        let iops = expected_iops(&measured, vdisk.capacity_disks(), vdisk.copies);
        Some(Warning::of(&vdisk.name, &found, extent_bytes, iops))
    }
}

fn is_tiered(vdisk: &VirtualDisk) -> bool {
    !vdisk.is_removed() && vdisk.tiers.len() > 1
}
