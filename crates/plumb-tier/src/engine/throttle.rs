//! How fast extents move while requests are served (10.5): faster step by step, half as fast as soon as requests take
//! longer than they did before.

use plumb_units::Nanos;
use plumb_units::convert::to_u64;

use crate::log_buckets;

/// How often the rate is judged.
const TICK: Nanos = Nanos(100_000_000);
/// The baseline is what requests took in the last one or two of these without moves.
const QUIET: Nanos = Nanos(30_000_000_000);
/// With fewer requests there is no percentile.
const ENOUGH: u64 = 50;
/// Bytes per second: at the beginning, at least, and more at each step.
const FIRST: u64 = 16 << 20;
const LEAST: u64 = 2 << 20;
const STEP: u64 = 4 << 20;
/// Unused room is kept for so long.
const SAVED_TICKS: u64 = 2;

/// How long requests took.
#[derive(Debug, Default)]
struct Times {
    buckets: Vec<u32>,
    count: u64,
}

impl Times {
    #[inline]
    fn note(&mut self, time: Nanos) {
        if self.buckets.is_empty() {
            self.buckets = vec![0; log_buckets::COUNT];
        }
        let bucket = &mut self.buckets[log_buckets::bucket(time.0)];
        *bucket = bucket.saturating_add(1);
        self.count += 1;
    }

    fn clear(&mut self) {
        self.buckets.fill(0);
        self.count = 0;
    }

    fn add(&mut self, other: &Self) {
        if self.buckets.is_empty() && !other.buckets.is_empty() {
            self.buckets = vec![0; log_buckets::COUNT];
        }
        for (own, more) in self.buckets.iter_mut().zip(&other.buckets) {
            *own = own.saturating_add(*more);
        }
        self.count += other.count;
    }

    /// The 99th percentile, of enough requests.
    fn p99(&self) -> Option<u64> {
        if self.count < ENOUGH {
            return None;
        }
        let wanted = self.count.saturating_mul(99).div_ceil(100);
        let mut seen = 0;
        let reached = |count: &u32| {
            seen += u64::from(*count);
            seen >= wanted
        };
        self.buckets.iter().position(reached).map(|bucket| log_buckets::range(bucket).0)
    }
}

/// The controller: additive increase, multiplicative decrease.
#[derive(Debug, Default)]
pub(super) struct Throttle {
    /// Bytes per second, at most; `None`: no throttle, and nothing is measured.
    most: Option<u64>,
    rate: u64,
    room: u64,
    judged: Nanos,
    moved: u64,
    /// Since the last judgement.
    window: Times,
    /// Without moves: since `quiet_since`, and before.
    quiet: [Times; 2],
    quiet_since: Nanos,
    baseline: Option<u64>,
}

impl Throttle {
    /// Moves take at most so many bytes per second from now on, and fewer while requests suffer; `None`: as many as
    /// they can.
    pub(super) fn limit(&mut self, most: Option<u64>) {
        self.most = most.map(|most| most.max(LEAST));
        self.rate = FIRST.min(self.most.unwrap_or(FIRST));
        self.room = self.rate / 10;
    }

    /// Bytes per second that moves may take now; `None`: no limit.
    pub(super) fn rate(&self) -> Option<u64> {
        self.most.map(|_| self.rate)
    }

    /// A request was answered.
    #[inline]
    pub(super) fn note(&mut self, time: Nanos) {
        if self.most.is_some() {
            self.window.note(time);
        }
    }

    pub(super) fn affords(&self, bytes: u64) -> bool {
        self.most.is_none() || self.room >= bytes.min(self.rate / 10)
    }

    pub(super) fn spend(&mut self, bytes: u64) {
        self.room = self.room.saturating_sub(bytes);
        self.moved += bytes;
    }

    /// Judges, if it is time.
    pub(super) fn tick(&mut self, now: Nanos) {
        let Some(most) = self.most else { return };
        let passed = now.since(self.judged);
        if passed < TICK {
            return;
        }
        self.judged = now;
        if self.moved == 0 {
            self.note_quiet(now);
        } else {
            let slower = match (self.window.p99(), self.baseline) {
                (Some(p99), Some(baseline)) => p99 * 5 > baseline * 6,
                _ => false,
            };
            self.rate = if slower { self.rate / 2 } else { self.rate + STEP };
            self.rate = self.rate.clamp(LEAST, most);
        }
        self.window.clear();
        self.moved = 0;
        let ticks = (passed.0 / TICK.0).clamp(1, SAVED_TICKS);
        let most_saved = (self.rate / 10).saturating_mul(SAVED_TICKS);
        self.room = (self.room + self.rate / 10 * ticks).min(most_saved);
        debug_assert!(to_u64(self.window.buckets.len()) <= to_u64(log_buckets::COUNT));
    }

    /// A window without moves is what others are compared with.
    fn note_quiet(&mut self, now: Nanos) {
        if now.since(self.quiet_since) >= QUIET {
            self.quiet_since = now;
            self.quiet.swap(0, 1);
            self.quiet[0].clear();
        }
        self.quiet[0].add(&self.window);
        let mut all = Times::default();
        self.quiet.iter().for_each(|times| all.add(times));
        self.baseline = all.p99().or(self.baseline);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Ticks of 100 ms in which 100 requests take so long each and moves take all they may; the rates after each.
    fn rates(throttle: &mut Throttle, from: u64, times: &[u64], moving: bool) -> Vec<u64> {
        let tick = |(nth, time): (u64, &u64)| {
            (0..100).for_each(|_| throttle.note(Nanos(*time)));
            if moving {
                throttle.spend(1 << 20);
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

    #[test]
    fn room_is_what_the_rate_gives_and_is_not_saved_up() {
        let mut throttle = Throttle::default();
        assert!(throttle.affords(u64::MAX), "without a limit all goes");
        throttle.limit(Some(16 << 20));
        let mut spent = 0;
        for nth in 1..=50 {
            throttle.tick(Nanos(nth * TICK.0));
            while throttle.affords(128 << 10) {
                throttle.spend(128 << 10);
                spent += 128 << 10;
            }
        }
        let per_second = spent / 5;
        assert!((15 << 20..=17 << 20).contains(&per_second), "{per_second}");
        throttle.tick(Nanos(10_000 * TICK.0));
        assert!(throttle.room <= (16 << 20) / 10 * SAVED_TICKS, "{}", throttle.room);
    }
}
