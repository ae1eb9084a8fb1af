//! Rot in a frame of the journal on all copies that there are: what was durable behind it is not given up in silence (JRN-1).

use super::faults::{
    MIRROR, SIMPLE, done, fill, flush, images, rest, restart, shape, start, write,
};
use super::left_out::needs;
use super::live_rot::{TWO, flip, frames, write_each};
use super::oracle::Promise;
use super::run::{Run, queue};
use crate::mutation::Mutation;
use crate::{Engine, StartError};

/// A pool whose journal has a frame for each of some durable writes behind its last checkpoint.
fn written(of: (u32, u32, u8, u64)) -> Run {
    let mut run = start(of);
    fill(&mut run);
    run.engine.checkpoint();
    rest(&mut run, 1);
    write_each(&mut run, (0..8).map(|nth| nth * 16 + 7)).expect("all is well");
    run
}

/// The engine dies, and the frame that is so many before the newest one has rotted on all disks. The error of the start, if it is refused.
fn started_without(of: (u32, u32, u8, u64), back: usize) -> Result<Option<StartError>, String> {
    let mut run = written(of);
    let geometry = shape(of).geometry();
    for disk in 0..of.0 {
        let all = frames(&mut run, disk, &geometry);
        if let Some(at) = all.iter().rev().nth(back) {
            flip(&mut run, disk, at + 49);
        }
    }
    match restart(&mut run, of, &[]) {
        Ok(mut again) => again.read_all(Promise::Acknowledged, 0).map(|()| None),
        Err(error) => Ok(Some(error)),
    }
}

/// A frame that has others behind it which say that it was durable: the pool is refused, and says why.
#[test]
fn a_frame_that_has_rotted_on_all_copies_is_not_taken_for_the_journals_end() {
    for of in [SIMPLE, TWO, MIRROR] {
        needs(Mutation::RottenEnd, || {
            for back in 2..8 {
                let refused = started_without(of, back)?;
                if refused != Some(StartError::RottenJournal) {
                    return Err(format!("{of:?}, {back} before the newest: {refused:?}"));
                }
            }
            Ok(())
        });
    }
}

/// Whoever says so goes on without what was promised since: nobody else may, and it is told.
#[test]
fn a_word_goes_on_without_what_lies_behind_a_rotten_frame() {
    let mut run = written(SIMPLE);
    let of = shape(SIMPLE);
    let geometry = of.geometry();
    for disk in 0..SIMPLE.0 {
        let all = frames(&mut run, disk, &geometry);
        flip(&mut run, disk, all[all.len() - 5] + 49);
    }
    let images = images(&mut run, SIMPLE.0);
    let made = || queue(&of, images.clone(), 7, false);
    let clients = (1, 4096);
    let plain = Engine::start(made(), of.plan(), clients.0, clients.1, 8).err();
    assert_eq!(plain, Some(StartError::RottenJournal));
    let mut engine = Engine::start_to_unread_end(made(), of.plan(), clients, 8).expect("by word");
    let told: Vec<_> =
        std::iter::from_fn(|| engine.next_event()).map(|event| event.name()).collect();
    assert!(told.contains(&"metadata-damaged"), "{told:?}");
}

/// Where one copy has it, nothing is lost, and the others get it.
#[test]
fn a_frame_that_has_rotted_on_some_copies_is_read_from_another() {
    for back in 0..8 {
        let mut run = written(MIRROR);
        let geometry = shape(MIRROR).geometry();
        let all = frames(&mut run, 0, &geometry);
        flip(&mut run, 0, all[all.len() - 1 - back] + 49);
        let mut again = restart(&mut run, MIRROR, &[]).expect("others have it");
        again.read_all(Promise::Acknowledged, 0).expect("nothing is lost");
        done(&mut again, &[write(3), flush()]).expect("it goes on");
    }
}
