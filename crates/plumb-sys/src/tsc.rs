//! The processor's time stamp counter: 10 ns a reading where the system call costs 24.

use std::fmt;
use std::path::Path;
use std::time::Duration;

use plumb_units::Nanos;

use crate::monotonic;

const CLOCKSOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// How ticks become nanoseconds: `(ticks - zero) · factor / 2^32`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TscScale {
    zero: u64,
    factor: u64,
    /// CLOCK_MONOTONIC_RAW at the zero.
    raw_zero: Nanos,
}

/// Why the counter is not used as a clock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TscUnusable {
    /// This processor has none that Plumb reads.
    Processor,
    /// The kernel keeps time by something else, named here: it does not trust the counter, or cannot
    /// tell.
    Clocksource(String),
    /// The counter did not advance, or went backwards, while it was calibrated.
    Erratic,
}

impl fmt::Display for TscUnusable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Processor => f.write_str("no time stamp counter on this processor"),
            Self::Clocksource(name) => write!(f, "the kernel's clocksource is {name}, not tsc"),
            Self::Erratic => f.write_str("the time stamp counter did not advance steadily"),
        }
    }
}

impl TscScale {
    /// Measures the counter's rate against CLOCK_MONOTONIC_RAW for `span` (10 to 50 ms give better
    /// than 1 ppm). Its zero is the time of this call.
    ///
    /// # Errors
    /// When the kernel itself does not use the counter as its clock: then it may differ between
    /// processors or stop in sleep.
    pub fn calibrate(span: Duration) -> Result<Self, TscUnusable> {
        if !cfg!(target_arch = "x86_64") {
            return Err(TscUnusable::Processor);
        }
        is_kept_by_the_counter(Path::new(CLOCKSOURCE))?;
        let first = Pair::take();
        std::thread::sleep(span);
        Self::between(first, Pair::take()).ok_or(TscUnusable::Erratic)
    }

    /// `None` when no time passed between the two, on either clock.
    fn between(first: Pair, second: Pair) -> Option<Self> {
        let ticks = second.ticks.checked_sub(first.ticks).filter(|&ticks| ticks > 0)?;
        let nanos = second.time.since(first.time).0;
        let factor = (u128::from(nanos) << 32) / u128::from(ticks);
        let factor = u64::try_from(factor).ok().filter(|&factor| factor > 0)?;
        Some(Self { zero: first.ticks, factor, raw_zero: first.time })
    }

    /// Nanoseconds since the zero; 0 before it.
    #[inline(always)]
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "2^64 ns are 584 years")]
    pub fn nanos(self, ticks: u64) -> Nanos {
        let passed = ticks.saturating_sub(self.zero);
        Nanos(((u128::from(passed) * u128::from(self.factor)) >> 32) as u64)
    }

    /// By how much the counter has run ahead of CLOCK_MONOTONIC_RAW since the zero, as a share of the time
    /// that passed; negative: behind. `None` before a tenth of a second has passed.
    #[must_use]
    pub fn drift(self) -> Option<f64> {
        let now = Pair::take();
        self.drift_at(now)
    }

    #[expect(clippy::cast_precision_loss, reason = "shares of what a run lasts")]
    fn drift_at(self, now: Pair) -> Option<f64> {
        let (ours, theirs) = (self.nanos(now.ticks).0, now.time.since(self.raw_zero).0);
        (theirs >= 100_000_000).then(|| (ours as f64 - theirs as f64) / theirs as f64)
    }

    /// Ticks per second.
    #[must_use]
    pub fn frequency_hz(self) -> u64 {
        u64::try_from((1_000_000_000_u128 << 32) / u128::from(self.factor)).unwrap_or(u64::MAX)
    }
}

/// Whether the kernel keeps time by the counter, as `file` says.
fn is_kept_by_the_counter(file: &Path) -> Result<(), TscUnusable> {
    let source = std::fs::read_to_string(file).unwrap_or_else(|_| "unknown".to_owned());
    match source.trim() {
        "tsc" => Ok(()),
        other => Err(TscUnusable::Clocksource(other.to_owned())),
    }
}

/// The two clocks at one moment.
#[derive(Debug, Clone, Copy)]
struct Pair {
    ticks: u64,
    time: Nanos,
}

impl Pair {
    /// Reads the clock between two readings of the counter, many times, and keeps the closest pair: an
    /// interrupt in between then costs nothing.
    fn take() -> Self {
        let mut best = (u64::MAX, Self { ticks: 0, time: Nanos::ZERO });
        for _ in 0..64 {
            let before = ticks();
            let time = monotonic::raw_now();
            let gap = ticks().saturating_sub(before);
            if gap < best.0 {
                best = (gap, Self { ticks: before + gap / 2, time });
            }
        }
        best.1
    }
}

/// The counter now, not ordered against the instructions around it; 0 where there is none.
#[inline(always)]
#[must_use]
pub fn ticks() -> u64 {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: every x86-64 processor has rdtsc, and reading it changes nothing.
    let ticks = unsafe { core::arch::x86_64::_rdtsc() };
    #[cfg(not(target_arch = "x86_64"))]
    let ticks = 0;
    ticks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(ticks: u64, nanos: u64) -> Pair {
        Pair { ticks, time: Nanos(nanos) }
    }

    #[test]
    fn ticks_become_nanoseconds() {
        // 2.6 ticks per nanosecond.
        let scale = TscScale::between(pair(1000, 50), pair(26_001_000, 10_000_050));
        let scale = scale.expect("time passed");
        assert_eq!(scale.nanos(1000), Nanos(0));
        assert_eq!(scale.nanos(0), Nanos(0));
        assert!(scale.nanos(26_001_000).0.abs_diff(10_000_000) <= 1);
        // A year: the factor's 31 bits are good to 1 part in 10^9.
        let year = 31_536_000 * 1_000_000_000_u64;
        assert!(scale.nanos(1000 + year / 10 * 26).0.abs_diff(year) < year / 1_000_000_000);
        assert!(scale.frequency_hz().abs_diff(2_600_000_000) < 10);
    }

    #[test]
    fn a_counter_that_changes_its_rate_drifts() {
        let scale = TscScale::between(pair(1000, 50), pair(26_001_000, 10_000_050));
        let scale = scale.expect("time passed");
        assert_eq!(scale.drift_at(pair(2_000, 60)), None, "too early to tell");
        let after = |ticks| scale.drift_at(pair(ticks, 1_000_000_050)).expect("a second passed");
        assert!(after(2_600_001_000).abs() < 1e-8);
        assert!((after(2_600_260_000) - 1e-4).abs() < 1e-6);
        assert!((after(2_599_741_000) + 1e-4).abs() < 1e-6);
    }

    #[test]
    fn a_standing_counter_is_no_clock() {
        assert_eq!(TscScale::between(pair(5, 0), pair(5, 1000)), None);
        assert_eq!(TscScale::between(pair(5, 0), pair(4, 1000)), None);
        assert_eq!(TscScale::between(pair(5, 7), pair(9, 7)), None);
    }

    #[test]
    fn the_counter_is_a_clock_only_where_the_kernel_keeps_time_by_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = folder.path().join("current_clocksource");
        let judged = |text: &str| {
            std::fs::write(&file, text).expect("written");
            is_kept_by_the_counter(&file)
        };
        assert_eq!(judged("tsc\n"), Ok(()));
        for other in ["kvm-clock", "hpet", "tsc-early", ""] {
            let refused = Err(TscUnusable::Clocksource(other.to_owned()));
            assert_eq!(judged(&format!("{other}\n")), refused);
        }
        std::fs::remove_file(&file).expect("removed");
        let unknown = Err(TscUnusable::Clocksource("unknown".to_owned()));
        assert_eq!(is_kept_by_the_counter(&file), unknown);
        // What the kernel of this machine says decides here.
        let calibrated = TscScale::calibrate(Duration::from_millis(1)).map(|_| ());
        let said = is_kept_by_the_counter(Path::new(CLOCKSOURCE));
        assert!(calibrated == said || said.is_ok(), "{calibrated:?} {said:?}");
    }

    #[test]
    fn the_counter_keeps_pace_with_the_raw_clock() {
        let scale = match TscScale::calibrate(Duration::from_millis(20)) {
            Ok(scale) => scale,
            Err(why) => {
                println!("skipped the_counter_keeps_pace_with_the_raw_clock: {why}");
                return;
            }
        };
        let first = Pair::take();
        std::thread::sleep(Duration::from_millis(50));
        let second = Pair::take();
        let by_tsc = scale.nanos(second.ticks).since(scale.nanos(first.ticks)).0;
        let by_clock = second.time.since(first.time).0;
        assert!(by_tsc.abs_diff(by_clock) < by_clock / 10_000, "{by_tsc} against {by_clock}");
    }
}
