//! How long a thread that was ready to run waited for a processor.
//!
//! The kernel counts it per thread (`/proc/thread-self/schedstat`: nanoseconds run, nanoseconds waited,
//! turns on a processor; Documentation/scheduler/sched-stats.rst of Linux). A thread that waits sees its
//! completions later than the error bar of its looks can tell.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::time::Instant;

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
    /// Time neither running nor ready to.
    pub asleep: Nanos,
}

impl ProcessorWait {
    /// Mean wait before a turn; `None` without turns.
    #[must_use]
    pub fn mean(&self) -> Option<Nanos> {
        self.waited.0.checked_div(self.turns).map(Nanos)
    }

    /// Mean sleep before a turn; `None` without turns.
    #[must_use]
    pub fn mean_sleep(&self) -> Option<Nanos> {
        self.asleep.0.checked_div(self.turns).map(Nanos)
    }

    /// Both together.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        Self {
            waited: self.waited + other.waited,
            turns: self.turns + other.turns,
            asleep: self.asleep + other.asleep,
        }
    }
}

/// What the kernel counted of a thread so far.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Counted {
    ran: Nanos,
    waited: Nanos,
    turns: u64,
}

impl Counted {
    fn parse(line: &str) -> Option<Self> {
        let mut numbers = line.split_ascii_whitespace().map(str::parse);
        let mut next = || numbers.next()?.ok();
        Some(Self { ran: Nanos(next()?), waited: Nanos(next()?), turns: next()? })
    }

    /// What came on top of `earlier` in `elapsed`.
    fn since(self, earlier: Self, elapsed: Nanos) -> ProcessorWait {
        let waited = self.waited.since(earlier.waited);
        ProcessorWait {
            waited,
            turns: self.turns.saturating_sub(earlier.turns),
            asleep: elapsed.since(self.ran.since(earlier.ran)).since(waited),
        }
    }
}

/// Counts for the thread that made it.
#[derive(Debug)]
pub(crate) struct WaitMeter {
    file: File,
    start: Counted,
    started: Instant,
}

impl WaitMeter {
    /// Counts from here; `None` where the kernel does not tell. Nothing is allocated behind this call.
    pub(crate) fn start() -> Option<Self> {
        let file = File::open("/proc/thread-self/schedstat").ok()?;
        let start = read(&file)?;
        Some(Self { file, start, started: Instant::now() })
    }

    /// What was waited since. `None` where the kernel has the file and does not count.
    pub(crate) fn stop(&self) -> Option<ProcessorWait> {
        let now = read(&self.file)?;
        (now.turns > 0).then(|| now.since(self.start, Nanos::from(self.started.elapsed())))
    }
}

fn read(file: &File) -> Option<Counted> {
    let mut line = [0; LINE];
    let bytes = file.read_at(&mut line, 0).ok()?;
    Counted::parse(std::str::from_utf8(&line[..bytes]).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_three_numbers_are_read_in_their_order() {
        let want = Counted { ran: Nanos(1000), waited: Nanos(20), turns: 3 };
        assert_eq!(Counted::parse("1000 20 3\n"), Some(want));
        for bad in ["", "1 2", "1 x 3", "-1 2 3"] {
            assert_eq!(Counted::parse(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_sleep_is_what_is_neither_run_nor_waited() {
        let earlier = Counted { ran: Nanos(1000), waited: Nanos(20), turns: 3 };
        let now = Counted { ran: Nanos(1300), waited: Nanos(120), turns: 7 };
        let since = now.since(earlier, Nanos(2400));
        let want = ProcessorWait { waited: Nanos(100), turns: 4, asleep: Nanos(2000) };
        assert_eq!(since, want);
        assert_eq!((since.mean(), since.mean_sleep()), (Some(Nanos(25)), Some(Nanos(500))));
        let none = ProcessorWait::default();
        assert_eq!((none.mean(), none.mean_sleep()), (None, None));
        assert_eq!(since.with(since).mean_sleep(), Some(Nanos(500)));
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
