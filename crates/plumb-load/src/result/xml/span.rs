//! The `TimeSpan` element of results (spec 8, 15.11).

use std::io;

use super::element::Elements;
use super::{fixed, latency, open_loop, plausibility, system, truth, verify};
use crate::pattern::EffectiveDistribution;
use crate::profile::model::TimeSpan;
use crate::result::model::{SpanResult, TargetResult, ThreadResult, TraceCounts, WaitStatistics};
use crate::result::text::{INTERRUPTED, cpu};
use crate::tally::LatencySet;
use crate::tally::span_series::ThreadSeries;

pub(super) fn write(
    span: &SpanResult,
    asked: &TimeSpan,
    (verbose_stats, with_own): (bool, bool),
    out: &mut Elements<'_>,
) -> io::Result<()> {
    out.open("TimeSpan", &[])?;
    if span.is_measured() {
        write_measured(span, asked, verbose_stats, out)?;
        if with_own {
            open_loop::write(span, out)?;
            truth::write(span, out)?;
        }
    } else {
        out.text("Error", INTERRUPTED)?;
    }
    if with_own {
        verify::write(span, out)?;
        plausibility::write(span, asked, out)?;
    }
    out.close("TimeSpan")
}

fn write_measured(
    span: &SpanResult,
    asked: &TimeSpan,
    verbose_stats: bool,
    out: &mut Elements<'_>,
) -> io::Result<()> {
    out.text("TestTimeSeconds", format!("{:.2}", span.elapsed.as_secs_f64()))?;
    out.text("ThreadCount", span.threads.len())?;
    out.text("RequestCount", asked.request_count)?;
    out.text("ProcCount", span.cpus.len())?;
    write_mode(span, out)?;
    write_cpus(span, out)?;
    let figures = span.figures();
    if asked.measure_latency {
        latency::write_latency(&figures, out)?;
    }
    if asked.calculate_iops_std_dev {
        let series = span.intervals();
        let moments = series.as_ref().map(|(read, write)| {
            let mut total = read.clone();
            total.merge(write);
            [read, write, &total].map(|series| Some(series.moments()))
        });
        latency::write_iops(series, moments.unwrap_or_default(), out)?;
    }
    if let Some(trace) = &span.trace {
        write_trace(trace, out)?;
    }
    for thread in &span.threads {
        write_thread(thread, asked, verbose_stats, out)?;
    }
    Ok(())
}

/// Where threads ran and buffers lay.
fn write_mode(span: &SpanResult, out: &mut Elements<'_>) -> io::Result<()> {
    out.text("EffectiveBufferSeparation", span.effective_buffer_separation)?;
    if let Some(taken) = &span.effective_affinity {
        out.open("EffectiveAffinity", &[])?;
        for (group, mask) in ascending_masks(taken) {
            system::write_mask(group, mask, out)?;
        }
        out.close("EffectiveAffinity")?;
    }
    if span.mixed_classes {
        out.text("HeterogeneousAffinityWarning", true)?;
    }
    Ok(())
}

/// Masks whose bits, from low to high and one mask after the other, are the processors in their order:
/// a mask per ascending run. A processor above 63 counts on in the next group.
fn ascending_masks(taken: &[(u16, u8)]) -> Vec<(u16, u64)> {
    let mut masks: Vec<(u16, u64)> = Vec::new();
    for (group, cpu) in taken {
        let (group, bit) = (group + u16::from(cpu / 64), 1_u64 << (cpu % 64));
        match masks.last_mut() {
            Some((last, mask)) if *last == group && *mask < bit => *mask |= bit,
            _ => masks.push((group, bit)),
        }
    }
    masks
}

fn write_cpus(span: &SpanResult, out: &mut Elements<'_>) -> io::Result<()> {
    out.open("CpuUtilization", &[])?;
    for usage in &span.cpus {
        out.open("CPU", &[])?;
        out.text("Socket", usage.socket)?;
        out.text("Node", usage.node)?;
        out.text("Group", usage.group)?;
        out.text("Core", usage.core)?;
        out.text("EfficiencyClass", usage.class)?;
        out.text("Id", usage.cpu)?;
        write_percents(cpu::percents(usage), out)?;
        out.close("CPU")?;
    }
    out.open("Average", &[])?;
    write_percents(cpu::mean(&span.cpus), out)?;
    out.close("Average")?;
    out.close("CpuUtilization")
}

fn write_percents(percents: [f64; 4], out: &mut Elements<'_>) -> io::Result<()> {
    let names = ["UsagePercent", "UserPercent", "KernelPercent", "IdlePercent"];
    for (name, percent) in names.into_iter().zip(percents) {
        out.text(name, format!("{percent:.2}"))?;
    }
    Ok(())
}

/// Element names are the titles without what is no letter.
fn write_trace(trace: &TraceCounts, out: &mut Elements<'_>) -> io::Result<()> {
    out.open("ETW", &[])?;
    for (title, counters) in &trace.classes {
        // The one class whose element has another name than its title.
        let name = match element_name(title).as_str() {
            "MemoryHardFaults" => "HardPageFault".to_owned(),
            name => name.to_owned(),
        };
        if let [(_, count)] = counters.as_slice() {
            out.text(&name, count)?;
            continue;
        }
        out.open(&name, &[])?;
        for (counter, count) in counters {
            out.text(&element_name(counter), count)?;
        }
        out.close(&name)?;
    }
    out.close("ETW")?;
    out.open("ETWSessionInfo", &[])?;
    out.text("LostEvents", trace.lost)?;
    out.close("ETWSessionInfo")
}

/// `Copy on Write` → `CopyOnWrite`, `Disk I/O` → `DiskIO`.
fn element_name(title: &str) -> String {
    let capital = |word: &str| {
        let mut letters = word.chars().filter(char::is_ascii_alphanumeric);
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    title.split_whitespace().map(capital).collect()
}

fn write_thread(
    thread: &ThreadResult,
    asked: &TimeSpan,
    verbose_stats: bool,
    out: &mut Elements<'_>,
) -> io::Result<()> {
    out.open("Thread", &[])?;
    out.text("Id", thread.id)?;
    if let Some(submits) = thread.submit_count {
        out.text("SubmitCount", submits)?;
    }
    for target in &thread.targets {
        write_target(target, asked, out)?;
    }
    if verbose_stats {
        write_waits(&thread.waits, out)?;
    }
    out.close("Thread")
}

fn write_target(target: &TargetResult, asked: &TimeSpan, out: &mut Elements<'_>) -> io::Result<()> {
    let total = target.total();
    out.open("Target", &[])?;
    out.text("Path", &target.path)?;
    out.text("BytesCount", total.bytes)?;
    out.text("FileSize", target.file_size)?;
    out.text("IOCount", total.io_count)?;
    out.text("ReadBytes", target.read.bytes)?;
    out.text("ReadCount", target.read.io_count)?;
    out.text("WriteBytes", target.write.bytes)?;
    out.text("WriteCount", target.write.io_count)?;
    if let Some(effective) = &target.effective {
        write_distribution(effective, out)?;
    }
    if asked.measure_latency {
        let sides = [
            ("AverageReadLatencyMilliseconds", "ReadLatencyStdev", &target.read),
            ("AverageWriteLatencyMilliseconds", "WriteLatencyStdev", &target.write),
            ("AverageLatencyMilliseconds", "LatencyStdev", &total),
        ];
        for (mean, deviation, side) in sides {
            write_moments(mean, deviation, side.latency.as_ref(), out)?;
        }
    }
    if asked.calculate_iops_std_dev {
        let series = target.series.as_ref();
        let moments = series.map(|series| [series.read, series.write, series.total].map(Some));
        let series = series.map(ThreadSeries::read_back).transpose()?;
        latency::write_iops(series, moments.unwrap_or_default(), out)?;
    }
    out.close("Target")
}

/// Mean and deviation in milliseconds; nothing without samples.
pub(super) fn write_moments(
    mean: &str,
    deviation: &str,
    set: Option<&LatencySet>,
    out: &mut Elements<'_>,
) -> io::Result<()> {
    if let Some((set, average)) = set.and_then(|set| Some((set, set.mean_ms()?))) {
        out.text(mean, fixed(average))?;
        out.text(deviation, fixed(set.stddev_ms().unwrap_or(0.0)))?;
    }
    Ok(())
}

/// Holes are ranges without I/O, so that sizes add up to offsets.
fn write_distribution(effective: &EffectiveDistribution, out: &mut Elements<'_>) -> io::Result<()> {
    out.open("Distribution", &[])?;
    out.open("Absolute", &[])?;
    let mut end = 0;
    for range in &effective.ranges {
        if range.offset > end {
            out.full("Range", &[("IO", &0)], range.offset - end)?;
        }
        out.full("Range", &[("IO", &range.io)], range.length)?;
        end = range.offset + range.length;
    }
    out.close("Absolute")?;
    out.close("Distribution")
}

fn write_waits(waits: &WaitStatistics, out: &mut Elements<'_>) -> io::Result<()> {
    let eight = |counts: [u64; 8]| counts.map(|count| count.to_string()).join(" ");
    out.open("WaitStatistics", &[])?;
    out.text("CompletionWait", waits.wait)?;
    out.text("ThrottleWait", waits.throttle_wait)?;
    out.text("ThrottleSleep", waits.throttle_sleep)?;
    out.text("Lookaside", waits.lookaside)?;
    out.text("WaitCompletion", eight(waits.wait_completion))?;
    out.text("LookasideCompletion", eight(waits.lookaside_completion))?;
    out.close("WaitStatistics")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::EffectiveRange;

    #[test]
    fn masks_follow_the_order_of_the_processors() {
        for (taken, want) in [
            (&[(0, 0), (0, 2), (0, 3)][..], &[(0, 0b1101)][..]),
            (&[(0, 2), (0, 0), (0, 1)], &[(0, 0b100), (0, 0b011)]),
            (&[(0, 1), (1, 2), (0, 3)], &[(0, 0b10), (1, 0b100), (0, 0b1000)]),
            (&[(0, 63), (0, 64), (0, 65)], &[(0, 1 << 63), (1, 0b11)]),
            (&[(0, 1), (0, 1)], &[(0, 0b10), (0, 0b10)]),
        ] {
            assert_eq!(ascending_masks(taken), want, "{taken:?}");
        }
    }

    #[test]
    fn titles_become_element_names() {
        for (title, want) in [
            ("Disk I/O", "DiskIO"),
            ("Demand Zero fault", "DemandZeroFault"),
            ("Copy on Write", "CopyOnWrite"),
            ("Start", "Start"),
        ] {
            assert_eq!(element_name(title), want);
        }
    }

    #[test]
    fn holes_are_ranges_without_io() {
        let range = |io, offset, length| EffectiveRange { io_base: 0, io, offset, length };
        let ranges = vec![range(90, 4096, 8192), range(10, 20480, 4096)];
        let effective = EffectiveDistribution { io_total: 100, ranges };
        let mut out = Vec::new();
        write_distribution(&effective, &mut Elements::new(&mut out, 0)).expect("a vector");
        let text = String::from_utf8(out).expect("text");
        let ranges: Vec<&str> = text.lines().filter(|line| line.contains("Range")).collect();
        assert_eq!(
            ranges,
            [
                "    <Range IO=\"0\">4096</Range>",
                "    <Range IO=\"90\">8192</Range>",
                "    <Range IO=\"0\">8192</Range>",
                "    <Range IO=\"10\">4096</Range>"
            ]
        );
    }
}
