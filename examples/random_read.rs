//! Random reads of a file, eight in flight, straight at the seam: what an issuer looks like.
//!
//!     cargo run --release -p plumb-examples --bin random_read -- FILE
#![forbid(unsafe_code)]

use std::error::Error;
use std::path::Path;
use std::{env, fmt};

use plumb_io::clock::{Clock, StampClock};
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::{
    Errno, FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, Opener, QueueSpec,
    QueueUse, RegionSpec, Slot, TargetFile,
};
use plumb_units::{Nanos, convert};
use rustix::fs::{Mode, OFlags};

const BLOCK: u32 = 4096;
const DEPTH: u32 = 8;
const READS: u64 = 10_000;

fn main() -> Result<(), Box<dyn Error>> {
    let file = env::args_os().nth(1).ok_or("usage: random_read FILE")?;
    println!("{}", read(Path::new(&file), READS)?);
    Ok(())
}

/// What the reads were like.
struct Summary {
    engine: String,
    reads: u64,
    elapsed: Nanos,
    latency_sum: Nanos,
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { engine, reads, elapsed, latency_sum } = self;
        let per_second = *reads as f64 / elapsed.as_secs_f64();
        let mean = latency_sum.as_micros_f64() / *reads as f64;
        write!(f, "{engine}: {reads} reads, {per_second:.0} per second, {mean:.1} µs mean latency")
    }
}

/// Opens the file past the page cache, then a queue on the best engine there is.
fn read(path: &Path, reads: u64) -> Result<Summary, Box<dyn Error>> {
    let flags = OFlags::RDONLY | OFlags::CLOEXEC;
    let descriptor = rustix::fs::open(path, flags | OFlags::DIRECT, Mode::empty())
        .or_else(|_| rustix::fs::open(path, flags, Mode::empty()))?;
    let size = u64::try_from(rustix::fs::fstat(&descriptor)?.st_size)?;
    let blocks = size / u64::from(BLOCK);
    if blocks == 0 {
        return Err("the file is smaller than a block".into());
    }
    let target =
        TargetFile { descriptor, path: path.to_owned(), size, priority: None, mapping: None };
    let lane = LaneSpec { first_slot: 0, slots: DEPTH, bytes: BLOCK };
    let spec = QueueSpec {
        depth: DEPTH,
        files: vec![target],
        regions: vec![RegionSpec { lanes: vec![lane] }],
        measures_latency: true,
        ..QueueSpec::default()
    };
    let (clock, _) = StampClock::new();
    let ladder = Ladder::new(Choice::Auto, LadderOptions::default());
    Ok(ladder.open(spec, RandomRead { clock, blocks, reads })??)
}

/// An issuer: it does not know which queue it gets.
struct RandomRead {
    clock: StampClock,
    blocks: u64,
    reads: u64,
}

impl QueueUse for RandomRead {
    type Output = Result<Summary, Errno>;

    fn with<Q: IoQueue>(self, mut queue: Q) -> Self::Output {
        let mut random = 0x9e37_79b9_7f4a_7c15_u64;
        let mut idle: Vec<Slot> = (0..DEPTH).map(Slot).collect();
        let mut started = [Nanos::ZERO; convert::index(DEPTH)];
        let (mut issued, mut finished, mut latency_sum) = (0, 0, Nanos::ZERO);
        let begin = self.clock.now();
        while finished < self.reads {
            while issued < self.reads
                && let Some(slot) = idle.pop()
            {
                let offset = next(&mut random) % self.blocks * u64::from(BLOCK);
                started[convert::index(slot.0)] = self.clock.now();
                queue.push(Op {
                    kind: OpKind::Read,
                    file: FileIndex(0),
                    slot,
                    len: BLOCK,
                    offset,
                    memory: Memory::Lane(LaneIndex(0)),
                });
                issued += 1;
            }
            queue.submit_and_wait(1, Nanos::NEVER)?;
            // The stamp comes after the look: an I/O is over when it is seen.
            queue.look();
            let seen = self.clock.now();
            while let Some(done) = queue.pop() {
                done.outcome()?;
                latency_sum += seen - started[convert::index(done.slot.0)];
                idle.push(done.slot);
                finished += 1;
            }
        }
        let elapsed = self.clock.now() - begin;
        Ok(Summary { engine: queue.facts().engine, reads: finished, elapsed, latency_sum })
    }
}

/// A xorshift generator: good enough to choose blocks.
fn next(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_read_is_counted_once() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        file.as_file().set_len(1 << 20).expect("room for 1 MiB");
        let summary = read(file.path(), 500).expect("the file can be read");
        assert_eq!(summary.reads, 500);
        assert!(summary.latency_sum > Nanos::ZERO && summary.elapsed > Nanos::ZERO);
    }

    #[test]
    fn a_file_below_a_block_is_refused() {
        let file = tempfile::NamedTempFile::new().expect("a temporary file");
        assert!(read(file.path(), 1).is_err());
    }
}
