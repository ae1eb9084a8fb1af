//! Reading the copies of a write-back cache's log some way ahead of the record that is looked at: a full log is read at the
//! speed of its disks, however small its records are. Of a long one (section 25) records that are known to be durable are read from
//! one copy, each copy another stretch, or their headers alone where they are large.

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
/// A log is a long one behind so many bytes.
pub(crate) const FAR_FROM: u64 = 8 << 20;
/// What is read ahead of each copy of a long one, where all are to be read.
const FAR: u64 = 4 << 20;
/// Reading a header by itself takes about as long as reading on to it over so many bytes, on two copies.
const FAR_SPAN: u64 = 48 << 10;

/// The record that is to be read next.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Next {
    /// Bytes of the one before it.
    pub(crate) span: u64,
    /// Bytes that are contiguous on the disks from there on.
    pub(crate) room: u64,
    /// Whether it is known to be durable.
    pub(crate) durable: bool,
}

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
    /// Bytes of the log that were gone through, and behind which it is a long one.
    passed: u64,
    far_from: u64,
    /// Of a record, of late, on average.
    span: u64,
}

impl Held {
    fn covers(&self, (disk, offset): (u16, u64), len: u64) -> bool {
        self.disk == disk && self.from <= offset && offset + len <= self.to
    }
}

impl LogAhead {
    pub(crate) fn new(far_from: u64) -> Self {
        Self { copies: Vec::new(), step: FIRST, passed: 0, far_from, span: 0 }
    }

    /// Whether so much of the log was gone through that one copy is enough of what is durable.
    pub(crate) fn is_far(&self) -> bool {
        self.passed >= self.far_from
    }

    /// A record that begins at these places, by disk, is to be read.
    pub(crate) fn reach<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        places: &[(u16, u64)],
        next: Next,
    ) {
        self.passed += next.span;
        self.span = (7 * self.span + next.span) / 8;
        if self.is_far() {
            return self.reach_far(io, places, next);
        }
        let is_held =
            |place: &(u16, u64)| self.copies.iter().any(|held| held.covers(*place, BLOCK_BYTES));
        if next.span > SPAN_MOST || places.iter().all(is_held) {
            return;
        }
        let len = self.step.min(next.room);
        self.step = (2 * self.step).min(MOST);
        self.fetch(io, places.iter().map(|&(disk, from)| (disk, from, from + len)));
    }

    fn reach_far<Q: FlushQueue>(&mut self, io: &mut Io<Q>, places: &[(u16, u64)], next: Next) {
        let needed = match next.durable {
            true => BLOCK_BYTES,
            false => (BLOCK_BYTES + 2 * self.span).min(next.room),
        };
        let is_held =
            |place: &(u16, u64)| self.copies.iter().any(|held| held.covers(*place, needed));
        if !next.durable {
            if !places.iter().all(is_held) {
                let len = FAR.min(next.room);
                self.fetch(io, places.iter().map(|&(disk, from)| (disk, from, from + len)));
            }
            return;
        }
        if places.iter().any(is_held) || self.span > FAR_SPAN {
            return;
        }
        let count = to_u64(places.len()).max(1);
        let len = (count * MOST).min(next.room);
        let part = len.div_ceil(count).next_multiple_of(BLOCK_BYTES);
        let parts = (0..).zip(places).map(|(nth, &(disk, from))| {
            (disk, from + len.min(nth * part), from + len.min((nth + 1) * part))
        });
        self.fetch(io, parts.filter(|(_, from, to)| from < to));
    }

    fn fetch<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        stretches: impl Iterator<Item = (u16, u64, u64)>,
    ) {
        let held = |(disk, from, to)| Held { disk, from, to, bytes: vec![0; to_usize(to - from)] };
        self.copies = stretches.map(held).collect();
        let mut work = Vec::new();
        for Held { disk, from, bytes, .. } in &mut self.copies {
            work.push(Work::Read { disk: *disk, offset: *from, into: bytes });
        }
        let failed = io.wait_for(work);
        for held in self.copies.iter_mut().filter(|held| failed.contains(&held.disk)) {
            held.bytes = Vec::new();
        }
    }

    /// The places of a record, those first whose copy was read.
    pub(crate) fn in_turn(&self, places: &[(u16, u64)]) -> Vec<(u16, u64)> {
        let mut places = places.to_vec();
        let is_read =
            |held: &Held, place| held.covers(place, BLOCK_BYTES) && !held.bytes.is_empty();
        places.sort_by_key(|place| !self.copies.iter().any(|held| is_read(held, *place)));
        places
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
