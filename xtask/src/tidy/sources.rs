//! Rules about Rust files.

use super::Complaint;
use super::tree::Tree;

/// Longest file, in lines.
const LONGEST: usize = 800;
/// Where a remark is due.
const LONG: usize = 600;

/// Every crate but `plumb-sys` forbids unsafe code, in its tests and examples too.
pub(super) fn unsafe_forbidden(tree: &Tree) -> Vec<Complaint> {
    let attribute = concat!("#![forbid(", "unsafe_code)]");
    let missing = |(_, text): &(&str, &str)| !text.lines().any(|line| line.trim() == attribute);
    tree.texts_with(".rs")
        .filter(|(path, _)| is_crate_root(path) && !path.starts_with("crates/plumb-sys/"))
        .filter(missing)
        .map(|(path, _)| Complaint::file(path, format!("a crate begins with `{attribute}`")))
        .collect()
}

/// Whether the compiler begins a crate with this file.
fn is_crate_root(path: &str) -> bool {
    let Some(inside) = inside_package(path) else { return false };
    let folders: Vec<&str> = inside.split('/').collect();
    match folders.as_slice() {
        ["build.rs"] | ["src", "lib.rs" | "main.rs"] | ["src", "bin", _] => true,
        ["tests" | "examples" | "benches", file] => file.ends_with(".rs"),
        ["tests" | "examples" | "benches", _, "main.rs"] | ["src", "bin", _, "main.rs"] => true,
        _ => false,
    }
}

/// The path from the package's folder. Fuzz targets are crates whose macro brings its own unsafe code.
fn inside_package(path: &str) -> Option<&str> {
    if let Some(rest) = path.strip_prefix("crates/") {
        return Some(rest.split_once('/')?.1);
    }
    path.strip_prefix("xtask/").or(path.starts_with("examples/").then_some(path))
}

/// Every file says first what it is. A file of unit tests is what its place says.
pub(super) fn module_docs(tree: &Tree) -> Vec<Complaint> {
    let undocumented = |text: &str| {
        let mut lines = text.lines().filter(|line| !line.trim().is_empty());
        !lines
            .find(|line| !line.starts_with("#!["))
            .is_some_and(|line| line.starts_with("//! ") || line.starts_with("/*!"))
    };
    tree.texts_with(".rs")
        .filter(|(path, text)| !path.ends_with("tests.rs") && undocumented(text))
        .map(|(path, _)| Complaint::file(path, "begins with no `//!` line that says what it is"))
        .collect()
}

/// No file is longer than a reader can keep in mind.
pub(super) fn length(tree: &Tree) -> Vec<Complaint> {
    longer_than(tree, LONGEST, "split it along its nouns")
}

/// Files that are on their way there.
pub(super) fn long(tree: &Tree) -> Vec<Complaint> {
    longer_than(tree, LONG, "it should shrink")
}

fn longer_than(tree: &Tree, limit: usize, advice: &str) -> Vec<Complaint> {
    tree.texts_with(".rs")
        .map(|(path, text)| (path, text.lines().count()))
        .filter(|(_, lines)| *lines > limit)
        .map(|(path, lines)| {
            Complaint::file(path, format!("{lines} lines, over {limit}: {advice}"))
        })
        .collect()
}

/// What must not be left behind, and why.
const UNFINISHED: &[(&str, &str)] = &[
    (concat!("todo", "!("), "finish it, or return an error that says so"),
    (concat!("unimplemented", "!("), "finish it, or return an error that says so"),
    (concat!("#[ig", "nore"), "print `skipped NAME: WHY` instead"),
    (concat!("Other(", "String)"), "give each cause a variant"),
];

/// Nothing unfinished, no test that never runs, no error without a name.
pub(super) fn unfinished(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts_with(".rs") {
        for (index, line) in text.lines().enumerate() {
            for (word, advice) in UNFINISHED {
                if line.contains(word) {
                    complaints.push(Complaint::line(path, index, format!("`{word}`: {advice}")));
                }
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    #[test]
    fn a_crate_that_allows_unsafe_code_is_refused() {
        let bare = "//! A crate.\n";
        check(
            unsafe_forbidden,
            &[
                ("crates/plumb-io/src/lib.rs", bare),
                ("crates/plumb-io/src/queue.rs", bare),
                ("crates/plumb-io/tests/it/main.rs", bare),
                ("crates/plumb-io/tests/it/helper.rs", bare),
                ("crates/plumb-sys/src/lib.rs", bare),
                ("examples/read.rs", bare),
                ("xtask/src/main.rs", "//! Good.\n#![forbid(unsafe_code)]\n"),
            ],
            &[
                "crates/plumb-io/src/lib.rs: ",
                "crates/plumb-io/tests/it/main.rs: ",
                "examples/read.rs: ",
            ],
        );
    }

    #[test]
    fn a_file_that_does_not_say_what_it_is_is_refused() {
        check(
            module_docs,
            &[
                ("a.rs", "use std::fmt;\n"),
                ("b.rs", "#![forbid(unsafe_code)]\n//! Says it.\n"),
                ("c.rs", "\n//! Says it.\n"),
                ("d.rs", ""),
                ("e.rs", "//!\n"),
                ("check/tests.rs", "use super::*;\n"),
            ],
            &["a.rs: ", "d.rs: ", "e.rs: "],
        );
    }

    #[test]
    fn a_file_of_801_lines_is_refused_and_one_of_601_remarked() {
        let lines = |count: usize| "x\n".repeat(count);
        let files = [("a.rs", lines(800)), ("b.rs", lines(801)), ("c.rs", lines(600))];
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (*p, t.as_str())).collect();
        check(length, &files, &["b.rs: 801 lines"]);
        check(long, &files, &["a.rs: 800 lines", "b.rs: 801 lines"]);
    }

    #[test]
    fn unfinished_work_is_refused() {
        let text = UNFINISHED.iter().map(|(word, _)| format!("{word}\n")).collect::<String>();
        check(unfinished, &[("a.rs", &text)], &["a.rs:1: ", "a.rs:2: ", "a.rs:3: ", "a.rs:4: "]);
    }
}
