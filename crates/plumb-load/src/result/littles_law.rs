//! Little's law as a check of every closed-loop result: I/Os per second × mean latency against the
//! outstanding I/Os that were configured.
//!
//! The mean number in flight follows from the figures themselves, so comparing it with them proves
//! nothing; the configured number is independent. r = X·L/N − 1 is a little below 0 for a sound
//! result: a request spends some time in the tool between completion and next submission.
//!
//! I/Os that failed are in no figure, but each held one of the outstanding I/Os until it did, so X and L
//! are of both kinds here.

use std::collections::BTreeSet;

use plumb_units::{Nanos, convert};

use super::model::{FailedIos, SpanResult};
use super::open_loop::OpenFigures;
use crate::profile::model::{Target, TimeSpan};
use crate::tally::LatencySet;

/// What is reported about one time span.
#[derive(Debug, Clone, PartialEq)]
pub struct LittlesLaw {
    /// Outstanding I/Os that the profile keeps up over all threads; `None` when it does not say.
    pub configured: Option<u64>,
    /// I/Os that failed; X and L include them.
    pub failed: u64,
    /// X·L: the mean number in flight; `None` without latencies or I/Os.
    pub in_flight_mean: Option<f64>,
    /// X·L/N − 1; `None` where N is a limit and not what is kept up, and without latencies.
    pub residual: Option<f64>,
    /// What a sound result may exceed 0 by: 0.2 % and what the ends of its window may add ([`window_ends`]).
    pub tolerance: f64,
    /// What the numbers say.
    pub verdict: Verdict,
}

/// What the numbers say.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// −1 % ≤ r ≤ tolerance.
    Consistent,
    /// −5 % ≤ r < −1 %: each cycle spends that share in the tool.
    ToolTurnaround,
    /// r < −5 %: the generator is the limit (CPU, too few threads).
    GeneratorLimited,
    /// r > tolerance, or more in flight than a limited profile allows: the figures contradict
    /// themselves and must not be used.
    AccountingError,
    /// A rate limit or burst decides how many are in flight; no more than configured were.
    Limited,
    /// Latencies were not measured, or nothing completed.
    NotMeasured,
    /// The profile does not say how many I/Os are outstanding: mapped targets among others.
    NotApplicable,
}

impl Verdict {
    /// What a closed loop's residual may exceed 0 by, apart from the ends of its window and rounding.
    pub const TOLERANCE: f64 = 0.002;

    /// Of a closed loop with no limit but its depth (methodology 1.3).
    #[must_use]
    pub fn of_residual(residual: f64, tolerance: f64) -> Self {
        match residual {
            r if r > tolerance => Self::AccountingError,
            r if r < -0.05 => Self::GeneratorLimited,
            r if r < -0.01 => Self::ToolTurnaround,
            _ => Self::Consistent,
        }
    }

    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Consistent => "consistent",
            Self::ToolTurnaround => "tool_turnaround",
            Self::GeneratorLimited => "generator_limited",
            Self::AccountingError => "accounting_error",
            Self::Limited => "limited",
            Self::NotMeasured => "not_measured",
            Self::NotApplicable => "not_applicable",
        }
    }
}

/// How much slower than the mean the slowest I/Os are where the device stalled.
const STALL: f64 = 10.0;

/// (1.3 a) What the ends of a window may add to r, all times in one unit. Each slot may hold one I/O that began before the
/// window and counts in full: of mean latency as a rule; where the device stalled, of that of the slowest. `slowest` is the
/// mean latency of the N slowest I/Os, N being the outstanding ones: r cannot be above that over the window by this cause
/// (docs/decisions/0214-a-stall-at-the-end-of-a-window.md).
#[must_use]
pub fn window_ends(mean: f64, slowest: Option<f64>, window: f64) -> f64 {
    slowest.filter(|slowest| *slowest >= STALL * mean).unwrap_or(mean) / window
}

impl LittlesLaw {
    /// Checks a time span against the profile that it ran.
    #[must_use]
    pub fn of(result: &SpanResult, span: &TimeSpan) -> Self {
        let total = result.figures().total();
        // In an open loop latencies are response times, part of which is spent before the submission.
        let open = OpenFigures::of(result.threads.iter().flat_map(|thread| &thread.targets));
        let latencies = match &open {
            Some(open) => Some(open.service()),
            None => total.latency.clone(),
        };
        let configured = outstanding(span);
        let of = |latencies: &LatencySet| {
            let slowest_us = configured.and_then(|count| latencies.mean_of_largest_us(count));
            Some(Measured { count: total.io_count, mean_us: latencies.mean_us()?, slowest_us })
        };
        let limited = open.is_some() || span.targets.iter().any(Target::is_paced);
        let measured = latencies.as_ref().and_then(of);
        let measured = with_failed(measured, &total.failed, span.stamps_latency());
        let law = check(configured, limited, measured, result.elapsed);
        Self { failed: total.failed.count, ..law }
    }
}

/// Outstanding I/Os over all threads of a span, each thread at its full depth all the time.
///
/// `None` when some threads mix mapped targets, whose I/O is done at once, with others.
#[must_use]
pub fn outstanding(span: &TimeSpan) -> Option<u64> {
    let mapped = span.targets.iter().filter(|target| target.memory_mapped).count();
    if mapped == span.targets.len() {
        return Some(working_threads(span));
    }
    if span.thread_count == 0 {
        let requests = |target: &Target| match target.memory_mapped {
            true => u64::from(target.threads_per_file),
            false => u64::from(target.threads_per_file) * u64::from(target.request_count),
        };
        return Some(span.targets.iter().map(requests).sum());
    }
    if mapped > 0 {
        return None;
    }
    let threads = u64::from(span.thread_count);
    if span.is_weighted_pool() {
        return Some(working_threads(span) * u64::from(span.request_count));
    }
    let requests = |target: &Target| match target.thread_targets.len() {
        0 => threads * u64::from(target.request_count),
        named => convert::to_u64(named) * u64::from(target.request_count),
    };
    Some(span.targets.iter().map(requests).sum())
}

/// Threads that have a target: a pool may have some that no target names.
fn working_threads(span: &TimeSpan) -> u64 {
    let all = span.total_threads();
    if span.thread_count == 0 || span.targets.iter().any(|target| target.thread_targets.is_empty())
    {
        return all;
    }
    let named = span.targets.iter().flat_map(|target| &target.thread_targets);
    let named: BTreeSet<u32> = named.map(|of_thread| of_thread.thread).collect();
    convert::to_u64(named.len())
}

/// I/Os and how long they took.
#[derive(Debug, Clone, Copy, Default)]
struct Measured {
    count: u64,
    mean_us: f64,
    /// Mean of as many of the slowest as are outstanding, in µs; `None` where single latencies are not known.
    slowest_us: Option<f64>,
}

/// The same with those that failed: n·L = n₁·L₁ + Σ t of the failed ones. How long each of these took is not known: the
/// slowest are those of the others.
fn with_failed(sound: Option<Measured>, failed: &FailedIos, stamps: bool) -> Option<Measured> {
    if failed.count == 0 || !stamps {
        return sound;
    }
    let sound = sound.unwrap_or_default();
    let sum_us = sound.count as f64 * sound.mean_us + Nanos(failed.latency_sum).as_micros_f64();
    let count = sound.count + failed.count;
    Some(Measured { count, mean_us: sum_us / count as f64, ..sound })
}

/// Checks what was measured over `elapsed`.
fn check(
    configured: Option<u64>,
    limited: bool,
    measured: Option<Measured>,
    elapsed: Nanos,
) -> LittlesLaw {
    let mut law = LittlesLaw {
        configured,
        failed: 0,
        in_flight_mean: None,
        residual: None,
        tolerance: Verdict::TOLERANCE,
        verdict: Verdict::NotMeasured,
    };
    let is_something = |measured: &Measured| measured.count > 0 && elapsed.0 > 0;
    let Some(measured) = measured.filter(is_something) else { return law };
    let elapsed_us = elapsed.as_micros_f64();
    let in_flight = measured.count as f64 * measured.mean_us / elapsed_us;
    law.in_flight_mean = Some(in_flight);
    law.tolerance += window_ends(measured.mean_us, measured.slowest_us, elapsed_us);
    let Some(configured) = configured.filter(|configured| *configured > 0) else {
        law.verdict = Verdict::NotApplicable;
        return law;
    };
    let residual = in_flight / configured as f64 - 1.0;
    law.verdict = match Verdict::of_residual(residual, law.tolerance) {
        Verdict::AccountingError => Verdict::AccountingError,
        _ if limited => Verdict::Limited,
        verdict => verdict,
    };
    law.residual = (!limited).then_some(residual);
    law
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::model::{ThreadTarget, Throughput};
    use crate::result::model::{DirectionResult, TargetResult, ThreadResult};
    use crate::tally::Histogram;

    fn measured(count: u64, mean_us: f64) -> Option<Measured> {
        Some(Measured { count, mean_us, slowest_us: None })
    }

    #[test]
    fn published_results_pass() {
        // (I/Os per second, mean latency in ms, outstanding, r in percent) over 900 s.
        for (iops, mean_ms, configured, percent) in [
            (14_411.29, 0.553, 8, -0.38),
            (58_071.31, 1.652, 96, -0.069),
            (1_953.30, 32.763, 64, -0.006),
            (20_581.94, 3.106, 64, -0.11),
        ] {
            let elapsed = Nanos::from_secs(900);
            let count = convert::floor_u64(iops * 900.0);
            let law = check(Some(configured), false, measured(count, mean_ms * 1e3), elapsed);
            assert_eq!(law.verdict, Verdict::Consistent);
            let residual = law.residual.expect("a closed loop") * 100.0;
            assert!((residual - percent).abs() < 0.006, "{residual} is not {percent}");
        }
    }

    #[test]
    fn verdicts_follow_the_residual() {
        let verdict = |in_flight_of_1000: f64, limited| {
            // 1000 requests for 100 s, 10 ms each: the ends of the window add 0.01 %.
            let count = convert::floor_u64(in_flight_of_1000 * 10_000.0);
            let law = check(Some(1000), limited, measured(count, 10_000.0), Nanos::from_secs(100));
            (law.verdict, law.residual.is_some())
        };
        assert_eq!(verdict(1000.0, false), (Verdict::Consistent, true));
        assert_eq!(verdict(1002.0, false), (Verdict::Consistent, true));
        assert_eq!(verdict(1002.2, false), (Verdict::AccountingError, true));
        assert_eq!(verdict(989.0, false), (Verdict::ToolTurnaround, true));
        assert_eq!(verdict(949.0, false), (Verdict::GeneratorLimited, true));
        assert_eq!(verdict(10.0, true), (Verdict::Limited, false));
        assert_eq!(verdict(1100.0, true), (Verdict::AccountingError, false));
    }

    #[test]
    fn without_latencies_or_depth_there_is_no_residual() {
        let second = Nanos::from_secs(1);
        assert_eq!(check(Some(1), false, None, second).verdict, Verdict::NotMeasured);
        assert_eq!(check(Some(1), false, measured(0, 1.0), second).verdict, Verdict::NotMeasured);
        let law = check(None, false, measured(10, 1000.0), second);
        assert_eq!((law.verdict, law.in_flight_mean), (Verdict::NotApplicable, Some(0.01)));
    }

    #[test]
    fn failed_ios_held_their_places() {
        // Depth 4 for a second: 2000 I/Os of 1 ms and 1990 failures of 1 ms.
        let target = Target { request_count: 4, ..Target::default() };
        let target = Target { threads_per_file: 1, ..target };
        let span = TimeSpan { targets: vec![target], measure_latency: true, ..<_>::default() };
        let of = |sound: u64, failed: u64| {
            let mut latency = Histogram::new();
            (0..sound).for_each(|_| latency.record(1_000_000));
            let failed =
                FailedIos { count: failed, bytes: 4096 * failed, latency_sum: failed * 1_000_000 };
            let latency = Some(LatencySet::Binned(latency));
            let read = DirectionResult { io_count: sound, latency, failed, ..<_>::default() };
            let target = TargetResult { read, ..TargetResult::default() };
            let thread = ThreadResult { targets: vec![target], ..ThreadResult::default() };
            let elapsed = Nanos::from_secs(1);
            let result = SpanResult { threads: vec![thread], elapsed, ..SpanResult::default() };
            let law = LittlesLaw::of(&result, &span);
            (law.verdict, law.in_flight_mean.map(|mean| (mean * 1000.0).round()), law.failed)
        };
        assert_eq!(of(2000, 1990), (Verdict::Consistent, Some(3990.0), 1990));
        assert_eq!(of(0, 3990), (Verdict::Consistent, Some(3990.0), 3990));
        // Time that neither kind explains is still the generator's.
        assert_eq!(of(2000, 1000), (Verdict::GeneratorLimited, Some(3000.0), 1000));
        assert_eq!(of(2000, 0), (Verdict::GeneratorLimited, Some(2000.0), 0));
    }

    #[test]
    fn a_stall_at_the_end_of_a_window_is_no_accounting_error() {
        // Two outstanding for two seconds: I/Os of 1 ms, and one of 253 ms of which all but 1 ms was before the window.
        let target = Target { request_count: 2, threads_per_file: 1, ..Target::default() };
        let span = TimeSpan { targets: vec![target], measure_latency: true, ..<_>::default() };
        let of = |stalled: &[u64], usual: u64| {
            let mut latency = Histogram::new();
            (0..usual).for_each(|_| latency.record(1_000_000));
            stalled.iter().for_each(|nanos| latency.record(*nanos));
            let io_count = latency.count();
            let latency = Some(LatencySet::Binned(latency));
            let read = DirectionResult { io_count, latency, ..<_>::default() };
            let target = TargetResult { read, ..TargetResult::default() };
            let thread = ThreadResult { targets: vec![target], ..ThreadResult::default() };
            let elapsed = Nanos::from_secs(2);
            let result = SpanResult { threads: vec![thread], elapsed, ..SpanResult::default() };
            LittlesLaw::of(&result, &span)
        };
        let law = of(&[253_000_000], 3990);
        let residual = law.residual.expect("a closed loop");
        assert!((residual - 0.06).abs() < 0.002, "{residual}");
        assert_eq!(law.verdict, Verdict::Consistent, "{law:?}");
        // The two slowest, 127 ms on average, over two seconds.
        assert!((law.tolerance - 0.002 - 0.0635).abs() < 0.001, "{}", law.tolerance);
        // What that cannot add is an error of the counters still; so is r of 6 % without a stall.
        assert_eq!(of(&[253_000_000], 4100).verdict, Verdict::AccountingError);
        assert_eq!(of(&[], 4240).verdict, Verdict::AccountingError);
    }

    #[test]
    fn outstanding_counts_what_each_thread_keeps_up() {
        let target = |requests, threads| Target {
            request_count: requests,
            threads_per_file: threads,
            ..Target::default()
        };
        let span = |targets: &[Target]| TimeSpan { targets: targets.to_vec(), ..<_>::default() };
        assert_eq!(outstanding(&span(&[target(8, 2), target(1, 3)])), Some(19));

        let mut pool = TimeSpan { thread_count: 4, ..span(&[target(8, 1), target(2, 1)]) };
        assert_eq!(outstanding(&pool), Some(40));
        pool.targets[1].thread_targets = vec![ThreadTarget { thread: 0, weight: 0 }];
        assert_eq!(outstanding(&pool), Some(34));
        pool.request_count = 5;
        assert_eq!(outstanding(&pool), Some(20));
        pool.targets[0].thread_targets =
            [0, 2].map(|thread| ThreadTarget { thread, weight: 0 }).to_vec();
        assert_eq!(outstanding(&pool), Some(10), "threads 1 and 3 have no target");
        pool.targets[1].memory_mapped = true;
        assert_eq!(outstanding(&pool), None);

        let mapped = Target { memory_mapped: true, ..target(8, 2) };
        assert_eq!(outstanding(&span(&[mapped.clone(), target(8, 2)])), Some(18));
        assert_eq!(outstanding(&span(&[mapped])), Some(2));
    }

    #[test]
    fn a_rate_limit_makes_the_depth_a_limit() {
        let paced = Target {
            throughput: Throughput { value: 10, ..Throughput::default() },
            ..Target::default()
        };
        let span = TimeSpan { targets: vec![paced], ..TimeSpan::default() };
        let law = LittlesLaw::of(&SpanResult::default(), &span);
        assert_eq!((law.configured, law.residual), (Some(2), None));
    }
}
