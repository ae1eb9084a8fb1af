use super::*;
use crate::heat::{HeatSettings, HostIoKind};
use crate::random::Random;

const MIB: u64 = 1 << 20;

/// Nothing waits.
pub(super) fn reach(planned: f64, without_bar: f64) -> Reach {
    Reach {
        planned,
        with_put_off: planned,
        probable: planned,
        with_turns: planned,
        without_bar,
        budget_spent: false,
        tells_chance: true,
    }
}

pub(super) fn facts() -> ReportFacts {
    ReportFacts {
        name: "tank/data".to_owned(),
        window_start_s: 3600.0,
        window_end_s: 90_000.0,
        extent_bytes: MIB,
        performance_slots: 20,
        answered_performance: 700,
        answered_cache: 50,
        answered: 1000,
        answered_zeros: 0,
        expected_share: Some(0.876),
        optimizes: true,
        pins_refused: 0,
        reach: Some(reach(1.0, 1.0)),
        waits: Waits::default(),
        worth: Worth::reference(),
        moves: MoveFigures {
            up_requested: 12,
            up: 10,
            down_requested: 8,
            down: 8,
            bytes: 18 * MIB,
            seconds: 4.4,
            stop: MoveStop::Budget,
            limits: None,
        },
        thrash: Thrash { promoted: 40, demoted_again: 10, guarded: true },
        working_sets: vec![50, 30],
        bytes: Some(WindowBytes {
            read: 900 * MIB,
            written: 100 * MIB,
            cache_read: 3 * MIB,
            cache_written: 60 * MIB,
            bypassed: 20 * MIB,
            times_full: 2,
        }),
        heat_gap: None,
        uncounted_s: 0,
        pins_pending: Vec::new(),
        what_if: [(5, 0.4), (20, 0.75), (80, 1.0)]
            .map(|(mib, share)| {
                let point = |share| WhatIfPoint { bytes: mib * MIB, share, error: 0.0123 };
                (point(share), point(share / 2.0))
            })
            .into(),
    }
}

/// Of extents that all have a place.
pub(super) fn report_of(facts: &ReportFacts, heat: &HeatMap, pins: &PinTable) -> TierReport {
    TierReport::new(facts, heat, pins, |_| true)
}

/// Extent n takes `counts[n]` I/Os.
pub(super) fn heat(counts: &[u64]) -> HeatMap {
    let mut heat = HeatMap::new(HeatSettings::new(1 << 16));
    for (extent, count) in (0..).zip(counts) {
        if *count > 0 {
            heat.record_many(extent, HostIoKind::Read, *count);
        }
    }
    heat
}

#[test]
fn the_text_is_the_one_committed() {
    let counts: Vec<u64> = (1..=44).collect();
    let mut pins = PinTable::new(MIB);
    pins.set(0, 8 * MIB, TierName::Performance).expect("a range");
    pins.set(40 * MIB, 2 * MIB, TierName::Capacity).expect("a range");
    let report = report_of(&facts(), &heat(&counts), &pins);
    let golden = include_str!("golden.txt");
    assert_eq!(report.to_text(), golden, "\n{}", report.to_text());
}

#[test]
fn rows_are_what_adding_up_a_sorted_list_gives() {
    let mut random = Random::new(77);
    for _ in 0..10_000 {
        let counts: Vec<u64> = (0..1 + random.below(60)).map(|_| random.below(200)).collect();
        let report = report_of(&facts(), &heat(&counts), &PinTable::new(MIB));
        let total: u64 = counts.iter().sum();
        if total == 0 {
            assert_eq!(report.rows, []);
            continue;
        }
        let mut sorted = counts.clone();
        sorted.sort_unstable();
        assert_eq!(report.rows.len(), 20);
        for (row, percent) in report.rows.iter().zip((1..=20_u8).rev().map(|step| 5 * step)) {
            let (mut left, mut extents, mut sum) = (sorted.clone(), 0, 0);
            while (sum as f64) < f64::from(percent) / 100.0 * total as f64 - 1e-9 {
                sum += left.pop().expect("enough");
                extents += 1;
            }
            let wanted = SizeRow { percent, extents, bytes: extents * MIB };
            assert_eq!(*row, wanted, "{counts:?}");
        }
        assert!(report.rows.windows(2).all(|pair| pair[0].bytes >= pair[1].bytes), "REP-2");
        let used = to_u64(counts.iter().filter(|count| **count > 0).count());
        assert_eq!((report.rows[0].extents, report.working_set), (used, used), "REP-2");
        assert_eq!(report.rows, report.rows_unpinned);
    }
}

/// What an optimization was to keep to is in its report, and in no other.
#[test]
fn limits_are_told_of_those_who_had_some() {
    let limits = MoveLimits {
        seconds: 13_500.0,
        movers: 8,
        bytes_per_s: Some(1 << 30),
        ios_per_s: None,
        gives_way: true,
        moved_bytes: None,
        promoted_bytes: None,
        reserve_bytes: 0,
    };
    let strict = MoveLimits {
        movers: 1,
        ios_per_s: Some(70),
        gives_way: false,
        moved_bytes: Some(8 * MIB),
        promoted_bytes: Some(4 * MIB),
        reserve_bytes: MIB,
        bytes_per_s: None,
        ..limits
    };
    let report = |limits| {
        let moves = MoveFigures { limits, ..facts().moves };
        report_of(&ReportFacts { moves, ..facts() }, &heat(&[1, 2]), &PinTable::new(MIB))
    };
    let line = |limits| {
        let text = report(limits).to_text();
        let mut lines =
            text.lines().filter_map(|line| line.strip_prefix("Limits of the Optimization:"));
        lines.next().map(|line| line.trim().to_owned())
    };
    assert_eq!(line(None), None);
    assert_eq!(line(Some(limits)).as_deref(), Some("13500 s, 8 movers, 1GiB/s, low priority"));
    let wanted = "13500 s, 1 mover, 70 I/Os per second, normal priority, 8MiB moved, 4MiB written to the Performance tier, 1MiB to be kept free";
    assert_eq!(line(Some(strict)).as_deref(), Some(wanted));
    assert!(report(None).to_json()["moves"]["limits"].is_null());
    let json = &report(Some(strict)).to_json()["moves"]["limits"];
    let wanted = serde_json::json!({
        "run_limit_s": 13_500.0,
        "movers": 1,
        "bytes_per_s": null,
        "ios_per_s": 70,
        "priority": "normal",
        "moved_bytes": 8 * MIB,
        "promoted_bytes": 4 * MIB,
        "reserve_bytes": MIB,
    });
    assert_eq!(*json, wanted);
}

/// After an early stop the advice is about what was not done, not about what was planned (10.7).
#[test]
fn what_an_early_stop_left_is_told() {
    let told = |stop, up| {
        let moves =
            MoveFigures { up_requested: 12, up, down_requested: 8, down: 8, stop, ..facts().moves };
        let mut report =
            report_of(&ReportFacts { moves, ..facts() }, &heat(&[1, 2]), &PinTable::new(MIB));
        report.advice.suggestions = vec![advice::NOTHING.to_owned()];
        report.moves_ended(moves, None);
        report.advice.suggestions.join("; ")
    };
    assert_eq!(told(MoveStop::Done, 10), advice::NOTHING);
    assert_eq!(told(MoveStop::Time, 12), advice::NOTHING);
    assert!(told(MoveStop::Time, 2).starts_with("10 of 20 extents were not moved (time): allow"));
    assert!(told(MoveStop::Cancelled, 0).contains("12 of 20 extents were not moved (cancelled)"));
    let load =
        "2 of 20 extents were not moved (interrupted by a load): the next optimization goes on";
    assert_eq!(told(MoveStop::Load, 10), load);
}

/// A budget that admits no move is told with the least that helps, and never as a window in which there was nothing to do.
#[test]
fn a_budget_that_admits_no_move_is_told_with_the_least_that_helps() {
    let told = |moved_bytes: Option<u64>, promoted_bytes: Option<u64>| {
        let limits = MoveLimits {
            seconds: 1.0,
            movers: 1,
            bytes_per_s: None,
            ios_per_s: None,
            gives_way: true,
            moved_bytes,
            promoted_bytes,
            reserve_bytes: 0,
        };
        let moves = MoveFigures {
            up_requested: 3,
            down_requested: 3,
            stop: MoveStop::Budget,
            limits: Some(limits),
            ..MoveFigures::default()
        };
        let mut report = report_of(&facts(), &heat(&[]), &PinTable::new(MIB));
        report.moves_ended(moves, None);
        report.advice.suggestions.join("; ")
    };
    let swap = "no I/O in window; 6 of 6 extents were not moved (budget): raise the budget of moves to 2MiB at least: one extent \
                goes down for one that goes up";
    assert_eq!(told(Some(MIB), None), swap);
    let written = told(None, Some(0));
    assert!(written.contains("Performance tier to 1MiB for each copy at least"), "{written}");
    assert!(!written.contains("no moves"), "{written}");
}

/// A window of a day that served 20 points less than could be is to be one of four (section 11).
#[test]
fn how_often_to_optimize_is_told() {
    let told = |hours: f64, performance| {
        let facts = ReportFacts {
            window_start_s: 0.0,
            window_end_s: 3600.0 * hours,
            answered_performance: performance,
            answered_cache: 0,
            reach: Some(reach(0.9, 0.9)),
            thrash: Thrash::default(),
            ..facts()
        };
        let report = report_of(&facts, &heat(&[400, 300, 200, 100]), &PinTable::new(MIB));
        let said = report.advice.suggestions.join("; ");
        let times = said.split_once("more often, ").and_then(|rest| rest.1.split_once(" times"));
        times.and_then(|times| times.0.parse::<u64>().ok())
    };
    assert_eq!(told(24.0, 701), Some(4), "a quarter of 19.9 points is below five");
    assert_eq!((told(24.0, 840), told(12.0, 701)), (Some(2), Some(8)));
    assert_eq!(
        (told(1.0, 100), told(168.0, 840), told(0.9, 100)),
        (Some(24), Some(2), None),
        "once an hour; twice a day; of less than an hour nothing is known"
    );
    assert_eq!(told(24.0, 860), None, "four points are not worth a word");
}

/// Before the first optimization, and soon after one, nothing is known of how often one is needed: one is.
#[test]
fn the_first_optimization_is_not_one_of_many_a_day() {
    let told = |optimizes, working_sets: Vec<u64>, hours: f64| {
        let facts = ReportFacts {
            window_start_s: 0.0,
            window_end_s: 3600.0 * hours,
            optimizes,
            working_sets,
            thrash: Thrash::default(),
            ..facts()
        };
        report_of(&facts, &heat(&[10; 10]), &PinTable::new(MIB)).advice.suggestions.join("; ")
    };
    let now = "optimize: 75.0 % were served, the placement planned at the end of the window serves 100.0 %";
    assert_eq!(
        (told(false, vec![], 48.0).as_str(), told(false, vec![9], 0.9).as_str()),
        (now, now)
    );
    // It has just been made.
    assert_eq!(told(true, vec![], 48.0), advice::NOTHING);
    assert_eq!(told(true, vec![9], 0.9), advice::NOTHING);
    for optimizes in [false, true] {
        let told = told(optimizes, vec![9], 1.0);
        assert!(told.starts_with("optimize more often, 24 times a day: 75.0 %"), "{told}");
    }
}

/// Pins without room are said where it is said how large the tier should be, whether there was I/O or not (10.2).
#[test]
fn pins_without_room_are_told() {
    let report = |counts: &[u64]| {
        let thrash = Thrash::default();
        let (answered, answered_performance) = (counts.iter().sum(), counts.iter().sum());
        let facts = ReportFacts {
            pins_refused: 7,
            answered,
            answered_performance,
            answered_cache: 0,
            moves: MoveFigures::default(),
            thrash,
            ..facts()
        };
        report_of(&facts, &heat(counts), &PinTable::new(MIB))
    };
    let words = "grow the Performance tier by 7MiB or unpin as much: it has no room for what is pinned to it";
    assert_eq!(report(&[10; 10]).advice.suggestions, [words]);
    let mut idle = report(&[]);
    assert_eq!(idle.advice.suggestions, ["no I/O in window; no moves", words]);
    idle.moves_ended(MoveFigures { down: 2, ..MoveFigures::default() }, None);
    assert_eq!((idle.advice.suggestions.len(), idle.advice.suggestions[1].as_str()), (2, words));
    assert_eq!(idle.to_json()["pinned_without_room_bytes"], 7 * MIB);
}

/// Chance alone makes of a share what is told beside it (section 11), and what is certain has a half-width of 0.
#[test]
fn how_far_a_share_may_be_off_is_told() {
    let told = |answered, heat_gap| {
        let facts = ReportFacts {
            answered,
            answered_performance: answered * 3 / 4,
            answered_cache: 0,
            heat_gap,
            ..facts()
        };
        let report = report_of(&facts, &heat(&[answered]), &PinTable::new(MIB));
        (
            report.half_width_points(),
            report.to_json()["quality"]["serviced_half_width_points"].clone(),
        )
    };
    // 1.96 deviations of sqrt(p (1 - p) / n).
    let (found, json) = told(1000, None);
    assert!((found.expect("I/Os") - 2.684).abs() < 0.001, "{found:?}");
    assert_eq!(json.as_f64(), found);
    let (more, _) = told(100_000, None);
    assert!((more.expect("I/Os") - 0.2684).abs() < 0.0001, "{more:?}");
    let all = ReportFacts { answered_performance: facts().answered, answered_cache: 0, ..facts() };
    let report = report_of(&all, &heat(&[all.answered]), &PinTable::new(MIB));
    assert_eq!(report.to_json()["quality"]["serviced_half_width_points"], 0.0);
    assert_eq!((told(0, None).0, told(1000, Some(HeatGap::All)).0), (None, None));
}

/// What was lost is said, and only then (quality, section 11).
#[test]
fn lost_heat_is_told() {
    let told = |heat_gap| {
        let report =
            report_of(&ReportFacts { heat_gap, ..facts() }, &heat(&[1, 2]), &PinTable::new(MIB));
        (report.to_text(), report.to_json()["quality"].clone())
    };
    let (text, json) = told(None);
    assert!(!text.contains("Heat:") && json["heat_counted_anew"] == false, "{text}");
    let (text, json) = told(Some(HeatGap::All));
    assert!(text.contains("counted anew") && json["heat_counted_anew"] == true, "{text}");
    let (text, json) = told(Some(HeatGap::Pages(3)));
    assert!(text.contains("3 pages of 256") && json["heat_pages_lost"] == 3, "{text}");
}

/// A window of which a part is not known is no sample of itself, and an empty one is not called idle.
#[test]
fn time_that_was_not_counted_is_told() {
    let told = |uncounted_s, answered| {
        let facts = ReportFacts {
            uncounted_s,
            answered,
            answered_performance: answered / 2,
            answered_cache: 0,
            moves: MoveFigures::default(),
            ..facts()
        };
        let report = report_of(&facts, &heat(&[answered]), &PinTable::new(MIB));
        (report.to_text(), report.to_json())
    };
    for (seconds, words) in [(1, "up to 1 minute of"), (61, "up to 2 minutes of")] {
        let (text, json) = told(seconds, 100);
        assert!(text.contains(words), "{text}");
        assert_eq!(json["quality"]["heat_uncounted_s"], seconds);
        assert!(json["quality"]["serviced_half_width_points"].is_null(), "{json}");
        let csv = figures_csv(&json);
        assert!(csv.contains(&format!("quality.heat_uncounted_s,{seconds}\n")), "{csv}");
    }
    let (text, json) = told(61, 0);
    assert!(!text.contains("no I/O in window"), "{text}");
    assert!(text.contains("no I/O counted in window; no moves"), "{text}");
    assert_eq!(json["advice"]["suggestions"][0], "no I/O counted in window; no moves");
    let (text, json) = told(0, 100);
    assert!(!text.contains("not counted:"), "{text}");
    assert_eq!(json["quality"]["heat_uncounted_s"], 0);
    assert!(json["quality"]["serviced_half_width_points"].as_f64().is_some(), "{json}");
}

/// Who reads why an extent stayed is told to wait for fewer requests only where there were any.
#[test]
fn what_held_a_move_is_told() {
    for (wrote, words) in [
        (true, "optimize while fewer requests are under way"),
        (false, "nobody wrote meanwhile: the disks took too long"),
    ] {
        let mut report = report_of(&facts(), &heat(&[1, 2]), &PinTable::new(MIB));
        report.note_refused(&[(MoveOutcome::Busy, 2), (MoveOutcome::Needless, 3)], wrote);
        let told: Vec<&String> =
            report.advice.suggestions.iter().filter(|one| one.contains("not moved (w")).collect();
        assert!(told.len() == 1 && told[0].contains(words), "{told:?}");
    }
}

#[test]
fn without_io_there_is_no_table() {
    let idle = ReportFacts {
        answered: 0,
        answered_performance: 0,
        answered_cache: 0,
        what_if: ReportFacts::curve(&WhatIf::new(MIB), 20 * MIB),
        ..facts()
    };
    let idle = ReportFacts { moves: MoveFigures::default(), ..idle };
    let report = report_of(&idle, &heat(&[]), &PinTable::new(MIB));
    let text = report.to_text();
    assert!(text.contains("\nno I/O in window\n") && !text.contains("Size Required"), "{text}");
    assert_eq!(report.advice.suggestions, ["no I/O in window; no moves"]);
    let mut moved = report.clone();
    moved.moves_ended(MoveFigures { down: 2, ..MoveFigures::default() }, None);
    let sentence = "no I/O in window; 2 extents moved for pins, room to be kept free or heat of the time before";
    assert_eq!(moved.advice.suggestions, [sentence], "and not what was said before they moved");
    let cut_short =
        MoveFigures { down_requested: 5, down: 2, stop: MoveStop::Time, ..moved.facts.moves };
    moved.moves_ended(cut_short, None);
    assert_eq!(moved.advice.suggestions.len(), 2, "{:?}", moved.advice.suggestions);
    assert_eq!(report.serviced_percent(), None);
    assert_eq!(report.to_csv().lines().count(), 1);
    assert!(report.to_json()["serviced_percent"].is_null());
}

/// A tier as large as all that is written serves everything that a tier can serve (REP-2).
#[test]
fn what_was_never_written_needs_no_tier() {
    let facts = ReportFacts {
        answered: 1000,
        answered_zeros: 600,
        answered_performance: 300,
        answered_cache: 0,
        thrash: Thrash::default(),
        ..facts()
    };
    let report =
        TierReport::new(&facts, &heat(&[300, 100, 600]), &PinTable::new(MIB), |extent| extent < 2);
    assert_eq!((report.rows[0].extents, report.working_set, report.ios), (2, 2, 400));
    assert_eq!(report.rows_unpinned[0].extents, 2);
    assert_eq!(report.serviced_percent(), Some(75.0));
    let text = report.to_text();
    assert!(text.contains("which no tier serves:") && text.contains(" 600\n"), "{text}");
    assert_eq!(report.to_json()["host_ios_never_written"], 600);
    let only = ReportFacts { answered: 600, answered_performance: 0, ..facts };
    let only = TierReport::new(&only, &heat(&[0, 0, 600]), &PinTable::new(MIB), |_| false);
    assert!(only.rows.is_empty() && only.serviced_percent().is_none(), "{only:?}");
}

#[test]
fn advice_follows_the_figures() {
    let rested = || ReportFacts { thrash: Thrash::default(), ..facts() };
    let suggestions = |facts: &ReportFacts, counts: &[u64]| {
        report_of(facts, &heat(counts), &PinTable::new(MIB)).advice.suggestions
    };
    // 30 extents alike: 29 of them serve 95 %, 20 are there, which serve 67 %.
    let alike = suggestions(&rested(), &[10; 30]);
    assert_eq!(alike, ["grow the Performance tier by 9MiB: it would serve 95 %"]);
    let few = suggestions(&rested(), &[10; 10]);
    assert_eq!(
        few,
        [
            "optimize more often, 5 times a day: 75.0 % were served, the placement planned at the end of the window serves 100.0 %"
        ]
    );
    // Where a run would serve no more, the advice is not to make more of them but what stands in their way.
    let reached = |planned, without_bar, budget_spent| ReportFacts {
        reach: Some(Reach { budget_spent, ..reach(planned, without_bar) }),
        ..rested()
    };
    for (facts, words) in [
        (reached(0.75, 1.0, false), "its extents gain too few I/Os to be worth their moves"),
        (reached(0.75, 1.0, true), "raise the budget of moves: 75.0 % were served"),
        (reached(0.75, 0.75, false), "heat of the time before keeps other extents up"),
    ] {
        let found = suggestions(&facts, &[10; 10]);
        assert!(found.len() == 1 && found[0].contains(words), "{found:?}");
        assert!(!found[0].starts_with("optimize more often"), "{found:?}");
    }
    let mut pins = PinTable::new(MIB);
    pins.set(30 * MIB, MIB, TierName::Performance).expect("a range");
    let pinned = report_of(&reached(0.75, 0.75, false), &heat(&[10; 10]), &pins);
    assert!(
        pinned.advice.suggestions[0].starts_with("pins stand in the way: 75.0 % were served"),
        "{:?}",
        pinned.advice.suggestions
    );
    // Back and forth: that is told, and nothing that contradicts it.
    let guarded = suggestions(&facts(), &[10; 10]);
    assert!(guarded.len() == 1 && guarded[0].starts_with("extents go back"), "{guarded:?}");
    let good = ReportFacts { answered_performance: 940, ..rested() };
    assert_eq!(suggestions(&good, &[10; 10]), ["nothing to do"]);
    let mut pins = PinTable::new(MIB);
    pins.set(1 << 30, 4 << 30, TierName::Performance).expect("a range");
    let report = report_of(&good, &heat(&[10; 10]), &pins);
    assert_eq!(report.advice.suggestions, ["unpin 1: it serves 0.00 % of I/Os per GiB"]);
    assert!((report.advice.working_set_change.expect("runs before") + 75.0).abs() < 1e-9);
    for (extents, words) in
        [(1, "unpin 1: it keeps 10.0 % of I/Os on the Capacity tier"), (0, "nothing to do")]
    {
        let mut pins = PinTable::new(MIB);
        pins.set(if extents > 0 { 0 } else { 20 * MIB }, MIB, TierName::Capacity).expect("a range");
        let report = report_of(&good, &heat(&[10; 10]), &pins);
        assert_eq!(report.advice.suggestions, [words]);
    }
    // Of pins that have moved nothing yet nobody knows what they are worth.
    let mut pins = PinTable::new(MIB);
    let pending = [
        pins.set(1 << 30, 4 << 30, TierName::Performance).expect("a range"),
        pins.set(0, MIB, TierName::Capacity).expect("a range"),
    ];
    let waiting = ReportFacts { pins_pending: pending.to_vec(), ..good.clone() };
    let report = report_of(&waiting, &heat(&[10; 10]), &pins);
    assert_eq!(report.advice.suggestions, ["nothing to do"]);
    assert_eq!(report.advice.weak_pins, []);
    let report = report_of(&good, &heat(&[10; 10]), &pins);
    assert_eq!(report.advice.suggestions.len(), 2, "{:?}", report.advice.suggestions);
}

#[test]
fn json_and_csv_say_the_same_as_the_report() {
    let counts: Vec<u64> = (1..=44).collect();
    let mut pins = PinTable::new(MIB);
    pins.set(0, 8 * MIB, TierName::Performance).expect("a range");
    let report = report_of(&facts(), &heat(&counts), &pins);
    let json = report.to_json();
    assert_eq!(json["table"][0]["extents"], 44);
    assert_eq!(json["table_unpinned"][0]["extents"], 36);
    assert_eq!(json["serviced_percent"], 75.0);
    assert_eq!(json["moves"]["stop"], "budget");
    assert_eq!(json["what_if_lru"][1]["bytes"], 20 * MIB);
    assert_eq!(json["what_if_lru"][1]["by_blocks"]["hit_share"], 0.375);
    let csv = report.to_csv();
    assert_eq!(csv_of(&json), csv, "a kept report has the same table");
    let rows: Vec<&str> = csv.lines().collect();
    assert_eq!(rows[0], "ios_percent,extents,bytes,unpinned_extents,unpinned_bytes");
    assert_eq!(rows[1], format!("100,44,{},36,{}", 44 * MIB, 36 * MIB));
    assert_eq!(rows.len(), 21);
}
