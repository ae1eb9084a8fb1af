//! `plumb space`: the storage engine: its health, its upkeep, optimization, a demonstration, replays of traces, its
//! crash checker.

mod demo;
mod jobs;
pub(crate) mod older;
pub(crate) mod optimize;
pub(crate) mod report;
mod simulate;
pub(crate) mod told;
mod torture;
pub(crate) mod upkeep;

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use plumb_tier::pool::HealthStatus;

/// Exit status of `status` that cannot tell (HLT-5).
pub(crate) const UNKNOWN: u8 = HealthStatus::Unknown.exit_status();

/// For clap.
pub(crate) fn command() -> Command {
    Command::new("space")
        .about(
            "The storage engine: health, scan, repair, optimization, a demonstration, replays of traces, crash checks",
        )
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommands(upkeep::commands())
        .subcommands(told::commands())
        .subcommands(optimize::commands())
        .subcommand(demo::command())
        .subcommand(simulate::command())
        .subcommand(torture::command())
}

/// Does what the subcommand says.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let (name, matches) = matches.subcommand().expect("clap requires one");
    let reply = match name {
        "status" => {
            // Of what cannot be looked at the health is not known; 1 would be a Warning.
            return report::print_or(upkeep::status(matches), matches.get_flag("json"), UNKNOWN);
        }
        "scan" => upkeep::scan(matches),
        "job" => upkeep::job(matches),
        "optimize" => optimize::optimize(matches),
        "report" => optimize::report(matches),
        "demo" => return demo::run(matches),
        "simulate" => return simulate::run(matches),
        "offline" => upkeep::switch(matches, false),
        "online" => upkeep::switch(matches, true),
        "clear" => upkeep::clear(matches),
        "repair" => upkeep::repair(matches),
        "events" => told::events(matches),
        "perf" => told::perf(matches),
        "torture" => return torture::run(matches),
        other => unreachable!("clap let {other} pass"),
    };
    report::print(reply, matches.get_flag("json"))
}
