//! One look at counters that rise: two of them make a rate.

use std::collections::BTreeMap;
use std::time::Instant;

use plumb_io::block_stack::DeviceNumber;
use plumb_io::system_tree::SystemTree;

/// Counters at one moment.
#[derive(Debug, Clone, PartialEq)]
pub struct Sample {
    /// When.
    pub(super) at: Instant,
    /// Ticks of all processors together, then of each.
    pub(super) processors: Vec<Ticks>,
    /// Of each block device: I/Os completed, and milliseconds with an I/O in flight.
    pub(super) disks: BTreeMap<DeviceNumber, (u64, u64)>,
    /// Of each interface but the loopback: bytes received and sent.
    pub(super) links: BTreeMap<String, (u64, u64)>,
    /// Segments of TCP that were sent again.
    pub(super) sent_again: Option<u64>,
}

/// Ticks of a processor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Ticks {
    pub(super) all: u64,
    pub(super) idle: u64,
    pub(super) stolen: u64,
}

impl Sample {
    /// Looks now.
    #[must_use]
    pub fn take(tree: &SystemTree) -> Self {
        Self::taken(tree, Instant::now())
    }

    pub(super) fn taken(tree: &SystemTree, at: Instant) -> Self {
        let stat = tree.text("/proc/stat").unwrap_or_default();
        let processors = stat.lines().filter(|line| line.starts_with("cpu")).map(ticks).collect();
        let stats = tree.text("/proc/diskstats").unwrap_or_default();
        let links = tree.text("/proc/net/dev").unwrap_or_default();
        let snmp = tree.text("/proc/net/snmp").unwrap_or_default();
        Self {
            at,
            processors,
            disks: stats.lines().filter_map(disk).collect(),
            links: links.lines().filter_map(link).collect(),
            sent_again: sent_again(&snmp),
        }
    }

    /// Seconds since an earlier look.
    pub(super) fn seconds_since(&self, earlier: &Self) -> f64 {
        self.at.duration_since(earlier.at).as_secs_f64()
    }
}

/// `cpu0 user nice system idle iowait irq softirq steal …`
fn ticks(line: &str) -> Ticks {
    let fields: Vec<u64> =
        line.split_whitespace().skip(1).map_while(|word| word.parse().ok()).collect();
    let at = |place: usize| fields.get(place).copied().unwrap_or(0);
    Ticks { all: fields.iter().take(8).sum(), idle: at(3) + at(4), stolen: at(7) }
}

/// `major minor name reads merged sectors ms writes merged sectors ms in-flight busy-ms …`
fn disk(line: &str) -> Option<(DeviceNumber, (u64, u64))> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let number = |place: usize| words.get(place)?.parse::<u64>().ok();
    let device =
        DeviceNumber { major: words.first()?.parse().ok()?, minor: words.get(1)?.parse().ok()? };
    Some((device, (number(3)? + number(7)?, number(12)?)))
}

/// `eth0: received-bytes packets errors drop fifo frame compressed multicast sent-bytes …`
fn link(line: &str) -> Option<(String, (u64, u64))> {
    let (name, counts) = line.split_once(':')?;
    let counts: Vec<u64> = counts.split_whitespace().map_while(|word| word.parse().ok()).collect();
    let name = name.trim();
    (name != "lo").then_some(())?;
    Some((name.to_owned(), (*counts.first()?, *counts.get(8)?)))
}

/// `Tcp: … RetransSegs …`, names in one line and counts in the next.
fn sent_again(snmp: &str) -> Option<u64> {
    let mut lines = snmp.lines().filter_map(|line| line.strip_prefix("Tcp:"));
    let (names, counts) = (lines.next()?, lines.next()?);
    let place = names.split_whitespace().position(|name| name == "RetransSegs")?;
    counts.split_whitespace().nth(place)?.parse().ok()
}
