//! The `plumb` command: reads the command line, calls the libraries, prints.
//!
//! Called as `diskspd` it is that program: all arguments are DISKSPD's.
#![forbid(unsafe_code)]

mod commands;
mod invocation;
mod message;
mod progress;

use std::process::ExitCode;

use invocation::Invocation;

fn main() -> ExitCode {
    let mut words = std::env::args_os();
    let program = words.next().unwrap_or_else(|| "plumb".into());
    match Invocation::read(&program, words.collect()) {
        Invocation::Load { program, arguments } => commands::run::run(&program, &arguments),
        Invocation::Other(arguments) => commands::other(arguments),
        Invocation::Usage => commands::usage(),
        Invocation::Help => commands::help::run(None),
        Invocation::Version => commands::version::run(),
        Invocation::Misplaced(error) => {
            message::Printer::on_stderr().error(&error);
            ExitCode::from(3)
        }
    }
}
