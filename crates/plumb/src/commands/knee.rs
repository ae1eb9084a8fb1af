//! `plumb knee`: the knee of curves that the user brings.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use plumb_study::decision;
use plumb_study::findings::Layout;
use plumb_study::knee::{self, DeclaredCap, Limit, Options, Policy};
use plumb_study::table::{self, TableError};
use serde_json::{Map, Value};

use super::answers::{self, Answers, Place};
use super::caps;
use crate::message::Printer;

/// For clap.
pub(crate) fn command() -> Command {
    let csv = Arg::new("csv")
        .long("csv")
        .value_name("FILE")
        .required(true)
        .action(ArgAction::Append)
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("A table with the columns o,iops,avg_lat_ms[,rep,mib_per_s,cpu_pct]; - for standard input");
    let count = |name: &'static str, value: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name(value).value_parser(whole).help(help)
    };
    let policy = Arg::new("policy")
        .long("policy")
        .value_name("POLICY")
        .value_parser(Policy::ALL.map(Policy::keyword))
        .default_value(Policy::default().keyword())
        .help("What to recommend: all the throughput, 97 % of what the balance of throughput and latency gives, or most per latency");
    let share = Arg::new("write-share")
        .long("write-share")
        .value_name("W")
        .value_parser(share)
        .help("Share of writes, 0 to 1, for the load on each device");
    let cap = Arg::new("cap")
        .long("cap")
        .value_name("N[iops|MiB/s]")
        .action(ArgAction::Append)
        .value_parser(DeclaredCap::parse)
        .help("A limit that somebody declared, with a name or without: \"VM limit=1920iops\"; a number alone is in iops; several may be given");
    Command::new("knee")
        .about("Find the queue depth beyond which more outstanding I/Os do not pay")
        .long_about(
            "Find the queue depth beyond which more outstanding I/Os do not pay, in tables of runs that \
             are there already; nothing is measured. The verdict is `knee` when the plateau lies in the \
             range, `extend` when throughput still rises at its end, `flat` when it began above the knee, \
             `unclear` when noise hides the answer. Rows with the same o are repetitions.",
        )
        .args([
            csv,
            count("threads", "T", "Threads per file [default: the table's column t, else what rate and latency say]"),
            count("files", "F", "Target files [default: 1]"),
            count("block-bytes", "B", "Bytes per I/O [default: what both rates say, if both are there]"),
            count("ssds", "S", "Devices behind the target, for the load on each"),
            count("copies", "C", "Copies that are kept of each datum [default: 1]"),
            share,
            policy,
            count("latency-budget-ms", "MS", "Largest mean latency that is acceptable")
                .value_parser(positive),
            cap,
            caps::option(),
            answers::json_option(),
        ])
        .after_help(
            "Exit status: 0 whatever the verdict is, 1 if a table cannot be used, 2 for a wrong command \
             line.\n\nFor example:\n  plumb knee --csv reads.csv --threads 1 --policy throughput\n  \
             plumb knee --csv vm.csv --threads 2 --cap 1920iops --cap 48MiB/s --block-bytes 4096 --json",
        )
}

/// Judges each table.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let number = |name: &str| matches.get_one::<f64>(name).copied();
    let policy = matches.get_one::<String>("policy").expect("it has a default");
    let options = Options {
        threads: number("threads"),
        files: number("files"),
        block_bytes: number("block-bytes"),
        policy: Policy::of_keyword(policy).expect("clap checks it"),
        searched: false,
        budget_ms: number("latency-budget-ms"),
        caps: match caps::all(matches) {
            Ok(declared) => {
                matches.get_many("cap").into_iter().flatten().cloned().chain(declared).collect()
            }
            Err(error) => {
                Printer::on_stderr().error(&error);
                return 2.into();
            }
        },
        noise: None,
    };
    let layout = Layout {
        devices: number("ssds"),
        copies: number("copies"),
        write_share: number("write-share"),
    };
    let mut answers = Answers::new(matches);
    for path in matches.get_many::<PathBuf>("csv").expect("clap requires it") {
        let place = Place::file(path);
        match answers::read(path) {
            Err(error) => answers.refused(&place, &error),
            Ok(text) => match judge(&text, &options, &layout) {
                Err(error) => answers.refused(&place, &error),
                Ok(decision) => answers.decided(&place, decision),
            },
        }
    }
    answers.print()
}

fn judge(text: &str, options: &Options, layout: &Layout) -> Result<Map<String, Value>, KneeError> {
    let table = table::read(text, options.block_bytes)?;
    if let (Some(given), Some(found)) = (options.threads, table.threads)
        && given != found
    {
        return Err(KneeError::Threads { given, found });
    }
    let threads = options.threads.or(table.threads);
    let options = Options { block_bytes: table.block_bytes, threads, ..options.clone() };
    let in_mib = options.caps.iter().find(|cap| matches!(cap.limit, Limit::MibPerS(_)));
    if let Some(cap) = in_mib.filter(|_| options.block_bytes.is_none()) {
        return Err(KneeError::NoBlock { cap: cap.name.clone() });
    }
    let knee = knee::find(&table.rows, &options);
    Ok(decision::of_knee(&knee, &options, layout))
}

/// Why a table was not judged.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum KneeError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Table(#[from] TableError),
    #[error("the cap {cap} is a bandwidth, and the block size is not known")]
    #[diagnostic(
        code(plumb::knee::no_block),
        help("give --block-bytes B, or a column mib_per_s beside iops")
    )]
    NoBlock { cap: String },
    #[error("--threads {given}, and the table's column of threads says {found}")]
    #[diagnostic(code(plumb::knee::threads), help("leave --threads out, or correct the column"))]
    Threads { given: f64, found: f64 },
}

fn positive(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|number| number.is_finite() && *number > 0.0);
    number.ok_or_else(|| "it must be a positive number".to_owned())
}

/// A count as a number: there is no half a thread.
fn whole(text: &str) -> Result<f64, String> {
    let number = text.parse::<u64>().ok().filter(|number| *number > 0);
    number.map(|number| number as f64).ok_or_else(|| "it must be a whole number from 1".to_owned())
}

fn share(text: &str) -> Result<f64, String> {
    let number = text.parse::<f64>().ok().filter(|share| (0.0..=1.0).contains(share));
    number.ok_or_else(|| "it must be a share from 0 to 1, 0.3 for 30 %".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caps_have_units() {
        for (text, limit) in [
            ("1920", Limit::Iops(1920.0)),
            ("1920iops", Limit::Iops(1920.0)),
            ("1920 IOPS", Limit::Iops(1920.0)),
            ("48MiB/s", Limit::MibPerS(48.0)),
            ("1.048576MB/s", Limit::MibPerS(1.0)),
        ] {
            let found = DeclaredCap::parse(text).expect("a limit");
            // What was taken is told.
            let name = if text == "1920" { "1920iops" } else { text };
            assert_eq!((found.name.as_str(), found.limit), (name, limit));
            let named = DeclaredCap::parse(&format!("VM limit={text}")).expect("a limit");
            assert_eq!((named.name.as_str(), named.limit), ("VM limit", limit));
        }
        for text in ["", "iops", "-3", "5furlongs", "1e999", "=5", "a=", "a=b=5"] {
            assert!(DeclaredCap::parse(text).is_err(), "{text}");
        }
        assert!(share("30").is_err() && share("0.3").is_ok());
        assert_eq!(whole("8"), Ok(8.0));
        for text in ["0.5", "0", "-1", "1e3", "nan"] {
            assert!(whole(text).is_err(), "{text}");
        }
    }
}
