//! `plan.json`: what a study asks.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The format of the documents in a study's folder; raised when an older program would misread them.
pub const FORMAT: u32 = 1;

/// What kind of question it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// Settings that somebody chose (`plumb sweep`).
    Sweep,
    /// The whole workflow (`plumb baseline`).
    Baseline,
    /// The eight figures that desktop tools show (`plumb quick`).
    Quick,
}

impl Kind {
    /// The word that commands and documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Sweep => "sweep",
            Self::Baseline => "baseline",
            Self::Quick => "quick",
        }
    }
}

/// What performs the I/O.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Device {
    /// A file or device of this machine.
    Real,
    /// A simulated device in virtual time; its whole description.
    Simulated(Value),
}

/// A study as it was planned; never changed after the first run. It is written before anything that takes time, and once more
/// when what is found out before the first run is known.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Study {
    /// [`FORMAT`] of the program that wrote it.
    pub format: u32,
    /// Name of its folder; letters, digits, `-`, `_` and `.`.
    pub id: String,
    /// What kind of question it is.
    pub kind: Kind,
    /// One line for people.
    pub title: String,
    /// When it was planned, RFC 3339 in UTC.
    pub created: String,
    /// Name and version of the program.
    pub tool: String,
    /// Measurement epoch of the program: results of different epochs are not compared.
    pub epoch: u32,
    /// The file or device, absolute.
    pub target: String,
    /// What performs the I/O.
    pub device: Device,
    /// S: devices that back the target, where declared.
    pub devices: Option<u32>,
    /// c: copies that the volume keeps of each datum.
    pub copies: u32,
    /// Seed of every random choice: order, offsets.
    pub seed: u64,
    /// The request: of a sweep its plan, of a baseline its options.
    pub request: Value,
    /// Runs that the adaptive plan takes at most.
    pub runs_most: u64,
    /// Runs that an exhaustive plan of the same question takes.
    pub runs_exhaustive: u64,
    /// Seconds that the plan is estimated to take, file creation included; without a range what its runs take at most.
    pub estimate_s: f64,
    /// The same, from and to; `None` until it was found out, before the first run.
    #[serde(default)]
    pub estimate_range_s: Option<(f64, f64)>,
    /// Facts that must not change between parts of a study (target, tool epoch, kernel, device model):
    /// resuming is refused when one differs.
    pub critical: BTreeMap<String, String>,
    /// The environment record before the first run, where one was taken.
    #[serde(default)]
    pub environment: Option<Value>,
}

impl Study {
    /// How many runs it takes, in words: a baseline that runs everything extends a range at whose end its curve rises.
    #[must_use]
    pub fn runs_in_words(&self) -> String {
        let request = &self.request;
        let is_exhaustive = request["exhaustive"] == true || request["preset"] == "published";
        match self.kind == Kind::Baseline && is_exhaustive {
            true => format!("{} as planned before a range is extended", self.runs_most),
            false => format!("at most {}", self.runs_most),
        }
    }
}
