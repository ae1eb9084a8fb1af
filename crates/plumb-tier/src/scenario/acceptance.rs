//! What the reference scenario must show (19.2).

use super::{LoadOutcome, Scenario, ScenarioOutcome};
use crate::optimizer::PlacementStatus;

/// I/Os per second of four SSDs of the model, 4 KiB written at a time.
const FOUR_SSDS: f64 = 4.0 * 30_107.0;

/// A figure and what it must be within, ends included.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bound {
    /// Which.
    pub what: &'static str,
    /// What it came to.
    pub value: f64,
    /// Least.
    pub low: f64,
    /// Most.
    pub high: f64,
}

impl Bound {
    /// Whether it is as it must be.
    #[must_use]
    pub fn holds(&self) -> bool {
        (self.low..=self.high).contains(&self.value)
    }
}

/// The bounds of 19.2, held against what came of a scenario. `disks` is what its rotating disks are able to, in I/Os per second:
/// [`Scenario::used`] of the same scenario without a write-back cache.
#[must_use]
pub fn acceptance(scenario: &Scenario, found: &ScenarioOutcome, disks: f64) -> Vec<Bound> {
    let [empty, used, optimized] = &found.cases;
    let rates = found.cases.each_ref().map(LoadOutcome::iops);
    let fast = |case: &LoadOutcome| case.used.share(case.used.performance);
    let cached = |case: &LoadOutcome| (case.used.cache + case.cache_taken) as f64;
    let moves = found.optimization.report.facts.moves;
    let extents = (scenario.files()[3].1 >> 20) as f64;
    let on_tier = f64::from(found.placement.placement == PlacementStatus::CompletelyOnTier);
    let turnovers = found.cache_taken as f64 / scenario.sizes().cache.max(1) as f64;
    let any = f64::INFINITY;
    [
        ("case 1, of what four SSDs are able to", rates[0] / FOUR_SSDS, 0.95, 1.05),
        ("case 1, share of bytes on the SSD tier", fast(empty), 0.999, 1.0),
        ("case 1, bytes in the write-back cache", cached(empty), 0.0, 0.0),
        ("case 2, of what the rotating disks are able to", rates[1] / disks, 0.95, 1.15),
        ("case 2, share of bytes on the SSD tier", fast(used), 0.0, 0.01),
        ("case 2, turnovers of the write-back cache until the night", turnovers, 1.0, any),
        ("case 1 / case 2", rates[0] / rates[1], 60.0, 82.0),
        ("case 3 / case 1", rates[2] / rates[0], 0.96, any),
        (
            "case 3 / case 1, without the first tenth",
            optimized.iops_from(0.1) / rates[0],
            0.99,
            any,
        ),
        ("case 3, share of bytes on the SSD tier", fast(optimized), 0.999, 1.0),
        ("case 3, bytes in the write-back cache", cached(optimized), 0.0, 0.0),
        ("extents promoted, of the file's", moves.up as f64 / extents, 0.99, 1.01),
        ("extents demoted, of the file's", moves.down as f64 / extents, 0.99, 1.01),
        ("the file is completely on the tier", on_tier, 1.0, 1.0),
    ]
    .map(|(what, value, low, high)| Bound { what, value, low, high })
    .into()
}
