//! The open loop of a thread: which arrival goes next, and how late it was.

use plumb_io::{IoQueue, Op, Slot};
use plumb_units::{Nanos, convert};

use super::{Issuer, Next};
use crate::arrivals::Arrivals;
use crate::run_loop::{Controls, Level};
use crate::tally::OpenTally;

/// The longest wait at a stretch: a thread that waits for its next arrival sees the end of the run.
const PATIENCE: Nanos = Nanos(20_000_000);

/// The arrivals of a thread.
#[derive(Debug)]
pub struct Schedule {
    /// One per target; a single one in a weighted pool, where each I/O draws its target.
    streams: Box<[Stream]>,
    pooled: bool,
    /// When each slot's I/O was meant to start, after the start signal, and whether it had to wait for
    /// a request.
    intended: Box<[(Nanos, bool)]>,
    /// By target.
    tallies: Box<[OpenTally]>,
}

#[derive(Debug)]
struct Stream {
    arrivals: Arrivals,
    /// The next arrival, after the start signal.
    due: Nanos,
    /// Idle requests that may serve it.
    idle: u32,
    /// When a request was last taken back while none was idle; arrivals up to then had to wait.
    full_until: Nanos,
}

impl Schedule {
    /// `streams` are the arrivals and the requests that serve them, `tallies` what is counted by target.
    #[must_use]
    pub fn new(streams: Vec<(Arrivals, u32)>, pooled: bool, tallies: Vec<OpenTally>) -> Self {
        let slots = streams.iter().map(|(_, requests)| requests).sum();
        let stream = |(mut arrivals, requests): (Arrivals, u32)| Stream {
            due: arrivals.next_due(),
            arrivals,
            idle: requests,
            full_until: Nanos::ZERO,
        };
        Self {
            streams: streams.into_iter().map(stream).collect(),
            pooled,
            intended: vec![(Nanos::ZERO, false); convert::index(slots)].into(),
            tallies: tallies.into(),
        }
    }

    fn stream_of(&self, target: u32) -> usize {
        if self.pooled { 0 } else { convert::index(target) }
    }

    /// The stream whose next arrival is the earliest of those that have an idle request.
    fn soonest(&self) -> Option<(usize, Nanos)> {
        let ready = self.streams.iter().enumerate().filter(|(_, stream)| stream.idle > 0);
        ready.map(|(place, stream)| (place, stream.due)).min_by_key(|(_, due)| *due)
    }

    /// Takes the next arrival of a stream for `slot`.
    fn take(&mut self, stream: usize, slot: Slot) {
        let stream = &mut self.streams[stream];
        self.intended[convert::index(slot.0)] = (stream.due, stream.due < stream.full_until);
        stream.due = stream.arrivals.next_due();
        stream.idle -= 1;
    }

    /// What was counted by target.
    pub(super) fn into_tallies(self) -> Box<[OpenTally]> {
        self.tallies
    }
}

impl<L: Level> Issuer<L> {
    /// Makes the loop an open one.
    #[must_use]
    pub fn with_schedule(self, schedule: Schedule) -> Self {
        assert!(L::OPEN, "arrivals need a level that looks at them");
        // Stamps and waits with a limit are needed as with any meter.
        Self { schedule: Some(Box::new(schedule)), paced: true, ..self }
    }

    fn schedule(&mut self) -> &mut Schedule {
        self.schedule.as_deref_mut().expect("an open loop has a schedule")
    }

    /// The I/O of the earliest arrival that is due.
    pub(super) fn next_arrival<Q: IoQueue>(
        &mut self,
        queue: &mut Q,
        start: Nanos,
        elapsed: Nanos,
    ) -> Next {
        if self.idle.is_empty() {
            return Next::Busy;
        }
        let (stream, wait) = match self.schedule().soonest() {
            Some((stream, due)) => (stream, due.since(elapsed).min(PATIENCE)),
            None => (0, PATIENCE),
        };
        if wait > Nanos::ZERO {
            return Next::Throttled(wait);
        }
        // Requests of other targets go round; those of one target keep their order.
        loop {
            let slot = Slot(self.idle.pop().expect("the stream has an idle request"));
            let of_slot = self.slots[convert::index(slot.0)].target;
            if self.schedule().stream_of(of_slot) == stream {
                let target = self.target_of(slot);
                self.schedule().take(stream, slot);
                return Next::Op(self.op_for(queue, slot, target, start));
            }
            self.idle.push(slot.0);
        }
    }

    /// The I/O of one given idle request, or how long it has to wait for its next arrival.
    pub(super) fn arrival_of_slot<Q: IoQueue>(
        &mut self,
        queue: &mut Q,
        slot: Slot,
        start: Nanos,
        elapsed: Nanos,
    ) -> Result<Op, Nanos> {
        let of_slot = self.slots[convert::index(slot.0)].target;
        let schedule = self.schedule();
        let stream = schedule.stream_of(of_slot);
        let wait = schedule.streams[stream].due.since(elapsed);
        if wait > Nanos::ZERO {
            return Err(wait.min(PATIENCE));
        }
        schedule.take(stream, slot);
        let target = self.target_of(slot);
        Ok(self.op_for(queue, slot, target, start))
    }

    /// Takes note that the I/O of `slot` is over, failed or not. Returns how late it was submitted, and
    /// counts it among those meant for the measurement.
    pub(super) fn depart(&mut self, slot: Slot, seen: Nanos, controls: &Controls) -> Nanos {
        let state = self.slots[convert::index(slot.0)];
        let began = controls.started_at();
        let schedule = self.schedule();
        let place = schedule.stream_of(state.target);
        let (intended, waited) = schedule.intended[convert::index(slot.0)];
        let stream = &mut schedule.streams[place];
        let tally = &mut schedule.tallies[convert::index(state.target)];
        let meant = began + intended;
        if controls.measures(meant) {
            tally.offered += 1;
            tally.waited += u64::from(waited);
        }
        if stream.idle == 0 {
            stream.full_until = seen.since(began);
        }
        stream.idle += 1;
        state.start.since(meant)
    }

    /// Counts a good I/O of the measurement, `at` after its start.
    pub(super) fn served(
        &mut self,
        (target, is_write): (u32, bool),
        service: Nanos,
        lag: Nanos,
        at: Nanos,
    ) {
        self.schedule().tallies[convert::index(target)].record(is_write, service, lag, at);
    }

    /// At the end: arrivals of the measurement that never got a request count as offered, and as waiting
    /// where every request was taken. Those of a weighted pool have not drawn their target; the targets get
    /// them in turn, by their rates.
    pub(crate) fn count_left_behind(&mut self, controls: &Controls) {
        /// Arrivals looked at one by one; the rest of a hopeless rate is estimated.
        const LOOKED_AT: u64 = 1 << 22;
        let Some((from, to)) = controls.measured() else { return };
        let began = controls.started_at();
        let schedule = self.schedule();
        schedule.tallies.iter_mut().for_each(|tally| tally.ends(to.since(from)));
        let total: f64 = schedule.tallies.iter().map(|tally| tally.rate).sum();
        for (place, stream) in schedule.streams.iter_mut().enumerate() {
            let (mut left, mut waited, mut looked_at) = (0_u64, 0_u64, 0);
            while stream.due < to.since(began) && looked_at < LOOKED_AT {
                let counts = u64::from(began + stream.due >= from);
                left += counts;
                waited += counts * u64::from(stream.due < stream.full_until);
                looked_at += 1;
                stream.due = stream.arrivals.next_due();
            }
            let unseen = to.since((began + stream.due.min(to.since(began))).max(from));
            let unseen = convert::floor_u64(unseen.as_secs_f64() * stream.arrivals.rate());
            left += unseen;
            waited += if stream.due < stream.full_until { unseen } else { 0 };
            if !schedule.pooled {
                schedule.tallies[place].offered += left;
                schedule.tallies[place].waited += waited;
                continue;
            }
            let (mut sum, mut given) = (0.0, (0, 0));
            for tally in &mut schedule.tallies {
                sum += tally.rate;
                let share = |of: u64| convert::floor_u64((of as f64 * (sum / total)).round());
                let until = (share(left), share(waited));
                tally.offered += until.0 - given.0;
                tally.waited += until.1 - given.1;
                given = until;
            }
        }
    }
}
