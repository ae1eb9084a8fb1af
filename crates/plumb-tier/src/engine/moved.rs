//! What became of moves.

use crate::optimizer::TierName;

/// What became of a move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MoveOutcome {
    /// It lies there now.
    Moved,
    /// It lay there before.
    There,
    /// It lies nowhere: it was never written, or discarded meanwhile.
    Unmapped,
    /// The virtual disk has one tier only.
    OneTier,
    /// The tier has no free slot.
    NoRoom,
    /// It should leave the Performance tier, and the Capacity tier has no free slot for it.
    NoRoomBelow,
    /// A disk of the slot that it would get is missing or not up to date.
    Degraded,
    /// A block of it has no copy that verifies: it stays where it is.
    Unreadable,
    /// Writes to it would have been held for too long.
    Busy,
    /// It was to make room for one that could not be moved.
    Needless,
    /// Disks came or went meanwhile.
    Interrupted,
    /// Somebody called it off.
    Cancelled,
}

impl MoveOutcome {
    /// In words.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Moved => "moved",
            Self::There => "there already",
            Self::Unmapped => "not mapped",
            Self::OneTier => "one tier only",
            Self::NoRoom => "no free slot",
            Self::NoRoomBelow => "the Capacity tier has no free slot",
            Self::Degraded => "a disk of the tier is missing or not up to date",
            Self::Unreadable => "a block has no copy that verifies",
            Self::Busy => "writes would have been held too long",
            Self::Needless => "nobody needs their places",
            Self::Interrupted => "disks came or went",
            Self::Cancelled => "cancelled",
        }
    }
}

/// A move that has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveDone {
    /// Which virtual disk.
    pub vdisk: u32,
    /// Which of its extents.
    pub extent: u32,
    /// Where to.
    pub to: TierName,
    /// What became of it.
    pub outcome: MoveOutcome,
}

/// What moves did since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct MoveCounters {
    /// Extents moved to the Performance tier.
    pub up: u64,
    /// Extents moved to the Capacity tier.
    pub down: u64,
    /// Moves that were given up.
    pub aborted: u64,
    /// Bytes written to new places, copies counted once.
    pub bytes: u64,
}
