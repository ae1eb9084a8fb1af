//! What an open loop found: response and service times, lag, and whether the rate was kept up.

use plumb_units::{Nanos, convert};

use super::figures::Figures;
use super::model::{Plausibility, PlausibilityItem, SpanResult, TargetResult};
use crate::tally::{LatencySet, OpenTally};

/// A lag that grows by less is no trend: so much does a thread's wake-up vary.
const WAKE_UP: Nanos = Nanos(100_000);

/// A backlog that grows by fewer I/Os, or by a smaller share of what was offered, is no trend: so much does what a
/// device has in its queue vary.
const BACKLOG: (f64, f64) = (16.0, 0.001);

/// Some threads and targets of an open loop together.
#[derive(Debug, Clone)]
pub struct OpenFigures {
    /// Service times, lag and counts.
    pub tally: OpenTally,
    /// I/Os that completed during the measurement.
    pub completed: u64,
    /// Response times: from the intended start.
    pub response: LatencySet,
    /// Whether the rate was kept up.
    pub verdict: OpenVerdict,
}

/// Whether a rate was kept up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OpenVerdict {
    /// At least 99 % of what was offered completed, and neither the lag nor the backlog grew.
    Sustained,
    /// The backlog grew: response times are lower bounds, for they grow with the duration.
    Saturated,
    /// Nothing was offered.
    NotMeasured,
}

impl OpenVerdict {
    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Sustained => "sustained",
            Self::Saturated => "saturated",
            Self::NotMeasured => "not_measured",
        }
    }
}

impl OpenFigures {
    /// The sum of `targets`; `None` when none of them was in an open loop.
    #[must_use]
    pub fn of<'a>(targets: impl IntoIterator<Item = &'a TargetResult> + Clone) -> Option<Self> {
        let mut tallies = targets.clone().into_iter().filter_map(|target| target.open.as_ref());
        let mut tally = tallies.next()?.clone();
        tallies.for_each(|other| tally.merge(other));
        let total = Figures::of(targets).total();
        Some(Self {
            verdict: verdict(&tally),
            completed: total.io_count,
            response: total.latency.unwrap_or_default(),
            tally,
        })
    }

    /// Service times as a set.
    #[must_use]
    pub fn service(&self) -> LatencySet {
        LatencySet::Binned(self.tally.service())
    }

    /// Lags as a set.
    #[must_use]
    pub fn lag(&self) -> LatencySet {
        LatencySet::Binned(self.tally.lag.clone())
    }
}

/// Whether I/Os started later and later.
fn lag_grows(tally: &OpenTally) -> bool {
    tally.lag_trend.rises(WAKE_UP)
}

/// Whether more and more I/Os waited, wherever they did: where there are requests for all of them it is in the
/// device's queue, which no lag shows. A backlog is the response time times the rate (Little's law).
fn backlog_grows(tally: &OpenTally) -> bool {
    let (ios, share) = BACKLOG;
    let least = ios.max(tally.offered as f64 * share) / tally.rate.max(1e-9);
    tally.response_trend.rises(Nanos(convert::floor_u64(least * 1e9)))
}

fn verdict(tally: &OpenTally) -> OpenVerdict {
    if tally.offered == 0 {
        return OpenVerdict::NotMeasured;
    }
    // What is in flight at the end of a short run has not completed; by Little's law it is this at least.
    let quickest = Nanos(tally.service().min().unwrap_or(0));
    // So has a burst that began just before the end.
    let in_flight = tally.rate * quickest.as_secs_f64() + tally.burst;
    let in_flight = convert::floor_u64(in_flight.ceil());
    let missing = tally.offered.saturating_sub(tally.served);
    let is_missing = missing > (tally.offered / 100).max(in_flight);
    if is_missing || lag_grows(tally) || backlog_grows(tally) {
        OpenVerdict::Saturated
    } else {
        OpenVerdict::Sustained
    }
}

/// What is said of a span's open loop; nothing in a closed one.
pub(crate) fn evidence(span: &SpanResult) -> Vec<PlausibilityItem> {
    let targets = span.threads.iter().flat_map(|thread| &thread.targets);
    let (Some(open), Some(figures)) = (span.open_loop, OpenFigures::of(targets)) else {
        return Vec::new();
    };
    let OpenTally { offered, served, waited, .. } = figures.tally;
    let achieved = figures.completed as f64 / span.elapsed.as_secs_f64().max(1e-9);
    let rate = format!("open loop: {} I/Os per second ({})", open.rate, open.arrival);
    let counts = format!(
        "{offered} were meant to start during the measurement, {served} of these completed in it"
    );
    let (verdict, sentence) = match figures.verdict {
        OpenVerdict::Sustained => (Plausibility::Ok, format!("{rate} were sustained: {counts}")),
        OpenVerdict::Saturated => (
            Plausibility::Suspicious,
            format!(
                "{rate} were not sustained: {counts}; {achieved:.1} per second completed in all{}. Response \
                 times are lower bounds: they grow with the duration. Ask for a lower rate",
                if lag_grows(&figures.tally) {
                    ", and I/Os started later and later"
                } else if backlog_grows(&figures.tally) {
                    ", and more and more of them were waiting"
                } else {
                    ""
                }
            ),
        ),
        OpenVerdict::NotMeasured => (
            Plausibility::Unknown,
            format!("{rate}: none was meant to start during the measurement. Measure for longer"),
        ),
    };
    let item = |key, verdict, value, sentence| PlausibilityItem {
        key,
        target: None,
        value: Some(value),
        verdict,
        sentence,
    };
    let mut items = vec![item("open_loop", verdict, achieved, sentence)];
    if waited > 0 {
        let sentence = format!(
            "open loop: {waited} of {offered} I/Os waited for a request, all of which were in flight: \
             the loop was partly closed. Allow more outstanding I/Os (-o; RequestCount in a profile)"
        );
        items.push(item("open_loop_waited", Plausibility::Suspicious, waited as f64, sentence));
    }
    items
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrivals::{Arrival, OpenLoop};
    use crate::result::model::{DirectionResult, ThreadResult};

    fn span(offered: u64, completed: u64, waited: u64) -> SpanResult {
        let mut open = OpenTally { offered, waited, ..OpenTally::new(1000.0, 10) };
        for place in 0..completed {
            let at = Nanos(1_020_000 + place * 9_900_000_000 / completed.max(1));
            open.record(false, Nanos(1_000_000), Nanos(20_000), at);
        }
        let read = DirectionResult { io_count: completed, ..DirectionResult::default() };
        let target = TargetResult { read, open: Some(open), ..TargetResult::default() };
        SpanResult {
            elapsed: Nanos::from_secs(10),
            open_loop: Some(OpenLoop { rate: 1000, arrival: Arrival::Uniform }),
            threads: vec![ThreadResult { targets: vec![target], ..ThreadResult::default() }],
            ..SpanResult::default()
        }
    }

    #[test]
    fn the_last_burst_may_be_missing_and_no_more() {
        for (burst, completed, want) in [
            (0.0, 9_800, OpenVerdict::Saturated),
            (250.0, 9_750, OpenVerdict::Sustained),
            (250.0, 9_740, OpenVerdict::Saturated),
        ] {
            let mut span = span(10_000, completed, 0);
            let target = &mut span.threads[0].targets[0];
            target.open.as_mut().expect("an open loop").burst = burst;
            let figures = OpenFigures::of(&span.threads[0].targets).expect("an open loop");
            assert_eq!(figures.verdict, want, "{completed} with bursts of {burst}");
        }
    }

    #[test]
    fn a_backlog_in_the_device_is_one() {
        // 1006 a second of a device that serves 1003, with requests for all of them: no lag.
        let tally = |response: &dyn Fn(u64) -> u64, rate: u64| {
            let mut open = OpenTally::new(rate as f64, 30);
            open.offered = rate * 30;
            for nth in 0..open.offered {
                let at = Nanos(nth * 1_000_000_000 / rate);
                open.record(false, Nanos(response(nth)), Nanos(20_000), at + Nanos(response(nth)));
            }
            open.served = open.offered;
            verdict(&open)
        };
        let waiting = |nth: u64| 900_000 + nth * 3 / 1006 * 1_000_000;
        assert_eq!(tally(&waiting, 1006), OpenVerdict::Saturated);
        // A device that gets slower, from 0.1 to 0.4 ms, has no backlog.
        let slower = |nth: u64| 100_000 + nth * 10;
        assert_eq!(tally(&slower, 1000), OpenVerdict::Sustained);
        // Nor has one whose queue comes and goes.
        let busy = |nth: u64| 900_000 + nth * 7919 % 1009 * 20_000;
        assert_eq!(tally(&busy, 1000), OpenVerdict::Sustained);
    }

    #[test]
    fn a_hundredth_may_be_missing() {
        for (offered, completed, want) in [
            (10_000, 10_000, OpenVerdict::Sustained),
            (10_000, 9_900, OpenVerdict::Sustained),
            (10_000, 9_899, OpenVerdict::Saturated),
            (10, 9, OpenVerdict::Sustained),
            (10, 8, OpenVerdict::Saturated),
            (10, 0, OpenVerdict::Saturated),
            (0, 0, OpenVerdict::NotMeasured),
        ] {
            let span = span(offered, completed, 0);
            let figures = OpenFigures::of(&span.threads[0].targets).expect("an open loop");
            assert_eq!(figures.verdict, want, "{completed} of {offered}");
        }
    }

    #[test]
    fn what_is_wrong_is_said() {
        let keys = |span: &SpanResult| -> Vec<_> {
            evidence(span).into_iter().map(|item| (item.key, item.verdict)).collect()
        };
        assert_eq!(keys(&span(10_000, 10_000, 0)), [("open_loop", Plausibility::Ok)]);
        assert_eq!(
            keys(&span(10_000, 5_000, 3)),
            [
                ("open_loop", Plausibility::Suspicious),
                ("open_loop_waited", Plausibility::Suspicious)
            ]
        );
        assert!(keys(&SpanResult::default()).is_empty());
    }
}
