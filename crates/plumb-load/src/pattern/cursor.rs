//! One thread's place in one target: what its next offset is.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::bounds::Bounds;
use super::distribution::{self, RangeDraw};
use super::modulus::{EvenModulus, Modulus};
use crate::profile::model::Target;
use crate::rng::Rng;

/// A thread's cursor in a target.
#[derive(Debug)]
pub struct Cursor {
    bounds: Bounds,
    align: Modulus,
    /// The bits of an offset that a power-of-two alignment keeps; 0 for other alignments.
    align_keeps: u64,
    aligned: Modulus,
    /// What most runs ask for has a way of its own.
    plain: Option<Plain>,
    ranges: Option<RangeDraw>,
    mode: Mode,
}

/// Random offsets anywhere in the target, aligned to a power of two.
#[derive(Debug, Clone, Copy)]
struct Plain {
    /// The bits of an offset that the alignment keeps.
    keeps: u64,
    aligned: EvenModulus,
}

impl Plain {
    fn new(bounds: &Bounds) -> Option<Self> {
        let even = bounds.align.is_power_of_two() && bounds.align > 1;
        // Saturated sizes are no multiples.
        let fits = even && bounds.aligned.is_multiple_of(bounds.align);
        let aligned = EvenModulus::new(bounds.aligned).filter(|_| fits)?;
        Some(Self { keeps: !(bounds.align - 1), aligned })
    }
}

#[derive(Debug)]
enum Mode {
    Sequential { position: u64, wrap: u64 },
    Parallel { positions: Box<[u64]>, wrap: u64 },
    Interlocked { shared: Arc<AtomicU64> },
    Random,
    Mixed { position: u64, percent: u32 },
}

/// The next offset, and whether it continues a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NextOffset {
    /// Bytes from the start of the target.
    pub offset: u64,
    /// Whether the I/O continues a sequential run of a mixed pattern: it then repeats the type of the
    /// I/O before it (spec 6.7).
    pub continues: bool,
}

impl Cursor {
    /// Sets the cursor to its start. Mixed mode draws its first position here, so the order in which a
    /// thread's cursors are made is the order of spec 6.12.
    ///
    /// `requests` is how many of the thread's requests work on the target; `shared` is the target's
    /// interlocked position.
    #[must_use]
    pub fn new(
        target: &Target,
        bounds: Bounds,
        relative_thread: u32,
        requests: u32,
        shared: &Arc<AtomicU64>,
        rng: &mut Rng,
    ) -> Self {
        let start = target.thread_stride.saturating_mul(relative_thread.into());
        let wrap = start % bounds.align;
        let mode = match target.random_ratio {
            100.. => Mode::Random,
            0 if target.parallel_async => {
                let positions = vec![start; plumb_units::convert::index(requests)];
                Mode::Parallel { positions: positions.into_boxed_slice(), wrap }
            }
            0 if target.interlocked => Mode::Interlocked { shared: Arc::clone(shared) },
            0 => Mode::Sequential { position: start, wrap },
            percent => Mode::Mixed { position: 0, percent },
        };
        let ranges = target
            .distribution
            .as_ref()
            .and_then(|wanted| RangeDraw::new(&distribution::effective(wanted, &bounds)));
        let is_plain = matches!(mode, Mode::Random) && ranges.is_none();
        let mut cursor = Self {
            plain: Plain::new(&bounds).filter(|_| is_plain),
            align: Modulus::new(bounds.align),
            align_keeps: if bounds.align.is_power_of_two() { !(bounds.align - 1) } else { 0 },
            aligned: Modulus::new(bounds.aligned),
            bounds,
            ranges,
            mode,
        };
        if matches!(cursor.mode, Mode::Mixed { .. }) {
            let first = cursor.random(rng);
            if let Mode::Mixed { position, .. } = &mut cursor.mode {
                *position = first;
            }
        }
        cursor
    }

    /// The next offset of request `request` (counted from 0 within the target).
    #[inline(always)]
    pub fn next(&mut self, rng: &mut Rng, request: usize) -> NextOffset {
        let bounds = &self.bounds;
        if let Some(Plain { keeps, aligned }) = self.plain {
            let offset = aligned.of(rng.next64() & keeps);
            debug_assert!(bounds.fits(offset), "{offset} leaves {bounds:?}");
            return NextOffset { offset: offset + bounds.base, continues: false };
        }
        let (offset, continues) = match &mut self.mode {
            Mode::Random => (self.random(rng), false),
            Mode::Sequential { position, wrap } => (step(position, *wrap, bounds), false),
            Mode::Parallel { positions, wrap } => {
                (step(&mut positions[request], *wrap, bounds), false)
            }
            Mode::Interlocked { shared } => {
                let at = shared.fetch_add(bounds.align, Ordering::Relaxed);
                (self.aligned.of(at), false)
            }
            Mode::Mixed { position, percent } => {
                if rng.percent() <= *percent {
                    let offset = self.random(rng);
                    if let Mode::Mixed { position, .. } = &mut self.mode {
                        *position = offset.saturating_add(self.bounds.align);
                    }
                    (offset, false)
                } else {
                    (step(position, 0, bounds), true)
                }
            }
        };
        debug_assert!(self.bounds.fits(offset), "{offset} leaves {:?}", self.bounds);
        NextOffset { offset: offset + self.bounds.base, continues }
    }

    #[inline(always)]
    fn random(&self, rng: &mut Rng) -> u64 {
        let draw = rng.next64();
        let draw = match self.align_keeps {
            0 => draw - self.align.of(draw),
            keeps => draw & keeps,
        };
        match &self.ranges {
            None => self.aligned.of(draw),
            Some(ranges) => {
                let offset = ranges.offset(draw, rng);
                // D-19: a range need not be aligned; the I/O stays inside the target.
                if self.bounds.fits(offset) { offset } else { self.bounds.last_start() }
            }
        }
    }
}

/// A sequential step: past the end it goes back near the base, not to the thread's own start.
#[inline(always)]
fn step(position: &mut u64, wrap: u64, bounds: &Bounds) -> u64 {
    let offset = if bounds.fits(*position) { *position } else { wrap };
    *position = offset.saturating_add(bounds.align);
    offset
}
