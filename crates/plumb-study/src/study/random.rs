//! Seeded random numbers of the study: orders and simulated noise, the same on every machine.

/// SplitMix64 [Steele et al. 2014].
#[derive(Debug, Clone)]
pub(crate) struct Random(u64);

impl Random {
    /// A stream of its own for each seed and `stream`.
    pub(crate) fn new(seed: u64, stream: u64) -> Self {
        let mut first = Self(seed ^ 0x1234_5678_9abc_def0);
        let mixed = first.next() ^ stream.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let mut random = Self(mixed);
        random.next();
        random
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In [0, 1).
    pub(crate) fn unit(&mut self) -> f64 {
        (self.next() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
    /// In another order, each equally likely [Fisher & Yates].
    pub(crate) fn shuffle<T>(&mut self, list: &mut [T]) {
        for last in (1..list.len()).rev() {
            let bound = u64::try_from(last).expect("fits") + 1;
            let other = usize::try_from(self.next() % bound).expect("below the length");
            list.swap(last, other);
        }
    }
}
