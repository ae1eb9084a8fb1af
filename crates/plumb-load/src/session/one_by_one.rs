//! The error bar of threads that wait for each I/O by itself.

use crate::run_loop::TargetCounts;
use crate::tally::{Histogram, LatencySet};

/// Service times of I/Os each of which was waited for by itself: what can be said of how late they were seen.
#[derive(Debug, Clone, Default)]
pub(super) struct OneByOne {
    /// Of those that were over within their own call, without a sleep: seen at most so late.
    pub(super) in_call: Histogram,
    /// Of those that slept, and were seen late by the wake-up.
    pub(super) slept: Histogram,
}

impl OneByOne {
    /// Tells the I/Os of `targets` apart: of all `ios` of the thread, whenever they ended, it slept in `sleeps`; `None` where
    /// nobody counted, and each is taken for one that slept. Those that slept are the longest.
    pub(super) fn of(targets: &[TargetCounts], ios: u64, sleeps: Option<u64>) -> Self {
        let mut all = Histogram::new();
        for target in targets {
            if let Some(open) = &target.open {
                all.merge(&open.service());
                continue;
            }
            for direction in [&target.read, &target.write] {
                if let Some(LatencySet::Binned(latencies)) = &direction.latency {
                    all.merge(latencies);
                }
            }
        }
        let slept = match sleeps {
            Some(sleeps) if sleeps < ios => {
                let part = u128::from(all.count()) * u128::from(sleeps) / u128::from(ios);
                u64::try_from(part).unwrap_or(u64::MAX)
            }
            _ => all.count(),
        };
        let awake = all.count().saturating_sub(slept);
        let (mut found, mut told) = (awake, Self::default());
        for (low, values, count) in all.buckets() {
            let middle = (low + values / 2).min(all.max().unwrap_or(low));
            let in_call = count.min(found);
            found -= in_call;
            told.in_call.record_many(middle, in_call);
            told.slept.record_many(middle, count - in_call);
        }
        told
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::result::model::DirectionResult;

    fn counts(latencies: &[(u64, u64)]) -> TargetCounts {
        let mut set = Histogram::new();
        for (nanos, times) in latencies {
            set.record_many(*nanos, *times);
        }
        let read = DirectionResult {
            io_count: set.count(),
            latency: Some(LatencySet::Binned(set)),
            ..DirectionResult::default()
        };
        TargetCounts {
            read,
            write: DirectionResult::default(),
            errors: BTreeMap::new(),
            short_transfers: 0,
            open: None,
        }
    }

    #[test]
    fn as_many_as_the_kernel_counted_slept_and_they_are_the_longest() {
        let targets = [counts(&[(100, 90), (50_000, 5)]), counts(&[(60_000, 5)])];
        // Of twice as many I/Os, the ramps' among them.
        for (sleeps, slept, longest_in_call) in [
            (Some(0), 0, Some(60_000)),
            (Some(10), 5, Some(50_000)),
            (Some(20), 10, Some(100)),
            (Some(200), 100, None),
            (Some(900), 100, None),
            (None, 100, None),
        ] {
            let told = OneByOne::of(&targets, 200, sleeps);
            assert_eq!((told.in_call.count(), told.slept.count()), (100 - slept, slept));
            let near = match (told.in_call.max(), longest_in_call) {
                (Some(found), Some(want)) => found.abs_diff(want) * 100 <= want,
                (found, want) => found == want,
            };
            assert!(near, "{sleeps:?}: {:?}", told.in_call.max());
        }
        let none = OneByOne::of(&[], 0, Some(3));
        assert_eq!((none.in_call.count(), none.slept.count()), (0, 0));
    }
}
