//! What the program that has a pool answers to wishes that want an answer: a file beside the list of pools with a line for
//! each of the last ones. Every such wish has a number of its own.

use std::collections::VecDeque;
use std::fs::File;
use std::io::Write;
use std::path::PathBuf;

use super::chronicle::{plain, read};
use super::registry::Registry;

const HEADING: &str = "plumb-answers 1";
/// The file's extension.
pub(super) const EXTENSION: &str = "answers";
/// The longest file that is read.
const FILE_MAX: u64 = 64 << 10;
/// Answers that are kept.
const KEPT: usize = 64;

/// An answer: taken, or why not.
pub(super) type Answer = Result<(), String>;

fn path(registry: &Registry, pool: &str) -> PathBuf {
    registry.folder().join(format!("{pool}.{EXTENSION}"))
}

/// Writes answers down.
#[derive(Debug)]
pub(super) struct Answers {
    path: PathBuf,
    last: VecDeque<(u64, Answer)>,
}

impl Answers {
    pub(super) fn new(registry: &Registry, pool: &str) -> Self {
        Self { path: path(registry, pool), last: VecDeque::new() }
    }

    /// Answers the wish of that number.
    pub(super) fn tell(&mut self, number: u64, answer: Answer) {
        if self.last.len() == KEPT {
            self.last.pop_front();
        }
        self.last.push_back((number, answer));
        let mut text = format!("{HEADING}\n");
        for (number, answer) in &self.last {
            match answer {
                Ok(()) => text.push_str(&format!("{number:016x}\ttaken\n")),
                Err(why) => text.push_str(&format!("{number:016x}\trefused\t{}\n", plain(why))),
            }
        }
        let beside = self.path.with_extension("answers-new");
        // Best effort: whoever asked is told that nothing was heard.
        let _ = File::create(&beside)
            .and_then(|mut file| file.write_all(text.as_bytes()))
            .and_then(|()| std::fs::rename(&beside, &self.path));
    }
}

/// What was answered to the wish of that number, if anything was.
pub(super) fn answer_to(registry: &Registry, pool: &str, number: u64) -> Option<Answer> {
    parse(&read(&path(registry, pool), FILE_MAX)?, number)
}

/// The answer in a text.
pub(super) fn parse(text: &str, number: u64) -> Option<Answer> {
    let mut lines = text.lines();
    if lines.next()? != HEADING {
        return None;
    }
    lines.find_map(|line| {
        let mut fields = line.splitn(3, '\t');
        let found = u64::from_str_radix(fields.next()?, 16).ok()?;
        match (fields.next()?, fields.next()) {
            _ if found != number => None,
            ("taken", None) => Some(Ok(())),
            ("refused", Some(why)) => Some(Err(why.to_owned())),
            _ => None,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_read_back_by_their_number() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(folder.path());
        assert_eq!(answer_to(&registry, "p", 7), None);
        let mut answers = Answers::new(&registry, "p");
        answers.tell(7, Ok(()));
        answers.tell(u64::MAX, Err("it is\tnot\nto be".to_owned()));
        assert_eq!(answer_to(&registry, "p", 7), Some(Ok(())));
        assert_eq!(
            answer_to(&registry, "p", u64::MAX),
            Some(Err("it is not to be".to_owned())),
            "one line"
        );
        assert_eq!(answer_to(&registry, "p", 8), None);
        assert_eq!(answer_to(&registry, "q", 7), None);
        (100..100 + 64).for_each(|number| answers.tell(number, Ok(())));
        assert_eq!(answer_to(&registry, "p", 7), None, "not for ever");
        assert_eq!(answer_to(&registry, "p", 100), Some(Ok(())));
        for text in
            ["", "plumb-answers 2\n7\ttaken\n", "plumb-answers 1\n7\ttaken\tx\n7\tgone\n7\nx\n"]
        {
            assert_eq!(parse(text, 7), None, "{text}");
        }
    }
}
