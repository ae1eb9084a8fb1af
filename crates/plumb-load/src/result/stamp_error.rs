//! The error bar of latencies: how late a completion may have been seen.

use plumb_units::Nanos;

use super::mark::Mark;
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
    /// Of I/Os that were waited for one by one and were over within their own calls, without a sleep: what they took, for when in
    /// its call an I/O was over no program sees.
    pub in_call: Histogram,
    /// What those took that were waited for one by one and ended a sleep: they were seen late by a wake-up, and by no more than that.
    pub slept: Histogram,
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
    /// How many wake-ups these are of.
    pub count: u64,
}

impl WakeUp {
    /// (method, 5.4) The usual wake-up with its mark.
    fn usual_in_words(self) -> String {
        let mark = Mark::of(0.5, self.count);
        let time = mark.bracketed(format!("{:.1} µs", self.median.0 as f64 / 1000.0));
        format!("{time} (p50 of {} timers, {})", self.count, mark.keyword())
    }

    /// The same of what one in 500 exceeds, in that unit of so many nanoseconds.
    fn high_in_words(self, unit: &str, ns: f64, decimals: usize) -> String {
        let mark = Mark::of(0.998, self.count);
        let time = mark.bracketed(format!("{:.decimals$} {unit}", self.high.0 as f64 / ns));
        format!("{time} (p99.8, {})", mark.keyword())
    }

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

    /// What a wake-up is allowed; 0 where it could not be measured.
    fn allowed(&self) -> u64 {
        self.wake_up.map_or(0, |time| time.allowed().0)
    }

    /// The bounds of all completions, with so long a wake-up in those that have one on top.
    fn bounds(&self, wake_up: u64) -> Histogram {
        let mut all = self.gaps.clone();
        all.merge(&self.in_call);
        let middle = |low: u64, values: u64| low.saturating_add(values / 2);
        for (low, values, count) in self.woken.buckets() {
            all.record_many(middle(low, values).saturating_add(wake_up), count);
        }
        for (low, values, count) in self.slept.buckets() {
            all.record_many(middle(low, values).min(wake_up), count);
        }
        all
    }

    /// A percentile of the bounds with the usual wake-up, `percent` of 100; `None` when nothing completed.
    #[must_use]
    pub fn percentile(&self, percent: u64) -> Option<Nanos> {
        at(&self.bounds(self.usual()), percent)
    }

    /// The same with all that is allowed for a wake-up: these are the bounds that `--truth` checks.
    #[must_use]
    pub fn allowed_percentile(&self, percent: u64) -> Option<Nanos> {
        at(&self.bounds(self.allowed()), percent)
    }

    /// The largest of the bounds with the usual wake-up.
    #[must_use]
    pub fn max(&self) -> Option<Nanos> {
        let woken = self.woken.max().map(|bound| bound.saturating_add(self.usual()));
        let slept = self.slept.max().map(|time| time.min(self.usual()));
        self.gaps.max().max(self.in_call.max()).max(woken).max(slept).map(Nanos)
    }

    /// Which share of the completions has a wake-up on top; `None` when nothing completed.
    #[must_use]
    pub fn woken_share(&self) -> Option<f64> {
        let woken = self.woken.count() + self.slept.count();
        let all = self.completions();
        (all > 0).then(|| woken as f64 / all as f64)
    }

    fn completions(&self) -> u64 {
        [&self.gaps, &self.in_call, &self.woken, &self.slept]
            .map(Histogram::count)
            .into_iter()
            .sum()
    }

    /// Whether most I/Os were over within their own calls.
    fn mostly_in_call(&self) -> bool {
        let others = self.gaps.count() + self.woken.count() + self.slept.count();
        self.in_call.count() > others
    }

    /// Whether the wake-up is the greater part of the median bound.
    fn is_of_wake_up(&self) -> bool {
        self.mostly_woken() && self.percentile(50).is_some_and(|median| self.usual() > median.0 / 2)
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

fn at(bounds: &Histogram, percent: u64) -> Option<Nanos> {
    let rank = (bounds.count() * percent).div_ceil(100).max(1);
    bounds.value_at_rank(rank).map(Nanos)
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
    let wake_up = error.wake_up?;
    // What is over sooner than a timer's wake-up has no such one in it.
    let share =
        of_median(wake_up.median, span).filter(|share| error.mostly_woken() && *share <= 1.0)?;
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
            "Most completions ended a sleep of their thread; a wake-up took {}, {:.1} % of the median latency{remedy}.",
            wake_up.usual_in_words(),
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
            "Wake-ups around the run took up to {:.2} ms, one in 500 more than {}: the machine is busy, or its processors \
             sleep deeply. {:.0} % of the completions ended a sleep, so the highest percentiles may have such a wait in \
             them: less other load beside the run, or less sleep of processors (a C-state limit)",
            wake_up.max.0 as f64 / 1e6,
            wake_up.high_in_words("ms", 1e6, 2),
            woken * 100.0
        ),
    })
}

/// What `--truth` found of the p50 that is told, where it found enough: the share of the I/Os within their bound with the
/// usual wake-up, and whether half of all were seen later than the p50 says.
fn usual_by_truth(span: &SpanResult, told: Nanos) -> Option<(f64, bool)> {
    let truth = span.truth.as_ref().filter(|truth| truth.has_enough())?;
    let late = at(&truth.reap_lag, 50)?;
    Some((truth.within_usual_share()?, late > told + Truth::SLACK))
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

/// What looks more often, where the error bar is felt.
fn remedy(span: &SpanResult, error: &StampError) -> &'static str {
    match (span.submission.as_str(), span.batch) {
        _ if error.mostly_in_call() => {
            ": most were over within their own call, without a sleep, and when in it no program sees. The latency is that of the \
             call, which is what whoever calls waits for; no --batch, -o or -t changes that. Past the page cache (-Su) a call that waits \
             for the device sleeps, and when a sleep ends is known"
        }
        _ if error.is_of_wake_up() => {
            ": more than 10 % of that, and most of it is the wake-up: less other load, a limit on the sleep of processors \
             (C-states), or --poll where the device has it make that shorter"
        }
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
}

/// The error bar as a sentence; none without latencies.
pub(crate) fn evidence(span: &SpanResult) -> Option<PlausibilityItem> {
    let error = span.stamp_error.as_ref()?;
    let share = error.share_of_median(span)?;
    let doubt = doubt(span, error);
    // Without the kernel's word on waits nobody knows either.
    let woken = error.woken_share()?;
    let is_sure =
        doubt.is_none() && error.wait.is_some() && (woken <= 0.0 || error.wake_up.is_some());
    let at_most = if is_sure { "at most " } else { "" };
    let (median, high) = (error.percentile(50)?, error.allowed_percentile(99)?);
    let us = |time: Nanos| format!("{:.1} µs", time.0 as f64 / 1000.0);
    let (usually, allowing, wake_up) = match error.wake_up.filter(|_| woken > 0.0) {
        Some(time) => (
            " with the usual wake-up",
            " with twice what one in 500 exceeds",
            format!(
                "{:.0} % ended a sleep and have in it the wake-up time of {}, {}",
                woken * 100.0,
                time.usual_in_words(),
                time.high_in_words("µs", 1e3, 1)
            ),
        ),
        None if woken > 0.0 => (
            "",
            "",
            format!(
                "{:.0} % ended a sleep, and what a wake-up took could not be measured",
                woken * 100.0
            ),
        ),
        None => ("", "", "none ended a sleep".to_owned()),
    };
    let found = usual_by_truth(span, median);
    let is_short = found.is_some_and(|(_, is_short)| is_short);
    let found = found.map_or_else(String::new, |(within, is_short)| {
        let short = if is_short { ", and half of all later than the p50 says" } else { "" };
        format!(
            "; --truth found {:.0} % within theirs with the usual wake-up{short}",
            within * 100.0
        )
    });
    let is_felt = share > FELT;
    let remedy = if is_felt { remedy(span, error) } else { "" };
    // A thread of the pool wakes up, and then wakes the load thread.
    let pool = match span.queues.iter().any(|queue| queue.engine.contains("threads")) {
        true => "; what the threads of the pool take to wake up is not in it",
        false => "",
    };
    let marked = |p: f64, time: Nanos| {
        let mark = Mark::of(p, error.completions());
        (mark.bracketed(us(time)), mark.keyword())
    };
    let ((median, median_mark), (high, high_mark)) = (marked(0.5, median), marked(0.99, high));
    let percent = share * 100.0;
    let is_open =
        span.threads.iter().any(|thread| thread.targets.iter().any(|it| it.open.is_some()));
    let measure = if is_open { "service time" } else { "latency" };
    Some(PlausibilityItem {
        key: "stamp_error_share",
        target: None,
        value: Some(share),
        // Of a call that does not sleep nothing else could be told.
        verdict: match is_felt && !error.mostly_in_call() || is_short || doubt.is_some() {
            true => Plausibility::Suspicious,
            false if error.mostly_woken() && error.wake_up.is_none() => Plausibility::Unknown,
            false => Plausibility::Ok,
        },
        sentence: format!(
            "Completions were seen {median} (p50{usually}, {median_mark}), {at_most}{high} (p99{allowing}, {high_mark}) after they were posted; \
             {wake_up}{pool}{found}{doubt}. The p50 is {percent:.1} % of the median {measure}{remedy}. What the kernel takes \
             from the device's word to the posting no program sees; --truth does.",
            doubt = doubt.unwrap_or_default()
        ),
    })
}

#[cfg(test)]
mod tests;
