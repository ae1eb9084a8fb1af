//! The latency that a tool reports beside the one that the device had, of the same I/Os: both tools' by the same tracepoints, which
//! neither of them reads.

use std::collections::HashMap;
use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use super::options::Options;
use super::spread::{Ratio, Spread};
use super::target::{Kind, Target};
use super::tool::{Setting, Tool};

const DEPTH: u32 = 32;
/// Reported over the device's, at most.
const GOAL: f64 = 1.30;
/// The row that ours is to be below, and the row that is judged.
const PEER: &str = "fio tuned";
const OURS: &str = "plumb";

pub(super) const USAGE: &str = "\
usage: cargo xtask p50 [options], as root

  --repeats N       runs of each tool by turns, at least 7 (default: 7)
  --seconds N       length of a run (default: 2)
  --plumb FILE      a binary of ours to measure instead of this tree's release build
  --fio FILE        fio, unless it is on PATH
  --folder DIR      where the file is put: on ext4 (default: target/xtask/bench)
";

/// One run, microseconds.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Medians {
    reported: f64,
    device: f64,
    /// I/Os that the device's median is of.
    matched: usize,
}

/// Measures and prints.
///
/// # Errors
/// What was not understood, or what there is no measuring without.
pub(crate) fn run(repository: &Path, words: &[&str]) -> Result<(), String> {
    if matches!(words, ["--help"] | ["-h"]) {
        print!("{USAGE}");
        return Ok(());
    }
    let options = Options::parse(words)?;
    let own = repository.join("target/xtask/bench");
    let folder = options.folder.clone().unwrap_or_else(|| own.clone());
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let programs = super::programs(repository, &own, &options)?;
    let wanted = [OURS, "plumb, own batch", PEER, "fio"];
    let mut tools = programs.tools(Kind::Ext4);
    tools.retain(|tool| wanted.contains(&tool.name));
    if !tools.iter().any(|tool| tool.name == PEER) {
        return Err("fio is not installed: --fio FILE".to_owned());
    }
    let target = Target::set_up(Kind::Ext4, &folder)?;
    let setting = Setting::new(&target, DEPTH, options.seconds);
    let tracing = Tracing::begin(&target.path)?;
    println!("- date: {}", super::date());
    println!("- commit: {}", super::commit(repository));
    println!("- processor: {}", super::processor());
    println!("- load average at the start: {}\n", super::load());
    println!("| tool | reported p50 µs | device p50 µs | I/Os matched | quotient |");
    println!("|---|---:|---:|---:|---:|");
    let mut quotients = vec![Vec::new(); tools.len()];
    for round in 0..options.repeats {
        for turn in 0..tools.len() {
            let which = (round + turn) % tools.len();
            let Medians { reported, device, matched } = one(&tools[which], setting, &tracing)?;
            let quotient = reported / device;
            let name = tools[which].name;
            println!("| {name} | {reported:.1} | {device:.1} | {matched} | {quotient:.3} |");
            quotients[which].push(quotient);
        }
    }
    let of = |name: &str| {
        let nth = tools.iter().position(|tool| tool.name == name)?;
        Some(quotients[nth].as_slice())
    };
    println!();
    for (tool, quotients) in tools.iter().zip(&quotients) {
        let spread = Spread::of(quotients).ok_or("nothing was measured")?;
        println!("{}: {:.2} ({:.2} to {:.2})", tool.name, spread.median, spread.min, spread.max);
    }
    println!("{}", verdict(of(OURS).zip(of(PEER)).ok_or("runs are missing")?)?);
    println!("load average at the end: {}", super::load());
    Ok(())
}

/// What the goals say of ours and the peer's quotients, taken by turns.
fn verdict((ours, theirs): (&[f64], &[f64])) -> Result<String, String> {
    let own = Spread::of(ours).ok_or("nothing was measured")?;
    let ratio = Ratio::of(ours, theirs).ok_or("runs are missing")?;
    let met = match own {
        _ if own.max <= GOAL => "met",
        _ if own.median <= GOAL => "met by the median",
        _ => "MISSED",
    };
    let below = ratio.verdict(1.0);
    Ok(format!(
        "reported ÷ device p50, goal ≤ {GOAL}: {met}; against {PEER} {ratio}, goal below: {below}"
    ))
}

/// Runs a tool once.
fn one(tool: &Tool, setting: Setting<'_>, tracing: &Tracing) -> Result<Medians, String> {
    tracing.switch(true)?;
    let output = tool.command(setting).stdin(Stdio::null()).stderr(Stdio::inherit()).output();
    tracing.switch(false)?;
    let output = output.map_err(|error| format!("{}: {error}", tool.name))?;
    if !output.status.success() {
        return Err(format!("{}: {}", tool.name, output.status));
    }
    let key = if tool.is_fio() { "50.000000" } else { "p50" };
    let reported = super::tool::number(&String::from_utf8_lossy(&output.stdout), key);
    let reported = reported.ok_or(format!("{}: no `{key}` in its output", tool.name))? / 1000.0;
    let mut times = device_times(&tracing.text()?, &tracing.device);
    times.sort_by(f64::total_cmp);
    let device = *times.get(times.len() / 2).ok_or("no I/O of that disk was traced")?;
    Ok(Medians { reported, device, matched: times.len() })
}

/// Tracepoints of the block layer, in an instance of their own.
struct Tracing {
    folder: PathBuf,
    /// `major,minor` of the file's disk.
    device: String,
}

impl Tracing {
    fn begin(file: &Path) -> Result<Self, String> {
        let told = |what: &Path, error| format!("{}: {error}", what.display());
        let number = fs::metadata(file).map_err(|error| told(file, error))?.dev();
        // As glibc's gnu_dev_major and gnu_dev_minor have it, for the numbers that the kernel gives.
        let device =
            format!("{},{}", (number >> 8) & 0xfff, (number & 0xff) | (number >> 12) & 0xfff00);
        let name = format!("plumb-p50-{}", std::process::id());
        let folder = Path::new("/sys/kernel/tracing/instances").join(name);
        fs::create_dir(&folder).map_err(|error| told(&folder, error))?;
        let tracing = Self { folder, device };
        // Kilobytes for each processor: two events of 64 bytes for each of 300,000 I/Os.
        tracing.write("buffer_size_kb", "49152")?;
        tracing.write("trace_clock", "mono")?;
        tracing.write("tracing_on", "0")?;
        tracing.write("events/block/block_rq_issue/enable", "1")?;
        tracing.write("events/block/block_rq_complete/enable", "1")?;
        Ok(tracing)
    }

    fn write(&self, file: &str, text: &str) -> Result<(), String> {
        let path = self.folder.join(file);
        fs::write(&path, text).map_err(|error| format!("{}: {error}", path.display()))
    }

    fn switch(&self, on: bool) -> Result<(), String> {
        if on {
            self.write("trace", "")?;
        }
        self.write("tracing_on", if on { "1" } else { "0" })
    }

    fn text(&self) -> Result<String, String> {
        let path = self.folder.join("trace");
        fs::read_to_string(&path).map_err(|error| format!("{}: {error}", path.display()))
    }
}

impl Drop for Tracing {
    fn drop(&mut self) {
        if let Err(error) = fs::remove_dir(&self.folder) {
            eprintln!("{} is still there: {error}", self.folder.display());
        }
    }
}

/// Microseconds from issue to completion of the reads of a disk.
fn device_times(trace: &str, device: &str) -> Vec<f64> {
    let (mut issued, mut times) = (HashMap::new(), Vec::new());
    for line in trace.lines() {
        let Some((seconds, is_issue, rest)) = event(line) else { continue };
        let mut words = rest.split_ascii_whitespace();
        if words.next() != Some(device) || !words.next().is_some_and(|kind| kind.starts_with('R')) {
            continue;
        }
        // `SECTOR + COUNT`, behind bytes and command in brackets.
        let sector = rest.split_once(" + ").and_then(|(before, _)| before.rsplit(' ').next());
        let Some(sector) = sector else { continue };
        if is_issue {
            issued.insert(sector, seconds);
        } else if let Some(begun) = issued.remove(sector) {
            times.push((seconds - begun) * 1e6);
        }
    }
    times
}

/// When, whether it is an issue, and the fields.
fn event(line: &str) -> Option<(f64, bool, &str)> {
    let (before, rest, is_issue) = match line.split_once(": block_rq_issue: ") {
        Some((before, rest)) => (before, rest, true),
        None => {
            line.split_once(": block_rq_complete: ").map(|(before, rest)| (before, rest, false))?
        }
    };
    Some((before.rsplit(' ').next()?.parse().ok()?, is_issue, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn issues_and_completions_are_matched() {
        let trace = "# tracer: nop\n\
             fio-7 [000] ..... 10.000010: block_rq_issue: 254,0 RS 4096 () 800 + 8 none,0,0 [fio]\n\
             fio-7 [000] ..... 10.000020: block_rq_issue: 254,0 R 4096 () 808 + 8 none,0,0 [fio]\n\
             x-1 [001] ..... 10.000025: block_rq_issue: 254,0 WS 4096 () 900 + 8 none,0,0 [x]\n\
             x-1 [001] ..... 10.000026: block_rq_issue: 7,0 R 4096 () 808 + 8 none,0,0 [x]\n\
             <idle>-0 [001] d.h2. 10.000110: block_rq_complete: 254,0 R () 808 + 8 none,0,0 [0]\n\
             <idle>-0 [001] d.h2. 10.000210: block_rq_complete: 254,0 RS () 800 + 8 none,0,0 [0]\n\
             <idle>-0 [001] d.h2. 10.000310: block_rq_complete: 254,0 RS () 800 + 8 none,0,0 [0]\n";
        let shown = |us: &f64| format!("{us:.0}");
        let times: Vec<String> = device_times(trace, "254,0").iter().map(shown).collect();
        assert_eq!(times, ["90", "200"]);
        assert!(device_times(trace, "8,0").is_empty());
    }

    #[test]
    fn goals_are_judged_by_all_runs() {
        let of = |ours: [f64; 7], theirs: [f64; 7]| verdict((&ours, &theirs)).expect("runs");
        let steady = |value: f64| [0.0, 0.01, 0.0, -0.01, 0.0, 0.01, 0.0].map(|off| value + off);
        let text = of(steady(1.17), steady(1.4));
        assert!(text.contains("1.3: met;") && text.ends_with("below: met"), "{text}");
        let text = of(steady(1.299), steady(1.2));
        assert!(text.contains("met by the median") && text.ends_with("MISSED"), "{text}");
        assert!(of(steady(1.5), steady(1.5)).contains("1.3: MISSED"));
    }
}
