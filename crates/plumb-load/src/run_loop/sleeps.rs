//! Whether a thread slept in an entry that waited.
//!
//! An entry submits and waits in one call. What it took longer than its submissions should take was a
//! sleep: entries that only submit are timed all along, per I/O. One that took at most twice as long as its
//! I/Os should is taken for no sleep, which errs to the safe side.
//!
//! Where few requests are in flight and the device answers within a few times what a submission takes, time
//! alone cannot tell: there the kernel is asked, which counts how often a thread goes to sleep. That is a system
//! call of its own, so it is made only where there is doubt, and given up for a while where the thread does
//! not sleep at all.

use plumb_io::clock::Clock;
use plumb_units::Nanos;

/// No entry is longer: none is taken for a sleep before one has been timed.
const UNTIMED: Nanos = Nanos::NEVER;

/// An entry that took so many times what its submissions take slept.
const CERTAIN: u64 = 8;

/// After so many entries in a row without a sleep the kernel is not asked any more...
const AWAKE: u32 = 32;
/// ...for so many.
const UNASKED: u32 = 256;

/// Batches of one are the ones that a division would cost most.
#[inline(always)]
fn per_io(time: Nanos, queued: u32) -> u64 {
    if queued <= 1 { time.0 } else { time.0 / u64::from(queued) }
}

/// One thread's entries, and which of them were sleeps.
#[derive(Debug)]
pub(super) struct Sleeps {
    /// What an entry that only submits takes for each I/O, a moving mean; [`UNTIMED`] before the first.
    submission: Nanos,
    /// The least that one took that would have waited.
    least: Nanos,
    /// I/Os that the entry submits whose completions are seen next.
    submitting: u32,
    /// The kernel is asked where no more completions than that are waited for.
    asks_up_to: u32,
    /// The kernel's count behind the last entry that waited; `None` where it was not asked then.
    counted: Option<u64>,
    /// Entries in a row in which the thread was found awake.
    awake: u32,
    /// Entries until the kernel is asked again.
    unasked: u32,
}

impl Sleeps {
    pub(super) const fn new() -> Self {
        Self {
            submission: UNTIMED,
            least: UNTIMED,
            submitting: 0,
            asks_up_to: 1,
            counted: None,
            awake: 0,
            unasked: 0,
        }
    }

    /// Every entry of this thread waits for what it submits: however many that are, it may be short.
    pub(super) fn wait_for_all(&mut self) {
        self.asks_up_to = u32::MAX;
    }

    /// The next entry that waits submits `queued` I/Os first.
    #[inline(always)]
    pub(super) fn enters(&mut self, queued: u32) {
        self.submitting = queued;
    }

    /// An entry that only submitted `queued` I/Os took `time`.
    #[inline(always)]
    pub(super) fn submitted_in(&mut self, time: Nanos, queued: u32) {
        let (mean, time) = (self.submission.0, per_io(time, queued));
        let is_first = self.submission == UNTIMED;
        self.submission = if is_first { Nanos(time) } else { Nanos(mean - mean / 16 + time / 16) };
    }

    /// The same of an entry that would have waited.
    pub(super) fn probed_in(&mut self, time: Nanos, queued: u32) {
        self.submitted_in(time, queued);
        self.least = self.least.min(Nanos(per_io(time, queued)));
    }

    /// The thread slept somewhere else, or may have: what the kernel counts now is not of the next entry.
    pub(super) fn elsewhere(&mut self) {
        self.counted = None;
    }

    /// Whether an entry that waited for `wanted` completions, and ended `gap` after the last look that found
    /// nothing, was a sleep.
    #[inline(always)]
    pub(super) fn slept<C: Clock>(&mut self, gap: Nanos, wanted: u32, clock: &C) -> bool {
        // With a deep queue the sleep for several is longer than the submissions of a batch.
        let may_ask = wanted.wrapping_sub(1) < self.asks_up_to;
        if may_ask && (self.counted.is_some() || self.is_in_doubt(gap)) {
            return self.is_told(gap, clock);
        }
        wanted > 0 && self.is_longer_than(2, gap)
    }

    /// Whether `gap` is more than so many times what the submissions of the entry should take, to some
    /// nanoseconds.
    #[inline(always)]
    fn is_longer_than(&self, times: u64, gap: Nanos) -> bool {
        let expected = self.submission.0.saturating_mul(self.submitting.max(1).into());
        gap.0 / times > expected
    }

    #[inline(always)]
    fn is_in_doubt(&self, gap: Nanos) -> bool {
        // A quarter more than the quickest took: the first ones timed may have been held up.
        let least = self.least.0.saturating_mul(self.submitting.max(1).into());
        gap.0 > least.saturating_add(least / 4) && !self.is_longer_than(CERTAIN, gap)
    }

    /// Asks the kernel.
    #[cold]
    #[inline(never)]
    fn is_told<C: Clock>(&mut self, gap: Nanos, clock: &C) -> bool {
        if self.unasked > 0 {
            self.unasked -= 1;
            return false;
        }
        let before = self.counted;
        self.counted = clock.sleeps();
        match (before, self.counted) {
            // Nobody knows: by the time.
            (_, None) => self.is_longer_than(2, gap),
            // The next entry can be told; of this one the whole gap is the bound.
            (None, Some(_)) => false,
            (Some(before), Some(now)) if now > before => {
                self.awake = 0;
                true
            }
            (Some(_), Some(_)) => {
                self.awake += 1;
                if self.awake == AWAKE {
                    (self.awake, self.unasked, self.counted) = (0, UNASKED, None);
                }
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicU64, Ordering};

    /// A kernel that counts what the test says, and how often it is asked.
    #[derive(Clone, Default)]
    struct Kernel {
        sleeps: Arc<AtomicU64>,
        asked: Arc<AtomicU64>,
    }

    impl Kernel {
        fn sleep(&self) {
            self.sleeps.fetch_add(1, Ordering::Relaxed);
        }

        fn asked(&self) -> u64 {
            self.asked.load(Ordering::Relaxed)
        }
    }

    impl Clock for Kernel {
        fn now(&self) -> Nanos {
            Nanos::ZERO
        }

        fn sleeps(&self) -> Option<u64> {
            self.asked.fetch_add(1, Ordering::Relaxed);
            Some(self.sleeps.load(Ordering::Relaxed))
        }
    }

    fn timed(submission: u64) -> Sleeps {
        let mut sleeps = Sleeps::new();
        sleeps.probed_in(Nanos(submission), 1);
        sleeps.enters(1);
        sleeps
    }

    #[test]
    fn where_time_cannot_tell_the_kernel_does() {
        let (mut sleeps, kernel) = (timed(100), Kernel::default());
        assert!(!sleeps.slept(Nanos(250), 1, &kernel), "nothing was counted before");
        for round in 0..100 {
            kernel.sleep();
            assert!(sleeps.slept(Nanos(150), 1, &kernel), "{round}");
            assert!(!sleeps.slept(Nanos(250), 1, &kernel), "{round}");
        }
        // Where it is known it is asked each time, however clear the time seems.
        assert!(!sleeps.slept(Nanos(5000), 1, &kernel));
    }

    #[test]
    fn held_up_probes_hide_no_sleep() {
        let kernel = Kernel::default();
        let mut sleeps = timed(10_000);
        sleeps.probed_in(Nanos(100), 1);
        assert!(!sleeps.slept(Nanos(250), 1, &kernel));
        kernel.sleep();
        assert!(sleeps.slept(Nanos(250), 1, &kernel), "far below the mean, above the least");
    }

    #[test]
    fn the_kernel_is_not_asked_where_there_is_no_doubt() {
        let (mut sleeps, kernel) = (timed(100), Kernel::default());
        assert!(!sleeps.slept(Nanos(125), 1, &kernel));
        assert!(sleeps.slept(Nanos(808), 1, &kernel));
        assert!(sleeps.slept(Nanos(300), 2, &kernel), "two to wait for: by the time");
        assert!(!sleeps.slept(Nanos(500), 0, &kernel), "it did not wait");
        assert_eq!(kernel.asked(), 0);
        sleeps.wait_for_all();
        assert!(!sleeps.slept(Nanos(300), 2, &kernel));
        kernel.sleep();
        assert!(sleeps.slept(Nanos(150), 2, &kernel), "unless all entries are such");
        assert!(!sleeps.slept(Nanos(500), 0, &kernel));
    }

    #[test]
    fn who_never_sleeps_is_seldom_asked() {
        let (mut sleeps, kernel) = (timed(100), Kernel::default());
        let turn = AWAKE + 1 + UNASKED;
        // To the begin of a time in which it is not asked.
        let entries = 300 * turn + AWAKE + 2;
        let slept = (0..entries).filter(|_| sleeps.slept(Nanos(300), 1, &kernel)).count();
        assert_eq!(slept, 0);
        assert_eq!(kernel.asked(), 301 * u64::from(AWAKE + 1));
        // In between a long one is a sleep all the same.
        assert!(sleeps.slept(Nanos(900), 1, &kernel));
        // And once it sleeps that is found out.
        let found = Cell::new(0);
        for _ in 0..2000 {
            kernel.sleep();
            found.set(found.get() + u32::from(sleeps.slept(Nanos(300), 1, &kernel)));
        }
        assert!(found.get() > 900, "{found:?}");
    }

    #[test]
    fn a_sleep_elsewhere_is_not_one_of_the_entry() {
        let (mut sleeps, kernel) = (timed(100), Kernel::default());
        assert!(!sleeps.slept(Nanos(300), 1, &kernel));
        kernel.sleep();
        sleeps.elsewhere();
        assert!(!sleeps.slept(Nanos(300), 1, &kernel));
    }

    #[test]
    fn without_a_count_it_goes_by_the_time() {
        let (mut sleeps, clock) = (timed(100), plumb_io::clock::ManualClock::default());
        assert!(!sleeps.slept(Nanos(200), 1, &clock));
        assert!(sleeps.slept(Nanos(202), 1, &clock));
    }
}
