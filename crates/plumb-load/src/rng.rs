//! DISKSPD's random generator (spec 6.12): Bob Jenkins' small generator with 64-bit state.

use plumb_units::convert;

/// One thread's generator.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rng {
    a: u64,
    b: u64,
    c: u64,
    d: u64,
}

impl Rng {
    /// Seeded and warmed up: 20 rounds are discarded.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        let mut rng = Self { a: 0xf1ea_5eed, b: seed, c: seed, d: seed };
        for _ in 0..20 {
            rng.next64();
        }
        rng
    }

    /// The generator of thread `thread` under `-z` seed `seed`: (seed + thread) mod 2^32.
    #[must_use]
    pub fn for_thread(seed: u32, thread: u32) -> Self {
        Self::new(seed.wrapping_add(thread).into())
    }

    /// 64 random bits.
    #[inline(always)]
    pub fn next64(&mut self) -> u64 {
        let e = self.a.wrapping_sub(self.b.rotate_left(7));
        self.a = self.b ^ self.c.rotate_left(13);
        self.b = self.c.wrapping_add(self.d.rotate_left(37));
        self.c = self.d.wrapping_add(e);
        self.d = e.wrapping_add(self.a);
        self.d
    }

    /// The low half of the next 64 bits.
    #[inline(always)]
    pub fn next32(&mut self) -> u32 {
        convert::low_u32(self.next64())
    }

    /// A number in 1..=100.
    #[inline(always)]
    pub fn percent(&mut self) -> u32 {
        self.next32() % 100 + 1
    }

    /// Fills `bytes` with random content: 8 bytes little endian per draw; a partial word at the end
    /// takes the low bytes of one draw.
    pub fn fill(&mut self, bytes: &mut [u8]) {
        let mut words = bytes.chunks_exact_mut(8);
        for word in &mut words {
            word.copy_from_slice(&self.next64().to_le_bytes());
        }
        let rest = words.into_remainder();
        if !rest.is_empty() {
            let word = self.next64().to_le_bytes();
            rest.copy_from_slice(&word[..rest.len()]);
        }
    }

    /// Fills `bytes` like [`Rng::fill`] but makes 16 words from 5 draws while more than 16 remain: the
    /// variant for `-Zr` and for new files.
    pub fn fill_fast(&mut self, bytes: &mut [u8]) {
        let lines = (bytes.len() / 8).saturating_sub(1) / 16;
        let (fast, rest) = bytes.split_at_mut(lines * 128);
        for line in fast.chunks_exact_mut(128) {
            let (mut r1, mut r2, mut r3) = (self.next64(), self.next64(), self.next64());
            let (r4, r5) = (self.next64(), self.next64());
            let mut words = [0_u64; 16];
            words[..5].copy_from_slice(&[r1, r2, r3, r4, r5]);
            r1 = r1.rotate_left(7);
            words[5..9].copy_from_slice(&[r1 ^ r2, r1 ^ r3, r1 ^ r4, r1 ^ r5]);
            r2 = r2.rotate_left(13);
            words[9..12].copy_from_slice(&[r2 ^ r3, r2 ^ r4, r2 ^ r5]);
            r3 = r3.rotate_left(19);
            words[12..14].copy_from_slice(&[r3 ^ r4, r3 ^ r5]);
            words[14] = r1 ^ r2 ^ r3;
            words[15] = r1 ^ (r4 ^ r5).rotate_left(39);
            for (bytes, word) in line.chunks_exact_mut(8).zip(words) {
                bytes.copy_from_slice(&word.to_le_bytes());
            }
        }
        self.fill(rest);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fast_fill_covers_every_byte_and_repeats_nothing() {
        for len in [0, 1, 7, 8, 127, 128, 129, 135, 136, 4096, 65_537] {
            let mut bytes = vec![0_u8; len];
            Rng::new(7).fill_fast(&mut bytes);
            let zeros = bytes.iter().filter(|byte| **byte == 0).count();
            assert!(zeros <= len / 64 + 3, "{zeros} of {len} bytes are zero");
            let mut words: Vec<&[u8]> = bytes.chunks_exact(8).collect();
            let count = words.len();
            words.sort_unstable();
            words.dedup();
            assert_eq!(words.len(), count, "repeated words in {len} bytes");
        }
    }
}
