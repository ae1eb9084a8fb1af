//! System calls that rustix does not wrap.

use rustix::io::Errno;

/// The result of `libc::syscall`, or the errno it left.
#[inline]
pub(crate) fn check(result: libc::c_long) -> Result<u64, Errno> {
    match u64::try_from(result) {
        Ok(value) => Ok(value),
        Err(_) => Err(last_error()),
    }
}

#[cold]
fn last_error() -> Errno {
    let error = std::io::Error::last_os_error();
    Errno::from_io_error(&error).expect("the last error of the system has a number")
}
