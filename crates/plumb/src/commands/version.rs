//! `plumb version`.

use std::process::ExitCode;

use clap::Command;
use plumb_load::result::model::Tool;

/// Version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Date of this version, as DISKSPD writes dates.
const DATE: &str = "2026/11/21";

/// How results are measured (spec 15.14): raised when a change alters what is timed, when it is stamped,
/// how I/O is issued, or where threads and buffers lie.
pub(crate) const EPOCH: u32 = 1;

/// Who makes the results.
pub(crate) fn tool() -> Tool {
    Tool {
        name: "plumb".into(),
        version: VERSION.into(),
        version_date: DATE.into(),
        epoch: Some(EPOCH),
    }
}

/// For clap.
pub(crate) fn command() -> Command {
    Command::new("version").about("Print name and version")
}

/// Prints name and version.
pub(crate) fn run() -> ExitCode {
    super::print(&format!("plumb {VERSION}\n"))
}
