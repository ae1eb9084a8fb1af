//! How far behind a completion its stamp may be.
//!
//! A completion is stamped when it is seen. It was not there at the look before, so it happened in
//! (look before, look]: the gap is an upper bound of the stamp's error. Across a sleep the gap says
//! nothing; there the completion that ended the sleep, and those that came while the thread woke up, are
//! exact to the wake-up time, which is measured by itself ([`crate::session::wake_up`]).
//!
//! Whether a thread slept in an entry is told by the time it took, and in doubt by the kernel
//! ([`super::sleeps`]).
//!
//! Completions that were seen and left in line (`-oc`) keep the look before the one that first saw them.

use plumb_io::clock::Clock;
use plumb_units::Nanos;

use super::sleeps::Sleeps;
use crate::tally::Histogram;

/// Of so many entries that wait, one submits and waits in two calls, so that submissions get timed in
/// runs that never submit without waiting.
const PROBE_EVERY: u32 = 256;

/// The same for loops whose calls are laid down: so many at the start of a run, and no more.
const PROBES_AT_FIRST: u32 = 4;

/// One thread's looks at its completion queue.
#[derive(Debug)]
pub struct Looks {
    /// No completion that is still unseen happened before this.
    unseen_since: Nanos,
    sleeps: Sleeps,
    probe_in: u32,
    probed: u32,
    /// Completions seen and left in line, those to come first before the others.
    left: [Left; 2],
    /// Of completions on top of whose bound no wake-up comes...
    gaps: Histogram,
    /// ...and of those on top of whose bound one does.
    woken: Histogram,
}

/// Completions that an earlier look saw.
#[derive(Debug, Clone, Copy, Default)]
struct Left {
    count: u32,
    /// None of them happened before this.
    since: Nanos,
    /// Nor before the wake-up that ended at it.
    woken: bool,
}

/// How late the completions of one look may have been seen: its first ones, and the others.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Bound {
    /// How many come first.
    of: u32,
    /// The bound of these, and whether a wake-up comes on top of it.
    first: (Nanos, bool),
    /// The same of the others.
    others: (Nanos, bool),
}

impl Bound {
    /// The gap since the look before for the first `of`; the others came while the thread woke up.
    #[inline(always)]
    const fn of_a_look(gap: Nanos, of: u32) -> Self {
        Self { of, first: (gap, false), others: (Nanos::ZERO, true) }
    }

    /// Of the `nth` completion, from 0, and whether a wake-up comes on top.
    #[inline(always)]
    pub(super) fn of_nth(self, nth: u32) -> (Nanos, bool) {
        if nth < self.of { self.first } else { self.others }
    }
}

impl Looks {
    /// Before the first look. Without stamps there is nothing to bound and no memory is taken.
    #[must_use]
    pub(super) fn new(stamps: bool) -> Self {
        let bounds = || if stamps { Histogram::new() } else { Histogram::without_buckets() };
        Self {
            unseen_since: Nanos::ZERO,
            sleeps: Sleeps::new(),
            probe_in: 0,
            probed: 0,
            left: [Left::default(); 2],
            gaps: bounds(),
            woken: bounds(),
        }
    }

    /// Upper bounds of the stamps' errors in nanoseconds, of completions on top of whose bound no wake-up comes.
    #[must_use]
    pub fn gaps(&self) -> &Histogram {
        &self.gaps
    }

    /// The same, the wake-up time apart, of completions that ended a sleep or came while the thread woke up.
    #[must_use]
    pub fn woken(&self) -> &Histogram {
        &self.woken
    }

    /// Of all completions, the wake-up time apart.
    #[must_use]
    pub fn bounds(&self) -> Histogram {
        let mut all = self.gaps.clone();
        all.merge(&self.woken);
        all
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

    /// Whether the next entry that waits should submit first, with few of those in a whole run.
    #[inline(always)]
    pub(super) fn probes_at_first(&mut self) -> bool {
        let probes = self.probed < PROBES_AT_FIRST;
        self.probed += u32::from(probes);
        probes
    }

    /// The next entry that waits submits `queued` I/Os first.
    #[inline(always)]
    pub(super) fn enters(&mut self, queued: u32) {
        self.sleeps.enters(queued);
    }

    /// An entry that only submitted `queued` I/Os took `time`.
    #[inline(always)]
    pub(super) fn submitted_in(&mut self, time: Nanos, queued: u32) {
        self.sleeps.submitted_in(time, queued);
    }

    /// The same of an entry that would have waited.
    pub(super) fn probed_in(&mut self, time: Nanos, queued: u32) {
        self.sleeps.probed_in(time, queued);
    }

    /// Every entry of this thread waits for what it submits.
    pub(super) fn wait_for_all(&mut self) {
        self.sleeps.wait_for_all();
    }

    /// The thread sleeps outside of its entries.
    pub(super) fn sleeps_elsewhere(&mut self) {
        self.sleeps.elsewhere();
    }

    /// Whether the entry that waited for `wanted` completions (0: it did not wait) and ended with a look at
    /// `seen` was a sleep.
    #[inline(always)]
    pub(super) fn slept<C: Clock>(&mut self, seen: Nanos, wanted: u32, clock: &C) -> bool {
        self.sleeps.slept(seen.since(self.unseen_since), wanted, clock)
    }

    /// The next of the completions of one look, each of which is stamped in its turn: `first` is the
    /// stamp of the first of them, behind an entry that waited for one (`slept`: asleep), `left` how many are
    /// still to come.
    /// Its bound, and whether a wake-up comes on top of it.
    #[inline(always)]
    pub(super) fn saw_next(
        &mut self,
        seen: Nanos,
        (first, slept): (Nanos, bool),
        left: u32,
        counts: bool,
    ) -> (Nanos, bool) {
        let since = if slept { first } else { self.unseen_since };
        if left == 0 {
            self.unseen_since = first;
        }
        let bound = seen.since(since);
        if counts {
            let into = if slept { &mut self.woken } else { &mut self.gaps };
            into.record_few(bound.0, 1);
        }
        (bound, slept)
    }

    /// `found` completions were seen at `seen`, behind an entry that waited for `wanted` of them (`slept`:
    /// asleep, see [`Looks::slept`]), and `left` more that stay unseen.
    #[inline(always)]
    pub(super) fn saw(
        &mut self,
        found: u32,
        left: u32,
        seen: Nanos,
        (wanted, slept): (u32, bool),
        counts: bool,
    ) -> Bound {
        let gap = seen.since(self.unseen_since);
        let known = self.left[0].count;
        if left > 0 || known > 0 {
            // Bursts are taken in visits of sixteen: most visits see completions of one look only.
            if !slept && self.left[1].count == 0 && (known == 0 || known == found + left) {
                if known == 0 {
                    self.left[0] = Left { count: 0, since: self.unseen_since, woken: false };
                }
                let Left { since, woken, .. } = self.left[0];
                self.left[0].count = left;
                self.unseen_since = seen;
                let gap = seen.since(since);
                if counts {
                    let into = if woken { &mut self.woken } else { &mut self.gaps };
                    into.record_few(gap.0, found);
                }
                return Bound { of: found, first: (gap, woken), others: (gap, woken) };
            }
            return self.saw_part((found, left), seen, if slept { wanted } else { 0 }, counts);
        }
        self.unseen_since = seen;
        let exact = if slept { (found + 1).saturating_sub(wanted) } else { 0 };
        if counts {
            self.gaps.record_few(gap.0, found - exact);
            self.woken.record_few(0, exact);
        }
        Bound::of_a_look(gap, found - exact)
    }

    /// The same where some stay in line or had to. Of these, two generations are kept apart; a third joins
    /// the second, whose look is the earlier one, which errs to the safe side.
    #[cold]
    #[inline(never)]
    fn saw_part(
        &mut self,
        (found, left): (u32, u32),
        seen: Nanos,
        slept_for: u32,
        counts: bool,
    ) -> Bound {
        let known: u32 = self.left.iter().map(|earlier| earlier.count).sum();
        let fresh = (found + left).saturating_sub(known);
        let gap = seen.since(self.unseen_since);
        if known == 0 && slept_for > 0 && found >= slept_for {
            // Those in line came, with the last of these, while the thread woke up.
            let exact = found + 1 - slept_for;
            self.left[0] = Left { count: left, since: seen, woken: true };
            self.unseen_since = seen;
            if counts {
                self.gaps.record_few(gap.0, found - exact);
                self.woken.record_few(0, exact);
            }
            return Bound::of_a_look(gap, found - exact);
        }
        let place = usize::from(self.left[0].count > 0);
        let into = &mut self.left[place];
        if into.count == 0 {
            (into.since, into.woken) = (self.unseen_since, false);
        }
        into.count += fresh;
        self.unseen_since = seen;
        let mut taken_before = 0;
        let mut bound = Bound::default();
        while taken_before < found && self.left[0].count > 0 {
            let taken = (found - taken_before).min(self.left[0].count);
            let late = (seen.since(self.left[0].since), self.left[0].woken);
            if taken_before == 0 {
                bound = Bound { of: taken, first: late, others: late };
            }
            bound.others = late;
            if counts {
                let into = if late.1 { &mut self.woken } else { &mut self.gaps };
                into.record_few(late.0.0, taken);
            }
            taken_before += taken;
            self.left[0].count -= taken;
            if self.left[0].count == 0 {
                self.left = [self.left[1], Left::default()];
            }
        }
        bound
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use plumb_io::clock::ManualClock;

    fn bounds(looks: &Looks) -> Vec<(u64, u64)> {
        looks.bounds().buckets().map(|(low, _, count)| (low, count)).collect()
    }

    /// Behind an entry that waited for `wanted`: by the time, whether it slept.
    fn saw(
        looks: &mut Looks,
        (found, left): (u32, u32),
        seen: u64,
        wanted: u32,
        counts: bool,
    ) -> Bound {
        let slept = looks.slept(Nanos(seen), wanted, &ManualClock::default());
        looks.saw(found, left, Nanos(seen), (wanted, slept), counts)
    }

    /// Nanoseconds of each of `found` completions, and whether a wake-up comes on top.
    fn each(bound: Bound, found: u32) -> Vec<(u64, bool)> {
        (0..found).map(|nth| bound.of_nth(nth)).map(|(late, woken)| (late.0, woken)).collect()
    }

    fn saw_next(looks: &mut Looks, seen: u64, first: u64, left: u32) -> (Nanos, bool) {
        let slept = looks.slept(Nanos(first), 1, &ManualClock::default());
        looks.saw_next(Nanos(seen), (Nanos(first), slept), left, true)
    }

    #[test]
    fn what_is_seen_happened_after_the_look_before() {
        let mut looks = Looks::new(true);
        saw(&mut looks, (1, 0), 1000, 0, false);
        saw(&mut looks, (3, 0), 1100, 0, true);
        assert_eq!(bounds(&looks), [(100, 3)]);
        looks.found_nothing_after(Nanos(1150));
        saw(&mut looks, (1, 0), 1160, 0, true);
        assert_eq!(bounds(&looks), [(10, 1), (100, 3)]);
    }

    #[test]
    fn what_stays_behind_was_there_before() {
        let mut looks = Looks::new(true);
        saw(&mut looks, (1, 0), 1000, 0, false);
        saw(&mut looks, (2, 5), 1050, 0, true);
        // The five were there at the last look: the gap begins at the look before it.
        saw(&mut looks, (5, 0), 1100, 0, true);
        assert_eq!(bounds(&looks), [(50, 2), (100, 5)]);
    }

    #[test]
    fn what_always_has_others_before_it_is_no_older_than_the_look_that_saw_it() {
        let mut looks = Looks::new(true);
        looks.probed_in(Nanos(1000), 1);
        // One is taken and one comes at each look; nine stay in line for good.
        saw(&mut looks, (1, 9), 100, 0, true);
        for nth in 2..1000_u64 {
            saw(&mut looks, (1, 9), nth * 100, 0, true);
        }
        assert_eq!(looks.bounds().count(), 999);
        // Ten looks pass between the look before a completion's first and the one that takes it; a
        // generation is at most twice as old.
        assert!(looks.bounds().max() <= Some(2000), "{:?}", looks.bounds().max());
        assert!(looks.bounds().value_at_rank(500) >= Some(900), "{:?}", looks.bounds());
        // All at once: the line is empty again, and the next is counted from the last look.
        saw(&mut looks, (9, 0), 100_000, 0, true);
        let before = looks.bounds();
        saw(&mut looks, (1, 0), 100_007, 0, true);
        assert_eq!(before.value_at_rank(1), Some(100));
        assert_eq!(looks.bounds().value_at_rank(1), Some(7));
    }

    #[test]
    fn an_entry_may_take_what_its_submissions_take() {
        let mut looks = Looks::new(true);
        saw(&mut looks, (1, 0), 1000, 0, false);
        saw(&mut looks, (1, 0), 5000, 1, true);
        let untimed = bounds(&looks);
        assert_eq!(untimed.len(), 1, "no submission was ever timed: the whole gap");
        // 20 ns each: 32 of them may take 1280 ns without a sleep, none of them 40 ns.
        looks.probed_in(Nanos(160), 8);
        looks.enters(32);
        saw(&mut looks, (1, 0), 6280, 1, true);
        looks.enters(0);
        saw(&mut looks, (1, 0), 6340, 1, true);
        saw(&mut looks, (1, 0), 6380, 1, true);
        assert_eq!(looks.bounds().count(), 4);
        assert_eq!(looks.bounds().value_at_rank(1), Some(0), "60 ns of an entry without any");
        assert_eq!(looks.bounds().value_at_rank(2), Some(40));
        assert!(looks.bounds().value_at_rank(3) >= Some(1200), "{:?}", bounds(&looks));
    }

    #[test]
    fn a_sleep_is_exact_from_the_completion_that_ended_it() {
        let mut looks = Looks::new(true);
        looks.probed_in(Nanos(10), 1);
        saw(&mut looks, (1, 0), 1000, 0, false);
        // Waited for two, found four: one came somewhere in the sleep, the rest at its end.
        saw(&mut looks, (4, 2), 1120, 2, true);
        assert_eq!(bounds(&looks), [(0, 3), (120, 1)]);
        assert_eq!((looks.woken().count(), looks.gaps().count()), (3, 1));
        // The two that were left came with them.
        let bound = saw(&mut looks, (2, 0), 1125, 0, true);
        assert_eq!(each(bound, 2), [(5, true), (5, true)]);
        assert_eq!(bounds(&looks), [(0, 3), (5, 2), (120, 1)]);
        assert_eq!((looks.woken().count(), looks.gaps().count()), (5, 1));
        // What comes then was not there at the wake-up.
        let bound = saw(&mut looks, (1, 3), 1130, 0, true);
        assert_eq!(each(bound, 1), [(5, false)]);
        let bound = saw(&mut looks, (3, 0), 1131, 0, true);
        assert_eq!(each(bound, 3), [(6, false); 3]);
    }

    #[test]
    fn what_joins_those_of_a_wake_up_is_not_of_it() {
        let mut looks = Looks::new(true);
        looks.probed_in(Nanos(10), 1);
        saw(&mut looks, (1, 0), 1000, 0, false);
        let bound = saw(&mut looks, (2, 2), 1120, 1, true);
        assert_eq!(each(bound, 2), [(0, true), (0, true)]);
        // One of the two, with another that came behind them.
        let bound = saw(&mut looks, (1, 2), 1125, 0, true);
        assert_eq!(each(bound, 1), [(5, true)]);
        // The other, which came no later than the wake-up, and the one behind.
        let bound = saw(&mut looks, (2, 0), 1127, 0, true);
        assert_eq!(each(bound, 2), [(7, true), (7, false)]);
        assert_eq!((looks.woken().count(), looks.gaps().count()), (4, 1));
    }

    #[test]
    fn an_entry_as_short_as_a_submission_is_no_sleep() {
        let mut looks = Looks::new(true);
        looks.probed_in(Nanos(60), 1);
        saw(&mut looks, (1, 0), 1000, 0, false);
        saw(&mut looks, (2, 0), 1120, 1, true);
        assert_eq!(bounds(&looks), [(120, 2)]);
    }

    #[test]
    fn stamps_taken_in_turn_are_late_by_what_went_before() {
        let mut looks = Looks::new(true);
        looks.probed_in(Nanos(10), 1);
        saw(&mut looks, (1, 0), 1000, 0, false);
        for (seen, left) in [(1090, 2), (1100, 1), (1120, 0)] {
            let (_, woken) = saw_next(&mut looks, seen, 1090, left);
            assert!(woken, "{seen}");
        }
        assert_eq!(bounds(&looks), [(0, 1), (10, 1), (30, 1)]);
        // No sleep: counted from the look before, which came just before 1090.
        assert_eq!(saw_next(&mut looks, 1105, 1105, 0), (Nanos(15), false));
        assert_eq!(bounds(&looks), [(0, 1), (10, 1), (15, 1), (30, 1)]);
        assert_eq!((looks.woken().count(), looks.gaps().count()), (3, 1));
    }

    #[test]
    fn submissions_are_probed_now_and_then() {
        let mut looks = Looks::new(true);
        let probed = (0..1000).filter(|_| looks.probes()).count();
        assert_eq!(probed, 4);
        let probed: Vec<u32> = (0..1000).filter(|_| looks.probes_at_first()).collect();
        assert_eq!(probed, [0, 1, 2, 3], "then never again");
    }
}
