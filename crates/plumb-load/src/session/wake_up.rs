//! What a thread's wake-up takes on this machine, now.

use std::io;
use std::num::NonZeroU64;

use plumb_units::Nanos;
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use rustix::time::clock_gettime;

use crate::result::stamp_error::WakeUp;

/// Wake-ups before the start, which waits for them...
pub const BEFORE: u32 = 64;
/// ...and behind the run, which nobody waits for: so many that one in 500 is known.
const BEHIND: u32 = 960;
/// How long each sleep before the start is: long enough for the processor to go idle.
const SLEEP: Nanos = Nanos(100_000);
/// No sleep behind the run is longer: all of them together take four tenths of a second then.
const SLEEP_MAX: Nanos = Nanos(400_000);

/// How late a thread ran each time that a timer's interrupt woke it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WakeUps(Vec<Nanos>);

impl WakeUps {
    /// What is told of these, which were measured before the start, and of some more that are measured now, behind a
    /// time span that measured for so many `seconds`; none are where it measured nothing. They sleep for as long as
    /// the threads of the time span did in the mean, where that is known: a processor wakes up from a longer sleep
    /// more slowly.
    #[must_use]
    pub(super) fn with_those_behind(self, seconds: u32, slept: Option<Nanos>) -> WakeUp {
        if seconds == 0 {
            return self.told();
        }
        match measure_of(BEHIND, like(slept)) {
            Ok(behind) => self.and(behind).told(),
            Err(_) => self.told(),
        }
    }

    /// With more of them.
    fn and(mut self, more: Self) -> Self {
        self.0.extend(more.0);
        self
    }

    /// What of them is told.
    fn told(mut self) -> WakeUp {
        self.0.sort_unstable();
        let last = self.0.len() - 1;
        let at = |per_mille: usize| self.0[last * per_mille / 1000];
        WakeUp { median: at(500), high: at(998), max: at(1000), count: self.0.len() as u64 }
    }
}

/// Lets a thread be woken `rounds` times, at least once, by a timer's interrupt: as far as a device's interrupt does.
/// Takes about 0.12 ms for each.
///
/// # Errors
/// When the system gives no thread.
pub fn measure(rounds: u32) -> io::Result<WakeUps> {
    measure_of(rounds, SLEEP)
}

/// How long to sleep where threads slept for so long in the mean.
fn like(slept: Option<Nanos>) -> Nanos {
    slept.unwrap_or(SLEEP).clamp(SLEEP, SLEEP_MAX)
}

fn measure_of(rounds: u32, sleep: Nanos) -> io::Result<WakeUps> {
    let sleeper = std::thread::Builder::new().name("plumb-wake-up".to_owned());
    let times = sleeper.spawn(move || {
        // Without it the kernel gathers timers over 50 µs. A refusal shows as a longer time, which is safe.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
        (0..rounds.max(1)).map(|_| late(sleep)).collect()
    })?;
    Ok(WakeUps(times.join().expect("it sleeps and reads a clock")))
}

/// How late one sleep of so long ended.
fn late(sleep: Nanos) -> Nanos {
    let due = now() + sleep;
    let at = Timespec {
        tv_sec: (due.0 / 1_000_000_000).cast_signed(),
        tv_nsec: (due.0 % 1_000_000_000).cast_signed(),
    };
    while clock_nanosleep_absolute(ClockId::Monotonic, &at).is_err() {}
    now().since(due)
}

fn now() -> Nanos {
    let time = clock_gettime(ClockId::Monotonic);
    Nanos(time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wake_up_takes_time_but_less_than_a_second() {
        let time = measure(BEFORE).expect("a thread").told();
        assert!(Nanos(100) < time.median && time.median <= time.high, "{time:?}");
        assert!(time.high <= time.max && time.max < Nanos(1_000_000_000), "{time:?}");
    }

    #[test]
    fn sleeps_behind_a_run_are_as_long_as_those_in_it() {
        for (slept, like_it) in [
            (None, 100_000),
            (Some(0), 100_000),
            (Some(270_000), 270_000),
            (Some(9_000_000), 400_000),
        ] {
            assert_eq!(like(slept.map(Nanos)), Nanos(like_it), "{slept:?}");
        }
    }

    #[test]
    fn one_in_five_hundred_is_beyond_what_is_told_as_high() {
        let all = |range: std::ops::Range<u64>| WakeUps(range.map(Nanos).collect());
        let of = |median, high, max, count| WakeUp {
            median: Nanos(median),
            high: Nanos(high),
            max: Nanos(max),
            count,
        };
        let told = all(300..1024).and(all(0..300)).told();
        assert_eq!(told, of(511, 1020, 1023, 1024));
        // Of a few it is the longest but one.
        assert_eq!(all(0..64).told().high, Nanos(62));
        assert_eq!(all(7..8).told(), of(7, 7, 7, 1));
    }
}
