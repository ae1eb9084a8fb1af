//! The elements `Latency` and `Iops` (spec 8).

use std::io;

use plumb_units::convert;

use super::element::Elements;
use super::fixed;
use super::span::write_moments;
use crate::result::figures::Figures;
use crate::tally::{IntervalCell, IopsMoments, IopsSeries, LatencySet};

/// What follows percentile 99: readers index buckets by position.
const TAIL: [f64; 8] = [99.9, 99.99, 99.999, 99.9999, 99.99999, 99.999999, 99.9999999, 100.0];

/// The percentiles of the 108 buckets.
fn percentiles() -> impl Iterator<Item = f64> {
    (0..=99).map(f64::from).chain(TAIL)
}

pub(super) fn write_latency(figures: &Figures, out: &mut Elements<'_>) -> io::Result<()> {
    let none = LatencySet::default();
    let read = figures.read.latency.as_ref().unwrap_or(&none);
    let write = figures.write.latency.as_ref().unwrap_or(&none);
    let mut total = read.clone();
    total.merge(write);
    out.open(
        "Latency",
        &[
            ("ReadHistoBuckets", &read.distinct()),
            ("WriteHistoBuckets", &write.distinct()),
            ("TotalHistoBuckets", &total.distinct()),
        ],
    )?;
    write_moments("AverageReadMilliseconds", "ReadLatencyStdev", Some(read), out)?;
    write_moments("AverageWriteMilliseconds", "WriteLatencyStdev", Some(write), out)?;
    write_moments("AverageTotalMilliseconds", "LatencyStdev", Some(&total), out)?;
    for percentile in percentiles() {
        out.open("Bucket", &[])?;
        out.text("Percentile", percentile)?;
        for (name, set) in [
            ("ReadMilliseconds", read),
            ("WriteMilliseconds", write),
            ("TotalMilliseconds", &total),
        ] {
            // The quotient of doubles, as upstream: 99.9 / 100 is a little more than 0.999.
            if let Some(ms) = set.percentile_ms(percentile / 100.0) {
                out.text(name, fixed(ms))?;
            }
        }
        out.close("Bucket")?;
    }
    out.close("Latency")
}

/// Nothing but the element without intervals. `moments` are those of `series`: reads, writes and both.
pub(super) fn write_iops(
    series: Option<(IopsSeries, IopsSeries)>,
    moments: [Option<IopsMoments>; 3],
    out: &mut Elements<'_>,
) -> io::Result<()> {
    out.open("Iops", &[])?;
    for (name, moments) in ["ReadIopsStdDev", "WriteIopsStdDev", "IopsStdDev"].iter().zip(moments) {
        if let Some(moments) = moments.filter(|moments| moments.valid_intervals() > 0) {
            out.text(name, fixed(moments.iops_stddev()))?;
        }
    }
    if let Some((read, write)) = series {
        write_intervals(&read, &write, out)?;
    }
    out.close("Iops")
}

fn write_intervals(
    read: &IopsSeries,
    write: &IopsSeries,
    out: &mut Elements<'_>,
) -> io::Result<()> {
    let cell = |series: &IopsSeries, number: u64| {
        series.cells().get(convert::to_usize(number)).copied().unwrap_or(IntervalCell::EMPTY)
    };
    let interval = read.interval();
    let rate = |count: u64| format!("{:.0}", count as f64 / interval.as_secs_f64());
    for number in 0..read.valid_intervals().max(write.valid_intervals()) {
        let (read, write) = (cell(read, number), cell(write, number));
        out.empty(
            "Bucket",
            &[
                ("SampleMillisecond", &((number + 1) * (interval.0 / 1_000_000))),
                ("Read", &rate(read.count)),
                ("Write", &rate(write.count)),
                ("Total", &rate(read.count + write.count)),
                ("ReadMinLatencyMilliseconds", &fixed(read.min_ms())),
                ("ReadMaxLatencyMilliseconds", &fixed(read.max_ms())),
                ("ReadAvgLatencyMilliseconds", &fixed(read.mean_ms())),
                ("ReadLatencyStdDev", &fixed(read.stddev_ms())),
                ("WriteMinLatencyMilliseconds", &fixed(write.min_ms())),
                ("WriteMaxLatencyMilliseconds", &fixed(write.max_ms())),
                ("WriteAvgLatencyMilliseconds", &fixed(write.mean_ms())),
                ("WriteLatencyStdDev", &fixed(write.stddev_ms())),
            ],
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_stand_where_readers_look_for_them() {
        let written: Vec<String> = percentiles().map(|percentile| percentile.to_string()).collect();
        assert_eq!(written.len(), 108);
        assert_eq!((written[0].as_str(), written[50].as_str()), ("0", "50"));
        assert_eq!(
            written[99..],
            [
                "99",
                "99.9",
                "99.99",
                "99.999",
                "99.9999",
                "99.99999",
                "99.999999",
                "99.9999999",
                "100"
            ]
        );
    }
}
