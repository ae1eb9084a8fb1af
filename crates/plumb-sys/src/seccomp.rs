//! System calls denied to oneself, so that a test can see what happens without them.

use rustix::io::Errno;

use crate::call;

/// A system call, or one of its uses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Denied {
    /// `io_uring_setup`.
    RingSetup,
    /// `io_uring_enter`.
    RingEnter,
    /// `io_uring_register` with IORING_REGISTER_BUFFERS.
    RegisterBuffers,
    /// `io_uring_register`, whatever it registers.
    Register,
    /// `io_setup`.
    AioSetup,
    /// `msync`.
    Msync,
    /// `fsync`.
    Fsync,
    /// `fadvise64`.
    Fadvise,
    /// `ioprio_set`.
    IoprioSet,
    /// `fsetxattr`.
    Fsetxattr,
}

/// One instruction of the classic packet filter (`struct sock_filter`).
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Instruction {
    code: u16,
    if_true: u8,
    if_false: u8,
    value: u32,
}

/// `struct sock_fprog`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Program {
    len: u16,
    instructions: *const Instruction,
}

/// Load a word of `struct seccomp_data`; compare; answer.
const LOAD: u16 = 0x20;
const JUMP_IF_EQUAL: u16 = 0x15;
const ANSWER: u16 = 0x06;
/// Offsets in `struct seccomp_data`: the call's number, the low half of its second argument.
const NUMBER: u32 = 0;
const SECOND_ARGUMENT: u32 = 24;
const ALLOW: u32 = 0x7fff_0000;
const FAIL_WITH: u32 = 0x0005_0000;
/// `seccomp` operations and flags.
const SET_MODE_FILTER: u32 = 1;
const ALL_THREADS: u32 = 1;

/// Makes `denied` fail with `errno` in every thread of this process, for good.
///
/// # Errors
/// When the kernel has no seccomp filters.
pub fn deny(denied: &[(Denied, Errno)]) -> Result<(), Errno> {
    let mut program = Vec::new();
    for (what, errno) in denied {
        let (number, argument) = what.number();
        let number = u32::try_from(number).map_err(|_| Errno::INVAL)?;
        let answer = FAIL_WITH | u32::try_from(errno.raw_os_error()).map_err(|_| Errno::INVAL)?;
        program.push(load(NUMBER));
        if let Some(argument) = argument {
            program.push(skip_unless(number, 3));
            program.push(load(SECOND_ARGUMENT));
            program.push(skip_unless(argument, 1));
        } else {
            program.push(skip_unless(number, 1));
        }
        program.push(respond(answer));
    }
    program.push(respond(ALLOW));
    install(&program)
}

impl Denied {
    /// The call's number, and what its second argument must be.
    fn number(self) -> (libc::c_long, Option<u32>) {
        match self {
            Self::RingSetup => (libc::SYS_io_uring_setup, None),
            Self::RingEnter => (libc::SYS_io_uring_enter, None),
            Self::RegisterBuffers => (libc::SYS_io_uring_register, Some(0)),
            Self::Register => (libc::SYS_io_uring_register, None),
            Self::AioSetup => (libc::SYS_io_setup, None),
            Self::Msync => (libc::SYS_msync, None),
            Self::Fsync => (libc::SYS_fsync, None),
            Self::Fadvise => (libc::SYS_fadvise64, None),
            Self::IoprioSet => (libc::SYS_ioprio_set, None),
            Self::Fsetxattr => (libc::SYS_fsetxattr, None),
        }
    }
}

fn load(offset: u32) -> Instruction {
    Instruction { code: LOAD, if_true: 0, if_false: 0, value: offset }
}

fn skip_unless(value: u32, instructions: u8) -> Instruction {
    Instruction { code: JUMP_IF_EQUAL, if_true: 0, if_false: instructions, value }
}

fn respond(answer: u32) -> Instruction {
    Instruction { code: ANSWER, if_true: 0, if_false: 0, value: answer }
}

fn install(instructions: &[Instruction]) -> Result<(), Errno> {
    // Without privilege a filter is taken only from those who can gain none.
    rustix::thread::set_no_new_privs(true)?;
    let program = Program {
        len: u16::try_from(instructions.len()).map_err(|_| Errno::INVAL)?,
        instructions: instructions.as_ptr(),
    };
    let (number, pointer) = (libc::SYS_seccomp, &raw const program);
    // SAFETY: the program has the kernel's layout (size test) and lives through the call.
    let set = unsafe { libc::syscall(number, SET_MODE_FILTER, ALL_THREADS, pointer) };
    match call::check(set) {
        Ok(0) => Ok(()),
        // The number of a thread that has a filter of its own already.
        Ok(_) => Err(Errno::BUSY),
        Err(errno) => Err(errno),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_the_kernels() {
        assert_eq!(size_of::<Instruction>(), 8);
        assert_eq!(size_of::<Program>(), 16);
    }
}
