//! Elements of a profile: what they may hold, and what is said when they hold something else.

use std::borrow::Cow;
use std::num::IntErrorKind;
use std::str::FromStr;

use roxmltree::Node;

use crate::profile::error::{ErrorClass, Violation};

/// The children of an element: any order, each at most once.
pub(super) struct Shape {
    pub(super) children: &'static [&'static str],
    pub(super) required: &'static [&'static str],
}

/// An element of the document.
#[derive(Clone, Copy)]
pub(super) struct Element<'a>(Node<'a, 'a>);

/// The children of an element that has a [`Shape`].
pub(super) struct Fields<'a> {
    shape: &'static Shape,
    found: Vec<Option<Element<'a>>>,
}

/// The attributes of an element.
pub(super) struct Attributes<'a>(Element<'a>);

impl<'a> Element<'a> {
    pub(super) fn new(node: Node<'a, 'a>) -> Self {
        Self(node)
    }

    pub(super) fn name(self) -> &'a str {
        self.0.tag_name().name()
    }

    /// A violation of `class` at this element.
    pub(super) fn violation(
        self,
        class: ErrorClass,
        message: impl AsRef<str>,
        help: impl Into<String>,
    ) -> Violation {
        let at = self.0.document().text_pos_at(self.0.range().start);
        let message = format!("line {}, column {}: {}", at.row, at.col, message.as_ref());
        Violation { class, message, help: help.into() }
    }

    fn schema(self, message: impl AsRef<str>, help: impl Into<String>) -> Violation {
        self.violation(ErrorClass::Schema, message, help)
    }

    /// Its children by name.
    pub(super) fn fields(self, shape: &'static Shape) -> Result<Fields<'a>, Violation> {
        self.attributes(&[], &[])?;
        let mut found = vec![None; shape.children.len()];
        for child in self.children(shape.children)? {
            let place = shape.children.iter().position(|name| *name == child.name());
            let slot = &mut found[place.expect("children() let only these through")];
            if slot.replace(child).is_some() {
                return Err(child.schema(
                    format!("element <{}> is repeated in <{}>", child.name(), self.name()),
                    "write it once",
                ));
            }
        }
        let fields = Fields { shape, found };
        if let Some(missing) = shape.required.iter().find(|name| fields.get(name).is_none()) {
            return Err(self.schema(
                format!("element <{missing}> is missing in <{}>", self.name()),
                format!("add <{missing}>"),
            ));
        }
        Ok(fields)
    }

    /// Its children, all of one kind and at least one.
    pub(super) fn sequence(self, kind: &'static str) -> Result<Vec<Element<'a>>, Violation> {
        self.attributes(&[], &[])?;
        let children = self.children(&[kind])?;
        if children.is_empty() {
            return Err(self.schema(
                format!("<{}> needs at least one <{kind}>", self.name()),
                format!("add <{kind}>"),
            ));
        }
        Ok(children)
    }

    /// Its children, whose names are among `allowed`; text beside them is refused.
    pub(super) fn children(self, allowed: &[&str]) -> Result<Vec<Element<'a>>, Violation> {
        let mut children = Vec::new();
        for node in self.0.children() {
            if node.is_text() && !node.text().unwrap_or_default().trim_matches(BLANKS).is_empty() {
                let text = quoted(node.text().unwrap_or_default());
                return Err(self.schema(
                    format!("text {text} between the elements of <{}>", self.name()),
                    "remove it, or make it a comment",
                ));
            }
            if node.is_element() {
                let child = Element(node);
                if node.tag_name().namespace().is_some() || !allowed.contains(&child.name()) {
                    return Err(child.unknown(self.name(), allowed));
                }
                children.push(child);
            }
        }
        Ok(children)
    }

    fn unknown(self, parent: &str, allowed: &[&str]) -> Violation {
        let name = self.name();
        let message = format!("element <{name}> is not allowed in <{parent}>");
        let help = match allowed.iter().find(|known| known.eq_ignore_ascii_case(name)) {
            Some(_) if self.0.tag_name().namespace().is_some() => {
                "profiles have no namespace: remove the xmlns attribute".to_owned()
            }
            Some(known) => format!("write <{known}>: names are case sensitive"),
            None if allowed.is_empty() => format!("<{parent}> holds a value and no elements"),
            None => format!("allowed are {}", allowed.join(", ")),
        };
        self.schema(message, help)
    }

    /// Its attributes: those of `allowed`, all those of `required` among them.
    pub(super) fn attributes(
        self,
        allowed: &[&str],
        required: &[&str],
    ) -> Result<Attributes<'a>, Violation> {
        for attribute in self.0.attributes() {
            if attribute.namespace().is_some() || !allowed.contains(&attribute.name()) {
                return Err(self.schema(
                    format!("attribute {} is not allowed on <{}>", attribute.name(), self.name()),
                    match allowed {
                        [] => "remove it".to_owned(),
                        _ => format!("allowed are {}", allowed.join(", ")),
                    },
                ));
            }
        }
        if let Some(missing) = required.iter().find(|name| self.0.attribute(**name).is_none()) {
            return Err(self.schema(
                format!("attribute {missing} is missing on <{}>", self.name()),
                format!("add {missing}=\"...\""),
            ));
        }
        Ok(Attributes(self))
    }

    /// Its text; elements in it are refused, comments skipped. Attributes are the caller's.
    pub(super) fn text(self) -> Result<Cow<'a, str>, Violation> {
        if let Some(child) = self.0.children().find(Node::is_element) {
            return Err(Element(child).unknown(self.name(), &[]));
        }
        let mut texts = self.0.children().filter_map(|node| node.is_text().then(|| node.text())?);
        let first = texts.next().unwrap_or_default();
        Ok(texts.fold(Cow::Borrowed(first), |whole, more| whole + more))
    }

    /// Its text, without attributes.
    pub(super) fn plain(self) -> Result<Cow<'a, str>, Violation> {
        self.attributes(&[], &[])?;
        self.text()
    }

    /// A decimal integer of `allowed`.
    pub(super) fn integer<T>(self, text: &str, allowed: (T, T)) -> Result<T, Violation>
    where
        T: FromStr<Err = std::num::ParseIntError> + PartialOrd + std::fmt::Display + Copy,
    {
        let digits = text.trim_matches(BLANKS);
        let wrong = |what| {
            let message = format!("{} in <{}> is {what}", quoted(digits), self.name());
            let help = match plumb_units::parse_size(digits, 65536) {
                Ok(plain) if !digits.ends_with(['b', 'B']) && plain.to_string() != digits => {
                    format!("profiles take plain numbers: write {plain}")
                }
                _ => format!("an integer from {} to {} is needed", allowed.0, allowed.1),
            };
            self.schema(message, help)
        };
        if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(wrong("not an unsigned integer"));
        }
        match digits.parse::<T>() {
            Ok(value) if value >= allowed.0 && value <= allowed.1 => Ok(value),
            Err(error) if *error.kind() != IntErrorKind::PosOverflow => {
                Err(wrong("not an unsigned integer"))
            }
            _ => Err(wrong("out of range")),
        }
    }

    /// `true`, `false`, `1` or `0` (D-05).
    pub(super) fn boolean(self, text: &str) -> Result<bool, Violation> {
        match text.trim_matches(BLANKS) {
            "true" | "1" => Ok(true),
            "false" | "0" => Ok(false),
            other => Err(self.schema(
                format!("{} in <{}> is not a boolean", quoted(other), self.name()),
                "true, false, 1 and 0 are",
            )),
        }
    }

    /// Its text: one of the words of `choices`, as the value beside it.
    pub(super) fn word<T: Copy>(self, choices: &[(&str, T)]) -> Result<T, Violation> {
        let text = self.text()?;
        chosen(&text, choices).ok_or_else(|| {
            let message = format!("value {} is not allowed in <{}>", quoted(&text), self.name());
            self.schema(message, allowed_words(choices))
        })
    }
}

impl<'a> Attributes<'a> {
    /// The value of an attribute.
    pub(super) fn get(&self, name: &str) -> Option<&'a str> {
        self.0.0.attribute(name)
    }

    /// The value of an attribute, one of the words of `choices`, as the value beside it.
    pub(super) fn word<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Violation> {
        let Some(text) = self.get(name) else { return Ok(None) };
        chosen(text, choices).map(Some).ok_or_else(|| {
            let element = self.0;
            let message = format!("{name}={} is not allowed on <{}>", quoted(text), element.name());
            element.schema(message, allowed_words(choices))
        })
    }
}

impl<'a> Fields<'a> {
    /// A child. Its name must be in the shape (asserted).
    pub(super) fn get(&self, name: &str) -> Option<Element<'a>> {
        let place = self.shape.children.iter().position(|known| *known == name);
        self.found[place.expect("a field of the shape")]
    }

    /// Reads a child's number into `value`, if it is there.
    pub(super) fn u32(&self, name: &str, value: &mut u32) -> Result<(), Violation> {
        self.integer(name, (0, u32::MAX), value)
    }

    /// Reads a child's number into `value`, if it is there.
    pub(super) fn u64(&self, name: &str, value: &mut u64) -> Result<(), Violation> {
        self.integer(name, (0, u64::MAX), value)
    }

    /// Reads a child's number, which must lie within `allowed`, into `value`, if it is there.
    pub(super) fn integer<T>(
        &self,
        name: &str,
        allowed: (T, T),
        value: &mut T,
    ) -> Result<(), Violation>
    where
        T: FromStr<Err = std::num::ParseIntError> + PartialOrd + std::fmt::Display + Copy,
    {
        if let Some(child) = self.get(name) {
            *value = child.integer(&child.plain()?, allowed)?;
        }
        Ok(())
    }

    /// Reads a child's boolean into `value`, if it is there.
    pub(super) fn boolean(&self, name: &str, value: &mut bool) -> Result<(), Violation> {
        if let Some(child) = self.get(name) {
            *value = child.boolean(&child.plain()?)?;
        }
        Ok(())
    }

    /// Reads a child's word.
    pub(super) fn word<T: Copy>(
        &self,
        name: &str,
        choices: &[(&str, T)],
    ) -> Result<Option<T>, Violation> {
        let Some(child) = self.get(name) else { return Ok(None) };
        child.attributes(&[], &[])?;
        child.word(choices).map(Some)
    }
}

fn chosen<T: Copy>(text: &str, choices: &[(&str, T)]) -> Option<T> {
    choices.iter().find(|(word, _)| *word == text).map(|(_, value)| *value)
}

fn allowed_words<T>(choices: &[(&str, T)]) -> String {
    let words: Vec<_> = choices.iter().map(|(word, _)| *word).collect();
    format!("allowed are {}", words.join(", "))
}

/// Blanks of XML.
pub(super) const BLANKS: [char; 4] = [' ', '\t', '\r', '\n'];

/// A value for a message: in quotes, long ones cut.
pub(super) fn quoted(text: &str) -> String {
    let text = text.trim_matches(BLANKS);
    match text.char_indices().nth(40) {
        Some((end, _)) => format!("'{}...'", &text[..end]),
        None => format!("'{text}'"),
    }
}
