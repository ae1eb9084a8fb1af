//! Error bars of made-up results.

use super::*;
use crate::result::model::{DirectionResult, TargetResult, ThreadResult};
use crate::tally::{LatencySet, OpenTally};

fn span(latency: u64, bounds: &[(u64, u64)]) -> SpanResult {
    let mut latencies = Histogram::new();
    latencies.record_many(latency, 100);
    let read = DirectionResult {
        io_count: 100,
        latency: Some(LatencySet::Binned(latencies)),
        ..DirectionResult::default()
    };
    let target = TargetResult { read, ..TargetResult::default() };
    // 0: it ended a sleep.
    let (mut gaps, mut woken) = (Histogram::new(), Histogram::new());
    for (bound, count) in bounds {
        let into = if *bound == 0 { &mut woken } else { &mut gaps };
        into.record_many(*bound, *count);
    }
    SpanResult {
        submission: "latency".to_owned(),
        batch: 8,
        threads: vec![ThreadResult { targets: vec![target], ..ThreadResult::default() }],
        stamp_error: Some(StampError {
            gaps,
            woken,
            in_call: Histogram::new(),
            slept: Histogram::new(),
            wake_up: Some(WakeUp {
                median: Nanos(21_000),
                high: Nanos(88_000),
                max: Nanos(99_000),
                count: 1024,
            }),
            wait: Some(ProcessorWait { waited: Nanos(50_000), turns: 10, asleep: Nanos(0) }),
        }),
        ..SpanResult::default()
    }
}

#[test]
fn a_tenth_of_the_median_latency_is_the_limit() {
    for (bounds, verdict) in [
        ([(1, 60), (90_000, 40)], Plausibility::Ok),
        ([(9_800, 60), (90_000, 40)], Plausibility::Ok),
        ([(11_000, 60), (90_000, 40)], Plausibility::Suspicious),
        // By the wake-up, of which the smaller part has 21 µs.
        ([(9_000, 70), (0, 30)], Plausibility::Ok),
        ([(9_000, 45), (11_000, 15)], Plausibility::Ok),
    ] {
        let item = evidence(&span(100_000, &bounds)).expect("latencies");
        assert_eq!(item.verdict, verdict, "{}", item.sentence);
        assert_eq!(item.sentence.contains("--batch"), verdict != Plausibility::Ok);
        let is_woken = bounds.iter().any(|(bound, _)| *bound == 0);
        for told in [
            // (method, 5.4) No percentile without its mark.
            "wake-up time of 21.0 µs (p50 of 1024 timers, good), [88.0 µs] (p99.8, none)",
            "(p50 with the usual wake-up, fair)",
            "(p99 with twice what one in 500 exceeds, none)",
        ] {
            assert_eq!(item.sentence.contains(told), is_woken, "{}", item.sentence);
        }
    }
}

/// The bar tells of all completions, and those that ended a sleep are late by the wake-up.
#[test]
fn the_bounds_of_completions_that_ended_a_sleep_have_the_wake_up_in_them() {
    let told = |latency, bounds: &[(u64, u64)]| {
        let span = span(latency, bounds);
        let error = span.stamp_error.clone().expect("made so");
        let item = evidence(&span).expect("latencies");
        (error.percentile(50), error.percentile(99), error.max(), item)
    };
    let near = |found: Option<Nanos>, want: u64| {
        found.is_some_and(|found| found.0.abs_diff(want) * 128 <= want)
    };
    let (median, high, max, item) = told(300_000, &[(0, 60), (5000, 40)]);
    assert!(near(median, 21_000) && near(high, 21_000), "{median:?} {high:?}");
    assert_eq!((max, item.verdict), (Some(Nanos(21_000)), Plausibility::Ok));
    assert!(item.sentence.contains("; 60 % ended a sleep"), "{}", item.sentence);
    let (median, high, max, _) = told(300_000, &[(0, 40), (5000, 58), (90_000, 2)]);
    assert!(near(median, 5000) && near(high, 90_000), "{median:?} {high:?}");
    assert_eq!(max, Some(Nanos(90_000)));
    let (.., item) = told(200_000, &[(0, 60), (5000, 40)]);
    assert_eq!(item.verdict, Plausibility::Suspicious, "{}", item.sentence);
    assert!(item.sentence.contains("most of it is the wake-up"), "{}", item.sentence);
    assert!(!item.sentence.contains("--batch"), "{}", item.sentence);
    let mut unmeasured = span(200_000, &[(0, 60), (5000, 40)]);
    unmeasured.stamp_error.as_mut().expect("made so").wake_up = None;
    let item = evidence(&unmeasured).expect("latencies");
    assert_eq!(item.verdict, Plausibility::Unknown, "{}", item.sentence);
}

#[test]
fn twice_what_one_wake_up_in_500_exceeds_is_allowed() {
    let wake_up =
        WakeUp { median: Nanos(21_000), high: Nanos(88_000), max: Nanos(9_000_000), count: 1024 };
    assert_eq!(wake_up.allowed(), Nanos(176_000));
    assert_eq!(WakeUp { high: Nanos::NEVER, ..wake_up }.allowed(), Nanos::NEVER);
}

/// What is told of 99 % of the I/Os is what holds for them, not what the usual wake-up makes of it.
#[test]
fn the_p99_that_is_told_has_all_that_is_allowed_for_a_wake_up() {
    let span = span(300_000, &[(0, 60), (5000, 40)]);
    let item = evidence(&span).expect("latencies");
    let told = "seen 21.0 µs (p50 with the usual wake-up, fair), at most [175.6 µs] (p99 with";
    assert!(item.sentence.contains(told), "{}", item.sentence);
}

#[test]
fn a_usual_bound_that_the_truth_contradicts_is_not_ok() {
    for (lag, within_usual, matched, verdict) in [
        (20_000, 95, 100, Plausibility::Ok),
        (25_000, 33, 100, Plausibility::Suspicious),
        (25_000, 33, 40, Plausibility::Ok),
    ] {
        let mut span = span(300_000, &[(0, 60), (5000, 40)]);
        let mut truth =
            Truth { kept: 100, matched, within_bound: matched, within_usual, ..Truth::default() };
        truth.reap_lag.record_many(lag, matched);
        span.truth = Some(truth);
        let item = evidence(&span).expect("latencies");
        assert_eq!(item.verdict, verdict, "{}", item.sentence);
        let share = format!("--truth found {within_usual} % within theirs");
        assert_eq!(item.sentence.contains(&share), matched == 100, "{}", item.sentence);
    }
}

/// No wake-up of a timer makes an I/O late by more than it took, and what never slept has none.
#[test]
fn no_bound_is_longer_than_the_io_that_was_waited_for_by_itself() {
    for (in_call, slept, bound, remedy) in [
        (100, 0, 1400, "within their own call"),
        (0, 100, 1400, "most of it is the wake-up"),
        (60, 40, 1400, "within their own call"),
    ] {
        let mut span = span(1400, &[]);
        let error = span.stamp_error.as_mut().expect("made so");
        error.in_call.record_many(1400, in_call);
        error.slept.record_many(1400, slept);
        let (share, median) = (error.woken_share(), error.percentile(50));
        assert_eq!(share, Some(slept as f64 / 100.0));
        assert!(median.is_some_and(|median| median.0.abs_diff(bound) <= 11), "{median:?}");
        let high = error.allowed_percentile(99);
        assert!(high.is_some_and(|high| high.0.abs_diff(bound) <= 11), "{high:?}");
        let item = evidence(&span).expect("latencies");
        assert!(item.value.is_some_and(|share| share <= 1.01), "{}", item.sentence);
        assert!(item.sentence.contains(remedy), "{}", item.sentence);
        let warns = item.verdict == Plausibility::Suspicious;
        assert_eq!(warns, remedy.contains("wake-up"), "{}", item.sentence);
        assert_eq!(sleeping(&span), None);
    }
    let mut span = span(300_000, &[]);
    span.stamp_error.as_mut().expect("made so").slept.record_many(300_000, 100);
    let item = sleeping(&span).expect("most slept");
    assert_eq!(item.verdict, Plausibility::Ok, "{}", item.sentence);
}

/// Routines that are run between submissions are late by the gap, though most ended a sleep.
#[test]
fn the_wake_up_is_blamed_only_where_it_is_most_of_the_bound() {
    for (woken, blamed) in [(1, true), (19_000, true), (23_000, false), (60_000, false)] {
        let mut span = span(50_000, &[(5000, 40)]);
        span.stamp_error.as_mut().expect("made so").woken.record_many(woken, 60);
        span.submission = "routines".to_owned();
        let item = evidence(&span).expect("latencies");
        let said = item.sentence.contains("most of it is the wake-up");
        assert_eq!(said, blamed, "{woken}: {}", item.sentence);
        assert_eq!(item.sentence.contains("(-o)"), !blamed, "{woken}: {}", item.sentence);
    }
}

#[test]
fn an_allowance_out_of_proportion_is_said() {
    for (latency, woken, high, says) in [
        (300_000, 60, 88_000, false),
        (150_000, 60, 88_000, true),
        (150_000, 0, 88_000, false),
        (90_000_000, 60, 499_000, false),
        (90_000_000, 60, 500_000, true),
        (90_000_000, 1, 8_500_000, true),
    ] {
        let mut span = span(latency, &[(0, woken), (5000, 100 - woken)]);
        let error = span.stamp_error.as_mut().expect("made so");
        error.wake_up = Some(WakeUp {
            median: Nanos(21_000),
            high: Nanos(high),
            max: Nanos(18_000_000),
            count: 1024,
        });
        let item = allowance(&span);
        assert_eq!(item.is_some(), says, "{latency} {woken} {high}: {item:?}");
        let Some(item) = item else { continue };
        assert_eq!(item.verdict, Plausibility::Suspicious);
        assert!(item.sentence.contains("up to 18.00 ms"), "{}", item.sentence);
    }
}

#[test]
fn a_wake_up_that_most_completions_have_in_them_is_said() {
    for (latency, bounds, verdict) in [
        (300_000, [(0, 60), (5000, 40)], Some(Plausibility::Ok)),
        (209_000, [(0, 60), (5000, 40)], Some(Plausibility::Suspicious)),
        (209_000, [(0, 40), (5000, 60)], None),
    ] {
        let item = sleeping(&span(latency, &bounds));
        assert_eq!(item.as_ref().map(|item| item.verdict), verdict, "{item:?}");
        let Some(item) = item else { continue };
        assert!(item.sentence.contains("21.0 µs (p50 of 1024 timers, good)"), "{}", item.sentence);
        assert_eq!(item.sentence.contains("--poll"), verdict == Some(Plausibility::Suspicious));
    }
    let mut unmeasured = span(1000, &[(0, 1)]);
    unmeasured.stamp_error.as_mut().expect("made so").wake_up = None;
    assert_eq!(sleeping(&unmeasured), None);
}

/// In a backlog response times grow without end, and nothing would be felt beside them.
#[test]
fn an_open_loops_bounds_are_held_against_its_service_times() {
    let mut span = span(50_000_000, &[(9_000, 100)]);
    let mut open = OpenTally::new(1000.0, 10);
    open.record(false, Nanos(10_000), Nanos(49_990_000), Nanos(50_000_000));
    span.threads[0].targets[0].open = Some(open);
    let item = evidence(&span).expect("latencies");
    assert_eq!(item.verdict, Plausibility::Suspicious, "{}", item.sentence);
    assert!(item.sentence.contains("of the median service time"), "{}", item.sentence);
}

#[test]
fn the_remedy_is_one_that_the_loop_obeys() {
    for (submission, batch, says) in
        [("latency", 8, true), ("latency", 1, false), ("ring", 8, false), ("synchronous", 1, false)]
    {
        let felt = SpanResult { submission: submission.into(), batch, ..span(1000, &[(900, 1)]) };
        let item = evidence(&felt).expect("latencies");
        assert_eq!(item.sentence.contains("--batch"), says, "{submission}: {}", item.sentence);
        assert!(item.sentence.contains("(-o)"), "{}", item.sentence);
    }
}

#[test]
fn waits_for_a_processor_beyond_a_wake_up_are_felt_from_a_tenth_of_the_median() {
    for (mean, verdict) in [
        (0, Plausibility::Ok),
        (21_000, Plausibility::Ok),
        (30_500, Plausibility::Ok),
        (31_500, Plausibility::Suspicious),
    ] {
        let mut span = span(100_000, &[(10, 1)]);
        let error = span.stamp_error.as_mut().expect("made so");
        error.wait = Some(ProcessorWait { waited: Nanos(mean * 7), turns: 7, asleep: Nanos(0) });
        let item = waiting(&span).expect("latencies");
        assert_eq!(item.verdict, verdict, "{}", item.sentence);
        assert_eq!(item.sentence.contains("(-a)"), verdict != Plausibility::Ok);
        let said = format!("{:.1} µs for a processor", mean as f64 / 1000.0);
        assert!(item.sentence.contains(&said), "{}", item.sentence);
    }
}

/// A bound holds for a thread that has the processor: what it says is no surer than that.
#[test]
fn the_error_bar_is_no_better_than_the_thread_had_its_processor() {
    let told = |change: &dyn Fn(&mut SpanResult)| {
        let mut span = span(100_000, &[(1000, 2_000)]);
        change(&mut span);
        let item = evidence(&span).expect("latencies");
        let is_sure = item
            .sentence
            .starts_with("Completions were seen 1.0 µs (p50, good), at most 1.0 µs (p99, fair)");
        let told = "Completions were seen 1.0 µs (p50, good), 1.0 µs (p99, fair)";
        assert!(is_sure || item.sentence.starts_with(told), "{item:?}");
        (item.verdict, is_sure)
    };
    let waited = |mean: u64| {
        move |span: &mut SpanResult| {
            let wait = ProcessorWait { waited: Nanos(mean * 7), turns: 7, asleep: Nanos(0) };
            span.stamp_error.as_mut().expect("made so").wait = Some(wait);
        }
    };
    assert_eq!(told(&waited(30_500)), (Plausibility::Ok, true));
    assert_eq!(told(&waited(31_500)), (Plausibility::Suspicious, false));
    let untold = |span: &mut SpanResult| span.stamp_error.as_mut().expect("made so").wait = None;
    assert_eq!(told(&untold), (Plausibility::Ok, false));
    for (within_bound, want) in
        [(99, (Plausibility::Ok, true)), (98, (Plausibility::Suspicious, false))]
    {
        let truth = Truth { kept: 100, matched: 100, within_bound, ..Truth::default() };
        assert_eq!(told(&|span| span.truth = Some(truth.clone())), want, "{within_bound}");
    }
}

#[test]
fn nothing_is_said_where_nothing_was_stamped() {
    let none = SpanResult { stamp_error: None, ..span(1000, &[(1, 1)]) };
    assert_eq!(evidence(&none), None);
    assert_eq!(evidence(&span(1000, &[])), None);
    let mut untold = span(1000, &[(1, 1)]);
    untold.stamp_error.as_mut().expect("made so").wait = None;
    assert_eq!(waiting(&untold), None);
}
