//! How far behind a completion its stamp may be.
//!
//! A completion is stamped when it is seen. It was not there at the look before, so it happened in
//! (look before, look]: the gap is an upper bound of the stamp's error. Across a sleep the gap says
//! nothing; there the completion that ended the sleep, and those that came while the thread woke up, are
//! exact to the wake-up time, which is measured by itself ([`super::wake_up`]).
//!
//! Whether a thread slept in an entry is told by the time it took: entries that only submit are timed all
//! along. One that took at most twice as long as these is taken for no sleep, which errs to the safe side.

use plumb_units::Nanos;

use crate::tally::Histogram;

/// Of so many entries that wait, one submits and waits in two calls, so that submissions get timed in
/// runs that never submit without waiting.
const PROBE_EVERY: u32 = 256;

/// One thread's looks at its completion queue.
#[derive(Debug)]
pub struct Looks {
    /// No completion that is still unseen happened before this.
    unseen_since: Nanos,
    /// What an entry takes that only submits, a moving mean.
    submission: Nanos,
    probe_in: u32,
    bounds: Histogram,
}

impl Looks {
    /// Before the first look. Without stamps there is nothing to bound and no memory is taken.
    #[must_use]
    pub(super) fn new(stamps: bool) -> Self {
        let bounds = if stamps { Histogram::new() } else { Histogram::without_buckets() };
        Self { unseen_since: Nanos::ZERO, submission: Nanos::ZERO, probe_in: 0, bounds }
    }

    /// Upper bounds of the stamps' errors in nanoseconds, the wake-up time apart; one per completion.
    #[must_use]
    pub fn bounds(&self) -> &Histogram {
        &self.bounds
    }

    /// A look that came after `stamp` found nothing.
    #[inline(always)]
    pub(super) fn found_nothing_after(&mut self, stamp: Nanos) {
        self.unseen_since = stamp;
    }

    /// Whether the next entry that waits should submit first.
    #[inline(always)]
    pub(super) fn probes(&mut self) -> bool {
        let probes = self.probe_in == 0;
        self.probe_in = if probes { PROBE_EVERY } else { self.probe_in - 1 };
        probes
    }

    /// An entry that only submitted took `time`.
    #[inline(always)]
    pub(super) fn submitted_in(&mut self, time: Nanos) {
        let (mean, time) = (self.submission.0, time.0);
        self.submission = if mean == 0 { Nanos(time) } else { Nanos(mean - mean / 16 + time / 16) };
    }

    /// The next of the completions of one look, each of which is stamped in its turn: `first` is the
    /// stamp of the first of them, behind an entry that waited for one, `left` how many are still to come.
    /// Its bound.
    #[inline(always)]
    pub(super) fn saw_next(&mut self, seen: Nanos, first: Nanos, left: u32, counts: bool) -> Nanos {
        let slept = self.is_sleep(first.since(self.unseen_since));
        let since = if slept { first } else { self.unseen_since };
        if left == 0 {
            self.unseen_since = first;
        }
        let bound = seen.since(since);
        if counts {
            self.bounds.record_few(bound.0, 1);
        }
        bound
    }

    #[inline(always)]
    fn is_sleep(&self, gap: Nanos) -> bool {
        gap.0 > self.submission.0.saturating_mul(2)
    }

    /// `found` completions were seen at `seen`, behind an entry that waited for `wanted` of them (0: it
    /// did not wait), and `left` more that stay unseen. The bound, and of how many from the first; that of
    /// the rest is 0.
    #[inline(always)]
    pub(super) fn saw(
        &mut self,
        found: u32,
        left: u32,
        seen: Nanos,
        wanted: u32,
        counts: bool,
    ) -> (Nanos, u32) {
        let gap = seen.since(self.unseen_since);
        let slept = wanted > 0 && self.is_sleep(gap);
        // Behind the one that ended a sleep, all came while the thread woke up.
        if left == 0 || (slept && found >= wanted) {
            self.unseen_since = seen;
        }
        let exact = if slept { (found + 1).saturating_sub(wanted) } else { 0 };
        if counts {
            self.bounds.record_few(gap.0, found - exact);
            self.bounds.record_few(0, exact);
        }
        (gap, found - exact)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bounds(looks: &Looks) -> Vec<(u64, u64)> {
        looks.bounds().buckets().map(|(low, _, count)| (low, count)).collect()
    }

    #[test]
    fn what_is_seen_happened_after_the_look_before() {
        let mut looks = Looks::new(true);
        looks.saw(1, 0, Nanos(1000), 0, false);
        looks.saw(3, 0, Nanos(1100), 0, true);
        assert_eq!(bounds(&looks), [(100, 3)]);
        looks.found_nothing_after(Nanos(1150));
        looks.saw(1, 0, Nanos(1160), 0, true);
        assert_eq!(bounds(&looks), [(10, 1), (100, 3)]);
    }

    #[test]
    fn what_stays_behind_was_there_before() {
        let mut looks = Looks::new(true);
        looks.saw(1, 0, Nanos(1000), 0, false);
        looks.saw(2, 5, Nanos(1050), 0, true);
        // The five were there at the last look: the gap begins at the look before it.
        looks.saw(5, 0, Nanos(1100), 0, true);
        assert_eq!(bounds(&looks), [(50, 2), (100, 5)]);
    }

    #[test]
    fn a_sleep_is_exact_from_the_completion_that_ended_it() {
        let mut looks = Looks::new(true);
        looks.submitted_in(Nanos(10));
        looks.saw(1, 0, Nanos(1000), 0, false);
        // Waited for two, found four: one came somewhere in the sleep, the rest at its end.
        looks.saw(4, 2, Nanos(1120), 2, true);
        assert_eq!(bounds(&looks), [(0, 3), (120, 1)]);
        // The two that were left came with them.
        looks.saw(2, 0, Nanos(1125), 0, true);
        assert_eq!(bounds(&looks), [(0, 3), (5, 2), (120, 1)]);
    }

    #[test]
    fn an_entry_as_short_as_a_submission_is_no_sleep() {
        let mut looks = Looks::new(true);
        looks.submitted_in(Nanos(60));
        looks.saw(1, 0, Nanos(1000), 0, false);
        looks.saw(2, 0, Nanos(1120), 1, true);
        assert_eq!(bounds(&looks), [(120, 2)]);
    }

    #[test]
    fn stamps_taken_in_turn_are_late_by_what_went_before() {
        let mut looks = Looks::new(true);
        looks.submitted_in(Nanos(10));
        looks.saw(1, 0, Nanos(1000), 0, false);
        for (seen, left) in [(1090, 2), (1100, 1), (1120, 0)] {
            looks.saw_next(Nanos(seen), Nanos(1090), left, true);
        }
        assert_eq!(bounds(&looks), [(0, 1), (10, 1), (30, 1)]);
        // No sleep: counted from the look before, which came just before 1090.
        looks.saw_next(Nanos(1105), Nanos(1105), 0, true);
        assert_eq!(bounds(&looks), [(0, 1), (10, 1), (15, 1), (30, 1)]);
    }

    #[test]
    fn submissions_are_probed_now_and_then() {
        let mut looks = Looks::new(true);
        let probed = (0..1000).filter(|_| looks.probes()).count();
        assert_eq!(probed, 4);
    }
}
