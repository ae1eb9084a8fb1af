//! Command-line arguments that studies have in common, each described once.

use std::path::PathBuf;

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgMatches, ValueHint, value_parser};
use plumb_study::knee::DeclaredCap;
use plumb_study::preflight;
use plumb_study::study::{self, Conditioning};

use crate::commands::caps;
use crate::commands::check::bytes;

/// An option without a value.
pub(in crate::commands) fn flag(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
}

/// An option with a count of 1 or more.
pub(in crate::commands) fn count(
    name: &'static str,
    value: &'static str,
    help: &'static str,
) -> Arg {
    Arg::new(name)
        .long(name)
        .value_name(value)
        .value_parser(value_parser!(u32).range(1..))
        .help(help)
}

/// An option with seconds, 0 among them.
pub(in crate::commands) fn seconds(name: &'static str, help: &'static str) -> Arg {
    Arg::new(name).long(name).value_name("SECONDS").value_parser(value_parser!(u32)).help(help)
}

/// An option with a word.
pub(in crate::commands) fn word(
    name: &'static str,
    value: &'static str,
    help: &'static str,
) -> Arg {
    Arg::new(name).long(name).value_name(value).help(help)
}

/// An option that may be given several times.
pub(in crate::commands) fn many(
    name: &'static str,
    value: &'static str,
    help: &'static str,
) -> Arg {
    word(name, value, help).action(ArgAction::Append)
}

/// The file or device.
pub(in crate::commands) fn target(help: &'static str) -> Arg {
    Arg::new("target")
        .value_name("TARGET")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::AnyPath)
        .help(help)
}

/// What a study is of: the target that is named or, of a simulated device without one, the file that describes it.
pub(in crate::commands) fn target_or_device(matches: &ArgMatches) -> PathBuf {
    let named = matches.get_one::<PathBuf>("target").or_else(|| matches.get_one("simulate"));
    named.expect("clap requires one of them").clone()
}

/// `--size`.
pub(in crate::commands) fn size(help: &'static str) -> Arg {
    word("size", "SIZE", help).value_parser(bytes)
}

/// `--device-cache`.
pub(in crate::commands) fn device_cache() -> Arg {
    word("device-cache", "SIZE", "A cache of controller, array or device that is known: files should be more than twice as large, and no multiple of it")
        .value_parser(bytes)
}

/// `--seed`.
pub(in crate::commands) fn seed(help: &'static str) -> Arg {
    word("seed", "N", help).value_parser(value_parser!(u64))
}

/// `--ssds`, `--copies`, `--cap` and `--caps`: what is known of the layers behind the target.
pub(in crate::commands) fn behind() -> Vec<Arg> {
    vec![
        count("ssds", "S", "Devices that back the target: figures for each of them"),
        count("copies", "C", "Copies that the volume keeps of each datum [default: 1]"),
        cap(),
        caps::option(),
    ]
}

/// `--cap`.
pub(in crate::commands) fn cap() -> Arg {
    many("cap", "LIMIT", "A limit that is known, with a name or without: 1920iops, 48MiB/s, \"VM limit=1920iops\"; a number alone is in iops; several may be given")
        .value_parser(|text: &str| DeclaredCap::parse(text).map(|_| text.to_owned()))
}

/// `--warmup`, `--duration`, `--gap` and `--conditioning`: how a run is timed, and what comes before it. The help
/// of the first two says the default.
pub(in crate::commands) fn timing(warm_up: &'static str, duration: &'static str) -> Vec<Arg> {
    vec![
        seconds("warmup", warm_up),
        seconds("duration", duration).value_parser(value_parser!(u32).range(1..)),
        seconds("gap", "Left alone between two runs; a run that writes less than the one before waits a sixth of its duration at least [default: 0]"),
        word("conditioning", "LEVEL", "Before the first run: none (each run's warm-up only), d0 (300 s of warm-up each), pts-file (the file written twice, then rounds until steady), pts-device (the same with a whole block device, which --destroy must name) [default: none]")
            .value_parser(PossibleValuesParser::new(Conditioning::ALL.map(Conditioning::keyword))),
    ]
}

/// The level of `--conditioning`, where it is given.
pub(in crate::commands) fn conditioning(matches: &ArgMatches) -> Option<Conditioning> {
    matches.get_one::<String>("conditioning").and_then(|word| Conditioning::of_keyword(word))
}

/// `--accept`: checks of the preflight that may say what they want.
pub(in crate::commands) fn accept() -> Arg {
    many("accept", "ID", "Let this check of the preflight say what it wants; several may be given")
        .value_parser(PossibleValuesParser::new(preflight::ids()))
        .hide_possible_values(true)
}

/// What `--accept` names.
pub(in crate::commands) fn accepted(matches: &ArgMatches) -> Vec<String> {
    matches.get_many("accept").into_iter().flatten().cloned().collect()
}

/// The name of a study: a plain one, whether anything is run or not.
pub(in crate::commands) fn study_name(text: &str) -> Result<String, String> {
    match study::check_name(text) {
        Ok(()) => Ok(text.to_owned()),
        Err(_) => {
            Err("use letters, digits, `-`, `_` and `.`, at most 100, and no dot at the beginning"
                .to_owned())
        }
    }
}

/// Options of every study.
pub(in crate::commands) fn of_every_study() -> Vec<Arg> {
    let path = |arg: Arg, hint| arg.value_parser(value_parser!(PathBuf)).value_hint(hint);
    vec![
        word("id", "NAME", "Name of the study [default: what it is and the time]")
            .value_parser(study_name),
        word("resume", "NAME", "Go on with a study that was interrupted: no run is repeated"),
        flag(
            "accept-changes",
            "Resume although the target or the machine is not the same any more; the findings say so",
        ),
        path(
            word(
                "simulate",
                "FILE",
                "Measure a simulated device in virtual time, described by this TOML file, instead of a target: one that is named is a name only",
            ),
            ValueHint::FilePath,
        ),
        path(
            many(
                "destroy",
                "PATH",
                "A target that holds data of somebody else's and may be overwritten",
            ),
            ValueHint::AnyPath,
        ),
        flag("json", "Print the findings as one JSON object"),
        flag("dry-run", "Say how many runs there would be and how long they take; run nothing"),
    ]
}
