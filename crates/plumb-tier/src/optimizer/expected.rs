//! What a placement serves of the window that it was planned by, while its moves are made (11).

use super::{Move, Plan, TierName};
use crate::heat::HeatMap;

/// Host I/Os of the planned window on the extents that are on the Performance tier now.
#[derive(Debug)]
pub(crate) struct Expected {
    ios: u64,
    fast: u64,
    /// Those on each extent that is to move, by its number: the heat map counts a new window while they move.
    of_extents: Vec<(u32, u64)>,
}

impl Expected {
    /// Before the first move.
    pub(crate) fn new(planned: &Plan, heat: &HeatMap) -> Self {
        let ios = |planned: &Move| (planned.extent, heat.extent(planned.extent).ios());
        let mut of_extents: Vec<(u32, u64)> = planned.moves.iter().map(ios).collect();
        of_extents.sort_unstable();
        Self { ios: planned.ios, fast: planned.ios_before, of_extents }
    }

    /// A move has been made.
    pub(crate) fn moved(&mut self, extent: u32, to: TierName) {
        let found = self.of_extents.binary_search_by_key(&extent, |one| one.0);
        let ios = found.map_or(0, |nth| self.of_extents[nth].1);
        self.fast = match to {
            TierName::Performance => self.fast.saturating_add(ios),
            TierName::Capacity => self.fast.saturating_sub(ios),
        };
    }

    /// Their share, 0 to 1, with such a window again; `None` without I/O.
    pub(crate) fn share(&self) -> Option<f64> {
        (self.ios > 0).then(|| self.fast as f64 / self.ios as f64)
    }
}
