//! Nameless files for what a run keeps aside until its end.

use std::fs::File;
use std::io;

use rustix::fs::{Mode, OFlags};

/// An empty file without a name in the directory for temporary files.
///
/// # Errors
/// When no such file can be made.
pub(super) fn file() -> io::Result<File> {
    let folder = std::env::temp_dir();
    let flags = OFlags::TMPFILE | OFlags::RDWR | OFlags::CLOEXEC;
    match rustix::fs::open(&folder, flags, Mode::RUSR | Mode::WUSR) {
        Ok(descriptor) => Ok(File::from(descriptor)),
        // File systems without O_TMPFILE: a name for the blink of an eye.
        Err(_) => {
            let name = folder.join(format!("plumb-intervals-{}", std::process::id()));
            let file = File::options().read(true).write(true).create_new(true).open(&name)?;
            std::fs::remove_file(&name)?;
            Ok(file)
        }
    }
}
