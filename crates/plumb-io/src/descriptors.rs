//! Descriptors of this program: how many it may have, and errors that speak of them and not of what was to be opened.
//!
//! Whoever cannot open a disk for lack of descriptors or memory knows nothing of that disk: it is neither gone nor damaged.

use std::io;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Too few descriptors for what is to be done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shortage {
    /// How many are needed beside those that are open.
    pub needed: u64,
    /// How many are open.
    pub open: u64,
    /// How many this program may have.
    pub limit: u64,
}

/// Whether an error says that the system or this program has too little of something, whatever was asked for.
#[must_use]
pub fn is_shortage(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    matches!(errno, Some(Errno::MFILE | Errno::NFILE | Errno::NOMEM))
}

/// What to do about such an error.
#[must_use]
pub fn remedy(error: &io::Error) -> String {
    match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::MFILE) => {
            let limit = limit().map_or_else(String::new, |limit| format!(" (now {limit})"));
            format!(
                "raise the limit of open files{limit}: ulimit -n, or LimitNOFILE= of the service"
            )
        }
        Some(Errno::NFILE) => {
            "end other programs, or let the system have more open files: sysctl fs.file-max"
                .to_owned()
        }
        _ => "end other programs, or raise the limit of memory of this one's control group"
            .to_owned(),
    }
}

/// How many descriptors this program may have; `None` without a limit.
#[must_use]
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}

/// Sees to it that `needed` more can be opened: raises the limit as far as this program may.
///
/// # Errors
/// When that is not far enough.
pub fn make_room(needed: u64) -> Result<(), Shortage> {
    let now = getrlimit(Resource::Nofile);
    let Some(limit) = now.current else { return Ok(()) };
    let open = open_now().unwrap_or(limit);
    let wanted = open.saturating_add(needed);
    if wanted <= limit {
        return Ok(());
    }
    let most = now.maximum.unwrap_or(wanted).max(limit);
    let raised = Rlimit { current: Some(most), maximum: now.maximum };
    if most > limit && setrlimit(Resource::Nofile, raised).is_ok() && wanted <= most {
        return Ok(());
    }
    Err(Shortage { needed, open, limit: getrlimit(Resource::Nofile).current.unwrap_or(limit) })
}

/// How many are open; `None` when there is none left to look with.
fn open_now() -> Option<u64> {
    let folder = std::fs::read_dir("/proc/self/fd");
    match folder {
        // Without the one that looks.
        Ok(folder) => u64::try_from(folder.count()).ok()?.checked_sub(1),
        Err(error) if is_shortage(&error) => None,
        // Nobody can tell here: whoever opens one is told.
        Err(_) => Some(0),
    }
}

/// Whether a few can be opened now, for whoever would take one that he cannot look into for an empty one.
///
/// # Errors
/// EMFILE, ENFILE or ENOMEM when not.
pub fn probe(count: usize) -> Result<(), Errno> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let opened = (0..count).map(|_| rustix::fs::open("/", flags, Mode::empty()));
    match opened.collect::<Result<Vec<_>, Errno>>() {
        Err(errno) if is_shortage(&errno.into()) => Err(errno),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The limit of a program is one for all its threads: a copy of this one tries it.
    #[test]
    fn room_is_made_as_far_as_the_program_may() {
        const TRIED: &str = "PLUMB_TEST_DESCRIPTORS";
        let name = "descriptors::tests::room_is_made_as_far_as_the_program_may";
        if let Ok(limits) = std::env::var(TRIED) {
            let (soft, hard) = limits.split_once(' ').expect("two");
            let number = |text: &str| text.parse::<u64>().expect("a number");
            let (soft, hard) = (number(soft), number(hard));
            let open = open_now().expect("some are left");
            assert_eq!(limit(), Some(soft));
            assert_eq!(make_room(soft - open), Ok(()));
            assert_eq!(limit(), Some(soft), "there was room");
            assert_eq!(make_room(hard - open), Ok(()));
            assert_eq!(limit(), Some(hard));
            let needed = hard - open + 1;
            assert_eq!(make_room(needed), Err(Shortage { needed, open, limit: hard }));
            assert_eq!(probe(4), Ok(()));
            let held: Vec<_> = std::iter::from_fn(|| std::fs::File::open("/").ok()).collect();
            assert_eq!(probe(1), Err(Errno::MFILE));
            assert_eq!(make_room(1), Err(Shortage { needed: 1, open: hard, limit: hard }));
            drop(held);
            return;
        }
        let script = format!(
            "ulimit -Sn 64; ulimit -Hn 128; {TRIED}='64 128' exec {} --exact {name}",
            std::env::current_exe().expect("this program").display()
        );
        let output = std::process::Command::new("sh").args(["-c", &script]).output();
        let output = output.expect("a shell");
        assert!(output.status.success(), "{output:?}");
        assert!(String::from_utf8_lossy(&output.stdout).contains("1 passed"), "{output:?}");
    }

    #[test]
    fn what_is_short_is_no_word_on_what_was_to_be_opened() {
        let error = io::Error::from_raw_os_error;
        for (errno, words) in [(24, "ulimit -n"), (23, "fs.file-max"), (12, "memory")] {
            assert!(is_shortage(&error(errno)), "{errno}");
            assert!(remedy(&error(errno)).contains(words), "{errno}");
        }
        for errno in [2, 5, 6, 13, 16] {
            assert!(!is_shortage(&error(errno)), "{errno}");
        }
    }
}
