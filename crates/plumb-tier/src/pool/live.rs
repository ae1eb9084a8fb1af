//! What programs that only read tell of a pool that another one works on: its engine hands out, when asked, where every
//! extent is, beside heat and pins. The pool's disks are not opened.
//!
//! ```text
//!    0  magic "PLUMVIEW"        8      40  extents of the Performance tier     8
//!    8  version, 1              4      48  free extents of the Capacity tier   8
//!   12  virtual disk           16      56  CRC-32C of the heat map beside it   4
//!   28  milliseconds since 1970 8      60  flags: 1 = optimizing               4
//!   36  extents                 4
//! then two bits for each extent: 0 nowhere, 1 Performance, 2 Capacity
//! at the end: CRC-32C of all before 4
//! ```

use std::time::{Duration, Instant, SystemTime};

use crate::engine::{Placed, Published, TierView, Tiering};
use crate::format::VirtualDisk;
use crate::format::bytes::{Reader, Writer};
use crate::format::checksum::crc;
use crate::heat::{HeatMap, HeatSettings};
use crate::what_if::WhatIf;

use super::asks::{Ask, ask};
use super::open::PoolError;
use super::registry::{RegisteredPool, Registry};
use super::tiering::{TieringError, TieringStore};

const MAGIC: u64 = u64::from_le_bytes(*b"PLUMVIEW");
const VERSION: u32 = 1;
const OPTIMIZING: u32 = 1;
/// How long an engine that has taken the wish may take to write.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// What an engine has told of a virtual disk, at one moment.
#[derive(Debug)]
pub struct LiveView {
    heat: HeatMap,
    what_if: WhatIf,
    served: crate::engine::Served,
    tiering: Tiering,
    published: Published,
    name: String,
    extent_bytes: u64,
    /// How long ago that was.
    pub age: Duration,
}

impl LiveView {
    /// What plans, reports and pins are told from.
    #[must_use]
    pub fn view(&self) -> TierView<'_, &Placed> {
        TierView {
            name: self.name.clone(),
            extent_bytes: self.extent_bytes,
            heat: &self.heat,
            what_if: &self.what_if,
            served: self.served,
            tiering: &self.tiering,
            measured: self.tiering.measured,
            placement: &self.published.placed,
            performance_slots: self.published.performance_slots,
            capacity_free: self.published.capacity_free,
            optimizing: self.published.optimizing,
        }
    }
}

/// Milliseconds since 1970.
pub(super) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Asks the program that has a pool for a view of a virtual disk, and reads it. If it does not answer, the view that it
/// has handed out last; `None` without any of this use of the pool.
///
/// # Errors
/// When no program has the pool, or what is there cannot be read.
pub fn live(
    registry: &Registry,
    pool: &RegisteredPool,
    (vdisk, extent_bytes): (&VirtualDisk, u32),
) -> Result<Option<LiveView>, LiveError> {
    let asked = now_ms();
    ask(registry, pool, Ask::Publish)?;
    let store = TieringStore::of(registry, pool);
    let began = Instant::now();
    let name = format!("{}/{}", pool.name, vdisk.name);
    loop {
        let found = store.live(vdisk, &name, extent_bytes)?;
        match found {
            Some((at, found)) if at >= asked || began.elapsed() >= WRITTEN_WITHIN => {
                let age = Duration::from_millis(now_ms().saturating_sub(at));
                return Ok(Some(LiveView { age, ..found }));
            }
            None if began.elapsed() >= WRITTEN_WITHIN => return Ok(None),
            _ => std::thread::sleep(LOOK),
        }
    }
}

/// No view can be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum LiveError {
    /// Nobody can be asked.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Pool(#[from] PoolError),
    /// What is there cannot be read.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tiering(#[from] TieringError),
}

/// The view as bytes, beside a heat map of these bytes.
pub(super) fn save(vdisk: u128, published: &Published, heat: &[u8], at_ms: u64) -> Vec<u8> {
    let mut out = Writer::default();
    out.u64(MAGIC);
    out.u32(VERSION);
    out.u128(vdisk);
    out.u64(at_ms);
    out.u32(crate::optimizer::Placement::extents(&published.placed));
    out.u64(published.performance_slots);
    out.u64(published.capacity_free);
    out.u32(crc(0, heat));
    out.u32(if published.optimizing { OPTIMIZING } else { 0 });
    out.0.extend_from_slice(published.placed.bytes());
    out.u32(crc(0, &out.0));
    out.0
}

/// When it was made, the checksum of the heat map beside it, and what it says; `None` when it is damaged or another
/// virtual disk's.
pub(super) fn parse(bytes: &[u8], vdisk: u128) -> Option<(u64, u32, Published)> {
    let (body, sum) = bytes.split_last_chunk::<4>()?;
    if crc(0, body) != u32::from_le_bytes(*sum) {
        return None;
    }
    let mut fields = Reader(body);
    if (fields.u64()?, fields.u32()?, fields.u128()?) != (MAGIC, VERSION, vdisk) {
        return None;
    }
    let (at_ms, extents) = (fields.u64()?, fields.u32()?);
    let (performance_slots, capacity_free) = (fields.u64()?, fields.u64()?);
    let (heat, flags) = (fields.u32()?, fields.u32()?);
    let placed = Placed::from_bytes(extents, fields.0)?;
    let optimizing = flags & OPTIMIZING != 0;
    Some((at_ms, heat, Published { placed, performance_slots, capacity_free, optimizing }))
}

impl TieringStore {
    /// The last view of a virtual disk and when it was made; `None` if there is none, or its parts are of two moments:
    /// it is being written.
    fn live(
        &self,
        vdisk: &VirtualDisk,
        name: &str,
        extent_bytes: u32,
    ) -> Result<Option<(u64, LiveView)>, TieringError> {
        let id = vdisk.id;
        let Some((at, sum, published)) = self.view_bytes(id)?.and_then(|bytes| parse(&bytes, id))
        else {
            return Ok(None);
        };
        let state = match self.restore(id, extent_bytes.into()) {
            // Its parts are put in place one after the other.
            Err(TieringError::Damaged { .. }) | Ok(None) => return Ok(None),
            other => other?,
        };
        let Some(state) = state else { return Ok(None) };
        let Some(bytes) = state.heat.filter(|bytes| crc(0, bytes) == sum) else { return Ok(None) };
        let settings = HeatSettings::new(crate::optimizer::Placement::extents(&published.placed));
        let heat = HeatMap::restore(&bytes, id, settings);
        let heat = heat.map_err(|source| self.heat_error(id, source))?.map;
        let curve =
            state.what_if.and_then(|bytes| WhatIf::restore(&bytes, id, extent_bytes.into()));
        let found = LiveView {
            heat,
            what_if: curve.unwrap_or_else(|| WhatIf::new(extent_bytes.into())),
            served: state.served,
            tiering: Tiering {
                pins: state.pins,
                history: state.history,
                window_start_s: state.window_start_s,
                working_sets: state.working_sets,
                heat_gap: state.heat_gap,
                uncounted_s: state.uncounted_s,
                measured: state.measured,
                brought: state.brought,
            },
            published,
            name: name.to_owned(),
            extent_bytes: extent_bytes.into(),
            age: Duration::ZERO,
        };
        Ok(Some((at, found)))
    }
}

/// Reads any bytes as a view.
pub(super) fn fuzz(bytes: &[u8]) {
    let id = bytes.get(12..28).and_then(|part| part.first_chunk::<16>());
    let id = id.map_or(0, |id| u128::from_le_bytes(*id));
    if let Some((at, _, published)) = parse(bytes, id) {
        assert_eq!(save(id, &published, b"", at).len(), bytes.len(), "what was read is saved");
    }
}

/// A view as it is kept, without its checksum.
#[cfg(test)]
pub(super) fn sample() -> Vec<u8> {
    let placed = Placed::from_bytes(5, &[0b1001_0100, 1]).expect("five");
    let published = Published { placed, performance_slots: 7, capacity_free: 8, optimizing: true };
    let mut bytes = save(7, &published, b"heat", 1234);
    bytes.truncate(bytes.len() - 4);
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_view_is_read_as_it_was_written_and_damage_is_noticed() {
        let mut bytes = sample();
        bytes.extend_from_slice(&crc(0, &bytes).to_le_bytes());
        let (at, heat, published) = parse(&bytes, 7).expect("it is whole");
        assert_eq!((at, heat), (1234, crc(0, b"heat")));
        assert!(published.optimizing && published.performance_slots == 7);
        assert_eq!(save(7, &published, b"heat", at), bytes);
        assert!(parse(&bytes, 8).is_none(), "another virtual disk's");
        for at in 0..bytes.len() {
            let mut bytes = bytes.clone();
            bytes[at] ^= 4;
            assert!(parse(&bytes, 7).is_none(), "byte {at}");
        }
    }
}
