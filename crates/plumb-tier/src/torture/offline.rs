//! Disks that are taken offline by word stay away, whatever was asked for before.

use super::faults::{MIRROR, done, fill, flush, reads_well, rest, start, state, write};
use super::left_out::needs;
use crate::format::DiskState;
use crate::mutation::Mutation;

const DISK: u16 = 1;

/// It was asked for, and is taken offline before it is there. It comes back once it is asked for again.
fn asked_for_before() -> Result<(), String> {
    let mut run = start(MIRROR);
    fill(&mut run);
    run.engine.take_offline(DISK);
    rest(&mut run, 1);
    assert_eq!(state(&run, DISK.into()), DiskState::Missing);
    run.engine.attach(DISK);
    run.engine.take_offline(DISK);
    rest(&mut run, 2);
    done(&mut run, &[write(3), flush()])?;
    if state(&run, DISK.into()) != DiskState::Missing {
        return Err("it came back".to_owned());
    }
    run.engine.attach(DISK);
    rest(&mut run, 2);
    assert_eq!(state(&run, DISK.into()), DiskState::Online);
    reads_well(&mut run);
    Ok(())
}

#[test]
fn a_disk_that_is_taken_offline_stays_away() {
    needs(Mutation::OfflineOverruled, asked_for_before);
}
