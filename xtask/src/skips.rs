//! Tests that said `skipped NAME: WHY`, against the committed lists of those that may.
//!
//! `xtask/skips/without-CAPABILITY.txt` names, one a line, the tests that may be skipped on a machine
//! without that capability (`cargo xtask machine` shows them); `#` begins a comment. A skip that no list
//! of this machine names fails the gate.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::{fs, io};

use crate::machine::Machine;

/// Where the lists are.
pub(crate) const FOLDER: &str = "xtask/skips";

/// A test that did not do its work, and why.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Skip {
    /// The test's name.
    pub(crate) name: String,
    /// What was missing.
    pub(crate) why: String,
}

impl Skip {
    /// Reads a line of a test's output. A name may have blanks: `uring with direct I/O`.
    pub(crate) fn parse(line: &str) -> Option<Self> {
        let (name, why) = line.strip_prefix("skipped ")?.split_once(": ")?;
        let is_name = !name.is_empty() && name.trim() == name;
        is_name.then(|| Self { name: name.to_owned(), why: why.trim().to_owned() })
    }
}

/// The committed lists: test name → the capability without which it may be skipped.
pub(crate) struct Lists {
    allowed: BTreeMap<String, Vec<String>>,
}

impl Lists {
    /// Reads every list of the repository.
    ///
    /// # Errors
    /// When the folder cannot be read, or a file there is no list.
    pub(crate) fn read(repository: &Path) -> io::Result<Self> {
        let mut lists = Self { allowed: BTreeMap::new() };
        for entry in fs::read_dir(repository.join(FOLDER))? {
            let path = entry?.path();
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            lists.add(&name, &fs::read_to_string(&path)?).map_err(io::Error::other)?;
        }
        Ok(lists)
    }

    /// Takes in one list.
    ///
    /// # Errors
    /// When the file's name names no capability.
    pub(crate) fn add(&mut self, file: &str, text: &str) -> Result<(), String> {
        let capability = file.strip_prefix("without-").and_then(|rest| rest.strip_suffix(".txt"));
        let Some(capability) = capability.filter(|name| Machine::knows(name)) else {
            return Err(format!(
                "{FOLDER}/{file}: not a list; name it without-CAPABILITY.txt, \
                 with a capability of `cargo xtask machine`"
            ));
        };
        for name in names(text) {
            self.allowed.entry(name.to_owned()).or_default().push(capability.to_owned());
        }
        Ok(())
    }

    /// The capability that excuses a skip on this machine.
    fn excuse(&self, skip: &Skip, machine: &Machine) -> Option<&str> {
        let capabilities = self.allowed.get(&skip.name)?;
        let missing = |capability: &&String| machine.lacks().contains(&capability.as_str());
        capabilities.iter().find(missing).map(String::as_str)
    }
}

/// The tests that a list names.
pub(crate) fn names(list: &str) -> impl Iterator<Item = &str> {
    list.lines()
        .map(|line| line.split_once('#').map_or(line, |(name, _)| name).trim())
        .filter(|name| !name.is_empty())
}

/// Every skip with the list that allows it; the number of those that none does.
pub(crate) fn compare(skips: &[Skip], lists: &Lists, machine: &Machine) -> (String, usize) {
    let mut report = String::new();
    let mut unexpected = 0;
    for skip in skips {
        let Skip { name, why } = skip;
        let line = match lists.excuse(skip, machine) {
            Some(capability) => format!("skipped {name}: {why} (listed: without-{capability})"),
            None => {
                unexpected += 1;
                format!("UNEXPECTED skipped {name}: {why}")
            }
        };
        writeln!(report, "{line}").expect("writing to a string works");
    }
    (report, unexpected)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(list: &[(&str, &str)], lacks: &[&'static str], line: &str, want: &str) {
        let mut lists = Lists { allowed: BTreeMap::new() };
        for (file, text) in list {
            lists.add(file, text).expect("a list");
        }
        let skip = Skip::parse(line).expect("a skip line");
        let (report, unexpected) = compare(&[skip], &lists, &Machine::lacking(lacks));
        assert_eq!(report.trim_end(), want);
        assert_eq!(unexpected, usize::from(want.starts_with("UNEXPECTED")));
    }

    #[test]
    fn a_listed_skip_passes_only_where_the_capability_is_missing() {
        let list = [("without-loop.txt", "# comment\n\nraw_disk # needs one\n")];
        check(
            &list,
            &["loop"],
            "skipped raw_disk: no loop device",
            "skipped raw_disk: no loop device (listed: without-loop)",
        );
        check(
            &list,
            &["uring"],
            "skipped raw_disk: no loop device",
            "UNEXPECTED skipped raw_disk: no loop device",
        );
        check(&list, &["loop"], "skipped other: why", "UNEXPECTED skipped other: why");
    }

    #[test]
    fn only_lines_of_the_shape_count() {
        for line in ["skipped", "skipped : why", "skipped  a: why", " skipped a: b", "a: b"] {
            assert_eq!(Skip::parse(line), None, "{line}");
        }
    }

    #[test]
    fn a_list_about_nothing_is_refused() {
        let mut lists = Lists { allowed: BTreeMap::new() };
        assert!(lists.add("without-moon.txt", "").is_err());
        assert!(lists.add("README.md", "").is_err());
    }

    #[test]
    fn the_committed_lists_can_be_read() {
        Lists::read(&crate::repository()).expect("xtask/skips holds lists only");
    }
}
