//! `findings.json`: what a study says.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// How far the study is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum State {
    /// Everything asked for was measured.
    #[default]
    Complete,
    /// It was interrupted, or its budget ended; it can be resumed.
    Partial,
}

/// All findings of a study, the most important first. No times and no names of machines: the same plan
/// and the same runs give the same bytes.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Findings {
    /// Format of the documents.
    pub format: u32,
    /// The study's name.
    pub study: String,
    /// How far it is.
    pub state: State,
    /// Runs that were measured.
    pub runs: u64,
    /// Runs that an exhaustive plan takes.
    pub runs_exhaustive: u64,
    /// What was found.
    pub findings: Vec<Finding>,
    /// Remarks on the whole study: steps left out, disturbances, what was given up.
    pub notes: Vec<String>,
}

/// One thing that was found.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Finding {
    /// Name within the study: `random-1`, `sequential-read`, `o-of-t8`.
    pub id: String,
    /// A few words.
    pub title: String,
    /// One or two plain sentences with their numbers.
    pub sentence: String,
    /// The step it belongs to.
    pub step: String,
    /// The decision object (method, section 10): `id`, `verdict`, `value`, `interval`, `flags`,
    /// `evidence`, `rule`, `parameters` and what its kind adds. `plumb explain` takes it.
    pub decision: Map<String, Value>,
    /// Runs that it rests on, by number.
    pub runs: Vec<u32>,
    /// The numbers behind it, where a table shows them.
    #[serde(default)]
    pub table: Option<Table>,
}

/// Numbers behind a finding.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Table {
    /// Names of the columns, with units.
    pub columns: Vec<String>,
    /// A value or null per column.
    pub rows: Vec<Vec<Value>>,
}
