//! Last words of a process whose mapped memory is gone.
//!
//! Touching a mapping whose file was truncated, whose file system is full or whose device failed raises
//! SIGBUS. The touch cannot be taken back, so the process must end; it need not do so in silence.

use std::ffi::CString;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicBool, Ordering};

use rustix::io::Errno;

use crate::call;

/// What is left to do, made ready while memory may still be allocated.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct LastWill {
    /// Goes to standard error, with its line end.
    pub words: String,
    /// Files that are removed: nobody would.
    pub files: Vec<CString>,
}

/// What is done.
static WILL: OnceLock<LastWill> = OnceLock::new();
/// Whether a thread does it already: several may touch what is gone at once.
static IS_DONE: AtomicBool = AtomicBool::new(false);

/// From now on SIGBUS executes `will` and ends the process with status 1. The first will given is kept.
///
/// # Errors
/// When the kernel takes no handler.
pub fn explain(will: LastWill) -> Result<(), Errno> {
    let _ = WILL.set(will);
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
    if IS_DONE.swap(true, Ordering::AcqRel) {
        loop {
            // SAFETY: waits; the thread that came first ends the process.
            unsafe { libc::pause() };
        }
    }
    if let Some(will) = WILL.get() {
        for file in &will.files {
            // SAFETY: a path that ends with a zero; nobody changes it any more. One that is in its place
            // by now, or cannot be removed, is left.
            unsafe { libc::unlink(file.as_ptr()) };
        }
        let mut rest = will.words.as_bytes();
        while !rest.is_empty() {
            // SAFETY: as many valid bytes as are said; nobody changes them any more.
            let written =
                unsafe { libc::write(libc::STDERR_FILENO, rest.as_ptr().cast(), rest.len()) };
            // Nobody is left to tell when standard error is closed.
            let Some(said) = usize::try_from(written).ok().filter(|&said| said > 0) else { break };
            rest = rest.get(said..).unwrap_or_default();
        }
    }
    // SAFETY: ends the process without running any more of its code.
    unsafe { libc::_exit(1) };
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStrExt;
    use std::path::Path;
    use std::process::Command;

    use super::*;
    use crate::mapping::{Copying, MapAccess, Mapping};

    /// Set in the child process that touches what is gone.
    const CHILD: &str = "PLUMB_TEST_BUS_ERROR_CHILD";

    #[test]
    fn the_words_are_said_once_files_removed_and_the_status_is_1() {
        if let Some(folder) = std::env::var_os(CHILD) {
            touch_what_is_gone(Path::new(&folder));
        }
        let itself = std::env::current_exe().expect("this test");
        let name = "bus_error::tests::the_words_are_said_once_files_removed_and_the_status_is_1";
        let folder = tempfile::tempdir().expect("a folder");
        for file in ["removed", "kept"] {
            std::fs::write(folder.path().join(file), "half").expect("a file");
        }
        let mut child = Command::new(itself);
        let child = child.args(["--exact", name, "--nocapture"]).env(CHILD, folder.path());
        let child = child.output().expect("a child process");
        assert_eq!(child.status.code(), Some(1), "{child:?}");
        let said = String::from_utf8_lossy(&child.stderr).matches("error: it is gone\n").count();
        assert_eq!(said, 1, "{child:?}");
        assert!(!folder.path().join("removed").exists() && folder.path().join("kept").exists());
    }

    fn touch_what_is_gone(folder: &Path) -> ! {
        let path = |name: &str| {
            CString::new(folder.join(name).as_os_str().as_bytes()).expect("no zero in it")
        };
        let words = "error: it is gone\n".to_owned();
        // One that is not there does not keep the others.
        let files = vec![path("none"), path("removed")];
        explain(LastWill { words, files }).expect("a handler");
        let file = tempfile::tempfile().expect("a file");
        file.set_len(8192).expect("a size");
        let start = std::sync::Barrier::new(4);
        std::thread::scope(|scope| {
            let mappings: Vec<_> = (0..4)
                .map(|_| Mapping::new(&file, 8192, MapAccess::Read).expect("a mapping"))
                .collect();
            file.set_len(0).expect("a size");
            for mapping in mappings {
                let start = &start;
                scope.spawn(move || {
                    start.wait();
                    mapping.copy_out(4096, &mut [0; 8], Copying::Plain);
                });
            }
        });
        std::process::exit(0)
    }
}
