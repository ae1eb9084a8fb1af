//! What time it is, for whoever stamps I/Os.

use plumb_units::Nanos;

/// A monotonic clock shared by all threads of a run.
pub trait Clock: Clone + Send + Sync {
    /// The time now. Its zero means nothing; differences do.
    fn now(&self) -> Nanos;
}
