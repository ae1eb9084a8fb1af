//! Open extents that a start leaves for later: they are settled before anything of them is read, written or copied, and one after
//! the other beside requests (RES-3, section 25).

use plumb_io::FlushQueue;
use plumb_units::Nanos;

use crate::core::{Core, Halt};
use crate::extents::{ExtentSet, UNMAPPED};
use crate::mutation::{Mutation, active};

/// Extents of which nothing was looked at since the start.
#[derive(Debug, Default)]
pub(crate) struct Deferred {
    set: ExtentSet,
    /// The same and some that were, the next one last.
    order: Vec<u32>,
}

impl Deferred {
    #[inline]
    pub(crate) fn has(&self, extent: u32) -> bool {
        self.set.has(extent)
    }

    /// They are to be settled next, and stay open until then.
    pub(crate) fn hold(&mut self, open: &[u32]) {
        open.iter().for_each(|extent| self.set.insert(*extent));
    }

    pub(crate) fn len(&self) -> u32 {
        self.set.len()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.set.len() == 0
    }

    /// The next ones, in the order of their places on the virtual disk.
    pub(crate) fn next(&mut self, count: usize) -> Vec<u32> {
        while self.order.last().is_some_and(|extent| !self.set.has(*extent)) {
            self.order.pop();
        }
        let left = self.order.iter().rev().copied();
        left.filter(|extent| self.set.has(*extent)).take(count).collect()
    }
}

impl<Q: FlushQueue> Core<Q> {
    /// Settles open extents, and leaves those for later that it does not come to within that time.
    pub(crate) fn settle_within(&mut self, open: &[u32], within: Nanos) -> Result<(), Halt> {
        self.deferred = Deferred::default();
        let until = Nanos(self.io.queue.time().0.saturating_add(within.0));
        let count = self.settle(open, until)?;
        let is_mapped = |extent: &u32| self.extents.place(*extent) != UNMAPPED;
        let left: Vec<u32> = open[count..].iter().copied().filter(is_mapped).collect();
        left.iter().for_each(|extent| self.deferred.set.insert(*extent));
        self.deferred.order = left;
        self.deferred.order.reverse();
        Ok(())
    }

    /// Settles some that were left for later. The disks are flushed before, as a start does: one may have come back since, and what
    /// its cache shows must not decide. Where that fails nothing is decided, and each block is left as one that could not be read.
    pub(crate) fn settle_deferred(&mut self, extents: &[u32]) -> Result<(), Halt> {
        let extents: Vec<u32> =
            extents.iter().copied().filter(|extent| self.deferred.has(*extent)).collect();
        let mut disks: Vec<u16> =
            extents.iter().flat_map(|extent| self.disks_of(*extent)).collect();
        disks.sort_unstable();
        disks.dedup();
        disks.retain(|disk| self.members.is_online(*disk));
        let flushed = self.flush_some(&disks)?;
        let equalised = self.counters.equalised;
        if flushed {
            self.settle(&extents, Nanos::NEVER)?;
        }
        for &extent in &extents {
            if !flushed {
                self.leave_unsettled(extent);
            }
            self.deferred.set.remove(extent);
            self.counters.settled_bytes += u64::from(self.members.config.extent_bytes);
            let rounds = self.rounds;
            self.extents.get_mut(extent).written_in = rounds;
        }
        if self.counters.equalised > equalised && !active(Mutation::DeferredUnflushed) {
            // What is read from now on is on all of its copies, whatever becomes of one of them.
            disks.retain(|disk| self.members.is_online(*disk));
            self.flush_some(&disks)?;
        }
        // Places that could not be copied for their sake can be.
        self.members.try_stuck();
        // A loss must be durable before anything else is acknowledged.
        if self.journal.has_batch() { self.sync() } else { Ok(()) }
    }

    /// Nothing is decided of what was written of an extent.
    fn leave_unsettled(&mut self, extent: u32) {
        let sums = self.extents.get(extent).sums.iter();
        let written: Vec<u32> =
            (0..).zip(sums).filter(|one| one.1.newest != 0).map(|one| one.0).collect();
        written.into_iter().for_each(|within| self.note_unsettled(extent, within));
    }
}
