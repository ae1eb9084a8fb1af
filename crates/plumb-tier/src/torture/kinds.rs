//! Which histories are of a kind of their own: their seeds end so, and no other one becomes one. Seeds that a violation named
//! once so lead to the same history for ever.

/// What a seed may stand for beside the usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// A mirror and a virtual disk without copies in one pool.
    Beside,
    /// A virtual disk so large that its trees have index pages.
    Wide,
    /// Bits of one disk rot while the pool serves.
    Rotting,
    /// Checksums of a few extents are in memory.
    Short,
}

/// The low bits of a seed that say so.
const LOW: u64 = 0xffff;
/// Of 16 histories in a row these are of a kind; their seeds end so.
const KINDS: [(Kind, u64, &[u64]); 4] = [
    (Kind::Beside, 0xbe51, &[5, 13]),
    (Kind::Wide, 0x31de, &[1]),
    (Kind::Rotting, 0x4071, &[9]),
    (Kind::Short, 0x5407, &[3]),
];

impl Kind {
    /// A seed of that kind.
    pub(super) fn mark(self, seed: u64) -> u64 {
        let mark = KINDS.iter().find(|kind| kind.0 == self).map_or(0, |kind| kind.1);
        seed & !LOW | mark
    }
}

/// The seed of the n-th history, which is of a kind of its own now and then.
pub(super) fn seed(seed: u64, nth: u64) -> u64 {
    let own = KINDS.iter().find(|kind| kind.2.contains(&(nth % 16)));
    own.map_or(seed, |kind| kind.0.mark(seed))
}

/// The kind of a seed; `None` for the usual ones.
pub(super) fn of(seed: u64) -> Option<Kind> {
    KINDS.iter().find(|kind| kind.1 == seed & LOW).map(|kind| kind.0)
}

#[cfg(test)]
mod tests {
    use super::super::history_seed;
    use super::*;

    #[test]
    fn seeds_of_other_histories_stay_theirs() {
        for nth in 0..64 {
            let plain = history_seed(1, nth);
            let own = seed(plain, nth);
            let expected = match nth % 16 {
                5 | 13 => Some(Kind::Beside),
                1 => Some(Kind::Wide),
                9 => Some(Kind::Rotting),
                3 => Some(Kind::Short),
                _ => None,
            };
            assert_eq!(of(own), expected);
            assert!(expected.is_some() || own == plain);
        }
    }
}
