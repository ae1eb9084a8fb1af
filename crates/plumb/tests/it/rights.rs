//! What only root may do, and doing without it.

use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The user and group that own nothing.
const NOBODY: u32 = 65534;

pub(crate) fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Lets a command run as a user who owns nothing, if it would run as root.
pub(crate) fn as_somebody_else(command: &mut Command) {
    if is_root() {
        command.uid(NOBODY).gid(NOBODY);
    }
}

/// A file system in memory, unmounted after the test.
pub(crate) struct Tmpfs {
    at: PathBuf,
}

impl Tmpfs {
    /// `None` for whoever may not mount.
    pub(crate) fn mount(at: &Path, size: u64) -> Option<Self> {
        std::fs::create_dir(at).expect("a folder to mount on");
        let mut command = Command::new("mount");
        command.args(["-t", "tmpfs", "-o", &format!("size={size}"), "plumb-test"]).arg(at);
        let is_mounted = is_root() && command.status().is_ok_and(|status| status.success());
        is_mounted.then(|| Self { at: at.into() })
    }

    pub(crate) fn make_read_only(&self) {
        self.remount("ro");
    }

    pub(crate) fn resize(&self, size: u64) {
        self.remount(&format!("size={size}"));
    }

    fn remount(&self, how: &str) {
        let mut command = Command::new("mount");
        let status = command.args(["-o", &format!("remount,{how}")]).arg(&self.at).status();
        let status = status.expect("mount");
        assert!(status.success(), "{how}: {status}");
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        // A test that fails is not to fail twice.
        // A process that is just ending may still be in there: it goes when nobody uses it any more.
        let _ = Command::new("umount").arg("-l").arg(&self.at).status();
    }
}

/// A file as a block device, detached after the test.
pub(crate) struct Loop {
    path: String,
}

impl Loop {
    /// `None` where there are no loop devices.
    pub(crate) fn attach(file: &Path) -> Option<Self> {
        let mut command = Command::new("losetup");
        let output = command.args(["--find", "--show"]).arg(file).output().ok()?;
        let path = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !path.is_empty()).then_some(Self { path })
    }

    pub(crate) fn path(&self) -> String {
        self.path.clone()
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // A test that fails is not to fail twice.
        let _ = Command::new("losetup").args(["--detach", &self.path]).status();
    }
}
