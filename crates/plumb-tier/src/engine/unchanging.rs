//! A pool without a quorum: what can be read is, and nothing on its disks changes (LAY-3).

use plumb_io::{Errno, FlushQueue};
use plumb_units::convert::index;

use super::Engine;
use crate::assembly::{How, Terms};
use crate::io::SlotPlan;
use crate::recover::StartError;

const EROFS: Errno = Errno(30);

impl<Q: FlushQueue> Engine<Q> {
    /// Starts the pool on whichever of its disks are here, to be read only: what a recovery decides is decided in
    /// memory, by a queue that changes nothing ([`plumb_io::stack::OverlayQueue`]). Whoever writes is refused, and
    /// nothing is destaged, rebuilt or brought up to date. What other disks may have taken since is not seen.
    ///
    /// # Errors
    /// When no current copy of the journal is here.
    pub fn start_unchanging(
        queue: Q,
        plan: SlotPlan,
        (clients, client_bytes): (u32, u32),
        seed: u64,
    ) -> Result<Self, StartError> {
        Self::start_on(queue, plan, (clients, client_bytes), How::new(seed, Terms::Any))
    }

    /// Starts the pool for good on whichever of its disks are here, because an operator says that the others are lost
    /// (LAY-3). From now on these are all its voters. What others took that these did not see is lost; should one of
    /// them be seen again with a generation that these do not know, the pool is [`StartError::Split`] and nothing of
    /// it is taken.
    ///
    /// # Errors
    /// When no current copy of the journal is here: no word replaces it.
    pub fn start_by_word(
        queue: Q,
        plan: SlotPlan,
        (clients, client_bytes): (u32, u32),
        seed: u64,
    ) -> Result<Self, StartError> {
        Self::start_on(queue, plan, (clients, client_bytes), How::new(seed, Terms::Word))
    }

    /// Starts the pool where no copy of its journal, or of a write-back cache's log, can be read at its end, because an operator
    /// says that this was being written when the power went, and was not durable (section 17). Where rounds were written behind what cannot
    /// be read, or it is known to have been durable, it was, and no word helps. A frame of the journal that can be read, was durable and is
    /// damaged on all copies is given up with all behind it.
    ///
    /// # Errors
    /// As [`Engine::start`].
    pub fn start_to_unread_end(
        queue: Q,
        plan: SlotPlan,
        (clients, client_bytes): (u32, u32),
        seed: u64,
    ) -> Result<Self, StartError> {
        Self::start_on(queue, plan, (clients, client_bytes), How::new(seed, Terms::MoreToUnreadEnd))
    }

    /// Whether it was started to be read only.
    #[must_use]
    pub fn is_unchanging(&self) -> bool {
        self.unchanging
    }

    /// Answers a request that would write.
    pub(super) fn refuse(&mut self, client: u32) {
        self.clients[index(client)].error = Some(EROFS);
        self.end_client(client);
    }
}
