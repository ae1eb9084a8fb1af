//! Reads a profile: the schema is checked first and throughout, meanings after it.

use super::document::{self, Limits, Refused};
use super::element::{BLANKS, Element, Shape, quoted};
use super::read_target;
use crate::profile::error::{ErrorClass, Violation};
use crate::profile::model::{
    AffinityEntry, AffinityTraversal, BufferSeparation, EfficiencyOrder, Etw, GroupOrder, IoRing,
    PrecreateFiles, ProcessorOrder, RawProfile, ResultFormat, RingBatch, TimeSpan,
};

/// No profile is larger.
const LIMITS: Limits = Limits { bytes: 16 << 20, nodes: 1 << 20 };

const PROFILE: Shape = Shape {
    children: &[
        "Verbose",
        "VerboseStats",
        "Progress",
        "ExperimentFlags",
        "ResultFormat",
        "ETW",
        "PrecreateFiles",
        "TimeSpans",
    ],
    required: &["TimeSpans"],
};

const TIME_SPAN: Shape = Shape {
    children: &[
        "Duration",
        "Warmup",
        "Cooldown",
        "RandSeed",
        "ThreadCount",
        "RequestCount",
        "IoBucketDuration",
        "RandomWriteData",
        "GroupAffinity",
        "DisableAffinity",
        "CompletionRoutines",
        "MeasureLatency",
        "CalculateIopsStdDev",
        "Affinity",
        "AffinityTraversal",
        "BufferSeparation",
        "CompletionDepth",
        "IoRing",
        "Targets",
    ],
    required: &["Targets"],
};

const ETW: Shape = Shape {
    children: &[
        "Process",
        "Thread",
        "ImageLoad",
        "DiskIO",
        "MemoryPageFaults",
        "MemoryHardFaults",
        "Network",
        "Registry",
        "UsePagedMemory",
        "UsePerfTimer",
        "UseSystemTimer",
        "UseCyclesCounter",
    ],
    required: &[],
};

const IO_RING: Shape = Shape { children: &["IoRingBatchSize", "UseRegBuffer"], required: &[] };

/// The first thing that has no meaning although the schema allows it. The schema of the whole
/// document comes first, as a validating parser's does.
pub(super) struct Meaning(Option<Violation>);

impl Meaning {
    /// Notes a violation unless there is one.
    pub(super) fn lacks(&mut self, violation: impl FnOnce() -> Violation) {
        self.0.get_or_insert_with(violation);
    }
}

/// The text of a profile file: UTF-8, or UTF-16 with a byte order mark.
///
/// # Errors
/// Class `not-well-formed`: the bytes are neither.
pub fn decode(bytes: &[u8]) -> Result<String, Violation> {
    let text = match bytes {
        [0xff, 0xfe, rest @ ..] => utf16(rest, u16::from_le_bytes),
        [0xfe, 0xff, rest @ ..] => utf16(rest, u16::from_be_bytes),
        _ => std::str::from_utf8(bytes).ok().map(str::to_owned),
    };
    text.ok_or_else(|| Violation {
        class: ErrorClass::NotWellFormed,
        message: "the profile is no text in UTF-8 or UTF-16".to_owned(),
        help: "save it as UTF-8".to_owned(),
    })
}

fn utf16(bytes: &[u8], unit: fn([u8; 2]) -> u16) -> Option<String> {
    let (pairs, rest) = bytes.as_chunks::<2>();
    let units: Vec<u16> = pairs.iter().copied().map(unit).collect();
    if rest.is_empty() { String::from_utf16(&units).ok() } else { None }
}

/// Reads a profile. Semantic rules are [`RawProfile::check`]'s.
///
/// # Errors
/// The first thing that is wrong with the document: class `not-well-formed`, `schema`, or the class of
/// the element concerned.
pub fn read(document: &str) -> Result<RawProfile, Violation> {
    let text = document.strip_prefix('\u{feff}').unwrap_or(document);
    let document = document::parse(text, LIMITS).map_err(|why| refused(&why))?;
    let root = Element::new(document.root_element());
    if root.name() != "Profile" || document.root_element().tag_name().namespace().is_some() {
        return Err(root.violation(
            ErrorClass::Schema,
            format!("the root element is <{}>", root.name()),
            "a profile is one <Profile> without a namespace",
        ));
    }
    let mut meaning = Meaning(None);
    let profile = profile(root, &mut meaning)?;
    match meaning.0 {
        None => Ok(profile),
        Some(violation) => Err(violation),
    }
}

/// Whether each target of each time span says its `RequestCount`, in a document that [`read`] takes; nothing of others.
#[must_use]
pub fn says_requests(document: &str) -> Vec<Vec<bool>> {
    let text = document.strip_prefix('\u{feff}').unwrap_or(document);
    let Ok(document) = document::parse(text, LIMITS) else { return Vec::new() };
    let spans = document.descendants().filter(|node| node.has_tag_name("TimeSpan"));
    let targets = spans.map(|span| {
        let targets = span.descendants().filter(|node| node.has_tag_name("Target"));
        let says = |target: roxmltree::Node<'_, '_>| {
            target.children().any(|child| child.has_tag_name("RequestCount"))
        };
        targets.map(says).collect::<Vec<bool>>()
    });
    targets.collect()
}

fn refused(refused: &Refused) -> Violation {
    let (class, help) = match refused {
        Refused::TooLarge(_) => (ErrorClass::XmlLoad, "no profile is that large: is it one?"),
        Refused::DocumentType(_) => {
            (ErrorClass::Schema, "remove it: profiles have no document type")
        }
        Refused::NotWellFormed(..) => (ErrorClass::NotWellFormed, "mend the document"),
    };
    Violation { class, message: refused.to_string(), help: help.to_owned() }
}

fn profile(element: Element<'_>, meaning: &mut Meaning) -> Result<RawProfile, Violation> {
    let fields = element.fields(&PROFILE)?;
    let mut profile = RawProfile::default();
    fields.boolean("Verbose", &mut profile.verbose)?;
    fields.boolean("VerboseStats", &mut profile.verbose_stats)?;
    fields.u32("Progress", &mut profile.progress)?;
    fields.u32("ExperimentFlags", &mut profile.experiment_flags)?;
    let formats = [("text", ResultFormat::Text), ("xml", ResultFormat::Xml)];
    profile.result_format = fields.word("ResultFormat", &formats)?.unwrap_or_default();
    profile.precreate = fields.word(
        "PrecreateFiles",
        &[
            ("UseMaxSize", PrecreateFiles::UseMaxSize),
            ("CreateOnlyFilesWithConstantSizes", PrecreateFiles::OnlyConstantSizes),
            ("CreateOnlyFilesWithConstantOrZeroSizes", PrecreateFiles::OnlyConstantOrZeroSizes),
        ],
    )?;
    if let Some(child) = fields.get("ETW") {
        profile.etw = etw(child)?;
    }
    if let Some(child) = fields.get("TimeSpans") {
        for span in child.sequence("TimeSpan")? {
            profile.time_spans.push(time_span(span, meaning)?);
        }
    }
    Ok(profile)
}

/// Any child switches tracing on, even with the value false; an empty element does not (spec 5.2).
fn etw(element: Element<'_>) -> Result<Option<Etw>, Violation> {
    let fields = element.fields(&ETW)?;
    let mut etw = Etw::default();
    for (name, value) in [
        ("Process", &mut etw.process),
        ("Thread", &mut etw.thread),
        ("ImageLoad", &mut etw.image_load),
        ("DiskIO", &mut etw.disk_io),
        ("MemoryPageFaults", &mut etw.memory_page_faults),
        ("MemoryHardFaults", &mut etw.memory_hard_faults),
        ("Network", &mut etw.network),
        ("Registry", &mut etw.registry),
        ("UsePagedMemory", &mut etw.use_paged_memory),
        ("UsePerfTimer", &mut etw.use_perf_timer),
        ("UseSystemTimer", &mut etw.use_system_timer),
        ("UseCyclesCounter", &mut etw.use_cycles_counter),
    ] {
        fields.boolean(name, value)?;
    }
    let given = ETW.children.iter().any(|name| fields.get(name).is_some());
    Ok(given.then_some(etw))
}

fn time_span(element: Element<'_>, meaning: &mut Meaning) -> Result<TimeSpan, Violation> {
    let fields = element.fields(&TIME_SPAN)?;
    let mut span = TimeSpan::default();
    fields.u32("Duration", &mut span.duration)?;
    fields.u32("Warmup", &mut span.warmup)?;
    fields.u32("Cooldown", &mut span.cooldown)?;
    fields.u32("RandSeed", &mut span.rand_seed)?;
    fields.u32("ThreadCount", &mut span.thread_count)?;
    fields.u32("RequestCount", &mut span.request_count)?;
    fields.u32("IoBucketDuration", &mut span.io_bucket_duration)?;
    fields.boolean("RandomWriteData", &mut span.random_write_data)?;
    fields.boolean("GroupAffinity", &mut false)?;
    fields.boolean("DisableAffinity", &mut span.disable_affinity)?;
    fields.boolean("CompletionRoutines", &mut span.completion_routines)?;
    fields.boolean("MeasureLatency", &mut span.measure_latency)?;
    fields.boolean("CalculateIopsStdDev", &mut span.calculate_iops_std_dev)?;
    if let Some(child) = fields.get("Affinity") {
        span.affinity = affinity(child, meaning)?;
    }
    if let Some(child) = fields.get("AffinityTraversal") {
        span.affinity_traversal = Some(traversal(child)?);
    }
    let separations = [
        ("SystemDefault", BufferSeparation::SystemDefault),
        ("PDECacheLine", BufferSeparation::PdeCacheLine),
    ];
    span.buffer_separation = fields.word("BufferSeparation", &separations)?;
    if fields.get("CompletionDepth").is_some() {
        fields.u32("CompletionDepth", span.completion_depth.insert(0))?;
    }
    if let Some(child) = fields.get("IoRing") {
        span.io_ring = Some(io_ring(child, meaning)?);
    }
    if let Some(child) = fields.get("Targets") {
        for target in child.sequence("Target")? {
            span.targets.push(read_target::target(target, meaning)?);
        }
    }
    Ok(span)
}

/// One of three forms: processors of group 0, (group, processor) pairs, or masks per group.
fn affinity(element: Element<'_>, meaning: &mut Meaning) -> Result<Vec<AffinityEntry>, Violation> {
    element.attributes(&[], &[])?;
    let children = element.children(&["AffinityAssignment", "AffinityGroupAssignment", "Group"])?;
    let kind = children.first().map(|first| first.name());
    if kind.is_none() || children.iter().any(|child| Some(child.name()) != kind) {
        return Err(element.violation(
            ErrorClass::Schema,
            "<Affinity> holds assignments of one kind, and at least one",
            "use only AffinityAssignment, only AffinityGroupAssignment or only Group",
        ));
    }
    let mut entries = Vec::new();
    for child in children {
        match child.name() {
            "AffinityAssignment" => {
                let processor = child.integer(&child.plain()?, (0, u32::MAX))?;
                entries.push(processor_of(child, 0, processor, meaning));
            }
            "AffinityGroupAssignment" => {
                let attributes = child.attributes(&["Group", "Processor"], &[])?;
                child.children(&[])?;
                let number = |name| match attributes.get(name) {
                    Some(text) => child.integer(text, (0, u32::MAX)),
                    None => Ok(0),
                };
                entries.push(processor_of(child, number("Group")?, number("Processor")?, meaning));
            }
            _ => masked(child, &mut entries, meaning)?,
        }
    }
    Ok(entries)
}

/// Processors are 0 to 255, groups 0 to 65535 (D-07, D-26).
fn processor_of(
    element: Element<'_>,
    group: u32,
    processor: u32,
    meaning: &mut Meaning,
) -> AffinityEntry {
    let (number, group_number) = (u8::try_from(processor), u16::try_from(group));
    if number.is_err() || group_number.is_err() {
        meaning.lacks(|| {
            element.violation(
                ErrorClass::Affinity,
                format!("processor {processor} of group {group} in <{}>", element.name()),
                "processors are numbered 0 to 255, groups 0 to 65535",
            )
        });
    }
    AffinityEntry { group: group_number.unwrap_or(0), processor: Some(number.unwrap_or(0)) }
}

/// A group and a mask of its processors, low bits first; 0 stands for all of them (spec 15.9).
fn masked(
    element: Element<'_>,
    entries: &mut Vec<AffinityEntry>,
    meaning: &mut Meaning,
) -> Result<(), Violation> {
    let attributes = element.attributes(&["Group", "Mask"], &["Group", "Mask"])?;
    element.children(&[])?;
    let group_text = attributes.get("Group").unwrap_or_default();
    let mask_text = attributes.get("Mask").unwrap_or_default();
    let group = u16::try_from(element.integer(group_text, (0, u32::MAX))?).ok();
    let (Some(group), Some(mask)) = (group, mask(mask_text)) else {
        meaning.lacks(|| {
            element.violation(
                ErrorClass::Affinity,
                format!("group {} with mask {}", quoted(group_text), quoted(mask_text)),
                "groups are numbered 0 to 65535; a mask is a number of 64 bits: 0x and hexadecimal \
                 digits, 0 and octal ones, or a decimal number",
            )
        });
        return Ok(());
    };
    if mask == 0 {
        entries.push(AffinityEntry { group, processor: None });
    }
    let set = (0_u8..64).filter(|bit| mask >> bit & 1 == 1);
    entries.extend(set.map(|bit| AffinityEntry { group, processor: Some(bit) }));
    Ok(())
}

/// `0x` hexadecimal, leading `0` octal, else decimal; no sign.
fn mask(text: &str) -> Option<u64> {
    let text = text.trim_matches(BLANKS);
    let (digits, radix) = match text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")) {
        Some(hexadecimal) => (hexadecimal, 16),
        None if text.starts_with('0') => (text, 8),
        None => (text, 10),
    };
    if !digits.bytes().all(|byte| byte.is_ascii_hexdigit()) {
        return None;
    }
    u64::from_str_radix(digits, radix).ok()
}

fn traversal(element: Element<'_>) -> Result<AffinityTraversal, Violation> {
    let attributes = element.attributes(&["Group", "Efficiency"], &[])?;
    let orders = [("CoreAware", ProcessorOrder::CoreAware), ("Cpu", ProcessorOrder::Cpu)];
    let groups = [("Fill", GroupOrder::Fill), ("Span", GroupOrder::Span)];
    let efficiencies = [
        ("Unordered", EfficiencyOrder::Unordered),
        ("PFirst", EfficiencyOrder::PFirst),
        ("EFirst", EfficiencyOrder::EFirst),
        ("FillPFirst", EfficiencyOrder::FillPFirst),
        ("FillEFirst", EfficiencyOrder::FillEFirst),
    ];
    Ok(AffinityTraversal {
        order: element.word(&orders)?,
        group: attributes.word("Group", &groups)?.unwrap_or_default(),
        efficiency: attributes.word("Efficiency", &efficiencies)?.unwrap_or_default(),
    })
}

/// Present, even empty, is on (spec 15.9); without `Percent` the batch is in percent (15.12).
fn io_ring(element: Element<'_>, meaning: &mut Meaning) -> Result<IoRing, Violation> {
    let fields = element.fields(&IO_RING)?;
    let mut ring = IoRing::default();
    fields.boolean("UseRegBuffer", &mut ring.registered_buffers)?;
    if let Some(child) = fields.get("IoRingBatchSize") {
        let attributes = child.attributes(&["Percent"], &[])?;
        let size = child.integer(&child.text()?, (0, u32::MAX))?;
        let percent = attributes.get("Percent").map_or(Ok(true), |text| child.boolean(text))?;
        let limit = if percent { 100 } else { 65536 };
        if !(1..=limit).contains(&size) {
            let unit = if percent { " percent" } else { "" };
            meaning.lacks(|| {
                child.violation(
                    ErrorClass::IoRing,
                    format!("<IoRingBatchSize> of {size}{unit}"),
                    format!("from 1 to {limit}{unit} are possible"),
                )
            });
        }
        ring.batch = if percent { RingBatch::Percent(size) } else { RingBatch::Ios(size) };
    }
    Ok(ring)
}
