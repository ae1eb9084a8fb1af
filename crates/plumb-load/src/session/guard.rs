//! The safety gate: nothing is overwritten that somebody else put there, unless the user named it.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};

use plumb_io::contents::{self, Claim, ContentsError};
use plumb_io::mark::{self, Standing};
use plumb_io::system_tree::SystemTree;
use rustix::fs::{FileType, Stat};

use super::files::{describe, failure};
use super::observe::Observer;
use super::{Overwrite, SessionOptions};
use crate::result::model::Failure;

/// What was found to be safe to write to; holds on to it until the run is over.
#[derive(Debug, Default)]
pub(super) struct Guard {
    cleared: Vec<Cleared>,
}

#[derive(Debug)]
struct Cleared {
    identity: (u64, u64),
    path: PathBuf,
    /// A file of Plumb's that was looked at and does not yet say that it is written to.
    is_unmarked: bool,
    /// A file whose mark is to be renewed at the end.
    marked: Option<OwnedFd>,
    /// A device that nobody else may mount meanwhile.
    _claim: Option<Claim>,
}

impl Guard {
    /// Looks at a target that will be written to, in whatever way it is open: whether it may be.
    ///
    /// # Errors
    /// What was found in it, and how to override, in words.
    pub(super) fn look(
        &mut self,
        target: BorrowedFd<'_>,
        path: &Path,
        options: &SessionOptions,
        tree: &SystemTree,
        observer: &mut dyn Observer,
    ) -> Result<(), Failure> {
        self.find(target, path, options, tree, observer).map(|_| ())
    }

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
    ) -> Result<(), Failure> {
        let cleared = self.find(target, path, options, tree, observer)?;
        if std::mem::take(&mut cleared.is_unmarked) {
            match mark::begin(target, path, tree) {
                Ok(()) => cleared.marked = target.try_clone_to_owned().ok(),
                Err(error) => observer.warning(&describe(&error)),
            }
        }
        Ok(())
    }

    /// What was found out about a target, by now or before.
    fn find(
        &mut self,
        target: BorrowedFd<'_>,
        path: &Path,
        options: &SessionOptions,
        tree: &SystemTree,
        observer: &mut dyn Observer,
    ) -> Result<&mut Cleared, Failure> {
        let status = rustix::fs::fstat(target).map_err(|errno| {
            Failure::new("open", format!("cannot look at '{}': {errno}", path.display()))
        })?;
        let identity = identity(&status);
        if let Some(known) = self.cleared.iter().position(|cleared| cleared.identity == identity) {
            return Ok(&mut self.cleared[known]);
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
                // Whatever else spoke against it: a mark that held before is to hold behind the run, and so is that of a killed
                // run, if somebody said that all of the file may be lost.
                let stays = |standing: Standing| {
                    standing.is_own() || !files && standing == Standing::Unfinished
                };
                !is_device && mark::verify(target, path, tree).is_ok_and(stays)
            }
            Err(error) => return Err(refused(&error, options)),
        };
        let claim = is_device.then(|| Claim::take(target).ok()).flatten();
        self.cleared.push(Cleared {
            identity,
            path: path.into(),
            is_unmarked: is_ours,
            marked: None,
            _claim: claim,
        });
        Ok(self.cleared.last_mut().expect("just pushed"))
    }

    /// A file is about to be made: should the process die, the next one knows whose it is.
    pub(super) fn making(
        &mut self,
        file: BorrowedFd<'_>,
        path: &Path,
        tree: &SystemTree,
        observer: &mut dyn Observer,
    ) {
        if let Err(error) = mark::begin_making(file, path, tree) {
            observer.warning(&describe(&error));
        }
    }

    /// A file was made by Plumb: it may be written to now and, marked, by later runs.
    pub(super) fn made(&mut self, file: BorrowedFd<'_>, path: &Path, tree: &SystemTree) {
        let Ok(status) = rustix::fs::fstat(file) else { return };
        let identity = identity(&status);
        self.cleared.retain(|cleared| cleared.identity != identity);
        // What speaks against a mark was said when the making began.
        let marked = mark::begin(file, path, tree).ok();
        self.cleared.push(Cleared {
            identity,
            path: path.into(),
            is_unmarked: false,
            marked: marked.and_then(|()| file.try_clone_to_owned().ok()),
            _claim: None,
        });
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

/// Why it is not written to; where a state file knows what a killed run left in it, how to go on.
fn refused(error: &ContentsError, options: &SessionOptions) -> Failure {
    let mut refused = failure(error);
    let has_state = options.verify.as_ref().is_some_and(|verify| verify.state.is_some());
    if has_state && error.0.is_unfinished() {
        refused.text.push_str(
            "\nhelp: the state file (--verify-state) knows what was acknowledged: a run with -w0 reads all of it back. If \
             nothing is missing, --destroy loses nothing here: it lets this run write, and what is acknowledged is still \
             checked first",
        );
    }
    refused
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
