//! Files that are whole or not there, and stay there after a crash.

use std::fs::{File, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use tempfile::{Builder, NamedTempFile};

/// How files begin that are not in place yet.
pub(crate) const INCOMING: &str = ".incoming-";

/// What only its owner reads.
const PRIVATE: u32 = 0o600;
/// What the umask lets others read.
const ORDINARY: u32 = 0o666;

/// Writes a file that must not exist yet: under another name, synced, put in place, and its folder
/// synced. After an error nothing is in its place.
///
/// # Errors
/// What the system says; [`io::ErrorKind::AlreadyExists`] if the file is there.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = written(path, content, PRIVATE)?;
    file.persist_noclobber(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Writes a file, or puts it in the place of another, so that whoever reads it sees the old or the new
/// one, whole, whatever happens. It is an ordinary file: the umask says who may read it.
///
/// # Errors
/// What the system says.
pub fn write_file(path: &Path, content: &[u8]) -> io::Result<()> {
    let file = written(path, content, ORDINARY)?;
    file.persist(path).map_err(|error| error.error)?;
    sync_folder(path)
}

/// Removes a file for good.
pub(crate) fn remove(path: &Path) -> io::Result<()> {
    std::fs::remove_file(path)?;
    sync_folder(path)
}

fn written(path: &Path, content: &[u8], mode: u32) -> io::Result<NamedTempFile> {
    let mut builder = Builder::new();
    builder.prefix(INCOMING).permissions(Permissions::from_mode(mode));
    let mut file = builder.tempfile_in(folder(path))?;
    // Whoever cleans up takes what is locked for alive.
    rustix::fs::flock(file.as_file(), rustix::fs::FlockOperation::LockExclusive)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    Ok(file)
}

fn sync_folder(path: &Path) -> io::Result<()> {
    File::open(folder(path))?.sync_all()
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Removes what writers that died left behind in a folder.
pub(crate) fn sweep_incoming(folder: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if !name.starts_with(INCOMING) {
            continue;
        }
        // Gone by now: its writer put it in place.
        let Ok(file) = File::open(&path) else { continue };
        let alone = rustix::fs::FlockOperation::NonBlockingLockExclusive;
        if rustix::fs::flock(&file, alone).is_ok() && is_still(&file, &path) && is_old(&file) {
            let _ = std::fs::remove_file(&path);
        }
    }
    Ok(())
}

/// Whether a name still leads to an open file.
fn is_still(file: &File, path: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    let same = || {
        let (opened, named) = (file.metadata().ok()?, std::fs::symlink_metadata(path).ok()?);
        Some((opened.dev(), opened.ino()) == (named.dev(), named.ino()))
    };
    same().unwrap_or(false)
}

/// Whether it is no file that was made just now and is about to be locked.
fn is_old(file: &File) -> bool {
    let age =
        file.metadata().and_then(|found| found.modified()).ok().and_then(|at| at.elapsed().ok());
    age.is_some_and(|age| age.as_secs() >= 60)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::time::{Duration, SystemTime};

    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(folder)
            .expect("a folder")
            .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
            .collect();
        names.sort();
        names
    }

    #[test]
    fn a_file_is_made_once_and_replaced_whole() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("a");
        create(&path, b"1").expect("written");
        let error = create(&path, b"2").expect_err("it is there");
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).expect("a file"), b"1");
        write_file(&path, b"3").expect("replaced");
        assert_eq!(fs::read(&path).expect("a file"), b"3");
        remove(&path).expect("removed");
        assert!(names(folder.path()).is_empty());
    }

    #[test]
    fn only_what_the_dead_left_is_swept() {
        let folder = tempfile::tempdir().expect("a folder");
        let place = |name: &str| folder.path().join(format!("{INCOMING}{name}"));
        let alive = File::create(place("alive")).expect("a file");
        rustix::fs::flock(&alive, rustix::fs::FlockOperation::LockExclusive).expect("a lock");
        let dead = File::create(place("dead")).expect("a file");
        File::create(place("new")).expect("a file");
        let long_ago = SystemTime::now() - Duration::from_secs(3600);
        for file in [&alive, &dead] {
            file.set_modified(long_ago).expect("a time");
        }
        drop(dead);
        sweep_incoming(folder.path()).expect("swept");
        assert_eq!(names(folder.path()), [".incoming-alive", ".incoming-new"]);
    }
}
