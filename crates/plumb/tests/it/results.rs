//! Where results go. The engine `null` touches no target, so these runs need none.

use std::fs;
use std::os::unix::fs::{FileTypeExt, symlink};
use std::path::Path;

use serde_json::Value;

use crate::program::{Outcome, call, path};

/// A run of no time at all, with outputs.
fn run(outputs: &[String]) -> Outcome {
    let mut words: Vec<String> =
        ["run", "--engine=null", "--progress-style=none", "-d0", "-W0"].map(str::to_owned).into();
    words.extend(outputs.iter().map(|output| format!("--output={output}")));
    words.push("nowhere.dat".to_owned());
    call(path(), &words)
}

fn output(format: &str, path: &Path) -> String {
    format!("{format}={}", path.display())
}

#[test]
fn every_format_goes_to_its_file() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = |name: &str| folder.path().join(name);
    let (text, xml, json) = (file("r.txt"), file("r.xml"), file("r.json"));
    let outcome = run(&[output("text", &text), output("xml", &xml), output("json", &json)]);
    let outcome = outcome.ends_with(0);
    let read = |path: &Path| fs::read_to_string(path).expect("a result");
    assert_eq!(read(&text), outcome.stdout);
    assert!(read(&xml).starts_with("<Results>\n"));
    let json: Value = serde_json::from_str(&read(&json)).expect("an object");
    assert!(json["schema_version"].is_u64());
    let mut names: Vec<_> =
        fs::read_dir(folder.path()).expect("a folder").map(|e| e.expect("e").file_name()).collect();
    names.sort();
    assert_eq!(names, ["r.json", "r.txt", "r.xml"], "nothing else is left behind");
}

#[test]
fn a_link_stays_and_its_file_gets_the_result() {
    let folder = tempfile::tempdir().expect("a folder");
    let (file, link) = (folder.path().join("file"), folder.path().join("link"));
    fs::write(&file, "old").expect("a file");
    symlink(&file, &link).expect("a link");
    run(&[output("xml", &link)]).ends_with(0);
    assert!(link.is_symlink());
    assert!(fs::read_to_string(&file).expect("the result").starts_with("<Results>\n"));
}

#[test]
fn a_device_is_written_to_and_never_replaced() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("r.xml");
    // Standard output and error are pipes here.
    let outcome = run(&["xml=/dev/stderr".to_owned(), output("xml", &file)]).ends_with(0);
    assert!(outcome.stderr.ends_with("</Results>"), "{}", outcome.stderr);

    let outcome = run(&["json=/dev/full".to_owned(), output("xml", &file)]).ends_with(1);
    assert!(outcome.stderr.contains("'/dev/full'"), "{}", outcome.stderr);
    assert!(file.is_file(), "the other result is written all the same");
    let kind = fs::metadata("/dev/full").expect("it is still there").file_type();
    assert!(kind.is_char_device());
}

#[test]
fn an_output_that_cannot_be_made_fails_before_the_run() {
    for path in ["/no/such/folder/r.xml", "/proc"] {
        let outcome = run(&[format!("xml={path}")]).ends_with(1);
        assert_eq!(outcome.stdout, "", "{path}");
        assert!(outcome.stderr.contains(path), "{}", outcome.stderr);
    }
}

#[test]
fn with_a_document_nothing_else_is_on_standard_output() {
    for (option, first) in [("-Rxml", "<Results>\n"), ("--json", "{")] {
        let words = ["run", "--engine=null", option, "-v", "-P1", "-d0", "-W0", "nowhere.dat"];
        let outcome = call(path(), &words).ends_with(0);
        assert!(outcome.stdout.starts_with(first), "{}", outcome.stdout);
        assert!(outcome.stderr.contains(": finished test...\n"), "{}", outcome.stderr);
    }
}
