//! Situations that chance alone seldom makes, put into histories: the ring of a write-back cache that goes round while
//! somebody reads from it slowly, and a disk that hangs when all is to stand still.

use super::history::{CLIENTS, EXTENT_BYTES, Fault, Shape, Step, sectors};
use crate::RequestKind;
use crate::random::Random;

/// The same history, some with more in it. They have random numbers of their own: the others stay what they are.
pub(super) fn with(shape: &Shape, mut history: Vec<Step>, seed: u64) -> Vec<Step> {
    let mut random = Random::new(seed ^ 0x1a95);
    if random.one_in(3) && shape.cache > 0 && !history.is_empty() {
        let at = usize::try_from(below(&mut random, history.len() as u64)).unwrap_or(0);
        let lap = lap(&mut random);
        history.splice(at..at, lap);
    }
    let hangs = |step: &Step| matches!(step, Step::Fault { fault: Fault::Hangs { .. }, .. });
    if let Some(at) = history.iter().position(hangs).filter(|_| random.one_in(2)) {
        let (quiet, wait) = waited_out(&mut random);
        history.splice(at + 1..=at, wait);
        history.splice(at..at, quiet);
    }
    history
}

fn below(random: &mut Random, count: u64) -> u32 {
    u32::try_from(random.below(count)).unwrap_or(0)
}

/// A slow read from the log, and the writes of a lap behind it (WBC-2).
fn lap(random: &mut Random) -> Vec<Step> {
    let millis = 4 + random.below(60);
    let mut lap = vec![Step::SlowRead { nth: below(random, 64), millis }];
    // A record has a header and a block or more, and the ring holds sixteen blocks at least.
    for _ in 0..14 + below(random, 14) {
        let client = below(random, CLIENTS.into());
        lap.push(Step::WriteOver { client, nth: below(random, 64) });
        if random.one_in(4) {
            lap.push(Step::Poll);
        }
    }
    lap
}

/// Nothing is under way for a while; then, behind the fault, all stands still for a disk that does not answer, and goes
/// on at once when it is given up.
fn waited_out(random: &mut Random) -> (Vec<Step>, Vec<Step>) {
    let flush = Step::Request { client: 0, kind: RequestKind::Flush, offset: 0, len: 0 };
    let mut quiet: Vec<Step> = (0..CLIENTS).map(|client| read(client, random)).collect();
    quiet.push(flush);
    for _ in 0..3 {
        quiet.extend([Step::Sleep { millis: 1100 }, Step::Poll, Step::Poll]);
    }
    quiet.push(Step::Sleep { millis: 1100 });
    let mut wait = vec![Step::Checkpoint, write(random), write(random)];
    wait.extend([Step::Poll, Step::Poll]);
    (quiet, wait)
}

/// Waits for whatever that client does.
fn read(client: u32, random: &mut Random) -> Step {
    let (kind, offset) = (RequestKind::Read, random.below(64) * 4096);
    Step::Request { client, kind, offset, len: 4096 }
}

/// A block of some extent.
fn write(random: &mut Random) -> Step {
    let extents = u64::from(sectors()) * 512 / u64::from(EXTENT_BYTES);
    let offset = random.below(extents) * u64::from(EXTENT_BYTES);
    let (kind, client) = (RequestKind::Write { fua: false }, below(random, CLIENTS.into()));
    Step::Request { client, kind, offset, len: 4096 }
}
