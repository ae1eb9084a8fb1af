//! XML elements, written as they come: two blanks per level, one element per line.

use std::borrow::Cow;
use std::fmt::Display;
use std::io::{self, Write};

/// Attributes in the order in which they are written.
pub(super) type Attributes<'a> = &'a [(&'a str, &'a dyn Display)];

/// Writes elements and keeps count of the depth.
pub(super) struct Elements<'a> {
    out: &'a mut dyn Write,
    depth: usize,
}

impl<'a> Elements<'a> {
    pub(super) fn new(out: &'a mut dyn Write, depth: usize) -> Self {
        Self { out, depth }
    }

    pub(super) fn depth(&self) -> usize {
        self.depth
    }

    /// `<name a="v">` and one level down.
    pub(super) fn open(&mut self, name: &str, attributes: Attributes<'_>) -> io::Result<()> {
        self.start(name, attributes)?;
        self.depth += 1;
        self.out.write_all(b">\n")
    }

    /// One level up and `</name>`.
    pub(super) fn close(&mut self, name: &str) -> io::Result<()> {
        self.depth -= 1;
        writeln!(self.out, "{:width$}</{name}>", "", width = 2 * self.depth)
    }

    /// `<name a="v"/>`.
    pub(super) fn empty(&mut self, name: &str, attributes: Attributes<'_>) -> io::Result<()> {
        self.start(name, attributes)?;
        self.out.write_all(b"/>\n")
    }

    /// `<name>text</name>`.
    pub(super) fn text(&mut self, name: &str, text: impl Display) -> io::Result<()> {
        self.full(name, &[], text)
    }

    /// `<name a="v">text</name>`.
    pub(super) fn full(
        &mut self,
        name: &str,
        attributes: Attributes<'_>,
        text: impl Display,
    ) -> io::Result<()> {
        self.start(name, attributes)?;
        writeln!(self.out, ">{}</{name}>", escape(&text.to_string()))
    }

    /// Lines that are XML already.
    pub(super) fn raw(&mut self, lines: &str) -> io::Result<()> {
        self.out.write_all(lines.as_bytes())
    }

    fn start(&mut self, name: &str, attributes: Attributes<'_>) -> io::Result<()> {
        write!(self.out, "{:width$}<{name}", "", width = 2 * self.depth)?;
        for (key, value) in attributes {
            write!(self.out, " {key}=\"{}\"", escape(&value.to_string()))?;
        }
        Ok(())
    }
}

/// Text as XML 1.0 can carry it, in elements and in attributes (D-11).
///
/// `& < > " '` become entities; tab, line feed and carriage return become character references, so that
/// no parser normalises them away. The other control characters, U+FFFE and U+FFFF have no place in
/// XML 1.0, not even as references: U+FFFD stands for each.
#[must_use]
pub fn escape(text: &str) -> Cow<'_, str> {
    if !text.contains(needs_escape) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        match character {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\'' => escaped.push_str("&apos;"),
            '\t' => escaped.push_str("&#9;"),
            '\n' => escaped.push_str("&#10;"),
            '\r' => escaped.push_str("&#13;"),
            _ if needs_escape(character) => escaped.push('\u{fffd}'),
            _ => escaped.push(character),
        }
    }
    Cow::Owned(escaped)
}

fn needs_escape(character: char) -> bool {
    matches!(character, '&' | '<' | '>' | '"' | '\'' | '\0'..='\u{1f}' | '\u{fffe}' | '\u{ffff}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nasty_text_comes_back_as_far_as_xml_can_carry_it() {
        for (text, want) in [
            ("<&\"'>]]>", "<&\"'>]]>"),
            (" a\tb\nc\rd\r\n ", " a\tb\nc\rd\r\n "),
            (
                "\u{0}\u{1}\u{b}\u{1f}\u{fffe}\u{ffff}",
                "\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}\u{fffd}",
            ),
            ("\u{7f}\u{85}ä\u{1f4be}\u{2028}", "\u{7f}\u{85}ä\u{1f4be}\u{2028}"),
        ] {
            let mut out = Vec::new();
            let mut elements = Elements::new(&mut out, 0);
            elements.open("Outer", &[("Value", &text)]).expect("a vector takes everything");
            elements.text("Inner", text).expect("a vector takes everything");
            elements.close("Outer").expect("a vector takes everything");
            let document = String::from_utf8(out).expect("text");
            let document = roxmltree::Document::parse(&document).expect("well-formed");
            let outer = document.root_element();
            assert_eq!(outer.attribute("Value"), Some(want), "{text:?} in an attribute");
            let inner = outer.first_element_child().expect("a child");
            assert_eq!(inner.text(), Some(want), "{text:?} in an element");
        }
    }

    #[test]
    fn plain_text_is_left_alone() {
        assert!(matches!(escape("/dev/disk/by-id/x"), Cow::Borrowed(_)));
    }
}
