//! What a queue costs its issuer per I/O: `cargo bench -p plumb-io -- [QUEUE [DEPTH [IOS]]]`.
//!
//! The loop does what every issuer must (fill, submit, look, pop) and nothing else; stamps, offsets and
//! statistics come on top. User time is the figure to read on `null`: its kernel time is zero.
#![forbid(unsafe_code)]

use std::hint::black_box;
use std::process::ExitCode;
use std::time::Instant;

use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::{
    FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, Opener, QueueMode, QueueSpec,
    QueueUse, RegionSpec, Slot,
};
use plumb_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

const BATCH: u32 = 8;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // Without `--bench` this is a test: the same, tiny.
    let total =
        if arguments.iter().any(|argument| argument == "--bench") { 10_000_000 } else { 1000 };
    let mut words = arguments.iter().filter(|argument| !argument.starts_with("--"));
    let only = words.next();
    let depth = words.next().and_then(|word| word.parse().ok()).unwrap_or(32);
    let total = words.next().and_then(|word| word.parse().ok()).unwrap_or(total);
    for choice in [Choice::Null, Choice::Nop] {
        if only.is_some_and(|name| name != choice.name()) {
            continue;
        }
        let lane = LaneSpec { first_slot: 0, slots: depth, bytes: 4096 };
        let regions = vec![RegionSpec { lanes: vec![lane, lane] }];
        let mode = QueueMode::Asynchronous;
        let spec =
            QueueSpec { depth, regions, mode, measures_latency: true, ..QueueSpec::default() };
        let user = Issue { depth, total };
        match Ladder::new(choice, LadderOptions::default()).open(spec, user) {
            Ok(cost) => println!(
                "{choice} depth {depth}: {:.1} ns wall, {:.1} ns CPU per I/O ({total} I/Os)",
                cost.wall_ns, cost.cpu_ns
            ),
            Err(error) => println!("skipped {choice}: {error}"),
        }
    }
    ExitCode::SUCCESS
}

/// Per I/O.
struct Cost {
    wall_ns: f64,
    cpu_ns: f64,
}

/// Keeps `depth` I/Os in flight until `total` are done.
struct Issue {
    depth: u32,
    total: u64,
}

impl QueueUse for Issue {
    type Output = Cost;

    fn with<Q: IoQueue>(self, mut queue: Q) -> Cost {
        let mut idle: Vec<u32> = (0..self.depth).collect();
        let start = (Instant::now(), cpu_time());
        let done = issue(&mut queue, &mut idle, self.total);
        let cpu_ns = cpu_time() - start.1;
        let ios = done as f64;
        Cost { wall_ns: start.0.elapsed().as_secs_f64() * 1e9 / ios, cpu_ns: cpu_ns / ios }
    }
}

#[inline(never)]
fn issue<Q: IoQueue>(queue: &mut Q, idle: &mut Vec<u32>, total: u64) -> u64 {
    let mut done = 0;
    let mut bytes = 0;
    while done < total {
        for _ in 0..BATCH {
            let Some(slot) = idle.pop() else { break };
            queue.push(black_box(read(slot, done)));
        }
        queue.submit_and_wait(1, Nanos::NEVER).expect("nothing can fail here");
        queue.look();
        while let Some(finished) = queue.pop() {
            bytes += u64::from(finished.outcome().unwrap_or(0));
            idle.push(finished.slot.0);
            done += 1;
        }
    }
    assert_eq!(bytes, done * 4096);
    done
}

#[inline(always)]
fn read(slot: u32, nth: u64) -> Op {
    let (kind, file, memory) = (OpKind::Read, FileIndex(0), Memory::Lane(LaneIndex(0)));
    Op { kind, file, slot: Slot(slot), len: 4096, offset: nth * 4096, memory }
}

/// Nanoseconds of CPU that the process used.
fn cpu_time() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 * 1e9 + time.tv_nsec as f64
}
