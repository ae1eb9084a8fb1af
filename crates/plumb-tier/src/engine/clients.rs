//! What whoever drives an engine may see of it, and the buffers of its clients.

use plumb_io::{Bell, FlushQueue, Op, SlotMemory};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

use super::{ClientMemory, Engine, Request};
use crate::events::Event;
use crate::extents::SECOND_TIER;
use crate::unread::Unreadable;

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
        let range = own.first_extent..own.first_extent + own.extents;
        let mut bytes = [0; 2];
        for (_, place) in self.core.extents.list.mapped_in(range) {
            let tier = usize::from(place & SECOND_TIER != 0);
            bytes[tier] += u64::from(self.config().extent_bytes);
        }
        bytes
    }

    /// At most so many extents are open at a time, 2 at least: 262,144 unless set (section 4). A write to one more waits until
    /// those that were written longest ago are closed.
    pub fn set_open_limit(&mut self, extents: u32) {
        self.core.open_limit = index(extents.max(2));
    }

    /// An extent is closed after so long without a write, and five rounds: 5 s unless set (section 4).
    pub fn set_close_after(&mut self, time: Nanos) {
        self.round.close_after = time;
    }

    /// Extents that are open: after an unclean stop they are examined.
    #[must_use]
    pub fn open_extents(&self) -> u32 {
        to_u32(self.core.open_list.len())
    }

    /// Whether a virtual disk serves nothing because no copy of its write cache's log is here.
    #[must_use]
    pub fn is_detached(&self, vdisk: u32) -> bool {
        self.core.is_detached(index(vdisk))
    }

    /// How many places on each disk are not up to date, by ordinal.
    #[must_use]
    pub fn stale_by_disk(&self) -> Vec<u32> {
        let disks = (0..).zip(&self.core.members.stale);
        disks.map(|(disk, stale)| stale.len() + self.core.vacated_on(disk, None)).collect()
    }

    /// Places of a virtual disk's extents that are not up to date, on disks that take part.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn stale_of(&self, vdisk: u32) -> u32 {
        let own = &self.config().vdisks[index(vdisk)];
        let range = own.first_extent..own.first_extent + own.extents;
        let members = &self.core.members;
        let of = |disk: u16| {
            let stale = &members.stale[usize::from(disk)];
            let places = stale.iter().filter(|extent| range.contains(extent)).count();
            to_u32(places) + self.core.vacated_on(disk, Some(index(vdisk)))
        };
        members.online().into_iter().map(of).sum()
    }

    /// First byte and length of the extents of a virtual disk in which blocks without a good copy were met since the start, or since
    /// the last scan began, those behind each other as one.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn lost_of(&self, vdisk: u32) -> Vec<(u64, u64)> {
        let config = self.config();
        let own = &config.vdisks[index(vdisk)];
        let range = own.first_extent..own.first_extent + own.extents;
        let len = u64::from(config.extent_bytes);
        let mut found: Vec<(u64, u64)> = Vec::new();
        for extent in self.core.lost_extents.iter().filter(|extent| range.contains(extent)) {
            let from = u64::from(extent - own.first_extent) * len;
            match found.last_mut().filter(|last| last.0 + last.1 == from) {
                Some(last) => last.1 += len,
                None => found.push((from, len)),
            }
        }
        found
    }

    /// What of a virtual disk cannot be read now, for no copy of it that is up to date is here.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn unreadable_of(&self, vdisk: u32) -> Unreadable {
        self.core.unreadable_of(index(vdisk))
    }

    /// Virtual disks of which something cannot be read now, for disks are away, with the bytes.
    #[must_use]
    pub fn unreadable(&self) -> Vec<(String, u64)> {
        let vdisks = self.config().vdisks.iter().enumerate();
        let there = vdisks.filter(|(_, own)| !own.is_removed());
        let bytes = there.map(|(nth, own)| (own.name.clone(), self.core.unreadable_of(nth).bytes));
        bytes.filter(|own| own.1 > 0).collect()
    }

    /// The next event that nobody has taken yet. More than some hundred that wait are counted, not kept.
    pub fn next_event(&mut self) -> Option<Event> {
        self.core.io.events.take()
    }

    /// How many events found no room since the start.
    #[must_use]
    pub fn events_dropped(&self) -> u64 {
        self.core.io.events.dropped
    }

    /// I/Os that devices have under way.
    #[must_use]
    pub fn in_flight(&self) -> u32 {
        self.core.io.in_flight()
    }

    /// Whether work is under way that no client asked for: a destage, a scan, places that are brought up to
    /// date, or a step of such work for which all else waits.
    #[must_use]
    pub fn works_in_background(&self) -> bool {
        let destages = self.caches.iter().flatten().any(|cache| cache.destaging > 0);
        let stands = self.frozen && self.trouble.is_empty();
        let moves = !self.moves.is_idle();
        destages || stands || moves || !self.jobs.is_empty() || self.stale_disk().is_some()
    }

    /// What ends a wait of [`Engine::poll`] from another thread, if the queue beneath has it.
    #[must_use]
    pub fn bell(&self) -> Option<Bell> {
        self.core.io.queue.bell()
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
        assert!(!self.clients[index(client)].busy, "the client's buffer is in use");
        let buffer = self.memory.own_mut(client);
        if buffer.len() < len {
            buffer.resize(len, 0);
        }
        buffer
    }

    /// Gives a client that has no request under way another buffer, and takes the one it has.
    ///
    /// # Panics
    /// When it has one.
    #[inline]
    pub fn swap_buffer(&mut self, client: u32, buffer: &mut Vec<u8>) {
        assert!(!self.clients[index(client)].busy, "the client's buffer is in use");
        std::mem::swap(self.memory.own_mut(client), buffer);
    }

    /// From now on client n is slot n of a queue with that memory; the clients' own buffers, for
    /// [`Engine::leave_slots`].
    pub(crate) fn use_slots(&mut self, memory: SlotMemory) -> ClientMemory {
        std::mem::replace(&mut self.memory, ClientMemory::of_slots(memory))
    }

    /// Clients have buffers of their own again.
    pub(crate) fn leave_slots(&mut self, own: ClientMemory) {
        self.memory = own;
    }

    /// The memory of the queue whose slots the clients are.
    ///
    /// # Panics
    /// When they are none.
    #[inline]
    pub(crate) fn slots_mut(&mut self) -> &mut SlotMemory {
        match &mut self.memory {
            ClientMemory::Slots { memory, .. } => memory,
            ClientMemory::Own { .. } => panic!("the clients are no slots of a queue"),
        }
    }

    /// The same, to look at.
    ///
    /// # Panics
    /// When they are none.
    #[inline]
    pub(crate) fn slots(&self) -> &SlotMemory {
        match &self.memory {
            ClientMemory::Slots { memory, .. } => memory,
            ClientMemory::Own { .. } => panic!("the clients are no slots of a queue"),
        }
    }

    /// Hands in an I/O of a slot that is in flight, as that request.
    #[inline]
    pub(crate) fn submit_op(&mut self, op: Op, request: Request) {
        if let ClientMemory::Slots { ops, .. } = &mut self.memory {
            ops[index(op.slot.0)] = op;
        }
        self.submit(op.slot.0, request);
    }
}
