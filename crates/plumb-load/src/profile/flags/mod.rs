//! The DISKSPD command line (spec 3 and 15) and the long options of Plumb.
//!
//! Tokens are sorted into options and targets (`line`, which undoes typographic dashes and long names),
//! then read in two passes: the first takes what goes with a profile and decides the size of a block, the
//! second the rest. What is wrong is reported in that order, so a line fails as it does in DISKSPD.

mod cache;
mod dash;
mod error;
mod fuzz;
mod help;
mod line;
mod lists;
mod long;
mod open_loop;
mod options;
mod pass1;
mod pass2;
mod polling;
mod processors;
mod rows;
mod short;
pub mod table;
mod truth;
mod values;
mod verify;
mod violated;
mod warnings;

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;

pub use error::{CommandLineError, ErrorFormat};
#[doc(hidden)]
pub use fuzz::fuzz_command_line;
pub use help::{reference, usage};
pub use options::{EngineChoice, Keep, OnError, Output, OutputFormat, ProgressStyle, RunOptions};

use self::line::{Given, Line, Scan};
use self::pass1::First;
use self::pass2::Outcome;
use self::values::Fault;
use self::warnings::Warnings;
use super::check::Purpose;
use super::error::{ErrorClass, Violation};
use super::model::{Profile, RawProfile, ResultFormat};
use super::{template, xml};

/// What a command line asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Parsed {
    /// Run a workload, or print it.
    Run(Box<Invocation>),
    /// Print [`usage`] on standard output and exit: with 0, or with 3 if there was no argument at all.
    Usage {
        /// The exit code.
        exit_code: u8,
    },
    /// Print name and version and exit.
    Version,
    /// Print the system information in this format and exit.
    SystemInfo(ResultFormat),
    /// An event was signalled and the line read to its end: print `Now exiting...`, exit with 1.
    SignalledEvent {
        /// The last event that was signalled.
        name: String,
    },
}

/// A workload, and how it is to be run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The workload. With `profile_only` it is printed, not run.
    pub profile: Profile,
    /// What was accepted but is worth a line each on standard error.
    pub warnings: Vec<String>,
    /// The file that the workload was read from (`-X`).
    pub profile_path: Option<PathBuf>,
    /// Plumb's own options.
    pub options: RunOptions,
    /// The command line as given, without the program name.
    pub tokens: Vec<String>,
}

/// The world outside the command line.
pub trait Surroundings {
    /// Creates an event, unsignalled, unless it exists (`-ys -yf -yr -yp`).
    ///
    /// # Errors
    /// Ends the program with exit code 1.
    fn create_event(&mut self, name: &str) -> io::Result<()>;

    /// Signals an existing event and says so on standard output (`-ye`, spec 3.6).
    ///
    /// # Errors
    /// There is none of that name: ends the program with exit code 1.
    fn signal_event(&mut self, name: &str) -> io::Result<()>;

    /// The content of a profile (`-X`).
    ///
    /// # Errors
    /// It cannot be read.
    fn read_profile(&mut self, path: &str) -> io::Result<Vec<u8>>;

    /// Milliseconds since the system was started (bare `-z`).
    fn uptime_millis(&mut self) -> u64;
}

/// Reads a command line; `args` is without the program name.
///
/// # Errors
/// The first thing that is wrong, or everything that is wrong with the profile.
pub fn parse(
    args: &[OsString],
    surroundings: &mut dyn Surroundings,
) -> Result<Parsed, CommandLineError> {
    if args.is_empty() {
        return Ok(Parsed::Usage { exit_code: 3 });
    }
    let line = Line::read(args);
    let scan = line.scan();
    read(&line, &scan, surroundings).map_err(|error| error.on(&line.tokens, scan.run.error_format))
}

fn read(
    line: &Line,
    scan: &Scan<'_>,
    surroundings: &mut dyn Surroundings,
) -> Result<Parsed, CommandLineError> {
    line.readable()?;
    line.in_order(scan)?;
    if let Some(error) = &scan.misshapen {
        return Err(error.clone());
    }
    let mut warnings = Warnings::default();
    warnings.dashes(scan, line);
    let first = First::read(scan, surroundings, &mut warnings)?;
    if let Some(format) = first.system_info(scan, line)? {
        return Ok(Parsed::SystemInfo(format));
    }
    let targets: Vec<_> = scan.targets.iter().map(|&index| line.tokens[index].clone()).collect();
    let mut said = None;
    let profile = match &first.profile {
        Some(given) => {
            if let Some(at) = first.buffer_separation_at {
                warnings.add(at, "-bs has no effect beside -X");
            }
            let (profile, requests) = load(given, &first, &targets, surroundings)?;
            said = Some(requests);
            profile
        }
        None => match pass2::read(scan, &first, surroundings, &mut warnings)? {
            Outcome::Usage => return Ok(Parsed::Usage { exit_code: 0 }),
            Outcome::Version => return Ok(Parsed::Version),
            Outcome::Workload(workload) => {
                if let Some(name) = workload.signalled {
                    return Ok(Parsed::SignalledEvent { name });
                }
                if targets.is_empty() {
                    return Err(no_target(scan));
                }
                workload.warn(&first, &targets, &mut warnings);
                workload.into_profile(&first, &targets)
            }
        },
    };
    let mut profile = profile;
    open_loop::apply(scan, said.as_deref(), &mut profile, &mut warnings)?;
    truth::apply(scan, &mut profile, &mut warnings)?;
    polling::check(scan, &profile)?;
    verify::apply(scan, &profile, &mut warnings)?;
    let purpose = if profile.profile_only { Purpose::Print } else { Purpose::Run };
    let (profile, found) =
        profile.check(purpose).map_err(|broken| violated::error(scan, line, &broken))?;
    let mut warnings = warnings.into_sentences();
    warnings.extend(found);
    let (options, tokens) = (scan.run.clone(), line.tokens.clone());
    let profile_path = first.profile.as_ref().map(|given| PathBuf::from(given.value));
    Ok(Parsed::Run(Box::new(Invocation { profile, warnings, profile_path, options, tokens })))
}

/// `-X`: the profile of the file, with what the command line overrides and fills in (spec 3.8), and which of its targets
/// say how many requests they have.
fn load(
    given: &Given<'_>,
    first: &First<'_>,
    targets: &[String],
    surroundings: &mut dyn Surroundings,
) -> Result<(RawProfile, Vec<Vec<bool>>), CommandLineError> {
    let path = error::visible(given.value);
    if given.value.is_empty() {
        let help = "write the path of an XML profile, as in {}profile.xml";
        return Err(given.error(&Fault::value(" needs a file", help)));
    }
    let bytes = surroundings.read_profile(given.value).map_err(|error| {
        let what = format!(": the profile '{path}' cannot be read: {error}");
        given.error(&Fault::value(
            what,
            "name a readable file; the path starts at the current folder",
        ))
    })?;
    let broken = |violation: Violation| {
        let what = format!(": '{path}': {}", violation.message);
        given.error(&Fault::value(what, violation.help).of(violation.class))
    };
    let document = xml::decode(&bytes).map_err(broken)?;
    let mut profile = xml::read(&document).map_err(broken)?;
    first.override_profile(&mut profile);
    template::substitute(&mut profile, targets)
        .map_err(|broken| CommandLineError::from_violations(&[broken]))?;
    Ok((profile, xml::says_requests(&document)))
}

fn no_target(scan: &Scan<'_>) -> CommandLineError {
    let taken = scan.options.iter().rev().find(|given| given.value_is_a_token());
    let help = match taken {
        Some(given) => format!(
            "name a file or device after the options; '{}' was taken as the value of {}",
            error::visible(given.value),
            given.name
        ),
        None => "name a file or device after the options".to_owned(),
    };
    CommandLineError::new(ErrorClass::NoTarget, "at least one target is needed", help)
}

#[cfg(test)]
mod tests;
