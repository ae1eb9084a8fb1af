use std::path::Path;

use plumb_units::Bytes;

use super::*;
use crate::profile::model::{
    AffinityEntry, BufferSeparation, CacheMode, DistributionRange, RingBatch,
};
use crate::profile::text;

const TEXT: &str =
    include_str!("../../tests/data/conformance/results/reports/mixed-two-targets-smt.txt");
const XML: &str =
    include_str!("../../tests/data/conformance/results/reports/mixed-two-targets-smt.xml");
const POOL: &str =
    include_str!("../../tests/data/conformance/results/reports/two-timespans-pool.txt");
const REAL: &str =
    include_str!("../../tests/data/conformance/results/reports/real-random-mix-latency-doc.xml");
const INTERRUPTED: &str =
    include_str!("../../tests/data/conformance/results/reports/interrupted-in-warmup.txt");

/// Reads a text report or document that is damaged; a part of what is said.
fn check_error(text: &str, part: &str) {
    let error = read(text.as_bytes()).expect_err(part);
    assert!(error.to_string().contains(part), "{error}");
}

/// The profile of a report with just this profile block.
fn profile_of(block: &str) -> (crate::profile::model::RawProfile, Vec<String>) {
    let report = format!(
        "{block}Results for timespan 1:\n***\nThe test was interrupted before the measurements \
         began. No results are displayed.\n"
    );
    let result = read_text(&report).expect("a report");
    (result.profile.expect("a profile"), result.notes)
}

#[test]
fn text_and_xml_of_one_run_agree() {
    let (text, xml) = (read_text(TEXT).expect("text"), read_xml(XML).expect("XML"));
    let (text_profile, xml_profile) = (text.profile.expect("one"), xml.profile.expect("one"));
    assert_eq!(text_profile.time_spans, xml_profile.time_spans);
    assert_eq!(text.computer_name, xml.computer_name);
    assert_eq!((&text.power_scheme, &text.run_time), (&xml.power_scheme, &xml.run_time));
    let (text, xml) = (&text.time_spans[0], &xml.time_spans[0]);
    assert_eq!((text.seconds, text.thread_count), (5.01, 4));
    assert_eq!(text.thread_count, xml.thread_count);
    assert_eq!((text.reads(), text.writes()), (xml.reads(), xml.writes()));
    for (text, xml) in text.threads.iter().zip(&xml.threads) {
        assert_eq!((text.id, &text.waits), (xml.id, &xml.waits));
        let (text, xml) = (&text.targets[0], &xml.targets[0]);
        assert_eq!((&text.path, text.read, text.write), (&xml.path, xml.read, xml.write));
        let deviations = |target: &ImportedTarget| {
            let figures = target.figures;
            [figures.read, figures.write, figures.total].map(|each| each.latency_std_dev_ms)
        };
        assert_eq!(deviations(text), deviations(xml));
    }
    for (text, xml) in text.cpus.iter().zip(&xml.cpus) {
        assert_eq!(
            (text.socket, text.node, text.core, text.id),
            (xml.socket, xml.node, xml.core, xml.id)
        );
        assert_eq!(text.percents, xml.percents);
    }
    assert_eq!(text.cpu_average, xml.cpu_average);
    assert_eq!(text.figures.total.latency_mean_ms, xml.figures.total.latency_mean_ms);
    assert_eq!(text.path_latency.len(), 2);
    for bucket in &text.latency {
        let same = xml.latency.iter().find(|other| other.percentile == bucket.percentile);
        assert_eq!(same, Some(bucket));
    }
    assert_eq!(xml.threads[0].targets[0].ranges.len(), 4);
    assert_eq!(xml.intervals.len(), 10);
}

#[test]
fn a_profile_that_was_shown_is_shown_again() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance/results");
    let cases = std::fs::read_to_string(folder.join("cases.json")).expect("the cases");
    let cases: serde_json::Value = serde_json::from_str(&cases).expect("JSON");
    let mut count = 0;
    for case in cases["cases"].as_array().expect("a list") {
        if case["kind"] != "profile_text" {
            continue;
        }
        let (shown, command_line) =
            (&case["expect"]["text"], case["input"]["command_line"].as_str().expect("one"));
        let shown = shown.as_str().expect("a text");
        for shown in [shown.to_owned(), shown.replace('\n', "\r\n")] {
            let (profile, notes) = profile_of(&shown);
            assert!(notes.iter().all(|note| note.contains("rounded")), "{notes:?}");
            assert_eq!(text::write(&profile, command_line), shown.replace('\r', ""));
        }
        count += 1;
    }
    assert!(count > 20, "{count} cases");
}

#[test]
fn sizes_of_text_are_marked_as_rounded_where_they_are() {
    let result = read_text(POOL).expect("a report");
    let sizes = result.time_spans[0].threads[0].targets.iter().map(|target| target.file_size);
    let sizes: Vec<_> = sizes.map(|size| (Bytes(size.bytes).to_string(), size.exact)).collect();
    assert_eq!(sizes, [("256MiB".to_owned(), true), ("953.67MiB".to_owned(), false)]);
}

#[test]
fn the_layout_of_2_3_is_read() {
    let block = "\nCommand Line: diskspd -u f\n\nInput parameters:\n\n  timespan:   1\n  \
        -------------\n    duration: 3s\n    warm up time: 1s\n    cool down time: 0s\n    \
        random seed: 0\n    using IoRing (batch size: 16) without registered buffers\n    \
        affinity assignment: core-aware, fill groups, P-cores first\n    affinity (group/cpu): \
        0/0-2,7 1/*\n    buffer separation: thread optimized (16MiB)\n    completion depth: 4\n    \
        path: 'f'\n      think time: 0ms\n      burst size: 0\n      software cache disabled\n      \
        using hardware write cache, writethrough off\n      using BypassIO (allow partial)\n      \
        performing read test\n      block size: 1000B\n      using random I/O (alignment: 1.5KiB)\n\
        \x20     number of outstanding I/O operations per thread: 32\n      threads per file: 1\n    \
        \x20 IO priority: normal\n      IO Distribution:\n          10% of IO => [     0    -   \
        1GiB)\n          90% of IO => [  1GiB    -   end)\n\n";
    let (profile, notes) = profile_of(block);
    assert_eq!(notes, ["sizes of the profile are rounded to two decimals"]);
    let span = &profile.time_spans[0];
    let entry = |group, processor| AffinityEntry { group, processor };
    let listed = [0, 1, 2, 7].map(|processor| entry(0, Some(processor)));
    assert_eq!(span.affinity, [&listed[..], &[entry(1, None)]].concat());
    assert_eq!(span.io_ring.map(|ring| ring.batch), Some(RingBatch::Ios(16)));
    assert_eq!(span.completion_depth, Some(4));
    assert_eq!(span.buffer_separation, None, "2.3 always shows the default");
    let target = &span.targets[0];
    assert_eq!((target.block_size, target.alignment), (1000, 1536));
    assert_eq!(target.cache, CacheMode::NoOsCache);
    let ranges = &target.distribution.as_ref().expect("one").ranges;
    let range = |io, size| DistributionRange { io, size };
    assert_eq!(ranges[..], [range(10, 1 << 30), range(90, 0)]);
}

#[test]
fn what_is_not_understood_of_a_profile_is_noted() {
    let block = "\nCommand Line: x\n\nInput parameters:\n\n\ttimespan:   1\n\tspeed: high\n\
        \tbuffer separation: system default\n\tpath: 'f'\n\t\tblock size: 5GiB\n\n";
    let (profile, notes) = profile_of(block);
    assert_eq!(
        notes,
        [
            "line 7 of the profile was not understood: speed: high",
            "line 10 of the profile was not understood: block size: 5GiB",
        ]
    );
    let separation = profile.time_spans[0].buffer_separation;
    assert_eq!(separation, Some(BufferSeparation::SystemDefault));
}

#[test]
fn lines_before_a_document_are_skipped_and_stray_characters_mended() {
    let upstream = REAL
        .replace("Name=\"Balanced\"", "Name=\"<unknown>\"")
        .replace("<Path>testfile.dat</Path>", "<Path>d:\\r&d\\a.dat</Path>");
    for before in [
        "",
        "\u{feff}",
        "....",
        "2026-11-21T00:40:10: creating thread 0\r\n\r\n*** Interrupted by Ctrl-C. Stopping I/O \
         Request Generator. ***\r\n",
    ] {
        let result = read(format!("{before}{upstream}").as_bytes()).expect("a result");
        let [result] = result.as_slice() else { panic!("one result") };
        assert_eq!(result.power_scheme, None);
        assert_eq!(result.notes, [""; 0]);
        assert_eq!(result.time_spans[0].threads[0].targets[0].path, "d:\\r&d\\a.dat");
        let profile = result.profile.as_ref().expect("a profile");
        assert_eq!(profile.time_spans[0].targets[0].path, "d:\\r&d\\a.dat");
        assert_eq!(result.foreign_epoch(), Some(ForeignEpoch::From22));
    }
}

#[test]
fn a_document_of_plumb_says_so() {
    let ours = REAL.replace("</Tool>", "<Epoch>1</Epoch></Tool>");
    let result = read_xml(&ours).expect("a result");
    let tool = result.tool.as_ref().expect("a tool");
    assert_eq!((tool.name.as_str(), tool.epoch), ("plumb", Some(1)));
    assert_eq!(result.foreign_epoch(), None);
}

#[test]
fn a_profile_of_another_kind_leaves_the_results() {
    let strange = REAL.replace("<Progress>0</Progress>", "<Progress>0</Progress><New/>");
    let result = read_xml(&strange).expect("a result");
    assert_eq!(result.profile, None);
    assert!(result.notes[0].contains("<New>"), "{:?}", result.notes);
    assert_eq!(result.time_spans[0].threads.len(), 2);
}

#[test]
fn a_log_of_several_reports_is_read_whole() {
    let log = format!("{TEXT}\n{POOL}{INTERRUPTED}");
    let results = read(log.as_bytes()).expect("three reports");
    let spans: Vec<_> = results.iter().map(|result| result.time_spans.len()).collect();
    assert_eq!(spans, [1, 2, 1]);
    assert!(results[2].time_spans[0].is_interrupted());
    let error = read_text(&log).expect_err("three reports");
    assert!(error.to_string().contains("3 reports"), "{error}");
}

#[test]
fn damage_is_named_with_its_place() {
    check_error("", "no line 'Results for timespan'");
    check_error("\nCommand Line: plumb f\n\nInput parameters:\n", "the report of line 2 ends");
    check_error(&TEXT.replace("39321600", "39321x00"), "'39321x00' is no number");
    let line = TEXT.lines().position(|line| line.contains("39321600")).expect("there") + 1;
    check_error(&TEXT.replace("39321600", "-1"), &format!("line {line}: '-1' is no number"));
    check_error(&TEXT[..TEXT.find("Write IO").expect("there")], "0 in 'Write IO'");
    check_error(&TEXT[..TEXT.find("total:").expect("there")], "the table ends without its total");
    check_error(&TEXT.replace(" a.dat (1GiB)", " a.dat"), "path and its size");
    check_error(&TEXT.replacen("actual test time:\t5.01s", "", 1), "without 'actual test time'");
    check_error(&TEXT.replace("     2 |        40239104", "     7 |        40239104"), "thread 7");
    check_error(&REAL.replace("<ReadBytes>177602560<", "<ReadBytes>1e9<"), "'1e9' in ReadBytes");
    check_error(&REAL.replace("<WriteCount>9255</WriteCount>", ""), "without <WriteCount>");
    check_error(&REAL[..REAL.len() / 2], "the document ends inside an element");
    check_error(&REAL.replace("<Results>", "<Result>"), "no result in it");
}

#[test]
fn rows_hold_counts_rates_and_percentiles() {
    let result = read_xml(REAL).expect("a result");
    let rows = json_rows(&result);
    let of = |record: &str| rows.iter().filter(|row| row["record"] == record).collect::<Vec<_>>();
    assert_eq!(of("run").len(), 1);
    assert_eq!(of("run")[0]["profile"]["TimeSpans"][0]["Targets"][0]["BlockSize"], 8192);
    let span = of("time_span")[0];
    assert_eq!((&span["time_span"], &span["total_ios"]), (&1.into(), &59276.into()));
    assert_eq!(span["total_iops"], 29638.0);
    assert_eq!(span["read_latency_mean_ms"], 0.066);
    assert_eq!(of("cpu").len(), 2);
    assert_eq!(of("interval").len(), 4);
    assert_eq!(of("percentile").last().expect("some")["write_latency_ms"], 8.08);
    assert_eq!(of("thread_target")[1]["write_bytes"], 70_221_824);
}

/// The table of a folder as (column, value) pairs per row.
fn table(path: &Path) -> Vec<Vec<(String, String)>> {
    let text = std::fs::read_to_string(path).expect("the table");
    let mut lines = text.lines().map(|line| {
        let fields = line.split('\t').map(|field| {
            let field = field.strip_prefix('"').and_then(|field| field.strip_suffix('"'));
            field.expect("every field is quoted").replace("\"\"", "\"")
        });
        fields.collect::<Vec<_>>()
    });
    let titles = lines.next().expect("a header");
    lines.map(|fields| titles.iter().cloned().zip(fields).collect()).collect()
}

#[test]
fn a_folder_becomes_a_table() {
    let folder = tempfile::tempdir().expect("a folder");
    let put = |name: &str, text: &[u8]| {
        std::fs::write(folder.path().join(name), text).expect("a file");
    };
    let utf16: Vec<u8> =
        std::iter::once(0xfeff).chain(XML.encode_utf16()).flat_map(u16::to_le_bytes).collect();
    put("run-wc10wicpw5vm3.XML", REAL.as_bytes());
    put("say \"hi\"-basevm12.xml", &utf16);
    put("late.xml", format!(".{REAL}").as_bytes());
    put("text.xml", TEXT.as_bytes());
    put("cut.xml", &REAL.as_bytes()[..5000]);
    put("notes.txt", b"<Results>");
    std::fs::create_dir(folder.path().join("folder.xml")).expect("a folder");
    let output = folder.path().join("result.tsv");
    let report = process_folder(folder.path(), &output).expect("a table");

    assert_eq!(report.rows, ["run-wc10wicpw5vm3", "say \"hi\"-basevm12"]);
    let skipped: Vec<_> = report.skipped.iter().map(|each| each.file.as_str()).collect();
    assert_eq!(skipped, ["cut.xml", "late.xml", "text.xml"]);
    assert!(report.skipped[1].reason.contains("first line"), "{}", report.skipped[1]);
    assert_eq!(report.latency_files.len(), 2);
    assert_eq!(
        report.warnings,
        ["run-wc10wicpw5vm3: the write IOPS vary by 10.7 % (standard deviation over mean), more \
          than 10 %: the run was not steady"]
    );

    let table = table(&output);
    let titles: Vec<_> = table[0].iter().map(|(title, _)| title.as_str()).collect();
    assert!(titles.is_sorted() && titles.len() == 50, "{titles:?}");
    let value = |row: usize, title: &str| {
        let field = table[row].iter().find(|(known, _)| known == title);
        field.unwrap_or_else(|| panic!("no column {title}")).1.as_str()
    };
    for (title, want) in [
        ("ResultFileName", "run-wc10wicpw5vm3"),
        ("Path", "testfile.dat"),
        ("System", "host-r"),
        ("Affinity", "True"),
        ("TestTime", "2.00"),
        ("Threads", "2"),
        ("WriteRatio", "30"),
        ("Block", "8192"),
        ("Outstanding", "8"),
        ("Pattern", "Random"),
        ("Align", "8192"),
        ("CPU", "71.95"),
        ("CPUKern", "60.83"),
        ("CPUHotCore", "72.63"),
        ("CPUHotCoreKern", "63.68"),
        ("ReadBytes", "339550208"),
        ("ReadIOPS", "20724.5"),
        ("ReadBW", "169775104"),
        ("TotIOPS", "29638"),
        ("LatReadAV", "0.066"),
        ("LatWrite100", "8.080"),
        ("Add1", "10"),
        ("Add2", "5"),
        ("Add3", "3"),
    ] {
        assert_eq!(value(0, title), want, "{title}");
    }
    assert_eq!(value(1, "ResultFileName"), "say \"hi\"-basevm12");
    assert_eq!([value(1, "Add1"), value(1, "Add2"), value(1, "Add3")], ["base", "base", "12"]);
    let cov: f64 = value(0, "WriteIOPSCoV").parse().expect("a number");
    assert!((cov - 949.494 / 8913.5).abs() < 1e-9, "{cov}");

    let latency = folder.path().join("run-wc10wicpw5vm3.lat.tsv");
    let lines = std::fs::read_to_string(&latency).expect("percentiles");
    assert_eq!(lines.lines().count(), 108);
    assert_eq!(lines.lines().next(), Some("0\t0.022\t0.023"));
    assert_eq!(lines.lines().last(), Some("100\t5.858\t8.080"));
    std::fs::write(&latency, "kept").expect("a file");
    let again = process_folder(folder.path(), &output).expect("a table");
    assert_eq!(again.latency_files.len(), 0);
    assert_eq!(std::fs::read_to_string(&latency).expect("percentiles"), "kept");
}

#[test]
fn a_folder_without_results_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("result.tsv");
    let error = process_folder(folder.path(), &output).expect_err("empty");
    assert!(error.to_string().contains("no *.xml file"), "{error}");
    std::fs::write(folder.path().join("a.xml"), TEXT).expect("a file");
    let error = process_folder(folder.path(), &output).expect_err("a text report");
    assert!(error.to_string().contains("a.xml: the first line is not <Results>"), "{error}");
    let error = process_folder(&folder.path().join("none"), &output).expect_err("no folder");
    assert!(matches!(error, ConvertError::Folder { .. }), "{error}");
    assert!(!output.exists());
}
