//! What a session tells whoever watches it; the command prints it, tests collect it.

use plumb_units::Nanos;

/// Watches a session. Called from the steering thread only, never from load threads.
pub trait Observer {
    /// A line of `-v` (spec 10.1), without its time stamp.
    fn verbose(&mut self, line: &str);

    /// Something the user should know; the run goes on.
    fn warning(&mut self, text: &str);

    /// Where the run is; several times a second.
    fn progress(&mut self, snapshot: &Snapshot);

    /// So many dots of `-P` are due (spec 6.13).
    fn dots(&mut self, count: u64);

    /// Whether the run is to end early: Ctrl-C, SIGTERM, or the stop event (`-yp`), which stays
    /// signalled.
    fn interrupted(&mut self) -> bool;

    /// Whether the load may start (`-yr`); asked again and again until it may.
    fn may_start(&mut self) -> bool {
        true
    }

    /// The measurement starts (`-ys`, D-15).
    fn measurement_started(&mut self) {}

    /// The measurement has ended (`-yf`, D-15).
    fn measurement_finished(&mut self) {}
}

/// What is going on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// Files are made; done and wanted bytes.
    Creating {
        /// Bytes written.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// What was acknowledged is read back (`--verify`); done and wanted bytes.
    Verifying {
        /// Bytes read.
        done: u64,
        /// Bytes in all.
        total: u64,
    },
    /// Threads are set up, or an event is waited for.
    Preparing,
    /// Before the measurement.
    WarmUp,
    /// What counts.
    Measuring,
    /// After it.
    CoolDown,
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Snapshot {
    /// Time span, from 1, and how many there are.
    pub time_span: (usize, usize),
    /// What is going on.
    pub phase: Phase,
    /// Since the phase began.
    pub elapsed: Nanos,
    /// How long the phase takes; zero when nobody knows.
    pub total: Nanos,
    /// What is left of the whole run.
    pub left: Nanos,
    /// Since the last snapshot of this phase.
    pub iops: f64,
    /// Since the last snapshot of this phase.
    pub bytes_per_s: f64,
    /// Mean latency since the last snapshot; `None` when it is not measured.
    pub latency: Option<Nanos>,
    /// I/Os that failed so far.
    pub errors: u64,
}
