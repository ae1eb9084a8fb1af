//! A profile is run (spec 6.1): files are made, targets opened and checked, threads started, phases
//! timed, counts collected.

mod alignment;
pub mod create;
mod evidence;
mod files;
mod guard;
mod memory;
pub mod observe;
mod one_by_one;
mod phases;
mod span;
mod steering;
pub mod support;
pub mod target;
mod thread;
mod truth;
mod verify;
pub mod wake_up;

use std::path::PathBuf;

use jiff::Timestamp;
use plumb_io::Opener;
use plumb_io::clock::{Clock, StampClock};
use plumb_io::system_tree::SystemTree;

pub use observe::{Observer, Phase, Snapshot};

use crate::arrivals::OpenLoop;
use crate::profile::model::Profile;
use crate::result::model::{HostFacts, RunResult, SpanResult, Tool};
use crate::result::verify::VerifyResult;

/// How a profile is run, beside what it says itself.
#[derive(Debug, Clone)]
pub struct SessionOptions {
    /// argv joined by single blanks, for the report.
    pub command_line: String,
    /// Who we are.
    pub tool: Tool,
    /// `--batch`.
    pub batch: Option<u32>,
    /// `--rate` and `--arrival`.
    pub open_loop: Option<OpenLoop>,
    /// `--truth`: the clock of the stamps, which the kernel's events are compared with.
    pub truth: Option<StampClock>,
    /// What wake-ups took here before the start ([`wake_up::measure`]), for the error bar; more are measured behind
    /// each time span.
    pub wake_ups: Option<wake_up::WakeUps>,
    /// `--poll`: targets must be on devices with polled queues.
    pub poll: bool,
    /// `--verify`.
    pub verify: Option<VerifyOptions>,
    /// `--on-error continue`: failed I/Os are counted and the run goes on (D-21).
    pub continue_on_error: bool,
    /// What may be overwritten.
    pub overwrite: Overwrite,
    /// Whether the engine opens no target (`null`, `nop`).
    pub opens_no_target: bool,
}

/// How a run is verified.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyOptions {
    /// `--verify-state`.
    pub state: Option<PathBuf>,
}

/// What writes may overwrite without being asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Overwrite {
    /// What Plumb made, what is empty, and what is named here (`--destroy`).
    Named(Vec<PathBuf>),
    /// DISKSPD's rule: every regular file; devices only if named here.
    Files(Vec<PathBuf>),
}

/// What came of it.
#[derive(Debug)]
pub struct SessionOutcome {
    /// What was measured; time spans that were not run are in it, as interrupted ones.
    pub result: RunResult,
    /// How it ended.
    pub end: SessionEnd,
}

/// How a session ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SessionEnd {
    /// Everything was run, or the user ended it.
    Completed,
    /// A run failed: exit code 1.
    Failed,
    /// Everything was run, and verification found what should not be (`--verify`): exit code 1.
    Mismatched,
    /// Refused before anything was touched, by the safety gate or for processors that are not there:
    /// exit code 3.
    Refused(String),
}

/// Runs every time span of `profile`.
///
/// After a failed time span no further one runs. A refused write ends the session before any load.
pub fn run<O: Opener, C: Clock>(
    profile: &Profile,
    options: &SessionOptions,
    opener: &O,
    clock: &C,
    tree: &SystemTree,
    observer: &mut dyn Observer,
) -> SessionOutcome {
    let host = HostFacts::read(tree);
    let mut result = RunResult {
        command_line: options.command_line.clone(),
        profile: (**profile).clone(),
        host,
        started_at: Timestamp::now(),
        time_spans: Vec::with_capacity(profile.time_spans.len()),
        tool: options.tool.clone(),
        interrupted: false,
        spaces: Vec::new(),
    };
    let mut session = span::Session {
        profile,
        options,
        opener,
        clock,
        tree,
        observer,
        origin: clock.now(),
        made: Vec::new(),
        guard: guard::Guard::default(),
        verified: None,
        topology: result.host.topology.clone(),
        memory_bytes: result.host.memory_bytes,
        requests: None,
    };
    let mut end = None;
    let ready = session.check_trace().and_then(|()| session.check_processors());
    let ready = ready.and_then(|()| session.check_counts());
    let ready = ready.and_then(|()| session.guard_all());
    let ready = ready.and_then(|()| session.check_before_making());
    let ready = ready.and_then(|()| session.begin_verification());
    if let Err(failure) = ready.and_then(|()| session.precreate()) {
        end = Some(note_failure(&mut result, failure));
    }
    for number in 0..profile.time_spans.len() {
        // Once the user has ended the run, nothing more is made, opened or written.
        if end.is_some() || session.observer.interrupted() {
            break;
        }
        match session.run_span(number) {
            Ok(span) => {
                if !span.failures.is_empty() {
                    end = Some(SessionEnd::Failed);
                }
                result.time_spans.push(span);
            }
            Err(failure) => end = Some(note_failure(&mut result, failure)),
        }
    }
    let ended = session.end_verification();
    if let Err(failure) = &ended {
        session.observer.warning(failure);
    }
    let found = |span: &SpanResult| span.verify.as_ref().is_some_and(VerifyResult::is_bad);
    let end = end.unwrap_or(match ended.is_err() || result.time_spans.iter().any(found) {
        true => SessionEnd::Mismatched,
        false => SessionEnd::Completed,
    });
    result.interrupted = session.observer.interrupted();
    session.guard.settle(tree, session.observer);
    result.time_spans.resize_with(profile.time_spans.len(), SpanResult::default);
    SessionOutcome { result, end }
}

/// Files a failure under the time span in which it happened.
fn note_failure(result: &mut RunResult, failure: span::SpanFailure) -> SessionEnd {
    let (message, end) = match failure {
        span::SpanFailure::Interrupted => return SessionEnd::Completed,
        span::SpanFailure::Refused(failure) => {
            let end = SessionEnd::Refused(failure.text.clone());
            (failure, end)
        }
        span::SpanFailure::Failed(message) => (message, SessionEnd::Failed),
    };
    result.time_spans.push(SpanResult { failures: vec![message], ..SpanResult::default() });
    end
}
