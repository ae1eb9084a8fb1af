//! What any placement, or a cache, could have served: bounds without devices.

use std::collections::HashMap;

use plumb_units::convert::{index, to_usize};

/// Every hour the extents that will take most of its I/O are on the Performance tier: no placement that changes once
/// an hour serves more.
#[derive(Debug)]
pub(super) struct Clairvoyant {
    /// Extents of each tier size.
    sizes: Vec<u64>,
    counts: Vec<u32>,
    touched: Vec<u32>,
    pub(super) served: Vec<u64>,
    pub(super) total: u64,
}

impl Clairvoyant {
    pub(super) fn new(sizes: Vec<u64>) -> Self {
        let served = vec![0; sizes.len()];
        Self { sizes, counts: Vec::new(), touched: Vec::new(), served, total: 0 }
    }

    pub(super) fn count(&mut self, extent: u32, ios: u32) {
        if self.counts.len() <= index(extent) {
            self.counts.resize(index(extent) + 1, 0);
        }
        let count = &mut self.counts[index(extent)];
        if *count == 0 && ios > 0 {
            self.touched.push(extent);
        }
        *count = count.saturating_add(ios);
        self.total += u64::from(ios);
    }

    /// An hour is over.
    pub(super) fn end_hour(&mut self) {
        let mut hour: Vec<u32> = self
            .touched
            .drain(..)
            .map(|extent| std::mem::take(&mut self.counts[index(extent)]))
            .collect();
        hour.sort_unstable_by(|one, other| other.cmp(one));
        for (size, served) in self.sizes.iter().zip(&mut self.served) {
            let most = hour.len().min(to_usize(*size));
            *served += hour[..most].iter().map(|count| u64::from(*count)).sum::<u64>();
        }
    }
}

/// A cache of extents, the least recently used out first, exactly.
#[derive(Debug)]
pub(super) struct LruCache {
    size: usize,
    places: HashMap<u32, u32>,
    /// Extent, newer, older.
    entries: Vec<(u32, u32, u32)>,
    newest: u32,
    oldest: u32,
    pub(super) served: u64,
}

const NOBODY: u32 = u32::MAX;

impl LruCache {
    pub(super) fn new(size: u64) -> Self {
        Self {
            size: to_usize(size.min(u64::from(NOBODY - 1))),
            places: HashMap::new(),
            entries: Vec::new(),
            newest: NOBODY,
            oldest: NOBODY,
            served: 0,
        }
    }

    pub(super) fn refer(&mut self, extent: u32) {
        if self.size == 0 {
            return;
        }
        if let Some(place) = self.places.get(&extent).copied() {
            self.served += 1;
            self.take_out(place);
            self.put_first(place);
            return;
        }
        let place = if self.entries.len() < self.size {
            self.entries.push((extent, NOBODY, NOBODY));
            u32::try_from(self.entries.len() - 1).unwrap_or(NOBODY)
        } else {
            let oldest = self.oldest;
            self.take_out(oldest);
            self.places.remove(&self.entries[index(oldest)].0);
            self.entries[index(oldest)].0 = extent;
            oldest
        };
        self.places.insert(extent, place);
        self.put_first(place);
    }

    fn take_out(&mut self, place: u32) {
        let (_, newer, older) = self.entries[index(place)];
        match newer {
            NOBODY => self.newest = older,
            newer => self.entries[index(newer)].2 = older,
        }
        match older {
            NOBODY => self.oldest = newer,
            older => self.entries[index(older)].1 = newer,
        }
    }

    fn put_first(&mut self, place: u32) {
        let before = std::mem::replace(&mut self.newest, place);
        self.entries[index(place)].1 = NOBODY;
        self.entries[index(place)].2 = before;
        match before {
            NOBODY => self.oldest = place,
            before => self.entries[index(before)].1 = place,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn a_cache_is_what_a_list_with_the_newest_first_is() {
        let mut random = Random::new(5);
        for size in [1, 2, 7, 50, 400] {
            let (mut cache, mut list, mut served) = (LruCache::new(size), Vec::new(), 0);
            for _ in 0..5000 {
                let extent = u32::try_from(random.below(20) * random.below(20)).expect("small");
                cache.refer(extent);
                if let Some(at) = list.iter().position(|known| *known == extent) {
                    list.remove(at);
                    served += 1;
                }
                list.insert(0, extent);
                list.truncate(to_usize(size));
                assert_eq!(cache.served, served);
            }
        }
        let mut none = LruCache::new(0);
        none.refer(1);
        none.refer(1);
        assert_eq!(none.served, 0);
    }

    #[test]
    fn who_sees_the_hour_serves_its_hottest() {
        let mut seer = Clairvoyant::new(vec![1, 2, 100]);
        for (extent, ios) in [(5, 10), (9, 7), (5, 1), (2, 3)] {
            seer.count(extent, ios);
        }
        seer.end_hour();
        seer.count(2, 4);
        seer.end_hour();
        assert_eq!((seer.served, seer.total), (vec![15, 22, 25], 25));
    }
}
