//! Each fault on a simulated disk, found with its kind and place.

use super::super::*;
use super::{check_all, nothing_found, one, opener, quick, with};
use crate::OpKind;
use crate::sim::{DiskSpec, Fault, FaultKind};
use std::path::Path;

use OpKind::{Read, Write};

const BLOCK: u32 = 4096;
const SIZE: u64 = 64 << 10;

/// Does `ops` one by one on a disk with `faults`, reads all of it back, and compares what was found with
/// (kind, offset, pass).
#[track_caller]
fn check_found(ops: &[(OpKind, u64, u32)], faults: Vec<Fault>, want: &[(Kind, u64, Pass)]) {
    let opener = opener(DiskSpec { faults, ..quick() });
    let verification = Verification::new();
    let space = verification.space(Path::new("sim0"), (SIZE, SIZE), BLOCK).expect("in memory");
    let spaces = [space];
    with(&opener, &[SIZE], (DEPTH, BUFFER), |queue| {
        let on_mismatch = || {};
        let spaces = spaces.to_vec();
        let size = (DEPTH, BUFFER);
        let mut verify =
            VerifyQueue::new(&mut *queue, &verification, spaces, size, Pass::Load, &on_mismatch);
        for (kind, offset, len) in ops {
            one(&mut verify, *kind, *offset, *len);
        }
    });
    // A queue of its own has faults of its own: I/Os are counted anew. So it gets none.
    let first = verification.findings().first().len();
    let plain = with(&opener, &[SIZE], (DEPTH, BUFFER), |queue| {
        check_all(&verification, queue, &spaces, Pass::After)
    });
    assert!(plain.complete);
    let found: Vec<_> = verification
        .findings()
        .first()
        .iter()
        .map(|found| (found.kind, found.offset, found.pass))
        .collect();
    assert_eq!(found, want, "{first} in the load");
    for kind in Kind::ALL {
        let wanted = want.iter().any(|(wanted, ..)| *wanted == kind);
        assert_eq!(spaces[0].mismatches(kind) > 0, wanted, "{kind:?}");
    }
}

/// A fault of the I/O `at`.
fn fault(at: u64, kind: FaultKind) -> Vec<Fault> {
    // The queue of the check meets the same faults: its first reads are past them.
    vec![Fault { at, kind }]
}

#[test]
fn a_lost_write_is_stale() {
    let ops = [(Write, 0, 4096), (Write, 8192, 4096), (Write, 8192, 4096), (Read, 8192, 4096)];
    check_found(&ops, fault(2, FaultKind::Lost), &[(Kind::Stale, 8192, Pass::Load)]);
    // Not read by the load: the check finds it.
    check_found(&ops[..3], fault(2, FaultKind::Lost), &[(Kind::Stale, 8192, Pass::After)]);
    // A lost first write leaves what was there before.
    check_found(&ops[..3], fault(0, FaultKind::Lost), &[(Kind::Foreign, 0, Pass::After)]);
}

#[test]
fn a_write_that_went_astray_is_misplaced_there_and_stale_here() {
    let ops = [
        (Write, 0, 4096),
        (Write, 8192, 4096),
        (Write, 0, 4096),
        (Read, 0, 4096),
        (Read, 8192, 4096),
    ];
    check_found(
        &ops,
        fault(2, FaultKind::Astray(8192)),
        &[(Kind::Stale, 0, Pass::Load), (Kind::Misplaced, 8192, Pass::Load)],
    );
    // Where nothing was written it is seen as well.
    let ops = [(Write, 0, 4096), (Write, 0, 4096), (Read, 12_288, 4096)];
    check_found(
        &ops,
        fault(1, FaultKind::Astray(12_288)),
        &[(Kind::Misplaced, 12_288, Pass::Load), (Kind::Stale, 0, Pass::After)],
    );
}

#[test]
fn a_read_that_went_astray_is_misplaced() {
    let ops = [(Write, 0, 8192), (Read, 0, 4096), (Read, 4096, 4096)];
    check_found(&ops, fault(2, FaultKind::Astray(0)), &[(Kind::Misplaced, 4096, Pass::Load)]);
}

#[test]
fn a_cut_write_is_torn_where_it_was_cut() {
    // Between sectors, on top of an older block.
    let twice = [(Write, 4096, 4096), (Write, 4096, 4096), (Read, 4096, 4096)];
    check_found(&twice, fault(1, FaultKind::Cut(1024)), &[(Kind::Torn, 5120, Pass::Load)]);
    // Within a sector.
    check_found(&twice, fault(1, FaultKind::Cut(1300)), &[(Kind::Torn, 5120, Pass::Load)]);
    // Over several blocks: the ones that kept their old content are the rest of a cut write.
    let large = [(Write, 0, 16_384), (Write, 0, 16_384), (Read, 0, 16_384)];
    check_found(
        &large,
        fault(1, FaultKind::Cut(8192)),
        &[(Kind::Torn, 8192, Pass::Load), (Kind::Torn, 12_288, Pass::Load)],
    );
}

#[test]
fn a_lost_small_write_is_stale_though_an_older_large_one_lies_beside_it() {
    let ops = [(Write, 0, 16_384), (Write, 4096, 4096), (Write, 4096, 4096), (Read, 0, 16_384)];
    check_found(&ops, fault(2, FaultKind::Lost), &[(Kind::Stale, 4096, Pass::Load)]);
    check_found(&ops, fault(1, FaultKind::Lost), &[]);
}

#[test]
fn changed_bytes_are_foreign_or_torn() {
    let ops = [(Write, 0, 4096), (Write, 4096, 4096), (Read, 4096, 4096)];
    check_found(&ops, fault(1, FaultKind::Garbled), &[(Kind::Foreign, 4096, Pass::Load)]);
}

#[test]
fn the_content_of_another_history_is_foreign() {
    let opener = opener(quick());
    let write = |verification: &Verification, offset| {
        let space = verification.space(Path::new("sim0"), (SIZE, SIZE), BLOCK).expect("in memory");
        with(&opener, &[SIZE], (1, BLOCK), |queue| {
            let (on_mismatch, spaces) = (|| {}, vec![Arc::clone(&space)]);
            let size = (1, BLOCK);
            let mut verify =
                VerifyQueue::new(queue, verification, spaces, size, Pass::Load, &on_mismatch);
            one(&mut verify, Write, offset, BLOCK);
        });
        space
    };
    let (ours, theirs) = (Verification::new(), Verification::new());
    let spaces = [write(&ours, 8192)];
    nothing_found(&ours);
    write(&theirs, 8192);
    with(&opener, &[SIZE], (DEPTH, BUFFER), |queue| {
        check_all(&ours, queue, &spaces, Pass::After);
    });
    let found = ours.findings().first();
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].kind, found[0].offset), (Kind::Foreign, 8192));
    assert_eq!(found[0].found, Content::OtherHistory(theirs.history()));
    let text = found[0].to_string();
    let start =
        "'sim0' at 8192: foreign: expected generation 1 or later, found a sector of another";
    assert!(text.starts_with(start), "{text}");
}

#[test]
fn failed_and_short_writes_leave_old_or_new() {
    let eio = crate::Errno(5);
    for kind in [FaultKind::Error(eio), FaultKind::Short(1024)] {
        let ops = [(Write, 0, 4096), (Write, 0, 4096), (Read, 0, 4096)];
        check_found(&ops, fault(1, kind), &[]);
        // A later write settles it.
        let ops = [(Write, 0, 4096), (Write, 0, 4096), (Write, 0, 4096), (Read, 0, 4096)];
        let both = vec![Fault { at: 1, kind }, Fault { at: 2, kind: FaultKind::Lost }];
        check_found(&ops, both, &[(Kind::Stale, 0, Pass::Load)]);
    }
}

#[test]
fn what_cannot_be_read_back_is_counted() {
    let faults = vec![
        Fault { at: 4, kind: FaultKind::Error(crate::Errno(5)) },
        Fault { at: 5, kind: FaultKind::Error(crate::Errno(5)) },
    ];
    let opener = opener(DiskSpec { faults, ..quick() });
    let verification = Verification::new();
    let space = verification.space(Path::new("sim0"), (SIZE, SIZE), BLOCK).expect("in memory");
    with(&opener, &[SIZE], (DEPTH, BUFFER), |queue| {
        let (on_mismatch, spaces) = (|| {}, vec![Arc::clone(&space)]);
        let size = (DEPTH, BUFFER);
        let mut verify =
            VerifyQueue::new(&mut *queue, &verification, spaces, size, Pass::Load, &on_mismatch);
        for block in [0, 1, 2, 8] {
            one(&mut verify, Write, block * 4096, BLOCK);
        }
        let checked = check_all(&verification, queue, &[Arc::clone(&space)], Pass::After);
        // Two reads fail: the large one is done again in pieces, the small one is given up.
        assert_eq!((checked.bytes, checked.of_bytes), (3 * 4096, 4 * 4096), "{checked:?}");
        let bad = Unreadable { offset: 8 * 4096, errno: Some(crate::Errno(5)) };
        assert_eq!((checked.unreadable_bytes, checked.unreadable), (4096, Some(bad)));
    });
    let shorter = with(&opener, &[8192 + 1024], (DEPTH, BUFFER), |queue| {
        check_all(&verification, queue, &[Arc::clone(&space)], Pass::After)
    });
    assert_eq!(shorter.bytes + shorter.unreadable_bytes, shorter.of_bytes);
    nothing_found(&verification);
}
