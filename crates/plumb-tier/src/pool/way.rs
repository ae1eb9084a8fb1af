//! A command that optimizes a pool gives way to a load. While it works it holds a lock on a file beside the list of pools;
//! a load that finds that lock writes a line into the file, and waits until the lock is gone. A lock goes with its program,
//! however that ends, so nobody waits for one that was killed. Other programs hold none: loads do not wait for them.

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_io::exclusive::ExclusiveError;
use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;

use super::open::PoolError;
use super::registry::Registry;

/// The file's extension.
pub(super) const EXTENSION: &str = "gives-way";
/// The longest file that is looked at: more than the lines of a hundred loads.
const FILE_MAX: usize = 4 << 10;
/// How often either side looks.
const LOOK: Duration = Duration::from_millis(100);
/// A load that looks for the lock has it for a moment: how often one is tried that is to be held, and what lies between.
const TRIES: u32 = 20;
const BETWEEN: Duration = Duration::from_millis(10);
/// How long a load waits for a command to end its moves and its pool.
const GIVEN_WITHIN: Duration = Duration::from_secs(60);
/// How long the kernel may take to let go of disks that a program has closed.
const FREE_WITHIN: Duration = Duration::from_secs(5);

fn path(registry: &Registry, pool: &str) -> PathBuf {
    registry.folder().join(format!("{pool}.{EXTENSION}"))
}

/// A command that gives its pool to a load that wants it.
#[derive(Debug)]
pub struct GivesWay {
    file: File,
    looked: Option<Instant>,
    wanted: bool,
}

impl GivesWay {
    /// From now on a load may ask this program for the pool. `None` when another program is asked already, or the file
    /// cannot be written: then loads are refused.
    #[must_use]
    pub fn begin(registry: &Registry, pool: &str) -> Option<Self> {
        let path = path(registry, pool);
        let options =
            OpenOptions::new().create(true).truncate(false).read(true).write(true).open(path);
        let file = options.ok()?;
        let lock = || flock(&file, FlockOperation::NonBlockingLockExclusive).is_ok();
        let locked = (0..TRIES).any(|turn| {
            if turn > 0 {
                std::thread::sleep(BETWEEN);
            }
            lock()
        });
        // What was asked of a command that has ended. Whoever still waits asks anew.
        (locked && file.set_len(0).is_ok()).then_some(Self { file, looked: None, wanted: false })
    }

    /// Whether a load wants the pool. Looks ten times a second.
    pub fn is_wanted(&mut self) -> bool {
        if !self.wanted && self.looked.is_none_or(|at| at.elapsed() >= LOOK) {
            self.looked = Some(Instant::now());
            let mut bytes = [0; FILE_MAX];
            let len = self.file.read_at(&mut bytes, 0).unwrap_or(0);
            self.wanted = asks(&bytes[..len]) > 0;
        }
        self.wanted
    }
}

/// How many loads ask, in a file of such bytes; what is no such line is left out.
pub(super) fn asks(bytes: &[u8]) -> usize {
    let is_load = |line: &&str| {
        line.strip_prefix("load ").is_some_and(|process| process.parse::<u32>().is_ok())
    };
    String::from_utf8_lossy(bytes).lines().filter(is_load).count()
}

/// Whether a program that gives way has the lock.
fn is_held(path: &Path) -> bool {
    let Ok(file) = File::open(path) else { return false };
    flock(&file, FlockOperation::NonBlockingLockShared) == Err(Errno::WOULDBLOCK)
}

/// Writes the line of this program, unless it is there.
fn leave(path: &Path) {
    let line = format!("load {}\n", std::process::id());
    if std::fs::read_to_string(path).is_ok_and(|text| text.contains(&line)) {
        return;
    }
    // One write: lines of two programs never mix. Whoever may not write waits in vain, and is refused as before.
    let written = OpenOptions::new().append(true).open(path);
    let _ = written.and_then(|mut file| file.write_all(line.as_bytes()));
}

/// Asks a command that optimizes the pool to give way, and waits until it has: for 60 s at most, and no longer than until
/// `stopped`. `tell` is told once how long that may take. Whether a command has given way; without one nobody is waited for.
pub fn wait_for_way(
    registry: &Registry,
    pool: &str,
    stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Duration),
) -> bool {
    wait(&path(registry, pool), GIVEN_WITHIN, stopped, tell)
}

fn wait(
    path: &Path,
    most: Duration,
    stopped: &dyn Fn() -> bool,
    tell: &mut dyn FnMut(Duration),
) -> bool {
    if !is_held(path) {
        return false;
    }
    tell(most);
    let began = Instant::now();
    while is_held(path) {
        if stopped() || began.elapsed() >= most {
            return false;
        }
        leave(path);
        std::thread::sleep(LOOK);
    }
    true
}

/// Opens a pool that a command has given way with, `given`: its disks may be some moments in letting go. Otherwise once.
///
/// # Errors
/// When it cannot be opened.
pub fn open_given<T>(
    given: bool,
    mut open: impl FnMut() -> Result<T, PoolError>,
) -> Result<T, PoolError> {
    let began = Instant::now();
    loop {
        match open() {
            Err(PoolError::Disk(ExclusiveError::InUse { .. }))
                if given && began.elapsed() < FREE_WITHIN =>
            {
                std::thread::sleep(LOOK);
            }
            other => return other,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place() -> (tempfile::TempDir, Registry) {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(folder.path());
        (folder, registry)
    }

    fn never() -> bool {
        false
    }

    #[test]
    fn a_command_gives_way_to_who_asks_and_nobody_waits_without_one() {
        let (_folder, registry) = place();
        let mut told = 0;
        assert!(!wait_for_way(&registry, "p", &never, &mut |_| told += 1), "there is no file");
        let command = GivesWay::begin(&registry, "p").expect("it may");
        drop(command);
        assert!(!wait_for_way(&registry, "p", &never, &mut |_| told += 1), "it has ended");
        assert_eq!(told, 0);

        // What was asked of the one before is forgotten, and what no load wrote moves nobody.
        std::fs::write(path(&registry, "p"), "load 1\n").expect("written");
        let mut command = GivesWay::begin(&registry, "p").expect("it may");
        assert!(!command.is_wanted());
        std::fs::write(path(&registry, "p"), "load\nload x\nunload 7\nload 7 8\n\u{1}\n")
            .expect("written");
        std::thread::sleep(2 * LOOK);
        assert!(!command.is_wanted());
        assert!(GivesWay::begin(&registry, "p").is_none(), "one at a time");

        let of_load = registry.clone();
        let load = std::thread::spawn(move || {
            let mut told = Vec::new();
            let given = wait_for_way(&of_load, "p", &never, &mut |most| told.push(most));
            (given, told)
        });
        let began = Instant::now();
        while !command.is_wanted() {
            assert!(began.elapsed() < Duration::from_secs(10), "it never asks");
            std::thread::sleep(BETWEEN);
        }
        assert!(!load.is_finished(), "it waits for the command's end");
        drop(command);
        assert_eq!(load.join().expect("it ends"), (true, vec![GIVEN_WITHIN]));
    }

    #[test]
    fn a_load_waits_for_so_long_and_until_it_is_stopped() {
        let (_folder, registry) = place();
        let _command = GivesWay::begin(&registry, "p").expect("it may");
        let path = path(&registry, "p");
        let began = Instant::now();
        let most = Duration::from_millis(300);
        assert!(!wait(&path, most, &never, &mut |_| {}), "it does not end");
        assert!(began.elapsed() >= most && began.elapsed() < GIVEN_WITHIN);
        assert_eq!(asks(&std::fs::read(&path).expect("a file")), 1, "asked once");
        let began = Instant::now();
        assert!(!wait(&path, GIVEN_WITHIN, &|| true, &mut |_| {}));
        assert!(began.elapsed() < GIVEN_WITHIN / 2);
    }

    #[test]
    fn only_disks_of_a_command_that_gave_way_are_tried_again() {
        let in_use = || ExclusiveError::InUse { path: "d".into(), owner: "process 1".to_owned() };
        for (given, wanted) in [(false, 1), (true, 3)] {
            let mut tries = 0;
            let opened = open_given(given, || {
                tries += 1;
                if tries < 3 { Err(PoolError::Disk(in_use())) } else { Ok(()) }
            });
            assert_eq!((opened.is_ok(), tries), (given, wanted));
        }
    }
}
