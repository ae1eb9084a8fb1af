//! Keys by when they were referred to last.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

use plumb_units::convert::index;

use super::moments::Moments;

/// Hashes of keys, no two of which have the same, in the order of their last references.
#[derive(Debug)]
pub(super) struct Order {
    last: HashMap<u64, u32, BuildHasherDefault<Mixed>>,
    /// Which moments are some key's last ones.
    moments: Moments,
    now: usize,
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

impl Order {
    /// With room for so many keys, of which some go and others come.
    pub(super) fn with_room(keys: usize) -> Self {
        let last = HashMap::with_capacity_and_hasher(keys, BuildHasherDefault::default());
        Self { last, moments: Moments::new(), now: 0 }
    }

    pub(super) fn clear(&mut self) {
        self.last.clear();
        self.moments.clear();
        self.now = 0;
    }

    /// Bytes of one with room for so many keys, of which no more than half as many moments as there are at first are known at once.
    pub(super) fn bytes(keys: usize) -> usize {
        let places = (keys * 8 / 7).next_power_of_two();
        places * (size_of::<(u64, u32)>() + 1) + Moments::bytes()
    }

    pub(super) fn len(&self) -> usize {
        self.last.len()
    }

    #[cfg(test)]
    pub(super) fn room(&self) -> usize {
        self.last.capacity()
    }

    #[inline]
    pub(super) fn knows(&self, hash: u64) -> bool {
        self.last.contains_key(&hash)
    }

    /// Refers to a key: how many others were referred to since it was; `None` when it is new.
    #[inline]
    pub(super) fn refer(&mut self, hash: u64) -> Option<u32> {
        if self.now == self.moments.room() {
            self.renumber();
        }
        let now = self.now;
        self.now += 1;
        let before = self.last.insert(hash, u32::try_from(now).expect("few moments"));
        let since = before.map(|before| {
            // Keys whose last moment is after.
            let since = self.moments.after(index(before));
            self.moments.unmark(index(before));
            since
        });
        self.moments.mark(now);
        since
    }

    pub(super) fn remove(&mut self, hash: u64) {
        if let Some(moment) = self.last.remove(&hash) {
            self.moments.unmark(index(moment));
        }
    }

    /// Gives the last moments the numbers from 0 on, in their order.
    fn renumber(&mut self) {
        let order = self.in_order();
        self.moments.clear();
        // At least half of them are free then.
        if order.len() > self.moments.room() / 2 {
            self.moments.grow(2 * self.moments.room());
        }
        self.now = order.len();
        for (moment, key) in (0..).zip(order) {
            self.last.insert(key, moment);
            self.moments.mark(index(moment));
        }
    }

    /// All of them, who was referred to last as the last.
    pub(super) fn in_order(&self) -> Vec<u64> {
        let mut order: Vec<(u32, u64)> = self.last.iter().map(|(key, at)| (*at, *key)).collect();
        order.sort_unstable();
        order.into_iter().map(|(_, key)| key).collect()
    }
}
