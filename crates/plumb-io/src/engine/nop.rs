//! Operations that do nothing, through a real ring: the issuer's cost and the ring's, without a device.

use std::fs::File;
use std::os::fd::OwnedFd;

use plumb_sys::arena::{Arena, LaneSpec, Place, RegionSpec, Transfer};
use plumb_sys::completions::{Finished, moved};
use plumb_sys::ring::{Ring, RingSetup};
use plumb_units::Nanos;
use plumb_units::convert::index;

use super::{buffers, uring};
use crate::{
    Done, Errno, FileIndex, IoQueue, LaneIndex, Op, OpenQueueError, QueueFacts, QueueSpec, Slot,
};

/// A ring without a target. I/Os complete in the kernel, in full.
#[derive(Debug)]
pub struct NopQueue {
    ring: Ring,
    /// What each slot's I/O would move: an empty operation reports 0.
    lens: Box<[i32]>,
    /// Whether the kernel looks up a file and a buffer for each.
    looks_up: bool,
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
        Ok(Self { ring, lens, looks_up: false })
    }

    /// The same with a registered file and the registered buffers, which the kernel looks up for each I/O: all that a read has but the
    /// read.
    ///
    /// # Errors
    /// As for [`NopQueue::open`], and where the kernel looks up nothing for an empty operation.
    pub fn open_with_files(spec: &QueueSpec) -> Result<Self, OpenQueueError> {
        let unavailable = |reason: String| {
            OpenQueueError::Unavailable {
            engine: NOP_FILE.to_owned(),
            reason,
            remedy: "use Linux 6.13 or later and a limit on locked memory that has room for the buffers \
                     (ulimit -l), or --engine nop"
                .to_owned(),
        }
        };
        let file = File::open("/dev/null").map_err(|error| unavailable(error.to_string()))?;
        let setup = RingSetup { defer_taskrun: true, ..RingSetup::default() };
        let probe = |mut ring: Ring| -> Result<(), Errno> {
            let memory = Place::Lane(0);
            let (write, file, slot, len, offset) = (false, 0, 0, PROBED, 0);
            ring.push_nop_as_read(&Transfer { write, file, slot, len, offset, memory });
            ring.submit_and_wait(1, Nanos::from_secs(1)).map_err(Errno::from)?;
            ring.look();
            match ring.pop() {
                Some(Finished { result, .. }) if result == moved(PROBED) => Ok(()),
                Some(Finished { result, .. }) if result < 0 => Err(Errno(-result)),
                // An older kernel has nothing to say of flags that it does not know.
                _ => Err(rustix::io::Errno::OPNOTSUPP.into()),
            }
        };
        let ring = |arena: Arena, file: OwnedFd| -> Result<Ring, OpenQueueError> {
            let ring = Ring::open(arena, vec![file], setup);
            let mut ring = ring.map_err(|error| uring::unavailable(NOP_FILE, error, spec.depth))?;
            let registered = ring.register_buffers().map_err(Errno::from);
            registered
                .map_err(|errno| unavailable(format!("buffers cannot be registered: {errno}")))?;
            Ok(ring)
        };
        let lanes = vec![LaneSpec { first_slot: 0, slots: 1, bytes: PROBED }];
        let one =
            QueueSpec { depth: 1, regions: vec![RegionSpec { lanes }], ..QueueSpec::default() };
        let null = file.try_clone().map_err(|error| unavailable(error.to_string()))?;
        probe(ring(buffers::arena(&one)?, null.into())?).map_err(|errno| {
            unavailable(format!("an empty operation takes no file here: {errno}"))
        })?;
        let arena = buffers::arena(spec)?;
        let lens = vec![0; index(arena.depth())].into();
        Ok(Self { ring: ring(arena, file.into())?, lens, looks_up: true })
    }
}

/// The engine's name where files and buffers are looked up.
pub(super) const NOP_FILE: &str = "nop-file";
/// Bytes of the I/O that is tried.
const PROBED: u32 = 4096;

impl IoQueue for NopQueue {
    #[inline(always)]
    fn push(&mut self, op: Op) {
        if self.looks_up {
            // All files are the one that is registered: targets are not opened.
            let file = FileIndex(0);
            self.ring.push_nop_as_read(&Op { file, ..op }.into());
        } else {
            self.ring.push_nop(&op.into());
            self.lens[index(op.slot.0)] = moved(op.len);
        }
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
        let name = if self.looks_up { NOP_FILE } else { "nop" };
        QueueFacts { no_target: true, ..uring::facts(name, &self.ring, &[]) }
    }
}
