//! CPU time of this process, and the part of it that the kernel's io-wq workers took.
//!
//! A request that cannot be started without blocking is handed to an `iou-wrk-*` thread of this
//! process. Its work costs CPU time that no thread of the issuer shows, but the process clock
//! (CLOCK_PROCESS_CPUTIME_ID) does: workers belong to the thread group. Measured with 64 KiB reads of
//! a tmpfs file: 0.50 s in the issuing thread, 1.49 s in its worker, 1.99 s on the process clock.

use std::collections::BTreeMap;

use plumb_units::Nanos;
use rustix::time::ClockId;

use crate::system_tree::SystemTree;

/// CPU time of this process by thread, at one moment.
#[derive(Debug, Clone)]
pub struct ProcessCpu {
    /// The process clock: all threads, those that have ended included.
    process: Nanos,
    threads: BTreeMap<ThreadKey, ThreadCpu>,
    /// By how much clock and threads may disagree, because they are not read at the same instant and
    /// some kernels count threads in ticks.
    uncertainty: Nanos,
}

/// Thread number and start time: numbers are used again.
type ThreadKey = (u32, u64);

#[derive(Debug, Clone, Copy)]
struct ThreadCpu {
    kind: ThreadKind,
    time: Nanos,
}

/// Whose thread of this process it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ThreadKind {
    /// A thread that this process started.
    Ordinary,
    /// io-wq's: it does the I/O that cannot be started without blocking.
    Worker,
    /// A ring's, where the kernel submits (SQPOLL): it looks for submissions without a pause, I/O or not.
    Submitter,
}

impl ThreadKind {
    /// By the name that the kernel gave it, in a line of `stat`.
    fn of(stat: &str) -> Self {
        if stat.contains("(iou-wrk-") {
            Self::Worker
        } else if stat.contains("(iou-sqp-") {
            Self::Submitter
        } else {
            Self::Ordinary
        }
    }
}

/// CPU time of this process between two moments.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CpuSpent {
    /// By all threads, io-wq workers included.
    pub process: Nanos,
    /// By io-wq workers, those that ended in between included.
    pub io_wq: Nanos,
}

impl CpuSpent {
    /// The workers' part of the process' CPU time, 0 to 1.
    #[must_use]
    pub fn io_wq_share(&self) -> f64 {
        if self.process.0 == 0 { 0.0 } else { self.io_wq.0 as f64 / self.process.0 as f64 }
    }
}

impl ProcessCpu {
    /// Reads the process clock and, from `/proc/self/task`, every thread's CPU time.
    #[must_use]
    pub fn read(tree: &SystemTree) -> Self {
        let before = clock(ClockId::Monotonic);
        let process = clock(ClockId::ProcessCPUTime);
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second().max(1);
        let mut threads = BTreeMap::new();
        let mut in_ticks = 0;
        for name in tree.names("/proc/self/task") {
            let folder = format!("/proc/self/task/{}", name.to_string_lossy());
            // A thread that ends while we look is gone: its time is in the process clock.
            let Some(stat) = tree.text(format!("{folder}/stat")) else { continue };
            let Some((key, ticks)) = parse_stat(&stat) else { continue };
            let exact = tree.text(format!("{folder}/schedstat")).and_then(|t| parse_schedstat(&t));
            in_ticks += u64::from(exact.is_none());
            let time = exact.unwrap_or(Nanos(ticks * tick));
            threads.insert(key, ThreadCpu { kind: ThreadKind::of(&stat), time });
        }
        let taking = clock(ClockId::Monotonic).0 - before.0;
        let running = (threads.len() as u64).min(parallelism());
        let uncertainty = Nanos(taking * running + 2 * tick * in_ticks);
        Self { process, threads, uncertainty }
    }

    /// What each ordinary thread (no io-wq worker, and no thread of the kernel's that submits) spent since
    /// `earlier`, of those that were there at both moments: number and time, ascending by number.
    #[must_use]
    pub fn threads_since(&self, earlier: &Self) -> Vec<(u32, Nanos)> {
        let ordinary = self.threads.iter().filter(|(_, now)| now.kind == ThreadKind::Ordinary);
        ordinary
            .filter_map(|(key, now)| {
                let then = earlier.threads.get(key)?;
                Some((key.0, Nanos(now.time.0.saturating_sub(then.time.0))))
            })
            .collect()
    }

    /// What was spent since `earlier`.
    ///
    /// Workers end after some idle seconds and take their entry with them, so theirs is what the
    /// process spent and no other thread did. That holds while no ordinary thread ends in between;
    /// if one does, only the workers that are still there are counted: a lower bound, as it is when
    /// the difference is within what the two readings may disagree by.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> CpuSpent {
        let process = Nanos(self.process.0.saturating_sub(earlier.process.0));
        let spent = |is_worker: bool| -> u64 {
            let threads = self.threads.iter();
            let threads = threads.filter(|(_, now)| (now.kind == ThreadKind::Worker) == is_worker);
            threads
                .map(|(key, now)| {
                    let then = earlier.threads.get(key).map_or(0, |then| then.time.0);
                    now.time.0.saturating_sub(then)
                })
                .sum()
        };
        let seen = spent(true);
        let ordinary_thread_ended = earlier
            .threads
            .iter()
            .any(|(key, then)| then.kind != ThreadKind::Worker && !self.threads.contains_key(key));
        let rest = process.0.saturating_sub(spent(false));
        let uncertainty = self.uncertainty.0 + earlier.uncertainty.0;
        let io_wq = if ordinary_thread_ended || rest <= seen.saturating_add(uncertainty) {
            seen
        } else {
            rest
        };
        CpuSpent { process, io_wq: Nanos(io_wq.min(process.0)) }
    }
}

/// Number, start time, and CPU time in ticks from `/proc/self/task/<n>/stat`. The name in
/// parentheses may hold anything, so fields are counted from the last parenthesis.
fn parse_stat(text: &str) -> Option<(ThreadKey, u64)> {
    let number = text.split(' ').next()?.parse().ok()?;
    let (_, rest) = text.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split(' ').collect();
    // proc(5) counts from 1 and the state is field 3: utime 14, stime 15, starttime 22.
    let field = |place: usize| fields.get(place - 3)?.parse::<u64>().ok();
    Some(((number, field(22)?), field(14)?.checked_add(field(15)?)?))
}

/// CPU time from `/proc/self/task/<n>/schedstat`: the first of three numbers, in ns.
fn parse_schedstat(text: &str) -> Option<Nanos> {
    text.split(' ').next()?.parse().ok().map(Nanos)
}

fn clock(id: ClockId) -> Nanos {
    let time = rustix::time::clock_gettime(id);
    let part = |value: i64| u64::try_from(value).unwrap_or(0);
    Nanos(part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec))
}

fn parallelism() -> u64 {
    std::thread::available_parallelism().map_or(1, |count| count.get() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::{UringOptions, UringQueue};
    use crate::fake_tree::FakeTree;
    use crate::{
        FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, QueueSpec, RegionSpec, Slot,
        TargetFile,
    };

    /// A moment from `process ms` and `number kind ms` per thread (w worker, s submits, o ordinary).
    fn moment(text: &str) -> ProcessCpu {
        let ms = |text: &str| Nanos(text.parse::<u64>().expect("a number") * 1_000_000);
        let mut words = text.split_whitespace();
        let process = ms(words.next().expect("the process"));
        let mut threads = BTreeMap::new();
        while let Some(number) = words.next() {
            let kind = match words.next() {
                Some("w") => ThreadKind::Worker,
                Some("s") => ThreadKind::Submitter,
                _ => ThreadKind::Ordinary,
            };
            let time = ms(words.next().expect("a time"));
            threads.insert((number.parse().expect("a number"), 1), ThreadCpu { kind, time });
        }
        ProcessCpu { process, threads, uncertainty: Nanos(1_000_000) }
    }

    fn check(earlier: &str, later: &str, process_ms: u64, io_wq_ms: u64) {
        let spent = moment(later).since(&moment(earlier));
        assert_eq!(spent.process, Nanos(process_ms * 1_000_000));
        assert_eq!(spent.io_wq, Nanos(io_wq_ms * 1_000_000));
    }

    #[test]
    fn workers_that_ended_are_counted() {
        // Worker 2 stays, 3 ends, 4 comes and goes unseen.
        check("100 1 o 50 2 w 30 3 w 20", "1000 1 o 150 2 w 230", 900, 800);
    }

    #[test]
    fn without_workers_clock_skew_is_not_taken_for_one() {
        check("100 1 o 98", "200 1 o 196", 100, 0);
        check("100 1 o 98", "203 1 o 196", 103, 5);
    }

    #[test]
    fn an_ordinary_thread_that_ended_is_not_taken_for_a_worker() {
        check("100 1 o 50 5 o 50", "400 1 o 60 2 w 40", 300, 40);
    }

    #[test]
    fn threads_are_told_apart() {
        let (earlier, later) = (moment("9 1 o 2 2 w 3 3 o 4"), moment("99 1 o 12 2 w 50 4 o 30"));
        assert_eq!(later.threads_since(&earlier), [(1, Nanos(10_000_000))]);
    }

    /// It spins whether there is I/O or not: its time is the process's, no worker's, and no busy generator's.
    #[test]
    fn a_thread_that_submits_is_neither_a_worker_nor_one_of_ours() {
        check("100 1 o 50 2 s 40", "1100 1 o 90 2 s 1000", 1000, 0);
        let (earlier, later) = (moment("100 1 o 50 2 s 40"), moment("1100 1 o 90 2 s 1000"));
        assert_eq!(later.threads_since(&earlier), [(1, Nanos(40_000_000))]);
    }

    #[test]
    fn a_worker_never_takes_more_than_the_process() {
        check("100 1 o 50 2 w 10", "110 1 o 50 2 w 100", 10, 10);
    }

    #[test]
    fn threads_are_read_with_any_name_and_in_ticks_if_need_be() {
        let fake = FakeTree::new();
        let fields = "S 1 1 1 0 -1 64 0 0 0 0 3 47 0 0 20 0 2 0 777 0 0";
        fake.file("/proc/self/task/10/stat", format!("10 (a) (b c) {fields}\n"));
        fake.file("/proc/self/task/10/schedstat", "514255160 3470239 199681\n");
        fake.file("/proc/self/task/11/stat", format!("11 (iou-wrk-10) {fields}\n"));
        fake.file("/proc/self/task/12/stat", format!("12 (iou-sqp-10) {fields}\n"));
        let cpu = ProcessCpu::read(&fake.tree());
        let own = cpu.threads[&(10, 777)];
        assert_eq!((own.kind, own.time), (ThreadKind::Ordinary, Nanos(514_255_160)));
        let worker = cpu.threads[&(11, 777)];
        let tick = 1_000_000_000 / rustix::param::clock_ticks_per_second();
        assert_eq!((worker.kind, worker.time), (ThreadKind::Worker, Nanos(50 * tick)));
        assert_eq!(cpu.threads[&(12, 777)].kind, ThreadKind::Submitter);
        assert!(cpu.uncertainty.0 >= 2 * tick);
    }

    #[test]
    fn this_process_spends_what_it_burns() {
        let tree = SystemTree::default();
        let before = ProcessCpu::read(&tree);
        let start = clock(ClockId::ThreadCPUTime);
        while clock(ClockId::ThreadCPUTime).0 - start.0 < 20_000_000 {}
        let spent = ProcessCpu::read(&tree).since(&before);
        assert!(spent.process.0 >= 20_000_000, "{spent:?}");
    }

    /// Reads a file in memory through io_uring, which cannot start that without blocking.
    fn read_in_memory(ios: u32) -> Result<(), crate::OpenQueueError> {
        const DEPTH: u32 = 16;
        const BLOCK: u32 = 65_536;
        let file = tempfile::tempfile_in("/dev/shm").expect("a file in memory");
        let size = u64::from(DEPTH * BLOCK);
        std::os::unix::fs::FileExt::write_all_at(&file, &vec![1; 1 << 20], 0).expect("written");
        let file = TargetFile {
            descriptor: file.into(),
            path: "/dev/shm".into(),
            size,
            priority: None,
            mapping: None,
        };
        let lane = LaneSpec { first_slot: 0, slots: DEPTH, bytes: BLOCK };
        let spec = QueueSpec {
            depth: DEPTH,
            files: vec![file],
            regions: vec![RegionSpec { lanes: vec![lane] }],
            ..QueueSpec::default()
        };
        let mut queue = UringQueue::open(spec, UringOptions::default())?;
        for _ in 0..ios / DEPTH {
            for slot in 0..DEPTH {
                queue.push(Op {
                    kind: OpKind::Read,
                    file: FileIndex(0),
                    slot: Slot(slot),
                    len: BLOCK,
                    offset: u64::from(slot * BLOCK),
                    memory: Memory::Lane(LaneIndex(0)),
                });
            }
            let mut done = 0;
            while done < DEPTH {
                queue.submit_and_wait(DEPTH - done, Nanos::NEVER).expect("submitted");
                queue.look();
                while let Some(finished) = queue.pop() {
                    assert_eq!(finished.outcome(), Ok(BLOCK));
                    done += 1;
                }
            }
        }
        Ok(())
    }

    #[test]
    fn workers_of_this_process_are_seen() {
        let tree = SystemTree::default();
        let before = ProcessCpu::read(&tree);
        let own = clock(ClockId::ThreadCPUTime);
        if let Err(error) = read_in_memory(4096) {
            println!("skipped workers_of_this_process_are_seen: {error}");
            return;
        }
        let own = clock(ClockId::ThreadCPUTime).since(own);
        let spent = ProcessCpu::read(&tree).since(&before);
        // Its time is in the process clock, beside that of this thread.
        assert!(spent.io_wq.0 > 0, "tmpfs reads were handed to workers: {spent:?}");
        assert!(spent.process.0 >= own.0, "{spent:?} {own:?}");
        assert!(spent.io_wq_share() <= 1.0, "{spent:?}");
    }
}
