//! The phases of one time span, timed on the steering thread.

use std::time::Duration;

use plumb_io::clock::Clock;
use plumb_units::Nanos;

use super::observe::{Observer, Phase, Snapshot};
use crate::run_loop::intervals::{IntervalCollector, IntervalPair};
use crate::run_loop::{Controls, Live, LiveReading};
use crate::tally::interval_log::IntervalLogWriter;
use crate::tally::span_series::SpanSeries;

/// How often the steering thread looks around, short intervals apart.
const TICK: Duration = Duration::from_millis(20);
/// How often progress is reported.
const REPORT: Nanos = Nanos::from_millis(200);
/// How often a warning about short transfers is given per thread, at most.
const SHORT_WARNING: Nanos = Nanos::from_secs(1);

/// How a phase ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PhaseEnd {
    /// Its time was up.
    Elapsed,
    /// The user ended it.
    Interrupted,
    /// A thread ended it.
    Failed,
}

/// Times phases and keeps watch meanwhile.
pub(super) struct Watch<'a, C> {
    pub(super) clock: &'a C,
    pub(super) observer: &'a mut dyn Observer,
    pub(super) controls: &'a Controls,
    pub(super) lives: &'a [Live],
    pub(super) collectors: &'a mut [IntervalCollector],
    /// What happened in each interval.
    pub(super) series: Option<SpanSeries>,
    pub(super) intervals: Option<IntervalLogWriter>,
    /// How often intervals are to be collected.
    pub(super) collect_every: Duration,
    /// Latencies that are in an interval before theirs.
    pub(super) strays: u64,
    /// The first trouble with the interval log; intervals behind it are lost and the result says so.
    pub(super) interval_trouble: Option<std::io::Error>,
    pub(super) stamps: bool,
    /// `-P`: completions per dot, 0 for none.
    pub(super) progress: u32,
    pub(super) time_span: (usize, usize),
    /// Of phases and time spans behind the present phase.
    pub(super) left_behind: Nanos,
    pub(super) dots: u64,
    pub(super) last_report: Nanos,
    pub(super) last_reading: LiveReading,
    pub(super) shorts: Vec<ShortWatch>,
}

/// What was said about one thread's short transfers.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct ShortWatch {
    said: u64,
    last: Nanos,
}

impl<C: Clock> Watch<'_, C> {
    /// Lets `total` pass.
    pub(super) fn phase(&mut self, phase: Phase, total: Nanos) -> PhaseEnd {
        let began = self.clock.now();
        let until = began + total;
        self.left_behind = self.left_behind - total;
        (self.last_report, self.last_reading) = (began, self.reading());
        loop {
            let now = self.clock.now();
            if self.controls.is_stopping() {
                return PhaseEnd::Failed;
            }
            if self.observer.interrupted() {
                return PhaseEnd::Interrupted;
            }
            if now >= until {
                return PhaseEnd::Elapsed;
            }
            self.look_around(now);
            if now.since(self.last_report) >= REPORT {
                self.report(phase, now.since(began), total, now);
            }
            let tick = TICK.min(self.collect_every);
            std::thread::sleep(tick.min(until.since(self.clock.now()).into()));
        }
    }

    /// Collects intervals, dots and short transfers.
    pub(super) fn look_around(&mut self, now: Nanos) {
        let (intervals, trouble) = (&mut self.intervals, &mut self.interval_trouble);
        let (series, strays) = (&mut self.series, &mut self.strays);
        for (thread, collector) in self.collectors.iter_mut().enumerate() {
            let take_pair = |pair: &IntervalPair| {
                *strays += pair.strays;
                if let Some(log) = intervals
                    && trouble.is_none()
                    && let Err(error) = log.add(pair)
                {
                    *trouble = Some(error);
                }
            };
            collector.drain(take_pair, |ended| {
                if let Some(series) = series {
                    series.add(thread, ended);
                }
            });
        }
        if self.progress > 0 {
            let every = u64::from(self.progress);
            let due = self.lives.iter().map(|live| live.read().completions / every).sum::<u64>();
            if due > self.dots {
                self.observer.dots(due - self.dots);
                self.dots = due;
            }
        }
        for (thread, (live, short)) in self.lives.iter().zip(&mut self.shorts).enumerate() {
            let reading = live.read();
            if reading.short_transfers > short.said && now.since(short.last) >= SHORT_WARNING {
                let (moved, wanted) = reading.last_short;
                self.observer.warning(&format!(
                    "thread {thread} transferred {moved} bytes instead of {wanted} bytes"
                ));
                *short = ShortWatch { said: reading.short_transfers, last: now };
            }
        }
    }

    /// The final count of short transfers, thread by thread.
    pub(super) fn count_shorts(&mut self) {
        for (thread, live) in self.lives.iter().enumerate() {
            let count = live.read().short_transfers;
            if count > 1 {
                self.observer.warning(&format!(
                    "thread {thread}: {count} I/Os in all transferred fewer bytes than asked for"
                ));
            }
        }
    }

    fn reading(&self) -> LiveReading {
        self.lives.iter().map(Live::read).fold(LiveReading::default(), |sum, one| LiveReading {
            completions: sum.completions + one.completions,
            bytes: sum.bytes + one.bytes,
            latency_sum: sum.latency_sum.wrapping_add(one.latency_sum),
            errors: sum.errors + one.errors,
            ..sum
        })
    }

    fn report(&mut self, phase: Phase, elapsed: Nanos, total: Nanos, now: Nanos) {
        let reading = self.reading();
        let seconds = now.since(self.last_report).as_secs_f64();
        let completions = reading.completions.saturating_sub(self.last_reading.completions);
        let bytes = reading.bytes.saturating_sub(self.last_reading.bytes);
        let sum = reading.latency_sum.wrapping_sub(self.last_reading.latency_sum);
        let latency = sum.checked_div(completions).filter(|_| self.stamps).map(Nanos);
        self.observer.progress(&Snapshot {
            time_span: self.time_span,
            phase,
            elapsed,
            total,
            left: total.since(elapsed) + self.left_behind,
            iops: completions as f64 / seconds,
            bytes_per_s: bytes as f64 / seconds,
            latency,
            errors: reading.errors,
        });
        (self.last_report, self.last_reading) = (now, reading);
    }
}
