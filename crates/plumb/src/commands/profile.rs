//! `plumb profile`: the named profiles.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command};
use plumb_load::profile::text;
use plumb_study::profiles::{NamedProfile, PROFILES};
use plumb_units::Bytes;
use serde_json::json;

use super::answers;
use crate::message::Printer;

/// For clap.
pub(crate) fn command() -> Command {
    let name = || {
        Arg::new("name").value_name("NAME").required(true).help("A name of `plumb profile list`")
    };
    let as_command = Arg::new("command")
        .long("command")
        .action(ArgAction::SetTrue)
        .help("Print the options of `plumb run` instead of XML, a line per time span");
    Command::new("profile")
        .about("Show the named profiles: workloads ready to run")
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("list").about("List them, a line each").arg(answers::json_option()),
        )
        .subcommand(
            Command::new("show")
                .about("Print one as XML, as `plumb run -X` takes it")
                .args([name(), as_command])
                .after_help(
                    "For example:\n  plumb profile show oltp > oltp.xml\n  plumb run -Xoltp.xml -d60 data.dat\n  \
                     plumb profile show vmfleet-sql | plumb run -X/dev/stdin data.dat",
                ),
        )
        .subcommand(
            Command::new("explain")
                .about("Say what one is for, where it comes from, and what it does")
                .arg(name()),
        )
}

/// Shows what was asked for.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    match matches.subcommand() {
        Some(("list", matches)) => super::print(&list(matches.get_flag("json"))),
        Some(("show", matches)) => with_profile(matches, |profile| {
            if !matches.get_flag("command") {
                return Ok(profile.xml.to_owned());
            }
            match profile.arguments {
                [] => Err(NoCommand { name: profile.name }),
                lines => Ok(lines.join("\n") + "\n"),
            }
        }),
        Some(("explain", matches)) => with_profile(matches, |profile| Ok(explained(profile))),
        other => unreachable!("clap let {other:?} pass"),
    }
}

fn list(as_json: bool) -> String {
    let line = |profile: &NamedProfile| {
        if as_json {
            let object = json!({
                "name": profile.name,
                "title": profile.title,
                "origin": profile.origin,
                "target_bytes_min": profile.target_bytes_min,
                "arguments": profile.arguments,
            });
            return format!("{object}\n");
        }
        format!("{:<17}{}\n", profile.name, profile.title)
    };
    PROFILES.iter().map(line).collect()
}

fn explained(profile: &NamedProfile) -> String {
    let name = profile.name;
    let command = match profile.arguments {
        [] => format!("plumb profile show {name} | plumb run -X/dev/stdin TARGET"),
        lines => lines
            .iter()
            .map(|line| format!("plumb run {line} TARGET"))
            .collect::<Vec<_>>()
            .join("\n  "),
    };
    format!(
        "{name}: {}\n\n{}\n\nFrom {}. The target must exist and have {} or more.\n\n  {command}\n{}",
        profile.title,
        profile.purpose,
        profile.origin,
        Bytes(profile.target_bytes_min),
        text::write(&profile.profile(), &format!("plumb run -X{name}.xml TARGET"))
            .replace("'*1'", "TARGET"),
    )
}

fn with_profile(
    matches: &ArgMatches,
    shown: impl Fn(&NamedProfile) -> Result<String, NoCommand>,
) -> ExitCode {
    let name = matches.get_one::<String>("name").expect("clap requires it");
    let printer = Printer::on_stderr();
    let Some(profile) = NamedProfile::find(name) else {
        printer.error(&Unknown { name: name.clone() });
        return ExitCode::FAILURE;
    };
    match shown(profile) {
        Ok(text) => super::print(&text),
        Err(error) => {
            printer.error(&error);
            ExitCode::FAILURE
        }
    }
}

/// No profile has that name.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("no profile is called `{name}`")]
#[diagnostic(code(plumb::profile::unknown), help("`plumb profile list` has their names"))]
struct Unknown {
    name: String,
}

/// The profile cannot be said as options.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("no command line can say what `{name}` does: its targets differ")]
#[diagnostic(
    code(plumb::profile::no_command),
    help("take the XML: plumb profile show {name} | plumb run -X/dev/stdin TARGET")
)]
struct NoCommand {
    name: &'static str,
}
