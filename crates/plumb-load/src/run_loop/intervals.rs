//! Latencies by interval: a thread fills one pair of histograms and hands it over when its interval
//! has ended. The pairs go round between the thread and the collector, so nothing is allocated while
//! the clock runs, and nothing stays in memory behind it.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use plumb_units::Nanos;

use crate::tally::Histogram;

/// Pairs per thread: one being filled, the others on their way to the collector and back.
const PAIRS: usize = 4;

/// One thread's latencies of one interval.
#[derive(Debug, Default)]
pub struct IntervalPair {
    /// Interval number from 0.
    pub number: u64,
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

/// Both ends of one thread's exchange.
#[must_use]
pub fn exchange(interval_ms: u32) -> (IntervalRecorder, IntervalCollector) {
    let (full, to_collector) = sync_channel(PAIRS);
    let (empty, to_thread) = sync_channel(PAIRS);
    for _ in 1..PAIRS {
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
            let _ = self.empty.try_send(pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_latency_arrives_even_when_the_collector_is_late() {
        let (mut recorder, collector) = exchange(10);
        for milli in 0..1000 {
            recorder.record(Nanos::from_millis(milli), Nanos(milli + 1), milli % 3 == 0);
            if milli > 500 && milli % 20 == 0 {
                collector.drain(|_| ());
            }
        }
        let (mut count, mut last) = (0, 0);
        let (mut recorder, collector) = exchange(10);
        for milli in 0..1000 {
            recorder.record(Nanos::from_millis(milli), Nanos(milli + 1), milli % 3 == 0);
        }
        recorder.finish();
        collector.drain(|pair| {
            count += pair.read.count() + pair.write.count();
            assert!(pair.number >= last);
            last = pair.number;
        });
        assert_eq!(count, 1000);
    }
}
