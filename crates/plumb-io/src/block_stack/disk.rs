//! What a disk's queue says about itself.

use crate::system_tree::SystemTree;

use super::device::{BlockDevice, folder};

/// Facts of a disk that explain its numbers. `None`: the kernel does not tell.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskFacts {
    /// Smallest unit of direct I/O in bytes.
    pub logical_block_bytes: Option<u64>,
    /// Smallest unit that the disk writes without reading first.
    pub physical_block_bytes: Option<u64>,
    /// Whether it says that it turns.
    pub is_rotational: Option<bool>,
    /// Whether completions may be polled for.
    pub can_poll: Option<bool>,
    /// The I/O scheduler in force, e.g. `none`, `mq-deadline`, `bfq`.
    pub scheduler: Option<String>,
    /// What happens to a write before it is durable.
    pub write_cache: Option<WriteCache>,
    /// Whether a single write can be forced through the cache.
    pub has_fua: Option<bool>,
    /// Requests that the block layer keeps per queue.
    pub requests: Option<u64>,
    /// Largest single transfer in bytes; larger I/Os are split.
    pub transfer_bytes_max: Option<u64>,
    /// Vendor's model name.
    pub model: Option<String>,
    /// Whether direct I/O goes through a loop device to the file behind it; `None` if it is none.
    pub loop_is_direct: Option<bool>,
}

/// A disk's cache for writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WriteCache {
    /// Writes are durable only after a flush.
    WriteBack,
    /// Writes are durable when done.
    WriteThrough,
}

impl DiskFacts {
    /// Reads the facts of the disk that `device` is or lies on.
    #[must_use]
    pub fn read(tree: &SystemTree, device: &BlockDevice) -> Self {
        let folder = folder(device.disk);
        let text = |file: &str| tree.text(format!("{folder}/{file}")).filter(|t| !t.is_empty());
        let number = |file: &str| tree.number(format!("{folder}/queue/{file}"));
        let flag = |file: &str| number(file).map(|value| value != 0);
        Self {
            logical_block_bytes: number("logical_block_size"),
            physical_block_bytes: number("physical_block_size"),
            is_rotational: flag("rotational"),
            can_poll: flag("io_poll"),
            scheduler: text("queue/scheduler").map(|list| chosen(&list)),
            write_cache: text("queue/write_cache").and_then(|kind| match kind.as_str() {
                "write back" => Some(WriteCache::WriteBack),
                "write through" => Some(WriteCache::WriteThrough),
                _ => None,
            }),
            has_fua: flag("fua"),
            requests: number("nr_requests"),
            transfer_bytes_max: number("max_sectors_kb").map(|kib| kib.saturating_mul(1024)),
            model: text("device/model"),
            loop_is_direct: tree.number(format!("{folder}/loop/dio")).map(|value| value != 0),
        }
    }

    /// Whether I/O priorities (`-I`) have any effect: only these schedulers look at them.
    #[must_use]
    pub fn honours_priority(&self) -> bool {
        self.scheduler.as_deref().is_some_and(|name| ["bfq", "mq-deadline"].contains(&name))
    }
}

/// The word in brackets of `none [mq-deadline] bfq`; all of it where there is no choice.
fn chosen(list: &str) -> String {
    let bracketed = list.split_once('[').and_then(|(_, rest)| rest.split_once(']'));
    bracketed.map_or(list, |(name, _)| name).to_owned()
}
