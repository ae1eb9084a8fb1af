//! How long disks are busy with what: the device times that a move has to pay for itself by (10.3).
//!
//! A request's time has its wait in line in it, and that of caches before the disk. Here a disk's own time is counted:
//! from one look to the next, while it has I/Os under way, and by what these are. Time in which anything else than random
//! I/Os or moves is under way there is nobody's, and so are the I/Os that end in it.

use plumb_units::Nanos;

use crate::optimizer::{HostLine, LineTimes, TierMeasure, line_of};

/// What an I/O counts as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Class {
    /// At most 64 KiB, and not where the last one of its kind ended.
    Random,
    /// A good part of an extent that moves.
    Move,
    /// Streams, large requests, flushes, what is waited for.
    Other,
    /// Not counted, or not any more.
    Nothing,
}

/// The largest random I/O (HEAT-2).
const RANDOM_MAX: u32 = 64 << 10;
/// Nothing takes so long: a disk that hangs, or an engine that was stopped for a while.
const STANDSTILL: u64 = 1_000_000_000;
/// Above so many random I/Os what was measured before counts half: some ten minutes of a busy rotating disk.
const FORGET_IOS: u64 = 1 << 18;
/// The same for bytes of moves.
const FORGET_BYTES: u64 = 1 << 34;

impl Class {
    /// Of an I/O of data or metadata.
    #[inline]
    pub(super) fn of(len: u32, goes_on: bool) -> Self {
        if len <= RANDOM_MAX && !goes_on { Self::Random } else { Self::Other }
    }

    /// Of an I/O of a move. A small one is of an extent that is hardly written: what it takes says nothing of a whole one.
    #[inline]
    pub(super) fn of_move(len: u32, goes_on: bool) -> Self {
        if len >= RANDOM_MAX { Self::Move } else { Self::of(len, goes_on) }
    }
}

/// What a disk had under way in a time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct UnderWay {
    random: u32,
    moves: u32,
    other: u32,
}

impl UnderWay {
    fn is_random(self) -> bool {
        self.other == 0 && self.moves == 0 && self.random > 0
    }

    fn has_moves(self) -> bool {
        self.other == 0 && self.moves > 0
    }

    fn count(&mut self, class: Class) -> Option<&mut u32> {
        match class {
            Class::Random => Some(&mut self.random),
            Class::Move => Some(&mut self.moves),
            Class::Other => Some(&mut self.other),
            Class::Nothing => None,
        }
    }
}

/// One disk's.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct BusyTimes {
    since: Nanos,
    now: UnderWay,
    /// What was under way until the last look: what ends at that look ended in that time.
    before: UnderWay,
    /// Random I/Os that ended while nothing else was under way, and that time.
    ios: u64,
    io_ns: u64,
    /// The same by how many were in line.
    lines: LineTimes,
    /// Time with moves under way, and perhaps random I/Os; what ended in it.
    move_ns: u64,
    moved_bytes: u64,
    ios_beside: u64,
    /// Requests of hosts, and what the write-back cache copies home for them: how many are under way, and the time with any.
    hosts: u32,
    host_ns: u64,
}

impl BusyTimes {
    /// It is `at` now.
    #[inline]
    fn look(&mut self, at: Nanos) {
        let passed = at.since(self.since).0;
        if passed == 0 {
            return;
        }
        self.since = at;
        self.before = if passed < STANDSTILL { self.now } else { UnderWay::default() };
        if self.hosts > 0 {
            self.host_ns += passed;
        }
        if self.before.is_random() {
            self.io_ns += passed;
            self.lines.ns[line_of(self.before.random)] += passed;
        } else if self.before.has_moves() {
            self.move_ns += passed;
        }
    }

    /// An I/O for a host begins.
    #[inline]
    pub(super) fn begin_host(&mut self, at: Nanos) {
        self.look(at);
        self.hosts += 1;
    }

    /// One has ended, or nobody waits for it any more.
    #[inline]
    pub(super) fn end_host(&mut self, at: Nanos) {
        self.look(at);
        self.hosts -= 1;
    }

    /// Nanoseconds until `at` in which I/Os for hosts were under way.
    pub(crate) fn host_ns(&self, at: Nanos) -> u64 {
        let goes_on = if self.hosts > 0 { at.since(self.since).0 } else { 0 };
        self.host_ns + goes_on
    }

    #[inline]
    pub(super) fn begin(&mut self, class: Class, at: Nanos) {
        self.look(at);
        if let Some(count) = self.now.count(class) {
            *count += 1;
        }
    }

    /// One has ended, with so many bytes; `None` if it failed.
    #[inline]
    pub(super) fn end(&mut self, class: Class, at: Nanos, bytes: Option<u32>) {
        self.look(at);
        let Some(count) = self.now.count(class) else { return };
        *count -= 1;
        let Some(bytes) = bytes else { return };
        match class {
            Class::Random if self.before.is_random() => {
                self.ios += 1;
                self.lines.ios[line_of(self.before.random)] += 1;
            }
            Class::Random if self.before.has_moves() => self.ios_beside += 1,
            Class::Move if self.before.has_moves() => self.moved_bytes += u64::from(bytes),
            _ => return,
        }
        if self.ios >= FORGET_IOS {
            (self.ios, self.io_ns) = (self.ios / 2, self.io_ns / 2);
            self.lines.halve();
        }
        if self.moved_bytes >= FORGET_BYTES {
            self.moved_bytes /= 2;
            (self.move_ns, self.ios_beside) = (self.move_ns / 2, self.ios_beside / 2);
        }
    }
}

/// Ten seconds with I/Os for hosts: what was longer ago counts half.
const FORGET_HOSTS: u64 = 10_000_000_000;

/// How many I/Os for hosts are under way on all disks.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct HostsUnderWay {
    since: Nanos,
    now: u32,
    /// Up to the last change.
    pub(super) line: HostLine,
}

impl HostsUnderWay {
    #[inline]
    fn look(&mut self, at: Nanos) {
        let passed = at.since(self.since).0;
        self.since = at;
        if self.now > 0 && passed < STANDSTILL {
            self.line.busy_ns += passed;
            self.line.line_ns += passed * u64::from(self.now);
            if self.line.busy_ns >= FORGET_HOSTS {
                let HostLine { busy_ns, line_ns } = self.line;
                self.line = HostLine { busy_ns: busy_ns / 2, line_ns: line_ns / 2 };
            }
        }
    }

    #[inline]
    pub(super) fn begin(&mut self, at: Nanos) {
        self.look(at);
        self.now += 1;
    }

    #[inline]
    pub(super) fn end(&mut self, at: Nanos) {
        self.look(at);
        self.now -= 1;
    }
}

/// What the disks of a tier come to. Where moves and random I/Os were under way together, the latter took as long as they
/// do alone.
pub(crate) fn measure_of<'a>(disks: impl Iterator<Item = &'a BusyTimes>) -> TierMeasure {
    let mut all = BusyTimes::default();
    for disk in disks {
        all.ios += disk.ios;
        all.io_ns += disk.io_ns;
        all.lines = all.lines.plus(&disk.lines);
        all.move_ns += disk.move_ns;
        all.moved_bytes += disk.moved_bytes;
        all.ios_beside += disk.ios_beside;
    }
    let beside = u128::from(all.ios_beside) * u128::from(all.io_ns) / u128::from(all.ios.max(1));
    let beside = u64::try_from(beside).unwrap_or(u64::MAX);
    TierMeasure {
        ios: all.ios,
        io_ns: all.io_ns,
        moved_bytes: all.moved_bytes,
        move_ns: all.move_ns.saturating_sub(beside),
        lines: all.lines,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const US: u64 = 1000;

    /// A disk that serves one I/O after the other, in the order in which they come, looked at when one ends.
    struct Line {
        times: BusyTimes,
        at: u64,
        under_way: std::collections::VecDeque<(Class, u64, u32)>,
    }

    impl Line {
        fn new() -> Self {
            Self { times: BusyTimes::default(), at: 0, under_way: [].into() }
        }

        fn ask(&mut self, class: Class, us: u64, bytes: u32) {
            self.times.begin(class, Nanos(self.at));
            self.under_way.push_back((class, us * US, bytes));
        }

        fn serve(&mut self) {
            let (class, ns, bytes) = self.under_way.pop_front().expect("something is asked");
            self.at += ns;
            self.times.end(class, Nanos(self.at), Some(bytes));
        }

        fn measured(&self) -> TierMeasure {
            measure_of([self.times].iter())
        }
    }

    #[test]
    fn waits_in_line_are_no_time_of_the_disk() {
        let mut line = Line::new();
        (0..300).for_each(|_| line.ask(Class::Random, 2400, 4096));
        (0..300).for_each(|_| line.serve());
        // Nor is the time in which nothing is asked.
        line.at += 5_000_000_000;
        line.ask(Class::Random, 2400, 4096);
        line.serve();
        let found = line.measured();
        assert_eq!((found.ios, found.io_ns), (301, 301 * 2400 * US));
    }

    #[test]
    fn what_ios_take_is_told_apart_by_how_many_are_in_line() {
        let mut line = Line::new();
        for _ in 0..100 {
            line.ask(Class::Random, 5000, 4096);
            line.serve();
        }
        (0..4).for_each(|_| line.ask(Class::Random, 2000, 4096));
        for _ in 0..100 {
            line.ask(Class::Random, 2000, 4096);
            line.serve();
        }
        let found = line.measured().lines;
        // The last of those alone begin when the one before has ended; those in line are five.
        assert_eq!(found.ios[..3], [100, 0, 100]);
        assert_eq!(found.ns[..3], [100 * 5000 * US, 0, 100 * 2000 * US]);
    }

    #[test]
    fn how_many_ios_hosts_have_under_way_is_known() {
        let (mut hosts, at) = (HostsUnderWay::default(), |ms: u64| Nanos(1_000_000 * ms));
        hosts.begin(at(10));
        hosts.begin(at(20));
        hosts.end(at(40));
        hosts.end(at(50));
        assert_eq!(hosts.line.mean(), None, "of too short a time");
        // A rest, and a disk that hangs.
        hosts.begin(at(500));
        hosts.end(at(5000));
        assert_eq!(hosts.line, HostLine { busy_ns: at(40).0, line_ns: at(10 + 2 * 20 + 10).0 });
        // Two for long, and then eight: what was long ago counts less.
        let mut now = 5000;
        for (count, rounds) in [(2, 600), (8, 1200)] {
            (0..count).for_each(|_| hosts.begin(at(now)));
            for _ in 0..rounds {
                now += 100;
                hosts.end(at(now));
                hosts.begin(at(now));
            }
            (0..count).for_each(|_| hosts.end(at(now)));
        }
        let mean = hosts.line.mean().expect("minutes");
        assert!((6.0..8.0).contains(&mean), "{mean}");
    }

    #[test]
    fn what_else_a_disk_does_is_not_counted_as_random_io() {
        let mut line = Line::new();
        for nth in 0..1000 {
            line.ask(Class::Random, 100, 4096);
            line.ask(Class::Random, 100, 4096);
            if nth % 3 == 0 {
                line.ask(Class::Other, 7000, 1 << 20);
            }
            while !line.under_way.is_empty() {
                line.serve();
            }
        }
        let found = line.measured();
        assert!(found.ios > 1000 && found.ios < 2000, "{found:?}");
        assert_eq!(found.io_ns / found.ios, 100 * US);
    }

    #[test]
    fn moves_beside_requests_take_what_the_requests_leave() {
        let mut line = Line::new();
        for _ in 0..500 {
            line.ask(Class::Random, 300, 4096);
            line.serve();
        }
        for _ in 0..500 {
            line.ask(Class::Random, 300, 4096);
            line.ask(Class::Move, 900, 256 << 10);
            line.ask(Class::Random, 300, 4096);
            (0..3).for_each(|_| line.serve());
        }
        let found = line.measured();
        let each = found.move_ns as f64 / found.moved_bytes as f64 * f64::from(256 << 10);
        // The second random I/O of each round ends when the move has ended: it is one of those alone.
        assert!((each / 900e3 - 1.0).abs() < 0.02, "{each}");
    }

    #[test]
    fn the_time_with_requests_of_hosts_is_known_at_any_moment() {
        let mut times = BusyTimes::default();
        let at = |us: u64| Nanos(us * US);
        times.begin_host(at(10));
        times.begin(Class::Random, at(10));
        // A move beside it, and one more, change nothing.
        times.begin(Class::Move, at(20));
        times.begin_host(at(25));
        assert_eq!(times.host_ns(at(30)), 20 * US);
        times.end(Class::Random, at(40), Some(4096));
        times.end_host(at(40));
        times.end_host(at(50));
        times.end(Class::Move, at(90), Some(1 << 20));
        assert_eq!(times.host_ns(at(200)), 40 * US);
    }

    #[test]
    fn a_disk_that_hangs_or_fails_is_not_slow() {
        let mut line = Line::new();
        line.ask(Class::Random, 30_000_000, 4096);
        line.serve();
        assert_eq!(line.measured(), TierMeasure::default());
        line.ask(Class::Random, 50, 4096);
        let (class, ns, _) = line.under_way.pop_front().expect("it is asked");
        line.times.end(class, Nanos(line.at + ns), None);
        assert_eq!(line.measured().ios, 0);
        // Given up, and answered later.
        line.times.end(Class::Nothing, Nanos(line.at + 2 * ns), Some(4096));
        assert_eq!(line.times.now, UnderWay::default());
    }

    #[test]
    fn what_was_long_ago_counts_less() {
        let mut line = Line::new();
        let mut serve = |us: u64, count: u64| {
            for _ in 0..count {
                line.ask(Class::Random, us, 4096);
                line.serve();
            }
            line.measured().io_ns / line.measured().ios
        };
        assert_eq!(serve(100, FORGET_IOS), 100 * US);
        let found = serve(400, 4 * FORGET_IOS);
        assert!((390 * US..=400 * US).contains(&found), "{found}");
    }
}
