//! A queue without a target that completes as a device does: nothing while the loop submits, and what is in flight when it
//! waits, in an order of its own.

use std::error::Error;

use plumb_io::{Done, Errno, IoQueue, LaneIndex, Op, QueueFacts, QueueSpec, Slot};
use plumb_load::rng::Rng;
use plumb_sys::arena::Arena;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

/// What the order is drawn from.
const SEED: u64 = 7;
/// Most I/Os in flight.
pub(crate) const DEPTH_MAX: u32 = 256;
/// Those in flight and those not yet taken; a power of two, so that places need no check of bounds.
const PLACES: usize = 2 * DEPTH_MAX as usize;

/// Completes what is in flight, shuffled, when it is waited for.
///
/// The order is drawn ahead and I/Os are shuffled as they come (Fisher and Yates, inside out), which takes three or four
/// instructions of each.
pub(crate) struct ShuffledQueue {
    arena: Arena,
    /// With which of those before it in its round the n-th I/O changes places, itself included.
    swaps: Box<[u32; PLACES]>,
    done: Box<[Done; PLACES]>,
    /// Put down, submitted or not.
    filled: u32,
    /// Of these, so many may be seen; behind them a round begins.
    ripe: u32,
    /// Of these, so many were taken.
    taken: u32,
    /// Of all offsets: a device would need them.
    offsets: u64,
}

impl ShuffledQueue {
    /// Allocates the buffers; files are not looked at.
    ///
    /// # Errors
    /// When memory is refused, or the depth is above [`DEPTH_MAX`].
    pub(crate) fn open(spec: &QueueSpec) -> Result<Self, Box<dyn Error>> {
        if spec.depth > DEPTH_MAX {
            return Err(format!("{} in flight, and {DEPTH_MAX} are the most", spec.depth).into());
        }
        let arena = Arena::new(spec.depth, &spec.regions, &spec.sources, spec.placement);
        let arena = arena.map_err(|error| Errno::from(error.errno))?;
        let mut rng = Rng::new(SEED);
        let mut swaps = Box::new([0; PLACES]);
        for (nth, swap) in swaps.iter_mut().enumerate() {
            *swap = rng.next32() % (to_u32(nth) + 1);
        }
        let done = Box::new([Done { slot: Slot(0), result: 0 }; PLACES]);
        Ok(Self { arena, swaps, done, filled: 0, ripe: 0, taken: 0, offsets: 0 })
    }
}

impl IoQueue for ShuffledQueue {
    #[inline(always)]
    fn push(&mut self, op: Op) {
        self.arena.check(&op.into());
        self.arena.begin(op.slot.0);
        self.offsets ^= op.offset;
        let swap = self.swaps[index(self.filled.wrapping_sub(self.ripe)) % PLACES];
        let other = index(self.ripe.wrapping_add(swap)) % PLACES;
        self.done[index(self.filled) % PLACES] = self.done[other];
        self.done[other] = Done { slot: op.slot, result: op.len.cast_signed() };
        self.filled = self.filled.wrapping_add(1);
    }

    #[inline(always)]
    fn submit_and_wait(&mut self, wanted: u32, _timeout: Nanos) -> Result<(), Errno> {
        std::hint::black_box(self.offsets);
        if wanted > 0 {
            self.ripe = self.filled;
        }
        Ok(())
    }

    #[inline(always)]
    fn look(&mut self) -> u32 {
        self.ripe.wrapping_sub(self.taken)
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Done> {
        if self.taken == self.ripe {
            return None;
        }
        let done = self.done[index(self.taken) % PLACES];
        self.taken = self.taken.wrapping_add(1);
        self.arena.end(done.slot.0);
        Some(done)
    }

    #[inline(always)]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.arena.buffer_mut(slot.0, lane.0)
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts { engine: "shuffled".to_owned(), no_target: true, ..QueueFacts::default() }
    }
}

#[cfg(test)]
mod tests {
    use plumb_io::{FileIndex, LaneSpec, Memory, OpKind, RegionSpec};

    use super::*;

    #[test]
    fn all_complete_once_and_not_in_order() {
        let lanes = vec![LaneSpec { first_slot: 0, slots: 32, bytes: 4096 }];
        let regions = vec![RegionSpec { lanes }];
        let spec = QueueSpec { depth: 32, regions, ..QueueSpec::default() };
        let mut queue = ShuffledQueue::open(&spec).expect("memory");
        let op = |slot| Op {
            kind: OpKind::Read,
            file: FileIndex(0),
            slot: Slot(slot),
            len: 4096,
            offset: 0,
            memory: Memory::Lane(LaneIndex(0)),
        };
        // More rounds than there are places, whole ones and parts.
        for round in 0..100 {
            let ios = [32, 1, 7][round % 3];
            (0..ios).for_each(|slot| queue.push(op(slot)));
            queue.submit_and_wait(0, Nanos::ZERO).expect("it cannot fail");
            assert_eq!(queue.look(), 0, "nobody waits");
            queue.submit_and_wait(1, Nanos::NEVER).expect("it cannot fail");
            assert_eq!(queue.look(), ios);
            let slots: Vec<u32> =
                std::iter::from_fn(|| queue.pop()).map(|done| done.slot.0).collect();
            let mut sorted = slots.clone();
            sorted.sort_unstable();
            assert!(sorted.iter().copied().eq(0..ios), "{slots:?}");
            assert!(ios < 32 || slots != sorted, "in order");
        }
        let deep = QueueSpec { depth: DEPTH_MAX + 1, ..QueueSpec::default() };
        assert!(ShuffledQueue::open(&deep).is_err());
    }
}
