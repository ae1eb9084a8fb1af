//! What was seen: latencies, intervals, CPU time.

pub mod cpu;
pub mod histogram;
pub mod interval_log;
pub mod iops_series;
pub mod latency;
pub mod open_loop;
pub mod processor_wait;
mod scratch;
pub mod span_series;

pub use histogram::Histogram;
pub use iops_series::{IntervalCell, IopsMoments, IopsSeries};
pub use latency::{ExactLatencies, LatencySet};
pub use open_loop::OpenTally;
pub use processor_wait::ProcessorWait;
