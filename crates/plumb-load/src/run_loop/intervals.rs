//! Latencies by interval: a thread fills one pair of histograms and hands it over when its interval
//! has ended. The pairs go round between the thread and the collector, so nothing is allocated while
//! the clock runs, and nothing stays in memory behind it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use plumb_units::{Nanos, convert};

use crate::tally::Histogram;

/// Pairs per thread at least: one being filled, the others on their way to the collector and back.
const PAIRS_MIN: u64 = 4;
/// Pairs per thread at most.
const PAIRS_MAX: u64 = 64;
/// Pairs of all threads together at most, but for the least: some 60 MiB.
const PAIRS_OF_ALL: u64 = 512;
/// Intervals within this time should find a pair each, should the collector be that late.
const LATE_MS: u64 = 100;

/// One thread's latencies of one interval.
#[derive(Debug, Default)]
pub struct IntervalPair {
    /// Interval number from 0.
    pub number: u64,
    /// Latencies of later intervals among these: no pair was free when those began.
    pub strays: u64,
    /// Reads.
    pub read: Histogram,
    /// Writes.
    pub write: Histogram,
}

/// The thread's end.
#[derive(Debug)]
pub struct IntervalRecorder {
    interval: Nanos,
    current: Option<Box<IntervalPair>>,
    full: SyncSender<Box<IntervalPair>>,
    empty: Receiver<Box<IntervalPair>>,
}

/// The collector's end.
#[derive(Debug)]
pub struct IntervalCollector {
    full: Receiver<Box<IntervalPair>>,
    empty: SyncSender<Box<IntervalPair>>,
}

/// How many pairs each of `threads` threads has. Memory does not grow with the run.
fn pairs(interval_ms: u32, threads: usize) -> usize {
    let wanted = LATE_MS.div_ceil(u64::from(interval_ms.max(1))) + PAIRS_MIN;
    let share = PAIRS_OF_ALL / convert::to_u64(threads).max(1);
    convert::to_usize(wanted.min(PAIRS_MAX).min(share).max(PAIRS_MIN))
}

/// How often the collector has to look so that pairs come back in time, in milliseconds.
#[must_use]
pub fn collect_every_ms(interval_ms: u32, threads: usize) -> u64 {
    let pairs = convert::to_u64(pairs(interval_ms, threads));
    (u64::from(interval_ms) * pairs / 4).max(1)
}

/// Both ends of the exchange of one of `threads` threads.
#[must_use]
pub fn exchange(interval_ms: u32, threads: usize) -> (IntervalRecorder, IntervalCollector) {
    let pairs = pairs(interval_ms, threads);
    let (full, to_collector) = sync_channel(pairs);
    let (empty, to_thread) = sync_channel(pairs);
    for _ in 1..pairs {
        empty.try_send(Box::default()).expect("room for every pair");
    }
    let recorder = IntervalRecorder {
        interval: Nanos::from_millis(interval_ms.max(1).into()),
        current: Some(Box::default()),
        full,
        empty: to_thread,
    };
    (recorder, IntervalCollector { full: to_collector, empty })
}

impl IntervalRecorder {
    /// Counts a completion `at` after the measurement's start.
    #[inline(always)]
    pub(super) fn record(&mut self, at: Nanos, latency: Nanos, is_write: bool) {
        let number = at.0 / self.interval.0;
        if self.current.as_ref().is_none_or(|pair| pair.number != number) {
            self.turn(number);
        }
        if let Some(pair) = &mut self.current {
            pair.strays += u64::from(pair.number != number);
            if is_write { pair.write.record(latency.0) } else { pair.read.record(latency.0) }
        }
    }

    /// Hands the filled pair over and takes an empty one. When the collector has none ready, the pair
    /// goes on and keeps its number: its counts are then in the earlier interval, none is lost.
    #[cold]
    fn turn(&mut self, number: u64) {
        let Some(pair) = &mut self.current else { return };
        if pair.read.count() + pair.write.count() == 0 {
            pair.number = number;
            return;
        }
        if let Ok(mut next) = self.empty.try_recv() {
            next.number = number;
            if let Some(filled) = self.current.replace(next) {
                // The channel has room for every pair there is.
                let _ = self.full.try_send(filled);
            }
        }
    }

    /// Hands over what is left, at the end.
    pub(super) fn finish(&mut self) {
        if let Some(pair) = self.current.take() {
            let _ = self.full.try_send(pair);
        }
    }
}

impl IntervalCollector {
    /// Takes what the thread has handed over, gives the pairs back empty.
    pub fn drain(&self, mut take: impl FnMut(&IntervalPair)) {
        while let Ok(mut pair) = self.full.try_recv() {
            take(&pair);
            pair.read.clear();
            pair.write.clear();
            pair.strays = 0;
            let _ = self.empty.try_send(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_arrives_even_when_the_collector_is_late() {
        let (mut recorder, collector) = exchange(10, 1);
        for milli in 0..1000 {
            recorder.record(Nanos::from_millis(milli), Nanos(milli + 1), milli % 3 == 0);
            if milli > 500 && milli % 20 == 0 {
                collector.drain(|_| ());
            }
        }
        let (mut count, mut last) = (0, 0);
        let (mut strays, (mut recorder, collector)) = (0, exchange(10, 1));
        for milli in 0..1000 {
            recorder.record(Nanos::from_millis(milli), Nanos(milli + 1), milli % 3 == 0);
        }
        recorder.finish();
        collector.drain(|pair| {
            count += pair.read.count() + pair.write.count();
            assert!(pair.number >= last);
            last = pair.number;
            strays += pair.strays;
        });
        assert_eq!(count, 1000);
        // 14 pairs hold 140 of the 1000 ms, and what strayed is known.
        assert_eq!(strays, 860);
    }

    #[test]
    fn a_collector_in_time_finds_every_latency_in_its_interval() {
        for (interval, threads) in [(1, 1), (1, 8), (5, 2), (10, 64), (100, 1), (1000, 512)] {
            let every = collect_every_ms(interval, threads);
            let (mut recorder, collector) = exchange(interval, threads);
            let (mut per_interval, mut strays) = (vec![0_u64; 4000], 0);
            let mut take = |pair: &IntervalPair| {
                per_interval[convert::to_usize(pair.number)] += pair.read.count();
                strays += pair.strays;
            };
            for milli in 0..4000 {
                recorder.record(Nanos::from_millis(milli), Nanos(milli + 1), false);
                if milli % every == 0 {
                    collector.drain(&mut take);
                }
            }
            recorder.finish();
            collector.drain(&mut take);
            assert_eq!(strays, 0, "{interval} ms, {threads} threads");
            let expected = 4000 / u64::from(interval);
            let full = per_interval.iter().filter(|count| **count == u64::from(interval)).count();
            assert_eq!(convert::to_u64(full), expected, "{interval} ms, {threads} threads");
        }
    }
}
