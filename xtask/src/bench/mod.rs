//! CPU time per I/O of Plumb, fio and t/io_uring, side by side: interleaved, whole processes, as ratios.
//!
//! Rates on a shared machine are noise, and a tool's own account of its CPU time leaves out the kernel's
//! workers: both are why this measures as it does.

mod cpu;
mod decide;
mod options;
pub(crate) mod p50;
pub(crate) mod reap_lag;
mod report;
mod spread;
mod target;
mod tool;

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use crate::{instructions, machine};
use options::Options;
use report::Row;
use target::Target;
use tool::{Programs, Sample, Setting, Tool};

pub(crate) use report::quote;

/// The head of the table of decided goals.
const DECIDED: &str = "\
| target | depth | against | goal | median of the pairs' quotients | | |
|---|---:|---|---:|---|---|---|";

/// Measures and prints.
///
/// # Errors
/// What was not understood, or what there is no measuring without.
pub(crate) fn run(repository: &Path, words: &[&str]) -> Result<(), String> {
    if matches!(words, ["--help"] | ["-h"]) {
        print!("{}", options::USAGE);
        return Ok(());
    }
    let options = Options::parse(words)?;
    let own = repository.join("target/xtask/bench");
    let folder = options.folder.clone().unwrap_or_else(|| own.clone());
    fs::create_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let programs = programs(repository, &own, &options)?;
    let facts = facts(repository, &folder, &programs, &options);
    for (name, value) in &facts {
        println!("- {name}: {value}");
    }
    println!("- commands at the last depth, F for the file:\n");
    show_commands(&programs, &options);
    println!("\nMethod: CPU time of the whole process tree (workers of the kernel included) over");
    println!(
        "I/Os, start-up taken off (mean of five idle runs); t/io_uring between two of its lines."
    );
    match options.decide {
        None => println!("Rule: {}.\n", spread::RULE),
        Some(limit) => println!("Rule: {}; {limit} s at most for each.\n\n{DECIDED}", decide::RULE),
    }
    let mut rows = Vec::new();
    for kind in &options.targets {
        match (Target::set_up(*kind, &folder), options.decide) {
            (Ok(target), None) => measure(&target, &programs, &options, &mut rows),
            (Ok(target), Some(limit)) => {
                let limit = Duration::from_secs(limit);
                decide::measure(&target, &programs, &options, limit, &mut rows);
            }
            (Err(why), _) => println!("skipped {}: {why}", kind.name()),
        }
    }
    if options.decide.is_none() {
        println!("### Goals\n\n{}", report::goals(&rows));
    }
    println!("load average at the end: {}", load());
    if let Some(file) = &options.json {
        fs::write(file, report::json(&facts, &rows))
            .map_err(|error| format!("{}: {error}", file.display()))?;
    }
    if rows.iter().all(|row| row.runs() == 0) {
        return Err("nothing was measured".to_owned());
    }
    Ok(())
}

/// Every tool at every depth of one target.
fn measure(target: &Target, programs: &Programs, options: &Options, rows: &mut Vec<Row>) {
    for depth in &options.depths {
        let mut tools = programs.tools(target.kind);
        let setting = Setting::new(target, *depth, options.seconds);
        let mut found: Vec<Row> = tools.iter().map(|tool| empty_row(tool, setting)).collect();
        for repeat in 0..options.repeats {
            for place in 0..tools.len() {
                // Rotated: nobody always runs after the same one.
                let place = (place + repeat) % tools.len();
                match sample(&mut tools[place], setting) {
                    Ok(sample) => found[place].samples.push(Some(sample)),
                    Err(why) => {
                        println!("skipped {}, repeat {repeat}: {why}", tools[place].name);
                        found[place].samples.push(None);
                    }
                }
            }
        }
        print!("{}", report::tables(&found));
        rows.extend(found);
    }
}

/// A run, tried again when the machine gave it nothing to show.
fn sample(tool: &mut Tool, setting: Setting<'_>) -> Result<Sample, String> {
    const TRIES: usize = 3;
    let mut outcome = tool.sample(setting);
    for _ in 1..TRIES {
        if outcome.is_ok() {
            break;
        }
        outcome = tool.sample(setting);
    }
    outcome
}

fn empty_row(tool: &Tool, setting: Setting<'_>) -> Row {
    let command = tool.command(setting);
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    Row {
        kind: setting.kind,
        depth: setting.depth,
        tool: tool.name,
        command: words.join(" "),
        samples: Vec::new(),
    }
}

/// Finds or builds what is compared.
fn programs(repository: &Path, own: &Path, options: &Options) -> Result<Programs, String> {
    let plumb = match &options.plumb {
        Some(plumb) => tool::locate(Some(plumb), "plumb")?,
        None => build(repository, &crate::target(repository))?,
    };
    let previous = match &options.previous {
        Some(revision) => Some(build_previous(repository, own, revision)?),
        None => None,
    };
    let fio = match tool::locate(options.fio.as_deref(), "fio") {
        Ok(fio) => Some(fio),
        Err(why) if options.fio.is_none() => {
            println!("skipped fio: {why}");
            None
        }
        Err(why) => return Err(why),
    };
    let tio = match &options.tio {
        Some(path) => Some(tool::locate(Some(path), "t/io_uring")?),
        None => {
            println!("skipped t/io_uring: --tio names none");
            None
        }
    };
    let absolute = |path: PathBuf| fs::canonicalize(&path).unwrap_or(path);
    let tio = tio.map(absolute);
    let tio_looks_up = tio.as_deref().is_some_and(tool::looks_up);
    if tio.is_some() {
        let (skipped, like) =
            if tio_looks_up { ("nop", "a file") } else { ("nop-file", "nothing") };
        println!("skipped t/io_uring on {skipped}: its empty operations look up {like}");
    }
    Ok(Programs { plumb: absolute(plumb), previous, fio, tio, tio_looks_up })
}

/// Builds the tool of the sources in `sources`.
fn build(sources: &Path, target: &Path) -> Result<PathBuf, String> {
    let mut cargo = Command::new("cargo");
    cargo.current_dir(sources).env("CARGO_TARGET_DIR", target);
    cargo.args(["build", "--locked", "--release", "--package", "plumb"]);
    match crate::command::run(&mut cargo) {
        Ok(outcome) if outcome.ok => Ok(target.join("release/plumb")),
        Ok(_) => Err(format!("the sources in {} do not build", sources.display())),
        Err(error) => Err(format!("cargo: {error}")),
    }
}

/// Builds another commit, apart from this tree; once built it stays.
fn build_previous(repository: &Path, own: &Path, revision: &str) -> Result<PathBuf, String> {
    let commit = git(repository, &["rev-parse", "--short", &format!("{revision}^{{commit}}")])?;
    let kept = own.join(format!("plumb-{commit}"));
    if kept.is_file() {
        return Ok(kept);
    }
    let sources = own.join("previous");
    let place = sources.to_string_lossy().into_owned();
    if sources.exists() {
        git(repository, &["worktree", "remove", "--force", &place])?;
    }
    git(repository, &["worktree", "add", "--force", "--detach", &place, &commit])?;
    let built = build(&sources, &own.join("previous-target"));
    git(repository, &["worktree", "remove", "--force", &place])?;
    fs::copy(built?, &kept).map_err(|error| format!("{}: {error}", kept.display()))?;
    Ok(kept)
}

/// What git says, or why it says nothing.
pub(crate) fn git(repository: &Path, words: &[&str]) -> Result<String, String> {
    let output = Command::new("git")
        .current_dir(repository)
        .args(words)
        .output()
        .map_err(|error| format!("git: {error}"))?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    } else {
        let errors = String::from_utf8_lossy(&output.stderr);
        Err(format!("git {}: {}", words.join(" "), errors.trim()))
    }
}

/// What a reader has to know about the figures.
fn facts(
    repository: &Path,
    folder: &Path,
    programs: &Programs,
    options: &Options,
) -> Vec<(&'static str, String)> {
    let mut facts = vec![
        ("date", date()),
        ("commit", commit(repository)),
        ("compiler", instructions::compiler()),
        ("processor", processor()),
        ("kernel", first_line("/proc/sys/kernel/osrelease")),
        ("load average at the start", load()),
        ("file system", machine::file_system(folder).unwrap_or_else(|| "unknown".to_owned())),
        ("repeats", options.repeats.to_string()),
        ("seconds of a run", options.seconds.to_string()),
    ];
    if let Some(fio) = &programs.fio {
        let version = Command::new(fio).arg("--version").output();
        let version =
            version.map(|output| String::from_utf8_lossy(&output.stdout).trim().to_owned());
        facts.push(("fio", version.unwrap_or_else(|error| error.to_string())));
    }
    if let Some(previous) = &options.previous {
        facts.push(("previous", previous.clone()));
    }
    facts
}

/// One line for each row of each target, `F` for the file, at the last of the depths.
fn show_commands(programs: &Programs, options: &Options) {
    let depth = *options.depths.last().expect("the list of depths is not empty");
    for kind in &options.targets {
        for tool in programs.tools(*kind) {
            let setting =
                Setting { kind: *kind, path: Path::new("F"), depth, seconds: options.seconds };
            println!("    {:<6} {}", kind.name(), empty_row(&tool, setting).command);
        }
    }
}

/// The time of day in UTC.
pub(crate) fn date() -> String {
    let output = Command::new("date").args(["-u", "+%Y-%m-%dT%H:%M:%SZ"]).output();
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => format!("date could not be run: {error}"),
    }
}

/// The commit that is checked out, and whether something was changed since.
pub(crate) fn commit(repository: &Path) -> String {
    git(repository, &["describe", "--always", "--dirty", "--abbrev=12"])
        .unwrap_or_else(|error| error)
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |line: &str| {
        line.strip_prefix("model name")?.split_once(": ").map(|(_, name)| name.to_owned())
    };
    let name = text.lines().find_map(field).unwrap_or_else(|| "unknown".to_owned());
    let count = std::thread::available_parallelism().map_or(0, std::num::NonZero::get);
    format!("{count} × {name}")
}

fn load() -> String {
    let text = first_line("/proc/loadavg");
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

fn first_line(path: &str) -> String {
    let text = fs::read_to_string(path).unwrap_or_else(|error| error.to_string());
    text.lines().next().unwrap_or_default().to_owned()
}
