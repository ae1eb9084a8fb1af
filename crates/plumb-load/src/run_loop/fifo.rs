//! The idle requests of a thread: first in, first out (spec 6.10).

use plumb_io::Slot;
use plumb_units::convert;

/// A ring of slots; holds every slot of the thread at most once.
#[derive(Debug)]
pub(super) struct Fifo {
    slots: Box<[u32]>,
    mask: u32,
    head: u32,
    tail: u32,
}

impl Fifo {
    /// Slots `0..count`, in order.
    pub(super) fn full(count: u32) -> Self {
        let capacity = count.max(1).next_power_of_two();
        Self { slots: (0..capacity).collect(), mask: capacity - 1, head: 0, tail: count }
    }

    #[inline(always)]
    pub(super) fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    #[inline(always)]
    pub(super) fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<Slot> {
        if self.is_empty() {
            return None;
        }
        let slot = self.slots[convert::index(self.head & self.mask)];
        self.head = self.head.wrapping_add(1);
        Some(Slot(slot))
    }

    #[inline(always)]
    pub(super) fn push(&mut self, slot: Slot) {
        self.slots[convert::index(self.tail & self.mask)] = slot.0;
        self.tail = self.tail.wrapping_add(1);
    }
}
