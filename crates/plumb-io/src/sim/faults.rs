//! What goes wrong, and when.

use plumb_units::Nanos;

use super::random::Random;
use crate::Errno;

/// Something that goes wrong with one I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// Which I/O of the queue, counted from 0 in order of submission.
    pub at: u64,
    /// What goes wrong.
    pub kind: FaultKind,
}

/// What may go wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FaultKind {
    /// It fails, after its service time, and moves nothing.
    Error(Errno),
    /// It moves at most so many bytes.
    Short(u32),
    /// It takes so much longer.
    Delay(Nanos),
    /// A write is acknowledged and not kept; a read leaves the buffer as it is.
    Lost,
    /// All of it is acknowledged, and only so many bytes are moved.
    Cut(u32),
    /// It goes to this offset instead of its own.
    Astray(u64),
    /// A byte in every 512 of what it moves is changed.
    Garbled,
}

/// Faults that the seed strews: each I/O suffers them with a probability of one in so many; 0 is never.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RandomFaults {
    /// Odds of EIO.
    pub error_one_in: u64,
    /// Odds of half the bytes.
    pub short_one_in: u64,
}

/// The faults of one queue.
#[derive(Debug)]
pub(super) struct Faults {
    /// Ascending by I/O.
    planned: Vec<Fault>,
    next: usize,
    strewn: RandomFaults,
    random: Random,
}

/// What becomes of one I/O.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Fate {
    pub(super) error: Option<Errno>,
    pub(super) len_max: Option<u32>,
    pub(super) delay: Nanos,
    /// Bytes that are really moved of those acknowledged.
    pub(super) kept: Option<u32>,
    pub(super) astray: Option<u64>,
    pub(super) garbled: bool,
}

impl Faults {
    pub(super) fn new(mut planned: Vec<Fault>, strewn: RandomFaults, seed: u64) -> Self {
        planned.sort_by_key(|fault| fault.at);
        Self { planned, next: 0, strewn, random: Random::new(seed) }
    }

    /// The fate of the `nth` I/O, of `len` bytes; asked once for each, in order.
    pub(super) fn fate(&mut self, nth: u64, len: u32) -> Fate {
        let mut fate = Fate::default();
        if self.random.one_in(self.strewn.error_one_in) {
            fate.error = Some(rustix::io::Errno::IO.into());
        }
        if self.random.one_in(self.strewn.short_one_in) {
            fate.len_max = Some(len / 2);
        }
        while let Some(fault) = self.planned.get(self.next).filter(|fault| fault.at <= nth) {
            match fault.kind {
                FaultKind::Error(errno) => fate.error = Some(errno),
                FaultKind::Short(len) => fate.len_max = Some(len),
                FaultKind::Delay(delay) => fate.delay += delay,
                FaultKind::Lost => fate.kept = Some(0),
                FaultKind::Cut(len) => fate.kept = Some(len),
                FaultKind::Astray(offset) => fate.astray = Some(offset),
                FaultKind::Garbled => fate.garbled = true,
            }
            self.next += 1;
        }
        fate
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn planned_faults_meet_their_io_in_any_order() {
        let planned = vec![
            Fault { at: 3, kind: FaultKind::Delay(Nanos(5)) },
            Fault { at: 1, kind: FaultKind::Short(7) },
            Fault { at: 3, kind: FaultKind::Delay(Nanos(6)) },
            Fault { at: 3, kind: FaultKind::Error(Errno(5)) },
        ];
        let mut faults = Faults::new(planned, RandomFaults::default(), 0);
        let fates: Vec<_> = (0..5).map(|nth| faults.fate(nth, 100)).collect();
        assert_eq!(fates[1], Fate { len_max: Some(7), ..Fate::default() });
        assert_eq!(fates[3], Fate { error: Some(Errno(5)), delay: Nanos(11), ..Fate::default() });
        assert!([0, 2, 4].into_iter().all(|nth| fates[nth] == Fate::default()));
    }

    #[test]
    fn strewn_faults_come_at_their_odds_and_again_with_the_seed() {
        let strewn = RandomFaults { error_one_in: 10, short_one_in: 0 };
        let run = |seed| {
            let mut faults = Faults::new(vec![], strewn, seed);
            (0..10_000).map(|nth| faults.fate(nth, 8)).collect::<Vec<_>>()
        };
        let failed = run(1).iter().filter(|fate| fate.error.is_some()).count();
        assert!((850..1150).contains(&failed), "{failed} of 10000");
        assert!(run(1).iter().all(|fate| fate.len_max.is_none()));
        assert_eq!(run(1), run(1));
        assert_ne!(run(1), run(2));
    }
}
