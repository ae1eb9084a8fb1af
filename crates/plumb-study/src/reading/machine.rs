//! Rules about processors and the way to the device: R4, R5, R6, R22.

use super::{Cpu, Facts, Remark, info, warn};
use crate::stats::describe::{mean, median};

/// Cores below this sum of usage and idle were not measured.
const MEASURED_FROM: f64 = 50.0;

fn measured(facts: &Facts) -> Vec<(usize, Cpu)> {
    let all = facts.cores.iter().copied().enumerate();
    all.filter(|(_, core)| core.usage + core.idle >= MEASURED_FROM).collect()
}

/// R4: one core that does much more than the others.
pub(super) fn pooled_core(facts: &Facts) -> Vec<Remark> {
    let cores = measured(facts);
    let usage: Vec<f64> = cores.iter().map(|(_, core)| core.usage).collect();
    let middle = median(&usage);
    cores
        .iter()
        .filter(|(_, core)| core.usage > 2.0 * middle && core.usage > middle + 10.0)
        .flat_map(|(number, core)| info(4, format!(
            "CPU {number} is {:.2} % busy, the median {middle:.2} %: interrupts or a work pool sit there.",
            core.usage
        )))
        .collect()
}

/// R5: processors near their limit.
pub(super) fn cpu_bound(facts: &Facts) -> Vec<Remark> {
    let cores = measured(facts);
    let usage: Vec<f64> = cores.iter().map(|(_, core)| core.usage).collect();
    let busiest = usage.iter().copied().fold(0.0, f64::max);
    let all = if usage.is_empty() { 0.0 } else { mean(&usage) };
    if busiest < 85.0 && all < 80.0 {
        return Vec::new();
    }
    warn(
        5,
        format!(
            "The busiest CPU is {busiest:.0} % busy, all together {all:.0} %: the result may be bound by \
         processors, not by the device."
        ),
    )
}

/// R6: rows of cores that were not measured.
pub(super) fn unmeasured_cores(facts: &Facts) -> Vec<Remark> {
    let cores = measured(facts);
    let missing = facts.cores.len() - cores.len();
    if missing == 0 || cores.is_empty() {
        return Vec::new();
    }
    let usage: Vec<f64> = cores.iter().map(|(_, core)| core.usage).collect();
    let sum: f64 = facts.cores.iter().map(|core| core.usage).sum();
    info(
        6,
        format!(
            "{missing} of {} CPUs were not measured; over the {} that were, the mean usage is {:.2} %, not \
         {:.2} %.",
            facts.cores.len(),
            cores.len(),
            mean(&usage),
            sum / facts.cores.len() as f64
        ),
    )
}

/// R22: a way that has one more hop.
pub(super) fn one_more_hop(facts: &Facts) -> Vec<Remark> {
    facts
        .remote
        .iter()
        .flat_map(|way| {
            info(22, format!("I/O takes one more hop: {way}. Its latency is part of every I/O."))
        })
        .collect()
}
