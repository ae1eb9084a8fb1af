use plumb_io::clock::Clock;
use plumb_io::engine::MemoryQueue;

use super::*;
use crate::engine::{Account, MoveOutcome, Request, RequestKind};
use crate::tier_report::MoveStop;

/// The scenario of section 19.2 at 1:64, within its acceptance bounds.
#[test]
fn the_reference_scenario() {
    is_within_its_bounds(Scenario { whole: false, ..Scenario::reference(64) });
}

/// The same with the load's own `-h`: each write waits until its checksum is durable, too.
#[test]
fn the_reference_scenario_with_writes_through() {
    is_within_its_bounds(Scenario { whole: false, durable: true, ..Scenario::reference(64) });
}

fn is_within_its_bounds(scenario: Scenario) {
    let mut rig = Rig::sparse(&scenario.sizes()).expect("room");
    let found = scenario.run(&mut rig, |_| {}).expect("it works");
    let bare = Scenario { cache: false, ..scenario };
    let mut rig = Rig::sparse(&bare.sizes()).expect("room");
    let disks = bare.used(&mut rig, &mut |_| {}).expect("it works").iops();
    let bounds = acceptance(&scenario, &found, disks);
    assert_eq!(bounds.len(), 14);
    for bound in bounds {
        println!("{bound:?}");
        assert!(bound.holds(), "{bound:?}");
    }
    let rates = found.cases.each_ref().map(LoadOutcome::iops);
    assert!(rates[2] <= 1.05 * rates[0], "no faster than its disks: {rates:?}");
    let used = &found.cases[1].used;
    // A cache answers writes through at once, and more of them go to it.
    let least = if scenario.durable { 0.7 } else { 0.9 };
    assert!(used.share(used.capacity) > least, "{used:?}");
    let moves = found.optimization.report.facts.moves;
    assert_eq!((moves.stop, moves.up_requested), (MoveStop::Done, moves.up));
    assert!(found.verified > 10_000, "{}", found.verified);
    // A bound that cannot fail is none.
    let mut worse = found.clone();
    (worse.cases[0], worse.cases[2]) = (found.cases[1].clone(), found.cases[1].clone());
    let slower = &mut worse.cases[2];
    slower.ios /= 2;
    slower.series.iter_mut().for_each(|iops| *iops /= 2.0);
    (worse.cases[1], worse.cache_taken) = (found.cases[0].clone(), 0);
    worse.placement.placement = crate::optimizer::PlacementStatus::NotOnTier;
    worse.optimization.report.facts.moves = crate::tier_report::MoveFigures::default();
    let kept: Vec<&str> = acceptance(&scenario, &worse, disks)
        .iter()
        .filter(|bound| bound.holds())
        .map(|bound| bound.what)
        .collect();
    assert_eq!(kept, Vec::<&str>::new());
}

/// Section 4: extents that are written now and then stay open, however many rounds there are meanwhile. A round has one frame, and none
/// for a record that opens an extent again.
#[test]
fn a_round_of_writes_through_has_one_frame() {
    let scenario = Scenario { durable: true, ..Scenario::reference(256) };
    let mut rig = Rig::sparse(&scenario.sizes()).expect("room");
    let file = scenario.files()[0];
    rig.fill(file, true).expect("it works");
    rig.settle();
    let uses = |rig: &Rig<_>| [0, 3].map(|disk| rig.engine.disk_use(disk));
    let before = uses(&rig);
    let rate = rig.run(&scenario.load(file)).expect("it works").iops();
    let after = uses(&rig);
    // The first SSD has the journal; the last one is flushed once a round.
    let frames = after[0].metadata_writes - before[0].metadata_writes;
    let rounds = after[1].flushes - before[1].flushes;
    println!("{frames} frames in {rounds} rounds, {rate:.0} I/Os per second");
    assert!(rate >= 0.95 * 4.0 * 30_107.0, "{rate}");
    assert!(rounds > 500 && frames * 10 <= rounds * 11, "{frames} frames in {rounds} rounds");
    // Extents that rest are closed all the same.
    assert!(rig.engine.open_extents() > 300, "{}", rig.engine.open_extents());
    let end = Nanos(rig.now().0 + Nanos::from_secs(9).0);
    while rig.now() < end {
        rig.step();
    }
    assert_eq!(rig.engine.open_extents(), 0);
}

/// Whatever blocks hold, the engine decides the same: tags in the place of payloads change nothing.
#[test]
fn tags_and_payloads_lead_to_the_same_decisions() {
    let scenario = Scenario::reference(4096);
    let mut tags = Rig::sparse(&scenario.sizes()).expect("room");
    let mut payloads = Rig::new(&scenario.sizes(), MemoryQueue::of_sizes);
    let payloads = payloads.as_mut().expect("room");
    // Every byte of a block that nothing else is written to.
    for client in 0..payloads.engine.clients() {
        let noise = (0_u32..).map(|nth| nth.wrapping_mul(2_654_435_761).to_le_bytes()[3]);
        let buffer = payloads.engine.roomy_buffer(client, 256 << 10);
        buffer.iter_mut().zip(noise).for_each(|(byte, noise)| *byte = noise);
    }
    let (found, other) = (scenario.run(&mut tags, |_| {}), scenario.run(payloads, |_| {}));
    let (mut found, mut other) = (found.expect("it works"), other.expect("it works"));
    // Planning is timed by the clock on the wall.
    (found.optimization.planning_s, other.optimization.planning_s) = (0.0, 0.0);
    assert_eq!(found, other);
    assert_eq!(
        (0..2).map(|nth| tags.engine.disk_use(nth)).collect::<Vec<_>>(),
        (0..2).map(|nth| payloads.engine.disk_use(nth)).collect::<Vec<_>>()
    );
    assert!(found.cases[0].ios > 5_000 && found.optimization.report.facts.moves.up > 20);
}

/// WBC-3: eight destages for each rotating disk, and not one more, while a cache is full.
#[test]
fn destages_are_as_many_as_rotating_disks_sort_well() {
    let scenario = Scenario { whole: false, ..Scenario::reference(256) };
    let mut rig = Rig::sparse(&scenario.sizes()).expect("room");
    let [_, one, other, file] = scenario.files();
    scenario.make(&mut rig, one, false, &mut |_| {}).expect("it works");
    scenario.make(&mut rig, other, false, &mut |_| {}).expect("it works");
    scenario.make(&mut rig, file, true, &mut |_| {}).expect("it works");
    let load = Load { warm_up: Nanos::ZERO, ..scenario.load(file) };
    let end = Nanos(rig.now().0 + Nanos::from_secs(4).0);
    let clock = rig.clock.clone();
    let (mut most, mut all) = (vec![0; 8], 0);
    rig.run_while(&load, |engine| {
        let found = engine.destages_by_disk();
        all = all.max(found.iter().sum::<u32>());
        most.iter_mut().zip(&found).for_each(|(most, found)| *most = (*most).max(*found));
        clock.now() < end
    })
    .expect("it works");
    assert_eq!(most, [0, 0, 0, 0, 8, 8, 8, 8]);
    assert_eq!(all, 32);
    // WBC-7: an end waits for what is under way, and drains nothing.
    let (cached, before) = (rig.engine.cached_blocks(0), rig.now());
    let clock = rig.clock.clone();
    rig.engine.shut_down().expect("it comes to rest");
    let took = clock.now().since(before);
    assert!(cached > 200 && took < Nanos::from_millis(200), "{took:?} with {cached} blocks");
}

/// Five minutes at the rate of rotating disks are fewer I/Os per extent than a move costs: those that clear the bar
/// move, and the rest stays.
#[test]
fn what_does_not_clear_the_bar_stays() {
    let scenario = Scenario { whole: false, ..Scenario::reference(256) };
    let mut rig = Rig::sparse(&scenario.sizes()).expect("room");
    scenario.make(&mut rig, scenario.files()[0], true, &mut |_| {}).expect("it works");
    scenario.used(&mut rig, &mut |_| {}).expect("it works");
    rig.settle();
    let planned = rig.engine.plan_optimization(0, &OptimizeSettings::default());
    let up = planned.count(TierName::Performance);
    let extents = scenario.files()[3].1 >> 20;
    println!("{up} of {extents} extents of the file are to move");
    assert!((extents / 16..extents / 3).contains(&up), "{up} of {extents}");
}

#[test]
fn what_was_not_written_so_is_noticed() {
    let scenario = Scenario::reference(1024);
    let mut rig = Rig::sparse(&scenario.sizes()).expect("room");
    let file = scenario.files()[0];
    rig.remember(file);
    rig.fill(file, true).expect("it works");
    assert_eq!(rig.verify(7).ok(), Some((file.1 >> 12).div_ceil(7)));
    rig.versions.list[14] += 1;
    let error = rig.verify(7).expect_err("it is another one");
    assert!(matches!(error, ScenarioError::Content { block: 14 }), "{error}");
}

/// A used space at 1:1024 after a day with a hot file, and that file and the first one.
fn after_a_day() -> (Rig<plumb_io::engine::SparseQueue>, Scenario) {
    after_a_day_on(rig::DISKS)
}

/// The same on fewer disks of each kind, as large together.
fn after_a_day_on(disks: u8) -> (Rig<plumb_io::engine::SparseQueue>, Scenario) {
    let scenario = Scenario { seed: 3, ..Scenario::reference(1024) };
    let sizes = scenario.sizes();
    let larger = u64::from(rig::DISKS / disks);
    let sizes = Sizes { disks, ssd: larger * sizes.ssd, hdd: larger * sizes.hdd, ..sizes };
    let mut rig = Rig::sparse(&sizes).expect("room");
    scenario.make(&mut rig, scenario.files()[0], true, &mut |_| {}).expect("it works");
    scenario.used(&mut rig, &mut |_| {}).expect("it works");
    let load = scenario.load(scenario.files()[3]);
    let day = Load { duration: Nanos(load.duration.0 * DAY), ..load };
    rig.run(&day).expect("it works");
    rig.settle();
    (rig, scenario)
}

/// A load in the foreground that does not take all that the devices give.
#[derive(Clone, Copy)]
struct Foreground {
    what: &'static str,
    nth_file: usize,
    writes_percent: u64,
    outstanding: u32,
    /// So long it goes before it is measured: the throttle compares with up to a minute before.
    before_s: u64,
}

/// What an optimization did to it.
#[derive(Debug, Clone, Copy)]
struct Suffered {
    /// I/Os per second and 99th percentile, in those of the idle baseline.
    rate: f64,
    p99: f64,
    /// Of the writes that a move held: the share that was held no longer than may be. By what the last copy is read
    /// from: rotating disks when extents go up, SSDs when they go down.
    held: [f64; 2],
    /// The longest hold, in 99th percentiles of requests without moves.
    held_longest: [f64; 2],
}

impl Suffered {
    /// Section 25.
    fn is_little(&self) -> bool {
        self.rate >= 0.9 && self.p99 <= 1.5 && self.held.iter().all(|share| *share >= 0.99 - 1e-9)
    }
}

/// How long a move may hold writes (section 25): in nanoseconds, by the tier that extents move to.
const HELD_MOST: [(TierName, u64); 2] =
    [(TierName::Performance, 20_000_000), (TierName::Capacity, 2_000_000)];
/// One run has a hundred holds: what one in a hundred may exceed is told from the second by several runs.
const SEEDS: [u64; 3] = [9, 10, 11];

impl Foreground {
    /// Optimizes while it goes on; nothing is lost.
    fn suffers(&self, settings: &OptimizeSettings, seed: u64) -> Suffered {
        self.suffers_on(after_a_day(), settings, seed)
    }

    fn suffers_on(
        &self,
        (mut rig, scenario): (Rig<plumb_io::engine::SparseQueue>, Scenario),
        settings: &OptimizeSettings,
        seed: u64,
    ) -> Suffered {
        if self.nth_file == 2 {
            let (start, bytes) = scenario.files()[2];
            let pins = &mut rig.engine.tiering_mut(0).pins;
            pins.set(start, bytes, TierName::Capacity).expect("a range");
        }
        let load = Load {
            writes_percent: self.writes_percent,
            outstanding: self.outstanding,
            warm_up: Nanos::from_secs(self.before_s),
            duration: Nanos::from_secs(8),
            interval: Nanos::from_secs(1),
            ..scenario.load(scenario.files()[self.nth_file])
        };
        let idle = rig.run(&load).expect("it works");
        let now_s = rig.now().as_secs_f64();
        assert!(rig.engine.optimize(0, settings, now_s));
        let busy = Load { warm_up: Nanos::ZERO, seed, ..load };
        let busy = rig.run_while(&busy, |engine| engine.optimizing(0)).expect("it works");
        let done = rig.engine.take_optimization(0).expect("it has ended");
        let (what, moves) = (self.what, done.report.facts.moves);
        assert!(moves.up >= 50 && moves.stop == MoveStop::Done, "{what}: {moves:?}");
        let (rate, p99) = (busy.iops() / idle.iops(), busy.p99_ns as f64 / idle.p99_ns as f64);
        let held = HELD_MOST.map(|(tier, most)| {
            let within =
                |share: &u64| rig.engine.hold_time(tier, *share).is_none_or(|time| time.0 <= most);
            (0..=1000).rfind(within).map_or(0.0, |share| share as f64 / 1000.0)
        });
        println!(
            "{what}, at most {:?} a second: {:.0} I/Os per second, {:.1} % while extents moved at {:.1} MB/s; p99 {:.2} ms, {p99:.2} times; held no longer than may be: {held:?}",
            settings.rate,
            idle.iops(),
            100.0 * rate,
            moves.bytes as f64 / moves.seconds / 1e6,
            idle.p99_ns as f64 / 1e6
        );
        println!("{what}: {} up, {} down, refused {:?}", moves.up, moves.down, done.refused);
        for (tier, most) in HELD_MOST {
            let held = [500, 990].map(|share| rig.engine.hold_time(tier, share));
            let held = held.map(|time| time.map_or(0.0, |time| time.0 as f64));
            println!(
                "writes to extents that move to the {} tier held for {:.2} ms, p99 {:.2} ms ({:.1} to be), {:.1} and {:.1} times a request without moves",
                tier.name(),
                held[0] / 1e6,
                held[1] / 1e6,
                most as f64 / 1e6,
                held[0] / idle.mean_ns,
                held[1] / idle.mean_ns
            );
        }
        let held_longest = HELD_MOST.map(|(tier, _)| {
            let longest = rig.engine.hold_time(tier, 1000).unwrap_or(Nanos::ZERO);
            longest.0 as f64 / idle.p99_ns as f64
        });
        let writes = rig.engine.hold_time(TierName::Performance, 500);
        assert!(writes.is_some_and(|time| time.0 > 0), "{what}: held {writes:?}");
        rig.verify(7).expect("nothing is lost");
        Suffered { rate, p99, held, held_longest }
    }

    fn check(&self) {
        self.check_by(&SEEDS);
    }

    /// By the means of several runs, which it returns.
    fn check_by(&self, seeds: &[u64]) -> Suffered {
        let all: Vec<Suffered> =
            seeds.iter().map(|seed| self.suffers(&OptimizeSettings::default(), *seed)).collect();
        let mean =
            |of: &dyn Fn(&Suffered) -> f64| all.iter().map(of).sum::<f64>() / all.len() as f64;
        let held = [mean(&|one| one.held[0]), mean(&|one| one.held[1])];
        let (rate, p99) = (mean(&|one| one.rate), mean(&|one| one.p99));
        let found = Suffered { rate, p99, held, ..all[0] };
        assert!(found.is_little(), "{}: {found:?} of {all:?}", self.what);
        found
    }

    /// It goes on while the throttle works, and suffers when there is none: it is the throttle that does it.
    fn check_throttle(&self) {
        self.check();
        let settings = OptimizeSettings { rate: None, ..OptimizeSettings::default() };
        let found = self.suffers(&settings, SEEDS[0]);
        assert!(!found.is_little(), "{}: it does not need a throttle, and tests none", self.what);
    }
}

/// MOV-2: a hold ends in time, whoever it waits for; the move is given up, and nothing is lost.
#[test]
fn a_move_lets_go_of_writes_that_take_too_long() {
    let scenario = Scenario { seed: 3, whole: false, ..Scenario::reference(1024) };
    let mut rig = Rig::sparse(&scenario.sizes()).expect("room");
    scenario.make(&mut rig, scenario.files()[0], true, &mut |_| {}).expect("it works");
    scenario.used(&mut rig, &mut |_| {}).expect("it works");
    rig.settle();
    // With 320 outstanding a rotating disk answers after 200 ms.
    let file = scenario.files()[3];
    let load = Load { duration: Nanos::from_secs(20), ..scenario.load(file) };
    rig.engine.set_move_patience(Nanos::ZERO);
    let (mut next, mut ended) = (file.0 >> 20, Vec::new());
    rig.run_while(&load, |engine| {
        ended.extend(std::iter::from_fn(|| engine.pop_move()).map(|done| done.outcome));
        while engine.moves_left() < 4 {
            engine.move_extent(0, u32::try_from(next).expect("few"), TierName::Performance);
            next = if next + 1 == (file.0 + file.1) >> 20 { file.0 >> 20 } else { next + 1 };
        }
        ended.len() < 40
    })
    .expect("it works");
    let busy = ended.iter().filter(|outcome| **outcome == MoveOutcome::Busy).count();
    println!("{busy} of {} moves were given up: {ended:?}", ended.len());
    assert!(busy > 0, "{ended:?}");
    let longest = rig.engine.hold_time(TierName::Performance, 1000).expect("some were held");
    assert!(longest <= Nanos(20_000_000), "{longest:?}");
    rig.engine.cancel_moves();
    rig.verify(7).expect("nothing is lost");
}

/// Who cannot move, because more requests write to it than can be waited for, has nobody leave for it but those that were under way
/// then (DD-1), and the report says so.
#[test]
fn nobody_leaves_for_extents_that_stay_where_they_are() {
    let (mut rig, scenario) = after_a_day();
    let file = scenario.files()[3];
    let load = Load { duration: Nanos::from_secs(150), ..scenario.load(file) };
    rig.engine.set_move_patience(Nanos::ZERO);
    let settings =
        OptimizeSettings { rate: None, time: Nanos::from_secs(120), ..OptimizeSettings::default() };
    let now_s = rig.now().as_secs_f64();
    assert!(rig.engine.optimize(0, &settings, now_s));
    rig.run_while(&load, |engine| engine.optimizing(0)).expect("it works");
    let done = rig.engine.take_optimization(0).expect("it has ended");
    let moves = done.report.facts.moves;
    let count =
        |why| done.refused.iter().find(|one| one.0 == why).map_or(0, |(_, extents)| *extents);
    let (busy, needless) = (count(MoveOutcome::Busy), count(MoveOutcome::Needless));
    println!("{moves:?}, {busy} busy, {needless} not needed");
    // Eight at a time; each is given up after some 40 s.
    assert!(busy >= 16 && needless + 8 >= busy, "{done:?}");
    assert!(moves.down <= moves.up + 8, "{moves:?}");
    let advice = &done.report.advice.suggestions;
    let wanted = format!("{busy} extents were not moved (writes would have been held too long): ");
    assert!(advice.iter().any(|told| told.starts_with(&wanted)), "{advice:?}");
    rig.verify(7).expect("nothing is lost");
}

/// The file that is loaded moves up, and is served faster the sooner that is done: no throttle is needed here.
#[test]
fn requests_to_rotating_disks_go_on_while_extents_move() {
    let (writes_percent, outstanding, before_s) = (30, 8, 2);
    Foreground { what: "HDD", nth_file: 3, writes_percent, outstanding, before_s }.check();
}

/// Many writes at a time to what moves up: a hold that would take long is given up.
#[test]
fn writes_in_line_at_rotating_disks_are_not_held_for_long() {
    for (writes_percent, outstanding) in [(100, 8), (30, 16), (100, 16), (30, 32)] {
        let what = "HDD, many writes, they move up";
        let load = Foreground { what, nth_file: 3, writes_percent, outstanding, before_s: 2 };
        let found = load.suffers(&OptimizeSettings::default(), SEEDS[0]);
        assert!(
            found.is_little(),
            "{outstanding} outstanding, {writes_percent} % writes: {found:?}"
        );
    }
}

/// Writes take longer than what a move keeps an SSD busy for: no throttle is needed here.
#[test]
fn requests_to_ssds_go_on_while_extents_move() {
    let (writes_percent, outstanding, before_s) = (30, 4, 2);
    Foreground { what: "SSD", nth_file: 0, writes_percent, outstanding, before_s }.check();
}

/// Reads of an SSD are short, and those behind a piece of a move are not. What came before, on rotating disks, is not what
/// is usual for them (10.6).
#[test]
fn reads_of_ssds_go_on_while_extents_move_for_the_throttle_sees_to_it() {
    let (writes_percent, outstanding, before_s) = (0, 4, 2);
    Foreground { what: "SSD, reads", nth_file: 0, writes_percent, outstanding, before_s }
        .check_throttle();
}

/// The file that is loaded stays where it is; what moves moves beside it, on the same disks.
#[test]
fn requests_to_rotating_disks_go_on_while_other_extents_move() {
    let (writes_percent, outstanding, before_s) = (30, 4, 62);
    Foreground { what: "HDD, others move", nth_file: 2, writes_percent, outstanding, before_s }
        .check_throttle();
}

/// Requests with nobody else in line feel each piece of a move that stands before them: of those there is seldom one, and never two at
/// once (section 25).
#[test]
fn single_requests_to_rotating_disks_go_on_while_other_extents_move() {
    for (what, writes_percent, outstanding) in [
        ("HDD, 1 read, others move", 0, 1),
        ("HDD, 1 of 10 % writes, others move", 10, 1),
        ("HDD, 1 of 30 % writes, others move", 30, 1),
        ("HDD, 2 reads, others move", 0, 2),
    ] {
        let load = Foreground { what, nth_file: 2, writes_percent, outstanding, before_s: 62 };
        let found = load.check_by(&SEEDS);
        assert!(found.p99 <= 1.45, "{what}: {found:?}, with some room to the bound");
    }
}

/// Requests that keep the disks busy lose I/Os long before one in a hundred takes a fifth longer: moves take a small share of such
/// disks' time.
#[test]
fn reads_in_line_at_rotating_disks_go_on_while_other_extents_move() {
    let (writes_percent, before_s) = (0, 62);
    let of =
        |what, outstanding| Foreground { what, nth_file: 2, writes_percent, outstanding, before_s };
    of("HDD, 16 reads, others move", 16).check();
    of("HDD, 32 reads, others move", 32).check_by(&SEEDS[..1]);
}

/// The same where the write-back cache copies home what it is asked to take.
#[test]
fn writes_to_rotating_disks_go_on_while_other_extents_move() {
    let (writes_percent, outstanding, before_s) = (100, 8, 62);
    Foreground {
        what: "HDD, 8 writes, others move",
        nth_file: 2,
        writes_percent,
        outstanding,
        before_s,
    }
    .check_by(&SEEDS[..1]);
}

/// 320 requests stand in line at the SSDs, and a move's record passes them by: disks are given what keeps them busy. No hold waits
/// for a checkpoint, or for the records of the moves behind it.
#[test]
fn holds_are_short_also_behind_many_requests() {
    let (nth_file, outstanding, before_s) = (0, 320, 2);
    for (what, writes_percent, seed) in
        [("SSD, 320 reads", 0, 9), ("SSD, 320 writes", 100, 10), ("SSD, 320 writes", 100, 11)]
    {
        let load = Foreground { what, nth_file, writes_percent, outstanding, before_s };
        let found = load.suffers(&OptimizeSettings::default(), seed);
        let is_short = found.held_longest.iter().all(|longest| *longest <= 1.0);
        println!("{found:?}");
        assert!(is_short && found.is_little(), "{found:?}");
    }
}

/// The journal lies on the two SSDs, and no record of a move waits for a rotating disk (section 4).
#[test]
fn holds_are_short_on_two_ssds_and_rotating_disks() {
    for (what, nth_file, writes_percent) in
        [("two SSDs", 0, 30), ("two HDDs", 3, 30), ("two HDDs, writes", 3, 100)]
    {
        let load = Foreground { what, nth_file, writes_percent, outstanding: 4, before_s: 2 };
        let found = load.suffers_on(after_a_day_on(2), &OptimizeSettings::default(), SEEDS[0]);
        println!("{found:?}");
        assert!(found.held.iter().all(|share| *share >= 0.99 - 1e-9), "{what}: {found:?}");
    }
}

/// What the engine counts as the time of requests is what the host sees, also where it asks one at a time, the engine
/// sleeps until the disk answers, and nobody polls it in between (section 12).
#[test]
fn requests_take_as_long_as_the_host_sees() {
    let (mut rig, scenario) = after_a_day();
    let request = |rig: &mut Rig<plumb_io::engine::SparseQueue>, nth: u64| {
        let offset = scenario.files()[2].0 + nth * 4096;
        let read = Request { kind: RequestKind::Read, vdisk: 0, offset, len: 4096 };
        rig.engine.submit(0, read);
        while rig.engine.pop().is_none() {
            let now = rig.clock.now();
            rig.engine.poll(now, Nanos::from_secs(1));
        }
    };
    let (mut seen, reads) = (0, 50);
    let before = (rig.engine.use_of(0).reads, tier_time(&rig));
    for nth in 0..reads {
        rig.clock.advance_to(Nanos(rig.clock.now().0 + 40_000_000));
        let began = rig.clock.now();
        request(&mut rig, nth * 77);
        seen += rig.clock.now().since(began).0;
    }
    let after = (rig.engine.use_of(0).reads, tier_time(&rig));
    assert_eq!(after.0.count - before.0.count, reads);
    let times = [after.0.time_ns - before.0.time_ns, after.1 - before.1];
    assert_eq!(times, [seen, seen], "of requests, and of their parts");
}

/// Nanoseconds that reads of the Capacity tier took.
fn tier_time(rig: &Rig<plumb_io::engine::SparseQueue>) -> u64 {
    [false, true].map(|second| rig.engine.use_of(0).time_ns(Account::TierRead(second))).iter().sum()
}

/// Pages of map and checksums that lie behind each other go to a disk together: no request is served while a checkpoint
/// writes them.
#[test]
fn a_checkpoint_writes_pages_together() {
    let scenario = Scenario::reference(1024);
    let mut rig = Rig::sparse(&scenario.sizes()).expect("room");
    rig.fill(scenario.files()[0], true).expect("it works");
    rig.settle();
    let before = rig.engine.disk_use(0);
    rig.engine.checkpoint();
    rig.settle();
    let after = rig.engine.disk_use(0);
    let writes = after.metadata_writes - before.metadata_writes;
    let pages = (after.metadata_write_bytes - before.metadata_write_bytes) / 4096;
    println!("{pages} pages in {writes} writes");
    assert!(pages >= 25 && writes <= 8, "{pages} pages in {writes} writes");
}
