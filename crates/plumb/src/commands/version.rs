//! `plumb version`.

use std::process::ExitCode;

use clap::Command;

/// Version of this program.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// For clap.
pub(crate) fn command() -> Command {
    Command::new("version").about("Print name and version")
}

/// Prints name and version.
pub(crate) fn run() -> ExitCode {
    super::print(&format!("plumb {VERSION}\n"))
}
