//! `plumb space demo`: what a tiered space does while it is empty, when its Performance tier is full, and after an
//! optimization, on emulated disks.

mod page;

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use plumb_tier::Optimization;
use plumb_tier::scenario::{
    Case, LoadOutcome, Progress, Rig, Scenario, ScenarioError, ScenarioOutcome,
};
use plumb_units::Bytes;
use serde_json::{Value, json};

use crate::message::Printer;

/// From this scale on files that only fill the tiers are written from end to end.
const WHOLE_FROM: u64 = 32;
/// Letters of the longest bar.
const BAR: f64 = 50.0;
/// Heights of a column.
const COLUMNS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// For clap.
pub(super) fn command() -> Command {
    Command::new("demo")
        .about("Watch a tiered space while it is empty, when its fast tier is full, and after an optimization")
        .long_about(
            "Run the storage engine on emulated disks in virtual time: four SSDs and four HDDs, a Performance tier, a \
             write-back cache, and a load of random 4 KiB writes on a file. First the space is empty; then the \
             Performance tier is full and a new file lies on HDDs; then an optimization has moved the file to SSDs. \
             The engine, its heat map and its optimizer are those of `plumb vdisk`; only the disks are models (SSD: \
             30,107 writes of 4 KiB per second; HDD: 10,000 turns a minute). The figures are the same each time. Nothing \
             on this machine is touched.",
        )
        .args([
            Arg::new("scale")
                .long("scale")
                .value_name("N")
                .default_value("64")
                .value_parser(scale)
                .help("Sizes and durations are 1:N of the full test's, N a power of two up to 1024; rates are as at full size"),
            Arg::new("write-through")
                .long("write-through")
                .action(ArgAction::SetTrue)
                .help("Every write waits until its checksum is durable, too"),
            Arg::new("html")
                .long("html")
                .value_name("FILE")
                .value_parser(value_parser!(PathBuf))
                .value_hint(ValueHint::FilePath)
                .help("Write a page with the plots to a new file, too"),
            super::report::json_option(),
        ])
        .after_help(
            "1:64 takes some ten seconds of processor time and 250 MB of memory, 1:16 half a minute and 500 MB, and 1:1 some \
             seven minutes and 7 GB.\n\n\
             For example:\n  plumb space demo --html demo.html",
        )
}

/// A power of two, as slabs and extents are; below 1:1024 files have too few extents to show anything.
fn scale(text: &str) -> Result<u64, String> {
    let scale = text.parse::<u64>().ok().filter(|scale| scale.is_power_of_two() && *scale <= 1024);
    scale.ok_or_else(|| "it must be a power of two, 1 to 1024".to_owned())
}

/// Does what the options say.
pub(super) fn run(matches: &ArgMatches) -> ExitCode {
    let json = matches.get_flag("json");
    match demonstrate(matches, json) {
        Ok(text) => super::super::print_and_exit(&text, 0),
        Err(error) => {
            let printer = if json { Printer::json() } else { Printer::on_stderr() };
            printer.error(&error);
            ExitCode::FAILURE
        }
    }
}

/// Why there was nothing to see.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
enum DemoError {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scenario(#[from] ScenarioError),
    #[error("cannot write {}", path.display())]
    #[diagnostic(
        code(plumb::demo::page),
        help("name a file that does not exist yet, in a folder that you may write to")
    )]
    Page { path: PathBuf, source: io::Error },
    #[error(transparent)]
    #[diagnostic(transparent)]
    Stdout(#[from] super::super::StdoutError),
}

/// What is left to be printed at the end.
fn demonstrate(matches: &ArgMatches, json: bool) -> Result<String, DemoError> {
    let scale = *matches.get_one::<u64>("scale").expect("it has a default");
    let scenario = Scenario {
        whole: scale >= WHOLE_FROM,
        durable: matches.get_flag("write-through"),
        ..Scenario::reference(scale)
    };
    let path = matches.get_one::<PathBuf>("html");
    // Before minutes are spent: whether there is a place for it.
    let page = path.map(|path| create(path)).transpose()?;
    let mut told = match json {
        true => Ok(()),
        false => say(&introduction(&scenario)),
    };
    let mut rig = Rig::sparse(&scenario.sizes())?;
    let found = scenario.run(&mut rig, |progress| {
        if !json && told.is_ok() {
            told = say(&narrated(progress));
        }
    })?;
    told?;
    if let (Some(mut file), Some(path)) = (page, path) {
        let text = page::html(&scenario, &found);
        let written = file.write_all(text.as_bytes()).and_then(|()| file.sync_all());
        written.map_err(|source| DemoError::Page { path: path.clone(), source })?;
    }
    Ok(match json {
        true => format!("{:#}\n", as_json(&scenario, &found)),
        false => conclusion(&found, path.map(PathBuf::as_path)),
    })
}

fn create(path: &Path) -> Result<std::fs::File, DemoError> {
    let file = std::fs::File::create_new(path);
    file.map_err(|source| DemoError::Page { path: path.to_owned(), source })
}

/// Prints what is known by now, at once.
fn say(text: &str) -> Result<(), super::super::StdoutError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(source) if source.kind() != io::ErrorKind::BrokenPipe => {
            Err(super::super::StdoutError { source })
        }
        _ => Ok(()),
    }
}

fn introduction(scenario: &Scenario) -> String {
    let (sizes, scale) = (scenario.sizes(), scenario.scale);
    let load = scenario.load(scenario.files()[0]);
    let scaled = match scale {
        1 => "Sizes and durations are those of the full test".to_owned(),
        _ => format!("Sizes and durations are 1:{scale} of the full test's, rates as at full size"),
    };
    let files = match scenario.whole {
        true => "",
        false => "Of the files that only fill the tiers the first block of each MiB is written.\n",
    };
    format!(
        "Emulated disks in virtual time: 4 SSDs of {}, 4 HDDs of {}.\n\
         Virtual disk: simple, 4 columns, Performance tier {}, Capacity tier {}, write-back cache {}.\n\
         Load: -c{} -d{:.4} -W{:.4} -w100 -t16 -o20 -b4K -r{} (16 x 20 outstanding, one thread).\n\
         {scaled}.\n{files}\n",
        Bytes(sizes.ssd),
        Bytes(sizes.hdd),
        Bytes(sizes.tier),
        Bytes(sizes.capacity),
        Bytes(sizes.cache),
        Bytes(load.bytes),
        load.duration.as_secs_f64(),
        load.warm_up.as_secs_f64(),
        if load.durable { " -h" } else { "" },
    )
}

fn narrated(progress: &Progress<'_>) -> String {
    match progress {
        Progress::Fills(bytes) => format!("  a file of {} is written\n", Bytes(*bytes)),
        Progress::Begins(Case::Empty) => {
            "1. The space is empty: new data goes to the SSDs. The load begins.\n".to_owned()
        }
        Progress::Begins(Case::Used) => {
            "2. The Performance tier is full: the last file lies on HDDs. The same load on it.\n"
                .to_owned()
        }
        Progress::Begins(Case::Optimized) => "3. The same load on the same file.\n".to_owned(),
        Progress::Ended(_, outcome) => told(outcome),
        Progress::GoesOn(times) => {
            format!(
                "  the load goes on until the night, {times} times as long; then all comes to rest\n"
            )
        }
        Progress::Optimizes(up, down) => format!(
            "  Storage Tiers Optimization: {} is to move to the SSDs, {} to the HDDs\n",
            Bytes(up << 20),
            Bytes(down << 20)
        ),
        Progress::Optimized(done) => {
            let moves = done.report.facts.moves;
            format!(
                "  {} moved up and {} down in {:.1} s, {}; share of I/O on the Performance tier: {} before, {} expected\n",
                Bytes(moves.up << 20),
                Bytes(moves.down << 20),
                moves.seconds,
                moves.stop.name(),
                percent(done.share_before),
                percent(done.report.facts.expected_share)
            )
        }
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or_else(|| "-".to_owned(), |share| format!("{:.1} %", 100.0 * share))
}

/// The figures of a case, and its course.
fn told(outcome: &LoadOutcome) -> String {
    let used = &outcome.used;
    let share = |part: u64| 100.0 * used.share(part);
    let most = outcome.series.iter().copied().fold(1.0, f64::max);
    let column = |iops: &f64| {
        let height = plumb_units::convert::floor_u64((iops / most * 8.0).round());
        COLUMNS[plumb_units::convert::to_usize(height.min(8))]
    };
    format!(
        "  {} I/Os per second, mean {:.2} ms, 99 % within {:.2} ms\n  \
         bytes served by SSD tier {:.1} %, HDD tier {:.1} %, write-back cache {:.1} %\n  \
         over time, highest {}: {}\n",
        grouped(outcome.iops()),
        outcome.mean_ns / 1e6,
        outcome.p99_ns as f64 / 1e6,
        share(used.performance),
        share(used.capacity),
        share(used.cache),
        grouped(most),
        outcome.series.iter().map(column).collect::<String>()
    )
}

/// A whole number with groups of three.
fn grouped(value: f64) -> String {
    let digits = format!("{value:.0}");
    let mut text = String::new();
    for (nth, digit) in digits.chars().enumerate() {
        if nth > 0 && (digits.len() - nth).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// All three beside each other, and what they say.
fn conclusion(found: &ScenarioOutcome, page: Option<&Path>) -> String {
    let rates = found.cases.each_ref().map(LoadOutcome::iops);
    let most = rates.iter().copied().fold(1.0, f64::max);
    let mut text = String::from("\nI/Os per second\n");
    for (case, iops) in [Case::Empty, Case::Used, Case::Optimized].into_iter().zip(rates) {
        let bar = plumb_units::convert::floor_u64((iops / most * BAR).ceil());
        let bar = "#".repeat(plumb_units::convert::to_usize(bar));
        text.push_str(&format!("  {:<9} {:>8} {bar}\n", case.name(), grouped(iops)));
    }
    let placement = &found.placement;
    text.push_str(&format!(
        "\nThe full tier cost a factor of {:.0}; the optimization brought back {:.1} % of the first rate.\n\
         The file is {} now. {} blocks of it were read back: each holds what was written last.\n\
         {:.0} s of virtual time.\n",
        rates[0] / rates[1],
        100.0 * rates[2] / rates[0],
        placement.placement.name().to_lowercase(),
        grouped(found.verified as f64),
        found.virtual_s
    ));
    if let Some(path) = page {
        text.push_str(&format!("{}\n", path.display()));
    }
    text
}

fn as_json(scenario: &Scenario, found: &ScenarioOutcome) -> Value {
    let sizes = scenario.sizes();
    let load = scenario.load(scenario.files()[0]);
    let cases: serde_json::Map<String, Value> = [Case::Empty, Case::Used, Case::Optimized]
        .into_iter()
        .zip(&found.cases)
        .map(|(case, outcome)| (case.name().to_owned(), case_as_json(outcome)))
        .collect();
    json!({
        "scale": scenario.scale,
        "emulated": true,
        "virtual_s": found.virtual_s,
        "ssd_bytes": sizes.ssd,
        "hdd_bytes": sizes.hdd,
        "performance_tier_bytes": sizes.tier,
        "capacity_tier_bytes": sizes.capacity,
        "write_cache_bytes": sizes.cache,
        "file_bytes": load.bytes,
        "duration_s": load.duration.as_secs_f64(),
        "warm_up_s": load.warm_up.as_secs_f64(),
        "interval_s": load.interval.as_secs_f64(),
        "outstanding": load.outstanding,
        "write_through": load.durable,
        "cases": cases,
        "optimization": optimization(&found.optimization),
        "write_cache_taken_bytes": found.cache_taken,
        "placement_status": found.placement.placement.code(),
        "placement": found.placement.placement.name(),
        "blocks_verified": found.verified,
    })
}

fn case_as_json(outcome: &LoadOutcome) -> Value {
    let used = &outcome.used;
    json!({
        "iops_per_s": outcome.iops(),
        "ios": outcome.ios,
        "seconds": outcome.seconds,
        "latency_mean_ns": outcome.mean_ns,
        "latency_p99_ns": outcome.p99_ns,
        "performance_tier_share": used.share(used.performance),
        "capacity_tier_share": used.share(used.capacity),
        "write_cache_share": used.share(used.cache),
        "performance_tier_bytes": used.performance,
        "capacity_tier_bytes": used.capacity,
        "write_cache_bytes": used.cache,
        "iops_by_interval": outcome.series,
    })
}

/// Without what the clock on the wall says: the rest is the same each time.
fn optimization(done: &Optimization) -> Value {
    let moves = done.report.facts.moves;
    json!({
        "up_requested": moves.up_requested,
        "up": moves.up,
        "down_requested": moves.down_requested,
        "down": moves.down,
        "bytes": moves.bytes,
        "seconds": moves.seconds,
        "stop": moves.stop.name(),
        "share_before": done.share_before,
        "share_expected": done.report.facts.expected_share,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_grouped() {
        for (value, text) in
            [(0.4, "0"), (999.0, "999"), (1_628.2, "1,628"), (1_234_567.0, "1,234,567")]
        {
            assert_eq!(super::grouped(value), text);
        }
    }
}
