//! What is accepted, but worth a word (spec 3.4, D-17, D-18, D-23).

use std::ops::Range;

use super::error::visible;
use super::line::{Given, Line, Scan};

/// Warnings with the places of the tokens they speak of.
#[derive(Debug, Default)]
pub(super) struct Warnings(Vec<(usize, String)>);

impl Warnings {
    pub(super) fn add(&mut self, token: usize, sentence: impl Into<String>) {
        self.0.push((token, sentence.into()));
    }

    /// Warns if characters of the value are left over from byte `end` on (D-17).
    pub(super) fn leftover(&mut self, given: &Given<'_>, end: usize) {
        self.ignored(given, end..given.value.len());
    }

    /// Warns if these bytes of the value are any (D-17).
    pub(super) fn ignored(&mut self, given: &Given<'_>, bytes: Range<usize>) {
        let ignored = &given.value[bytes];
        if ignored.is_empty() {
            return;
        }
        let mut sentence =
            format!("'{}': '{}' is ignored", visible(given.token()), visible(ignored));
        if let Some(help) = given.help_for_misspelling() {
            sentence += &format!("; {help}");
        }
        self.add(given.index, sentence);
    }

    /// One line, however many tokens begin with a typographic dash (D-23).
    pub(super) fn dashes(&mut self, scan: &Scan<'_>, line: &Line) {
        let [first, others @ ..] = scan.dashes.as_slice() else { return };
        let token = visible(&line.tokens[*first]);
        let more = match others.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        self.add(0, format!("typographic dash read as - in '{token}'{more}"));
    }

    /// All of them, in the order of the line.
    pub(super) fn into_sentences(mut self) -> Vec<String> {
        self.0.sort_by_key(|(token, _)| *token);
        self.0.into_iter().map(|(_, sentence)| sentence).collect()
    }
}
