//! Operations that do nothing, through a real ring: the issuer's cost and the ring's, without a device.

use plumb_sys::completions::moved;
use plumb_sys::ring::{Ring, RingSetup};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::{buffers, uring};
use crate::{Done, Errno, IoQueue, LaneIndex, Op, OpenQueueError, QueueFacts, QueueSpec, Slot};

/// A ring without a target. I/Os complete in the kernel, in full.
#[derive(Debug)]
pub struct NopQueue {
    ring: Ring,
    /// What each slot's I/O would move: an empty operation reports 0.
    lens: Box<[i32]>,
}

impl NopQueue {
    /// Makes a ring; files are not looked at.
    ///
    /// # Errors
    /// When there is no io_uring here, or memory is refused.
    pub fn open(spec: &QueueSpec) -> Result<Self, OpenQueueError> {
        let arena = buffers::arena(spec)?;
        let lens = vec![0; index(arena.depth())].into();
        // Nothing is deferred where everything completes at once: the flag only spares the kernel's lock on
        // completions, as peers have it.
        let setup = RingSetup { defer_taskrun: true, ..RingSetup::default() };
        let ring = Ring::open(arena, Vec::new(), setup);
        let ring = ring.map_err(|error| uring::unavailable("nop", error, spec.depth))?;
        Ok(Self { ring, lens })
    }
}

impl IoQueue for NopQueue {
    #[inline(always)]
    fn push(&mut self, op: Op) {
        self.ring.push_nop(&op.into());
        self.lens[index(op.slot.0)] = moved(op.len);
    }

    // In place, as on a real ring: a return behind the call is mispredicted where the kernel clears the stack of
    // return addresses.
    #[inline(always)]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.ring.submit_and_wait(wanted, timeout).map_err(Errno::from)
    }

    #[inline(always)]
    fn look(&mut self) -> u32 {
        self.ring.look()
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Done> {
        let done = Done::from(self.ring.pop()?);
        let result = if done.result == 0 { self.lens[index(done.slot.0)] } else { done.result };
        Some(Done { result, ..done })
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.ring.buffer_mut(slot.0, lane.0)
    }

    fn facts(&self) -> QueueFacts {
        QueueFacts { no_target: true, ..uring::facts("nop", &self.ring, &[]) }
    }
}
