//! A workload by name: a mirror and a virtual disk without copies in one pool, of which any disks may fail, with sectors that
//! cannot be read. What the one without copies loses costs the mirror nothing, and what cannot be read of it is an error
//! and never wrong data; when all disks are back, everything that was durable is there.
//!
//! To the history and to the oracle both are one range of addresses: the mirror is its first half.

use std::ops::Range;

use plumb_units::convert::{to_u32, to_usize};

use super::history::{EXTENT_BYTES, EXTENTS, Fault, Shape, Step, sectors, steps};
use super::run::{Run, Wrong};
use super::unborne::{Workload, fault, shuffled, strew};
use super::wide;
use crate::random::Random;
use crate::{NewVirtualDisk, Request, RequestKind};

/// Bytes of the first half.
const HALF: u64 = EXTENTS / 2 * EXTENT_BYTES as u64;
/// Extents of each virtual disk behind those that the history knows, which are written first: of the others some lie on
/// the Performance tier then and some do not.
const HIDDEN: Range<u64> = EXTENTS / 2..EXTENTS / 2 + 2;

impl Shape {
    /// Whether a virtual disk without copies lies beside the first one.
    pub(super) fn has_two(&self) -> bool {
        self.workload == Workload::Beside
    }

    /// Which virtual disk an address is of, and where it is there.
    pub(super) fn place(&self, offset: u64) -> (u32, u64) {
        match offset {
            _ if self.is_wide() => (0, wide::place(offset)),
            HALF.. if self.has_two() => (1, offset - HALF),
            _ => (0, offset),
        }
    }

    /// The address that the history has for one of the first virtual disk.
    pub(super) fn known_as(&self, offset: u64) -> Option<u64> {
        if self.is_wide() { wide::known_as(offset) } else { Some(offset) }
    }

    /// The units of the virtual disk that a client's FLUSH goes to, and its number.
    pub(super) fn flushed_by(&self, client: u32) -> (u32, Range<u32>) {
        match (self.has_two(), client % 2) {
            (false, _) => (0, 0..sectors()),
            (true, 0) => (0, 0..half()),
            (true, _) => (1, half()..sectors()),
        }
    }

    /// The units of what has no copies beside a mirror.
    pub(super) fn alone(&self) -> Range<u32> {
        if self.has_two() { half()..sectors() } else { 0..0 }
    }

    /// The same request within one virtual disk, and where they do not lie beside each other within one extent.
    pub(super) fn within_one(&self, step: Step) -> Step {
        let Step::Request { client, kind, offset, len } = step else { return step };
        let extent = u64::from(EXTENT_BYTES);
        let border = match offset {
            _ if self.is_wide() => offset / extent * extent + extent,
            ..HALF if self.has_two() => HALF,
            _ => return step,
        };
        let len = len.min(to_u32(to_usize(border - offset)));
        Step::Request { client, kind, offset, len }
    }

    /// The virtual disk beside the first one.
    pub(super) fn second(&self) -> Option<NewVirtualDisk> {
        let tier_bytes = if self.rotating > 0 { [256 << 10; 2] } else { [512 << 10, 0] };
        self.has_two().then(|| NewVirtualDisk {
            name: "beside".into(),
            copies: 1,
            columns: 1,
            interleave: 16 << 10,
            tier_bytes,
            // Now and then one of them has a cache and the other has none.
            cache_bytes: if self.rotating > 0 && self.seed % 4 != 3 { 64 << 10 } else { 0 },
        })
    }
}

fn half() -> u32 {
    to_u32(to_usize(HALF / 512))
}

/// The pool and the history of a seed.
pub(super) fn of(count: usize, seed: u64) -> (Shape, Vec<Step>) {
    let mut random = Random::new(seed ^ 0x00be_51de);
    let (disks, rotating) = match random.below(6) {
        0 => (3, 0),
        1 => (4, 0),
        2 | 3 => (5, 2),
        _ => (6, 3),
    };
    let cache = if rotating > 0 && random.below(4) > 0 { 64 << 10 } else { 0 };
    // Of random numbers of its own, for the low bits of the seed are always the same.
    let own = random.next();
    let workload = Workload::Beside;
    let shape = Shape { disks, rotating, copies: 2, columns: 1, cache, seed: own, workload };
    let mut out = steps(&Shape { copies: 1, ..shape.clone() }, count, seed);
    for _ in 0..1 + random.below(3) {
        let some = goes_wrong(&shape, &mut random);
        strew(&mut out, some, &mut random);
    }
    (shape, out)
}

/// One disk fails, or a few of its sectors; now and then another one before it is back.
fn goes_wrong(shape: &Shape, random: &mut Random) -> Vec<Step> {
    let some = shuffled(shape, random);
    let count = if random.one_in(4) { 2 } else { 1 };
    let some = &some[..count];
    let mut out = Vec::new();
    for &disk in some {
        out.push(Step::Fault { disk, fault: wrong(shape, random) });
        if random.one_in(2) {
            out.push(Step::Checkpoint);
        }
        for client in [1, 0] {
            out.push(Step::Request { client, kind: RequestKind::Flush, offset: 0, len: 0 });
        }
        out.push(Step::Sleep { millis: 1100 });
    }
    for &disk in some {
        // Some stay away.
        if !random.one_in(3) {
            out.push(Step::Back { disk });
        }
    }
    out
}

/// What goes wrong with a disk: as ever, or sectors of a slab cannot be read.
pub(super) fn wrong(shape: &Shape, random: &mut Random) -> Fault {
    match random.one_in(3) {
        true => bad_sectors(shape, random),
        false => fault(random),
    }
}

fn bad_sectors(shape: &Shape, random: &mut Random) -> Fault {
    // The first slabs are those in use.
    let slab = to_u32(to_usize(random.below(4)));
    let within = random.below(shape.geometry().slab_bytes / 4096) * 4096;
    let blocks = 1 + random.below(8);
    Fault::Unreadable { at: shape.geometry().slab(slab) + within, len: blocks * 4096 }
}

impl Run {
    /// Fills what the history does not know of, so that of what it knows some lies on each tier.
    pub(super) fn write_hidden(&mut self) -> Result<(), Wrong> {
        if !self.shape.has_two() {
            return Ok(());
        }
        for vdisk in 0..2 {
            for extent in HIDDEN {
                let offset = extent * u64::from(EXTENT_BYTES);
                let kind = RequestKind::Write { fua: true };
                let request = Request { kind, vdisk, offset, len: 4096 };
                if !self.ask(0, request)? {
                    return Err(format!("{request:?} of a new pool failed"));
                }
            }
        }
        Ok(())
    }

    /// Moves an extent of the history's.
    pub(super) fn move_one(&mut self, extent: u32, to: crate::optimizer::TierName) {
        let (vdisk, offset) = self.shape.place(u64::from(extent) * u64::from(EXTENT_BYTES));
        let extent = to_u32(to_usize(offset / u64::from(EXTENT_BYTES)));
        self.engine.move_extent(vdisk, extent, to);
    }

    /// Hands a request of the history to its virtual disk.
    pub(super) fn hand_in(&mut self, client: u32, request: Request) {
        let (vdisk, offset) = match request.kind {
            RequestKind::Flush => (self.shape.flushed_by(client).0, 0),
            _ => self.shape.place(request.offset),
        };
        self.engine.submit(client, Request { vdisk, offset, ..request });
    }

    /// Whether that request of a client may fail: what it is of has lost something.
    pub(super) fn may_fail_at(&self, client: u32, request: &Request) -> bool {
        let vdisk = match request.kind {
            RequestKind::Flush => self.shape.flushed_by(client).0,
            _ => self.shape.place(request.offset).0,
        };
        let alone = self.sick.as_ref().is_some_and(|sick| sick.alone_lost);
        self.may_fail() || vdisk == 1 && alone
    }

    /// The counters of each virtual disk add up (CNT-1).
    pub(super) fn adds_up(&self) -> Result<(), Wrong> {
        for vdisk in 0..to_u32(self.engine.config().vdisks.len()) {
            let own = self.engine.use_of(vdisk);
            if !own.adds_up() {
                let what = "the counters do not add up";
                return Err(format!("of virtual disk {vdisk}: CNT-1: {what}: {own:?}"));
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::kinds::Kind;
    use super::super::states::{Broken, Tally, check};
    use super::super::{STEPS, UNBORNE_STATES, history_seed};
    use super::*;
    use crate::mutation::{Mutation, set};
    use plumb_units::convert::index;

    fn one(nth: u64, states: u64, tally: &mut Tally) -> Result<(), (Shape, Broken)> {
        let seed = Kind::Beside.mark(history_seed(0xbe51de, nth));
        let (shape, history) = of(STEPS, seed);
        check(&shape, &history, states, seed, tally).map_err(|broken| (shape, broken))
    }

    /// T1's combinations by name. `PLUMB_BESIDE=N` checks the first N histories instead, or `M..N` those.
    #[test]
    fn what_has_no_copies_costs_the_mirror_beside_it_nothing() {
        let named = std::env::var("PLUMB_BESIDE").ok().map(|text| {
            let (from, to) = text.split_once("..").unwrap_or(("0", &text));
            let number = |text: &str| text.parse::<u64>().expect("a number of a history");
            number(from)..number(to)
        });
        let mut tally = Tally::default();
        let mut wrong = Vec::new();
        for nth in named.clone().unwrap_or(0..12) {
            if let Err((shape, broken)) = one(nth, UNBORNE_STATES, &mut tally) {
                println!("history {nth} of {shape:?}: {broken:?}");
                wrong.push((nth, broken.wrong));
            }
        }
        println!("{} states", tally.states);
        assert!(named.is_some() || tally.states > 200 && tally.failed_disk > 60, "{tally:?}");
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    /// Without the rules that keep virtual disks apart promises are broken.
    #[test]
    fn broken_rules_of_virtual_disks_beside_each_other_are_noticed() {
        for mutation in [Mutation::LostLogTakenAsEmpty, Mutation::LastCopyHoldsAll] {
            set(Some(mutation));
            let caught = (0..40).find(|nth| one(*nth, 12, &mut Tally::default()).is_err());
            set(None);
            assert!(caught.is_some(), "{mutation:?} is not noticed");
            println!("{mutation:?}: history {caught:?}");
        }
    }

    /// A history in which reads of what has no copies failed: its counters add up, too (CNT-1).
    #[test]
    fn counters_of_the_second_virtual_disk_add_up_where_its_reads_fail() {
        let seed = 6_904_615_197_634_707_025;
        let (shape, history) = of(STEPS, seed);
        let checked = check(&shape, &history, UNBORNE_STATES, seed, &mut Tally::default());
        assert_eq!(checked.map_err(|broken| broken.wrong), Ok(()));
    }

    #[test]
    fn no_request_is_of_both() {
        let (shape, history) = of(2000, Kind::Beside.mark(0));
        for step in history {
            if let Step::Request { offset, len, kind, .. } = step {
                let last = (offset + u64::from(len)).saturating_sub(1).max(offset);
                let one = shape.place(offset).0 == shape.place(last).0;
                assert!(one || kind == RequestKind::Flush, "{step:?}");
            }
        }
        assert_eq!(index(half()) * 2, index(sectors()));
    }
}
