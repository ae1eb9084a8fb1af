//! What a cache or tier of any size would serve (BEY-1): SHARDS, a miss-ratio curve from a sample of fixed size.
//!
//! Keys whose hash is below a threshold are followed; when they are too many, the threshold falls. A key's reuse
//! distance among the followed ones, divided by the rate at which they are followed, estimates the size of the
//! least recently used cache that would have served it. Waldspurger et al., "Efficient MRC construction with
//! SHARDS", FAST 2015: fixed size (section 4).
//!
//! Where that is too coarse, for caches of few keys, all keys are followed from time to time (`short.rs`).

mod curve;
mod kept;
mod moments;
mod order;
mod short;

use std::collections::BinaryHeap;

use plumb_units::convert::{floor_u64, to_u64, to_usize};

use crate::heat::HostIo;
use crate::log_buckets;
use curve::Curve;
use order::Order;
use short::{BUCKETS, Edge, Sample, Short};

/// Keys that are followed (BEY-1).
const FOLLOWED: usize = 8192;
/// The same where nobody waits.
const FOLLOWED_OFFLINE: usize = 1 << 18;
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
    /// Standard error of the share; where the curve has a step, how far it is from what smaller and larger caches serve.
    pub error: f64,
}

impl WhatIf {
    /// Empty, for extents of `extent_bytes`.
    ///
    /// # Panics
    /// When that is 0.
    #[must_use]
    pub fn new(extent_bytes: u64) -> Self {
        Self::following(extent_bytes, FOLLOWED)
    }

    /// The same for whoever has more time and memory than a storage space under load: 262,144 keys of a granularity are followed, and as
    /// long as there are no more the curve is exact.
    ///
    /// # Panics
    /// When that is 0.
    #[must_use]
    pub fn offline(extent_bytes: u64) -> Self {
        Self::following(extent_bytes, FOLLOWED_OFFLINE)
    }

    fn following(extent_bytes: u64, keys: usize) -> Self {
        assert!(extent_bytes > 0, "an extent has bytes");
        Self { extent_bytes, extents: Sketch::new(keys), blocks: Sketch::new(keys) }
    }

    /// Follows a host I/O: a reference to each extent and to each block that it touches.
    pub fn record(&mut self, io: HostIo) {
        self.record_all(&[io]);
    }

    /// Follows these host I/Os, in order. One granularity after the other: what each knows of its keys is then near the
    /// processor while it is needed.
    pub fn record_all(&mut self, ios: &[HostIo]) {
        // Looked up together, what is far away arrives together.
        let known = |io: &&HostIo| self.extents.knows(io.offset / self.extent_bytes);
        std::hint::black_box(ios.iter().filter(known).count());
        self.extents.record(ios, self.extent_bytes);
        self.blocks.record(ios, BLOCK);
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

    /// Bytes of memory that it takes, at most, beside a storage space.
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

/// The last byte that it touches.
#[inline]
fn end(io: &HostIo) -> u64 {
    io.offset.saturating_add(io.len.max(1) - 1)
}

/// One granularity.
#[derive(Debug)]
struct Sketch {
    limit: usize,
    /// Keys with a hash below are followed.
    threshold: u64,
    /// The followed keys' hashes.
    order: Order,
    /// The same, the greatest first.
    hashes: BinaryHeap<u64>,
    /// References that each that is followed stands for.
    weight: f64,
    groups: Vec<Group>,
    references: u64,
    short: Short,
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
            order: Order::with_room(2 * (limit + 1)),
            hashes: BinaryHeap::with_capacity(limit + 1),
            weight: 1.0,
            groups: vec![Group { all: 0.0, depths: Vec::new() }; GROUPS],
            references: 0,
            short: Short::new(),
        }
    }

    fn clear(&mut self) {
        self.threshold = u64::MAX;
        self.order.clear();
        self.hashes.clear();
        self.short.clear();
        (self.references, self.weight) = (0, 1.0);
        for group in &mut self.groups {
            group.all = 0.0;
            group.depths.fill(0.0);
        }
    }

    fn bytes(&self) -> u64 {
        let heap = self.hashes.capacity() * size_of::<u64>();
        let buckets = GROUPS * log_buckets::COUNT * size_of::<f64>();
        to_u64(Order::bytes(2 * (self.limit + 1)) + heap + buckets + Short::bytes())
    }

    /// Share of keys that are followed.
    fn rate(&self) -> f64 {
        (self.threshold as f64 / u64::MAX as f64).max(f64::MIN_POSITIVE)
    }

    /// Follows these I/Os, in units of so many bytes. A burst that is due meanwhile begins with the next ones.
    #[inline]
    fn record(&mut self, ios: &[HostIo], unit: u64) {
        if self.short.is_due(self.references) {
            self.record_in_burst(ios, unit);
            return;
        }
        for io in ios {
            for key in io.offset / unit..=end(io) / unit {
                self.refer(key);
            }
        }
    }

    /// The same, while a burst is under way or due.
    #[cold]
    #[inline(never)]
    fn record_in_burst(&mut self, ios: &[HostIo], unit: u64) {
        for io in ios {
            for key in io.offset / unit..=end(io) / unit {
                self.refer(key);
                if self.short.is_due(self.references) {
                    self.burst(key);
                }
            }
        }
    }

    /// What the followed keys say of short distances.
    fn sampled(&self) -> [f64; BUCKETS] {
        let mut depths = [0.0; BUCKETS];
        for group in self.groups.iter().filter(|group| !group.depths.is_empty()) {
            depths.iter_mut().zip(&group.depths).for_each(|(sum, own)| *sum += own);
        }
        depths
    }

    /// The last reference was to this key, and a burst is under way or due.
    fn burst(&mut self, key: u64) {
        let edge = self.short.follow(hash(key), self.references);
        if edge != Edge::None {
            let depths = self.sampled();
            let (references, weight) = (self.references, self.weight);
            self.short.compare(edge, Sample { references, weight, depths: &depths });
        }
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
        hash < self.threshold && self.order.knows(hash)
    }

    fn follow(&mut self, hash: u64) {
        let weight = self.weight;
        let since = self.order.refer(hash);
        let group = &mut self.groups[to_usize(hash % to_u64(GROUPS))];
        group.all += weight;
        match since {
            Some(since) => {
                let depth = 1 + floor_u64(f64::from(since) * weight);
                group.depths()[log_buckets::bucket(depth)] += weight;
            }
            None => {
                self.hashes.push(hash);
                self.shrink();
            }
        }
    }

    /// Follows fewer keys while there are too many.
    fn shrink(&mut self) {
        while self.order.len() > self.limit {
            let Some(hash) = self.hashes.pop() else { return };
            if self.threshold == u64::MAX {
                // Until now each distance was known.
                let depths = self.sampled();
                self.short.begin(self.references, &depths);
            }
            // From now on what has this hash is not followed, nor what was followed with it.
            self.threshold = hash;
            self.weight = 1.0 / self.rate();
            self.order.remove(hash);
        }
    }

    fn point(&self, bytes: u64, unit: u64) -> Option<WhatIfPoint> {
        if self.references == 0 {
            return None;
        }
        let (share, error) = Curve::of(self).point(bytes / unit);
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
        assert!(what_if.blocks.order.room() <= 32_768 / 8 * 7, "the map has not grown");
        assert!(what_if.blocks.rate() < 0.05 && what_if.blocks.order.len() == FOLLOWED);
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

    /// Data that are read in a circle are served all or not at all: where a cache is about as large, the curve says that it cannot tell.
    #[test]
    fn an_error_is_shown_where_a_cache_is_as_large_as_a_loop() {
        let (mut checked, mut far) = (0, 0);
        for extents in (12_000..60_000_u64).step_by(2_400) {
            let mut what_if = WhatIf::new(1 << 20);
            let references = extents * 5;
            for nth in 0..references {
                what_if.record(io((nth % extents) << 20, 4096));
            }
            for per_mille in [900, 980, 990, 995, 1000, 1005, 1010, 1020, 1100] {
                let size = extents * per_mille / 1000;
                let point = what_if.by_extents(size << 20).expect("references");
                let exact = if size < extents { 0.0 } else { 0.8 };
                let off = (point.share - exact).abs();
                if [900, 1100].contains(&per_mille) {
                    assert!(off < 0.02 && point.error < 0.02, "{extents}, {per_mille}: {point:?}");
                }
                println!("{extents} {per_mille}: {point:?}");
                checked += 1;
                far += u32::from(off > 2.0 * point.error + 0.01);
            }
        }
        println!("{far} of {checked} far");
        assert!(far * 20 <= checked, "{far} of {checked}");
    }
}
