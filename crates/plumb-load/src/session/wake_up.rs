//! What a thread's wake-up takes on this machine, now.

use std::io;
use std::num::NonZeroU64;

use plumb_units::{Nanos, convert};
use rustix::thread::{ClockId, Timespec, clock_nanosleep_absolute};
use rustix::time::clock_gettime;

use crate::result::stamp_error::WakeUp;

/// Wake-ups per measurement.
const ROUNDS: u64 = 64;
/// How long each sleep is: long enough for the processor to go idle.
const SLEEP: Nanos = Nanos(100_000);

/// How late a thread runs that a timer's interrupt wakes: as far as a device's interrupt does. Takes about
/// 8 ms.
///
/// # Errors
/// When the system gives no thread.
pub fn measure() -> io::Result<WakeUp> {
    let sleeper = std::thread::Builder::new().name("plumb-wake-up".to_owned());
    let times = sleeper.spawn(|| {
        // Without it the kernel gathers timers over 50 µs. A refusal shows as a longer time, which is safe.
        let _ = rustix::thread::set_current_timer_slack(Some(NonZeroU64::MIN));
        let mut times: Vec<Nanos> = (0..ROUNDS).map(|_| late()).collect();
        times.sort_unstable();
        times
    })?;
    let times = times.join().expect("it sleeps and reads a clock");
    let at = |share: u64| times[convert::to_usize((ROUNDS - 1) * share / 100)];
    Ok(WakeUp { median: at(50), max: at(100) })
}

/// How late one sleep ended.
fn late() -> Nanos {
    let due = now() + SLEEP;
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
        let time = measure().expect("a thread");
        assert!(Nanos(100) < time.median && time.median <= time.max, "{time:?}");
        assert!(time.max < Nanos(1_000_000_000), "{time:?}");
    }
}
