//! Writes a profile (spec 5.4), with what only DISKSPD 2.3 knows where it was given (15.9, D-27).

use std::fmt::Display;

use crate::profile::model::{
    AffinityEntry, AffinityTraversal, BufferSeparation, BypassIo, CacheMode, Distribution,
    DistributionKind, EfficiencyOrder, Etw, FlushType, GroupOrder, IoRing, PrecreateFiles,
    ProcessorOrder, RawProfile, ResultFormat, RingBatch, Target, ThreadTarget, ThroughputUnit,
    TimeSpan, WriteContent,
};

/// Writes a profile, two blanks per level, `depth` levels in (0 for a document of its own).
///
/// What has no place in XML 1.0, control characters of a path, becomes U+FFFD.
#[must_use]
pub fn write(profile: &RawProfile, depth: usize) -> String {
    let mut out = Lines { text: String::new(), depth };
    out.element("Profile", |out| {
        out.leaf("Progress", profile.progress);
        if profile.experiment_flags > 0 {
            out.leaf("ExperimentFlags", profile.experiment_flags);
        }
        let format = match profile.result_format {
            ResultFormat::Text => "text",
            ResultFormat::Xml => "xml",
        };
        out.leaf("ResultFormat", format);
        out.leaf("Verbose", profile.verbose);
        if profile.verbose_stats {
            out.leaf("VerboseStats", true);
        }
        if let Some(precreate) = profile.precreate {
            out.leaf("PrecreateFiles", precreate_files(precreate));
        }
        if let Some(etw) = &profile.etw {
            self::etw(out, etw);
        }
        out.element("TimeSpans", |out| {
            for span in &profile.time_spans {
                out.element("TimeSpan", |out| time_span(out, span));
            }
        });
    });
    out.text
}

/// The document as it grows.
struct Lines {
    text: String,
    depth: usize,
}

impl Lines {
    fn line(&mut self, line: &str) {
        for _ in 0..self.depth {
            self.text.push_str("  ");
        }
        self.text.push_str(line);
        self.text.push('\n');
    }

    fn element(&mut self, name: &str, children: impl FnOnce(&mut Self)) {
        self.line(&format!("<{name}>"));
        self.depth += 1;
        children(self);
        self.depth -= 1;
        self.line(&format!("</{name}>"));
    }

    fn leaf(&mut self, name: &str, value: impl Display) {
        self.line(&format!("<{name}>{value}</{name}>"));
    }
}

/// Text content of an element (D-11).
fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            // Readers turn a bare one into a line feed.
            '\r' => escaped.push_str("&#13;"),
            '\0'..='\u{8}' | '\u{b}' | '\u{c}' | '\u{e}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => {
                escaped.push('\u{fffd}');
            }
            other => escaped.push(other),
        }
    }
    escaped
}

fn precreate_files(precreate: PrecreateFiles) -> &'static str {
    match precreate {
        PrecreateFiles::UseMaxSize => "UseMaxSize",
        PrecreateFiles::OnlyConstantSizes => "CreateOnlyFilesWithConstantSizes",
        PrecreateFiles::OnlyConstantOrZeroSizes => "CreateOnlyFilesWithConstantOrZeroSizes",
    }
}

fn etw(out: &mut Lines, etw: &Etw) {
    out.element("ETW", |out| {
        for (name, on) in etw.fields() {
            out.leaf(name, on);
        }
    });
}

fn time_span(out: &mut Lines, span: &TimeSpan) {
    out.leaf("CompletionRoutines", span.completion_routines);
    out.leaf("MeasureLatency", span.measure_latency);
    out.leaf("CalculateIopsStdDev", span.calculate_iops_std_dev);
    out.leaf("DisableAffinity", span.disable_affinity);
    out.leaf("Duration", span.duration);
    out.leaf("Warmup", span.warmup);
    out.leaf("Cooldown", span.cooldown);
    out.leaf("ThreadCount", span.thread_count);
    out.leaf("RequestCount", span.request_count);
    out.leaf("IoBucketDuration", span.io_bucket_duration);
    out.leaf("RandSeed", span.rand_seed);
    if span.random_write_data {
        out.leaf("RandomWriteData", true);
    }
    if let Some(ring) = span.io_ring {
        io_ring(out, ring);
    }
    if let Some(traversal) = span.affinity_traversal {
        affinity_traversal(out, traversal);
    }
    if !span.affinity.is_empty() {
        out.element("Affinity", |out| affinity(out, &span.affinity));
    }
    if let Some(separation) = span.buffer_separation {
        let separation = match separation {
            BufferSeparation::PdeCacheLine => "PDECacheLine",
            BufferSeparation::SystemDefault => "SystemDefault",
        };
        out.leaf("BufferSeparation", separation);
    }
    if let Some(depth) = span.completion_depth {
        out.leaf("CompletionDepth", depth);
    }
    out.element("Targets", |out| {
        for target in &span.targets {
            out.element("Target", |out| self::target(out, target));
        }
    });
}

fn io_ring(out: &mut Lines, ring: IoRing) {
    out.element("IoRing", |out| {
        let (size, percent) = match ring.batch {
            RingBatch::Ios(count) => (count, false),
            RingBatch::Percent(percent) => (percent, true),
        };
        out.line(&format!("<IoRingBatchSize Percent=\"{percent}\">{size}</IoRingBatchSize>"));
        out.leaf("UseRegBuffer", ring.registered_buffers);
    });
}

fn affinity_traversal(out: &mut Lines, traversal: AffinityTraversal) {
    let order = match traversal.order {
        ProcessorOrder::Cpu => "Cpu",
        ProcessorOrder::CoreAware => "CoreAware",
    };
    let group = match traversal.group {
        GroupOrder::Fill => "Fill",
        GroupOrder::Span => "Span",
    };
    let efficiency = match traversal.efficiency {
        EfficiencyOrder::PFirst => "PFirst",
        EfficiencyOrder::FillPFirst => "FillPFirst",
        EfficiencyOrder::EFirst => "EFirst",
        EfficiencyOrder::FillEFirst => "FillEFirst",
        EfficiencyOrder::Unordered => "Unordered",
    };
    out.line(&format!(
        "<AffinityTraversal Group=\"{group}\" Efficiency=\"{efficiency}\">{order}\
         </AffinityTraversal>"
    ));
}

/// Pairs, as DISKSPD 2.2 reads them, unless a whole group is in the list: then masks (spec 15.9).
fn affinity(out: &mut Lines, entries: &[AffinityEntry]) {
    let pairs: Option<Vec<_>> =
        entries.iter().map(|entry| Some((entry.group, entry.processor?))).collect();
    match pairs {
        Some(pairs) => {
            for (group, processor) in pairs {
                out.line(&format!(
                    "<AffinityGroupAssignment Group=\"{group}\" Processor=\"{processor}\"/>"
                ));
            }
        }
        None => {
            for (group, mask) in masks(entries) {
                out.line(&format!("<Group Group=\"{group}\" Mask=\"{mask:#x}\"/>"));
            }
        }
    }
}

/// One mask per ascending run of one group; 0 for a whole group. A processor above 63 is the same one
/// counted on in the next groups.
fn masks(entries: &[AffinityEntry]) -> Vec<(u32, u64)> {
    let mut masks: Vec<(u32, u64)> = Vec::new();
    for entry in entries {
        let Some(processor) = entry.processor else {
            masks.push((entry.group.into(), 0));
            continue;
        };
        let group = u32::from(entry.group) + u32::from(processor / 64);
        let bit = 1_u64 << (processor % 64);
        match masks.last_mut() {
            Some((last, mask)) if *last == group && *mask != 0 && *mask < bit => *mask |= bit,
            _ => masks.push((group, bit)),
        }
    }
    masks
}

fn target(out: &mut Lines, target: &Target) {
    out.leaf("Path", escaped(&target.path));
    out.leaf("BlockSize", target.block_size);
    out.leaf("BaseFileOffset", target.base_file_offset);
    out.leaf("SequentialScan", target.sequential_scan);
    out.leaf("RandomAccess", target.random_access);
    out.leaf("TemporaryFile", target.temporary_file);
    out.leaf("UseLargePages", target.use_large_pages);
    caching(out, target);
    write_buffer_content(out, &target.write_content);
    out.leaf("ParallelAsyncIO", target.parallel_async);
    if target.burst_size > 0 {
        out.leaf("BurstSize", target.burst_size);
    }
    if target.think_time > 0 {
        out.leaf("ThinkTime", target.think_time);
    }
    if let Some(size) = target.file_size {
        out.leaf("FileSize", size);
    }
    pattern(out, target);
    out.leaf("ThreadStride", target.thread_stride);
    out.leaf("MaxFileSize", target.max_file_size);
    out.leaf("RequestCount", target.request_count);
    out.leaf("WriteRatio", target.write_ratio);
    match target.throughput.unit {
        ThroughputUnit::BytesPerMilli => out.leaf("Throughput", target.throughput.value),
        ThroughputUnit::Iops => {
            let value = target.throughput.value;
            out.line(&format!("<Throughput unit=\"IOPS\">{value}</Throughput>"));
        }
    }
    out.leaf("ThreadsPerFile", target.threads_per_file);
    out.leaf("IOPriority", target.io_priority);
    out.leaf("Weight", target.weight);
    if !target.thread_targets.is_empty() {
        out.element("ThreadTargets", |out| {
            for each in &target.thread_targets {
                thread_target(out, each);
            }
        });
    }
}

fn caching(out: &mut Lines, target: &Target) {
    match target.cache {
        CacheMode::Cached => {}
        CacheMode::NoOsCache => out.leaf("DisableOSCache", true),
        CacheMode::NoLocalCache => out.leaf("DisableLocalCache", true),
    }
    if target.write_through {
        out.leaf("WriteThrough", true);
    }
    if target.memory_mapped {
        out.leaf("MemoryMappedIo", true);
    }
    if let Some(flush) = target.flush {
        let flush = match flush {
            FlushType::ViewOfFile => "ViewOfFile",
            FlushType::NonVolatileMemory => "NonVolatileMemory",
            FlushType::NonVolatileMemoryNoDrain => "NonVolatileMemoryNoDrain",
        };
        out.leaf("FlushType", flush);
    }
    if let Some(bypass_io) = target.bypass_io {
        let bypass_io = match bypass_io {
            BypassIo::Partial => "Partial",
            BypassIo::Full => "Full",
        };
        out.leaf("BypassIO", bypass_io);
    }
}

fn write_buffer_content(out: &mut Lines, content: &WriteContent) {
    out.element("WriteBufferContent", |out| match content {
        WriteContent::Sequential => out.leaf("Pattern", "sequential"),
        WriteContent::Zero => out.leaf("Pattern", "zero"),
        WriteContent::Random { size, file } => {
            out.leaf("Pattern", "random");
            out.element("RandomDataSource", |out| {
                out.leaf("SizeInBytes", size);
                if let Some(file) = file {
                    out.leaf("FilePath", escaped(file));
                }
            });
        }
    });
}

fn pattern(out: &mut Lines, target: &Target) {
    if target.random_ratio == 0 {
        out.leaf("StrideSize", target.alignment);
        out.leaf("InterlockedSequential", target.interlocked);
        return;
    }
    out.leaf("Random", target.alignment);
    if target.random_ratio != 100 {
        out.leaf("RandomRatio", target.random_ratio);
    }
    if let Some(distribution) = &target.distribution {
        out.element("Distribution", |out| self::distribution(out, distribution));
    }
}

fn distribution(out: &mut Lines, distribution: &Distribution) {
    let kind = match distribution.kind {
        DistributionKind::Percent => "Percent",
        DistributionKind::Absolute => "Absolute",
    };
    out.element(kind, |out| {
        for range in &distribution.ranges {
            out.line(&format!("<Range IO=\"{}\">{}</Range>", range.io, range.size));
        }
    });
}

fn thread_target(out: &mut Lines, thread_target: &ThreadTarget) {
    out.element("ThreadTarget", |out| {
        out.leaf("Thread", thread_target.thread);
        if thread_target.weight > 0 {
            out.leaf("Weight", thread_target.weight);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn masks_hold_ascending_runs_of_a_group() {
        let entry = |group, processor| AffinityEntry { group, processor };
        let entries = [
            entry(0, Some(1)),
            entry(0, Some(3)),
            entry(0, Some(2)),
            entry(0, Some(2)),
            entry(1, None),
            entry(1, Some(4)),
            entry(0, Some(64)),
            entry(0, Some(255)),
        ];
        let want = [(0, 0b1010), (0, 0b100), (0, 0b100), (1, 0), (1, 0x10), (1, 1), (3, 1 << 63)];
        assert_eq!(masks(&entries), want);
    }

    #[test]
    fn text_is_escaped_and_always_xml() {
        assert_eq!(escaped("a<b>&\"\r\n\u{1}"), "a&lt;b&gt;&amp;\"&#13;\n\u{fffd}");
    }
}
