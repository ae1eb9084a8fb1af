//! What verification (`--verify`) did and found in a time span.

use plumb_io::verify::{Checked, Kind, Mismatch};
use plumb_units::Bytes;

/// The verification of one time span.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyResult {
    /// Which history its sectors belong to.
    pub history: u64,
    /// `--verify-state`.
    pub state: Option<String>,
    /// Whether the session before this one was cut off.
    pub follows_a_cut: bool,
    /// One per file or device.
    pub targets: Vec<VerifiedTarget>,
    /// The check of what an earlier session left; `None` where nothing was known, or in later time spans.
    pub before: Option<Checked>,
    /// Reading back what was written; `None` when the time span wrote nothing.
    pub after: Option<Checked>,
    /// The first mismatches of the time span, in the order in which they were found.
    pub first: Vec<Mismatch>,
    /// Whether acknowledgements could not be recorded: the state file knows less than it should.
    pub state_failed: bool,
}

/// One file or device under verification.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifiedTarget {
    /// As the first target named it.
    pub path: String,
    /// Its number in the history.
    pub number: u64,
    /// Bytes of its blocks: each has a generation.
    pub block: u32,
    /// Acknowledged bytes.
    pub written: u64,
    /// Bytes that were compared with an acknowledged write.
    pub checked: u64,
    /// Blocks read and found wrong, in the order of [`Kind::ALL`].
    pub mismatches: [u64; 4],
    /// Whether a block was written more often than can be counted.
    pub exhausted: bool,
}

impl VerifyResult {
    /// Mismatches of all kinds and targets.
    #[must_use]
    pub fn mismatches(&self) -> u64 {
        self.targets.iter().flat_map(|target| target.mismatches).sum()
    }

    /// Acknowledged bytes that could not be read.
    #[must_use]
    pub fn unreadable(&self) -> u64 {
        [self.before, self.after].iter().flatten().map(|checked| checked.unreadable_bytes).sum()
    }

    /// Whether anything is not as it was acknowledged, or cannot be told.
    #[must_use]
    pub fn is_bad(&self) -> bool {
        self.mismatches() > 0
            || self.unreadable() > 0
            || self.state_failed
            || self.targets.iter().any(|target| target.exhausted)
    }

    /// What is wrong, in one sentence; `None` when nothing is.
    #[must_use]
    pub fn complaint(&self) -> Option<String> {
        if !self.is_bad() {
            return None;
        }
        let mut parts = Vec::new();
        let count = self.mismatches();
        if count > 0 {
            let by_kind = Kind::ALL.iter().enumerate().map(|(place, kind)| {
                let of_kind: u64 = self.targets.iter().map(|target| target.mismatches[place]).sum();
                (of_kind, kind.keyword())
            });
            let by_kind = by_kind.filter(|(count, _)| *count > 0);
            let by_kind: Vec<String> =
                by_kind.map(|(count, word)| format!("{count} {word}")).collect();
            let what = if count == 1 { "mismatch" } else { "mismatches" };
            parts.push(format!("{count} {what} ({})", by_kind.join(", ")));
        }
        if self.unreadable() > 0 {
            parts.push(format!("{} that cannot be read", Bytes(self.unreadable()).in_words()));
        }
        if self.state_failed {
            parts.push("a state file that cannot be written".to_owned());
        }
        if self.targets.iter().any(|target| target.exhausted) {
            parts.push("a block written more than 4294967294 times".to_owned());
        }
        let first = self.first.first().map_or(String::new(), |first| format!("; first {first}"));
        Some(format!("verification found {}{first}", parts.join(", ")))
    }
}
