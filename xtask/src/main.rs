//! The project's own chores: `cargo xtask check` is the whole gate.
#![forbid(unsafe_code)]

mod bench;
mod check;
mod command;
mod history;
mod install;
mod instructions;
mod machine;
mod skips;
mod smoke;
mod test_output;
mod tidy;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const USAGE: &str = "\
usage: cargo xtask <chore>

  check            the whole gate: rustfmt, clippy, tidy, tests, docs, release build, smoke run
  check --install  the same, after installing the system packages that the tests need
  install          only install those packages
  tidy             only the rules about the repository itself
  instructions     instructions per I/O of the run loop, counted by callgrind, against the committed ones
  instructions --bless   commits what is counted now
  bench            CPU time per I/O beside fio and t/io_uring; `cargo xtask bench --help` lists its options
  p50              the median latency that Plumb and fio report, beside the device's own; as root
  reap-lag         how late completions are seen, beside a loop that waits for batches with DEFER_TASKRUN; as root
  bench-history    appends a line about this tree to bench-history; with --build-time also times a build
  machine          what this machine has and lacks, as the skip lists see it
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["check"] => check::run(&repository()),
        ["check", "--install"] => {
            install::run();
            check::run(&repository())
        }
        ["install"] => {
            install::run();
            ExitCode::SUCCESS
        }
        ["tidy"] => tidy::run(&repository()),
        ["instructions"] => finish(instructions::run(&repository(), false)),
        ["instructions", "--bless"] => finish(instructions::run(&repository(), true)),
        ["bench", words @ ..] => finish(bench::run(&repository(), words)),
        ["p50", words @ ..] => finish(bench::p50::run(&repository(), words)),
        ["reap-lag", words @ ..] => finish(bench::reap_lag::run(&repository(), words)),
        ["bench-history"] => finish(history::append(&repository(), false)),
        ["bench-history", "--build-time"] => finish(history::append(&repository(), true)),
        ["machine"] => {
            println!("{}", machine::Machine::detect(&repository()));
            ExitCode::SUCCESS
        }
        _ => {
            eprint!("{USAGE}");
            ExitCode::from(2)
        }
    }
}

/// Where cargo builds.
fn target(repository: &Path) -> PathBuf {
    repository.join(std::env::var_os("CARGO_TARGET_DIR").unwrap_or_else(|| "target".into()))
}

fn finish(outcome: Result<(), String>) -> ExitCode {
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(trouble) => {
            eprintln!("{trouble}");
            ExitCode::FAILURE
        }
    }
}

/// The root of the repository: the folder above this crate's.
fn repository() -> PathBuf {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    here.parent().expect("xtask lies in the repository").to_path_buf()
}
