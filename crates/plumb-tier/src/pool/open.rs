//! Starting a pool on this machine's disks.

use std::hash::{BuildHasher, Hasher};
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_io::descriptors::{self, Shortage};
use plumb_io::exclusive::{self, ExclusiveDisk, ExclusiveError, OtherNames};
use plumb_io::memory;
use plumb_io::system_tree::SystemTree;
use plumb_io::{OpenQueueError, TargetFile, contents};
use plumb_units::convert::{to_u32, to_u64};
use plumb_units::{Bytes, Nanos};

use super::chronicle::Chronicle;
use super::devices::DeviceQueue;
use super::emulation;
use super::full::{ROOM_LEAST, full_below, room_below};
use super::limits::LimitError;
use super::look::{Look, look, stray, superblocks};
use super::registry::{RegisteredPool, Registry, RegistryError};
use super::replace::forget_removed;
use super::settings::PoolSettings;
use super::tiering::{TieringKeeper, TieringStore};
use crate::core::Halt;
use crate::create::CreateError;
use crate::engine::{ChangeError, Engine};
use crate::io::SlotPlan;
use crate::recover::StartError;
use crate::sums_cache::sums_bytes;

/// How long to wait for the last I/O of an engine that has ended.
pub(super) const PATIENCE: Duration = Duration::from_secs(10);
/// Longest wait for devices at a time.
const GLANCE: Nanos = Nanos(5_000_000);
/// Sleep while only time can bring anything about.
const NAP: Duration = Duration::from_micros(200);

/// What can go wrong with a pool as a whole.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum PoolError {
    /// The list of pools.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Registry(#[from] RegistryError),
    /// A disk cannot be had.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Disk(#[from] ExclusiveError),
    /// It cannot be started.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Start(#[from] StartError),
    /// It cannot be started, for nothing can be written.
    #[error(
        "the file system below {} is full, and nothing can be written there: {} are free, and a start takes {} at least",
        path.display(),
        Bytes(*free),
        Bytes(ROOM_LEAST)
    )]
    #[diagnostic(
        code(plumb::tier::full_below),
        help("make room there, then: plumb space job {name} --wait")
    )]
    FullBelow {
        /// The pool.
        name: String,
        /// One of its disks.
        path: PathBuf,
        /// Bytes that are free there.
        free: u64,
        /// How it failed.
        source: Box<StartError>,
    },
    /// There is no queue for its disks.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Queue(#[from] OpenQueueError),
    /// It cannot be made.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Create(#[from] CreateError),
    /// It cannot be changed so.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Change(#[from] ChangeError),
    /// A disk is not taken (HLT-3).
    #[error("not taking disk {}, which {reason}", path.display())]
    #[diagnostic(code(plumb::tier::cannot_pool))]
    CannotPool {
        /// Which.
        path: PathBuf,
        /// The reason, with what was found.
        reason: String,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// It is none of the pool's.
    #[error("pool {pool} has no disk {} (it has: {})", path.display(), known.join(", "))]
    #[diagnostic(code(plumb::tier::unknown_disk), help("see `plumb pool show {pool}`"))]
    NoDisk {
        /// The pool.
        pool: String,
        /// As typed.
        path: PathBuf,
        /// Its disks.
        known: Vec<String>,
    },
    /// Disks are here that nobody can write to, and too few beside them.
    #[error(
        "pool {name} is not started: {} cannot be written, and without that {source}",
        paths.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" and ")
    )]
    #[diagnostic(
        code(plumb::tier::read_only_disks),
        help(
            "see the kernel's log, and make it writable: blockdev --setrw for a device, mount -o remount,rw for the file system that a file is in; if it is lost for good, disconnect it"
        )
    )]
    ReadOnlyDisks {
        /// The pool.
        name: String,
        /// Where they are.
        paths: Vec<PathBuf>,
        /// What the start said.
        source: Box<StartError>,
    },
    /// Limits that no optimization can keep to.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Limit(#[from] LimitError),
    /// The program that has it does not do what it was asked for.
    #[error("the program that has pool {name} refused: {why}")]
    #[diagnostic(
        code(plumb::tier::wish_refused),
        help("nothing was done; ask for something else, or wait until it has ended")
    )]
    WishRefused {
        /// The pool.
        name: String,
        /// In its words.
        why: String,
    },
    /// It says nothing to what it was asked for.
    #[error("the program that has pool {name} does not answer")]
    #[diagnostic(
        code(plumb::tier::no_answer),
        help("nothing was done; wait until that program has ended")
    )]
    NoAnswer {
        /// The pool.
        name: String,
    },
    /// Nobody has it.
    #[error("pool {name} is not in use by any program")]
    #[diagnostic(
        code(plumb::tier::not_in_use),
        help("disks are taken out of a running pool; of another one just disconnect the disk")
    )]
    NotInUse {
        /// The pool.
        name: String,
    },
    /// The same disk twice.
    #[error("disk {} is named twice", path.display())]
    #[diagnostic(code(plumb::tier::disk_twice), help("name each disk once"))]
    Twice {
        /// Which.
        path: PathBuf,
    },
    /// A disk and its copy.
    #[error("{} and {} both say that they are disk {ordinal} of one pool", one.display(), other.display())]
    #[diagnostic(
        code(plumb::tier::same_disk),
        help("nothing was changed. Take the copy off, or name the disk alone")
    )]
    SameDisk {
        /// The first by its name.
        one: PathBuf,
        /// The other one.
        other: PathBuf,
        /// Which disk of the pool.
        ordinal: u16,
    },
    /// A disk that is not the pool's.
    #[error("disk {} is not one of pool {name}: {why}", path.display())]
    #[diagnostic(
        code(plumb::tier::stray_disk),
        help(
            "nothing was changed; name only disks of one pool. Those that are missing may be left out"
        )
    )]
    Stray {
        /// Which.
        path: PathBuf,
        /// The pool.
        name: String,
        /// What it is instead.
        why: String,
    },
    /// It holds virtual disks.
    #[error("pool {name} holds {count} virtual disks: {list}")]
    #[diagnostic(
        code(plumb::tier::pool_holds_data),
        help("nothing was changed. If all of this may be lost for good, add: --destroy {name}")
    )]
    HoldsData {
        /// The pool.
        name: String,
        /// How many.
        count: usize,
        /// Their names.
        list: String,
    },
    /// Nobody knows what it holds.
    #[error("pool {name} cannot be read, and nobody knows what it holds")]
    #[diagnostic(
        code(plumb::tier::unread),
        help(
            "nothing was changed. Connect its disks; if they are gone and all of it may be lost for good, \
             add: --destroy {name}"
        )
    )]
    Unread {
        /// The pool.
        name: String,
        /// Why.
        source: Box<PoolError>,
    },
    /// There is too little memory for it.
    #[error("pool {name} needs {} of memory; {} are available", Bytes(*needed), Bytes(*available))]
    #[diagnostic(
        code(plumb::tier::memory),
        help("end other programs, or raise the limit of memory of this one's control group")
    )]
    Memory {
        /// The pool.
        name: String,
        /// Bytes, were every extent mapped.
        needed: u64,
        /// Bytes that are to be had.
        available: u64,
    },
    /// This program may not open enough files.
    #[error(
        "{disks} disks need {} open files beside the {} that this program has, and it may have {}",
        shortage.needed,
        shortage.open,
        shortage.limit
    )]
    #[diagnostic(
        code(plumb::tier::files),
        help(
            "nothing was changed. Raise the limit of open files: ulimit -n {}, or LimitNOFILE= of the service",
            shortage.open + shortage.needed
        )
    )]
    Files {
        /// How many are to be opened.
        disks: usize,
        /// What is missing.
        shortage: Shortage,
    },
    /// The system or this program has too little of something to look at a disk.
    #[error("cannot look at disk {}, and so cannot tell whether it is there", path.display())]
    #[diagnostic(code(plumb::tier::cannot_look))]
    CannotLook {
        /// Which disk.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// It stopped.
    #[error("pool {name} stopped")]
    #[diagnostic(code(plumb::tier::pool_halted), help("start it again: it recovers"))]
    Halted {
        /// The pool.
        name: String,
        /// Why.
        source: Halt,
    },
    /// The system refuses.
    #[error("cannot write to {}", path.display())]
    #[diagnostic(code(plumb::tier::disk_write), help("see the kernel's log, or name another disk"))]
    Write {
        /// Which disk.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// A pool that serves on the calling thread.
#[derive(Debug)]
pub struct OpenPool {
    /// Its engine.
    pub engine: Engine<DeviceQueue>,
    /// Disks that are not part of it now, and why.
    pub absent: Vec<(PathBuf, String)>,
    /// How many disks are.
    pub present: u32,
    /// Where it is written down what happens, if anywhere.
    pub chronicle: Option<Chronicle>,
    /// Why it is only read, if it is.
    pub unchanging: Option<PoolError>,
    began: Instant,
}

impl OpenPool {
    /// Lets the engine work until `done` says so, or it stops.
    pub fn work_until(&mut self, mut done: impl FnMut(&Engine<DeviceQueue>) -> bool) {
        while self.engine.halted().is_none() && !done(&self.engine) {
            self.engine.poll(self.began.elapsed().into(), GLANCE);
            if let Some(chronicle) = &mut self.chronicle {
                chronicle.serve_if_asked(&mut self.engine);
                chronicle.watch(&mut self.engine);
            }
            if self.engine.in_flight() == 0 {
                // Only time can bring anything about.
                std::thread::sleep(NAP);
            }
        }
    }

    /// Virtual disks that serve nothing because no copy of their write caches' logs is here, once the disks that are back
    /// take part again.
    pub fn detached(&mut self) -> Vec<u32> {
        let count = to_u32(self.engine.config().vdisks.len());
        let detached = |engine: &Engine<DeviceQueue>| {
            (0..count).filter(|vdisk| engine.is_detached(*vdisk)).collect::<Vec<u32>>()
        };
        if !detached(&self.engine).is_empty() {
            self.work_until(|engine| engine.returning().is_empty() && engine.is_quiet());
        }
        detached(&self.engine)
    }

    /// From now on what happens is written down beside the list of pools.
    #[must_use]
    pub fn chronicled(mut self, registry: &Registry) -> Self {
        let name = self.engine.config().name.clone();
        self.chronicle = Some(Chronicle::begin(registry, &name));
        self.go_on_with(TieringKeeper::new(TieringStore::named(registry, &name)));
        self
    }

    /// The same, of a pool that goes on with what was kept in that store already.
    pub fn tell_while_working(&mut self, registry: &Registry, store: &TieringStore) {
        let name = self.engine.config().name.clone();
        self.chronicle = Some(Chronicle::begin(registry, &name));
        self.hand_out_to(TieringKeeper::new(store.clone()));
    }

    /// What the start met is written down beside the list of pools; nothing that happens later is.
    #[must_use]
    pub fn with_start_noted(mut self, registry: &Registry) -> Self {
        let name = self.engine.config().name.clone();
        Chronicle::of(registry, &name).note_start(&mut self.engine);
        self
    }

    /// Ends cleanly, with the last word written down.
    ///
    /// # Errors
    /// When that could not be; nothing that was flushed is lost, the next start recovers.
    pub fn end(mut self) -> Result<(), PoolError> {
        let name = self.engine.config().name.clone();
        let mut kept = None;
        if let Some(mut chronicle) = self.chronicle.take() {
            chronicle.end(&mut self.engine);
            kept = Some(chronicle.registry());
        }
        let removed = self.engine.has_removed();
        let ended = self.engine.shut_down().map(|_| ());
        if let Some(registry) = kept.filter(|_| removed) {
            // Best effort: the pool ignores them for ever, with its marks or without.
            let _ = forget_removed(&registry, &name);
        }
        ended.map_err(|source| PoolError::Halted { name, source })
    }

    /// Lets the engine do all that waits to be done: a scan, a disk that comes back.
    pub fn work(&mut self) {
        self.work_until(|engine| !engine.has_work());
    }
}

/// Slots and buffers for a pool on real disks: 16 MiB for data, 6 MiB for metadata.
#[must_use]
pub fn slot_plan(files: u32, settings: &PoolSettings) -> SlotPlan {
    let time_out = settings.time_out();
    SlotPlan { data_slots: 128, data_bytes: 128 << 10, control_bytes: 256 << 10, files, time_out }
}

/// A seed that no other start has: generations are told apart by it.
pub(super) fn fresh_seed() -> u64 {
    std::hash::RandomState::new().build_hasher().finish()
}

/// Opens a pool's disks for this program alone and starts it; `more` are queue files behind them. Disks that
/// came back are taken back.
///
/// # Errors
/// When a disk is in use, or too few are here.
pub fn open(
    pool: &RegisteredPool,
    more: Vec<ExclusiveDisk>,
    (clients, client_bytes): (u32, u32),
) -> Result<OpenPool, PoolError> {
    let (files, plan, absent) = claim_all(pool, more)?;
    // A quarter of what is free is for checksums: those of other blocks are read when they are needed.
    let sums = sums_bytes(memory::available(&SystemTree::default()).unwrap_or(0));
    let engine = Engine::start_with(files, plan, (clients, client_bytes), (fresh_seed(), sums));
    started(pool, engine.map_err(|error| or_below(pool, error, &absent))?, (plan, absent))
}

/// Why a start failed: where a file system is full, or disks are read-only, it says so.
fn or_below(pool: &RegisteredPool, source: StartError, absent: &Absent) -> PoolError {
    let name = || pool.name.clone();
    match &source {
        StartError::Halted { .. } => match full_below(&pool.disks).into_iter().next() {
            Some(path) => {
                let (name, free) = (name(), room_below(&path).unwrap_or(0));
                PoolError::FullBelow { name, path, free, source: Box::new(source) }
            }
            None => source.into(),
        },
        StartError::NoQuorum { .. } => match read_only(absent) {
            paths if paths.is_empty() => source.into(),
            paths => PoolError::ReadOnlyDisks { name: name(), paths, source: Box::new(source) },
        },
        _ => source.into(),
    }
}

/// Those that are here, and that nobody can write to.
fn read_only(absent: &Absent) -> Vec<PathBuf> {
    let tree = SystemTree::default();
    let is_read_only = |path: &&PathBuf| {
        std::fs::File::open(path).is_ok_and(|file| exclusive::is_read_only(&file, path, &tree))
    };
    absent.iter().map(|one| &one.0).filter(is_read_only).cloned().collect()
}

/// The same, and if more than half of the voters are not here without them, for good: an operator says that they are
/// lost ([`Engine::start_by_word`]).
///
/// # Errors
/// When a disk is in use, or what is here is not enough even so.
pub fn open_by_word(pool: &RegisteredPool, clients: (u32, u32)) -> Result<OpenPool, PoolError> {
    match open(pool, Vec::new(), clients) {
        Err(PoolError::Start(StartError::NoQuorum { .. } | StartError::Outdated { .. })) => {}
        other => return other,
    }
    let (files, plan, absent) = claim_all(pool, Vec::new())?;
    let engine = Engine::start_by_word(files, plan, clients, fresh_seed())?;
    started(pool, engine, (plan, absent))
}

/// The same as [`open`], where what no copy of a journal or log gives at its end is not waited for: an operator says that it was
/// being written when the power went ([`Engine::start_to_unread_end`]).
///
/// # Errors
/// When a disk is in use, the pool does not start, or something was written behind that end.
pub fn open_to_unread_end(
    pool: &RegisteredPool,
    clients: (u32, u32),
) -> Result<OpenPool, PoolError> {
    let (files, plan, absent) = claim_all(pool, Vec::new())?;
    let engine = Engine::start_to_unread_end(files, plan, clients, fresh_seed())?;
    started(pool, engine, (plan, absent))
}

fn started(
    pool: &RegisteredPool,
    mut engine: Engine<DeviceQueue>,
    (plan, absent): (SlotPlan, Absent),
) -> Result<OpenPool, PoolError> {
    let present = plan.files;
    engine.set_retirement(pool.settings.retire_after());
    for disk in engine.returning().to_vec() {
        engine.attach(disk);
    }
    let (chronicle, unchanging) = (None, None);
    Ok(OpenPool { engine, absent, present, chronicle, unchanging, began: Instant::now() })
}

/// The same for whoever can do with reading: a pool without more than half of its voters, with features that this version
/// does not know and needs for writes only (LAY-5), or on file systems that are full, is started to be read only
/// ([`Engine::start_unchanging`]), on whichever of its disks are here. Nothing on them changes.
///
/// # Errors
/// When a disk is in use, or what is here cannot be read.
pub fn open_to_read(pool: &RegisteredPool, clients: (u32, u32)) -> Result<OpenPool, PoolError> {
    use StartError::{FeatureToWrite, NoQuorum};
    let why = match open(pool, Vec::new(), clients) {
        Err(
            why @ (PoolError::Start(NoQuorum { .. } | FeatureToWrite { .. })
            | PoolError::ReadOnlyDisks { .. }
            | PoolError::FullBelow { .. }),
        ) => why,
        other => return other,
    };
    let (queue, plan, absent) = claim_all(pool, Vec::new())?;
    let present = plan.files;
    let queue = DeviceQueue::unchanging(&plan, queue);
    let engine = Engine::start_unchanging(queue, plan, clients, fresh_seed())?;
    let (chronicle, unchanging) = (None, Some(why));
    Ok(OpenPool { engine, absent, present, chronicle, unchanging, began: Instant::now() })
}

/// Disks that are not part of a pool now, and why.
type Absent = Vec<(PathBuf, String)>;

/// A queue to all disks of a pool that are here, for this program alone.
fn claim_all(
    pool: &RegisteredPool,
    more: Vec<ExclusiveDisk>,
) -> Result<(DeviceQueue, SlotPlan, Absent), PoolError> {
    let tree = SystemTree::default();
    let (mut files, mut absent, mut here) = (Vec::new(), Vec::new(), Vec::new());
    let mut names = OtherNames::default();
    // Each is held, and looked at by others beside that.
    make_room(pool.disks.len(), FILES_BESIDE + to_u64(pool.disks.len()))?;
    for path in &pool.disks {
        // A link to another one of them stands for nothing.
        if let Some(why) = leads_to(&files, path) {
            absent.push((path.clone(), why));
            continue;
        }
        match claim(pool.id, path, &tree)? {
            Ok(disk) => {
                let (file, more) = disk.into_target();
                files.push(file);
                names.extend(more);
                here.push(path.clone());
            }
            Err(why) => absent.push((path.clone(), why)),
        }
    }
    foretell(pool, &here)?;
    for disk in more {
        here.push(disk.path.clone());
        let (file, more) = disk.into_target();
        files.push(file);
        names.extend(more);
    }
    let plan = slot_plan(to_u32(files.len()), &pool.settings);
    let queue = match &pool.emulated[..] {
        [] => DeviceQueue::open(&plan, files)?,
        wanted => {
            let models = emulation::models(wanted, &look(Some(pool.id), &here)?, &here);
            DeviceQueue::open_emulated(&plan, files, models)?
        }
    };
    Ok((queue.holding(names), plan, absent))
}

/// Why a path stands for no disk of its own: it leads to one that is open already.
pub(super) fn leads_to(open: &[TargetFile], path: &Path) -> Option<String> {
    let same = |file: &&TargetFile| contents::is_same(file.descriptor.as_fd(), path);
    let other = open.iter().find(same)?;
    Some(format!("it leads to {}, another disk of the pool", other.path.display()))
}

/// Files that a start has open beside its disks, at most: rings, events, what is read under `/proc` and `/sys`, other names.
pub(super) const FILES_BESIDE: u64 = 32;
const READ_ONLY: &str = "it is read-only";
const EACCES: i32 = 13;
const EPERM: i32 = 1;
const ETXTBSY: i32 = 26;

/// Sees to it that so many disks can be opened at a time, and so many files beside them. Without that, disks that are there would
/// be taken for lost.
pub(super) fn make_room(disks: usize, beside: u64) -> Result<(), PoolError> {
    let made = descriptors::make_room(to_u64(disks) + beside);
    made.map_err(|shortage| PoolError::Files { disks, shortage })
}

/// An error of a disk, unless it is one of this program's or the system's: that says nothing of the disk.
pub(super) fn of_the_disk<T>(
    path: &Path,
    went: std::io::Result<T>,
) -> Result<std::io::Result<T>, PoolError> {
    match went {
        Err(source) if descriptors::is_shortage(&source) => {
            let remedy = descriptors::remedy(&source);
            Err(PoolError::CannotLook { path: path.to_owned(), source, remedy })
        }
        went => Ok(went),
    }
}

/// Refuses a pool that would not fit into memory, were every extent of it mapped: later there is nobody to tell.
fn foretell(pool: &RegisteredPool, here: &[PathBuf]) -> Result<(), PoolError> {
    // Whatever is wrong with its disks is for the start to say.
    let Ok(found) = look(Some(pool.id), here) else { return Ok(()) };
    match shortage(&found) {
        None => Ok(()),
        Some((needed, available)) => {
            Err(PoolError::Memory { name: pool.name.clone(), needed, available })
        }
    }
}

/// Bytes that a pool would need, were every extent of it mapped, and bytes that there are; `None` where they are enough.
pub(super) fn shortage(found: &Look) -> Option<(u64, u64)> {
    let available = memory::available(&SystemTree::default())?;
    let sums = sums_bytes(available);
    let needed = crate::forecast::needed(&found.config, &found.geometry, sums);
    (needed > available).then_some((needed, available))
}

/// A pool's disk for this program alone; else why it is not here, or not this pool's: the pool does without. What is in use, or
/// what this program may not open or has too few files for, is an error: that is not a disk that is lost.
fn claim(
    pool: u128,
    path: &Path,
    tree: &SystemTree,
) -> Result<Result<ExclusiveDisk, String>, PoolError> {
    let disk = match exclusive::open(path, PATIENCE, tree) {
        Ok(disk) => disk,
        Err(ExclusiveError::Open { path, source, remedy }) => {
            if let Some(EACCES | EPERM | ETXTBSY) = source.raw_os_error() {
                return Err(ExclusiveError::Open { path, source, remedy }.into());
            }
            return of_the_disk::<()>(&path, Err(source))
                .map(|went| Err(went.err().map_or_else(String::new, |error| error.to_string())));
        }
        Err(error @ ExclusiveError::Kind { .. }) => return Ok(Err(error.to_string())),
        Err(error) => return Err(error.into()),
    };
    // A device that is set so can be opened to be written, and takes nothing.
    if exclusive::is_read_only(&disk.descriptor, path, tree) {
        return Ok(Err(READ_ONLY.to_owned()));
    }
    // What is open is judged, not what the path leads to by now (LAY-8).
    let found = match of_the_disk(path, superblocks(&descriptor_path(&disk)))? {
        Ok(found) => found,
        Err(error) => return Ok(Err(error.to_string())),
    };
    Ok(match stray(Some(pool), &found) {
        Some(why) => Err(why),
        None => Ok(disk),
    })
}

/// A name for what is open.
pub(super) fn descriptor_path(disk: &ExclusiveDisk) -> PathBuf {
    format!("/proc/self/fd/{}", disk.descriptor.as_raw_fd()).into()
}
