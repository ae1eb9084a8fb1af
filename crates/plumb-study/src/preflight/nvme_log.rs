//! What an NVMe controller says of its health (NVMe base specification, log page 02h).

use std::fs::File;
use std::io::Read;

use plumb_io::system_tree::SystemTree;
use plumb_sys::nvme::{self, HEALTH_LOG_BYTES};

/// The parts of the log that decide something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct HealthLog {
    /// A bit for each thing that is wrong.
    pub(crate) critical_warning: u8,
    /// Percent of the spare blocks that are left, and the threshold below which it is an alarm.
    pub(crate) spare: (u8, u8),
    /// Percent of its endurance, as the maker estimates; it may exceed 100.
    pub(crate) used_percent: u8,
    /// Errors that lost data.
    pub(crate) media_errors: u64,
}

impl HealthLog {
    /// Of a controller such as `nvme0`; `None` where it may not be asked. In a faked tree the node is a file that
    /// holds the log.
    pub(crate) fn read(tree: &SystemTree, controller: &str) -> Option<Self> {
        let mut file = File::open(tree.path(format!("/dev/{controller}"))).ok()?;
        let log = if tree.is_real() {
            nvme::health_log(&file).ok()?
        } else {
            let mut log = [0; HEALTH_LOG_BYTES];
            file.read_exact(&mut log).ok()?;
            log
        };
        Some(Self::of(&log))
    }

    fn of(log: &[u8; HEALTH_LOG_BYTES]) -> Self {
        // 128 bits, of which nobody has seen the upper half in use.
        let media_errors = log[160..168].try_into().map_or(0, u64::from_le_bytes);
        Self {
            critical_warning: log[0],
            spare: (log[3], log[4]),
            used_percent: log[5],
            media_errors,
        }
    }
}
