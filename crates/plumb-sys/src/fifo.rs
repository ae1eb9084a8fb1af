//! Slots in a line, first in, first out: a ring whose places need no bounds check.

use plumb_units::convert::{index, to_u32};

/// A line of slots with room for a fixed number.
#[derive(Debug)]
pub struct SlotFifo {
    /// A power of two of entries.
    slots: Box<[u32]>,
    /// That number minus 1.
    mask: u32,
    head: u32,
    tail: u32,
}

impl SlotFifo {
    /// Slots `0..count`, in order; there is room for `count`.
    #[must_use]
    pub fn full(count: u32) -> Self {
        let slots: Box<[u32]> = (0..count.max(1).next_power_of_two()).collect();
        let mask = to_u32(slots.len() - 1);
        Self { slots, mask, head: 0, tail: count }
    }

    /// How many stand in line.
    #[inline(always)]
    #[must_use]
    pub fn len(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Whether none does.
    #[inline(always)]
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.head == self.tail
    }

    /// Takes the first.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<u32> {
        if self.is_empty() {
            return None;
        }
        let place = index(self.head & self.mask);
        // SAFETY: there are mask + 1 places for as long as the line lives.
        let slot = *unsafe { self.slots.get_unchecked(place) };
        self.head = self.head.wrapping_add(1);
        Some(slot)
    }

    /// Puts one at the end. With more than there is room for, the line loses its oldest.
    #[inline(always)]
    pub fn push(&mut self, slot: u32) {
        let place = index(self.tail & self.mask);
        // SAFETY: there are mask + 1 places for as long as the line lives.
        *unsafe { self.slots.get_unchecked_mut(place) } = slot;
        self.tail = self.tail.wrapping_add(1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_come_out_in_the_order_in_which_they_went_in() {
        for count in [1, 2, 3, 5, 64] {
            let mut line = SlotFifo::full(count);
            let mut want: std::collections::VecDeque<u32> = (0..count).collect();
            for step in 0..1000_u32 {
                assert_eq!((line.len(), line.is_empty()), (to_u32(want.len()), want.is_empty()));
                if step % 3 != 0 {
                    assert_eq!(line.pop(), want.pop_front());
                } else if line.len() < count {
                    line.push(step);
                    want.push_back(step);
                }
            }
        }
    }
}
