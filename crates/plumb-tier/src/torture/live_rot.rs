//! Rot in one copy of metadata or of a log while the space serves, and then a disk that gets a copy: what any copy has, or
//! memory, is not lost for it.

use plumb_io::sim::power::{Image, Survivors};

use super::faults::{
    MIRROR, SIMPLE, TIERED, done, fill, first_block, flush, heard, rest, restart, shape, start,
    state, write,
};
use super::last_copies::failed_once;
use super::left_out::{content, needs};
use super::oracle::Promise;
use super::run::Run;
use crate::format::{DiskState, Geometry};
use crate::mutation::Mutation;

/// Two disks, each with a copy of all.
pub(super) const TWO: (u32, u32, u8, u64) = (2, 0, 2, 0);

/// Numbers of an encoded page.
fn number(page: &[u8], at: usize, len: usize) -> u64 {
    page[at..at + len].iter().rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

/// Flips a bit of what a disk holds.
pub(super) fn flip(run: &mut Run, disk: u32, at: u64) {
    let image = run.engine.queue_mut().view(disk);
    let mut bytes = vec![0; 1];
    image.read(at, &mut bytes);
    run.engine.queue_mut().tamper(disk, at, &[bytes[0] ^ 4]);
}

/// Frames of the journal as a disk has them, by LSN: the oldest first.
pub(super) fn frames(run: &mut Run, disk: u32, geometry: &Geometry) -> Vec<u64> {
    frames_of(&run.engine.queue_mut().view(disk), geometry)
}

pub(super) fn frames_of(image: &Image, geometry: &Geometry) -> Vec<u64> {
    let ring = geometry.ring(0)..geometry.ring(0) + geometry.ring_bytes();
    let frames = ring.step_by(4096).map(|at| (content(image, at), at));
    let frames = frames.filter(|(page, _)| page.starts_with(b"PLJF"));
    let mut frames: Vec<(u64, u64)> = frames.map(|(page, at)| (number(&page, 16, 8), at)).collect();
    frames.sort_unstable();
    frames.into_iter().map(|frame| frame.1).collect()
}

/// Spoils the fourth frame before the newest one on a disk.
fn spoil_a_frame(run: &mut Run, disk: u32, geometry: &Geometry) {
    let frames = frames(run, disk, geometry);
    flip(run, disk, frames[frames.len() - 5] + 49);
}

/// Where a disk has the root of the map's tree: it is its only page there.
pub(super) fn map_page(image: &Image, geometry: &Geometry) -> u64 {
    let pages = [0, 4096].map(|slot| content(image, geometry.journal() + slot));
    let newest = pages.iter().max_by_key(|page| number(page, 24, 8)).expect("two");
    let page = number(newest, 60, 4);
    assert!(page > 0, "a checkpoint was made");
    geometry.tree() + page * 4096
}

fn spoil_the_map(run: &mut Run, disk: u32, geometry: &Geometry) {
    let at = map_page(&run.engine.queue_mut().view(disk), geometry);
    flip(run, disk, at + 100);
}

/// First writes of blocks, each durable before the next.
pub(super) fn write_each(
    run: &mut Run,
    mut blocks: impl Iterator<Item = u64>,
) -> Result<(), String> {
    blocks.try_for_each(|block| done(run, &[write(block), flush()]))
}

/// What is spoilt on one of two disks.
type Spoil = fn(&mut Run, u32, &Geometry);

/// It is spoilt on disk 0 while disk 1 is away, or just before, and disk 1 comes back; then the engine dies. With `alone`
/// nobody but disk 0 had it.
fn rot_before_a_disk_is_back(spoil: Spoil, alone: bool) -> Result<(), String> {
    let geometry = shape(TWO).geometry();
    let mut run = start(TWO);
    fill(&mut run);
    run.let_any_fail((0..2).collect(), (0..2).collect());
    if alone {
        run.engine.take_offline(1);
        rest(&mut run, 1);
        done(&mut run, &[write(3), flush()])?;
    }
    run.engine.checkpoint();
    rest(&mut run, 1);
    write_each(&mut run, (0..8).map(|nth| nth * 16 + 7))?;
    spoil(&mut run, 0, &geometry);
    heard(&mut run);
    run.engine.take_offline(1);
    (0..8).for_each(|_| run.poll());
    assert_eq!(state(&run, 1), DiskState::Missing);
    run.engine.attach(1);
    rest(&mut run, 2);
    assert_eq!(state(&run, 1), DiskState::Online);
    let told = heard(&mut run).contains(&"metadata-damaged");
    write_each(&mut run, (0..8).map(|nth| nth * 16 + 9))?;
    let mut again = restart(&mut run, TWO, &[]).map_err(|error| error.to_string())?;
    again.read_all(Promise::Acknowledged, 0)?;
    // Each of the two has all that a start needs: the copy that was rotten is mended as well.
    assert!(again.engine.config().disks.iter().all(|disk| disk.metadata));
    if told { Ok(()) } else { Err("nobody is told".to_owned()) }
}

/// The disk that comes back has the frame as it was; or nobody has, and memory knows what it said.
#[test]
fn a_rotten_frame_is_not_copied_to_a_disk_that_comes_back() {
    for alone in [false, true] {
        needs(Mutation::RotCopied, || rot_before_a_disk_is_back(spoil_a_frame, alone));
    }
}

#[test]
fn a_rotten_page_of_the_map_is_not_copied_to_a_disk_that_comes_back() {
    for alone in [false, true] {
        needs(Mutation::RotCopied, || rot_before_a_disk_is_back(spoil_the_map, alone));
    }
}

/// A disk gets its vote back, and with it the journal of the only one that has it, in which a frame is rotten.
#[test]
fn a_rotten_frame_does_not_come_with_a_vote() {
    needs(Mutation::RotCopied, || {
        let geometry = shape(SIMPLE).geometry();
        let (mut run, disk, own) = failed_once();
        rest(&mut run, 1);
        assert!(!run.engine.config().disks[usize::from(own)].metadata, "it lost them");
        let other = 1 - disk;
        let all = write_each(&mut run, (0..8).map(|nth| nth * 16 + 7));
        all.expect("both work");
        spoil_a_frame(&mut run, other, &geometry);
        heard(&mut run);
        // Behind its probation.
        rest(&mut run, 80);
        let config = run.engine.config();
        assert!(config.voters.contains(&own) && config.disks[usize::from(own)].metadata);
        let told = heard(&mut run).contains(&"metadata-damaged");
        let again = restart(&mut run, SIMPLE, &[]);
        again.map_err(|error| error.to_string())?.read_all(Promise::Acknowledged, 0)?;
        if told { Ok(()) } else { Err("nobody is told".to_owned()) }
    });
}

/// Where a disk's copy of the log has the header of its newest record.
pub(super) fn newest_record(run: &mut Run, disk: u16, slab: u32) -> u64 {
    let image = run.engine.queue_mut().view(disk.into());
    let from = shape(TIERED).geometry().slab(slab);
    let pages = (0..16).map(|nth| (content(&image, from + nth * 4096), from + nth * 4096));
    let headers = pages.filter(|(page, _)| page.starts_with(b"PLWL"));
    headers.max_by_key(|(page, _)| number(page, 16, 8)).expect("there is one").1
}

/// A record of the log is rotten on one disk, in its header or behind it; the other disk with a copy is away for a moment.
fn rot_in_the_log(within: u64) -> Result<(), String> {
    let mut run = start(TIERED);
    fill(&mut run);
    run.let_any_fail((0..5).collect(), (0..5).collect());
    done(&mut run, &[write(112), write(96), write(80), flush()])?;
    let cache = run.engine.config().vdisks[0].cache.clone().expect("it has one");
    let [one, other] = [&cache.copies[0], &cache.copies[1]];
    let at = newest_record(&mut run, one.disk, one.slabs[0]);
    flip(&mut run, one.disk.into(), at + within);
    heard(&mut run);
    run.engine.take_offline(other.disk);
    run.engine.attach(other.disk);
    let mut told = Vec::new();
    for _ in 0..64 {
        run.poll();
        told.extend(heard(&mut run));
    }
    assert_eq!(state(&run, usize::from(other.disk)), DiskState::Online, "{told:?}");
    assert!(told.contains(&"disk-lost") && told.contains(&"disk-back"), "{told:?}");
    assert!(
        run.engine.config().vdisks[0]
            .cache
            .as_ref()
            .is_some_and(|own| { own.copies.iter().all(|copy| copy.current) })
    );
    run.read_all(Promise::Acknowledged, 0)?;
    let mut again = restart(&mut run, TIERED, &[]).map_err(|error| error.to_string())?;
    again.read_all(Promise::Acknowledged, 0)?;
    // The copy that was rotten is mended: it is enough alone.
    let alone = restart(&mut run, TIERED, &[other.disk.into()]);
    alone.map_err(|error| error.to_string())?.read_all(Promise::Acknowledged, 0)?;
    let damage = ["metadata-damaged", "bad-copy"].iter().any(|word| told.contains(word));
    if damage { Ok(()) } else { Err(format!("nobody is told: {told:?}")) }
}

#[test]
fn rotten_data_in_a_log_is_not_copied_to_a_disk_that_comes_back() {
    needs(Mutation::RotCopied, || rot_in_the_log(4096 + 17));
}

/// Without it what follows could not be told from what was there before.
#[test]
fn a_rotten_header_in_a_log_is_read_from_the_disk_that_comes_back() {
    rot_in_the_log(17).expect("that disk has it");
}

/// A block rots on one disk and is read; as soon as it is healed the power goes, and the disk keeps nothing that it need not. Whether
/// it has what the other disk has.
fn is_healed_for_good() -> bool {
    let mut run = start(MIRROR);
    fill(&mut run);
    let places = first_block(MIRROR, &run);
    let ((disk, offset), (other, at)) = (places[0], places[1]);
    assert!(run.engine.queue_mut().rot(disk, offset + 700, 3));
    for turn in 0..2 {
        run.read_all(Promise::Acknowledged, turn).expect("the other copy is good");
    }
    let healed = (0..200).any(|_| {
        run.poll();
        run.engine.counters().healed > 0
    });
    assert!(healed, "nobody healed it");
    run.engine.queue_mut().drop_cache(disk, Survivors::None);
    let bytes = |run: &mut Run, disk: u32, at: u64| content(&run.engine.queue_mut().view(disk), at);
    bytes(&mut run, disk, offset) == bytes(&mut run, other, at)
}

/// Whoever writes over the block then, torn on both disks when the power goes, leaves no rot among what may be taken for an
/// interrupted write (CRC-3).
#[test]
fn what_is_healed_is_durable_before_it_is_written_over() {
    assert!(is_healed_for_good());
    crate::mutation::set(Some(Mutation::HealUnflushed));
    let without = is_healed_for_good();
    crate::mutation::set(None);
    assert!(!without, "the rule is not tested");
}
