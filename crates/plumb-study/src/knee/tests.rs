use super::*;

fn rows(csv: &str) -> Vec<Row> {
    csv.lines()
        .skip(1)
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            let number = |text: &str| text.parse::<f64>().expect("a number");
            // The illustration has no column of MiB/s.
            let latency = if cells.len() > 4 { cells[3] } else { cells[2] };
            Row {
                o: cells[0].parse().expect("o"),
                iops: number(cells[1]),
                latency_ms: Some(number(latency)),
                latency_half_unit_ms: 0.0005,
                law: None,
            }
        })
        .collect()
}

const RANDOM: &str = include_str!("../../tests/data/random-test-1.csv");
const ILLUSTRATION: &str = include_str!("../../tests/data/random-test-1-extended-illustration.csv");
const READS: &str = include_str!("../../tests/data/sequential-reads.csv");
const WRITES: &str = include_str!("../../tests/data/sequential-writes.csv");

#[track_caller]
fn published(csv: &str, threads: f64, policy: Policy) -> Knee {
    let options = Options { threads: Some(threads), policy, ..Options::default() };
    let knee = find(&rows(csv), &options);
    assert!(knee.dropped.is_empty() && knee.notes.is_empty(), "{knee:#?}");
    knee
}

#[test]
fn random_test_1_must_be_extended() {
    let knee = published(RANDOM, 8.0, Policy::Balanced);
    assert_eq!((knee.verdict, knee.next_range), (Verdict::Extend, Some((13, 24))));
    let (elasticity, error) = knee.end_elasticity.expect("enough settings");
    assert!((elasticity - 0.48).abs() < 0.005 && (error - 0.07).abs() < 0.005);
}

#[test]
fn the_illustration_bends_at_17_and_16_is_enough() {
    let knee = published(ILLUSTRATION, 8.0, Policy::Balanced);
    assert_eq!(knee.verdict, Verdict::Knee);
    let marks = knee.marks.expect("a knee has marks");
    assert_eq!((marks.plateau, marks.balance, marks.recommended), (17, 17, 16));
}

#[test]
fn sequential_reads_choose_31() {
    let knee = published(READS, 1.0, Policy::Throughput);
    assert_eq!((knee.verdict, knee.flags.as_slice()), (Verdict::Knee, [].as_slice()));
    let marks = knee.marks.expect("a knee has marks");
    assert_eq!((marks.plateau, marks.recommended), (31, 31));
    assert_eq!((marks.balance, marks.lean), (24, 12));
    let (first, last) = marks.indifferent;
    assert!((25..=26).contains(&first) && last == 36, "{first} to {last}");
    let sigma = knee.fit.expect("a fit").sigma;
    assert!((sigma - 0.021).abs() < 0.0005, "{sigma}");
    assert!(knee.repeat.contains(&33), "{:?}", knee.repeat);
}

#[test]
fn sequential_writes_choose_15() {
    let knee = published(WRITES, 1.0, Policy::Throughput);
    assert_eq!(knee.verdict, Verdict::Knee);
    let marks = knee.marks.expect("a knee has marks");
    assert_eq!((marks.plateau, marks.balance, marks.recommended), (15, 15, 15));
}

#[test]
fn threads_that_were_not_given_are_inferred() {
    let knee = find(&rows(ILLUSTRATION), &Options::default());
    assert_eq!(knee.outstanding_per_o, 8.0);
    assert!(knee.dropped.is_empty());
    assert_eq!(knee.marks.map(|marks| marks.plateau), Some(17));
}

fn row(o: u64, iops: f64, latency_ms: f64) -> Row {
    Row { o, iops, latency_ms: Some(latency_ms), latency_half_unit_ms: 0.0005, law: None }
}

/// N/L₀ up to a ceiling, one thread, 1 ms.
fn ceiling(settings: &[u64], top: f64) -> Vec<Row> {
    let rate = |o: u64| (o as f64 * 1000.0).min(top);
    settings.iter().map(|o| row(*o, rate(*o), *o as f64 / rate(*o) * 1e3)).collect()
}

const POWERS: [u64; 7] = [1, 2, 4, 8, 16, 32, 64];

/// Where latency does not rise up to a ceiling, all of the throughput is recommended, in whatever unit rates are and whether or
/// not latencies differ by a hair.
#[test]
fn a_corner_is_recommended_with_its_throughput() {
    let grid = |step: f64| -> Vec<u64> {
        let mut all = vec![1];
        while all[all.len() - 1] < 64 {
            let last = all[all.len() - 1];
            let next = plumb_units::convert::floor_u64((last as f64 * step).round());
            all.push(next.max(last + 1));
        }
        all
    };
    for step in [1.5, 2.0] {
        for corner in [8, 16, 27] {
            for unit in [1000.0, 2000.0, 5000.0, 1234.5] {
                for off in [0.0, 0.002, 0.006] {
                    let corner = *grid(step).iter().find(|o| **o >= corner).expect("inside");
                    let top = corner as f64 * unit;
                    let rate = |o: u64| match o {
                        _ if o == corner => top * (1.0 - off),
                        _ => (o as f64 * unit).min(top),
                    };
                    let one = |o: &u64| row(*o, rate(*o), *o as f64 / rate(*o) * 1e3);
                    let rows: Vec<Row> = grid(step).iter().map(one).collect();
                    let options = Options { threads: Some(1.0), ..Options::default() };
                    let marks = find(&rows, &options).marks.expect("a knee has marks");
                    let kept = rate(marks.recommended) / top;
                    assert!(kept >= 0.96, "{step} {corner} {unit} {off}: {marks:?}, {kept}");
                }
            }
        }
    }
}

#[test]
fn a_ceiling_is_flagged_and_named() {
    let caps = vec![
        DeclaredCap { name: "VM".into(), limit: Limit::Iops(7900.0) },
        DeclaredCap { name: "disk".into(), limit: Limit::Iops(20_000.0) },
        DeclaredCap { name: "link".into(), limit: Limit::MibPerS(31.0) },
    ];
    let options = Options { caps, block_bytes: Some(4096.0), ..Options::default() };
    let knee = find(&ceiling(&POWERS, 8000.0), &options);
    assert_eq!((knee.verdict, knee.flags.as_slice()), (Verdict::Knee, [Flag::Capped].as_slice()));
    assert_eq!(knee.marks.map(|marks| marks.plateau), Some(8));
    assert_eq!(knee.named_cap.map(|cap| cap.name), Some("link".into()));
}

#[test]
fn the_published_ceiling_is_the_limit_of_the_machine() {
    let cap = |iops| DeclaredCap { name: format!("{iops}"), limit: Limit::Iops(iops) };
    let named = name_cap(1953.30, None, &[cap(1920.0), cap(5000.0), cap(20_000.0)]);
    let named = named.expect("within 5 %");
    assert_eq!(named.iops, 1920.0);
    assert!((named.distance - 0.017).abs() < 0.0005);
    assert_eq!(name_cap(2100.0, None, &[cap(1920.0)]), None);
}

#[test]
fn a_limit_is_named_within_five_per_cent() {
    let caps = [DeclaredCap { name: "VM".into(), limit: Limit::Iops(1000.0) }];
    // ln X/cap, on both sides.
    for (off, is_named) in [(-0.051, false), (-0.049, true), (0.049, true), (0.051, false)] {
        let level = 1000.0 * f64::exp(off);
        assert_eq!(name_cap(level, None, &caps).is_some(), is_named, "{level}");
    }
}

/// What a run says of itself is not asked of its means again: a stall at the edge of its window explains r.
#[test]
fn a_run_that_is_sound_has_its_place_in_a_curve() {
    use crate::identities::{Consistency, Law};
    let mut rows = ceiling(&[1, 2, 3, 4, 6, 8, 12, 16, 24], 8000.0);
    let options = Options { threads: Some(1.0), ..Options::default() };
    let of = |rows: &[Row]| {
        let knee = find(rows, &options);
        (knee.dropped.iter().map(|row| row.o).collect::<Vec<_>>(), knee.notes.join("; "))
    };
    rows[4].latency_ms = rows[4].latency_ms.map(|ms| ms * 1.06);
    assert_eq!(of(&rows).0, [6]);
    let law = |residual, verdict| Some(RunLaw::Asked(Law { residual, verdict }));
    rows[4].law = law(0.06, Consistency::Consistent);
    assert_eq!(of(&rows), (vec![], String::new()));
    rows[4].law = law(0.06, Consistency::AccountingError);
    assert_eq!(of(&rows).0, [6]);
    // Less in flight than N: of a run is known why, of means is not.
    rows[4].latency_ms = rows[4].latency_ms.map(|ms| ms * 0.8);
    rows[4].law = law(-0.15, Consistency::StoodStill);
    let told = of(&rows).1;
    assert!(told.contains("the device stood still") && !told.contains("generator"), "{told}");
    rows[4].law = law(-0.15, Consistency::GeneratorLimited);
    let told = of(&rows).1;
    assert!(told.contains("the generator was the limit") && !told.contains("stood"), "{told}");
    rows[4].law = None;
    let told = of(&rows).1;
    assert!(told.contains("the generator was the limit") && told.contains("stood still"), "{told}");
    rows[4].law = Some(RunLaw::NotAsked);
    assert_eq!(of(&rows), (vec![], String::new()));
}

#[test]
fn throughput_that_falls_again_is_flagged() {
    let mut rows = ceiling(&[1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24], 6000.0);
    for row in rows.iter_mut().filter(|row| row.o > 8) {
        row.iops *= (row.o as f64 / 8.0).powf(-0.5);
        row.latency_ms = Some(row.o as f64 / row.iops * 1e3);
    }
    let knee = find(&rows, &Options::default());
    assert_eq!((knee.verdict, knee.flags.as_slice()), (Verdict::Knee, [Flag::Drop].as_slice()));
}

/// (3.2, 3) The slope at the end is that of the last settings, where those before lie octaves below.
#[test]
fn a_chord_over_octaves_is_not_the_end_of_a_curve() {
    let rates = [(2, 3.2), (8, 12.9), (32, 51.6), (128, 206.5), (512, 456.8), (576, 457.0)];
    let of = |rates: &[(u64, f64)]| {
        let rows: Vec<Row> =
            rates.iter().map(|(o, iops)| row(*o, *iops, *o as f64 / iops * 1e3)).collect();
        let options = Options { policy: Policy::Throughput, ..Options::default() };
        find(&rows, &options)
    };
    let found = of(&rates);
    assert_eq!(found.verdict, Verdict::Extend);
    assert!(found.end_elasticity.expect("a slope").0 < 0.01, "{:?}", found.end_elasticity);
    assert!(found.reason.contains("too near the end of the range"), "{}", found.reason);
    // One setting more below shows it.
    let mut more = rates.to_vec();
    more.insert(4, (358, 449.5));
    let found = of(&more);
    assert_eq!((found.verdict, found.marks.expect("a knee").plateau), (Verdict::Knee, 358));
    // Where the last ones rise as well, so does the curve.
    let rising: Vec<(u64, f64)> = rates[..5].iter().copied().chain([(576, 490.0)]).collect();
    let found = of(&rising);
    assert_eq!(found.verdict, Verdict::Extend);
    assert!(found.reason.contains("still rising at o576"), "{}", found.reason);
}

#[test]
fn a_flat_sweep_began_above_the_knee() {
    let knee = find(&ceiling(&[16, 20, 24, 28, 32, 36], 8000.0), &Options::default());
    assert_eq!((knee.verdict, knee.next_range), (Verdict::Flat, Some((4, 15))));
}

#[test]
fn runs_that_contradict_each_other_are_named() {
    let mut rows = ceiling(&POWERS, 8000.0);
    rows.push(row(16, 6000.0, 16.0 / 6.0));
    let knee = find(&rows, &Options::default());
    assert_eq!(knee.outliers(), [16]);
    assert!(knee.flags.contains(&Flag::Outlier) && knee.repeat.contains(&16));
    assert_eq!(knee.marks.map(|marks| marks.plateau), Some(8));
}

#[test]
fn runs_that_differ_by_more_than_3_percent_are_irreproducible_and_excluded_only_if_five_scatter() {
    for (off, runs, irreproducible, excluded) in [
        (1.025, 2, false, false),
        (1.035, 2, true, false),
        (1.06, 2, true, false),
        (1.035, 5, true, false),
        (1.06, 4, true, false),
        (1.06, 5, true, true),
    ] {
        // Pairs that agree beside it: what runs of this curve differ by is known.
        let mut rows = ceiling(&POWERS, 8000.0);
        for o in POWERS.into_iter().filter(|o| *o != 16) {
            let iops = 1000.0 * (o as f64).min(8.0) * 1.001;
            rows.push(row(o, iops, o as f64 / iops * 1e3));
        }
        for run in 1..runs {
            let off = if run % 2 == 1 { off } else { 1.0 };
            rows.push(row(16, 8000.0 * off, 16.0 / (8.0 * off)));
        }
        let knee = find(&rows, &Options::default());
        let setting = knee.settings.iter().find(|setting| setting.o == 16).expect("o16");
        assert_eq!(
            (setting.irreproducible, setting.excluded, setting.counts()),
            (irreproducible, excluded, !excluded),
            "{off}, {runs}: {:?}",
            knee.notes
        );
        assert_eq!(knee.outliers() == [16], irreproducible, "{off}");
        assert!(knee.repeat.contains(&16) || !irreproducible, "{off}");
        // What contradicts itself says nothing of the noise of the others.
        assert!(knee.fit.is_some_and(|fit| fit.noise < 0.01), "{off}, {runs}");
    }
}

/// One of two runs at the setting where the plateau begins is a fifth too slow: what is chosen is said to rest on it.
#[test]
fn a_plateau_beside_runs_that_contradict_each_other_is_said_to_rest_on_them() {
    for (bad, is_told) in [(8, true), (2, false)] {
        let mut rows = ceiling(&POWERS, 8000.0);
        for o in POWERS {
            let off = if o == bad { 0.8 } else { 1.001 };
            let iops = 1000.0 * (o as f64).min(8.0) * off;
            rows.push(row(o, iops, o as f64 / iops * 1e3));
        }
        let knee = find(&rows, &Options::default());
        assert!(knee.outliers().contains(&bad), "{:?}", knee.notes);
        let words = format!("rest on which of the runs of o{bad} is right");
        let told = knee.notes.iter().any(|note| note.contains(&words));
        assert_eq!(told, is_told, "o{bad}: {:?}", knee.notes);
    }
}

#[test]
fn few_runs_that_agree_by_chance_make_no_other_irreproducible() {
    // Differences of pairs as noise of 1.5 % makes them: four are small, three are not.
    let named = |differences: [f64; 7]| {
        let mut rows = Vec::new();
        for (o, difference) in [1, 2, 4, 8, 16, 32, 64].into_iter().zip(differences) {
            for sign in [-0.5, 0.5] {
                let iops = 1000.0 * (o as f64).min(8.0) * (sign * difference).exp();
                rows.push(row(o, iops, o as f64 / iops * 1e3));
            }
        }
        find(&rows, &Options::default()).outliers()
    };
    let by_chance = [0.002, 0.031, 0.004, 0.006, 0.024, 0.003, 0.028];
    assert_eq!(named(by_chance), [0_u64; 0]);
    for (index, o) in [1, 2, 4, 8, 16, 32, 64].into_iter().enumerate() {
        let mut bad = by_chance;
        bad[index] = 0.3;
        assert_eq!(named(bad), [o]);
    }
    // Three of them do not hide one another.
    let [mut three, mut four] = [by_chance.map(|difference| difference / 3.0); 2];
    (three[1], three[4], three[6]) = (0.3, 0.25, 0.35);
    assert_eq!(named(three), [2, 16, 64]);
    // Where many are bad that is what runs differ by.
    (four[0], four[1], four[2], four[4]) = (0.3, 0.25, 0.28, 0.35);
    assert!(named(four).is_empty());
}

#[test]
fn few_settings_that_agree_by_chance_take_none_off_the_curve() {
    let os = [2, 3, 4, 6, 8, 10, 12, 14, 16, 20, 24, 28, 32];
    // A ceiling at 11 with noise of 1 %.
    let iops = [
        323.67, 443.72, 533.13, 730.97, 908.53, 1070.18, 1157.32, 1145.13, 1114.92, 1144.71,
        1157.23, 1131.56, 1127.32,
    ];
    let named = |lower: f64| {
        let rows: Vec<Row> = os
            .into_iter()
            .zip(iops)
            .map(|(o, iops)| (o, if o == 16 { iops * lower } else { iops }))
            .map(|(o, iops)| row(o, iops, o as f64 / iops * 1e3))
            .collect();
        find(&rows, &Options::default()).outliers()
    };
    assert_eq!(named(1.0), [0_u64; 0]);
    assert_eq!(named(0.88), [16]);
}

#[test]
fn rows_that_contradict_a_known_number_are_left_out_however_many() {
    let mut rows = ceiling(&POWERS, 8000.0);
    for row in &mut rows[2..] {
        row.latency_ms = row.latency_ms.map(|ms| ms * 1.05);
    }
    let known = Options { threads: Some(1.0), ..Options::default() };
    let knee = find(&rows, &known);
    assert_eq!(knee.dropped.len(), rows.len() - 2);
    assert_eq!(knee.verdict, Verdict::Unclear);
    assert!(knee.reason.contains("rows were left out"), "{}", knee.reason);
    assert!(knee.notes[0].contains("check the number of threads"), "{:?}", knee.notes);
    // Nobody said how many there are: what the rows themselves say is no measure for them.
    assert!(find(&rows, &Options::default()).dropped.len() < rows.len() / 3);
}

#[test]
fn impossible_rows_are_left_out() {
    let mut rows = ceiling(&POWERS, 8000.0);
    rows[3].latency_ms = Some(1.5);
    rows.push(row(12, 0.0, 0.0));
    let knee = find(&rows, &Options { threads: Some(1.0), ..Options::default() });
    let dropped: Vec<u64> = knee.dropped.iter().map(|row| row.o).collect();
    assert_eq!(dropped, [12, 8]);
    assert_eq!(knee.marks.map(|marks| marks.plateau), Some(16));
}

#[test]
fn a_budget_lowers_the_recommendation() {
    let options = Options { budget_ms: Some(1.0), ..Options::default() };
    let marks = find(&ceiling(&POWERS, 8000.0), &options).marks.expect("a knee has marks");
    assert_eq!((marks.budget, marks.plateau, marks.recommended), (Some(8), 8, 8));
    let options = Options { budget_ms: Some(0.5), ..Options::default() };
    let marks = find(&ceiling(&POWERS, 8000.0), &options).marks.expect("a knee has marks");
    assert_eq!(marks.budget, None);
}

#[test]
fn two_settings_are_no_curve() {
    let knee = find(&ceiling(&[1, 2], 8000.0), &Options::default());
    assert_eq!((knee.verdict, knee.marks), (Verdict::Unclear, None));
    assert_eq!(find(&[], &Options::default()).verdict, Verdict::Unclear);
}

#[test]
fn noise_is_no_curve_and_never_a_number_that_is_none() {
    for rates in [
        &[(1, 100.0), (2, 60.0), (4, 100.0)][..],
        &[(1, 100.0), (2, 88.0), (4, 89.5)],
        &[(1, 1000.0), (2, 785.95), (4, 1995.74), (8, 1934.65), (16, 889.08), (32, 1534.36)],
    ] {
        let rows: Vec<Row> = rates
            .iter()
            .map(|(o, iops)| Row {
                o: *o,
                iops: *iops,
                latency_ms: None,
                latency_half_unit_ms: 0.0,
                law: None,
            })
            .collect();
        let found = find(&rows, &Options::default());
        let fit = found.fit.as_ref().expect("a fit");
        assert!(fit.ln_x.iter().all(|value| value.is_finite()), "{fit:?}");
        assert!(!found.reason.contains("NaN"), "{}", found.reason);
        assert_eq!(found.verdict, Verdict::Unclear, "{rates:?}: {}", found.reason);
    }
}

#[test]
fn what_no_setting_keeps_is_recommended_for_none() {
    let rows: Vec<Row> = (1..=24_u64)
        .map(|o| Row {
            o,
            iops: 1000.0 * (o as f64).min(10.0),
            latency_ms: Some(o as f64 / (o as f64).min(10.0)),
            latency_half_unit_ms: 0.0,
            law: None,
        })
        .collect();
    let decided = |budget_ms: f64| {
        let options = Options { budget_ms: Some(budget_ms), ..Options::default() };
        let knee = find(&rows, &options);
        crate::decision::of_knee(&knee, &options, &crate::findings::Layout::default())
    };
    assert!(decided(1.0)["recommended_o"].as_u64().is_some_and(|o| o <= 10));
    let none = decided(0.5);
    assert!(none["recommended_o"].is_null() && none["value"].is_null(), "{none:?}");
    assert!(none["notes"].to_string().contains("nothing is recommended"), "{none:?}");
}

/// Settings whose runs do not agree are no curve, and are not forgotten where all of their runs say otherwise.
#[test]
fn nothing_is_said_of_what_too_few_settings_carry() {
    let curve = |points: &[(u64, f64)]| -> Vec<Row> {
        points.iter().map(|(o, iops)| row(*o, *iops, *o as f64 / iops * 1e3)).collect()
    };
    for (points, says) in [
        (&[(2, 800.0), (4, 757.0), (8, 1428.0), (8, 2852.0)][..], "noise of"),
        (&[(2, 502.0), (2, 227.0), (4, 493.0), (8, 1671.0), (8, 1802.0)], "noise of"),
        (
            &[(1, 1000.0), (2, 1010.0), (4, 1500.0), (4, 1900.0), (8, 2600.0), (8, 3100.0)],
            "noise of",
        ),
        (&[(2, 800.0), (3, 803.0), (4, 798.0), (6, 801.0), (8, 1428.0), (8, 2852.0)], "without o8"),
    ] {
        let knee = find(&curve(points), &Options::default());
        assert_eq!(knee.verdict, Verdict::Unclear, "{points:?}: {}", knee.reason);
        assert!(knee.reason.contains(says), "{points:?}: {}", knee.reason);
        assert!(knee.marks.is_none() && knee.repeat.contains(&8), "{points:?}: {:?}", knee.repeat);
    }
}

/// A curve comes near to few settings whatever their noise is: what it leaves is none.
#[test]
fn few_settings_run_once_do_not_tell_their_noise() {
    // 50,000 at the end, and each setting up to 12 % off.
    let off = [-0.07, 0.1, 0.02, -0.04, 0.05, 0.01, -0.08, 0.06, 0.03, -0.02, 0.04, -0.05];
    let curve = |os: &[u64], times: usize, scale: f64| -> Vec<Row> {
        let places = os.iter().flat_map(|o| std::iter::repeat_n(*o, times)).enumerate();
        places
            .map(|(place, o)| {
                let smooth = 50_000.0 * (1.0 + (o as f64 / 12.0).powi(-3)).powf(-1.0 / 3.0);
                let iops = smooth * (scale * off[place % off.len()]).exp();
                row(o, iops, o as f64 / iops * 1e3)
            })
            .collect()
    };
    let says = |knee: &Knee| knee.notes.iter().any(|note| note.contains("noise is not known"));
    let few = find(&curve(&[2, 4, 8, 16, 32], 1, 1.0), &Options::default());
    let fit = few.fit.as_ref().expect("a fit");
    assert!(
        says(&few) && !fit.is_noise_known && fit.sigma < 0.015 && fit.noise == 0.015,
        "{few:#?}"
    );
    let (_, error) = few.end_elasticity.expect("enough");
    assert!((0.05..0.2).contains(&error), "{error}");
    let decision =
        crate::decision::of_knee(&few, &Options::default(), &crate::findings::Layout::default());
    let sigma =
        decision["evidence"].as_array().into_iter().flatten().find(|e| e["name"] == "sigma");
    assert_eq!(sigma.expect("evidence")["value"], 0.015);
    // The same settings three times each, and twelve settings, know it.
    for rows in [
        curve(&[2, 4, 8, 16, 32], 3, 0.2),
        curve(&[1, 2, 3, 4, 5, 6, 8, 10, 12, 16, 24, 32], 1, 0.2),
    ] {
        let knee = find(&rows, &Options::default());
        let fit = knee.fit.as_ref().expect("a fit");
        assert!(!says(&knee) && fit.is_noise_known && fit.noise == fit.sigma, "{knee:#?}");
    }
}

/// What no fit holds through has no figure of one, and says no percentages that mean nothing.
#[test]
fn what_is_unclear_has_no_figures_of_a_fit() {
    let decide = |rates: &[f64]| {
        let rows: Vec<Row> = POWERS
            .iter()
            .zip(rates)
            .map(|(o, iops)| row(*o, *iops, *o as f64 / iops * 1e3))
            .collect();
        let options = Options { threads: Some(1.0), ..Options::default() };
        let knee = find(&rows, &options);
        let decision =
            crate::decision::of_knee(&knee, &options, &crate::findings::Layout::default());
        (knee.verdict, serde_json::Value::Object(decision))
    };
    let evidence = |decision: &serde_json::Value, name: &str| {
        let list = decision["evidence"].as_array().expect("a list");
        list.iter().find(|item| item["name"] == name).expect("it is there")["value"].clone()
    };
    let of_fit = [
        "end_slope_of_fit",
        "end_elasticity",
        "end_elasticity_error",
        "plateau_iops",
        "plateau_slope",
        "plateau_deviation",
        "plateau_range",
    ];
    let (verdict, decision) = decide(&[1000.0, 9.0, 70_000.0, 2.0, 5e6, 40.0, 300.0]);
    assert_eq!(verdict, Verdict::Unclear);
    assert!(of_fit.iter().all(|name| evidence(&decision, name).is_null()), "{decision}");
    assert!(evidence(&decision, "gain").is_null() && evidence(&decision, "sigma").is_number());
    for key in ["plateau_o", "recommended_o", "lean_o", "budget_o", "usl", "named_cap"] {
        assert!(decision[key].is_null(), "{key}: {decision}");
    }
    let settings = decision["settings"].as_array().expect("a list");
    assert!(settings.iter().all(|setting| setting["fitted_iops"].is_null()));
    assert_eq!(decision["reason"], "noise of more than 50 % about the fit, above 8 %");
    let told = crate::explain::explain(&decision).expect("a decision");
    let (_, told) = told.split_once("arithmetic").expect("its sums");
    for word in ["plateau_", "fitted", "end_", "unknown"] {
        assert!(!told.contains(word), "{told}");
    }
    // What decides is told: noise that hides a gain.
    let (verdict, decision) = decide(&[1000.0, 1100.0, 990.0, 1120.0, 1010.0, 1090.0, 1000.0]);
    assert_eq!(verdict, Verdict::Unclear, "{decision}");
    assert!(
        evidence(&decision, "gain").is_number() && evidence(&decision, "plateau_iops").is_null()
    );
    // Where there is a knee nothing is missing.
    let (verdict, decision) = decide(&[1000.0, 2000.0, 4000.0, 8000.0, 8001.0, 8000.0, 8002.0]);
    assert_eq!(verdict, Verdict::Knee);
    assert!(of_fit.iter().all(|name| evidence(&decision, name).is_number()), "{decision}");
}
