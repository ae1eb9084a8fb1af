//! Running a program so that its output is both shown and kept.

use std::io::{self, BufRead, BufReader, Write};
use std::process::Command;
use std::time::{Duration, Instant};

/// What a program did.
pub(crate) struct Outcome {
    /// Whether it exited with 0.
    pub(crate) ok: bool,
    /// Standard output and standard error, line by line, in the order in which they came.
    pub(crate) lines: Vec<String>,
    /// How long it took.
    pub(crate) took: Duration,
}

/// Runs `command`, copying its output to ours as it comes.
///
/// # Errors
/// When it cannot be started or its output cannot be read.
pub(crate) fn run(command: &mut Command) -> io::Result<Outcome> {
    run_showing(command, |_| true)
}

/// The same, copying those lines only that `shows` says.
///
/// # Errors
/// As [`run`].
pub(crate) fn run_showing(
    command: &mut Command,
    mut shows: impl FnMut(&str) -> bool,
) -> io::Result<Outcome> {
    let start = Instant::now();
    let (reader, writer) = io::pipe()?;
    command.stdin(std::process::Stdio::null());
    command.stdout(writer.try_clone()?).stderr(writer);
    let mut child = command.spawn()?;
    // The command holds writing ends; while it does, the pipe never ends.
    command.stdout(std::process::Stdio::null()).stderr(std::process::Stdio::null());

    let mut lines = Vec::new();
    let mut reader = BufReader::new(reader);
    let mut line = Vec::new();
    while reader.read_until(b'\n', &mut line)? > 0 {
        let text = String::from_utf8_lossy(&line).trim_end_matches(['\n', '\r']).to_owned();
        if shows(&text) {
            io::stdout().write_all(&line)?;
        }
        lines.push(text);
        line.clear();
    }
    Ok(Outcome { ok: child.wait()?.success(), lines, took: start.elapsed() })
}

/// The path of a program on `PATH`, or in the folders of system programs that a plain user's `PATH`
/// often lacks.
pub(crate) fn find(program: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(Into::into))
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_streams_are_kept_in_order_and_the_exit_status_counts() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2; echo three; exit 3"]);
        let mut seen = Vec::new();
        let shows = |line: &str| {
            seen.push(line.to_owned());
            line == "two"
        };
        let outcome = run_showing(&mut command, shows).expect("sh runs");
        assert_eq!(outcome.lines, ["one", "two", "three"]);
        assert_eq!(seen, outcome.lines);
        assert!(!outcome.ok);
    }

    #[test]
    fn programs_are_found_by_name() {
        assert!(find("sh").is_some());
        assert_eq!(find("no-such-program-anywhere"), None);
    }
}
