//! Where the cases are, and how a set reports.

use std::path::PathBuf;

/// The folder of the cases: `PLUMB_CONFORMANCE_DIR`, else the project's own copy.
pub(crate) fn folder() -> PathBuf {
    match std::env::var_os("PLUMB_CONFORMANCE_DIR") {
        Some(folder) => folder.into(),
        None => PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/data/conformance"),
    }
}

/// What a set found.
pub(crate) struct Set {
    name: &'static str,
    passed: u32,
    failed: u32,
}

impl Set {
    /// An empty set.
    pub(crate) fn new(name: &'static str) -> Self {
        Self { name, passed: 0, failed: 0 }
    }

    /// Counts a case; prints id and reason of a failed one.
    pub(crate) fn case(&mut self, id: &str, outcome: Result<(), String>) {
        match outcome {
            Ok(()) => self.passed += 1,
            Err(reason) => {
                self.failed += 1;
                println!("conformance {} FAILED {id}: {reason}", self.name);
            }
        }
    }

    /// A kind of cases that the folder may have: says so where it has none of them, and fails where that
    /// folder is the project's own.
    pub(crate) fn kind(&mut self, kind: &str, cases: usize) {
        if cases > 0 {
            return;
        }
        println!("conformance {}: no case of {kind} in {}", self.name, folder().display());
        if std::env::var_os("PLUMB_CONFORMANCE_DIR").is_none() {
            self.failed += 1;
        }
    }

    /// Prints the set's line and fails the test unless everything passed and there was something.
    pub(crate) fn finish(self) {
        println!("conformance {}: {} passed, {} failed", self.name, self.passed, self.failed);
        assert!(self.failed == 0, "{} cases of {} failed", self.failed, self.name);
        assert!(self.passed > 0, "no case of {} was found in {}", self.name, folder().display());
    }
}
