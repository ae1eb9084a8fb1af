//! A workload by name: a virtual disk so large that the trees of map and checksums have index pages, of which each checkpoint
//! writes some anew, and which a power cut may find half written.
//!
//! To the history it is as small as the others: what it knows lies far apart on the virtual disk, below several leaves of
//! each tree.

use plumb_units::convert::{index, to_u64};

use super::history::{EXTENT_BYTES, Shape};
use super::unborne::Workload;
use crate::random::Random;

/// Extents of its tiers, of which some are spare: two leaves of the map, and seventeen of the checksums.
const EXTENTS: u64 = 1120;
/// Where those lie that the history knows: beside each other, below other leaves of the checksums, and on both sides of the
/// border between the leaves of the map.
const PLACES: [u64; 8] = [0, 1, 130, 511, 700, 1019, 1020, 1031];

/// Bytes of the virtual disk.
pub(super) const BYTES: u64 = EXTENTS * EXTENT_BYTES as u64;
/// Slabs of such a disk, at one column.
pub(super) const SLABS: u32 = 300;
/// Bytes of the trees: twice all their pages, and some.
pub(super) const TREE_BYTES: u64 = 256 << 10;

/// A shape for a seed.
pub(super) fn shape(seed: u64) -> Shape {
    let mut random = Random::new(seed ^ 0x31de);
    let (disks, rotating, copies, columns) = match random.below(8) {
        0 => (2, 0, 2, 1),
        1 | 2 => (3, 0, 2, 1),
        3 => (4, 0, 2, 2),
        4 => (3, 0, 3, 1),
        5 | 6 => (4, 2, 2, 1),
        _ => (5, 2, 2, 1),
    };
    let cache = if rotating > 0 && !random.one_in(4) { 64 << 10 } else { 0 };
    // Of random numbers of its own, for the low bits of the seed are always the same.
    let seed = random.next();
    Shape { disks, rotating, copies, columns, cache, seed, workload: Workload::Wide }
}

impl Shape {
    /// Whether what the history knows lies far apart.
    pub(super) fn is_wide(&self) -> bool {
        matches!(self.workload, Workload::Wide | Workload::Short)
    }
}

/// Where an address of the history lies.
pub(super) fn place(offset: u64) -> u64 {
    let extent = u64::from(EXTENT_BYTES);
    // Behind the end: of a request without bytes.
    let of = PLACES.get(index_of(offset / extent)).copied().unwrap_or(EXTENTS);
    of * extent + offset % extent
}

/// The address that the history has for one of the virtual disk.
pub(super) fn known_as(offset: u64) -> Option<u64> {
    let extent = u64::from(EXTENT_BYTES);
    let nth = PLACES.iter().position(|place| *place == offset / extent)?;
    Some(to_u64(nth) * extent + offset % extent)
}

fn index_of(nth: u64) -> usize {
    u32::try_from(nth).map_or(usize::MAX, index)
}

#[cfg(test)]
mod tests {
    use super::super::kinds::Kind;
    use super::super::states::{Broken, Tally, check};
    use super::super::{STEPS, history_seed, usual};
    use super::*;
    use crate::mutation::{Mutation, set};

    fn one(nth: u64, states: u64, tally: &mut Tally) -> Result<(), (Shape, Broken)> {
        let (shape, history, _) = usual(Kind::Wide.mark(history_seed(0x31de, nth)), STEPS);
        assert!(shape.is_wide());
        check(&shape, &history, states, nth, tally).map_err(|broken| (shape, broken))
    }

    /// T1's combination by name: torn checkpoint pages, of trees of two levels. `PLUMB_WIDE=N` checks the first N histories.
    #[test]
    fn index_pages_are_cut_like_all_others() {
        let named = std::env::var("PLUMB_WIDE").ok().and_then(|text| text.parse().ok());
        let mut tally = Tally::default();
        for nth in 0..named.unwrap_or(16) {
            if let Err((shape, broken)) = one(nth, 24, &mut tally) {
                panic!("history {nth} of {shape:?}: {broken:?}");
            }
        }
        println!("{} states, {} of them with index pages", tally.states, tally.indexed);
        assert!(tally.states > 200 && tally.indexed * 2 > tally.states, "{tally:?}");
        assert!(tally.failed_disk > 50, "{tally:?}");
    }

    /// An index page that a checkpoint writes over the one in force is noticed.
    #[test]
    fn broken_rules_of_index_pages_are_noticed() {
        set(Some(Mutation::IndexInPlace));
        let caught = (0..60).find(|nth| one(*nth, 24, &mut Tally::default()).is_err());
        set(None);
        println!("IndexInPlace: history {caught:?}");
        assert!(caught.is_some(), "it is not noticed");
    }

    #[test]
    fn addresses_are_found_again() {
        let known = u64::from(EXTENT_BYTES) * 8;
        for offset in (0..known).step_by(4096) {
            assert_eq!(known_as(place(offset)), Some(offset));
        }
        assert_eq!(known_as(2 * u64::from(EXTENT_BYTES)), None);
        assert_eq!(place(known), BYTES);
    }
}
