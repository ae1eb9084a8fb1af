//! What is wrong with a command line, and how it is told.

use std::fmt;
use std::ops::Range;

use serde_json::json;

use crate::profile::error::{ErrorClass, Violation};

/// How errors are reported (`--error-format`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ErrorFormat {
    /// For people: what is wrong, where, and what to type instead.
    #[default]
    Text,
    /// For programs: one JSON object.
    Json,
}

/// The first thing that is wrong with a command line; for a profile that breaks rules, all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandLineError {
    /// Its class.
    pub class: ErrorClass,
    /// The program's exit code: 3, but 1 for events (spec 3.6).
    pub exit_code: u8,
    /// What is wrong. One line per broken rule of a profile, else one line.
    pub message: String,
    /// The token that is wrong, as it was given.
    pub token: Option<String>,
    /// Its place on the command line, from 0, without the program name.
    pub token_index: Option<usize>,
    /// The offending bytes of the token; empty where something is missing.
    pub span: Range<usize>,
    /// What to type instead.
    pub help: String,
    /// How it wants to be reported.
    pub format: ErrorFormat,
    context: Box<Context>,
}

/// What an error is shown with.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
struct Context {
    /// The option whose value the token is, if it is one.
    option: Option<String>,
    /// All tokens.
    line: Vec<String>,
    /// What programs are told instead of the class.
    kind: Option<String>,
}

/// Where something is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Place {
    /// The token whose bytes are wrong.
    pub(super) token: usize,
    /// The bytes.
    pub(super) span: Range<usize>,
    /// The token of the option, when that is another one.
    pub(super) option: usize,
}

impl CommandLineError {
    /// An error that concerns no token in particular.
    pub(super) fn new(
        class: ErrorClass,
        message: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self {
            class,
            exit_code: 3,
            message: message.into(),
            token: None,
            token_index: None,
            span: 0..0,
            help: help.into(),
            format: ErrorFormat::Text,
            context: Box::default(),
        }
    }

    /// Rules that a profile breaks; the class is that of the first.
    pub(super) fn from_violations(violations: &[Violation]) -> Self {
        let first = violations.first().expect("a profile is only refused for a reason");
        let messages: Vec<_> = violations.iter().map(|each| each.message.as_str()).collect();
        let mut helps: Vec<_> = violations.iter().map(|each| each.help.as_str()).collect();
        helps.dedup();
        Self::new(first.class, messages.join("\n"), helps.join("\n"))
    }

    /// The same error, pointing at a place of the line.
    pub(super) fn at(mut self, place: &Place, line: &[String]) -> Self {
        let token = &line[place.token];
        assert!(token.get(place.span.clone()).is_some(), "{:?} is in {token:?}", place.span);
        self.token = Some(token.clone());
        self.token_index = Some(place.token);
        self.span = place.span.clone();
        if place.option != place.token {
            self.context.option = Some(line[place.option].clone());
        }
        self
    }

    /// The same error under a narrower word than that of its class.
    pub(super) fn called(mut self, kind: &str) -> Self {
        self.context.kind = Some(kind.to_owned());
        self
    }

    /// The same error with everything it is shown with.
    pub(super) fn on(mut self, line: &[String], format: ErrorFormat) -> Self {
        self.context.line = line.to_vec();
        self.format = format;
        self
    }

    /// The report in the format asked for, without a line end; `program` goes before the tokens.
    #[must_use]
    pub fn render(&self, program: &str) -> String {
        match self.format {
            ErrorFormat::Text => self.to_text(program),
            ErrorFormat::Json => self.to_json().to_string(),
        }
    }

    /// One object: class, message, token, help.
    #[must_use]
    pub fn to_json(&self) -> serde_json::Value {
        json!({
            "error_class": self.context.kind.as_deref().unwrap_or(self.class.keyword()),
            "message": self.message,
            "token": self.token,
            "help": self.help,
        })
    }

    /// What is wrong and with which option, the line with a mark under the offending characters, help.
    #[must_use]
    pub fn to_text(&self, program: &str) -> String {
        let mut text = format!("error: {}", self.message.replace('\n', "\n       "));
        if let Some(token) = &self.token {
            let option = self.context.option.as_ref();
            let option = option.map_or(String::new(), |option| format!("{} ", visible(option)));
            text += &format!("\nincorrectly provided option: '{option}{}'", visible(token));
        }
        if let Some(index) = self.token_index {
            let (line, mark) = marked(program, &self.context.line, index, &self.span);
            text += &format!("\n\n  {line}\n  {mark}\n");
        }
        if !self.help.is_empty() {
            text += &format!("\nhelp: {}", self.help.replace('\n', "\n      "));
        }
        text
    }
}

impl fmt::Display for CommandLineError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for CommandLineError {}

/// The text with control characters written out, so that it stays on its line.
pub(super) fn visible(text: &str) -> String {
    let mut shown = String::with_capacity(text.len());
    text.chars().for_each(|c| push_visible(&mut shown, c));
    shown
}

fn push_visible(shown: &mut String, c: char) {
    if c.is_control() || is_invisible(c) {
        shown.extend(c.escape_default());
    } else {
        shown.push(c);
    }
}

/// Characters that show nothing but move or turn what follows.
fn is_invisible(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{2069}' | '\u{feff}')
}

/// Columns of a line that are shown on either side of the mark.
const CONTEXT: usize = 60;

/// The command line, and a line with `^` under the bytes `span` of token `index`.
fn marked(program: &str, tokens: &[String], index: usize, span: &Range<usize>) -> (String, String) {
    let mut line: Vec<char> = visible(program).chars().collect();
    let mut mark = 0..0;
    for (number, token) in tokens.iter().enumerate() {
        line.push(' ');
        let quote = token.is_empty() || token.contains(char::is_whitespace);
        line.extend(quote.then_some('\''));
        for (offset, c) in token.char_indices() {
            if number == index && offset == span.start {
                mark.start = line.len();
            }
            let mut shown = String::new();
            push_visible(&mut shown, c);
            line.extend(shown.chars());
            if number == index && offset < span.end {
                mark.end = line.len();
            }
        }
        if number == index && span.start >= token.len() {
            mark.start = line.len();
        }
        line.extend(quote.then_some('\''));
    }
    mark.end = mark.end.max(mark.start);
    cut(&line, &mark)
}

/// The part of a long line around the mark, and the line with the mark.
fn cut(line: &[char], mark: &Range<usize>) -> (String, String) {
    let first = mark.start.saturating_sub(CONTEXT);
    let first = if first <= 3 { 0 } else { first };
    let mark_end = mark.end.min(mark.start + CONTEXT);
    let last = (mark_end + CONTEXT).min(line.len());
    let (before, after) =
        (if first > 0 { "..." } else { "" }, if last < line.len() { "..." } else { "" });
    let text: String = line[first..last].iter().collect();
    let blanks = before.len() + columns(&line[first..mark.start]);
    let carets = columns(&line[mark.start..mark_end]).max(1);
    (format!("{before}{text}{after}"), format!("{}{}", " ".repeat(blanks), "^".repeat(carets)))
}

/// Columns that a terminal gives to the characters.
fn columns(text: &[char]) -> usize {
    text.iter().map(|&c| columns_of(c)).sum()
}

/// 0 for marks that combine with the character before, 2 for East Asian wide ones and pictures.
fn columns_of(c: char) -> usize {
    match u32::from(c) {
        0x300..=0x36f | 0x483..=0x489 | 0x591..=0x5bd | 0x610..=0x61a | 0x64b..=0x65f => 0,
        0x1ab0..=0x1aff | 0x1dc0..=0x1dff | 0x20d0..=0x20ff | 0xfe00..=0xfe0f => 0,
        0xfe20..=0xfe2f | 0xe0100..=0xe01ef => 0,
        0x1100..=0x115f | 0x2e80..=0x303e | 0x3041..=0x4dbf | 0x4e00..=0x9fff => 2,
        0xa000..=0xa4cf | 0xac00..=0xd7a3 | 0xf900..=0xfaff | 0xfe30..=0xfe6f => 2,
        0xff00..=0xff60 | 0xffe0..=0xffe6 | 0x1f300..=0x1f64f | 0x1f680..=0x1f6ff => 2,
        0x1f900..=0x1f9ff | 0x20000..=0x3fffd => 2,
        _ => 1,
    }
}
