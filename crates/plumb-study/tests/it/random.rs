//! A seeded generator of numbers, the same on every machine.

/// SplitMix64 [Steele et al. 2014].
pub(crate) struct Random(u64);

impl Random {
    /// `PLUMB_DRAW` in the environment makes other tables of the same kinds.
    pub(crate) fn seeded(seed: u64) -> Self {
        let draw = std::env::var("PLUMB_DRAW").ok().and_then(|text| text.parse().ok());
        let seed = seed.wrapping_add(draw.unwrap_or(0_u64).wrapping_mul(1_000_000_007));
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ 0x1234_5678_9abc_def0)
    }

    fn next(&mut self) -> u64 {
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

    /// In [low, high).
    pub(crate) fn between(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    /// One of them.
    pub(crate) fn one_of<T: Copy>(&mut self, choices: &[T]) -> T {
        let place = self.next() % u64::try_from(choices.len()).expect("few choices");
        choices[usize::try_from(place).expect("few choices")]
    }

    /// Standard normal, by Box and Muller.
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }

    /// `count` values of a stationary AR(1) series with mean 0 and SD 1.
    pub(crate) fn autoregressive(&mut self, phi: f64, count: usize) -> Vec<f64> {
        let mut value = self.normal();
        let innovation = (1.0 - phi * phi).sqrt();
        (0..count)
            .map(|_| {
                let now = value;
                value = phi * value + innovation * self.normal();
                now
            })
            .collect()
    }
}
