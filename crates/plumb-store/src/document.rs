//! The document of a run: who, when, where, and the result as it was.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The version of the document's shape.
pub const STORE_VERSION: u32 = 1;

/// How a run came to be kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Origin {
    /// `plumb run --store`.
    Run,
    /// A result file that was imported.
    Import,
    /// A study.
    Study,
}

impl Origin {
    /// The word in documents.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Run => "run",
            Self::Import => "import",
            Self::Study => "study",
        }
    }
}

/// What a list of runs shows; what is not known is `None`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(default)]
pub struct Summary {
    /// When the run was started, RFC 3339; when it was stored, where that is not known.
    pub started_at: Option<String>,
    /// Its command line, program name included.
    pub command_line: Option<String>,
    /// The first target.
    pub target: Option<String>,
    /// How it was measured: the tool and its measurement epoch.
    pub epoch: Option<String>,
    /// I/Os per second over all measured time spans.
    pub iops: Option<f64>,
    /// MiB per second.
    pub mib_per_s: Option<f64>,
    /// Mean latency in milliseconds.
    pub latency_ms: Option<f64>,
    /// Whether it was ended early.
    pub interrupted: bool,
}

/// A run as it is handed in.
#[derive(Debug, Clone, PartialEq)]
pub struct NewRun {
    /// How it came.
    pub origin: Origin,
    /// What the user calls it; several runs may share a label.
    pub label: Option<String>,
    /// What a list shows.
    pub summary: Summary,
    /// Arguments of `plumb run`, to run it again; `None` for imports.
    pub arguments: Option<Vec<String>>,
    /// The folder that they were given in.
    pub working_folder: Option<String>,
    /// The environment before the run and after it (method, 2.2); null where it is not known.
    pub environment: (Value, Value),
    /// The result: a JSON object of `plumb run`, or the text of another report as a string.
    pub result: Value,
}

/// A run as it is kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct StoredRun {
    /// [`STORE_VERSION`].
    pub store_version: u32,
    /// Its name in the store.
    pub id: String,
    /// When it was stored, RFC 3339.
    pub stored_at: String,
    /// How it came.
    pub origin: Origin,
    /// What the user calls it.
    pub label: Option<String>,
    /// What a list shows.
    pub summary: Summary,
    /// Arguments of `plumb run`.
    pub arguments: Option<Vec<String>>,
    /// The folder that they were given in.
    pub working_folder: Option<String>,
    /// The environment before the run.
    pub environment: Value,
    /// The environment after it.
    pub environment_after: Value,
    /// The result: a JSON object, or the text of another report.
    pub result: Value,
    /// What later versions add.
    #[serde(flatten)]
    pub more: Map<String, Value>,
}

impl StoredRun {
    pub(crate) fn new(id: String, stored_at: String, run: NewRun) -> Self {
        let (environment, environment_after) = run.environment;
        Self {
            store_version: STORE_VERSION,
            id,
            stored_at,
            origin: run.origin,
            label: run.label,
            summary: run.summary,
            arguments: run.arguments,
            working_folder: run.working_folder,
            environment,
            environment_after,
            result: run.result,
            more: Map::new(),
        }
    }

    /// The result as the bytes of a file: what the run wrote, or would have.
    #[must_use]
    pub fn result_bytes(&self) -> Vec<u8> {
        match &self.result {
            Value::String(text) => text.clone().into_bytes(),
            object => format!("{object:#}\n").into_bytes(),
        }
    }
}
