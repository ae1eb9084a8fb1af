//! What `--truth` keeps of every I/O, to be held against what the block device saw.

use plumb_io::Slot;
use plumb_units::{Nanos, convert};

/// One I/O of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WitnessedIo {
    /// Start stamp.
    pub start: Nanos,
    /// When its completion was seen.
    pub seen: Nanos,
    /// Bytes from the target's begin.
    pub offset: u64,
    /// Bytes asked for.
    pub len: u32,
    /// Place of its target among the thread's.
    pub target: u32,
    /// Whether it wrote.
    pub is_write: bool,
    /// Upper bound of how late it was seen, the wake-up apart.
    pub bound: Nanos,
    /// Whether the wake-up comes on top: it ended a sleep, or was there when one ended.
    pub woken: bool,
}

/// A thread's I/Os, as far as there is room: nothing is allocated while the clock runs.
#[derive(Debug)]
pub struct Witness {
    offsets: Box<[u64]>,
    ios: Vec<WitnessedIo>,
    /// Those that found no room.
    missed: u64,
    /// Of the completion that is taken next, and whether a wake-up comes on top.
    bound: (Nanos, bool),
}

impl Witness {
    /// For `slots` requests, with room for `room` I/Os.
    #[must_use]
    pub fn new(slots: u32, room: usize) -> Self {
        Self {
            offsets: vec![0; convert::index(slots)].into(),
            ios: Vec::with_capacity(room),
            missed: 0,
            // Who takes no look sleeps in each I/O until it is woken.
            bound: (Nanos::ZERO, true),
        }
    }

    /// The I/Os, and how many more there were.
    #[must_use]
    pub fn into_ios(self) -> (Vec<WitnessedIo>, u64) {
        (self.ios, self.missed)
    }

    pub(super) fn issues(&mut self, slot: Slot, offset: u64) {
        self.offsets[convert::index(slot.0)] = offset;
    }

    pub(in crate::run_loop) fn is_late_by(&mut self, bound: (Nanos, bool)) {
        self.bound = bound;
    }

    pub(super) fn sees(&mut self, slot: Slot, io: WitnessedIo) {
        if self.ios.len() < self.ios.capacity() {
            let offset = self.offsets[convert::index(slot.0)];
            let (bound, woken) = self.bound;
            self.ios.push(WitnessedIo { offset, bound, woken, ..io });
        } else {
            self.missed += 1;
        }
    }
}
