//! Calling the program.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What the program did.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) status: i32,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Outcome {
    /// Fails unless it ended so.
    #[track_caller]
    pub(crate) fn ends_with(self, status: i32) -> Self {
        assert_eq!(self.status, status, "{self:#?}");
        self
    }

    /// Fails unless it ended well and said nothing on standard error.
    #[track_caller]
    pub(crate) fn succeeds_quietly(self) -> Self {
        assert_eq!(self.stderr, "", "{self:#?}");
        self.ends_with(0)
    }
}

/// Where the program is.
pub(crate) fn path() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_plumb"))
}

/// Calls it with arguments that have no blanks in them.
pub(crate) fn plumb(line: &str) -> Outcome {
    call(path(), &line.split_whitespace().collect::<Vec<_>>())
}

/// Calls it by another name, with any arguments.
pub(crate) fn call<S: AsRef<OsStr>>(program: &Path, arguments: &[S]) -> Outcome {
    outcome(Command::new(program).args(arguments))
}

/// Runs a command in surroundings that do not change what is printed.
pub(crate) fn outcome(command: &mut Command) -> Outcome {
    let output = command
        .stdin(Stdio::null())
        .env("LC_ALL", "C")
        .env("TZ", "UTC")
        .output()
        .expect("the program can be started");
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("it prints UTF-8");
    Outcome {
        status: output.status.code().expect("it ends by itself"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// The folder of the repository.
pub(crate) fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
