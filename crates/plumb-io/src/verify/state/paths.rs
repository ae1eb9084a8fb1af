//! How a state file names its targets.

use std::path::{Path, PathBuf};

/// What virtual disks are named by, `space:POOL/VDISK`: no paths, whatever lies in the working directory. A file of
/// such a name is `./space:…`.
const SPACE: &str = "space:";

pub(super) fn is_a_path(path: &Path) -> bool {
    !path.as_os_str().as_encoded_bytes().starts_with(SPACE.as_bytes())
}

/// A name that stays right when the working directory changes; links are kept, so that
/// `/dev/disk/by-id/…` goes on naming the same disk.
pub(super) fn absolute(path: &Path) -> Vec<u8> {
    use std::os::unix::ffi::OsStringExt;
    let made = is_a_path(path).then(|| std::path::absolute(path).ok()).flatten();
    made.unwrap_or_else(|| path.into()).into_os_string().into_vec()
}

/// The path with links followed; of a file that is gone, that of its folder and its name.
pub(super) fn canonical(path: &Path) -> PathBuf {
    if !is_a_path(path) {
        return path.into();
    }
    let of_folder = || {
        let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty());
        let folder = std::fs::canonicalize(folder.unwrap_or(Path::new("."))).ok()?;
        Some(folder.join(path.file_name()?))
    };
    std::fs::canonicalize(path).ok().or_else(of_folder).unwrap_or_else(|| path.into())
}
