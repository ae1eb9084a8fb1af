//! The README's main command, on a small file: whoever follows the README gets a result.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{command, machine};

/// How the README's main command begins.
const MAIN: &str = "cargo run --release -p plumb -- run ";

/// Runs it, shortened; the reason when it does not give a result.
///
/// # Errors
/// Why it is no result.
pub(crate) fn run(repository: &Path) -> Result<(), String> {
    let readme = fs::read_to_string(repository.join("README.md")).map_err(|e| e.to_string())?;
    let line = main_command(&readme).ok_or(format!("README.md has no line `{MAIN}…`"))?;
    let file = repository.join("target/xtask/smoke.dat");
    let mut words = shortened(line, &file.to_string_lossy());
    if !machine::has_direct_io(repository) {
        println!("without -Sh: this file system does not take O_DIRECT");
        words.retain(|word| word != "-Sh");
    }
    println!("$ {}", words.join(" "));
    let outcome = command::run(Command::new("cargo").args(&words[1..]).current_dir(repository))
        .map_err(|error| format!("cargo could not be run: {error}"));
    // It may not have been created.
    let _ = fs::remove_file(&file);
    let outcome = outcome?;
    if !outcome.ok {
        return Err("it failed".to_owned());
    }
    judge(&outcome.lines)
}

/// The line of the README.
pub(crate) fn main_command(readme: &str) -> Option<&str> {
    readme.lines().map(str::trim).find(|line| line.starts_with(MAIN))
}

/// The same command on a small file of our own, for a short time.
fn shortened(line: &str, file: &str) -> Vec<String> {
    let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    for word in &mut words {
        for (option, value) in [("-c", "64M"), ("-W", "1"), ("-d", "2")] {
            let rest = word.strip_prefix(option);
            if rest.is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())) {
                *word = format!("{option}{value}");
            }
        }
    }
    if let Some(last) = words.last_mut() {
        file.clone_into(last);
    }
    words
}

/// A report with I/Os in it, or what is missing.
fn judge(lines: &[String]) -> Result<(), String> {
    for title in ["Results for timespan 1:", "Total IO", "Total latency distribution:"] {
        if !lines.iter().any(|line| line == title) {
            return Err(format!("its report has no line `{title}`"));
        }
    }
    let total = lines.iter().find_map(|line| line.trim_start().strip_prefix("total:"));
    let ios = total.and_then(|row| row.split('|').nth(1)).map(str::trim);
    match ios.map(str::parse::<u64>) {
        Some(Ok(1..)) => Ok(()),
        _ => Err(format!("its report counts no I/Os: {}", total.unwrap_or("no total row"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_readme_command_is_shortened_and_nothing_else() {
        let readme =
            "# X\n\n    cargo run --release -p plumb -- run -c1G -b8K -d10 -W5 -D -Z1M f.dat\n";
        let line = main_command(readme).expect("the line");
        assert_eq!(
            shortened(line, "small").join(" "),
            "cargo run --release -p plumb -- run -c64M -b8K -d2 -W1 -D -Z1M small"
        );
    }

    #[test]
    fn a_report_without_ios_is_no_result() {
        let report = |total: &str| -> Vec<String> {
            ["Results for timespan 1:", "Total IO", total, "Total latency distribution:"]
                .map(str::to_owned)
                .into()
        };
        assert_eq!(judge(&report("total:        8192 |     1 |   0.01")), Ok(()));
        assert!(judge(&report("total:           0 |     0 |   0.00")).is_err());
        assert!(judge(&report("nothing")).is_err());
        assert!(judge(&["total: 1 | 1".to_owned()]).is_err());
    }
}
