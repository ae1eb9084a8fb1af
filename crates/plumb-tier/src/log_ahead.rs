//! Reading the copies of a write-back cache's log some way ahead of the record that is looked at: a full log is read at the
//! speed of its disks, however small its records are.

use plumb_io::FlushQueue;
use plumb_units::convert::{to_u64, to_usize};

use crate::format::BLOCK_BYTES;
use crate::io::{Io, Work};

/// What is read ahead at first: most logs are short.
const FIRST: u64 = 16 << 10;
/// And at most.
const MOST: u64 = 1 << 20;
/// Behind a record of more bytes nothing is read ahead: of records that are known to be durable only the headers are needed.
const SPAN_MOST: u64 = 64 << 10;

/// What was read of one copy.
#[derive(Debug)]
struct Held {
    disk: u16,
    /// On the disk.
    from: u64,
    to: u64,
    /// Nothing where it could not be read at once: then it is asked record by record up to `to`.
    bytes: Vec<u8>,
}

/// A log as its copies have it, as far as it was read.
#[derive(Debug)]
pub(crate) struct LogAhead {
    copies: Vec<Held>,
    /// Bytes of the next stretch.
    step: u64,
}

impl LogAhead {
    pub(crate) fn new() -> Self {
        Self { copies: Vec::new(), step: FIRST }
    }

    /// A record that begins at these places, by disk, is to be read, the one before it had `span` bytes, and `room` bytes are
    /// contiguous on the disks from there on.
    pub(crate) fn reach<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        places: &[(u16, u64)],
        (span, room): (u64, u64),
    ) {
        let is_held = |(disk, offset): &(u16, u64)| {
            let own = self.copies.iter().find(|held| held.disk == *disk);
            own.is_some_and(|held| held.from <= *offset && offset + BLOCK_BYTES <= held.to)
        };
        if span > SPAN_MOST || places.iter().all(is_held) {
            return;
        }
        let len = self.step.min(room);
        self.step = (2 * self.step).min(MOST);
        let held = |&(disk, from): &(u16, u64)| Held {
            disk,
            from,
            to: from + len,
            bytes: vec![0; to_usize(len)],
        };
        self.copies = places.iter().map(held).collect();
        let mut work = Vec::new();
        for Held { disk, from, bytes, .. } in &mut self.copies {
            work.push(Work::Read { disk: *disk, offset: *from, into: bytes });
        }
        let failed = io.wait_for(work);
        for held in self.copies.iter_mut().filter(|held| failed.contains(&held.disk)) {
            held.bytes = Vec::new();
        }
    }

    /// Reads from a disk, or takes what was read of it; `false` when it cannot be read.
    pub(crate) fn read<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        (disk, offset): (u16, u64),
        into: &mut [u8],
    ) -> bool {
        let held = self.copies.iter().find(|held| held.disk == disk);
        let at = held.and_then(|held| Some((held, offset.checked_sub(held.from)?)));
        let there = at.and_then(|(held, at)| {
            let at = to_usize(at);
            held.bytes.get(at..at.checked_add(into.len())?)
        });
        match there {
            Some(bytes) => {
                into.copy_from_slice(bytes);
                true
            }
            None => io.read(disk, offset, into),
        }
    }

    /// What was written there since is not what was read.
    pub(crate) fn forget(&mut self, disk: u16, (offset, bytes): (u64, &[u8])) {
        let end = offset + to_u64(bytes.len());
        self.copies.retain(|held| held.disk != disk || held.to <= offset || end <= held.from);
    }
}
