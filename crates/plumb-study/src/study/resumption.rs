//! `resumptions.ndjson`: a line each time that a study went on after an interruption.

use serde::{Deserialize, Serialize};

use super::RunRecord;

/// A study that went on.
///
/// It stands beside the journal, not in it: the runs that a study asks for are the same with and without an
/// interruption, and so are its findings, unless the machine or the device is not the same any more.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Resumption {
    /// Number of the last run before.
    pub after_run: u32,
    /// When, RFC 3339 in UTC; `None` in virtual time.
    pub at: Option<String>,
    /// What is not as it was when the study began, in words.
    #[serde(default)]
    pub changes: Vec<String>,
    /// The reference setting, run before anything else (method, 4.3), of several runs the middle one; `None` where nothing was
    /// due.
    pub reference: Option<RunRecord>,
    /// How many runs of it were made: three where the first was not as before.
    #[serde(default)]
    pub references: u32,
}
