//! What can go wrong when results are read back.

use std::io;
use std::path::PathBuf;

use super::folder::Skipped;

/// Why a result could not be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum ImportError {
    /// Neither a text report nor an XML result.
    #[error("there is no result in it: {0}")]
    #[diagnostic(
        code(plumb::convert::no_result),
        help("results are what DISKSPD or Plumb print, as text or, with -Rxml, as XML")
    )]
    NoResult(String),
    /// An XML result that says something impossible.
    #[error("line {line}, column {column}: {what}")]
    #[diagnostic(
        code(plumb::convert::xml),
        help("the document was cut short or changed: take the original")
    )]
    Xml {
        /// From 1.
        line: u32,
        /// From 1.
        column: u32,
        /// What is wrong.
        what: String,
    },
    /// A text report that says something impossible.
    #[error("line {line}: {what}")]
    #[diagnostic(
        code(plumb::convert::text),
        help("the report was cut short or changed: take the original")
    )]
    Text {
        /// From 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
}

/// Why a folder of results could not be turned into a table.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ConvertError {
    /// The folder cannot be listed.
    #[error("cannot list the folder {}", path.display())]
    #[diagnostic(code(plumb::convert::folder), help("name a folder that holds *.xml results"))]
    Folder {
        /// The folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// No file of the folder could be used.
    #[error("no result in {}: {}", path.display(), reasons(skipped))]
    #[diagnostic(
        code(plumb::convert::no_results),
        help("results are made with -Rxml; their first line is <Results>")
    )]
    NoResults {
        /// The folder.
        path: PathBuf,
        /// The files that were looked at.
        skipped: Vec<Skipped>,
    },
    /// A table cannot be written.
    #[error("cannot write {}", path.display())]
    #[diagnostic(code(plumb::convert::write), help("name a file in a folder that can be written"))]
    Write {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn reasons(skipped: &[Skipped]) -> String {
    match skipped {
        [] => "it holds no *.xml file".to_owned(),
        [only] => only.to_string(),
        [first, others @ ..] => format!("{first}; and {} more files", others.len()),
    }
}
