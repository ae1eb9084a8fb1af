//! Making a ring: flags dropped one at a time until the kernel takes them, then the shared memory.

use std::ffi::c_void;
use std::os::fd::{AsFd, FromRawFd, OwnedFd, RawFd};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicU32, Ordering};

use plumb_units::convert::index;
use rustix::io::Errno;
use rustix::mm::{MapFlags, ProtFlags};

use super::layout::{Completion, EntryPlace, OFFSET_ENTRIES, OFFSET_RINGS, Params, feature, setup};

/// Set-up flags by name, in the order in which they are given up: the newest first.
const FLAGS: [(&str, u32); 8] = [
    ("no_sqarray", setup::NO_SQARRAY),
    ("defer_taskrun", setup::DEFER_TASKRUN),
    ("single_issuer", setup::SINGLE_ISSUER),
    ("taskrun_flag", setup::TASKRUN_FLAG),
    ("coop_taskrun", setup::COOP_TASKRUN),
    ("submit_all", setup::SUBMIT_ALL),
    ("clamp", setup::CLAMP),
    ("cqsize", setup::CQSIZE),
];

/// What a ring cannot do without: a timeout on waits, no lost completions, one mapping (Linux 5.11).
const REQUIRED: u32 = feature::EXT_ARG | feature::NODROP | feature::SINGLE_MMAP;

/// Why there is no ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetupError {
    /// `io_uring_setup` refused.
    Setup(Errno),
    /// The kernel is older than Linux 5.11.
    TooOld,
    /// Its memory could not be mapped.
    Map(Errno),
}

/// A fresh ring and the memory it shares with the kernel.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) fd: OwnedFd,
    pub(super) params: Params,
    pub(super) dropped: Vec<&'static str>,
    pub(super) sq_tail: Index,
    pub(super) sq_flags: Index,
    pub(super) cq_head: Index,
    pub(super) cq_tail: Index,
    pub(super) entries: NonNull<EntryPlace>,
    pub(super) completions: NonNull<Completion>,
    /// What all of the above point into.
    _memory: [Mapped; 2],
}

/// One of the ring's shared counters.
#[derive(Debug, Clone, Copy)]
pub(super) struct Index(NonNull<AtomicU32>);

impl Index {
    /// Reads it; what the kernel wrote before is seen.
    #[inline(always)]
    pub(super) fn load(&self) -> u32 {
        // SAFETY: an aligned u32 in the ring's mapping, which lives as long as the ring, the only place
        // where an Index is kept.
        unsafe { self.0.as_ref() }.load(Ordering::Acquire)
    }

    /// Writes it; the kernel sees what was written before.
    #[inline(always)]
    pub(super) fn store(&self, value: u32) {
        // SAFETY: as in load.
        unsafe { self.0.as_ref() }.store(value, Ordering::Release);
    }
}

impl Shared {
    /// A ring of `entries` submissions (clamped to what the kernel allows) and room for `completions`.
    pub(super) fn new(
        entries: u32,
        completions: u32,
        asked: super::RingSetup,
    ) -> Result<Self, SetupError> {
        let mut flags = FLAGS.iter().fold(0, |flags, (_, flag)| flags | flag);
        if !asked.defer_taskrun {
            flags &= !setup::DEFER_TASKRUN;
        }
        if !asked.taskrun_flag {
            flags &= !setup::TASKRUN_FLAG;
        }
        // These two are never given up: who asks for them wants nothing else.
        if asked.poll {
            flags |= setup::IOPOLL;
        }
        if asked.submit_thread {
            // Where a thread of the kernel's submits, there is no task of ours to run its work.
            flags &= !(setup::DEFER_TASKRUN | setup::COOP_TASKRUN | setup::TASKRUN_FLAG);
            flags |= setup::SQPOLL;
        }
        let ((fd, params), dropped) = negotiate(flags, |flags| {
            let mut params = Params { cq_entries: completions, flags, ..Params::default() };
            create(entries, &mut params).map(|fd| (fd, params))
        })?;
        if params.features & REQUIRED != REQUIRED {
            return Err(SetupError::TooOld);
        }
        Self::map(fd, params, dropped)
    }

    fn map(fd: OwnedFd, params: Params, dropped: Vec<&'static str>) -> Result<Self, SetupError> {
        let array_end = index(params.sq.array) + index(params.sq_entries) * size_of::<u32>();
        let cqes_end = index(params.cq.cqes) + index(params.cq_entries) * size_of::<Completion>();
        let rings = Mapped::new(&fd, array_end.max(cqes_end), OFFSET_RINGS)?;
        let entries_len = index(params.sq_entries) * size_of::<EntryPlace>();
        let entries = Mapped::new(&fd, entries_len, OFFSET_ENTRIES)?;
        if params.flags & setup::NO_SQARRAY == 0 {
            // Entries are always filled in order: position n of the array is entry n for good.
            for n in 0..params.sq_entries {
                rings.index(params.sq.array + n * 4).store(n);
            }
        }
        assert_eq!(rings.index(params.sq.ring_mask).load(), params.sq_entries - 1);
        assert_eq!(rings.index(params.cq.ring_mask).load(), params.cq_entries - 1);
        Ok(Self {
            sq_tail: rings.index(params.sq.tail),
            sq_flags: rings.index(params.sq.flags),
            cq_head: rings.index(params.cq.head),
            cq_tail: rings.index(params.cq.tail),
            completions: rings.at(params.cq.cqes).cast(),
            entries: entries.base.cast(),
            _memory: [rings, entries],
            fd,
            params,
            dropped,
        })
    }

    /// Names of the flags in force.
    pub(super) fn flags(&self) -> Vec<&'static str> {
        let asked = [("iopoll", setup::IOPOLL), ("sqpoll", setup::SQPOLL)];
        let all = FLAGS.iter().chain(&asked);
        all.filter(|(_, flag)| self.params.flags & flag != 0).map(|(name, _)| *name).collect()
    }

    pub(super) fn has_feature(&self, feature: u32) -> bool {
        self.params.features & feature != 0
    }

    /// Whether completions are found only by a call that asks for them.
    pub(super) fn polls(&self) -> bool {
        self.params.flags & setup::IOPOLL != 0
    }

    /// Whether a thread of the kernel's submits.
    pub(super) fn has_submit_thread(&self) -> bool {
        self.params.flags & setup::SQPOLL != 0
    }

    /// Whether that thread sleeps and has to be woken. What was stored before is seen by it, or this
    /// sees that it sleeps.
    pub(super) fn submit_thread_sleeps(&self) -> bool {
        const NEED_WAKEUP: u32 = 1;
        std::sync::atomic::fence(Ordering::SeqCst);
        self.sq_flags.load() & NEED_WAKEUP != 0
    }

    /// Whether the kernel says in shared memory that completions wait for a call to be posted.
    pub(super) fn announces(&self) -> bool {
        self.params.flags & setup::TASKRUN_FLAG != 0
    }

    /// Whether such completions wait now.
    #[inline(always)]
    pub(super) fn has_unposted(&self) -> bool {
        const TASKRUN: u32 = 1 << 2;
        self.sq_flags.load() & TASKRUN != 0
    }
}

/// Tries `create` with `flags`, then with one fewer each time it does not know one of them; what it made, and the names
/// of those that were given up.
fn negotiate<T>(
    mut flags: u32,
    mut create: impl FnMut(u32) -> Result<T, Errno>,
) -> Result<(T, Vec<&'static str>), SetupError> {
    let mut dropped = Vec::new();
    loop {
        match create(flags) {
            Ok(made) => return Ok((made, dropped)),
            Err(Errno::INVAL) => {
                let Some((name, flag)) = FLAGS.iter().find(|(_, flag)| flags & flag != 0) else {
                    return Err(SetupError::Setup(Errno::INVAL));
                };
                flags &= !flag;
                dropped.push(*name);
            }
            Err(errno) => return Err(SetupError::Setup(errno)),
        }
    }
}

fn create(entries: u32, params: &mut Params) -> Result<OwnedFd, Errno> {
    let params = std::ptr::from_mut(params);
    // SAFETY: params has the kernel's layout (size test) and is valid for the call.
    let fd = unsafe { libc::syscall(libc::SYS_io_uring_setup, entries, params) };
    let fd = RawFd::try_from(crate::call::check(fd)?).expect("descriptors are small");
    // SAFETY: the kernel just gave us this descriptor and nobody else has it.
    Ok(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// A mapping of ring memory, unmapped on drop.
#[derive(Debug)]
struct Mapped {
    base: NonNull<c_void>,
    len: usize,
}

impl Mapped {
    fn new(fd: impl AsFd, len: usize, offset: u64) -> Result<Self, SetupError> {
        let fd = fd.as_fd();
        let access = ProtFlags::READ | ProtFlags::WRITE;
        let flags = MapFlags::SHARED | MapFlags::POPULATE;
        // SAFETY: a new mapping at an address of the kernel's choice changes no memory in use.
        let base = unsafe { rustix::mm::mmap(null_mut(), len, access, flags, fd, offset) };
        let base = base.map_err(SetupError::Map)?;
        Ok(Self { base: NonNull::new(base).expect("the kernel never maps page 0 unasked"), len })
    }

    /// The byte at `offset`, which the kernel gave for this mapping.
    fn at(&self, offset: u32) -> NonNull<c_void> {
        assert!(index(offset) < self.len, "offset {offset} of {} bytes", self.len);
        // SAFETY: within the mapping (asserted above).
        unsafe { self.base.byte_add(index(offset)) }
    }

    fn index(&self, offset: u32) -> Index {
        assert!(index(offset) + size_of::<u32>() <= self.len && offset.is_multiple_of(4));
        Index(self.at(offset).cast())
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: the mapping is ours and what points into it goes with the ring.
        let unmapped = unsafe { rustix::mm::munmap(self.base.as_ptr(), self.len) };
        assert_eq!(unmapped, Ok(()), "a mapping of our own is unmapped whole");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: u32 = setup::NO_SQARRAY
        | setup::DEFER_TASKRUN
        | setup::SINGLE_ISSUER
        | setup::TASKRUN_FLAG
        | setup::COOP_TASKRUN
        | setup::SUBMIT_ALL
        | setup::CLAMP
        | setup::CQSIZE;

    /// A kernel that knows these flags, with the conditions that all kernels have for them.
    fn kernel(known: u32) -> impl FnMut(u32) -> Result<u32, Errno> {
        move |flags| {
            let has = |flag| flags & flag != 0;
            let is_valid = flags & !known == 0
                && (!has(setup::DEFER_TASKRUN) || has(setup::SINGLE_ISSUER))
                && (!has(setup::TASKRUN_FLAG) || has(setup::COOP_TASKRUN | setup::DEFER_TASKRUN));
            if is_valid { Ok(flags) } else { Err(Errno::INVAL) }
        }
    }

    #[test]
    fn an_older_kernel_gets_the_flags_that_it_knows_and_the_rest_are_named() {
        let newest = setup::NO_SQARRAY;
        let of_6_1 = newest | setup::DEFER_TASKRUN;
        let of_6_0 = of_6_1 | setup::SINGLE_ISSUER;
        let of_5_19 = of_6_0 | setup::TASKRUN_FLAG | setup::COOP_TASKRUN;
        for (version, unknown, names) in [
            ("6.6", 0, &[][..]),
            ("6.1", newest, &["no_sqarray"][..]),
            ("6.0", of_6_1, &["no_sqarray", "defer_taskrun"]),
            ("5.19", of_6_0, &["no_sqarray", "defer_taskrun", "single_issuer"]),
            (
                "5.18",
                of_5_19,
                &["no_sqarray", "defer_taskrun", "single_issuer", "taskrun_flag", "coop_taskrun"],
            ),
        ] {
            let (flags, dropped) = negotiate(ALL, kernel(ALL & !unknown)).expect("a ring");
            assert_eq!((flags, &dropped[..]), (ALL & !unknown, names), "{version}");
        }
    }

    #[test]
    fn what_was_asked_for_is_never_given_up() {
        for asked in [setup::IOPOLL, setup::SQPOLL] {
            let refused = negotiate(ALL | asked, kernel(ALL)).expect_err("it knows no such flag");
            assert_eq!(refused, SetupError::Setup(Errno::INVAL));
        }
        let (mut tried, full) = (0, Err(SetupError::Setup(Errno::MFILE)));
        let outcome = negotiate(ALL, |_| {
            tried += 1;
            Err::<(), _>(Errno::MFILE)
        });
        assert_eq!((outcome, tried), (full, 1), "fewer flags open no more files");
    }
}
