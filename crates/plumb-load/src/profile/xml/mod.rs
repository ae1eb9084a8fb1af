//! XML profiles: reading (spec 5.1, 5.2, 15.9) and writing (5.4).

pub(crate) mod document;
mod element;
mod read;
mod read_target;
mod write;

use super::error::Violation;
use super::model::RawProfile;

pub use read::{decode, read};
pub use write::write;

/// Feeds bytes that nobody wrote on purpose to the reader, and what it accepts to the rules.
#[doc(hidden)]
pub fn fuzz_profile(bytes: &[u8]) {
    let read: Result<RawProfile, Violation> = decode(bytes).and_then(|text| read(&text));
    if let Ok(profile) = read {
        let _ = profile.check(super::check::Purpose::Run);
    }
}

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;
