//! A run: its findings in plain words, and its plots.

use plumb_units::convert;
use serde_json::Value;

use super::ceiling::ceiling;
use super::page::{Block, Data, Headline, Section, Table, Tone, cell, latency, rate};
use super::plot::percentiles::Which;
use super::plot::{cores, cumulative, devices, heat, percentiles, seconds, spread};
use super::run_view::{RunView, SideView, SpanView, Workload};
use crate::attribution::Bottleneck;
use crate::identities::MIB;
use crate::percentile::Mark;
use crate::reading::{
    self, Access, Cache, Cpu, Facts, FewIntervals, Latencies, Percentiles, Severity, Sync, Thread,
};
use crate::study::{self, Behind};

/// The findings of a run, with links into its section.
pub(super) fn findings(view: &RunView, id: &str) -> Vec<Headline> {
    let mut headlines = Vec::new();
    let is_several = view.spans.len() > 1;
    for (number, span) in (1..).zip(&view.spans) {
        let place = span_id(id, number);
        let of = if is_several { format!("Time span {number}: ") } else { String::new() };
        headlines.push(Headline::new(
            Tone::Plain,
            format!("{of}{}", figures(span)),
            "figures",
            &format!("{place}-figures"),
        ));
        if span.intervals.len() >= 3 {
            let text = seconds::sentence(span);
            let calm =
                ["steady from the start", "steady after"].iter().any(|word| text.contains(word));
            let tone = if calm { Tone::Plain } else { Tone::Warn };
            headlines.push(Headline::new(tone, text, "over time", &format!("{place}-seconds")));
        }
        let is_plotted = percentiles::plot(span, &place, None).is_some();
        let rows = if is_plotted { percentiles::rows(span, Which::All) } else { Vec::new() };
        if let Some(p99) = rows.iter().find(|row| (row.percent - 99.0).abs() < 1e-9) {
            let tail = rows.iter().rfind(|row| row.support.mark == Mark::Good);
            let tail = tail.filter(|row| row.percent > 99.0).map_or_else(String::new, |row| {
                format!(
                    "; the {} is {} (mark good)",
                    percentiles::ordinal(row.percent),
                    row.printed()
                )
            });
            let text = format!(
                "99 of 100 I/Os took {} or less (mark {}){tail}.",
                p99.printed(),
                p99.mark()
            );
            headlines.push(Headline::new(
                Tone::Plain,
                text,
                "percentiles",
                &format!("{place}-percentiles"),
            ));
        }
        if let Some(found) = super::counters::attribution(span, ceiling(view, span))
            && found.bottleneck != Bottleneck::NotDetermined
        {
            let text = format!("What holds it down: {}.", found.bottleneck.sentence());
            let at = format!("{place}-bottleneck");
            headlines.push(Headline::new(Tone::Plain, text, "evidence", &at));
        }
        for text in span.failures.iter().chain(&span.warnings) {
            headlines.push(Headline::new(
                Tone::Warn,
                text.clone(),
                "figures",
                &format!("{place}-figures"),
            ));
        }
        for remark in
            remarks(view, span).into_iter().filter(|remark| remark.severity == Severity::Warn)
        {
            let words = format!("rule R{}", remark.rule);
            headlines.push(Headline::new(
                Tone::Warn,
                remark.text,
                &words,
                &format!("{place}-reading"),
            ));
        }
    }
    headlines
}

/// Everything about a run; `earlier` is one of the same workload that is drawn under it.
pub(super) fn sections(view: &RunView, id: &str, earlier: Option<&RunView>) -> Vec<Section> {
    let mut sections = Vec::new();
    for (number, span) in (1..).zip(&view.spans) {
        let place = span_id(id, number);
        let title = match view.spans.len() {
            1 => view.name.clone(),
            _ => format!("{}, time span {number}", view.name),
        };
        let before = earlier.and_then(|run| Some((run.name.as_str(), run.spans.get(number - 1)?)));
        let mut blocks = vec![Block::Paragraph(span.title())];
        blocks.push(Block::Table(totals(span, &place)));
        for plot in [
            seconds::plot(span, &place),
            percentiles::plot(span, &place, before),
            cores::plot(span, &place),
            spread::plot(span, &place),
        ]
        .into_iter()
        .flatten()
        {
            let is_percentiles = plot.id.ends_with("-percentiles");
            blocks.push(Block::Plot(Box::new(plot)));
            if is_percentiles {
                blocks.push(Block::Table(tail(span, &place)));
                blocks.extend(
                    cumulative::plot(span, &place, before).map(|p| Block::Plot(Box::new(p))),
                );
                blocks.extend(
                    heat::plots(span, &place).into_iter().map(|p| Block::Plot(Box::new(p))),
                );
            }
        }
        blocks.extend(devices::plot(span, &place).map(|p| Block::Plot(Box::new(p))));
        blocks.extend(
            super::counters::plots(span, &place).into_iter().map(|p| Block::Plot(Box::new(p))),
        );
        blocks.extend(super::counters::cost(span).map(Block::Paragraph));
        if let Some(found) = super::counters::attribution(span, ceiling(view, span)) {
            let sentence =
                format!("{} (rule {})", found.bottleneck.sentence(), found.bottleneck.rule());
            blocks.push(Block::Folded {
                id: format!("{place}-bottleneck"),
                heading: format!("What holds it down: {sentence}"),
                text: found.evidence.join("\n"),
            });
        }
        let remarks = remarks(view, span);
        if !remarks.is_empty() {
            let lines = remarks.iter().map(|remark| format!("R{}: {}", remark.rule, remark.text));
            blocks.push(Block::Folded {
                id: format!("{place}-reading"),
                heading: "How to read this result: every rule that applies".into(),
                text: lines.collect::<Vec<_>>().join("\n"),
            });
        }
        sections.push(Section { id: place, title, blocks });
    }
    sections
}

fn span_id(id: &str, number: usize) -> String {
    if number == 1 { id.to_owned() } else { format!("{id}-{number}") }
}

/// The figures in a sentence.
pub(super) fn figures(span: &SpanView) -> String {
    let total = &span.total;
    let latency =
        total.mean_ms.map_or_else(String::new, |ms| format!(", {} each on average", latency(ms)));
    let words = span.outstanding_words();
    let outstanding = if words.is_empty() { words } else { format!(" {words}") };
    format!(
        "{} I/Os per second, {:.1} MiB/s{latency}{outstanding}, over {:.0} s: {}.",
        rate(total.iops),
        total.mib_per_s,
        span.seconds,
        span.title()
    )
}

fn totals(span: &SpanView, place: &str) -> Table {
    let mut data = Data::new(&["", "I/Os", "I/Os per s", "MiB/s", "mean ms"]);
    let mut add = |name: &str, side: &SideView| {
        data.add([
            name.to_owned(),
            rate(side.count as f64),
            rate(side.iops),
            format!("{:.2}", side.mib_per_s),
            side.mean_ms.map_or_else(|| "–".to_owned(), |ms| format!("{ms:.3}")),
        ]);
    };
    for (name, side) in [("reads", &span.read), ("writes", &span.write)] {
        if side.count > 0 {
            add(name, side);
        }
    }
    add("total", &span.total);
    Table { id: format!("{place}-figures"), caption: "Figures".into(), data }
}

/// Percentiles, each with its mark.
fn tail(span: &SpanView, place: &str) -> Table {
    let mut data = Data::new(&["side", "percentile", "latency", "95 % interval", "mark"]);
    for (name, which, side) in [
        ("reads", Which::Reads, &span.read),
        ("writes", Which::Writes, &span.write),
        ("total", Which::All, &span.total),
    ] {
        if side.count == 0 || (name == "total" && (span.read.count == 0 || span.write.count == 0)) {
            continue;
        }
        for row in percentiles::rows(span, which) {
            let interval = row.interval.filter(|_| row.support.mark != Mark::None);
            data.add([
                name.to_owned(),
                cell(Some(row.percent)),
                row.printed(),
                interval.map_or_else(
                    || "–".to_owned(),
                    |(low, high)| format!("{} to {}", latency(low), latency(high)),
                ),
                row.mark(),
            ]);
        }
    }
    Table { id: format!("{place}-tail"), caption: "Percentiles and what they rest on".into(), data }
}

/// What the reading rules say.
fn remarks(view: &RunView, span: &SpanView) -> Vec<reading::Remark> {
    let facts = Facts { ceiling: ceiling(view, span), ..facts(span) };
    reading::read(&with_machine(facts, view))
}

/// What is known of the devices behind the targets of a stored run, too (R11, R16, R17, R22).
fn with_machine(facts: Facts, view: &RunView) -> Facts {
    let environment = view.record.as_ref().map(|record| &record.environment);
    let behind = Behind::of(environment, None);
    let is_through = |sync: Sync| matches!(sync, Sync::WriteThrough | Sync::Both);
    Facts {
        medium: behind.medium,
        link_bytes_per_s: behind.link_bytes_per_s,
        completion: facts.sync.and_then(|sync| behind.completion(is_through(sync))),
        remote: study::remote(environment),
        ..facts
    }
}

/// What the rules look at.
pub(crate) fn facts(span: &SpanView) -> Facts {
    let workload = &span.workload;
    // What the first target was asked for is not what several together were.
    let of_all = Some(workload).filter(|workload| !workload.is_mixed);
    let side = |side: &SideView, which: Which| {
        let found = match side.buckets.is_empty() {
            true => Vec::new(),
            false => percentiles::rows(span, which),
        };
        let few = found.iter().find_map(|row| {
            let (with, all) = row.few_intervals()?;
            Some(FewIntervals { percent: row.percent, with, all })
        });
        let mut rows: Vec<(f64, f64)> = if side.buckets.is_empty() {
            side.percentiles.iter().copied().filter(|(percent, _)| *percent > 0.0).collect()
        } else {
            found.iter().map(|row| (row.percent, row.ms)).collect()
        };
        if let Some(largest) = side.buckets.at_rank(side.buckets.count()) {
            rows.push((100.0, largest));
        }
        Percentiles { rows, count: Some(side.count), few }
    };
    let count = span.total.count;
    Facts {
        iops: Some(span.total.iops),
        block_bytes: match of_all {
            Some(workload) => workload.block_bytes,
            None => Some(span.total.mib_per_s * MIB / span.total.iops),
        },
        count: Some(count),
        outstanding: span.outstanding(),
        in_flight: span.in_flight,
        closed_loop: !workload.limited && span.outstanding().is_some(),
        measured_s: Some(span.seconds),
        warm_up_s: workload.warm_up_s,
        latencies: Latencies {
            mean_ms: span.total.mean_ms,
            half_unit_ms: if span.law.2.is_some() { 0.0 } else { 0.0005 },
            slowest_ms: span
                .outstanding()
                .and_then(|n| span.total.buckets.mean_of_largest(convert::floor_u64(n))),
            read: side(&span.read, Which::Reads),
            write: side(&span.write, Which::Writes),
            total: side(&span.total, Which::All),
        },
        threads: span.threads.iter().map(|iops| Thread { iops: *iops }).collect(),
        series: span.series(),
        cores: span
            .cores
            .iter()
            .map(|core| Cpu { usage: core.user + core.kernel, idle: core.idle })
            .collect(),
        cache: cache(span),
        incompressible: workload.incompressible,
        write_share_wanted: of_all.and_then(|workload| workload.write_share),
        write_share: (count > 0).then(|| span.write.count as f64 / count as f64),
        access: of_all.and_then(access),
        measures_latency: span.measures_latency,
        sync: of_all.and_then(|workload| workload.sync).map(|sync| match sync {
            (true, true) => Sync::Both,
            (true, false) => Sync::PageCache,
            (false, true) => Sync::WriteThrough,
            (false, false) => Sync::Buffered,
        }),
        ..Facts::default()
    }
}

/// What may serve the targets of a run that did not bypass the page cache, as it was free before the run filled it.
fn cache(span: &SpanView) -> Cache {
    let is_buffered = span.workload.sync.is_some_and(|(is_bypassed, _)| !is_bypassed);
    let free = span.counters.pointer("/series/0/memory/available_bytes");
    Cache {
        file_bytes: span.target_bytes,
        page_cache_bytes: free.and_then(Value::as_f64).filter(|_| is_buffered),
        device_cache_bytes: None,
    }
}

fn access(workload: &Workload) -> Option<Access> {
    match (workload.random?, workload.threads, workload.apart) {
        (true, ..) => Some(Access::Random),
        (false, Some(1.0), _) | (false, _, Some(true)) => Some(Access::SequentialApart),
        (false, Some(_), Some(false)) => Some(Access::SequentialOverlapping),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::report::run_view::workload_of;

    /// The numbers of the rules that say something of reads and writes of two targets, 1,500 of each.
    fn rules(second: &Value) -> Vec<u32> {
        let first = json!({
            "ThreadsPerFile": 1, "RequestCount": 2, "BlockSize": 8192, "RandomRatio": 100, "WriteRatio": 100,
            "ThreadStride": 0, "InterlockedSequential": false, "DisableOSCache": true, "WriteThrough": true,
            "WriteBufferContent": { "Pattern": "random" },
        });
        let mut other = first.clone();
        for (key, value) in second.as_object().expect("changes") {
            other[key] = value.clone();
        }
        let side = |count| SideView { count, iops: 1000.0, mib_per_s: 10.0, ..SideView::default() };
        let span = SpanView {
            seconds: 60.0,
            workload: workload_of(&json!({ "Warmup": 5, "Targets": [first, other] })),
            total: side(3000),
            read: side(1500),
            write: side(1500),
            law: (Some(4.0), Some(-0.5), None),
            ..SpanView::default()
        };
        remarks(&RunView::default(), &span).iter().map(|remark| remark.rule).collect()
    }

    #[test]
    fn what_one_target_was_asked_for_is_not_expected_of_all() {
        assert!(rules(&json!({})).contains(&19), "half of the I/Os are no writes, all should be");
        assert!(!rules(&json!({ "WriteRatio": 0 })).contains(&19));
    }

    #[test]
    fn a_file_that_fits_into_the_page_cache_is_told_where_that_is_used() {
        let span = |is_bypassed: bool| SpanView {
            workload: Workload { sync: Some((is_bypassed, false)), ..Workload::default() },
            target_bytes: Some(16.0 * MIB),
            counters: json!({ "series": [{ "memory": { "available_bytes": 64.0 * MIB } }] }),
            ..SpanView::default()
        };
        let view = RunView::default();
        let says =
            |is_bypassed| remarks(&view, &span(is_bypassed)).iter().any(|remark| remark.rule == 12);
        assert!(says(false) && !says(true));
    }

    #[test]
    fn what_a_stored_run_knows_of_its_devices_is_held_against_it() {
        let rules = |environment: Value| -> Vec<u32> {
            let record = crate::record::Record {
                epoch: None,
                profile: None,
                engine: None,
                environment,
                fitness: crate::record::Fitness::default(),
                overview: crate::record::Overview::default(),
                modes: Vec::new(),
                spans: Vec::new(),
            };
            let view = RunView { record: Some(record), ..RunView::default() };
            let side = SideView { count: 3000, ..SideView::default() };
            let span = SpanView {
                seconds: 60.0,
                workload: Workload {
                    sync: Some((true, false)),
                    warm_up_s: Some(1.0),
                    write_share: Some(1.0),
                    ..Workload::default()
                },
                total: side.clone(),
                write: side,
                ..SpanView::default()
            };
            remarks(&view, &span).iter().map(|remark| remark.rule).collect()
        };
        let found = rules(json!({ "groups": {
            "device": [{ "rotational": false }], "queue": [{ "write_cache": "write back" }],
            "fs": [{ "kind": "nfs4" }],
        } }));
        let nothing = rules(Value::Null);
        for rule in [16, 17, 22] {
            assert!(
                found.contains(&rule) && !nothing.contains(&rule),
                "R{rule}: {found:?}, {nothing:?}"
            );
        }
    }

    #[test]
    fn any_target_may_compress_or_be_limited() {
        let sequential = json!({ "WriteBufferContent": { "Pattern": "sequential" } });
        assert!(!rules(&json!({})).contains(&14) && rules(&sequential).contains(&14));
    }
}
