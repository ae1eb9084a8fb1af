//! Where the next I/O goes (spec 6.5, 6.6).

pub mod bounds;
mod cursor;
pub mod distribution;
pub mod modulus;

pub use bounds::{Bounds, TooSmall};
pub use cursor::{Cursor, NextOffset};

/// The ranges that random offsets are really drawn from (spec 6.6).
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EffectiveDistribution {
    /// Modulus of the range draw: 100, or the sum of the shares of an absolute distribution.
    pub io_total: u32,
    /// Ascending by `io_base`.
    pub ranges: Vec<EffectiveRange>,
}

/// One effective range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct EffectiveRange {
    /// First draw that falls into it.
    pub io_base: u32,
    /// How many draws fall into it.
    pub io: u32,
    /// Bytes, relative to the base offset.
    pub offset: u64,
    /// Bytes; 0 means exactly the offset.
    pub length: u64,
}
