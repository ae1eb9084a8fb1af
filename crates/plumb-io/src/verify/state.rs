//! What was acknowledged, kept in a file across restarts, crashes and power cuts.
//!
//! ```text
//! 0 KiB    header, copy 0          magic "PlumbVst", form, length, CRC-32C of what follows, then: sequence,
//! 64 KiB   header, copy 1          history, lease, sessions, and per target: block, blocks, place of its
//! 128 KiB  floors of the targets   floors, path. Floors: 4 bytes per block; 0: nothing acknowledged.
//! ```
//!
//! - **Never more than was acknowledged.** A floor rises after the write was seen to complete.
//! - **No acknowledged write is forgotten.** The floor is in the kernel's hands before the completion is
//!   handed on, so it survives the end of the process at any moment. It is on the medium within
//!   [`SYNC_EVERY`] and the time of an `fdatasync`: a power cut may take back what was recorded
//!   after that, and verification then expects less, never more.
//! - **No generation is issued twice.** A session may issue generations up to its lease, which is
//!   on the medium first; the next session begins behind it, whatever became of this one.
//! - The header is written to both copies, one after the other, before anything rests on it: a cut leaves one of them
//!   whole, and what damages one costs nothing.

mod paths;

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use plumb_units::Bytes;
use plumb_units::convert::{index, to_u32, to_usize};
use rustix::fs::{FallocateFlags, FlockOperation};

use self::paths::{absolute, canonical, is_a_path};
use super::random;
use super::space::Space;

const MAGIC: [u8; 8] = *b"PlumbVst";
const FORM: u32 = 1;
/// Bytes of a copy of the header.
const HEADER: usize = 64 << 10;
const HEADER_BYTES: u64 = 64 << 10;
/// Magic, form, length, sum.
const PREFIX: usize = 20;
/// Where floors begin, and what their places are multiples of.
const FLOORS: u64 = 128 << 10;
const ALIGN: u64 = 4096;
/// Generations that a session takes at a time.
const LEASE: u32 = 1 << 20;
/// How soon floors are brought to the medium.
pub const SYNC_EVERY: Duration = Duration::from_millis(100);
/// Bytes of floors that are read at a time.
const CHUNK: u64 = 1 << 20;

/// A state file that cannot be used.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum StateError {
    /// The system refuses.
    #[error("cannot use the state file '{}' (--verify-state): {what}", path.display())]
    #[diagnostic(
        code(plumb::verify::state_io),
        help("name a file on a disk with room that may be written")
    )]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// What the system said.
        source: io::Error,
    },
    /// Another run has it.
    #[error("the state file '{}' is in use by another run", path.display())]
    #[diagnostic(code(plumb::verify::state_busy), help("wait until it ends, or name another file"))]
    Busy {
        /// The file.
        path: PathBuf,
    },
    /// It is none.
    #[error("'{}' is no state file of a verified run, or both copies of its header are damaged", path.display())]
    #[diagnostic(
        code(plumb::verify::state_damaged),
        help("name a new file to begin anew; what is on the targets is then no longer expected")
    )]
    Damaged {
        /// The file.
        path: PathBuf,
    },
    /// It says of blocks what no run can have done.
    #[error("the state file '{}' is damaged: it has a write to '{target}' that no run issued", path.display())]
    #[diagnostic(
        code(plumb::verify::state_floors),
        help("name a new file to begin anew; what is on the targets is then no longer expected")
    )]
    Floors {
        /// The file.
        path: PathBuf,
        /// The target.
        target: String,
    },
    /// Too many targets or sessions.
    #[error("the state file '{}' has no room for more {what}", path.display())]
    #[diagnostic(code(plumb::verify::state_full), help("name a new file to begin anew"))]
    Full {
        /// The file.
        path: PathBuf,
        /// Of what.
        what: &'static str,
    },
    /// A target lost its end.
    #[error(
        "'{target}' is {} long, and the state file '{}' knows of content up to {}",
        Bytes(*size).in_words(), path.display(), Bytes(*known).in_words()
    )]
    #[diagnostic(
        code(plumb::verify::target_shrank),
        help("acknowledged writes are lost; to go on without them name a new state file")
    )]
    Shrank {
        /// The file.
        path: PathBuf,
        /// The target.
        target: String,
        /// Its size now.
        size: u64,
        /// Its size as remembered.
        known: u64,
    },
}

/// A state file that is open for one session.
#[derive(Debug)]
pub(super) struct State {
    shared: Arc<Shared>,
    syncer: Mutex<Option<Syncer>>,
}

#[derive(Debug)]
struct Syncer {
    stop: Sender<()>,
    thread: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    path: PathBuf,
    file: File,
    header: Mutex<Header>,
    lease: AtomicU32,
    /// The newest generation that was issued.
    issued: AtomicU32,
    unsynced: AtomicBool,
    failed: AtomicBool,
}

/// What a header says.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Header {
    sequence: u64,
    history: u64,
    /// The newest generation that may have been issued.
    lease: u32,
    sessions: u32,
    /// Whether a session is going on, or was cut off.
    open: bool,
    targets: Vec<TargetEntry>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct TargetEntry {
    block: u32,
    blocks: u64,
    at: u64,
    path: Vec<u8>,
}

/// What a session begins with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Session {
    pub(super) history: u64,
    pub(super) number: u32,
    pub(super) first: u32,
    /// Whether the session before was cut off.
    pub(super) was_cut: bool,
}

/// A target's floors in the file.
#[derive(Debug)]
pub(super) struct StateTarget {
    shared: Arc<Shared>,
    at: u64,
}

impl StateTarget {
    pub(super) fn lease(&self) -> u32 {
        self.shared.lease.load(Ordering::Relaxed)
    }

    /// Floors from block `first` on, little-endian, have risen.
    pub(super) fn record(&self, first: u64, floors: &[u8]) -> io::Result<()> {
        let written = self.shared.file.write_all_at(floors, self.at + 4 * first);
        self.shared.unsynced.store(true, Ordering::Release);
        written
    }

    /// Makes sure that `generation` may be issued.
    pub(super) fn extend_lease(&self, generation: u32) -> io::Result<()> {
        self.shared.issued.fetch_max(generation, Ordering::Relaxed);
        if generation <= self.lease() {
            return Ok(());
        }
        let mut header = self.shared.header();
        if generation > header.lease {
            let lease = generation.saturating_add(LEASE);
            let next = Header { lease, ..header.clone() };
            *header = self.shared.write(next)?;
            self.shared.lease.store(lease, Ordering::Relaxed);
        }
        Ok(())
    }
}

impl State {
    /// Opens or makes the file, and begins a session.
    pub(super) fn open(path: &Path) -> Result<(Self, Session), StateError> {
        let failed = |what| move |source| StateError::Io { path: path.into(), what, source };
        let mut options = File::options();
        let file = options.read(true).write(true).create(true).truncate(false).open(path);
        let file = file.map_err(failed("cannot open it"))?;
        if rustix::fs::flock(&file, FlockOperation::NonBlockingLockExclusive).is_err() {
            return Err(StateError::Busy { path: path.into() });
        }
        let status = file.metadata().map_err(failed("cannot look at it"))?;
        if !status.is_file() {
            return Err(StateError::Damaged { path: path.into() });
        }
        let header = match status.len() {
            0 => {
                file.set_len(FLOORS).map_err(failed("cannot make it larger"))?;
                Header { history: random(), ..Header::default() }
            }
            len => {
                read_header(&file, len).ok_or_else(|| StateError::Damaged { path: path.into() })?
            }
        };
        let full = |what| StateError::Full { path: path.into(), what };
        let first = header.lease.checked_add(1);
        let lease = first.and_then(|first| first.checked_add(LEASE));
        let number = header.sessions.checked_add(1).filter(|number| *number < 1 << 20);
        let (Some(first), Some(lease), Some(number)) = (first, lease, number) else {
            return Err(full("sessions"));
        };
        let session = Session { history: header.history, number, first, was_cut: header.open };
        let shared = Shared {
            path: path.into(),
            file,
            header: Mutex::default(),
            lease: AtomicU32::new(lease),
            issued: AtomicU32::new(first - 1),
            unsynced: AtomicBool::new(false),
            failed: AtomicBool::new(false),
        };
        let begun = Header { lease, sessions: number, open: true, ..header };
        *shared.header() = shared.write(begun).map_err(failed("cannot write it"))?;
        if let Some(folder) = path.parent() {
            // The name, too, is to survive a power cut.
            let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
            let synced = File::open(folder).and_then(|folder| folder.sync_all());
            synced.map_err(failed("cannot bring its folder to the medium"))?;
        }
        let shared = Arc::new(shared);
        let (stop, stopped) = mpsc::channel();
        let syncing = Arc::clone(&shared);
        let thread = std::thread::Builder::new()
            .name("plumb-state".into())
            .spawn(move || {
                while stopped.recv_timeout(SYNC_EVERY) == Err(RecvTimeoutError::Timeout) {
                    syncing.sync();
                }
            })
            .map_err(failed("cannot start a thread for it"))?;
        let syncer = Mutex::new(Some(Syncer { stop, thread }));
        Ok((Self { shared, syncer }, session))
    }

    pub(super) fn path(&self) -> &Path {
        &self.shared.path
    }

    /// Whether a file or device that it knows is not there any more.
    pub(super) fn misses(&self, path: &Path) -> bool {
        self.knows(path) && is_a_path(path) && !path.exists()
    }

    /// Whether it knows a target of that path: something may be acknowledged there.
    pub(super) fn knows(&self, path: &Path) -> bool {
        let wanted = canonical(path);
        self.shared.header().targets.iter().any(|known| canonical(&known.path()) == wanted)
    }

    /// The number and the floors of a target: of an old one, in blocks of `block` bytes or a part of
    /// that; else of a new one. `space` makes the space from (number, block, blocks, floors' place), and gets
    /// the floors.
    pub(super) fn attach(
        &self,
        path: &Path,
        (size, used): (u64, u64),
        block: u32,
        space: impl FnOnce(u64, u32, u64, StateTarget) -> Space,
    ) -> Result<Space, StateError> {
        let shared = &self.shared;
        let failed =
            |what| move |source| StateError::Io { path: shared.path.clone(), what, source };
        let wanted = canonical(path);
        let mut header = shared.header();
        let known = header.targets.iter().position(|known| canonical(&known.path()) == wanted);
        let old = known.map(|known| header.targets[known].clone());
        let block = old.as_ref().map_or(block, |old| gcd(block, old.block));
        let known_bytes = old.as_ref().map_or(0, |old| old.blocks * u64::from(old.block));
        let blocks = used.min(size).max(known_bytes) / u64::from(block);
        if let Some(old) = &old
            && old.blocks * u64::from(old.block) > size
        {
            let known = old.blocks * u64::from(old.block);
            let target = path.display().to_string();
            return Err(StateError::Shrank { path: shared.path.clone(), target, size, known });
        }
        let fits = |old: &&TargetEntry| old.block == block && old.blocks == blocks;
        let entry = match old.as_ref().filter(fits) {
            Some(entry) => entry.clone(),
            None => {
                let last = header.targets.iter().map(|entry| entry.at + 4 * entry.blocks).max();
                let at = last.unwrap_or(FLOORS).max(FLOORS).next_multiple_of(ALIGN);
                let path = match &old {
                    Some(old) => old.path.clone(),
                    None => absolute(path),
                };
                let entry = TargetEntry { block, blocks, at, path };
                shared.reserve(at, 4 * blocks).map_err(failed("no room for another target"))?;
                if let Some(old) = &old {
                    shared.spread(old, &entry).map_err(failed("cannot rewrite it"))?;
                }
                entry
            }
        };
        let mut next = header.clone();
        match known {
            Some(known) => next.targets[known] = entry.clone(),
            None => next.targets.push(entry.clone()),
        }
        if next.encode().len() > HEADER {
            return Err(StateError::Full { path: shared.path.clone(), what: "targets" });
        }
        let number = known.unwrap_or(next.targets.len() - 1);
        if next != *header {
            *header = shared.write(next).map_err(failed("cannot write it"))?;
        }
        let lease = header.lease;
        drop(header);
        let target = StateTarget { shared: Arc::clone(shared), at: entry.at };
        let space = space(plumb_units::convert::to_u64(number), block, blocks, target);
        if old.is_some() {
            let mut newest = 0;
            shared
                .floors(&entry, |first, floors| {
                    newest = floors.iter().copied().max().unwrap_or(0).max(newest);
                    space.remember(first, floors);
                })
                .map_err(failed("cannot read it"))?;
            if newest > lease {
                let target = path.display().to_string();
                return Err(StateError::Floors { path: shared.path.clone(), target });
            }
        }
        Ok(space)
    }

    /// Whether anything could not be written.
    pub(super) fn failed(&self) -> bool {
        self.shared.failed.load(Ordering::Relaxed)
    }

    /// Ends the session: everything is on the medium.
    pub(super) fn close(&self) -> Result<(), StateError> {
        self.stop_syncer();
        // The next session begins right behind what was issued.
        let mut header = self.shared.header();
        let lease = self.shared.issued.load(Ordering::Relaxed);
        let next = Header { open: false, lease, ..header.clone() };
        let failed = |source| StateError::Io {
            path: self.shared.path.clone(),
            what: "cannot write it",
            source,
        };
        *header = self.shared.write(next).map_err(failed)?;
        Ok(())
    }

    fn stop_syncer(&self) {
        let syncer = self.syncer.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(Syncer { stop, thread }) = syncer {
            drop(stop);
            // It does nothing that could panic.
            let _ = thread.join();
        }
    }
}

impl Drop for State {
    fn drop(&mut self) {
        self.stop_syncer();
    }
}

impl Shared {
    fn header(&self) -> MutexGuard<'_, Header> {
        self.header.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn sync(&self) {
        if self.unsynced.swap(false, Ordering::Acquire) && self.file.sync_data().is_err() {
            self.failed.store(true, Ordering::Relaxed);
        }
    }

    /// Brings everything to the medium, then a header of the next number, to one copy after the other.
    fn write(&self, header: Header) -> io::Result<Header> {
        let header = Header { sequence: header.sequence + 1, ..header };
        let bytes = header.encode();
        self.file.sync_data()?;
        for copy in [0, 1] {
            self.file.write_all_at(&bytes, copy * HEADER_BYTES)?;
            self.file.sync_data()?;
        }
        Ok(header)
    }

    fn reserve(&self, at: u64, len: u64) -> io::Result<()> {
        // Whatever an earlier attempt left there, no header speaks of it.
        self.file.set_len(at)?;
        match rustix::fs::fallocate(&self.file, FallocateFlags::empty(), at, len.max(1)) {
            Ok(()) => {}
            Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => {
                self.file.set_len(at + len)?;
            }
            Err(errno) => return Err(errno.into()),
        }
        Ok(())
    }

    /// Floors of `old` into the finer or longer `new`.
    fn spread(&self, old: &TargetEntry, new: &TargetEntry) -> io::Result<()> {
        let per_block = u64::from(old.block / new.block);
        let mut outcome = Ok(());
        self.floors(old, |first, floors| {
            for (nth, floor) in (first..).zip(floors).filter(|(_, floor)| **floor > 0) {
                let bytes = floor.to_le_bytes().repeat(to_usize(per_block));
                let written = self.file.write_all_at(&bytes, new.at + 4 * nth * per_block);
                if outcome.is_ok() {
                    outcome = written;
                }
            }
        })?;
        outcome
    }

    fn floors(&self, entry: &TargetEntry, mut each: impl FnMut(u64, &[u32])) -> io::Result<()> {
        let mut bytes = vec![0; to_usize(CHUNK)];
        let mut first = 0;
        while first < entry.blocks {
            let some = (CHUNK / 4).min(entry.blocks - first);
            let bytes = &mut bytes[..to_usize(4 * some)];
            self.file.read_exact_at(bytes, entry.at + 4 * first)?;
            let word = |bytes: &[u8]| u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
            let floors: Vec<u32> = bytes.chunks_exact(4).map(word).collect();
            each(first, &floors);
            first += some;
        }
        Ok(())
    }
}

impl TargetEntry {
    fn path(&self) -> PathBuf {
        use std::os::unix::ffi::OsStringExt;
        std::ffi::OsString::from_vec(self.path.clone()).into()
    }
}

impl Header {
    fn encode(&self) -> Vec<u8> {
        let mut body = Vec::new();
        body.extend(self.sequence.to_le_bytes());
        body.extend(self.history.to_le_bytes());
        body.extend(self.lease.to_le_bytes());
        body.extend(self.sessions.to_le_bytes());
        body.extend(u32::from(self.open).to_le_bytes());
        body.extend(to_u32(self.targets.len()).to_le_bytes());
        for target in &self.targets {
            body.extend(target.block.to_le_bytes());
            body.extend(target.blocks.to_le_bytes());
            body.extend(target.at.to_le_bytes());
            body.extend(to_u32(target.path.len()).to_le_bytes());
            body.extend(&target.path);
        }
        let mut bytes = MAGIC.to_vec();
        bytes.extend(FORM.to_le_bytes());
        bytes.extend(to_u32(body.len()).to_le_bytes());
        bytes.extend(crc32c::crc32c(&body).to_le_bytes());
        bytes.extend(body);
        bytes
    }

    /// Reads a copy of the header; `None` for anything but one that was written whole, in a file of
    /// `len` bytes.
    pub(super) fn decode(bytes: &[u8], len: u64) -> Option<Self> {
        let (prefix, rest) = bytes.split_at_checked(PREFIX)?;
        let mut prefix = Fields(prefix);
        if prefix.take(8)? != MAGIC || prefix.word()? != FORM {
            return None;
        }
        let body = rest.get(..index(prefix.word()?))?;
        if crc32c::crc32c(body) != prefix.word()? {
            return None;
        }
        let mut body = Fields(body);
        let mut header = Self {
            sequence: body.long()?,
            history: body.long()?,
            lease: body.word()?,
            sessions: body.word()?,
            open: body.word()? != 0,
            targets: Vec::new(),
        };
        for _ in 0..body.word()? {
            let (block, blocks, at) = (body.word()?, body.long()?, body.long()?);
            let path_len = body.word()?;
            let path = body.take(index(path_len))?.to_vec();
            let end = blocks.checked_mul(4)?.checked_add(at)?;
            let is_whole = block >= super::SECTOR && block % super::SECTOR == 0;
            blocks.checked_mul(block.into())?;
            if !is_whole || at < FLOORS || end > len {
                return None;
            }
            header.targets.push(TargetEntry { block, blocks, at, path });
        }
        Some(header)
    }
}

/// The newer of the two copies.
fn read_header(file: &File, len: u64) -> Option<Header> {
    let copy = |nth: u64| {
        let mut bytes = vec![0; HEADER];
        file.read_exact_at(&mut bytes, nth * HEADER_BYTES).ok()?;
        Header::decode(&bytes, len)
    };
    [copy(0), copy(1)].into_iter().flatten().max_by_key(|header| header.sequence)
}

/// Bytes that are read field by field.
struct Fields<'a>(&'a [u8]);

impl<'a> Fields<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn word(&mut self) -> Option<u32> {
        Some(u32::from_le_bytes(self.take(4)?.try_into().ok()?))
    }

    fn long(&mut self) -> Option<u64> {
        Some(u64::from_le_bytes(self.take(8)?.try_into().ok()?))
    }
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

/// Whether `bytes` begin with a header that a state file of `len` bytes may have; for fuzzing: no bytes
/// make it panic or allocate more than they are long.
#[must_use]
pub fn probe(bytes: &[u8], len: u64) -> bool {
    Header::decode(bytes, len).is_some()
}
