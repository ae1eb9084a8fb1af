//! A solid-state disk: parallel units behind one interface.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use plumb_units::Nanos;
use plumb_units::convert::floor_u64;

use super::{Access, AccessKind};

/// A volatile cache: a write ends when it is there, and reaches its unit meanwhile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SsdCache {
    /// Bytes that may wait for their unit.
    pub bytes: u64,
    /// Time of a write to it.
    pub write: Nanos,
}

/// Garbage collection: every so many bytes written all units stand still.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SsdStalls {
    /// Bytes between two.
    pub every: u64,
    /// How long each takes.
    pub stall: Nanos,
}

/// The model (spec 19.1): an access takes the unit that is free first for the time that its size and direction
/// take, and no less than its share of the interface.
#[derive(Debug, Clone)]
pub struct SsdModel {
    /// When each unit is free.
    units: Vec<Nanos>,
    /// Bytes, time of a read, time of a write; bytes ascending.
    table: Vec<(u32, Nanos, Nanos)>,
    /// Bytes per second of the interface.
    bandwidth: u64,
    cache: Option<SsdCache>,
    stalls: Option<SsdStalls>,
    interface_free: Nanos,
    /// Bytes written since the last stall.
    written: u64,
    /// Writes on their way from cache to unit: end and bytes.
    dirty: BinaryHeap<Reverse<(Nanos, u32)>>,
    dirty_bytes: u64,
    /// When all that was written so far is on the medium.
    settled: Nanos,
    ends: BinaryHeap<Reverse<(Nanos, u64, u32)>>,
    count: u64,
}

impl SsdModel {
    /// A disk of `units`, with a table of times by size and the interface's bytes per second. Between two sizes
    /// of the table times are interpolated.
    ///
    /// # Panics
    /// Without a unit, a row in the table or bandwidth.
    #[must_use]
    pub fn new(units: usize, table: Vec<(u32, Nanos, Nanos)>, bandwidth: u64) -> Self {
        assert!(units > 0 && !table.is_empty() && bandwidth > 0, "a disk does something");
        Self {
            units: vec![Nanos::ZERO; units],
            table,
            bandwidth,
            cache: None,
            stalls: None,
            interface_free: Nanos::ZERO,
            written: 0,
            dirty: BinaryHeap::new(),
            dirty_bytes: 0,
            settled: Nanos::ZERO,
            ends: BinaryHeap::new(),
            count: 0,
        }
    }

    /// The reference profile `sas-ssd-200` (spec 19.1): 8 units, 4 KiB written in 265.7 µs and read in 120 µs,
    /// 500 MB/s: 30,107 writes and 66,667 reads of 4 KiB per second.
    #[must_use]
    pub fn sas_ssd_200() -> Self {
        Self::new(8, vec![(4096, Nanos(120_000), Nanos(265_700))], 500_000_000)
    }

    /// With a volatile cache.
    #[must_use]
    pub fn with_cache(self, cache: SsdCache) -> Self {
        Self { cache: Some(cache), ..self }
    }

    /// With stalls.
    #[must_use]
    pub fn with_stalls(self, stalls: SsdStalls) -> Self {
        Self { stalls: Some(stalls), ..self }
    }

    fn service(&self, access: &Access) -> Nanos {
        let time = |row: &(u32, Nanos, Nanos)| match access.kind {
            AccessKind::Write => row.2,
            AccessKind::Read | AccessKind::Flush => row.1,
        };
        let above = self.table.iter().position(|row| row.0 >= access.len);
        match above {
            None => self.table.last().map_or(Nanos::ZERO, time),
            Some(0) => time(&self.table[0]),
            Some(nth) => {
                let (low, high) = (&self.table[nth - 1], &self.table[nth]);
                let share = f64::from(access.len - low.0) / f64::from(high.0 - low.0);
                let (from, to) = (time(low).as_secs_f64(), time(high).as_secs_f64());
                Nanos(floor_u64((from + (to - from) * share) * 1e9))
            }
        }
    }

    pub(super) fn submit(&mut self, now: Nanos, access: Access) {
        let end = match (access.kind, self.cache) {
            // What has ended is on the medium.
            (AccessKind::Flush, None) => now,
            (AccessKind::Flush, Some(_)) => self.settled.max(now),
            _ => self.perform(now, &access),
        };
        self.ends.push(Reverse((end, self.count, access.slot)));
        self.count += 1;
    }

    fn perform(&mut self, now: Nanos, access: &Access) -> Nanos {
        let transfer = u64::from(access.len).saturating_mul(1_000_000_000) / self.bandwidth;
        let service = self.service(access);
        let unit = self.units.iter_mut().min_by_key(|free| **free);
        let Some(unit) = unit else { return now };
        let start = now.max(*unit);
        let on_unit = Nanos(start.0 + service.0);
        *unit = on_unit;
        // The interface is shared, and moves bytes while units work.
        let sent = Nanos(self.interface_free.max(now).0 + transfer);
        self.interface_free = sent;
        let end = on_unit.max(sent);
        if access.kind == AccessKind::Read {
            return end;
        }
        self.settled = self.settled.max(end);
        self.stall(end, access.len);
        let Some(cache) = self.cache else { return end };
        while let Some(Reverse((over, bytes))) = self.dirty.peek().copied() {
            if over > now {
                break;
            }
            self.dirty.pop();
            self.dirty_bytes -= u64::from(bytes);
        }
        self.dirty.push(Reverse((end, access.len)));
        self.dirty_bytes += u64::from(access.len);
        match self.dirty_bytes <= cache.bytes {
            true => Nanos(now.0 + cache.write.0).max(sent),
            false => end,
        }
    }

    fn stall(&mut self, at: Nanos, bytes: u32) {
        let Some(stalls) = self.stalls else { return };
        self.written += u64::from(bytes);
        if self.written >= stalls.every {
            self.written -= stalls.every;
            for unit in &mut self.units {
                *unit = Nanos((*unit).max(at).0 + stalls.stall.0);
            }
        }
    }

    pub(super) fn next_end(&self) -> Option<Nanos> {
        self.ends.peek().map(|Reverse(end)| end.0)
    }

    pub(super) fn finish(&mut self, now: Nanos) -> Option<u32> {
        self.next_end().filter(|end| *end <= now)?;
        self.ends.pop().map(|Reverse(end)| end.2)
    }
}
