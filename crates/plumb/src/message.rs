//! Errors and warnings on standard error: message, causes, help.

use std::fmt::Write as _;
use std::io::{self, IsTerminal, Write};

use miette::Diagnostic;

/// Prints messages in one style.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printer {
    style: Style,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Style {
    /// Text.
    Plain,
    /// Text whose first words stand out.
    Coloured,
    /// An object per line.
    Json,
}

impl Printer {
    /// Text, coloured on a terminal unless the user does not want that (`NO_COLOR`).
    pub(crate) fn on_stderr() -> Self {
        let unwanted = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        let dumb = std::env::var_os("TERM").is_none_or(|terminal| terminal == "dumb");
        let coloured = io::stderr().is_terminal() && !unwanted && !dumb;
        Self { style: if coloured { Style::Coloured } else { Style::Plain } }
    }

    /// One JSON object per message (`--error-format=json`).
    pub(crate) fn json() -> Self {
        Self { style: Style::Json }
    }

    /// An error with everything that is known about it.
    pub(crate) fn error(self, error: &dyn Diagnostic) {
        self.print(&match self.style {
            Style::Json => format!("{}\n", json_of(error)),
            Style::Plain | Style::Coloured => text_of("error", error),
        });
    }

    /// A report that was laid out elsewhere, with lines that begin `error:`, `help:` and the like.
    pub(crate) fn report(self, report: &str) {
        self.print(&format!("{report}\n"));
    }

    /// Why a run failed: a message, and behind a line end and `help: ` what to do.
    pub(crate) fn failure(self, class: &str, text: &str) {
        self.print(&self.words_of_failure(class, text));
    }

    /// What [`Printer::failure`] prints, without colours.
    pub(crate) fn words_of_failure(self, class: &str, text: &str) -> String {
        let (message, help) = match text.split_once("\nhelp: ") {
            Some((message, help)) => (message, Some(help)),
            None => (text, None),
        };
        match self.style {
            Style::Json => {
                let object = serde_json::json!({
                    "error_class": class,
                    "message": message,
                    "token": null,
                    "help": help,
                });
                format!("{object}\n")
            }
            Style::Plain | Style::Coloured => {
                let mut lines = format!("error: {}\n", indented(message, "error: ".len()));
                if let Some(help) = help {
                    lines.push_str(&format!("help: {}\n", indented(help, "help: ".len())));
                }
                lines
            }
        }
    }

    /// Something that the user should know and that stops nothing.
    pub(crate) fn warning(self, message: &str) {
        self.print(&match self.style {
            Style::Json => {
                let object = serde_json::json!({ "severity": "warning", "message": message });
                format!("{object}\n")
            }
            Style::Plain | Style::Coloured => {
                format!("warning: {}\n", indented(message, "warning: ".len()))
            }
        });
    }

    /// Something good to know.
    pub(crate) fn note(self, message: &str) {
        self.print(&match self.style {
            Style::Json => {
                let object = serde_json::json!({ "severity": "note", "message": message });
                format!("{object}\n")
            }
            Style::Plain | Style::Coloured => {
                format!("note: {}\n", indented(message, "note: ".len()))
            }
        });
    }

    fn print(self, text: &str) {
        let text = match self.style {
            Style::Coloured => coloured(text),
            Style::Plain | Style::Json => text.to_owned(),
        };
        // Nobody is left to tell when standard error is closed.
        let _ = io::stderr().write_all(text.as_bytes());
    }
}

fn text_of(severity: &str, error: &dyn Diagnostic) -> String {
    let mut text =
        format!("{severity}: {}\n", indented(&error.to_string(), severity.len() + ": ".len()));
    for cause in causes(error) {
        writeln!(text, "cause: {}", indented(&cause, "cause: ".len())).expect("a string takes it");
    }
    if let Some(help) = error.help() {
        let help = indented(&help.to_string(), "help: ".len());
        writeln!(text, "help: {help}").expect("a string takes it");
    }
    text
}

/// The keys of every error, whatever it is about; the class is the last word of the code.
fn json_of(error: &dyn Diagnostic) -> serde_json::Value {
    let code = error.code().map(|code| code.to_string()).unwrap_or_default();
    let messages: Vec<String> = std::iter::once(error.to_string()).chain(causes(error)).collect();
    serde_json::json!({
        "error_class": code.rsplit("::").next().unwrap_or_default().replace('_', "-"),
        "message": messages.join(": "),
        "token": null,
        "help": error.help().map(|help| help.to_string()),
    })
}

/// What lies under an error, outermost first.
pub(crate) fn causes(error: &dyn Diagnostic) -> impl Iterator<Item = String> {
    std::iter::successors(error.source(), |cause| cause.source()).map(ToString::to_string)
}

/// Later lines begin below the text of the first.
fn indented(text: &str, columns: usize) -> String {
    text.trim_end().replace('\n', &format!("\n{}", " ".repeat(columns)))
}

/// Makes the first words of lines stand out, and the marks under a wrong option.
fn coloured(text: &str) -> String {
    const WORDS: [(&str, &str); 4] =
        [("error:", "1;31"), ("warning:", "1;33"), ("cause:", "1"), ("help:", "1;36")];
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let word = WORDS.iter().find(|(word, _)| line.starts_with(word));
        let marks = line.trim();
        if let Some((word, colour)) = word {
            let rest = &line[word.len()..];
            write!(out, "\x1b[{colour}m{word}\x1b[0m{rest}").expect("a string takes it");
        } else if !marks.is_empty() && marks.chars().all(|c| c == '^') {
            out.push_str(&line.replacen(marks, &format!("\x1b[1;31m{marks}\x1b[0m"), 1));
        } else {
            out.push_str(line);
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, thiserror::Error, Diagnostic)]
    #[error("cannot open f.dat\nfor direct I/O")]
    #[diagnostic(code(plumb::test), help("use ext4\nor XFS"))]
    struct Outer {
        source: Inner,
    }

    #[derive(Debug, thiserror::Error)]
    #[error("the file system refused")]
    struct Inner {
        source: io::Error,
    }

    fn sample() -> Outer {
        Outer { source: Inner { source: io::Error::other("Invalid argument") } }
    }

    #[test]
    fn an_error_shows_message_causes_and_help() {
        assert_eq!(
            text_of("error", &sample()),
            "error: cannot open f.dat\n       for direct I/O\n\
             cause: the file system refused\ncause: Invalid argument\n\
             help: use ext4\n      or XFS\n"
        );
    }

    #[test]
    fn a_program_gets_the_same_as_an_object() {
        assert_eq!(
            json_of(&sample()),
            serde_json::json!({
                "error_class": "test",
                "message": "cannot open f.dat\nfor direct I/O: the file system refused: Invalid argument",
                "token": null,
                "help": "use ext4\nor XFS",
            })
        );
    }

    #[test]
    fn only_first_words_and_marks_are_coloured() {
        let text = "error: a help: b\n\n  plumb run -q\n            ^^\nhelp: ^^ x\n";
        assert_eq!(
            coloured(text),
            "\x1b[1;31merror:\x1b[0m a help: b\n\n  plumb run -q\n            \x1b[1;31m^^\x1b[0m\n\
             \x1b[1;36mhelp:\x1b[0m ^^ x\n"
        );
    }
}
