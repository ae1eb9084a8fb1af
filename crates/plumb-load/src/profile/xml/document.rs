//! Parses XML that others wrote, within bounds on size and time.

use std::fmt;

use roxmltree::{Document, ParsingOptions, TextPos};

/// How large a document may be.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Bytes of text.
    pub(crate) bytes: usize,
    /// Elements, texts, comments.
    pub(crate) nodes: u32,
}

/// Why a document was not read.
#[derive(Debug)]
pub(crate) enum Refused {
    /// More bytes or nodes than allowed.
    TooLarge(String),
    /// A document type declaration (spec 5.1); it could define entities without end.
    DocumentType(TextPos),
    /// No XML.
    NotWellFormed(TextPos, String),
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TooLarge(what) => f.write_str(what),
            Self::DocumentType(at) => {
                write!(f, "line {}, column {}: a document type declaration", at.row, at.col)
            }
            Self::NotWellFormed(at, what) => {
                write!(f, "line {}, column {}: not well-formed XML: {what}", at.row, at.col)
            }
        }
    }
}

/// Attributes per tag and namespace declarations per document beyond which the parser, whose work
/// grows with their square, is not asked. No profile or result has more than a handful.
const CROWD: usize = 256;

/// Parses a document without a document type declaration.
pub(crate) fn parse(text: &str, limits: Limits) -> Result<Document<'_>, Refused> {
    if text.len() > limits.bytes {
        return Err(Refused::TooLarge(format!(
            "the document has {} bytes, and at most {} are read",
            text.len(),
            limits.bytes
        )));
    }
    if text.matches("xmlns").nth(CROWD).is_some() {
        return Err(Refused::TooLarge(format!("more than {CROWD} namespace declarations")));
    }
    if tags(text).any(|tag| tag.matches('=').nth(CROWD).is_some()) {
        return Err(Refused::TooLarge(format!("more than {CROWD} attributes in one tag")));
    }
    let options =
        ParsingOptions { allow_dtd: false, nodes_limit: limits.nodes, ..ParsingOptions::default() };
    Document::parse_with_options(text, options).map_err(|error| match error {
        roxmltree::Error::DtdDetected => {
            Refused::DocumentType(position(text, text.find("<!DOCTYPE").unwrap_or(0)))
        }
        roxmltree::Error::UnclosedRootNode => Refused::NotWellFormed(
            position(text, text.len()),
            "the document ends inside an element".to_owned(),
        ),
        roxmltree::Error::NodesLimitReached => {
            Refused::TooLarge(format!("the document has more than {} nodes", limits.nodes))
        }
        error => {
            let (at, what) = (error.pos(), error.to_string());
            let what = what.strip_suffix(&format!(" at {at}")).unwrap_or(&what);
            Refused::NotWellFormed(at, what.to_owned())
        }
    })
}

/// Line and column of a byte.
fn position(text: &str, offset: usize) -> TextPos {
    let before = &text[..offset];
    let line = before.rfind('\n').map_or(before, |at| &before[at + 1..]);
    let number = |count: usize| u32::try_from(count + 1).unwrap_or(u32::MAX);
    TextPos::new(number(before.matches('\n').count()), number(line.chars().count()))
}

/// What lies between one `<` and the next: every tag, with the text after it.
fn tags(text: &str) -> impl Iterator<Item = &str> {
    text.split('<').skip(1)
}
