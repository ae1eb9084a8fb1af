//! A workload by name: bits of one disk rot while the pool serves, in metadata and in data, and from then on it is that disk
//! to which all else happens: it fails, hangs, goes and comes back with what rotted.

use plumb_io::sim::power::{Image, PAGE_BYTES};
use plumb_units::convert::{index, to_u64, to_usize};

use super::history::{Shape, Step};
use super::oracle::Oracle;
use super::run::Run;
use super::wide;
use super::witness::Seen;
use crate::RequestKind;
use crate::format::DiskState;
use crate::random::Random;

/// Pages that are looked at for one that may rot.
const TRIES: u32 = 16;

/// A shape for a seed: what has no copies does not bear it.
pub(super) fn shape(seed: u64) -> Shape {
    let mut random = Random::new(seed ^ 0x4071);
    let own = random.next();
    if random.one_in(4) {
        return wide::shape(own);
    }
    let shapes = std::iter::repeat_with(|| Shape::new(random.next()));
    shapes.take(64).find(Shape::tolerates_loss).unwrap_or_else(|| wide::shape(own))
}

/// The same history with rot in it: first before anything fails, then at any time.
pub(super) fn with(shape: &Shape, mut history: Vec<Step>, seed: u64) -> Vec<Step> {
    let mut random = Random::new(seed ^ 0x0040_7110);
    let disk = u32::try_from(random.below(shape.disks.into())).unwrap_or(0);
    let failed = history.iter().position(|step| matches!(step, Step::Fault { .. }));
    let first = failed.unwrap_or(history.len()).min(24);
    for turn in 0..2 + random.below(4) {
        let until = if turn == 0 { to_u64(first) } else { to_u64(history.len()) };
        let at = to_usize(random.below(until + 1));
        history.insert(at, Step::Rot { disk, seed: random.next() });
    }
    history
}

/// A bit of a disk that may rot: of metadata, or of data whose value is settled (C8).
pub(super) struct Bit {
    pub(super) offset: u64,
    pub(super) bit: u8,
    /// The unit of the history that its block begins with, if it is data.
    pub(super) unit: Option<u32>,
}

/// Draws a bit of a disk that may rot.
pub(super) fn draw(
    shape: &Shape,
    image: &Image,
    oracle: &Oracle,
    random: &mut Random,
) -> Option<Bit> {
    let pages = image.written();
    let data = shape.geometry().slab(0);
    for _ in 0..TRIES {
        let page = pages[to_usize(random.below(to_u64(pages.len())))];
        let is_data = page >= data && page < shape.disk_bytes() - (1 << 20);
        let mut bytes = vec![0; to_usize(PAGE_BYTES)];
        image.read(page, &mut bytes);
        let unit = if is_data { oracle.settled_block(&bytes) } else { None };
        if is_data && unit.is_none() {
            continue;
        }
        let offset = page + random.below(PAGE_BYTES);
        let bit = u8::try_from(random.below(8)).unwrap_or(0);
        return Some(Bit { offset, bit, unit });
    }
    None
}

impl Run {
    /// A bit of a disk rots, if all are well, or of the one that has rotted before. What is written there while the disk is
    /// not told of it could not be told from it (C8): the history only reads those blocks from then on.
    pub(super) fn rot(&mut self, disk: u32, seed: u64) {
        let disk = self.rotten.unwrap_or(disk);
        let is_well = self.unwell.is_none() || self.rotten.is_some();
        if !is_well || self.engine.stale_places() > 0 || !self.shape.tolerates_loss() {
            return;
        }
        if self.engine.config().disks[index(disk)].state != DiskState::Online {
            return;
        }
        let image = self.engine.queue_mut().view(disk);
        let mut random = Random::new(seed);
        // There is more metadata than data: every second time it is to be data.
        let (wants_data, oracle) = (random.one_in(2), &self.witness.oracle);
        let drawn = (0..TRIES).find_map(|_| {
            let drawn = draw(&self.shape, &image, oracle, &mut random)?;
            (drawn.unit.is_some() || !wants_data).then_some(drawn)
        });
        let Some(Bit { offset, bit, unit }) = drawn else { return };
        if !self.engine.queue_mut().rot(disk, offset, bit) {
            return;
        }
        self.spoilt.extend(unit.map(|first| first..first + 8));
        self.rotten = Some(disk);
        self.unwell = Some(disk);
        self.suspects.push(disk);
        self.note(Seen::Rotten { disk });
    }

    /// The same request, unless it would write to a block that rotted.
    pub(super) fn spares_what_rotted(&self, step: Step) -> Step {
        let Step::Request { client, kind, offset, len } = step else { return step };
        let writes = !matches!(kind, RequestKind::Read | RequestKind::Flush);
        if writes && self.is_spoilt(offset, len) {
            return Step::Request { client, kind: RequestKind::Read, offset, len };
        }
        step
    }

    /// Whether some of these bytes rotted.
    pub(super) fn is_spoilt(&self, offset: u64, len: u32) -> bool {
        let (from, to) = (offset / 512, (offset + u64::from(len)).div_ceil(512));
        self.spoilt.iter().any(|units| u64::from(units.start) < to && from < units.end.into())
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::Kind;
    use super::super::states::{Broken, Tally, check};
    use super::super::{STEPS, history_seed, usual};
    use super::*;
    use crate::mutation::{Mutation, set};

    fn one(nth: u64, states: u64, tally: &mut Tally) -> Result<(), (Shape, Broken)> {
        let (shape, history, _) = usual(Kind::Rotting.mark(history_seed(0x4071, nth)), STEPS);
        check(&shape, &history, states, nth, tally).map_err(|broken| (shape, broken))
    }

    /// T1's combination by name: rot while the pool serves, with faults of the disk that has it. `PLUMB_ROTTING=N` checks the
    /// first N histories.
    #[test]
    fn rot_while_a_pool_serves_costs_nothing() {
        let named = std::env::var("PLUMB_ROTTING").ok().and_then(|text| text.parse().ok());
        let mut tally = Tally::default();
        for nth in 0..named.unwrap_or(16) {
            if let Err((shape, broken)) = one(nth, 24, &mut tally) {
                panic!("history {nth} of {shape:?}: {broken:?}");
            }
        }
        println!("{} states, {} of them with rot", tally.states, tally.rotten);
        assert!(tally.states > 200 && tally.rotten * 2 > tally.states, "{tally:?}");
    }

    /// Rules that rot shows: what does not verify is neither read nor moved.
    #[test]
    fn broken_rules_of_rot_are_noticed() {
        for mutation in [Mutation::ReadUnverified, Mutation::MoveUnverified] {
            set(Some(mutation));
            // One of later ones, which meets the second rule.
            let caught = [162]
                .into_iter()
                .chain(0..120)
                .find(|nth| one(*nth, 24, &mut Tally::default()).is_err());
            set(None);
            println!("{mutation:?}: history {caught:?}");
            assert!(caught.is_some(), "{mutation:?} is not noticed");
        }
    }
}
