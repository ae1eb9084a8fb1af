//! Ctrl+C as data: a flag to look at and a descriptor to wait on.

use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicI32, Ordering};

use plumb_units::Nanos;
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use rustix::io::Errno;

use crate::call;

/// The signal that came, 0 before.
static SIGNAL: AtomicI32 = AtomicI32::new(0);
/// The eventfd that the handler writes to, -1 before there is one.
static WAKE: AtomicI32 = AtomicI32::new(-1);
/// Its owner; never closed, for the handler may run at any time.
static OWNER: OnceLock<OwnedFd> = OnceLock::new();

const WATCHED: [i32; 2] = [libc::SIGINT, libc::SIGTERM];

/// Tells that SIGINT or SIGTERM came.
#[derive(Debug, Clone, Copy)]
pub struct Interrupt {
    wake: BorrowedFd<'static>,
}

/// Watches for SIGINT and SIGTERM from now on. The first one is told by the returned value; either of
/// them again ends the process, as if nobody watched.
///
/// # Errors
/// When the kernel gives no eventfd or takes no handler.
pub fn watch() -> Result<Interrupt, Errno> {
    if OWNER.get().is_none() {
        let fd = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        // Another thread may have been faster; then ours is closed again.
        let _ = OWNER.set(fd);
    }
    let owner = OWNER.get().expect("set above, and never taken");
    WAKE.store(owner.as_raw_fd(), Ordering::SeqCst);
    let handler: extern "C" fn(i32) = on_signal;
    WATCHED.into_iter().try_for_each(|signal| handle(signal, handler as libc::sighandler_t))?;
    Ok(Interrupt { wake: owner.as_fd() })
}

impl Interrupt {
    /// The signal that came, if one did.
    #[must_use]
    pub fn signal(&self) -> Option<i32> {
        Some(SIGNAL.load(Ordering::SeqCst)).filter(|&signal| signal != 0)
    }

    /// Waits for a signal, `timeout` at most ([`Nanos::NEVER`]: no limit); whether one came.
    ///
    /// # Errors
    /// What poll said.
    pub fn wait(&self, timeout: Nanos) -> Result<bool, Errno> {
        let limit = Timespec {
            tv_sec: i64::try_from(timeout.0 / 1_000_000_000).map_err(|_| Errno::INVAL)?,
            tv_nsec: i64::try_from(timeout.0 % 1_000_000_000).map_err(|_| Errno::INVAL)?,
        };
        let limit = Some(&limit).filter(|_| timeout != Nanos::NEVER);
        match poll(&mut [PollFd::new(&self.wake, PollFlags::IN)], limit) {
            // Any handler ends a poll early, ours and others.
            Ok(_) | Err(Errno::INTR) => Ok(self.signal().is_some()),
            Err(errno) => Err(errno),
        }
    }
}

/// Becomes readable with the first signal and stays so, to wait for it beside other things.
impl AsFd for Interrupt {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.wake
    }
}

/// Handles `signal` by `action`: a function's address, or SIG_DFL.
fn handle(signal: i32, action: libc::sighandler_t) -> Result<(), Errno> {
    // SAFETY: all zeroes are a valid sigaction: no flags, an empty mask, SIG_DFL.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = action;
    new.sa_flags = libc::SA_RESTART;
    // SAFETY: the action is SIG_DFL or on_signal, which does only what handlers may.
    let set = unsafe { libc::sigaction(signal, &raw const new, std::ptr::null_mut()) };
    call::check(set.into()).map(drop)
}

/// Runs in whatever thread the signal came to: only atomics and calls that are safe in handlers.
extern "C" fn on_signal(signal: i32) {
    // SAFETY: a thread has its own errno, at a place of its own.
    let errno = unsafe { libc::__errno_location() };
    // SAFETY: valid as above.
    let before = unsafe { errno.read() };
    SIGNAL.store(signal, Ordering::SeqCst);
    for watched in WATCHED {
        // If this failed the handler would stay, and the next signal be told once more.
        let _ = handle(watched, libc::SIG_DFL);
    }
    let (wake, count) = (WAKE.load(Ordering::SeqCst), 1_u64.to_ne_bytes());
    // SAFETY: 8 valid bytes to a descriptor that is never closed.
    let written = unsafe { libc::write(wake, count.as_ptr().cast(), count.len()) };
    // Fails only when the count is full: then it is readable already.
    let _ = written;
    // SAFETY: valid as above. What the interrupted code is about to read stays what it was.
    unsafe { errno.write(before) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::process::ExitStatusExt;
    use std::process::Command;

    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    /// Set in the child process that takes the signals.
    const CHILD: &str = "PLUMB_TEST_SIGNAL_CHILD";

    #[test]
    fn the_first_signal_is_told_and_the_second_kills() {
        if let Ok(second) = std::env::var(CHILD) {
            take_signals(&second);
        }
        for (second, number) in [("INT", libc::SIGINT), ("TERM", libc::SIGTERM)] {
            let itself = std::env::current_exe().expect("this test");
            let name = "signal::tests::the_first_signal_is_told_and_the_second_kills";
            let child = Command::new(itself).args(["--exact", name]).env(CHILD, second).output();
            let child = child.expect("a child process");
            assert_eq!(child.status.signal(), Some(number), "{child:?}");
        }
    }

    /// Interrupts this process twice.
    fn take_signals(second: &str) -> ! {
        let interrupt = watch().expect("an eventfd");
        assert_eq!(interrupt.signal(), None);
        assert_eq!(interrupt.wait(Nanos::from_millis(1)), Ok(false));
        kill_process(getpid(), Signal::INT).expect("our own process");
        assert_eq!(interrupt.wait(Nanos::NEVER), Ok(true));
        assert_eq!(interrupt.signal(), Some(libc::SIGINT));
        assert_eq!(interrupt.wait(Nanos::ZERO), Ok(true), "it stays signalled");
        let second = if second == "INT" { Signal::INT } else { Signal::TERM };
        kill_process(getpid(), second).expect("our own process");
        // The signal may take another thread; this one waits for the end.
        std::thread::sleep(std::time::Duration::from_secs(10));
        std::process::exit(0)
    }
}
