//! Which of its programs `plumb` is asked to be.

use std::ffi::{OsStr, OsString};
use std::path::Path;

/// What the words of a command line ask for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Invocation {
    /// The load generator, with DISKSPD's arguments.
    Load {
        /// What the report's command line begins with: `plumb run`, or the name it was called by.
        program: String,
        /// What follows.
        arguments: Vec<OsString>,
    },
    /// Another subcommand, with everything that follows the program's name.
    Other(Vec<OsString>),
    /// Nothing was said.
    Usage,
    /// `plumb --help`.
    Help,
    /// `plumb --version`.
    Version,
    /// An option of `run` stands where a subcommand should.
    Misplaced(MisplacedOption),
}

/// `plumb -b4K f`: `run` was forgotten.
#[derive(Debug, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("`{option}` is an option, and plumb expects a command first")]
#[diagnostic(code(plumb::misplaced_option))]
pub(crate) struct MisplacedOption {
    option: String,
    #[help]
    remedy: String,
}

impl Invocation {
    /// Reads the words; `program` is what it was called as.
    pub(crate) fn read(program: &OsStr, words: Vec<OsString>) -> Self {
        if Path::new(program).file_name() == Some(OsStr::new("diskspd")) {
            let program = program.to_string_lossy().into_owned();
            return Self::Load { program, arguments: words };
        }
        let Some(first) = words.first() else { return Self::Usage };
        let first = first.to_string_lossy().into_owned();
        let is_alone = words.len() == 1;
        match first.as_str() {
            "run" | "diskspd" => {
                let program = format!("plumb {first}");
                Self::Load { program, arguments: words[1..].to_vec() }
            }
            "--help" => Self::Help,
            // `-h` is an option of DISKSPD too: with a target it was meant for `run`.
            "-h" | "-?" if is_alone => Self::Help,
            "--version" | "-V" => Self::Version,
            option if begins_like_an_option(option) => Self::Misplaced(MisplacedOption {
                remedy: format!("plumb run {}", shell_line(&words)),
                option: first,
            }),
            _ => Self::Other(words),
        }
    }
}

/// A dash, or what word processors make of one.
fn begins_like_an_option(word: &str) -> bool {
    word.starts_with(['-', '\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}'])
}

/// The words as one would type them in a shell.
fn shell_line(words: &[OsString]) -> String {
    let words: Vec<String> = words.iter().map(|word| shell_word(&word.to_string_lossy())).collect();
    words.join(" ")
}

fn shell_word(word: &str) -> String {
    let is_plain = |c: char| c.is_alphanumeric() || "-_=+:,./@%^\u{2013}\u{2014}".contains(c);
    if !word.is_empty() && word.chars().all(is_plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', "'\\''"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(program: &str, line: &str, want: &Invocation) {
        let words = line.split_whitespace().map(OsString::from).collect();
        assert_eq!(Invocation::read(OsStr::new(program), words), *want, "{program} {line}");
    }

    fn load(program: &str, arguments: &[&str]) -> Invocation {
        let arguments = arguments.iter().map(OsString::from).collect();
        Invocation::Load { program: program.to_owned(), arguments }
    }

    #[test]
    fn the_name_decides_first() {
        check("diskspd", "-b4K f", &load("diskspd", &["-b4K", "f"]));
        check("/opt/bin/diskspd", "run", &load("/opt/bin/diskspd", &["run"]));
        check("diskspd", "", &load("diskspd", &[]));
        check("plumb", "run -b4K f", &load("plumb run", &["-b4K", "f"]));
        check("plumb", "diskspd f", &load("plumb diskspd", &["f"]));
    }

    #[test]
    fn words_before_any_command_are_about_plumb() {
        check("plumb", "", &Invocation::Usage);
        for line in ["--help", "-h", "-?"] {
            check("plumb", line, &Invocation::Help);
        }
        for line in ["--version", "-V"] {
            check("plumb", line, &Invocation::Version);
        }
        let words = vec![OsString::from("convert"), OsString::from("results")];
        check("plumb", "convert results", &Invocation::Other(words));
    }

    #[test]
    fn a_forgotten_run_is_shown_as_it_should_be() {
        for (line, remedy) in [
            ("-b4K f", "plumb run -b4K f"),
            ("-h f", "plumb run -h f"),
            ("--block-size=4K #1", "plumb run --block-size=4K '#1'"),
            ("\u{2013}b4K it's", "plumb run \u{2013}b4K 'it'\\''s'"),
        ] {
            let option = line.split_whitespace().next().unwrap_or_default().to_owned();
            let error = MisplacedOption { option, remedy: remedy.to_owned() };
            check("plumb", line, &Invocation::Misplaced(error));
        }
    }
}
