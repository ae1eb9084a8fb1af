//! A made-up `/sys` and `/proc` for machines that we do not have.

use std::path::Path;

use crate::system_tree::SystemTree;

/// A tree in a folder of its own, removed at the end.
pub(crate) struct FakeTree {
    folder: tempfile::TempDir,
}

impl FakeTree {
    pub(crate) fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    pub(crate) fn tree(&self) -> SystemTree {
        SystemTree::new(self.folder.path())
    }

    /// Writes a file with its folders.
    pub(crate) fn file(&self, path: &str, text: impl AsRef<str>) -> &Self {
        let path = self.tree().path(path);
        std::fs::create_dir_all(path.parent().expect("a path below the root")).expect("folders");
        std::fs::write(path, text.as_ref()).expect("a file");
        self
    }

    /// Makes `path` a symbolic link to `target`, as written.
    pub(crate) fn link(&self, path: &str, target: impl AsRef<Path>) -> &Self {
        let path = self.tree().path(path);
        std::fs::create_dir_all(path.parent().expect("a path below the root")).expect("folders");
        std::os::unix::fs::symlink(target, path).expect("a link");
        self
    }
}
