//! Starts that leave open extents for later: they serve at once, and what is read is on all copies by then.

use plumb_io::FlushQueue as _;
use plumb_io::sim::power::{Image, Survivors};
use plumb_units::Nanos;

use super::faults::{MIRROR, done, fill, first_block, flush, images, oracle, rest, write};
use super::history::{CLIENT_BYTES, CLIENTS, Shape};
use super::oracle::Promise;
use super::run::{Run, queue};
use crate::assembly::{How, Terms};
use crate::engine::JobKind;
use crate::mutation::{Mutation, set};
use crate::{Engine, Request, RequestKind};

/// A mirror after a power cut: all extents are open, or only the first one, and of a block of the first one a copy has what was there before.
fn cut_off(all: bool) -> (Run, Vec<Image>) {
    let mut run = super::faults::start(MIRROR);
    fill(&mut run);
    rest(&mut run, if all { 0 } else { 12 });
    let before = images(&mut run, MIRROR.0);
    let (disk, offset) = first_block(MIRROR, &run)[1];
    let at = plumb_units::convert::index(disk);
    let mut old = vec![0; 4096];
    before[at].read(offset, &mut old);
    for step in [write(0), flush()] {
        done(&mut run, &[step]).expect("nothing is wrong");
    }
    run.engine.queue_mut().tamper(disk, offset, &old);
    let left = images(&mut run, MIRROR.0);
    (run, left)
}

fn start_within(run: &Run, left: Vec<Image>, within: Nanos) -> Run {
    let shape = Shape { seed: 0, ..super::faults::shape(MIRROR) };
    let made = queue(&shape, left, 3, true);
    let of = (3 ^ 0x1d, within);
    let clients = (CLIENTS + 1, CLIENT_BYTES);
    let how = How { settle_within: of.1, ..How::new(of.0, Terms::More) };
    let engine = Engine::start_settling(made, shape.plan(), clients, how).expect("it starts");
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut again = Run::go_on_with(&shape, engine, oracle);
    again.sound = false;
    again
}

fn to_settle(run: &Run) -> u64 {
    let jobs = run.engine.jobs();
    jobs.iter().filter(|job| job.kind == JobKind::Settle).map(|job| job.bytes_left).sum()
}

#[test]
fn a_start_serves_before_it_has_settled_what_is_open() {
    let (run, left) = cut_off(true);
    let mut whole = start_within(&run, left.clone(), Nanos::NEVER);
    let mut early = start_within(&run, left, Nanos::ZERO);
    assert_eq!(to_settle(&whole), 0);
    let extent = u64::from(early.engine.config().extent_bytes);
    assert_eq!(to_settle(&early), 8 * extent, "all that were written");
    assert!(early.engine.has_work() && early.engine.works());
    let took = [&mut early, &mut whole].map(|run| run.engine.queue_mut().time());
    assert!(took[0] < took[1], "to settle all of them takes longer: {took:?}");
    rest(&mut early, 2);
    assert_eq!(to_settle(&early), 0, "they are settled without a request");
    assert_eq!(early.engine.counters().equalised, whole.engine.counters().equalised);
    early.read_all(Promise::Acknowledged, 0).expect("all is there");
}

/// Reads a block of which one copy is older; the power goes at once, and with it the disk of the good copy. What is read then?
fn read_twice() -> Result<bool, String> {
    let (run, left) = cut_off(false);
    let mut early = start_within(&run, left, Nanos::ZERO);
    let read = Request { kind: RequestKind::Read, vdisk: 0, offset: 0, len: 4096 };
    let first = |run: &mut Run| -> Result<Vec<u8>, String> {
        let is_read = run.ask(0, read)?;
        is_read.then(|| run.engine.buffer_mut(0)[..4096].to_vec()).ok_or("it cannot be read".into())
    };
    let before = first(&mut early)?;
    (0..MIRROR.0).for_each(|disk| early.engine.queue_mut().drop_cache(disk, Survivors::None));
    let (disk, _) = first_block(MIRROR, &early)[0];
    let left = images(&mut early, MIRROR.0);
    let again = Run::start(&super::faults::shape(MIRROR), left, &[disk], oracle(), 5);
    let mut again = again.map_err(|error| error.to_string())?;
    Ok(first(&mut again)? == before)
}

/// RES-3: a block never becomes another one.
#[test]
fn what_was_read_after_a_start_is_on_all_copies() {
    assert_eq!(read_twice(), Ok(true), "it stays what it was");
    set(Some(Mutation::DeferredUnflushed));
    let found = read_twice();
    set(None);
    assert_ne!(found, Ok(true), "it is not noticed");
}
