//! What an NVMe controller says of its health (NVMe base specification, log page 02h).

use std::fs::File;
use std::io::Read;

use plumb_sys::nvme::{self, HEALTH_LOG_BYTES};

use crate::system_tree::SystemTree;

/// The controller of an NVMe disk: `nvme0` of `nvme0n1`.
#[must_use]
pub fn controller(disk: &str) -> Option<String> {
    let digits = disk.strip_prefix("nvme")?.split('n').next().unwrap_or_default();
    Some(format!("nvme{digits}"))
}

/// The parts of the log that decide something.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HealthLog {
    /// A bit for each thing that is wrong.
    pub critical_warning: u8,
    /// Percent of the spare blocks that are left, and the threshold below which it is an alarm.
    pub spare: (u8, u8),
    /// Percent of its endurance, as the maker estimates; it may exceed 100.
    pub used_percent: u8,
    /// Errors that lost data.
    pub media_errors: u64,
    /// Temperature of the whole, in degrees Celsius; `None` where the controller does not tell.
    pub celsius: Option<i32>,
    /// Minutes above the temperatures of warning and of danger, since the drive was made.
    pub minutes_hot: u64,
    /// How often it slowed itself down for heat, lightly or heavily, since it was made.
    pub slowed: u64,
}

impl HealthLog {
    /// Of a controller such as `nvme0`; `None` where it may not be asked. In a faked tree the node is a file that
    /// holds the log.
    #[must_use]
    pub fn read(tree: &SystemTree, controller: &str) -> Option<Self> {
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
        let word = |at: usize| log[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
        let kelvin = u16::from_le_bytes([log[1], log[2]]);
        Self {
            critical_warning: log[0],
            spare: (log[3], log[4]),
            used_percent: log[5],
            media_errors,
            celsius: (kelvin > 0).then(|| i32::from(kelvin) - 273),
            minutes_hot: u64::from(word(192)) + u64::from(word(196)),
            slowed: u64::from(word(216)) + u64::from(word(220)),
        }
    }
}
