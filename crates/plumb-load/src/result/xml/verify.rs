//! Plumb's own element `Verification`.

use std::io;

use plumb_io::verify::{Checked, Kind};

use super::element::Elements;
use crate::result::model::SpanResult;

/// Nothing where nothing was verified.
pub(super) fn write(span: &SpanResult, out: &mut Elements<'_>) -> io::Result<()> {
    let Some(verify) = &span.verify else { return Ok(()) };
    let history = format!("{:016x}", verify.history);
    let mismatches = verify.mismatches();
    let state = verify.state.as_deref().unwrap_or("");
    out.open(
        "Verification",
        &[
            ("Algorithm", &"crc32c"),
            ("History", &history),
            ("State", &state),
            ("FollowsACut", &verify.follows_a_cut),
            ("StateFailed", &verify.state_failed),
            ("Mismatches", &mismatches),
        ],
    )?;
    write_check("Before", verify.before, out)?;
    write_check("After", verify.after, out)?;
    for target in &verify.targets {
        out.open(
            "Target",
            &[
                ("Path", &target.path),
                ("Number", &target.number),
                ("BlockBytes", &target.block),
                ("WrittenBytes", &target.written),
                ("CheckedBytes", &target.checked),
            ],
        )?;
        for (kind, count) in Kind::ALL.iter().zip(target.mismatches) {
            out.empty("Mismatches", &[("Kind", &kind.keyword()), ("Count", &count)])?;
        }
        out.close("Target")?;
    }
    for mismatch in &verify.first {
        let found = mismatch.found_words();
        out.empty(
            "Mismatch",
            &[
                ("Path", &mismatch.path),
                ("Offset", &mismatch.offset),
                ("Kind", &mismatch.kind.keyword()),
                ("Pass", &mismatch.pass.keyword()),
                ("ExpectedGeneration", &mismatch.expected),
                ("Found", &found),
            ],
        )?;
    }
    out.close("Verification")
}

fn write_check(name: &str, checked: Option<Checked>, out: &mut Elements<'_>) -> io::Result<()> {
    let Some(checked) = checked else { return Ok(()) };
    out.empty(
        name,
        &[
            ("Bytes", &checked.bytes),
            ("OfBytes", &checked.of_bytes),
            ("Complete", &checked.complete),
            ("UnreadableBytes", &checked.unreadable_bytes),
        ],
    )
}
