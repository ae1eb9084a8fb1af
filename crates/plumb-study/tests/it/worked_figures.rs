//! Worked figures of the method that no test beside the code reproduces; docs/internals/worked-figures.md lists
//! them all.

use plumb_study::compare::{independent, single};
use plumb_study::findings::Layout;
use plumb_study::identities::{self, Consistency};
use plumb_study::precision;
use plumb_study::stats::describe::{deviation, mean, neighbour_correlation};
use plumb_study::stats::distribution::t_95;
use plumb_study::table;

use crate::random::Random;

const RANDOM: &str = include_str!("../data/random-test-1.csv");
const SPLIT: &str = include_str!("../data/table-4-random-test-2.csv");
const READS: &str = include_str!("../data/sequential-reads.csv");
const WRITES: &str = include_str!("../data/sequential-writes.csv");
const THREADS: &str = include_str!("../data/pretest-1-threads.csv");
const CPU: &str = include_str!("../data/seed-002-cpu.csv");

#[track_caller]
fn near(found: f64, wanted: f64, tolerance: f64) {
    assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted}");
}

/// Cells of a published table as numbers; those that are words are none.
fn cells(csv: &str) -> Vec<Vec<Option<f64>>> {
    csv.lines()
        .skip(1)
        .map(|line| line.split(',').map(|cell| cell.parse().ok()).collect())
        .collect()
}

/// (rate, mean latency, outstanding) of each total of a table.
fn totals(csv: &str, latency: usize, outstanding: fn(&[f64]) -> f64) -> Vec<(f64, f64, f64)> {
    let rate = if csv.starts_with("t,") { 2 } else { 1 };
    cells(csv)
        .iter()
        .map(|row| {
            let row: Vec<f64> = row.iter().map(|cell| cell.expect("a number")).collect();
            (row[rate], row[latency], outstanding(&row))
        })
        .collect()
}

#[test]
fn all_85_published_totals_obey_littles_law() {
    let tables = [
        (totals(RANDOM, 3, |row| 8.0 * row[0]), (-0.39, 0.0)),
        (totals(SPLIT, 3, |row| row[0] * row[1]), (-0.098, -0.047)),
        (totals(READS, 3, |row| row[0]), (-0.020, 0.011)),
        (totals(WRITES, 3, |row| row[0]), (-0.020, 0.011)),
        (
            vec![(58_071.31, 1.652, 96.0), (1953.30, 32.763, 64.0), (20_581.94, 3.106, 64.0)],
            (-0.114, -0.006),
        ),
    ];
    let mut count = 0;
    for (rows, (low, high)) in tables {
        for (iops, ms, outstanding) in rows {
            let residual = identities::residual(iops, ms, outstanding);
            // Latencies are printed with three decimals.
            let epsilon = 0.0005 / ms;
            let verdict = identities::consistency(residual, epsilon);
            assert_eq!(verdict, Consistency::Consistent, "{iops} {ms}");
            let percent = residual * 100.0;
            assert!(
                percent >= low - 5e-4 && percent <= high + 5e-4,
                "{iops} × {ms} ms: {percent} %"
            );
            count += 1;
        }
    }
    assert_eq!(count, 85);
    for (iops, ms, wanted) in
        [(58_071.31, 1.652, 95.934), (1953.30, 32.763, 63.996), (20_581.94, 3.106, 63.93)]
    {
        near(identities::in_flight(iops, ms), wanted, 0.005);
    }
}

#[test]
fn threads_of_pre_test_1_are_those_of_the_prose() {
    let threads: Vec<Vec<Option<f64>>> = THREADS
        .lines()
        .filter(|line| line.starts_with("total,") && !line.starts_with("total,total"))
        .map(|line| line.split(',').map(|cell| cell.parse().ok()).collect())
        .collect();
    let column = |place: usize| -> Vec<f64> {
        threads.iter().map(|row| row[place].expect("a number")).collect()
    };
    let ends = |values: &[f64]| {
        let low = values.iter().copied().fold(f64::INFINITY, f64::min);
        (low, values.iter().copied().fold(0.0, f64::max))
    };
    assert_eq!(threads.len(), 8);
    assert_eq!(ends(&column(5)), (7202.95, 7317.50));
    assert_eq!(ends(&column(4)), (56.27, 57.17));
    near(mean(&column(5)), 7260.0, 2.0);
    near(column(5).iter().sum(), 58_071.31, 0.02);
}

#[test]
fn processors_that_were_not_measured_are_no_zeros() {
    let usage: Vec<(f64, f64)> = CPU
        .lines()
        .skip(1)
        .filter(|line| !line.starts_with("avg"))
        .map(|line| {
            let cells: Vec<&str> = line.split(',').collect();
            (cells[1].parse().expect("usage"), cells[4].parse().expect("idle"))
        })
        .collect();
    let sum: f64 = usage.iter().map(|(usage, _)| usage).sum();
    let measured = usage.iter().filter(|(usage, idle)| usage + idle >= 50.0).count();
    // The published table has 24 more rows like its last one.
    assert_eq!(measured, 8);
    near(sum, 79.83, 0.005);
    near(sum / 32.0, 2.49, 0.005);
    near(sum / 8.0, 9.98, 0.005);
}

#[test]
fn the_split_of_120_and_what_two_sessions_differ_by() {
    let rates: Vec<f64> = totals(SPLIT, 3, |row| row[0]).iter().map(|total| total.0).collect();
    let logs: Vec<f64> = rates[2..].iter().map(|rate| rate.ln()).collect();
    assert_eq!(logs.len(), 10);
    near(mean(&logs).exp(), 56_611.0, 0.5);
    near(deviation(&logs) * 100.0, 0.69, 0.005);
    near(t_95(9.0) * deviation(&logs) * 1.1_f64.sqrt() * 100.0, 1.65, 0.02);
    // The same setting twice: 5.1 % apart, with one degree of freedom an SD of about 3.5 %.
    near(58_071.31 / 55_232.28 - 1.0, 0.051, 0.0005);
    near(deviation(&[58_071.31_f64.ln(), 55_232.28_f64.ln()]), 0.035, 0.001);
    let pair = single(&[55_232.28], &[58_071.31], 0.0, 0.0).expect("positive");
    near((pair.high - pair.low) / 2.0, 0.048, 0.0005);
}

#[test]
fn figures_of_a_ceiling() {
    near(234_408.0 / 120.0, 1953.40, 0.005);
    near(234_408.0 / 1953.30, 120.006, 0.0005);
    near(64.0 / 1953.30 * 1e3, 32.765, 0.0005);
    near(17.72 / 1953.30, 0.009, 0.0005);
    for (limit, percent) in [(1920.0, 1.7), (5000.0, -61.0), (20_000.0, -90.0)] {
        near((1953.30 / limit - 1.0) * 100.0, percent, 0.5);
    }
    // What measuring latencies cost in the published note.
    near((56.1 / 59.5 - 1.0) * 100.0, -5.7, 0.05);
}

#[test]
fn elasticities_of_random_test_1() {
    let rows = table::read(RANDOM, None).expect("a table").rows;
    let slopes: Vec<f64> = rows
        .windows(2)
        .map(|pair| (pair[1].iops / pair[0].iops).ln() / (pair[1].o as f64 / pair[0].o as f64).ln())
        .collect();
    // The dip in the middle at which a rule of the first crossing would stop.
    assert!(slopes[2..4].iter().all(|slope| (0.26..=0.35).contains(slope)), "{slopes:?}");
    assert!(slopes[4..].iter().all(|slope| (0.44..=0.545).contains(slope)), "{slopes:?}");
    // Ten percent more outstanding at the elasticity of the plateau buy less than 1.2 %.
    near(1.1_f64.powf(plumb_study::knee::TAU) - 1.0, 0.012, 0.0001);
}

#[test]
fn a_search_costs_little_throughput() {
    let rows = table::read(READS, None).expect("a table").rows;
    let at = |o: u64| rows.iter().find(|row| row.o == o).expect("tested").iops;
    near(at(27) / at(31) - 1.0, -0.024, 0.0005);
    near(1.0 - 31.0 / 82.0, 0.62, 0.005);
    // The row that is printed for o32 is the second run, and lower.
    near(at(32) * 524_288.0 / f64::from(1 << 20), 1440.65, 0.01);
    assert!(at(32) < at(31));
}

#[test]
fn the_findings_table_for_each_device() {
    let layout = |share| Layout { devices: Some(8.0), copies: Some(2.0), write_share: Some(share) };
    let read = layout(0.0).finding(30.0, 2899.93, 10.689, Some(524_288.0));
    near(read.depth_per_device.expect("known"), 3.750, 1e-12);
    let write = layout(1.0).finding(15.0, 362.33 * 2.0, 20.698, Some(524_288.0));
    near(write.mib_per_s_per_device.expect("known"), 90.5825, 1e-6);
}

#[test]
fn the_worked_batches_scatter_against_each_other() {
    let batches = [
        57_800.0, 58_210.0, 58_040.0, 57_650.0, 58_330.0, 58_120.0, 57_910.0, 58_260.0, 57_990.0,
        58_100.0,
    ];
    near(deviation(&batches), 210.9, 0.05);
    near(neighbour_correlation(&batches), -0.46, 0.005);
    near(t_95(9.0), 2.262, 0.0005);
}

#[test]
fn a_slope_per_interval_hides_a_decline() {
    // 0.3 % each second for a minute: what another tool's criterion would let pass.
    near(0.003 * 60.0, 0.18, 1e-12);
    let series: Vec<f64> = (0..60).map(|s| 1000.0 * (1.0 - 0.003 * f64::from(s))).collect();
    assert!(!plumb_study::steady::warm_up(&series).settled);
}

#[test]
fn independent_seconds_promise_what_they_do_not_keep() {
    let mut random = Random::seeded(52);
    let mut covers = |phi: f64, count: usize| {
        let (mut ours, mut naive) = (0, 0);
        for _ in 0..400 {
            let series = random.autoregressive(phi, count);
            let interval = precision::of_series(&series).expect("long enough");
            ours += u32::from(interval.mean.abs() <= interval.half_width);
            let plain = t_95(count as f64 - 1.0) * deviation(&series) / (count as f64).sqrt();
            naive += u32::from(mean(&series).abs() <= plain);
        }
        (f64::from(ours) / 4.0, f64::from(naive) / 4.0)
    };
    for (phi, naive) in [(0.0, 95.9), (0.5, 74.1), (0.8, 48.2), (0.9, 34.8)] {
        let (found, plain) = covers(phi, 180);
        near(plain, naive, 6.0);
        assert!((90.0..=98.5).contains(&found), "{phi}: {found} %");
        let (found, _) = covers(phi, 600);
        assert!((92.5..=98.5).contains(&found), "{phi}: {found} %");
    }
}

#[test]
fn the_worked_comparison_by_means_and_ranks() {
    let a = [58_071.31, 55_232.28, 56_800.0, 57_250.0, 56_100.0];
    let b = [60_100.0, 59_200.0, 60_550.0, 58_900.0, 61_000.0];
    let found = independent(&a, &b).expect("positive");
    near(found.difference.exp_m1() * 100.0, 5.76, 0.005);
    let shift = plumb_study::stats::ranks::hodges_lehmann(&a, &b).expect("enough");
    near(shift.estimate, 3300.0, 0.5);
}
