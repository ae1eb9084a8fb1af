//! `plumb convert`.

use std::process::ExitCode;

use clap::{ArgMatches, Command};

use crate::commands::NotInThisBuild;
use crate::message::Printer;

/// For clap.
pub(crate) fn command() -> Command {
    Command::new("convert").about("Turn XML results into a table or into JSON")
}

/// Converts.
pub(crate) fn run(_matches: &ArgMatches) -> ExitCode {
    Printer::on_stderr().error(&NotInThisBuild("convert"));
    ExitCode::FAILURE
}
