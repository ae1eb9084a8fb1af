//! The statistics that decide, owned: each is small enough to be read beside its source.

pub mod describe;
pub mod distribution;
pub mod line;
pub mod nonnegative;
pub mod ranks;
