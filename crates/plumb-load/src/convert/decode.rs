//! Finds out what a file is and reads it.

use super::error::ImportError;
use super::model::ImportedResult;
use super::{read_texts, read_xml};
use crate::profile::xml;

/// Reads whatever results a file holds: one XML document, or one or more text reports.
///
/// # Errors
/// The file is no text, holds no result, or one that says something impossible.
pub fn read(bytes: &[u8]) -> Result<Vec<ImportedResult>, ImportError> {
    let text = xml::decode(bytes).map_err(|violation| ImportError::NoResult(violation.message))?;
    if text.contains("<Results>") {
        return read_xml(&text).map(|result| vec![result]);
    }
    read_texts(&text)
}
