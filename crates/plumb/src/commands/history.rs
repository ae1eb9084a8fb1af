//! `plumb history`: where results over time change their level.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use plumb_study::samples;

use super::answers::{self, Answers};
use super::compare::judge_samples;

/// For clap.
pub(crate) fn command() -> Command {
    let samples = Arg::new("samples")
        .long("samples")
        .value_name("FILE")
        .required(true)
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("A JSON object, or one per line: {\"id\",\"metric\",\"values\":[…],\"higher_is_better\"}");
    Command::new("history")
        .about("Find where results over time change their level")
        .long_about(
            "Find where results over time change their level. A change point is the index, from 0, of the \
             first value of the new level; single values far off are listed as outliers and are no change. \
             The verdict is that of the last change: `better` or `worse`. Without one it is `same`, or `unclear` \
             where the values vary too much to exclude one of the least size. With fewer \
             than eight values the last is compared with those before it.",
        )
        .args([samples, answers::fail_on_option(), answers::json_option()])
        .after_help(
            "Exit status: 0 whatever the verdict is, 1 if an object cannot be used, 2 for a wrong command \
             line, 4 with --fail-on worse if a verdict is that.\n\nFor example:\n  \
             plumb history --samples nightly.ndjson --json --fail-on worse",
        )
}

/// Judges each object.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let mut answers = Answers::new(matches);
    let files = matches.get_many::<PathBuf>("samples").expect("clap requires it");
    judge_samples(&mut answers, files, samples::history);
    answers.print()
}
