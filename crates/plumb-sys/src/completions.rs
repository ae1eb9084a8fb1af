//! Finished I/Os that wait to be popped, for performers whose kernel keeps no such list.

use plumb_units::convert::{index, to_u32};

/// More than the kernel moves in one call (MAX_RW_COUNT with 4 KiB pages).
const MOVED_MAX: u32 = 0x7fff_f000;

/// A finished I/O: which slot is idle again, and bytes moved or minus an errno.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finished {
    /// The slot.
    pub slot: u32,
    /// The kernel's own convention.
    pub result: i32,
}

/// Room for one completion per slot, in order of arrival.
#[derive(Debug)]
pub struct Completions {
    /// A power of two of entries.
    ring: Box<[Finished]>,
    /// That number minus 1.
    mask: u32,
    head: u32,
    tail: u32,
    /// Up to here the last look counted.
    counted: u32,
}

impl Completions {
    /// For `depth` slots.
    #[must_use]
    pub fn new(depth: u32) -> Self {
        let empty = Finished { slot: 0, result: 0 };
        let entries = index(depth).max(1).next_power_of_two();
        let mask = to_u32(entries - 1);
        Self { ring: vec![empty; entries].into(), mask, head: 0, tail: 0, counted: 0 }
    }

    /// Adds one. There is room: a slot has one I/O.
    #[inline(always)]
    pub fn push(&mut self, done: Finished) {
        let place = index(self.tail & self.mask);
        // SAFETY: the ring has mask + 1 entries for as long as it lives.
        *unsafe { self.ring.get_unchecked_mut(place) } = done;
        self.tail = self.tail.wrapping_add(1);
    }

    /// How many there are, popped ones excluded.
    #[inline(always)]
    #[must_use]
    pub fn waiting(&self) -> u32 {
        self.tail.wrapping_sub(self.head)
    }

    /// Counts all that arrived so far.
    #[inline(always)]
    pub fn look(&mut self) -> u32 {
        self.look_up_to(self.tail)
    }

    /// Counts those that arrived before [`Completions::mark`] gave `mark`.
    #[inline(always)]
    pub fn look_up_to(&mut self, mark: u32) -> u32 {
        self.counted = mark;
        mark.wrapping_sub(self.head)
    }

    /// The place after the newest.
    #[inline(always)]
    #[must_use]
    pub fn mark(&self) -> u32 {
        self.tail
    }

    /// The next one that was counted.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Finished> {
        if self.head == self.counted {
            return None;
        }
        let place = index(self.head & self.mask);
        // SAFETY: the ring has mask + 1 entries for as long as it lives.
        let done = *unsafe { self.ring.get_unchecked(place) };
        self.head = self.head.wrapping_add(1);
        Some(done)
    }
}

/// What the kernel would say for a transfer of `len` bytes that went well.
#[inline(always)]
#[must_use]
pub fn moved(len: u32) -> i32 {
    len.min(MOVED_MAX).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pop_yields_what_look_counted() {
        let mut queue = Completions::new(3);
        let done = |slot| Finished { slot, result: 1 };
        for round in 0..1000 {
            queue.push(done(round));
            assert_eq!(queue.pop(), None, "not counted yet");
            assert_eq!(queue.look(), 1);
            queue.push(done(round + 1));
            assert_eq!(queue.pop(), Some(done(round)));
            assert_eq!(queue.pop(), None, "arrived after the look");
            assert_eq!(queue.waiting(), 1);
            assert_eq!((queue.look(), queue.look()), (1, 1));
            assert_eq!(queue.pop(), Some(done(round + 1)));
        }
    }

    #[test]
    fn a_call_moves_less_than_2_gib() {
        assert_eq!(moved(4096), 4096);
        assert_eq!(moved(u32::MAX), 0x7fff_f000);
    }
}
