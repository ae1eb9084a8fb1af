//! What a command line touches while it is read: events, profiles, the uptime.

use std::error::Error;
use std::fs::File;
use std::io::{self, Read};

use plumb_io::event::{Event, EventError, EventFolder};
use plumb_load::profile::flags::Surroundings;
use plumb_units::convert;
use rustix::time::{ClockId, clock_gettime};

/// The largest profile that is read.
const PROFILE_MAX: u64 = 64 << 20;

/// This machine. It keeps the events that it made: one that nobody has open is gone.
pub(super) struct World {
    folder: EventFolder,
    events: Vec<Event>,
}

impl Default for World {
    fn default() -> Self {
        Self { folder: EventFolder::of_user(), events: Vec::new() }
    }
}

impl Surroundings for World {
    fn create_event(&mut self, name: &str) -> io::Result<()> {
        self.events.push(Event::create(&self.folder, name).map_err(|error| in_a_line(&error))?);
        Ok(())
    }

    fn signal_event(&mut self, name: &str) -> io::Result<()> {
        let event = Event::open(&self.folder, name).map_err(|error| in_a_line(&error))?;
        event.signal().map_err(|error| in_a_line(&error))?;
        // Spelt as upstream does: scripts look for it.
        super::super::print(&format!("Succesfully set event: '{name}'\n"));
        Ok(())
    }

    fn read_profile(&mut self, path: &str) -> io::Result<Vec<u8>> {
        let mut bytes = Vec::new();
        let size = File::open(path)?.take(PROFILE_MAX + 1).read_to_end(&mut bytes)?;
        if convert::to_u64(size) > PROFILE_MAX {
            return Err(io::Error::other("it is above 64 MiB, which no profile is"));
        }
        Ok(bytes)
    }

    fn uptime_millis(&mut self) -> u64 {
        let now = clock_gettime(ClockId::Monotonic);
        let seconds = u64::try_from(now.tv_sec).unwrap_or_default();
        seconds * 1000 + u64::try_from(now.tv_nsec).unwrap_or_default() / 1_000_000
    }
}

/// The error and what lies under it.
fn in_a_line(error: &EventError) -> io::Error {
    let mut line = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        line.push_str(": ");
        line.push_str(&error.to_string());
        cause = error.source();
    }
    io::Error::other(line)
}
