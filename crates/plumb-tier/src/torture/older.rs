//! Disks that are put back as they had been before (LAY-8, section 18), as one of the things that happen to a state. All
//! is drawn apart, so that states without are what they were.

use plumb_io::sim::power::Image;
use plumb_units::Nanos;
use plumb_units::convert::{index, to_u64, to_usize};

use super::history::{Shape, Step, sectors};
use super::run::Run;
use super::states::Crash;
use crate::RequestKind;
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_LEN, Geometry};
use crate::random::Random;

/// What one disk holds after a crash, to be put back in its place after the space has gone on.
pub(super) fn keeps_an_image(
    shape: &Shape,
    healthy: bool,
    crash: Crash,
    images: &[Image],
) -> Option<(usize, Image)> {
    let mut random = Random::new(crash.seed ^ 0x0001_dd15_c000);
    let keeps = healthy && shape.disks > 2 && random.one_in(2);
    let disk = to_usize(random.below(to_u64(images.len())));
    keeps.then(|| (disk, images[disk].clone()))
}

/// A copy of one disk while the space serves, which from then on marks its disks again and again.
pub(super) fn copied_alive(
    shape: &Shape,
    may_be: bool,
    crash: Crash,
    run: &mut Run,
) -> Option<(usize, Image)> {
    let mut random = Random::new(crash.seed ^ 0x000a_11fe);
    if !may_be || shape.disks <= 2 || !random.one_in(2) {
        return None;
    }
    let disk = u32::try_from(random.below(shape.disks.into())).unwrap_or(0);
    run.engine.set_marking(Nanos(1_000_000));
    Some((index(disk), run.engine.queue_mut().view(disk)))
}

/// Requests with time between them.
pub(super) fn writes_and_marks(crash: Crash) -> impl Iterator<Item = Step> {
    let mut random = Random::new(crash.seed ^ 0x00e0_4a2c);
    (0..4).flat_map(move |client| {
        let kind = RequestKind::Write { fua: random.one_in(2) };
        let offset = random.below(u64::from(sectors()) / 8) * 4096;
        [Step::Request { client, kind, offset, len: 4096 }, Step::Sleep { millis: 2 }, Step::Poll]
    })
}

/// Whether the other disks say that this one had reached more than a copy of it has: by what the disks hold, and not
/// by what the engine thinks of it.
pub(super) fn is_told(shape: &Shape, images: &[Image], (disk, old): &(usize, Image)) -> bool {
    let blocks = |image: &Image| {
        let places = Geometry::superblocks(shape.disk_bytes());
        let read = |place: u64| {
            let mut bytes = vec![0; BLOCK_LEN];
            image.read(place, &mut bytes);
            Superblock::decode(&bytes)
        };
        places.into_iter().filter_map(read).collect::<Vec<_>>()
    };
    let reached = blocks(old).iter().map(Superblock::reached).max().unwrap_or(0);
    let others = images.iter().enumerate().filter(|(nth, _)| nth != disk);
    others.flat_map(|(_, image)| blocks(image)).any(|block| block.epoch_served > reached)
}
