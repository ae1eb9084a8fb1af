//! The safety gate: nothing is overwritten that somebody else put there, unless the user named it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use plumb_io::contents::{self, Claim, ContentsError};
use plumb_io::mark;
use plumb_io::system_tree::SystemTree;
use rustix::fs::{FileType, Stat};

use super::files::describe;
use super::observe::Observer;
use super::{Overwrite, SessionOptions};

/// What was found to be safe to write to; holds on to it until the run is over.
#[derive(Debug, Default)]
pub(super) struct Guard {
    cleared: Vec<Cleared>,
}

#[derive(Debug)]
struct Cleared {
    identity: (u64, u64),
    path: PathBuf,
    /// A file whose mark is to be renewed at the end.
    marked: Option<OwnedFd>,
    /// A device that nobody else may mount meanwhile.
    _claim: Option<Claim>,
}

impl Guard {
    /// Clears an open target for writing, before the first write to it.
    ///
    /// # Errors
    /// What was found in it, and how to override, in words.
    pub(super) fn clear(
        &mut self,
        target: BorrowedFd<'_>,
        path: &Path,
        options: &SessionOptions,
        tree: &SystemTree,
        observer: &mut dyn Observer,
    ) -> Result<(), String> {
        let status = rustix::fs::fstat(target)
            .map_err(|errno| format!("cannot look at '{}': {errno}", path.display()))?;
        let identity = identity(&status);
        if self.cleared.iter().any(|cleared| cleared.identity == identity) {
            return Ok(());
        }
        let is_device = FileType::from_raw_mode(status.st_mode) == FileType::BlockDevice;
        let (named, files) = match &options.overwrite {
            Overwrite::Named(named) => (named, false),
            Overwrite::Files(named) => (named, true),
        };
        let allowed =
            (files && !is_device) || named.iter().any(|named| contents::is_same(target, named));
        let found = contents::inspect(target, path, tree).check();
        let is_ours = match found {
            Ok(found) => found.verdict == contents::Verdict::Ours,
            Err(error) if allowed => {
                if !files {
                    observer.warning(&overridden(&error));
                }
                false
            }
            Err(error) => return Err(describe(&error)),
        };
        let claim = is_device.then(|| Claim::take(target).ok()).flatten();
        let mut marked = None;
        if is_ours {
            match mark::begin(target, path, tree) {
                Ok(()) => marked = target.try_clone_to_owned().ok(),
                Err(error) => observer.warning(&describe(&error)),
            }
        }
        self.cleared.push(Cleared { identity, path: path.into(), marked, _claim: claim });
        Ok(())
    }

    /// A file was made by Plumb: it may be written to now and, marked, by later runs.
    pub(super) fn made(
        &mut self,
        file: BorrowedFd<'_>,
        path: &Path,
        tree: &SystemTree,
        observer: &mut dyn Observer,
    ) {
        let Ok(status) = rustix::fs::fstat(file) else { return };
        let identity = identity(&status);
        self.cleared.retain(|cleared| cleared.identity != identity);
        let marked = match mark::begin(file, path, tree) {
            Ok(()) => file.try_clone_to_owned().ok(),
            Err(error) => {
                observer.warning(&describe(&error));
                None
            }
        };
        self.cleared.push(Cleared { identity, path: path.into(), marked, _claim: None });
    }

    /// A file that was to be made is gone again: so is a mark beside it.
    pub(super) fn unmade(file: BorrowedFd<'_>, path: &Path) {
        // Best effort: without its file a mark means nothing.
        let _ = mark::remove(file, path);
    }

    /// The run is over: files of Plumb are marked as it leaves them.
    pub(super) fn settle(&mut self, tree: &SystemTree, observer: &mut dyn Observer) {
        for cleared in self.cleared.drain(..) {
            if let Some(file) = &cleared.marked
                && let Err(error) = mark::seal(file.as_fd(), &cleared.path, tree)
            {
                observer.warning(&describe(&error));
            }
        }
    }
}

/// The user's word was taken: says what it cost.
fn overridden(error: &ContentsError) -> String {
    let contents = &error.0;
    let found: Vec<String> = contents.findings.iter().map(ToString::to_string).collect();
    format!("writing to {} as --destroy says: {}", contents.path.display(), found.join("; "))
}

/// What makes two descriptors the same file or device.
fn identity(status: &Stat) -> (u64, u64) {
    match FileType::from_raw_mode(status.st_mode) {
        FileType::BlockDevice => (u64::MAX, status.st_rdev),
        _ => (status.st_dev, status.st_ino),
    }
}
