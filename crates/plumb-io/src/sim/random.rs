//! The simulator's own numbers: SplitMix64, small and good enough for service times.

/// A sequence of numbers that its seed determines.
#[derive(Debug, Clone)]
pub(super) struct Random {
    state: u64,
}

impl Random {
    pub(super) fn new(seed: u64) -> Self {
        Self { state: seed }
    }

    pub(super) fn next(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In (0, 1], with 53 bits.
    pub(super) fn unit(&mut self) -> f64 {
        const STEPS: f64 = 9_007_199_254_740_992.0;
        ((self.next() >> 11) as f64 + 1.0) / STEPS
    }

    /// Whether an event of one in `odds` happens; never with 0.
    pub(super) fn one_in(&mut self, odds: u64) -> bool {
        odds > 0 && self.next().is_multiple_of(odds)
    }
}
