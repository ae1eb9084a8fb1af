//! Rules about the repository itself that no compiler checks.
//!
//! Each rule is a function from the tree to its complaints, so that a test can plant a violation in a
//! made-up tree. The real tree is checked by an ordinary test, `the_repository_is_tidy`.

mod changelog;
mod decisions;
mod documents;
mod invariants;
mod layers;
mod links;
mod names;
mod sources;
mod tree;
mod words;

use std::fmt;
use std::io;
use std::path::Path;
use std::process::ExitCode;

use tree::Tree;

/// Every rule.
const RULES: &[fn(&Tree) -> Vec<Complaint>] = &[
    layers::order,
    sources::unsafe_forbidden,
    sources::module_docs,
    sources::length,
    sources::unfinished,
    names::forbidden,
    words::forbidden,
    links::dead,
    changelog::shape,
    decisions::shape,
    decisions::dependencies_explained,
    invariants::tested,
    documents::set_up,
    documents::paths_exist,
    documents::figures_tested,
    documents::skips_exist,
    documents::fuzz_bodies_exist,
];

/// Something that a rule does not like.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Complaint {
    /// From the root of the repository.
    path: String,
    /// From 1; 0 for the file as a whole.
    line: usize,
    /// What is wrong and what to do.
    what: String,
}

impl Complaint {
    fn file(path: &str, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: 0, what: what.into() }
    }

    /// `index` counts from 0, as `enumerate` does.
    fn line(path: &str, index: usize, what: impl Into<String>) -> Self {
        Self { path: path.to_owned(), line: index + 1, what: what.into() }
    }
}

impl fmt::Display for Complaint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { path, line, what } = self;
        match line {
            0 => write!(f, "{path}: {what}"),
            _ => write!(f, "{path}:{line}: {what}"),
        }
    }
}

/// Prints the complaints; fails if there are any.
pub(crate) fn run(repository: &Path) -> ExitCode {
    match complaints(repository) {
        Ok(0) => ExitCode::SUCCESS,
        Ok(_) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("the repository cannot be read: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Prints complaints and remarks; how many complaints there are.
///
/// # Errors
/// When the repository cannot be read.
pub(crate) fn complaints(repository: &Path) -> io::Result<usize> {
    let tree = Tree::read(repository)?;
    for remark in sources::long(&tree) {
        println!("remark: {remark}");
    }
    let complaints: Vec<Complaint> = RULES.iter().flat_map(|rule| rule(&tree)).collect();
    for complaint in &complaints {
        println!("{complaint}");
    }
    println!("tidy: {} rules, {} complaints", RULES.len(), complaints.len());
    Ok(complaints.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_repository_is_tidy() {
        let count = complaints(&crate::repository()).expect("the repository can be read");
        assert_eq!(count, 0, "tidy has complaints, listed above");
    }

    /// What a rule says about a made-up tree: one `path:line: …` per wanted complaint, in order; a
    /// wanted text ends early where only the beginning matters.
    pub(super) fn check(
        rule: fn(&Tree) -> Vec<Complaint>,
        files: &[(&str, &str)],
        wanted: &[&str],
    ) {
        let found: Vec<String> =
            rule(&Tree::planted(files)).iter().map(ToString::to_string).collect();
        assert_eq!(found.len(), wanted.len(), "{found:#?}");
        for (found, wanted) in found.iter().zip(wanted) {
            assert!(found.starts_with(wanted), "{found}\nshould begin with\n{wanted}");
        }
    }
}
