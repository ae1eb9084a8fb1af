//! What block devices did, from /proc/diskstats.

use std::collections::BTreeMap;

use crate::system_tree::SystemTree;

use super::device::DeviceNumber;

/// Counters of every block device at one moment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DiskStats(BTreeMap<DeviceNumber, DiskCounters>);

/// What one device did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct DiskCounters {
    /// Reads completed.
    pub reads: u64,
    /// Bytes read.
    pub read_bytes: u64,
    /// Writes completed.
    pub writes: u64,
    /// Bytes written.
    pub written_bytes: u64,
}

/// The unit of /proc/diskstats, whatever the device's block size.
const SECTOR: u64 = 512;

impl DiskStats {
    /// Reads the counters.
    #[must_use]
    pub fn read(tree: &SystemTree) -> Self {
        let text = tree.text("/proc/diskstats").unwrap_or_default();
        Self(text.lines().filter_map(parse_line).collect())
    }

    /// What a device did since `earlier`; `None` when either moment lacks it.
    #[must_use]
    pub fn since(&self, earlier: &Self, device: DeviceNumber) -> Option<DiskCounters> {
        let (now, then) = (self.0.get(&device)?, earlier.0.get(&device)?);
        Some(DiskCounters {
            reads: now.reads.saturating_sub(then.reads),
            read_bytes: now.read_bytes.saturating_sub(then.read_bytes),
            writes: now.writes.saturating_sub(then.writes),
            written_bytes: now.written_bytes.saturating_sub(then.written_bytes),
        })
    }
}

/// `major minor name reads merged sectors ms writes merged sectors ms …`
fn parse_line(line: &str) -> Option<(DeviceNumber, DiskCounters)> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |place: usize| words.get(place)?.parse::<u64>().ok();
    let device =
        DeviceNumber { major: words.first()?.parse().ok()?, minor: words.get(1)?.parse().ok()? };
    let counters = DiskCounters {
        reads: number(3)?,
        read_bytes: number(5)?.saturating_mul(SECTOR),
        writes: number(7)?,
        written_bytes: number(9)?.saturating_mul(SECTOR),
    };
    Some((device, counters))
}
