//! The document as a whole: the run's totals, the machine, the profile, the time spans.

use std::collections::BTreeSet;

use plumb_io::topology::{CacheKind, Topology};
use plumb_units::Nanos;
use serde::Serialize;
use serde_json::Value;

use super::SCHEMA_VERSION;
use super::figures::{Buckets, Sides, errors_by_direction, targets};
use super::span::{CpuTime, Law, Span};
use crate::profile::model::TimeSpan;
use crate::result::figures::Figures;
use crate::result::model::{HostFacts, RunResult, SpaceUse, SpanResult, Tool};
use crate::tally::{Histogram, LatencySet};

#[derive(Serialize)]
pub(super) struct Document<'a> {
    schema_version: u32,
    engine: Option<String>,
    elapsed_ns: u64,
    #[serde(flatten)]
    sides: Sides,
    cpu: CpuTime,
    littles_law: Law,
    histogram_relative_error: Option<f64>,
    interrupted: bool,
    tool: ToolFacts<'a>,
    epoch: Option<u32>,
    command_line: &'a str,
    started_at: String,
    host: Host<'a>,
    profile: Value,
    time_spans: Vec<Span<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    spaces: Vec<Space<'a>>,
}

#[derive(Serialize)]
struct Space<'a> {
    pool: &'a str,
    forwarded_requests: u64,
    blocks_verified: u64,
    mismatches: u64,
    healed: u64,
    unrecoverable: u64,
    disks_lost: u64,
    extents_resynced: u64,
}

impl<'a> Space<'a> {
    fn of(space: &'a SpaceUse) -> Self {
        Self {
            pool: &space.pool,
            forwarded_requests: space.forwarded,
            blocks_verified: space.blocks_verified,
            mismatches: space.mismatches,
            healed: space.healed,
            unrecoverable: space.unrecoverable,
            disks_lost: space.disks_lost,
            extents_resynced: space.resynced,
        }
    }
}

impl<'a> Document<'a> {
    pub(super) fn of(result: &'a RunResult) -> Self {
        let spans = || result.time_spans.iter().zip(&result.profile.time_spans);
        let measured: Vec<(&SpanResult, &TimeSpan)> =
            spans().filter(|(span, _)| span.is_measured()).collect();
        let mut figures = Figures::default();
        let (mut elapsed, mut cpu, mut io_wq) = (Nanos::ZERO, Nanos::ZERO, Nanos::ZERO);
        for (span, _) in &measured {
            figures.merge_counts(&span.figures());
            elapsed += span.elapsed;
            cpu += span.process_cpu;
            io_wq += span.io_wq_cpu;
        }
        // Failed I/Os count wherever they happened: nobody should have to look for them.
        for (span, _) in spans().filter(|(span, _)| !span.is_measured()) {
            for (errno, count) in span.figures().errors {
                *figures.errors.entry(errno).or_default() += count;
            }
        }
        let errors =
            errors_by_direction(measured.iter().flat_map(|(span, asked)| targets(span, asked)));
        let io_count = figures.total().io_count;
        Self {
            schema_version: SCHEMA_VERSION,
            engine: engine(result),
            elapsed_ns: elapsed.0,
            histogram_relative_error: relative_error(&figures),
            sides: Sides::new(&figures, elapsed, errors, Buckets::With),
            cpu: CpuTime::new(cpu, io_wq, io_count),
            littles_law: match measured.as_slice() {
                [(span, asked)] => Law::of(span, asked),
                [] => Law::absent("not_measured"),
                _ => Law::absent("see_time_spans"),
            },
            interrupted: result.interrupted,
            tool: ToolFacts::of(&result.tool),
            epoch: result.tool.epoch,
            command_line: &result.command_line,
            started_at: result.started_at.to_string(),
            host: Host::of(&result.host),
            profile: crate::profile::json::normalised(&result.profile),
            time_spans: (1..)
                .zip(spans())
                .map(|(n, (span, asked))| Span::of(n, span, asked))
                .collect(),
            spaces: result.spaces.iter().map(Space::of).collect(),
        }
    }
}

/// Every engine that was at work, in order of first appearance.
fn engine(result: &RunResult) -> Option<String> {
    let mut engines: Vec<&str> = Vec::new();
    for queue in result.time_spans.iter().flat_map(|span| &span.queues) {
        if !engines.contains(&queue.engine.as_str()) {
            engines.push(&queue.engine);
        }
    }
    (!engines.is_empty()).then(|| engines.join(", "))
}

/// `None` without latencies; 0 when all of them are exact.
fn relative_error(figures: &Figures) -> Option<f64> {
    let sets = [&figures.read, &figures.write].into_iter().filter_map(|side| side.latency.as_ref());
    sets.filter(|set| !set.is_empty())
        .map(|set| match set {
            LatencySet::Binned(_) => Histogram::RELATIVE_ERROR,
            LatencySet::Exact(_) => 0.0,
        })
        .reduce(f64::max)
}

#[derive(Serialize)]
struct ToolFacts<'a> {
    name: &'a str,
    version: &'a str,
    version_date: &'a str,
}

impl<'a> ToolFacts<'a> {
    fn of(tool: &'a Tool) -> Self {
        Self { name: &tool.name, version: &tool.version, version_date: &tool.version_date }
    }
}

#[derive(Serialize)]
struct Host<'a> {
    computer_name: &'a str,
    processor_name: &'a str,
    power_scheme: &'a str,
    kernel: &'a str,
    page_size_bytes: u64,
    memory_bytes: u64,
    processor_count: usize,
    core_count: usize,
    group_count: usize,
    node_count: usize,
    socket_count: usize,
    heterogeneous: bool,
    processors: Vec<Processor>,
    caches: Vec<Cache<'a>>,
}

#[derive(Serialize)]
struct Processor {
    group: u16,
    number: u8,
    core: u32,
    node: u32,
    socket: u32,
    class: u8,
    allowed: bool,
}

#[derive(Serialize)]
struct Cache<'a> {
    level: u8,
    kind: &'static str,
    size_bytes: u64,
    line_bytes: u32,
    ways: Option<u32>,
    cpus: &'a [u32],
}

impl<'a> Host<'a> {
    fn of(host: &'a HostFacts) -> Self {
        let topology = &host.topology;
        let count = |of: &dyn Fn(&plumb_io::topology::Processor) -> u32| {
            topology.processors.iter().map(of).collect::<BTreeSet<u32>>().len()
        };
        Self {
            computer_name: &host.computer_name,
            processor_name: &host.processor_name,
            power_scheme: &host.power_scheme,
            kernel: &host.kernel,
            page_size_bytes: host.page_size,
            memory_bytes: host.memory_bytes,
            processor_count: topology.processors.len(),
            core_count: count(&|cpu| cpu.core),
            group_count: count(&|cpu| cpu.group.into()),
            node_count: count(&|cpu| cpu.node),
            socket_count: count(&|cpu| cpu.socket),
            heterogeneous: count(&|cpu| cpu.class.into()) > 1,
            processors: processors(topology),
            caches: caches(topology),
        }
    }
}

fn processors(topology: &Topology) -> Vec<Processor> {
    let processor = |cpu: &plumb_io::topology::Processor| Processor {
        group: cpu.group,
        number: cpu.number,
        core: cpu.core,
        node: cpu.node,
        socket: cpu.socket,
        class: cpu.class,
        allowed: cpu.allowed,
    };
    topology.processors.iter().map(processor).collect()
}

fn caches(topology: &Topology) -> Vec<Cache<'_>> {
    fn row(cache: &plumb_io::topology::Cache) -> Cache<'_> {
        Cache {
            level: cache.level,
            kind: match cache.kind {
                CacheKind::Unified => "unified",
                CacheKind::Instruction => "instruction",
                CacheKind::Data => "data",
            },
            size_bytes: cache.size,
            line_bytes: cache.line,
            ways: (cache.ways > 0).then_some(cache.ways),
            cpus: &cache.cpus,
        }
    }
    topology.caches.iter().map(row).collect()
}
