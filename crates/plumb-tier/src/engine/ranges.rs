//! Which extents a new virtual disk gets: those that removed ones had, or others behind all.
//!
//! The configuration lists virtual disks in the order of their extents, and the journal knows the logs of caches by their
//! places in that list. So what is there keeps its extents and its place. Entries of removed ones that follow each
//! other are one range: how its extents are spread over its entries is free, and an entry may have none. A range of one entry
//! can be cut at the end of the list only, where entries are added; so each virtual disk leaves one without extents behind it.

use std::ops::Range;

use crate::format::config::{Config, MediaType, Tier, VirtualDisk};
use crate::mutation::{Mutation, active};

/// In lists of as many entries nothing is left between virtual disks any more: the record has one area.
const SPARE_BELOW: usize = 4096;

/// Gives a virtual disk extents and an entry: of the smallest range of removed ones that holds it, else of those at the
/// end, which can grow.
pub(super) fn number_extents(config: &mut Config, vdisk: VirtualDisk) {
    let vdisks = &mut config.vdisks;
    let wanted = vdisk.extents;
    let len = vdisks.len();
    let extents = |range: &Range<usize>| sum(&vdisks[range.clone()]);
    let fits = |range: &Range<usize>| {
        let cut = range.len() > 1 || range.end == len;
        extents(range) == wanted || extents(range) > wanted && cut
    };
    let found = removed(vdisks).into_iter().filter(fits).min_by_key(extents);
    let found = found.unwrap_or_else(|| last_removed(vdisks)..len);
    let all = sum(&vdisks[found.clone()]);
    let first = vdisks.get(found.start).map(|own| own.first_extent);
    let first =
        first.unwrap_or_else(|| vdisks.last().map_or(0, |last| last.first_extent + last.extents));
    let rest_is_kept = all > wanted && !active(Mutation::RestOfCutDropped);
    let entries = match found.end == len && len < SPARE_BELOW {
        true => found.len().max(3),
        false => found.len().max(1 + usize::from(rest_is_kept)),
    };
    // The one before keeps an entry behind it, where there is one, and so does this one.
    let lead = usize::from(found.start > 0 && entries > 2);
    let (behind, rest) = (first + wanted, all.saturating_sub(wanted));
    let before = std::iter::repeat_n(free_range(first, 0), lead);
    let mut after = vec![free_range(behind + rest, 0); entries - lead - 1];
    if let Some(one) = after.first_mut() {
        *one = free_range(behind, rest);
    }
    let own = std::iter::once(VirtualDisk { first_extent: first, ..vdisk });
    let made: Vec<VirtualDisk> = before.chain(own).chain(after).collect();
    vdisks.splice(found, made);
}

fn sum(vdisks: &[VirtualDisk]) -> u32 {
    vdisks.iter().map(|own| own.extents).sum()
}

/// Where the removed ones at the end of a list begin.
fn last_removed(vdisks: &[VirtualDisk]) -> usize {
    vdisks.iter().rposition(|own| !own.is_removed()).map_or(0, |last| last + 1)
}

/// Entries of removed ones that follow each other, as long as they are.
fn removed(vdisks: &[VirtualDisk]) -> Vec<Range<usize>> {
    let mut found: Vec<Range<usize>> = Vec::new();
    for (nth, _) in vdisks.iter().enumerate().filter(|own| own.1.is_removed()) {
        match found.last_mut() {
            Some(range) if range.end == nth => range.end = nth + 1,
            _ => found.push(nth..nth + 1),
        }
    }
    found
}

/// Extents that nobody has.
fn free_range(first_extent: u32, extents: u32) -> VirtualDisk {
    VirtualDisk {
        id: 0,
        name: String::new(),
        copies: 1,
        columns: 1,
        interleave: 256 << 10,
        first_extent,
        extents,
        tiers: vec![Tier { media: MediaType::Ssd, rows: Vec::new() }],
        cache: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::mutation::set;
    use crate::random::Random;

    fn wanted(nth: u32, extents: u32) -> VirtualDisk {
        VirtualDisk { id: (nth + 1).into(), name: format!("v{nth}"), ..free_range(0, extents) }
    }

    /// Extents by virtual disk, those of removed ones as negative numbers.
    fn shape(config: &Config) -> Vec<i64> {
        let one = |own: &VirtualDisk| match own.is_removed() {
            true => -i64::from(own.extents),
            false => i64::from(own.extents),
        };
        config.vdisks.iter().map(one).collect()
    }

    fn check(steps: &[i64], left: &[i64]) {
        let mut config = Config::default();
        for (nth, &step) in (0..).zip(steps) {
            match u32::try_from(step) {
                Ok(extents) => number_extents(&mut config, wanted(nth, extents)),
                Err(_) => {
                    let size = u32::try_from(-step).expect("small");
                    let live = |own: &&mut VirtualDisk| own.extents == size && !own.is_removed();
                    config.vdisks.iter_mut().find(live).expect("it is there").remove();
                }
            }
        }
        assert_eq!(shape(&config), left, "{steps:?}");
    }

    #[test]
    fn ranges_of_removed_virtual_disks_are_merged_cut_and_grown() {
        check(&[50], &[50, 0, 0]);
        check(&[50, 20], &[50, 0, 20, 0]);
        // The end grows, and is cut.
        check(&[50, -50, 70], &[70, 0, 0]);
        check(&[50, -50, 20], &[20, -30, 0]);
        check(&[50, -50, 20, 30], &[20, 0, 30, 0]);
        // Between others what fits is taken, the smallest first.
        check(&[50, 20, -50, 50], &[50, 0, 20, 0]);
        check(&[50, 20, -50, 30], &[30, -20, 20, 0]);
        check(&[50, 20, 40, 1, -50, -40, 30], &[-50, 0, 20, 0, 30, -10, 1, 0]);
        // Neighbours are one.
        check(&[50, 20, 40, 1, -20, -40, 55], &[50, 0, 55, -5, 0, 0, 1, 0]);
        check(&[50, 20, -50, -20, 70], &[70, 0, 0, 0]);
    }

    #[test]
    fn whoever_is_there_keeps_its_extents_and_its_place_and_an_empty_pool_is_as_a_new_one() {
        for seed in 0..200 {
            let mut random = Random::new(seed);
            let mut config = Config::default();
            let (mut room, mut most) = (1000_u32, 0);
            for nth in 0..300 {
                let live = |(_, own): &(usize, &VirtualDisk)| !own.is_removed();
                let there: Vec<(usize, VirtualDisk)> = config
                    .vdisks
                    .iter()
                    .enumerate()
                    .filter(live)
                    .map(|(at, own)| (at, own.clone()))
                    .collect();
                let count = u64::try_from(there.len()).expect("small");
                let extents = u32::try_from(1 + random.below(400)).expect("small");
                if extents <= room && random.below(8) >= count {
                    number_extents(&mut config, wanted(nth, extents));
                    room -= extents;
                    for (at, own) in &there {
                        assert_eq!(config.vdisks[*at], *own, "seed {seed}");
                    }
                } else if count > 0 {
                    let (at, own) = &there[usize::try_from(random.below(count)).expect("small")];
                    room += own.extents;
                    config.vdisks[*at].remove();
                }
                let mut next = 0;
                for own in &config.vdisks {
                    assert_eq!(own.first_extent, next, "seed {seed}");
                    next += own.extents;
                }
                most = most.max(next);
            }
            // Gaps cost something; without merging it would be sixty times what there is to have.
            assert!(most <= 2500, "seed {seed}: {most}");
            config.vdisks.iter_mut().for_each(VirtualDisk::remove);
            number_extents(&mut config, wanted(999, 1000));
            assert_eq!(config.vdisks[0].extents, 1000, "seed {seed}");
            assert_eq!(config.extents(), most.max(1000), "seed {seed}");
        }
    }

    /// A list that leaves nothing between virtual disks any more, and changes at its end: extents in all after each change.
    fn changes_behind_many(seed: u64) -> Vec<u32> {
        let mut random = Random::new(seed);
        let mut config = Config::default();
        let small = |nth| VirtualDisk { first_extent: nth, ..wanted(nth, 1) };
        let many = u32::try_from(SPARE_BELOW).expect("small");
        config.vdisks.extend((0..many).map(small));
        let mut found = Vec::new();
        for nth in many..many + 12 {
            let extents = u32::try_from(1 + random.below(400)).expect("small");
            number_extents(&mut config, wanted(nth, extents));
            let mut next = 0;
            for own in &config.vdisks {
                assert_eq!(own.first_extent, next, "seed {seed}");
                next += own.extents;
            }
            assert_eq!(next, config.extents());
            found.push(next);
            let last = config.vdisks.iter_mut().rfind(|own| !own.is_removed());
            last.expect("it is there").remove();
        }
        // Cuts leave entries, as long as somebody needs them.
        assert!(config.vdisks.len() <= SPARE_BELOW + 3, "seed {seed}: {}", config.vdisks.len());
        found
    }

    #[test]
    fn a_long_list_keeps_the_extents_behind_what_is_cut() {
        let is_kept = |seed| changes_behind_many(seed).is_sorted();
        assert!((0..20).all(is_kept), "a start would not find the leaves of its trees");
        set(Some(Mutation::RestOfCutDropped));
        let kept = (0..20).all(is_kept);
        set(None);
        assert!(!kept, "it is not noticed");
    }
}
