//! `plumb space simulate`: a trace replayed against tiers of several sizes.

mod like;
mod told;

use std::fs::File;
use std::io::{self, BufRead, BufReader, BufWriter, IsTerminal};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::builder::PossibleValuesParser;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, ValueHint, value_parser};
use plumb_tier::replay::{Layout, Policy, Replay, ReplayError, ReplayOutcome};
use plumb_tier::trace::{
    Capacities, FittedShare, REUSE, Strictness, TraceError, TraceFormat, TraceIo, TraceReader,
    TraceSummary, TraceWriter, WorkloadError, WorkloadSpec, is_binary, workload_kinds,
};
use plumb_units::Nanos;

use super::report::size;
use crate::message::Printer;

/// For clap.
pub(super) fn command() -> Command {
    Command::new("simulate")
        .about("Replay a trace against tiers of several sizes, in virtual time")
        .long_about(
            "Replay a trace of host I/O, or a generated workload, against tiered spaces of several sizes and policies \
             at once, in virtual time, with the heat map and the optimizer of the storage engine on models of disks \
             (SSD: 200 GB SAS, HDD: 10,000 turns a minute). Tells for each what share of I/O the Performance tier \
             serves, latencies, bytes written to SSDs and how busy the HDDs are, and what caches of these sizes \
             would serve. Extents are mapped at their first touch, to the Performance tier while it has room. \
             Nothing on this machine is touched but the trace that is read.",
        )
        .args(input_arguments())
        .args(space_arguments())
        .args([
            Arg::new("report")
                .long("report")
                .action(ArgAction::SetTrue)
                .help("Print the Storage Tier Optimization Report of each last optimization too"),
            super::report::json_option(),
        ])
        .group(ArgGroup::new("input").args(["trace", "generate", "like"]).required(true))
        .after_help(after_help())
}

fn input_arguments() -> [Arg; 9] {
    let names = TraceFormat::ALL.map(TraceFormat::name);
    [
        Arg::new("trace")
            .long("trace")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help("The trace; - for standard input"),
        Arg::new("format")
            .long("format")
            .value_name("FORMAT")
            .value_parser(PossibleValuesParser::new(names))
            .conflicts_with_all(["generate", "like"])
            .help("How it is written down; Plumb's own traces are known by themselves"),
        Arg::new("volume")
            .long("volume")
            .value_name("NAME")
            .conflicts_with_all(["generate", "like"])
            .help("Only the I/Os of this volume [default: all, side by side]"),
        Arg::new("capacities")
            .long("capacities")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .conflicts_with_all(["generate", "like"])
            .help("A companion file of lines device_id,capacity: I/Os beyond a device's end are bad lines"),
        Arg::new("lenient")
            .long("lenient")
            .action(ArgAction::SetTrue)
            .conflicts_with_all(["generate", "like"])
            .help("Leave bad lines out and count them, instead of ending at the first"),
        Arg::new("generate")
            .long("generate")
            .value_name("KIND[:KEY=VALUE,...]")
            .help("A seeded synthetic workload instead of a trace"),
        Arg::new("like")
            .long("like")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help("A synthetic workload with the load of a result of DISKSPD or `plumb run`, text or XML"),
        Arg::new("hours")
            .long("hours")
            .value_name("HOURS")
            .conflicts_with_all(["generate", "trace"])
            .default_value("48")
            .value_parser(hours)
            .help("How long the workload of --like goes on"),
        Arg::new("save")
            .long("save")
            .value_name("FILE")
            .value_parser(value_parser!(PathBuf))
            .value_hint(ValueHint::FilePath)
            .help("Write what is replayed to a new trace of Plumb's own format"),
    ]
}

fn space_arguments() -> [Arg; 9] {
    let count =
        |name: &'static str, value: &'static str, default: &'static str, help: &'static str| {
            Arg::new(name)
                .long(name)
                .value_name(value)
                .default_value(default)
                .value_parser(value_parser!(u32).range(1..=256))
                .help(help)
        };
    let bytes = |name: &'static str, default: &'static str, help: &'static str| {
        Arg::new(name)
            .long(name)
            .value_name("SIZE")
            .default_value(default)
            .value_parser(size)
            .help(help)
    };
    [
        Arg::new("tier-size")
            .long("tier-size")
            .value_name("SIZES")
            .required(true)
            .value_delimiter(',')
            .value_parser(size)
            .help("Sizes of the Performance tier, such as 10G,50G,200G"),
        Arg::new("policy")
            .long("policy")
            .value_name("POLICIES")
            .value_delimiter(',')
            .default_value("never,daily,continuous,clairvoyant")
            .value_parser(policy)
            .help("When extents move: never, daily, every:HOURS, continuous, clairvoyant, lru"),
        count("ssds", "N", "4", "Disks of the Performance tier"),
        count("hdds", "N", "4", "Disks of the Capacity tier"),
        bytes("hdd-size", "300000000000", "Bytes of each of these"),
        count("copies", "C", "1", "Copies of everything: 1, 2 or 3"),
        bytes(
            "write-cache",
            "1G",
            "Bytes of the write-back cache, at most a quarter of the tier; 0 for none",
        )
        .value_parser(size_or_0),
        bytes("move-rate", "64M", "Bytes that an optimization moves per second, at most"),
        Arg::new("half-life")
            .long("half-life")
            .value_name("HOURS")
            .default_value("24")
            .value_parser(value_parser!(u16).range(6..=336))
            .help("Hours after which the heat of an extent is half"),
    ]
}

fn after_help() -> String {
    let mut help = String::from(
        "`clairvoyant` is a bound: every hour the best placement for that hour. `lru` is a cache of whole extents \
         instead of a tier. Both have no disks and no write-back cache: hold the other policies against them with \
         --write-cache 0.\n\nFormats:\n",
    );
    for format in TraceFormat::ALL {
        help.push_str(&format!("  {:<9} {}\n", format.name(), format.shape()));
    }
    help.push_str(
        "\nTimes of tencent are whole seconds: the I/Os of each are spread evenly over it, in the order of the file.\n",
    );
    help.push_str("\nWorkloads; each takes extents (of 1 MiB), rate (per second), hours, writes (percent), block, seed:\n");
    for (name, what) in workload_kinds() {
        help.push_str(&format!("  {name:<9} {what}\n"));
    }
    help.push_str(&format!("  {REUSE}\n"));
    help.push_str(
        "\nFor example:\n  plumb space simulate --trace usr_0.csv --format msr --tier-size 10G,50G --policy daily,every:6\n  \
         plumb space simulate --generate zipf:extents=20000,hours=72 --tier-size 1G,2G,5G --json",
    );
    help
}

/// Hours of a workload.
fn hours(text: &str) -> Result<f64, String> {
    let hours = text.parse::<f64>().ok().filter(|hours| (1e-3..=1e5).contains(hours));
    hours.ok_or_else(|| "it must be a number of hours from 0.001 to 100000".to_owned())
}

/// A size with a unit, or 0.
fn size_or_0(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { size(text) }
}

fn policy(text: &str) -> Result<Policy, String> {
    let known = "never, daily, every:HOURS (0.01 to 10000), continuous, clairvoyant or lru";
    Policy::named(text).ok_or_else(|| format!("it must be {known}"))
}

/// Where the I/Os came from.
struct Source {
    /// As it is shown.
    name: String,
    synthetic: bool,
    /// What a generator was told, with all that it found out or took for granted.
    parameters: Option<String>,
    /// Published shares, and what became of them.
    fitted: Vec<FittedShare>,
    /// Of a trace that was read.
    summary: Option<TraceSummary>,
}

/// Does what the options say.
pub(super) fn run(matches: &ArgMatches) -> ExitCode {
    let json = matches.get_flag("json");
    match simulate(matches) {
        Ok((source, outcome)) => {
            let text = match json {
                true => format!("{:#}\n", told::as_json(&source, &outcome)),
                false => told::as_text(&source, &outcome, matches.get_flag("report")),
            };
            super::super::print_and_exit(&text, 0)
        }
        Err(error) => {
            let printer = if json { Printer::json() } else { Printer::on_stderr() };
            printer.error(&error);
            let is_asked_wrong =
                matches!(error, SimulateError::Workload(_) | SimulateError::Like(_));
            ExitCode::from(if is_asked_wrong { 2 } else { 1 })
        }
    }
}

fn simulate(matches: &ArgMatches) -> Result<(Source, ReplayOutcome), SimulateError> {
    let layout = layout(matches);
    let sizes: Vec<u64> = each_once(matches, "tier-size");
    let policies: Vec<Policy> = each_once(matches, "policy");
    let mut replay = Replay::new(layout, &sizes, &policies)?;
    let made = workload(matches)?;
    let mut save = Save::new(matches.get_one("save"), made.is_some())?;
    if let Some((name, spec)) = made {
        let mut told = Told::new(Some(spec.hours()));
        for io in spec.generate() {
            save.add(&io)?;
            replay.feed(&io)?;
            told.note(io.at);
        }
        save.end()?;
        let parameters = Some(spec.parameters());
        let fitted = spec.fitted().to_vec();
        let source = Source { name, synthetic: true, parameters, fitted, summary: None };
        return Ok((source, replay.end()));
    }
    let path: &PathBuf = matches.get_one("trace").expect("clap requires one of both");
    let mut reader = open(matches, path)?;
    let mut told = Told::new(None);
    while let Some(io) = reader.next() {
        let io = io?;
        told.note(io.at);
        // The header of a trace has said by now where it is from.
        save.synthetic(reader.summary().synthetic)?;
        save.add(&io)?;
        replay.feed(&io)?;
    }
    save.end()?;
    let summary = reader.end()?;
    let source = Source {
        name: path.display().to_string(),
        synthetic: summary.synthetic,
        parameters: None,
        fitted: Vec::new(),
        summary: Some(summary),
    };
    Ok((source, replay.end()))
}

/// The values of a list, in its order; a space that is named twice is simulated once.
fn each_once<T: PartialEq + Copy + Send + Sync + 'static>(
    matches: &ArgMatches,
    name: &str,
) -> Vec<T> {
    let mut found = Vec::new();
    for value in matches.get_many::<T>(name).into_iter().flatten() {
        if !found.contains(value) {
            found.push(*value);
        }
    }
    found
}

/// Says now and then how far a replay is, to whoever waits at a terminal.
struct Told {
    shown: bool,
    last: Instant,
    ios: u64,
    hours: Option<f64>,
}

impl Told {
    /// How many I/Os pass between two looks at the clock.
    const LOOK: u64 = 1 << 14;
    const EVERY: Duration = Duration::from_secs(1);

    /// Of a workload of so many hours, if that is known.
    fn new(hours: Option<f64>) -> Self {
        Self { shown: io::stderr().is_terminal(), last: Instant::now(), ios: 0, hours }
    }

    fn note(&mut self, at: Nanos) {
        self.ios += 1;
        if self.shown && self.ios.is_multiple_of(Self::LOOK) && self.last.elapsed() >= Self::EVERY {
            self.last = Instant::now();
            eprint!("\r{}\x1b[K", so_far(self.ios, at, self.hours));
        }
    }
}

impl Drop for Told {
    /// Nothing of it is left in front of what is said at the end, an error included.
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

fn so_far(ios: u64, at: Nanos, hours: Option<f64>) -> String {
    let of = hours.map_or_else(String::new, |hours| format!(" of {hours:.1}"));
    format!("{:.1}{of} hours, {ios} I/Os", at.as_secs_f64() / 3600.0)
}

/// What is generated, if anything, and how it is called.
fn workload(matches: &ArgMatches) -> Result<Option<(String, WorkloadSpec)>, SimulateError> {
    if let Some(text) = matches.get_one::<String>("generate") {
        return Ok(Some((text.clone(), WorkloadSpec::parse(text)?)));
    }
    let Some(path) = matches.get_one::<PathBuf>("like") else { return Ok(None) };
    let hours = *matches.get_one::<f64>("hours").expect("it has a default");
    Ok(Some((format!("like {}", path.display()), like::workload(path, hours)?)))
}

fn layout(matches: &ArgMatches) -> Layout {
    let number = |name: &str| *matches.get_one::<u32>(name).expect("it has a default");
    let bytes = |name: &str| *matches.get_one::<u64>(name).expect("it has a default");
    Layout {
        ssds: number("ssds"),
        hdds: number("hdds"),
        copies: number("copies"),
        hdd_bytes: bytes("hdd-size"),
        write_cache_bytes: bytes("write-cache"),
        move_rate: bytes("move-rate"),
        half_life_hours: f32::from(*matches.get_one::<u16>("half-life").expect("it has a default")),
        ..Layout::default()
    }
}

/// The trace, its format told or found.
fn open(matches: &ArgMatches, path: &Path) -> Result<TraceReader<Box<dyn BufRead>>, SimulateError> {
    let failed = |source| TraceError::Read { path: path.to_owned(), source };
    let mut input: Box<dyn BufRead> = match path == Path::new("-") {
        true => Box::new(io::stdin().lock()),
        false => Box::new(BufReader::with_capacity(1 << 18, File::open(path).map_err(failed)?)),
    };
    let named = matches.get_one::<String>("format").and_then(|name| TraceFormat::named(name));
    let format = match named {
        Some(format) => format,
        None if is_binary(input.fill_buf().map_err(failed)?) => TraceFormat::Plumb,
        None => return Err(SimulateError::Format { path: path.to_owned(), remedy: formats() }),
    };
    let strictness =
        if matches.get_flag("lenient") { Strictness::Lenient } else { Strictness::Strict };
    let only = matches.get_one::<String>("volume").cloned();
    let reader = TraceReader::new(input, path, format, strictness, only);
    let Some(companion) = matches.get_one::<PathBuf>("capacities") else { return Ok(reader) };
    let failed = |source| TraceError::Read { path: companion.clone(), source };
    let file = BufReader::new(File::open(companion).map_err(failed)?);
    Ok(reader.with_capacities(Some(Capacities::read(file, companion)?)))
}

fn formats() -> String {
    let names = TraceFormat::ALL.map(TraceFormat::name).join(", ");
    format!(
        "name it with --format: one of {names}; `plumb space simulate --help` shows a line of each"
    )
}

/// Where the I/Os are kept, if anywhere.
struct Save {
    path: PathBuf,
    file: Option<File>,
    writer: Option<TraceWriter<BufWriter<File>>>,
}

impl Save {
    fn new(path: Option<&PathBuf>, synthetic: bool) -> Result<Self, SimulateError> {
        let path = path.cloned().unwrap_or_default();
        if path.as_os_str().is_empty() {
            return Ok(Self { path, file: None, writer: None });
        }
        let file = File::create_new(&path);
        let file = file.map_err(|source| SimulateError::Save { path: path.clone(), source })?;
        let mut save = Self { path, file: Some(file), writer: None };
        if synthetic {
            save.synthetic(true)?;
        }
        Ok(save)
    }

    fn failed(&self) -> impl Fn(io::Error) -> SimulateError + use<> {
        let path = self.path.clone();
        move |source| SimulateError::Save { path: path.clone(), source }
    }

    /// Begins the file once it is known what it holds.
    fn synthetic(&mut self, synthetic: bool) -> Result<(), SimulateError> {
        if let Some(file) = self.file.take() {
            let writer = TraceWriter::new(BufWriter::new(file), synthetic);
            self.writer = Some(writer.map_err(self.failed())?);
        }
        Ok(())
    }

    fn add(&mut self, io: &TraceIo) -> Result<(), SimulateError> {
        let failed = self.failed();
        self.writer.as_mut().map_or(Ok(()), |writer| writer.add(io)).map_err(failed)
    }

    fn end(self) -> Result<(), SimulateError> {
        let failed = self.failed();
        self.writer.map_or(Ok(()), |writer| writer.end().map(|_| ())).map_err(failed)
    }
}

/// Why nothing was replayed to its end.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum SimulateError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Trace(#[from] TraceError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Workload(#[from] WorkloadError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Like(#[from] like::LikeError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Replay(#[from] ReplayError),
    #[error("the format of {} is not known", path.display())]
    #[diagnostic(code(plumb::simulate::format))]
    Format {
        path: PathBuf,
        #[help]
        remedy: String,
    },
    #[error("cannot write {}", path.display())]
    #[diagnostic(
        code(plumb::simulate::save),
        help("name a file that does not exist yet, in a folder that you may write to")
    )]
    Save { path: PathBuf, source: io::Error },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_waits_is_told_how_far_it_is() {
        let at = Nanos::from_secs(5400);
        assert_eq!(so_far(7, at, Some(72.0)), "1.5 of 72.0 hours, 7 I/Os");
        assert_eq!(so_far(7, at, None), "1.5 hours, 7 I/Os");
    }
}
