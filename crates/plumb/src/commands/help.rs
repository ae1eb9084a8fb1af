//! `plumb help [COMMAND]`.

use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command};

/// For clap.
pub(crate) fn command() -> Command {
    let topic = Arg::new("command").value_name("COMMAND").help("What to explain");
    Command::new("help").about("Explain plumb, or one of its commands").arg(topic)
}

/// The command that help is wanted for.
pub(crate) fn topic(matches: &ArgMatches) -> Option<&str> {
    matches.get_one::<String>("command").map(String::as_str)
}

/// Prints the help for plumb or one of its commands.
pub(crate) fn run(topic: Option<&str>) -> ExitCode {
    let mut command = super::command();
    command.build();
    match topic {
        None => super::print(&command.render_long_help().to_string()),
        Some("run" | "diskspd") => super::run::help(),
        Some(topic) => match command.find_subcommand_mut(topic) {
            Some(subcommand) => super::print(&subcommand.render_long_help().to_string()),
            // The same message as for a command that does not exist.
            None => super::other(vec![topic.into()]),
        },
    }
}
