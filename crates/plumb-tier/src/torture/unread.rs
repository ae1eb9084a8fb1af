//! Starts while disks fail or hang, at any of their I/Os: what cannot be read is not taken for what is not there.

use plumb_io::sim::power::DiskFaults;

use super::faults::{MIRROR, SIMPLE, done, fill, flush, images, rest, shape, start, write};
use super::history::Step;
use super::oracle::Promise;
use super::run::{Run, queue, start_engine};
use super::sick::set_faults;
use crate::mutation::{Mutation, set};
use crate::{Engine, RequestKind, StartError};

/// One copy of everything, and a write-back cache.
const CACHED: (u32, u32, u8, u64) = (3, 1, 1, 144 << 10);

/// Disks that fail in a start, and how.
type Faulty = Vec<(u32, DiskFaults)>;

/// One disk does not answer so many I/Os, or all of them fail for a moment.
fn troubles(disks: u32, nth: u64) -> Vec<Faulty> {
    let hangs = |count| DiskFaults {
        hangs_from: Some(nth),
        hangs_to: Some(nth + count),
        ..DiskFaults::default()
    };
    let fails =
        DiskFaults { dead_from: Some(nth), dead_to: Some(nth + 2), ..DiskFaults::default() };
    let alone = (0..disks).flat_map(|disk| [2, 4, 8].map(|count| vec![(disk, hangs(count))]));
    let together = (0..disks).map(|disk| (disk, fails.clone())).collect();
    alone.chain([together]).collect()
}

/// A page of the journal that no disk gives.
fn unread(of: (u32, u32, u8, u64), page: u64) -> Faulty {
    let geometry = shape(of).geometry();
    let at = geometry.ring(page * 4096 % geometry.ring_bytes());
    let faults = DiskFaults { unreadable: vec![(at, at + 4096)], ..DiskFaults::default() };
    (0..of.0).map(|disk| (disk, faults.clone())).collect()
}

/// What is wrong when a pool is started with this trouble, and then without; whether it started with it.
fn is_kept(
    run: &mut Run,
    of: (u32, u32, u8, u64),
    trouble: &[(u32, DiskFaults)],
) -> Result<bool, String> {
    let shape = shape(of);
    let files: Vec<u32> = (0..of.0).collect();
    let mut oracle = run.witness.oracle.clone();
    oracle.crash(Promise::Acknowledged);
    let mut made = queue(&shape, images(run, of.0), 7, true);
    set_faults(&mut made, &files, trouble);
    let started = start_engine(&shape, &mut made, 8).is_ok();
    if !started && of.2 > 1 && trouble.len() == 1 {
        return Err("one disk of three hangs, and the start is refused".to_owned());
    }
    let mut left = (0..of.0).map(|disk| made.view(disk)).collect();
    if started {
        // The same start once more, to go on with.
        let mut made = queue(&shape, images(run, of.0), 7, true);
        set_faults(&mut made, &files, trouble);
        let mut run =
            Run::start_on(&shape, made, oracle.clone(), 8).map_err(|error| error.to_string())?;
        run.let_any_fail((0..of.0).collect(), files.clone());
        run.read_what_is_there(Promise::Acknowledged, 0)?;
        left = images(&mut run, of.0);
    }
    let mut again = Run::start(&shape, left, &[], oracle, 9).map_err(|error| error.to_string())?;
    again.let_any_fail((0..of.0).collect(), files.clone());
    again.heal(&files)?;
    again.read_all(Promise::Acknowledged, 0).map(|()| started)
}

/// A pool with blocks that are durable, that were acknowledged only, and that lie in the cache.
fn filled(of: (u32, u32, u8, u64)) -> Run {
    let mut run = start(of);
    fill(&mut run);
    run.engine.checkpoint();
    rest(&mut run, 1);
    let first = |block: u64| [write(block), write(block + 2), flush(), write(block + 4)];
    for block in [1, 17, 81, 97, 113] {
        done(&mut run, &first(block)).expect("all is well");
    }
    let kind = RequestKind::Write { fua: true };
    let step = Step::Request { client: 2, kind, offset: 120 * 4096, len: 4096 };
    done(&mut run, &[step]).expect("all is well");
    run
}

/// How many started with some trouble, and all that is wrong.
fn all_starts(of: (u32, u32, u8, u64)) -> (u32, Vec<String>) {
    let (mut started, mut wrong) = (0, Vec::new());
    let mut run = filled(of);
    for nth in 8..72 {
        for trouble in troubles(of.0, nth).into_iter().chain([unread(of, nth - 8)]) {
            match is_kept(&mut run, of, &trouble) {
                Ok(starts) => started += u32::from(starts),
                Err(what) => wrong.push(format!("{of:?}, {trouble:?}: {what}")),
            }
        }
    }
    (started, wrong)
}

/// What a start cannot read because a disk fails or hangs is there still: a sound disk is asked for it and has its own time
/// to answer, and where nobody can read on, the journal does not end (JRN-1, WBC-1).
#[test]
fn what_a_start_cannot_read_is_not_taken_for_its_end() {
    for of in [MIRROR, SIMPLE, CACHED] {
        let (started, wrong) = all_starts(of);
        println!("{of:?}: {started} starts");
        assert!(wrong.is_empty(), "{} wrong, {started} started: {wrong:#?}", wrong.len());
        assert!(started > 40, "{started}");
    }
}

/// What is wrong without a rule.
fn without(mutation: Mutation, of: (u32, u32, u8, u64)) -> Vec<String> {
    set(Some(mutation));
    let wrong = all_starts(of).1;
    set(None);
    wrong
}

/// The test above sees both.
#[test]
fn starts_that_take_what_they_cannot_read_for_nothing_are_noticed() {
    for (mutation, of) in [(Mutation::UnreadEndsJournal, SIMPLE), (Mutation::TimeOutShared, MIRROR)]
    {
        let wrong = without(mutation, of);
        println!("{mutation:?}: {} wrong, {:?}", wrong.len(), wrong.first());
        assert!(!wrong.is_empty(), "{mutation:?} is not noticed");
    }
}

/// An operator says that what cannot be read at the end was being written when the power went: that is believed of the end alone.
/// What has rounds behind it was durable, and the pool is refused as before (0270).
#[test]
fn a_word_ends_a_journal_only_where_it_may_have_been_written_last() {
    for of in [MIRROR, SIMPLE] {
        let mut run = filled(of);
        let shape = shape(of);
        let files: Vec<u32> = (0..of.0).collect();
        let images = images(&mut run, of.0);
        let pages = shape.geometry().ring_bytes() / 4096;
        let mut outcomes = (0..pages).map(|page| {
            let made = || {
                let mut made = queue(&shape, images.clone(), 7, true);
                set_faults(&mut made, &files, &unread(of, page));
                made
            };
            let plain = start_engine(&shape, made(), 8).err()?;
            assert_eq!(plain, StartError::UnreadEnd, "{of:?}, {page}");
            let clients = (1, 4096);
            match Engine::start_to_unread_end(made(), shape.plan(), clients, 8) {
                Ok(_) => Some(true),
                Err(error) => {
                    assert_eq!(error, StartError::UnreadEnd, "{of:?}, {page}");
                    Some(false)
                }
            }
        });
        let outcomes: Vec<bool> = outcomes.by_ref().flatten().collect();
        let refused = outcomes.iter().take_while(|believed| !**believed).count();
        println!("{of:?}: {} pages needed, {refused} of them whatever is said", outcomes.len());
        // Those of the last rounds, and the place behind them.
        assert!(refused > 8 && refused < outcomes.len(), "{of:?}: {outcomes:?}");
        assert!(outcomes[refused..].iter().all(|believed| *believed), "{of:?}: {outcomes:?}");
    }
}
