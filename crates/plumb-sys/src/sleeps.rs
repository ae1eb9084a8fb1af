//! How often a thread has gone to sleep.

use std::mem::MaybeUninit;

/// How often the calling thread has given up its processor by itself, to wait for something: its voluntary
/// context switches (`ru_nvcsw` of getrusage(2) with RUSAGE_THREAD). A thread that lost its processor while
/// it could have gone on is not counted. A system call of 0.1 to 0.3 µs.
///
/// `None` where the kernel refuses.
#[must_use]
pub fn of_this_thread() -> Option<u64> {
    let mut usage = MaybeUninit::<libc::rusage>::zeroed();
    // SAFETY: the kernel writes one rusage to memory that is ours and large enough for it.
    let result = unsafe { libc::getrusage(libc::RUSAGE_THREAD, usage.as_mut_ptr()) };
    if result != 0 {
        return None;
    }
    // SAFETY: all of it was zeroed, which is a valid rusage, and then written by the kernel.
    let usage = unsafe { usage.assume_init() };
    u64::try_from(usage.ru_nvcsw).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_sleep_counts_and_work_does_not() {
        // On a thread of its own: the harness waits for others on this one.
        let counted = std::thread::spawn(|| {
            let before = of_this_thread()?;
            let until = Instant::now() + Duration::from_millis(2);
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            let worked = of_this_thread()?;
            for _ in 0..3 {
                std::thread::sleep(Duration::from_micros(100));
            }
            Some((worked - before, of_this_thread()? - worked))
        });
        assert_eq!(counted.join().expect("it only waits"), Some((0, 3)));
    }
}
