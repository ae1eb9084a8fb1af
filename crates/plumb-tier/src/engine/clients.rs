//! What whoever drives an engine may see of it, and the buffers of its clients.

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32};

use super::Engine;
use crate::extents::{SECOND_TIER, UNMAPPED};

impl<Q: FlushQueue> Engine<Q> {
    /// How many clients there are.
    #[must_use]
    pub fn clients(&self) -> u32 {
        to_u32(self.clients.len())
    }

    /// Bytes of a virtual disk that have a place, in each of its tiers.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn mapped_bytes(&self, vdisk: u32) -> [u64; 2] {
        let own = &self.config().vdisks[index(vdisk)];
        let range = index(own.first_extent)..index(own.first_extent + own.extents);
        let mut bytes = [0; 2];
        for extent in self.core.extents.list[range].iter().filter(|own| own.place != UNMAPPED) {
            let tier = usize::from(extent.place & SECOND_TIER != 0);
            bytes[tier] += u64::from(self.config().extent_bytes);
        }
        bytes
    }

    /// How many places on each disk are not up to date, by ordinal.
    #[must_use]
    pub fn stale_by_disk(&self) -> Vec<u32> {
        self.core.members.stale.iter().map(crate::extents::ExtentSet::len).collect()
    }

    /// Bytes of the places that are not up to date on disks that take part.
    #[must_use]
    pub fn stale_bytes(&self) -> u64 {
        u64::from(self.stale_places()) * u64::from(self.config().extent_bytes)
    }

    /// I/Os that devices have under way.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.core.io.in_flight()
    }

    /// What is in force on the queue beneath.
    #[must_use]
    pub fn facts(&self) -> plumb_io::QueueFacts {
        self.core.io.queue.facts()
    }

    /// The buffer of a client that has no request under way, with room for `len` bytes: a client that never
    /// asked for as much gets a larger one.
    ///
    /// # Panics
    /// When it has one.
    #[inline]
    pub fn roomy_buffer(&mut self, client: u32, len: usize) -> &mut [u8] {
        let client = &mut self.clients[index(client)];
        assert!(!client.busy, "the client's buffer is in use");
        if client.buffer.len() < len {
            client.buffer.resize(len, 0);
        }
        &mut client.buffer
    }

    /// Gives a client that has no request under way another buffer, and takes the one it has.
    ///
    /// # Panics
    /// When it has one.
    #[inline]
    pub fn swap_buffer(&mut self, client: u32, buffer: &mut Vec<u8>) {
        let client = &mut self.clients[index(client)];
        assert!(!client.busy, "the client's buffer is in use");
        std::mem::swap(&mut client.buffer, buffer);
    }
}
