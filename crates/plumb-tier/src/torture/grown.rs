//! A virtual disk that is added makes the trees grow. Until a checkpoint has written their new index pages no copy of them is made.

use super::faults::{fill, images, oracle, rest};
use super::history::Shape;
use super::left_out::needs;
use super::oracle::Promise;
use super::run::{Run, new_pool, queue};
use super::unborne::Workload;
use crate::NewVirtualDisk;
use crate::mutation::Mutation;

/// One solid-state disk, which has the only copy of both logs, and two that rotate.
const SHAPE: Shape = Shape {
    disks: 3,
    rotating: 2,
    copies: 1,
    columns: 1,
    cache: 64 << 10,
    seed: 5,
    workload: Workload::Wide,
};

/// A start behind that finds the trees grown, in which the disk that everybody needs fails one flush: nothing can be committed, and the
/// other disks get copies of journal and trees. Then one more start.
fn fails_a_flush(nth: u64) -> Result<(), String> {
    let mut run =
        Run::start(&SHAPE, new_pool(&SHAPE), &[], oracle(), 1).expect("a new pool starts");
    fill(&mut run);
    let mut expected = run.witness.oracle.clone();
    expected.crash(Promise::Acknowledged);
    let more = NewVirtualDisk {
        name: "more".into(),
        copies: 1,
        columns: 1,
        interleave: 16 << 10,
        tier_bytes: [256 << 10, 4 << 20],
        cache_bytes: 64 << 10,
    };
    let mut left = run.engine.add_virtual_disk(&more).expect("there is room");
    let left = (0..SHAPE.disks).map(|disk| left.view(disk)).collect();
    let mut made = queue(&SHAPE, left, 2, false);
    made.faults_mut(0).flush_errors = vec![nth];
    let mut run = Run::start_on(&SHAPE, made, expected.clone(), 2)
        .map_err(|error| format!("flush {nth}: {error}"))?;
    run.sound = false;
    rest(&mut run, 70);
    let left = images(&mut run, SHAPE.disks);
    let mut run = Run::start(&SHAPE, left, &[], expected, 3)
        .map_err(|error| format!("behind flush {nth}: {error}"))?;
    run.sound = false;
    run.attach_returning();
    rest(&mut run, 4);
    run.read_all(Promise::Acknowledged, 0).map_err(|wrong| format!("behind flush {nth}: {wrong}"))
}

#[test]
fn trees_that_have_grown_are_copied_when_a_checkpoint_has_written_them() {
    needs(Mutation::GrownTreesCopied, || (0..12).try_for_each(fails_a_flush));
}
