//! Where journal and tree lie (section 4): on solid-state disks where there are enough of them, and never on one disk alone for long.

use super::faults::{FOUR, die, done, fill, flush, reads_well, rest, restart, start, state, write};
use super::history::Step;
use super::left_out::needs;
use super::run::Run;
use crate::format::{DiskState, MediaType};
use crate::metadata_disks::metadata_copies;
use crate::mutation::Mutation;

/// Which disks have a copy.
fn holders(run: &Run) -> Vec<usize> {
    let disks = run.engine.config().disks.iter().enumerate();
    disks.filter(|(_, disk)| disk.metadata).map(|(nth, _)| nth).collect()
}

#[test]
fn copies_are_as_many_as_solid_state_disks_and_no_fewer_than_of_data() {
    let wanted = |fast: usize, rotate: usize, copies: &[u8]| {
        let disks = [(MediaType::Ssd, fast), (MediaType::Hdd, rotate)];
        let all = disks.into_iter().flat_map(|(media, count)| vec![media; count]);
        metadata_copies(all, copies.iter().copied())
    };
    // Where there are SSDs it is these that count.
    assert_eq!([2, 3, 4, 9].map(|fast| wanted(fast, 9, &[2])), [2, 3, 3, 3]);
    // As many as of the data that has most, and two for simple virtual disks and none.
    assert_eq!([1, 2, 3].map(|copies| wanted(2, 4, &[1, copies])), [2, 2, 3]);
    assert_eq!([wanted(1, 4, &[]), wanted(1, 4, &[1]), wanted(1, 4, &[3])], [2, 2, 3]);
    // Only rotating disks.
    assert_eq!([2, 3, 7].map(|rotate| wanted(0, rotate, &[2])), [2, 3, 3]);
}

/// A disk more that fails before the first is given up must not take the last copy: another disk has one within a second. The SSD
/// that comes back takes it over.
#[test]
fn journal_and_tree_are_not_left_on_one_disk() {
    let mut run = start(FOUR);
    fill(&mut run);
    assert_eq!(holders(&run), [0, 1]);
    die(&mut run, 1);
    done(&mut run, &[write(3), flush()]).expect("one of two");
    rest(&mut run, 1);
    assert_eq!((holders(&run), state(&run, 1)), (vec![0, 2], DiskState::Missing));
    // What it has leads on alone.
    let mut again = restart(&mut run, FOUR, &[1]).expect("three of four");
    reads_well(&mut again);
    run.take(&[Step::Back { disk: 1 }]).expect("it works again");
    rest(&mut run, 4);
    assert_eq!((holders(&run), state(&run, 1)), (vec![0, 1], DiskState::Online));
    done(&mut run, &[write(4), flush()]).expect("all are here");
    let mut again = restart(&mut run, FOUR, &[0]).expect("three of four");
    reads_well(&mut again);
}

/// A disk is named when it has all that a start needs.
#[test]
fn a_copy_that_was_made_anew_leads_on_alone() {
    needs(Mutation::CopyNamedFirst, || {
        let mut run = start(FOUR);
        fill(&mut run);
        die(&mut run, 1);
        done(&mut run, &[write(3), flush()])?;
        rest(&mut run, 1);
        match holders(&run) {
            of if of == [0, 2] => {}
            of => return Err(format!("on {of:?}")),
        }
        let again = restart(&mut run, FOUR, &[0, 1]);
        again.map(|_| ()).map_err(|error| error.to_string())
    });
}

/// A disk that does not take a copy keeps nobody else from taking it.
#[test]
fn another_disk_takes_the_copy_that_one_does_not_take() {
    for flush_fails in [false, true] {
        let mut run = start(FOUR);
        fill(&mut run);
        let geometry = super::faults::shape(FOUR).geometry();
        let faults = run.engine.queue_mut().faults_mut(2);
        match flush_fails {
            true => faults.flush_errors = (0..4096).collect(),
            false => faults.unwritable = vec![(geometry.journal(), geometry.slab(0))],
        }
        die(&mut run, 1);
        done(&mut run, &[write(3)]).expect("one of two");
        rest(&mut run, 1);
        assert_eq!(holders(&run), [0, 3], "flush fails: {flush_fails}");
    }
}

/// Both SSDs may be lost, one after the other: whatever has all its copies on them is lost with them, and the rest is not.
#[test]
fn a_journal_outlives_one_solid_state_disk_after_the_other() {
    let mut run = start(FOUR);
    fill(&mut run);
    die(&mut run, 0);
    done(&mut run, &[write(3), flush()]).expect("one of two");
    rest(&mut run, 1);
    assert_eq!(holders(&run), [1, 2]);
    die(&mut run, 1);
    // What only they had is lost to whoever asks for it.
    let lost = done(&mut run, &[write(3), flush()]).expect_err("neither takes it");
    assert!(lost.contains("failed: Err(Errno(5))"), "{lost}");
    assert_eq!((run.engine.halted(), holders(&run)), (None, vec![2]));
    let mut again = restart(&mut run, FOUR, &[0, 1]).expect("those that vote are here");
    rest(&mut again, 1);
    assert_eq!(holders(&again), [2, 3]);
}

/// A disk that is removed hands its copy on where there would be too few, and not where there are enough.
#[test]
fn a_disk_that_leaves_hands_its_copy_on_where_copies_would_lack() {
    const FIVE: (u32, u32, u8, u64) = (5, 2, 2, 0);
    for (of, before, left) in [(FOUR, vec![0, 1], vec![0, 2]), (FIVE, vec![0, 1, 2], vec![0, 2])] {
        let mut run = start(of);
        fill(&mut run);
        assert_eq!(holders(&run), before);
        run.take(&[Step::Leave { disk: 1 }]).expect("it may go");
        rest(&mut run, 30);
        let gone = state(&run, 1) == DiskState::Retired;
        // Two SSDs are as many as the fast tier needs: there the disk stays until there is another one.
        assert_eq!(gone, of == FIVE, "{:?}", state(&run, 1));
        assert_eq!(holders(&run), if gone { left } else { before });
    }
}
