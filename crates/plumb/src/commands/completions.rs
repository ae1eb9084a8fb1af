//! `plumb completions SHELL`.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, value_parser};
use clap_complete::Shell;

/// For clap.
pub(crate) fn command() -> Command {
    let shell = Arg::new("shell")
        .value_name("SHELL")
        .required(true)
        .value_parser(value_parser!(Shell))
        .help("Whose completions to print");
    Command::new("completions").about("Print completions for a shell").arg(shell).after_help(
        "For example:\n  plumb completions bash > ~/.local/share/bash-completion/completions/plumb",
    )
}

/// Prints the completions.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let shell = *matches.get_one::<Shell>("shell").expect("clap requires it");
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut super::command(), "plumb", &mut script);
    super::print(&String::from_utf8_lossy(&script))
}
