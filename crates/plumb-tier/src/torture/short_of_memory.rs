//! A workload by name: there is memory for the checksums of a few extents only. Those of others are read from their pages when they
//! are needed, a leaf at a time, and dropped again; the virtual disk is so large that those that the history knows lie below
//! leaves of their own.

use super::history::Shape;
use super::unborne::Workload;
use super::wide;
use crate::random::Random;

/// A shape for a seed.
pub(super) fn shape(seed: u64) -> Shape {
    let mut random = Random::new(seed ^ 0x5407);
    Shape { workload: Workload::Short, ..wide::shape(random.next()) }
}

/// How many blocks have their checksums in memory, at most: those of one extent to four.
pub(super) fn sums_most(shape: &Shape) -> u64 {
    match shape.workload {
        Workload::Short => 16 << (shape.seed % 3),
        _ => u64::MAX,
    }
}

#[cfg(test)]
mod tests {
    use plumb_io::sim::power::DiskFaults;
    use plumb_units::convert::index;

    use super::super::faults::{done, fill, flush, heard, images, oracle, reads_well, rest, write};
    use super::super::kinds::Kind;
    use super::super::oracle::Promise;
    use super::super::run::{Run, new_pool};
    use super::super::states::{Broken, Tally, check};
    use super::super::unverified::spoil_sums;
    use super::super::{STEPS, history_seed, usual};
    use super::*;
    use crate::mutation::{Mutation, set};
    use crate::{Request, RequestKind};

    fn one(nth: u64, states: u64, tally: &mut Tally) -> Result<(), (Shape, Broken)> {
        let (shape, history, _) = usual(Kind::Short.mark(history_seed(0x5407, nth)), STEPS);
        check(&shape, &history, states, nth, tally).map_err(|broken| (shape, broken))
    }

    /// `PLUMB_SHORT=N` checks the first N histories.
    #[test]
    fn checksums_that_are_not_in_memory_are_those_on_the_disks() {
        let named = std::env::var("PLUMB_SHORT").ok().and_then(|text| text.parse().ok());
        let mut tally = Tally::default();
        for nth in 0..named.unwrap_or(16) {
            if let Err((shape, broken)) = one(nth, 24, &mut tally) {
                panic!("history {nth} of {shape:?}: {broken:?}");
            }
        }
        assert!(tally.states > 200, "{tally:?}");
    }

    /// Three disks with a copy of all metadata, and checksums of one extent in memory.
    fn small() -> Shape {
        Shape {
            disks: 3,
            rotating: 0,
            copies: 2,
            columns: 1,
            cache: 0,
            seed: 3,
            workload: Workload::Short,
        }
    }

    /// It was filled, and is started again; the leaves of checksums were spoilt on some of its disks before, or its index pages.
    fn started(spoilt: u32, level: u8) -> Run {
        let mut run = Run::start(&small(), new_pool(&small()), &[], oracle(), 1).expect("new");
        run.sound = false;
        fill(&mut run);
        for _ in 0..4 {
            rest(&mut run, 4);
            done(&mut run, &[flush()]).expect("all is well");
            run.engine.checkpoint();
        }
        rest(&mut run, 4);
        assert_eq!(run.engine.open_extents(), 0);
        let mut oracle = run.witness.oracle.clone();
        oracle.crash(Promise::Acknowledged);
        let mut left = images(&mut run, 3);
        for image in left.iter_mut().take(index(spoilt)) {
            assert!(spoil_sums(image, &small(), Some(level)) > 0);
        }
        let mut again = Run::start(&small(), left, &[], oracle, 2).expect("it starts");
        again.sound = false;
        again
    }

    fn reads(run: &mut Run, nth: u64) -> bool {
        let request =
            Request { kind: RequestKind::Read, vdisk: 0, offset: nth * 65_536, len: 4096 };
        run.ask_history(0, request).expect("it is answered")
    }

    #[test]
    fn a_copy_of_a_leaf_that_rots_is_read_from_another_and_healed() {
        let mut run = started(2, 0);
        reads_well(&mut run);
        assert!(heard(&mut run).contains(&"metadata-damaged"));
        assert_eq!(run.engine.unverified(), []);
        run.engine.scan();
        rest(&mut run, 60);
        assert!(!heard(&mut run).contains(&"metadata-damaged"), "all copies are whole");
    }

    /// Blocks below leaves that no disk has are unverified, and never taken for unwritten; so are those below an index page.
    #[test]
    fn what_lies_below_pages_that_no_disk_has_is_unverified() {
        for level in [0, 1] {
            let mut run = started(3, level);
            for nth in 0..8 {
                assert!(!reads(&mut run, nth), "level {level}, extent {nth}");
            }
            assert!(heard(&mut run).contains(&"unverified"), "level {level}");
            let bytes: u64 = run.engine.unverified().iter().map(|run| run.len).sum();
            assert_eq!(bytes, 8 * 65_536, "level {level}");
            run.engine.checkpoint();
            rest(&mut run, 8);
            let good: Vec<u64> = (0..8).filter(|nth| reads(&mut run, *nth)).collect();
            assert_eq!(good, [0; 0], "level {level}");
            run.engine.scan_accepting_unverified();
            while !run.engine.is_quiet() {
                rest(&mut run, 1);
            }
            let bad: Vec<u64> = (0..8).filter(|nth| !reads(&mut run, *nth)).collect();
            assert_eq!(bad, [0; 0], "level {level}");
        }
    }

    /// Disks that cannot be read for a while have them still: requests fail, and nothing is forgotten.
    #[test]
    fn checksums_that_cannot_be_read_for_a_while_are_not_lost() {
        let mut run = started(0, 0);
        run.let_any_fail((0..3).collect(), (0..3).collect());
        for disk in 0..3 {
            let pages = vec![(0, small().geometry().slab(0))];
            let faults = DiskFaults { unreadable: pages, ..DiskFaults::default() };
            *run.engine.queue_mut().faults_mut(disk) = faults;
        }
        assert!((0..8).any(|nth| !reads(&mut run, nth)));
        (0..3).for_each(|disk| run.engine.queue_mut().repair(disk));
        assert!((0..8).all(|nth| reads(&mut run, nth)));
        assert_eq!(run.engine.unverified(), []);
        done(&mut run, &[write(3), flush()]).expect("it goes on");
    }

    /// What no page has yet must stay, and a page of which a part changes keeps the rest.
    #[test]
    fn broken_rules_of_few_checksums_are_noticed() {
        for mutation in [Mutation::UnwrittenSumsDropped, Mutation::RestOfLeafForgotten] {
            set(Some(mutation));
            let caught = (0..60).find(|nth| one(*nth, 24, &mut Tally::default()).is_err());
            set(None);
            println!("{mutation:?}: history {caught:?}");
            assert!(caught.is_some(), "{mutation:?} is not noticed");
        }
    }
}
