//! One disk with a volatile cache: what it surely holds, and what it may hold.

use plumb_units::convert::{to_u64, to_usize};

use super::image::{Image, Payload};
use super::trace::WriteId;
use crate::sim::random::Random;

/// What died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CrashKind {
    /// The power failed: a disk keeps what a flush covered and any subset of the rest.
    Power,
    /// Only the engine died: completed writes are kept, those in flight land or do not.
    Engine,
}

/// What a crash left of the writes that were not flushed, as numbers that tell it from others.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Choice {
    /// As it was drawn: draws that leave the same may have different ones.
    pub drawn: u64,
    /// The sectors that survived: the same for the same ones, however they were drawn.
    pub subset: u64,
    /// Writes that survived in part: disk and offset in bytes.
    pub torn: Vec<(u32, u64)>,
    /// Writes that the crash could lose: disk, offset and length in bytes.
    pub unsure: Vec<(u32, u64, u64)>,
}

/// How much of what was not flushed survives a crash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Survivors {
    /// Nothing.
    None,
    /// Everything, in order.
    All,
    /// Each write with one chance in two, torn now and then.
    Some,
    /// All writes but one in eight.
    Most,
    /// One write in eight.
    Few,
    /// As whole writes those whose bit is set, of the writes that the crash may lose: in turn, the first disk's first.
    Exactly(u64),
}

impl Survivors {
    /// Whether the write survives that is the `nth` of its disk that may be lost.
    fn keeps(self, nth: usize, random: &mut Random) -> bool {
        match self {
            Self::Exactly(mask) => nth < 64 && mask >> nth & 1 == 1,
            Self::None => false,
            Self::All => true,
            Self::Some => random.one_in(2),
            Self::Most => !random.one_in(8),
            Self::Few => random.one_in(8),
        }
    }

    /// Whether what survives may be torn.
    fn tears(self) -> bool {
        !matches!(self, Self::All | Self::Exactly(_))
    }

    /// For the disks behind one of which `open` writes may be lost.
    pub(super) fn behind(self, open: usize) -> Self {
        match self {
            Self::Exactly(mask) if open < 64 => Self::Exactly(mask >> open),
            Self::Exactly(_) => Self::Exactly(0),
            other => other,
        }
    }
}

#[derive(Debug, Clone)]
struct Unflushed {
    id: WriteId,
    offset: u64,
    payload: Payload,
    /// Place in the order of completion, `None` in flight.
    completed: Option<u64>,
    /// The sectors that there are of it once it is completed: all, unless it failed.
    landed: u64,
}

impl Unflushed {
    /// Whether a crash of this kind cannot lose it.
    fn is_sure(&self, kind: CrashKind) -> bool {
        kind == CrashKind::Engine && self.completed.is_some()
    }
}

/// One disk's content, split by certainty.
#[derive(Debug, Clone)]
pub struct Media {
    durable: Image,
    sector: u64,
    /// In order of submission.
    unflushed: Vec<Unflushed>,
    completions: u64,
}

impl Media {
    /// A disk that holds `image`, all of it durable, with sectors of that many bytes: what is not torn.
    #[must_use]
    pub fn new(image: Image, sector: u64) -> Self {
        Self { durable: image, sector, unflushed: Vec::new(), completions: 0 }
    }

    /// A write was handed in.
    pub fn submit(&mut self, id: WriteId, offset: u64, payload: Payload) {
        self.unflushed.push(Unflushed { id, offset, payload, completed: None, landed: u64::MAX });
    }

    /// A write was reported as done, or as failed, and is not in flight: sectors whose bit in `landed` is set, bits taken in
    /// turn, are what the disk shows of it, and no others come later.
    pub fn complete(&mut self, id: WriteId, landed: u64) {
        self.completions += 1;
        if let Some(write) = self.unflushed.iter_mut().find(|write| write.id == id) {
            write.completed = Some(self.completions);
            write.landed = landed;
        }
    }

    /// A stamp for a flush that is handed in now.
    #[must_use]
    pub fn flush_started(&self) -> u64 {
        self.completions
    }

    /// A flush that was handed in at `started` is done: what had completed by then is durable.
    pub fn flush_done(&mut self, started: u64) {
        let covered = |write: &Unflushed| write.completed.is_some_and(|at| at <= started);
        let mut writes: Vec<Unflushed> =
            self.unflushed.extract_if(.., |write| covered(write)).collect();
        writes.sort_by_key(|write| write.completed);
        let mut durable = std::mem::take(&mut self.durable);
        writes.iter().for_each(|write| self.land(&mut durable, write, write.landed));
        self.durable = durable;
    }

    /// A flush that was handed in at `started` failed: of what had completed by then each write is kept with one chance in two, to be
    /// flushed again, and the others are gone. Whether there are any.
    pub fn flush_failed(&mut self, started: u64, seed: u64) -> bool {
        let mut random = Random::new(seed);
        let covered = |write: &Unflushed| write.completed.is_some_and(|at| at <= started);
        let before = self.unflushed.len();
        self.unflushed.retain(|write| !covered(write) || random.one_in(2));
        self.unflushed.len() < before
    }

    /// What the disk shows: all that completed.
    #[must_use]
    pub fn shown(&mut self) -> Image {
        self.after_crash(CrashKind::Engine, Survivors::None, 0).0
    }

    /// Replaces all content: the disk was taken away and came back with this.
    pub fn replace(&mut self, image: Image) {
        self.durable = image;
        self.unflushed.clear();
    }

    /// A bit of what is durable is another one; what is written there later lies over it.
    pub fn rot(&mut self, offset: u64, bit: u8) {
        self.durable.flip(offset, bit);
    }

    /// Whether nothing that is not durable lies over these bytes.
    #[must_use]
    pub fn is_durable(&self, offset: u64, len: u64) -> bool {
        let over = |write: &Unflushed| {
            write.offset < offset + len && offset < write.offset + to_u64(write.payload.bytes())
        };
        !self.unflushed.iter().any(over)
    }

    /// How many writes are not yet durable.
    #[must_use]
    pub fn uncertain(&self) -> usize {
        self.unflushed.len()
    }

    /// How many writes a crash of this kind may lose here.
    #[must_use]
    pub fn open(&self, kind: CrashKind) -> usize {
        self.unflushed.iter().filter(|write| !write.is_sure(kind)).count()
    }

    /// What the disk may hold after a crash here, and what tells this choice from others.
    pub fn after_crash(
        &mut self,
        kind: CrashKind,
        survivors: Survivors,
        seed: u64,
    ) -> (Image, Choice) {
        let mut random = Random::new(seed);
        let mut image = self.durable.fork();
        let mut choice = Choice { drawn: 0xcbf2_9ce4_8422_2325, ..Choice::default() };
        let mut order: Vec<&Unflushed> = self.unflushed.iter().collect();
        if kind == CrashKind::Engine {
            // What has completed is there; what was in flight may land at any later time.
            order.sort_by_key(|write| write.completed.unwrap_or(u64::MAX));
        }
        let mut nth = 0;
        for write in order {
            let surely = write.is_sure(kind);
            let kept = surely || survivors.keeps(nth, &mut random);
            nth += usize::from(!surely);
            if !surely {
                choice.unsure.push((0, write.offset, to_u64(write.payload.bytes())));
            }
            let torn = kept && !surely && survivors.tears() && random.one_in(6);
            let mask = match (kept, torn) {
                (false, _) => 0,
                (true, false) => u64::MAX,
                (true, true) => random.next(),
            };
            let drawn = choice.drawn ^ mask ^ u64::from(write.id.0);
            choice.drawn = drawn.wrapping_mul(0x0100_0000_01b3);
            let there = if write.completed.is_some() { mask & write.landed } else { mask };
            // A sum, as the order of the writes is none of a subset's.
            let survivors = self.survivors(write, there);
            choice.subset = choice.subset.wrapping_add(survivors);
            if survivors != 0 && survivors != self.survivors(write, u64::MAX) {
                choice.torn.push((0, write.offset));
            }
            self.land(&mut image, write, there);
        }
        (image, choice)
    }

    /// A number for the sectors of a write that survive: bits of `mask` that stand for none are no part of it.
    fn survivors(&self, write: &Unflushed, mask: u64) -> u64 {
        let sectors = to_u64(write.payload.bytes()).div_ceil(self.sector);
        let mask = if sectors < 64 { mask & ((1 << sectors) - 1) } else { mask };
        let mixed = (mask ^ (u64::from(write.id.0) << 1 | 1).rotate_left(32))
            .wrapping_mul(0x9e37_79b9_7f4a_7c15);
        if mask == 0 { 0 } else { (mixed ^ (mixed >> 31)).wrapping_mul(0xbf58_476d_1ce4_e5b9) }
    }

    /// Stores the sectors of a write whose bit in `mask` is set, bits taken in turn.
    fn land(&self, image: &mut Image, write: &Unflushed, mask: u64) {
        if mask == u64::MAX {
            image.put(write.offset, &write.payload);
        } else if mask != 0 {
            put_sectors(image, write.offset, &write.payload, (self.sector, mask));
        }
    }
}

/// Stores the sectors of a payload whose bit in a mask is set, bits taken in turn.
pub(super) fn put_sectors(
    image: &mut Image,
    offset: u64,
    payload: &Payload,
    (sector, mask): (u64, u64),
) {
    let len = to_usize(sector);
    for (nth, at) in (0_u64..).zip((0..payload.bytes()).step_by(len)) {
        if mask >> (nth % 64) & 1 == 1 {
            image.write(offset + to_u64(at), payload.part(at, len));
        }
    }
}
