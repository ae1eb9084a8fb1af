//! Priorities of a thread's I/O and of the process.

use rustix::io::Errno;

use crate::call;

/// `ioprio_set` on one thread (linux/ioprio.h).
const WHO_PROCESS: u32 = 1;
const CLASS_SHIFT: u32 = 13;
const CLASS_BEST_EFFORT: u32 = 2;
const CLASS_IDLE: u32 = 3;

/// How urgent a thread's I/O is, to schedulers that honour it (bfq, mq-deadline).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IoPriority {
    /// Only when nobody else wants the disk.
    Idle,
    /// Level 0 (most urgent) to 7; 4 is what everybody has.
    BestEffort(u8),
}

impl IoPriority {
    /// The kernel's number.
    pub(crate) fn value(self) -> u32 {
        match self {
            Self::Idle => CLASS_IDLE << CLASS_SHIFT,
            Self::BestEffort(level) => CLASS_BEST_EFFORT << CLASS_SHIFT | u32::from(level.min(7)),
        }
    }
}

/// Sets the I/O priority of the calling thread.
///
/// # Errors
/// What the kernel said.
pub fn set_thread_io_priority(priority: IoPriority) -> Result<(), Errno> {
    let value = priority.value();
    // SAFETY: three numbers; thread 0 is the calling one.
    let set = unsafe { libc::syscall(libc::SYS_ioprio_set, WHO_PROCESS, 0, value) };
    call::check(set).map(drop)
}

/// The I/O priority of the calling thread, by the kernel's number.
///
/// # Errors
/// What the kernel said.
#[cfg(test)]
fn thread_io_priority() -> Result<u64, Errno> {
    // SAFETY: two numbers; thread 0 is the calling one.
    let got = unsafe { libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, 0) };
    call::check(got)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_gets_the_priority_it_asks_for() {
        let priorities = [IoPriority::Idle, IoPriority::BestEffort(7), IoPriority::BestEffort(4)];
        for (priority, value) in priorities.into_iter().zip([3 << 13, 2 << 13 | 7, 2 << 13 | 4]) {
            let seen = std::thread::spawn(move || {
                set_thread_io_priority(priority).expect("lowering needs no privilege");
                thread_io_priority()
            });
            assert_eq!(seen.join().expect("no panic"), Ok(value));
        }
    }
}
