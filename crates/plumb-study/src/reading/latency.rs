//! Rules about latencies: R2, R9, R10, R11, R16.

use super::{Completion, Facts, Medium, Percentiles, Remark, info, warn};
use crate::percentile::{self, EPISODES_FEW, Mark};

/// Percentile names as tables have them.
fn name(percent: f64) -> String {
    let nines = [(99.9, 3), (99.99, 4), (99.999, 5), (99.9999, 6), (99.999_99, 7), (99.999_999, 8)];
    if percent >= 100.0 {
        return "the maximum".to_owned();
    }
    match nines.iter().find(|(p, _)| (p - percent).abs() < 1e-9) {
        Some((_, count)) => format!("{count} nines"),
        None => format!("{percent}th"),
    }
}

fn tables(facts: &Facts) -> [(&'static str, &Percentiles); 3] {
    let all = &facts.latencies;
    [("read", &all.read), ("write", &all.write), ("total", &all.total)]
}

/// (5.4) Whether a percentile says anything.
fn may_be_quoted(table: &Percentiles, percent: f64) -> bool {
    let mark = |count| Mark::of(percent / 100.0, count);
    percent >= 100.0 || table.count.is_none_or(|count| mark(count) != Mark::None)
}

/// The median, where it says anything and is below so many milliseconds.
fn median_below(table: &Percentiles, most_ms: f64) -> Option<f64> {
    table.at(50.0).filter(|ms| *ms < most_ms && may_be_quoted(table, 50.0))
}

/// The largest ratio of neighbours from the 50th up, among those that may be quoted (5.4): both percentiles and the
/// ratio.
pub(super) fn largest_jump(table: &Percentiles) -> Option<(f64, f64, f64)> {
    let is_told = |row: &&(f64, f64)| row.0 >= 50.0 && may_be_quoted(table, row.0);
    let rows: Vec<&(f64, f64)> = table.rows.iter().filter(is_told).collect();
    rows.windows(2)
        .filter(|pair| pair[0].1 > 0.0)
        .map(|pair| (pair[0].0, pair[1].0, pair[1].1 / pair[0].1))
        .max_by(|a, b| a.2.total_cmp(&b.2))
}

/// (5.4) A percentile as it is printed: with its mark, in brackets where that is weak.
fn marked(table: &Percentiles, percent: f64) -> String {
    let ms = table.at(percent).unwrap_or(0.0);
    with_mark(table, percent, format!("{ms:.3} ms"))
}

/// The same of a percentile that is written down already.
fn with_mark(table: &Percentiles, percent: f64, value: String) -> String {
    if percent >= 100.0 {
        return format!("{value} (one I/O)");
    }
    let Some(count) = table.count else {
        return format!("{value} (of how many I/Os is not known)");
    };
    let support = percentile::support(percent / 100.0, count);
    let few = table.few.filter(|few| percent >= few.percent - 1e-9);
    let few = few.map_or_else(String::new, |few| match few.all < EPISODES_FEW {
        true => format!(", episodes not told: {} intervals", few.all),
        false => format!(", few episodes: {}", few.with),
    });
    let value = support.mark.bracketed(value);
    let rests = match support.mark {
        Mark::Good => String::new(),
        _ => format!(": rests on {:.1} I/Os", support.above),
    };
    format!("{value} ({}{rests}{few})", support.mark.keyword())
}

/// R2: where latency jumps.
pub(super) fn jump(facts: &Facts) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (what, table) in tables(facts) {
        if let Some((from, to, ratio)) = largest_jump(table).filter(|jump| jump.2 >= 3.0) {
            remarks.extend(info(
                2,
                format!(
                    "The {what} latency jumps between {} and {}: ×{ratio:.2}, from {} to {}.",
                    name(from),
                    name(to),
                    marked(table, from),
                    marked(table, to)
                ),
            ));
        }
    }
    remarks
}

/// R9: what percentiles rest on.
pub(super) fn marks(facts: &Facts) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (what, table) in tables(facts) {
        let Some(count) = table.count.filter(|count| *count > 0) else { continue };
        let thin: Vec<String> = table
            .rows
            .iter()
            .filter(|(p, _)| *p < 100.0)
            .map(|(p, _)| (*p, percentile::support(p / 100.0, count)))
            .filter(|(_, support)| support.mark != Mark::Good)
            .map(|(p, s)| format!("{} on {:.1} I/Os ({})", name(p), s.above, s.mark.keyword()))
            .collect();
        if !thin.is_empty() {
            remarks.extend(info(
                9,
                format!("Of {count} I/Os, {what} percentiles rest on few: {}.", thin.join(", ")),
            ));
        }
        if let Some(few) = table.few.filter(|few| few.all < EPISODES_FEW) {
            remarks.extend(info(
                9,
                format!(
                    "Of how many episodes the {what} percentiles from {} on are is not told: there are {} intervals.",
                    name(few.percent),
                    few.all
                ),
            ));
        } else if let Some(few) = table.few {
            remarks.extend(warn(9, format!(
                "The {what} percentiles from {} on are of few episodes: their I/Os are in {} of {} intervals. One \
                 stall delays everything in flight.",
                name(few.percent),
                few.with,
                few.all
            )));
        }
    }
    remarks
}

/// R10: top rows that are one stall.
pub(super) fn one_stall(facts: &Facts) -> Vec<Remark> {
    let mut remarks = Vec::new();
    for (what, table) in tables(facts) {
        let Some((_, highest)) = table.rows.last() else { continue };
        let alike: Vec<f64> = table
            .rows
            .iter()
            .rev()
            .filter(|(p, _)| *p < 100.0)
            .take_while(|(_, ms)| *ms > 0.0 && highest / ms - 1.0 <= 0.02)
            .map(|(percent, _)| *percent)
            .collect();
        // Of few I/Os several rows are one and the same, the slowest: that is no stall.
        let lowest = alike.last().copied().unwrap_or(100.0);
        let is_one = table
            .count
            .is_some_and(|count| lowest / 100.0 * count as f64 > count.saturating_sub(1) as f64);
        let alike = alike.len();
        if alike >= 3 && !is_one {
            remarks.extend(info(10, format!(
                "The {alike} highest {what} percentiles are the same within 2 %: one stall that hit everything in \
                 flight, not a distribution."
            )));
        }
    }
    remarks
}

/// R11: reads that no device can have served.
pub(super) fn served_from_cache(facts: &Facts) -> Vec<Remark> {
    let reads = &facts.latencies.read;
    if let Some(middle) = median_below(reads, 0.005) {
        let middle = with_mark(reads, 50.0, format!("{:.1} µs", middle * 1e3));
        return warn(
            11,
            format!(
                "Half of the reads took {middle} or less: they come from memory, not from a device."
            ),
        );
    }
    let rate = facts.iops.zip(facts.block_bytes).map(|(iops, block)| iops * block);
    match rate.zip(facts.link_bytes_per_s) {
        Some((rate, link)) if rate > link => warn(
            11,
            format!(
                "{:.0} MB/s is more than the link to the device carries ({:.0} MB/s): a cache serves part of \
             it.",
                rate / 1e6,
                link / 1e6
            ),
        ),
        _ => Vec::new(),
    }
}

/// R16: writes that are done too soon to be on the medium.
pub(super) fn volatile_cache(facts: &Facts) -> Vec<Remark> {
    let writes = &facts.latencies.write;
    if facts.medium == Some(Medium::Disk)
        && let Some(middle) = median_below(writes, 0.1)
    {
        let middle = with_mark(writes, 50.0, format!("{:.0} µs", middle * 1e3));
        return warn(
            16,
            format!(
                "Half of the writes took {middle} or less, which no rotating disk can do: completed means \
                 \"in a cache\"."
            ),
        );
    }
    match facts.completion {
        Some(Completion::Volatile) if facts.write_share.unwrap_or(0.0) > 0.0 => warn(
            16,
            "A completed write may be in a cache that does not survive a loss of power.".to_owned(),
        ),
        _ => Vec::new(),
    }
}
