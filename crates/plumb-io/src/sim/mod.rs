//! A simulated disk under virtual time, with seeded faults.
//!
//! One seed and one sequence of calls give the same completions at the same virtual nanoseconds on
//! every machine. Time passes only while an issuer waits in `submit_and_wait`.

mod device;
mod faults;
pub mod power;
mod queue;
#[cfg(test)]
mod queue_tests;
mod random;

pub use device::{Content, DiskSpec, Service, Stalls};
pub use faults::{Fault, FaultKind, RandomFaults};
pub use queue::{SimOpener, SimQueue};
