//! What verification did and found.

use plumb_io::verify::{Checked, Content, Mismatch, SECTOR, Unreadable};
use serde::Serialize;

use crate::result::errno_name;
use crate::result::verify::{VerifiedTarget, VerifyResult};

#[derive(Serialize)]
pub(super) struct Verify<'a> {
    algorithm: &'static str,
    sector_bytes: u32,
    history: String,
    state_file: Option<&'a str>,
    state_failed: bool,
    follows_a_cut: bool,
    mismatches: u64,
    before: Option<Check>,
    after: Option<Check>,
    targets: Vec<Target<'a>>,
    first_mismatches: Vec<Wrong<'a>>,
}

#[derive(Serialize)]
struct Check {
    bytes: u64,
    of_bytes: u64,
    complete: bool,
    unreadable_bytes: u64,
    first_unreadable: Option<Place>,
}

#[derive(Serialize)]
struct Place {
    offset_bytes: u64,
    error: Option<String>,
}

#[derive(Serialize)]
struct Target<'a> {
    path: &'a str,
    number: u64,
    block_bytes: u32,
    written_bytes: u64,
    checked_bytes: u64,
    exhausted: bool,
    mismatches: Kinds,
}

#[derive(Serialize)]
struct Kinds {
    stale: u64,
    misplaced: u64,
    torn: u64,
    foreign: u64,
}

#[derive(Serialize)]
struct Wrong<'a> {
    path: &'a str,
    target: u64,
    offset_bytes: u64,
    kind: &'static str,
    pass: &'static str,
    expected_generation: u32,
    found: Found,
}

#[derive(Serialize)]
struct Found {
    words: String,
    generation: Option<u32>,
    write: Option<String>,
    target: Option<u64>,
    offset_bytes: Option<u64>,
    history: Option<String>,
}

impl<'a> Verify<'a> {
    pub(super) fn of(verify: &'a VerifyResult) -> Self {
        Self {
            algorithm: "crc32c",
            sector_bytes: SECTOR,
            history: format!("{:016x}", verify.history),
            state_file: verify.state.as_deref(),
            state_failed: verify.state_failed,
            follows_a_cut: verify.follows_a_cut,
            mismatches: verify.mismatches(),
            before: verify.before.map(Check::of),
            after: verify.after.map(Check::of),
            targets: verify.targets.iter().map(Target::of).collect(),
            first_mismatches: verify.first.iter().map(Wrong::of).collect(),
        }
    }
}

impl Check {
    fn of(checked: Checked) -> Self {
        let place = |place: Unreadable| Place {
            offset_bytes: place.offset,
            error: place.errno.map(errno_name::of),
        };
        Self {
            bytes: checked.bytes,
            of_bytes: checked.of_bytes,
            complete: checked.complete,
            unreadable_bytes: checked.unreadable_bytes,
            first_unreadable: checked.unreadable.map(place),
        }
    }
}

impl<'a> Target<'a> {
    fn of(target: &'a VerifiedTarget) -> Self {
        let [stale, misplaced, torn, foreign] = target.mismatches;
        Self {
            path: &target.path,
            number: target.number,
            block_bytes: target.block,
            written_bytes: target.written,
            checked_bytes: target.checked,
            exhausted: target.exhausted,
            mismatches: Kinds { stale, misplaced, torn, foreign },
        }
    }
}

impl<'a> Wrong<'a> {
    fn of(mismatch: &'a Mismatch) -> Self {
        Self {
            path: &mismatch.path,
            target: mismatch.target,
            offset_bytes: mismatch.offset,
            kind: mismatch.kind.keyword(),
            pass: mismatch.pass.keyword(),
            expected_generation: mismatch.expected,
            found: Found::of(mismatch),
        }
    }
}

impl Found {
    fn of(mismatch: &Mismatch) -> Self {
        let write = match mismatch.found {
            Content::Here(write) | Content::Elsewhere(_, write) | Content::Damaged(write) => {
                Some(write)
            }
            Content::OtherHistory(_) | Content::Unknown => None,
        };
        let place = match mismatch.found {
            Content::Elsewhere(place, _) => Some(place),
            _ => None,
        };
        let history = match mismatch.found {
            Content::OtherHistory(history) => Some(format!("{history:016x}")),
            _ => None,
        };
        Self {
            words: mismatch.found_words(),
            generation: write.map(|write| write.generation),
            write: write.map(|write| format!("{:016x}", write.write)),
            target: place.map(|place| place.target),
            offset_bytes: place.map(|place| place.offset),
            history,
        }
    }
}
