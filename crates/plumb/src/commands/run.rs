//! `plumb run`, and the program diskspd: the load generator.

mod beside;
mod console;
mod events;
mod execute;
mod keep;
mod outputs;
mod spaces;
mod system_info;
mod world;

use std::ffi::OsString;
use std::os::unix::fs::MetadataExt;
use std::path::Path;
use std::process::ExitCode;

use clap::{Arg, ArgAction, Command, ValueHint};
use plumb_io::system_tree::SystemTree;
use plumb_io::topology::Topology;
use plumb_load::profile::flags::table::{OPTIONS, OptionRow, Value};
use plumb_load::profile::flags::{self, CommandLineError, ErrorFormat, Invocation, Parsed};
use plumb_load::profile::model::{Profile, ResultFormat};
use plumb_load::profile::{json, text, xml};
use plumb_load::session::target::resolve;

use crate::message::Printer;
use world::World;

/// Reads the command line and does what it says. `program` is what reports call it.
pub(crate) fn run(program: &str, arguments: &[OsString]) -> ExitCode {
    let mut world = World::default();
    match flags::parse(arguments, &mut world) {
        Err(error) => refuse(program, &error),
        Ok(Parsed::Usage { exit_code }) => super::print_and_exit(&flags::usage(program), exit_code),
        Ok(Parsed::Version) => super::version::run(),
        Ok(Parsed::SystemInfo(format)) => system_info::run(format),
        Ok(Parsed::SignalledEvent { .. }) => super::print_and_exit("Now exiting...\n", 1),
        Ok(Parsed::Run(invocation)) => workload(program, &invocation),
    }
}

/// `plumb help run`.
pub(crate) fn help() -> ExitCode {
    super::print(&flags::usage("plumb run"))
}

/// The command line is wrong.
fn refuse(program: &str, error: &CommandLineError) -> ExitCode {
    Printer::on_stderr().report(&error.render(program));
    error.exit_code.into()
}

/// Prints the profile, or runs it.
fn workload(program: &str, invocation: &Invocation) -> ExitCode {
    let Invocation { profile, warnings, options, tokens, .. } = invocation;
    let printer = match options.error_format {
        ErrorFormat::Text => Printer::on_stderr(),
        ErrorFormat::Json => Printer::json(),
    };
    for warning in warnings {
        printer.warning(warning);
    }
    if (options.profile_json || profile.profile_only) && !options.outputs.is_empty() {
        printer.warning("--output has no effect: nothing is run, so there is no result");
    }
    for named in options.destroy.iter().filter(|named| !is_target(named, profile)) {
        let named = named.display();
        printer.warning(&format!("--destroy names '{named}', which is no target of this run"));
    }
    let command_line = format!("{program} {}", tokens.join(" "));
    if options.profile_json || (profile.profile_only && options.json) {
        return super::print(&format!("{:#}\n", json::normalised(profile)));
    }
    if profile.profile_only {
        return super::print(&match profile.result_format {
            ResultFormat::Text => text::write(profile, &command_line),
            ResultFormat::Xml => xml::write(profile, 0),
        });
    }
    let binds = profile.time_spans.iter().any(|span| !span.affinity.is_empty());
    if binds
        && let Err(error) = invocation.check_processors(&Topology::read(&SystemTree::default()))
    {
        return refuse(program, &error);
    }
    execute::execute(program, command_line, invocation, printer)
}

/// Whether a name is that of a target, or leads to the same file.
fn is_target(named: &Path, profile: &Profile) -> bool {
    let paths = profile.time_spans.iter().flat_map(|span| &span.targets);
    let mut paths = paths.filter_map(|target| resolve(&target.path).ok());
    let file = |path: &Path| path.metadata().ok().map(|found| (found.dev(), found.ino()));
    let its = file(named);
    paths.any(|path| path == named || its.is_some() && file(&path) == its)
}

/// The command as clap sees it: for manual pages and completions only, `run` reads its own options.
pub(crate) fn command(name: &'static str) -> Command {
    let mut command = Command::new(name).disable_help_flag(true).disable_version_flag(true);
    let mut letters = Vec::new();
    for row in OPTIONS {
        let mut argument = argument(row);
        if let Some(letter) = letter(row).filter(|letter| !letters.contains(letter)) {
            letters.push(letter);
            argument = argument.short(letter);
        }
        command = command.arg(argument);
    }
    let target = Arg::new("target")
        .value_name("TARGET")
        .num_args(1..)
        .value_hint(ValueHint::AnyPath)
        .help("Files and block devices to put load on");
    command.arg(target)
}

fn argument(row: &OptionRow) -> Arg {
    let argument = Arg::new(row.long).long(row.long).help(row.help);
    match row.value {
        Value::None => argument.action(ArgAction::SetTrue),
        Value::Required(_) => argument.action(ArgAction::Append),
        Value::Optional(_) => {
            argument.action(ArgAction::Append).num_args(0..=1).require_equals(true)
        }
    }
}

/// The letter of an option that is one letter, as far as a shell can complete it.
fn letter(row: &OptionRow) -> Option<char> {
    let mut letters = row.short.strip_prefix('-')?.chars();
    let letter = letters.next().filter(char::is_ascii_alphabetic)?;
    letters.next().is_none().then_some(letter)
}
