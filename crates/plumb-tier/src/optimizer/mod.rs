//! Storage tiers optimization (spec 10): which extents should move, as pure functions from a snapshot to a list.

mod bar;
#[cfg(test)]
mod chance_tests;
mod expected;
mod gains;
mod history;
mod lines;
mod pins;
mod plan;
mod ration;
mod select;
mod survey;
#[cfg(test)]
mod tests;
mod turns;

pub use bar::{Bar, Basis, Measured, MoveTimes, Sure, TierMeasure, Worth};
pub(crate) use expected::Expected;
pub use history::{MoveHistory, Thrash};
pub(crate) use lines::line_of;
pub use lines::{Asked, ExpectedIops, HostLine, IopsBasis, LINES, LineBasis, LineTimes};
pub(crate) use pins::zone_at;
pub use pins::{Pin, PinId, PinState, PinStatus, PinTable, PlacementStatus};
pub use plan::{Move, MoveReason, Plan, PlanLimits, PlanRequest, Room, plan};
pub use ration::Ration;

/// One of the two tiers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TierName {
    /// Solid state.
    Performance,
    /// Rotating.
    Capacity,
}

impl TierName {
    /// As reports write it.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Performance => "Performance",
            Self::Capacity => "Capacity",
        }
    }

    /// The other one.
    #[must_use]
    pub fn other(self) -> Self {
        match self {
            Self::Performance => Self::Capacity,
            Self::Capacity => Self::Performance,
        }
    }
}

/// Where the extents of a virtual disk are: the engine's map, or a model of one.
pub trait Placement {
    /// Extents that there are, mapped or not.
    fn extents(&self) -> u32;
    /// Where an extent is; `None` when it is not mapped. Called once per extent and pass, in order.
    fn tier(&self, extent: u32) -> Option<TierName>;
}

impl<P: Placement> Placement for &P {
    fn extents(&self) -> u32 {
        (**self).extents()
    }

    fn tier(&self, extent: u32) -> Option<TierName> {
        (**self).tier(extent)
    }
}
