//! Workloads by name in which more goes wrong than a space bears: several disks at once, the disk of a last copy among
//! them; disks that come back late, in another order, or for a while only; generations that a last copy's disk misses.
//!
//! What was acknowledged may be unavailable then, which is an error and never wrong data; when all disks are back,
//! everything is there again.

use super::history::{Fault, Shape, Step, steps};
use crate::random::Random;

/// What a history is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Workload {
    /// One disk at a time, and no more than the space bears.
    Usual,
    /// Several disks fail at once, whatever they hold.
    Together,
    /// Disks come back late, in another order, or for a while only.
    OutOfOrder,
    /// A disk misses a generation of the configuration, or all metadata, and keeps its data.
    Generations,
    /// A virtual disk without copies lies beside a mirror, and disks fail that one of them needs.
    Beside,
    /// The usual on a virtual disk whose trees have index pages.
    Wide,
    /// The usual, with checksums of a few extents in memory.
    Short,
}

impl Workload {
    pub(super) fn is_borne(self) -> bool {
        matches!(self, Self::Usual | Self::Wide | Self::Short)
    }

    pub(super) fn in_words(self) -> &'static str {
        match self {
            Self::Usual => "one disk fails at a time",
            Self::Wide => "one disk fails at a time, trees with index pages",
            Self::Short => "one disk fails at a time, few checksums in memory",
            Self::Together => "several disks fail at once",
            Self::Beside => "another virtual disk without copies",
            Self::OutOfOrder => "disks fail and come back in any order",
            Self::Generations => "disks miss generations of the configuration",
        }
    }
}

/// One in so many histories is of such a workload.
const SHARE: u64 = 8;

/// The workload of a seed.
pub(super) fn workload(seed: u64) -> Workload {
    let mut random = Random::new(seed ^ 0x0b_e70d);
    match random.below(3 * SHARE) {
        0 => Workload::Together,
        1 => Workload::OutOfOrder,
        2 => Workload::Generations,
        _ => Workload::Usual,
    }
}

/// The pool and the history of a seed.
pub(super) fn of(workload: Workload, count: usize, seed: u64) -> (Shape, Vec<Step>) {
    let shape = shape(workload, seed);
    let history = history(&shape, count, seed);
    (shape, history)
}

/// Pools in which a disk holds the last copy of something, at once or after the loss of one.
fn shape(workload: Workload, seed: u64) -> Shape {
    let mut random = Random::new(seed ^ 0x5ba9e);
    let (disks, rotating, copies, columns) = match random.below(16) {
        0 => (2, 0, 1, 1),
        1..=3 => (3, 0, 1, 1),
        4 => (4, 0, 1, 1),
        5 => (2, 0, 2, 1),
        6 | 7 => (3, 0, 2, 1),
        8 | 9 => (4, 0, 2, 1),
        10 => (4, 0, 2, 2),
        11 => (3, 1, 1, 1),
        12 | 13 => (4, 2, 2, 1),
        14 => (5, 2, 2, 1),
        _ => (5, 0, 3, 1),
    };
    let cache = match random.below(4) {
        _ if rotating == 0 => 0,
        0 => 0,
        1 | 2 => 64 << 10,
        _ => 144 << 10,
    };
    Shape { disks, rotating, copies, columns, cache, seed, workload }
}

/// The history of a seed.
fn history(shape: &Shape, count: usize, seed: u64) -> Vec<Step> {
    let mut random = Random::new(seed ^ 0x00ba_d5ee);
    // Nothing fails on its way but what is put in here.
    let mut out = steps(&Shape { copies: 1, ..shape.clone() }, count, seed);
    for _ in 0..1 + random.below(3) {
        let some = match shape.workload {
            Workload::Usual | Workload::Wide | Workload::Short | Workload::Beside => Vec::new(),
            Workload::Together => together(shape, &mut random),
            Workload::OutOfOrder => out_of_order(shape, &mut random),
            Workload::Generations => generations(shape, &mut random),
        };
        strew(&mut out, some, &mut random);
    }
    out
}

/// Puts steps into a history, in their order and not far from each other.
pub(super) fn strew(history: &mut Vec<Step>, some: Vec<Step>, random: &mut Random) {
    let mut at = below(random, history.len() as u64 * 3 / 4);
    for step in some {
        history.insert(at.min(history.len()), step);
        at += 1 + below(random, 12);
    }
}

fn below(random: &mut Random, count: u64) -> usize {
    usize::try_from(random.below(count.max(1))).unwrap_or(0)
}

fn disk(shape: &Shape, random: &mut Random) -> u32 {
    u32::try_from(random.below(shape.disks.into())).unwrap_or(0)
}

/// All disks in some order.
pub(super) fn shuffled(shape: &Shape, random: &mut Random) -> Vec<u32> {
    let mut disks: Vec<u32> = (0..shape.disks).collect();
    for nth in (1..disks.len()).rev() {
        disks.swap(nth, below(random, nth as u64 + 1));
    }
    disks
}

/// What goes wrong with a disk in a workload.
pub(super) fn fault(random: &mut Random) -> Fault {
    let (after, count) = (random.below(16), 1 + random.below(8));
    match random.below(10) {
        0..=2 => Fault::Dies { after },
        3 => Fault::Hangs { after },
        4 => Fault::WriteError { after },
        5 => Fault::FlushError {
            after: after / 4,
            count: if after.is_multiple_of(4) { 4096 } else { count },
        },
        6 => Fault::Flickers { after, count: 4 * count },
        7 => Fault::Stuck { after, count },
        8 => Fault::NoGeneration,
        _ => Fault::NoMetadata,
    }
}

fn together(shape: &Shape, random: &mut Random) -> Vec<Step> {
    let some = shuffled(shape, random);
    let count = 2 + below(random, some.len() as u64 - 1);
    let some = &some[..count.min(some.len())];
    let mut out: Vec<Step> =
        some.iter().map(|disk| Step::Fault { disk: *disk, fault: fault(random) }).collect();
    out.push(pause(random));
    for disk in some {
        // Some stay away.
        if !random.one_in(4) {
            out.push(Step::Back { disk: *disk });
        }
    }
    out
}

/// One after the other goes; they come back the last one first, twice, or while others still go.
fn out_of_order(shape: &Shape, random: &mut Random) -> Vec<Step> {
    let some = shuffled(shape, random);
    let mut out = Vec::new();
    let mut away = Vec::new();
    for disk in some {
        out.push(Step::Fault { disk, fault: fault(random) });
        away.push(disk);
        if random.one_in(2) {
            out.push(pause(random));
        }
        if random.one_in(3) {
            out.push(Step::Back { disk: away.pop().unwrap_or(disk) });
        }
        if away.len() > 2 || random.one_in(3) {
            break;
        }
    }
    while let Some(disk) = away.pop() {
        out.push(Step::Back { disk });
        out.push(if random.one_in(3) { Step::Back { disk } } else { pause(random) });
    }
    if random.one_in(4) {
        out.push(Step::GiveUp);
    }
    out
}

/// A disk takes no metadata for a while; meanwhile the configuration changes.
fn generations(shape: &Shape, random: &mut Random) -> Vec<Step> {
    let own = disk(shape, random);
    let fault = match random.below(4) {
        0 => Fault::NoMetadata,
        1 => Fault::Stuck { after: random.below(6), count: 1 + random.below(3) },
        _ => Fault::NoGeneration,
    };
    let mut out = vec![Step::Fault { disk: own, fault }];
    let other = (own + 1 + disk(shape, random)) % shape.disks;
    out.push(match random.below(5) {
        0 => Step::Checkpoint,
        1 => Step::Fault { disk: other, fault: Fault::Dies { after: random.below(6) } },
        2 => Step::Fault { disk: other, fault: Fault::NoGeneration },
        _ => Step::Offline { disk: other },
    });
    out.push(pause(random));
    out.push(match random.below(4) {
        0 => Step::GiveUp,
        1 => Step::Checkpoint,
        _ => Step::Back { disk: other },
    });
    out.push(pause(random));
    out.push(Step::Back { disk: own });
    out.push(Step::Back { disk: other });
    out
}

fn pause(random: &mut Random) -> Step {
    match random.below(4) {
        0 => Step::Sleep { millis: 1100 },
        1 => Step::Scan,
        _ => Step::Poll,
    }
}

#[cfg(test)]
mod tests {
    use super::super::STEPS;
    use super::super::states::{Broken, Tally, check};
    use super::*;
    use crate::mutation::{Mutation, set};

    const WORKLOADS: [Workload; 3] =
        [Workload::Together, Workload::OutOfOrder, Workload::Generations];

    /// Histories that broke a promise, beside the first of each: a place was taken for copied that was not; a block of an
    /// overwrite that failed was settled by nobody; a log had a copy less; several extents were to be settled at a time.
    const KNOWN: [(Workload, u64); 3] =
        [(Workload::Together, 22), (Workload::Generations, 32), (Workload::OutOfOrder, 59)];

    /// (C1) A disk that got journal and map in the pool's first life is the only one that has them, and hangs when its newest
    /// checkpoint page is read: the pool started from the page before, as if it had just been made.
    #[test]
    fn a_checkpoint_page_that_is_not_read_is_not_passed_over() {
        keeps(4_062_351_700_290_730_024);
    }

    /// A disk is asked for twice, taken offline and asked for again: of the second word before that it came back at once, and was then
    /// taken for one that lost its cache, with writes under way.
    #[test]
    fn a_disk_that_came_back_by_itself_keeps_what_it_took() {
        keeps(7_256_506_804_662_878_912);
    }

    /// Two disks failed and kept their last copies, without a vote; the third one, which has the only vote, cannot be flushed when
    /// the pool starts.
    #[test]
    fn a_disk_with_the_only_vote_may_fail_within_a_start() {
        keeps(8_327_797_063_500_182_580);
    }

    /// The history of a seed that a violation named keeps what it promises now.
    fn keeps(seed: u64) {
        let (shape, history) = of(workload(seed), STEPS, seed);
        let mut tally = Tally::default();
        let broken = check(&shape, &history, super::super::UNBORNE_STATES, seed, &mut tally).err();
        assert_eq!(broken, None);
        assert!(tally.states > 0, "{tally:?}");
    }

    /// Checks one history of a workload.
    fn one(workload: Workload, nth: u64, tally: &mut Tally) -> Result<(), (Shape, Broken)> {
        let seed = super::super::history_seed(0x00ba_d5ee, nth);
        let (shape, history) = of(workload, STEPS, seed);
        check(&shape, &history, 24, seed, tally).map_err(|broken| (shape, broken))
    }

    /// T1's combinations by name: several disks at once, in any order, and generations that are missed. `PLUMB_UNBORNE=N`
    /// checks the first N histories of each instead (`M..N`: those), and tells all that is wrong.
    #[test]
    fn what_is_more_than_a_space_bears_costs_nothing_that_was_acknowledged() {
        let named = std::env::var("PLUMB_UNBORNE").ok().map(|text| {
            let (from, to) = text.split_once("..").unwrap_or(("0", &text));
            let number = |text: &str| text.parse::<u64>().expect("a number of a history");
            number(from)..number(to)
        });
        let mut wrong = Vec::new();
        for workload in WORKLOADS {
            let mut tally = Tally::default();
            let more = KNOWN.iter().filter(|known| named.is_none() && known.0 == workload);
            let more = more.map(|known| known.1);
            for nth in named.clone().unwrap_or(0..10).chain(more) {
                if let Err((shape, broken)) = one(workload, nth, &mut tally) {
                    println!("{workload:?}: history {nth} of {shape:?}: {broken:?}");
                    wrong.push((workload, nth, broken.wrong));
                }
            }
            println!("{workload:?}: {} states", tally.states);
            let enough = named.is_some() || tally.states > 100 && tally.failed_disk > 30;
            assert!(enough && tally.unborne == tally.states, "{tally:?}");
        }
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    #[test]
    fn broken_rules_of_last_copies_are_noticed() {
        set(Some(Mutation::LastCopyMarked));
        let caught: Vec<u64> = [7, 11]
            .into_iter()
            .filter(|nth| one(Workload::Together, *nth, &mut Tally::default()).is_err())
            .collect();
        set(None);
        assert!(!caught.is_empty(), "it is not noticed");
    }
}
