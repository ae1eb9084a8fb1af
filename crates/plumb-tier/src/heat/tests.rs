use std::collections::BTreeMap;

use super::*;

fn map(extents: u32, limit_bytes: u64) -> HeatMap {
    HeatMap::new(HeatSettings { limit_bytes, ..HeatSettings::new(extents) })
}

fn record(map: &mut HeatMap, extent: u32, count: u64) {
    map.record_many(extent, HostIoKind::Write, count);
}

#[test]
fn it_counts_like_a_model_without_limits() {
    let (mut map, mut model) = (map(100_000, 128 << 20), BTreeMap::<u32, (u64, u64)>::new());
    let mut random = Random::new(11);
    for _ in 0..50_000 {
        let extent = u32::try_from(random.below(3000) * 33).expect("small");
        let seen = model.entry(extent).or_default();
        if random.one_in(3) {
            map.record(extent, HostIoKind::Read, Weight::Large);
            seen.0 += 1;
        } else {
            map.record(extent, HostIoKind::Write, Weight::Random);
            seen.1 += 1;
        }
    }
    assert_eq!((map.ios(), map.working_set()), (50_000, to_u64(model.len())));
    let touched: Vec<u32> = map.touched().map(|(extent, _)| extent).collect();
    assert_eq!(touched, model.keys().copied().collect::<Vec<_>>());
    for (extent, (reads, writes)) in model {
        let heat = map.extent(extent);
        assert_eq!((heat.reads, heat.writes), (reads, writes));
        assert_eq!(heat.score, reads as f32 / 4.0 + writes as f32);
    }
}

#[test]
fn scores_halve_in_a_half_life_and_counts_do_not() {
    // In one step, hour by hour with I/O of other extents, and over a sweep.
    for hours in [vec![24], (1..=24).collect(), vec![200, 224]] {
        let mut map = map(1000, 1 << 20);
        record(&mut map, 5, 3000);
        let last = *hours.last().expect("hours");
        for hour in hours {
            map.advance(hour);
            record(&mut map, 6, 1);
        }
        let wanted = 3000.0 * (-(last as f32) / 24.0).exp2();
        let score = map.extent(5).score;
        assert!((score / wanted - 1.0).abs() < 0.03, "{score}, not {wanted}");
        assert_eq!(map.extent(5).writes, 3000);
    }
}

#[test]
fn an_extent_touched_every_hour_decays_as_the_formula_says() {
    let mut map = map(512, 1 << 20);
    let mut formula = 0.0_f32;
    for hour in 0..400 {
        map.advance(hour);
        formula *= (-1.0_f32 / 24.0).exp2();
        record(&mut map, 300, 100);
        formula += 100.0;
    }
    let score = map.extent(300).score;
    assert!((score / formula - 1.0).abs() < 0.03, "{score}, not {formula}");
    map.advance(10);
    assert_eq!((map.epoch(), map.extent(300).score), (399, score), "time does not go back");
}

#[test]
fn a_long_rest_leaves_nothing() {
    let mut map = map(512, 1 << 20);
    record(&mut map, 1, 1_000_000);
    map.advance(24 * 365);
    assert_eq!(map.extent(1).score, 0.0);
    map.begin_window();
    assert_eq!((map.pages(), map.working_set(), map.ios()), (0, 0, 0));
}

#[test]
fn a_new_window_keeps_scores() {
    let mut map = map(512, 1 << 20);
    record(&mut map, 1, 10);
    map.begin_window();
    assert_eq!(map.extent(1), ExtentHeat { reads: 0, writes: 0, score: 10.0 });
    assert_eq!((map.ios(), map.working_set()), (0, 0));
    record(&mut map, 1, 2);
    assert_eq!((map.ios(), map.working_set()), (2, 1));
}

#[test]
fn over_the_limit_the_coldest_pages_go_and_are_counted() {
    let mut map = map(1 << 20, 300 << 10);
    let mut most = 0;
    for slab in 0..4096_u32 {
        // Every eighth slab is hot.
        let count = if slab % 8 == 0 { 1000 } else { 2 };
        record(&mut map, slab * 256, count);
        most = most.max(map.bytes());
    }
    assert!(most <= 300 << 10 && most > 250 << 10, "{most} bytes");
    let hot = map.touched().filter(|(_, heat)| heat.ios() == 1000).count();
    assert!(hot > 100, "{hot} hot pages of 512 where some 130 have room");
    let cold = map.touched().filter(|(_, heat)| heat.ios() == 2).count();
    assert!(cold < 10, "{cold} cold pages");
    let kept: u64 = map.touched().map(|(_, heat)| heat.ios()).sum();
    assert_eq!(kept + map.dropped().ios, map.ios(), "nothing goes uncounted");
    assert_eq!(map.dropped().pages + map.pages(), 4096);
    assert_eq!(map.working_set(), map.pages());
}

#[test]
fn the_default_limit_holds_a_16_tib_working_set_of_100_tib() {
    let mut map = HeatMap::new(HeatSettings::new(100 << 20));
    for slab in 0..70_000_u32 {
        record(&mut map, slab * 5 * 256, 1 + u64::from(slab % 7));
    }
    assert!(map.bytes() <= 128 << 20, "{} bytes", map.bytes());
    assert!(map.pages() > 62_000, "{} pages", map.pages());
}

/// Bytes of the entries that are there, whole large pages of the processor's included.
fn resident(map: &HeatMap) -> u64 {
    use std::os::unix::fs::FileExt;
    let words = map.pages.words();
    let page = rustix::param::page_size();
    let (first, end) = (words.as_ptr().addr() / page, words.as_ptr_range().end.addr());
    let mut marks = vec![0; 8 * (end.div_ceil(page) - first)];
    let own = std::fs::File::open("/proc/self/pagemap").expect("procfs is mounted");
    own.read_exact_at(&mut marks, 8 * to_u64(first)).expect("it can be read");
    let there = marks.chunks_exact(8).filter(|mark| mark[7] & 0x80 != 0);
    to_u64(page * there.count())
}

/// The limit is of memory, not of what is used of it (HEAT-4): a large page that is begun counts.
#[test]
fn a_full_map_is_resident_within_its_limit() {
    // What remains for entries ends in the middle of a large page.
    let limit = 17 << 20;
    let mut map = map(100 << 20, limit);
    for slab in 0..9000_u32 {
        record(&mut map, slab * 40 * 256, 1 + u64::from(slab % 7));
    }
    let (entries, lists) = (
        resident(&map),
        map.bytes() - Pages::resident_most(to_usize(map.pages()), map.pages_most()),
    );
    println!("{entries} bytes of entries, {lists} of lists");
    assert!(map.dropped().pages > 0 && map.bytes() <= limit);
    assert!(entries + lists <= limit, "{entries} bytes of entries and {lists} of lists");
}

#[test]
fn small_sequential_ios_count_a_sixteenth_and_large_ones_a_quarter() {
    let mut delta = HeatDelta::new(1 << 20, 4096);
    let mut map = map(1 << 20, 1 << 20);
    let io = |offset, len| HostIo { kind: HostIoKind::Read, offset, len };
    (0..256_u64).for_each(|nth| delta.record(io(nth * 8192, 8192)));
    delta.record(io(900 << 20, 128 << 10));
    delta.record(io(901 << 20, 4096));
    // Touches two extents.
    delta.record(io((903 << 20) - 512, 1024));
    map.merge(&mut delta);
    assert_eq!(map.extent(0).score, 63.0 + 65.0 / 16.0);
    assert_eq!(map.extent(1).score, 8.0);
    assert_eq!((map.extent(0).reads, map.extent(1).reads), (128, 128));
    assert_eq!([900, 901, 902, 903].map(|extent| map.extent(extent).score), [0.25, 1.0, 1.0, 1.0]);
    assert_eq!(map.ios(), 256 + 4);
}

#[test]
fn what_a_delta_has_no_room_for_is_counted() {
    let mut delta = HeatDelta::new(1 << 20, 8);
    let mut map = map(100, 1 << 20);
    for nth in 0..10 {
        assert_eq!(delta.is_due(), nth >= 6);
        delta.record(HostIo { kind: HostIoKind::Write, offset: 5 << 20, len: 4096 });
    }
    map.merge(&mut delta);
    assert_eq!((map.ios(), map.dropped().missed), (8, 2));
    assert!(!delta.is_due());
}

#[test]
fn a_map_is_saved_and_restored() {
    let settings = HeatSettings::new(1 << 20);
    let mut map = HeatMap::new(settings.clone());
    let mut random = Random::new(8);
    for hour in 0..40 {
        map.advance(hour);
        for _ in 0..100 {
            let extent = u32::try_from(random.below(1 << 20)).expect("below");
            map.record_many(extent, HostIoKind::Read, random.below(10_000));
        }
    }
    let bytes = map.save(77);
    let restored = HeatMap::restore(&bytes, 77, settings.clone()).expect("a snapshot");
    assert_eq!(restored.pages_lost, 0);
    let found: Vec<_> = restored.map.touched().collect();
    assert_eq!(found, map.touched().collect::<Vec<_>>());
    assert_eq!(restored.map.epoch(), 39);
    assert_eq!((restored.map.ios(), restored.map.working_set()), (map.ios(), map.working_set()));

    // A damaged page is lost alone; a damaged header is refused.
    let mut torn = bytes.clone();
    torn[88 + 5 * 2056 + 100] ^= 1;
    let torn = HeatMap::restore(&torn, 77, settings.clone()).expect("the header is whole");
    assert_eq!((torn.pages_lost, torn.map.pages()), (1, map.pages() - 1));
    let pages = 88 + to_usize(map.pages()) * 2056;
    let short = HeatMap::restore(&bytes[..pages - 1], 77, settings.clone());
    assert_eq!(short.expect("the header is whole").pages_lost, 1);
    let refusal = |bytes: &[u8], vdisk| HeatMap::restore(bytes, vdisk, settings.clone()).err();
    assert_eq!(refusal(&bytes, 78), Some(HeatFileError::OtherDisk { found: 77, wanted: 78 }));
    assert_eq!(refusal(&bytes[..87], 77), Some(HeatFileError::Foreign));
    let spoiled = |at: usize| {
        let mut bytes = bytes.clone();
        bytes[at] ^= 8;
        bytes
    };
    assert_eq!(refusal(&spoiled(0), 77), Some(HeatFileError::Foreign));
    assert_eq!(refusal(&spoiled(8), 77), Some(HeatFileError::Version { found: 15 }));
    assert_eq!(refusal(&spoiled(50), 77), Some(HeatFileError::Damaged));
}

/// As programs wrote it that did not know of the first window.
#[test]
fn snapshots_of_version_1_are_read() {
    let mut map = map(1 << 12, 1 << 20);
    record(&mut map, 700, 31);
    let settled = |map: &HeatMap| {
        let mut bytes = map.save(3);
        bytes.truncate(88 + 2056);
        bytes.drain(80..88);
        bytes[8] = 1;
        bytes.splice(80..80, crate::format::checksum::crc(0, &bytes[..80]).to_le_bytes());
        let old = HeatMap::restore(&bytes, 3, HeatSettings::new(1 << 12)).expect("a snapshot");
        assert_eq!(old.map.extent(700), map.extent(700));
        (old.map.is_settled(), old.map.window_hours())
    };
    assert_eq!(settled(&map), (false, None), "it has made no plan");
    map.advance(400_000);
    map.begin_window();
    assert_eq!((settled(&map), map.is_settled()), ((true, Some(0)), false));
}

#[test]
fn a_map_is_settled_after_the_plans_of_two_days() {
    let mut map = map(1 << 12, 1 << 20);
    map.advance(1000);
    record(&mut map, 7, 9);
    assert!(!map.is_settled(), "however long it has counted");
    map.begin_window();
    map.advance(1024);
    map.begin_window();
    map.advance(1041);
    assert!(!map.is_settled());
    let restored = HeatMap::restore(&map.save(3), 3, HeatSettings::new(1 << 12));
    let mut restored = restored.expect("a snapshot").map;
    restored.advance(1042);
    map.advance(1042);
    assert!(map.is_settled() && restored.is_settled());
}

/// Section 25: a space that lies idle, is filled in large requests, or has few extents with I/Os has no load to be placed by. The first window that has one
/// counts.
#[test]
fn the_first_two_days_are_those_of_a_load() {
    let mut map = map(1 << 12, 1 << 20);
    let large = |map: &mut HeatMap, extent| map.record(extent, HostIoKind::Write, Weight::Large);
    let is_fast = |extent| Some(extent < 1000);
    (0..1 << 12).for_each(|extent| large(&mut map, extent));
    for day in 1..=5 {
        // A hundredth of the tier, and no more.
        (0..10).for_each(|extent| record(&mut map, 400 * extent, 40));
        map.advance(24 * day);
        map.begin_window_of(is_fast);
        assert!(!map.is_settled() && !map.knows_outcomes(), "day {day}");
    }
    record(&mut map, 7, 40);
    map.advance(144);
    map.begin_window_of(is_fast);
    map.advance(144 + SETTLED_H - 1);
    assert!(!map.is_settled());
    map.advance(144 + SETTLED_H);
    assert!(map.is_settled() && !map.knows_outcomes());
    map.advance(144 + OUTCOMES_H);
    assert!(map.knows_outcomes());
}

#[test]
fn damaged_snapshots_never_panic() {
    let mut map = map(1 << 18, 1 << 20);
    for extent in (0..1 << 18).step_by(999) {
        record(&mut map, extent, u64::from(extent));
    }
    let whole = map.save(3);
    fuzz_heat(&whole);
    let mut random = Random::new(21);
    for _ in 0..100 {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(3) {
            let at = to_usize(random.below(to_u64(bytes.len())));
            bytes[at] = random.next().to_le_bytes()[0];
        }
        if random.one_in(4) {
            bytes.truncate(to_usize(random.below(to_u64(bytes.len()))));
        }
        if random.one_in(2) && bytes.len() >= 88 {
            // With a header that is said to be whole.
            let sum = crate::format::checksum::crc(0, &bytes[..84]);
            bytes[84..88].copy_from_slice(&sum.to_le_bytes());
        }
        fuzz_heat(&bytes);
    }
}

/// Of what is seen on the first day of a load more is to come, if it goes on; of a bunch, a seventh each day if it comes once a week.
#[test]
fn what_a_first_day_comes_to() {
    let mut map = HeatMap::new(HeatSettings::new(100));
    let of = |map: &HeatMap| {
        let forecast = map.forecast(|_| false);
        [forecast.as_it_goes_on(100.0), forecast.once_a_week(100.0)].map(f32::round)
    };
    assert_eq!(of(&map), [3513.0, 21.0], "nothing has come: an hour's");
    map.advance(10);
    map.record_many(5, HostIoKind::Read, 9);
    map.advance(34);
    assert_eq!(of(&map), [200.0, 21.0], "a day after the first");
    map.advance(10 + 240);
    assert_eq!(of(&map), [100.0, 21.0]);
}
