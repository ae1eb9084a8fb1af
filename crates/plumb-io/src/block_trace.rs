//! What block devices did and when, from the kernel's tracepoints: issue and completion of every request.
//!
//! The events are taken by a tracing instance of our own, so that nobody else's tracing is disturbed, on the
//! clock of the time stamp counter, so that they compare with stamps of ours. Nothing is read while they are
//! taken: they stay in the kernel's memory, and what does not fit is not taken ("stop at the end").

mod pages;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use plumb_units::convert;

use crate::block_stack::DeviceNumber;
use crate::clock::StampClock;
use pages::{Layout, Layouts, Raw, What};
use plumb_units::Nanos;

pub use pages::fuzz_pages;

/// Where tracefs may be mounted.
const FOLDERS: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];
/// The events that are taken.
const EVENTS: [(What, &str); 3] = [
    (What::Issue, "block_rq_issue"),
    (What::Requeue, "block_rq_requeue"),
    (What::Complete, "block_rq_complete"),
];
/// Memory for events over all processors.
const BUFFERS_KIB: u64 = 256 << 10;
/// Memory for events of one processor at most.
const BUFFER_MAX_KIB: u64 = 64 << 10;

/// Why the kernel's events cannot be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum BlockTraceError {
    /// No tracefs that shows block events.
    #[error("the kernel's tracepoints are not to be seen in {}", FOLDERS[0])]
    #[diagnostic(
        code(plumb::io::no_tracefs),
        help(
            "as root: mount -t tracefs tracefs /sys/kernel/tracing (and a kernel with CONFIG_BLK_DEV_IO_TRACE or events/block)"
        )
    )]
    NoTracefs,
    /// Stamps are not of the counter that the kernel would use.
    #[error(
        "stamps come from {clock}, and the kernel's events can only be compared with the time stamp counter's"
    )]
    #[diagnostic(
        code(plumb::io::no_trace_clock),
        help("use a machine whose kernel keeps time by the TSC (x86-64, clocksource tsc)")
    )]
    NoClock {
        /// What stamps come from.
        clock: String,
    },
    /// The kernel or the user's rights do not allow it.
    #[error("cannot trace block devices: {}", path.display())]
    #[diagnostic(
        code(plumb::io::trace),
        help(
            "it takes root, a kernel with these tracepoints, and nobody who removes the instance meanwhile; else {remedy}"
        )
    )]
    System {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
        /// What else to do.
        remedy: &'static str,
    },
}

/// A request of a block device, from its issue to the driver to its completion.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockRequest {
    /// The disk.
    pub device: DeviceNumber,
    /// First sector of 512 bytes, on the whole disk.
    pub sector: u64,
    /// Sectors.
    pub sectors: u64,
    /// Whether it writes.
    pub is_write: bool,
    /// When it was handed to the driver.
    pub issued: Nanos,
    /// When the driver said that it was done.
    pub completed: Nanos,
}

/// What was seen.
#[derive(Debug, Clone, Default)]
pub struct BlockRequests {
    /// In the order of their completion, processor by processor.
    pub requests: Vec<BlockRequest>,
    /// Events that found no room.
    pub lost: u64,
}

/// Where tracefs shows block events.
fn root() -> Result<&'static Path, BlockTraceError> {
    let events = |folder: &str| Path::new(folder).join("events/block");
    if let Some(root) = FOLDERS.into_iter().find(|folder| events(folder).is_dir()) {
        return Ok(Path::new(root));
    }
    for folder in FOLDERS {
        if let Err(source) = fs::metadata(events(folder))
            && source.kind() == io::ErrorKind::PermissionDenied
        {
            return Err(failed(Path::new(folder), source, "leave out --truth"));
        }
    }
    Err(BlockTraceError::NoTracefs)
}

/// Whether the kernel's stamps compare with those of `clock`.
fn usable(clock: StampClock) -> Result<(), BlockTraceError> {
    match clock.trace_ticks(0) {
        Some(_) => Ok(()),
        None => Err(BlockTraceError::NoClock { clock: clock.to_string() }),
    }
}

/// A tracing instance, gone when dropped.
#[derive(Debug)]
pub struct BlockTrace {
    folder: PathBuf,
    /// A file of the instance that stays open: the kernel removes no instance of which one is.
    held: Option<fs::File>,
    layouts: Layouts,
    clock: StampClock,
}

impl BlockTrace {
    /// Makes the instance, not yet taking events. `clock` is the clock of the stamps.
    ///
    /// # Errors
    /// Without root, tracefs or a usable time stamp counter.
    pub fn open(clock: StampClock) -> Result<Self, BlockTraceError> {
        Self::open_in(root()?, clock)
    }

    /// Whether [`BlockTrace::open`] may succeed: what can be told before anything is made, by a look.
    ///
    /// # Errors
    /// Without tracefs or a usable time stamp counter.
    pub fn check(clock: StampClock) -> Result<(), BlockTraceError> {
        root()?;
        usable(clock)
    }

    /// The same in a tracefs that is mounted at `root`.
    ///
    /// # Errors
    /// As for [`BlockTrace::open`].
    pub fn open_in(root: &Path, clock: StampClock) -> Result<Self, BlockTraceError> {
        remove_orphans(root);
        let folder = make_instance(root)?;
        // From here on the instance is removed whatever fails.
        let layouts = EVENTS.map(|(what, _)| (what, Layout::default()));
        let mut trace = Self { folder, held: None, layouts, clock };
        let held = trace.folder.join("tracing_on");
        let file = fs::File::open(&held).map_err(|source| failed(&held, source, TRY_AGAIN))?;
        trace.held = Some(file);
        usable(clock)?;
        trace.write("tracing_on", "0")?;
        trace.write("trace_clock", "x86-tsc")?;
        // What does not fit is not taken; what was taken stays.
        trace.write("options/overwrite", "0")?;
        let cpus = convert::to_u64(std::thread::available_parallelism().map_or(1, usize::from));
        let each = (BUFFERS_KIB / cpus.max(1)).clamp(1 << 10, BUFFER_MAX_KIB);
        trace.write("buffer_size_kb", &each.to_string())?;
        for (place, (what, event)) in EVENTS.into_iter().enumerate() {
            trace.layouts[place] = (what, trace.layout(event)?);
        }
        for (_, event) in EVENTS {
            trace.write(&format!("events/block/{event}/enable"), "1")?;
        }
        Ok(trace)
    }

    /// Begins to take events.
    ///
    /// # Errors
    /// What the system said.
    pub fn start(&self) -> Result<(), BlockTraceError> {
        self.write("tracing_on", "1")
    }

    /// Takes no more events, and reads those taken.
    ///
    /// # Errors
    /// What the system said.
    pub fn stop(self) -> Result<BlockRequests, BlockTraceError> {
        self.write("tracing_on", "0")?;
        let mut found = BlockRequests::default();
        let mut raw: Vec<Raw> = Vec::new();
        let folder = self.folder.join("per_cpu");
        let entries = fs::read_dir(&folder).map_err(|source| failed(&folder, source, TRY_AGAIN))?;
        for entry in entries {
            let cpu = entry.map_err(|source| failed(&folder, source, TRY_AGAIN))?.path();
            found.lost += lost(&cpu);
            let pipe = cpu.join("trace_pipe_raw");
            pages::read(&pipe, &self.layouts, &mut raw)
                .map_err(|source| failed(&pipe, source, TRY_AGAIN))?;
        }
        // An issue and its completion may be seen on different processors.
        raw.sort_by_key(|event| event.ticks);
        found.requests = pair(&raw, |ticks| self.clock.trace_ticks(ticks).unwrap_or_default());
        Ok(found)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), BlockTraceError> {
        let path = self.folder.join(file);
        fs::write(&path, text).map_err(|source| failed(&path, source, TRY_AGAIN))
    }

    fn layout(&self, event: &str) -> Result<Layout, BlockTraceError> {
        let path = self.folder.join(format!("events/block/{event}/format"));
        let text = fs::read_to_string(&path).map_err(|source| failed(&path, source, TRY_AGAIN))?;
        Layout::parse(&text).ok_or_else(|| {
            failed(&path, io::Error::other("its fields are not the ones known"), TRY_AGAIN)
        })
    }
}

const TRY_AGAIN: &str = "leave out --truth";

impl Drop for BlockTrace {
    fn drop(&mut self) {
        // Best effort: an instance that stays takes memory, and the next message names it.
        let _ = fs::write(self.folder.join("tracing_on"), "0");
        self.held = None;
        // A process that another thread is just starting has our files until it runs its own program.
        for _ in 0..REMOVALS {
            match fs::remove_dir(&self.folder) {
                Err(error) if error.kind() == io::ErrorKind::ResourceBusy => {
                    std::thread::sleep(std::time::Duration::from_millis(10));
                }
                _ => return,
            }
        }
    }
}

/// How often an instance that is busy is removed again.
const REMOVALS: u32 = 100;

/// Makes an instance of this process. Another one of the same number may have its own: numbers are those of a
/// container, tracefs is the machine's.
fn make_instance(root: &Path) -> Result<PathBuf, BlockTraceError> {
    const OTHERS: u32 = 63;
    let first = root.join(format!("instances/plumb-{}", std::process::id()));
    let (mut folder, mut others) = (first.clone(), 0);
    loop {
        match fs::create_dir(&folder) {
            Ok(()) => return Ok(folder),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && others < OTHERS => {
                others += 1;
                folder = first.with_extension(others.to_string());
            }
            Err(source) => {
                let remedy =
                    "remove the instances that were left behind there, or leave out --truth";
                return Err(failed(&folder, source, remedy));
            }
        }
    }
}

/// Removes instances of processes that were killed: each holds kernel memory. Those in use refuse to go: what
/// seems to be gone may live in another container.
fn remove_orphans(root: &Path) {
    let Ok(entries) = fs::read_dir(root.join("instances")) else { return };
    for entry in entries.flatten() {
        let name = entry.file_name();
        let process = name.to_str().and_then(|name| name.strip_prefix("plumb-"));
        let process = process.map(|name| name.split_once('.').map_or(name, |(process, _)| process));
        if let Some(process) = process.filter(|process| process.parse::<u32>().is_ok())
            && !Path::new("/proc").join(process).exists()
        {
            // Best effort: without it only memory is lost.
            let _ = fs::remove_dir(entry.path());
        }
    }
}

fn failed(path: &Path, source: io::Error, remedy: &'static str) -> BlockTraceError {
    BlockTraceError::System { path: path.to_owned(), source, remedy }
}

/// Events of a processor that found no room: `dropped events: 7` of its stats.
fn lost(cpu: &Path) -> u64 {
    let stats = fs::read_to_string(cpu.join("stats")).unwrap_or_default();
    let dropped = stats.lines().find_map(|line| line.strip_prefix("dropped events:"));
    dropped.and_then(|count| count.trim().parse().ok()).unwrap_or(0)
}

/// Issues with their completions: of the same disk, sector and direction, the earlier first. A request that
/// the driver gave back was not issued; it is issued again.
fn pair(events: &[Raw], time: impl Fn(u64) -> Nanos) -> Vec<BlockRequest> {
    let mut open: std::collections::HashMap<(u32, u64, bool), Vec<(u64, u64)>> =
        std::collections::HashMap::new();
    let mut requests = Vec::with_capacity(events.len() / 2);
    for event in events {
        let key = (event.device, event.sector, event.is_write);
        if event.what == What::Issue {
            open.entry(key).or_default().push((event.ticks, event.sectors));
            continue;
        }
        if event.what == What::Requeue {
            let _ = open.get_mut(&key).and_then(Vec::pop);
            continue;
        }
        let Some(waiting) = open.get_mut(&key).filter(|waiting| !waiting.is_empty()) else {
            continue;
        };
        let (ticks, sectors) = waiting.remove(0);
        // `dev_t` of the kernel: 12 bits of major, 20 of minor.
        let device =
            DeviceNumber { major: event.device >> 20, minor: event.device & ((1 << 20) - 1) };
        requests.push(BlockRequest {
            device,
            sector: event.sector,
            sectors,
            is_write: event.is_write,
            issued: time(ticks),
            completed: time(event.ticks),
        });
    }
    requests
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(is_issue: bool, sector: u64, ticks: u64) -> Raw {
        let what = if is_issue { What::Issue } else { What::Complete };
        Raw { ticks, what, device: 254 << 20, sector, sectors: 8, is_write: false }
    }

    #[test]
    fn a_request_that_was_given_back_was_not_issued() {
        let back = |ticks| Raw { what: What::Requeue, ..event(true, 16, ticks) };
        let events = [
            event(true, 16, 10),
            back(11),
            event(true, 16, 12),
            event(false, 16, 20),
            event(true, 16, 30),
            event(false, 16, 41),
        ];
        let times: Vec<_> = pair(&events, Nanos)
            .iter()
            .map(|request| (request.issued.0, request.completed.0))
            .collect();
        assert_eq!(times, [(12, 20), (30, 41)]);
    }

    #[test]
    fn issues_find_their_completions_in_order() {
        let events = [
            event(false, 5, 1),
            event(true, 16, 10),
            event(true, 32, 12),
            event(false, 32, 20),
            event(true, 32, 21),
            event(false, 16, 30),
            event(false, 32, 40),
            event(true, 48, 50),
        ];
        let requests = pair(&events, Nanos);
        let seen: Vec<_> = requests
            .iter()
            .map(|request| (request.sector, request.issued.0, request.completed.0))
            .collect();
        assert_eq!(seen, [(32, 12, 20), (16, 10, 30), (32, 21, 40)]);
        assert_eq!(requests[0].device, DeviceNumber { major: 254, minor: 0 });
    }

    struct Mounted(PathBuf);

    impl Drop for Mounted {
        fn drop(&mut self) {
            drop(std::process::Command::new("umount").arg(&self.0).status());
        }
    }

    #[test]
    fn reads_of_a_device_are_seen_where_tracing_is_allowed() {
        let test = "reads_of_a_device_are_seen_where_tracing_is_allowed";
        let (clock, _) = StampClock::new();
        let root = tempfile::tempdir().expect("a folder");
        let mount = std::process::Command::new("mount")
            .args(["-t", "tracefs", "nodev"])
            .arg(root.path())
            .stderr(std::process::Stdio::null())
            .status();
        if !mount.is_ok_and(|status| status.success()) {
            println!("skipped {test}: mounting tracefs needs root");
            return;
        }
        let _mounted = Mounted(root.path().to_owned());
        // No process has this number: pid_max is at most 2^22.
        let orphan = root.path().join("instances/plumb-4294967295");
        fs::create_dir(&orphan).expect("an instance");
        let trace = match BlockTrace::open_in(root.path(), clock) {
            Ok(trace) => trace,
            Err(why @ BlockTraceError::NoClock { .. }) => {
                println!("skipped {test}: {why}");
                return;
            }
            Err(why) => panic!("{why}"),
        };
        assert!(!orphan.exists(), "what a killed process left behind is gone");
        let folder = trace.folder.clone();
        // What runs in another container sees no process of this number, and takes it for left behind.
        let removed = fs::remove_dir(&folder).map_err(|error| error.kind());
        assert_eq!(removed, Err(io::ErrorKind::ResourceBusy), "it is in use");
        let other = BlockTrace::open_in(root.path(), clock).expect("one of the same number");
        assert_ne!(other.folder, folder);
        drop(other);
        let file = tempfile::NamedTempFile::new_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        let before = crate::clock::Clock::now(&clock);
        trace.start().expect("started");
        for round in 0..4_u8 {
            use std::os::unix::fs::FileExt;
            file.as_file().write_all_at(&[round; 65536], 0).expect("written");
            file.as_file().sync_all().expect("synced");
        }
        let found = trace.stop().expect("stopped");
        let after = crate::clock::Clock::now(&clock);
        assert!(!folder.exists(), "nothing stays behind");
        let writes = found.requests.iter().filter(|request| request.is_write).count();
        assert!(writes >= 4, "{writes} writes of {} requests", found.requests.len());
        for request in &found.requests {
            let BlockRequest { issued, completed, .. } = *request;
            assert!(before <= issued && issued <= completed && completed <= after, "{request:?}");
        }
    }
}
