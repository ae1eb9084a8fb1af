//! What `cargo test` printed: counts, names of failed tests, skips, conformance sets.

use crate::skips::Skip;

/// The gist of a run of `cargo test`.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    /// Over all test binaries.
    pub(crate) passed: u64,
    /// Over all test binaries.
    pub(crate) failed: u64,
    /// Tests marked as ignored: the house forbids them, so the gate does too.
    pub(crate) ignored: u64,
    /// Names of the tests that failed.
    pub(crate) failures: Vec<String>,
    /// Tests that said that they were skipped, by name, each once.
    pub(crate) skips: Vec<Skip>,
    /// Lines of the conformance sets.
    pub(crate) conformance: Vec<String>,
}

impl Summary {
    /// Reads the lines.
    pub(crate) fn read(lines: &[String]) -> Self {
        let mut summary = Self::default();
        for line in lines {
            if let Some(counts) = line.strip_prefix("test result: ") {
                summary.count(counts);
            } else if let Some(test) = line.strip_prefix("test ") {
                if let Some(name) = test.strip_suffix(" ... FAILED") {
                    summary.failures.push(name.to_owned());
                }
            } else if let Some(skip) = Skip::parse(line) {
                summary.skips.push(skip);
            } else if is_conformance(line) && !summary.conformance.contains(line) {
                summary.conformance.push(line.clone());
            }
        }
        summary.skips.sort();
        summary.skips.dedup();
        summary
    }

    /// `ok. 3 passed; 0 failed; 0 ignored; …`
    fn count(&mut self, counts: &str) {
        for part in counts.split([';', '.']) {
            let mut words = part.split_whitespace();
            let (Some(number), Some(what)) = (words.next(), words.next()) else { continue };
            let Ok(number) = number.parse::<u64>() else { continue };
            match what {
                "passed" => self.passed += number,
                "failed" => self.failed += number,
                "ignored" => self.ignored += number,
                _ => {}
            }
        }
    }
}

/// Which lines of it are worth a look: all but what passing tests printed, of which skips and conformance sets are.
#[derive(Debug, Default)]
pub(crate) struct Display {
    in_successes: bool,
}

impl Display {
    /// Whether the next line is one.
    pub(crate) fn shows(&mut self, line: &str) -> bool {
        match line {
            "successes:" => self.in_successes = true,
            "failures:" => self.in_successes = false,
            _ if line.starts_with("test result: ") => self.in_successes = false,
            _ => {}
        }
        !self.in_successes || Skip::parse(line).is_some() || is_conformance(line)
    }
}

/// `conformance SET: N passed, N failed`
fn is_conformance(line: &str) -> bool {
    line.starts_with("conformance ") && line.contains(" passed, ") && line.ends_with(" failed")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_passing_tests_print_is_not_shown_but_for_what_counts() {
        let output = "
+running 2 tests
+test a::b ... ok
+test a::c ... FAILED
+
-successes:
-
----- a::b stdout ----
-thread panicked
+skipped raw_disk: no loop device
+conformance cmdline: 312 passed, 0 failed
-
-successes:
-    a::b
-
+failures:
+
+---- a::c stdout ----
+thread panicked
+
+failures:
+    a::c
+
+test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 5 filtered out; finished in 0.00s
+running 1 test";
        let mut display = Display::default();
        for line in output.lines().skip(1) {
            let (sign, line) = line.split_at(1);
            assert_eq!(display.shows(line), sign == "+", "{line}");
        }
    }

    #[test]
    fn everything_that_matters_is_found() {
        let output = "
     Running unittests src/lib.rs (target/debug/deps/plumb_units-1)

running 3 tests
test a::b ... ok
test a::c ... FAILED
skipped raw_disk: no loop device
conformance cmdline: 312 passed, 0 failed
conformance cmdline: 312 passed, 0 failed

failures:
    a::c

test result: FAILED. 2 passed; 1 failed; 0 ignored; 0 measured; 5 filtered out; finished in 0.00s
skipped raw_disk: no loop device
test result: ok. 40 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 1.50s";
        let lines: Vec<String> = output.lines().map(str::to_owned).collect();
        let summary = Summary::read(&lines);
        assert_eq!((summary.passed, summary.failed, summary.ignored), (42, 1, 1));
        assert_eq!(summary.failures, ["a::c"]);
        assert_eq!(summary.conformance, ["conformance cmdline: 312 passed, 0 failed"]);
        let skip = Skip { name: "raw_disk".to_owned(), why: "no loop device".to_owned() };
        assert_eq!(summary.skips, [skip]);
    }
}
