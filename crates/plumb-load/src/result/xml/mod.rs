//! XML results (spec 8, 15.11): DISKSPD's elements in DISKSPD's order, and Plumb's own `Plausibility`
//! at the end of each time span.
//!
//! The first line is exactly `<Results>`, by which tools know the format; after `</Results>` there is no
//! line end.

mod element;
mod latency;
mod open_loop;
mod plausibility;
mod span;
pub mod system;
mod truth;
mod verify;

use std::io::{self, Write};

use element::Elements;
pub use element::escape;

use super::model::RunResult;

/// Writes the whole document, piece by piece.
///
/// # Errors
/// What `out` reports.
pub fn write(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    write_with(result, true, out)
}

/// Writes DISKSPD's document: what only Plumb knows is left out.
///
/// # Errors
/// What `out` reports.
pub fn write_diskspd(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    write_with(result, false, out)
}

fn write_with(result: &RunResult, with_own: bool, out: &mut dyn Write) -> io::Result<()> {
    out.write_all(b"<Results>\n")?;
    let mut elements = Elements::new(out, 1);
    system::write(&result.host, &result.tool, result.started_at, &mut elements)?;
    let depth = elements.depth();
    elements.raw(&crate::profile::xml::write(&result.profile, depth))?;
    for (span, asked) in result.time_spans.iter().zip(&result.profile.time_spans) {
        span::write(span, asked, (result.profile.verbose_stats, with_own), &mut elements)?;
    }
    elements.raw("</Results>")
}

/// Milliseconds and rates as DISKSPD writes them.
fn fixed(value: f64) -> String {
    format!("{value:.3}")
}
