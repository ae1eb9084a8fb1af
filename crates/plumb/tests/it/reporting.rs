//! `plumb report` of results, tables, stored runs and studies.

use std::fs;
use std::process::Command;

use crate::program::{self, Outcome, outcome, repository};

fn plumb(folder: &tempfile::TempDir, line: &str) -> Outcome {
    let mut command = Command::new(program::path());
    command
        .args(line.split_whitespace())
        .current_dir(folder.path())
        .env("XDG_STATE_HOME", folder.path().join("state"));
    outcome(&mut command)
}

#[test]
fn a_report_is_one_file_and_its_findings_are_printed() {
    let folder = tempfile::tempdir().expect("a folder");
    fs::write(folder.path().join("data"), vec![7; 1 << 20]).expect("a file");
    let line = "run --engine=sync -b4K -r -d1 -W0 -L -D100 --output json=run.json --store=x data";
    plumb(&folder, line).ends_with(0);
    let told = plumb(&folder, "report run.json -o run.html").succeeds_quietly().stdout;
    assert!(told.contains("I/Os per second") && told.ends_with("\nrun.html\n"), "{told}");
    let page = fs::read_to_string(folder.path().join("run.html")).expect("a page");
    for part in
        ["<!doctype html>", "4 KiB random, reads, t1 o2", "Latency by percentile", "new uPlot"]
    {
        assert!(page.contains(part), "{part}");
    }
    // It may be made again, but nothing else is replaced.
    let told = plumb(&folder, "report x run.json -o run.html").succeeds_quietly().stdout;
    assert!(told.contains("run.json against x"), "{told}");
    let refused = plumb(&folder, "report x -o data").ends_with(1).stderr;
    assert!(refused.contains("is there and is no report"), "{refused}");

    let tables = repository().join("crates/plumb-study/tests/data").canonicalize().expect("data");
    let line = format!("report {} -o -", tables.join("sequential-reads.csv").display());
    let page = plumb(&folder, &line).succeeds_quietly().stdout;
    assert!(page.contains("sequential-reads.csv: More outstanding I/Os stop paying at o31"));
    let refused = plumb(&folder, "report nothing").ends_with(1).stderr;
    assert!(refused.contains("cannot read nothing"), "{refused}");
    plumb(&folder, "report").ends_with(2);
}
