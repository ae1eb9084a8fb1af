//! The run itself: a session with its engine, its observer and its result.

use std::process::ExitCode;

use plumb_load::profile::flags::Invocation;

use crate::commands::NotInThisBuild;
use crate::message::Printer;

/// Runs the workload and prints its result. `command_line` is what the report shows.
pub(super) fn execute(command_line: String, invocation: &Invocation, printer: Printer) -> ExitCode {
    let _ = (command_line, invocation);
    printer.error(&NotInThisBuild("running a workload"));
    ExitCode::FAILURE
}
