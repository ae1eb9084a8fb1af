//! Units that cannot be mixed up: bytes, logical blocks, nanoseconds, rates.
//!
//! Everything that counts something in Plumb counts it in one of these types. Parsing, printing and
//! checked arithmetic live beside them, and nothing else does.
#![forbid(unsafe_code)]

mod block;
mod bytes;
pub mod convert;
mod nanos;
mod rate;
pub mod words;

pub use block::{BlockSize, Lba};
pub use bytes::{Bytes, ParseSizeError, parse_size};
pub use nanos::Nanos;
pub use rate::Rate;
