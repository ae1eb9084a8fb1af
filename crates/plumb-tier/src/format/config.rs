//! The configuration record (LAY-3): everything about a pool that is not about single extents.

use super::bytes::{Reader, Writer};
use super::checksum;
use super::moving::Moving;
use super::{BLOCK_BYTES, BLOCK_LEN, Geometry};
use plumb_units::convert::to_u64;

/// Bytes of the record that one page carries; the page ends with its CRC.
const PAYLOAD: usize = BLOCK_LEN - 4;
/// Disks of a pool, at most.
pub(crate) const DISKS_MAX: usize = 1024;
/// How many ancestors a generation names.
const ANCESTORS: usize = 64;

/// A version of the configuration. Ordered by epoch, then number; the id tells two of one number apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct Generation {
    /// Which start of the engine wrote it.
    pub epoch: u32,
    /// Raised by every change.
    pub number: u64,
    /// Random.
    pub id: u128,
}

impl Generation {
    pub(crate) fn encode(self, out: &mut Writer) {
        out.u32(self.epoch);
        out.u64(self.number);
        out.u128(self.id);
    }

    pub(crate) fn decode(from: &mut Reader) -> Option<Self> {
        Some(Self { epoch: from.u32()?, number: from.u64()?, id: from.u128()? })
    }
}

/// What kind of device a disk is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MediaType {
    /// Solid state.
    #[default]
    Ssd,
    /// Rotating.
    Hdd,
}

/// Whether a disk takes part.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum DiskState {
    /// Takes part in every write.
    #[default]
    Online,
    /// Lost, failed or expelled; may return.
    Missing,
    /// Given up: what it held is rebuilt on other disks.
    Retired,
}

/// A member disk.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DiskConfig {
    /// As in its superblock.
    pub id: u128,
    /// What it is.
    pub media: MediaType,
    /// Whether it takes part.
    pub state: DiskState,
    /// Whether it holds a copy of journal and metadata tree. Implies that it is a voter.
    pub metadata: bool,
    /// Whether it is to be removed: nothing new comes onto it, and what it holds is moved elsewhere.
    pub leaving: bool,
    /// The last epoch of which it may have a generation if it is missing: one of a later epoch comes from a part of
    /// the pool that went on alone.
    pub known_epoch: u32,
    /// The last epoch that was served while it voted, if it is missing: a disk that comes back and has not reached it is an
    /// older copy of itself. 0 where that is not known.
    pub served_epoch: u32,
    /// Length in bytes.
    pub device_bytes: u64,
    /// For messages: the path it was created with.
    pub name: String,
}

/// columns x copies slabs on distinct disks: `slabs[column * copies + copy]` is (disk, slab).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// In order of column, then copy.
    pub slabs: Vec<(u16, u32)>,
}

/// A tier of a virtual disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tier {
    /// Which disks it lies on.
    pub media: MediaType,
    /// Its space, in order of slots.
    pub rows: Vec<Row>,
}

/// One copy of a write-back cache's log.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheCopy {
    /// The disk that holds it.
    pub disk: u16,
    /// Whether it holds all records: only such a copy is read.
    pub current: bool,
    /// Its slabs, in order.
    pub slabs: Vec<u32>,
}

/// The write-back cache of a virtual disk (section 6.2).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CacheConfig {
    /// Bytes of the ring: a multiple of 4 KiB.
    pub bytes: u64,
    /// As many as the virtual disk has copies, on distinct disks (RES-7).
    pub copies: Vec<CacheCopy>,
}

/// A virtual disk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualDisk {
    /// Seeds its checksums.
    pub id: u128,
    /// Unique in the pool.
    pub name: String,
    /// Replicas: 1, 2 or 3.
    pub copies: u8,
    /// Disks that a stripe spans.
    pub columns: u8,
    /// Bytes on one disk before the stripe goes on to the next.
    pub interleave: u32,
    /// The first of its extents, counted over the pool.
    pub first_extent: u32,
    /// How many extents users see.
    pub extents: u32,
    /// One or two, the fast one first.
    pub tiers: Vec<Tier>,
    /// Takes small writes that are aimed at the second tier.
    pub cache: Option<CacheConfig>,
}

/// The whole configuration of a pool.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Config {
    /// Which version.
    pub generation: Generation,
    /// Ids of the versions before, newest first, 64 at most.
    pub ancestors: Vec<u128>,
    /// The pool.
    pub pool: u128,
    /// Its name.
    pub name: String,
    /// Bytes of an extent.
    pub extent_bytes: u32,
    /// Disks, by ordinal.
    pub disks: Vec<DiskConfig>,
    /// Ordinals of the disks that vote.
    pub voters: Vec<u16>,
    /// Virtual disks, in order of their extents.
    pub vdisks: Vec<VirtualDisk>,
    /// What is on its way from a disk that is leaving to another one.
    pub moving: Option<Moving>,
    /// Other lists of voters that a disk may still have gone by when this generation was written, oldest first: of the
    /// last generation that all its voters had, and of those written since.
    pub lists: Vec<Vec<u16>>,
}

impl Config {
    /// Makes this the successor of itself: a new generation in `epoch`.
    pub(crate) fn succeed(&mut self, epoch: u32, id: u128) {
        self.ancestors.insert(0, self.generation.id);
        self.ancestors.truncate(ANCESTORS);
        let number = self.generation.number + 1;
        self.generation = Generation { epoch, number, id };
    }

    /// Whether `other` is this generation or one before it.
    #[must_use]
    pub fn descends_from(&self, other: Generation) -> bool {
        self.generation.id == other.id || self.ancestors.contains(&other.id)
    }

    /// Blocks of 4 KiB per extent.
    #[must_use]
    pub fn extent_blocks(&self) -> u32 {
        self.extent_bytes / 4096
    }

    /// Extents of all virtual disks.
    #[must_use]
    pub fn extents(&self) -> u32 {
        self.vdisks.last().map_or(0, |last| last.first_extent + last.extents)
    }

    /// Every slab that somebody has.
    pub(crate) fn taken_slabs(&self) -> impl Iterator<Item = (u16, u32)> + '_ {
        let tiers = self.vdisks.iter().flat_map(|vdisk| &vdisk.tiers);
        let rows = tiers.flat_map(|tier| &tier.rows).flat_map(|row| row.slabs.iter().copied());
        let caches = self.vdisks.iter().filter_map(|vdisk| vdisk.cache.as_ref());
        let copies = caches.flat_map(|cache| &cache.copies);
        rows.chain(copies.flat_map(|copy| copy.slabs.iter().map(|slab| (copy.disk, *slab))))
            .chain(self.moving.map(|moving| moving.from))
    }

    /// The record, whole.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer::default();
        self.generation.encode(&mut out);
        out.u8(u8::try_from(self.ancestors.len()).unwrap_or(0));
        self.ancestors.iter().for_each(|id| out.u128(*id));
        out.u128(self.pool);
        out.text(&self.name);
        out.u32(self.extent_bytes);
        count(&mut out, self.disks.len());
        for disk in &self.disks {
            out.u128(disk.id);
            out.u8(media_code(disk.media));
            out.u8(match disk.state {
                DiskState::Online => 0,
                DiskState::Missing => 1,
                DiskState::Retired => 2,
            });
            let served = u8::from(disk.served_epoch > 0);
            out.u8(u8::from(disk.metadata) | u8::from(disk.leaving) << 1 | served << 2);
            out.u32(disk.known_epoch);
            if disk.served_epoch > 0 {
                out.u32(disk.served_epoch);
            }
            out.u64(disk.device_bytes);
            out.text(&disk.name);
        }
        count(&mut out, self.voters.len());
        self.voters.iter().for_each(|voter| out.u16(*voter));
        count(&mut out, self.vdisks.len());
        for vdisk in &self.vdisks {
            vdisk.encode(&mut out);
        }
        out.u8(u8::from(self.moving.is_some()));
        if let Some(moving) = &self.moving {
            moving.encode(&mut out);
        }
        // Mostly there are none, and then there is nothing more.
        if !self.lists.is_empty() {
            count(&mut out, self.lists.len());
        }
        for list in &self.lists {
            count(&mut out, list.len());
            list.iter().for_each(|voter| out.u16(*voter));
        }
        out.0
    }

    /// Reads a record and judges it: whatever it returns can be worked with.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let mut from = Reader(bytes);
        let generation = Generation::decode(&mut from)?;
        let ancestors = (0..from.u8()?).map(|_| from.u128()).collect::<Option<Vec<_>>>()?;
        let pool = from.u128()?;
        let name = from.text()?.to_owned();
        let extent_bytes = from.u32()?;
        let disks = (0..from.u32()?).map(|_| disk(&mut from)).collect::<Option<Vec<_>>>()?;
        let voters = (0..from.u32()?).map(|_| from.u16()).collect::<Option<Vec<_>>>()?;
        let vdisks =
            (0..from.u32()?).map(|_| VirtualDisk::decode(&mut from)).collect::<Option<Vec<_>>>()?;
        let moving = match from.u8()? {
            0 => None,
            1 => Some(Moving::decode(&mut from)?),
            _ => return None,
        };
        let lists = if from.0.is_empty() { Vec::new() } else { lists(&mut from)? };
        let config = Self {
            generation,
            ancestors,
            pool,
            name,
            extent_bytes,
            disks,
            voters,
            vdisks,
            moving,
            lists,
        };
        (from.0.is_empty() && config.is_sane()).then_some(config)
    }

    /// Whether all that it names lies on its disks, and nothing twice: only then may anything be written where it
    /// says.
    pub(crate) fn fits(&self, geometry: &Geometry) -> bool {
        let mut used = std::collections::BTreeSet::new();
        let mut is_own = |disk: u16, slab: u32| {
            let bytes = self.disks.get(usize::from(disk)).map_or(0, |disk| disk.device_bytes);
            slab < geometry.slabs(bytes) && used.insert((disk, slab))
        };
        let rows = self.vdisks.iter().flat_map(|vdisk| &vdisk.tiers).flat_map(|tier| &tier.rows);
        let mut slabs: Vec<(u16, u32)> = rows.flat_map(|row| row.slabs.iter().copied()).collect();
        let mut roomy = true;
        for cache in self.vdisks.iter().filter_map(|vdisk| vdisk.cache.as_ref()) {
            for copy in &cache.copies {
                slabs.extend(copy.slabs.iter().map(|slab| (copy.disk, *slab)));
                let room = geometry.slab_bytes.saturating_mul(to_u64(copy.slabs.len()));
                roomy &= cache.bytes <= room;
            }
        }
        slabs.extend(self.moving.map(|moving| moving.from));
        roomy && slabs.into_iter().all(|(disk, slab)| is_own(disk, slab))
    }

    fn is_sane(&self) -> bool {
        let disks = self.disks.len();
        let known = |disk: u16| usize::from(disk) < disks;
        let mut next = 0_u32;
        let mut in_order = true;
        for vdisk in &self.vdisks {
            in_order &= vdisk.first_extent == next;
            let Some(end) = next.checked_add(vdisk.extents) else { return false };
            next = end;
        }
        in_order
            && (1..=DISKS_MAX).contains(&disks)
            && self.extent_bytes.is_power_of_two()
            && (64 << 10..=16 << 20).contains(&self.extent_bytes)
            && !self.voters.is_empty()
            && self.voters.iter().all(|voter| known(*voter))
            && self
                .lists
                .iter()
                .all(|list| !list.is_empty() && list.iter().all(|voter| known(*voter)))
            && self.disks.iter().any(|disk| disk.metadata)
            && self.vdisks.iter().all(|vdisk| vdisk.is_sane(self.extent_bytes, known))
            && self.moving.is_none_or(|moving| self.can_move(&moving))
    }
}

impl VirtualDisk {
    /// How many disks its Capacity tier lies on; 0 with one tier.
    #[must_use]
    pub fn capacity_disks(&self) -> u64 {
        self.tier_disks(1)
    }

    /// The same of its first tier, 0, or its second.
    #[must_use]
    pub fn tier_disks(&self, tier: usize) -> u64 {
        let slabs = self.tiers.iter().skip(tier).take(1).flat_map(|tier| &tier.rows);
        let slabs = slabs.flat_map(|row| &row.slabs);
        let disks: std::collections::BTreeSet<u16> = slabs.map(|(disk, _)| *disk).collect();
        plumb_units::convert::to_u64(disks.len())
    }

    /// Whether it is only the extents that a removed virtual disk had: it has no name and no rows.
    #[must_use]
    pub fn is_removed(&self) -> bool {
        self.name.is_empty()
    }

    /// Gives up everything but the extents' numbers, by which the map's tree goes.
    pub(crate) fn remove(&mut self) {
        self.name.clear();
        (self.copies, self.columns) = (1, 1);
        self.cache = None;
        self.tiers.truncate(1);
        self.tiers.iter_mut().for_each(|tier| tier.rows.clear());
    }

    fn encode(&self, out: &mut Writer) {
        out.u128(self.id);
        out.text(&self.name);
        out.u8(self.copies);
        out.u8(self.columns);
        out.u32(self.interleave);
        out.u32(self.first_extent);
        out.u32(self.extents);
        count(out, self.tiers.len());
        for tier in &self.tiers {
            out.u8(media_code(tier.media));
            count(out, tier.rows.len());
            for (disk, slab) in tier.rows.iter().flat_map(|row| &row.slabs) {
                out.u16(*disk);
                out.u32(*slab);
            }
        }
        let copies = self.cache.as_ref().map_or(&[][..], |cache| &cache.copies);
        out.u64(self.cache.as_ref().map_or(0, |cache| cache.bytes));
        count(out, copies.len());
        for copy in copies {
            out.u16(copy.disk);
            out.u8(u8::from(copy.current));
            count(out, copy.slabs.len());
            copy.slabs.iter().for_each(|slab| out.u32(*slab));
        }
    }

    fn decode(from: &mut Reader) -> Option<Self> {
        let id = from.u128()?;
        let name = from.text()?.to_owned();
        let (copies, columns) = (from.u8()?, from.u8()?);
        let (interleave, first_extent, extents) = (from.u32()?, from.u32()?, from.u32()?);
        let width = usize::from(copies) * usize::from(columns);
        if width == 0 {
            return None;
        }
        let mut tiers = Vec::new();
        for _ in 0..from.u32()? {
            let media = media(from.u8()?)?;
            let mut rows = Vec::new();
            for _ in 0..from.u32()? {
                let slab = |_| Some((from.u16()?, from.u32()?));
                rows.push(Row { slabs: (0..width).map(slab).collect::<Option<Vec<_>>>()? });
            }
            tiers.push(Tier { media, rows });
        }
        let cache = cache(from)?;
        Some(Self { id, name, copies, columns, interleave, first_extent, extents, tiers, cache })
    }

    fn is_sane(&self, extent_bytes: u32, known: impl Fn(u16) -> bool + Copy) -> bool {
        let distinct = |row: &Row| {
            let mut disks: Vec<u16> = row.slabs.iter().map(|slab| slab.0).collect();
            disks.sort_unstable();
            disks.windows(2).all(|pair| pair[0] != pair[1])
        };
        let mut rows = self.tiers.iter().flat_map(|tier| &tier.rows);
        (1..=3).contains(&self.copies)
            && (1..=32).contains(&self.columns)
            && self.interleave.is_power_of_two()
            && (16 << 10..=1 << 30).contains(&self.interleave)
            && u64::from(extent_bytes).is_multiple_of(BLOCK_BYTES)
            && (1..=2).contains(&self.tiers.len())
            && rows.all(|row| distinct(row) && row.slabs.iter().all(|slab| known(slab.0)))
            && self.cache.as_ref().is_none_or(|cache| cache.is_sane(self.copies, known))
    }
}

impl CacheConfig {
    fn is_sane(&self, copies: u8, known: impl Fn(u16) -> bool) -> bool {
        let distinct = |nth: usize| {
            self.copies[..nth].iter().all(|before| before.disk != self.copies[nth].disk)
        };
        let slabs = self.copies.first().map_or(0, |copy| copy.slabs.len());
        self.bytes.is_multiple_of(BLOCK_BYTES)
            && (4 * BLOCK_BYTES..=1 << 44).contains(&self.bytes)
            && slabs > 0
            && self.copies.len() == usize::from(copies)
            && (0..self.copies.len()).all(distinct)
            && self.copies.iter().all(|copy| copy.slabs.len() == slabs && known(copy.disk))
    }
}

/// A cache, or none: then its size is 0.
fn cache(from: &mut Reader) -> Option<Option<CacheConfig>> {
    let bytes = from.u64()?;
    let copy = |from: &mut Reader| {
        let (disk, current) = (from.u16()?, from.u8()? == 1);
        let slabs = (0..from.u32()?).map(|_| from.u32()).collect::<Option<Vec<_>>>()?;
        Some(CacheCopy { disk, current, slabs })
    };
    let copies = (0..from.u32()?).map(|_| copy(from)).collect::<Option<Vec<_>>>()?;
    match (bytes, copies.is_empty()) {
        (0, true) => Some(None),
        (0, false) => None,
        _ => Some(Some(CacheConfig { bytes, copies })),
    }
}

/// At least one list of voters.
fn lists(from: &mut Reader) -> Option<Vec<Vec<u16>>> {
    let list = |from: &mut Reader| (0..from.u32()?).map(|_| from.u16()).collect();
    let lists: Vec<Vec<u16>> = (0..from.u32()?).map(|_| list(from)).collect::<Option<_>>()?;
    (!lists.is_empty()).then_some(lists)
}

fn count(out: &mut Writer, len: usize) {
    out.u32(u32::try_from(len).unwrap_or(0));
}

fn disk(from: &mut Reader) -> Option<DiskConfig> {
    let id = from.u128()?;
    let media = media(from.u8()?)?;
    let state = match from.u8()? {
        0 => DiskState::Online,
        1 => DiskState::Missing,
        2 => DiskState::Retired,
        _ => return None,
    };
    let flags = from.u8()?;
    if flags > 7 {
        return None;
    }
    let known_epoch = from.u32()?;
    let served_epoch = if flags & 4 != 0 { from.u32()? } else { 0 };
    if flags & 4 != 0 && served_epoch == 0 {
        return None;
    }
    Some(DiskConfig {
        id,
        media,
        state,
        metadata: flags & 1 != 0,
        leaving: flags & 2 != 0,
        known_epoch,
        served_epoch,
        device_bytes: from.u64()?,
        name: from.text()?.to_owned(),
    })
}

fn media_code(media: MediaType) -> u8 {
    match media {
        MediaType::Ssd => 0,
        MediaType::Hdd => 1,
    }
}

fn media(code: u8) -> Option<MediaType> {
    match code {
        0 => Some(MediaType::Ssd),
        1 => Some(MediaType::Hdd),
        _ => None,
    }
}

/// A record cut into pages, each with its CRC.
pub(crate) fn pages(pool: u128, record: &[u8]) -> Vec<u8> {
    let seed = checksum::seed(pool);
    let mut out = Vec::with_capacity(record.len().div_ceil(PAYLOAD) * BLOCK_LEN);
    for chunk in record.chunks(PAYLOAD) {
        let start = out.len();
        out.extend_from_slice(chunk);
        out.resize(start + PAYLOAD, 0);
        let crc = checksum::crc(seed, &out[start..]);
        out.extend_from_slice(&crc.to_le_bytes());
    }
    out
}

/// Whether a page is the first one of some pool's record.
pub(crate) fn begins_a_record(page: &[u8]) -> bool {
    let Some((payload, crc)) = page.split_at_checked(PAYLOAD) else { return false };
    let mut from = Reader(payload);
    let mut pool = || {
        Generation::decode(&mut from)?;
        (0..from.u8()?).try_for_each(|_| from.u128().map(drop))?;
        from.u128()
    };
    pool()
        .is_some_and(|pool| Reader(crc).u32() == Some(checksum::crc(checksum::seed(pool), payload)))
}

/// Bytes on disk of a record of `len` bytes.
pub(crate) fn pages_len(len: u32) -> u64 {
    u64::from(len).div_ceil(BLOCK_BYTES - 4) * BLOCK_BYTES
}

/// Puts the pages together again; `None` if one is damaged or they are too few.
pub(crate) fn record(pool: u128, len: u32, pages: &[u8]) -> Option<Vec<u8>> {
    let seed = checksum::seed(pool);
    let mut out = Vec::with_capacity(pages.len());
    for page in pages.chunks(BLOCK_LEN) {
        let (payload, crc) = page.split_at_checked(PAYLOAD)?;
        if Reader(crc).u32()? != checksum::crc(seed, payload) {
            return None;
        }
        out.extend_from_slice(payload);
    }
    let len = usize::try_from(len).ok()?;
    (out.len() >= len).then(|| {
        out.truncate(len);
        out
    })
}
