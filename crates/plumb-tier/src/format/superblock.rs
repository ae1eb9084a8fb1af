//! The superblock of a device (LAY-1).

use super::BLOCK_LEN;
use super::bytes::{Reader, Writer};
use super::checksum;
use super::config::Generation;
use super::geometry::Geometry;

const MAGIC: u64 = u64::from_le_bytes(*b"PLUMBSB1");
const MAJOR: u16 = 1;
const MINOR: u16 = 0;
/// Which writer made it: raised when one of this format behaves differently.
const WRITER: u128 = 0x706c_756d_622d_7469_6572_2d30_3030_3031;

/// One configuration record as a superblock names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct RecordName {
    /// Bytes of the record, 0 for none.
    pub(crate) len: u32,
    /// Digest over them.
    pub(crate) digest: u128,
}

/// What a device says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Superblock {
    pub(crate) incompat: u32,
    pub(crate) ro_compat: u32,
    pub(crate) pool: u128,
    pub(crate) device: u128,
    pub(crate) ordinal: u16,
    pub(crate) sector: u32,
    pub(crate) device_bytes: u64,
    pub(crate) geometry: Geometry,
    pub(crate) created: u64,
    /// Raised by every update.
    pub(crate) version: u64,
    pub(crate) generation: Generation,
    pub(crate) epoch_started: u32,
    /// The last epoch of which this device knows that it was served: every voter had reached it before.
    pub(crate) epoch_served: u32,
    /// Which configuration area is in force.
    pub(crate) area: u8,
    pub(crate) records: [RecordName; 2],
}

impl Superblock {
    /// The last epoch that this device took part in, be it in a start that was cut short.
    pub(crate) fn reached(&self) -> u32 {
        self.epoch_started.max(self.generation.epoch)
    }

    /// One 4 KiB copy.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut out = Writer(Vec::with_capacity(BLOCK_LEN));
        out.u64(MAGIC);
        out.u16(MAJOR);
        out.u16(MINOR);
        out.u32(self.incompat);
        out.u32(self.ro_compat);
        out.u32(0);
        out.u128(self.pool);
        out.u128(self.device);
        out.u16(self.ordinal);
        out.u32(self.sector);
        out.u32(512);
        out.u64(self.device_bytes);
        out.u64(self.geometry.config_bytes);
        out.u64(self.geometry.journal_bytes);
        out.u64(self.geometry.tree_bytes);
        out.u64(self.geometry.slab_bytes);
        out.u64(self.created);
        out.u64(self.version);
        self.generation.encode(&mut out);
        out.u32(self.epoch_started);
        out.u8(self.area);
        for record in &self.records {
            out.u32(record.len);
            out.u128(record.digest);
        }
        out.u128(WRITER);
        out.u32(self.epoch_served);
        out.0.resize(BLOCK_LEN - 4, 0);
        let crc = checksum::crc(checksum::seed(self.pool), &out.0);
        out.u32(crc);
        out.0
    }

    /// Reads a copy; `None` unless every byte is as this version writes it. Feature words are returned,
    /// not judged.
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let body = bytes.get(..BLOCK_LEN - 4)?;
        let stored = Reader(bytes.get(BLOCK_LEN - 4..BLOCK_LEN)?).u32()?;
        let mut from = Reader(body);
        if from.u64()? != MAGIC || from.u16()? != MAJOR {
            return None;
        }
        let _minor = from.u16()?;
        let (incompat, ro_compat, _compat) = (from.u32()?, from.u32()?, from.u32()?);
        let pool = from.u128()?;
        if checksum::crc(checksum::seed(pool), body) != stored {
            return None;
        }
        let device = from.u128()?;
        let (ordinal, sector, _logical) = (from.u16()?, from.u32()?, from.u32()?);
        let device_bytes = from.u64()?;
        let geometry = Geometry {
            config_bytes: from.u64()?,
            journal_bytes: from.u64()?,
            tree_bytes: from.u64()?,
            slab_bytes: from.u64()?,
        };
        let (created, version) = (from.u64()?, from.u64()?);
        let generation = Generation::decode(&mut from)?;
        let (epoch_started, area) = (from.u32()?, from.u8()?);
        let mut records = [RecordName::default(); 2];
        for record in &mut records {
            *record = RecordName { len: from.u32()?, digest: from.u128()? };
        }
        let (_writer, epoch_served) = (from.u128()?, from.u32()?);
        // What is reserved lies on the device, so nothing that is made for it outgrows the device.
        let fits = geometry.is_sane() && geometry.slab(0) + (1 << 20) <= device_bytes;
        // Nobody says that an epoch is served before it has reached it.
        let reached = epoch_served <= epoch_started.max(generation.epoch);
        let sane = fits && reached && area < 2 && sector.is_power_of_two();
        sane.then_some(Self {
            incompat,
            ro_compat,
            pool,
            device,
            ordinal,
            sector,
            device_bytes,
            geometry,
            created,
            version,
            generation,
            epoch_started,
            epoch_served,
            area,
            records,
        })
    }
}
