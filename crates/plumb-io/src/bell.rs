//! Waking a thread that waits in its queue.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::event::{EventfdFlags, eventfd};

/// Ends the wait of the queue that it belongs to, from any thread: an event that the queue waits for beside its
/// I/O.
#[derive(Debug, Clone)]
pub struct Bell(Arc<OwnedFd>);

impl Bell {
    /// A new one, which no queue waits for yet.
    ///
    /// # Errors
    /// When the process has no descriptor left.
    pub fn new() -> rustix::io::Result<Self> {
        Ok(Self(Arc::new(eventfd(0, EventfdFlags::CLOEXEC)?)))
    }

    /// Ends the wait, or the next one if nobody waits.
    pub fn ring(&self) {
        // Refused only when it was rung 2^64 times and nobody listened.
        let _ = rustix::io::write(&*self.0, &1_u64.to_ne_bytes());
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}
