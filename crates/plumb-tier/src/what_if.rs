//! What a cache or tier of any size would serve (BEY-1): SHARDS, a miss-ratio curve from a sample of fixed size.
//!
//! Keys whose hash is below a threshold are followed; when they are too many, the threshold falls. A key's reuse
//! distance among the followed ones, divided by the rate at which they are followed, estimates the size of the
//! least recently used cache that would have served it. Waldspurger et al., "Efficient MRC construction with
//! SHARDS", FAST 2015: fixed size (section 4), with the correction for the sample's share of references (SHARDS-adj).

mod kept;
mod moments;

use std::collections::{BinaryHeap, HashMap};
use std::hash::{BuildHasherDefault, Hasher};

use plumb_units::convert::{floor_u64, index, to_u64, to_usize};

use crate::heat::HostIo;
use crate::log_buckets;
use moments::{MOMENTS, Moments};

/// Keys that are followed (BEY-1).
const FOLLOWED: usize = 8192;
/// Followed keys fall into so many groups, each an estimate of its own: their spread is the error shown.
const GROUPS: usize = 8;
/// Curves of both granularities.
#[derive(Debug)]
pub struct WhatIf {
    extent_bytes: u64,
    extents: Sketch,
    blocks: Sketch,
}

/// Bytes of a block.
const BLOCK: u64 = 4096;

/// A point of a curve.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct WhatIfPoint {
    /// Bytes of the cache.
    pub bytes: u64,
    /// Share of references that it would serve, 0 to 1.
    pub share: f64,
    /// Standard error of the share.
    pub error: f64,
}

impl WhatIf {
    /// Empty, for extents of `extent_bytes`.
    ///
    /// # Panics
    /// When that is 0.
    #[must_use]
    pub fn new(extent_bytes: u64) -> Self {
        assert!(extent_bytes > 0, "an extent has bytes");
        Self { extent_bytes, extents: Sketch::new(FOLLOWED), blocks: Sketch::new(FOLLOWED) }
    }

    /// Follows a host I/O: a reference to each extent and to each block that it touches.
    pub fn record(&mut self, io: HostIo) {
        self.record_all(&[io]);
    }

    /// Follows these host I/Os, in order. One granularity after the other: what each knows of its keys is then near the
    /// processor while it is needed.
    pub fn record_all(&mut self, ios: &[HostIo]) {
        let end = |io: &HostIo| io.offset.saturating_add(io.len.max(1) - 1);
        // Looked up together, what is far away arrives together.
        let known = |io: &&HostIo| self.extents.knows(io.offset / self.extent_bytes);
        std::hint::black_box(ios.iter().filter(known).count());
        for io in ios {
            for extent in io.offset / self.extent_bytes..=end(io) / self.extent_bytes {
                self.extents.refer(extent);
            }
        }
        for io in ios {
            for block in io.offset / BLOCK..=end(io) / BLOCK {
                self.blocks.refer(block);
            }
        }
    }

    /// What a cache of whole extents would serve, least recently used out first.
    #[must_use]
    pub fn by_extents(&self, bytes: u64) -> Option<WhatIfPoint> {
        self.extents.point(bytes, self.extent_bytes)
    }

    /// The same with blocks of 4 KiB.
    #[must_use]
    pub fn by_blocks(&self, bytes: u64) -> Option<WhatIfPoint> {
        self.blocks.point(bytes, BLOCK)
    }

    /// Bytes of memory that it takes, at most.
    #[must_use]
    pub fn bytes(&self) -> u64 {
        self.extents.bytes() + self.blocks.bytes()
    }

    /// Forgets what it followed; no memory is given back or asked for.
    pub fn clear(&mut self) {
        self.extents.clear();
        self.blocks.clear();
    }
}

/// One granularity.
#[derive(Debug)]
struct Sketch {
    limit: usize,
    /// Keys with a hash below are followed.
    threshold: u64,
    /// When each followed key was last referred to, by its hash: no two keys have the same.
    last: HashMap<u64, u32, BuildHasherDefault<Mixed>>,
    /// Of the followed keys, the greatest first.
    hashes: BinaryHeap<u64>,
    /// Which moments are some key's last ones.
    moments: Moments,
    now: usize,
    /// References that each that is followed stands for.
    weight: f64,
    groups: Vec<Group>,
    references: u64,
}

/// Hashes what is a hash already.
#[derive(Debug, Default)]
struct Mixed(u64);

impl Hasher for Mixed {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|byte| self.0 = self.0.rotate_left(8) ^ u64::from(*byte));
    }

    #[inline]
    fn write_u64(&mut self, hash: u64) {
        // All followed hashes are small once the threshold has fallen, and tables look at the highest bits, too.
        self.0 = hash.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ hash.rotate_left(32);
    }
}

/// References to the keys of one group, each for as many as it stands for.
#[derive(Debug, Clone)]
struct Group {
    all: f64,
    /// By the least cache that would have had it; empty before the first.
    depths: Vec<f64>,
}

/// SplitMix64's finalizer: a permutation of 64-bit numbers.
fn hash(key: u64) -> u64 {
    let mut z = key.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

impl Sketch {
    fn new(limit: usize) -> Self {
        Self {
            limit,
            threshold: u64::MAX,
            // Twice the room: the map renews itself in place when keys come and go.
            last: HashMap::with_capacity_and_hasher(2 * (limit + 1), BuildHasherDefault::default()),
            hashes: BinaryHeap::with_capacity(limit + 1),
            moments: Moments::new(),
            now: 0,
            weight: 1.0,
            groups: vec![Group { all: 0.0, depths: Vec::new() }; GROUPS],
            references: 0,
        }
    }

    fn clear(&mut self) {
        self.threshold = u64::MAX;
        self.last.clear();
        self.hashes.clear();
        self.moments.clear();
        (self.now, self.references, self.weight) = (0, 0, 1.0);
        for group in &mut self.groups {
            group.all = 0.0;
            group.depths.fill(0.0);
        }
    }

    fn bytes(&self) -> u64 {
        let places = (2 * (self.limit + 1) * 8 / 7).next_power_of_two();
        let map = places * (size_of::<(u64, u32)>() + 1);
        let heap = self.hashes.capacity() * size_of::<u64>();
        let buckets = GROUPS * log_buckets::COUNT * size_of::<f64>();
        to_u64(map + heap + buckets + Moments::bytes())
    }

    /// Share of keys that are followed.
    fn rate(&self) -> f64 {
        (self.threshold as f64 / u64::MAX as f64).max(f64::MIN_POSITIVE)
    }

    #[inline]
    fn refer(&mut self, key: u64) {
        self.references += 1;
        let hash = hash(key);
        if hash < self.threshold {
            self.follow(hash);
        }
    }

    #[inline]
    fn knows(&self, key: u64) -> bool {
        let hash = hash(key);
        hash < self.threshold && self.last.contains_key(&hash)
    }

    fn follow(&mut self, hash: u64) {
        if self.now == MOMENTS {
            self.renumber();
        }
        let (now, weight) = (self.now, self.weight);
        self.now += 1;
        let moment = u32::try_from(now).expect("few moments");
        let before = self.last.insert(hash, moment);
        let group = &mut self.groups[to_usize(hash % to_u64(GROUPS))];
        group.all += weight;
        match before {
            Some(before) => {
                // Followed keys whose last moment is after: those referred to since.
                let since = self.moments.after(index(before));
                let depth = 1 + floor_u64(since as f64 * weight);
                group.depths()[log_buckets::bucket(depth)] += weight;
                self.moments.unmark(index(before));
                self.moments.mark(now);
            }
            None => {
                self.moments.mark(now);
                self.hashes.push(hash);
                self.shrink();
            }
        }
    }

    /// Follows fewer keys while there are too many.
    fn shrink(&mut self) {
        while self.last.len() > self.limit {
            let Some(hash) = self.hashes.pop() else { return };
            // From now on what has this hash is not followed, nor what was followed with it.
            self.threshold = hash;
            self.weight = 1.0 / self.rate();
            if let Some(moment) = self.last.remove(&hash) {
                self.moments.unmark(index(moment));
            }
        }
    }

    /// Gives the last moments the numbers from 0 on, in their order.
    fn renumber(&mut self) {
        let mut order: Vec<(u32, u64)> = self.last.iter().map(|(key, at)| (*at, *key)).collect();
        order.sort_unstable();
        self.moments.clear();
        self.now = order.len();
        for (moment, (_, key)) in (0..).zip(order) {
            self.last.insert(key, moment);
            self.moments.mark(index(moment));
        }
    }

    fn point(&self, bytes: u64, unit: u64) -> Option<WhatIfPoint> {
        if self.references == 0 {
            return None;
        }
        let size = bytes / unit;
        // Each group stands for an equal part of all references. What it has too few or too many of are
        // references to few very hot keys, which any cache serves.
        let part = self.references as f64 / GROUPS as f64;
        let shares: Vec<f64> =
            self.groups.iter().map(|group| 1.0 - (group.all - group.served(size)) / part).collect();
        let mean = shares.iter().sum::<f64>() / GROUPS as f64;
        let spread = shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>();
        let error = match self.threshold {
            u64::MAX => 0.0,
            _ => (spread / (GROUPS * (GROUPS - 1)) as f64).sqrt(),
        };
        let share = if size == 0 { 0.0 } else { mean.clamp(0.0, 1.0) };
        Some(WhatIfPoint { bytes, share, error })
    }
}

impl Group {
    /// The weights by depth, to be changed.
    #[inline]
    fn depths(&mut self) -> &mut [f64] {
        if self.depths.is_empty() {
            self.depths = vec![0.0; log_buckets::COUNT];
        }
        &mut self.depths
    }

    /// References that a cache of so many keys serves.
    fn served(&self, size: u64) -> f64 {
        if self.depths.is_empty() {
            return 0.0;
        }
        let end = log_buckets::bucket(size);
        let (first, width) = log_buckets::range(end);
        let within = (size - first + 1).min(width) as f64 / width as f64;
        self.depths[..end].iter().sum::<f64>() + self.depths[end] * within
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heat::HostIoKind;
    use crate::random::Random;

    fn io(offset: u64, len: u64) -> HostIo {
        HostIo { kind: HostIoKind::Read, offset, len }
    }

    fn share(point: Option<WhatIfPoint>) -> f64 {
        point.expect("references").share
    }

    #[test]
    fn few_keys_are_followed_all_and_the_curve_is_exact() {
        let mut what_if = WhatIf::new(1 << 20);
        assert_eq!(what_if.by_extents(1 << 30), None);
        // Round robin over 100 extents: 99 places serve nothing, 100 all but the first round.
        for nth in 0..10_000_u64 {
            what_if.record(io((nth % 100) << 20, 4096));
        }
        assert_eq!(share(what_if.by_extents(99 << 20)), 0.0);
        assert!((share(what_if.by_extents(100 << 20)) - 0.99).abs() < 1e-9);
        assert!((share(what_if.by_blocks(100 << 12)) - 0.99).abs() < 1e-9);
        assert_eq!(share(what_if.by_extents(0)), 0.0);
        assert_eq!(what_if.by_extents(1 << 40).map(|point| point.error), Some(0.0));
    }

    #[test]
    fn it_takes_no_more_memory_for_more_keys() {
        let mut what_if = WhatIf::new(1 << 20);
        let before = what_if.bytes();
        let mut random = Random::new(2);
        for _ in 0..300_000 {
            what_if.record(io(random.below(1 << 44) & !4095, 8192));
        }
        assert_eq!(what_if.bytes(), before);
        assert!(before <= 2 << 20, "{before} bytes for two sketches of 1 MiB");
        assert!(what_if.blocks.last.capacity() <= 32_768 / 8 * 7, "the map has not grown");
        assert!(what_if.blocks.rate() < 0.05 && what_if.blocks.last.len() == FOLLOWED);
    }

    #[test]
    fn the_error_shown_is_about_the_error_made() {
        // Uniform over 60,000 extents: a cache of a share of them serves that share.
        let mut what_if = WhatIf::new(1 << 20);
        let mut random = Random::new(3);
        for _ in 0..600_000 {
            what_if.record(io(random.below(60_000) << 20, 512));
        }
        for tenths in 1..10 {
            let point = what_if.by_extents((tenths * 6000) << 20).expect("references");
            // In steady state a cache of a share of the keys serves that share; until it is full, after
            // -ln(1 - share) references per key, all that it has seen. There are 10 references per key.
            let size = tenths as f64 / 10.0;
            let full = -(1.0 - size).ln();
            let exact = size + (full * (1.0 - size) - size) / 10.0;
            let off = (point.share - exact).abs();
            assert!(off < 0.02, "{tenths}: {point:?}, not {exact}");
            assert!(point.error > 0.0 && point.error < 0.02, "{point:?}");
            assert!(off < 5.0 * point.error + 0.005, "{point:?}, not {exact}");
        }
    }
}
