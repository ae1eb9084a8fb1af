//! io_uring by its three system calls: one ring, its files and its buffers, on one thread.
//!
//! Entries are filled in order, so an entry's place in memory is `tail mod entries` and never depends
//! on the slot; the slot is its `user_data`. The ring owns what the kernel may touch: buffers are freed
//! after the last I/O on them is known to be over, or never.

mod drain;
mod layout;
mod registered;
mod setup;

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};

use plumb_units::Nanos;
use plumb_units::convert::{index, low_u32, to_u32, to_u64};
use rustix::io::Errno;

use self::layout::{
    Entry, FSYNC_DATA, NOP_AS_READ, Timespec, WaitArgument, enter, feature, head, operation,
    register,
};
pub use self::setup::SetupError;
use self::setup::Shared;
use crate::arena::{Arena, Transfer};
use crate::call;
use crate::completions::Finished;
use crate::priority::IoPriority;

/// The largest submission ring that the kernel makes (IORING_MAX_ENTRIES).
const ENTRIES_MAX: u32 = 32768;
/// The largest completion ring (IORING_MAX_CQ_ENTRIES).
const COMPLETIONS_MAX: u32 = 2 * ENTRIES_MAX;
/// Where completions are deferred, a call that only submits does not have them posted: that takes some 50 ns of each,
/// and where everything completes while it is submitted there are none. A look that had to ask for some expects
/// more: so many calls behind it ask by themselves, which spares a call of the look's.
const ASKS: u32 = 16;
/// Which of a file's first words is that of a flush.
const FLUSH: usize = 4;

/// How a ring is made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RingSetup {
    /// Completions are posted only when the owner enters the kernel for them: cheaper, but they are
    /// seen late when many are in flight.
    pub defer_taskrun: bool,
    /// The kernel says in shared memory that completions wait to be posted (TASKRUN_FLAG), and a look that
    /// sees it enters the kernel for them: they are seen as early as if it posted them by itself.
    pub taskrun_flag: bool,
    /// Upper bound of submission entries; what does not fit waits in line.
    pub entries_max: u32,
    /// The device is asked for completions instead of interrupting (IOPOLL): for direct I/O on devices
    /// with polled queues.
    pub poll: bool,
    /// A thread of the kernel's takes submissions (SQPOLL): no call to submit, a processor more at work.
    pub submit_thread: bool,
}

impl Default for RingSetup {
    fn default() -> Self {
        Self {
            defer_taskrun: false,
            taskrun_flag: false,
            entries_max: ENTRIES_MAX,
            poll: false,
            submit_thread: false,
        }
    }
}

/// A ring with its buffers and files, bound to the thread that made it.
#[derive(Debug)]
pub struct Ring {
    /// Filled so far; what the kernel may see by the next enter.
    sq_tail: u32,
    /// Taken by the kernel so far.
    sq_submitted: u32,
    sq_entries: u32,
    /// Popped so far.
    cq_head: u32,
    /// Up to here the last look counted.
    cq_counted: u32,
    /// Whether a look asks for completions that wait to be posted.
    announces: bool,
    /// So many of the next calls that only submit have them posted, too; see [`ASKS`].
    asks: u32,
    /// Filled and not popped, those in the backlog included.
    outstanding: u32,
    /// First words of entries per file: read, read fixed, write, write fixed, flush.
    heads: Box<[[u64; 5]]>,
    /// Freed when drained, else leaked.
    arena: ManuallyDrop<Arena>,
    shared: Shared,
    /// What the enter call takes for this ring: an index or a descriptor, and the flags that go with it.
    enter_fd: u32,
    enter_flags: u32,
    /// Entries that found the submission ring full; its capacity is fixed.
    backlog: VecDeque<Entry>,
    flags: Vec<&'static str>,
    dropped: Vec<(&'static str, Errno)>,
    /// Open as long as the ring, registered or not.
    _files: Vec<OwnedFd>,
}

/// A ring that has its size and nothing to work on: what can be refused is behind it.
#[derive(Debug)]
pub struct RingReservation {
    shared: Shared,
    depth: u32,
}

impl RingReservation {
    /// Makes a ring for `depth` slots, to be used by the calling thread.
    ///
    /// # Errors
    /// When io_uring is not to be had here, or not of that size.
    pub fn new(depth: u32, setup: RingSetup) -> Result<Self, SetupError> {
        let depth = depth.max(1);
        let entries = depth.min(setup.entries_max).min(ENTRIES_MAX);
        let completions = depth.min(COMPLETIONS_MAX);
        let shared = Shared::new(entries, completions, setup)?;
        if shared.has_submit_thread() && shared.params.sq_entries < depth {
            return Err(SetupError::Setup(Errno::TOOBIG));
        }
        Ok(Self { shared, depth })
    }

    /// The ring for the arena's slots on `files`; see [`Ring::open`].
    ///
    /// # Panics
    /// When the arena has more slots than were reserved.
    #[must_use]
    pub fn open(self, arena: Arena, files: Vec<OwnedFd>) -> Ring {
        assert!(arena.depth() <= self.depth, "{} of {} slots", arena.depth(), self.depth);
        Ring::new(self.shared, arena, files)
    }
}

impl Ring {
    /// Makes a ring for the arena's slots on `files`, and registers the files and itself. What the
    /// kernel does not offer is left out and listed in [`Ring::dropped`].
    ///
    /// # Errors
    /// When io_uring is not to be had here.
    pub fn open(arena: Arena, files: Vec<OwnedFd>, setup: RingSetup) -> Result<Self, SetupError> {
        Ok(RingReservation::new(arena.depth(), setup)?.open(arena, files))
    }

    fn new(shared: Shared, arena: Arena, files: Vec<OwnedFd>) -> Self {
        let depth = arena.depth().max(1);
        let mut enter_flags = 0;
        let mut flags = shared.flags();
        if shared.has_feature(feature::NO_IOWAIT) {
            enter_flags |= enter::NO_IOWAIT;
            flags.push("no_iowait");
        }
        if shared.polls() {
            // Devices are polled only in a call that asks for events.
            enter_flags |= enter::GETEVENTS;
        }
        let dropped = shared.dropped.iter().map(|name| (*name, Errno::INVAL)).collect();
        let backlog = index(depth.saturating_sub(shared.params.sq_entries));
        let mut ring = Self {
            sq_tail: 0,
            sq_submitted: 0,
            sq_entries: shared.params.sq_entries,
            cq_head: 0,
            cq_counted: 0,
            announces: shared.announces(),
            asks: 0,
            outstanding: 0,
            heads: Box::default(),
            arena: ManuallyDrop::new(arena),
            enter_fd: shared.fd.as_raw_fd().cast_unsigned(),
            enter_flags,
            shared,
            backlog: VecDeque::with_capacity(backlog),
            flags,
            dropped,
            _files: files,
        };
        ring.register_files();
        ring.register_self();
        ring
    }

    /// Registers all buffers, so that the kernel need not look up and pin their pages at every I/O.
    ///
    /// # Errors
    /// ENOMEM when RLIMIT_MEMLOCK is too low. The ring goes on without.
    pub fn register_buffers(&mut self) -> Result<(), Errno> {
        let pieces = self.arena.cut_pieces();
        let vectors: Vec<libc::iovec> = pieces
            .iter()
            .map(|piece| libc::iovec {
                iov_base: piece.address.as_ptr().cast(),
                iov_len: plumb_units::convert::to_usize(piece.len),
            })
            .collect();
        if vectors.is_empty() {
            return Ok(());
        }
        match self.register(register::BUFFERS, &vectors) {
            Ok(_) => self.flags.push("fixed_buffers"),
            Err(errno) => {
                self.arena.forget_pieces();
                self.dropped.push(("fixed_buffers", errno));
                return Err(errno);
            }
        }
        Ok(())
    }

    /// How many kernel workers (io-wq) may run this thread's I/Os on files and block devices that cannot be started at once, such as
    /// flushes: `most` from now on, if it is given. The kernel's own bound is that of the thread's first ring, the lesser of its
    /// entries and four for each processor (io_uring/tctx.c), and one that hangs takes one of them.
    ///
    /// # Errors
    /// EINVAL before Linux 5.15.
    pub fn workers(&mut self, most: Option<u32>) -> Result<u32, Errno> {
        // Zero leaves a bound as it is; the answer is what it was before.
        let mut bounds = [most.unwrap_or(0), 0];
        self.register_mut(register::IOWQ_MAX_WORKERS, &mut bounds)?;
        Ok(most.unwrap_or(bounds[0]))
    }

    /// Gives all I/O on a file a priority of its own, whatever the thread's is.
    ///
    /// # Panics
    /// When there is no such file.
    pub fn set_priority(&mut self, file: u32, priority: IoPriority) {
        // A flush takes none.
        for head in &mut self.heads[index(file)][..FLUSH] {
            // `ioprio` is bytes 2 and 3 of an entry.
            *head = (*head & !0xffff_0000) | u64::from(priority.value()) << 16;
        }
    }

    /// Names of the flags and registrations in force.
    #[must_use]
    pub fn flags(&self) -> &[&'static str] {
        &self.flags
    }

    /// What the kernel refused.
    #[must_use]
    pub fn dropped(&self) -> &[(&'static str, Errno)] {
        &self.dropped
    }

    /// Its buffers.
    #[must_use]
    pub fn arena(&self) -> &Arena {
        &self.arena
    }

    /// Puts an I/O in line.
    ///
    /// # Panics
    /// When its slot is in flight, its memory is not the slot's or a source's, or its file does not
    /// exist.
    #[inline(always)]
    pub fn push(&mut self, transfer: &Transfer) {
        let located = self.arena.locate(transfer);
        let Some(heads) = self.heads.get(index(transfer.file)) else { refuse_file(transfer.file) };
        let kind = usize::from(transfer.write) * 2 + usize::from(located.piece.is_some());
        let entry = Entry {
            head: heads[kind],
            offset: transfer.offset,
            address: to_u64(located.address.addr().get()),
            len: transfer.len.into(),
            user_data: transfer.slot.into(),
            buffer: located.piece.unwrap_or(0).into(),
        };
        self.arena.begin(transfer.slot);
        self.put(entry);
    }

    /// Puts a flush of a file in line: fdatasync.
    ///
    /// # Panics
    /// When the slot is in flight, or the file does not exist.
    pub fn push_flush(&mut self, file: u32, slot: u32) {
        let Some(heads) = self.heads.get(index(file)) else { refuse_file(file) };
        let head = heads[FLUSH];
        self.arena.begin(slot);
        let user_data = slot.into();
        self.put(Entry { head, offset: 0, address: 0, len: FSYNC_DATA, user_data, buffer: 0 });
    }

    /// Puts an operation in line that does nothing. Its entry has the offset, which the kernel does not look at: it
    /// has to be computed as for any other.
    ///
    /// # Panics
    /// When its slot is in flight or its memory is not the slot's or a source's.
    #[inline(always)]
    pub fn push_nop(&mut self, transfer: &Transfer) {
        self.arena.check(transfer);
        self.push_empty(transfer.slot, transfer.offset);
    }

    /// The same for which the kernel looks up the file, which is registered, and the buffer, as for a read. It completes with its
    /// length; with an error where the kernel is older than Linux 6.13, or either is not registered.
    ///
    /// # Panics
    /// As [`Ring::push_nop`].
    #[inline(always)]
    pub fn push_nop_as_read(&mut self, transfer: &Transfer) {
        let located = self.arena.locate(transfer);
        self.arena.begin(transfer.slot);
        self.put(Entry {
            head: head(operation::NOP, 0, transfer.file),
            offset: transfer.offset,
            address: to_u64(located.address.addr().get()),
            len: u64::from(transfer.len) | NOP_AS_READ,
            user_data: transfer.slot.into(),
            buffer: located.piece.unwrap_or(u16::MAX).into(),
        });
    }

    /// The same for a slot without buffers.
    ///
    /// # Panics
    /// When the slot is in flight.
    #[inline(always)]
    pub fn push_probe(&mut self, slot: u32) {
        self.push_empty(slot, 0);
    }

    #[inline(always)]
    fn push_empty(&mut self, slot: u32, offset: u64) {
        self.arena.begin(slot);
        let head = head(operation::NOP, 0, u32::MAX);
        let user_data = slot.into();
        self.put(Entry { head, offset, address: 0, len: 0, user_data, buffer: 0 });
    }

    #[inline(always)]
    fn put(&mut self, entry: Entry) {
        self.outstanding += 1;
        if self.sq_tail.wrapping_sub(self.sq_submitted) < self.sq_entries {
            self.write(entry);
        } else {
            // In words: an entry handed on whole would be put together in memory by every push, and its
            // copy into the ring would wait for those stores (7 ns each).
            self.hold_back(entry.words());
        }
    }

    /// Fills the next place of the submission ring, which is free.
    #[inline(always)]
    fn write(&mut self, entry: Entry) {
        let place = index(self.sq_tail & (self.sq_entries - 1));
        // SAFETY: place < sq_entries, a power of two, and the mapping holds that many.
        let place = unsafe { self.shared.entries.add(place) };
        // SAFETY: the place is valid and aligned; the kernel is done with it, for it took every entry
        // up to sq_submitted, and will not look before the tail is published.
        unsafe { place.cast::<Entry>().write(entry) };
        self.sq_tail = self.sq_tail.wrapping_add(1);
    }

    #[cold]
    #[inline(never)]
    fn hold_back(&mut self, words: [u64; Entry::WORDS]) {
        assert!(self.backlog.len() < self.backlog.capacity(), "one I/O per slot");
        self.backlog.push_back(words.into());
    }

    /// Moves entries that were held back into the ring.
    fn refill(&mut self) {
        while self.sq_tail.wrapping_sub(self.sq_submitted) < self.sq_entries {
            let Some(entry) = self.backlog.pop_front() else { break };
            self.write(entry);
        }
    }

    /// Submits what is in line and waits until `wanted` completions are there or `timeout` has passed.
    /// With a timeout it waits even for completions that nothing in flight can give; without, for no
    /// more than are outstanding. Ends early, without an error, when a signal arrives, and when the
    /// kernel is out of memory for requests while completions are there to be popped.
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    #[inline(always)]
    pub fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.shared.cq_head.store(self.cq_head);
        let limit = if timeout == Nanos::NEVER { self.outstanding } else { COMPLETIONS_MAX };
        let wanted = wanted.min(limit).min(self.shared.params.cq_entries);
        if !self.shared.has_submit_thread() && self.backlog.is_empty() {
            self.shared.sq_tail.store(self.sq_tail);
            let queued = self.sq_tail.wrapping_sub(self.sq_submitted);
            if queued > 0
                && let Ok(taken) = self.enter(queued, wanted, timeout)
            {
                self.asks = self.asks.saturating_sub(1);
                self.sq_submitted = self.sq_submitted.wrapping_add(taken);
                if taken == queued {
                    return Ok(());
                }
            }
        }
        self.submit_the_rest(wanted, timeout)
    }

    /// Everything but the one call that takes what is in line.
    #[inline(never)]
    fn submit_the_rest(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        loop {
            self.shared.sq_tail.store(self.sq_tail);
            let queued = self.sq_tail.wrapping_sub(self.sq_submitted);
            let available = self.shared.cq_tail.load().wrapping_sub(self.cq_head);
            if queued == 0 && available >= wanted.max(1) {
                return Ok(());
            }
            if self.shared.has_submit_thread() {
                return self.hand_over(wanted, timeout);
            }
            // Only the last call for a long line waits.
            let wanted = if self.backlog.is_empty() { wanted } else { 0 };
            match self.enter(queued, wanted, timeout) {
                Ok(taken) => {
                    self.sq_submitted = self.sq_submitted.wrapping_add(taken);
                    if taken == queued && self.backlog.is_empty() {
                        return Ok(());
                    }
                    self.refill();
                }
                Err(Errno::TIME | Errno::INTR) if queued == 0 => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno @ (Errno::AGAIN | Errno::BUSY)) => {
                    if self.make_way(available)? {
                        return Ok(());
                    }
                    if self.submitted() == 0 {
                        return Err(errno);
                    }
                }
                Err(errno) => return Err(errno),
            }
        }
    }

    /// The same where a thread of the kernel's submits: the ring holds an entry per slot, so there is
    /// room for all of them whether it has taken the last ones or not.
    fn hand_over(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        let queued = self.sq_tail.wrapping_sub(self.sq_submitted);
        self.sq_submitted = self.sq_tail;
        let sleeps = self.shared.submit_thread_sleeps();
        if wanted == 0 && !sleeps {
            return Ok(());
        }
        loop {
            match self.enter(queued, wanted, timeout) {
                Ok(_) | Err(Errno::TIME) => return Ok(()),
                Err(Errno::INTR) if wanted > 0 => return Ok(()),
                Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
    }

    /// The kernel has no memory for more requests: whether there is something to pop first; if not,
    /// waits for it.
    #[cold]
    fn make_way(&mut self, available: u32) -> Result<bool, Errno> {
        if available > 0 {
            return Ok(true);
        }
        if self.submitted() > 0 {
            match self.enter(0, 1, Nanos::NEVER) {
                Ok(_) | Err(Errno::INTR) => {}
                Err(errno) => return Err(errno),
            }
        }
        Ok(false)
    }

    /// Taken by the kernel and not popped.
    fn submitted(&self) -> u32 {
        let queued = self.sq_tail.wrapping_sub(self.sq_submitted);
        self.outstanding - queued - to_u32(self.backlog.len())
    }

    #[inline(always)]
    fn enter(&self, submit: u32, wanted: u32, timeout: Nanos) -> Result<u32, Errno> {
        let mut flags = self.enter_flags;
        if self.shared.has_submit_thread() {
            flags |= enter::SQ_WAKEUP;
        }
        if wanted > 0 || submit == 0 || self.asks > 0 {
            flags |= enter::GETEVENTS;
        }
        if wanted == 0 || timeout == Nanos::NEVER {
            return self.enter_with(submit, wanted, flags, std::ptr::null(), 0);
        }
        let timespec = timespec(timeout);
        let argument = WaitArgument {
            sigmask: 0,
            sigmask_size: 0,
            min_wait_micros: 0,
            timespec: to_u64(std::ptr::from_ref(&timespec).expose_provenance()),
        };
        let flags = flags | enter::EXT_ARG;
        self.enter_with(submit, wanted, flags, &raw const argument, size_of::<WaitArgument>())
    }

    #[inline(always)]
    fn enter_with(
        &self,
        submit: u32,
        wanted: u32,
        flags: u32,
        argument: *const WaitArgument,
        size: usize,
    ) -> Result<u32, Errno> {
        // SAFETY: every entry up to the published tail holds addresses within the arena, in slots in
        // flight, or of sources; the argument (and the timespec it leads to) is null or valid.
        unsafe {
            call::six(
                libc::SYS_io_uring_enter,
                [
                    u64::from(self.enter_fd),
                    u64::from(submit),
                    u64::from(wanted),
                    u64::from(flags),
                    to_u64(argument.expose_provenance()),
                    to_u64(size),
                ],
            )
        }
        .map(low_u32)
    }

    /// How many completions are there; [`Ring::pop`] yields these.
    #[inline(always)]
    pub fn look(&mut self) -> u32 {
        if self.announces && self.shared.has_unposted() {
            self.post();
        }
        self.cq_counted = self.shared.cq_tail.load();
        self.cq_counted.wrapping_sub(self.cq_head)
    }

    /// Has the kernel post the completions that wait for it. What is in line stays there.
    #[inline(never)]
    fn post(&mut self) {
        self.asks = ASKS;
        self.shared.cq_head.store(self.cq_head);
        // The kernel posts some twenty in a call. None is left that was there before the look: what its gap
        // bounds came behind it.
        let calls = 2 + self.outstanding / 8;
        for _ in 0..calls {
            // It waits for nothing: whatever it says, those that are posted are there to be seen.
            let _ = self.enter(0, 0, Nanos::NEVER);
            if !self.shared.has_unposted() {
                break;
            }
        }
    }

    /// The next completion that was counted; its slot is idle again.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<Finished> {
        if self.cq_head == self.cq_counted {
            return None;
        }
        let place = index(self.cq_head & (self.shared.params.cq_entries - 1));
        // SAFETY: place < cq_entries, a power of two, and the mapping holds that many.
        let completion = unsafe { self.shared.completions.add(place) };
        // SAFETY: valid and aligned; the kernel wrote it before it moved the tail that look acquired,
        // and leaves it alone until our head is published.
        let completion = unsafe { completion.read() };
        self.cq_head = self.cq_head.wrapping_add(1);
        self.outstanding -= 1;
        let slot = low_u32(completion.user_data);
        self.arena.end(slot);
        Some(Finished { slot, result: completion.result })
    }

    /// The buffer of an idle slot.
    ///
    /// # Panics
    /// When the slot is in flight, or the lane does not cover it.
    #[inline]
    #[must_use]
    pub fn buffer_mut(&mut self, slot: u32, lane: u32) -> &mut [u8] {
        self.arena.buffer_mut(slot, lane)
    }
}

fn timespec(timeout: Nanos) -> Timespec {
    let seconds = timeout.0 / 1_000_000_000;
    let nanos = timeout.0 % 1_000_000_000;
    Timespec { seconds: seconds.cast_signed(), nanos: nanos.cast_signed() }
}

#[cold]
#[inline(never)]
fn refuse_file(file: u32) -> ! {
    panic!("file {file} does not exist");
}

#[cfg(test)]
mod ring_tests;
