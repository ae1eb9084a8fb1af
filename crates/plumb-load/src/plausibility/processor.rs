//! Whether the processors, and not the target, set the figures.

use plumb_io::io_wq::CpuSpent;
use plumb_units::Nanos;

use super::{item, percent};
use crate::result::model::{CpuUsage, Plausibility, PlausibilityItem};

/// A thread this busy hardly ever waits for the target.
const THREAD_BUSY: f64 = 0.95;
/// A shorter measurement says nothing of that: the counters are read around it, and reading them takes
/// about a millisecond.
const ELAPSED_MIN: Nanos = Nanos(100_000_000);
/// Processors this busy leave no room for more I/O.
const MACHINE_BUSY: f64 = 95.0;
/// More than this in workers means that requests are handed over as a rule.
const HANDED_OVER: f64 = 0.1;
/// More than this is felt in latencies.
const STOLEN: f64 = 0.02;

fn verdict(is_suspicious: bool) -> Plausibility {
    if is_suspicious { Plausibility::Suspicious } else { Plausibility::Ok }
}

/// Whether the busiest thread left time to wait, where it does not poll instead; nothing of a measurement too short
/// to tell.
pub(super) fn generator_item(
    busiest: Nanos,
    elapsed: Nanos,
    polls: bool,
) -> Option<PlausibilityItem> {
    if elapsed < ELAPSED_MIN {
        return None;
    }
    // A thread runs on one processor; what is above that ran beside the measurement.
    let share = (busiest.0 as f64 / elapsed.0 as f64).min(1.0);
    let is_busy = share >= THREAD_BUSY;
    let rest = match (is_busy, polls) {
        (false, _) => "",
        (true, false) => {
            ": the generator, not the target, may set the rate; add threads (-t, -F) to find out"
        }
        (true, true) => {
            ", for it asks for completions all the time (--poll); whether the generator sets the rate cannot be told by \
             that: add threads (-t, -F) to find out"
        }
    };
    let verdict = if is_busy && polls { Plausibility::Unknown } else { verdict(is_busy) };
    let sentence = format!("The busiest thread used {} of a processor{rest}.", percent(share));
    Some(item("generator_cpu_share", None, Some(share), verdict, sentence))
}

/// Whether all processors together were at their limit; nothing when they are not known.
pub(super) fn saturation_item(cpus: &[CpuUsage]) -> Option<PlausibilityItem> {
    if cpus.is_empty() {
        return None;
    }
    let busy: f64 = cpus.iter().map(|cpu| cpu.user + cpu.kernel).sum::<f64>() / cpus.len() as f64;
    let is_busy = busy >= MACHINE_BUSY;
    let rest = if is_busy { ": they, not the target, may set the rate" } else { "" };
    let share = busy / 100.0;
    let sentence = format!("All processors together were {} busy{rest}.", percent(share));
    Some(item("machine_cpu_share", None, Some(share), verdict(is_busy), sentence))
}

/// How much of the process' CPU time went to io-wq workers.
pub(super) fn io_wq_item(spent: CpuSpent) -> PlausibilityItem {
    let share = spent.io_wq_share();
    let is_handed_over = share > HANDED_OVER;
    let rest = if is_handed_over {
        ": the file system or driver starts no I/O without blocking, so requests were handed to kernel workers \
         and latencies contain that"
    } else {
        ""
    };
    let sentence = format!("Kernel workers (io-wq) took {} of the CPU time{rest}.", percent(share));
    item("io_wq_cpu_share", None, Some(share), verdict(is_handed_over), sentence)
}

/// What an I/O took of the processors, io-wq workers included; nothing without I/O.
pub(crate) fn per_io_item(spent: Nanos, io_count: u64) -> Option<PlausibilityItem> {
    if io_count == 0 {
        return None;
    }
    let nanos = spent.0 as f64 / io_count as f64;
    let time =
        if nanos < 1000.0 { format!("{nanos:.0} ns") } else { format!("{:.2} µs", nanos / 1e3) };
    let sentence =
        format!("Each I/O took {time} of CPU time of this process, its kernel workers included.");
    Some(item("process_cpu_ns_per_io", None, Some(nanos), Plausibility::Ok, sentence))
}

/// How much time the hypervisor gave to others.
pub(super) fn steal_item(share: f64) -> PlausibilityItem {
    let is_felt = share > STOLEN;
    let rest = if is_felt { ": other machines on this host take part in every figure" } else { "" };
    let sentence =
        format!("The hypervisor gave {} of the processors' time to others{rest}.", percent(share));
    item("steal_share", None, Some(share), verdict(is_felt), sentence)
}
