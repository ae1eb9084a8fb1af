//! Writes that end without an error before all is written, as at the end of a file system's room or of a process's limit.

use super::faults::{MIRROR, SIMPLE, TIERED, fill, images, oracle, rest, shape, start};
use super::run::Run;
use crate::mutation::{Mutation, set};
use crate::{Request, RequestKind, StartError};

const LEN: u32 = 16 << 10;
const NEW: u8 = 0x7e;

/// Every disk cuts its `nth` I/O from now on short, if it is a write, while a durable write is under way. Whether that was
/// acknowledged.
///
/// # Errors
/// What of it is not there after a stop of the engine, whichever disk is away then.
fn cut_short(of: (u32, u32, u8, u64), nth: u64) -> Result<bool, String> {
    let mut run = start(of);
    fill(&mut run);
    rest(&mut run, 2);
    for disk in 0..of.0 {
        let ios = run.engine.queue_mut().ios(disk);
        run.engine.queue_mut().faults_mut(disk).short_writes = vec![ios + nth];
    }
    run.engine.buffer_mut(0)[..LEN as usize].fill(NEW);
    let request = |kind| Request { kind, vdisk: 0, offset: 0, len: LEN };
    if !run.ask(0, request(RequestKind::Write { fua: true }))? {
        return Ok(false);
    }
    let away = (0..of.0).filter(|_| of.2 > 1).map(|disk| vec![disk]);
    for absent in std::iter::once(Vec::new()).chain(away) {
        let left = images(&mut run, of.0);
        let mut again = match Run::start(&shape(of), left, &absent, oracle(), 2) {
            Ok(again) => again,
            // One that did not take its share of a frame has no vote any more.
            Err(StartError::NoQuorum { .. }) if !absent.is_empty() => continue,
            Err(error) => return Err(format!("without {absent:?}: {error}")),
        };
        let read = again.ask(0, request(RequestKind::Read))?;
        // The other copy of the log did not take its share either: the only one is away, and who reads is told so.
        let absent: Vec<u16> = absent.iter().filter_map(|disk| u16::try_from(*disk).ok()).collect();
        let log = run.engine.config().vdisks[0].cache.iter().flat_map(|log| &log.copies);
        let current: Vec<u16> = log.filter(|copy| copy.current).map(|copy| copy.disk).collect();
        if !read && current.len() == 1 && absent == current && again.engine.is_detached(0) {
            continue;
        }
        if !read || again.engine.buffer_mut(0)[..LEN as usize].iter().any(|byte| *byte != NEW) {
            return Err(format!("without {absent:?}: not what was acknowledged, read {read}"));
        }
    }
    Ok(true)
}

/// Of every I/O of a durable write, on pools with one copy, with two, and with a log.
fn cut_everywhere() -> Vec<Result<bool, String>> {
    let each = |of| (0..12).map(move |nth| cut_short(of, nth));
    [SIMPLE, MIRROR, TIERED].into_iter().flat_map(each).collect()
}

#[test]
fn a_write_that_ends_short_is_not_taken_for_written() {
    let found = cut_everywhere();
    let lost: Vec<_> = found.iter().filter(|one| one.is_err()).collect();
    assert!(lost.is_empty(), "{lost:?}");
    assert!(found.contains(&Ok(false)), "some have no copy that took it");
    assert!(found.contains(&Ok(true)), "some were not cut, or made good");
    set(Some(Mutation::ShortTaken));
    let found = cut_everywhere();
    set(None);
    assert!(found.iter().any(Result::is_err), "nothing of it is noticed: {found:?}");
}
