//! State files: what is known outlives the process, whatever becomes of it.

use std::fs::OpenOptions;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use super::super::state::StateError;
use super::super::*;
use super::{Dice, Load, check_all, nothing_found, one, opener, put, quick, with};
use crate::OpKind;
use crate::sim::SimOpener;

const SIZE: u64 = 256 << 10;
const BLOCK: u32 = 4096;

fn load(seed: u64) -> Load {
    Load { ops: 2_000, depth: 8, write_percent: 60, blocks_max: 4, seed }
}

/// A session on a disk: checks what is there, then puts `load` on it. Returns what was found.
fn session(opener: &SimOpener, state: &Path, block: u32, seed: u64, close: bool) -> Vec<Mismatch> {
    let verification = Verification::with_state(state).expect("a state file");
    let space = verification.space(Path::new("/sim0"), (SIZE, SIZE), block).expect("room");
    let spaces = [space];
    with(opener, &[SIZE], (DEPTH, BUFFER), |queue| {
        check_all(&verification, queue, &spaces, Pass::Before);
        let (on_mismatch, all) = (|| {}, spaces.to_vec());
        let size = (DEPTH, BUFFER);
        let mut verify =
            VerifyQueue::new(queue, &verification, all, size, Pass::Load, &on_mismatch);
        put(&mut verify, &spaces, load(seed));
    });
    if close {
        verification.close().expect("it can be written");
    }
    verification.findings().first()
}

fn state_file() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("state");
    (folder, path)
}

#[test]
fn what_an_earlier_session_wrote_is_expected() {
    let (_folder, state) = state_file();
    let opener = opener(quick());
    for seed in 0..6 {
        // Every other one ends without saying so. Blocks become finer, never coarser.
        let block = if seed < 3 { BLOCK } else { 2048 << (seed % 2) };
        assert_eq!(session(&opener, &state, block, seed, seed % 2 == 0), [], "{seed}");
    }
    let verification = Verification::with_state(&state).expect("a state file");
    assert!(verification.follows_a_cut());
    assert!(verification.knows(Path::new("/sim0")) && !verification.knows(Path::new("/sim1")));
    let space = verification.space(Path::new("/sim0"), (SIZE, SIZE), 8192).expect("room");
    assert_eq!(space.block(), 2048);
    assert_eq!(space.written_blocks() * 2048, SIZE, "all of it was written");
}

#[test]
fn a_disk_that_went_back_in_time_is_found_by_the_next_session() {
    let (_folder, state) = state_file();
    // The second disk stands for the first one, put back to before the second session.
    let (now, then) = (opener(quick()), opener(quick()));
    session(&now, &state, BLOCK, 1, true);
    std::fs::copy(&state, state.with_extension("old")).expect("a copy");
    session(&now, &state, BLOCK, 2, false);
    assert_eq!(session(&now, &state, BLOCK, 3, true), []);
    let found = session(&then, &state, BLOCK, 4, true);
    assert!(found.len() > 4, "{found:#?}");
    assert!(found.iter().all(|found| found.kind == Kind::Foreign && found.pass == Pass::Before));
    // A state file that went back in time is found as well: it knows nothing of what was issued since.
    let found = session(&now, &state.with_extension("old"), BLOCK, 5, true);
    assert!(found.iter().any(|found| found.kind == Kind::Foreign), "{found:#?}");
}

#[test]
fn no_generation_is_issued_twice() {
    let (_folder, state) = state_file();
    let mut last = 0;
    for close in [true, false, true, true] {
        let verification = Verification::with_state(&state).expect("a state file");
        let space = verification.space(Path::new("/sim0"), (SIZE, SIZE), BLOCK).expect("room");
        let mut tickets = Vec::new();
        space.begin_write(0, BLOCK, &mut tickets);
        assert!(tickets[0].generation > last, "{tickets:?} {last}");
        last = tickets[0].generation;
        // In flight, never acknowledged.
        if close {
            verification.close().expect("it can be written");
        }
    }
}

#[test]
fn only_what_is_acknowledged_is_claimed() {
    let (_folder, state) = state_file();
    let opener = opener(quick());
    with(&opener, &[SIZE], (1, BLOCK), |queue| {
        let verification = Verification::with_state(&state).expect("a state file");
        let space = verification.space(Path::new("/sim0"), (SIZE, SIZE), BLOCK).expect("room");
        let (on_mismatch, spaces) = (|| {}, vec![Arc::clone(&space)]);
        let mut verify =
            VerifyQueue::new(queue, &verification, spaces, (1, BLOCK), Pass::Load, &on_mismatch);
        one(&mut verify, OpKind::Write, 4096, BLOCK);
        // Cut off with a write in flight.
        space.begin_write(8192, BLOCK, &mut Vec::new());
    });
    let verification = Verification::with_state(&state).expect("a state file");
    let space = verification.space(Path::new("/sim0"), (SIZE, SIZE), BLOCK).expect("room");
    assert_eq!(space.next_written(0, 99), Some((1, 2)));
    assert_eq!(space.next_written(2, 99), None);
    with(&opener, &[SIZE], (DEPTH, BUFFER), |queue| {
        let checked = check_all(&verification, queue, &[space], Pass::Before);
        assert_eq!((checked.bytes, checked.of_bytes), (4096, 4096));
    });
    nothing_found(&verification);
}

#[test]
fn a_target_that_was_made_anew_is_expected_to_hold_nothing() {
    let (_folder, state) = state_file();
    session(&opener(quick()), &state, BLOCK, 1, true);
    let verification = Verification::with_state(&state).expect("a state file");
    let space = verification.space(Path::new("/sim0"), (SIZE, SIZE), BLOCK).expect("room");
    assert!(space.written_blocks() > 0);
    space.forget();
    assert_eq!(space.written_blocks(), 0);
    drop((space, verification));
    assert_eq!(session(&opener(quick()), &state, BLOCK, 2, true), []);
}

#[test]
fn a_state_file_has_one_user() {
    let (_folder, state) = state_file();
    let first = Verification::with_state(&state).expect("a state file");
    assert!(matches!(Verification::with_state(&state), Err(StateError::Busy { .. })));
    drop(first);
    assert!(Verification::with_state(&state).is_ok());
}

#[test]
fn a_shorter_target_is_refused() {
    let (_folder, state) = state_file();
    let verification = Verification::with_state(&state).expect("a state file");
    verification.space(Path::new("/sim0"), (SIZE, SIZE), BLOCK).expect("room");
    drop(verification);
    let verification = Verification::with_state(&state).expect("a state file");
    let shrunk = verification.space(Path::new("/sim0"), (SIZE / 2, SIZE / 2), BLOCK);
    assert!(matches!(shrunk, Err(StateError::Shrank { .. })));
    // A longer one is fine.
    let grown = verification.space(Path::new("/sim0"), (SIZE * 2, SIZE * 2), BLOCK).expect("room");
    assert_eq!(grown.size(), 2 * SIZE);
}

#[test]
fn the_other_copy_of_the_header_takes_over() {
    let (_folder, state) = state_file();
    let opener = opener(quick());
    session(&opener, &state, BLOCK, 1, true);
    let file = OpenOptions::new().write(true).open(&state).expect("the file");
    for copy in [0, 64 << 10] {
        let sound = std::fs::read(&state).expect("the file");
        file.write_all_at(&[0xff; 100], copy).expect("written");
        assert_eq!(session(&opener, &state, BLOCK, 2, true), [], "copy {copy}");
        drop(sound);
    }
    file.write_all_at(&[0xff; 100], 0).expect("written");
    file.write_all_at(&[0xff; 100], 64 << 10).expect("written");
    assert!(matches!(Verification::with_state(&state), Err(StateError::Damaged { .. })));
    std::fs::write(&state, "something else").expect("written");
    assert!(matches!(Verification::with_state(&state), Err(StateError::Damaged { .. })));
    assert_eq!(std::fs::read(&state).expect("it"), b"something else", "it was left alone");
}

/// Also after a run that was cut, whose lease and targets are in its own headers only.
#[test]
fn a_damaged_copy_of_the_header_costs_nothing_after_a_cut() {
    for copy in [0, 64 << 10] {
        let (_folder, state) = state_file();
        let opener = opener(quick());
        session(&opener, &state, BLOCK, 1, true);
        for seed in 2..5 {
            assert_eq!(session(&opener, &state, BLOCK, seed, false), [], "copy {copy}");
            let file = OpenOptions::new().write(true).open(&state).expect("the file");
            file.write_all_at(&[0x5a], copy + 40).expect("written");
        }
        let verification = Verification::with_state(&state).expect("the other copy is whole");
        let space = verification.space(Path::new("/sim0"), (SIZE, SIZE), BLOCK).expect("room");
        assert!(space.written_blocks() > 0, "it knows what was written");
    }
    // Of the first session on a target, too.
    let (_folder, state) = state_file();
    session(&opener(quick()), &state, BLOCK, 1, false);
    let file = OpenOptions::new().write(true).open(&state).expect("the file");
    file.write_all_at(&[0], 0).expect("written");
    let verification = Verification::with_state(&state).expect("the other copy is whole");
    let space = verification.space(Path::new("/sim0"), (SIZE, SIZE), BLOCK).expect("room");
    assert!(space.written_blocks() > 0, "it knows what was written");
}

#[test]
fn a_state_file_that_lost_its_end_or_claims_what_no_run_did_is_refused() {
    let (_folder, state) = state_file();
    session(&opener(quick()), &state, BLOCK, 1, false);
    let sound = std::fs::read(&state).expect("the file");
    std::fs::write(&state, &sound[..sound.len() - 1]).expect("written");
    assert!(matches!(Verification::with_state(&state), Err(StateError::Damaged { .. })));
    std::fs::write(&state, &sound).expect("written");
    let file = OpenOptions::new().write(true).open(&state).expect("the file");
    file.write_all_at(&[0x5a; 4], (128 << 10) + 16).expect("written");
    let verification = Verification::with_state(&state).expect("a state file");
    let space = verification.space(Path::new("/sim0"), (SIZE, SIZE), BLOCK);
    assert!(matches!(space, Err(StateError::Floors { .. })), "{space:?}");
}

#[test]
fn damaged_headers_never_panic() {
    let (_folder, state) = state_file();
    session(&opener(quick()), &state, BLOCK, 1, true);
    let sound = std::fs::read(&state).expect("the file");
    let mut dice = Dice(3);
    let header = &sound[..200];
    for _ in 0..20_000 {
        let mut bytes = header.to_vec();
        for _ in 0..=dice.below(3) {
            let at = usize::try_from(dice.below(200)).expect("small");
            bytes[at] = u8::try_from(dice.below(256)).expect("a byte");
        }
        let len = usize::try_from(dice.below(201)).expect("small");
        let _ = super::super::state::probe(&bytes[..len], dice.below(1 << 20));
        // With a sum that holds, what is behind it is looked at.
        let body = bytes[20..].to_vec();
        bytes[12..16].copy_from_slice(&180_u32.to_le_bytes());
        bytes[16..20].copy_from_slice(&crc32c::crc32c(&body).to_le_bytes());
        let _ = super::super::state::probe(&bytes, u64::MAX);
    }
    // A sound one is read.
    assert!(super::super::state::probe(&sound, sound.len().try_into().expect("64 bits")));
}
