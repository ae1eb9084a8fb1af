//! The whole workflow (method, section 2): pre-tests, random tests, sequential tests, latency and throughput
//! apart, in at most forty runs.

mod cost;
mod curve;
mod doubt;
mod extent;
mod findings;
mod open;
mod options;
mod planner;
mod steps;

pub use findings::baseline_findings;
pub use options::{BaselineOptions, Part, Preset, Step};
pub use planner::{BaselinePlanner, Choices};
