use super::*;
use crate::plan::{PlanOptions, plan};
use crate::profile::model::{Target, ThreadTarget};

const ONLY: Stream = Stream { number: 0, of: 1, part: 1, whole: 1 };

fn first(arrival: Arrival, rate: u32, stream: Stream, seed: u32, count: usize) -> Vec<u64> {
    let mut arrivals = Arrivals::new(OpenLoop { rate, arrival }, stream, seed);
    (0..count).map(|_| arrivals.next_due().0).collect()
}

/// Equal streams together.
fn together(arrival: Arrival, rate: u32, of: u32, each: usize) -> Vec<u64> {
    let stream = |number| Stream { number, of, part: 1, whole: of.into() };
    let mut all: Vec<u64> =
        (0..of).flat_map(|number| first(arrival, rate, stream(number), 1, each)).collect();
    all.sort_unstable();
    all
}

#[test]
fn uniform_arrivals_are_equally_far_apart_and_never_drift() {
    let times = first(Arrival::Uniform, 1000, ONLY, 0, 1001);
    assert!(times.iter().zip(0..).all(|(time, k)| *time == k * 1_000_000), "{times:?}");
    // A third of a nanosecond does not add up: the 3,000,000th is at a second to the nanosecond.
    let thirds = first(Arrival::Uniform, 3_000_000, ONLY, 0, 3_000_001);
    assert_eq!((thirds[1], thirds[3_000_000]), (333, 1_000_000_000));
    assert_eq!(together(Arrival::Uniform, 1000, 7, 100)[..700], times[..700]);
}

#[test]
fn poisson_arrivals_have_the_mean_and_the_variance_of_their_name() {
    let (count, rate) = (200_000, 50_000);
    let times = first(Arrival::Poisson, rate, ONLY, 7, count);
    assert!(times.is_sorted());
    let gaps: Vec<f64> = times.windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    // Standard errors: 0.22 % of the mean, 0.63 % of the variance.
    assert!((mean / 20_000.0 - 1.0).abs() < 0.01, "mean {mean}");
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.015, "{} of the mean", variance.sqrt() / mean);
    let longer = gaps.iter().filter(|gap| **gap > 2.0 * 20_000.0).count() as f64;
    assert!((longer / gaps.len() as f64 - (-2.0_f64).exp()).abs() < 0.005);
    // Counts of 1 ms: variance equals mean.
    let mut counts = vec![0.0; 3900];
    for time in &times {
        if let Some(count) = counts.get_mut(convert::to_usize(time / 1_000_000)) {
            *count += 1.0;
        }
    }
    let mean = counts.iter().sum::<f64>() / counts.len() as f64;
    let dispersion = counts.iter().map(|count| (count - mean) * (count - mean)).sum::<f64>()
        / counts.len() as f64
        / mean;
    assert!((mean - 50.0).abs() < 1.0 && (dispersion - 1.0).abs() < 0.1, "{mean} {dispersion}");
}

#[test]
fn streams_of_a_poisson_process_are_one() {
    let all = together(Arrival::Poisson, 10_000, 5, 4000);
    let gaps: Vec<f64> = all[..18_000].windows(2).map(|pair| (pair[1] - pair[0]) as f64).collect();
    let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
    let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / gaps.len() as f64;
    assert!((mean / 100_000.0 - 1.0).abs() < 0.03, "{mean}");
    assert!((variance.sqrt() / mean - 1.0).abs() < 0.05, "{}", variance.sqrt() / mean);
}

#[test]
fn arrivals_are_a_function_of_seed_and_stream() {
    let other = Stream { number: 1, of: 2, part: 1, whole: 2 };
    let this = Stream { number: 0, ..other };
    let poisson = |stream, seed| first(Arrival::Poisson, 1000, stream, seed, 100);
    assert_eq!(poisson(this, 7), poisson(this, 7));
    assert_ne!(poisson(this, 7), poisson(this, 8));
    assert_ne!(poisson(this, 7), poisson(other, 7));
    assert_ne!(poisson(other, 7), poisson(this, 8), "thread and seed are not added up");
}

#[test]
fn bursts_are_exact() {
    // 1000 per second in bursts of 10: one every 10 ms, spread over 5 ms.
    let spread = first(Arrival::Burst { ios: 10, millis: 5 }, 1000, ONLY, 0, 25);
    let want = |k: u64| k / 10 * 10_000_000 + k % 10 * 500_000;
    assert!(spread.iter().zip(0..).all(|(time, k)| *time == want(k)), "{spread:?}");
    let at_once = first(Arrival::Burst { ios: 10, millis: 0 }, 1000, ONLY, 0, 25);
    assert!(at_once.iter().zip(0..).all(|(time, k)| *time == k / 10 * 10_000_000), "{at_once:?}");
    for of in [2, 3, 5, 7] {
        let each = 210 / usize::try_from(of).expect("small");
        let all = together(Arrival::Burst { ios: 10, millis: 5 }, 1000, of, each);
        assert!(all.iter().zip(0..).all(|(time, k)| *time == want(k)), "{of}: {all:?}");
    }
    let fits =
        |ios, millis| OpenLoop { rate: 1000, arrival: Arrival::Burst { ios, millis } }.bursts_fit();
    assert!(fits(10, 10) && !fits(10, 11));
}

fn shares(span: &TimeSpan) -> Vec<Vec<f64>> {
    let options = PlanOptions::default();
    let open = OpenLoop { rate: 1200, arrival: Arrival::Uniform };
    let threads = plan(span, options).threads;
    let of = |thread: &ThreadPlan| thread.streams.iter().map(|stream| stream.rate(open)).collect();
    threads.iter().map(of).collect()
}

#[test]
fn targets_share_by_weight_and_threads_split_evenly() {
    let target = |path: &str, weight, threads_per_file| Target {
        path: path.into(),
        weight,
        threads_per_file,
        ..Target::default()
    };
    let own = TimeSpan {
        targets: vec![target("a", 1, 2), target("b", 3, 1), target("c", 0, 1)],
        ..TimeSpan::default()
    };
    assert_eq!(shares(&own), [[150.0], [150.0], [900.0], [0.0]]);
    let pool = TimeSpan {
        thread_count: 2,
        targets: vec![target("a", 1, 1), target("b", 3, 1)],
        ..TimeSpan::default()
    };
    assert_eq!(shares(&pool), [[150.0, 450.0], [150.0, 450.0]]);
    let nobody =
        TimeSpan { targets: vec![target("a", 0, 1), target("b", 0, 2)], ..TimeSpan::default() };
    assert_eq!(shares(&nobody), [[600.0], [300.0], [300.0]]);
    // In a weighted pool each I/O draws its target; a thread that none names has no share.
    let named = vec![ThreadTarget { thread: 0, weight: 0 }, ThreadTarget { thread: 2, weight: 0 }];
    let weighted = TimeSpan {
        thread_count: 3,
        request_count: 8,
        targets: vec![Target { thread_targets: named, ..target("a", 1, 1) }],
        ..TimeSpan::default()
    };
    assert_eq!(shares(&weighted), [vec![600.0], vec![], vec![600.0]]);
}

#[test]
fn a_stream_without_a_share_has_no_arrivals() {
    for arrival in [Arrival::Uniform, Arrival::Poisson, Arrival::Burst { ios: 3, millis: 0 }] {
        let none = Stream { part: 0, ..ONLY };
        assert_eq!(first(arrival, 1000, none, 0, 2), [u64::MAX; 2]);
    }
}

#[test]
fn shares_by_weight_are_kept_over_time() {
    let stream = |number, part| Stream { number, of: 2, part, whole: 4 };
    let until = |stream, arrival| {
        let times = first(arrival, 1000, stream, 3, 12_000);
        times.iter().filter(|time| **time < 10_000_000_000).count()
    };
    for (arrival, within) in
        [(Arrival::Uniform, 1), (Arrival::Burst { ios: 8, millis: 2 }, 8), (Arrival::Poisson, 400)]
    {
        let counts = [until(stream(0, 1), arrival), until(stream(1, 3), arrival)];
        assert!(counts[0].abs_diff(2500) <= within, "{arrival}: {counts:?}");
        assert!(counts[1].abs_diff(7500) <= within, "{arrival}: {counts:?}");
    }
}
