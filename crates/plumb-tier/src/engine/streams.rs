//! Which writes are part of a sequential stream (6.1 rule 6).

/// Streams that are told apart.
const SLOTS: usize = 64;
/// After so many bytes of progress a stream is sequential.
const SEQUENTIAL: u64 = 512 << 10;
/// So far from its end a write still belongs to a stream.
const REORDERING: u64 = 64 << 10;

#[derive(Debug, Clone, Copy, Default)]
struct Stream {
    end: u64,
    progress: u64,
    used: u64,
}

/// The streams of a virtual disk.
#[derive(Debug, Default)]
pub(crate) struct Streams {
    slots: Vec<Stream>,
    clock: u64,
}

impl Streams {
    /// A write of `len` bytes at `offset`; whether it is part of a sequential stream.
    pub(crate) fn note(&mut self, offset: u64, len: u64) -> bool {
        self.clock += 1;
        let clock = self.clock;
        let near = |stream: &&mut Stream| offset.abs_diff(stream.end) <= REORDERING;
        if let Some(stream) = self.slots.iter_mut().find(near) {
            let end = offset + len;
            // Only what is new counts: writing the same place over and over is no stream.
            stream.progress += end.saturating_sub(stream.end);
            stream.end = stream.end.max(end);
            stream.used = clock;
            return stream.progress >= SEQUENTIAL;
        }
        let new = Stream { end: offset + len, progress: len, used: clock };
        if self.slots.len() < SLOTS {
            self.slots.push(new);
        } else if let Some(oldest) = self.slots.iter_mut().min_by_key(|stream| stream.used) {
            *oldest = new;
        }
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_told_from_random_writes() {
        let mut streams = Streams::default();
        let mut random = crate::random::Random::new(3);
        let mut seen = [None; 3];
        for nth in 0..200_u64 {
            for (stream, seen) in (0..).zip(&mut seen) {
                // Three streams at a time, requests in pairs out of order.
                let at = (stream << 30) + (nth ^ 1) * 8192;
                if streams.note(at, 8192) && seen.is_none() {
                    *seen = Some(nth);
                }
            }
            assert!(!streams.note((random.below(1 << 20) << 20) | 1 << 50, 4096), "random");
            assert!(!streams.note(1 << 60, 4096), "the same place over and over");
        }
        for seen in seen {
            assert!(seen.is_some_and(|nth| (62..=66).contains(&nth)), "{seen:?}");
        }
    }
}
