//! What runs differ by, pooled over all settings that were repeated (docs/decisions/0191-noise-of-all-repetitions.md).

use super::estimate::logarithms;
use crate::stats::describe::squares;

/// SD of ln x between runs of one setting, as repetitions of any settings show it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Between {
    /// The SD; relative, for a small one.
    pub deviation: f64,
    /// Degrees of freedom that it was estimated with.
    pub freedom: f64,
}

impl Between {
    /// Pooled over groups of values of one metric, each of one setting in one study: each about its own mean. `None`
    /// where nothing was repeated; groups with a value that is not positive are left out.
    #[must_use]
    pub fn pooled(groups: impl IntoIterator<Item = Vec<f64>>) -> Option<Self> {
        let (mut freedom, mut all) = (0.0, 0.0);
        for logs in groups.into_iter().filter_map(|values| logarithms(&values)) {
            freedom += logs.len() as f64 - 1.0;
            all += squares(&logs);
        }
        (freedom > 0.0).then(|| Self { deviation: (all / freedom).sqrt(), freedom })
    }
}
