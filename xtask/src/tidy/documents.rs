//! What documents and lists promise about other files.

use super::Complaint;
use super::tree::Tree;
use crate::{skips, smoke};

const CI: &str = ".ci/run";
const README: &str = "README.md";
const FIGURES: &str = "docs/internals/worked-figures.md";

/// The README shows the two commands that set everything up, and CI runs just the second of them.
pub(super) fn set_up(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let readme = tree.text(README).unwrap_or_default();
    if smoke::main_command(readme).is_none() {
        complaints.push(Complaint::file(README, "it does not show the main command"));
    }
    let script = tree.text(CI).unwrap_or_default();
    let last = script.lines().rev().map(str::trim).find(|line| !line.is_empty());
    let command = last.and_then(|line| line.strip_prefix("exec "));
    match command {
        None => complaints.push(Complaint::file(CI, "it does not end with `exec TEST COMMAND`")),
        Some(command) => {
            if !readme.lines().any(|line| line.trim() == command) {
                let what = format!("its test command `{command}` is not in {README}");
                complaints.push(Complaint::file(CI, what));
            }
        }
    }
    complaints
}

/// Every path that a document names in backticks exists.
pub(super) fn paths_exist(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, text) in tree.texts_with(".md") {
        for (index, line) in text.lines().enumerate() {
            for name in line.split('`').skip(1).step_by(2) {
                let is_path = ["crates/", "docs/", "examples/", "fuzz/", "xtask/"]
                    .iter()
                    .any(|folder| name.starts_with(folder));
                let is_plain = !name.contains(|c: char| c.is_whitespace() || "*{<".contains(c));
                if is_path
                    && is_plain
                    && !has_blank(name)
                    && !tree.exists(name.trim_end_matches('/'))
                {
                    complaints.push(Complaint::line(path, index, format!("there is no `{name}`")));
                }
            }
        }
    }
    complaints
}

/// Whether a word in capitals stands for something to be filled in: `without-NAME.txt`.
fn has_blank(path: &str) -> bool {
    let is_blank = |word: &str| {
        word.len() >= 4 && word != "README" && word.chars().all(|c| c.is_ascii_uppercase())
    };
    path.split(|c: char| !c.is_alphanumeric()).any(is_blank)
}

/// Every test that the list of worked figures names exists.
pub(super) fn figures_tested(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    let rows = tree.text(FIGURES).unwrap_or_default().lines().enumerate();
    for (index, row) in rows.filter(|(_, row)| row.starts_with("| ")) {
        // The last cell names them in backticks.
        let cell = row.trim_end_matches([' ', '|']).rsplit('|').next().unwrap_or_default();
        for name in cell.split('`').skip(1).step_by(2) {
            let head = format!("fn {name}()");
            if !tree.texts_with(".rs").any(|(_, code)| code.contains(&head)) {
                let what = format!("there is no test `{name}`");
                complaints.push(Complaint::line(FIGURES, index, what));
            }
        }
    }
    complaints
}

/// Every test that a skip list names exists.
pub(super) fn skips_exist(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, list) in tree.texts().filter(|(path, _)| path.starts_with(skips::FOLDER)) {
        for name in skips::names(list) {
            // A name is a test, or begins with the case of one: `uring_plain with direct I/O`.
            let word = name.split(' ').next().unwrap_or(name);
            if !tree.texts_with(".rs").any(|(_, code)| code.contains(word)) {
                complaints
                    .push(Complaint::file(path, format!("no source names `{name}` any more")));
            }
        }
    }
    complaints
}

/// Every fuzz target wraps a body that exists: nothing else would notice, `fuzz/` needs a nightly
/// compiler.
pub(super) fn fuzz_bodies_exist(tree: &Tree) -> Vec<Complaint> {
    let mut complaints = Vec::new();
    for (path, target) in tree.texts_with(".rs").filter(|(path, _)| path.starts_with("fuzz/")) {
        let bodies: Vec<&str> = target
            .split(|c: char| !c.is_alphanumeric() && c != '_')
            .filter(|word| word.starts_with("fuzz_") && *word != "fuzz_target")
            .collect();
        if bodies.is_empty() {
            complaints.push(Complaint::file(path, "it wraps no `fuzz_…` function"));
        }
        for body in bodies {
            let head = format!("pub fn {body}(");
            let mut sources =
                tree.texts_with(".rs").filter(|(path, _)| path.starts_with("crates/"));
            if !sources.any(|(_, code)| code.contains(&head)) {
                complaints.push(Complaint::file(path, format!("there is no `{head}&[u8])`")));
            }
        }
    }
    complaints
}

#[cfg(test)]
mod tests {
    use super::super::tests::check;
    use super::*;

    const MAIN: &str = "    cargo run --release -p plumb -- baseline f.dat\n";

    #[test]
    fn ci_runs_what_the_readme_says() {
        let readme = format!("{MAIN}    cargo xtask check\n");
        let good = "#!/bin/bash\n\nexec cargo xtask check\n";
        check(set_up, &[(README, &readme), (CI, good)], &[]);
        check(
            set_up,
            &[(README, "# Plumb\n"), (CI, "exec cargo test\n")],
            &["README.md: it does not show", ".ci/run: its test command `cargo test` is not in"],
        );
        check(
            set_up,
            &[(README, &readme), (CI, "cargo xtask check\necho ok\n")],
            &[".ci/run: it does not end with"],
        );
    }

    #[test]
    fn a_document_that_names_a_missing_file_is_refused() {
        let text =
            "`crates/a.rs` `crates/b.rs` `docs/` `xtask/skips/without-NAME.txt`\n`docs/c d`\n";
        check(
            paths_exist,
            &[("ARCHITECTURE.md", text), ("crates/a.rs", ""), ("docs/a.md", "")],
            &["ARCHITECTURE.md:1: there is no `crates/b.rs`"],
        );
    }

    #[test]
    fn a_figure_without_its_test_is_refused() {
        let table = "| a | b | test |\n|---|---|---|\n| 1 | `x` | `here`, there: `gone` |\n";
        check(
            figures_tested,
            &[(FIGURES, table), ("a.rs", "#[test]\nfn here() {}")],
            &["docs/internals/worked-figures.md:3: there is no test `gone`"],
        );
    }

    #[test]
    fn a_list_that_names_no_test_is_refused() {
        check(
            skips_exist,
            &[("xtask/skips/without-root.txt", "here\ngone # why\n"), ("a.rs", "\"here\"")],
            &["xtask/skips/without-root.txt: no source names `gone`"],
        );
    }

    #[test]
    fn a_fuzz_target_without_its_body_is_refused() {
        check(
            fuzz_bodies_exist,
            &[
                ("crates/plumb-load/src/a.rs", "pub fn fuzz_line(bytes: &[u8]) {}"),
                ("fuzz/fuzz_targets/line.rs", "fuzz_target!(|b: &[u8]| plumb_load::fuzz_line(b));"),
                ("fuzz/fuzz_targets/none.rs", "fuzz_target!(|b: &[u8]| ());"),
                ("fuzz/fuzz_targets/old.rs", "fuzz_target!(|b: &[u8]| plumb_load::fuzz_old(b));"),
            ],
            &[
                "fuzz/fuzz_targets/none.rs: it wraps no",
                "fuzz/fuzz_targets/old.rs: there is no `pub fn fuzz_old(",
            ],
        );
    }
}
