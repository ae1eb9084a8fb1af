//! Rules that a line breaks as a whole: which of its options the error points at.

use super::error::CommandLineError;
use super::line::{Given, Line, Scan};
use super::table::Id;
use crate::profile::error::{ErrorClass, Violation};

/// Points at the last of the options that the first broken rule names; where none of them is on the line,
/// at the last one of the rule's class, or at the profile (`-X`) that holds what is wrong.
pub(super) fn error(scan: &Scan<'_>, line: &Line, broken: &[Violation]) -> CommandLineError {
    let error = CommandLineError::from_violations(broken);
    let is_end = |c: char| !c.is_ascii_alphanumeric() && c != '-';
    let words = broken[0].message.split(is_end).chain(broken[0].help.split(is_end));
    let mut words = words.filter(|word| word.starts_with('-'));
    let last = |is_it: &dyn Fn(&Given<'_>) -> bool| scan.options.iter().rfind(|given| is_it(given));
    let is_of_targets = broken[0].class == ErrorClass::TemplateTarget;
    let culprit = words
        .find_map(|word| last(&|given| says(given, word)))
        // A template that no target fills in is no fault of the profile.
        .or_else(|| last(&|given| given.id == Id::Profile && !is_of_targets))
        .or_else(|| last(&|given| given.id.class() == broken[0].class));
    match culprit {
        Some(given) => error.at(&line.whole(given.index), &line.tokens),
        None => error,
    }
}

/// Whether the option is the one that a rule calls `word`, by whatever name it was given. One letter of
/// `-S` may be meant: then those count that say it among others, and `-h` for what `-Sh` says.
fn says(given: &Given<'_>, word: &str) -> bool {
    let letters = word.strip_prefix("-S").filter(|letters| !letters.is_empty());
    match (given.id, letters) {
        (Id::Cache, Some(letters)) if given.value.is_empty() => letters.contains('u'),
        (Id::Cache, Some(letters)) => letters.chars().all(|letter| given.value.contains(letter)),
        (Id::DisableAllCache, Some(letters)) => letters == "h",
        _ => given.id.row().is_some_and(|row| row.short == word),
    }
}
