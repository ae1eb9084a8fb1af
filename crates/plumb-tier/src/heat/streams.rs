//! Which host I/Os are part of a sequential stream, found in constant time.
//!
//! Where an I/O ended is noted in a place that the next one may take. Once it was continued it is a stream, and has a place that only
//! other streams can take from it: random I/Os, however many come between two of the stream's, do not.

use plumb_units::convert::{low_u32, to_usize};

const MEBIBYTE: u64 = 1 << 20;
/// After so many bytes of progress a stream is sequential (6.1 rule 6).
const SEQUENTIAL: u32 = 512 << 10;
/// More progress than this is not counted: so long it takes until a stream that has ended is forgotten.
const MOST: u32 = 2 * SEQUENTIAL;
/// So far from its end an I/O still belongs to a stream.
const REORDERING: u64 = 64 << 10;
/// What an I/O elsewhere in the mebibyte of a stream takes from its progress. Random I/Os on a hot extent do continue one another now and
/// then, by as much as this; for each that does so there are seven that do not.
const ELSEWHERE: u32 = 64 << 10;
/// Places for ends of I/Os that were not continued yet, as a power of two.
const PLACES_BITS: u32 = 9;
/// Sets of streams, as a power of two.
const SETS_BITS: u32 = 6;
/// Streams in a set.
const WAYS: usize = 4;
/// No mebibyte has this number, and no I/O this end.
const NONE: u64 = u64::MAX;

/// A stream within a mebibyte: where it ends, from 1 to a mebibyte, and how far it came.
#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    end: u32,
    progress: u32,
}

/// Streams in mebibytes that hash alike, the last continued first. A mebibyte has one at most.
#[derive(Debug, Clone, Copy)]
struct Set {
    mebibytes: [u64; WAYS],
    streams: [Stream; WAYS],
}

impl Set {
    #[inline]
    fn way(&self, mebibyte: u64) -> Option<usize> {
        self.mebibytes.iter().position(|held| *held == mebibyte)
    }

    fn remove(&mut self, way: usize) {
        self.mebibytes[way] = NONE;
    }

    /// An I/O elsewhere in the mebibyte of a stream.
    fn takes_back(&mut self, way: usize) {
        let stream = &mut self.streams[way];
        stream.progress = stream.progress.saturating_sub(ELSEWHERE);
        if stream.progress == 0 {
            self.remove(way);
        }
    }

    /// Puts a stream first. That of the same mebibyte goes, or a free place, or else the one that was longest not continued.
    fn put_first(&mut self, mebibyte: u64, stream: Stream) {
        let free = || self.way(NONE).unwrap_or(WAYS - 1);
        let way = self.way(mebibyte).unwrap_or_else(free);
        self.mebibytes[..=way].rotate_right(1);
        self.streams[..=way].rotate_right(1);
        (self.mebibytes[0], self.streams[0]) = (mebibyte, stream);
    }
}

/// The streams of one queue: 256 at most, and 512 I/Os that may become one, in 8 KiB.
#[derive(Debug, Clone)]
pub(super) struct StreamFinder {
    ends: Box<[u64; 1 << PLACES_BITS]>,
    sets: Box<[Set; 1 << SETS_BITS]>,
}

impl StreamFinder {
    pub(super) fn new() -> Self {
        let set = Set { mebibytes: [NONE; WAYS], streams: [Stream::default(); WAYS] };
        Self { ends: Box::new([NONE; _]), sets: Box::new([set; _]) }
    }

    /// An I/O of `len` bytes at `offset`; whether it is part of a sequential stream. Of one that has come to the next mebibyte, it is not.
    #[inline]
    pub(super) fn note(&mut self, offset: u64, len: u64) -> bool {
        let (mebibyte, within) = (offset / MEBIBYTE, offset % MEBIBYTE);
        let (hash, end) = (hash(mebibyte), offset.saturating_add(len));
        // What it may continue ends in its own mebibyte, and so does it.
        let is_inside = within >= REORDERING && within.saturating_add(len) <= MEBIBYTE;
        let place = &mut self.ends[place(hash)];
        let is_new = is_inside
            && place.abs_diff(offset) > REORDERING
            && self.sets[set(hash)].way(mebibyte).is_none();
        if is_new {
            *place = end;
            return false;
        }
        self.note_near(offset, end)
    }

    /// The same where it may be near to something, or reaches into the next mebibyte.
    fn note_near(&mut self, offset: u64, end: u64) -> bool {
        let own = offset / MEBIBYTE;
        let first = own.saturating_sub(u64::from(offset % MEBIBYTE < REORDERING));
        let (mut begun, mut elsewhere) = (None, None);
        for mebibyte in first..=own {
            let hash = hash(mebibyte);
            let nth = set(hash);
            let set = &mut self.sets[nth];
            if let Some(way) = set.way(mebibyte) {
                let stream = &mut set.streams[way];
                let before = mebibyte * MEBIBYTE + u64::from(stream.end);
                if before.abs_diff(offset) <= REORDERING {
                    let progress = stream.progress;
                    set.remove(way);
                    return self.continued(before, end, progress);
                }
                elsewhere = Some((nth, way)).filter(|_| mebibyte == own);
            }
            let at = place(hash);
            if self.ends[at].abs_diff(offset) <= REORDERING {
                begun = Some(at);
            }
        }
        match (elsewhere, begun) {
            (Some((nth, way)), _) => self.sets[nth].takes_back(way),
            (None, Some(at)) => {
                let before = self.ends[at];
                // Only what is new counts: the same place over and over is no stream.
                if end > before {
                    self.ends[at] = NONE;
                    // The first is taken to have been as long.
                    return self.continued(
                        before,
                        end,
                        low_u32((end - offset).min(u64::from(MOST))),
                    );
                }
            }
            (None, None) => self.ends[place(hash(end.saturating_sub(1) / MEBIBYTE))] = end,
        }
        false
    }

    /// A stream that had ended `before` and was so far has come to `end`.
    fn continued(&mut self, before: u64, end: u64, progress: u32) -> bool {
        let advance = low_u32(end.saturating_sub(before).min(u64::from(MOST)));
        let end = end.max(before);
        let mebibyte = end.saturating_sub(1) / MEBIBYTE;
        let progress = progress.saturating_add(advance).min(MOST);
        let stream = Stream { end: low_u32(end - mebibyte * MEBIBYTE), progress };
        self.sets[set(hash(mebibyte))].put_first(mebibyte, stream);
        progress >= SEQUENTIAL
    }
}

/// Its upper bits say where a mebibyte's places are: streams that are a power of two apart are not to share one.
#[inline]
fn hash(mebibyte: u64) -> u64 {
    const ODD: u64 = 0x9e37_79b9_7f4a_7c15;
    let mixed = mebibyte.wrapping_mul(ODD);
    (mixed ^ mixed >> 29).wrapping_mul(ODD)
}

#[inline]
fn place(hash: u64) -> usize {
    to_usize(hash >> (u64::BITS - PLACES_BITS))
}

#[inline]
fn set(hash: u64) -> usize {
    to_usize(hash >> (u64::BITS - SETS_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;

    #[test]
    fn streams_are_told_from_random_ios() {
        let mut finder = StreamFinder::new();
        let mut random = Random::new(3);
        let (mut seen, mut mistaken) = ([0_u64; 3], 0_u64);
        for nth in 0..4000_u64 {
            for (stream, seen) in (0..).zip(&mut seen) {
                // Three streams at a time, I/Os in pairs out of order.
                let at = stream * ((5007 << 20) + (1 << 17)) + (nth ^ 1) * 8192;
                *seen += u64::from(finder.note(at, 8192));
            }
            let at = (1 << 45) + random.below(1 << 30) * 4096;
            mistaken += u64::from(finder.note(at, 4096));
            assert!(!finder.note(1 << 60, 4096), "the same place over and over");
        }
        assert!(seen.iter().all(|seen| *seen >= 3930), "{seen:?} of 4000");
        assert_eq!(mistaken, 0);
    }

    const BLOCK: u64 = 8192;
    /// Of the stream that is looked at.
    const READS: u64 = 20_000;

    /// What share of the I/Os of a stream of 8 KiB is recognised, and what share of the random ones of `len` bytes, of which there are so many
    /// between two of the stream's, is taken for parts of one. All go to the first so many mebibytes.
    fn shares(random_ios: u64, mebibytes: u64, len: u64) -> (f64, f64) {
        let (mut finder, mut random) = (StreamFinder::new(), Random::new(random_ios));
        let (mut seen, mut mistaken) = (0, 0_u64);
        let bytes = mebibytes * MEBIBYTE;
        for nth in 0..READS {
            seen += u64::from(finder.note(nth * BLOCK % bytes, BLOCK));
            for _ in 0..random_ios {
                let at = random.below(bytes / len) * len;
                mistaken += u64::from(finder.note(at, len));
            }
        }
        let reads = READS as f64;
        (seen as f64 / reads, mistaken as f64 / (reads * random_ios as f64))
    }

    /// When places were shared with random I/Os, 86 % of it were recognised with one between two of its I/Os, half with 6, and a tenth with 20.
    #[test]
    fn a_stream_is_recognised_however_many_random_ios_come_between() {
        for random_ios in [1, 6, 20, 300] {
            for len in [4096, BLOCK, 65_536] {
                let (seen, mistaken) = shares(random_ios, 20_000, len);
                let what = format!("{random_ios} of {len}: {seen} and {mistaken}");
                println!("{what}");
                assert!(seen > 0.97 && mistaken < 1e-4, "{what}");
            }
        }
        // Small spaces: some of the random I/Os are where the stream is.
        for random_ios in [1, 6, 20] {
            let (seen, mistaken) = shares(random_ios, 500, BLOCK);
            assert!(seen > 0.97 && mistaken < 1e-3, "{random_ios}: {seen} and {mistaken}");
        }
    }

    #[test]
    fn random_ios_on_few_extents_are_no_stream() {
        for len in [512, 4096, BLOCK, 32_768, 65_536] {
            for mebibytes in [1, 2, 50, 1000] {
                let (mut finder, mut random) = (StreamFinder::new(), Random::new(len));
                let ios = 200_000_u32;
                let at = |random: &mut Random| random.below(mebibytes * MEBIBYTE / len) * len;
                let mistaken: u32 =
                    (0..ios).map(|_| u32::from(finder.note(at(&mut random), len))).sum();
                assert!(mistaken <= ios / 1000, "{len} in {mebibytes} MiB: {mistaken} of {ios}");
            }
        }
    }

    /// 64 of them (6.1 rule 6), a power of two apart.
    #[test]
    fn many_streams_at_a_time_are_told_apart() {
        let share = |streams: u64, apart: u64| {
            let (mut finder, mut random) = (StreamFinder::new(), Random::new(streams));
            let mut seen = 0;
            for nth in 0..1000 {
                for stream in 0..streams {
                    seen += u64::from(finder.note(stream * apart + nth * BLOCK, BLOCK));
                    finder.note(random.below(1 << 30) * BLOCK, BLOCK);
                }
            }
            seen as f64 / (1000 * streams) as f64
        };
        for apart in [24, 30, 36, 44] {
            let share = share(64, 1 << apart);
            println!("64 streams 2^{apart} apart: {share}");
            assert!(share > 0.85, "{share}");
        }
    }

    #[test]
    fn a_stream_alone_is_seen_after_512_kib() {
        let mut finder = StreamFinder::new();
        let first = (0..1000_u64).find(|nth| finder.note((9 << 30) + nth * 4096, 4096));
        assert_eq!(first, Some(127));
    }

    /// Where a stream that has ended had come to, another one begins; and where one goes on, another had ended.
    #[test]
    fn a_stream_that_ended_is_forgotten() {
        let mut finder = StreamFinder::new();
        let mut read = |from: u64, ios: u64| -> u64 {
            (0..ios).map(|nth| u64::from(finder.note(from + nth * BLOCK, BLOCK))).sum()
        };
        // It ends at 300 KiB of a mebibyte.
        assert_eq!(read(0, 1062), 999);
        let anew = read((8 << 20) + (600 << 10), 1000);
        assert!(anew >= 900, "{anew}");
        assert_eq!(read(7 << 20, 128), 65, "over what is left of it");
    }

    #[test]
    fn the_ends_of_the_address_space_are_harmless() {
        let mut finder = StreamFinder::new();
        for offset in [0, 1, u64::MAX, u64::MAX - 4096, u64::MAX - (1 << 20)] {
            for len in [0, 1, 4096, u64::MAX] {
                finder.note(offset, len);
            }
        }
    }
}
