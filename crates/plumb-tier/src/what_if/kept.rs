//! Curves as bytes, kept from start to start beside the heat map.
//!
//! ```text
//!    0  magic "PLUMWHIF"   8
//!    8  version, 4         4
//!   12  virtual disk      16
//!   28  bytes of an extent 8
//! then for extents and for blocks of 4 KiB:
//!   threshold 8 · references 8 · followed keys 4 · hashes of these, by their last moment, 8 each
//!   for each of 8 groups: all 8 · depths that are not 0, 4 · bucket 4 and weight 8 of each
//!   not in version 1: bursts end at reference 8 · the next begins at 8, all ones: there are none yet · which one 4
//!   for each of 8 groups: the same
//!   what the sample says of bursts: references 8 · depths as above · their variances; the same by group, as above
//!   of the burst under way, or 0: references before it 8 · what the sample said then, as depths
//!   of the burst under way, or 0: references 4 · counted 4 · depths as above · keys 4 · hashes of these, by their last moment, 8 each
//! at the end: CRC-32C of all before 4
//! ```

use plumb_units::convert::{floor_u64, index, low_u32, to_u32};

use super::short::{BUCKETS, END, KEYS, PAUSE_MAX, Short};
use super::{FOLLOWED, Sketch, WhatIf};
use crate::format::bytes::{Reader, Writer};
use crate::format::checksum::crc;

const MAGIC: u64 = u64::from_le_bytes(*b"PLUMWHIF");
const VERSION: u32 = 4;
/// Without bursts.
const VERSION_1: u32 = 1;

impl WhatIf {
    /// Both curves as bytes, for the virtual disk of that id.
    #[must_use]
    pub fn save(&self, vdisk: u128) -> Vec<u8> {
        let mut bytes = Writer::default();
        bytes.u64(MAGIC);
        bytes.u32(VERSION);
        bytes.u128(vdisk);
        bytes.u64(self.extent_bytes);
        self.extents.save(&mut bytes);
        self.blocks.save(&mut bytes);
        bytes.u32(crc(0, &bytes.0));
        bytes.0
    }

    /// Reads curves back; `None` when they are damaged, of another virtual disk, or of extents of another size.
    #[must_use]
    pub fn restore(bytes: &[u8], vdisk: u128, extent_bytes: u64) -> Option<Self> {
        let (body, sum) = bytes.split_last_chunk::<4>()?;
        let mut fields = Reader(body);
        let head = (fields.u64()?, fields.u32()?, fields.u128()?, fields.u64()?);
        let version = head.1;
        let known = [VERSION_1, VERSION].contains(&version)
            && head == (MAGIC, version, vdisk, extent_bytes);
        if !known || crc(0, body) != u32::from_le_bytes(*sum) {
            return None;
        }
        let mut restored = Self::new(extent_bytes);
        for sketch in [&mut restored.extents, &mut restored.blocks] {
            sketch.restore(&mut fields)?;
            if version == VERSION {
                sketch.short.restore(&mut fields, sketch.references)?;
            }
        }
        fields.0.is_empty().then_some(restored)
    }
}

impl Sketch {
    fn save(&self, bytes: &mut Writer) {
        bytes.u64(self.threshold);
        bytes.u64(self.references);
        let order = self.order.in_order();
        bytes.u32(to_u32(order.len()));
        order.iter().for_each(|hash| bytes.u64(*hash));
        for group in &self.groups {
            bytes.u64(group.all.to_bits());
            save_weights(bytes, &group.depths);
        }
        self.short.save(bytes);
    }

    /// Into an empty one.
    fn restore(&mut self, fields: &mut Reader<'_>) -> Option<()> {
        (self.threshold, self.references) = (fields.u64()?, fields.u64()?);
        self.weight = 1.0 / self.rate();
        let count = index(fields.u32()?);
        if count > FOLLOWED {
            return None;
        }
        for _ in 0..count {
            let hash = fields.u64()?;
            if hash >= self.threshold || self.order.refer(hash).is_some() {
                return None;
            }
            self.hashes.push(hash);
        }
        for group in &mut self.groups {
            group.all = weight(fields)?;
            restore_weights(fields, group.depths())?;
        }
        Some(())
    }
}

/// Those that are not 0.
fn save_weights(bytes: &mut Writer, weights: &[f64]) {
    let weights = || weights.iter().enumerate().filter(|(_, weight)| **weight != 0.0);
    bytes.u32(to_u32(weights().count()));
    for (bucket, weight) in weights() {
        bytes.u32(to_u32(bucket));
        bytes.u64(weight.to_bits());
    }
}

fn weight(fields: &mut Reader<'_>) -> Option<f64> {
    let weight = f64::from_bits(fields.u64()?);
    (weight.is_finite() && weight >= 0.0).then_some(weight)
}

fn restore_weights(fields: &mut Reader<'_>, weights: &mut [f64]) -> Option<()> {
    for _ in 0..fields.u32()? {
        let bucket = index(fields.u32()?);
        *weights.get_mut(bucket)? = weight(fields)?;
    }
    Some(())
}

impl Short {
    fn save(&self, bytes: &mut Writer) {
        bytes.u64(self.told);
        bytes.u64(self.next.unwrap_or(u64::MAX));
        bytes.u32(to_u32(self.nth));
        for group in &self.groups {
            bytes.u64(group.all.to_bits());
            save_weights(bytes, group.depths.as_slice());
        }
        let sampled = &self.sampled;
        bytes.u64(sampled.all.to_bits());
        save_weights(bytes, sampled.depths.as_slice());
        save_weights(bytes, sampled.variance.as_slice());
        for group in &sampled.groups {
            bytes.u64(group.all.to_bits());
            save_weights(bytes, group.depths.as_slice());
        }
        bytes.u64(sampled.since);
        save_weights(bytes, sampled.before.as_slice());
        bytes.u32(self.references);
        bytes.u32(self.counted);
        save_weights(bytes, &self.depths.map(f64::from));
        let order = self.order.in_order();
        bytes.u32(to_u32(order.len()));
        order.iter().for_each(|hash| bytes.u64(*hash));
    }

    /// Into one without bursts, after so many references.
    fn restore(&mut self, fields: &mut Reader<'_>, references: u64) -> Option<()> {
        let (told, next) = (fields.u64()?, fields.u64()?);
        self.nth = index(fields.u32()?);
        (self.told, self.next) = (told, (next != u64::MAX).then_some(next));
        if told > references
            || self.next.is_some_and(|next| next > references.saturating_add(PAUSE_MAX))
        {
            return None;
        }
        for group in &mut self.groups {
            group.all = weight(fields)?;
            restore_weights(fields, group.depths.as_mut_slice())?;
        }
        let sampled = &mut self.sampled;
        sampled.all = weight(fields)?;
        restore_weights(fields, sampled.depths.as_mut_slice())?;
        restore_weights(fields, sampled.variance.as_mut_slice())?;
        for group in &mut sampled.groups {
            group.all = weight(fields)?;
            restore_weights(fields, group.depths.as_mut_slice())?;
        }
        sampled.since = fields.u64()?;
        restore_weights(fields, sampled.before.as_mut_slice())?;
        (self.references, self.counted) = (fields.u32()?, fields.u32()?);
        let mut counts = [0.0; BUCKETS];
        restore_weights(fields, &mut counts)?;
        let keys = index(fields.u32()?);
        let too_many = |count: &f64| *count > f64::from(self.counted);
        if counts.iter().any(too_many)
            || self.references > END
            || self.counted > self.references
            || keys > KEYS
        {
            return None;
        }
        for _ in 0..keys {
            if self.order.refer(fields.u64()?).is_some() {
                return None;
            }
        }
        let both = self.depths.iter_mut().zip(counts);
        both.for_each(|(own, count)| *own = low_u32(floor_u64(count)));
        self.under_way = self.references > 0;
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::{HostIo, HostIoKind};
    use crate::random::Random;

    fn feed(what_if: &mut WhatIf, random: &mut Random, count: u32) {
        for _ in 0..count {
            let offset = (random.below(200) * random.below(200)) << 20 | random.below(256) << 12;
            what_if.record(HostIo { kind: HostIoKind::Read, offset, len: 4096 });
        }
    }

    fn curve(what_if: &WhatIf) -> Vec<Option<super::super::WhatIfPoint>> {
        let sizes = (0..40).map(|nth| nth << 28);
        sizes.flat_map(|size| [what_if.by_extents(size), what_if.by_blocks(size)]).collect()
    }

    /// BEY-1: a curve goes on after a restart as if there had been none.
    #[test]
    fn a_curve_that_was_saved_goes_on() {
        let (mut whole, mut random) = (WhatIf::new(1 << 20), Random::new(4));
        feed(&mut whole, &mut random, 30_000);
        let bytes = whole.save(7);
        let mut later = WhatIf::restore(&bytes, 7, 1 << 20).expect("it was saved so");
        assert_eq!(curve(&later), curve(&whole));
        let mut other = Random::new(9);
        feed(&mut whole, &mut other, 30_000);
        feed(&mut later, &mut Random::new(9), 30_000);
        assert_eq!(curve(&later), curve(&whole));
        whole.clear();
        assert_eq!(whole.save(7), WhatIf::new(1 << 20).save(7));
    }

    #[test]
    fn damaged_curves_are_not_read() {
        let (mut what_if, mut random) = (WhatIf::new(1 << 20), Random::new(5));
        feed(&mut what_if, &mut random, 2_000);
        let bytes = what_if.save(7);
        assert!(WhatIf::restore(&bytes, 8, 1 << 20).is_none(), "another virtual disk's");
        assert!(WhatIf::restore(&bytes, 7, 1 << 21).is_none(), "of other extents");
        for _ in 0..200 {
            let mut damaged = bytes.clone();
            let at = usize::try_from(random.below(bytes.len() as u64)).expect("small");
            damaged[at] ^= 1 << random.below(8);
            assert!(WhatIf::restore(&damaged, 7, 1 << 20).is_none(), "byte {at}");
            // Sums that fit say nothing of what they sum up.
            let end = damaged.len() - 4;
            let sum = crc(0, &damaged[..end]);
            damaged[end..].copy_from_slice(&sum.to_le_bytes());
            if let Some(mut read) = WhatIf::restore(&damaged, 7, 1 << 20) {
                feed(&mut read, &mut random, 50);
                curve(&read);
            }
            assert!(WhatIf::restore(&bytes[..at], 7, 1 << 20).is_none());
        }
    }
}
