use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;

fn lane(first_slot: u32, slots: u32, bytes: u32) -> LaneSpec {
    LaneSpec { first_slot, slots, bytes }
}

fn arena(depth: u32, lanes: &[&[LaneSpec]], placement: BufferPlacement) -> Arena {
    let regions: Vec<_> = lanes.iter().map(|lanes| RegionSpec { lanes: lanes.to_vec() }).collect();
    Arena::new(depth, &regions, &[], placement).expect("a little memory")
}

fn write(slot: u32, len: u32, memory: Place) -> Transfer {
    Transfer { write: true, file: 0, slot, len, offset: 0, memory }
}

fn panics(what: impl FnOnce()) -> bool {
    catch_unwind(AssertUnwindSafe(what)).is_err()
}

#[test]
fn lanes_follow_each_other_without_gaps_or_overlap() {
    let layout: [&[LaneSpec]; 2] = [&[lane(0, 3, 512), lane(0, 3, 512)], &[lane(2, 2, 100)]];
    let mut arena = arena(4, &layout, BufferPlacement::Separated(1 << 24));
    let covered = [(0, 0), (1, 0), (2, 0), (0, 1), (1, 1), (2, 1), (2, 2), (3, 2)];
    for (mark, (slot, lane)) in (1..).zip(covered) {
        let buffer = arena.buffer_mut(slot, lane);
        assert!(buffer.iter().all(|&byte| byte == 0), "slot {slot} lane {lane}");
        buffer.fill(mark);
    }
    let starts = covered.map(|(slot, lane)| arena.buffer_mut(slot, lane).as_ptr().addr());
    for pair in starts[..6].windows(2) {
        assert_eq!(pair[1] - pair[0], 512);
    }
    assert_eq!(starts[7] - starts[6], 100);
    assert!(starts[0].is_multiple_of(1 << 24) && starts[6].is_multiple_of(1 << 24));
    assert_eq!(arena.separation(), 1 << 24);
}

#[test]
fn a_slot_in_flight_keeps_its_buffers() {
    let mut arena = arena(2, &[&[lane(0, 2, 64)]], BufferPlacement::System);
    arena.begin(1);
    assert!(panics(|| arena.begin(1)));
    assert!(panics(|| arena.buffer_mut(1, 0).fill(0)));
    assert!(panics(|| assert_eq!(arena.bytes_of(&write(1, 64, Place::Lane(0))).len(), 64)));
    arena.buffer_mut(0, 0).fill(1);
    arena.end(1);
    arena.buffer_mut(1, 0).fill(1);
    assert!(panics(|| arena.begin(2)));
}

#[test]
fn memory_elsewhere_is_refused() {
    let source = WriteSource::new(1000, |bytes| bytes.fill(9)).expect("a page");
    let region = RegionSpec { lanes: vec![lane(1, 2, 64)] };
    let arena = Arena::new(3, &[region], &[Arc::new(source)], BufferPlacement::System);
    let arena = arena.expect("a page");
    let source = |source, offset| Place::Source { source, offset };
    arena.check(&write(1, 64, Place::Lane(0)));
    arena.check(&write(0, 64, source(0, 936)));
    assert_eq!(arena.bytes_of(&write(0, 64, source(0, 936))), [9; 64]);
    for bad in [
        write(0, 64, Place::Lane(0)),
        write(1, 65, Place::Lane(0)),
        write(1, 1, Place::Lane(1)),
        write(0, 64, source(0, 937)),
        write(0, 64, source(0, u64::MAX)),
        write(0, 64, source(1, 0)),
        Transfer { write: false, ..write(0, 64, source(0, 0)) },
    ] {
        assert!(panics(|| arena.check(&bad)), "{bad:?}");
    }
    assert!(panics(|| {
        let region = RegionSpec { lanes: vec![lane(1, 3, 64)] };
        let _arena = Arena::new(3, &[region], &[], BufferPlacement::System);
    }));
}

#[test]
fn a_separated_arena_copies_its_sources() {
    let source = Arc::new(WriteSource::new(5000, |bytes| bytes.fill(3)).expect("two pages"));
    let sources = [Arc::clone(&source)];
    let place = Place::Source { source: 0, offset: 0 };
    let shared = Arena::new(1, &[], &sources, BufferPlacement::System).expect("memory");
    let own = Arena::new(1, &[], &sources, BufferPlacement::Separated(1 << 24)).expect("memory");
    let (shared, own) =
        (shared.bytes_of(&write(0, 5000, place)), own.bytes_of(&write(0, 5000, place)));
    assert_eq!(shared.as_ptr(), source.bytes().as_ptr());
    assert!(own.as_ptr().addr().is_multiple_of(1 << 24));
    assert_eq!(shared, own);
}

#[test]
fn separation_is_given_up_when_addresses_run_out() {
    let arena = arena(1, &[&[lane(0, 1, 64)]], BufferPlacement::Separated(1 << 60));
    assert_eq!((arena.separation(), arena.unseparated()), (0, Some(Errno::NOMEM)));
}

#[test]
fn pieces_hold_whole_buffers() {
    let mut arena = arena(70, &[&[lane(0, 70, 4096), lane(4, 3, 512)]], BufferPlacement::System);
    let pieces = arena.cut_pieces();
    assert_eq!(pieces.iter().map(|piece| piece.len).collect::<Vec<_>>(), [70 * 4096, 3 * 512]);
    assert_eq!(arena.locate(&write(69, 1, Place::Lane(0))).piece, Some(0));
    assert_eq!(arena.locate(&write(6, 1, Place::Lane(1))).piece, Some(1));
    arena.forget_pieces();
    assert_eq!(arena.locate(&write(6, 1, Place::Lane(1))).piece, None);
}

#[test]
fn a_range_of_a_long_source_lies_in_one_piece_or_none() {
    let gib = PIECE_MAX;
    let source = |len| Source { base: NonNull::dangling(), len, first_piece: 10 };
    for (len, offset, bytes, piece) in [
        (gib, 0, gib, Some(10)),
        (gib, gib - 1, 1, Some(10)),
        (gib + 1, gib, 1, Some(11)),
        (gib + 1, 0, gib + 1, None),
        (3 * gib, gib - 1, gib / 2, Some(11)),
        (3 * gib, gib, gib / 2, Some(12)),
        (3 * gib, 3 * gib - 1, 1, Some(14)),
        (3 * gib, 0, 3 * gib, None),
    ] {
        assert_eq!(source(len).piece(offset, bytes), piece, "{len} {offset} {bytes}");
    }
}
