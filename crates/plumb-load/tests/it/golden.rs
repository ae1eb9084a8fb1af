//! Made-up results, written in all three formats, against committed files.
//!
//! `PLUMB_GOLDEN=write` writes the files anew; the difference is then what is to be reviewed.

use std::io::Write;
use std::path::{Path, PathBuf};

use plumb_load::result::model::RunResult;
use plumb_load::result::{json, text, xml};

use crate::made_up;

type Writer = fn(&RunResult, &mut dyn Write) -> std::io::Result<()>;

/// What `writer` makes of `result`.
pub(crate) fn written(writer: Writer, result: &RunResult) -> String {
    let mut out = Vec::new();
    writer(result, &mut out).expect("a vector takes everything");
    String::from_utf8(out).expect("text")
}

/// Compares with a committed file, or writes it.
pub(crate) fn check_file(file: &Path, got: &str) {
    if std::env::var_os("PLUMB_GOLDEN").is_some_and(|wish| wish == "write") {
        std::fs::create_dir_all(file.parent().expect("a folder")).expect("the folder");
        std::fs::write(file, got).expect("the file is written");
        return;
    }
    let want = std::fs::read_to_string(file)
        .unwrap_or_else(|error| panic!("{}: {error}; PLUMB_GOLDEN=write makes it", file.display()));
    let mut lines = (1..).zip(got.split('\n').zip(want.split('\n')));
    if let Some((line, (got, want))) = lines.find(|(_, (got, want))| got != want) {
        panic!("{}, line {line}:\n got {got:?}\nwant {want:?}", file.display());
    }
    assert_eq!(got.len(), want.len(), "{} is cut short or goes on", file.display());
}

fn check(name: &str, result: &RunResult) {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let writers: [(&str, Writer); 3] =
        [("txt", text::write), ("xml", xml::write), ("json", json::write)];
    for (format, writer) in writers {
        check_file(&folder.join(format!("{name}.{format}")), &written(writer, result));
    }
}

#[test]
fn two_targets_with_latencies_and_intervals() {
    check("two-targets", &made_up::two_targets());
}

#[test]
fn two_spans_with_errors_and_a_ring() {
    check("two-spans", &made_up::two_spans());
}

#[test]
fn interrupted_before_the_measurement() {
    check("interrupted", &made_up::interrupted());
}

#[test]
fn failed_in_the_measurement() {
    check("failed", &made_up::failed());
}

#[test]
fn verified_and_not_as_it_was_acknowledged() {
    check("verified", &made_up::verified());
}
