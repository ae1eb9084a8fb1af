//! Heat and moves on pools with two tiers, in memory.

use plumb_io::engine::MemoryQueue;
use plumb_tier::heat::HeatFileError;
use plumb_tier::optimizer::{PinId, PinState, PlacementStatus, PlanLimits, TierName};
use plumb_tier::tier_report::{MoveStop, WindowBytes};
use plumb_tier::{
    Account, Engine, KeepWith, Kept, MediaType, MoveOutcome, Optimization, OptimizeSettings,
    Request, RequestKind, Served, create,
};
use plumb_units::Nanos;
use plumb_units::convert::to_u64;

use crate::disks::{self, MIB};

const EXTENT: u64 = 64 << 10;
const FAST: TierName = TierName::Performance;
const SLOW: TierName = TierName::Capacity;

/// Two SSDs with 2 MiB of a virtual disk, two rotating disks with 6 MiB, two copies.
struct Space {
    engine: Engine<MemoryQueue>,
    now: Nanos,
}

impl Space {
    fn new(cache_bytes: u64) -> Self {
        let mut wanted = disks::vdisk("v", 2, 2 * MIB);
        wanted.tier_bytes = [2 * MIB, 6 * MIB];
        wanted.cache_bytes = cache_bytes;
        let mut pool = disks::pool(4, vec![wanted]);
        for disk in &mut pool.disks[2..] {
            disk.media = MediaType::Hdd;
        }
        let mut queue = disks::queue(4);
        create(&mut queue, disks::plan(4), &pool, 1).expect("it fits");
        Self::start(queue)
    }

    fn start(queue: MemoryQueue) -> Self {
        let engine = Engine::start(queue, disks::plan(4), 8, 65536, 2).expect("it starts");
        Self { engine, now: Nanos::ZERO }
    }

    fn poll(&mut self) {
        self.now = Nanos(self.now.0 + 100_000);
        self.engine.poll(self.now, Nanos(1_000_000));
    }

    fn ask(&mut self, kind: RequestKind, offset: u64, bytes: &mut [u8]) {
        let len = u32::try_from(bytes.len()).expect("short");
        self.engine.buffer_mut(0)[..bytes.len()].copy_from_slice(bytes);
        self.engine.submit(0, Request { kind, vdisk: 0, offset, len });
        let outcome = loop {
            self.poll();
            if let Some((_, outcome)) = self.engine.pop() {
                break outcome;
            }
        };
        assert_eq!(outcome, Ok(()), "{kind:?} at {offset}");
        if kind == RequestKind::Read {
            bytes.copy_from_slice(&self.engine.buffer_mut(0)[..bytes.len()]);
        }
    }

    /// 32 KiB to each of these places, all of them under way together.
    fn write_at_once(&mut self, offsets: &[u64; 8]) {
        let kind = RequestKind::Write { fua: false };
        for (client, offset) in (0..).zip(*offsets) {
            self.engine.buffer_mut(client)[..32_768].fill(3);
            self.engine.submit(client, Request { kind, vdisk: 0, offset, len: 32_768 });
        }
        let mut left = offsets.len();
        while left > 0 {
            self.poll();
            while let Some((_, outcome)) = self.engine.pop() {
                assert_eq!(outcome, Ok(()));
                left -= 1;
            }
        }
    }

    fn write(&mut self, offset: u64, value: u8) {
        self.ask(RequestKind::Write { fua: false }, offset, &mut [value; 4096]);
    }

    fn read(&mut self, offset: u64) -> u8 {
        let mut bytes = [0; 4096];
        self.ask(RequestKind::Read, offset, &mut bytes);
        assert!(bytes.iter().all(|byte| *byte == bytes[0]), "one block, one write");
        bytes[0]
    }

    fn moved(&mut self, extent: u32, to: TierName) -> MoveOutcome {
        self.engine.move_extent(0, extent, to);
        for _ in 0..20_000 {
            self.poll();
            if let Some(done) = self.engine.pop_move() {
                assert_eq!((done.extent, done.to), (extent, to));
                return done.outcome;
            }
        }
        panic!("the move of {extent} never ends");
    }

    fn fast_extents(&self) -> u64 {
        self.engine.mapped_bytes(0)[0] / EXTENT
    }
}

#[test]
fn host_ios_are_counted_where_they_fall_and_by_whom_they_are_answered() {
    let mut space = Space::new(0);
    let extents = space.engine.size(0) / EXTENT;
    for extent in 0..extents {
        space.write(extent * EXTENT, 1);
    }
    for _ in 0..10 {
        space.read(3 * EXTENT);
        space.read((extents - 1) * EXTENT + 4096);
    }
    let fast = space.fast_extents();
    let heat = space.engine.heat(0);
    assert_eq!((heat.ios(), heat.working_set()), (extents + 20, extents));
    let (hot, cold) = (heat.extent(3), heat.extent(4));
    assert_eq!((hot.reads, hot.writes, cold.reads, cold.writes), (10, 1, 0, 1));
    assert!(hot.score > 10.0 && cold.score < 1.5, "{hot:?} {cold:?}");
    let served = space.engine.served(0);
    let bytes = WindowBytes {
        read: 20 * 4096,
        written: extents * 4096,
        bypassed: (extents - fast) * 4096,
        ..WindowBytes::default()
    };
    let (performance, capacity) = (fast + 10, extents - fast + 10);
    assert_eq!(served, Served { performance, cache: 0, capacity, unmapped: 0, bytes });

    let saved = space.engine.save_heat(0);
    let queue = space.engine.shut_down().expect("a clean end");
    let mut again = Space::start(queue);
    again.read(3 * EXTENT);
    let mut foreign = saved.clone();
    foreign[0] ^= 1;
    let refused = again.engine.restore_heat(0, &foreign, served);
    assert_eq!(refused, Err(HeatFileError::Foreign));
    assert_eq!(again.engine.restore_heat(0, &saved, served), Ok(0));
    assert_eq!(again.engine.heat(0).extent(3).reads, 10);
    assert_eq!(again.engine.heat(0).ios(), extents + 20);
    // What this engine counted itself is forgotten, what it goes on to count is added.
    assert_eq!(again.engine.served(0), served);
    again.read(3 * EXTENT);
    assert_eq!(again.engine.served(0).bytes.read, 21 * 4096);
    assert_eq!(again.engine.heat(0).extent(3).reads, 11);
    let before = again.engine.heat(0).extent(3).score;
    let hour = again.engine.heat(0).epoch();
    again.engine.set_hour(hour + 24);
    let after = again.engine.heat(0).extent(3).score;
    assert!((after / before - 0.5).abs() < 0.05, "{before} {after}");
    again.engine.begin_heat_window(0);
    assert_eq!((again.engine.heat(0).ios(), again.engine.served(0)), (0, Served::default()));
    assert!(again.engine.heat(0).extent(3).score > 0.0);
}

/// REP-2: row 100 is no larger than what is mapped, whatever is read of what was never written.
#[test]
fn a_report_asks_for_no_tier_for_what_was_never_written() {
    let mut space = Space::new(0);
    for extent in 0..3 {
        space.write(extent * EXTENT, 1);
    }
    for nth in 0..40 {
        space.read((5 + nth % 8) * EXTENT);
    }
    let report = space.engine.tier_report(0, 1.0);
    assert_eq!((report.rows[0].extents, report.working_set, report.ios), (3, 3, 3));
    assert_eq!((report.facts.answered, report.facts.answered_zeros), (43, 40));
    assert_eq!(report.serviced_percent(), Some(100.0));
    assert_eq!(report.advice.suggestions, ["nothing to do"]);
    space.optimized(&unthrottled());
    assert_eq!(space.engine.tiering(0).working_sets, [3]);
}

/// HEAT-6: a crash costs the heat of a quarter of an hour at most.
#[test]
fn heat_is_handed_out_every_quarter_of_an_hour_and_at_a_clean_end() {
    let mut space = Space::new(0);
    let (sender, inbox) = std::sync::mpsc::sync_channel(4);
    space.engine.keep_with(KeepWith::new(sender, None));
    let counted = |kept: &[Kept]| {
        let mut other = Space::new(0);
        // Of the same pool: its virtual disk has the same id.
        assert_eq!(other.engine.restore_heat(0, &kept[0].heat, kept[0].served), Ok(0));
        other.engine.heat(0).ios()
    };
    let minute = 60_000_000_000;
    (0..3).for_each(|extent| space.write(extent * EXTENT, 1));
    for (minutes, handed) in [(14, None), (15, Some(3)), (29, None), (30, Some(4))] {
        if handed == Some(4) {
            space.read(0);
        }
        space.now = Nanos(minutes * minute + 1_000_000_000);
        (0..100).for_each(|_| space.poll());
        let kept = inbox.try_recv().ok();
        assert_eq!(kept.as_deref().map(counted), handed, "after {minutes} minutes");
    }
    space.read(0);
    space.engine.shut_down().expect("a clean end");
    assert_eq!(inbox.try_iter().map(|kept| counted(&kept)).collect::<Vec<_>>(), [5]);
}

/// REP-4.
#[test]
fn a_window_knows_what_the_write_back_cache_took_what_went_past_it_and_how_often_it_was_full() {
    let mut space = Space::new(MIB);
    let extents = space.engine.size(0) / EXTENT;
    for extent in 0..extents {
        space.write(extent * EXTENT, 1);
    }
    space.engine.begin_heat_window(0);
    assert_eq!(space.engine.served(0), Served::default());
    let fast_before = space.engine.use_of(0).bytes(Account::TierWrite(false));
    // More at once than it can destage meanwhile.
    let last = (extents - 1) * EXTENT;
    let mut bursts = 0;
    while space.engine.served(0).bytes.times_full == 0 {
        let far = |nth: u64| last - 2 * EXTENT * ((bursts * 7 + nth * 5) % 40);
        space.write_at_once(&std::array::from_fn(|nth| far(to_u64(nth))));
        bursts += 1;
        assert!(bursts < 1000, "it is never full");
    }
    let reads = 5;
    for _ in 0..reads {
        space.read(last);
    }
    let found = space.engine.served(0);
    let used = space.engine.use_of(0);
    assert_eq!((found.bytes.written, found.bytes.read), (bursts * 8 * 32_768, reads * 4096));
    assert!(found.bytes.cache_written > 0, "{found:?}");
    let fast = used.bytes(Account::TierWrite(false)) - fast_before;
    assert_eq!(found.bytes.cache_written + found.bytes.bypassed + fast, found.bytes.written);
    assert!(found.bytes.cache_read <= found.bytes.read, "{found:?}");
    assert_eq!(found.bytes.times_full, used.times_full);
    let report = space.engine.tier_report(0, 1.0);
    assert_eq!(report.facts.bytes, Some(found.bytes));
    let json = report.to_json();
    assert_eq!(json["write_cache"]["written_bytes"], found.bytes.cache_written);
    assert_eq!(json["write_cache"]["bypass_bytes"], found.bytes.bypassed);
    assert_eq!(json["write_cache"]["times_full"], 1);
    // A new window has nothing of it.
    space.engine.begin_heat_window(0);
    assert_eq!(space.engine.served(0).bytes, WindowBytes::default());
}

#[test]
fn extents_move_both_ways_and_keep_what_they_hold() {
    for cache in [0, MIB] {
        let mut space = Space::new(cache);
        let extents = u32::try_from(space.engine.size(0) / EXTENT).expect("few");
        let at = |extent: u32, block: u64| u64::from(extent) * EXTENT + block * 4096;
        for extent in 0..extents - 1 {
            space.write(at(extent, 0), 1);
            space.write(at(extent, 9), u8::try_from(extent).expect("few"));
        }
        let fast = space.fast_extents();
        assert_eq!(space.moved(0, FAST), MoveOutcome::There);
        assert_eq!(space.moved(extents - 1, FAST), MoveOutcome::Unmapped);
        assert_eq!(space.moved(0, SLOW), MoveOutcome::Moved);
        assert_eq!(space.fast_extents(), fast - 1);
        let cold = extents - 2;
        assert_eq!(space.moved(cold, FAST), MoveOutcome::Moved);
        assert_eq!(space.fast_extents(), fast);
        space.write(at(cold, 9), 77);
        for extent in [0, 1, cold] {
            let last = if extent == cold { 77 } else { u8::try_from(extent).expect("few") };
            assert_eq!([0, 1, 9].map(|block| space.read(at(extent, block))), [1, 0, last]);
        }
        let counters = space.engine.move_counters();
        assert_eq!((counters.up, counters.down, counters.aborted), (1, 1, 0));
        for tier in [FAST, SLOW] {
            let held = space.engine.hold_time(tier, 990);
            assert!(held.is_some_and(|time| time < Nanos(100_000_000)), "{held:?}");
        }
        let queue = space.engine.shut_down().expect("a clean end");
        let mut again = Space::start(queue);
        assert_eq!(again.fast_extents(), fast);
        assert_eq!((again.read(at(0, 9)), again.read(at(cold, 9))), (0, 77));
    }
}

#[test]
fn a_full_tier_takes_no_extent_more_than_its_reserve() {
    let mut space = Space::new(0);
    let extents = u32::try_from(space.engine.size(0) / EXTENT).expect("few");
    for extent in 0..extents {
        space.write(u64::from(extent) * EXTENT, 1);
    }
    let outcomes: Vec<MoveOutcome> =
        (extents - 8..extents).map(|extent| space.moved(extent, FAST)).collect();
    let moved = outcomes.iter().filter(|outcome| **outcome == MoveOutcome::Moved).count();
    assert!((1..8).contains(&moved), "{outcomes:?}");
    assert!(outcomes[moved..].iter().all(|outcome| *outcome == MoveOutcome::NoRoom));
    // Every extent still has its place.
    for extent in 0..extents {
        assert_eq!(space.read(u64::from(extent) * EXTENT), 1);
    }
}

#[test]
fn moves_that_wait_can_be_called_off() {
    let mut space = Space::new(0);
    for extent in 0..20 {
        space.write(extent * EXTENT, 1);
    }
    for extent in 0..20 {
        space.engine.move_extent(0, extent, SLOW);
    }
    space.engine.poll(Nanos(1), Nanos(1));
    let counter = |space: &Space, name| {
        let found = space.engine.perf().into_iter().find(|one| one.name == name);
        found.expect("it is counted").value
    };
    let under_way = counter(&space, "Moves Under Way");
    assert!((1..=8).contains(&under_way), "{under_way}: those that wait are told apart");
    assert_eq!(under_way + counter(&space, "Moves Waiting"), 20);
    space.engine.cancel_moves();
    for _ in 0..2_000 {
        space.poll();
    }
    assert_eq!(space.engine.moves_left(), 0);
    let mut cancelled = 0;
    while let Some(done) = space.engine.pop_move() {
        cancelled += u32::from(done.outcome == MoveOutcome::Cancelled);
    }
    assert!(cancelled >= 12, "{cancelled} of 20: at most 8 were under way");
    assert_eq!(space.read(19 * EXTENT), 1);
}

impl Space {
    /// Every extent written; the last four, on the Capacity tier, read often.
    fn with_hot_ones() -> (Self, u32) {
        let mut space = Self::new(0);
        let extents = u32::try_from(space.engine.size(0) / EXTENT).expect("few");
        for extent in 0..extents {
            space.write(u64::from(extent) * EXTENT, 1);
        }
        for nth in 0..200 {
            let extent = u64::from(extents - 1 - nth % 4);
            space.read(extent * EXTENT);
        }
        (space, extents)
    }

    /// An extent that is on the Performance tier is to stay there.
    fn kept_fast(&mut self, extent: u64) -> Option<PinId> {
        let range = (extent * EXTENT, EXTENT);
        let placement = self.engine.range_status(0, range, FAST).placement;
        let pins = &mut self.engine.tiering_mut(0).pins;
        let is_there = placement == PlacementStatus::CompletelyOnTier;
        is_there.then(|| pins.set(range.0, range.1, FAST).expect("a range"))
    }

    fn optimized(&mut self, settings: &OptimizeSettings) -> Optimization {
        assert!(self.engine.optimize(0, settings, 5_000.0));
        for _ in 0..100_000 {
            if let Some(done) = self.engine.take_optimization(0) {
                assert!(!self.engine.optimizing(0));
                return done;
            }
            self.poll();
        }
        panic!("it never ends: {:?}", self.engine.optimization_progress(0));
    }
}

fn unthrottled() -> OptimizeSettings {
    OptimizeSettings { rate: None, ..OptimizeSettings::default() }
}

#[test]
fn an_optimization_moves_what_is_hot_and_says_what_it_did() {
    let (mut space, extents) = Space::with_hot_ones();
    let fast = space.fast_extents();
    let advised = space.engine.plan_optimization(0, &unthrottled());
    assert_eq!((advised.count(FAST), advised.count(SLOW)), (4, 4), "{advised:?}");
    assert_eq!(space.engine.move_counters().up, 0, "advice moves nothing");
    let done = space.optimized(&unthrottled());
    let moves = done.report.facts.moves;
    assert_eq!((moves.up_requested, moves.up, moves.down_requested, moves.down), (4, 4, 4, 4));
    assert_eq!((moves.stop, done.refused.len()), (MoveStop::Done, 0), "{done:?}");
    assert_eq!(space.fast_extents(), fast);
    let (before, after) = (done.share_before, done.report.facts.expected_share);
    assert!(before < after && after > Some(0.7), "{before:?} {after:?}");
    assert_eq!(done.report.facts.answered, u64::from(extents) + 200);
    let text = done.report.to_text();
    assert!(text.contains("Extents Moved Up:") && text.contains("4 of 4"), "{text}");
    // A new window: what was hot is served by the fast tier now, and nothing more moves.
    for extent in extents - 4..extents {
        assert_eq!(space.read(u64::from(extent) * EXTENT), 1);
    }
    assert_eq!((space.engine.served(0).performance, space.engine.served(0).total()), (4, 4));
    assert_eq!(space.optimized(&unthrottled()).report.facts.moves.up_requested, 0);
    assert_eq!(space.engine.tiering(0).working_sets, [u64::from(extents), 4]);
}

/// ALC-1, 10.7: room that cannot be made is not told as made, and what keeps it is named.
#[test]
fn room_that_cannot_be_kept_free_is_told() {
    let (mut space, extents) = Space::with_hot_ones();
    let reserve = 8;
    let settings = OptimizeSettings { reserve, raised: 1e9, ..unthrottled() };
    let fast = space.fast_extents();
    let done = space.optimized(&settings);
    let free = fast - space.fast_extents();
    let moves = done.report.facts.moves;
    assert_eq!((moves.stop, moves.down), (MoveStop::Done, free));
    let stuck = reserve - free;
    assert!(stuck > 0, "the Capacity tier had room: {done:?}");
    assert_eq!(done.refused, [(MoveOutcome::NoRoomBelow, stuck)]);
    assert_eq!(moves.down_requested, reserve);
    let text = done.report.to_text();
    let told = format!(
        "{stuck} extents were not moved (the Capacity tier has no free slot): make room there"
    );
    assert!(text.contains(&told) && text.contains("to be kept free"), "{text}");
    assert!(!text.contains("nothing to do"), "{text}");
    let json = done.to_json();
    let refused =
        serde_json::json!([{ "why": "the Capacity tier has no free slot", "extents": stuck }]);
    assert_eq!(json["optimization"]["refused"], refused);
    // Without a wish for room there is nothing to be told.
    let done = space.optimized(&OptimizeSettings { raised: 1e9, ..unthrottled() });
    assert_eq!((done.refused.len(), done.report.facts.moves.down_requested), (0, 0));
    // What is pinned up is not in anybody's way, and is not told to be.
    for extent in 0..u64::from(extents) {
        space.kept_fast(extent);
    }
    let done = space.optimized(&settings);
    assert_eq!(done.refused, []);
    let words = "what is pinned to the Performance tier takes room that was to be kept free";
    let advice = &done.report.advice.suggestions;
    assert!(advice.iter().any(|one| one.ends_with(words)), "{advice:?}");
}

/// 10.3: runs note what they moved; where much of what was promoted is demoted again, the plan's bar is doubled and the report
/// says so.
#[test]
fn what_goes_back_and_forth_raises_the_bar_of_plans() {
    let mut space = Space::new(0);
    // Room is left on the Capacity tier.
    let extents = space.engine.size(0) / EXTENT - 8;
    for extent in 0..extents {
        space.write(extent * EXTENT, 1);
    }
    let read = |space: &mut Space, extent: u64, times: u64| {
        (0..times).for_each(|_| assert_eq!(space.read(extent * EXTENT), 1));
    };
    (extents - 4..extents).for_each(|extent| read(&mut space, extent, 50));
    assert_eq!(space.optimized(&unthrottled()).report.facts.moves.up, 4);
    let history = &space.engine.tiering(0).history;
    assert_eq!((history.thrash().promoted, history.thrash().demoted_again), (4, 0));
    let recent = |extent: u64| history.is_recent(u32::try_from(extent).expect("few"));
    assert!((extents - 4..extents).all(recent) && !recent(extents - 5));

    // 12 I/Os for a free place: above the bar of 7.2, below twice that.
    let pins = &mut space.engine.tiering_mut(0).pins;
    let pin = pins.set((extents - 4) * EXTENT, 4 * EXTENT, SLOW).expect("a range");
    let warm = extents - 6;
    let goes_up = |space: &mut Space| {
        let planned = space.engine.plan_optimization(0, &unthrottled());
        planned.moves.iter().any(|made| u64::from(made.extent) == warm && made.to == FAST)
    };
    read(&mut space, warm, 11);
    assert!(goes_up(&mut space), "it clears the bar");
    assert!(space.engine.tiering_mut(0).pins.clear(pin));
    let kept: Vec<PinId> = (0..extents - 4).filter_map(|extent| space.kept_fast(extent)).collect();
    // All the others stay, and room is to be kept: the four go down again. What pins move is no thrash, what the plan moves is.
    let done = space.optimized(&OptimizeSettings { reserve: 1 << 20, ..unthrottled() });
    assert_eq!((done.report.facts.moves.up, done.report.facts.moves.down), (0, 4));
    let pins = &mut space.engine.tiering_mut(0).pins;
    assert!(kept.into_iter().all(|pin| pins.clear(pin)));
    let thrash = space.engine.tiering(0).history.thrash();
    assert_eq!((thrash.promoted, thrash.demoted_again, thrash.guarded), (4, 4, true));
    read(&mut space, warm, 1);
    assert!(!goes_up(&mut space), "it does not clear the doubled one");
    let report = space.engine.tier_report(0, 6_000.0);
    assert_eq!(report.to_json()["advice"]["bar_doubled"], true);
    read(&mut space, warm, 8);
    assert!(goes_up(&mut space));
}

#[test]
fn an_optimization_that_was_ended_goes_on_with_the_next_one() {
    let (mut space, _) = Space::with_hot_ones();
    let one =
        OptimizeSettings { limits: PlanLimits { moved: 2, promoted: u64::MAX }, ..unthrottled() };
    let done = space.optimized(&one);
    let moves = done.report.facts.moves;
    assert_eq!((moves.up, moves.down, moves.stop), (1, 1, MoveStop::Budget));
    assert!(space.engine.optimize(0, &unthrottled(), 6_000.0));
    assert!(!space.engine.optimize(0, &unthrottled(), 6_000.0), "one at a time");
    space.engine.cancel_optimization(0);
    let mut left = 100_000;
    while space.engine.optimizing(0) && left > 0 {
        space.poll();
        left -= 1;
    }
    let done = space.engine.take_optimization(0).expect("it has ended");
    assert_eq!(done.report.facts.moves.stop, MoveStop::Cancelled);
    // What had not begun was not given up.
    assert_eq!(space.engine.move_counters().aborted, 0);
    let rest = space.optimized(&unthrottled()).report.facts.moves.up;
    assert_eq!(1 + done.report.facts.moves.up + rest, 4);
    // Its time is over before it has begun.
    let late = OptimizeSettings { time: Nanos::ZERO, ..unthrottled() };
    space.engine.tiering_mut(0).pins.set(80 * EXTENT, 4 * EXTENT, FAST).expect("a range");
    assert_eq!(space.optimized(&late).report.facts.moves.stop, MoveStop::Time);
}

/// Spec 11: the expected share is that of the placement just made, not of the plan that was not carried out.
#[test]
fn a_run_that_stops_early_expects_what_it_moved() {
    let (mut space, _) = Space::with_hot_ones();
    let late = OptimizeSettings { time: Nanos::ZERO, movers: 1, ..unthrottled() };
    let done = space.optimized(&late);
    let facts = &done.report.facts;
    assert_eq!(facts.moves.stop, MoveStop::Time);
    assert!(facts.moves.up < 4, "{:?}", facts.moves);
    // 4 extents of 50 reads and a write each are hot; those moved down for them took one write each.
    let before = done.share_before.expect("it was used");
    let won = facts.moves.up * 51 - facts.moves.down;
    let expected = before + won as f64 / facts.answered as f64;
    assert!((facts.expected_share.expect("it was used") - expected).abs() < 1e-9, "{facts:?}");
    assert!(done.share_planned > Some(0.7) && done.share_planned > facts.expected_share);
    let json = done.to_json();
    let percent = |pointer: &str| json.pointer(pointer).and_then(serde_json::Value::as_f64);
    assert_eq!(percent("/expected_percent"), facts.expected_share.map(|share| 100.0 * share));
    assert_eq!(percent("/optimization/share_expected_percent"), percent("/expected_percent"));
    // What is left is moved by the next run, whose window was idle: there is nothing to expect.
    let rest = space.optimized(&unthrottled());
    assert_eq!((facts.moves.up + rest.report.facts.moves.up, rest.share_planned), (4, None));
}

/// Section 11: advice is not to optimize more often where an optimization would serve no more.
#[test]
fn advice_names_what_stands_in_the_way_of_a_better_placement() {
    let advice = |space: &mut Space| space.engine.tier_report(0, 6_000.0).advice.suggestions;
    let has = |found: &[String], words: &str| found.iter().any(|one| one.contains(words));
    let (mut space, _) = Space::with_hot_ones();
    let found = advice(&mut space);
    assert!(has(&found, "optimize: "), "{found:?}");
    // The tier is full of what is pinned there.
    let fast = space.fast_extents();
    space.engine.tiering_mut(0).pins.set(0, fast * EXTENT, FAST).expect("a range");
    let found = advice(&mut space);
    assert!(has(&found, "pins stand in the way"), "{found:?}");
    assert!(!has(&found, "optimize: ") && !has(&found, "optimize more often"), "{found:?}");
    let run = space.optimized(&unthrottled()).report;
    assert_eq!((run.facts.moves.up_requested, run.advice.suggestions), (0, found));

    // As many extents as fit are hotter than the others, but by fewer I/Os than a move costs.
    let mut space = Space::new(0);
    let extents = space.engine.size(0) / EXTENT;
    for extent in 0..extents {
        space.write(extent * EXTENT, 1);
    }
    for nth in 0..4 * space.fast_extents() {
        space.read((extents - 1 - nth / 4) * EXTENT);
    }
    let found = advice(&mut space);
    assert!(has(&found, "too few I/Os to be worth their moves"), "{found:?}");
    assert!(!has(&found, "optimize: ") && !has(&found, "optimize more often"), "{found:?}");
}

#[test]
fn pinned_ranges_go_where_they_belong() {
    let (mut space, _) = Space::with_hot_ones();
    let pins = &mut space.engine.tiering_mut(0).pins;
    pins.set(EXTENT / 2, EXTENT, SLOW).expect("a range");
    let status = |space: &Space| {
        let found = space.engine.pin_statuses(0).remove(0);
        (found.placement, found.state, found.bytes_pinned)
    };
    // Every extent is mapped: the Capacity tier is full, and what may leave it makes room.
    assert_eq!(status(&space), (PlacementStatus::NotOnTier, PinState::Pending, 2 * EXTENT));
    space.optimized(&unthrottled());
    assert_eq!(status(&space), (PlacementStatus::CompletelyOnTier, PinState::Ok, 2 * EXTENT));
    assert_eq!(space.read(EXTENT), 1);
}

/// The advice is about what moved in the end (section 11), and extents that pins alone send to and fro are no thrash (10.3).
#[test]
fn what_pins_moved_without_io_is_told_and_is_no_thrash() {
    let (mut space, extents) = Space::with_hot_ones();
    space.optimized(&unthrottled());
    for nth in 5..=8 {
        space.ask(RequestKind::Discard, (u64::from(extents) - nth) * EXTENT, &mut [0; 65536]);
    }
    space.ask(RequestKind::Flush, 0, &mut []);
    space.optimized(&unthrottled());
    for tier in [SLOW, FAST, SLOW, FAST] {
        let pin = space.engine.tiering_mut(0).pins.set(0, 2 * EXTENT, tier).expect("a range");
        let report = space.optimized(&unthrottled()).report;
        let moves = &report.facts.moves;
        let said = &report.advice.suggestions;
        match moves.up + moves.down {
            0 => assert_eq!(said, &["no I/O in window; no moves"], "{tier:?}"),
            moved => {
                let moved = format!("no I/O in window; {moved} extents moved");
                assert!(said[0].starts_with(&moved), "{tier:?}: {said:?}");
            }
        }
        assert_eq!(space.engine.range_status(0, (0, 2 * EXTENT), tier).state, PinState::Ok);
        assert!(space.engine.tiering_mut(0).pins.clear(pin));
        let thrash = space.engine.tiering(0).history.thrash();
        assert_eq!((thrash.demoted_again, thrash.guarded), (0, false), "{tier:?}");
    }
}

#[test]
fn moves_keep_to_the_rate_that_is_set() {
    let (mut space, _) = Space::with_hot_ones();
    let slow = OptimizeSettings { rate: Some(64 << 10), ..OptimizeSettings::default() };
    let began = space.now;
    let done = space.optimized(&slow);
    // 8 extents of one block each: what the throttle counts are the blocks that are written.
    assert_eq!(done.report.facts.moves.bytes, 8 * 4096);
    let took = space.now.since(began);
    assert!(took >= Nanos(300_000_000) && took < Nanos::from_secs(1), "{took:?}");
    assert_eq!(space.engine.move_rate(), Some(64 << 10));
    // Each of 8 extents is read and written to two disks.
    let (mut space, _) = Space::with_hot_ones();
    let slow = OptimizeSettings { ios: Some(8), ..unthrottled() };
    let began = space.now;
    space.optimized(&slow);
    let took = space.now.since(began);
    assert!(took >= Nanos(1_500_000_000) && took < Nanos::from_secs(5), "{took:?}");
}
