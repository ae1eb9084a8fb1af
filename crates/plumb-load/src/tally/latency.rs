//! One interface to latency statistics, two stores (spec 9): exact values for imports and
//! conformance, the run's histogram for everything else.

use std::collections::BTreeMap;

use super::Histogram;

/// Latencies as DISKSPD keeps them: 32-bit floats of microseconds, equal values counted together.
#[derive(Debug, Clone, Default)]
pub struct ExactLatencies {
    /// Bits of the (non-negative) float, whose order is that of the values, and how often it was seen.
    counts: BTreeMap<u32, u64>,
}

impl ExactLatencies {
    /// Counts one value in microseconds; negative values and NaN count as 0.
    pub fn record(&mut self, micros: f32) {
        let micros = if micros > 0.0 { micros } else { 0.0 };
        *self.counts.entry(micros.to_bits()).or_default() += 1;
    }
}

/// A set of latencies, exact or binned.
#[derive(Debug, Clone)]
pub enum LatencySet {
    /// What a run recorded.
    Binned(Histogram),
    /// What was imported.
    Exact(ExactLatencies),
}
