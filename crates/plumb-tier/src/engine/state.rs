//! What an engine says of itself.

use plumb_io::FlushQueue;
use plumb_units::convert::index;

use super::{Counters, Engine, Halt};
use crate::format::{Config, Geometry};

impl<Q: FlushQueue> Engine<Q> {
    /// The configuration in force.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.core.members.config
    }

    /// Sizes of the areas of each disk.
    pub(crate) fn geometry(&self) -> &Geometry {
        &self.core.members.geometry
    }

    /// What happened so far.
    #[must_use]
    pub fn counters(&self) -> Counters {
        Counters { metadata_damaged: self.core.io.events.damaged, ..self.core.counters }
    }

    /// Whether every FLUSH fails, of some virtual disks or of all: what a last copy was given could not be flushed (C10).
    #[must_use]
    pub fn fails_flushes(&self) -> bool {
        self.core.flush_broken || self.core.unflushable.contains(&true)
    }

    /// Why nothing is acknowledged any more, if so.
    #[must_use]
    pub fn halted(&self) -> Option<Halt> {
        self.halted
    }

    /// Ordinals of disks that are here and that the configuration calls missing: [`Engine::attach`]
    /// brings them back.
    #[must_use]
    pub fn returning(&self) -> &[u16] {
        &self.returning
    }

    /// How many places of extents on disks that take part are not up to date, or would not be after a crash.
    #[must_use]
    pub fn stale_places(&self) -> u32 {
        let members = &self.core.members;
        let stale =
            |disk: u16| members.stale[usize::from(disk)].len() + self.core.vacated_on(disk, None);
        members.each_online().map(stale).sum()
    }

    /// Bytes of a virtual disk.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn size(&self, vdisk: u32) -> u64 {
        let config = self.config();
        if config.vdisks[index(vdisk)].is_removed() {
            return 0;
        }
        u64::from(config.vdisks[index(vdisk)].extents) * u64::from(config.extent_bytes)
    }
}
