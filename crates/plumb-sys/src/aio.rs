//! Linux native AIO (libaio's system calls): what came before io_uring.
//!
//! Direct I/O runs asynchronously; on a buffered file `io_submit` itself waits for the device.

use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, OwnedFd};
use std::ptr::NonNull;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use plumb_units::Nanos;
use plumb_units::convert::{index, low_u32, to_u64};
use rustix::io::Errno;

use crate::arena::{Arena, Transfer};
use crate::call;
use crate::completions::{Completions, Finished};

/// The operations used (linux/aio_abi.h).
const READ: u16 = 0;
const WRITE: u16 = 1;
/// The completion ring that the kernel maps for us says so at its start; with no incompatible features
/// it may be read without a call.
const RING_MAGIC: u32 = 0xa10a_10a1;
/// How long a dropped context waits for its last I/Os before it gives up their memory for good.
const DRAIN_LIMIT: Duration = Duration::from_secs(10);

/// `struct iocb`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct ControlBlock {
    data: u64,
    /// `aio_key: u32, aio_rw_flags: u32`.
    key: u64,
    opcode: u16,
    priority: i16,
    fd: u32,
    address: u64,
    len: u64,
    offset: u64,
    reserved: u64,
    flags: u32,
    result_fd: u32,
}

/// `struct io_event`.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default)]
struct Event {
    data: u64,
    object: u64,
    result: i64,
    result2: i64,
}

/// `struct aio_ring`: events follow.
#[repr(C)]
#[derive(Debug)]
struct RingHeader {
    id: u32,
    entries: u32,
    head: AtomicU32,
    tail: AtomicU32,
    magic: u32,
    compatible: u32,
    incompatible: u32,
    header_len: u32,
}

/// An AIO context without files or I/Os: what the ladder tries for, and then builds on.
#[derive(Debug)]
pub struct AioReservation {
    id: u64,
    depth: u32,
}

impl AioReservation {
    /// Room for `depth` I/Os.
    ///
    /// # Errors
    /// ENOSYS without kernel support, EAGAIN when /proc/sys/fs/aio-max-nr is reached.
    pub fn new(depth: u32) -> Result<Self, Errno> {
        let depth = depth.max(1);
        let mut id = 0_u64;
        let id_address = std::ptr::from_mut(&mut id);
        // SAFETY: id is a zeroed aio_context_t and lives through the call.
        let made = unsafe { libc::syscall(libc::SYS_io_setup, depth, id_address) };
        call::check(made)?;
        Ok(Self { id, depth })
    }
}

impl Drop for AioReservation {
    fn drop(&mut self) {
        // SAFETY: the context is ours, and nobody reads its ring any more.
        let gone = unsafe { libc::syscall(libc::SYS_io_destroy, self.id) };
        assert_eq!(call::check(gone), Ok(0), "the context exists");
    }
}

/// An AIO context with its buffers and files.
#[derive(Debug)]
pub struct AioContext {
    id: u64,
    /// Destroyed when drained, else leaked.
    reservation: ManuallyDrop<AioReservation>,
    /// The kernel's completion ring, when it may be read.
    ring: Option<NonNull<RingHeader>>,
    /// One per slot.
    blocks: Box<[ControlBlock]>,
    /// Slots pushed and not submitted, in order: `line[first..]`; its capacity is fixed.
    line: Vec<u32>,
    first: usize,
    /// For the system calls.
    pointers: Box<[*mut ControlBlock]>,
    events: Box<[Event]>,
    done: Completions,
    /// Taken by the kernel, and not seen completed.
    in_kernel: u32,
    /// Freed when drained, else leaked.
    arena: ManuallyDrop<Arena>,
    descriptors: Box<[u32]>,
    _files: Vec<OwnedFd>,
}

impl AioContext {
    /// A context for the arena's slots on `files`.
    ///
    /// # Panics
    /// When the reservation is too small for the arena.
    #[must_use]
    pub fn new(reservation: AioReservation, arena: Arena, files: Vec<OwnedFd>) -> Self {
        let depth = arena.depth().max(1);
        assert!(depth <= reservation.depth, "{depth} slots, room for {}", reservation.depth);
        let id = reservation.id;
        let slots = index(depth);
        let descriptors = files.iter().map(|file| file.as_raw_fd().cast_unsigned()).collect();
        Self {
            id,
            reservation: ManuallyDrop::new(reservation),
            ring: readable_ring(id),
            blocks: vec![ControlBlock::default(); slots].into(),
            line: Vec::with_capacity(slots),
            first: 0,
            pointers: vec![std::ptr::null_mut(); slots].into(),
            events: vec![Event::default(); slots].into(),
            done: Completions::new(depth),
            in_kernel: 0,
            arena: ManuallyDrop::new(arena),
            descriptors,
            _files: files,
        }
    }

    /// Whether completions are found without a system call.
    #[must_use]
    pub fn reads_ring(&self) -> bool {
        self.ring.is_some()
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
    #[inline]
    pub fn push(&mut self, transfer: &Transfer) {
        let located = self.arena.locate(transfer);
        let fd = *self.descriptors.get(index(transfer.file)).expect("a file that exists");
        self.arena.begin(transfer.slot);
        self.blocks[index(transfer.slot)] = ControlBlock {
            data: transfer.slot.into(),
            opcode: if transfer.write { WRITE } else { READ },
            fd,
            address: to_u64(located.address.addr().get()),
            len: transfer.len.into(),
            offset: transfer.offset,
            ..ControlBlock::default()
        };
        assert!(self.line.len() < self.line.capacity(), "one I/O per slot");
        self.line.push(transfer.slot);
    }

    /// Submits what is in line and waits until `wanted` completions are there or `timeout` has passed;
    /// without a limit, for no more than are in flight. A signal may end the wait early.
    ///
    /// # Errors
    /// When the kernel takes no submissions.
    pub fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.submit()?;
        self.collect();
        let missing = wanted.saturating_sub(self.done.waiting());
        let missing = if timeout == Nanos::NEVER { missing.min(self.in_kernel) } else { missing };
        if missing == 0 {
            return Ok(());
        }
        match self.get_events(missing, timeout) {
            Ok(()) | Err(Errno::INTR) => Ok(()),
            Err(errno) => Err(errno),
        }
    }

    fn submit(&mut self) -> Result<(), Errno> {
        while self.first < self.line.len() {
            let slots = &self.line[self.first..];
            for (pointer, &slot) in self.pointers.iter_mut().zip(slots) {
                *pointer = &raw mut self.blocks[index(slot)];
            }
            let (count, pointers) = (slots.len(), self.pointers.as_mut_ptr());
            // SAFETY: the first `count` pointers lead to control blocks that live through the call, and
            // those hold addresses within the arena, in slots in flight, or of sources.
            let taken = unsafe { libc::syscall(libc::SYS_io_submit, self.id, count, pointers) };
            match call::check(taken) {
                Ok(taken) => {
                    self.first += plumb_units::convert::to_usize(taken);
                    self.in_kernel += low_u32(taken);
                }
                Err(Errno::INTR) => {}
                Err(Errno::AGAIN) => {
                    self.collect();
                    if self.done.waiting() > 0 {
                        // The issuer pops these first; the line goes on with the next call.
                        return Ok(());
                    }
                    if self.in_kernel == 0 {
                        return Err(Errno::AGAIN);
                    }
                    match self.get_events(1, Nanos::NEVER) {
                        Ok(()) | Err(Errno::INTR) => {}
                        Err(errno) => return Err(errno),
                    }
                }
                // What the kernel refuses is the first of the line: an I/O that failed.
                Err(errno) => {
                    let slot = self.line[self.first];
                    self.done.push(Finished { slot, result: -errno.raw_os_error() });
                    self.first += 1;
                }
            }
        }
        self.line.clear();
        self.first = 0;
        Ok(())
    }

    /// Waits for `wanted` events, `timeout` at most, and takes all that are there.
    fn get_events(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        let timespec = libc::timespec {
            tv_sec: (timeout.0 / 1_000_000_000).cast_signed(),
            tv_nsec: (timeout.0 % 1_000_000_000).cast_signed(),
        };
        let limit = if timeout == Nanos::NEVER { std::ptr::null() } else { &raw const timespec };
        let (room, events) = (self.events.len(), self.events.as_mut_ptr());
        let number = libc::SYS_io_getevents;
        // SAFETY: there is room for as many events as we say, and the limit is null or valid.
        let got = unsafe { libc::syscall(number, self.id, wanted, room, events, limit) };
        let got = plumb_units::convert::to_usize(call::check(got)?);
        for nth in 0..got {
            self.finish(self.events[nth]);
        }
        Ok(())
    }

    /// Takes the events that the kernel's ring holds.
    #[inline]
    fn collect(&mut self) {
        let Some(ring) = self.ring else { return };
        // SAFETY: the ring lives until io_destroy, which only drop calls; what others write in it is
        // atomic.
        let header = unsafe { ring.as_ref() };
        let tail = header.tail.load(Ordering::Acquire);
        let mut head = header.head.load(Ordering::Relaxed);
        if head == tail {
            return;
        }
        while head != tail {
            // SAFETY: the events follow the header in the same mapping.
            let events = unsafe { ring.add(1) }.cast::<Event>();
            // SAFETY: head < entries, and the mapping holds that many.
            let event = unsafe { events.add(index(head)) };
            // SAFETY: the kernel wrote it before it moved the tail and leaves it until we move the head.
            let event = unsafe { event.read() };
            self.finish(event);
            head = (head + 1) % header.entries;
        }
        header.head.store(head, Ordering::Release);
    }

    fn finish(&mut self, event: Event) {
        let result = i32::try_from(event.result).expect("the kernel moves less than 2 GiB per I/O");
        self.in_kernel -= 1;
        self.done.push(Finished { slot: low_u32(event.data), result });
    }

    /// How many completions are there; [`AioContext::pop`] yields these.
    #[inline]
    pub fn look(&mut self) -> u32 {
        self.collect();
        self.done.look()
    }

    /// The next completion that was counted; its slot is idle again.
    #[inline]
    pub fn pop(&mut self) -> Option<Finished> {
        let finished = self.done.pop()?;
        self.arena.end(finished.slot);
        Some(finished)
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

    /// Waits for what is in flight, `limit` at most; whether nothing is any more.
    fn drain(&mut self, limit: Duration) -> bool {
        let end = Instant::now() + limit;
        while self.in_kernel > 0 {
            let now = Instant::now();
            if now >= end {
                return false;
            }
            match self.get_events(self.in_kernel, (end - now).into()) {
                Ok(()) | Err(Errno::INTR) => {}
                Err(_) => return false,
            }
        }
        true
    }
}

impl Drop for AioContext {
    fn drop(&mut self) {
        if !self.drain(DRAIN_LIMIT) {
            // The kernel may still write to the buffers: they, and the context, are leaked.
            return;
        }
        // SAFETY: dropped once, here.
        unsafe { ManuallyDrop::drop(&mut self.reservation) };
        // SAFETY: dropped once, here; nothing is in flight, so the kernel touches no buffer again.
        unsafe { ManuallyDrop::drop(&mut self.arena) };
    }
}

/// The completion ring of a context, whose id is its address, if it has the form known here.
fn readable_ring(id: u64) -> Option<NonNull<RingHeader>> {
    let address = plumb_units::convert::to_usize(id);
    let ring = NonNull::new(std::ptr::with_exposed_provenance_mut::<RingHeader>(address))?;
    // SAFETY: the kernel mapped the ring at this address, page-aligned and readable, and what others
    // write in it is atomic.
    let header = unsafe { ring.as_ref() };
    let known = header.magic == RING_MAGIC
        && header.incompatible == 0
        && index(header.header_len) == size_of::<RingHeader>()
        && header.entries > 0;
    known.then_some(ring)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arena::{LaneSpec, Place, RegionSpec};
    use crate::memory::BufferPlacement;

    #[test]
    fn sizes_are_the_kernels() {
        assert_eq!(size_of::<ControlBlock>(), 64);
        assert_eq!(size_of::<Event>(), 32);
        assert_eq!(size_of::<RingHeader>(), 32);
        assert_eq!(std::mem::offset_of!(ControlBlock, fd), 20);
        assert_eq!(std::mem::offset_of!(ControlBlock, flags), 56);
    }

    #[test]
    fn events_come_by_the_ring_and_by_the_call() {
        let lane = LaneSpec { first_slot: 0, slots: 4, bytes: 512 };
        let regions = [RegionSpec { lanes: vec![lane] }];
        for by_ring in [true, false] {
            let arena = Arena::new(4, &regions, &[], BufferPlacement::System).expect("memory");
            let file = rustix::fs::memfd_create("aio", rustix::fs::MemfdFlags::CLOEXEC);
            let files = vec![file.expect("a file in memory")];
            let mut context = match AioReservation::new(4) {
                Ok(reservation) => AioContext::new(reservation, arena, files),
                Err(errno) => {
                    println!("skipped events_come_by_the_ring_and_by_the_call: {errno}");
                    return;
                }
            };
            if !by_ring {
                context.ring = None;
            }
            for round in 0..100 {
                for slot in 0..4 {
                    let offset = u64::from(slot) * 512;
                    let (write, memory) = (round == 0, Place::Lane(0));
                    let transfer = Transfer { write, file: 0, slot, len: 512, offset, memory };
                    context.push(&transfer);
                }
                context.submit_and_wait(4, Nanos::NEVER).expect("room for 4");
                assert_eq!(context.look(), 4);
                let results: Vec<_> =
                    std::iter::from_fn(|| context.pop()).map(|done| done.result).collect();
                assert_eq!(results, [512; 4]);
            }
        }
    }
}
