//! Reads a target of a profile.

use super::element::{Element, Fields, Shape};
use super::read::Meaning;
use crate::profile::distribution::with_tail;
use crate::profile::error::{ErrorClass, Violation};
use crate::profile::model::{
    BypassIo, CacheMode, Distribution, DistributionKind, DistributionRange, FlushType, Target,
    ThreadTarget, Throughput, ThroughputUnit, WriteContent,
};

const TARGET: Shape = Shape {
    children: &[
        "Path",
        "BlockSize",
        "StrideSize",
        "Random",
        "RandomRatio",
        "InterlockedSequential",
        "BaseFileOffset",
        "MaxFileSize",
        "FileSize",
        "RequestCount",
        "ThreadsPerFile",
        "ThreadStride",
        "WriteRatio",
        "Throughput",
        "BurstSize",
        "ThinkTime",
        "SequentialScan",
        "RandomAccess",
        "TemporaryFile",
        "UseLargePages",
        "DisableAllCache",
        "DisableLocalCache",
        "DisableOSCache",
        "WriteThrough",
        "MemoryMappedIo",
        "FlushType",
        "BypassIO",
        "WriteBufferContent",
        "ParallelAsyncIO",
        "IOPriority",
        "Weight",
        "Distribution",
        "ThreadTargets",
    ],
    required: &["Path"],
};

const WRITE_BUFFER_CONTENT: Shape =
    Shape { children: &["Pattern", "RandomDataSource"], required: &["Pattern"] };

const RANDOM_DATA_SOURCE: Shape =
    Shape { children: &["SizeInBytes", "FilePath"], required: &["SizeInBytes"] };

const THREAD_TARGET: Shape = Shape { children: &["Thread", "Weight"], required: &["Thread"] };

/// Reads a target.
pub(super) fn target(element: Element<'_>, meaning: &mut Meaning) -> Result<Target, Violation> {
    let fields = element.fields(&TARGET)?;
    let mut target = Target::default();
    if let Some(child) = fields.get("Path") {
        target.path = child.plain()?.into_owned();
    }
    fields.u32("BlockSize", &mut target.block_size)?;
    fields.boolean("InterlockedSequential", &mut target.interlocked)?;
    fields.u64("BaseFileOffset", &mut target.base_file_offset)?;
    fields.u64("MaxFileSize", &mut target.max_file_size)?;
    if fields.get("FileSize").is_some() {
        fields.u64("FileSize", target.file_size.insert(0))?;
    }
    fields.u32("RequestCount", &mut target.request_count)?;
    fields.u32("ThreadsPerFile", &mut target.threads_per_file)?;
    fields.u64("ThreadStride", &mut target.thread_stride)?;
    fields.integer("WriteRatio", (0, 100), &mut target.write_ratio)?;
    fields.u32("BurstSize", &mut target.burst_size)?;
    fields.u32("ThinkTime", &mut target.think_time)?;
    fields.boolean("SequentialScan", &mut target.sequential_scan)?;
    fields.boolean("RandomAccess", &mut target.random_access)?;
    fields.boolean("TemporaryFile", &mut target.temporary_file)?;
    fields.boolean("UseLargePages", &mut target.use_large_pages)?;
    fields.boolean("MemoryMappedIo", &mut target.memory_mapped)?;
    fields.boolean("ParallelAsyncIO", &mut target.parallel_async)?;
    fields.u32("IOPriority", &mut target.io_priority)?;
    fields.u32("Weight", &mut target.weight)?;
    target.flush = fields.word(
        "FlushType",
        &[
            ("ViewOfFile", FlushType::ViewOfFile),
            ("NonVolatileMemory", FlushType::NonVolatileMemory),
            ("NonVolatileMemoryNoDrain", FlushType::NonVolatileMemoryNoDrain),
        ],
    )?;
    let modes = [("Partial", BypassIo::Partial), ("Full", BypassIo::Full)];
    target.bypass_io = fields.word("BypassIO", &modes)?;
    cache(&fields, &mut target)?;
    alignment(element, &fields, &mut target, meaning)?;
    if let Some(child) = fields.get("Throughput") {
        target.throughput = throughput(child)?;
    }
    if let Some(child) = fields.get("WriteBufferContent") {
        target.write_content = write_content(child)?;
    }
    if let Some(child) = fields.get("Distribution") {
        target.distribution = Some(distribution(child)?);
    }
    if let Some(child) = fields.get("ThreadTargets") {
        target.thread_targets = child
            .sequence("ThreadTarget")?
            .into_iter()
            .map(thread_target)
            .collect::<Result<_, _>>()?;
    }
    if !(1..=3).contains(&target.io_priority) {
        let child = fields.get("IOPriority").unwrap_or(element);
        meaning.lacks(|| {
            child.violation(
                ErrorClass::Priority,
                format!("<IOPriority> {}", target.io_priority),
                "1 is very low, 2 low, 3 normal",
            )
        });
    }
    Ok(target)
}

/// Cache elements act only when true, later ones over earlier ones (spec 5.2).
fn cache(fields: &Fields<'_>, target: &mut Target) -> Result<(), Violation> {
    let (mut os, mut all, mut local) = (false, false, false);
    fields.boolean("DisableOSCache", &mut os)?;
    fields.boolean("DisableAllCache", &mut all)?;
    fields.boolean("DisableLocalCache", &mut local)?;
    fields.boolean("WriteThrough", &mut target.write_through)?;
    target.write_through |= all;
    target.cache = match (local, os || all) {
        (true, _) => CacheMode::NoLocalCache,
        (false, true) => CacheMode::NoOsCache,
        (false, false) => CacheMode::Cached,
    };
    Ok(())
}

/// Stride, alignment and the share of random I/O; 0 bytes stand for the block size (spec 5.2).
fn alignment(
    element: Element<'_>,
    fields: &Fields<'_>,
    target: &mut Target,
    meaning: &mut Meaning,
) -> Result<(), Violation> {
    let (stride, random) = (fields.get("StrideSize"), fields.get("Random"));
    let mut bytes = 0;
    fields.u64("StrideSize", &mut bytes)?;
    fields.u64("Random", &mut bytes)?;
    target.random_ratio = if random.is_some() { 100 } else { 0 };
    fields.integer("RandomRatio", (1, 99), &mut target.random_ratio)?;
    if stride.is_some() && target.random_ratio > 0 {
        let other = if random.is_some() { "Random" } else { "RandomRatio" };
        meaning.lacks(|| {
            element.violation(
                ErrorClass::SeqRandConflict,
                format!("<StrideSize> and <{other}> in one target"),
                "StrideSize makes it sequential: the alignment of random and mixed I/O is <Random>",
            )
        });
    }
    if target.block_size == 0 {
        let child = fields.get("BlockSize").unwrap_or(element);
        meaning.lacks(|| {
            child.violation(ErrorClass::BlockSize, "<BlockSize> is 0", "let it be 1 or more")
        });
    }
    target.alignment = if bytes > 0 { bytes } else { target.block_size.into() };
    Ok(())
}

fn throughput(element: Element<'_>) -> Result<Throughput, Violation> {
    let attributes = element.attributes(&["unit"], &[])?;
    let value = element.integer(&element.text()?, (0, u32::MAX))?;
    let units = [("BPMS", ThroughputUnit::BytesPerMilli), ("IOPS", ThroughputUnit::Iops)];
    Ok(Throughput { value, unit: attributes.word("unit", &units)?.unwrap_or_default() })
}

/// Random content without a source is sequential; a source beside another pattern is ignored.
fn write_content(element: Element<'_>) -> Result<WriteContent, Violation> {
    let fields = element.fields(&WRITE_BUFFER_CONTENT)?;
    #[derive(Clone, Copy)]
    enum Pattern {
        Sequential,
        Zero,
        Random,
    }
    let pattern = fields.word(
        "Pattern",
        &[
            ("sequential", Pattern::Sequential),
            ("zero", Pattern::Zero),
            ("random", Pattern::Random),
        ],
    )?;
    let source = fields.get("RandomDataSource").map(random_source).transpose()?;
    Ok(match (pattern, source) {
        (Some(Pattern::Zero), _) => WriteContent::Zero,
        (Some(Pattern::Random), Some(source)) => source,
        _ => WriteContent::Sequential,
    })
}

fn random_source(element: Element<'_>) -> Result<WriteContent, Violation> {
    let fields = element.fields(&RANDOM_DATA_SOURCE)?;
    let mut size = 0;
    fields.u64("SizeInBytes", &mut size)?;
    let path = fields.get("FilePath").map(Element::plain).transpose()?;
    let file = path.filter(|path| !path.is_empty()).map(std::borrow::Cow::into_owned);
    Ok(WriteContent::Random { size, file })
}

fn distribution(element: Element<'_>) -> Result<Distribution, Violation> {
    element.attributes(&[], &[])?;
    let children = element.children(&["Percent", "Absolute"])?;
    let [child] = children.as_slice() else {
        return Err(element.violation(
            ErrorClass::Schema,
            format!("<Distribution> holds {} elements", children.len()),
            "it holds exactly one Percent or Absolute",
        ));
    };
    let (kind, sizes) = match child.name() {
        "Percent" => (DistributionKind::Percent, (1, 100)),
        _ => (DistributionKind::Absolute, (0, u64::MAX)),
    };
    let mut ranges = Vec::new();
    for range in child.sequence("Range")? {
        let attributes = range.attributes(&["IO"], &["IO"])?;
        let io = range.integer(attributes.get("IO").unwrap_or_default(), (0, 100))?;
        let size = range.integer(&range.text()?, sizes)?;
        ranges.push(DistributionRange { io, size });
    }
    Ok(Distribution { kind, ranges: with_tail(kind, ranges) })
}

fn thread_target(element: Element<'_>) -> Result<ThreadTarget, Violation> {
    let fields = element.fields(&THREAD_TARGET)?;
    let mut thread_target = ThreadTarget { thread: 0, weight: 0 };
    fields.u32("Thread", &mut thread_target.thread)?;
    fields.u32("Weight", &mut thread_target.weight)?;
    Ok(thread_target)
}
