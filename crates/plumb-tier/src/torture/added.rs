//! Disks that are added to a pool: nothing of what they held before is part of it.

use plumb_io::FileIndex;
use plumb_io::sim::power::Image;

use super::faults::{MIRROR, shape};
use super::run::{new_pool, queue, start_engine};
use crate::format::MediaType;
use crate::{Engine, NewDisk};

/// A part of the pool that went on alone may have left frames that this one's journal would lead to, however far behind its end.
#[test]
fn a_disk_that_is_added_brings_no_frame_of_its_past() {
    let shape = shape(MIRROR);
    let geometry = shape.geometry();
    let (from, to) = (geometry.journal(), geometry.tree());
    let mut past = Image::new(shape.disk_bytes());
    past.write(from, &vec![0xa5; usize::try_from(to - from).expect("small")]);
    let mut disks = new_pool(&shape);
    disks.push(past);
    let mut made = queue(&shape, disks, 2, false);
    // A sector that cannot be read is written like the others.
    made.faults_mut(3).unreadable = vec![(from + 70_000, from + 70_512)];
    let engine: Engine<_> = start_engine(&shape, made, 2).expect("the pool starts");
    let new = NewDisk { media: MediaType::Ssd, bytes: shape.disk_bytes(), name: "new".into() };
    let mut made = engine.add_disk(FileIndex(3), &new).expect("it is added");
    let mut journal = vec![1; usize::try_from(to - from).expect("small")];
    made.view(3).read(from, &mut journal);
    let left = journal.chunks(4096).filter(|block| block.contains(&0xa5)).count();
    assert_eq!(left, 0, "blocks of its past, of {}", journal.len() / 4096);
}
