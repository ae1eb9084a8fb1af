//! The error bar of latencies: how late a completion may have been seen.

use plumb_units::Nanos;

use super::model::{Plausibility, PlausibilityItem, SpanResult};
use super::open_loop::OpenFigures;
use crate::tally::{Histogram, ProcessorWait};
use crate::witness::Truth;

/// A bound beyond this share of the median latency is felt in the figures.
const FELT: f64 = 0.1;

/// A smaller share of I/Os within their bound, as `--truth` finds it, says that the bounds do not hold.
pub(crate) const HELD: f64 = 0.99;

/// Of so long an allowance for a wake-up is told whatever the latencies are: no idle machine needs it.
const LONG: Nanos = Nanos(1_000_000);

/// By how much latencies may be too long, because a completion counts when it is seen.
#[derive(Debug, Clone, Default)]
pub struct StampError {
    /// Upper bound per completion in nanoseconds: the gap between the look that saw it and the look
    /// before.
    pub gaps: Histogram,
    /// The same of completions that ended a sleep or came while the thread woke up; a wake-up comes on top. 0 where the look behind
    /// the sleep saw them.
    pub woken: Histogram,
    /// What a wake-up takes; `None` where it could not be measured.
    pub wake_up: Option<WakeUp>,
    /// What the load threads waited for a processor from the start signal to their end; `None` where the
    /// kernel does not tell.
    pub wait: Option<ProcessorWait>,
}

/// From an interrupt to the thread that it wakes, measured before the start and behind the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WakeUp {
    /// The usual.
    pub median: Nanos,
    /// One in 500 took longer.
    pub high: Nanos,
    /// The longest seen.
    pub max: Nanos,
}

impl WakeUp {
    /// What the error bar allows a completion that ended a sleep: twice what one in 500 exceeds. Those of a run
    /// are seldom the ones of the moment before and behind it, and while a sleep ends late more I/Os complete.
    #[must_use]
    pub fn allowed(self) -> Nanos {
        Nanos(self.high.0.saturating_mul(2))
    }
}

impl StampError {
    /// The usual wake-up; 0 where it could not be measured.
    fn usual(&self) -> u64 {
        self.wake_up.map_or(0, |time| time.median.0)
    }

    /// The bounds of all completions, with the usual wake-up in those that have one on top.
    #[must_use]
    pub fn bounds(&self) -> Histogram {
        let usual = self.usual();
        let mut all = self.gaps.clone();
        for (low, values, count) in self.woken.buckets() {
            all.record_many((low + values / 2).saturating_add(usual), count);
        }
        all
    }

    /// A percentile of these bounds, `percent` of 100; `None` when nothing completed.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<Nanos> {
        let bounds = self.bounds();
        let rank = (bounds.count() * percent).div_ceil(100).max(1);
        bounds.value_at_rank(rank).map(Nanos)
    }

    /// The largest of these bounds.
    #[must_use]
    pub fn max(&self) -> Option<Nanos> {
        let woken = self.woken.max().map(|bound| bound.saturating_add(self.usual()));
        self.gaps.max().max(woken).map(Nanos)
    }

    /// Which share of the completions has a wake-up on top; `None` when nothing completed.
    #[must_use]
    pub fn woken_share(&self) -> Option<f64> {
        let all = self.gaps.count() + self.woken.count();
        (all > 0).then(|| self.woken.count() as f64 / all as f64)
    }

    /// Whether most completions have one.
    fn mostly_woken(&self) -> bool {
        self.woken_share().is_some_and(|share| share > 0.5)
    }

    /// The median bound as a share of the median latency.
    #[must_use]
    pub fn share_of_median(&self, span: &SpanResult) -> Option<f64> {
        of_median(self.percentile(50)?, span)
    }

    /// What a thread waited for a processor before a turn, on average and beyond the usual wake-up (which
    /// has such a wait in it), as a share of the median latency: completions were seen so much later than
    /// the bounds say.
    #[must_use]
    pub fn wait_share_of_median(&self, span: &SpanResult) -> Option<f64> {
        let usual = self.wake_up.map_or(Nanos::ZERO, |time| time.median);
        of_median(self.wait?.mean()?.since(usual), span)
    }
}

/// In an open loop of the service times, which are what is stamped: response times grow with the backlog.
fn of_median(time: Nanos, span: &SpanResult) -> Option<f64> {
    let open = OpenFigures::of(span.threads.iter().flat_map(|thread| &thread.targets));
    let latency = match open {
        Some(open) => open.service(),
        None => span.figures().total().latency?,
    };
    let median = latency.percentile_us(0.5)? * 1000.0;
    (median > 0.0).then(|| time.0 as f64 / median)
}

/// What waiting for processors adds to the error bar, as a sentence; none without latencies and where the
/// kernel does not tell.
pub(crate) fn waiting(span: &SpanResult) -> Option<PlausibilityItem> {
    let error = span.stamp_error.as_ref()?;
    let share = error.wait_share_of_median(span)?;
    let (wait, is_felt) = (error.wait?, share > FELT);
    let remedy = if is_felt {
        ": beyond the usual wake-up this is more than 10 % of the median latency, and no bound has it. \
         Fewer threads than processors, threads bound to processors of their own (-a), or less other \
         load beside the run"
    } else {
        ""
    };
    Some(PlausibilityItem {
        key: "processor_wait_share",
        target: None,
        value: Some(share),
        verdict: if is_felt { Plausibility::Suspicious } else { Plausibility::Ok },
        sentence: format!(
            "Load threads waited {:.1} µs for a processor before each of {} turns on average{remedy}.",
            wait.mean()?.0 as f64 / 1000.0,
            wait.turns
        ),
    })
}

/// What waking up adds to latencies where most completions ended a sleep, as with few outstanding I/Os, as a sentence; none
/// elsewhere, without latencies, and where a wake-up could not be measured.
pub(crate) fn sleeping(span: &SpanResult) -> Option<PlausibilityItem> {
    let error = span.stamp_error.as_ref()?;
    let wake_up = error.wake_up?.median;
    let share = of_median(wake_up, span).filter(|_| error.mostly_woken())?;
    let is_felt = share > FELT;
    let remedy = if is_felt {
        ": more than 10 % of it is the wake-up. It is what a program feels that waits for its I/O, and not the device's: \
         --poll where the device can, more outstanding I/Os (-o), or less sleep of processors (a C-state limit)"
    } else {
        ""
    };
    Some(PlausibilityItem {
        key: "wake_up_share",
        target: None,
        value: Some(share),
        verdict: if is_felt { Plausibility::Suspicious } else { Plausibility::Ok },
        sentence: format!(
            "Most completions ended a sleep of their thread; a wake-up took {:.1} µs (p50), {:.1} % of the median latency{remedy}.",
            wake_up.0 as f64 / 1000.0,
            share * 100.0
        ),
    })
}

/// That what is allowed for a wake-up is out of proportion, as a sentence; none elsewhere, and where hardly a
/// completion ended a sleep.
pub(crate) fn allowance(span: &SpanResult) -> Option<PlausibilityItem> {
    let error = span.stamp_error.as_ref()?;
    let wake_up = error.wake_up?;
    let (allowed, woken) = (wake_up.allowed(), error.woken_share()?);
    let share = of_median(allowed, span)?;
    if woken < 0.01 || (allowed < LONG && share <= 1.0) {
        return None;
    }
    Some(PlausibilityItem {
        key: "wake_up_allowed_share",
        target: None,
        value: Some(share),
        verdict: Plausibility::Suspicious,
        sentence: format!(
            "Wake-ups around the run took up to {:.2} ms, one in 500 more than {:.2} ms: the machine is busy, or its processors \
             sleep deeply. {:.0} % of the completions ended a sleep, so the highest percentiles may have such a wait in \
             them: less other load beside the run, or less sleep of processors (a C-state limit)",
            wake_up.max.0 as f64 / 1e6,
            wake_up.high.0 as f64 / 1e6,
            woken * 100.0
        ),
    })
}

/// Why the bounds of this span are not sure, where they are not: they hold for a thread that has the processor.
fn doubt(span: &SpanResult, error: &StampError) -> Option<&'static str> {
    let held = span.truth.as_ref().and_then(Truth::within_bound_share);
    if error.wait_share_of_median(span).is_some_and(|share| share > FELT) {
        Some(
            "; threads waited for a processor, as told below, and by how much longer completions were unseen no bound says",
        )
    } else if held.is_some_and(|share| share < HELD) {
        Some("; --truth found it broken more often than for one I/O in 100, as told below")
    } else {
        None
    }
}

/// The error bar as a sentence; none without latencies.
pub(crate) fn evidence(span: &SpanResult) -> Option<PlausibilityItem> {
    let error = span.stamp_error.as_ref()?;
    let share = error.share_of_median(span)?;
    let doubt = doubt(span, error);
    // Without the kernel's word on waits nobody knows either.
    let at_most = if doubt.is_none() && error.wait.is_some() { "at most " } else { "" };
    let (median, high) = (error.percentile(50)?, error.percentile(99)?);
    let us = |time: Nanos| format!("{:.1} µs", time.0 as f64 / 1000.0);
    let woken = error.woken_share()? * 100.0;
    let wake_up = match error.wake_up {
        Some(time) => format!(
            "; {woken:.0} % ended a sleep and have in it the wake-up time of {} (p50), {} (p99.8), for which twice the latter is allowed",
            us(time.median),
            us(time.high)
        ),
        None => {
            format!("; {woken:.0} % ended a sleep, and what a wake-up took could not be measured")
        }
    };
    let is_felt = share > FELT;
    let remedy = if is_felt {
        match (span.submission.as_str(), span.batch) {
            _ if error.mostly_woken() => ": more than 10 % of that, and most of it is the wake-up",
            ("latency", 2..) => {
                ": more than 10 % of that. A smaller --batch, fewer outstanding I/Os \
                 (-o), a larger -oc where one is given, or more threads look more often"
            }
            ("ring", _) => {
                ": more than 10 % of that. Fewer outstanding I/Os (-o), more threads, or \
                 no -u look more often"
            }
            _ => {
                ": more than 10 % of that. Fewer outstanding I/Os (-o) or more threads \
                 look more often"
            }
        }
    } else {
        ""
    };
    // A thread of the pool wakes up, and then wakes the load thread.
    let pool = match span.queues.iter().any(|queue| queue.engine.contains("threads")) {
        true => "; what the threads of the pool take to wake up is not in it",
        false => "",
    };
    let (median, high, percent) = (us(median), us(high), share * 100.0);
    let is_open =
        span.threads.iter().any(|thread| thread.targets.iter().any(|it| it.open.is_some()));
    let measure = if is_open { "service time" } else { "latency" };
    Some(PlausibilityItem {
        key: "stamp_error_share",
        target: None,
        value: Some(share),
        verdict: match is_felt || doubt.is_some() {
            true => Plausibility::Suspicious,
            false if error.mostly_woken() && error.wake_up.is_none() => Plausibility::Unknown,
            false => Plausibility::Ok,
        },
        sentence: format!(
            "Completions were seen {at_most}{median} (p50), {high} (p99) after they were posted, {percent:.1} % of \
             the median {measure}{wake_up}{pool}{doubt}{remedy}. What the kernel takes from the device's word to the \
             posting no program sees; --truth does.",
            doubt = doubt.unwrap_or_default()
        ),
    })
}

#[cfg(test)]
mod tests {
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
                wake_up: Some(WakeUp {
                    median: Nanos(21_000),
                    high: Nanos(88_000),
                    max: Nanos(99_000),
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
            let told = "wake-up time of 21.0 µs (p50), 88.0 µs (p99.8), for which twice the latter is allowed";
            assert!(item.sentence.contains(told), "{}", item.sentence);
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
        let wake_up = WakeUp { median: Nanos(21_000), high: Nanos(88_000), max: Nanos(9_000_000) };
        assert_eq!(wake_up.allowed(), Nanos(176_000));
        assert_eq!(WakeUp { high: Nanos::NEVER, ..wake_up }.allowed(), Nanos::NEVER);
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
            error.wake_up =
                Some(WakeUp { median: Nanos(21_000), high: Nanos(high), max: Nanos(18_000_000) });
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
            assert!(item.sentence.contains("21.0 µs (p50)"), "{}", item.sentence);
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
        for (submission, batch, says) in [
            ("latency", 8, true),
            ("latency", 1, false),
            ("ring", 8, false),
            ("synchronous", 1, false),
        ] {
            let felt =
                SpanResult { submission: submission.into(), batch, ..span(1000, &[(900, 1)]) };
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
            error.wait =
                Some(ProcessorWait { waited: Nanos(mean * 7), turns: 7, asleep: Nanos(0) });
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
            let mut span = span(100_000, &[(1000, 1)]);
            change(&mut span);
            let item = evidence(&span).expect("latencies");
            let is_sure = item.sentence.starts_with("Completions were seen at most 1.0 µs");
            assert!(
                is_sure || item.sentence.starts_with("Completions were seen 1.0 µs"),
                "{item:?}"
            );
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
        let untold =
            |span: &mut SpanResult| span.stamp_error.as_mut().expect("made so").wait = None;
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
}
