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

/// A system call with six arguments, in place: where a kernel flushes the processor's stack of return addresses,
/// every return behind a call is mispredicted, one from a function of the C library's too.
///
/// # Safety
/// As the system call asks.
#[inline(always)]
#[cfg(target_arch = "x86_64")]
pub(crate) unsafe fn six(number: libc::c_long, arguments: [u64; 6]) -> Result<u64, Errno> {
    let result: i64;
    // SAFETY: the instruction clobbers rcx and r11 alone (linux/Documentation/arch/x86/entry_64.rst); what memory
    // the kernel reads and writes is the caller's word.
    unsafe {
        std::arch::asm!(
            "syscall",
            inlateout("rax") number => result,
            in("rdi") arguments[0],
            in("rsi") arguments[1],
            in("rdx") arguments[2],
            in("r10") arguments[3],
            in("r8") arguments[4],
            in("r9") arguments[5],
            lateout("rcx") _,
            lateout("r11") _,
            options(nostack),
        );
    }
    match u64::try_from(result) {
        Ok(value) => Ok(value),
        Err(_) => Err(errno(result)),
    }
}

#[cold]
#[cfg(target_arch = "x86_64")]
fn errno(result: i64) -> Errno {
    Errno::from_raw_os_error(i32::try_from(-result).unwrap_or(i32::MAX))
}

/// The same through the C library.
///
/// # Safety
/// As the system call asks.
#[inline]
#[cfg(not(target_arch = "x86_64"))]
pub(crate) unsafe fn six(number: libc::c_long, arguments: [u64; 6]) -> Result<u64, Errno> {
    let [a, b, c, d, e, f] = arguments;
    // SAFETY: the caller's word.
    check(unsafe { libc::syscall(number, a, b, c, d, e, f) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_and_errors_come_back() {
        // SAFETY: it takes nothing.
        let own = unsafe { six(libc::SYS_getpid, [0; 6]) };
        // SAFETY: no descriptor has this number.
        let closed = unsafe { six(libc::SYS_close, [u64::MAX, 0, 0, 0, 0, 0]) };
        assert_eq!(own, Ok(u64::from(std::process::id())));
        assert_eq!(closed, Err(Errno::BADF));
    }

    #[test]
    fn all_six_arguments_arrive_and_what_the_kernel_wrote_is_read() {
        let text = b"plumb";
        let mut there = [0_u8; 5];
        let (own, size) = (u64::from(std::process::id()), 1);
        let from = [libc::iovec { iov_base: text.as_ptr().cast_mut().cast(), iov_len: text.len() }];
        let to = [libc::iovec { iov_base: there.as_mut_ptr().cast(), iov_len: there.len() }];
        let address = |list: &[libc::iovec; 1]| list.as_ptr().expose_provenance() as u64;
        let call = |flags| {
            let arguments = [own, address(&to), size, address(&from), size, flags];
            // SAFETY: both lists name live memory of this process, as long as they say.
            unsafe { six(libc::SYS_process_vm_readv, arguments) }
        };
        assert_eq!(call(1), Err(Errno::INVAL), "no flags are known");
        assert_eq!(call(0), Ok(5));
        assert_eq!(&there, text);
    }
}
