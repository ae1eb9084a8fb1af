//! Loads that `plumb run` would refuse, seen before the first run.

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::io;

use plumb_load::profile::flags::{self, Surroundings};

use super::{PlanError, Setting};

/// Refuses what `plumb run` would refuse when its turn comes: each kind of load once, since counts and sizes were looked at.
pub(super) fn check_loads(settings: &[Setting]) -> Result<(), PlanError> {
    let mut seen = BTreeSet::new();
    for setting in settings {
        let kind = (&setting.options, &setting.cache, setting.access.keyword());
        if !seen.insert(kind) {
            continue;
        }
        let words = setting.arguments(0).into_iter().chain(["target".to_owned()]);
        let words: Vec<OsString> = words.map(OsString::from).collect();
        flags::parse(&words, &mut Nowhere).map_err(|error| PlanError::Load {
            setting: setting.short(),
            what: error.to_string(),
        })?;
    }
    Ok(())
}

/// What a run finds around itself is not looked at before it is due.
struct Nowhere;

impl Surroundings for Nowhere {
    fn create_event(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn signal_event(&mut self, _: &str) -> io::Result<()> {
        Ok(())
    }
    fn read_profile(&mut self, _: &str) -> io::Result<Vec<u8>> {
        Err(io::ErrorKind::Unsupported.into())
    }
    fn uptime_millis(&mut self) -> u64 {
        0
    }
}
