//! The profile block of the text report (spec 7.2), with what only DISKSPD 2.3 knows where it was
//! given (15.10, D-27).

use std::fmt::{Arguments, Write};

use plumb_units::Bytes;

use super::model::{
    AffinityEntry, AffinityTraversal, BufferSeparation, BypassIo, CacheMode, Distribution,
    DistributionKind, EfficiencyOrder, FlushType, GroupOrder, ProcessorOrder, RawProfile,
    RingBatch, Target, ThroughputUnit, TimeSpan, WriteContent,
};

/// Writes the block: what `-Rp` prints, and the first part of every text report.
///
/// `command_line` is argv joined by single blanks, program name included.
#[must_use]
pub fn write(profile: &RawProfile, command_line: &str) -> String {
    write_with_separation(profile, command_line, None)
}

/// As [`write()`], naming the bytes by which `-bsp` keeps buffers apart on this machine (spec 15.4).
#[must_use]
pub fn write_with_separation(
    profile: &RawProfile,
    command_line: &str,
    separation: Option<Bytes>,
) -> String {
    let mut out = Block(format!("\nCommand Line: {command_line}\n\n"));
    let flags = profile.experiment_flags;
    if flags > 0 {
        out.line(format_args!("Experiment Flags: {flags:#x} ({flags})\n"));
    }
    out.line(format_args!("Input parameters:\n"));
    if profile.verbose {
        out.line(format_args!("\tusing verbose mode"));
    }
    for (number, span) in (1..).zip(&profile.time_spans) {
        time_span(&mut out, number, span, separation);
        for each in &span.targets {
            target(&mut out, span, each);
        }
        out.line(format_args!(""));
    }
    out.0
}

/// The block as it grows.
struct Block(String);

impl Block {
    fn line(&mut self, line: Arguments<'_>) {
        writeln!(self.0, "{line}").expect("writing to a string");
    }
}

fn time_span(out: &mut Block, number: u32, span: &TimeSpan, separation: Option<Bytes>) {
    out.line(format_args!("\ttimespan: {number:>3}"));
    out.line(format_args!("\t-------------"));
    out.line(format_args!("\tduration: {}s", span.duration));
    out.line(format_args!("\twarm up time: {}s", span.warmup));
    out.line(format_args!("\tcool down time: {}s", span.cooldown));
    if span.disable_affinity {
        out.line(format_args!("\taffinity disabled"));
    }
    if span.measure_latency {
        out.line(format_args!("\tmeasuring latency"));
    }
    if span.calculate_iops_std_dev {
        out.line(format_args!("\tgathering IOPS at intervals of {}ms", span.io_bucket_duration));
    }
    out.line(format_args!("\trandom seed: {}", span.rand_seed));
    if span.thread_count > 0 {
        out.line(format_args!("\tthread pool with {} threads", span.thread_count));
        out.line(format_args!(
            "\tnumber of outstanding I/O operations per thread: {}",
            span.request_count
        ));
    }
    if let Some(ring) = span.io_ring {
        let (size, unit) = match ring.batch {
            RingBatch::Ios(count) => (count, ""),
            RingBatch::Percent(percent) => (percent, "%"),
        };
        let with = if ring.registered_buffers { "with" } else { "without" };
        out.line(format_args!(
            "\tusing IoRing (batch size: {size}{unit}) {with} registered buffers"
        ));
    }
    if let Some(traversal) = span.affinity_traversal {
        out.line(format_args!("\taffinity assignment: {}", assignment(traversal)));
    }
    if !span.affinity.is_empty() {
        out.line(format_args!(
            "\tadvanced affinity round robin (group/core): {}",
            processors(&span.affinity)
        ));
    }
    match (span.buffer_separation, separation) {
        (None, _) => {}
        (Some(BufferSeparation::SystemDefault), _) => {
            out.line(format_args!("\tbuffer separation: system default"));
        }
        (Some(BufferSeparation::PdeCacheLine), None) => {
            out.line(format_args!("\tbuffer separation: thread optimized"));
        }
        (Some(BufferSeparation::PdeCacheLine), Some(bytes)) => {
            out.line(format_args!("\tbuffer separation: thread optimized ({bytes})"));
        }
    }
    if let Some(depth) = span.completion_depth {
        out.line(format_args!("\tcompletion depth: {depth}"));
    }
    if span.random_write_data {
        out.line(format_args!("\tgenerating random data for each write IO"));
        out.line(format_args!(
            "\t  WARNING: this increases the CPU cost of issuing writes and should only"
        ));
        out.line(format_args!("\t           be compared to other results using the -Zr flag"));
    }
}

fn assignment(traversal: AffinityTraversal) -> String {
    let order = match traversal.order {
        ProcessorOrder::Cpu => "cpu order",
        ProcessorOrder::CoreAware => "core-aware",
    };
    let groups = match traversal.group {
        GroupOrder::Fill => "fill groups",
        GroupOrder::Span => "span groups",
    };
    let efficiency = match traversal.efficiency {
        EfficiencyOrder::PFirst => "P-cores first",
        EfficiencyOrder::EFirst => "E-cores first",
        EfficiencyOrder::FillPFirst => "fill P-cores first",
        EfficiencyOrder::FillEFirst => "fill E-cores first",
        EfficiencyOrder::Unordered => "no P/E order",
    };
    format!("{order}, {groups}, {efficiency}")
}

fn processors(entries: &[AffinityEntry]) -> String {
    let entry = |entry: &AffinityEntry| match entry.processor {
        Some(processor) => format!("{}/{processor}", entry.group),
        None => format!("{}/*", entry.group),
    };
    entries.iter().map(entry).collect::<Vec<_>>().join(", ")
}

fn target(out: &mut Block, span: &TimeSpan, target: &Target) {
    match target.path.strip_prefix('*') {
        Some(number) => out.line(format_args!("\tpath: template target '{number}'")),
        None => out.line(format_args!("\tpath: '{}'", target.path)),
    }
    out.line(format_args!("\t\tthink time: {}ms", target.think_time));
    out.line(format_args!("\t\tburst size: {}", target.burst_size));
    caching(out, target);
    content(out, target);
    pattern(out, target);
    if span.is_weighted_pool() {
        out.line(format_args!("\t\trelative IO weight in thread pool: {}", target.weight));
    } else {
        out.line(format_args!(
            "\t\tnumber of outstanding I/O operations per thread: {}",
            target.request_count
        ));
    }
    for (what, bytes) in [
        ("base file offset", target.base_file_offset),
        ("max file size", target.max_file_size),
        ("thread stride size", target.thread_stride),
    ] {
        if bytes > 0 {
            out.line(format_args!("\t\t{what}: {}", Bytes(bytes)));
        }
    }
    for (given, hint) in [
        (target.sequential_scan, "FILE_FLAG_SEQUENTIAL_SCAN"),
        (target.random_access, "FILE_FLAG_RANDOM_ACCESS"),
        (target.temporary_file, "FILE_ATTRIBUTE_TEMPORARY"),
    ] {
        if given {
            out.line(format_args!("\t\tusing {hint} hint"));
        }
    }
    if span.thread_count == 0 {
        out.line(format_args!("\t\tthreads per file: {}", target.threads_per_file));
        if target.request_count > 1 && span.completion_routines {
            out.line(format_args!("\t\tusing completion routines (ReadFileEx/WriteFileEx)"));
        } else if target.request_count > 1 && span.io_ring.is_none() {
            out.line(format_args!("\t\tusing I/O Completion Ports"));
        }
    }
    let priority = match target.io_priority {
        1 => "very low",
        2 => "low",
        _ => "normal",
    };
    out.line(format_args!("\t\tIO priority: {priority}"));
    if target.throughput.value > 0 {
        let unit = match target.throughput.unit {
            ThroughputUnit::BytesPerMilli => "B/ms",
            ThroughputUnit::Iops => "IOPS",
        };
        let limit = target.throughput.value;
        out.line(format_args!("\t\tthroughput rate-limited to {limit} {unit}"));
    }
    if let Some(distribution) = &target.distribution {
        out.line(format_args!("\t\tIO Distribution:"));
        ranges(out, distribution);
    }
}

fn caching(out: &mut Block, target: &Target) {
    let software = match target.cache {
        CacheMode::Cached => "using software cache",
        CacheMode::NoLocalCache => "local software cache disabled, remote cache enabled",
        CacheMode::NoOsCache => "software cache disabled",
    };
    let hardware = match (target.write_through, target.cache) {
        (false, _) => "using hardware write cache, writethrough off",
        (true, CacheMode::NoOsCache) => "hardware write cache disabled, writethrough on",
        (true, _) => "hardware and software write caches disabled, writethrough on",
    };
    out.line(format_args!("\t\t{software}"));
    out.line(format_args!("\t\t{hardware}"));
    if target.memory_mapped {
        let flush = match target.flush {
            None => "",
            Some(FlushType::ViewOfFile) => ", flush mode: FlushViewOfFile",
            Some(FlushType::NonVolatileMemory) => ", flush mode: FlushNonVolatileMemory",
            Some(FlushType::NonVolatileMemoryNoDrain) => {
                ", flush mode: FlushNonVolatileMemory with no drain"
            }
        };
        out.line(format_args!("\t\tmemory mapped I/O enabled{flush}"));
    }
    match target.bypass_io {
        None => {}
        Some(BypassIo::Partial) => out.line(format_args!("\t\tusing BypassIO (allow partial)")),
        Some(BypassIo::Full) => out.line(format_args!("\t\tusing BypassIO (full bypass)")),
    }
}

fn content(out: &mut Block, target: &Target) {
    match &target.write_content {
        WriteContent::Sequential => {}
        WriteContent::Zero => out.line(format_args!("\t\tzeroing write buffers")),
        WriteContent::Random { size, file } => {
            out.line(format_args!("\t\twrite buffer size: {}", Bytes(*size)));
            match file {
                Some(file) => out.line(format_args!("\t\twrite buffer source: '{file}'")),
                None => out.line(format_args!("\t\twrite buffer source: random fill")),
            }
        }
    }
}

fn pattern(out: &mut Block, target: &Target) {
    if target.parallel_async {
        out.line(format_args!("\t\tusing parallel async I/O"));
    }
    match target.write_ratio {
        0 => out.line(format_args!("\t\tperforming read test")),
        100 => out.line(format_args!("\t\tperforming write test")),
        writes => {
            let reads = 100_u32.saturating_sub(writes);
            let ratio =
                format_args!("\t\tperforming mix test (read/write ratio: {reads}/{writes})");
            out.line(ratio);
        }
    }
    out.line(format_args!("\t\tblock size: {}", Bytes(target.block_size.into())));
    let alignment = Bytes(target.alignment);
    match target.random_ratio {
        0 => {
            let interlocked = if target.interlocked { " interlocked" } else { "" };
            let stride =
                format_args!("\t\tusing{interlocked} sequential I/O (stride: {alignment})");
            out.line(stride);
        }
        100 => out.line(format_args!("\t\tusing random I/O (alignment: {alignment})")),
        ratio => out.line(format_args!(
            "\t\tusing mixed random/sequential I/O ({ratio}% random) (alignment/stride: \
                 {alignment})"
        )),
    }
}

/// The ranges of a distribution, each from where the one before it ended.
fn ranges(out: &mut Block, distribution: &Distribution) {
    let mut from = 0_u64;
    for range in &distribution.ranges {
        let to = from.saturating_add(range.size);
        let io = range.io;
        match distribution.kind {
            DistributionKind::Percent => {
                let text =
                    format_args!("\t\t   {io:>3}% of IO => [{from:>2}% - {to:>3}%) of target");
                out.line(text);
            }
            DistributionKind::Absolute => {
                let start = match from {
                    0 => "     0   ".to_owned(),
                    _ => Bytes(from).aligned(6),
                };
                let end = match range.size {
                    0 => "      end".to_owned(),
                    _ => Bytes(to).aligned(6),
                };
                out.line(format_args!("\t\t   {io:>3}% of IO => [{start} - {end})"));
            }
        }
        from = to;
    }
}
