//! A rotating disk: one head, a queue from which it takes what it reaches first.

use plumb_units::Nanos;
use plumb_units::convert::floor_u64;

use super::{Access, AccessKind};

/// How often the disk prefers other commands of its queue to one of them, at most: some 0.6 s of random ones. Far more
/// than happens without a stream, so it does not change what random commands cost.
const PASSED_MOST: u32 = 256;

/// A command that waits.
#[derive(Debug, Clone, Copy)]
struct Waiting {
    arrived: Nanos,
    access: Access,
    /// How often another one was preferred since it was in the queue.
    passed: u32,
}

/// The model (spec 19.1). A command takes seek + settle + what the disk still has to turn + transfer; of the
/// commands in its queue the disk serves the one that it reaches first, but for one that it has passed over
/// 256 times: a stream ahead of the head would keep it waiting for as long as the stream goes on.
///
/// seek(d) = 0.45 + 4.34 x sqrt(d) + 2.2 x d milliseconds, d the fraction of the full stroke: 3.5 ms on average, 7.0 ms
/// at most; 0 on the same track. Writes settle for 0.3 ms.
#[derive(Debug, Clone)]
pub struct HddModel {
    capacity: u64,
    /// Commands that it chooses from.
    queue: usize,
    /// Milliseconds of a turn.
    revolution: f64,
    /// Bytes per millisecond at the start and at the end.
    rates: (f64, f64),
    /// In order of arrival.
    waiting: Vec<Waiting>,
    /// What is served, and when that ends.
    serving: Option<(Nanos, u32)>,
    /// Where the head is, as a fraction of the stroke.
    position: f64,
    /// When it was last busy.
    free: Nanos,
}

impl HddModel {
    /// A disk of `capacity` bytes that chooses among `queue` commands, with a turn in milliseconds, and bytes per
    /// second at its start and its end.
    ///
    /// # Panics
    /// Without capacity, queue, or speed.
    #[must_use]
    pub fn new(capacity: u64, queue: usize, revolution_ms: f64, rates: (f64, f64)) -> Self {
        assert!(capacity > 0 && queue > 0 && revolution_ms > 0.0, "a disk does something");
        assert!(rates.0 > 0.0 && rates.1 > 0.0, "a disk does something");
        Self {
            capacity,
            queue,
            revolution: revolution_ms,
            rates: (rates.0 / 1e3, rates.1 / 1e3),
            waiting: Vec::new(),
            serving: None,
            position: 0.0,
            free: Nanos::ZERO,
        }
    }

    /// The reference profile `sas-10k-300` (spec 19.1): 300 GB, a queue of 6, 10,000 turns per minute, 150 MB/s at
    /// the start and 90 at the end.
    #[must_use]
    pub fn sas_10k_300() -> Self {
        Self::new(300_000_000_000, 6, 6.0, (150e6, 90e6))
    }

    /// The same drive with that many bytes under its stroke.
    ///
    /// # Panics
    /// Without capacity.
    #[must_use]
    pub fn with_capacity(self, capacity: u64) -> Self {
        assert!(capacity > 0, "a disk does something");
        Self { capacity, ..self }
    }

    fn fraction(&self, offset: u64) -> f64 {
        offset.min(self.capacity) as f64 / self.capacity as f64
    }

    /// Milliseconds until the first byte of an access is under the head, from `now` on.
    fn positioning(&self, now: Nanos, access: &Access) -> f64 {
        let place = self.fraction(access.offset);
        let rate = self.rate(place);
        let track = rate * self.revolution;
        let distance = (place - self.position).abs();
        let same_track = distance * (self.capacity as f64) < track;
        let seek = if same_track { 0.0 } else { 0.45 + 4.34 * distance.sqrt() + 2.2 * distance };
        let settle = match access.kind {
            AccessKind::Write if !same_track => 0.3,
            _ => 0.0,
        };
        let moved = seek + settle;
        let angle = access.offset as f64 % track / track;
        let at = (now.as_secs_f64() * 1e3 + moved) / self.revolution;
        moved + (angle - at).rem_euclid(1.0) * self.revolution
    }

    /// Bytes per millisecond at a place.
    fn rate(&self, place: f64) -> f64 {
        self.rates.0 + (self.rates.1 - self.rates.0) * place
    }

    pub(super) fn submit(&mut self, now: Nanos, access: Access) {
        if now > self.free {
            self.go_on();
        }
        self.waiting.push(Waiting { arrived: now, access, passed: 0 });
        if self.serving.is_none() {
            self.start(now.max(self.free));
        }
    }

    /// Begins the command that is reached first. It keeps no volatile cache: a flush costs nothing.
    fn start(&mut self, now: Nanos) {
        let is_there = |own: &&Waiting| own.arrived <= now;
        let there = self.waiting.iter().take(self.queue).take_while(is_there).count();
        let positioning = |own: &Waiting| match own.access.kind {
            AccessKind::Flush => 0.0,
            AccessKind::Read | AccessKind::Write => self.positioning(now, &own.access),
        };
        let late = self.waiting[..there].iter().position(|own| own.passed >= PASSED_MOST);
        let costs = self.waiting[..there].iter().map(positioning).enumerate();
        let best = match late {
            Some(late) => costs.into_iter().nth(late),
            None => costs.min_by(|one, other| one.1.total_cmp(&other.1)),
        };
        let Some((nth, positioning)) = best else { return };
        self.waiting[..there].iter_mut().for_each(|own| own.passed += 1);
        let access = self.waiting.remove(nth).access;
        let mut busy = positioning;
        if access.kind != AccessKind::Flush {
            let place = self.fraction(access.offset + u64::from(access.len));
            busy += f64::from(access.len) / self.rate(place);
            self.position = place;
        }
        let end = Nanos(now.0 + floor_u64(busy * 1e6));
        self.serving = Some((end, access.slot));
    }

    /// Begins the next command once nobody can add one before it any more.
    fn go_on(&mut self) {
        if let (None, Some(first)) = (self.serving, self.waiting.first()) {
            self.start(self.free.max(first.arrived));
        }
    }

    pub(super) fn next_end(&mut self) -> Option<Nanos> {
        self.go_on();
        self.serving.map(|(end, _)| end)
    }

    pub(super) fn finish(&mut self, now: Nanos) -> Option<u32> {
        if now > self.free {
            self.go_on();
        }
        let (end, slot) = self.serving.filter(|(end, _)| *end <= now)?;
        self.serving = None;
        self.free = end;
        Some(slot)
    }
}
