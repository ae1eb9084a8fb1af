//! Where state is kept: the XDG state directory.

use std::ffi::OsString;
use std::path::PathBuf;

/// Nothing says where state is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error("there is no folder for what is kept: neither XDG_STATE_HOME nor HOME is an absolute path")]
#[diagnostic(
    code(plumb::store::place),
    help("set XDG_STATE_HOME to a folder that you may write to")
)]
pub struct NoPlace;

/// `$XDG_STATE_HOME/plumb`, else `$HOME/.local/state/plumb` (XDG Base Directory Specification 0.8; a
/// relative path counts as none). It need not exist yet.
///
/// # Errors
/// Neither variable holds an absolute path.
pub fn state_folder() -> Result<PathBuf, NoPlace> {
    of(std::env::var_os("XDG_STATE_HOME"), std::env::var_os("HOME"))
}

fn of(state: Option<OsString>, home: Option<OsString>) -> Result<PathBuf, NoPlace> {
    let absolute = |path: OsString| Some(PathBuf::from(path)).filter(|path| path.is_absolute());
    state
        .and_then(absolute)
        .or_else(|| Some(home.and_then(absolute)?.join(".local/state")))
        .map(|folder| folder.join("plumb"))
        .ok_or(NoPlace)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_state_folder_is_where_the_standard_says() {
        let of = |state: Option<&str>, home: Option<&str>| {
            super::of(state.map(OsString::from), home.map(OsString::from))
        };
        assert_eq!(of(Some("/s"), Some("/h")), Ok(PathBuf::from("/s/plumb")));
        assert_eq!(of(None, Some("/h")), Ok(PathBuf::from("/h/.local/state/plumb")));
        assert_eq!(of(Some("s"), Some("/h")), Ok(PathBuf::from("/h/.local/state/plumb")));
        assert_eq!(of(Some(""), None), Err(NoPlace));
    }
}
