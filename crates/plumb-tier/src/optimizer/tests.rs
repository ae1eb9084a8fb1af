mod later;

use super::*;
use crate::heat::{HeatMap, HeatSettings, HostIoKind};
use crate::random::Random;

/// A small disk: a tier for each extent.
struct Disk(Vec<Option<TierName>>);

impl Placement for Disk {
    fn extents(&self) -> u32 {
        u32::try_from(self.0.len()).expect("small")
    }
    fn tier(&self, extent: u32) -> Option<TierName> {
        self.0[usize::try_from(extent).expect("small")]
    }
}

const EXTENT: u64 = 1 << 20;

/// The bar of the reference devices, with a map whose plans have put extents where they are, or one that has made none.
fn reference(settled: bool) -> Bar {
    let mut heat = HeatMap::new(HeatSettings::new(1));
    heat.record_many(0, HostIoKind::Read, 9);
    heat.begin_window();
    heat.advance(if settled { 1000 } else { 0 });
    Bar::reference(&heat)
}

/// The score of an extent whose I/Os come one by one.
fn one_by_one(score: f32) -> Sure {
    Sure { score, dispersion: 1.0 }
}

/// All of a request, owned.
struct Case {
    heat: HeatMap,
    disk: Disk,
    pins: PinTable,
    history: MoveHistory,
    room: Room,
    bar: Bar,
    limits: PlanLimits,
}

impl Case {
    /// Extents as `P30` (Performance, score 30), `C7`, or `-` (not mapped); slots of the Performance tier.
    fn new(extents: &str, slots: u64) -> Self {
        let words: Vec<&str> = extents.split_whitespace().collect();
        let count = u32::try_from(words.len()).expect("small");
        let mut heat = HeatMap::new(HeatSettings::new(count));
        let tier = |word: &&str| match word.chars().next() {
            Some('P') => Some(TierName::Performance),
            Some('C') => Some(TierName::Capacity),
            _ => None,
        };
        for (extent, word) in (0..).zip(&words) {
            if let Ok(score) = word[1..].parse() {
                heat.record_many(extent, HostIoKind::Read, score);
            }
        }
        Self {
            heat,
            disk: Disk(words.iter().map(tier).collect()),
            pins: PinTable::new(EXTENT),
            history: MoveHistory::new(),
            room: Room { performance_slots: slots, capacity_free: 100, reserve: 0 },
            bar: Bar::none(),
            limits: PlanLimits::none(),
        }
    }

    fn plan(&self) -> Plan {
        let Self { heat, disk, pins, history, room, bar, limits } = self;
        plan(&PlanRequest {
            heat,
            placement: disk,
            pins,
            history,
            room: *room,
            bar: *bar,
            limits: *limits,
        })
    }

    /// The moves as `5^` (up) and `3v` (down).
    #[track_caller]
    fn check(&self, wanted: &str) {
        assert_eq!(shown(&self.plan().moves), wanted);
    }

    fn statuses(&self) -> Vec<PinStatus> {
        self.pins.statuses(&self.disk, self.room, false)
    }
}

fn shown(moves: &[Move]) -> String {
    let arrow = |to| if to == TierName::Performance { '^' } else { 'v' };
    let words: Vec<String> =
        moves.iter().map(|made| format!("{}{}", made.extent, arrow(made.to))).collect();
    words.join(" ")
}

#[test]
fn the_hottest_displaces_the_coldest() {
    Case::new("P3 C90 P50", 2).check("0v 1^");
    Case::new("P3 C90 C91 P50", 2).check("0v 2^ 3v 1^");
    // Free slots first, then swaps; ties by number; what is not mapped does not move.
    Case::new("C5 P1 C9 - C5 P1", 3).check("2^ 1v 0^ 5v 4^");
}

#[test]
fn when_all_is_cold_nothing_moves() {
    let mut case = Case::new("P C P C", 2);
    case.check("");
    case.bar = reference(true);
    case.check("");
    let idle = case.plan();
    assert_eq!((idle.ios, idle.expected_share()), (0, None));
    // Cold, and the tier half empty: still no reason.
    Case::new("P C C C", 4).check("");
}

#[test]
fn hotness_is_relative_above_an_absolute_bar() {
    // Relative: the hottest extents of the disk, whatever they count.
    let mut case = Case::new("P20 C40 P2000 C4000", 2);
    case.bar = Bar { break_even: 5.0, hysteresis: 0.25, ..Bar::none() };
    case.check("0v 3^");
    // Absolute: a nearly idle disk does not churn.
    let mut idle = Case::new("P0 C4 P1 C3", 2);
    idle.bar = case.bar;
    idle.check("");
}

#[test]
fn hysteresis_wants_a_quarter_more() {
    for (hot, wanted) in [(124, ""), (125, "0v 1^")] {
        let mut case = Case::new(&format!("P100 C{hot}"), 1);
        case.bar = Bar { break_even: 5.0, hysteresis: 0.25, ..Bar::none() };
        case.check(wanted);
    }
    for (hot, wanted) in [(149, ""), (150, "0v 1^")] {
        let mut case = Case::new(&format!("P100 C{hot}"), 1);
        case.bar = Bar { break_even: 5.0, hysteresis: 0.25, raised: 2.0, ..Bar::none() };
        case.check(wanted);
    }
}

/// Scores are sums of I/Os that come by chance: who displaces another is hotter by more than that makes of both. Who displaces
/// nobody need not be.
#[test]
fn a_gain_that_may_be_chance_is_none() {
    // 5 deviations of half of what both have counted: 40.8 of 133.
    for (hot, wanted) in [(86, ""), (87, "0v 1^")] {
        let mut case = Case::new(&format!("P46 C{hot}"), 1);
        case.bar = reference(true);
        case.check(wanted);
    }
    // Half as many while extents lie where there was room for them.
    for (hot, wanted) in [(64, ""), (65, "0v 1^")] {
        let mut case = Case::new(&format!("P46 C{hot}"), 1);
        case.bar = reference(false);
        case.check(wanted);
    }
    let mut case = Case::new("P46 C8 C7", 2);
    case.bar = reference(true);
    case.check("1^");
}

fn made(extent: u32, to: TierName) -> Move {
    Move { extent, score: 0.0, to, reason: MoveReason::Heat }
}

#[test]
fn what_moved_lately_needs_twice_the_bar() {
    let mut case = Case::new("P100 C140 C130", 1);
    case.bar = Bar { break_even: 5.0, hysteresis: 0.25, ..Bar::none() };
    case.history.run_ended(&[made(1, TierName::Capacity)]);
    // Extent 1 is hotter, but has just moved; extent 2 clears the plain bar.
    case.check("0v 2^");
    case.history.run_ended(&[]);
    case.check("0v 2^");
    case.history.run_ended(&[]);
    case.check("0v 1^");
    // A victim that has just come up is passed over for one that has not.
    let mut case = Case::new("P10 P20 C35", 2);
    case.bar = Bar { break_even: 14.0, hysteresis: 0.25, ..Bar::none() };
    case.history.run_ended(&[made(0, TierName::Performance)]);
    case.check("1v 2^");
}

#[test]
fn a_thrashing_disk_raises_its_bar_until_it_rests() {
    let mut history = MoveHistory::new();
    let up: Vec<Move> = (0..100).map(|extent| made(extent, TierName::Performance)).collect();
    let down = |count: u32| -> Vec<Move> {
        (0..count).map(|extent| made(extent, TierName::Capacity)).collect()
    };
    history.run_ended(&up);
    history.run_ended(&down(20));
    assert_eq!(history.thrash(), Thrash { promoted: 100, demoted_again: 20, guarded: false });
    history.run_ended(&[made(99, TierName::Capacity)]);
    assert!(history.thrash().guarded, "21 of 100");
    assert_eq!(history.raised(), 2.0);
    // The first run is forgotten after three: nothing is known to thrash any more.
    history.run_ended(&[]);
    assert_eq!(history.thrash(), Thrash { promoted: 0, demoted_again: 21, guarded: false });
    // What was promoted more than 3 runs ago was no mistake.
    let mut slow = MoveHistory::new();
    slow.run_ended(&up);
    (0..3).for_each(|_| slow.run_ended(&[]));
    slow.run_ended(&down(100));
    assert_eq!(slow.thrash().demoted_again, 0);
    let mut quick = MoveHistory::new();
    quick.run_ended(&up);
    (0..2).for_each(|_| quick.run_ended(&[]));
    quick.run_ended(&down(100));
    assert_eq!(quick.thrash().demoted_again, 100);
}

/// Continuous mode makes 24 runs in a window: what goes up and down in the course of hours goes back and forth (10.3).
#[test]
fn runs_of_one_window_count_as_one() {
    let moves = |to| -> Vec<Move> { (0..100).map(|extent| made(extent, to)).collect() };
    let rest = |history: &mut MoveHistory, windows: u32| {
        for _ in 0..windows {
            history.run_ended(&[]);
            (0..23).for_each(|_| history.run_went_on(&[]));
        }
    };
    for (windows, again) in [(0, 100), (2, 100), (3, 0)] {
        let mut history = MoveHistory::new();
        history.run_ended(&[]);
        history.run_went_on(&moves(TierName::Performance));
        (0..12).for_each(|_| history.run_went_on(&[]));
        assert!(history.is_recent(99));
        rest(&mut history, windows);
        history.run_went_on(&moves(TierName::Capacity));
        let thrash = history.thrash();
        assert_eq!((thrash.demoted_again, thrash.guarded), (again, again > 0), "{windows}");
        // Those without the guard are forgotten by windows, too.
        rest(&mut history, 3);
        assert_eq!(history.thrash(), Thrash::default());
    }
}

/// `tier pin … --now` and back again is what somebody wants, and what goes up and down for it is no mistake of plans (10.3).
#[test]
fn what_pins_move_takes_no_part_in_what_goes_back_and_forth() {
    let moved = |count: u32, to, reason| -> Vec<Move> {
        (0..count).map(|extent| Move { reason, ..made(extent, to) }).collect()
    };
    let mut history = MoveHistory::new();
    for _ in 0..3 {
        history.run_ended(&moved(100, TierName::Performance, MoveReason::Pin));
        assert!(history.is_recent(99), "it needs twice the bar all the same");
        history.run_ended(&moved(100, TierName::Capacity, MoveReason::Pin));
    }
    assert_eq!(history.thrash(), Thrash::default());
    // Those that a plan promoted make room for a pin; and what a pin promoted goes when the pin has gone.
    let mut mixed = MoveHistory::new();
    mixed.run_ended(&moved(50, TierName::Performance, MoveReason::Heat));
    mixed.run_ended(&moved(50, TierName::Capacity, MoveReason::Pin));
    mixed.run_ended(&moved(100, TierName::Performance, MoveReason::Pin));
    assert_eq!(mixed.thrash(), Thrash { promoted: 50, ..Thrash::default() });
    mixed.run_ended(&moved(100, TierName::Capacity, MoveReason::Heat));
    assert_eq!(mixed.thrash(), Thrash::default());
}

#[test]
fn budgets_keep_the_best_part() {
    let mut case = Case::new("P1 P2 C30 C20 C10", 3);
    case.check("2^ 0v 3^ 1v 4^");
    for (moved, promoted, wanted) in
        [(5, 9, "2^ 0v 3^ 1v 4^"), (4, 9, "2^ 0v 3^"), (2, 9, "2^"), (9, 2, "2^ 0v 3^"), (0, 9, "")]
    {
        case.limits = PlanLimits { moved, promoted };
        case.check(wanted);
        assert_eq!(case.plan().budget_spent, wanted.len() < 14, "{wanted}");
    }
}

/// 10.7: what is requested is what is worth it, whatever a budget leaves of it; one that leaves nothing is told with the least
/// that helps.
#[test]
fn a_budget_hides_nothing_of_what_is_wanted() {
    let mut case = Case::new("P1 P2 C30 C20 C10", 3);
    let full = PlanLimits { moved: 2, promoted: 1 };
    let room = PlanLimits { moved: 1, promoted: 1 };
    for (moved, promoted, within, least) in [
        (u64::MAX, u64::MAX, [3, 2], None),
        (2, 9, [1, 0], None),
        (9, 2, [2, 1], None),
        (9, 0, [0, 0], Some(room)),
        (0, 9, [0, 0], Some(room)),
    ] {
        case.limits = PlanLimits { moved, promoted };
        let planned = case.plan();
        let counts = |count: &dyn Fn(TierName) -> u64| {
            [TierName::Performance, TierName::Capacity].map(count)
        };
        assert_eq!(counts(&|to| planned.count(to)), [3, 2], "{moved} {promoted}");
        assert_eq!(counts(&|to| planned.within_budget(to)), within, "{moved} {promoted}");
        assert_eq!(planned.least, least, "{moved} {promoted}");
    }
    // A full tier takes a swap for each.
    let mut case = Case::new("P1 P2 C30 C20", 2);
    case.limits = PlanLimits { moved: 1, promoted: 9 };
    let planned = case.plan();
    assert_eq!((planned.wanted, planned.least), ([2, 2], Some(full)));
    assert!(planned.moves.is_empty() && planned.budget_spent);
}

#[test]
fn reserved_slots_are_freed_by_the_coldest() {
    let mut case = Case::new("P5 P4 P3 C90 C1", 3);
    case.room.reserve = 1;
    case.check("2v 1v 3^");
    case.room.capacity_free = 0;
    let stuck = case.plan();
    assert_eq!((shown(&stuck.moves).as_str(), stuck.stuck), ("2v 3^", 1));
    assert_eq!(stuck.reserve_pinned, 0);
    // What is pinned there stays, whatever is to be free.
    case.pins.set(0, 2 * EXTENT, TierName::Performance).expect("a range");
    case.room = Room { capacity_free: 9, reserve: 3, ..case.room };
    let pinned = case.plan();
    assert_eq!((shown(&pinned.moves).as_str(), pinned.stuck), ("2v", 0));
    assert_eq!(pinned.reserve_pinned, 2);
    case.room.capacity_free = 0;
    let both = case.plan();
    assert_eq!((both.stuck, both.reserve_pinned), (1, 2));
}

#[test]
fn pins_come_first_and_stay() {
    let mut case = Case::new("P9 P8 C1 C0 C7", 2);
    case.pins.set(2 * EXTENT, EXTENT, TierName::Performance).expect("a range");
    // The pinned one takes the coldest place; the hot one below is still colder than who stays.
    case.check("1v 2^");
    assert_eq!(case.statuses()[0].state, PinState::Pending);
    // Pinned down, though hot: its place goes to the next.
    case.pins.clear(PinId(1));
    case.pins.set(0, EXTENT, TierName::Capacity).expect("a range");
    case.check("0v 4^");
    // A full tier below: for one that may leave it, the hottest of them, however cold.
    let mut case = Case::new("P9 P8 C0 C1 C0", 2);
    case.room.capacity_free = 0;
    case.pins.set(0, EXTENT, TierName::Capacity).expect("a range");
    assert_eq!(case.statuses()[0].state, PinState::Pending);
    case.check("0v 3^");
    // Who is pinned there does not leave it.
    case.pins.set(2 * EXTENT, 3 * EXTENT, TierName::Capacity).expect("a range");
    assert_eq!(case.statuses()[0].state, PinState::InsufficientCapacity);
    let stuck = case.plan();
    assert_eq!((shown(&stuck.moves).as_str(), stuck.stuck), ("", 1));
    // No pinned extent is a victim.
    let mut case = Case::new("P0 P1 C200", 2);
    case.pins.set(0, 2 * EXTENT, TierName::Performance).expect("a range");
    case.check("");
    assert_eq!(case.statuses()[0].state, PinState::Ok);
}

#[test]
fn pins_without_room_say_so_in_the_order_of_their_creation() {
    let mut case = Case::new("C1 C1 C1 C1 P50", 3);
    let first = case.pins.set(2 * EXTENT, 2 * EXTENT, TierName::Performance).expect("a range");
    let second = case.pins.set(0, 2 * EXTENT, TierName::Performance).expect("a range");
    let planned = case.plan();
    assert_eq!(shown(&planned.moves), "2^ 3^ 4v 0^");
    assert_eq!(planned.pins_refused, 1);
    let states: Vec<_> = case.statuses().iter().map(|status| (status.pin, status.state)).collect();
    assert_eq!(states, [(first, PinState::Pending), (second, PinState::InsufficientCapacity)]);
}

/// (10.1) The objective holds among the extents of a pin, too.
#[test]
fn of_a_pin_with_room_in_part_the_hottest_extents_are_there() {
    let pinned = |extents: &str, slots, count: u64| {
        let mut case = Case::new(extents, slots);
        case.pins.set(0, count * EXTENT, TierName::Performance).expect("a range");
        case
    };
    // Where they are already nothing moves, and none of it is what was asked for.
    let mut case = pinned("C0 C1 P70 P60 C90", 2, 4);
    case.check("");
    assert_eq!(case.plan().pins_refused, 2);
    assert_eq!(case.statuses()[0].state, PinState::InsufficientCapacity);
    case.bar = Bar { break_even: 30.0, hysteresis: 0.0, deviations: 0.0, raised: 1.0 };
    case.check("");
    // Nobody else has a place, however hot: the hottest of the pin go first, and cold ones fill what is left.
    pinned("C0 C1 C9 C0 P60 C90", 3, 4).check("2^ 1^ 4v 0^");
    pinned("C0 C1 C9 P60 P90", 2, 3).check("3v 2^ 4v 1^");
    // Among themselves they change places as others do, where it is worth it.
    let mut case = pinned("P1 P50 C90 C2", 2, 4);
    case.check("0v 2^");
    case.bar = Bar { break_even: 100.0, hysteresis: 0.0, deviations: 0.0, raised: 1.0 };
    case.check("");
    // An earlier pin takes the places of the coldest of it, and that is told before it happens.
    let mut case = Case::new("C0 P5 P4 P3", 3);
    let first = case.pins.set(0, EXTENT, TierName::Performance).expect("a range");
    let second = case.pins.set(EXTENT, 3 * EXTENT, TierName::Performance).expect("a range");
    case.check("3v 0^");
    let states: Vec<_> = case.statuses().iter().map(|status| (status.pin, status.state)).collect();
    assert_eq!(states, [(first, PinState::Pending), (second, PinState::InsufficientCapacity)]);
    // Within budgets as well.
    case.limits = PlanLimits { moved: 1, promoted: 1 };
    let planned = case.plan();
    assert_eq!((shown(&planned.moves).as_str(), planned.budget_spent), ("", true));
}

/// The first pin of a range keeps its place in the order, whoever asks for the same later: PIN-5 is about different tiers.
#[test]
fn pins_again_on_the_same_tier_take_no_room_from_earlier_ones() {
    let mut case = Case::new("C1 C1 C1 C1 P50", 3);
    let mut pin =
        |start: u64, len: u64| case.pins.set(start, len, TierName::Performance).expect("a range");
    let first = pin(2 * EXTENT, 2 * EXTENT);
    let second = pin(0, 2 * EXTENT);
    assert_eq!(pin(2 * EXTENT, 2 * EXTENT), first, "it is pinned");
    // Other ranges with some of the same extents.
    let wider = pin(2 * EXTENT - 1, 3 * EXTENT);
    let inner = pin(3 * EXTENT, 10);
    let found: Vec<_> = case.statuses().iter().map(|one| (one.pin, one.state)).collect();
    let (waits, short) = (PinState::Pending, PinState::InsufficientCapacity);
    assert_eq!(found, [(first, waits), (second, short), (wider, short), (inner, waits)]);
    assert_eq!(shown(&case.plan().moves), "2^ 3^ 4v 0^");

    // Where a later pin with the other tier decides, the same pin again is a new one, and decides.
    let down = case.pins.set(3 * EXTENT, 1, TierName::Capacity).expect("a range");
    let again = case.pins.set(2 * EXTENT, 2 * EXTENT, TierName::Performance).expect("a range");
    assert!(again > down, "{again:?}");
    let statuses = case.statuses();
    let down = statuses.iter().find(|one| one.pin == down).expect("it is there");
    assert_eq!((down.state, &*down.overridden_by), (PinState::Ok, &[again][..]));
    assert_eq!(case.pins.pins().len(), 6);
}

#[test]
fn of_two_pins_the_later_decides_and_the_earlier_says_so() {
    let mut case = Case::new("P9 P9 P9 C9", 4);
    let whole = case.pins.set(0, 4 * EXTENT, TierName::Performance).expect("a range");
    let part = case.pins.set(EXTENT + 100, 100, TierName::Capacity).expect("a range");
    case.check("3^ 1v");
    case.disk.0[3] = Some(TierName::Performance);
    case.disk.0[1] = Some(TierName::Capacity);
    case.check("");
    let statuses = case.statuses();
    assert_eq!(statuses[0].placement, PlacementStatus::PartiallyOnTier);
    assert_eq!((statuses[0].state, statuses[0].bytes_on_tier), (PinState::Ok, 3 * EXTENT));
    assert_eq!((&*statuses[0].overridden_by, statuses[0].bytes_overridden), (&[part][..], EXTENT));
    assert_eq!(statuses[1].placement, PlacementStatus::CompletelyOnTier);
    assert_eq!((statuses[1].bytes_on_tier, statuses[1].bytes_pinned), (100, EXTENT));
    assert!(case.pins.clear(part) && !case.pins.clear(part));
    case.check("1^");
    assert_eq!(case.statuses()[0].pin, whole);
    // One that a later pin covers is never completely on its tier, be it there (PIN-5), nor is one of which a part is.
    case.disk.0[1] = Some(TierName::Performance);
    assert_eq!(case.statuses()[0].placement, PlacementStatus::CompletelyOnTier);
    let over = case.pins.set(0, 4 * EXTENT, TierName::Capacity).expect("a range");
    let covered = &case.statuses()[0];
    assert_eq!((&*covered.overridden_by, covered.bytes_overridden), (&[over][..], 4 * EXTENT));
    assert_eq!(covered.placement, PlacementStatus::PartiallyOnTier);
}

#[test]
fn statuses_count_bytes_and_holes_count_as_placed() {
    let mut case = Case::new("- P1 C1 -", 4);
    case.pins.set(EXTENT / 2, 3 * EXTENT, TierName::Performance).expect("a range");
    case.pins.set(2 * EXTENT, 10, TierName::Performance).expect("a range");
    case.pins.set(3 * EXTENT, 900 * EXTENT, TierName::Capacity).expect("a range");
    let seen: Vec<_> = case
        .statuses()
        .iter()
        .map(|status| (status.placement, status.bytes_on_tier, status.bytes))
        .collect();
    let wanted = [
        (PlacementStatus::PartiallyOnTier, 2 * EXTENT, 3 * EXTENT),
        (PlacementStatus::NotOnTier, 0, 10),
        (PlacementStatus::CompletelyOnTier, 900 * EXTENT, 900 * EXTENT),
    ];
    assert_eq!(seen, wanted);
    assert_eq!(case.pins.set(0, 0, TierName::Capacity), None);
    assert_eq!(case.pins.set(u64::MAX, 2, TierName::Capacity), None);
    assert_eq!(case.pins.set(EXTENT << 33, 1, TierName::Capacity), None);
}

#[test]
fn zones_are_what_painting_extent_by_extent_gives() {
    let mut random = Random::new(31);
    for _ in 0..10_000 {
        let mut pins = PinTable::new(EXTENT);
        let mut painted = [None; 40];
        for nth in 0..=usize::try_from(random.below(7)).expect("small") {
            let (start, len) = (random.below(30 * EXTENT), 1 + random.below(9 * EXTENT));
            let tier = [TierName::Performance, TierName::Capacity]
                [usize::try_from(random.below(2)).expect("small")];
            pins.set(start, len, tier).expect("a range");
            let last = (start + len - 1) / EXTENT;
            for at in start / EXTENT..=last {
                let extent = &mut painted[usize::try_from(at).expect("small")];
                // Of several with one tier the first decides.
                *extent = extent.filter(|nth: &usize| pins.pins()[*nth].tier == tier).or(Some(nth));
            }
        }
        let zones = pins.zones();
        for (extent, wanted) in (0..).zip(painted) {
            assert_eq!(pins::zone_at(&zones, extent).map(|zone| zone.pin), wanted);
        }
        assert!(zones.windows(2).all(|pair| pair[0].last < pair[1].first));
    }
}

/// A disk of at most 12 extents.
fn random_case(random: &mut Random) -> Case {
    let count = 1 + random.below(12);
    let words: Vec<String> = (0..count)
        .map(|_| match random.below(7) {
            0 => "-".to_owned(),
            1 | 2 => format!("P{}", random.below(200)),
            3 => format!("P{}", random.below(4)),
            _ => format!("C{}", random.below(200)),
        })
        .collect();
    let used = words.iter().filter(|word| word.starts_with('P')).count();
    let slots = plumb_units::convert::to_u64(used) + random.below(4);
    let mut case = Case::new(&words.join(" "), slots);
    case.room.capacity_free = random.below(3);
    case
}

/// Bits of the extents on the Performance tier after the moves; no extent moves twice or to where it is.
fn after(case: &Case, moves: &[Move]) -> u32 {
    let mut tiers = case.disk.0.clone();
    let mut seen = std::collections::HashSet::new();
    for made in moves {
        let at = usize::try_from(made.extent).expect("small");
        assert_eq!(tiers[at], Some(made.to.other()));
        assert!(seen.insert(made.extent));
        tiers[at] = Some(made.to);
    }
    bits(&tiers)
}

fn bits(tiers: &[Option<TierName>]) -> u32 {
    let fast = |tier: &Option<TierName>| u32::from(*tier == Some(TierName::Performance));
    tiers.iter().enumerate().map(|(nth, tier)| fast(tier) << nth).sum()
}

fn worth(case: &Case, set: u32) -> f32 {
    (0..case.disk.extents())
        .filter(|extent| set >> extent & 1 == 1)
        .map(|extent| case.heat.extent(extent).score)
        .sum()
}

#[test]
fn no_placement_within_the_budgets_is_better() {
    let mut random = Random::new(41);
    let mut moved = 0;
    for _ in 0..10_000 {
        let mut case = random_case(&mut random);
        if random.one_in(2) {
            case.limits = PlanLimits { moved: random.below(6), promoted: random.below(4) };
        }
        let planned = case.plan();
        moved += planned.moves.len();
        let reached = after(&case, &planned.moves);
        let before = bits(&case.disk.0);
        let slots = case.room.performance_slots;
        let mapped: u32 = case
            .disk
            .0
            .iter()
            .enumerate()
            .map(|(nth, tier)| u32::from(tier.is_some()) << nth)
            .sum();
        let allowed = |set: u32| {
            let (up, down) = ((set & !before).count_ones(), (before & !set).count_ones());
            set & !mapped == 0
                && u64::from(set.count_ones()) <= slots
                && u64::from(up + down) <= case.limits.moved
                && u64::from(up) <= case.limits.promoted
        };
        assert!(allowed(reached), "{reached:b}");
        let best = (0..1 << case.disk.extents())
            .filter(|set| allowed(*set))
            .map(|set| worth(&case, set))
            .fold(0.0, f32::max);
        assert_eq!(worth(&case, reached), best, "{:?} of {:?}", planned.moves, case.disk.0);
    }
    assert!(moved > 10_000, "the cases move something: {moved}");
}

#[test]
fn with_pins_the_rest_is_as_good_as_it_can_be() {
    let mut random = Random::new(42);
    let mut tight = 0;
    for _ in 0..10_000 {
        let mut case = random_case(&mut random);
        case.room.capacity_free = 12;
        for _ in 0..random.below(3) {
            let tier = if random.one_in(2) { TierName::Performance } else { TierName::Capacity };
            case.pins.set(random.below(12 * EXTENT), 1 + random.below(9 * EXTENT), tier);
        }
        let planned = case.plan();
        let reached = after(&case, &planned.moves);
        let slots = case.room.performance_slots;
        // Pins in the order of their creation, each with what it decides about that is mapped (10.2 step 1).
        let zones = case.pins.zones();
        let mapped = (0..case.disk.extents()).filter(|extent| case.disk.tier(*extent).is_some());
        let (mut of_pins, mut free) = (vec![0_u32; case.pins.pins().len()], 0_u32);
        for extent in mapped {
            match pins::zone_at(&zones, extent) {
                Some(zone) => of_pins[zone.pin] |= 1 << extent,
                None => free |= 1 << extent,
            }
        }
        let (mut fast, mut partly) = (0_u32, None);
        for (pin, own) in case.pins.pins().iter().zip(of_pins) {
            let left = slots - u64::from(fast.count_ones());
            match pin.tier {
                TierName::Capacity => {}
                TierName::Performance if partly.is_some() => {}
                TierName::Performance if u64::from(own.count_ones()) <= left => fast |= own,
                TierName::Performance => partly = Some((own, left)),
            }
        }
        // The first one that has no room for all has room for as many of its own as there are places.
        if let Some((own, left)) = partly {
            tight += u32::from(left > 0);
            let chosen = (reached & own).count_ones();
            assert_eq!(u64::from(chosen), left, "{:?} of {:?}", planned.moves, case.disk.0);
            free = own;
        }
        assert_eq!(reached & !free, fast, "pins are as they should be");
        let filled = partly.map(|_| slots);
        let allowed = |set: &u32| {
            let count = u64::from(set.count_ones());
            set & !free == fast && filled.map_or(count <= slots, |filled| count == filled)
        };
        let best = (0..1 << case.disk.extents())
            .filter(allowed)
            .map(|set| worth(&case, set))
            .fold(0.0, f32::max);
        assert_eq!(worth(&case, reached), best, "{:?} of {:?}", planned.moves, case.disk.0);
    }
    assert!(tight > 200, "pins that have room in part: {tight}");
}

#[test]
fn the_bar_holds_and_no_pair_that_clears_it_is_left() {
    let mut random = Random::new(43);
    for _ in 0..10_000 {
        let mut case = random_case(&mut random);
        case.bar = Bar {
            break_even: random.below(40) as f32,
            hysteresis: 0.25,
            deviations: random.below(60) as f32 / 10.0,
            raised: 1.0 + random.below(3) as f32,
        };
        let planned = case.plan();
        let score = |extent: u32| case.heat.extent(extent).score;
        let mut victim = None;
        for made in &planned.moves {
            match made.to {
                TierName::Capacity => victim = Some(made.score),
                TierName::Performance => {
                    let (lost, least) = match victim.take() {
                        Some(lost) => {
                            (lost, case.bar.over(one_by_one(made.score), one_by_one(lost)))
                        }
                        None => (0.0, case.bar.for_free()),
                    };
                    assert!(made.score - lost >= least, "{:?}", planned.moves);
                }
            }
        }
        assert_eq!(victim, None, "nobody is demoted for nothing");
        let reached = after(&case, &planned.moves);
        let fast = |extent: &u32| reached >> extent & 1 == 1;
        let below = (0..case.disk.extents())
            .filter(|extent| case.disk.tier(*extent).is_some() && !fast(extent))
            .map(score)
            .fold(0.0, f32::max);
        let above = (0..case.disk.extents()).filter(fast).map(score).reduce(f32::min);
        let is_full = u64::from(reached.count_ones()) == case.room.performance_slots;
        let (lost, least) = match is_full {
            true => above.map_or((f32::MAX, 0.0), |lost| {
                (lost, case.bar.over(one_by_one(below), one_by_one(lost)))
            }),
            false => (0.0, case.bar.for_free()),
        };
        let gain = below - lost;
        assert!(gain <= 0.0 || gain < least, "{:?}", planned.moves);
        let wanted: u64 =
            (0..case.disk.extents()).filter(fast).map(|e| case.heat.extent(e).ios()).sum();
        assert_eq!(planned.ios_after, wanted);
    }
}
