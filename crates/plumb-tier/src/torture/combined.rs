//! Combinations by name that the specification's exhaustive models left out, and how many crash states have each of them (T1).

use std::ops::Range;

use plumb_io::sim::power::{Choice, PowerQueue};

use super::background::Background;
use super::history::Shape;
use super::witness::Witness;
use crate::Engine;

/// What comes together in a crash state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Combination {
    /// The crash left blocks unsettled, and what was started on that destaged before it crashed as well.
    DestageOverUnsettled,
    /// The crash came while a place was rebuilt and the host had writes under way.
    RebuildWithWrites,
    /// A write-back cache had its log on several disks, and the crash tore a record of a copy, or that disk was expelled or away.
    TornOrExpelledLogCopy,
    /// The crash tore a page of a checkpoint, or one of the two that name it.
    TornCheckpointPage,
    /// A tier had more than one column.
    Columns,
    /// What the crash left was started with a bit of metadata rotten on a disk and another disk away as well.
    RotAndAway,
}

/// All of them.
pub const COMBINATIONS: [Combination; 6] = [
    Combination::DestageOverUnsettled,
    Combination::RebuildWithWrites,
    Combination::TornOrExpelledLogCopy,
    Combination::TornCheckpointPage,
    Combination::Columns,
    Combination::RotAndAway,
];

impl Combination {
    /// Its name in results.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::DestageOverUnsettled => "destage_over_unsettled",
            Self::RebuildWithWrites => "rebuild_with_writes",
            Self::TornOrExpelledLogCopy => "torn_or_expelled_log_copy",
            Self::TornCheckpointPage => "torn_checkpoint_page",
            Self::Columns => "columns",
            Self::RotAndAway => "rot_and_away",
        }
    }
}

/// How many crash states have each combination.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Combined([u64; COMBINATIONS.len()]);

impl Combined {
    /// States that have it.
    #[must_use]
    pub fn states(&self, combination: Combination) -> u64 {
        self.0[combination as usize]
    }

    /// One more state, of all combinations that are so.
    pub(super) fn count(&mut self, of: impl Fn(Combination) -> bool) {
        for combination in COMBINATIONS {
            self.0[combination as usize] += u64::from(of(combination));
        }
    }

    /// And those of another history.
    pub(super) fn add(&mut self, other: &Self) {
        self.0.iter_mut().zip(other.0).for_each(|(own, other)| *own += other);
    }
}

/// Where copies of the log of a write-back cache lie: disk and bytes.
#[derive(Debug, Clone, Default)]
pub(super) struct LogCopies(Vec<(u32, Range<u64>)>);

impl LogCopies {
    /// Those of the first virtual disk, if there are several.
    pub(super) fn of(shape: &Shape, engine: &Engine<PowerQueue>) -> Self {
        let cache = engine.config().vdisks.first().and_then(|vdisk| vdisk.cache.as_ref());
        let copies = cache.map_or(&[][..], |cache| &cache.copies);
        if copies.len() < 2 {
            return Self::default();
        }
        let geometry = shape.geometry();
        let slab = |disk: u16, slab: u32| {
            let from = geometry.slab(slab);
            (u32::from(disk), from..from + geometry.slab_bytes)
        };
        let slabs = |copy: &crate::format::CacheCopy| {
            copy.slabs.iter().map(|nth| slab(copy.disk, *nth)).collect::<Vec<_>>()
        };
        Self(copies.iter().flat_map(slabs).collect())
    }

    fn holds(&self, disk: u32, offset: u64) -> bool {
        self.0.iter().any(|(own, bytes)| *own == disk && bytes.contains(&offset))
    }

    fn is_on(&self, disk: u32) -> bool {
        self.0.iter().any(|(own, _)| *own == disk)
    }
}

/// A crash as it is looked at here.
pub(super) struct Situation<'a> {
    pub(super) shape: &'a Shape,
    pub(super) background: &'a Background,
    pub(super) logs: &'a LogCopies,
    pub(super) witness: &'a Witness,
    pub(super) point: usize,
    /// What it left.
    pub(super) choice: &'a Choice,
    /// Disks that were away at the start behind it.
    pub(super) absent: &'a [u32],
    /// That start took blocks for unsettled, and destaged then.
    pub(super) destaged_unsettled: bool,
    /// It was started with rot and another disk away, too.
    pub(super) rot_and_away: bool,
}

impl Situation<'_> {
    /// Whether it has that combination.
    pub(super) fn has(&self, combination: Combination) -> bool {
        match combination {
            Combination::DestageOverUnsettled => self.destaged_unsettled,
            Combination::RebuildWithWrites => self.background.is_rebuilding(self.point),
            Combination::TornOrExpelledLogCopy => self.lacks_a_log_copy(),
            Combination::TornCheckpointPage => {
                let geometry = self.shape.geometry();
                let pages = geometry.journal()..geometry.ring(0);
                let trees = geometry.tree()..geometry.tree() + geometry.tree_bytes;
                self.choice.torn.iter().any(|(_, at)| pages.contains(at) || trees.contains(at))
            }
            Combination::Columns => self.shape.columns > 1,
            Combination::RotAndAway => self.rot_and_away,
        }
    }

    fn lacks_a_log_copy(&self) -> bool {
        let witness = self.witness;
        let away = witness.expelled.iter().chain(&witness.away).chain(self.absent);
        let has_records = self.background.destaged.is_some_and(|first| first <= self.point);
        let torn = self.choice.torn.iter().any(|(disk, at)| self.logs.holds(*disk, *at));
        torn || has_records && away.into_iter().any(|disk| self.logs.is_on(*disk))
    }
}

#[cfg(test)]
mod tests {
    use super::super::{STEPS, history_seed, states, usual};
    use super::*;
    use states::Tally;

    /// T1's combinations by name: the usual histories have each of them. `PLUMB_COMBINED=N` checks the first N histories.
    #[test]
    fn what_the_models_left_out_comes_together_and_loses_nothing() {
        let named = std::env::var("PLUMB_COMBINED").ok().and_then(|text| text.parse().ok());
        let mut tally = Tally::default();
        for nth in 0..named.unwrap_or(64) {
            let seed = history_seed(0xc0b1, nth);
            let (shape, history, _) = usual(seed, STEPS);
            if let Err(broken) = states::check(&shape, &history, 24, seed, &mut tally) {
                panic!("history {nth} of {shape:?}: {broken:?}");
            }
        }
        for combination in COMBINATIONS {
            let states = tally.combined.states(combination);
            println!("{}: {states} of {} states", combination.name(), tally.states);
            assert!(states * 200 >= tally.states, "{}: {tally:?}", combination.name());
        }
    }
}
