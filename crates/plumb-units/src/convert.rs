//! Integer conversions that cannot lose anything, and those that say so.
//!
//! Plumb runs on 64-bit Linux only, which the assertion below turns into a compile error elsewhere;
//! with that settled, `usize` and `u64` are the same size and these functions are free.

const _: () = assert!(usize::BITS == 64, "Plumb needs a 64-bit machine");

/// A `u64` as an index or length in memory.
#[inline(always)]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "usize has 64 bits (asserted above)")]
pub const fn to_usize(value: u64) -> usize {
    value as usize
}

/// A `u32` as an index or length in memory.
#[inline(always)]
#[must_use]
pub const fn index(value: u32) -> usize {
    value as usize
}

/// A length in memory as a `u64`.
#[inline(always)]
#[must_use]
pub const fn to_u64(value: usize) -> u64 {
    value as u64
}

/// The low 32 bits, on purpose.
#[inline(always)]
#[must_use]
#[expect(clippy::cast_possible_truncation, reason = "dropping the high half is what this is for")]
pub const fn low_u32(value: u64) -> u32 {
    value as u32
}

/// A count that is known to fit 32 bits.
///
/// # Panics
/// When it does not.
#[inline]
#[must_use]
pub fn to_u32(value: usize) -> u32 {
    u32::try_from(value).expect("a count that fits 32 bits")
}

/// A non-negative float as an integer, rounding down; NaN and negative values give 0.
#[inline]
#[must_use]
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "saturating by the rules of float casts"
)]
pub fn floor_u64(value: f64) -> u64 {
    value as u64
}
