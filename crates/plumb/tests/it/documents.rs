//! Command lines in the documents: each is one that the program takes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::program::{outcome, path, repository};

/// Documents below a folder, with the folder's own.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The arguments of a line that calls `plumb run`, without comments, redirections and cargo.
fn arguments(line: &str) -> Option<Vec<String>> {
    let code = line.strip_prefix("    ")?.trim_start();
    let words = code
        .strip_prefix("plumb run ")
        .or(code.strip_prefix("cargo run --release -p plumb -- run "))?;
    let words = words.split(['>', '|']).next().unwrap_or_default();
    let words = words.split(" #").next().unwrap_or_default();
    Some(words.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect())
}

#[test]
fn every_command_line_in_the_documents_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = repository().join("examples").canonicalize().expect("examples are there");
    symlink(&examples, folder.path().join("examples")).expect("a link");
    for name in ["profile.xml", "oltp.xml"] {
        symlink(examples.join("profiles/oltp.xml"), folder.path().join(name)).expect("a link");
    }

    let mut files: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md"].map(|name| repository().join(name)).into();
    documents(&repository().join("docs"), &mut files);
    let mut seen = 0;
    for file in files {
        let text = fs::read_to_string(&file).expect("a document");
        for mut words in text.lines().filter_map(arguments) {
            let shown = format!("{}: plumb run {}", file.display(), words.join(" "));
            // Read and checked, not run. `-Rs` and `--help` run nothing anyway and stand alone.
            if !words.iter().any(|word| word.starts_with("-R") || word == "--help") {
                words.insert(0, "-Rp".to_owned());
            }
            let mut command = Command::new(path());
            command.arg("run").args(&words).current_dir(folder.path());
            let outcome = outcome(&mut command);
            assert_eq!(outcome.status, 0, "{shown}\n{}", outcome.stderr);
            seen += 1;
        }
    }
    assert!(seen >= 8, "{seen} command lines");
}
