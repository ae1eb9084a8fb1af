//! What time it is, for whoever stamps I/Os.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use plumb_sys::tsc::{self, TscScale, TscUnusable};
use plumb_units::Nanos;

/// A monotonic clock shared by all threads of a run.
pub trait Clock: Clone + Send + Sync {
    /// The time now. Its zero means nothing; differences do.
    fn now(&self) -> Nanos;

    /// By how much it has run ahead of the kernel's raw clock since it was made, as a share of the time that
    /// passed. `None` where it is that clock, or too little time has passed.
    fn drift(&self) -> Option<f64> {
        None
    }

    /// Whether it is the system's clock, for want of a time stamp counter that can be trusted.
    fn is_fallback(&self) -> bool {
        false
    }

    /// How often the calling thread has gone to sleep so far: the difference says whether it slept in between.
    /// `None` where that is not known, and where time passes without anyone sleeping.
    fn sleeps(&self) -> Option<u64> {
        None
    }
}

/// The clock of measured runs: the time stamp counter where the kernel itself keeps time by it, else
/// CLOCK_MONOTONIC.
///
/// Copies share their zero, so stamps of several threads compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampClock {
    source: Source,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    Tsc(TscScale),
    Monotonic,
}

impl StampClock {
    /// How long [`StampClock::new`] measures: long enough for better than 1 ppm.
    const CALIBRATION: Duration = Duration::from_millis(20);

    /// The best clock there is, and why it is not the time stamp counter if it is not. Calibrating
    /// takes 20 ms: make one per run and copy it.
    #[must_use]
    pub fn new() -> (Self, Option<TscUnusable>) {
        Self::by(TscScale::calibrate(Self::CALIBRATION))
    }

    /// The counter where it is one, else the system's clock.
    fn by(counter: Result<TscScale, TscUnusable>) -> (Self, Option<TscUnusable>) {
        match counter {
            Ok(scale) => (Self { source: Source::Tsc(scale) }, None),
            Err(why) => (Self::monotonic(), Some(why)),
        }
    }

    /// The time at a reading of the time stamp counter; `None` when this clock does not go by it.
    #[must_use]
    pub fn trace_ticks(&self, ticks: u64) -> Option<Nanos> {
        match self.source {
            Source::Tsc(scale) => Some(scale.nanos(ticks)),
            Source::Monotonic => None,
        }
    }

    /// CLOCK_MONOTONIC.
    #[must_use]
    pub const fn monotonic() -> Self {
        Self { source: Source::Monotonic }
    }
}

/// Its name and, for the counter, its rate, for results.
impl fmt::Display for StampClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            Source::Tsc(scale) => {
                let kilohertz = scale.frequency_hz() / 1000;
                write!(f, "tsc ({}.{:03} MHz)", kilohertz / 1000, kilohertz % 1000)
            }
            Source::Monotonic => f.write_str("clock_monotonic"),
        }
    }
}

impl Clock for StampClock {
    #[inline(always)]
    fn now(&self) -> Nanos {
        match self.source {
            Source::Tsc(scale) => scale.nanos(tsc::ticks()),
            Source::Monotonic => plumb_sys::monotonic::now(),
        }
    }

    fn drift(&self) -> Option<f64> {
        match self.source {
            Source::Tsc(scale) => scale.drift(),
            Source::Monotonic => None,
        }
    }

    fn is_fallback(&self) -> bool {
        self.source == Source::Monotonic
    }

    fn sleeps(&self) -> Option<u64> {
        plumb_sys::sleeps::of_this_thread()
    }
}

/// A clock that stands until it is moved: virtual time. Clones show the same time.
#[derive(Debug, Clone, Default)]
pub struct ManualClock {
    now: Arc<AtomicU64>,
}

impl ManualClock {
    /// Moves it to `time`; never back.
    pub fn advance_to(&self, time: Nanos) {
        self.now.fetch_max(time.0, Ordering::Relaxed);
    }
}

impl Clock for ManualClock {
    #[inline]
    fn now(&self) -> Nanos {
        Nanos(self.now.load(Ordering::Relaxed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stamps_of_two_threads_compare() {
        let (clock, _) = StampClock::new();
        let before = clock.now();
        let there = std::thread::spawn(move || clock.now()).join().expect("it only reads a clock");
        let after = clock.now();
        assert!(before <= there && there <= after, "{before:?} {there:?} {after:?}");
    }

    #[test]
    fn a_stamp_clock_says_which_it_is() {
        assert_eq!(StampClock::monotonic().to_string(), "clock_monotonic");
        let (clock, why) = StampClock::new();
        assert_eq!(clock.to_string().starts_with("tsc ("), why.is_none(), "{clock} {why:?}");
    }

    #[test]
    fn without_the_counter_the_systems_clock_stamps() {
        let why = TscUnusable::Clocksource("hpet".to_owned());
        let (clock, told) = StampClock::by(Err(why.clone()));
        assert_eq!((clock, told), (StampClock::monotonic(), Some(why)));
        let (before, kernel) = (clock.now(), plumb_sys::monotonic::now());
        let after = clock.now();
        assert!(before <= kernel && kernel <= after, "{before:?} {kernel:?} {after:?}");
        // Nothing to drift from, and no trace to compare with.
        assert_eq!((clock.drift(), clock.trace_ticks(7)), (None, None));
        assert!(clock.is_fallback());
        let (best, why) = StampClock::new();
        assert_eq!(best.is_fallback(), why.is_some());
    }

    #[test]
    fn a_manual_clock_never_goes_back() {
        let clock = ManualClock::default();
        let other = clock.clone();
        clock.advance_to(Nanos(7));
        other.advance_to(Nanos(5));
        assert_eq!((clock.now(), other.now()), (Nanos(7), Nanos(7)));
    }
}
