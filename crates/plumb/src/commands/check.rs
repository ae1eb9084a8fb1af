//! `plumb check`: whether the machine is fit for a measurement.

use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgMatches, Command, ValueHint, value_parser};
use plumb_io::system_tree::SystemTree;
use plumb_study::preflight::{self, Check, Plan, Verdict};
use plumb_study::study::Device;
use plumb_units::parse_size;

use super::answers;
use super::study::{self, arguments, machine};
use crate::message::Printer;

/// Exit status when something blocks.
const BLOCKED: u8 = 3;
/// Exit status for a target that no run could use.
const WRONG: u8 = 2;

/// For clap.
pub(crate) fn command() -> Command {
    let target =
        arguments::target("The file or device that is to be measured; a file need not exist yet")
            .required(true);
    let size = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(bytes).help(help)
    };
    let number = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name(value)
            .value_parser(value_parser!(u64).range(1..))
            .help(help)
    };
    let root = Arg::new("system-root")
        .long("system-root")
        .value_name("FOLDER")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::DirPath)
        .help("Where /sys, /proc, /dev and /etc are looked for: a copy of another machine's, or a made-up one");
    Command::new("check")
        .about("Look whether the machine is fit for a measurement")
        .long_about(
            "Look whether the machine is fit for a measurement: the health of what lies under the target, \
             room, other load, caches, limits, clocks and temperatures. Each check says `ok`, `note`, \
             `warn`, `block`, or `unknown` where it cannot see, with its evidence and what to do. Programs \
             that know more are asked where they are there and concern the target: smartctl, lvs, zpool, \
             zfs, btrfs, multipath, systemctl. Nothing is changed. It takes one to two seconds.",
        )
        .args([
            target,
            size("size", "SIZE", "Size of the test file that is planned, such as 64G"),
            number("copies", "C", "Copies that the volume keeps of each datum [default: 1]"),
            size("block-size", "SIZE", "Size of the I/Os that are planned, such as 8K"),
            number("for", "SECONDS", "How long the measurement will take"),
            arguments::device_cache(),
            arguments::accept(),
            root,
            answers::json_option(),
        ])
        .after_help(
            "Exit status: 0 if nothing blocks, 1 if the target cannot be looked at, 2 for a wrong command \
             line or a target that no run could use, 3 if a check blocks that was not accepted.\n\nFor example:\n  \
             plumb check f.dat --size 64G --copies 2\n  plumb check /dev/nvme0n1 --accept load-psi --json",
        )
}

/// Looks.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let path = matches.get_one::<PathBuf>("target").expect("clap requires it");
    let tree = matches.get_one::<PathBuf>("system-root").map(SystemTree::new).unwrap_or_default();
    if tree.is_real()
        && let Err(error) = study::refuse_unusable(path, &Device::Real)
    {
        Printer::on_stderr().error(&error);
        return ExitCode::from(WRONG);
    }
    let number = |name: &str| matches.get_one::<u64>(name).copied();
    let plan = Plan {
        file_bytes: number("size"),
        beside_bytes: 0,
        copies: number("copies"),
        block_bytes: number("block-size"),
        seconds: number("for"),
        device_cache_bytes: number("device-cache"),
    };
    let checks = match machine::look_for_a_second(&tree, path, plan) {
        Ok(checks) => checks,
        Err(source) => {
            Printer::on_stderr().error(&TargetError { path: path.clone(), source });
            return ExitCode::FAILURE;
        }
    };
    let accepted = arguments::accepted(matches);
    let worst = preflight::worst(&checks, &accepted);
    let text = match matches.get_flag("json") {
        true => object(path, &checks, &accepted),
        false => text(path, &checks, &accepted, worst),
    };
    super::print_and_exit(&text, if worst == Verdict::Block { BLOCKED } else { 0 })
}

fn object(path: &Path, checks: &[Check], accepted: &[String]) -> String {
    let mut object = machine::verdicts(checks, accepted);
    object["target"] = path.display().to_string().into();
    format!("{object}\n")
}

/// The heaviest first, those that are fine last and short.
fn text(path: &Path, checks: &[Check], accepted: &[String], worst: Verdict) -> String {
    let mut text = format!("{}: {}\n", path.display(), worst.keyword());
    let mut sorted: Vec<&Check> = checks.iter().collect();
    sorted.sort_by_key(|check| std::cmp::Reverse(check.verdict));
    for check in sorted {
        let word = check.verdict.keyword();
        let mark = if accepted.iter().any(|id| id == check.id) { " (accepted)" } else { "" };
        text.push_str(&format!("{word:<8}{:<18}{}{mark}\n", check.id, check.evidence));
        if !check.remedy.is_empty() {
            text.push_str(&format!("{:26}do: {}\n", "", check.remedy));
        }
    }
    text
}

/// A size such as `64G`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    match parse_size(text, 1) {
        Ok(0) => Err("it must be more than 0".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(_) => Err("it must be digits and at most one of K, M, G, T, such as 64G".to_owned()),
    }
}

/// The target cannot be looked at.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot look at {}", path.display())]
#[diagnostic(
    code(plumb::check::target),
    help("name a file, a device, or a file to be made in a folder that exists")
)]
struct TargetError {
    path: PathBuf,
    source: io::Error,
}
