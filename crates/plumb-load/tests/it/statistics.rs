//! Properties of the two latency stores and of intervals, on seeded random data.

use plumb_load::tally::span_series::{EndedInterval, SpanSeries};
use plumb_load::tally::{ExactLatencies, Histogram, IntervalCell, IopsSeries, LatencySet};
use plumb_units::{Nanos, convert};

use crate::made_up::Sequence;

const PERCENTILES: [f64; 11] =
    [0.0, 0.001, 0.01, 0.25, 0.5, 0.9, 0.95, 0.99, 0.999, 0.999_999_999, 1.0];

/// Latencies of very different sizes: from single nanoseconds to minutes.
fn latencies(sequence: &mut Sequence, count: u64) -> Vec<u64> {
    let one = |sequence: &mut Sequence| {
        let magnitude = 1_u64 << sequence.below(37);
        magnitude + sequence.below(magnitude)
    };
    (0..count).map(|_| one(sequence)).collect()
}

fn histogram(nanos: &[u64]) -> Histogram {
    let mut histogram = Histogram::new();
    nanos.iter().for_each(|nanos| histogram.record(*nanos));
    histogram
}

#[test]
fn merged_histograms_equal_one() {
    for seed in 0..20 {
        let mut sequence = Sequence(seed);
        let count = sequence.below(3000);
        let nanos = latencies(&mut sequence, count);
        let parts = 1 + convert::to_usize(sequence.below(8));
        let mut merged = LatencySet::default();
        for part in 0..parts {
            let own: Vec<u64> = nanos.iter().copied().skip(part).step_by(parts).collect();
            merged.merge(&LatencySet::Binned(histogram(&own)));
        }
        let together = LatencySet::Binned(histogram(&nanos));
        assert_eq!(merged.count(), together.count(), "seed {seed}");
        assert_eq!(merged.distinct(), together.distinct(), "seed {seed}");
        assert_eq!(merged.mean_us(), together.mean_us(), "seed {seed}");
        assert_eq!(merged.stddev_us(), together.stddev_us(), "seed {seed}");
        for p in PERCENTILES {
            assert_eq!(merged.percentile_us(p), together.percentile_us(p), "seed {seed}, {p}");
        }
    }
}

#[test]
fn both_stores_agree_within_the_stated_error() {
    for seed in 0..20 {
        let mut sequence = Sequence(1000 + seed);
        let count = 1 + sequence.below(3000);
        let nanos = latencies(&mut sequence, count);
        let mut exact = ExactLatencies::default();
        for nanos in &nanos {
            #[expect(clippy::cast_possible_truncation, reason = "held as 32-bit floats")]
            exact.record((*nanos as f64 / 1e3) as f32);
        }
        let (exact, binned) = (LatencySet::Exact(exact), LatencySet::Binned(histogram(&nanos)));
        for p in PERCENTILES {
            let (want, got) = (exact.percentile_us(p), binned.percentile_us(p));
            let (want, got) = (want.expect("not empty"), got.expect("not empty"));
            // Half a bucket, and what 32 bits of float lose.
            let error = want * (Histogram::RELATIVE_ERROR + 1e-6);
            assert!((want - got).abs() <= error, "seed {seed}, {p}: {got}, exactly {want}");
        }
        for (name, want, got) in [
            ("mean", exact.mean_us(), binned.mean_us()),
            ("deviation", exact.stddev_us(), binned.stddev_us()),
            ("minimum", exact.min_us(), binned.min_us()),
            ("maximum", exact.max_us(), binned.max_us()),
        ] {
            let (want, got) = (want.expect("not empty"), got.expect("not empty"));
            let error = want * 1e-6 + 1e-6;
            assert!((want - got).abs() <= error, "seed {seed}, {name}: {got}, exactly {want}");
        }
    }
}

#[test]
fn percentiles_are_values_that_enough_others_do_not_exceed() {
    for seed in 0..20 {
        let mut sequence = Sequence(2000 + seed);
        let mut micros: Vec<u16> = Vec::new();
        let mut exact = ExactLatencies::default();
        for _ in 0..1 + sequence.below(500) {
            let value = u16::try_from(sequence.below(400)).expect("small");
            exact.record(value.into());
            micros.push(value);
        }
        let exact = LatencySet::Exact(exact);
        for p in PERCENTILES {
            let wanted = p * convert::to_u64(micros.len()) as f64;
            let enough = |value: &u16| {
                let below = micros.iter().filter(|other| *other <= value).count();
                convert::to_u64(below) as f64 >= wanted
            };
            let want = micros.iter().copied().filter(enough).min().map(f64::from);
            assert_eq!(exact.percentile_us(p), want, "seed {seed}, {p}");
        }
    }
}

#[test]
fn merged_series_equal_one() {
    for seed in 0..20 {
        let mut sequence = Sequence(3000 + seed);
        let empty = || IopsSeries::new(100, 2);
        let mut together = empty();
        let mut parts = [empty(), empty(), empty()];
        for _ in 0..sequence.below(1000) {
            // Some completions come after the last interval that has room.
            let at = Nanos(sequence.below(2_200_000_000));
            let latency = Nanos(1 + sequence.below(1_000_000));
            together.record(at, 4096, latency);
            parts[convert::to_usize(sequence.below(3))].record(at, 4096, latency);
        }
        let mut merged = empty();
        parts.iter().for_each(|part| merged.merge(part));
        assert_eq!(merged.last(), together.last(), "seed {seed}");
        assert_eq!(merged.valid_intervals(), together.valid_intervals(), "seed {seed}");
        assert_eq!(merged.iops_stddev(), together.iops_stddev(), "seed {seed}");
        for (merged, together) in merged.valid_cells().iter().zip(together.valid_cells()) {
            let exact = |cell: &plumb_load::tally::IntervalCell| {
                (cell.count, cell.bytes, cell.sum, cell.sum_of_squares, cell.min, cell.max)
            };
            assert_eq!(exact(merged), exact(together), "seed {seed}");
            assert_eq!(merged.stddev_ms(), together.stddev_ms(), "seed {seed}");
        }
    }
}

/// Deviation of the I/Os per second as it is defined: of the intervals one by one, from their mean.
fn deviation(series: &IopsSeries) -> f64 {
    let counts: Vec<f64> = series.valid_cells().iter().map(|cell| cell.count as f64).collect();
    let intervals = convert::to_u64(counts.len()).max(1) as f64;
    let mean = counts.iter().sum::<f64>() / intervals;
    let squares = counts.iter().map(|count| (count - mean).powi(2)).sum::<f64>();
    (squares / intervals).sqrt() / series.interval().as_secs_f64()
}

#[test]
fn one_series_for_all_threads_is_theirs_merged() {
    const INTERVAL_MS: u32 = 10;
    let empty = || [IopsSeries::new(INTERVAL_MS, 1), IopsSeries::new(INTERVAL_MS, 1)];
    for seed in 0..20 {
        let mut sequence = Sequence(7000 + seed);
        // Threads work on one target, the other or both.
        let threads = [vec![0], vec![4, 2], vec![2], vec![0, 2, 4], vec![4]];
        let mut collected = SpanSeries::new(INTERVAL_MS, 1, &threads).expect("a scratch file");
        let mut apart: Vec<Vec<[IopsSeries; 2]>> =
            threads.iter().map(|targets| targets.iter().map(|_| empty()).collect()).collect();
        // Some intervals are behind the last one that has room, some have nothing.
        for number in 0..sequence.below(110) {
            for (thread, series) in apart.iter_mut().enumerate() {
                for (place, series) in (0..).zip(series) {
                    let mut cells = [IntervalCell::EMPTY; 2];
                    for _ in 0..sequence.below(4) {
                        let latency = Nanos(1 + sequence.below(3_000_000_000));
                        let side = convert::to_usize(sequence.below(2));
                        let at = number * 10_000_000 + sequence.below(10_000_000);
                        cells[side].record(4096, latency);
                        series[side].record(Nanos(at), 4096, latency);
                    }
                    let [read, write] = cells;
                    collected.add(thread, &EndedInterval { number, place, read, write });
                }
            }
        }
        let (targets, of_threads) = collected.finish();
        let both = |[read, write]: &[IopsSeries; 2]| {
            let mut both = read.clone();
            both.merge(write);
            both
        };
        for (series, apart) in of_threads.iter().flatten().zip(apart.iter().flatten()) {
            let [read, write] = apart;
            let told = series.read_back().expect("readable");
            assert_eq!((&told.0, &told.1), (read, write), "seed {seed}");
            let moments = [read, write, &both(apart)].map(IopsSeries::moments);
            assert_eq!([series.read, series.write, series.total], moments, "seed {seed}");
            for (moments, series) in moments.iter().zip([read, write, &both(apart)]) {
                assert_eq!(moments.valid_intervals(), series.valid_intervals());
                let (told, want) = (moments.iops_stddev(), deviation(series));
                assert!((told - want).abs() <= 1e-9 * want, "seed {seed}: {told} for {want}");
            }
        }
        assert_eq!(targets.iter().map(|target| target.index).collect::<Vec<_>>(), [0, 2, 4]);
        for target in targets {
            let [mut read, mut write] = empty();
            for (indices, apart) in threads.iter().zip(&apart) {
                for (_, apart) in
                    indices.iter().zip(apart).filter(|(index, _)| **index == target.index)
                {
                    read.merge(&apart[0]);
                    write.merge(&apart[1]);
                }
            }
            assert_eq!((target.read, target.write), (read, write), "seed {seed}");
        }
    }
}
