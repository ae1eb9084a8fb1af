//! An engine that stood still for longer than a disk may take to answer, as a process that was stopped and goes on: disks that
//! answered meanwhile are not given up for it.

use plumb_units::Nanos;

use super::faults::{
    MIRROR, done, fill, flush, images, reads_well, rest, shape, start, state, write,
};
use super::left_out::needs;
use super::run::{queue, start_engine};
use crate::format::DiskState;
use crate::mutation::Mutation;

const LONG: Nanos = Nanos(100_000_000_000);

/// Disks that are not well after it stood still in the wait behind so many others, with reads under way that take three seconds.
fn lost_behind(waits: u32) -> Result<(), String> {
    let mut run = start(MIRROR);
    fill(&mut run);
    rest(&mut run, 2);
    for disk in 0..3 {
        run.engine.queue_mut().faults_mut(disk).slow_reads = Nanos::from_secs(3);
    }
    run.engine.queue_mut().stall(waits, LONG);
    for client in 0..4 {
        let request = crate::Request {
            kind: crate::RequestKind::Read,
            vdisk: 0,
            offset: u64::from(client) * 65_536,
            len: 4096,
        };
        run.engine.submit(client, request);
    }
    // Time passes, and the look that notes what is under way comes each second.
    for _ in 0..600 {
        run.engine.queue_mut().advance(Nanos::from_millis(10));
        run.poll();
    }
    for disk in 0..3 {
        run.engine.queue_mut().faults_mut(disk).slow_reads = Nanos::ZERO;
    }
    let lost: Vec<usize> = (0..3).filter(|disk| state(&run, *disk) != DiskState::Online).collect();
    match run.engine.counters().disks_lost {
        0 if lost.is_empty() => {}
        _ => return Err(format!("behind {waits} waits: {lost:?} are lost")),
    }
    done(&mut run, &[write(3), flush()])?;
    reads_well(&mut run);
    Ok(())
}

#[test]
fn disks_are_asked_once_more_before_they_are_given_up() {
    needs(Mutation::BlamedUnheard, || (100..400).step_by(50).try_for_each(lost_behind));
}

/// In each wait of a start.
#[test]
fn a_start_that_stood_still_loses_no_disk() {
    let mut run = start(MIRROR);
    fill(&mut run);
    let left = images(&mut run, MIRROR.0);
    needs(Mutation::BlamedUnheard, || {
        for waits in 0..60 {
            let mut made = queue(&shape(MIRROR), left.clone(), 3, false);
            made.stall(waits, LONG);
            let engine = start_engine(&shape(MIRROR), made, 3)
                .map_err(|error| format!("wait {waits}: {error}"))?;
            let disks = &engine.config().disks;
            if !disks.iter().all(|disk| disk.state == DiskState::Online) {
                return Err(format!("wait {waits}: a disk is lost"));
            }
        }
        Ok(())
    });
}
