//! Reads XML results (spec 8, 15.11).

use std::str::FromStr;

use roxmltree::Node;

use super::error::ImportError;
use super::model::{
    ByDirection, CpuPercents, Figures, ImportedCpu, ImportedResult, ImportedSize, ImportedSpan,
    ImportedSubmission, ImportedTarget, ImportedThread, Interval, IntervalLatency, IoCount,
    LatencyBucket, PowerScheme,
};
use super::repair::escape_stray;
use crate::profile::xml;
use crate::profile::xml::document::{self, Limits, Refused};
use crate::result::model::{Tool, WaitStatistics};

/// The largest document that is read.
const LIMITS: Limits = Limits { bytes: 256 << 20, nodes: 1 << 24 };

/// Reads an XML result. Lines that were printed before it are skipped: progress dots, messages of `-v`,
/// the notice of an interruption.
///
/// # Errors
/// There is no `<Results>`, the document is damaged, or a number in it is none.
pub fn read_xml(text: &str) -> Result<ImportedResult, ImportError> {
    let Some(start) = start(text) else {
        return Err(ImportError::NoResult("no <Results> element".to_owned()));
    };
    let skipped = text[..start].matches('\n').count();
    let text = escape_stray(&text[start..]);
    let document = document::parse(&text, LIMITS).map_err(|refused| match refused {
        Refused::TooLarge(what) => ImportError::NoResult(what),
        Refused::DocumentType(at) => error_at(at, skipped, "a document type declaration"),
        Refused::NotWellFormed(at, what) => error_at(at, skipped, what),
    })?;
    let root = Place { node: document.root_element(), skipped };
    let mut result = ImportedResult::default();
    if let Some(system) = root.child("System") {
        self::system(system, &mut result)?;
    }
    if let Some(profile) = root.child("Profile") {
        match xml::read(&text[profile.node.range()]) {
            Ok(profile) => result.profile = Some(profile),
            Err(violation) => {
                let line = profile.position().row;
                result
                    .notes
                    .push(format!("the profile in line {line} was not read: in it, {violation}"));
            }
        }
    }
    for span in root.children("TimeSpan") {
        result.time_spans.push(time_span(span)?);
    }
    Ok(result)
}

/// Where the document starts: the first line that is `<Results>`, else the first `<Results>` at all.
fn start(text: &str) -> Option<usize> {
    let mut offset = 0;
    for line in text.split_inclusive('\n') {
        if line.trim() == "<Results>" {
            return Some(offset + (line.len() - line.trim_start().len()));
        }
        offset += line.len();
    }
    text.find("<Results>")
}

fn error_at(at: roxmltree::TextPos, skipped: usize, what: impl Into<String>) -> ImportError {
    let skipped = u32::try_from(skipped).unwrap_or(u32::MAX);
    ImportError::Xml { line: at.row.saturating_add(skipped), column: at.col, what: what.into() }
}

/// An element of the document, and the lines before the document.
#[derive(Clone, Copy)]
struct Place<'a> {
    node: Node<'a, 'a>,
    skipped: usize,
}

impl<'a> Place<'a> {
    fn child(self, name: &str) -> Option<Self> {
        self.children(name).next()
    }

    fn children(self, name: &str) -> impl Iterator<Item = Self> {
        let children = self.node.children().filter(move |node| node.has_tag_name(name));
        children.map(move |node| Self { node, ..self })
    }

    fn position(self) -> roxmltree::TextPos {
        self.node.document().text_pos_at(self.node.range().start)
    }

    fn error(self, what: impl Into<String>) -> ImportError {
        error_at(self.position(), self.skipped, what)
    }

    fn text(self) -> &'a str {
        self.node.text().unwrap_or_default().trim()
    }

    fn text_of(self, name: &str) -> Option<String> {
        self.child(name).map(|child| child.text().to_owned())
    }

    /// A child's integer, `None` where there is no such child.
    fn integer<T: FromStr>(self, name: &str) -> Result<Option<T>, ImportError> {
        self.child(name).map(|child| child.parsed(child.text(), name)).transpose()
    }

    /// A child's integer, which must be there.
    fn needed<T: FromStr>(self, name: &str) -> Result<T, ImportError> {
        let owner = self.node.tag_name().name();
        self.integer(name)?.ok_or_else(|| self.error(format!("<{owner}> without <{name}>")))
    }

    /// A child's number, `None` where there is no such child or it is none (`nan`).
    fn float(self, name: &str) -> Result<Option<f64>, ImportError> {
        let Some(child) = self.child(name) else { return Ok(None) };
        child.float_of(child.text(), name)
    }

    /// An attribute's number.
    fn attribute(self, name: &str) -> Result<Option<f64>, ImportError> {
        let Some(text) = self.node.attribute(name) else { return Ok(None) };
        self.float_of(text, name)
    }

    fn float_of(self, text: &str, name: &str) -> Result<Option<f64>, ImportError> {
        // Windows writes what is no number as -nan(ind), older versions as -1.#IND.
        if text.contains('#') {
            return Ok(None);
        }
        let value: f64 = self.parsed(text.split('(').next().unwrap_or_default(), name)?;
        Ok(Some(value).filter(|value| value.is_finite()))
    }

    fn parsed<T: FromStr>(self, text: &str, name: &str) -> Result<T, ImportError> {
        let shown: String = text.chars().take(40).collect();
        text.trim().parse().map_err(|_| self.error(format!("'{shown}' in {name} is no number")))
    }
}

fn system(system: Place<'_>, result: &mut ImportedResult) -> Result<(), ImportError> {
    result.computer_name = system.text_of("ComputerName");
    result.processor_name = system.text_of("ProcessorName");
    result.run_time = system.text_of("RunTime");
    if let Some(tool) = system.child("Tool") {
        let epoch = tool.integer("Epoch")?;
        result.tool = Some(Tool {
            name: if epoch.is_some() { "plumb" } else { "diskspd" }.to_owned(),
            version: tool.text_of("Version").unwrap_or_default(),
            version_date: tool.text_of("VersionDate").unwrap_or_default(),
            epoch,
        });
    }
    let attribute = |place: Place<'_>, name| place.node.attribute(name).unwrap_or("").to_owned();
    result.power_scheme = system
        .child("PowerScheme")
        .map(|scheme| PowerScheme {
            name: attribute(scheme, "Name"),
            guid: attribute(scheme, "Guid"),
        })
        .filter(|scheme| !scheme.name.is_empty() && scheme.name != "<unknown>");
    Ok(())
}

/// Plumb's own elements of how I/Os were handed in.
fn submission(place: Place<'_>) -> Result<Option<ImportedSubmission>, ImportError> {
    let Some(told) = place.child("Plausibility") else { return Ok(None) };
    let Some(own) = told.child("Submission") else { return Ok(None) };
    let word = |place: Place<'_>, name| place.node.attribute(name).unwrap_or("").to_owned();
    let count = |name| {
        let text = own.node.attribute(name);
        text.map(|text| own.parsed(text, name)).transpose()
    };
    let queue = |engine: Place<'_>| {
        let flags = engine.children("Flag").map(|flag| flag.text().to_owned()).collect();
        (word(engine, "Name"), flags)
    };
    let open_loop = match place.child("OpenLoop") {
        Some(open) => open.attribute("Rate")?.map(|rate| (rate, word(open, "Arrival"))),
        None => None,
    };
    // Until it had both, `Profile` was the gathering.
    let (profile, gathering) = match own.node.attribute("Gathering") {
        Some(gathering) => (word(own, "Profile"), gathering.to_owned()),
        None => (String::new(), word(own, "Profile")),
    };
    Ok(Some(ImportedSubmission {
        profile,
        gathering,
        batch: count("Batch")?,
        burst: count("Burst")?,
        queues: told.children("Engine").map(queue).collect(),
        open_loop,
        traced: Some(place.child("Truth").is_some()),
    }))
}

fn time_span(place: Place<'_>) -> Result<ImportedSpan, ImportError> {
    let mut span = ImportedSpan::default();
    if place.child("Error").is_some() {
        return Ok(span);
    }
    let Some(seconds) = place.float("TestTimeSeconds")?.filter(|seconds| *seconds >= 0.0) else {
        return Err(place.error("<TimeSpan> without the seconds of its <TestTimeSeconds>"));
    };
    span.seconds = seconds;
    span.thread_count = place.integer("ThreadCount")?.unwrap_or(0);
    span.request_count = place.integer("RequestCount")?.unwrap_or(0);
    span.effective_buffer_separation = place.integer("EffectiveBufferSeparation")?;
    span.submission = submission(place)?;
    if let Some(cpus) = place.child("CpuUtilization") {
        for cpu in cpus.children("CPU") {
            span.cpus.push(processor(cpu)?);
        }
        span.cpu_average = cpus.child("Average").map(percents).transpose()?;
    }
    if let Some(latency) = place.child("Latency") {
        let means =
            ["AverageReadMilliseconds", "AverageWriteMilliseconds", "AverageTotalMilliseconds"];
        span.figures = latency_figures(latency, means)?;
        for bucket in latency.children("Bucket") {
            span.latency.push(latency_bucket(bucket)?);
        }
    }
    if let Some(iops) = place.child("Iops") {
        span.intervals = iops_figures(iops, &mut span.figures)?;
    }
    for thread in place.children("Thread") {
        span.threads.push(self::thread(thread)?);
    }
    Ok(span)
}

fn processor(place: Place<'_>) -> Result<ImportedCpu, ImportError> {
    Ok(ImportedCpu {
        socket: place.integer("Socket")?,
        node: place.integer("Node")?,
        group: place.integer("Group")?,
        core: place.integer("Core")?,
        class: place.integer("EfficiencyClass")?,
        id: place.needed("Id")?,
        percents: percents(place)?,
    })
}

fn percents(place: Place<'_>) -> Result<CpuPercents, ImportError> {
    Ok(CpuPercents {
        usage: place.float("UsagePercent")?.unwrap_or(0.0),
        user: place.float("UserPercent")?.unwrap_or(0.0),
        kernel: place.float("KernelPercent")?.unwrap_or(0.0),
        idle: place.float("IdlePercent")?.unwrap_or(0.0),
    })
}

/// Means, by the names of their elements for reads, writes and both, and standard deviations.
fn latency_figures(
    place: Place<'_>,
    means: [&str; 3],
) -> Result<ByDirection<Figures>, ImportError> {
    let figures = |mean, deviation| -> Result<Figures, ImportError> {
        Ok(Figures {
            latency_mean_ms: place.float(mean)?,
            latency_std_dev_ms: place.float(deviation)?,
            iops_std_dev: None,
        })
    };
    Ok(ByDirection {
        read: figures(means[0], "ReadLatencyStdev")?,
        write: figures(means[1], "WriteLatencyStdev")?,
        total: figures(means[2], "LatencyStdev")?,
    })
}

fn latency_bucket(place: Place<'_>) -> Result<LatencyBucket, ImportError> {
    let Some(percentile) = place.float("Percentile")? else {
        return Err(place.error("<Bucket> without <Percentile>"));
    };
    Ok(LatencyBucket {
        percentile,
        read_ms: place.float("ReadMilliseconds")?,
        write_ms: place.float("WriteMilliseconds")?,
        total_ms: place.float("TotalMilliseconds")?,
    })
}

/// The deviations go into `figures`; the intervals are returned.
fn iops_figures(
    place: Place<'_>,
    figures: &mut ByDirection<Figures>,
) -> Result<Vec<Interval>, ImportError> {
    figures.read.iops_std_dev = place.float("ReadIopsStdDev")?;
    figures.write.iops_std_dev = place.float("WriteIopsStdDev")?;
    figures.total.iops_std_dev = place.float("IopsStdDev")?;
    place.children("Bucket").map(interval).collect()
}

fn interval(place: Place<'_>) -> Result<Interval, ImportError> {
    let Some(end) = place.node.attribute("SampleMillisecond") else {
        return Err(place.error("<Bucket> of an interval without SampleMillisecond"));
    };
    let latency = |names: [&str; 4]| -> Result<Option<IntervalLatency>, ImportError> {
        let [min, max, mean, deviation] = names.map(|name| place.attribute(name));
        let (min, max, mean, deviation) = (min?, max?, mean?, deviation?);
        Ok(mean.map(|mean_ms| IntervalLatency {
            min_ms: min.unwrap_or(0.0),
            max_ms: max.unwrap_or(0.0),
            mean_ms,
            std_dev_ms: deviation.unwrap_or(0.0),
        }))
    };
    Ok(Interval {
        end_ms: place.parsed(end, "SampleMillisecond")?,
        read_iops: place.attribute("Read")?.unwrap_or(0.0),
        write_iops: place.attribute("Write")?.unwrap_or(0.0),
        total_iops: place.attribute("Total")?.unwrap_or(0.0),
        read: latency([
            "ReadMinLatencyMilliseconds",
            "ReadMaxLatencyMilliseconds",
            "ReadAvgLatencyMilliseconds",
            "ReadLatencyStdDev",
        ])?,
        write: latency([
            "WriteMinLatencyMilliseconds",
            "WriteMaxLatencyMilliseconds",
            "WriteAvgLatencyMilliseconds",
            "WriteLatencyStdDev",
        ])?,
    })
}

fn thread(place: Place<'_>) -> Result<ImportedThread, ImportError> {
    let mut thread = ImportedThread {
        id: place.needed("Id")?,
        submit_count: place.integer("SubmitCount")?,
        ..ImportedThread::default()
    };
    for target in place.children("Target") {
        thread.targets.push(self::target(target)?);
    }
    thread.waits = place.child("WaitStatistics").map(waits).transpose()?;
    Ok(thread)
}

fn target(place: Place<'_>) -> Result<ImportedTarget, ImportError> {
    let bytes = place.integer("FileSize")?.unwrap_or(0);
    let means = [
        "AverageReadLatencyMilliseconds",
        "AverageWriteLatencyMilliseconds",
        "AverageLatencyMilliseconds",
    ];
    let mut target = ImportedTarget {
        path: place.child("Path").and_then(|path| path.node.text()).unwrap_or("").to_owned(),
        file_size: ImportedSize { bytes, exact: true },
        read: IoCount { bytes: place.needed("ReadBytes")?, ios: place.needed("ReadCount")? },
        write: IoCount { bytes: place.needed("WriteBytes")?, ios: place.needed("WriteCount")? },
        figures: latency_figures(place, means)?,
        ..ImportedTarget::default()
    };
    let absolute = place.child("Distribution").and_then(|child| child.child("Absolute"));
    for range in absolute.into_iter().flat_map(|absolute| absolute.children("Range")) {
        let io = range.parsed(range.node.attribute("IO").unwrap_or_default(), "IO")?;
        target.ranges.push((io, range.parsed(range.text(), "Range")?));
    }
    if let Some(iops) = place.child("Iops") {
        target.intervals = iops_figures(iops, &mut target.figures)?;
    }
    Ok(target)
}

fn waits(place: Place<'_>) -> Result<WaitStatistics, ImportError> {
    let eight = |name| -> Result<[u64; 8], ImportError> {
        let mut counts = [0; 8];
        let Some(child) = place.child(name) else { return Ok(counts) };
        for (count, text) in counts.iter_mut().zip(child.text().split_ascii_whitespace()) {
            *count = child.parsed(text, name)?;
        }
        Ok(counts)
    };
    Ok(WaitStatistics {
        wait: place.integer("CompletionWait")?.unwrap_or(0),
        throttle_wait: place.integer("ThrottleWait")?.unwrap_or(0),
        throttle_sleep: place.integer("ThrottleSleep")?.unwrap_or(0),
        lookaside: place.integer("Lookaside")?.unwrap_or(0),
        wait_completion: eight("WaitCompletion")?,
        lookaside_completion: eight("LookasideCompletion")?,
    })
}
