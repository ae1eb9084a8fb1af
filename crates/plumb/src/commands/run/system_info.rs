//! `-Rs`: the machine as results show it.

use std::process::ExitCode;

use plumb_load::profile::model::ResultFormat;

use crate::commands::NotInThisBuild;
use crate::message::Printer;

/// Prints the System block or element.
pub(super) fn run(format: ResultFormat) -> ExitCode {
    let _ = format;
    Printer::on_stderr().error(&NotInThisBuild("-Rs"));
    ExitCode::FAILURE
}
