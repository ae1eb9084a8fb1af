//! What happened to the disks, in order, and going through it again.

use std::collections::HashMap;

use plumb_units::convert::{index, to_u64};

use super::image::{Image, Payload};
use super::media::{Choice, CrashKind, Media, Survivors};

/// A write, flush or read of a run, counted from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct WriteId(pub u32);

/// One event at a disk.
#[derive(Debug, Clone)]
pub enum Event {
    /// A write was handed in.
    Write {
        /// Which disk.
        disk: u32,
        /// Which write.
        id: WriteId,
        /// Bytes from the start of the disk.
        offset: u64,
        /// What is written.
        payload: Payload,
    },
    /// A write ended, with or without error.
    Written {
        /// Which disk.
        disk: u32,
        /// Which write.
        id: WriteId,
        /// The sectors that there are of it, a bit each, taken in turn.
        landed: u64,
    },
    /// A flush was handed in.
    Flush {
        /// Which disk.
        disk: u32,
        /// Which flush.
        id: WriteId,
    },
    /// A flush ended without error.
    Flushed {
        /// Which disk.
        disk: u32,
        /// Which flush.
        id: WriteId,
    },
    /// A flush ended with an error, and the disk forgot some of what it was for.
    FlushFailed {
        /// Which disk.
        disk: u32,
        /// Which flush.
        id: WriteId,
        /// Decides what of it the disk forgets.
        seed: u64,
    },
    /// A disk was taken away and came back with this content, all of it durable.
    Replaced {
        /// Which disk.
        disk: u32,
        /// What it holds.
        image: Image,
    },
    /// A bit of what a disk holds durably is another one from now on.
    Rotten {
        /// Which disk.
        disk: u32,
        /// Bytes from the start of the disk.
        offset: u64,
        /// The bit's place in its byte, 0 to 7.
        bit: u8,
    },
}

/// The events of a run, and what the disks held before it.
#[derive(Debug, Clone, Default)]
pub struct Trace {
    /// Before the first event, by disk.
    pub start: Vec<Image>,
    /// In order.
    pub events: Vec<Event>,
}

/// A walk through a trace.
#[derive(Debug)]
pub struct Replay<'a> {
    trace: &'a Trace,
    media: Vec<Media>,
    flushes: HashMap<WriteId, u64>,
    position: usize,
}

impl<'a> Replay<'a> {
    /// Before the first event. `sector`: bytes that are never torn.
    #[must_use]
    pub fn new(trace: &'a Trace, sector: u64) -> Self {
        let media = trace.start.iter().map(|image| Media::new(image.clone(), sector)).collect();
        Self { trace, media, flushes: HashMap::new(), position: 0 }
    }

    /// Goes on until `position` events have passed.
    pub fn advance_to(&mut self, position: usize) {
        while self.position < position.min(self.trace.events.len()) {
            let event = &self.trace.events[self.position];
            self.position += 1;
            match event {
                Event::Write { disk, id, offset, payload } => {
                    self.media[index(*disk)].submit(*id, *offset, payload.clone());
                }
                Event::Written { disk, id, landed } => {
                    self.media[index(*disk)].complete(*id, *landed);
                }
                Event::Flush { disk, id } => {
                    self.flushes.insert(*id, self.media[index(*disk)].flush_started());
                }
                Event::Flushed { disk, id } => {
                    let started = self.flushes.get(id).copied().unwrap_or(0);
                    self.media[index(*disk)].flush_done(started);
                }
                Event::FlushFailed { disk, id, seed } => {
                    let started = self.flushes.get(id).copied().unwrap_or(0);
                    self.media[index(*disk)].flush_failed(started, *seed);
                }
                Event::Replaced { disk, image } => self.media[index(*disk)].replace(image.clone()),
                Event::Rotten { disk, offset, bit } => self.media[index(*disk)].rot(*offset, *bit),
            }
        }
    }

    /// How many writes are not durable here, over all disks.
    #[must_use]
    pub fn uncertain(&self) -> usize {
        self.media.iter().map(Media::uncertain).sum()
    }

    /// How many writes a crash of this kind may lose here, over all disks; the disks `unplugged` lost their power whatever
    /// died.
    #[must_use]
    pub fn open(&self, kind: CrashKind, unplugged: &[u32]) -> usize {
        let media = self.media.iter().enumerate();
        media.map(|(nth, media)| media.open(kind_at(nth, kind, unplugged))).sum()
    }

    /// What the disks may hold after a crash here; the choice tells it from others. The disks
    /// `unplugged` lost their power whatever died.
    pub fn crash(
        &mut self,
        kind: CrashKind,
        unplugged: &[u32],
        mut survivors: Survivors,
        seed: u64,
    ) -> (Vec<Image>, Choice) {
        let mut choice = Choice::default();
        let mut images = Vec::with_capacity(self.media.len());
        for (nth, media) in self.media.iter_mut().enumerate() {
            let seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15_u64.wrapping_mul(to_u64(nth) + 1));
            let kind = kind_at(nth, kind, unplugged);
            let (image, part) = media.after_crash(kind, survivors, seed);
            survivors = survivors.behind(media.open(kind));
            images.push(image);
            choice.drawn = joined(choice.drawn, part.drawn);
            choice.subset = joined(choice.subset, part.subset);
            let disk = plumb_units::convert::to_u32(nth);
            choice.torn.extend(part.torn.iter().map(|(_, offset)| (disk, *offset)));
            choice.unsure.extend(part.unsure.iter().map(|(_, offset, len)| (disk, *offset, *len)));
        }
        (images, choice)
    }
}

/// What died for one disk.
fn kind_at(nth: usize, kind: CrashKind, unplugged: &[u32]) -> CrashKind {
    if unplugged.iter().any(|disk| index(*disk) == nth) { CrashKind::Power } else { kind }
}

/// The choice of several disks, one after the other.
fn joined(before: u64, part: u64) -> u64 {
    (before ^ part).rotate_left(17).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
