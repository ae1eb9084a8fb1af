//! How fast extents move while requests are served (10.5): faster step by step, half as fast as soon as requests take
//! longer than they did before.
//!
//! Reads and writes of each tier, and of the cache, are compared with their like: what rotating disks took a moment ago
//! says nothing about SSDs.

use plumb_units::Nanos;

use super::perf::KINDS;
use super::times::Times;

/// How often the rate is judged.
const TICK: Nanos = Nanos(100_000_000);
/// The baseline is what requests took in the last one or two of these without moves.
const QUIET: Nanos = Nanos(30_000_000_000);
/// With fewer requests there is no percentile.
const ENOUGH: u64 = 50;
/// Bytes per second: at the beginning, at least unless a lower cap is set, and more at each step.
const FIRST: u64 = 16 << 20;
const LEAST: u64 = 2 << 20;
const STEP: u64 = 4 << 20;
/// Beside requests no step is more than the rate divided by this.
const MOST_STEP: u64 = 2;
/// A lower cap is none that moves could go on with.
pub(super) const CAP_LEAST: u64 = 64 << 10;
/// Unused room is kept for so long.
const SAVED_TICKS: u64 = 2;
/// The same where pieces are spread, or for one piece.
const SAVED: Nanos = Nanos(10_000_000);

/// The controller: additive increase, multiplicative decrease.
#[derive(Debug)]
pub(super) struct Throttle {
    /// Bytes per second, at most; `None`: no throttle.
    most: Option<u64>,
    /// Bytes per second, at most, beside the requests that keep disks busy; `None`: as many as goes.
    beside: Option<u64>,
    /// I/Os per second of devices, at most.
    most_ios: Option<u64>,
    /// Requests may not suffer: it is slower while they do.
    gives_way: bool,
    rate: u64,
    /// Bytes that may go now. A piece is not cut: below 0 it is what went too early.
    room: i64,
    /// Tenths of I/Os that may go now.
    io_room: i64,
    /// When the next piece may go, where pieces are spread.
    next: Nanos,
    judged: Nanos,
    moved: u64,
    /// By the kind of device and request.
    seen: [Seen; KINDS],
    quiet_since: Nanos,
    /// The 99th percentile while extents moved, the last that is known, in percent of the one without.
    ratio_percent: Option<u64>,
}

/// What requests of one kind took.
#[derive(Debug)]
struct Seen {
    /// Since the last judgement.
    window: Times,
    /// Without moves: since `quiet_since`, and before.
    quiet: [Times; 2],
    /// Both together.
    all: Times,
    baseline: Option<u64>,
}

impl Seen {
    /// With all its memory.
    fn with_room() -> Self {
        let times = Times::<{ crate::log_buckets::COARSE }>::with_room;
        Self { window: times(), quiet: [times(), times()], all: times(), baseline: None }
    }

    /// A window without moves is what others are compared with.
    fn note_quiet(&mut self, rotates: bool) {
        if rotates {
            self.quiet.swap(0, 1);
            self.quiet[0].clear();
        }
        if self.window.count() == 0 {
            return;
        }
        self.quiet[0].add(&self.window);
        self.window.clear();
        self.all.clear();
        self.quiet.iter().for_each(|times| self.all.add(times));
        self.baseline = self.all.p99(ENOUGH).or(self.baseline);
    }
}

impl Default for Throttle {
    /// With all its memory.
    fn default() -> Self {
        Self {
            most: None,
            beside: None,
            most_ios: None,
            gives_way: true,
            rate: FIRST,
            room: 0,
            io_room: 0,
            next: Nanos::ZERO,
            judged: Nanos::ZERO,
            moved: 0,
            seen: std::array::from_fn(|_| Seen::with_room()),
            quiet_since: Nanos::ZERO,
            ratio_percent: None,
        }
    }
}

/// As what may be below 0.
fn signed(value: u64) -> i64 {
    i64::try_from(value).unwrap_or(i64::MAX)
}

impl Throttle {
    /// Moves take at most so many bytes per second from now on, and fewer while requests suffer; `None`: as many as
    /// they can.
    pub(super) fn limit(&mut self, most: Option<u64>) {
        self.most = most.map(|most| most.max(CAP_LEAST));
        self.rate = FIRST.min(self.most()).max(CAP_LEAST);
        self.room = signed(self.rate / 10);
    }

    /// Whether moves are slower while requests suffer, as at first: low priority. Otherwise they go at the highest rate that
    /// is allowed, whatever requests take.
    pub(super) fn give_way(&mut self, gives_way: bool) {
        self.gives_way = gives_way;
    }

    /// Moves make at most so many I/Os per second from now on.
    pub(super) fn limit_ios(&mut self, most: Option<u64>) {
        self.most_ios = most.map(|most| most.max(1));
        self.io_room = signed(self.most_ios.unwrap_or(0));
    }

    /// Bytes per second that moves may take now; `None`: no limit.
    pub(super) fn rate(&self) -> Option<u64> {
        self.most.map(|_| self.rate)
    }

    /// What requests take while extents move, in percent of what they take without, at the 99th percentile; `None`
    /// until both are known.
    pub(super) fn ratio_percent(&self) -> Option<u64> {
        self.ratio_percent
    }

    /// A request of a kind ([`super::perf::Served::kind`]) was answered.
    #[inline]
    pub(super) fn note(&mut self, kind: usize, time: Nanos) {
        self.seen[kind].window.note(time);
    }

    pub(super) fn affords(&self, bytes: u64, now: Nanos) -> bool {
        let is_early = self.beside().is_some() && now < self.next;
        (self.most.is_none() || self.room >= signed(bytes.min(self.rate / 10)) && !is_early)
            && (self.most_ios.is_none() || self.io_room > 0)
    }

    /// A piece of so many bytes goes now, in so many I/Os. Beside requests the next one goes after as long as this one takes at
    /// the rate: two at once are two in a disk's line, and what a request waits for twice.
    pub(super) fn spend(&mut self, bytes: u64, ios: u64, now: Nanos) {
        let takes = bytes.saturating_mul(1_000_000_000) / self.rate.max(1);
        let saved = takes.max(SAVED.0);
        self.next = Nanos(self.next.0.max(now.0.saturating_sub(saved)).saturating_add(takes));
        self.room = self.room.saturating_sub(signed(bytes));
        self.io_room = self.io_room.saturating_sub(signed(ios.saturating_mul(10)));
        self.moved += bytes;
    }

    /// Whether it is time to judge, and how long it has been since the last time.
    #[inline]
    pub(super) fn is_due(&self, now: Nanos) -> Option<Nanos> {
        let passed = now.since(self.judged);
        (passed >= TICK).then_some(passed)
    }

    /// The highest rate that is allowed now.
    fn most(&self) -> u64 {
        let most = self.most.unwrap_or(u64::MAX / 32);
        self.beside().map_or(most, |beside| most.min(beside.max(CAP_LEAST)))
    }

    /// Bytes per second, at most, beside requests that keep disks busy; `None`: there are none, or moves do not give way.
    fn beside(&self) -> Option<u64> {
        self.beside.filter(|_| self.gives_way)
    }

    /// Judges; moves may take so many bytes per second beside requests that keep disks busy.
    pub(super) fn judge(&mut self, now: Nanos, beside: Option<u64>) {
        self.beside = beside;
        let passed = now.since(self.judged);
        self.judged = now;
        if self.moved == 0 {
            self.note_quiet(now);
        } else if self.seen.iter().all(|seen| seen.window.count() == 0) {
            // Nobody is in the way.
            self.rate += STEP;
            self.moved = 0;
        } else {
            self.compare();
        }
        // With few requests the window goes on until there are enough for a percentile, at the same rate.
        let most = self.most();
        self.rate = if self.gives_way { self.rate.clamp(LEAST.min(most), most) } else { most };
        let ticks = (passed.0 / TICK.0).max(1);
        let filled = |room: i64, each: u64| {
            let saved = signed(each.saturating_mul(SAVED_TICKS));
            room.saturating_add(signed(each.saturating_mul(ticks))).min(saved)
        };
        self.room = filled(self.room, self.rate / 10);
        self.io_room = filled(self.io_room, self.most_ios.unwrap_or(0));
    }

    /// Judges by the kinds that have enough requests for a percentile: one that suffers is enough to be slower.
    fn compare(&mut self) {
        let (mut judged, mut worst) = (false, None);
        for seen in &mut self.seen {
            let Some(p99) = seen.window.p99(ENOUGH) else { continue };
            judged = true;
            seen.window.clear();
            let ratio = seen.baseline.map(|baseline| p99 * 100 / baseline.max(1));
            worst = worst.max(ratio);
        }
        if judged {
            self.ratio_percent = worst.or(self.ratio_percent);
            let slower = worst.is_some_and(|percent| percent > 120);
            let step = STEP.min(self.rate / MOST_STEP);
            self.rate = if slower { self.rate / 2 } else { self.rate + step };
            self.moved = 0;
        }
    }

    fn note_quiet(&mut self, now: Nanos) {
        let rotates = now.since(self.quiet_since) >= QUIET;
        if rotates {
            self.quiet_since = now;
        }
        self.seen.iter_mut().for_each(|seen| seen.note_quiet(rotates));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    impl Throttle {
        /// Judges, if it is time, disks that nobody else keeps busy.
        fn tick(&mut self, now: Nanos) {
            if self.is_due(now).is_some() {
                self.judge(now, None);
            }
        }
    }

    /// Ticks of 100 ms in which 100 requests take so long each and moves take all they may; the rates after each.
    fn rates(throttle: &mut Throttle, from: u64, times: &[u64], moving: bool) -> Vec<u64> {
        let tick = |(nth, time): (u64, &u64)| {
            (0..100).for_each(|_| throttle.note(0, Nanos(*time)));
            if moving {
                throttle.spend(1 << 20, 2, Nanos::ZERO);
            }
            throttle.tick(Nanos((from + nth + 1) * TICK.0));
            throttle.rate
        };
        (0..).zip(times).map(tick).collect()
    }

    #[test]
    fn the_rate_rises_by_steps_and_is_halved_when_requests_suffer() {
        let mut throttle = Throttle::default();
        throttle.limit(Some(64 << 20));
        rates(&mut throttle, 0, &[1_000_000; 20], false);
        let found = rates(&mut throttle, 20, &[1_000_000, 1_100_000, 1_300_000, 1_000_000], true);
        assert_eq!(found, [20 << 20, 24 << 20, 12 << 20, 16 << 20]);
        let slow = rates(&mut throttle, 24, &[9_000_000; 9], true);
        assert_eq!(slow.last(), Some(&LEAST), "it always goes on");
        let fast = rates(&mut throttle, 33, &[900_000; 40], true);
        assert_eq!(fast.last(), Some(&(64 << 20)), "never above the cap");
    }

    /// Normal priority (10.5, option H): the caps hold, and nothing else.
    #[test]
    fn who_does_not_give_way_goes_at_the_highest_rate() {
        let mut throttle = Throttle::default();
        throttle.limit(Some(64 << 20));
        throttle.give_way(false);
        rates(&mut throttle, 0, &[1_000_000; 20], false);
        assert_eq!(rates(&mut throttle, 20, &[9_000_000; 3], true), [64 << 20; 3]);
        let ratio = throttle.ratio_percent();
        assert!(ratio.is_some_and(|percent| percent > 800), "it is known all the same: {ratio:?}");
        throttle.judge(Nanos(24 * TICK.0), Some(1 << 20));
        assert_eq!(throttle.rate, 64 << 20, "and beside busy disks");
        throttle.give_way(true);
        assert!(rates(&mut throttle, 24, &[9_000_000; 2], true)[1] < 64 << 20);
    }

    #[test]
    fn what_requests_take_without_moves_is_known_before_the_first_move() {
        let mut throttle = Throttle::default();
        rates(&mut throttle, 0, &[1_000_000; 20], false);
        throttle.limit(Some(64 << 20));
        assert_eq!(rates(&mut throttle, 20, &[1_300_000], true), [8 << 20]);
        let ratio = throttle.ratio_percent();
        assert!(ratio.is_some_and(|percent| (128..=132).contains(&percent)), "{ratio:?}");
    }

    /// A load of rotating disks that has just ended hides nothing of what reads of SSDs suffer (10.6).
    #[test]
    fn every_kind_of_request_is_compared_with_its_like() {
        let mut throttle = Throttle::default();
        for nth in 1..=20 {
            (0..100).for_each(|_| throttle.note(5, Nanos(30_000_000)));
            throttle.tick(Nanos(nth * TICK.0));
        }
        rates(&mut throttle, 20, &[100_000; 5], false);
        throttle.limit(Some(64 << 20));
        assert_eq!(rates(&mut throttle, 25, &[173_000], true), [8 << 20]);
        assert!(throttle.ratio_percent().is_some_and(|percent| (170..176).contains(&percent)));
        // Few requests of another kind do not keep the judgement waiting, and many fast ones hide no slow ones.
        throttle.note(5, Nanos(30_000_000));
        assert_eq!(rates(&mut throttle, 26, &[100_000], true), [12 << 20]);
        (0..60).for_each(|_| throttle.note(5, Nanos(60_000_000)));
        assert_eq!(rates(&mut throttle, 27, &[100_000], true), [6 << 20]);
    }

    #[test]
    fn few_requests_are_judged_together_and_none_let_moves_go_on() {
        let mut throttle = Throttle::default();
        rates(&mut throttle, 0, &[1_000_000; 20], false);
        throttle.limit(Some(64 << 20));
        let mut found = Vec::new();
        for nth in 21..27_u64 {
            (0..10).for_each(|_| throttle.note(0, Nanos(5_000_000)));
            throttle.spend(1 << 20, 2, Nanos::ZERO);
            throttle.tick(Nanos(nth * TICK.0));
            found.push(throttle.rate >> 20);
        }
        assert_eq!(found, [16, 16, 16, 16, 8, 8], "the fifth ten make fifty");
        rates(&mut throttle, 27, &[1_000_000; 1], true);
        for nth in 29..33_u64 {
            throttle.spend(1 << 20, 2, Nanos::ZERO);
            throttle.tick(Nanos(nth * TICK.0));
        }
        assert!(throttle.rate >= 20 << 20, "{}", throttle.rate);
    }

    #[test]
    fn room_is_what_the_rate_gives_and_is_not_saved_up() {
        let mut throttle = Throttle::default();
        assert!(throttle.affords(u64::MAX, Nanos::ZERO), "without a limit all goes");
        throttle.limit(Some(16 << 20));
        let mut spent = 0;
        for nth in 1..=50 {
            throttle.tick(Nanos(nth * TICK.0));
            let now = Nanos(nth * TICK.0);
            while throttle.affords(128 << 10, now) {
                throttle.spend(128 << 10, 2, now);
                spent += 128 << 10;
            }
        }
        let per_second = spent / 5;
        assert!((15 << 20..=17 << 20).contains(&per_second), "{per_second}");
        throttle.tick(Nanos(10_000 * TICK.0));
        assert!(throttle.room <= signed((16 << 20) / 10 * SAVED_TICKS), "{}", throttle.room);
    }

    /// How many pieces of 128 KiB went in each millisecond of a second, asked for that often, at 4 MiB per second.
    fn pieces(gives_way: bool, beside: Option<u64>) -> Vec<usize> {
        let mut throttle = Throttle::default();
        throttle.give_way(gives_way);
        throttle.limit(Some(4 << 20));
        let of = |ms: u64| {
            let now = Nanos(ms * 1_000_000);
            if throttle.is_due(now).is_some() {
                throttle.judge(now, beside);
            }
            let mut pieces = 0;
            while throttle.affords(128 << 10, now) {
                throttle.spend(128 << 10, 2, now);
                pieces += 1;
            }
            pieces
        };
        (1000..2000).map(of).collect()
    }

    /// Section 25: two pieces at once are two in a disk's line, and one request may wait for both.
    #[test]
    fn beside_requests_pieces_go_one_at_a_time() {
        let spread = pieces(true, Some(4 << 20));
        assert!(spread[1..].iter().all(|pieces| *pieces <= 1), "{spread:?}");
        let went: Vec<usize> = (1..1000).filter(|nth| spread[*nth] > 0).collect();
        assert!(went.windows(2).all(|pair| (30..=64).contains(&(pair[1] - pair[0]))), "{went:?}");
        // Nothing of the rate is lost; where nobody is in the way, or moves do not give way, what a tick gives goes at once.
        let sum = |found: &[usize]| found.iter().sum::<usize>();
        assert!((30..=34).contains(&sum(&spread)), "{}", sum(&spread));
        for (gives_way, beside) in [(true, None), (false, Some(4 << 20))] {
            let found = pieces(gives_way, beside);
            assert!(found[1..].iter().any(|pieces| *pieces >= 3), "{found:?}");
            assert!((30..=38).contains(&sum(&found)), "{}", sum(&found));
        }
    }

    /// A step of twice the rate would make one request in a hundred wait before the next judgement.
    #[test]
    fn a_low_rate_rises_in_small_steps() {
        let mut throttle = Throttle::default();
        throttle.limit(Some(64 << 20));
        rates(&mut throttle, 0, &[1_000_000; 20], false);
        let low = rates(&mut throttle, 20, &[9_000_000; 5], true);
        assert_eq!(low.last(), Some(&LEAST));
        let found = rates(&mut throttle, 25, &[1_000_000; 5], true);
        let kib: Vec<u64> = found.iter().map(|rate| rate >> 10).collect();
        assert_eq!(kib, [3072, 4608, 6912, 10_368, 14_464]);
    }

    /// What disks that requests keep busy allow is a cap that comes and goes.
    #[test]
    fn beside_requests_that_keep_disks_busy_the_rate_is_bounded() {
        let mut throttle = Throttle::default();
        throttle.limit(Some(1 << 30));
        let mut found = Vec::new();
        let mut judge = |beside: Option<u64>, nth: u64| {
            throttle.spend(1 << 20, 2, Nanos::ZERO);
            throttle.judge(Nanos(nth * TICK.0), beside);
            found.push(throttle.rate);
        };
        for (nth, beside) in
            (1..).zip([None, Some(6 << 20), Some(6 << 20), Some(1 << 20), Some(7), None])
        {
            judge(beside, nth);
        }
        assert_eq!(found, [20 << 20, 6 << 20, 6 << 20, 1 << 20, CAP_LEAST, STEP + CAP_LEAST]);
        // A lower cap stays one, and without a throttle there is none.
        throttle.judge(Nanos(7 * TICK.0), Some(6 << 20));
        throttle.limit(Some(3 << 20));
        throttle.judge(Nanos(8 * TICK.0), Some(6 << 20));
        assert_eq!(throttle.rate, 3 << 20);
        throttle.limit(None);
        throttle.judge(Nanos(9 * TICK.0), Some(1));
        assert!(throttle.affords(u64::MAX, Nanos::ZERO) && throttle.rate().is_none());
    }

    /// Bytes and I/Os per second that go under these caps, in pieces of 128 KiB with two I/Os each.
    fn goes(bytes: Option<u64>, ios: Option<u64>) -> (u64, u64) {
        const SECONDS: u64 = 100;
        let mut throttle = Throttle::default();
        throttle.limit(bytes);
        throttle.limit_ios(ios);
        let mut pieces = 0;
        for nth in 1..=10 * SECONDS {
            throttle.tick(Nanos(nth * TICK.0));
            let now = Nanos(nth * TICK.0);
            while throttle.affords(128 << 10, now) && pieces < 1_000_000 {
                throttle.spend(128 << 10, 2, now);
                pieces += 1;
            }
        }
        (pieces * (128 << 10) / SECONDS, 2 * pieces / SECONDS)
    }

    /// A cap is a cap, also one that is below what moves are given while requests suffer (10.5).
    #[test]
    fn caps_are_kept() {
        for cap in [CAP_LEAST, 100_000, 1 << 20, 3 << 20, 40 << 20] {
            let (bytes, _) = goes(Some(cap), None);
            assert!((cap * 96 / 100..=cap * 104 / 100).contains(&bytes), "{bytes} of {cap}");
        }
        for cap in [1, 7, 100, 5000] {
            let (_, ios) = goes(Some(1 << 30), Some(cap));
            assert!((cap * 95 / 100..=cap + cap / 20).contains(&ios), "{ios} of {cap}");
        }
        // The lower one counts; without any all goes.
        assert!(goes(Some(1 << 20), Some(1000)).1 <= 17 && goes(None, Some(10)).1 <= 10);
        assert!(goes(None, None).1 >= 20_000);
    }
}
