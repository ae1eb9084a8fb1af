//! What one queue has counted since the map's owner last took it (HEAT-5).

use plumb_units::convert::low_u32;

use super::Weight;
use super::streams::StreamFinder;

/// Above this many bytes an I/O is large (HEAT-2).
const LARGE: u64 = 64 << 10;

/// Which way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostIoKind {
    /// Disk to host.
    Read,
    /// Host to disk.
    Write,
}

/// A host I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HostIo {
    /// Which way.
    pub kind: HostIoKind,
    /// Bytes from the start of the virtual disk.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
}

/// One I/O on one extent: extent in the high half, write in bit 8, units below.
#[derive(Debug, Clone, Copy)]
pub(super) struct Touch(u64);

impl Touch {
    #[inline]
    pub(super) fn new(extent: u32, kind: HostIoKind, weight: Weight) -> Self {
        let write = u64::from(kind == HostIoKind::Write) << 8;
        Self(u64::from(extent) << 32 | write | weight.units())
    }

    #[inline]
    pub(super) fn extent(self) -> u32 {
        low_u32(self.0 >> 32)
    }

    #[inline]
    pub(super) fn kind(self) -> HostIoKind {
        match self.0 >> 8 & 1 {
            0 => HostIoKind::Read,
            _ => HostIoKind::Write,
        }
    }

    #[inline]
    pub(super) fn units(self) -> u64 {
        self.0 & 0xff
    }
}

/// Weighs host I/Os by their size and by the streams that they are part of (HEAT-2).
#[derive(Debug)]
pub struct Weigher(StreamFinder);

impl Default for Weigher {
    fn default() -> Self {
        Self(StreamFinder::new())
    }
}

impl Weigher {
    /// The weight of the next I/O, of `len` bytes at `offset`.
    #[inline]
    pub fn weigh(&mut self, offset: u64, len: u64) -> Weight {
        match self.0.note(offset, len) {
            _ if len > LARGE => Weight::Large,
            true => Weight::Sequential,
            false => Weight::Random,
        }
    }
}

/// A queue's own counts: a list of bounded length, allocated once.
#[derive(Debug)]
pub struct HeatDelta {
    pub(super) touches: Vec<Touch>,
    /// I/Os that found it full.
    pub(super) missed: u64,
    extent_bytes: u64,
    limit: usize,
    weigher: Weigher,
}

impl HeatDelta {
    /// Room for `limit` touches of extents of `extent_bytes`.
    ///
    /// # Panics
    /// When either is 0.
    #[must_use]
    pub fn new(extent_bytes: u64, limit: usize) -> Self {
        assert!(extent_bytes > 0 && limit > 0, "something can be counted");
        let touches = Vec::with_capacity(limit);
        Self { touches, missed: 0, extent_bytes, limit, weigher: Weigher::default() }
    }

    /// Counts a host I/O for each extent that it touches. Once [`HeatDelta::is_due`], the owner should merge; what
    /// finds no room is counted as missed.
    #[inline]
    pub fn record(&mut self, io: HostIo) {
        let weight = self.weigher.weigh(io.offset, io.len);
        let last = io.offset.saturating_add(io.len.max(1) - 1) / self.extent_bytes;
        for extent in io.offset / self.extent_bytes..=last {
            match u32::try_from(extent) {
                Ok(extent) if self.touches.len() < self.limit => {
                    self.touches.push(Touch::new(extent, io.kind, weight));
                }
                _ => self.missed += 1,
            }
        }
    }

    /// Whether three quarters are full.
    #[must_use]
    pub fn is_due(&self) -> bool {
        self.touches.len() >= self.limit / 4 * 3
    }
}
