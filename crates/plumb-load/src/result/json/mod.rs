//! The JSON result: everything that is known about a run, versioned (docs/reference/json-result.md).
//!
//! Adding a member keeps [`SCHEMA_VERSION`]; removing or renaming one, or changing a meaning or a unit,
//! raises it. Members stand in a fixed order, the run's totals before everything that resembles them.

pub mod counters;
mod document;
mod figures;
mod format;
mod intervals;
mod open_loop;
mod span;
mod verify;

use std::io::{self, Write};

use serde::Serialize;
use serde_json::Serializer;

use super::model::RunResult;

/// The version of the document's shape; not the measurement epoch.
pub const SCHEMA_VERSION: u32 = 1;

/// The JSON Schema of the document.
pub const SCHEMA: &str = include_str!("../../../../../docs/reference/result.schema.json");

/// Writes the whole document, piece by piece, and a line end.
///
/// # Errors
/// What `out` reports, and what reading the intervals back does.
pub fn write(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    let mut serializer = Serializer::with_formatter(&mut *out, format::Layout::default());
    document::Document::of(result).serialize(&mut serializer).map_err(io::Error::from)?;
    out.write_all(b"\n")
}
