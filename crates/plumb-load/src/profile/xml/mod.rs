//! XML profiles: reading (spec 5.1, 5.2, 15.9) and writing (5.4).

pub(crate) mod document;
mod element;
mod read;
mod read_target;
mod write;

pub use read::{decode, read, says_requests};
pub use write::write;

/// Reads any bytes as a profile and asserts what always holds.
///
/// # Panics
/// When it does not.
#[doc(hidden)]
pub fn fuzz_profile(bytes: &[u8]) {
    let profile = match decode(bytes).and_then(|text| read(&text)) {
        Ok(profile) => profile,
        Err(violation) => {
            assert!(!violation.message.is_empty() && !violation.help.is_empty());
            return;
        }
    };
    match profile.check(super::check::Purpose::Print) {
        Ok((profile, _)) => {
            let back = read(&write(&profile, 0));
            assert_eq!(back.as_ref(), Ok(&*profile), "a profile is read back as it was");
        }
        Err(violations) => assert!(!violations.is_empty()),
    }
}

#[cfg(test)]
mod round_trip;
#[cfg(test)]
mod tests;
