//! How long a thread that was ready to run waited for a processor.
//!
//! The kernel counts it per thread (`/proc/thread-self/schedstat`: nanoseconds run, nanoseconds waited,
//! turns on a processor; Documentation/scheduler/sched-stats.rst of Linux). A thread that waits sees its
//! completions later than the error bar of its looks can tell.

use std::fs::File;
use std::os::unix::fs::FileExt;

use plumb_units::Nanos;

/// The three numbers have at most 20 digits each.
const LINE: usize = 64;

/// What one or more threads waited, over some time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ProcessorWait {
    /// Time ready to run and not running, of all turns together.
    pub waited: Nanos,
    /// How often a processor was given.
    pub turns: u64,
}

impl ProcessorWait {
    /// Mean wait before a turn; `None` without turns.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        self.waited.0.checked_div(self.turns).map(Nanos)
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self { waited: self.waited + other.waited, turns: self.turns + other.turns }
    }

    fn since(self, earlier: Self) -> Self {
        Self {
            waited: self.waited.since(earlier.waited),
            turns: self.turns.saturating_sub(earlier.turns),
        }
    }

    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_ascii_whitespace().map(str::parse);
        let _ran: u64 = numbers.next()?.ok()?;
        Some(Self { waited: Nanos(numbers.next()?.ok()?), turns: numbers.next()?.ok()? })
    }
}

/// Counts for the thread that made it.
#[derive(Debug)]
pub(crate) struct WaitMeter {
    file: File,
    start: ProcessorWait,
}

impl WaitMeter {
    /// Counts from here; `None` where the kernel does not tell. Nothing is allocated behind this call.
    pub(crate) fn start() -> Option<Self> {
        let file = File::open("/proc/thread-self/schedstat").ok()?;
        let start = read(&file)?;
        Some(Self { file, start })
    }

    /// What was waited since. `None` where the kernel has the file and does not count.
    pub(crate) fn stop(&self) -> Option<ProcessorWait> {
        let now = read(&self.file)?;
        (now.turns > 0).then(|| now.since(self.start))
    }
}

fn read(file: &File) -> Option<ProcessorWait> {
    let mut line = [0; LINE];
    let bytes = file.read_at(&mut line, 0).ok()?;
    ProcessorWait::parse(std::str::from_utf8(&line[..bytes]).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_numbers_are_read_in_their_order() {
        let want = ProcessorWait { waited: Nanos(20), turns: 3 };
        assert_eq!(ProcessorWait::parse("1000 20 3\n"), Some(want));
        assert_eq!(want.mean(), Some(Nanos(6)));
        assert_eq!(ProcessorWait::default().mean(), None);
        for bad in ["", "1 2", "1 x 3", "-1 2 3"] {
            assert_eq!(ProcessorWait::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn threads_that_share_a_processor_wait_for_it() {
        let alone = rustix::thread::sched_getaffinity(None).expect("this thread's processors");
        let cpu = (0..rustix::thread::CpuSet::MAX_CPU).find(|cpu| alone.is_set(*cpu));
        let mut one = rustix::thread::CpuSet::new();
        one.set(cpu.expect("it runs somewhere"));
        let work = || {
            rustix::thread::sched_setaffinity(None, &one).expect("one of its own");
            let Some(meter) = WaitMeter::start() else {
                println!("skipped threads_that_share_a_processor_wait_for_it: no schedstat");
                return None;
            };
            let until = std::time::Instant::now() + std::time::Duration::from_millis(100);
            while std::time::Instant::now() < until {
                std::hint::spin_loop();
            }
            meter.stop()
        };
        let waits: Vec<_> = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..4).map(|_| scope.spawn(work)).collect();
            threads.into_iter().map(|thread| thread.join().expect("it only spins")).collect()
        });
        let Some(waits) = waits.into_iter().collect::<Option<Vec<_>>>() else { return };
        let all = waits.into_iter().fold(ProcessorWait::default(), ProcessorWait::with);
        // Four that want 100 ms each of one processor: one runs, three wait.
        assert!(all.waited > Nanos(200_000_000), "{all:?}");
        assert!(all.turns > 0 && all.mean().is_some(), "{all:?}");
    }
}
