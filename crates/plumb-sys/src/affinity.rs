//! Which processors a thread runs on.

use plumb_units::convert::{index, to_u32, to_usize};
use rustix::io::Errno;

use crate::call;

/// CPU numbers that masks have room for: more than any kernel is built for (NR_CPUS is at most 8192).
const CPUS_MAX: usize = 16384;
const WORDS: usize = CPUS_MAX / 64;

/// Binds the calling thread to one CPU, by its machine-wide number.
///
/// # Errors
/// EINVAL when there is no such CPU or the process may not use it.
pub fn bind_thread(cpu: u32) -> Result<(), Errno> {
    allow_thread(&[cpu])
}

/// Lets the calling thread run on these CPUs only.
///
/// # Errors
/// EINVAL when the process may use none of them.
pub fn allow_thread(cpus: &[u32]) -> Result<(), Errno> {
    let mut mask = [0_u64; WORDS];
    for &cpu in cpus {
        let word = mask.get_mut(index(cpu / 64)).ok_or(Errno::INVAL)?;
        *word |= 1 << (cpu % 64);
    }
    let (size, pointer) = (size_of_val(&mask), mask.as_ptr());
    // SAFETY: the mask is valid for its size; thread 0 is the calling one.
    let set = unsafe { libc::syscall(libc::SYS_sched_setaffinity, 0, size, pointer) };
    call::check(set).map(drop)
}

/// The CPUs that the calling thread may run on, ascending.
///
/// # Errors
/// What the kernel said.
pub fn allowed() -> Result<Vec<u32>, Errno> {
    let mut mask = [0_u64; WORDS];
    let (size, pointer) = (size_of_val(&mask), mask.as_mut_ptr());
    // SAFETY: the mask is valid for its size; thread 0 is the calling one.
    let got = unsafe { libc::syscall(libc::SYS_sched_getaffinity, 0, size, pointer) };
    let bytes = to_usize(call::check(got)?);
    let bits = (0..bytes * 8).filter(|bit| mask[bit / 64] >> (bit % 64) & 1 == 1);
    Ok(bits.map(to_u32).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bound_thread_stays_where_it_is_put() {
        let cpus = allowed().expect("a mask");
        assert!(!cpus.is_empty());
        for cpu in cpus {
            let seen = std::thread::spawn(move || {
                bind_thread(cpu).expect("an allowed CPU");
                (allowed(), to_u32(rustix::thread::sched_getcpu()))
            });
            assert_eq!(seen.join().expect("no panic"), (Ok(vec![cpu]), cpu));
        }
    }

    #[test]
    fn a_cpu_that_is_not_there_is_refused() {
        for cpu in [16383, 16384, u32::MAX] {
            assert_eq!(bind_thread(cpu), Err(Errno::INVAL));
        }
        assert_eq!(allow_thread(&[]), Err(Errno::INVAL));
    }
}
