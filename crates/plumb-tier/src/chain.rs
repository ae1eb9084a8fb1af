//! Following the journal's chain of frames over all its copies, some way ahead of the frame that is looked at: a
//! full ring is read at the speed of its disks, however small its frames are (JRN-1, JRN-3).

use std::ops::Range;

use plumb_io::FlushQueue;
use plumb_units::convert::{to_u64, to_usize};

use crate::events::Event;
use crate::format::frame::{self, Frame, FrameKind, HEADER, Link, Record};
use crate::format::{BLOCK_BYTES, BLOCK_LEN, Geometry};
use crate::io::{Io, Work};
use crate::members::Members;
use crate::mutation::{Mutation, active};

/// What is read ahead at first: most journals are short.
const FIRST: u64 = 8 << 10;
/// And at most.
const MOST: u64 = 1 << 20;
/// Longest frame that is believed to be one.
const FRAME_MAX: u64 = 1 << 24;

/// Frames with commits behind one that may still have been on its way: those of one round.
const COMMITS_MOST: u32 = 2;

/// What the journal holds.
#[derive(Debug)]
pub(crate) struct Chain {
    frames: Vec<(Vec<u8>, Range<usize>)>,
    /// Its beginning, and its end.
    start: Link,
    pub(crate) link: Link,
    /// Whether an earlier start died before its checkpoint.
    pub(crate) again: bool,
    /// No copy could be read where it seems to end: what follows there is not known.
    pub(crate) is_cut: bool,
    /// What should follow there was durable, as a frame behind it says, and is damaged on all copies.
    pub(crate) is_rotten: bool,
    /// Some disk was asked for frames behind it; those that do not answer all the time are not.
    pub(crate) is_end_known: bool,
}

impl Chain {
    /// Whether it begins with the state that its checkpoint left there, whole: without that nothing is known of disks,
    /// caches and open extents. A pool that was just made has none.
    pub(crate) fn has_state(&self) -> bool {
        let mut records = self.bodies().flat_map(frame::records);
        self.start.lsn == 1
            || records.next() == Some(Record::CheckpointBegin)
                && records.any(|record| record == Record::CheckpointEnd)
    }

    /// The records of each frame, in order.
    pub(crate) fn bodies(&self) -> impl Iterator<Item = &[u8]> {
        self.frames.iter().map(|(bytes, body)| &bytes[body.clone()])
    }
}

/// What is made of a place where the chain seems to go on, and no copy of it can be read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum UnreadEnd {
    /// Nobody can tell whether it was durable: nothing behind it is known.
    Unknown,
    /// An operator says that it was being written when the power went. It is believed where no more was written behind it than may have been
    /// on its way as well.
    Taken,
}

/// Follows the chain from `start` over all copies (JRN-1), writes each frame to the copies that lack it, and flushes.
pub(crate) fn read<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &Members,
    (start, unread_end): (Link, UnreadEnd),
) -> Chain {
    let (geometry, ring) = (members.geometry, members.geometry.ring_bytes());
    let disks = members.metadata();
    let repairs = !active(Mutation::JournalCopiesDiffer);
    let mut ahead = Ahead::new(geometry, &disks, start.position);
    let mut chain = Chain {
        frames: Vec::new(),
        start,
        link: start,
        again: false,
        is_cut: false,
        is_rotten: false,
        is_end_known: true,
    };
    let mut repaired = Vec::new();
    while chain.link.position - start.position < ring {
        let link = chain.link;
        let Next { best, have, was_read } = ahead.next(io, members.pool_seed, &link, true);
        let Some(Best { bytes, kind, span, crc, epoch, body }) = best else {
            chain.is_cut = !was_read && !active(Mutation::UnreadEndsJournal);
            if chain.is_cut && unread_end == UnreadEnd::Taken {
                chain.is_cut = !ahead.ends_at(io, members.pool_seed, &link, start.position + ring);
                disks.iter().for_each(|disk| io.events.damaged(*disk, "end of the journal"));
            }
            match ahead.was_durable(io, members.pool_seed, &link) {
                _ if !was_read => {}
                Some(true) => {
                    disks.iter().for_each(|disk| io.events.damaged(*disk, "journal"));
                    chain.is_rotten = unread_end == UnreadEnd::Unknown;
                }
                asked => chain.is_end_known = asked.is_some(),
            }
            break;
        };
        let lacking = lacking(&disks, &have, crc);
        if !lacking.is_empty() && repairs {
            let failed = io.write(&lacking, geometry.ring(link.position), &bytes);
            // Those lack it still, and are done without as after a flush that failed.
            io.unflushed.extend(failed);
            for &disk in &lacking {
                io.events.note(Event::MetadataDamaged { disk, what: "journal" });
            }
            repaired.extend(lacking);
        }
        chain.again |= kind == FrameKind::EpochStart;
        let lsn = link.lsn + u64::from(kind != FrameKind::Pad);
        chain.frames.push((bytes, body));
        chain.link = Link { lsn, position: link.position + span, chain: crc, epoch };
    }
    if !repaired.is_empty() {
        // A disk that fails here fails again with the first frame of the new epoch, and is expelled.
        io.flush(&disks);
    }
    chain
}

/// A frame that was read, and who lacks it.
pub(crate) struct Gathered {
    /// Virtual.
    pub(crate) position: u64,
    pub(crate) bytes: Vec<u8>,
    pub(crate) lacking: Vec<u16>,
}

/// The frames between two places of the chain, each from the first of `disks` that has it whole; `None` where the chain
/// does not lead from the one to the other. Nothing is written.
pub(crate) fn gather<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &Members,
    disks: &[u16],
    (start, end): (Link, Link),
) -> Option<Vec<Gathered>> {
    let mut ahead = Ahead::new(members.geometry, disks, start.position);
    ahead.limit = end.position;
    let (mut link, mut frames) = (start, Vec::new());
    while link.position < end.position {
        let Next { best, have, .. } = ahead.next(io, members.pool_seed, &link, false);
        let Best { bytes, kind, span, crc, epoch, .. } = best?;
        let (position, lacking) = (link.position, lacking(disks, &have, crc));
        frames.push(Gathered { position, bytes, lacking });
        let lsn = link.lsn + u64::from(kind != FrameKind::Pad);
        link = Link { lsn, position: position + span, chain: crc, epoch };
    }
    (link == end).then_some(frames)
}

/// Disks that do not have that frame.
fn lacking(disks: &[u16], have: &[(u16, u32)], crc: u32) -> Vec<u16> {
    disks.iter().copied().filter(|disk| !have.contains(&(*disk, crc))).collect()
}

/// What the copies hold for the next frame.
struct Next {
    best: Option<Best>,
    /// Which disk has which frame there: its checksum.
    have: Vec<(u16, u32)>,
    /// Whether any copy could be read.
    was_read: bool,
}

/// The next frame, from the copy that knows of the newest epoch.
struct Best {
    bytes: Vec<u8>,
    kind: FrameKind,
    span: u64,
    crc: u32,
    epoch: u32,
    body: Range<usize>,
}

/// What was read of a copy: from that virtual position on.
#[derive(Debug)]
struct Stretch {
    from: u64,
    bytes: Vec<u8>,
}

impl Stretch {
    /// The bytes from that position on, if it has any.
    fn at(&self, position: u64) -> Option<&[u8]> {
        let at = position.checked_sub(self.from)?;
        self.bytes.get(to_usize(at)..)
    }
}

/// The ring as each copy has it, as far as it was read.
#[derive(Debug)]
struct Ahead {
    geometry: Geometry,
    disks: Vec<u16>,
    copies: Vec<Stretch>,
    /// Virtual position up to which all copies were read.
    end: u64,
    /// Bytes of the next stretch.
    step: u64,
    /// Where the ring bites its tail.
    limit: u64,
}

impl Ahead {
    fn new(geometry: Geometry, disks: &[u16], position: u64) -> Self {
        let copies = disks.iter().map(|_| Stretch { from: position, bytes: Vec::new() }).collect();
        let limit = position + geometry.ring_bytes();
        Self { geometry, disks: disks.to_vec(), copies, end: position, step: FIRST, limit }
    }

    /// Looks for the frame that follows `link` on all copies: of several that would, `newest` says that the one of the newest
    /// epoch is taken, else the first.
    fn next<Q: FlushQueue>(
        &mut self,
        io: &mut Io<Q>,
        seed: u32,
        link: &Link,
        newest: bool,
    ) -> Next {
        let ring = self.geometry.ring_bytes();
        self.reach(io, link.position);
        let mut next = Next { best: None, have: Vec::new(), was_read: false };
        for (nth, &disk) in self.disks.iter().enumerate() {
            let direct;
            let bytes = match self.frame(nth, link.position) {
                Some(bytes) => bytes,
                None => {
                    let Some(bytes) = self.read_frame(io, disk, link.position) else { continue };
                    next.was_read = true;
                    let Some(bytes) = bytes else { continue };
                    direct = bytes;
                    &direct
                }
            };
            next.was_read = true;
            let Some(frame) = frame::decode(bytes, seed, link, ring) else { continue };
            next.have.push((disk, frame.crc));
            let Frame { kind, span, crc, epoch, body } = frame;
            if next.best.as_ref().is_none_or(|other| newest && epoch > other.epoch) {
                let body = HEADER..HEADER + body.len();
                let bytes = bytes[..body.end.next_multiple_of(BLOCK_LEN)].to_vec();
                next.best = Some(Best { bytes, kind, span, crc, epoch, body });
            }
        }
        next
    }

    /// Reads on until every copy that can be read has the whole of what it holds for the frame at `position`.
    fn reach<Q: FlushQueue>(&mut self, io: &mut Io<Q>, position: u64) {
        self.end = self.end.max(position);
        loop {
            let left = self.left(position);
            let claimed = |copy: &Stretch| frame::claimed(copy.at(position)?, left);
            let needed = self.copies.iter().filter_map(claimed).max().unwrap_or(BLOCK_BYTES);
            if self.end >= (position + needed).min(self.limit) {
                return;
            }
            self.read_on(io, position);
        }
    }

    /// Bytes that a frame at `position` can have.
    fn left(&self, position: u64) -> u64 {
        let ring = self.geometry.ring_bytes();
        (ring - position % ring).min(FRAME_MAX)
    }

    /// Reads the next stretch of every copy, all at a time; what lies before `position` is of no use any more.
    fn read_on<Q: FlushQueue>(&mut self, io: &mut Io<Q>, position: u64) {
        let ring = self.geometry.ring_bytes();
        let len = self.step.min(ring - self.end % ring).min(self.limit - self.end);
        self.step = (2 * self.step).min(MOST);
        let offset = self.geometry.ring(self.end);
        let mut work = Vec::new();
        for (copy, &disk) in self.copies.iter_mut().zip(&self.disks) {
            let used = to_usize(position.saturating_sub(copy.from)).min(copy.bytes.len());
            copy.bytes.drain(..used);
            copy.from = self.end - to_u64(copy.bytes.len());
            let had = copy.bytes.len();
            copy.bytes.resize(had + to_usize(len), 0);
            work.push(Work::Read { disk, offset, into: &mut copy.bytes[had..] });
        }
        let failed = io.wait_for(work);
        self.end += len;
        for (copy, disk) in self.copies.iter_mut().zip(&self.disks) {
            if failed.contains(disk) {
                // One block of it may be all that cannot be read: frame by frame then.
                *copy = Stretch { from: self.end, bytes: Vec::new() };
            }
        }
    }

    /// Whether the frame at `link`, which no copy has whole, was durable: a later one on some copy says so. It is looked for as far as most
    /// frames are long. `None` where no disk could be asked.
    fn was_durable<Q: FlushQueue>(&self, io: &mut Io<Q>, seed: u32, link: &Link) -> Option<bool> {
        let ring = self.geometry.ring_bytes();
        let first = link.position + BLOCK_BYTES;
        let end = (first + MOST).min(self.limit);
        let mut was_asked = first >= end;
        for &disk in &self.disks {
            let mut at = first;
            was_asked |= !io.owes(disk);
            while at < end && !io.owes(disk) {
                let len = (end - at).min(ring - at % ring);
                let mut bytes = vec![0; to_usize(len)];
                if io.read(disk, self.geometry.ring(at), &mut bytes) {
                    for from in (0..bytes.len()).step_by(BLOCK_LEN) {
                        let behind = at + to_u64(from) - link.position;
                        let later = frame::later(&bytes[from..], seed, link, behind);
                        let proven = later.and_then(|later| later.proven);
                        if proven.is_some_and(|proven| proven >= link.lsn)
                            && !active(Mutation::RottenEnd)
                        {
                            return Some(true);
                        }
                    }
                }
                at += len;
            }
        }
        was_asked.then_some(false)
    }

    /// Whether the frame at `link`, which no copy gives, may have been on its way, with all that lies behind it up to `limit`: a round is durable
    /// before the next one commits, so what has the commits of several rounds behind it was durable. A copy must give what lies
    /// there but for what is as long as a frame can be, or it is the disk that fails.
    fn ends_at<Q: FlushQueue>(&self, io: &mut Io<Q>, seed: u32, link: &Link, limit: u64) -> bool {
        let ring = self.geometry.ring_bytes();
        let is_commit = |record| matches!(record, Record::CrcCommit { .. });
        let mut gives = false;
        for &disk in &self.disks {
            let (mut unread, mut read, mut commits) = (0, false, 0);
            let mut at = link.position;
            while at < limit {
                let len = MOST.min(limit - at).min(ring - at % ring);
                let mut bytes = vec![0; to_usize(len)];
                let good = !io.owes(disk) && io.read(disk, self.geometry.ring(at), &mut bytes);
                for (position, block) in (at..).step_by(BLOCK_LEN).zip(bytes.chunks_mut(BLOCK_LEN))
                {
                    if io.owes(disk) {
                        return false;
                    }
                    // One block of it may be all that cannot be read.
                    if !good && !io.read(disk, self.geometry.ring(position), block) {
                        unread += BLOCK_BYTES;
                        continue;
                    }
                    read = true;
                    let behind = position - link.position;
                    let frame = match frame::claimed(block, self.left(position)) {
                        Some(_) if behind > 0 => self.read_frame(io, disk, position).flatten(),
                        _ => None,
                    };
                    let later =
                        frame.as_deref().and_then(|bytes| frame::later(bytes, seed, link, behind));
                    commits += u32::from(later.is_some_and(|later| later.records().any(is_commit)));
                }
                if commits > COMMITS_MOST {
                    return false;
                }
                at += len;
            }
            gives |= read && unread <= FRAME_MAX;
        }
        gives
    }

    /// What a copy holds for the frame at `position`; `None` if it must be asked again.
    fn frame(&self, nth: usize, position: u64) -> Option<&[u8]> {
        let bytes = self.copies[nth].at(position)?;
        let block = bytes.get(..BLOCK_LEN)?;
        match frame::claimed(block, self.left(position)) {
            Some(claimed) => bytes.get(..to_usize(claimed)),
            None => Some(block),
        }
    }

    /// `None` when it cannot be read; and within, when there is no frame.
    fn read_frame<Q: FlushQueue>(
        &self,
        io: &mut Io<Q>,
        disk: u16,
        position: u64,
    ) -> Option<Option<Vec<u8>>> {
        // One that hangs would be waited for with every frame.
        if io.owes(disk) {
            return None;
        }
        let offset = self.geometry.ring(position);
        let mut bytes = vec![0; BLOCK_LEN];
        if !io.read(disk, offset, &mut bytes) {
            return None;
        }
        let Some(claimed) = frame::claimed(&bytes, self.left(position)) else { return Some(None) };
        if claimed > BLOCK_BYTES {
            bytes.resize(to_usize(claimed), 0);
            if !io.read(disk, offset + BLOCK_BYTES, &mut bytes[BLOCK_LEN..]) {
                return None;
            }
        }
        Some(Some(bytes))
    }
}
