//! Reads the profile block of a text report (spec 7.2, 15.10) back into a profile.

use super::model::ImportedSize;
use super::read_text::Line;
use super::sizes;
use crate::profile::model::{
    AffinityEntry, AffinityTraversal, BufferSeparation, BypassIo, CacheMode, Distribution,
    DistributionKind, DistributionRange, EfficiencyOrder, FlushType, GroupOrder, IoRing,
    ProcessorOrder, RawProfile, RingBatch, Target, Throughput, ThroughputUnit, TimeSpan,
    WriteContent,
};

/// Lines that were not understood beyond these are only counted.
const NOTES_MAX: usize = 5;

/// No list of processors of one group is longer; repeated ranges could make one without end.
const PROCESSORS_MAX: usize = 4096;

/// Reads the lines between `Input parameters:` and the next part; `None` when there is no time span.
///
/// What is not understood becomes a note: the results are worth more than the profile.
pub(super) fn read(
    lines: &[Line<'_>],
    drops_zeros: bool,
    notes: &mut Vec<String>,
) -> Option<RawProfile> {
    let mut reader = Reader { profile: RawProfile::default(), drops_zeros, is_rounded: false };
    let mut strange = Vec::new();
    let input = lines.iter().skip_while(|line| line.text != "Input parameters:").skip(1);
    for line in input {
        let text = line.text.trim();
        if !text.is_empty() && reader.line(text).is_none() {
            strange.push(format!("line {} of the profile was not understood: {text}", line.number));
        }
    }
    let more = strange.len().saturating_sub(NOTES_MAX);
    notes.extend(strange.into_iter().take(NOTES_MAX));
    if more > 0 {
        notes.push(format!("{more} more lines of the profile were not understood"));
    }
    if reader.is_rounded {
        notes.push("sizes of the profile are rounded to two decimals".to_owned());
    }
    (!reader.profile.time_spans.is_empty()).then_some(reader.profile)
}

struct Reader {
    profile: RawProfile,
    drops_zeros: bool,
    is_rounded: bool,
}

impl Reader {
    /// Takes over one line; `None` when it is not understood.
    fn line(&mut self, text: &str) -> Option<()> {
        if text == "using verbose mode" {
            self.profile.verbose = true;
            return Some(());
        }
        if text.starts_with("timespan:") {
            self.profile.time_spans.push(TimeSpan::default());
            return Some(());
        }
        if let Some(path) = text.strip_prefix("path: ") {
            let template = path.strip_prefix("template target ");
            let path = quoted(template.unwrap_or(path))?;
            let path = if template.is_some() { format!("*{path}") } else { path.to_owned() };
            let targets = &mut self.profile.time_spans.last_mut()?.targets;
            targets.push(Target { path, ..Target::default() });
            return Some(());
        }
        if self.profile.time_spans.last()?.targets.is_empty() {
            self.span_line(text)
        } else {
            self.target_line(text)
        }
    }

    /// A line of a time span before its first target.
    fn span_line(&mut self, text: &str) -> Option<()> {
        let span = self.profile.time_spans.last_mut()?;
        match text {
            "affinity disabled" => span.disable_affinity = true,
            "measuring latency" => span.measure_latency = true,
            "generating random data for each write IO" => span.random_write_data = true,
            _ if text.starts_with("WARNING: this increases the CPU cost")
                || text.starts_with("be compared to other results")
                || text.bytes().all(|byte| byte == b'-') => {}
            _ => {
                let (key, value) = text.split_once(':').unwrap_or((text, ""));
                self.span_value(key, value.trim())?;
            }
        }
        Some(())
    }

    fn span_value(&mut self, key: &str, value: &str) -> Option<()> {
        let span = self.profile.time_spans.last_mut()?;
        let seconds = || value.strip_suffix('s')?.parse().ok();
        match key {
            "duration" => span.duration = seconds()?,
            "warm up time" => span.warmup = seconds()?,
            "cool down time" => span.cooldown = seconds()?,
            "random seed" => span.rand_seed = value.parse().ok()?,
            "number of outstanding I/O operations per thread" => {
                span.request_count = value.parse().ok()?;
            }
            "affinity assignment" => span.affinity_traversal = Some(assignment(value)?),
            "advanced affinity round robin (group/core)" => {
                span.affinity = value.split(", ").map(processor).collect::<Option<_>>()?;
            }
            "affinity (cpu)" => span.affinity = processors(0, value)?,
            "affinity (group/cpu)" => {
                for part in value.split_ascii_whitespace().take(PROCESSORS_MAX) {
                    let (group, list) = part.split_once('/')?;
                    span.affinity.extend(processors(group.parse().ok()?, list)?);
                }
            }
            // 2.3 always names the default, Plumb what was given.
            "buffer separation" if value.starts_with("thread optimized") => {
                let given = (!self.drops_zeros).then_some(BufferSeparation::PdeCacheLine);
                span.buffer_separation = given;
            }
            "buffer separation" if value == "system default" => {
                span.buffer_separation = Some(BufferSeparation::SystemDefault);
            }
            "completion depth" => span.completion_depth = Some(value.parse().ok()?),
            "using IoRing (batch size" => span.io_ring = Some(ring(value)?),
            _ if let Some(interval) = within(key, "gathering IOPS at intervals of ", "ms") => {
                span.calculate_iops_std_dev = true;
                span.io_bucket_duration = interval.parse().ok()?;
            }
            _ if let Some(threads) = within(key, "thread pool with ", " threads") => {
                span.thread_count = threads.parse().ok()?;
            }
            _ => return None,
        }
        Some(())
    }

    /// A line of a target after its path.
    fn target_line(&mut self, text: &str) -> Option<()> {
        let span = self.profile.time_spans.last_mut()?;
        let target = span.targets.last_mut()?;
        match text {
            "using software cache" => target.cache = CacheMode::Cached,
            "local software cache disabled, remote cache enabled" => {
                target.cache = CacheMode::NoLocalCache;
            }
            "software cache disabled" => target.cache = CacheMode::NoOsCache,
            "using hardware write cache, writethrough off" => target.write_through = false,
            "hardware and software write caches disabled, writethrough on"
            | "hardware write cache disabled, writethrough on" => target.write_through = true,
            "using BypassIO (allow partial)" => target.bypass_io = Some(BypassIo::Partial),
            "using BypassIO (full bypass)" => target.bypass_io = Some(BypassIo::Full),
            "zeroing write buffers" => target.write_content = WriteContent::Zero,
            "using parallel async I/O" => target.parallel_async = true,
            "performing read test" => target.write_ratio = 0,
            "performing write test" => target.write_ratio = 100,
            "using FILE_FLAG_SEQUENTIAL_SCAN hint" => target.sequential_scan = true,
            "using FILE_FLAG_RANDOM_ACCESS hint" => target.random_access = true,
            "using FILE_ATTRIBUTE_TEMPORARY hint" => target.temporary_file = true,
            "using completion routines (ReadFileEx/WriteFileEx)" => {
                span.completion_routines = true;
            }
            "using I/O Completion Ports" | "IO Distribution:" => {}
            _ if let Some(flush) = text.strip_prefix("memory mapped I/O enabled") => {
                target.memory_mapped = true;
                target.flush = self::flush(flush)?;
            }
            _ if text.contains("% of IO => [") => return range(text, self.drops_zeros, target),
            _ => return self.target_value(text),
        }
        Some(())
    }

    fn target_value(&mut self, text: &str) -> Option<()> {
        let drops_zeros = self.drops_zeros;
        let mut size = |text: &str| -> Option<u64> {
            let ImportedSize { bytes, exact } = sizes::size(text, drops_zeros)?;
            self.is_rounded |= !exact;
            Some(bytes)
        };
        let target = self.profile.time_spans.last_mut()?.targets.last_mut()?;
        if let Some(ratio) = within(text, "performing mix test (read/write ratio: ", ")") {
            target.write_ratio = ratio.split_once('/')?.1.parse().ok()?;
        } else if let Some(alignment) = within(text, "using random I/O (alignment: ", ")") {
            (target.random_ratio, target.alignment) = (100, size(alignment)?);
        } else if let Some(mixed) = within(text, "using mixed random/sequential I/O (", ")") {
            let (ratio, alignment) = mixed.split_once("% random) (alignment/stride: ")?;
            (target.random_ratio, target.alignment) = (ratio.parse().ok()?, size(alignment)?);
        } else if let Some(stride) = within(text, "using sequential I/O (stride: ", ")") {
            target.alignment = size(stride)?;
        } else if let Some(stride) = within(text, "using interlocked sequential I/O (stride: ", ")")
        {
            (target.interlocked, target.alignment) = (true, size(stride)?);
        } else if let Some(limit) = text.strip_prefix("throughput rate-limited to ") {
            let (value, unit) = limit.split_once(' ')?;
            let unit = match unit {
                "IOPS" => ThroughputUnit::Iops,
                "B/ms" => ThroughputUnit::BytesPerMilli,
                _ => return None,
            };
            target.throughput = Throughput { value: value.parse().ok()?, unit };
        } else {
            let (key, value) = text.split_once(": ")?;
            match key {
                "think time" => target.think_time = value.strip_suffix("ms")?.parse().ok()?,
                "burst size" => target.burst_size = value.parse().ok()?,
                "block size" => {
                    target.block_size = u32::try_from(size(value)?).ok()?;
                }
                "write buffer size" => {
                    target.write_content = WriteContent::Random { size: size(value)?, file: None };
                }
                "write buffer source" => source(value, &mut target.write_content)?,
                "number of outstanding I/O operations per thread" => {
                    target.request_count = value.parse().ok()?;
                }
                "relative IO weight in thread pool" => target.weight = value.parse().ok()?,
                "base file offset" => target.base_file_offset = size(value)?,
                "max file size" => target.max_file_size = size(value)?,
                "thread stride size" => target.thread_stride = size(value)?,
                "threads per file" => target.threads_per_file = value.parse().ok()?,
                "IO priority" => {
                    target.io_priority = match value {
                        "very low" => 1,
                        "low" => 2,
                        "normal" => 3,
                        _ => return None,
                    };
                }
                _ => return None,
            }
        }
        Some(())
    }
}

/// What stands between a prefix and a suffix.
fn within<'a>(text: &'a str, prefix: &str, suffix: &str) -> Option<&'a str> {
    text.strip_prefix(prefix)?.strip_suffix(suffix)
}

fn quoted(text: &str) -> Option<&str> {
    within(text, "'", "'")
}

/// `0/3` or `1/*`.
fn processor(text: &str) -> Option<AffinityEntry> {
    let (group, processor) = text.trim().split_once('/')?;
    let processor = match processor {
        "*" => None,
        number => Some(number.parse().ok()?),
    };
    Some(AffinityEntry { group: group.parse().ok()?, processor })
}

/// `0-3,7` or `*`, as 2.3 writes them.
fn processors(group: u16, list: &str) -> Option<Vec<AffinityEntry>> {
    let mut entries = Vec::new();
    for item in list.split(',').map(str::trim) {
        if item == "*" {
            entries.push(AffinityEntry { group, processor: None });
            continue;
        }
        let (first, last) = item.split_once('-').unwrap_or((item, item));
        let (first, last): (u8, u8) = (first.parse().ok()?, last.parse().ok()?);
        let of = |processor| AffinityEntry { group, processor: Some(processor) };
        entries.extend((first..=last).map(of));
        if entries.len() > PROCESSORS_MAX {
            return None;
        }
    }
    Some(entries)
}

fn assignment(text: &str) -> Option<AffinityTraversal> {
    let mut parts = text.split(", ");
    let order = match parts.next()? {
        "cpu order" => ProcessorOrder::Cpu,
        "core-aware" | "core-aware order" => ProcessorOrder::CoreAware,
        _ => return None,
    };
    let group = match parts.next()? {
        "fill groups" => GroupOrder::Fill,
        "span groups" => GroupOrder::Span,
        _ => return None,
    };
    let efficiency = match parts.next()? {
        "P-cores first" => EfficiencyOrder::PFirst,
        "E-cores first" => EfficiencyOrder::EFirst,
        "fill P-cores first" => EfficiencyOrder::FillPFirst,
        "fill E-cores first" => EfficiencyOrder::FillEFirst,
        "no P/E order" => EfficiencyOrder::Unordered,
        _ => return None,
    };
    Some(AffinityTraversal { order, group, efficiency })
}

/// `25%) with registered buffers`
fn ring(text: &str) -> Option<IoRing> {
    let (size, rest) = text.split_once(") ")?;
    let batch = match size.strip_suffix('%') {
        Some(percent) => RingBatch::Percent(percent.parse().ok()?),
        None => RingBatch::Ios(size.parse().ok()?),
    };
    let registered_buffers = match rest {
        "with registered buffers" => true,
        "without registered buffers" => false,
        _ => return None,
    };
    Some(IoRing { batch, registered_buffers })
}

fn flush(text: &str) -> Option<Option<FlushType>> {
    if text.is_empty() {
        return Some(None);
    }
    match text.strip_prefix(", flush mode: ")? {
        "FlushViewOfFile" => Some(Some(FlushType::ViewOfFile)),
        "FlushNonVolatileMemory" => Some(Some(FlushType::NonVolatileMemory)),
        "FlushNonVolatileMemory with no drain" => Some(Some(FlushType::NonVolatileMemoryNoDrain)),
        _ => None,
    }
}

fn source(text: &str, content: &mut WriteContent) -> Option<()> {
    let WriteContent::Random { file, .. } = content else { return None };
    *file = match text {
        "random fill" => None,
        path => Some(quoted(path)?.to_owned()),
    };
    Some(())
}

/// `10% of IO => [ 0% -  10%) of target` or `10% of IO => [     0    -      1GiB)`.
fn range(text: &str, drops_zeros: bool, target: &mut Target) -> Option<()> {
    let (io, range) = text.split_once("% of IO => [")?;
    let io = io.trim().parse().ok()?;
    let (kind, range) = match range.strip_suffix(") of target") {
        Some(range) => (DistributionKind::Percent, range),
        None => (DistributionKind::Absolute, range.strip_suffix(')')?),
    };
    let (from, to) = range.split_once(" - ")?;
    let place = |text: &str| match kind {
        DistributionKind::Percent => text.trim().strip_suffix('%')?.parse::<u64>().ok(),
        DistributionKind::Absolute => sizes::size(text, drops_zeros).map(|size| size.bytes),
    };
    let size = match to.trim() {
        "end" => 0,
        to => place(to)?.checked_sub(place(from)?)?,
    };
    let distribution = target.distribution.get_or_insert(Distribution { kind, ranges: Vec::new() });
    distribution.ranges.push(DistributionRange { io, size });
    Some(())
}
