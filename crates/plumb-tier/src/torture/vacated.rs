//! What a disk lacked that came back is discarded before it is copied there: the disk is up to date when no crash can bring it back.

use plumb_io::sim::power::Survivors;
use plumb_units::convert::index;

use super::faults::{
    MIRROR, done, fill, first_block, flush, heard, rest, shape, start, state, write,
};
use super::history::Step;
use super::last_copies::cut;
use super::run::Run;
use crate::RequestKind;
use crate::format::DiskState;
use crate::mutation::{Mutation, set};

/// A disk comes back, and what it lacks is discarded. Once nothing is told to be out of date, the power goes with what
/// is not flushed, and the other disk stays away. How often the engine had worked by then, and what is wrong.
fn read_after_a_discard_of_what_a_disk_lacks() -> (u32, Result<(), String>) {
    let mut run = start(MIRROR);
    fill(&mut run);
    let places = first_block(MIRROR, &run);
    let (one, other) = (places[0].0, places[1].0);
    run.let_any_fail((0..3).collect(), (0..3).collect());
    run.engine.take_offline(u16::try_from(one).expect("small"));
    rest(&mut run, 1);
    done(&mut run, &[write(0), flush()]).expect("one copy is enough");
    run.engine.attach(u16::try_from(one).expect("small"));
    while state(&run, index(one)) != DiskState::Online {
        run.poll();
    }
    let stale = run.engine.stale_places();
    assert!((1..=8).contains(&stale), "{stale}: nothing is copied yet");
    heard(&mut run);
    // All that was written may be open, and is marked.
    let discard = |nth: u32| {
        let (kind, offset) = (RequestKind::Discard, u64::from(nth) * 65_536);
        Step::Request { client: nth % 4, kind, offset, len: 65_536 }
    };
    run.take(&(0..8).map(discard).collect::<Vec<Step>>()).expect("they are taken");
    let mut turns = 0;
    while run.engine.stale_places() > 0 {
        assert!(!heard(&mut run).contains(&"disk-up-to-date"), "it is told early");
        run.poll();
        turns += 1;
    }
    run.poll();
    let told = heard(&mut run).contains(&"disk-up-to-date");
    let (left, oracle, promise) = cut(&mut run, MIRROR.0, Some(Survivors::None));
    let again = Run::start(&shape(MIRROR), left, &[other], oracle, 2);
    let read = again.map_err(|error| error.to_string()).and_then(|mut again| {
        again.sound = false;
        again.read_all(promise, 0)?;
        again.read_all(promise, 1)
    });
    let told = if told { Ok(()) } else { Err("that it is up to date is not told".to_owned()) };
    (turns, read.and(told))
}

#[test]
fn a_disk_whose_last_lack_is_discarded_is_up_to_date_when_that_is_durable() {
    let (turns, read) = read_after_a_discard_of_what_a_disk_lacks();
    read.expect("any one disk may be away");
    assert!(turns > 0, "what takes no time shows nothing");
    set(Some(Mutation::VacatedUpToDate));
    let (_, wrong) = read_after_a_discard_of_what_a_disk_lacks();
    set(None);
    assert!(wrong.as_ref().is_err_and(|wrong| wrong.contains("failed")), "{wrong:?}");
}
