//! `plumb convert`, on results that were recorded.

use std::fs::{self, File};
use std::path::PathBuf;

use serde_json::Value;

use crate::program::{Outcome, call, path, plumb, repository};

fn reports() -> PathBuf {
    repository().join("crates/plumb-load/tests/data/conformance/results/reports")
}

fn convert(arguments: &[&PathBuf]) -> Outcome {
    let mut words = vec!["convert".into()];
    words.extend(arguments.iter().map(|path| path.as_os_str().to_owned()));
    call(path(), &words)
}

#[test]
fn a_folder_becomes_a_table_with_a_row_per_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let name = "random-read-latency";
    let result = folder.path().join(format!("{name}.xml"));
    fs::copy(reports().join(format!("{name}.xml")), result).expect("a result");
    fs::write(folder.path().join("notes.xml"), "<notes/>\n").expect("another file");
    let table = folder.path().join("table.tsv");

    let outcome = convert(&[&folder.path().to_owned(), &"-o".into(), &table]).ends_with(0);
    assert!(outcome.stdout.contains("1 results; 1 new files"), "{}", outcome.stdout);
    assert!(outcome.stderr.contains("warning: skipped notes.xml"), "{}", outcome.stderr);

    let table = fs::read_to_string(table).expect("the table");
    let lines: Vec<Vec<&str>> = table.lines().map(|line| line.split('\t').collect()).collect();
    let [columns, row] = lines.as_slice() else { panic!("{table}") };
    assert_eq!(columns.len(), row.len());
    assert!(columns.is_sorted(), "{columns:?}");
    let at = columns.iter().position(|column| *column == "\"ResultFileName\"").expect("a column");
    assert_eq!(row[at], format!("\"{name}\""));
    assert!(folder.path().join(format!("{name}.lat.tsv")).is_file());
}

#[test]
fn results_become_json_lines() {
    let text = reports().join("random-read-latency.txt");
    let xml = reports().join("random-read-latency.xml");
    let outcome = convert(&[&text, &xml]).succeeds_quietly();
    let rows: Vec<Value> = outcome
        .stdout
        .lines()
        .map(|line| serde_json::from_str(line).expect("an object per line"))
        .collect();
    for file in [&text, &xml] {
        let file = file.to_string_lossy();
        let of_file = |record: &str| {
            rows.iter().filter(|row| row["file"] == *file && row["record"] == record).count()
        };
        assert_eq!((of_file("run"), of_file("time_span")), (1, 1), "{file}");
    }
    let folder = tempfile::tempdir().expect("a folder");
    let output = folder.path().join("rows.json");
    convert(&[&text, &xml, &"-o".into(), &output]).succeeds_quietly();
    assert_eq!(fs::read_to_string(output).expect("the rows"), outcome.stdout);
}

/// A device, and a test file that was named by mistake: neither is read into memory.
#[test]
fn what_is_too_long_for_a_result_is_not_read() {
    let folder = tempfile::tempdir().expect("a folder");
    let long = folder.path().join("testfile.dat");
    File::create(&long).and_then(|file| file.set_len(1 << 40)).expect("a sparse file");
    for (path, why) in [(PathBuf::from("/dev/zero"), "device"), (long, "1 GiB")] {
        let Outcome { stderr, .. } = convert(&[&path]).ends_with(1);
        assert!(stderr.contains(why) && stderr.contains(path.to_str().expect("UTF-8")), "{stderr}");
    }
}

#[test]
fn what_is_no_result_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let empty = folder.path().to_owned();
    let outcome = convert(&[&empty]).ends_with(1);
    assert!(outcome.stderr.contains(&*empty.to_string_lossy()), "{}", outcome.stderr);

    let good = reports().join("random-read-latency.xml");
    let outcome = convert(&[&repository().join("LICENSE"), &good]).ends_with(1);
    assert!(outcome.stderr.contains("LICENSE cannot be converted"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("time_span"), "the other result is converted");

    let outcome = plumb("convert no-such-file.xml").ends_with(1);
    assert!(outcome.stderr.contains("cannot read no-such-file.xml"), "{}", outcome.stderr);
    plumb("convert").ends_with(2);
}
