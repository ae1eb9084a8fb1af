//! The load generator: DISKSPD's command line, profiles, I/O semantics and results.
//!
//! Data flows one way: `flags | xml → RawProfile → Profile → Plan → RunResult → text | xml | json`, a
//! file per arrow. After the plan nothing is optional and nothing is parsed.
#![forbid(unsafe_code)]

pub mod affinity;
pub mod arrivals;
pub mod assemble;
pub mod convert;
pub mod host;
pub mod pace;
pub mod pattern;
pub mod payload;

pub mod plan;
pub mod plausibility;
pub mod profile;
pub mod result;
pub mod rng;
pub mod run_loop;
pub mod session;
pub mod tally;
pub mod trace;
pub mod witness;
