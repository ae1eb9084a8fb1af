//! Limits that were declared: `--caps FILE`, and the file of the user's own.

use std::env;
use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Arg, ArgMatches, ValueHint, value_parser};
use plumb_study::caps::{self, CapsError};
use plumb_study::knee::DeclaredCap;

/// `--caps`.
pub(super) fn option() -> Arg {
    Arg::new("caps")
        .long("caps")
        .value_name("FILE")
        .value_parser(value_parser!(PathBuf))
        .value_hint(ValueHint::FilePath)
        .help("Limits that were declared, in a TOML file [default: ~/.config/plumb/caps.toml, if it is there]")
}

/// Why the limits cannot be read.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(super) enum CapsFileError {
    #[error("cannot read the limits in {}", path.display())]
    #[diagnostic(code(plumb::caps::read), help("name a TOML file that exists"))]
    Read { path: PathBuf, source: io::Error },
    #[error("{} holds no limits", path.display())]
    #[diagnostic(
        code(plumb::caps::file),
        help("write [[cap]], then name = \"VM limit\" and iops = 1920 or mib-per-s = 48")
    )]
    Wrong { path: PathBuf, source: CapsError },
}

/// The limits of the file that is named, and of the user's own where none is.
pub(super) fn all(matches: &ArgMatches) -> Result<Vec<DeclaredCap>, CapsFileError> {
    match matches.get_one::<PathBuf>("caps") {
        Some(path) => read(path.clone()),
        None => match own().filter(|path| path.exists()) {
            Some(path) => read(path),
            None => Ok(Vec::new()),
        },
    }
}

/// The same as words that `--cap` takes.
pub(super) fn words(matches: &ArgMatches) -> Result<Vec<String>, CapsFileError> {
    Ok(all(matches)?.iter().map(caps::word).collect())
}

/// Only those of the file that is named: what is not said contradicts nothing.
pub(super) fn named_words(matches: &ArgMatches) -> Result<Vec<String>, CapsFileError> {
    match matches.get_one::<PathBuf>("caps") {
        Some(_) => words(matches),
        None => Ok(Vec::new()),
    }
}

/// Those of this file, as words that `--cap` takes.
pub(super) fn words_of(path: PathBuf) -> Result<Vec<String>, CapsFileError> {
    Ok(read(path)?.iter().map(caps::word).collect())
}

fn read(path: PathBuf) -> Result<Vec<DeclaredCap>, CapsFileError> {
    let text = match fs::read_to_string(&path) {
        Err(source) => return Err(CapsFileError::Read { path, source }),
        Ok(text) => text,
    };
    caps::of_toml(&text).map_err(|source| CapsFileError::Wrong { path, source })
}

/// The user's own file [XDG Base Directory Specification].
fn own() -> Option<PathBuf> {
    let set = |name: &str| env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let folder = set("XDG_CONFIG_HOME").filter(|folder| folder.is_absolute());
    Some(folder.or_else(|| Some(set("HOME")?.join(".config")))?.join("plumb/caps.toml"))
}
