//! io_uring: one ring per thread.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use plumb_sys::arena::{Arena, LaneSpec, Place, RegionSpec, Transfer};
use plumb_sys::completions::Finished;
use plumb_sys::memory::BufferPlacement;
use plumb_sys::ring::{Ring, RingReservation, RingSetup, SetupError};
use plumb_units::Nanos;
use rustix::process::{Resource, getrlimit};

use super::buffers;
use crate::queue::OpenFile;
use crate::{
    Done, Errno, FileIndex, FlushQueue, IoQueue, LaneIndex, Op, OpenQueueError, QueueFacts,
    QueueMode, QueueSpec, Slot,
};

/// What may be asked of the ring beyond the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UringOptions {
    /// Ask the device for completions (IOPOLL).
    pub poll: bool,
    /// Let a thread of the kernel's submit (SQPOLL).
    pub submit_thread: bool,
    /// Let each I/O have a kernel worker of its own where it needs one, so that those that hang keep no other waiting.
    pub worker_each: bool,
}

impl UringOptions {
    /// With a kernel worker for each I/O that needs one.
    #[must_use]
    pub const fn with_worker_each(self) -> Self {
        Self { worker_each: true, ..self }
    }

    /// Whether something is asked for that no other engine has.
    #[must_use]
    pub const fn needs_a_ring(self) -> bool {
        self.poll || self.submit_thread
    }
}

/// Requests that a ring takes at most, however many are asked for (`IORING_MAX_ENTRIES`, io_uring/io_uring.h).
const RING_MAX: u32 = 32_768;

/// I/O through a ring; files and, where allowed, buffers registered with it.
#[derive(Debug)]
pub struct UringQueue {
    ring: Ring,
    /// What is known of each file.
    files: Vec<OpenFile>,
    /// Refusals in words, beside those that the ring lists.
    notes: Vec<String>,
}

impl UringQueue {
    /// Makes a ring as `spec` asks.
    ///
    /// In ring mode buffers that cannot be registered are an error, for `-u` asked for them; else the
    /// queue goes on without and says so.
    ///
    /// # Errors
    /// When there is no io_uring here, memory is refused, or buffers cannot be registered.
    pub fn open(spec: QueueSpec, options: UringOptions) -> Result<Self, OpenQueueError> {
        let reservation = reserve(&spec, options).map_err(|reason| no_ring("uring", reason))?;
        let depth = spec.depth;
        let mut queue = Self::on(reservation, spec)?;
        if options.worker_each
            && let Err(errno) = queue.ring.workers(Some(depth))
        {
            let errno = Errno::from(errno);
            queue.notes.push(format!("kernel workers stay as few as they are: {errno}"));
        }
        Ok(queue)
    }

    /// The same on a ring that was made for `spec` before.
    ///
    /// # Errors
    /// When memory is refused, or buffers cannot be registered.
    pub(super) fn on(
        reservation: RingReservation,
        spec: QueueSpec,
    ) -> Result<Self, OpenQueueError> {
        let arena = buffers::arena(&spec)?;
        let bytes: u64 = spec.regions.iter().filter_map(plumb_sys::arena::RegionSpec::bytes).sum();
        let priorities: Vec<_> = spec.files.iter().map(|file| file.priority).collect();
        let known = spec.files.iter().map(OpenFile::of).collect();
        let files = spec.files.into_iter().map(|file| file.descriptor).collect();
        let mut ring = reservation.open(arena, files);
        for (file, priority) in (0..).zip(priorities) {
            if let Some(priority) = priority {
                ring.set_priority(file, priority);
            }
        }
        let mut notes = Vec::new();
        if spec.register_buffers
            && let Err(errno) = ring.register_buffers()
        {
            let reason = unregistered(errno.into());
            if spec.mode == QueueMode::Ring {
                let remedy = REGISTER_REMEDY.to_owned();
                return Err(OpenQueueError::Memory { bytes, reason, remedy });
            }
            notes.push(reason);
        }
        if spec.mode == QueueMode::Ring && spec.depth > RING_MAX {
            notes.push(format!(
                "{} requests with one call: a ring of this kernel has room for {RING_MAX}",
                spec.depth
            ));
        }
        Ok(Self { ring, files: known, notes })
    }
}

const REGISTER_REMEDY: &str = "raise the limit (ulimit -l, LimitMEMLOCK=, or CAP_IPC_LOCK), or use \
                               -un: a ring with buffers that are not registered";

/// Makes the ring of `spec`, which keeps its files for another engine where there is none of that size.
///
/// # Errors
/// Why not, in words.
pub(super) fn reserve(spec: &QueueSpec, options: UringOptions) -> Result<RingReservation, String> {
    let setup = RingSetup {
        poll: options.poll,
        submit_thread: options.submit_thread,
        ..ring_setup(spec.measures_latency, spec.depth)
    };
    RingReservation::new(spec.depth, setup).map_err(|error| obstacle(error, spec.depth))
}

/// The profile of a ring: completions are posted in calls of the thread only, which is the cheapest. Where
/// latencies are measured the kernel says that some wait, so that a look between two entries sees them; a
/// thread with one outstanding I/O waits for it anyway.
fn ring_setup(measures_latency: bool, depth: u32) -> RingSetup {
    let announced = measures_latency && depth > 1;
    RingSetup { defer_taskrun: true, taskrun_flag: announced, ..RingSetup::default() }
}

fn unregistered(errno: Errno) -> String {
    if errno == Errno::from(rustix::io::Errno::NOMEM) {
        let limit = getrlimit(Resource::Memlock).current;
        let limit = limit.map_or_else(|| "unlimited".to_owned(), |bytes| format!("{bytes} bytes"));
        format!("{TOO_LARGE}, {limit}) is too low to register buffers")
    } else {
        format!("buffers cannot be registered: {errno}")
    }
}

/// Tries a ring: makes one and runs an operation through it. What the ladder asks before it gives the
/// files away.
///
/// # Errors
/// Why io_uring cannot be used here.
pub fn probe() -> Result<(), String> {
    on_another_thread(probe_here)
}

/// The size of a thread's first ring bounds its kernel workers for good: what is only tried is tried elsewhere.
fn on_another_thread(work: impl FnOnce() -> Result<(), String> + Send) -> Result<(), String> {
    std::thread::scope(|scope| {
        let thread = std::thread::Builder::new().name("plumb-probe".to_owned());
        let thread = thread.spawn_scoped(scope, work);
        let thread = thread.map_err(|error| format!("no thread to try a ring on: {error}"))?;
        thread.join().unwrap_or_else(|_| Err("a ring could not be tried".to_owned()))
    })
}

fn probe_here() -> Result<(), String> {
    let arena = Arena::new(1, &[], &[], crate::BufferPlacement::System);
    let arena = arena.map_err(|error| Errno::from(error.errno).to_string())?;
    let setup = RingSetup::default();
    let ring = Ring::open(arena, Vec::new(), setup);
    let mut ring = ring.map_err(|error| obstacle(error, 1))?;
    ring.push_probe(0);
    let waited = ring.submit_and_wait(1, Nanos::from_secs(1));
    waited.map_err(|errno| format!("a ring takes no submissions: {}", Errno::from(errno)))?;
    ring.look();
    match ring.pop() {
        Some(Finished { slot: 0, result: 0 }) => Ok(()),
        other => Err(format!("a ring completes an empty operation with {other:?}")),
    }
}

/// How long a read that is tried may take.
const TRIED_FOR: Duration = Duration::from_secs(10);

/// Tries one polled read of `bytes` at the start of a file that is open for direct reads. A file system may
/// have no way to poll though its device has (linux/io_uring.h: IORING_SETUP_IOPOLL).
///
/// # Errors
/// Why the read failed, in words. That there is no ring at all is not said here.
pub fn try_poll(file: OwnedFd, bytes: u32) -> Result<(), String> {
    on_another_thread(|| try_poll_here(file, bytes))
}

fn try_poll_here(file: OwnedFd, bytes: u32) -> Result<(), String> {
    let region = RegionSpec { lanes: vec![LaneSpec { first_slot: 0, slots: 1, bytes }] };
    let arena = Arena::new(1, &[region], &[], BufferPlacement::System);
    let arena =
        arena.map_err(|error| format!("no memory for a read of {bytes} bytes: {error:?}"))?;
    let setup = RingSetup { poll: true, ..RingSetup::default() };
    let Ok(mut ring) = Ring::open(arena, vec![file], setup) else { return Ok(()) };
    let (write, slot, file, offset) = (false, 0, 0, 0);
    let memory = Place::Lane(0);
    ring.push(&Transfer { write, file, slot, len: bytes, offset, memory });
    let until = Instant::now() + TRIED_FOR;
    let finished = loop {
        ring.submit_and_wait(1, Nanos::NEVER).map_err(|errno| Errno::from(errno).to_string())?;
        ring.look();
        if let Some(finished) = ring.pop() {
            break finished;
        }
        // The kernel gives up polling when others want the processor, and is to be asked again.
        if Instant::now() > until {
            return Err(format!("a polled read did not end within {} s", TRIED_FOR.as_secs()));
        }
    };
    let failed = (finished.result < 0).then(|| Errno(-finished.result));
    match failed {
        None => Ok(()),
        Some(errno) if errno == Errno::from(rustix::io::Errno::OPNOTSUPP) => {
            Err("its file system cannot poll for completions (EOPNOTSUPP)".to_owned())
        }
        Some(errno) => Err(format!("a polled read of {bytes} bytes fails: {errno}")),
    }
}

/// The error of a forced `engine` that needs a ring.
pub(crate) fn unavailable(engine: &str, error: SetupError, depth: u32) -> OpenQueueError {
    no_ring(engine, obstacle(error, depth))
}

/// What is said where the process has no descriptor left.
const TOO_MANY: &str = "this process has too many files open for one more ring (EMFILE)";

/// What is said where a ring is too large for the limit on locked memory.
const TOO_LARGE: &str = "the limit on locked memory (RLIMIT_MEMLOCK";

/// The same for a probe that failed.
pub(crate) fn no_ring(engine: &str, reason: String) -> OpenQueueError {
    if reason.contains(TOO_MANY) {
        let remedy = "raise the limit (ulimit -n), or use fewer threads".to_owned();
        return OpenQueueError::Unavailable { engine: engine.to_owned(), reason, remedy };
    }
    if reason.contains(TOO_LARGE) {
        let remedy = "raise the limit (ulimit -l, LimitMEMLOCK=), use fewer requests (-o) or threads (-t), or leave \
                      out -u, --poll and --sqpoll and choose --engine auto, aio or threads"
            .to_owned();
        return OpenQueueError::Unavailable { engine: engine.to_owned(), reason, remedy };
    }
    let remedy =
        "allow io_uring (sysctl kernel.io_uring_disabled=0, a seccomp profile that permits \
                  it, Linux 5.11 or later), or leave out -u, --poll and --sqpoll and choose \
                  --engine auto, aio or threads"
            .to_owned();
    OpenQueueError::Unavailable { engine: engine.to_owned(), reason, remedy }
}

/// Why there is no ring for `depth` requests, in words that name what stands in the way.
fn obstacle(error: SetupError, depth: u32) -> String {
    match error {
        SetupError::TooOld => "this kernel's io_uring is older than Linux 5.11".to_owned(),
        SetupError::Map(errno) => {
            format!("the memory of a ring cannot be mapped: {}", Errno::from(errno))
        }
        SetupError::Setup(rustix::io::Errno::NOSYS) => {
            "this kernel has no io_uring, or a seccomp filter hides it (ENOSYS)".to_owned()
        }
        SetupError::Setup(rustix::io::Errno::PERM) => forbidden(),
        SetupError::Setup(rustix::io::Errno::NOMEM) => match getrlimit(Resource::Memlock).current {
            Some(limit) => format!(
                "{TOO_LARGE}, {limit} bytes) is too low to make a ring for {depth} request{}",
                if depth == 1 { "" } else { "s" }
            ),
            None => format!("there is no memory for a ring of {depth} requests (ENOMEM)"),
        },
        SetupError::Setup(rustix::io::Errno::MFILE) => TOO_MANY.to_owned(),
        SetupError::Setup(errno) => format!("io_uring_setup fails: {}", Errno::from(errno)),
    }
}

/// EPERM has two sources: the system's own switch, and filters that answer in its name.
fn forbidden() -> String {
    let switch = std::fs::read_to_string("/proc/sys/kernel/io_uring_disabled").unwrap_or_default();
    match switch.trim() {
        "2" => "io_uring is switched off for everyone (kernel.io_uring_disabled = 2)".to_owned(),
        "1" => "io_uring is reserved for a group (kernel.io_uring_disabled = 1, \
                kernel.io_uring_group)"
            .to_owned(),
        _ => "io_uring_setup is forbidden (EPERM): a seccomp filter, as in containers".to_owned(),
    }
}

impl IoQueue for UringQueue {
    #[inline(always)]
    fn push(&mut self, op: Op) {
        self.ring.push(&op.into());
    }

    #[inline(always)]
    fn submit_and_wait(&mut self, wanted: u32, timeout: Nanos) -> Result<(), Errno> {
        self.ring.submit_and_wait(wanted, timeout).map_err(Errno::from)
    }

    #[inline(always)]
    fn look(&mut self) -> u32 {
        self.ring.look()
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<Done> {
        self.ring.pop().map(Done::from)
    }

    #[inline]
    fn buffer_mut(&mut self, slot: Slot, lane: LaneIndex) -> &mut [u8] {
        self.ring.buffer_mut(slot.0, lane.0)
    }

    fn facts(&self) -> QueueFacts {
        facts("uring", &self.ring, &self.notes)
    }
}

impl FlushQueue for UringQueue {
    fn push_flush(&mut self, file: FileIndex, slot: Slot) {
        self.ring.push_flush(file.0, slot.0);
    }

    fn file_bytes(&self, file: FileIndex) -> Option<u64> {
        self.files.get(plumb_units::convert::index(file.0)).map(|file| file.size)
    }

    fn leads_there(&self, file: FileIndex) -> bool {
        self.files.get(plumb_units::convert::index(file.0)).is_none_or(OpenFile::is_there)
    }
}

/// The facts of an engine on a ring.
pub(crate) fn facts(engine: &str, ring: &Ring, notes: &[String]) -> QueueFacts {
    let mut facts = buffers::facts(engine, ring.arena());
    facts.flags = ring.flags().iter().map(ToString::to_string).collect();
    let refused = ring.dropped().iter();
    facts.dropped.extend(refused.map(|(what, errno)| format!("{what}: {}", Errno::from(*errno))));
    facts.dropped.extend_from_slice(notes);
    facts
}

#[cfg(test)]
mod tests {
    use rustix::fs::{MemfdFlags, Mode, OFlags};

    use super::*;

    #[test]
    fn deferred_completions_are_announced_where_they_are_timed() {
        for (measures, depth, announced) in
            [(true, 32, true), (true, 1, false), (false, 32, false), (false, 1, false)]
        {
            let setup = ring_setup(measures, depth);
            assert_eq!(setup.taskrun_flag, announced, "{measures} {depth}");
            assert!(setup.defer_taskrun);
        }
    }

    /// The kernel bounds the workers of a thread by its first ring.
    #[test]
    fn what_is_tried_leaves_a_thread_its_workers() {
        if let Err(why) = probe() {
            println!("skipped what_is_tried_leaves_a_thread_its_workers: {why}");
            return;
        }
        let workers = |tries: fn() -> Result<(), String>, worker_each| {
            let thread = move || {
                tries().expect("it was tried before");
                let spec = QueueSpec { depth: 100, ..QueueSpec::default() };
                let options = UringOptions { worker_each, ..UringOptions::default() };
                let mut queue = UringQueue::open(spec, options).expect("a ring");
                queue.ring.workers(None).expect("Linux 5.15")
            };
            std::thread::spawn(thread).join().expect("it ends")
        };
        assert_eq!(workers(probe_here, false), 1, "what this is about");
        let usual = workers(|| Ok(()), false);
        assert!(usual > 1, "{usual}");
        assert_eq!(workers(probe, false), usual);
        assert_eq!(workers(probe, true), 100);
        assert_eq!(workers(probe_here, true), 100);
    }

    #[test]
    fn a_polled_read_is_tried() {
        if let Err(why) = probe() {
            println!("skipped a_polled_read_is_tried: {why}");
            return;
        }
        // Memory has no device to poll: the kernel refuses there.
        let flags = MemfdFlags::CLOEXEC;
        let memory = rustix::fs::memfd_create("polled", flags).expect("a file in memory");
        rustix::fs::ftruncate(&memory, 4096).expect("room");
        let refused = try_poll(memory, 4096).expect_err("nothing to poll");
        assert!(refused.contains("EOPNOTSUPP"), "{refused}");
        // Where the file system can, the kernel takes it even if the device answers by interrupts.
        let file = tempfile::NamedTempFile::new_in(".").expect("a file");
        std::fs::write(file.path(), [7; 8192]).expect("written");
        let direct = OFlags::RDONLY | OFlags::DIRECT | OFlags::CLOEXEC;
        match rustix::fs::open(file.path(), direct, Mode::empty()) {
            Ok(direct) => match try_poll(direct, 4096) {
                Ok(()) => {}
                Err(why) => assert!(why.contains("EOPNOTSUPP"), "{why}"),
            },
            Err(errno) => println!("skipped a_polled_read_is_tried: no direct I/O here: {errno}"),
        }
    }

    #[test]
    fn obstacles_are_told_apart() {
        use rustix::io::Errno;
        let told = |errno| obstacle(SetupError::Setup(errno), 1024);
        assert!(told(Errno::NOSYS).contains("has no io_uring"));
        assert!(told(Errno::PERM).contains("io_uring"));
        assert!(told(Errno::NOMEM).contains("1024 requests"));
        assert!(told(Errno::MFILE).contains("too many files open"));
        assert!(obstacle(SetupError::TooOld, 1).contains("5.11"));
    }
}
