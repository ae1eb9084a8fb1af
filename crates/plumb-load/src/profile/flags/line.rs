//! The tokens of a command line, sorted into options and targets.

use std::ffi::OsString;
use std::ops::Range;

use super::dash;
use super::error::{CommandLineError, Place, visible};
use super::long;
use super::options::RunOptions;
use super::short;
use super::table::Id;
use super::values::{At, Fault};
use crate::profile::error::ErrorClass;

/// The tokens as text.
pub(super) struct Line {
    /// Bytes that are no UTF-8 are replaced.
    pub(super) tokens: Vec<String>,
    /// The first token that is no UTF-8, and the bytes of its text that stand for the first bad one.
    unreadable: Option<(usize, Range<usize>)>,
}

/// An option as it was given.
#[derive(Debug, Clone)]
pub(super) struct Given<'a> {
    pub(super) id: Id,
    /// As typed but with plain dashes: `-b`, `--block-size`.
    pub(super) name: String,
    /// What the short form would have after its name; empty for none.
    pub(super) value: &'a str,
    /// The place of its token.
    pub(super) index: usize,
    /// Whether the long form was used.
    pub(super) long: bool,
    line: &'a [String],
    /// The token with the value, and its bytes in it; `None` if it was not typed.
    value_at: Option<(usize, Range<usize>)>,
    /// Whether the value is another than the one that was typed.
    reworded: bool,
}

/// A command line taken apart.
pub(super) struct Scan<'a> {
    /// Its options, left to right, but for those of a wrong shape.
    pub(super) options: Vec<Given<'a>>,
    /// The places of its targets.
    pub(super) targets: Vec<usize>,
    /// The place of a bare `--`.
    pub(super) end_of_options: Option<usize>,
    /// The places of tokens that begin with a typographic dash.
    pub(super) dashes: Vec<usize>,
    /// An option that follows a target.
    pub(super) misplaced: Option<usize>,
    /// The first long option of a wrong shape.
    pub(super) misshapen: Option<CommandLineError>,
    /// What Plumb's own options say.
    pub(super) run: RunOptions,
}

impl Line {
    pub(super) fn read(args: &[OsString]) -> Self {
        let tokens = args.iter().map(|arg| arg.to_string_lossy().into_owned()).collect();
        let unreadable = args.iter().enumerate().find_map(|(index, arg)| {
            let bad = std::str::from_utf8(arg.as_encoded_bytes()).err()?.valid_up_to();
            Some((index, bad..bad + char::REPLACEMENT_CHARACTER.len_utf8()))
        });
        Self { tokens, unreadable }
    }

    /// Fails if a token is no text.
    pub(super) fn readable(&self) -> Result<(), CommandLineError> {
        let Some((index, span)) = &self.unreadable else { return Ok(()) };
        let is_option = dash::sign(&self.tokens[*index]).is_some();
        let (class, what) = match is_option {
            true => (ErrorClass::UnknownOption, "option"),
            false => (ErrorClass::NoTarget, "target"),
        };
        let remedy = match is_option {
            true => "type the option anew: a byte came along that is no character",
            false => {
                "paths go into profiles and results, which are UTF-8: \
                 rename the file, or reach it through a symbolic link"
            }
        };
        // `--destroy NAME`: what looks like a target is the value of the option before it.
        let before = index.checked_sub(1).map(|before| self.tokens[before].as_str());
        let before = before.filter(|token| token.starts_with("--") && !token.contains('='));
        let what = match before {
            Some(option) if !is_option => format!("value of {}", visible(option)),
            _ => what.to_owned(),
        };
        let error = CommandLineError::new(class, format!("the {what} is not valid UTF-8"), remedy);
        let place = Place { token: *index, span: span.clone(), option: *index };
        Err(error.at(&place, &self.tokens))
    }

    /// Fails if an option follows a target.
    pub(super) fn in_order(&self, scan: &Scan<'_>) -> Result<(), CommandLineError> {
        let Some(index) = scan.misplaced else { return Ok(()) };
        let target = visible(&self.tokens[scan.targets[0]]);
        let option = visible(&self.tokens[index]);
        // `-b 4K`: what looks like a target is the value of the option before it.
        let first = scan.targets[0];
        let apart = scan.options.iter().find(|given| given.index + 1 == first);
        if let Some(help) = apart.and_then(Given::help_for_apart) {
            let message = format!(
                "{} stands apart from its value '{target}'",
                apart.map_or("", |given| &given.name)
            );
            let error = CommandLineError::new(ErrorClass::OptionAfterTarget, message, help);
            return Err(error.at(&self.whole(first), &self.tokens));
        }
        let error = CommandLineError::new(
            ErrorClass::OptionAfterTarget,
            format!("options must come before the targets, but '{option}' follows '{target}'"),
            format!(
                "write {option} before '{target}'; a file of such a name is given as ./{option}"
            ),
        );
        Err(error.at(&self.whole(index), &self.tokens))
    }

    /// Sorts the tokens. What is wrong is noted: the first pass decides what is reported first.
    pub(super) fn scan(&self) -> Scan<'_> {
        let mut scan = Scan {
            options: Vec::new(),
            targets: Vec::new(),
            end_of_options: None,
            dashes: Vec::new(),
            misplaced: None,
            misshapen: None,
            run: RunOptions::default(),
        };
        let mut next = 0;
        while let Some(token) = self.tokens.get(next) {
            let index = next;
            next += 1;
            if scan.end_of_options.is_some() {
                scan.targets.push(index);
                continue;
            }
            let Some(sign) = dash::sign(token) else {
                scan.targets.push(index);
                continue;
            };
            if sign.typographic {
                scan.dashes.push(index);
            }
            if !scan.targets.is_empty() {
                scan.misplaced.get_or_insert(index);
                continue;
            }
            if sign.long && sign.len == token.len() {
                scan.end_of_options = Some(index);
            } else if sign.long {
                match long::read(&self.tokens, index, sign.len) {
                    Ok(given) => {
                        next += usize::from(given.value_is_a_token());
                        scan.push(given);
                    }
                    Err(error) => {
                        next += error.swallowed;
                        scan.misshapen.get_or_insert(*error.error);
                    }
                }
            } else {
                scan.push(short::read(&self.tokens, index, sign.len));
            }
        }
        scan
    }

    /// All of a token.
    pub(super) fn whole(&self, index: usize) -> Place {
        Place { token: index, span: 0..self.tokens[index].len(), option: index }
    }
}

impl<'a> Scan<'a> {
    fn push(&mut self, given: Given<'a>) {
        if given.id.is_plumbs()
            && let Err(fault) = self.run.apply(&given)
        {
            self.misshapen.get_or_insert(given.error(&fault));
        }
        self.options.push(given);
    }
}

impl<'a> Given<'a> {
    pub(super) fn new(
        line: &'a [String],
        index: usize,
        (id, name): (Id, String),
        value: &'a str,
        value_at: Option<(usize, usize)>,
    ) -> Self {
        let long = name.starts_with("--");
        let value_at = value_at.map(|(token, start)| (token, start..start + value.len()));
        Self { id, name, value, index, long, line, value_at, reworded: false }
    }

    /// The same option with a value that was not typed like this.
    pub(super) fn reworded(self, value: &'a str) -> Self {
        Self { value, reworded: true, ..self }
    }

    /// Its token.
    pub(super) fn token(&self) -> &'a str {
        &self.line[self.index]
    }

    /// The token after it, if it is no option.
    pub(super) fn next_word(&self) -> Option<&'a str> {
        let next = self.line.get(self.index + 1)?;
        dash::sign(next).is_none().then_some(next)
    }

    /// Whether its value is a token of its own.
    pub(super) fn value_is_a_token(&self) -> bool {
        self.value_at.as_ref().is_some_and(|(token, _)| *token != self.index)
    }

    /// What goes before its value: `-b`, `--block-size=`.
    pub(super) fn before_value(&self) -> String {
        if self.long { format!("{}=", self.name) } else { self.name.clone() }
    }

    /// The error of a fault in this option.
    pub(super) fn error(&self, fault: &Fault) -> CommandLineError {
        let class = fault.class.unwrap_or_else(|| self.id.class());
        let help = self.help_for_misspelling().or_else(|| self.help_for_apart());
        let help = help.unwrap_or_else(|| fault.help.replace("{}", &self.before_value()));
        let message = format!("{}{}", self.name, fault.what);
        CommandLineError::new(class, message, help).at(&self.place(&fault.at), self.line)
    }

    /// The value of a short option was given as a token of its own.
    pub(super) fn help_for_apart(&self) -> Option<String> {
        let value = self.next_word().filter(|_| !self.long && self.value.is_empty())?;
        let is_value = value.starts_with(|c: char| c.is_ascii_digit());
        is_value.then(|| format!("the value belongs into the same token: {}{value}", self.name))
    }

    /// A long name behind a single dash is read as a short option.
    pub(super) fn help_for_misspelling(&self) -> Option<String> {
        let rest = self.token().strip_prefix('-').filter(|_| !self.long)?;
        let name = rest.split_once('=').map_or(rest, |(name, _)| name);
        let row = super::table::OptionRow::by_long_name(name)?;
        Some(format!("long names take two dashes: did you mean --{}?", row.long))
    }

    fn place(&self, at: &At) -> Place {
        let whole = Place { token: self.index, span: 0..self.token().len(), option: self.index };
        let Some((token, typed)) = self.value_at.clone() else { return whole };
        let span = match at {
            At::Option => return whole,
            At::Bytes(bytes) if !self.reworded => {
                typed.start + bytes.start..typed.start + bytes.end
            }
            At::Value | At::Bytes(_) => typed,
        };
        Place { token, span, option: self.index }
    }
}
