//! Plumb's own options: how a run is made and reported, nothing of the workload.

use std::path::PathBuf;

use super::error::{ErrorFormat, visible};
use super::line::Given;
use super::table::Id;
use super::values::{Fault, within};
use crate::arrivals::{Arrival, OpenLoop};
use crate::profile::error::ErrorClass;

/// What Plumb's own options say.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RunOptions {
    /// `--json`: the result goes to standard output as JSON, whatever `-R` says.
    pub json: bool,
    /// `--output`: files that get the result as well, each path once.
    pub outputs: Vec<Output>,
    /// `--store`: whether the result is kept, and under which label.
    pub store: Keep,
    /// `--profile-json`: print the normalised profile and run nothing.
    pub profile_json: bool,
    /// `--error-format`.
    pub error_format: ErrorFormat,
    /// `--progress-style`.
    pub progress_style: ProgressStyle,
    /// `--engine`.
    pub engine: EngineChoice,
    /// `--destroy`: targets whose content may be overwritten.
    pub destroy: Vec<PathBuf>,
    /// `--batch`: submissions per system call, 1..=4096; `None` for the default of D-32.
    pub batch: Option<u32>,
    /// `--poll`: IOPOLL.
    pub poll: bool,
    /// `--sqpoll`: SQPOLL.
    pub submit_thread: bool,
    /// `--truth`: latencies are held against what the block device saw.
    pub truth: bool,
    /// `--rate`: I/Os per second of an open loop.
    pub rate: Option<u32>,
    /// `--arrival`: `None` when not given.
    pub arrival: Option<Arrival>,
    /// `--verify`.
    pub verify: bool,
    /// `--verify-state`.
    pub verify_state: Option<PathBuf>,
    /// `--on-error`.
    pub on_error: OnError,
    /// `--accept-older`: a pool is read from disks that it went on without.
    pub accept_older: bool,
}

/// A file that gets the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Output {
    /// In this format.
    pub format: OutputFormat,
    /// The file.
    pub path: PathBuf,
}

/// Whether a result is kept (`--store`).
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Keep {
    /// It is not.
    #[default]
    No,
    /// It is.
    Yes,
    /// It is, under a label.
    As(String),
}

/// The formats of `--output`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OutputFormat {
    /// Tables.
    Text,
    /// An XML document.
    Xml,
    /// A JSON document.
    Json,
}

/// How the progress of a run is shown on standard error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ProgressStyle {
    /// A live line on a terminal, else nothing.
    #[default]
    Auto,
    /// A line now and then.
    Plain,
    /// A JSON object a line.
    Json,
    /// Not at all.
    None,
}

/// Who performs the I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum EngineChoice {
    /// The best that this system has.
    #[default]
    Auto,
    /// io_uring.
    Uring,
    /// Kernel AIO.
    Aio,
    /// A pool of threads that make blocking calls.
    Threads,
    /// Blocking calls.
    Sync,
    /// Nobody: everything completes at once.
    Null,
    /// io_uring with operations that do nothing.
    Nop,
    /// The same with a file and a buffer that the kernel looks up for each.
    NopFile,
}

/// What a failed I/O does to the run (D-21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum OnError {
    /// Ends it.
    #[default]
    Stop,
    /// Is counted.
    Continue,
}

/// The largest `--batch`.
const BATCH_MAX: u32 = 4096;
/// The largest `--rate`.
const RATE_MAX: u32 = 1_000_000_000;

impl RunOptions {
    /// Takes one of Plumb's own options in. Words were looked at with the shape.
    pub(super) fn apply(&mut self, given: &Given<'_>) -> Result<(), Fault> {
        match given.id {
            Id::Json => self.json = true,
            Id::Output => self.output(given.value)?,
            Id::Store => self.store = label(given.value)?,
            Id::ProfileJson => self.profile_json = true,
            Id::Truth => self.truth = true,
            Id::Poll => self.poll = true,
            Id::AcceptOlder => self.accept_older = true,
            Id::SubmitThread => self.submit_thread = true,
            Id::ErrorFormat => {
                self.error_format = match given.value {
                    "json" => ErrorFormat::Json,
                    _ => ErrorFormat::Text,
                };
            }
            Id::ProgressStyle => {
                self.progress_style = match given.value {
                    "plain" => ProgressStyle::Plain,
                    "json" => ProgressStyle::Json,
                    "none" => ProgressStyle::None,
                    _ => ProgressStyle::Auto,
                };
            }
            Id::Engine => {
                self.engine = match given.value {
                    "uring" => EngineChoice::Uring,
                    "aio" => EngineChoice::Aio,
                    "threads" => EngineChoice::Threads,
                    "sync" => EngineChoice::Sync,
                    "null" => EngineChoice::Null,
                    "nop" => EngineChoice::Nop,
                    "nop-file" => EngineChoice::NopFile,
                    _ => EngineChoice::Auto,
                };
            }
            Id::Destroy => self.destroy.push(given.value.into()),
            Id::Batch => {
                if !given.value.bytes().all(|byte| byte.is_ascii_digit()) {
                    let what = ": the batch is not a number";
                    return Err(Fault::value(what, "write a number, as in {}8"));
                }
                self.batch = Some(within(given.value, 1..BATCH_MAX + 1)?);
            }
            Id::Rate => {
                if !given.value.bytes().all(|byte| byte.is_ascii_digit()) {
                    let what = ": the rate is not a whole number of I/Os per second";
                    return Err(Fault::value(what, "write a number, as in {}1000"));
                }
                self.rate = Some(within(given.value, 1..RATE_MAX + 1)?);
            }
            Id::Arrival => self.arrival = Some(arrival(given.value)?),
            Id::Verify => self.verify = true,
            Id::VerifyState => {
                if given.value.is_empty() {
                    return Err(Fault::value(
                        ": the file is missing",
                        "name a file, as in {}run.state",
                    ));
                }
                self.verify_state = Some(given.value.into());
            }
            Id::OnError => {
                self.on_error = match given.value {
                    "continue" => OnError::Continue,
                    _ => OnError::Stop,
                };
            }
            other => unreachable!("{other:?} is none of Plumb's own options"),
        }
        Ok(())
    }

    /// The open loop that `--rate` and `--arrival` ask for.
    #[must_use]
    pub fn open_loop(&self) -> Option<OpenLoop> {
        self.rate.map(|rate| OpenLoop { rate, arrival: self.arrival.unwrap_or_default() })
    }

    /// `--output <format>=<file>`.
    fn output(&mut self, value: &str) -> Result<(), Fault> {
        let help = "write text, xml or json, an equals sign and a file, as in {}json=result.json";
        let (format, path) = value.split_once('=').unwrap_or((value, ""));
        let format = match format {
            "text" => OutputFormat::Text,
            "xml" => OutputFormat::Xml,
            "json" => OutputFormat::Json,
            other => {
                let what = format!(": unknown format '{}'", visible(other));
                return Err(Fault::value(what, help).bytes(0..other.len()));
            }
        };
        if path.is_empty() {
            let fault = Fault::value(": the file is missing", help);
            return Err(fault.bytes(value.len()..value.len()));
        }
        if path == "-" {
            let what = ": '-' names no file";
            let help = "standard output gets the result without --output, as JSON with --json and as XML \
                        with -Rxml; a file of that name is given as ./-";
            return Err(Fault::value(what, help).bytes(value.len() - 1..value.len()));
        }
        self.written_once(path, value.len() - path.len())?;
        self.outputs.push(Output { format, path: path.into() });
        Ok(())
    }

    /// Fails if another option writes to the file already; its name starts `offset` bytes in.
    fn written_once(&self, path: &str, offset: usize) -> Result<(), Fault> {
        let same = |output: &Output| output.path.as_os_str() == path;
        if self.outputs.iter().any(same) {
            let what = format!(": '{}' would be written twice", visible(path));
            let fault = Fault::value(what, "name a file of its own for every format");
            return Err(fault.of(ErrorClass::Duplicate).bytes(offset..offset + path.len()));
        }
        Ok(())
    }
}

/// A label: what can stand on a command line and in a table.
fn label(value: &str) -> Result<Keep, Fault> {
    let is_fit = |c: char| c.is_alphanumeric() || "-_.+@:".contains(c);
    match value {
        "" => Ok(Keep::Yes),
        _ if value == "latest" || !value.chars().all(is_fit) || value.chars().count() > 64 => {
            let what = format!(": '{}' is no label", visible(value));
            let help =
                "write up to 64 letters, digits and -_.+@:, but not latest, as in {}=nightly";
            Err(Fault::value(what, help))
        }
        _ => Ok(Keep::As(value.to_owned())),
    }
}

/// `uniform`, `poisson` or `burst:<n>/<ms>`.
fn arrival(value: &str) -> Result<Arrival, Fault> {
    let number = |text: &str, least: u32| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse().ok().filter(|number: &u32| is_number && *number >= least)
    };
    let burst = || {
        let (ios, millis) = value.strip_prefix("burst:")?.split_once('/')?;
        Some(Arrival::Burst { ios: number(ios, 1)?, millis: number(millis, 0)? })
    };
    match value {
        "uniform" => Ok(Arrival::Uniform),
        "poisson" => Ok(Arrival::Poisson),
        _ => burst().ok_or_else(|| {
            let what = format!(": '{}' is no way to arrive", visible(value));
            Fault::value(
                what,
                "write uniform, poisson, or burst: with the I/Os of a burst and the milliseconds over \
                 which it is spread, as in {}burst:100/5",
            )
        }),
    }
}
