//! The rules a profile must obey before it is run (spec 3.7, 15.8).

mod span;
mod target;

use super::error::{ErrorClass, Violation};
use super::model::{Profile, RawProfile};

/// What the profile is checked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A run follows: templates must have been filled in.
    Run,
    /// It is only printed (`-Rp`).
    Print,
}

impl RawProfile {
    /// Proves that the profile obeys every rule; warnings (spec 3.7) come beside it.
    ///
    /// Targets of a time span that are equal but for their path, as those of a command line are, are
    /// looked at once.
    ///
    /// # Errors
    /// Every rule that is broken, in the order of the spec.
    pub fn check(self, purpose: Purpose) -> Result<(Profile, Vec<String>), Vec<Violation>> {
        let mut findings = Findings::default();
        if self.time_spans.is_empty() {
            findings.violation(
                ErrorClass::NoTimespan,
                "the profile has no time span",
                "add a <TimeSpan> to <TimeSpans>",
            );
        }
        for (index, span) in self.time_spans.iter().enumerate() {
            let place = match self.time_spans.len() {
                1 => String::new(),
                _ => format!("time span {}: ", index + 1),
            };
            span::check(span, &place, purpose, &mut findings);
        }
        if findings.violations.is_empty() {
            Ok((Profile(self), findings.warnings))
        } else {
            Err(findings.violations)
        }
    }
}

/// What was found so far.
#[derive(Default)]
struct Findings {
    violations: Vec<Violation>,
    warnings: Vec<String>,
}

impl Findings {
    fn violation(
        &mut self,
        class: ErrorClass,
        message: impl Into<String>,
        help: impl Into<String>,
    ) {
        self.violations.push(Violation { class, message: message.into(), help: help.into() });
    }

    fn warning(&mut self, sentence: String) {
        self.warnings.push(sentence);
    }
}

#[cfg(test)]
mod tests;
