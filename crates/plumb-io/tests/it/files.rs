//! Files to do I/O on.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use plumb_io::conformance::FileWish;
use plumb_io::{MappingSpec, TargetFile};

/// O_DIRECT, by its number on the architectures that Plumb runs on.
const O_DIRECT: i32 = if cfg!(target_arch = "aarch64") { 0o200_000 } else { 0o40_000 };

/// How test files are opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum How {
    /// Through the page cache.
    Buffered,
    /// Around it.
    Direct,
    /// Mapped.
    Mapped(MappingSpec),
}

/// A file of `wish`, zeroed, that is gone when it is closed. On the disk of the build directory.
pub(crate) fn file(wish: FileWish, how: How) -> TargetFile {
    let directory = env!("CARGO_TARGET_TMPDIR");
    let kept = tempfile::Builder::new().prefix("queue").tempfile_in(directory).expect("a file");
    kept.as_file().set_len(wish.size).expect("room");
    // Written, so that reads reach the disk, and writes find their blocks.
    let zeroes = vec![0; usize::try_from(wish.size).expect("small")];
    std::fs::write(kept.path(), zeroes).expect("room");
    let mut options = OpenOptions::new();
    options.read(true).write(wish.writable);
    if how == How::Direct {
        options.custom_flags(O_DIRECT);
    }
    let mapping = match how {
        How::Mapped(spec) => Some(MappingSpec { writable: wish.writable, ..spec }),
        How::Buffered | How::Direct => None,
    };
    let path = kept.path().to_owned();
    let file = options.open(&path).expect("direct_io() said that this works");
    TargetFile { descriptor: file.into(), path, size: wish.size, priority: None, mapping }
}

/// Whether the disk of the build directory takes O_DIRECT; why not otherwise.
pub(crate) fn direct_io() -> Result<(), String> {
    let directory = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let path = tempfile::NamedTempFile::new_in(&directory).expect("a file").into_temp_path();
    let opened = OpenOptions::new().read(true).custom_flags(O_DIRECT).open(&path);
    opened
        .map(|_: File| ())
        .map_err(|error| format!("no O_DIRECT in {}: {error}", directory.display()))
}
