//! One JSON line per merge: what the code costs as time goes by.

use std::fmt::Write as _;
use std::fs::{self, OpenOptions};
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use crate::bench::{commit, date, quote};
use crate::command;
use crate::instructions::{self, Figure};

/// The history, oldest first.
const FILE: &str = "bench-history/merges.jsonl";

/// Measures the tree as it is and appends a line.
///
/// # Errors
/// What could not be measured or written.
pub(crate) fn append(repository: &Path, times_build: bool) -> Result<(), String> {
    let build_s = if times_build { Some(time_build(repository)?) } else { None };
    let figures = instructions::measure(repository)?;
    let mut cargo = Command::new("cargo");
    cargo.current_dir(repository).args(["build", "--locked", "--release", "--package", "plumb"]);
    match command::run(&mut cargo) {
        Ok(outcome) if outcome.ok => {}
        Ok(_) => return Err("plumb does not build".to_owned()),
        Err(error) => return Err(format!("cargo: {error}")),
    }
    let binary = crate::target(repository).join("release/plumb");
    let bytes = fs::metadata(&binary).map_err(|e| format!("{}: {e}", binary.display()))?.len();

    let line = line(&date(), &commit(repository), &figures, bytes, build_s);
    print!("{line}");
    let path = repository.join(FILE);
    let write = || {
        fs::create_dir_all(path.parent().expect("a folder is in the name"))?;
        OpenOptions::new().create(true).append(true).open(&path)?.write_all(line.as_bytes())
    };
    write().map_err(|error| format!("{FILE}: {error}"))
}

/// Whether the newest line has these figures, as those committed: what one changes is to be in the other.
///
/// # Errors
/// What differs, and what to do.
pub(crate) fn agrees(repository: &Path, committed: &[Figure]) -> Result<(), String> {
    let text = fs::read_to_string(repository.join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
    let newest = text.lines().next_back().unwrap_or_default();
    match committed.iter().find(|figure| !has(newest, figure)) {
        None => Ok(()),
        Some(Figure { name, instructions }) => Err(format!(
            "{FILE}: the newest line has no {name} of {instructions:.2}; `cargo xtask bench-history` adds one"
        )),
    }
}

/// Whether a line has the figure, but for a hundredth of it.
fn has(line: &str, Figure { name, instructions }: &Figure) -> bool {
    let after = line.split_once(&format!("{}: ", quote(name))).map(|(_, after)| after);
    let number = after.and_then(|after| after.split([',', '}']).next()?.parse::<f64>().ok());
    number.is_some_and(|number| (number / instructions - 1.0).abs() <= 0.01)
}

/// Seconds of a release build from nothing, in a folder of its own.
fn time_build(repository: &Path) -> Result<f64, String> {
    let folder = repository.join("target/xtask/build-time");
    if folder.exists() {
        fs::remove_dir_all(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    }
    let mut cargo = Command::new("cargo");
    cargo.current_dir(repository).env("CARGO_TARGET_DIR", &folder);
    cargo.args(["build", "--locked", "--release", "--package", "plumb"]);
    let start = Instant::now();
    match command::run(&mut cargo) {
        Ok(outcome) if outcome.ok => Ok(start.elapsed().as_secs_f64()),
        Ok(_) => Err("plumb does not build".to_owned()),
        Err(error) => Err(format!("cargo: {error}")),
    }
}

/// The line, newline included.
fn line(date: &str, commit: &str, figures: &[Figure], bytes: u64, build_s: Option<f64>) -> String {
    let mut text = format!("{{\"date\": {}, \"commit\": {}", quote(date), quote(commit));
    let figures: Vec<String> = figures
        .iter()
        .map(|Figure { name, instructions }| format!("{}: {instructions:.2}", quote(name)))
        .collect();
    write!(text, ", \"null_instructions_per_io\": {{{}}}", figures.join(", "))
        .expect("writing to a string works");
    write!(text, ", \"binary_bytes\": {bytes}").expect("writing to a string works");
    if let Some(seconds) = build_s {
        write!(text, ", \"build_s\": {seconds:.1}").expect("writing to a string works");
    }
    text.push_str("}\n");
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(build_s: Option<f64>, want_end: &str) {
        let figures = [Figure { name: "depth 32 counts".to_owned(), instructions: 165.941 }];
        assert_eq!(
            line("2026-01-02T03:04:05Z", "abc", &figures, 7, build_s),
            format!(
                "{{\"date\": \"2026-01-02T03:04:05Z\", \"commit\": \"abc\", \
                 \"null_instructions_per_io\": {{\"depth 32 counts\": 165.94}}, \
                 \"binary_bytes\": 7{want_end}}}\n"
            )
        );
    }

    #[test]
    fn a_line_has_a_figure_or_not() {
        let figure = |name: &str, instructions| Figure { name: name.to_owned(), instructions };
        let of = [figure("depth 32 counts", 165.94), figure("depth 32 latencies", 218.0)];
        let line = line("", "", &of, 7, None);
        for (name, instructions, want) in [
            ("depth 32 counts", 166.1, true),
            ("depth 32 counts", 169.0, false),
            ("depth 32 latencies", 218.0, true),
            ("depth 128 counts", 165.94, false),
        ] {
            assert_eq!(has(&line, &figure(name, instructions)), want, "{name} {instructions}");
        }
    }

    #[test]
    fn a_line_has_what_was_measured() {
        check(None, "");
        check(Some(61.25), ", \"build_s\": 61.2");
    }
}
