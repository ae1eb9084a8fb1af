//! The hot loop: keeps a thread's targets at their queue depth until it is told to stop.
//!
//! Allocates nothing, waits for no lock, and enters the kernel once per batch: this loop is the instrument,
//! so its own cost is part of every latency we report. What `-D` does at an interval's end: [`intervals`].

mod asynchronous;
pub mod controls;
pub mod intervals;
mod issuer;
mod looks;
mod ring;
mod routines;
mod sleeps;
mod synchronous;
mod tally;

use std::time::Duration;

use plumb_io::clock::Clock;
use plumb_io::{Errno, IoQueue};
use plumb_units::Nanos;

pub use controls::{Controls, Live, LiveReading};
pub use issuer::{IoFailure, Issuer, IssuerTarget, Next, Pick, Schedule, Witness, WitnessedIo};
use looks::Bound;
pub use looks::Looks;
pub use tally::{Counts, Intervals, Latencies, Level, Open, TargetCounts, Witnessed};

use crate::result::model::WaitStatistics;
use asynchronous::Caps;

/// How a thread hands in its I/O (spec 6.2, 6.10, 15.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dispatch {
    /// One request, or mapped targets only: issue, wait, account.
    Synchronous,
    /// Fills the queue to its depth, gathers up to `batch` submissions per call (D-32), takes up to
    /// `completions` per visit.
    Asynchronous {
        /// Submissions per call.
        batch: u32,
        /// Submissions per call while more than `batch` requests are idle.
        burst: u32,
        /// Completions per visit.
        completions: u32,
    },
    /// Every completion issues the next I/O of its request (`-x`).
    Routines {
        /// Submissions per call.
        batch: u32,
    },
    /// Prepares all, submits at once, gathers `batch` completions (`-u`).
    Ring {
        /// Completions to gather.
        batch: u32,
    },
}

impl Dispatch {
    /// The word that results use for it.
    #[must_use]
    pub fn name(self, stamps: bool) -> &'static str {
        match self {
            Self::Synchronous => "synchronous",
            Self::Asynchronous { .. } if stamps => "latency",
            Self::Asynchronous { .. } => "peak",
            Self::Routines { .. } => "routines",
            Self::Ring { .. } => "ring",
        }
    }

    /// Whether submissions are gathered as `--batch` says.
    #[must_use]
    pub fn gathers(self) -> bool {
        matches!(self, Self::Asynchronous { .. } | Self::Routines { .. })
    }

    /// Submissions gathered per call, 0 where the queue's depth decides.
    #[must_use]
    pub fn batch(self) -> u32 {
        match self {
            Self::Synchronous => 1,
            Self::Asynchronous { batch, .. } | Self::Routines { batch } | Self::Ring { batch } => {
                batch
            }
        }
    }

    /// The same while a burst of completions has left more requests idle.
    #[must_use]
    pub fn burst(self) -> u32 {
        match self {
            Self::Asynchronous { burst, .. } => burst,
            _ => self.batch(),
        }
    }
}

/// What a loop needs beside its queue and its requests.
#[derive(Debug)]
pub struct Surroundings<'a, C> {
    /// Stamps.
    pub clock: &'a C,
    /// Who steers.
    pub controls: &'a Controls,
    /// What is shown while the loop runs.
    pub live: &'a Live,
    /// How I/O is handed in.
    pub dispatch: Dispatch,
}

impl<C: Clock> Surroundings<'_, C> {
    /// A stamp where the level or a meter needs one.
    #[inline(always)]
    fn stamp<L: Level>(&self, paced: bool) -> Nanos {
        if L::STAMPS || paced { self.clock.now() } else { Nanos::ZERO }
    }

    /// Time since the start signal at `now`; meaningful when a meter is in use.
    #[inline(always)]
    fn elapsed(&self, now: Nanos, paced: bool) -> Nanos {
        if paced { now.since(self.controls.started_at()) } else { Nanos::ZERO }
    }
}

/// What a loop counted about itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LoopCounts {
    /// Spec 6.10.
    pub waits: WaitStatistics,
    /// Submissions of the ring loop.
    pub submits: u64,
}

/// Runs until `controls` says stop, then drains what is in flight.
///
/// # Errors
/// When a submission itself failed. Failed I/Os are counted; the first fatal one stops the run and is
/// found in [`Issuer::failure`].
pub fn run_loop<Q: IoQueue, C: Clock, L: Level>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
) -> Result<LoopCounts, Errno> {
    let mut counts = LoopCounts::default();
    if issuer.requests() == 0 {
        while !around.controls.is_stopping() {
            std::thread::sleep(Duration::from_millis(5));
        }
        return Ok(counts);
    }
    if L::STAMPS {
        // Nothing was there before the first I/O.
        issuer.looks.found_nothing_after(around.clock.now());
    }
    match around.dispatch {
        Dispatch::Synchronous => synchronous::run(queue, issuer, around, &mut counts)?,
        Dispatch::Asynchronous { batch, burst, completions } => {
            let caps = Caps { batch, burst: burst.max(batch), completions };
            if L::OPEN || issuer.is_paced() {
                asynchronous::run::<Q, C, L, true>(queue, issuer, around, caps, &mut counts)?;
            } else {
                asynchronous::run::<Q, C, L, false>(queue, issuer, around, caps, &mut counts)?;
            }
        }
        // Where an I/O is over when it is pushed, its routine is due at once: one that first issued the
        // I/Os of all other requests would charge their time to its own.
        Dispatch::Routines { batch } if queue.facts().in_push => {
            let caps = Caps { batch, burst: batch, completions: u32::MAX };
            asynchronous::run::<Q, C, L, false>(queue, issuer, around, caps, &mut counts)?;
        }
        Dispatch::Routines { batch } => routines::run(queue, issuer, around, batch, &mut counts)?,
        Dispatch::Ring { batch } if L::OPEN || issuer.is_paced() => {
            ring::run::<Q, C, L, true>(queue, issuer, around, batch, &mut counts)?;
        }
        Dispatch::Ring { batch } => {
            ring::run::<Q, C, L, false>(queue, issuer, around, batch, &mut counts)?;
        }
    }
    while issuer.outstanding() > 0 {
        queue.submit_and_wait(1, Nanos::NEVER)?;
        reap(queue, issuer, around, u32::MAX, 1);
    }
    if L::OPEN {
        issuer.count_left_behind(around.controls);
    }
    Ok(counts)
}

/// Takes up to `cap` completions; one stamp for all, taken after the look. Returns how many. `wanted` is
/// what the entry before it waited for, 0 when it did not wait.
#[inline(always)]
fn reap<Q: IoQueue, C: Clock, L: Level>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    cap: u32,
    wanted: u32,
) -> u32 {
    let there = queue.look();
    // Stamp after the look: an I/O finishes when we see it, not when the device says so.
    let seen = if L::STAMPS && there > 0 { around.clock.now() } else { Nanos::ZERO };
    take(queue, issuer, around, (there, cap, wanted), seen)
}

/// The same behind an entry that only submitted, `queued` I/Os from `start` on: one stamp ends both.
#[inline(always)]
fn reap_after_submission<Q: IoQueue, C: Clock, L: Level>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    cap: u32,
    (start, queued): (Nanos, u32),
) {
    let there = queue.look();
    let seen = around.clock.now();
    issuer.looks.submitted_in(seen.since(start), queued);
    take(queue, issuer, around, (there, cap, 0), seen);
}

/// Accounts up to `cap` of the completions that were `there` at the look that `seen` stamps.
#[inline(always)]
fn take<Q: IoQueue, C: Clock, L: Level>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    (there, cap, wanted): (u32, u32, u32),
    seen: Nanos,
) -> u32 {
    let found = there.min(cap);
    if found > 0 {
        let since = around.controls.measuring_since();
        let mut bound = Bound::default();
        if L::STAMPS {
            let slept = issuer.looks.slept(seen, wanted, around.clock);
            let waited = (wanted, slept);
            bound = issuer.looks.saw(found, there - found, seen, waited, since.is_some());
        }
        issuer.finish_seen(queue, found, (seen, bound), since, (around.controls, around.live));
    }
    issuer.rearm(around.live);
    found
}

/// Before an entry that submits `queued` I/Os and waits: where one is `due`, submits by itself, so that
/// submissions get timed.
#[inline(always)]
fn probe<Q: IoQueue, C: Clock, L: Level>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    queued: u32,
    due: impl FnOnce(&mut Looks) -> bool,
) -> Result<(), Errno> {
    if L::STAMPS {
        issuer.looks.enters(queued);
        if queued > 0 && due(&mut issuer.looks) {
            time_submission(queue, issuer, around, queued)?;
        }
    }
    Ok(())
}

/// Submits without waiting, and takes the time of it.
#[cold]
fn time_submission<Q: IoQueue, C: Clock, L: Level>(
    queue: &mut Q,
    issuer: &mut Issuer<L>,
    around: &Surroundings<'_, C>,
    queued: u32,
) -> Result<(), Errno> {
    let start = around.clock.now();
    queue.submit_and_wait(0, Nanos::ZERO)?;
    issuer.looks.probed_in(around.clock.now().since(start), queued);
    Ok(())
}

/// Sleeps for a throttle, `pause` at most, but not past a stop.
fn sleep(pause: Nanos, controls: &Controls) {
    const SLICE: Duration = Duration::from_millis(20);
    let mut left = Duration::from(pause);
    while !left.is_zero() && !controls.is_stopping() {
        let slice = left.min(SLICE);
        std::thread::sleep(slice);
        left -= slice;
    }
}

/// The bucket of a count of completions in the wait statistics.
#[inline(always)]
fn bucket(completions: u32) -> usize {
    plumb_units::convert::index(completions.min(7))
}
