//! What a thread counts by interval (`-D`): one pair of histograms and a cell per target and direction, handed over
//! when their interval has ended.
//!
//! The pairs go round between the thread and the collector, so nothing is allocated while the clock runs, and nothing
//! stays in memory behind it. The thread takes the pair that came back last, so those that only a late collector
//! needs are not touched before it is late: their pages are not resident. Cells are copied into a list that the
//! collector empties. It is allocated ahead for a collector as late as the pairs allow and grows behind a later one:
//! no cell is ever lost, nor counted in another interval.

use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError, TryLockError};

use plumb_units::{Nanos, convert};

use crate::tally::span_series::EndedInterval;
use crate::tally::{Histogram, IntervalCell};

/// Pairs per thread at least: one being filled, the others on their way to the collector and back.
const PAIRS_MIN: u64 = 4;
/// Pairs per thread at most.
const PAIRS_MAX: u64 = 64;
/// Pairs of all threads together at most, but for the least: some 60 MiB of addresses, and some 20 MiB resident should
/// the collector be as late as that.
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

/// Reads and writes of a target in the present interval.
const NOTHING: [IntervalCell; 2] = [IntervalCell::EMPTY; 2];

/// Ended intervals on their way to the collector; held for as long as it takes to copy or to swap a list.
type Ended = Arc<Mutex<Vec<EndedInterval>>>;

/// The thread's end.
#[derive(Debug)]
pub struct IntervalRecorder {
    interval: Nanos,
    /// The present interval, and when it began.
    number: u64,
    began: Nanos,
    /// By target: reads and writes of the present interval.
    cells: Box<[[IntervalCell; 2]]>,
    ended: Ended,
    /// Ended while the collector was just swapping the list.
    backlog: Vec<EndedInterval>,
    current: Option<Box<IntervalPair>>,
    /// Whether the pair is still of an earlier interval.
    is_late: bool,
    /// Empty pairs, the one that came back last on top.
    #[expect(clippy::vec_box, reason = "they go on to the collector as they are")]
    spare: Vec<Box<IntervalPair>>,
    full: SyncSender<Box<IntervalPair>>,
    empty: Receiver<Box<IntervalPair>>,
}

/// The collector's end.
#[derive(Debug)]
pub struct IntervalCollector {
    full: Receiver<Box<IntervalPair>>,
    empty: SyncSender<Box<IntervalPair>>,
    ended: Ended,
    /// The list that takes the place of the thread's.
    taken: Vec<EndedInterval>,
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

/// Both ends of the exchange of one of `threads` threads, which works on `targets` targets.
#[must_use]
pub fn exchange(
    interval_ms: u32,
    threads: usize,
    targets: usize,
) -> (IntervalRecorder, IntervalCollector) {
    let pairs = pairs(interval_ms, threads);
    let room = pairs * targets;
    let ended = Ended::new(Mutex::new(Vec::with_capacity(room)));
    let (full, to_collector) = sync_channel(pairs);
    let (empty, to_thread) = sync_channel(pairs);
    let recorder = IntervalRecorder {
        interval: Nanos::from_millis(interval_ms.max(1).into()),
        number: 0,
        began: Nanos::ZERO,
        cells: vec![NOTHING; targets].into_boxed_slice(),
        ended: Arc::clone(&ended),
        backlog: Vec::with_capacity(room),
        current: Some(Box::default()),
        is_late: false,
        spare: (1..pairs).map(|_| Box::default()).collect(),
        full,
        empty: to_thread,
    };
    let taken = Vec::with_capacity(room);
    (recorder, IntervalCollector { full: to_collector, empty, ended, taken })
}

impl IntervalRecorder {
    /// Counts a completion of `target`'s `at` after the measurement's start.
    #[inline(always)]
    pub(super) fn record(
        &mut self,
        at: Nanos,
        (target, bytes): (u32, u32),
        latency: Nanos,
        is_write: bool,
    ) {
        if at.0.wrapping_sub(self.began.0) >= self.interval.0 || self.is_late {
            self.turn(at);
        }
        self.cells[convert::index(target)][usize::from(is_write)].record(bytes.into(), latency);
        if let Some(pair) = &mut self.current {
            if is_write { pair.write.record(latency.0) } else { pair.read.record(latency.0) }
        }
    }

    /// Goes on to the interval of `at` with an empty pair. When the collector has given none back, the pair goes on
    /// and keeps its number: its counts are then in the earlier interval, none is lost.
    #[cold]
    #[inline(never)]
    fn turn(&mut self, at: Nanos) {
        let number = at.0 / self.interval.0;
        // Stamps of a thread never go back, and a cell of an interval is handed over once.
        if number > self.number {
            self.hand_over_cells();
            self.number = number;
            self.began = Nanos(number * self.interval.0);
        }
        let Some(pair) = &mut self.current else { return };
        if pair.number == self.number || pair.read.count() + pair.write.count() == 0 {
            pair.number = self.number;
        } else {
            // There is room for every pair there is.
            self.spare.extend(self.empty.try_iter());
            if let Some(mut next) = self.spare.pop() {
                next.number = self.number;
                if let Some(filled) = self.current.replace(next) {
                    // The channel has room for every pair there is.
                    let _ = self.full.try_send(filled);
                }
            }
        }
        if let Some(pair) = &mut self.current {
            self.is_late = pair.number != self.number;
            pair.strays += u64::from(self.is_late);
        }
    }

    /// Copies what the interval has, unless the collector is just swapping the list: then it is copied at the next
    /// interval's end.
    fn hand_over_cells(&mut self) {
        for (place, cells) in (0..).zip(&mut self.cells) {
            let [read, write] = std::mem::replace(cells, NOTHING);
            if read.count + write.count > 0 {
                self.backlog.push(EndedInterval { number: self.number, place, read, write });
            }
        }
        match self.ended.try_lock() {
            Ok(mut ended) => ended.append(&mut self.backlog),
            Err(TryLockError::Poisoned(ended)) => ended.into_inner().append(&mut self.backlog),
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Hands over what is left, at the end.
    pub(super) fn finish(&mut self) {
        self.hand_over_cells();
        self.ended.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.backlog);
        if let Some(pair) = self.current.take() {
            let _ = self.full.try_send(pair);
        }
    }
}

impl IntervalCollector {
    /// Takes what the thread has handed over, gives the pairs back empty.
    pub fn drain(
        &mut self,
        mut take_pair: impl FnMut(&IntervalPair),
        take_cells: impl FnMut(&EndedInterval),
    ) {
        while let Ok(mut pair) = self.full.try_recv() {
            take_pair(&pair);
            pair.read.clear();
            pair.write.clear();
            pair.strays = 0;
            let _ = self.empty.try_send(pair);
        }
        std::mem::swap(
            &mut *self.ended.lock().unwrap_or_else(PoisonError::into_inner),
            &mut self.taken,
        );
        self.taken.iter().for_each(take_cells);
        self.taken.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(recorder: &mut IntervalRecorder, milli: u64, is_write: bool) {
        recorder.record(Nanos::from_millis(milli), (0, 512), Nanos(milli + 1), is_write);
    }

    #[test]
    fn every_latency_arrives_even_when_the_collector_is_late() {
        let (mut recorder, mut collector) = exchange(10, 1, 1);
        for milli in 0..1000 {
            record(&mut recorder, milli, milli % 3 == 0);
            if milli > 500 && milli % 20 == 0 {
                collector.drain(|_| (), |_| ());
            }
        }
        let (mut count, mut last) = (0, 0);
        let (mut strays, (mut recorder, mut collector)) = (0, exchange(10, 1, 1));
        for milli in 0..1000 {
            record(&mut recorder, milli, milli % 3 == 0);
        }
        recorder.finish();
        let mut intervals = Vec::new();
        let take_pair = |pair: &IntervalPair| {
            count += pair.read.count() + pair.write.count();
            assert!(pair.number >= last);
            last = pair.number;
            strays += pair.strays;
        };
        collector.drain(take_pair, |ended| {
            intervals.push((ended.number, ended.read.count + ended.write.count));
        });
        assert_eq!(count, 1000);
        // 14 pairs hold 140 of the 1000 ms, and what strayed is known.
        assert_eq!(strays, 860);
        // Cells do not stray.
        assert_eq!(intervals, (0..100).map(|number| (number, 10)).collect::<Vec<_>>());
    }

    #[test]
    fn a_collector_in_time_finds_every_latency_in_its_interval() {
        for (interval, threads) in [(1, 1), (1, 8), (5, 2), (10, 64), (100, 1), (1000, 512)] {
            let every = collect_every_ms(interval, threads);
            let (mut recorder, mut collector) = exchange(interval, threads, 1);
            let (mut per_interval, mut strays) = (vec![0_u64; 4000], 0);
            let (mut cells, room) = (vec![0_u64; 4000], recorder.backlog.capacity());
            let mut take = |pair: &IntervalPair| {
                per_interval[convert::to_usize(pair.number)] += pair.read.count();
                strays += pair.strays;
            };
            let mut take_cells =
                |ended: &EndedInterval| cells[convert::to_usize(ended.number)] += ended.read.count;
            for milli in 0..4000 {
                record(&mut recorder, milli, false);
                if milli % every == 0 {
                    collector.drain(&mut take, &mut take_cells);
                }
            }
            recorder.finish();
            collector.drain(&mut take, &mut take_cells);
            assert_eq!(strays, 0, "{interval} ms, {threads} threads");
            assert_eq!(cells, per_interval, "{interval} ms, {threads} threads");
            let expected = 4000 / u64::from(interval);
            let full = per_interval.iter().filter(|count| **count == u64::from(interval)).count();
            assert_eq!(convert::to_u64(full), expected, "{interval} ms, {threads} threads");
            // What was allocated ahead was enough.
            assert_eq!((recorder.backlog.capacity(), collector.taken.capacity()), (room, room));
        }
    }

    #[test]
    fn pairs_that_only_a_late_collector_needs_stay_untouched() {
        let (mut recorder, mut collector) = exchange(10, 64, 1);
        let mut used = std::collections::BTreeSet::new();
        for milli in 0..1000 {
            record(&mut recorder, milli, false);
            used.extend(recorder.current.as_ref().map(|pair| std::ptr::from_ref(&**pair).addr()));
            if milli % collect_every_ms(10, 64) == 0 {
                collector.drain(|_| (), |_| ());
            }
        }
        assert_eq!(pairs(10, 64), 8);
        assert!(used.len() <= 4, "{} of 8", used.len());
    }

    #[test]
    fn cells_that_meet_a_swap_come_with_the_next_interval() {
        let (mut recorder, mut collector) = exchange(10, 1, 1);
        let swapping = Arc::clone(&recorder.ended);
        let held = swapping.lock().expect("nobody panicked");
        [3, 15].iter().for_each(|milli| record(&mut recorder, *milli, true));
        drop(held);
        let mut seen = Vec::new();
        collector.drain(|_| (), |ended| seen.push(ended.number));
        assert_eq!(seen, [0; 0]);
        record(&mut recorder, 47, true);
        collector.drain(|_| (), |ended| seen.push(ended.number));
        assert_eq!(seen, [0, 1]);
        recorder.finish();
        collector.drain(|_| (), |ended| seen.push(ended.number));
        assert_eq!(seen, [0, 1, 4]);
    }
}
