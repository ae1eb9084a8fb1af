//! Many runs to a conclusion: what a set of measurements says, with its uncertainty, and what it does
//! not say yet.
//!
//! Everything here is a pure function from numbers to a decision, but for two: the preflight looks at the
//! machine, and `study` has runs performed and writes them down.
#![forbid(unsafe_code)]

pub mod attribution;
pub mod bracket;
pub mod caps;
pub mod compare;
pub mod decision;
pub mod environment;
pub mod explain;
pub mod findings;
pub mod history;
pub mod identities;
pub mod knee;
pub mod outliers;
pub mod percentile;
pub mod precision;
pub mod preflight;
pub mod profiles;
pub mod reading;
pub mod record;
pub mod repetitions;
pub mod report;
pub mod samples;
pub mod series_table;
pub mod split;
pub mod stats;
pub mod steadiness;
pub mod steady;
pub mod study;
pub mod sweep_time;
pub mod table;
pub mod tiers;
pub mod usl;
