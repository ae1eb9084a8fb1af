//! How many I/Os of requests a disk is given at a time while a frame of the journal is to be quick.
//!
//! What a disk has been given is not passed by: a frame stands behind all of it. While writes wait for frames, disks are given no
//! more requests than keep them busy; the others stand in a line here, which frames, flushes and moves pass by. To disks and
//! requests nothing else changes: a line is a longer queue of the disk, and is answered, given up and owed like one.
//!
//! How many keep a disk busy is tried out: a step up or down for a while, and back. By what it completes while it has a line it
//! is seen whether that gave more or less.

use std::collections::VecDeque;

use plumb_io::{FlushQueue, Op};
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u32};

use super::Io;

/// Depths that are tried, and the one to begin with: a SATA disk is given no more.
const DEPTHS: [u32; 10] = [8, 12, 16, 24, 32, 48, 64, 96, 128, u32::MAX];
const FIRST: usize = 2;
/// A depth is judged by so many completions, and such a time at least.
const ENOUGH: u32 = 1024;
const LONG: Nanos = Nanos(20_000_000);
/// A lower depth may give so much less, and a higher one has to give so much more.
const DOWN: f64 = 0.99;
const UP: f64 = 1.02;
/// Judgements between two trials: doubled with each one in vain.
const PAUSES: [u32; 2] = [4, 1024];

/// Whether another depth is being tried.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Trial {
    /// Not for so many judgements.
    No(u32),
    /// It is, from depth `home`, which gave `before`.
    Away { home: usize, before: f64 },
    /// It was: depth `away` gave `at`.
    Back { away: usize, before: f64, at: f64 },
}

/// How deep one disk's queue is to be.
#[derive(Debug, Clone, Copy)]
struct Depth {
    level: usize,
    trial: Trial,
    pause: u32,
    /// Whether the next trial is of a higher level.
    up: bool,
    /// Completions while there was a line, and that time.
    done: u32,
    time: Nanos,
    /// When something was completed last, or a line began; NEVER: the time until the next completion says nothing.
    last: Nanos,
}

impl Depth {
    fn new() -> Self {
        let (trial, pause) = (Trial::No(1), PAUSES[0]);
        let (done, time, last) = (0, Nanos::ZERO, Nanos::ZERO);
        Self { level: FIRST, trial, pause, up: false, done, time, last }
    }

    fn most(&self) -> u32 {
        DEPTHS[self.level]
    }

    /// From `now` on the disk has a line.
    fn line_begins(&mut self, now: Nanos) {
        self.last = now;
    }

    /// An I/O was completed while it had one.
    fn note(&mut self, now: Nanos) {
        let last = std::mem::replace(&mut self.last, now);
        if last == Nanos::NEVER {
            return;
        }
        self.time = Nanos(self.time.0 + now.since(last).0);
        self.done += 1;
        if self.done >= ENOUGH && self.time >= LONG {
            self.judge(f64::from(self.done) / self.time.as_secs_f64());
            (self.done, self.time) = (0, Nanos::ZERO);
        }
    }

    fn judge(&mut self, rate: f64) {
        match self.trial {
            Trial::No(left) if left > 1 => self.trial = Trial::No(left - 1),
            Trial::No(_) => {
                let up = self.level == 0 || self.up && self.level + 1 < DEPTHS.len();
                self.up = up;
                self.trial = Trial::Away { home: self.level, before: rate };
                self.level = if up { self.level + 1 } else { self.level - 1 };
            }
            Trial::Away { home, before } => {
                self.trial = Trial::Back { away: self.level, before, at: rate };
                self.level = home;
            }
            Trial::Back { away, before, at } => {
                let home = f64::midpoint(before, rate);
                if at >= home * (if away > self.level { UP } else { DOWN }) {
                    (self.level, self.pause) = (away, PAUSES[0]);
                    self.trial = Trial::No(1);
                } else {
                    self.up = !self.up;
                    self.trial = Trial::No(self.pause);
                    self.pause = (2 * self.pause).min(PAUSES[1]);
                }
            }
        }
    }
}

/// One disk's line.
#[derive(Debug)]
struct Line {
    depth: Depth,
    waiting: VecDeque<Op>,
    /// Whether it is kept short.
    paced: bool,
}

/// The lines of all disks, by ordinal.
#[derive(Debug)]
pub(super) struct Lines {
    all: Vec<Line>,
    on: bool,
    /// A disk is given no more than so many, whatever keeps it busy.
    most: u32,
    /// I/Os that stand in lines.
    waiting: u32,
}

impl Lines {
    pub(super) fn new(disks: usize) -> Self {
        let mut lines = Self { all: Vec::new(), on: false, most: u32::MAX, waiting: 0 };
        lines.make_room(disks);
        lines
    }

    pub(super) fn make_room(&mut self, disks: usize) {
        let none = || Line { depth: Depth::new(), waiting: VecDeque::new(), paced: false };
        self.all.resize_with(disks.max(self.all.len()), none);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.waiting == 0
    }

    /// Whether `op` has to wait, with so many I/Os that the disk has to answer, itself among them. It stands in line then.
    #[inline]
    pub(super) fn takes(&mut self, disk: u16, op: &Op, queued: u32, now: Nanos) -> bool {
        if !self.on {
            return false;
        }
        let line = &mut self.all[usize::from(disk)];
        let given = queued.saturating_sub(to_u32(line.waiting.len()));
        let most = line.depth.most().min(self.most);
        if !line.paced || line.waiting.is_empty() && given <= most {
            return false;
        }
        if line.waiting.is_empty() {
            line.depth.line_begins(now);
        }
        line.waiting.push_back(*op);
        self.waiting += 1;
        true
    }
}

impl<Q: FlushQueue> Io<Q> {
    /// Keeps what some disks are given short from now on, or lets go of all that waits. `short` says which disks.
    pub(crate) fn pace(&mut self, on: bool, short: impl Fn(u16) -> bool) {
        if on == self.lines.on {
            return;
        }
        self.lines.on = on;
        for disk in 0..self.lines.all.len() {
            let line = &mut self.lines.all[disk];
            line.paced = on && u16::try_from(disk).is_ok_and(&short);
            line.depth.last = Nanos::NEVER;
            self.let_go(disk);
        }
    }

    /// While frames are due a disk is given no more than so many requests: small numbers make lines where there are few of them.
    pub(crate) fn give_at_most(&mut self, most: u32) {
        self.lines.most = most.max(1);
    }

    /// Whether requests wait until their disks have answered others.
    pub(crate) fn has_lines(&self) -> bool {
        !self.lines.is_empty()
    }

    /// A disk has answered.
    #[cold]
    pub(super) fn answered(&mut self, slot: u32) {
        let disk = usize::from(self.disks[index(slot)]);
        let now = self.time;
        // A flush is no work of a disk that could be compared.
        let moved = self.lens[index(slot)] > 0;
        if let Some(line) = self.lines.all.get_mut(disk).filter(|line| !line.waiting.is_empty()) {
            if moved {
                line.depth.note(now);
            }
            self.let_go(disk);
        }
    }

    /// The engine stood still: how long says nothing of disks.
    pub(super) fn lines_stood(&mut self) {
        self.lines.all.iter_mut().for_each(|line| line.depth.last = Nanos::NEVER);
    }

    /// Gives a disk of its line what it may have.
    fn let_go(&mut self, disk: usize) {
        let line = &mut self.lines.all[disk];
        let most = if line.paced { line.depth.most().min(self.lines.most) } else { u32::MAX };
        let queued = self.queued.get(disk).copied().unwrap_or(0);
        while queued.saturating_sub(to_u32(line.waiting.len())) < most {
            let Some(op) = line.waiting.pop_front() else { break };
            self.lines.waiting -= 1;
            self.queue.push(op);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A disk that always has a line, and completes as many per second as `rate` says of a depth, differing by at most `noise`
    /// from one judgement to the next: completions per second in all, and the depth in the end.
    fn given(rate: impl Fn(f64) -> f64, judgements: u32, noise: f64) -> (f64, u32) {
        let mut depth = Depth::new();
        let (mut now, mut done, mut random) = (0.0, 0_u32, 1_u64);
        for _ in 0..judgements {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let share = (random >> 33) as f64 / f64::from(1_u32 << 31);
            let of_depth = rate(f64::from(depth.most().min(256)));
            let each = 1e9 / (of_depth * (1.0 + noise * (2.0 * share - 1.0)));
            loop {
                now += each;
                done += 1;
                depth.note(Nanos(plumb_units::convert::floor_u64(now)));
                if depth.done == 0 {
                    break;
                }
            }
        }
        (f64::from(done) / now * 1e9, depth.most())
    }

    /// `units` that take `us` each.
    fn units(units: f64, us: f64) -> impl Fn(f64) -> f64 {
        move |depth| depth.min(units) / us * 1e6
    }

    #[test]
    fn a_disk_is_given_what_keeps_it_busy() {
        for (all, us, least, most) in [
            (8.0, 265.7, 8, 8),
            (14.0, 60.0, 16, 16),
            (32.0, 90.0, 32, 32),
            (100.0, 80.0, 128, 128),
            (4.0, 900.0, 8, 8),
        ] {
            let (rate, depth) = given(units(all, us), 1000, 0.0);
            let best = all / us * 1e6;
            assert!((least..=most).contains(&depth), "{all} units: {depth}");
            assert!(rate >= 0.97 * best, "{all} units: {rate} of {best}");
        }
        // It has no end: neither has the depth.
        let (_, depth) = given(|depth| depth * 1000.0, 400, 0.0);
        assert_eq!(depth, u32::MAX);
    }

    #[test]
    fn noise_costs_little() {
        for (all, us) in [(8.0, 265.7), (32.0, 90.0), (100.0, 80.0)] {
            for noise in [0.02, 0.05, 0.1] {
                let (rate, depth) = given(units(all, us), 4000, noise);
                let share = rate / (all / us * 1e6);
                println!("{all} units, noise {noise}: {share:.3}, in the end {depth}");
                assert!(share >= 0.95, "{all} units, noise {noise}: {share}");
            }
        }
        // A queue that bends slowly.
        let soft = |depth: f64| 100_000.0 * depth / (depth + 6.0);
        let (rate, _) = given(soft, 4000, 0.03);
        assert!(rate >= 0.9 * soft(128.0), "{rate}");
    }

    #[test]
    fn a_line_begins_when_a_disk_has_enough_and_ends_in_order() {
        let op = |slot| Op {
            kind: plumb_io::OpKind::Write,
            file: plumb_io::FileIndex(0),
            slot: plumb_io::Slot(slot),
            len: 4096,
            offset: 0,
            memory: plumb_io::Memory::Lane(plumb_io::LaneIndex(0)),
        };
        let mut lines = Lines::new(2);
        assert!(!lines.takes(0, &op(0), 1000, Nanos::ZERO), "nobody asked for it");
        lines.on = true;
        assert!(!lines.takes(0, &op(0), 1000, Nanos::ZERO), "not of this disk");
        lines.all[0].paced = true;
        let most = DEPTHS[FIRST];
        assert!(!lines.takes(0, &op(0), most, Nanos::ZERO));
        assert!(lines.takes(0, &op(1), most + 1, Nanos::ZERO));
        // The disk has answered, and nobody may pass what waits.
        assert!(lines.takes(0, &op(2), most, Nanos::ZERO) && !lines.is_empty());
        let waiting: Vec<u32> = lines.all[0].waiting.iter().map(|op| op.slot.0).collect();
        assert_eq!((waiting, lines.waiting), (vec![1, 2], 2));
    }
}
