//! Help with reading a result (method, section 8): rules that see something and say it plainly.
//!
//! What was seen, what it usually means, what to do next; never "good" or "bad" without a baseline or a
//! limit.

mod facts;
mod latency;
mod machine;
mod throughput;
mod workload;

pub use facts::{
    Access, Cache, Completion, Cpu, Facts, FewIntervals, Latencies, LatencyCost, Medium,
    Percentiles, Spread, Sync, Thread,
};

use serde::{Deserialize, Serialize};

/// How much a remark matters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// Good to know.
    Info,
    /// The result may not mean what it seems to.
    Warn,
}

impl Severity {
    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Info => "info",
            Self::Warn => "warn",
        }
    }
}

/// What a rule says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Remark {
    /// The rule's number, from 1: R1 to R24.
    pub rule: u32,
    /// How much it matters.
    pub severity: Severity,
    /// One or two sentences with their numbers.
    pub text: String,
}

type Rule = fn(&Facts) -> Vec<Remark>;

/// Every rule, in order.
const RULES: [Rule; 24] = [
    throughput::totals,
    latency::jump,
    throughput::uneven_threads,
    machine::pooled_core,
    machine::cpu_bound,
    machine::unmeasured_cores,
    throughput::littles_law,
    throughput::ceiling,
    latency::marks,
    latency::one_stall,
    latency::served_from_cache,
    workload::file_size,
    workload::differing_settings,
    workload::compressible,
    throughput::exhausted,
    latency::volatile_cache,
    workload::too_short,
    throughput::unstable,
    workload::write_share,
    workload::overlapping_threads,
    throughput::bounds,
    machine::one_more_hop,
    workload::cost_of_latency,
    workload::synchronisation,
];

/// What all rules say about a result, in their order. A rule whose facts are not known says nothing.
#[must_use]
pub fn read(facts: &Facts) -> Vec<Remark> {
    RULES.iter().flat_map(|rule| rule(facts)).collect()
}

fn info(rule: u32, text: String) -> Vec<Remark> {
    vec![Remark { rule, severity: Severity::Info, text }]
}

fn warn(rule: u32, text: String) -> Vec<Remark> {
    vec![Remark { rule, severity: Severity::Warn, text }]
}

#[cfg(test)]
mod tests;
