//! A world without events, files and clocks.

use std::io;

use plumb_load::profile::flags::Surroundings;

/// For command lines that ask nothing of the world.
#[derive(Debug, Default)]
pub(crate) struct Nowhere;

impl Surroundings for Nowhere {
    fn create_event(&mut self, _name: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn signal_event(&mut self, _name: &str) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn read_profile(&mut self, _path: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::NotFound.into())
    }
    fn uptime_millis(&mut self) -> u64 {
        0
    }
}
