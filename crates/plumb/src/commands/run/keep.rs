//! `--store`: keeps the result with its environment. The store is opened before the run, so that an hour's
//! work is not lost to a folder that cannot be written to.

use std::path::PathBuf;
use std::time::Duration;

use jiff::Timestamp;
use plumb_io::system_tree::SystemTree;
use plumb_load::profile::flags::{Invocation, Keep};
use plumb_load::result::json;
use plumb_load::result::model::RunResult;
use plumb_load::session::target::resolve;
use plumb_store::{NewRun, Origin, Store};
use plumb_study::environment;
use plumb_study::preflight::Plan;
use serde_json::Value;

use crate::commands::sources::{self, SourceError};
use crate::commands::study::machine;
use crate::commands::{runs, version};

/// A run that is to be kept.
pub(super) struct Keeper {
    store: Store,
    label: Option<String>,
    arguments: Vec<String>,
    targets: Vec<PathBuf>,
    before: Value,
}

impl Keeper {
    /// `None` unless it is asked for.
    pub(super) fn open(
        invocation: &Invocation,
        tree: &SystemTree,
    ) -> Result<Option<Self>, SourceError> {
        let label = match &invocation.options.store {
            Keep::No => return Ok(None),
            Keep::Yes => None,
            Keep::As(label) => Some(label.clone()),
        };
        let spans = &invocation.profile.time_spans;
        let names = spans.iter().flat_map(|span| &span.targets).map(|target| &target.path);
        let mut targets: Vec<PathBuf> = names.filter_map(|name| resolve(name).ok()).collect();
        targets.dedup();
        let store = sources::open()?;
        let mut before = look(tree, &targets);
        before["preflight"] = preflight(tree, &targets);
        let arguments = invocation.tokens.clone();
        Ok(Some(Self { store, label, arguments, targets, before }))
    }

    /// Keeps the result; returns its id.
    pub(super) fn keep(self, result: &RunResult, tree: &SystemTree) -> Result<String, SourceError> {
        let mut text = Vec::new();
        json::write(result, &mut text).map_err(|source| SourceError::Read {
            path: "the intervals of the run".into(),
            source,
        })?;
        let result: Value = serde_json::from_slice(&text).expect("what we write is JSON");
        let mut summary = runs::summary(&plumb_study::record::Overview::of_json(&result));
        summary.epoch = result["epoch"].as_u64().map(|epoch| format!("Plumb, epoch {epoch}"));
        let run = NewRun {
            origin: Origin::Run,
            label: self.label,
            summary,
            arguments: Some(self.arguments),
            working_folder: std::env::current_dir().ok().map(|folder| folder.display().to_string()),
            environment: (self.before, look(tree, &self.targets)),
            result,
        };
        self.store.add(run).map_err(SourceError::Store)
    }
}

/// How long the machine is watched: each run that is kept waits for it.
const WATCHED: Duration = Duration::from_millis(250);

/// The verdicts on the first target; nothing is refused, a run is what its user wants.
fn preflight(tree: &SystemTree, targets: &[PathBuf]) -> Value {
    let Some(path) = targets.first() else { return machine::not_looked("there is no target") };
    match machine::look(tree, path, Plan::default(), WATCHED) {
        Ok(checks) => machine::verdicts(&checks, &[]),
        Err(error) => {
            machine::not_looked(&format!("{} cannot be looked at: {error}", path.display()))
        }
    }
}

fn look(tree: &SystemTree, targets: &[PathBuf]) -> Value {
    environment::record(tree, &version::tool(), targets, &Timestamp::now().to_string())
}
