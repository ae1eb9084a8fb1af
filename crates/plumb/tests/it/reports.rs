//! Results of real runs: each form is what its readers expect, and all forms of one run agree.

use std::fs;

use plumb_load::convert::{read_text, read_xml};
use serde_json::Value;

use crate::place::{Place, count, document, noise, number};

/// `total: bytes | I/Os | MiB/s | I/O per s` of the three I/O tables of a text report.
fn totals(text: &str) -> Vec<(u64, u64, f64, f64)> {
    let rows = text.lines().filter_map(|line| line.strip_prefix("total: "));
    rows.map(|row| {
        let cells: Vec<&str> = row.split('|').map(str::trim).collect();
        let whole = |cell: usize| cells[cell].parse().unwrap_or_else(|_| panic!("a count: {row}"));
        let rate = |cell: usize| cells[cell].parse().unwrap_or_else(|_| panic!("a rate: {row}"));
        (whole(0), whole(1), rate(2), rate(3))
    })
    .collect()
}

fn near(a: f64, b: f64, tolerance: f64) -> bool {
    (a - b).abs() <= tolerance * b.abs().max(f64::MIN_POSITIVE)
}

#[test]
fn the_main_command_reports_what_it_did() {
    let place = Place::new();
    let text = place.run("-c64M -b4K -r -o8 -t2 -d1 -W0 -L f.dat").succeeds_quietly().stdout;
    assert_eq!(fs::metadata(place.path("f.dat")).expect("it was made").len(), 64 << 20);
    assert_eq!(place.names(), ["f.dat"]);

    let result = read_text(&text).expect("a report");
    let command_line = "plumb run --progress-style=none -c64M -b4K -r -o8 -t2 -d1 -W0 -L f.dat";
    assert_eq!(result.command_line.as_deref(), Some(command_line));
    let [span] = &result.time_spans[..] else { panic!("one time span: {result:#?}") };
    assert!((0.99..2.0).contains(&span.seconds), "{} s", span.seconds);
    assert_eq!((span.thread_count, span.threads.len()), (2, 2));
    assert_eq!(span.writes(), (0, 0));
    let (bytes, ios) = span.reads();
    assert!(ios > 100, "{ios} I/Os in a second");
    assert_eq!(bytes, ios * 4096);
    assert!(span.threads.iter().all(|thread| thread.targets[0].read.ios > 0));
    assert!(span.threads.iter().all(|thread| thread.targets[0].file_size.bytes == 64 << 20));

    let [total, read, write] = totals(&text)[..] else { panic!("three totals: {text}") };
    assert_eq!((u128::from(total.0), u128::from(total.1)), (bytes, ios));
    assert_eq!((total, write), (read, (0, 0, 0.0, 0.0)));
    // The time is printed with two decimals.
    assert!(near(total.2 * f64::from(1 << 20) * span.seconds, total.0 as f64, 0.006), "{text}");
    assert!(near(total.3 * span.seconds, total.1 as f64, 0.006), "{text}");

    let percentiles: Vec<f64> = span.latency.iter().filter_map(|row| row.total_ms).collect();
    assert_eq!(percentiles.len(), 15, "{text}");
    assert!(percentiles.is_sorted() && percentiles[14] > 0.0, "{percentiles:?}");
    assert!(span.latency.iter().all(|row| row.write_ms.is_none()), "nothing was written");
    let mean = span.figures.total.latency_mean_ms.expect("it was measured");
    assert!(mean > 0.0 && mean <= percentiles[14], "{mean}");
    // 2 threads keep 8 each in flight, no more. The mean is printed with three decimals.
    let in_flight = total.3 * (mean - 0.0005) / 1000.0;
    assert!(in_flight < 16.1, "{in_flight} in flight");
    for cpu in &span.cpus {
        let sum = cpu.percents.usage + cpu.percents.idle;
        assert!(near(sum, 100.0, 0.001), "CPU {}: {sum} %", cpu.id);
    }
}

#[test]
fn reads_and_writes_add_up() {
    let place = Place::new();
    let text = place.run("-c8M -b8K -r -w30 -o4 -t2 -d1 -W0 -z3 f.dat").succeeds_quietly().stdout;
    let [total, read, write] = totals(&text)[..] else { panic!("three totals: {text}") };
    assert_eq!((total.0, total.1), (read.0 + write.0, read.1 + write.1));
    assert!(total.1 > 1000, "{text}");
    let share = write.1 as f64 / total.1 as f64;
    // Four standard deviations and more of that many draws.
    let spread = 5.0 * (0.3 * 0.7 / total.1 as f64).sqrt();
    assert!((share - 0.3).abs() < spread + 0.002, "{share} of the I/Os were writes");
    assert!(near(total.2, read.2 + write.2, 0.001) && near(total.3, read.3 + write.3, 0.001));
}

#[test]
fn an_xml_result_is_the_document_and_nothing_else() {
    let place = Place::new();
    let line = "-Rxml -v -P1000 -c4M -b4K -r -o4 -t2 -d1 -W0 -L -D100 -w20 f.dat";
    let outcome = place.run(line).ends_with(0);
    let xml = outcome.stdout;
    assert!(xml.starts_with("<Results>\n  <System>\n"), "{xml}");
    assert!(xml.ends_with("\n</Results>"), "{xml}");
    assert!(outcome.stderr.contains("starting measurements for 1s...\n"), "{}", outcome.stderr);
    assert!(outcome.stderr.contains("....."), "dots: {}", outcome.stderr);

    let parsed = roxmltree::Document::parse(&xml).expect("well-formed");
    let children: Vec<_> = parsed
        .root_element()
        .children()
        .filter(roxmltree::Node::is_element)
        .map(|node| node.tag_name().name())
        .collect();
    assert_eq!(children, ["System", "Profile", "TimeSpan"]);
    let buckets = parsed.descendants().filter(|node| node.has_tag_name("Bucket"));
    let percentiles = buckets.filter(|node| node.children().any(|n| n.has_tag_name("Percentile")));
    assert_eq!(percentiles.count(), 108);

    let result = read_xml(&xml).expect("a result");
    let [span] = &result.time_spans[..] else { panic!("one time span: {result:#?}") };
    let ((read_bytes, reads), (write_bytes, writes)) = (span.reads(), span.writes());
    assert_eq!((read_bytes, write_bytes), (reads * 4096, writes * 4096));
    assert!(reads > 0 && writes > 0);
    // Intervals of a tenth of a second, in I/Os per second.
    let counted: f64 = span.intervals.iter().map(|interval| interval.total_iops / 10.0).sum();
    assert!((10..=11).contains(&span.intervals.len()), "{} intervals", span.intervals.len());
    assert!(near(counted, (reads + writes) as f64, 0.02), "{counted} in intervals");
    let profile = result.profile.expect("the profile is in it");
    assert_eq!(profile.time_spans[0].targets[0].write_ratio, 20);
}

#[test]
fn a_json_result_has_the_agreed_names() {
    let place = Place::new();
    let line = "--json -v -P1000 -c4M -b4K -r -o4 -t2 -d1 -W0 -L -w20 f.dat";
    let text = place.run(line).ends_with(0).stdout;
    let result = document(&text);
    assert_eq!(count(&result, "/schema_version"), 1);
    assert!(result["engine"].is_string());
    let ios = count(&result, "/total/io_count");
    assert_eq!(count(&result, "/total/bytes"), ios * 4096);
    assert_eq!(count(&result, "/total/errors"), 0);
    for name in ["mean", "p50", "p90", "p95", "p99", "p99_9", "max"] {
        assert!(number(&result, &format!("/total/latency_ns/{name}")) > 0.0, "{name}");
    }
    let seconds = count(&result, "/elapsed_ns") as f64 / 1e9;
    assert!(near(number(&result, "/total/iops_per_s") * seconds, ios as f64, 1e-6));
    let directions =
        ["read", "write"].map(|direction| count(&result, &format!("/{direction}/io_count")));
    assert_eq!(directions[0] + directions[1], ios);
    assert!(number(&result, "/cpu/process_ns_per_io") > 0.0);
    // What a busy machine makes of it is not this test's matter: that it is no error of accounting is.
    let residual = number(&result, "/littles_law/residual");
    assert!((-0.5..0.005).contains(&residual), "{residual}");
    assert_ne!(result["littles_law"]["verdict"], "accounting_error");

    // Who looks for the count with a pattern and no parser finds that of all I/Os first.
    let first = text.split("\"io_count\":").nth(1).expect("a count").trim_start();
    let digits = first.split(|c: char| !c.is_ascii_digit()).next().expect("digits");
    assert_eq!(digits.parse(), Ok(ios), "{first:.40}");
}

#[test]
fn all_forms_of_one_run_agree() {
    let place = Place::new();
    let outcome = place
        .run(
            "--output text=a.txt --output xml=b.xml --output json=c.json -c4M -b4K -r -w50 -o4 -t2 \
             -d1 -W0 -L f.dat",
        )
        .succeeds_quietly();
    assert_eq!(place.names(), ["a.txt", "b.xml", "c.json", "f.dat"]);
    let text = String::from_utf8(place.read("a.txt")).expect("text");
    assert_eq!(text, outcome.stdout);
    let xml = String::from_utf8(place.read("b.xml")).expect("text");
    let json: Value = serde_json::from_slice(&place.read("c.json")).expect("a document");

    let from_text = read_text(&text).expect("a report");
    let from_xml = read_xml(&xml).expect("a result");
    let (a, b) = (&from_text.time_spans[0], &from_xml.time_spans[0]);
    assert_eq!((a.reads(), a.writes()), (b.reads(), b.writes()));
    assert_eq!(a.reads().1, u128::from(count(&json, "/read/io_count")));
    assert_eq!(a.writes().0, u128::from(count(&json, "/write/bytes")));
    assert_eq!(from_text.run_time, from_xml.run_time);

    let in_json = count(&json, "/total/latency_ns/max") as f64 / 1e6;
    for latency in [&a.latency, &b.latency] {
        let max = latency.last().and_then(|row| row.total_ms).expect("a maximum");
        assert!((max - in_json).abs() < 0.0011, "{max} ms and {in_json} ms");
    }
    for (thread, target) in [(0, 0), (1, 0)] {
        let ios = |thread: &plumb_load::convert::ImportedThread| thread.targets[target].read.ios;
        let at = format!("/time_spans/0/threads/{thread}/targets/{target}/read/io_count");
        let want = count(&json, &at);
        assert_eq!((ios(&a.threads[thread]), ios(&b.threads[thread])), (want, want));
    }
}

#[test]
fn an_output_never_takes_the_place_of_a_target() {
    let place = Place::new();
    place.write("f.dat", vec![7; 1 << 20]);
    for line in [
        "--output json=f.dat -d1 -W0 f.dat",
        "--output json=./f.dat -d1 -W0 f.dat",
        "--output xml=new.dat -c1M -d1 -W0 new.dat",
        "--output xml=f.dat -Z4K,f.dat -w100 -b4K -c1M -d1 -W0 new.dat",
    ] {
        let outcome = place.run(line).ends_with(3);
        assert_eq!(outcome.stdout, "", "{line}");
        assert!(outcome.stderr.contains("f.dat") || outcome.stderr.contains("new.dat"), "{line}");
        assert!(outcome.stderr.contains("help: "), "{line}: {}", outcome.stderr);
    }
    assert_eq!(place.names(), ["f.dat"]);
    assert_eq!(place.read("f.dat"), vec![7; 1 << 20]);
}

#[test]
fn an_output_takes_the_place_of_no_profile_and_of_no_other_output() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    let profile = place.run("-Rpxml -d0 -W0 f.dat").ends_with(0).stdout;
    place.write("p.xml", &profile);
    std::os::unix::fs::symlink("p.xml", place.path("link.xml")).expect("a link");
    for (line, words) in [
        ("-Xp.xml --output xml=p.xml", &["'p.xml'", "the profile (-X)"][..]),
        ("-Xp.xml --output xml=link.xml", &["'link.xml'", "the profile (-X)"]),
        ("--output text=q --output xml=./q -d0 -W0 f.dat", &["'q'", "'./q'"]),
        ("--output text=p.xml --output xml=link.xml -d0 -W0 f.dat", &["'p.xml'", "'link.xml'"]),
        ("--output json=- -d0 -W0 f.dat", &["'-' names no file", "./-", "--json"]),
    ] {
        let outcome = place.run(line).ends_with(3);
        assert_eq!(outcome.stdout, "", "{line}");
        for word in words.iter().chain(&["help: "]) {
            assert!(outcome.stderr.contains(word), "{line}: {word}: {}", outcome.stderr);
        }
    }
    assert_eq!(place.read("p.xml"), profile.as_bytes());
    assert_eq!(place.names(), ["f.dat", "link.xml", "p.xml"]);
    // A device takes both.
    place.run("--output text=/dev/null --output xml=/dev/../dev/null -d0 -W0 f.dat").ends_with(0);
}

#[test]
fn an_output_keeps_the_rights_of_the_file_whose_place_it_takes() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    for mode in [0o640, 0o600, 0o664] {
        place.write("r.json", "old");
        std::fs::set_permissions(place.path("r.json"), PermissionsExt::from_mode(mode))
            .expect("its mode can be set");
        place.run("--output json=r.json -d0 -W0 f.dat").ends_with(0);
        let found = place.path("r.json").metadata().expect("it is there");
        assert_eq!(found.permissions().mode() & 0o7777, mode, "{mode:o}");
        assert!(found.len() > 100);
    }
}

#[test]
fn an_output_that_cannot_be_written_is_refused_before_the_run() {
    let place = Place::new();
    let line = "--output text=good.txt --output json=none/r.json -c4M -d1 -W0 f.dat";
    let outcome = place.run(line).ends_with(1);
    assert_eq!(outcome.stdout, "");
    for word in ["'none/r.json'", "No such file or directory", "help: "] {
        assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
    }
    assert!(!outcome.stderr.contains(".plumb-result"), "{}", outcome.stderr);
    assert_eq!(place.names(), [""; 0], "neither outputs nor targets");
}

#[test]
fn outputs_are_written_even_if_nobody_reads_the_report() {
    let place = Place::new();
    place.write("f.dat", vec![7; 1 << 20]);
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    let mut command = place.command("--output json=r.json -b4K -d0 -W0 f.dat");
    let status = command.stdout(writer).status().expect("it starts");
    assert!(status.success(), "a reader that has enough is no failure: {status}");
    let result: Value = serde_json::from_slice(&place.read("r.json")).expect("a document");
    assert_eq!(count(&result, "/schema_version"), 1);

    let plumb = crate::program::path().display();
    let script = format!("{plumb} run --output json=s.json -b4K -d0 -W0 f.dat > /dev/full");
    let mut command = place.program(std::path::Path::new("bash"), "-c");
    let outcome = crate::program::outcome(command.arg(script)).ends_with(1);
    assert!(outcome.stderr.contains("cannot write to standard output"), "{}", outcome.stderr);
    serde_json::from_slice::<Value>(&place.read("s.json")).expect("a document");
}
