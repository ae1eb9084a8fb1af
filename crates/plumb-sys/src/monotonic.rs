//! CLOCK_MONOTONIC and CLOCK_MONOTONIC_RAW in nanoseconds.

use plumb_units::Nanos;
use rustix::time::ClockId;

/// CLOCK_MONOTONIC: slewed by NTP, read without a system call where the kernel allows it.
#[inline]
#[must_use]
pub fn now() -> Nanos {
    read(ClockId::Monotonic)
}

/// CLOCK_MONOTONIC_RAW: the hardware's own pace.
#[inline]
#[must_use]
pub fn raw_now() -> Nanos {
    read(ClockId::MonotonicRaw)
}

#[inline]
fn read(clock: ClockId) -> Nanos {
    let time = rustix::time::clock_gettime(clock);
    let seconds = u64::try_from(time.tv_sec).expect("a monotonic clock starts at 0");
    let nanos = u64::try_from(time.tv_nsec).expect("nanoseconds are never negative");
    Nanos(seconds * 1_000_000_000 + nanos)
}
