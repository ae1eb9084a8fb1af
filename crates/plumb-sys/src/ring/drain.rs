//! The end of a ring: its memory goes only when the kernel is done with it.

use std::mem::ManuallyDrop;
use std::time::{Duration, Instant};

use rustix::io::Errno;

use super::Ring;
use super::layout::{
    CANCEL_ALL, CANCEL_ANY, ResourceUpdate, SyncCancel, Timespec, enter, register,
};

/// How long a dropped ring waits for its last I/Os before it gives up their memory for good.
pub(super) const DRAIN_LIMIT: Duration = Duration::from_secs(10);

impl Ring {
    /// Cancels what can be cancelled and waits for the rest, `limit` at most; whether nothing is in
    /// flight any more. Entries that were never submitted are forgotten.
    fn drain(&mut self, limit: Duration) -> bool {
        let mut left = self.submitted();
        left -= self.reap();
        if left > 0 {
            // Best effort: kernels before 6.0 refuse, and disk I/O cannot be cancelled.
            let _ = self.cancel_all();
        }
        let end = Instant::now() + limit;
        while left > 0 {
            left -= self.reap();
            let now = Instant::now();
            if left == 0 || now >= end {
                break;
            }
            match self.enter(0, 1, (end - now).into()) {
                Ok(_) | Err(Errno::TIME | Errno::INTR | Errno::AGAIN | Errno::BUSY) => {}
                Err(_) => break,
            }
        }
        left == 0
    }

    /// Takes all completions without looking at them; how many there were.
    fn reap(&mut self) -> u32 {
        let tail = self.shared.cq_tail.load();
        let count = tail.wrapping_sub(self.cq_head);
        self.cq_head = tail;
        self.shared.cq_head.store(tail);
        count
    }

    fn cancel_all(&self) -> Result<u64, Errno> {
        let cancel = SyncCancel {
            address: 0,
            fd: -1,
            flags: CANCEL_ALL | CANCEL_ANY,
            timeout: Timespec { seconds: 0, nanos: 1_000_000 },
            opcode: 0,
            pad: [0; 7],
            pad2: [0; 3],
        };
        self.register(register::SYNC_CANCEL, &[cancel])
    }
}

impl Drop for Ring {
    fn drop(&mut self) {
        let drained = self.drain(DRAIN_LIMIT);
        if drained {
            self.unregister_files();
        }
        if self.enter_flags & enter::REGISTERED_RING != 0 {
            let update = [ResourceUpdate { offset: self.enter_fd, reserved: 0, data: 0 }];
            // Best effort: where it is refused the kernel keeps the ring until this thread ends.
            let _ = self.register(register::UNREGISTER_RING_FDS, &update);
        }
        if drained {
            // SAFETY: dropped once, here; nothing is in flight, so the kernel touches no buffer again.
            unsafe { ManuallyDrop::drop(&mut self.arena) };
        }
        // Otherwise the buffers are leaked: the kernel may still write to them.
    }
}
