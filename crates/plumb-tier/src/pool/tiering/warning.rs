//! The early warning of a virtual disk: when its Performance tier will be full, as status and reports have it.

use plumb_io::FlushQueue;
use plumb_units::convert::index;

use super::figures::{note_sample, samples};
use super::{TieringStore, unix_seconds};
use crate::engine::Engine;
use crate::format::{Config, VirtualDisk};
use crate::optimizer::{Asked, ExpectedIops, Measured};
use crate::tier_report::{Filling, Sample, Warning};

impl TieringStore {
    /// That of a virtual disk with two tiers, by what was kept of it last; `None` while nothing was, or if that cannot be read.
    #[must_use]
    pub fn warning(&self, config: &Config, vdisk: &VirtualDisk) -> Option<Warning> {
        if !is_tiered(vdisk) {
            return None;
        }
        let found = self.filling(vdisk.id).ok()??;
        let measured = self.measured(vdisk.id).ok()?;
        let iops = expected(&measured, vdisk);
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
        let (used, brought) =
            (engine.mapped_bytes(nth)[0] / extent_bytes, engine.tiering(nth).brought);
        note_sample(&mut samples, Sample { at_s: unix_seconds(), used, brought });
        let found = Filling::of(&samples, engine.performance_slots(nth))?;
        let iops = expected(&engine.measured(nth), vdisk);
        Some(Warning::of(&vdisk.name, &found, extent_bytes, iops))
    }
}

/// I/Os that a write-back cache which is emptied has under way on each disk (WBC-3).
const DESTAGES: f64 = 8.0;

/// Random writes per second that its Capacity tier will take of those who have as much under way as they had lately.
fn expected(measured: &Measured, vdisk: &VirtualDisk) -> ExpectedIops {
    let least = if vdisk.cache.is_some() { DESTAGES } else { 0.0 };
    let asked = Asked { disks: vdisk.capacity_disks(), copies: vdisk.copies, least };
    ExpectedIops::of(&measured.capacity.lines, &measured.hosts, asked)
}

fn is_tiered(vdisk: &VirtualDisk) -> bool {
    !vdisk.is_removed() && vdisk.tiers.len() > 1
}
