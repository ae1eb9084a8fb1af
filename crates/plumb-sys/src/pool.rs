//! A bounded pool of threads that perform plain calls, for when the kernel has no asynchronous ones.

use std::collections::VecDeque;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

use crate::arena::{Arena, Transfer};
use crate::completions::{Completions, Finished};

/// At most so many threads, however deep the queue.
pub const THREADS_MAX: u32 = 128;
/// They only make system calls.
const STACK: usize = 64 << 10;
/// How long a dropped pool waits for its last calls before it gives up their memory for good.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// Threads, the buffers they move bytes in, and their files. They run where the thread that made the
/// pool may run.
#[derive(Debug)]
pub struct Pool {
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
    /// More are started when there are more jobs than threads that have none, up to so many.
    most: usize,
    /// Pushed and not submitted; its capacity is fixed.
    line: Vec<Job>,
    done: Completions,
    /// Handed to the threads, and not seen completed.
    submitted: u32,
    /// Freed when drained, else leaked.
    arena: ManuallyDrop<Arena>,
    /// Closed when drained, else leaked.
    files: ManuallyDrop<Vec<OwnedFd>>,
}

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    /// There are jobs, or the pool closes.
    work: Condvar,
    /// A job is finished.
    finished: Condvar,
    /// As in the state, to be read without the lock.
    finished_count: AtomicU32,
}

#[derive(Debug)]
struct State {
    /// Not begun; its capacity is fixed.
    jobs: VecDeque<Job>,
    /// Not yet taken by the owner; its capacity is fixed.
    finished: VecDeque<Finished>,
    /// Begun and not finished.
    busy: u32,
    closing: bool,
}

/// What a call does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Read,
    Write,
    /// Of all that was written to the file: nothing of memory is touched.
    Flush,
    /// Ends when the file, a pipe, has something to read.
    #[cfg(test)]
    Hang,
}

/// A call to be made.
#[derive(Debug, Clone, Copy)]
struct Job {
    call: Call,
    fd: RawFd,
    slot: u32,
    len: u32,
    offset: u64,
    address: NonNull<u8>,
}

// SAFETY: the address leads into the arena of the pool, in a slot that is in flight, or into a source:
// the thread that has the job is the only one to touch it until it is finished.
unsafe impl Send for Job {}

impl Pool {
    /// A pool for the arena's slots on `files`: a thread per slot, [`THREADS_MAX`] at most.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn open(arena: Arena, files: Vec<OwnedFd>) -> std::io::Result<Self> {
        let most = arena.depth().clamp(1, THREADS_MAX);
        Self::with(arena, files, (most, most))
    }

    /// The same with one thread, and others as soon as there are jobs for them: one for each slot in the end, so that a call that never
    /// ends keeps no other one from being made.
    ///
    /// # Errors
    /// When a thread cannot be started.
    pub fn growing(arena: Arena, files: Vec<OwnedFd>) -> std::io::Result<Self> {
        let most = arena.depth().max(1);
        Self::with(arena, files, (1, most))
    }

    /// With so many threads at once, and at most.
    fn with(arena: Arena, files: Vec<OwnedFd>, (first, most): (u32, u32)) -> std::io::Result<Self> {
        let depth = index(arena.depth());
        let state = State {
            jobs: VecDeque::with_capacity(depth),
            finished: VecDeque::with_capacity(depth),
            busy: 0,
            closing: false,
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(state),
            work: Condvar::new(),
            finished: Condvar::new(),
            finished_count: AtomicU32::new(0),
        });
        let mut pool = Self {
            shared,
            threads: Vec::new(),
            most: index(most),
            line: Vec::with_capacity(depth),
            done: Completions::new(arena.depth()),
            submitted: 0,
            arena: ManuallyDrop::new(arena),
            files: ManuallyDrop::new(files),
        };
        for _ in 0..first {
            pool.start_thread()?;
        }
        Ok(pool)
    }

    fn start_thread(&mut self) -> std::io::Result<()> {
        let shared = Arc::clone(&self.shared);
        let thread = std::thread::Builder::new().name("plumb-io".to_owned()).stack_size(STACK);
        self.threads.push(thread.spawn(move || shared.serve())?);
        Ok(())
    }

    /// How many threads there are.
    #[must_use]
    pub fn threads(&self) -> usize {
        self.threads.len()
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
    pub fn push(&mut self, transfer: &Transfer) {
        let located = self.arena.locate(transfer);
        let file = self.files.get(index(transfer.file)).expect("a file that exists");
        self.arena.begin(transfer.slot);
        assert!(self.line.len() < self.line.capacity(), "one I/O per slot");
        self.line.push(Job {
            call: if transfer.write { Call::Write } else { Call::Read },
            fd: file.as_raw_fd(),
            slot: transfer.slot,
            len: transfer.len,
            offset: transfer.offset,
            address: located.address,
        });
    }

    /// Puts a flush (`fdatasync`) of a file in line: its result is 0, or minus an errno.
    ///
    /// # Panics
    /// When its slot is in flight, or its file does not exist.
    pub fn push_flush(&mut self, file: u32, slot: u32) {
        let fd = self.files.get(index(file)).expect("a file that exists").as_raw_fd();
        self.arena.begin(slot);
        assert!(self.line.len() < self.line.capacity(), "one I/O per slot");
        let (call, address) = (Call::Flush, NonNull::dangling());
        self.line.push(Job { call, fd, slot, len: 0, offset: 0, address });
    }

    /// Hands out what is in line and waits until `wanted` completions are there or `timeout` has passed;
    /// without a limit, for no more than are in flight.
    pub fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) {
        self.submitted += to_u32(self.line.len());
        self.grow();
        let mut state = self.shared.lock();
        if !self.line.is_empty() {
            // As many as there are jobs: who finds none goes back to sleep, and that costs.
            for job in self.line.drain(..) {
                state.jobs.push_back(job);
                self.shared.work.notify_one();
            }
        }
        let missing = wanted.saturating_sub(self.done.waiting());
        if timeout == Nanos::NEVER {
            let missing = missing.min(self.submitted);
            while to_u32(state.finished.len()) < missing {
                state = self.shared.finished.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        } else if missing > 0 {
            let enough = |state: &mut State| to_u32(state.finished.len()) < missing;
            let waited = self.shared.finished.wait_timeout_while(state, timeout.into(), enough);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
        Self::take(&mut state, &mut self.done, &mut self.submitted);
        self.shared.finished_count.store(0, Ordering::Relaxed);
    }

    /// Starts threads for jobs that nobody would begin now. Where one cannot be started, those that are there make do.
    fn grow(&mut self) {
        if self.threads.len() >= self.most || self.line.is_empty() {
            return;
        }
        let (busy, waiting) = {
            let state = self.shared.lock();
            (index(state.busy), state.jobs.len())
        };
        let wanted = (busy + waiting + self.line.len()).min(self.most);
        while self.threads.len() < wanted && self.start_thread().is_ok() {}
    }

    fn take(state: &mut State, done: &mut Completions, submitted: &mut u32) {
        for finished in state.finished.drain(..) {
            *submitted -= 1;
            done.push(finished);
        }
    }

    /// How many completions are there; [`Pool::pop`] yields these.
    pub fn look(&mut self) -> u32 {
        if self.shared.finished_count.load(Ordering::Relaxed) > 0 {
            let mut state = self.shared.lock();
            Self::take(&mut state, &mut self.done, &mut self.submitted);
            self.shared.finished_count.store(0, Ordering::Relaxed);
        }
        self.done.look()
    }

    /// The next completion that was counted; its slot is idle again.
    pub fn pop(&mut self) -> Option<Finished> {
        let finished = self.done.pop()?;
        self.arena.end(finished.slot);
        Some(finished)
    }

    /// The buffer of an idle slot.
    ///
    /// # Panics
    /// When the slot is in flight, or the lane does not cover it.
    #[must_use]
    pub fn buffer_mut(&mut self, slot: u32, lane: u32) -> &mut [u8] {
        self.arena.buffer_mut(slot, lane)
    }

    /// Takes back the jobs that were not begun and waits for the others, `limit` at most; whether none
    /// is left.
    fn close(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        let mut state = self.shared.lock();
        state.jobs.clear();
        state.closing = true;
        self.shared.work.notify_all();
        let busy = |state: &mut State| state.busy > 0;
        let left = end.saturating_duration_since(Instant::now());
        let waited = self.shared.finished.wait_timeout_while(state, left, busy);
        waited.unwrap_or_else(PoisonError::into_inner).0.busy == 0
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        if !self.close(DRAIN_LIMIT) {
            // A thread hangs in a call: its buffer and file must stay, so all are leaked.
            return;
        }
        for thread in self.threads.drain(..) {
            thread.join().expect("the threads of a pool do not panic");
        }
        // SAFETY: dropped once, here; every thread has ended, so nobody touches a buffer again.
        unsafe { ManuallyDrop::drop(&mut self.arena) };
        // SAFETY: dropped once, here; no thread uses a descriptor again.
        unsafe { ManuallyDrop::drop(&mut self.files) };
    }
}

impl Shared {
    /// Holders of the lock do not panic; if one did, what it left is still whole.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A thread's life: one job after the other until the pool closes.
    fn serve(&self) {
        let mut state = self.lock();
        loop {
            if let Some(job) = state.jobs.pop_front() {
                state.busy += 1;
                drop(state);
                let finished = Finished { slot: job.slot, result: perform(job) };
                state = self.lock();
                state.busy -= 1;
                state.finished.push_back(finished);
                self.finished_count.fetch_add(1, Ordering::Relaxed);
                self.finished.notify_one();
            } else if state.closing {
                return;
            } else {
                state = self.work.wait(state).unwrap_or_else(PoisonError::into_inner);
            }
        }
    }
}

/// The call itself: bytes moved, or minus an errno.
fn perform(job: Job) -> i32 {
    let (address, len) = (job.address.as_ptr().cast::<libc::c_void>(), index(job.len));
    let offset = job.offset.cast_signed();
    loop {
        let moved = match job.call {
            // SAFETY: len bytes at address are the job's alone to touch (see Job) and readable.
            Call::Write => unsafe { libc::pwrite(job.fd, address, len, offset) },
            // SAFETY: len bytes at address are the job's alone to touch (see Job) and writable: reads
            // go to lanes only.
            Call::Read => unsafe { libc::pread(job.fd, address, len, offset) },
            // SAFETY: it takes no memory; the descriptor is open as long as its pool has threads.
            Call::Flush => unsafe { libc::fdatasync(job.fd) as isize },
            // SAFETY: as for a read.
            #[cfg(test)]
            Call::Hang => unsafe { libc::read(job.fd, address, len) },
        };
        if let Ok(moved) = u64::try_from(moved) {
            return i32::try_from(moved).expect("the kernel moves less than 2 GiB per call");
        }
        let error = std::io::Error::last_os_error();
        let errno = error.raw_os_error().expect("the last error of the system has a number");
        if errno != libc::EINTR {
            return -errno;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{LaneSpec, Place, RegionSpec};
    use crate::memory::BufferPlacement;

    fn pool(depth: u32) -> Pool {
        let lane = LaneSpec { first_slot: 0, slots: depth, bytes: 64 };
        let regions = [RegionSpec { lanes: vec![lane] }];
        let arena = Arena::new(depth, &regions, &[], BufferPlacement::System).expect("memory");
        let file = rustix::fs::memfd_create("pool", rustix::fs::MemfdFlags::CLOEXEC);
        let file = file.expect("a file in memory");
        rustix::fs::ftruncate(&file, u64::from(depth) * 64).expect("room");
        Pool::open(arena, vec![file]).expect("threads")
    }

    fn read(slot: u32) -> Transfer {
        let offset = u64::from(slot) * 64;
        Transfer { write: false, file: 0, slot, len: 64, offset, memory: Place::Lane(0) }
    }

    #[test]
    fn more_jobs_than_threads_all_finish() {
        let depth = 2 * THREADS_MAX + 3;
        let mut pool = pool(depth);
        assert_eq!(pool.threads(), index(THREADS_MAX));
        for _ in 0..10 {
            (0..depth).for_each(|slot| pool.push(&read(slot)));
            pool.submit_and_wait(depth, Nanos::NEVER);
            assert_eq!(pool.look(), depth);
            assert!(std::iter::from_fn(|| pool.pop()).all(|finished| finished.result == 64));
        }
    }

    /// A call that never ends keeps nobody else from going on.
    #[test]
    fn a_growing_pool_has_a_thread_for_each_call_that_does_not_end() {
        let depth = 5;
        let lane = LaneSpec { first_slot: 0, slots: depth, bytes: 64 };
        let regions = [RegionSpec { lanes: vec![lane] }];
        let arena = Arena::new(depth, &regions, &[], BufferPlacement::System).expect("memory");
        let file = rustix::fs::memfd_create("pool", rustix::fs::MemfdFlags::CLOEXEC);
        let file = file.expect("a file in memory");
        rustix::fs::ftruncate(&file, 5 * 64).expect("room");
        let (pipe, end) = rustix::pipe::pipe().expect("a pipe");
        let mut pool = Pool::growing(arena, vec![file, pipe]).expect("threads");
        assert_eq!(pool.threads(), 1);
        for hangs in 0..4 {
            pool.push(&Transfer { file: 1, len: 1, ..read(hangs) });
            pool.line[0].call = Call::Hang;
            pool.submit_and_wait(0, Nanos::ZERO);
            pool.push(&read(4));
            pool.submit_and_wait(1, Nanos(10_000_000_000));
            assert_eq!(
                (pool.look(), pool.pop().map(|done| (done.slot, done.result))),
                (1, Some((4, 64)))
            );
            pool.push_flush(0, 4);
            pool.submit_and_wait(1, Nanos(10_000_000_000));
            assert_eq!(
                (pool.look(), pool.pop().map(|done| (done.slot, done.result))),
                (1, Some((4, 0)))
            );
        }
        assert_eq!(pool.threads(), index(depth));
        for _ in 0..4 {
            rustix::io::write(&end, b"x").expect("room in the pipe");
            pool.submit_and_wait(1, Nanos(10_000_000_000));
            pool.look();
            pool.pop().expect("one of them is answered");
        }
    }

    #[test]
    fn a_pool_ends_with_jobs_in_every_state() {
        for submit in [false, true] {
            let mut pool = pool(300);
            (0..200).for_each(|slot| pool.push(&read(slot)));
            if submit {
                pool.submit_and_wait(0, Nanos::ZERO);
            }
            (200..300).for_each(|slot| pool.push(&read(slot)));
        }
    }
}
