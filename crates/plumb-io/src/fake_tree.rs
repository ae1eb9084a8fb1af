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

/// Block devices of a made-up machine, in one flat folder: sysfs' own depth differs by driver.
impl FakeTree {
    /// A disk, or a device that is made of others.
    pub(crate) fn disk(&self, number: &str, name: &str) -> &Self {
        self.device(number, name, &format!("/sys/devices/block/{name}"))
    }

    /// A partition of a disk made before.
    pub(crate) fn partition(&self, number: &str, disk: &str, name: &str) -> &Self {
        let folder = format!("/sys/devices/block/{disk}/{name}");
        self.file(&format!("{folder}/partition"), "1\n").device(number, name, &folder)
    }

    fn device(&self, number: &str, name: &str, folder: &str) -> &Self {
        let real = self.tree().path(folder);
        self.file(&format!("{folder}/dev"), format!("{number}\n"))
            .link(&format!("/sys/dev/block/{number}"), &real)
            .link(&format!("/sys/class/block/{name}"), &real)
    }

    /// Says that `upper` is made of `lower`, as sysfs does on both sides.
    pub(crate) fn made_of(&self, upper: &str, lower: &str) -> &Self {
        let folder = |name: &str| {
            let link = self.tree().path(format!("/sys/class/block/{name}"));
            std::fs::canonicalize(link).expect("a device made before")
        };
        let (above, below) = (folder(upper), folder(lower));
        for (at, kind, name, target) in
            [(&above, "slaves", lower, &below), (&below, "holders", upper, &above)]
        {
            std::fs::create_dir_all(at.join(kind)).expect("folders");
            std::os::unix::fs::symlink(target, at.join(kind).join(name)).expect("a link");
        }
        self
    }
}
