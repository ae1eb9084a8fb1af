//! Targets that are virtual disks: `space:POOL/VDISK`. A file of that name is `./space:…`.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use plumb_io::engine::Ladder;
use plumb_io::{OpenQueueError, Opener, QueueMode, QueueSpec, QueueUse, TargetFile};
use plumb_load::profile::model::RawProfile;
use plumb_load::result::model::SpaceUse;
use plumb_tier::StartError;
use plumb_tier::pool::{
    self, Chronicle, DeviceQueue, PoolError, RegisteredPool, TieringError, TieringKeeper,
    TieringStore,
};
use plumb_tier::space::{SpaceFile, SpaceServer, Watch};

use crate::commands::space::older::older_to_read;
use crate::commands::space::report::{self, Failure};
use crate::commands::space::told;
use crate::message::Printer;

const PREFIX: &str = "space:";
/// Requests that a space works on at a time; more wait in its ring.
const CLIENTS: u32 = 256;

/// Why heat could not be kept, if so.
type NotKept = Arc<Mutex<Option<TieringError>>>;

/// The spaces of a run, each with its engine on a thread of its own.
#[derive(Debug, Default)]
pub(super) struct Spaces {
    servers: Vec<(String, SpaceServer, NotKept)>,
    /// Virtual disks that serve nothing, by pool.
    detached: Vec<(String, Vec<u32>)>,
}

/// Whether a load writes to virtual disks of a pool.
fn writes(profile: &RawProfile, pool: &str) -> bool {
    let of_pool = |path: &str| matches!(names(path), Some(Ok((name, _))) if name == pool);
    let targets = profile.time_spans.iter().flat_map(|span| &span.targets);
    targets.into_iter().any(|target| target.write_ratio > 0 && of_pool(&target.path))
}

/// Pool and virtual disk of a target.
fn names(target: &str) -> Option<Result<(String, String), report::VdiskError>> {
    target.strip_prefix(PREFIX).map(report::split)
}

/// What is to be said of a pool that was started to be read only: the reason, and what to do.
fn read_only(
    pool: &RegisteredPool,
    why: PoolError,
    (absent, accept_older): (&[(PathBuf, String)], bool),
) -> Result<String, Failure> {
    let (registry, name) = (report::registry(), &pool.name);
    let because = why.to_string();
    let sentence = match why {
        PoolError::FullBelow { ref path, .. } => {
            pool::note_full(&registry, name, path);
            format!(
                "pool {name} is read as it is, and nothing is written to it: {why}. Make room there"
            )
        }
        PoolError::Start(StartError::NoQuorum { .. }) | PoolError::ReadOnlyDisks { .. } => {
            match older_to_read(pool, (why, absent), accept_older)? {
                Some(unix_ms) => format!(
                    "half or fewer of the voting disks of pool {name} are here, and it went on without them, on {} at \
                     the latest: what is read is older than what it took since; connect the others to read that. \
                     Nothing is written to it",
                    told::when(unix_ms)
                ),
                None => format!(
                    "half or fewer of the voting disks of pool {name} are here: it is read as they hold it, \
                     without what the others may have taken since, and nothing is written to it"
                ),
            }
        }
        _ => format!("pool {name}: {why}"),
    };
    pool::note_read_only(&registry, pool, &because);
    Ok(sentence)
}

impl Spaces {
    /// Starts the pools of all targets that are virtual disks. One without a quorum is good enough to be read, and one that went on
    /// without the disks that are here if that is accepted. A command that optimizes one is asked to give way, and waited for, unless
    /// `stopped`.
    ///
    /// # Errors
    /// When a pool cannot be started, or has no such virtual disk.
    pub(super) fn open(
        profile: &RawProfile,
        (printer, accept_older): (Printer, bool),
        stopped: &dyn Fn() -> bool,
    ) -> Result<Self, Failure> {
        let mut spaces = Self::default();
        for target in profile.time_spans.iter().flat_map(|span| &span.targets) {
            let Some(named) = names(&target.path) else { continue };
            let (pool, vdisk) = named?;
            if spaces.server(&pool).is_none() {
                let registry = report::registry();
                let mut found = registry.find(&pool)?;
                let given = pool::wait_for_way(&registry, &pool, stopped, &mut |most| {
                    printer.note(&format!(
                        "pool {pool} is in use by a command that optimizes it: it was asked to end; waiting for that, {} s at most",
                        most.as_secs()
                    ));
                });
                if given {
                    // As the command leaves it.
                    found = registry.find(&pool)?;
                }
                let store = TieringStore::of(&registry, &found);
                let keeper = TieringKeeper::new(store.clone());
                let failure = keeper.failure();
                let unchanging = Arc::new(Mutex::new(None));
                let told = Arc::clone(&unchanging);
                let detached = Arc::new(Mutex::new(Vec::new()));
                let found_detached = Arc::clone(&detached);
                let writes = writes(profile, &pool);
                let start = move || {
                    let clients = (CLIENTS, 64 << 10);
                    let open = pool::open_given(given, || match writes {
                        true => pool::open(&found, Vec::new(), clients),
                        false => pool::open_to_read(&found, clients),
                    });
                    let mut open = pool::note_start(&registry, &found, open)?;
                    if let Some(why) = open.unchanging.take() {
                        let sentence = read_only(&found, why, (&open.absent, accept_older))?;
                        *told.lock().unwrap_or_else(PoisonError::into_inner) = Some(sentence);
                    }
                    // Before anything is asked of it: disks that are back may have what it lacks.
                    *found_detached.lock().unwrap_or_else(PoisonError::into_inner) =
                        open.detached();
                    open.keep_tiering(keeper);
                    Ok::<_, Failure>(open.engine)
                };
                let mut chronicle = Chronicle::begin(&report::registry(), &pool);
                let watch: Watch<DeviceQueue> = Box::new(move |engine, ends| match ends {
                    true => {
                        // A report that cannot be kept is lost; what has moved has moved.
                        let _ = store.keep_results(engine);
                        chronicle.end(engine);
                    }
                    false => {
                        chronicle.take_asks(engine);
                        let _ = store.keep_results(engine);
                        chronicle.watch(engine);
                    }
                });
                let server = SpaceServer::spawn_watched(start, Some(watch))?;
                let sentence = unchanging.lock().unwrap_or_else(PoisonError::into_inner).take();
                sentence.iter().for_each(|sentence| printer.warning(sentence));
                spaces.servers.push((pool.clone(), server, failure));
                let detached = detached.lock().unwrap_or_else(PoisonError::into_inner).clone();
                spaces.detached.push((pool.clone(), detached));
            }
            let server = spaces.server(&pool).expect("it was just started");
            let (nth, _) = report::find(server.config(), &pool, &vdisk)?;
            if spaces.detached.iter().any(|own| own.0 == pool && own.1.contains(&nth)) {
                let name = format!("{pool}/{vdisk}");
                return Err(report::VdiskError::Detached { pool, name }.into());
            }
        }
        Ok(spaces)
    }

    fn server(&self, pool: &str) -> Option<&SpaceServer> {
        self.servers.iter().find(|(name, ..)| name == pool).map(|(_, server, _)| server)
    }

    /// Server, number and size of the virtual disk that a target names.
    fn find(&self, target: &str) -> Option<(&SpaceServer, u32, u64)> {
        let (pool, vdisk) = names(target)?.ok()?;
        let server = self.server(&pool)?;
        let (nth, own) = report::find(server.config(), &pool, &vdisk).ok()?;
        Some((server, nth, u64::from(own.extents) * u64::from(server.config().extent_bytes)))
    }

    /// Ends all spaces: what each did.
    pub(super) fn end(self, printer: Printer) -> Vec<SpaceUse> {
        let mut uses = Vec::new();
        for (pool, server, failure) in self.servers {
            let Some(end) = server.stop() else {
                printer
                    .warning(&format!("the engine of pool {pool} failed: its next start recovers"));
                continue;
            };
            if let Some(halt) = end.halt {
                printer.warning(&format!("pool {pool} stopped: {halt}. Its next start recovers"));
            }
            if let Some(error) = failure.lock().ok().and_then(|mut failure| failure.take()) {
                printer.warning(&format!("heat and pins of pool {pool} are not kept: {error}"));
            }
            // Disks that were removed meanwhile were in use till now.
            if let Err(error) = pool::forget_removed(&report::registry(), &pool) {
                printer.warning(&format!(
                    "disks that pool {pool} does without are listed still: {error}"
                ));
            }
            uses.push(SpaceUse {
                pool,
                forwarded: end.forwarded,
                blocks_verified: end.counters.blocks_verified,
                mismatches: end.counters.mismatches,
                healed: end.counters.healed,
                unrecoverable: end.counters.unrecoverable,
                disks_lost: end.counters.disks_lost,
                resynced: end.counters.resynced,
            });
        }
        uses
    }
}

/// Opens queues to files by the ladder, and to virtual disks by their pool's owner.
#[derive(Debug)]
pub(super) struct SpaceOpener<'a> {
    pub(super) ladder: Ladder,
    pub(super) spaces: &'a Spaces,
}

impl SpaceOpener<'_> {
    /// Virtual disks of one pool, or why they cannot share a thread.
    fn own<'a>(
        &'a self,
        files: &[TargetFile],
    ) -> Result<(&'a SpaceServer, Vec<SpaceFile>), OpenQueueError> {
        let refuse = |path: &Path| OpenQueueError::Target {
            path: path.to_owned(),
            reason: "a thread works with files, or with virtual disks of one pool, not with both"
                .to_owned(),
            remedy: "give each target threads of its own (-t), not a pool of threads for all (-F)"
                .to_owned(),
        };
        let mut server: Option<&SpaceServer> = None;
        let mut own = Vec::with_capacity(files.len());
        for file in files {
            let found = file.path.to_str().and_then(|name| self.spaces.find(name));
            let (its, nth, size) = found.ok_or_else(|| refuse(&file.path))?;
            if server.is_some_and(|server| !std::ptr::eq(server, its)) {
                return Err(refuse(&file.path));
            }
            server = Some(its);
            own.push(SpaceFile::of(file, nth, size));
        }
        let server = server.ok_or_else(|| refuse(Path::new("")))?;
        Ok((server, own))
    }
}

impl Opener for SpaceOpener<'_> {
    fn open<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        let is_own =
            |file: &TargetFile| file.path.to_str().is_some_and(|name| name.starts_with(PREFIX));
        if !spec.files.iter().any(is_own) {
            return self.ladder.open(spec, user);
        }
        let (server, files) = self.own(&spec.files)?;
        Ok(user.with(server.client(files, &spec)?))
    }

    fn check(&self, mode: QueueMode, mapped_only: bool) -> Result<(), OpenQueueError> {
        self.ladder.check(mode, mapped_only)
    }

    fn own_target(&self, name: &str) -> Option<u64> {
        self.spaces.find(name).map(|(_, _, size)| size)
    }
}
