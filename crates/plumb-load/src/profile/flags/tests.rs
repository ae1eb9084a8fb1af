//! What the conformance cases do not pin.

mod documents;
mod errors;
mod long_names;
mod own_options;
mod passes;

use std::ffi::OsString;
use std::io;

use super::{CommandLineError, Invocation, Parsed, Surroundings, parse};

/// Surroundings that note what was asked of them; the only event there is `go`.
#[derive(Default)]
struct Scene {
    asked: Vec<String>,
    profile: Option<&'static str>,
    refuses_events: bool,
    uptime: u64,
}

impl Surroundings for Scene {
    fn create_event(&mut self, name: &str) -> io::Result<()> {
        self.asked.push(format!("create {name}"));
        if self.refuses_events { Err(io::ErrorKind::PermissionDenied.into()) } else { Ok(()) }
    }

    fn signal_event(&mut self, name: &str) -> io::Result<()> {
        self.asked.push(format!("signal {name}"));
        if name == "go" { Ok(()) } else { Err(io::ErrorKind::NotFound.into()) }
    }

    fn read_profile(&mut self, path: &str) -> io::Result<Vec<u8>> {
        self.asked.push(format!("read {path}"));
        self.profile.map(|text| text.as_bytes().to_vec()).ok_or(io::ErrorKind::NotFound.into())
    }

    fn uptime_millis(&mut self) -> u64 {
        self.uptime
    }
}

/// Reads the words of `line`.
fn read(line: &str) -> Result<Parsed, CommandLineError> {
    read_in(&mut Scene::default(), line)
}

fn read_in(scene: &mut Scene, line: &str) -> Result<Parsed, CommandLineError> {
    let args: Vec<OsString> = line.split_whitespace().map(OsString::from).collect();
    parse(&args, scene)
}

/// The workload of a line that has one.
fn workload(line: &str) -> Invocation {
    match read(line) {
        Ok(Parsed::Run(invocation)) => *invocation,
        other => panic!("{line}: {other:?}"),
    }
}

/// The error of a line that has one.
fn error(line: &str) -> CommandLineError {
    read(line).err().unwrap_or_else(|| panic!("{line} is accepted"))
}
