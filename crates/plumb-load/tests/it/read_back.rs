//! What Plumb writes, its own reader of DISKSPD results takes.

use plumb_load::convert::ImportedResult;
use plumb_load::convert::{read_text, read_xml};
use plumb_load::result::model::RunResult;
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
