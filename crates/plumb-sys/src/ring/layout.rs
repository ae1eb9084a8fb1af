//! What the kernel and a ring's owner share, by the kernel's numbers (linux/io_uring.h).

const _: () = assert!(cfg!(target_endian = "little"), "entries are composed for little endian");

/// `io_uring_setup` flags.
pub(super) mod setup {
    pub(crate) const IOPOLL: u32 = 1 << 0;
    pub(crate) const SQPOLL: u32 = 1 << 1;
    pub(crate) const CQSIZE: u32 = 1 << 3;
    pub(crate) const CLAMP: u32 = 1 << 4;
    pub(crate) const SUBMIT_ALL: u32 = 1 << 7;
    pub(crate) const COOP_TASKRUN: u32 = 1 << 8;
    pub(crate) const TASKRUN_FLAG: u32 = 1 << 9;
    pub(crate) const SINGLE_ISSUER: u32 = 1 << 12;
    pub(crate) const DEFER_TASKRUN: u32 = 1 << 13;
    pub(crate) const NO_SQARRAY: u32 = 1 << 16;
}

/// `io_uring_params::features`.
pub(super) mod feature {
    pub(crate) const SINGLE_MMAP: u32 = 1 << 0;
    pub(crate) const NODROP: u32 = 1 << 1;
    pub(crate) const EXT_ARG: u32 = 1 << 8;
    pub(crate) const NO_IOWAIT: u32 = 1 << 17;
}

/// `io_uring_enter` flags.
pub(super) mod enter {
    pub(crate) const GETEVENTS: u32 = 1 << 0;
    pub(crate) const SQ_WAKEUP: u32 = 1 << 1;
    pub(crate) const EXT_ARG: u32 = 1 << 3;
    pub(crate) const REGISTERED_RING: u32 = 1 << 4;
    pub(crate) const NO_IOWAIT: u32 = 1 << 7;
}

/// `io_uring_register` operations.
pub(super) mod register {
    pub(crate) const BUFFERS: u32 = 0;
    pub(crate) const FILES: u32 = 2;
    pub(crate) const UNREGISTER_FILES: u32 = 3;
    pub(crate) const IOWQ_MAX_WORKERS: u32 = 19;
    pub(crate) const RING_FDS: u32 = 20;
    pub(crate) const UNREGISTER_RING_FDS: u32 = 21;
    pub(crate) const SYNC_CANCEL: u32 = 24;
}

/// `io_uring_sync_cancel_reg::flags`: whatever is in flight, all of it.
pub(super) const CANCEL_ALL: u32 = 1 << 0;
pub(super) const CANCEL_ANY: u32 = 1 << 2;

/// Where the parts are mapped.
pub(super) const OFFSET_RINGS: u64 = 0;
pub(super) const OFFSET_ENTRIES: u64 = 0x1000_0000;

/// The operations used.
pub(super) mod operation {
    pub(crate) const NOP: u8 = 0;
    pub(crate) const READ_FIXED: u8 = 4;
    pub(crate) const WRITE_FIXED: u8 = 5;
    pub(crate) const READ: u8 = 22;
    pub(crate) const WRITE: u8 = 23;
    pub(crate) const FSYNC: u8 = 3;
}

/// Flag of FSYNC, in the entry's `rw_flags`: data and what is needed to find it, no times.
pub(super) const FSYNC_DATA: u64 = 1 << 32;

/// Flags of NOP, in the entry's `rw_flags`: its result is the entry's `len`, and a registered file and a registered buffer are looked
/// up for it, as they are for a read (IORING_NOP_INJECT_RESULT, _FILE, _FIXED_FILE, _FIXED_BUFFER; Linux 6.13).
pub(super) const NOP_AS_READ: u64 = 0b1111 << 32;

/// Entry flag: `fd` is an index into the registered files.
pub(super) const FIXED_FILE: u8 = 1 << 0;

/// `struct io_uring_params`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Params {
    pub(super) sq_entries: u32,
    pub(super) cq_entries: u32,
    pub(super) flags: u32,
    pub(super) sq_thread_cpu: u32,
    pub(super) sq_thread_idle: u32,
    pub(super) features: u32,
    pub(super) wq_fd: u32,
    pub(super) reserved: [u32; 3],
    pub(super) sq: SubmissionOffsets,
    pub(super) cq: CompletionOffsets,
}

/// `struct io_sqring_offsets`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct SubmissionOffsets {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) ring_mask: u32,
    pub(super) ring_entries: u32,
    pub(super) flags: u32,
    pub(super) dropped: u32,
    pub(super) array: u32,
    pub(super) reserved: u32,
    pub(super) user_address: u64,
}

/// `struct io_cqring_offsets`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct CompletionOffsets {
    pub(super) head: u32,
    pub(super) tail: u32,
    pub(super) ring_mask: u32,
    pub(super) ring_entries: u32,
    pub(super) overflow: u32,
    pub(super) cqes: u32,
    pub(super) flags: u32,
    pub(super) reserved: u32,
    pub(super) user_address: u64,
}

/// The part of `struct io_uring_sqe` that changes; the rest of its 64 bytes stays zero.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// `opcode: u8, flags: u8, ioprio: u16, fd: i32`.
    pub(super) head: u64,
    pub(super) offset: u64,
    pub(super) address: u64,
    /// `len: u32, rw_flags: u32`.
    pub(super) len: u64,
    pub(super) user_data: u64,
    /// `buf_index: u16`, then `personality: u16` and `splice_fd_in: i32`, both 0.
    pub(super) buffer: u64,
}

impl Entry {
    pub(super) const WORDS: usize = 6;

    #[inline(always)]
    pub(super) fn words(self) -> [u64; Self::WORDS] {
        let Self { head, offset, address, len, user_data, buffer } = self;
        [head, offset, address, len, user_data, buffer]
    }
}

impl From<[u64; Entry::WORDS]> for Entry {
    fn from(words: [u64; Self::WORDS]) -> Self {
        let [head, offset, address, len, user_data, buffer] = words;
        Self { head, offset, address, len, user_data, buffer }
    }
}

/// `struct io_uring_sqe`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct EntryPlace {
    pub(super) entry: Entry,
    pub(super) rest: [u64; 2],
}

/// The first word of an entry.
pub(super) const fn head(operation: u8, flags: u8, fd: u32) -> u64 {
    u64::from_le_bytes([operation, flags, 0, 0, 0, 0, 0, 0]) | (fd as u64) << 32
}

/// `struct io_uring_cqe`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Completion {
    pub(super) user_data: u64,
    pub(super) result: i32,
    pub(super) flags: u32,
}

/// `struct io_uring_getevents_arg`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct WaitArgument {
    pub(super) sigmask: u64,
    pub(super) sigmask_size: u32,
    pub(super) min_wait_micros: u32,
    pub(super) timespec: u64,
}

/// `struct __kernel_timespec`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct Timespec {
    pub(super) seconds: i64,
    pub(super) nanos: i64,
}

/// `struct io_uring_rsrc_update`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct ResourceUpdate {
    pub(super) offset: u32,
    pub(super) reserved: u32,
    pub(super) data: u64,
}

/// `struct io_uring_sync_cancel_reg`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub(super) struct SyncCancel {
    pub(super) address: u64,
    pub(super) fd: i32,
    pub(super) flags: u32,
    pub(super) timeout: Timespec,
    pub(super) opcode: u8,
    pub(super) pad: [u8; 7],
    pub(super) pad2: [u64; 3],
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_kernels() {
        assert_eq!(size_of::<Params>(), 120);
        assert_eq!(size_of::<SubmissionOffsets>(), 40);
        assert_eq!(size_of::<CompletionOffsets>(), 40);
        assert_eq!(size_of::<Entry>(), 48);
        assert_eq!(size_of::<EntryPlace>(), 64);
        assert_eq!(size_of::<Completion>(), 16);
        assert_eq!(size_of::<WaitArgument>(), 24);
        assert_eq!(size_of::<Timespec>(), 16);
        assert_eq!(size_of::<ResourceUpdate>(), 16);
        assert_eq!(size_of::<SyncCancel>(), 64);
    }

    #[test]
    fn a_head_is_laid_out_as_bytes() {
        let bytes = head(operation::WRITE_FIXED, FIXED_FILE, 0x0102_0304).to_le_bytes();
        assert_eq!(bytes, [5, 1, 0, 0, 4, 3, 2, 1]);
    }
}
