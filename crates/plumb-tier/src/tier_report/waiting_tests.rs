use super::tests::{facts, heat, reach, report_of};
use super::*;
use crate::optimizer::PinTable;

const MIB: u64 = 1 << 20;

/// 30 extents alike, of which the tier holds 20; none of them went back and forth, and 14.1 % were served.
fn late(reach: Reach, waits: Waits) -> TierReport {
    let facts = ReportFacts {
        thrash: Thrash::default(),
        answered_performance: 141,
        answered_cache: 0,
        reach: Some(reach),
        waits,
        ..facts()
    };
    report_of(&facts, &heat(&[10; 30]), &PinTable::new(MIB))
}

/// Section 11: what an optimization would swap and leaves for later is told with its reason, and only where there is any.
#[test]
fn what_waits_is_told_and_why() {
    let none = late(reach(0.141, 0.141), Waits::default());
    let told = |report: &TierReport| {
        let text = report.to_text();
        let lines = text.lines().filter(|line| line.starts_with("Swaps "));
        lines
            .map(|line| {
                line.split("  ")
                    .map(str::trim)
                    .filter(|part| !part.is_empty())
                    .collect::<Vec<_>>()
                    .join(" ")
            })
            .collect::<Vec<String>>()
    };
    assert_eq!(told(&none), [""; 0]);
    assert_eq!(none.to_json()["moves"]["put_off"], 0);
    let waits = Waits { put_off: 7, put_off_ios: 6, turns: 9, turns_ios: 30, gained_percent: None };
    let report = late(reach(0.141, 0.141), waits);
    assert_eq!(
        told(&report),
        [
            "Swaps That Wait, as Their Gain May Be Chance: 7MiB, 2.0 % of I/Os",
            "Swaps Left Out, as These Extents Take Turns: 9MiB, 10.0 % of I/Os",
        ]
    );
    let json = report.to_json();
    assert_eq!((&json["moves"]["put_off"], &json["moves"]["taking_turns"]), (&7.into(), &9.into()));
    assert_eq!(json["moves"]["put_off_ios_percent"], 2.0);
    let csv = figures_csv(&json);
    for line in ["moves.put_off,7\n", "moves.put_off_ios_percent,2.0\n", "moves.taking_turns,9\n"] {
        assert!(csv.contains(line), "{csv}");
    }
    let advice = report.advice.suggestions.join("; ");
    assert!(advice.contains("wait: swaps of 7MiB may be chance, and 1 % of the"), "{advice}");
    let little = late(reach(0.141, 0.141), Waits { gained_percent: Some(6), ..waits });
    assert_eq!(little.to_json()["moves"]["sure_swaps_gained_percent"], 6);
    let text = little.to_text();
    assert!(text.contains("Gained by Sure Swaps of the Last Days"), "{text}");
    let advised = little.advice.suggestions.join("; ");
    let may_not =
        "wait: swaps of 7MiB may not last (those of the last days gained 6 % of what they";
    assert!(advised.contains(may_not), "{advised}");
    assert!(
        advice.contains("9MiB stay where they are until they are asked for on the day"),
        "{advice}"
    );
}

/// Nobody is told to grow the tier, nor that more runs would not help, for what comes by itself.
#[test]
fn what_only_waits_is_no_reason_for_a_larger_tier() {
    let said = |reach: Reach| late(reach, Waits::default()).advice.suggestions.join("; ");
    let grow = "grow the Performance tier by 9MiB: it would serve 95 %";
    let small = said(reach(0.141, 0.667));
    assert!(small.starts_with(grow) && small.contains("too few I/Os to be worth"), "{small}");
    for waiting in [
        Reach { probable: 0.6, ..reach(0.141, 0.141) },
        Reach { with_put_off: 0.2, ..reach(0.141, 0.141) },
    ] {
        let said = said(waiting);
        let words = "wait: 14.1 % were served, the best placement of this size serves 66.7 %, but what its extents gain may be chance so far";
        assert!(said.starts_with(words), "{said}");
        assert!(!said.contains("grow") && !said.contains("would not help"), "{said}");
    }
    // Four points that wait are no reason to be silent about 52 that do not.
    let few = said(Reach { with_put_off: 0.181, ..reach(0.141, 0.141) });
    assert!(few.starts_with(grow), "{few}");
    let turns = said(Reach { with_turns: 0.6, ..reach(0.141, 0.667) });
    assert!(turns.contains("but its extents take turns") && !turns.contains("too few"), "{turns}");
}

/// Of pins within one another on one tier each serves what is within its own range, and the one without which all stays as it is is no matter.
#[test]
fn pins_within_one_another_serve_what_is_in_their_ranges() {
    let weak = |ranges: &[(u64, u64)]| {
        let mut pins = PinTable::new(MIB);
        for (start, len) in ranges {
            pins.set(start << 20, len << 20, TierName::Performance).expect("a range");
        }
        // All I/O is on extents 5 to 7.
        let counts: Vec<u64> =
            (0..20).map(|extent| if (5..8).contains(&extent) { 300 } else { 0 }).collect();
        let facts = ReportFacts {
            thrash: Thrash::default(),
            answered_performance: 940,
            reach: None,
            ..facts()
        };
        let report = report_of(&facts, &heat(&counts), &pins);
        report.advice.weak_pins.iter().map(|weak| weak.pin.0).collect::<Vec<u64>>()
    };
    let (inner, outer, over, cold) = ((5, 3), (0, 20), (4, 12), (12, 2000));
    assert_eq!(weak(&[outer, inner]), [0; 0], "the outer one decides");
    assert_eq!(weak(&[inner, outer]), [0; 0], "the inner one decides");
    assert_eq!(weak(&[inner, over]), [0; 0], "each of a part");
    assert_eq!(weak(&[outer, (10, 2)]), [0; 0], "one of nothing, which changes nothing");
    assert_eq!(weak(&[inner, cold]), [2]);
    assert_eq!(weak(&[cold]), [1]);
}
