//! What came of the comparison, in sentences.

use plumb_units::Nanos;

use super::Truth;
use crate::result::mark::Mark;
use crate::result::model::{Plausibility, PlausibilityItem};
use crate::result::stamp_error::HELD;
use crate::tally::Histogram;

/// A reported median above this many times the device's has too much of the way there and back in it to be called the
/// device's: the goal for 32 outstanding.
const RATIO_MAX: f64 = 1.3;

/// The comparison in sentences.
pub(crate) fn evidence(truth: &Truth) -> Vec<PlausibilityItem> {
    let at = |of: &Histogram, percent: u64| {
        let rank = (of.count() * percent).div_ceil(100).max(1);
        let value = of.value_at_rank(rank).map(|nanos| format!("{:.1} µs", nanos as f64 / 1e3));
        let mark = Mark::of(percent as f64 / 100.0, of.count());
        value.map_or("N/A".to_owned(), |value| mark.bracketed(value))
    };
    let item = |key, value, verdict, sentence| PlausibilityItem {
        key,
        target: None,
        value,
        verdict,
        sentence,
    };
    let matched = truth.matched_share();
    let mut items = Vec::new();
    if truth.kept == 0 {
        let sentence = "Truth: no I/O to compare: none completed during the measurement, or all were writes that \
                        a flush follows, whose end the device's requests do not show.";
        let sentence = sentence.to_owned();
        return vec![item("truth_matched_share", None, Plausibility::Unknown, sentence)];
    }
    if truth.requests == 0 {
        let sentence = format!(
            "Truth: {} I/Os ran and the device's driver issued no request: the page cache served them (-Su and -Sh \
             go past it), or the driver takes I/O as it comes (zram, brd, md, device mapper) and only the disk \
             below can be followed.",
            truth.kept
        );
        return vec![item("truth_matched_share", Some(0.0), Plausibility::Unknown, sentence)];
    }
    let (Some(ratio), Some(share)) = (truth.median_ratio(), truth.within_bound_share()) else {
        let sentence = format!(
            "Truth: none of the {} I/Os that were kept was found among the requests of the device: the page cache, extents \
             that were never written, a file system that moves data, or lost events ({}) are in the way.",
            truth.kept, truth.lost_events
        );
        return vec![item("truth_matched_share", Some(0.0), Plausibility::Suspicious, sentence)];
    };
    let verdict = if matched < 0.9 { Plausibility::Unknown } else { Plausibility::Ok };
    let sentence = format!(
        "Truth: {} of {} I/Os were found among the requests of the device ({} events lost, {} I/Os not kept).",
        truth.matched, truth.kept, truth.lost_events, truth.not_kept
    );
    items.push(item("truth_matched_share", Some(matched), verdict, sentence));
    let sentence = format!(
        "Truth: the device took {} (p50), {} (p99); reported were {} (p50), {} (p99): {ratio:.2} times the \
         device's median{}. Before it: {} (p50), seen late by {} (p50), {} (p99). The p50 of so many I/Os \
         is {}, the p99 {}.",
        at(&truth.device, 50),
        at(&truth.device, 99),
        at(&truth.reported, 50),
        at(&truth.reported, 99),
        if ratio > RATIO_MAX {
            ", more than a device's figure may have: see what comes before it and behind it, the wake-up and the batch"
        } else {
            ""
        },
        at(&truth.front, 50),
        at(&truth.reap_lag, 50),
        at(&truth.reap_lag, 99),
        Mark::of(0.5, truth.matched).keyword(),
        Mark::of(0.99, truth.matched).keyword(),
    );
    let verdict = match ratio {
        _ if matched < 0.9 => Plausibility::Unknown,
        ratio if ratio > RATIO_MAX => Plausibility::Suspicious,
        _ => Plausibility::Ok,
    };
    items.push(item("truth_median_ratio", Some(ratio), verdict, sentence));
    // What 99 % need says how good the error bar was; where that is half of what is measured, it shows nothing.
    let half = truth.reported.value_at_rank(truth.reported.count().div_ceil(2).max(1));
    let needed = truth.beyond_bound_p99().unwrap_or(Nanos::ZERO);
    let is_empty = half.is_some_and(|median| needed.0 > median / 2);
    let is_few = !truth.has_enough();
    let verdict = match share {
        _ if is_few => Plausibility::Unknown,
        HELD.. if is_empty => Plausibility::Unknown,
        HELD.. => Plausibility::Ok,
        _ => Plausibility::Suspicious,
    };
    let percent = |share: f64| (share * 10_000.0).floor() / 100.0;
    let sentence = format!(
        "Truth: 99 % of the I/Os found were seen at most {:.1} µs later than their own bound{}. The error bar, with {:.1} µs for a \
         wake-up, twice what one in 500 exceeded around the run, held for {:.2} % of them, with {:.1} µs, the median \
         wake-up, for {:.2} %.",
        needed.as_micros_f64(),
        match (is_few, is_empty) {
            (true, _) =>
                "; these are less than half of the I/Os, and that says nothing of the others",
            (false, true) => {
                ", more than half of the median latency, and that proves nothing: try again on a quieter machine"
            }
            (false, false) => "",
        },
        truth.wake_up.allowed().as_micros_f64(),
        percent(share),
        truth.wake_up.median.as_micros_f64(),
        percent(truth.within_usual_share().unwrap_or(share)),
    );
    // First what the figures beside it are worth.
    items.insert(0, item("truth_within_bound_share", Some(share), verdict, sentence));
    items
}
