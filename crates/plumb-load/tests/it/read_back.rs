//! What Plumb writes, its own reader of DISKSPD results takes.

use plumb_load::convert::{ImportedResult, ImportedSubmission, read_text, read_xml};
use plumb_load::profile::model::{IoRing, RingBatch};
use plumb_load::result::model::{RunResult, SpanResult};
use plumb_load::result::{text, xml};

use crate::golden::written;
use crate::made_up;

fn check(result: &RunResult, imported: &ImportedResult) {
    assert_eq!(imported.time_spans.len(), result.time_spans.len());
    for (imported, span) in imported.time_spans.iter().zip(&result.time_spans) {
        assert_eq!(imported.is_interrupted(), !span.is_measured());
        if imported.is_interrupted() {
            continue;
        }
        let figures = span.figures();
        let both = |bytes: u64, ios: u64| (u128::from(bytes), u128::from(ios));
        assert_eq!(imported.reads(), both(figures.read.bytes, figures.read.io_count));
        assert_eq!(imported.writes(), both(figures.write.bytes, figures.write.io_count));
        assert_eq!(imported.cpus.len(), span.cpus.len());
        assert!((imported.seconds - span.elapsed.as_secs_f64()).abs() <= 0.005);
        for (imported, thread) in imported.threads.iter().zip(&span.threads) {
            assert_eq!((imported.id, imported.targets.len()), (thread.id, thread.targets.len()));
        }
        let total = figures.total();
        if let Some(mean) = total.latency.and_then(|set| set.mean_ms()) {
            let got = imported.figures.total.latency_mean_ms.expect("a mean");
            assert!((got - mean).abs() <= 0.0005, "{got}, exactly {mean}");
        }
    }
}

#[test]
fn xml_results_read_back() {
    for result in
        [made_up::two_targets(), made_up::two_spans(), made_up::interrupted(), made_up::failed()]
    {
        let imported = read_xml(&written(xml::write, &result)).expect("a result");
        assert_eq!(imported.tool.as_ref().and_then(|tool| tool.epoch), Some(1));
        check(&result, &imported);
    }
}

#[test]
fn text_results_read_back() {
    for result in [made_up::two_spans(), made_up::interrupted(), made_up::failed()] {
        let imported = read_text(&written(text::write, &result)).expect("a result");
        check(&result, &imported);
    }
    // A tab in a path is not told from the layout's, so this one gets a plain name.
    let mut result = made_up::two_targets();
    for thread in &mut result.time_spans[0].threads {
        for target in thread.targets.iter_mut().filter(|target| target.index == 0) {
            "a <&\"'> (b)".clone_into(&mut target.path);
        }
    }
    "a <&\"'> (b)".clone_into(&mut result.profile.time_spans[0].targets[0].path);
    let imported = read_text(&written(text::write, &result)).expect("a result");
    assert_eq!(imported.time_spans[0].threads[0].targets[0].path, "a <&\"'> (b)");
    check(&result, &imported);
}

/// 15.14: text and XML say in which mode a time span was measured, to the letter; but for I/Os that go one at a time, of which
/// text says the profile alone.
#[test]
fn how_ios_were_handed_in_reads_back() {
    let told = |result: &RunResult| {
        let (text, xml) = (written(text::write, result), written(xml::write, result));
        let of = |imported: ImportedResult| -> Vec<Option<ImportedSubmission>> {
            let told = imported.time_spans.into_iter().map(|span| span.submission);
            // Text does not say whether it was traced.
            told.map(|own| own.map(|own| ImportedSubmission { traced: None, ..own })).collect()
        };
        (of(read_text(&text).expect("a result")), of(read_xml(&xml).expect("a result")))
    };
    for whole in [made_up::two_targets(), made_up::two_spans(), made_up::failed()] {
        let (text, xml) = told(&whole);
        assert_eq!(text, xml);
        let measured: Vec<bool> = whole.time_spans.iter().map(SpanResult::is_measured).collect();
        assert_eq!(xml.iter().map(Option::is_some).collect::<Vec<_>>(), measured);
    }
    for (gathering, batch, burst, measures) in [
        ("latency", 8, 24, true),
        ("peak", 32, 32, false),
        ("latency", 1, 1, true),
        ("routines", 8, 8, true),
        ("routines", 1, 1, false),
        ("ring", 2, 2, true),
        ("ring", 4096, 4096, false),
        ("synchronous", 1, 1, true),
        ("synchronous", 1, 1, false),
    ] {
        let mut result = made_up::two_spans();
        let (asked, span) = (&mut result.profile.time_spans[1], &mut result.time_spans[1]);
        (asked.measure_latency, asked.calculate_iops_std_dev) = (measures, false);
        if gathering == "ring" {
            asked.io_ring =
                Some(IoRing { batch: RingBatch::Percent(25), registered_buffers: true });
        }
        gathering.clone_into(&mut span.submission);
        (span.batch, span.burst) = (batch, burst);
        let (text, xml) = told(&result);
        let expected = ImportedSubmission {
            profile: if measures { "latency" } else { "peak" }.to_owned(),
            gathering: gathering.to_owned(),
            batch: Some(batch.into()),
            burst: Some(burst.into()),
            ..xml[1].clone().expect("it is told")
        };
        assert_eq!(xml[1].as_ref(), Some(&expected));
        let of_text = match gathering {
            "synchronous" => ImportedSubmission {
                gathering: String::new(),
                batch: None,
                burst: None,
                ..expected
            },
            _ => expected,
        };
        assert_eq!(text[1], Some(of_text));
    }
}
