//! What verification found to be wrong.

use std::fmt;
use std::sync::{Mutex, PoisonError};

use super::sector::{Content, WriteStamp};

/// How content differs from what was acknowledged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// An older generation than the last acknowledged one: a write was lost.
    Stale,
    /// A whole sector that belongs to another offset or target: a write or a read went astray.
    Misplaced,
    /// Part of a block or of a sector: a write was cut, or content was damaged.
    Torn,
    /// Content that this history never wrote.
    Foreign,
}

/// How many kinds there are.
pub(super) const KINDS: usize = 4;

impl Kind {
    /// All of them.
    pub const ALL: [Self; KINDS] = [Self::Stale, Self::Misplaced, Self::Torn, Self::Foreign];

    /// The word for it in results.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Stale => "stale",
            Self::Misplaced => "misplaced",
            Self::Torn => "torn",
            Self::Foreign => "foreign",
        }
    }

    pub(super) fn place(self) -> usize {
        match self {
            Self::Stale => 0,
            Self::Misplaced => 1,
            Self::Torn => 2,
            Self::Foreign => 3,
        }
    }
}

/// When something was found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Pass {
    /// In the check of what an earlier session left, before the load.
    Before,
    /// By a read of the load.
    Load,
    /// In the check after the load.
    After,
}

impl Pass {
    /// The word for it in results.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Before => "before",
            Self::Load => "load",
            Self::After => "after",
        }
    }
}

/// A block that does not hold what it should.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mismatch {
    /// Number of its target in the history.
    pub target: u64,
    /// The target.
    pub path: String,
    /// The first sector that is wrong, in bytes from the start of the target.
    pub offset: u64,
    /// How it is wrong.
    pub kind: Kind,
    /// When it was found.
    pub pass: Pass,
    /// The oldest generation that it might hold; 0 where nothing is known to be acknowledged.
    pub expected: u32,
    /// What was there.
    pub found: Content,
}

/// In words: `generation 3`, `generation 3 of offset 8192 of target 0`.
impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, offset, kind, expected, .. } = self;
        write!(f, "'{path}' at {offset}: {}: expected ", kind.keyword())?;
        match expected {
            0 => f.write_str("nothing written")?,
            expected => write!(f, "generation {expected} or later")?,
        }
        f.write_str(", found ")?;
        found(&self.found, f)
    }
}

/// What was found, in words.
fn found(content: &Content, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    match content {
        Content::Here(WriteStamp { generation, write, .. }) => {
            write!(f, "generation {generation} (write {write:016x})")
        }
        Content::Elsewhere(place, WriteStamp { generation, write, .. }) => write!(
            f,
            "generation {generation} of offset {} of target {} (write {write:016x})",
            place.offset, place.target
        ),
        Content::Damaged(WriteStamp { generation, write, .. }) => {
            write!(f, "a damaged sector of generation {generation} (write {write:016x})")
        }
        Content::OtherHistory(history) => {
            write!(f, "a sector of another verified run (history {history:016x})")
        }
        Content::Unknown => f.write_str("nothing that a verified run wrote"),
    }
}

impl Mismatch {
    /// What was there, in words.
    #[must_use]
    pub fn found_words(&self) -> String {
        struct Words<'a>(&'a Content);
        impl fmt::Display for Words<'_> {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                found(self.0, f)
            }
        }
        Words(&self.found).to_string()
    }
}

/// The first mismatches of a session, each place and kind once.
#[derive(Debug, Default)]
pub struct Findings {
    first: Mutex<Vec<Mismatch>>,
}

/// How many mismatches are listed; all of them are counted.
pub const LISTED: usize = 32;

impl Findings {
    pub(super) fn add(&self, mismatch: Mismatch) {
        let mut first = self.first.lock().unwrap_or_else(PoisonError::into_inner);
        let known = |other: &Mismatch| {
            (other.target, other.offset, other.kind)
                == (mismatch.target, mismatch.offset, mismatch.kind)
        };
        if first.len() < LISTED && !first.iter().any(known) {
            first.push(mismatch);
        }
    }

    /// Those found so far, in the order in which they were found.
    #[must_use]
    pub fn first(&self) -> Vec<Mismatch> {
        self.first.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
