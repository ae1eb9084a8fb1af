//! First writes that wait for a slot while extents change places: the next slot that a move gives back is theirs.

use plumb_units::Nanos;

use super::faults::start;
use super::left_out::needs;
use super::run::Run;
use crate::mutation::Mutation;
use crate::optimizer::TierName;
use crate::{Request, RequestKind};

/// A solid-state disk and a rotating one, and one copy of all.
const TWO_TIERS: (u32, u32, u8, u64) = (2, 1, 1, 0);
/// Moves that are asked for at once.
const MOVES: u32 = 40;

/// A write of the first block of an extent.
fn write(extent: u32) -> Request {
    let kind = RequestKind::Write { fua: false };
    Request { kind, vdisk: 0, offset: u64::from(extent) * 65_536, len: 4096 }
}

fn poll(run: &mut Run) {
    let now = run.engine.queue_mut().now();
    run.engine.poll(now, Nanos(60_000));
}

/// All extents but one are mapped, and those of the tiers change places one after the other. The last one is written while
/// the first one that goes down has the slot that it would get: how many moves have not ended when that is answered.
fn left_when_the_last_extent_is_mapped(movers: u32) -> Result<usize, String> {
    let mut run = start(TWO_TIERS);
    let last = run.engine.config().vdisks[0].extents - 1;
    for extent in 0..last {
        assert_eq!(run.ask(0, write(extent)), Ok(true));
    }
    run.engine.set_movers(movers);
    for nth in 0..MOVES / 2 {
        // The four of the first tier, and the four behind them.
        run.engine.move_extent(0, nth % 8, TierName::Capacity);
        run.engine.move_extent(0, (nth + 4) % 8, TierName::Performance);
    }
    poll(&mut run);
    run.engine.submit(0, write(last));
    for turn in 0..20_000 {
        poll(&mut run);
        if let Some((_, outcome)) = run.engine.pop() {
            let left = run.engine.moves_left();
            println!("{movers} movers: answered in turn {turn}, {left} moves are left");
            return outcome.map(|()| left).map_err(|error| error.to_string());
        }
    }
    Err("it is never answered".to_owned())
}

#[test]
fn a_first_write_gets_the_slot_that_the_next_move_gives_back() {
    needs(Mutation::WaitersPassedOver, || {
        for movers in [1, 2, 8] {
            let left = left_when_the_last_extent_is_mapped(movers)?;
            let begun = usize::try_from(2 * movers).expect("small");
            if left + begun < usize::try_from(MOVES).expect("small") {
                return Err(format!("{movers} movers: {left} of {MOVES} are left"));
            }
        }
        Ok(())
    });
}
