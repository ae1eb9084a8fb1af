//! The whole gate: every step runs, whatever became of those before it; then one closing summary.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::time::{Duration, Instant};

use crate::machine::Machine;
use crate::skips::{self, Lists};
use crate::test_output::{Display, Summary};
use crate::{command, instructions, smoke, tidy};

/// Runs the gate.
pub(crate) fn run(repository: &Path) -> ExitCode {
    let machine = Machine::detect(repository);
    println!("{machine}");
    let mut gate = Gate { repository: repository.to_path_buf(), steps: Vec::new() };

    gate.cargo("rustfmt", &["fmt", "--all", "--", "--check"]);
    gate.clippy();
    gate.step("tidy", || match tidy::complaints(repository) {
        Ok(0) => Ok(()),
        Ok(count) => Err(format!("{count} complaints")),
        Err(error) => Err(format!("the repository cannot be read: {error}")),
    });
    let mut summary = gate.tests();
    gate.instructions(&mut summary);
    gate.skips(&summary, &machine);
    gate.docs();
    gate.cargo("release build", &["build", "--locked", "--release", "--package", "plumb"]);
    gate.step("smoke run", || smoke::run(repository));

    gate.close(&summary, &machine)
}

/// What became of a step.
struct Step {
    name: &'static str,
    took: Duration,
    trouble: Option<String>,
}

struct Gate {
    repository: PathBuf,
    steps: Vec<Step>,
}

impl Gate {
    /// A step done by a function of ours.
    fn step(&mut self, name: &'static str, work: impl FnOnce() -> Result<(), String>) {
        println!("\n== {name}");
        let start = Instant::now();
        let trouble = work().err();
        if let Some(trouble) = &trouble {
            println!("{name}: {trouble}");
        }
        self.steps.push(Step { name, took: start.elapsed(), trouble });
    }

    /// A step that is a call of cargo; its output.
    fn cargo(&mut self, name: &'static str, words: &[&str]) -> Vec<String> {
        let mut command = Command::new("cargo");
        command.args(words);
        self.command(name, &mut command, |_| true)
    }

    fn command(
        &mut self,
        name: &'static str,
        command: &mut Command,
        shows: impl FnMut(&str) -> bool,
    ) -> Vec<String> {
        println!("\n== {name}");
        command.current_dir(&self.repository).env("CARGO_TERM_COLOR", "never");
        // Tests make code panic on purpose; nobody wants a hundred lines for each.
        command.env("RUST_BACKTRACE", "0");
        let (lines, took, trouble) = match command::run_showing(command, shows) {
            Ok(outcome) => {
                let trouble = (!outcome.ok).then(|| "failed, see above".to_owned());
                (outcome.lines, outcome.took, trouble)
            }
            Err(error) => {
                (Vec::new(), Duration::ZERO, Some(format!("cargo could not be run: {error}")))
            }
        };
        self.steps.push(Step { name, took, trouble });
        lines
    }

    /// Every lint of every target. Warnings are counted rather than denied: a crate that was refused
    /// would hide those of the crates above it.
    fn clippy(&mut self) {
        let lines = self.cargo("clippy", &["clippy", "--locked", "--workspace", "--all-targets"]);
        let warnings = lines.iter().filter(|line| is_warning(line)).count();
        let step = self.steps.last_mut().expect("the step that just ran");
        if warnings > 0 && step.trouble.is_none() {
            step.trouble = Some(format!("{warnings} warnings"));
        }
    }

    /// Every test of the workspace, with what passing tests printed: skips and conformance sets are
    /// read from there. What else they printed is left out of the log, for it hides what failed.
    fn tests(&mut self) -> Summary {
        let mut command = Command::new("cargo");
        command.args(["test", "--locked", "--workspace", "--no-fail-fast", "--", "--show-output"]);
        let mut display = Display::default();
        let lines = self.command("tests", &mut command, |line| display.shows(line));
        let summary = Summary::read(&lines);
        let step = self.steps.last_mut().expect("the step that just ran");
        if step.trouble.is_none() {
            step.trouble = match &summary {
                Summary { passed: 0, .. } => Some("no test ran".to_owned()),
                Summary { ignored: 1.., .. } => Some("tests are marked as ignored".to_owned()),
                _ => None,
            };
        }
        summary
    }

    /// What an I/O costs in code of ours alone, or a skip more.
    fn instructions(&mut self, summary: &mut Summary) {
        let repository = self.repository.clone();
        self.step("instructions", || {
            summary.skips.extend(instructions::check(&repository)?);
            Ok(())
        });
    }

    /// Whether each skipped test may be skipped on such a machine.
    fn skips(&mut self, summary: &Summary, machine: &Machine) {
        let repository = self.repository.clone();
        self.step("skips", || {
            let lists = Lists::read(&repository).map_err(|error| error.to_string())?;
            match skips::compare(&summary.skips, &lists, machine) {
                (_, 0) => Ok(()),
                (report, unexpected) => {
                    print!("{report}");
                    Err(format!("{unexpected} not listed in {} for this machine", skips::FOLDER))
                }
            }
        });
    }

    fn docs(&mut self) {
        let mut command = Command::new("cargo");
        command.args(["doc", "--locked", "--workspace", "--no-deps", "--keep-going"]);
        command.env("RUSTDOCFLAGS", "-D warnings");
        self.command("docs", &mut command, |_| true);
    }

    /// Prints everything that matters once more, the counts last.
    fn close(self, summary: &Summary, machine: &Machine) -> ExitCode {
        println!("\n== summary\n{machine}");
        for line in &summary.conformance {
            println!("{line}");
        }
        match Lists::read(&self.repository) {
            Ok(lists) => print!("{}", skips::compare(&summary.skips, &lists, machine).0),
            // The step `skips` has failed for the same reason and is shown below.
            Err(error) => println!("{}: {error}", skips::FOLDER),
        }
        for failure in &summary.failures {
            println!("failed test: {failure}");
        }
        for Step { name, took, trouble } in &self.steps {
            let verdict =
                trouble.as_deref().map_or("ok".to_owned(), |what| format!("FAILED: {what}"));
            println!("{name:<14} {:>6.1} s  {verdict}", took.as_secs_f64());
        }
        let failed = self.steps.iter().filter(|step| step.trouble.is_some()).count();
        match failed {
            0 => println!("the gate is open: {} tests said `skipped`", summary.skips.len()),
            _ => println!("the gate is SHUT: {failed} steps failed"),
        }
        println!("{} passed, {} failed", summary.passed, summary.failed);
        if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// A warning of the compiler or of a lint; cargo's own count of them at the end of a crate is none.
fn is_warning(line: &str) -> bool {
    line.strip_prefix("warning")
        .is_some_and(|rest| rest.starts_with([':', '[']) && !rest.contains(" generated "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn warnings_are_told_from_counts_of_them() {
        for (line, is) in [
            ("warning: unused variable: `x`", true),
            ("warning[E0001]: something", true),
            ("warning: `plumb` (bin \"plumb\") generated 2 warnings", false),
            ("   = note: `#[warn(dead_code)]` on by default", false),
            ("warnings are errors", false),
        ] {
            assert_eq!(is_warning(line), is, "{line}");
        }
    }
}
