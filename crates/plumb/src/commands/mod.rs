//! The subcommands, a file each; those beside `run` are described to clap here.

mod answers;
pub(crate) mod baseline;
mod caps;
pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod convert;
pub(crate) mod explain;
pub(crate) mod help;
pub(crate) mod history;
pub(crate) mod knee;
pub(crate) mod man;
pub(crate) mod monitor;
pub(crate) mod pool;
pub(crate) mod profile;
pub(crate) mod quick;
pub(crate) mod report;
pub(crate) mod run;
pub(crate) mod runs;
mod sources;
pub(crate) mod space;
mod study;
pub(crate) mod sweep;
pub(crate) mod tier;
pub(crate) mod vdisk;
pub(crate) mod version;

use std::ffi::OsString;
use std::io::{self, Write};
use std::process::ExitCode;

use clap::Command;

use crate::message::Printer;

/// Exit status when `plumb` itself was not understood; DISKSPD's command lines end with 3.
const NOT_UNDERSTOOD: u8 = 2;

/// Every subcommand, without the options of `run`: those are a language of their own.
pub(crate) fn command() -> Command {
    Command::new("plumb")
        .version(version::VERSION)
        .about("Storage performance software for Linux")
        .long_about(
            "Storage performance software for Linux. `plumb run` puts a precisely described load on \
             files and block devices and reports throughput, IOPS, latency percentiles and CPU; it \
             takes the command lines and XML profiles of DISKSPD 2.3. Called by the name diskspd, \
             plumb is that program. `plumb sweep` measures many settings and says which is best. `plumb knee`, `plumb compare` and `plumb history` say what many \
             results mean, and `plumb explain` why. `plumb pool` and `plumb vdisk` make mirrored, \
             checksummed virtual disks of files and devices, `plumb space` looks after them and checks the \
             engine by crashing it.",
        )
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(run::command("run").about("Put load on files and devices: DISKSPD's options"))
        .subcommand(run::command("diskspd").about("The same, by DISKSPD's name"))
        .subcommand(convert::command())
        .subcommand(check::command())
        .subcommand(profile::command())
        .subcommand(monitor::command())
        .subcommand(runs::command())
        .subcommand(baseline::command())
        .subcommand(sweep::command())
        .subcommand(quick::command())
        .subcommand(sweep::plan_command())
        .subcommand(report::command())
        .subcommand(knee::command())
        .subcommand(compare::command())
        .subcommand(history::command())
        .subcommand(explain::command())
        .subcommand(pool::command())
        .subcommand(vdisk::command())
        .subcommand(tier::command())
        .subcommand(space::command())
        .subcommand(man::command())
        .subcommand(completions::command())
        .subcommand(help::command())
        .subcommand(version::command())
}

/// A subcommand beside `run`.
pub(crate) fn other(words: Vec<OsString>) -> ExitCode {
    let words = translated(words);
    let misunderstood = match words.get(..2) {
        // Whoever watches health takes 2 for Unhealthy (HLT-5).
        Some([first, second]) if first == "space" && second == "status" => space::UNKNOWN,
        _ => NOT_UNDERSTOOD,
    };
    let words = std::iter::once("plumb".into()).chain(words);
    let matches = match command().try_get_matches_from(words) {
        Ok(matches) => matches,
        Err(error) => {
            // clap prints help asked for to standard output, errors to standard error.
            let _ = error.print();
            return if error.use_stderr() { misunderstood.into() } else { ExitCode::SUCCESS };
        }
    };
    match matches.subcommand() {
        Some(("convert", matches)) => convert::run(matches),
        Some(("check", matches)) => check::run(matches),
        Some(("profile", matches)) => profile::run(matches),
        Some(("monitor", matches)) => monitor::run(matches),
        Some(("runs", matches)) => runs::run(matches),
        Some(("baseline", matches)) => baseline::run(matches),
        Some(("quick", matches)) => quick::run(matches),
        Some(("sweep", matches)) => sweep::run(matches),
        Some(("plan", matches)) => match matches.subcommand() {
            Some(("show", matches)) => sweep::show(matches),
            subcommand => unreachable!("clap let {subcommand:?} pass"),
        },
        Some(("report", matches)) => report::run(matches),
        Some(("knee", matches)) => knee::run(matches),
        Some(("compare", matches)) => compare::run(matches),
        Some(("history", matches)) => history::run(matches),
        Some(("explain", matches)) => explain::run(matches),
        Some(("pool", matches)) => pool::run(matches),
        Some(("vdisk", matches)) => vdisk::run(matches),
        Some(("tier", matches)) => tier::run(matches),
        Some(("space", matches)) => space::run(matches),
        Some(("man", matches)) => man::run(matches),
        Some(("completions", matches)) => completions::run(matches),
        Some(("help", matches)) => help::run(help::topic(matches)),
        Some(("version", _)) => version::run(),
        subcommand => unreachable!("clap let {subcommand:?} pass"),
    }
}

/// Commands of another storage product, by which runbooks go, and short names of them; and what they are here.
const CMDLETS: [(&str, [&str; 2]); 22] = [
    ("new-storagepool", ["pool", "new"]),
    ("get-storagepool", ["pool", "show"]),
    ("set-storagepool", ["pool", "set"]),
    ("add-physicaldisk", ["pool", "add-disk"]),
    ("remove-physicaldisk", ["pool", "remove-disk"]),
    ("remove-storagepool", ["pool", "remove"]),
    ("new-virtualdisk", ["vdisk", "new"]),
    ("get-virtualdisk", ["vdisk", "list"]),
    ("remove-virtualdisk", ["vdisk", "rm"]),
    ("get-storagetier", ["tier", "show"]),
    ("get-physicaldisk", ["pool", "show"]),
    ("set-filestoragetier", ["tier", "pin"]),
    ("clear-filestoragetier", ["tier", "unpin"]),
    ("get-filestoragetier", ["tier", "pins"]),
    ("get-storagejob", ["space", "job"]),
    ("repair-virtualdisk", ["space", "repair"]),
    ("get-healthstatus", ["space", "status"]),
    ("optimize-volume", ["space", "optimize"]),
    ("tier-optimize", ["space", "optimize"]),
    ("get-storagereliabilitycounter", ["space", "perf"]),
    ("perf", ["space", "perf"]),
    ("scan", ["space", "scan"]),
];

/// The words with a cmdlet's name, in any case, as the command that it is here.
fn translated(words: Vec<OsString>) -> Vec<OsString> {
    let first = words.first().map(|word| word.to_string_lossy().to_ascii_lowercase());
    let known = CMDLETS.iter().find(|(name, _)| first.as_deref() == Some(name));
    match known {
        Some((_, command)) => {
            command.iter().map(OsString::from).chain(words.into_iter().skip(1)).collect()
        }
        None => words,
    }
}

/// Nothing was asked for.
pub(crate) fn usage() -> ExitCode {
    let usage = command().render_help();
    // Nobody is left to tell when standard error is closed.
    let _ = write!(io::stderr(), "{usage}");
    NOT_UNDERSTOOD.into()
}

/// Writes to standard output; success unless that fails.
pub(crate) fn print(text: &str) -> ExitCode {
    print_and_exit(text, 0)
}

/// Writes to standard output and ends with `status`, unless writing fails. A reader that has enough
/// (`| head`) is no failure.
pub(crate) fn print_and_exit(text: &str, status: u8) -> ExitCode {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            Printer::on_stderr().error(&StdoutError { source });
            ExitCode::FAILURE
        }
        _ => status.into(),
    }
}

/// The result could not be shown.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot write to standard output")]
#[diagnostic(code(plumb::stdout), help("check what it is redirected to: is the disk full?"))]
pub(crate) struct StdoutError {
    pub(crate) source: io::Error,
}

#[cfg(test)]
mod reference;

#[cfg(test)]
mod tests {
    #[test]
    fn the_subcommands_are_sound() {
        super::command().debug_assert();
    }
}
