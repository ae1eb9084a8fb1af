//! A set of moments that tells how many of them lie behind one: bits, and how many are set in stretches of two lengths.

/// Moments between two renumberings, of few keys.
pub(super) const MOMENTS: usize = 1 << 15;
/// Bits of a word.
const WORD: usize = 64;
/// Words of a short stretch, and short stretches of a long one.
const SHORT: usize = 4;
const LONG: usize = 8;

/// Moments below [`Moments::room`].
#[derive(Debug)]
pub(super) struct Moments {
    words: Vec<u64>,
    /// How many are in each stretch.
    shorts: Vec<u16>,
    longs: Vec<u16>,
}

impl Moments {
    pub(super) fn new() -> Self {
        let mut moments = Self { words: Vec::new(), shorts: Vec::new(), longs: Vec::new() };
        moments.grow(MOMENTS);
        moments
    }

    pub(super) fn room(&self) -> usize {
        self.words.len() * WORD
    }

    /// Has room for so many, a power of two.
    pub(super) fn grow(&mut self, moments: usize) {
        self.words.resize(moments / WORD, 0);
        self.shorts.resize(moments / WORD / SHORT, 0);
        self.longs.resize(moments / WORD / SHORT / LONG, 0);
    }

    pub(super) fn clear(&mut self) {
        self.words.fill(0);
        self.shorts.fill(0);
        self.longs.fill(0);
    }

    /// One that is not among them.
    #[inline]
    pub(super) fn mark(&mut self, moment: usize) {
        self.words[moment / WORD] |= 1 << (moment % WORD);
        self.shorts[moment / WORD / SHORT] += 1;
        self.longs[moment / WORD / SHORT / LONG] += 1;
    }

    /// One that is.
    #[inline]
    pub(super) fn unmark(&mut self, moment: usize) {
        self.words[moment / WORD] &= !(1 << (moment % WORD));
        self.shorts[moment / WORD / SHORT] -= 1;
        self.longs[moment / WORD / SHORT / LONG] -= 1;
    }

    /// How many are later.
    #[inline]
    pub(super) fn after(&self, moment: usize) -> u32 {
        let word = moment / WORD;
        let (short, long) = (word / SHORT, word / SHORT / LONG);
        let rest = self.words[word] & !(u64::MAX >> (WORD - 1 - moment % WORD));
        let words = &self.words[word + 1..(short + 1) * SHORT];
        let sum = |counts: &[u16]| counts.iter().map(|count| u32::from(*count)).sum::<u32>();
        rest.count_ones()
            + words.iter().map(|word| word.count_ones()).sum::<u32>()
            + sum(&self.shorts[short + 1..(long + 1) * LONG])
            + sum(&self.longs[long + 1..])
    }

    /// Bytes of one that has not grown.
    pub(super) fn bytes() -> usize {
        let (words, stretches) = (MOMENTS / WORD, MOMENTS / WORD / SHORT);
        size_of::<Self>()
            + words * size_of::<u64>()
            + (stretches + stretches / LONG) * size_of::<u16>()
    }
}

#[cfg(test)]
mod tests {
    use plumb_units::convert::index;

    use super::*;
    use crate::random::Random;

    #[test]
    fn those_behind_are_counted_as_one_would() {
        let (mut moments, mut naive, mut random) =
            (Moments::new(), vec![false; MOMENTS], Random::new(7));
        for turn in 0..20_000_u32 {
            let moment = index(u32::try_from(random.below(1 << 15)).expect("few"));
            match std::mem::replace(&mut naive[moment], true) {
                false => moments.mark(moment),
                true => {
                    moments.unmark(moment);
                    naive[moment] = false;
                }
            }
            if turn % 50 == 0 {
                for at in [0, 63, 64, 255, 256, 2047, 2048, MOMENTS - 1, moment] {
                    let later = naive[at + 1..].iter().filter(|one| **one).count();
                    assert_eq!(index(moments.after(at)), later, "after {at}");
                }
            }
        }
    }
}
