//! Counters beside each measured time span, where a result will hold them.

use std::time::Duration;

use plumb_io::counters::{Counters, Recorder, Watched};
use plumb_io::system_tree::SystemTree;
use plumb_load::profile::flags::{Invocation, Keep, OutputFormat};
use plumb_load::result::model::RunResult;
use plumb_load::session::target::resolve;
use plumb_study::preflight::{Plan, Target};

/// How often it looks.
const INTERVAL: Duration = Duration::from_secs(1);

/// Looks once per second between the beginning and the end of each measurement.
#[derive(Default)]
pub(super) struct Beside {
    /// `None` where no result would hold it.
    watched: Option<(SystemTree, Watched)>,
    running: Option<Recorder>,
    seen: Vec<Counters>,
}

impl Beside {
    /// Finds what is to be looked at, if a JSON result is made.
    pub(super) fn new(invocation: &Invocation, tree: &SystemTree) -> Self {
        let options = &invocation.options;
        let is_wanted = options.json
            || options.store != Keep::No
            || options.outputs.iter().any(|output| output.format == OutputFormat::Json);
        let watched = is_wanted.then(|| (tree.clone(), find(invocation, tree)));
        Self { watched, running: None, seen: Vec::new() }
    }

    /// The measurement began.
    pub(super) fn begin(&mut self) {
        if let Some((tree, watched)) = &self.watched {
            // Without a thread there are no counters; the run does not need them.
            self.running = Recorder::start(tree, watched.clone(), INTERVAL).ok();
        }
    }

    /// It ended.
    pub(super) fn end(&mut self) {
        self.seen.extend(self.running.take().map(Recorder::stop));
    }

    /// Gives each measured time span what was seen beside it.
    pub(super) fn add_to(mut self, result: &mut RunResult) {
        self.end();
        let measured =
            result.time_spans.iter_mut().filter(|span| span.phases.measurement.is_some());
        for (span, counters) in measured.zip(self.seen) {
            span.counters = Some(counters);
        }
    }
}

fn find(invocation: &Invocation, tree: &SystemTree) -> Watched {
    let targets = invocation.profile.time_spans.iter().flat_map(|span| &span.targets);
    let mut paths: Vec<_> = targets.filter_map(|target| resolve(&target.path).ok()).collect();
    paths.sort();
    paths.dedup();
    let stacks: Vec<_> = paths
        .iter()
        .filter_map(|path| Target::find(tree, path, Plan::default()).ok())
        .map(|target| target.stack)
        .collect();
    Watched::under(tree, &stacks)
}
