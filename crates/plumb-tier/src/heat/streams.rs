//! Which host I/Os are part of a sequential stream, found in constant time.

use plumb_units::convert::to_usize;

/// Places, each for a stream that is in the mebibyte that hashes to it.
const PLACES: u64 = 512;
/// After so many bytes of progress a stream is sequential (6.1 rule 6).
const SEQUENTIAL: u64 = 512 << 10;
/// So far from its end an I/O still belongs to a stream.
const REORDERING: u64 = 64 << 10;

/// A stream's end and how far it came.
#[derive(Debug, Clone, Copy)]
struct Stream {
    end: u64,
    progress: u64,
}

/// The streams of one queue. An I/O looks at two places: its own mebibyte's and the one before.
#[derive(Debug, Clone)]
pub(super) struct StreamFinder {
    places: Vec<Stream>,
}

impl StreamFinder {
    pub(super) fn new() -> Self {
        let none = Stream { end: u64::MAX, progress: 0 };
        Self { places: vec![none; to_usize(PLACES)] }
    }

    fn place(offset: u64) -> usize {
        to_usize((offset >> 20) % PLACES)
    }

    /// An I/O of `len` bytes at `offset`; whether it is part of a sequential stream.
    #[inline]
    pub(super) fn note(&mut self, offset: u64, len: u64) -> bool {
        let near = |stream: &Stream| offset.abs_diff(stream.end) <= REORDERING;
        let own = self.places[Self::place(offset)];
        let found = match near(&own) {
            true => Some(own),
            false => Some(self.places[Self::place(offset.saturating_sub(1 << 20))]).filter(near),
        };
        let end = offset.saturating_add(len);
        let stream = match found {
            // Only what is new counts: the same place over and over is no stream.
            Some(stream) => Stream {
                end: stream.end.max(end),
                progress: stream.progress.saturating_add(end.saturating_sub(stream.end)),
            },
            None => Stream { end, progress: len },
        };
        self.places[Self::place(stream.end.saturating_sub(1))] = stream;
        stream.progress >= SEQUENTIAL
    }
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
        // Places are shared: now and then a random I/O takes a stream's, which begins anew.
        for seen in seen {
            assert!(seen >= 3000, "{seen} of 4000");
        }
        assert!(mistaken <= 40, "{mistaken}");
    }

    #[test]
    fn a_stream_alone_is_seen_after_512_kib() {
        let mut finder = StreamFinder::new();
        let first = (0..1000_u64).find(|nth| finder.note((9 << 30) + nth * 4096, 4096));
        assert_eq!(first, Some(127));
    }

    #[test]
    fn the_ends_of_the_address_space_are_harmless() {
        let mut finder = StreamFinder::new();
        for offset in [0, 1, u64::MAX, u64::MAX - 4096] {
            for len in [0, 1, 4096, u64::MAX] {
                finder.note(offset, len);
            }
        }
    }
}
