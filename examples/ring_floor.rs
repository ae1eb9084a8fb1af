//! What each duty of a load generator adds to an I/O that nobody performs: the same loop on empty operations of a ring,
//! with more of it from step to step. What is left between the last step and `null_loop … nop` is the run loop's
//! accounting for several targets, kinds and errors.
//!
//!     cargo run --release -p plumb-examples --bin ring_floor -- STEP DEPTH BATCH I/OS [nop-file]
//!
//! With `nop-file` the kernel looks up a file and a buffer for each.
//!
//! | step | the loop |
//! |---|---|
//! | `ring` | entries put in line, one call for each batch, completions taken: what `t/io_uring -N1` does |
//! | `offsets` | and a random offset by DISKSPD's generator for each |
//! | `slots` | and a slot for each, first free first taken, with the start of its I/O |
//! | `stamps` | and a stamp before and behind each batch |
//! | `histogram` | and each latency in a histogram |
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::hint::black_box;

use plumb_io::clock::{Clock, StampClock};
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::{
    FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, Opener, QueueSpec, QueueUse,
    RegionSpec, Slot,
};
use plumb_load::rng::Rng;
use plumb_load::tally::Histogram;
use plumb_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

/// Bytes of the target that nobody opens, a power of two of blocks.
const TARGET_BYTES: u64 = 1 << 30;
const BLOCK: u32 = 4096;

const OFFSETS: u8 = 1;
const SLOTS: u8 = 2;
const STAMPS: u8 = 3;
const HISTOGRAM: u8 = 4;

const USAGE: &str =
    "usage: ring_floor ring|offsets|slots|stamps|histogram DEPTH BATCH I/OS [nop-file]";

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let (step, depth, batch, ios, choice) = match words.as_slice() {
        [step, depth, batch, ios] => (step, depth, batch, ios, Choice::Nop),
        [step, depth, batch, ios, last] if last == "nop-file" => {
            (step, depth, batch, ios, Choice::NopFile)
        }
        _ => return Err(USAGE.into()),
    };
    let user = Drive {
        step: step.clone(),
        depth: depth.parse()?,
        batch: batch.parse()?,
        ios: ios.parse()?,
    };
    if user.batch == 0 || user.batch > user.depth {
        return Err("a batch has one I/O at least and no more than the depth".into());
    }
    let lanes = vec![LaneSpec { first_slot: 0, slots: user.depth, bytes: BLOCK }];
    let spec = QueueSpec {
        depth: user.depth,
        regions: vec![RegionSpec { lanes }],
        measures_latency: true,
        ..QueueSpec::default()
    };
    let nanos = Ladder::new(choice, LadderOptions::default()).open(spec, user)??;
    println!("{nanos:.1} ns of the processor for each I/O");
    Ok(())
}

struct Drive {
    step: String,
    depth: u32,
    batch: u32,
    ios: u64,
}

impl QueueUse for Drive {
    type Output = Result<f64, Box<dyn Error>>;

    fn with<Q: IoQueue>(self, queue: Q) -> Self::Output {
        match self.step.as_str() {
            "ring" => self.drive::<Q, 0>(queue),
            "offsets" => self.drive::<Q, OFFSETS>(queue),
            "slots" => self.drive::<Q, SLOTS>(queue),
            "stamps" => self.drive::<Q, STAMPS>(queue),
            "histogram" => self.drive::<Q, HISTOGRAM>(queue),
            step => Err(format!("`{step}`: one of ring, offsets, slots, stamps, histogram").into()),
        }
    }
}

impl Drive {
    /// Processor time per I/O in nanoseconds, user's and kernel's.
    fn drive<Q: IoQueue, const STEP: u8>(&self, mut queue: Q) -> Result<f64, Box<dyn Error>> {
        let (clock, _) = StampClock::new();
        let mut rng = Rng::new(1);
        let mut histogram = Histogram::new();
        let mut idle: Vec<u32> = (0..self.depth.next_power_of_two()).collect();
        let mask = idle.len() - 1;
        let (mut head, mut tail) = (0_usize, usize::try_from(self.depth)?);
        let mut starts = vec![Nanos::ZERO; idle.len()];
        let (mut next, mut done) = (0_u32, 0_u64);
        let stamp = || if STEP >= STAMPS { clock.now() } else { Nanos::ZERO };
        let before = clock_gettime(ClockId::ProcessCPUTime);
        while done < self.ios {
            let start = stamp();
            for _ in 0..self.batch {
                let slot = if STEP >= SLOTS {
                    let slot = idle[head & mask];
                    head += 1;
                    starts[slot as usize & mask] = start;
                    slot
                } else {
                    next = if next + 1 < self.depth { next + 1 } else { 0 };
                    next
                };
                let blocks = TARGET_BYTES / u64::from(BLOCK);
                let offset =
                    if STEP >= OFFSETS { rng.next64() % blocks * u64::from(BLOCK) } else { 0 };
                queue.push(Op {
                    kind: OpKind::Read,
                    file: FileIndex(0),
                    slot: Slot(slot),
                    len: BLOCK,
                    offset,
                    memory: Memory::Lane(LaneIndex(0)),
                });
            }
            queue.submit_and_wait(0, Nanos::ZERO)?;
            let found = queue.look();
            let seen = stamp();
            for _ in 0..found {
                let Some(finished) = queue.pop() else { break };
                if STEP >= HISTOGRAM {
                    histogram.record(seen.since(starts[finished.slot.0 as usize & mask]).0);
                }
                if STEP >= SLOTS {
                    idle[tail & mask] = finished.slot.0;
                    tail += 1;
                }
                done += 1;
            }
        }
        let after = clock_gettime(ClockId::ProcessCPUTime);
        black_box((&histogram, head));
        let seconds = (after.tv_sec - before.tv_sec) as f64;
        let nanos = (after.tv_nsec - before.tv_nsec) as f64;
        Ok((seconds * 1e9 + nanos) / done as f64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_step_does_its_ios() {
        let open = || Ladder::new(Choice::Nop, LadderOptions::default());
        for step in ["ring", "offsets", "slots", "stamps", "histogram"] {
            let lanes = vec![LaneSpec { first_slot: 0, slots: 32, bytes: BLOCK }];
            let regions = vec![RegionSpec { lanes }];
            let spec = QueueSpec { depth: 32, regions, ..QueueSpec::default() };
            let user = Drive { step: step.to_owned(), depth: 32, batch: 8, ios: 1000 };
            match open().open(spec, user) {
                Ok(nanos) => assert!(nanos.expect("the step is known") > 0.0, "{step}"),
                Err(error) => println!("skipped every_step_does_its_ios: {error}"),
            }
        }
    }
}
