//! What a ring registers with the kernel once, so that no I/O has to look it up: files, itself.

use std::os::fd::AsRawFd;

use plumb_units::convert::to_u32;
use rustix::io::Errno;

use super::Ring;
use super::layout::{FIXED_FILE, ResourceUpdate, enter, head, operation, register};
use crate::call;

impl Ring {
    pub(super) fn register_files(&mut self) {
        let raw: Vec<i32> = self._files.iter().map(AsRawFd::as_raw_fd).collect();
        let registered = !raw.is_empty()
            && match self.register(register::FILES, &raw) {
                Ok(_) => true,
                Err(errno) => {
                    self.dropped.push(("fixed_files", errno));
                    false
                }
            };
        if registered {
            self.flags.push("fixed_files");
        }
        let heads = (0_u32..).zip(raw).map(|(nth, fd)| {
            let (flag, fd) = if registered { (FIXED_FILE, nth) } else { (0, fd.cast_unsigned()) };
            let kinds = [
                operation::READ,
                operation::READ_FIXED,
                operation::WRITE,
                operation::WRITE_FIXED,
                operation::FSYNC,
            ];
            kinds.map(|kind| head(kind, flag, fd))
        });
        self.heads = heads.collect();
    }

    /// Lets go of the files now: the kernel would some time after the ring is closed, and who unmounts
    /// right behind us would find the file system busy.
    pub(super) fn unregister_files(&mut self) {
        let fd = self.shared.fd.as_raw_fd();
        // Without any the kernel says so, and that is all right.
        // SAFETY: the operation reads and writes no memory of ours.
        let _ = unsafe {
            libc::syscall(
                libc::SYS_io_uring_register,
                fd,
                register::UNREGISTER_FILES,
                std::ptr::null::<()>(),
                0,
            )
        };
    }

    /// Registers the ring's own descriptor with this thread: the enter call then finds it faster.
    pub(super) fn register_self(&mut self) {
        let mut update =
            [ResourceUpdate { offset: u32::MAX, reserved: 0, data: self.enter_fd.into() }];
        match self.register_mut(register::RING_FDS, &mut update) {
            Ok(_) => {
                self.enter_fd = update[0].offset;
                self.enter_flags |= enter::REGISTERED_RING;
                self.flags.push("registered_ring");
            }
            Err(errno) => self.dropped.push(("registered_ring", errno)),
        }
    }

    pub(super) fn register<T>(&self, operation: u32, items: &[T]) -> Result<u64, Errno> {
        let fd = self.shared.fd.as_raw_fd();
        let (pointer, count) = (items.as_ptr(), to_u32(items.len()));
        // SAFETY: the items have the layout that the operation reads, and live through the call; the
        // buffers they name belong to the arena, which outlives the ring's use of them.
        let result =
            unsafe { libc::syscall(libc::SYS_io_uring_register, fd, operation, pointer, count) };
        call::check(result)
    }

    pub(super) fn register_mut<T>(&self, operation: u32, items: &mut [T]) -> Result<u64, Errno> {
        let fd = self.shared.fd.as_raw_fd();
        let (pointer, count) = (items.as_mut_ptr(), to_u32(items.len()));
        // SAFETY: the items have the layout that the operation reads and writes, and live through the
        // call.
        let result =
            unsafe { libc::syscall(libc::SYS_io_uring_register, fd, operation, pointer, count) };
        call::check(result)
    }
}
