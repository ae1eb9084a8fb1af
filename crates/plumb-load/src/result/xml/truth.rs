//! Plumb's own element `Truth`: latencies beside what the block device saw (`--truth`).

use std::fmt::Display;
use std::io;

use super::element::Elements;
use super::open_loop::write_set;
use crate::result::model::SpanResult;
use crate::tally::LatencySet;

/// Nothing without a comparison.
pub(super) fn write(span: &SpanResult, out: &mut Elements<'_>) -> io::Result<()> {
    let Some(truth) = &span.truth else { return Ok(()) };
    let shares = [
        ("MedianRatio", truth.median_ratio()),
        ("WithinBoundShare", truth.within_bound_share()),
        ("WithinUsualShare", truth.within_usual_share()),
    ];
    let needed = truth.beyond_bound_p99();
    let mut attributes: Vec<(&str, &dyn Display)> = vec![
        ("Kept", &truth.kept),
        ("NotKept", &truth.not_kept),
        ("Matched", &truth.matched),
        ("LostEvents", &truth.lost_events),
    ];
    for (name, share) in &shares {
        if let Some(share) = share {
            attributes.push((*name, share));
        }
    }
    if let Some(needed) = &needed {
        attributes.push(("BeyondBoundP99Nanoseconds", &needed.0));
    }
    out.open("Truth", &attributes)?;
    for (name, set) in [
        ("Device", &truth.device),
        ("Reported", &truth.reported),
        ("Front", &truth.front),
        ("ReapLag", &truth.reap_lag),
    ] {
        write_set(name, &LatencySet::Binned(set.clone()), out)?;
    }
    out.close("Truth")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::witness::Truth;

    fn written(truth: Option<Truth>) -> String {
        let span = SpanResult { truth, ..SpanResult::default() };
        let mut text = Vec::new();
        write(&span, &mut Elements::new(&mut text, 0)).expect("memory takes everything");
        String::from_utf8(text).expect("text")
    }

    #[test]
    fn what_the_device_took_stands_beside_what_is_reported() {
        assert_eq!(written(None), "");
        let mut truth = Truth { kept: 4, matched: 3, within_bound: 3, ..Truth::default() };
        for (set, nanos) in [
            (&mut truth.device, 2_000_000),
            (&mut truth.reported, 3_000_000),
            (&mut truth.front, 250_000),
            (&mut truth.reap_lag, 750_000),
        ] {
            set.record_many(nanos, 3);
        }
        let text = written(Some(truth));
        for part in [
            "<Truth Kept=\"4\" NotKept=\"0\" Matched=\"3\" LostEvents=\"0\" MedianRatio=\"1.5",
            "WithinBoundShare=\"1\"",
            "<Device AverageMilliseconds=\"2.000",
            "<Reported AverageMilliseconds=\"3.000",
            "<Front AverageMilliseconds=\"0.250",
            "<ReapLag AverageMilliseconds=\"0.750",
            "</Truth>",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        let unmatched = written(Some(Truth { kept: 4, ..Truth::default() }));
        assert!(
            unmatched.contains("Matched=\"0\"") && !unmatched.contains("Device"),
            "{unmatched}"
        );
    }
}
