//! Last words of a process whose mapped memory is gone.
//!
//! Touching a mapping whose file was truncated, whose file system is full or whose device failed raises
//! SIGBUS. The touch cannot be taken back, so the process must end; it need not do so in silence.

use std::sync::OnceLock;

use rustix::io::Errno;

use crate::call;

/// What is said.
static WORDS: OnceLock<String> = OnceLock::new();

/// From now on SIGBUS writes `words` to standard error and ends the process with status 1. The first
/// words given are kept.
///
/// # Errors
/// When the kernel takes no handler.
pub fn explain(words: String) -> Result<(), Errno> {
    let _ = WORDS.set(words);
    let handler: extern "C" fn(i32) = on_bus_error;
    // SAFETY: all zeroes are a valid sigaction: no flags, an empty mask, SIG_DFL.
    let mut new: libc::sigaction = unsafe { std::mem::zeroed() };
    new.sa_sigaction = handler as libc::sighandler_t;
    // SAFETY: the action is on_bus_error, which does only what handlers may.
    let set = unsafe { libc::sigaction(libc::SIGBUS, &raw const new, std::ptr::null_mut()) };
    call::check(set.into()).map(drop)
}

/// Runs in the thread that touched the memory: only calls that are safe in handlers.
extern "C" fn on_bus_error(_signal: i32) {
    if let Some(words) = WORDS.get() {
        // SAFETY: as many valid bytes as are said; nobody changes them any more.
        let written =
            unsafe { libc::write(libc::STDERR_FILENO, words.as_ptr().cast(), words.len()) };
        // Nobody is left to tell when standard error is closed.
        let _ = written;
    }
    // SAFETY: ends the process without running any more of its code.
    unsafe { libc::_exit(1) };
}

#[cfg(test)]
mod tests {
    use std::process::Command;

    use super::*;
    use crate::mapping::{Copying, MapAccess, Mapping};

    /// Set in the child process that touches what is gone.
    const CHILD: &str = "PLUMB_TEST_BUS_ERROR_CHILD";

    #[test]
    fn the_words_are_said_and_the_status_is_1() {
        if std::env::var_os(CHILD).is_some() {
            touch_what_is_gone();
        }
        let itself = std::env::current_exe().expect("this test");
        let name = "bus_error::tests::the_words_are_said_and_the_status_is_1";
        let child = Command::new(itself).args(["--exact", name]).env(CHILD, "1").output();
        let child = child.expect("a child process");
        assert_eq!(child.status.code(), Some(1), "{child:?}");
        assert!(child.stderr.ends_with(b"error: it is gone\n"), "{child:?}");
    }

    fn touch_what_is_gone() -> ! {
        explain("error: it is gone\n".to_owned()).expect("a handler");
        let file = tempfile::tempfile().expect("a file");
        file.set_len(8192).expect("a size");
        let mapping = Mapping::new(&file, 8192, MapAccess::Read).expect("a mapping");
        file.set_len(0).expect("a size");
        mapping.copy_out(4096, &mut [0; 8], Copying::Plain);
        std::process::exit(0)
    }
}
