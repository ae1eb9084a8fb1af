//! A clock that jumps (section 18): data is as it was, heat is neither lost nor kept for good, and nothing is told.
//!
//! The engine's own time is the monotonic clock's. The clock on the wall is asked once, at a start, for the hour that heat is of.

use plumb_units::Nanos;

use super::faults::{TIERED, done, fill, flush, health, heard, reads_well, restart, start, write};
use super::left_out::needs;
use super::run::Run;
use crate::mutation::Mutation;
use crate::pool::HealthStatus;

/// Hours since 1970 of some day.
const TODAY: u64 = 490_000;
const YEAR: u64 = 8760;

fn score(run: &mut Run) -> f32 {
    run.engine.heat(0).extent(0).score
}

fn hours(run: &mut Run, hours: u64) {
    for _ in 0..hours {
        run.engine.queue_mut().advance(Nanos::from_secs(3600));
        (0..8).for_each(|_| run.poll());
    }
}

/// The next start on the same disks once all is durable, at such an hour of the clock on the wall, with the heat that was kept.
fn starts_at(run: &mut Run, hour: u64) -> Run {
    let (kept, served) = (run.engine.save_heat(0), run.engine.served(0));
    done(run, &[flush()]).expect("nothing is wrong");
    let mut again = restart(run, TIERED, &[]).expect("it starts");
    // As a start does it: see `restore_tiering`.
    assert_eq!(again.engine.restore_heat(0, &kept, served), Ok(0));
    again.engine.set_hour(hour);
    again
}

fn is_near(found: f32, wanted: f32) -> bool {
    (found - wanted).abs() <= 0.1 * wanted
}

/// Heats an extent up, and starts again where the clock was set so many hours back (or ahead); `ages`: the score then.
fn jumps(from: u64, to: u64, ages: impl Fn(f32) -> f32) -> Result<(), String> {
    let what = format!("{from} to {to}");
    let mut run = start(TIERED);
    run.engine.set_hour(from);
    fill(&mut run);
    let many: Vec<_> = (0..200).map(|nth| write(nth % 16)).collect();
    done(&mut run, &many)?;
    let before = score(&mut run);
    assert!(before > 100.0, "{before}");
    heard(&mut run);
    let mut again = starts_at(&mut run, to);
    let at_start = score(&mut again);
    if !is_near(at_start, ages(before)) {
        return Err(format!("{what}: {before} became {at_start}"));
    }
    // It goes on by the time that passes: half of it is left after a day.
    done(&mut again, &many)?;
    let hot = score(&mut again);
    assert!(hot > 100.0, "{what}: what is counted now counts: {hot}");
    hours(&mut again, 24);
    let later = score(&mut again);
    if !is_near(later, hot / 2.0) {
        return Err(format!("{what}: a day after {hot} it is {later}"));
    }
    // The clock is set right: what was counted is not lost, and does not stay for good.
    let mut right = starts_at(&mut again, TODAY + 24);
    let kept = score(&mut right);
    if to >= TODAY && !is_near(kept, later) {
        return Err(format!("{what}, and right again: {later} became {kept}"));
    }
    hours(&mut right, 24);
    let last = score(&mut right);
    if !is_near(last, kept / 2.0) {
        return Err(format!("{what}, and right again: a day after {kept} it is {last}"));
    }
    // Of data and health nothing is different.
    for run in [&mut again, &mut right] {
        done(run, &[write(0), write(112), flush()])?;
        reads_well(run);
        assert_eq!(health(run), (HealthStatus::Healthy, "OK"), "{what}");
        assert_eq!(heard(run), Vec::<&str>::new(), "{what}");
    }
    Ok(())
}

#[test]
fn a_clock_that_jumps_costs_no_data_and_makes_no_heat_eternal() {
    needs(Mutation::HourSetBack, || {
        // As it should be, a little back, and far back.
        for to in [TODAY, TODAY - 1, TODAY - 5, TODAY - YEAR, 0] {
            jumps(TODAY, to, |before| before)?;
        }
        // Nobody can tell a clock that is far ahead from a pool that nobody used for so long.
        jumps(TODAY, TODAY + 24, |before| before / 2.0)?;
        jumps(TODAY, TODAY + YEAR, |_| 0.0)?;
        jumps(TODAY, TODAY + 100 * YEAR, |_| 0.0)
    });
}
