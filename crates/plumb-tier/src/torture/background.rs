//! When background work was under way in a run.

use crate::Counters;
use crate::tier_report::MoveStop;

/// Background work of a run by device events: destage, resync, rebuild, scan, checkpoint.
#[derive(Debug, Clone, Default)]
pub(super) struct Background {
    /// Events behind the first of each pair, up to the second, came while something of it was under way.
    pub(super) windows: Vec<(usize, usize)>,
    /// The same of optimizations that had begun and not ended.
    pub(super) optimizing: Vec<(usize, usize)>,
    /// The same of places that were rebuilt while the host had writes under way.
    pub(super) rebuilding: Vec<(usize, usize)>,
    /// Why optimizations ended, and how many extents each had moved.
    pub(super) optimized: Vec<(MoveStop, u64)>,
    /// The first line of a cache was copied home before that event; the first place was rebuilt; the first left a
    /// disk that is to be removed.
    pub(super) destaged: Option<usize>,
    pub(super) rebuilt: Option<usize>,
    pub(super) emptied: Option<usize>,
    /// The first extent was moved.
    pub(super) moved: Option<usize>,
    /// The first checkpoint was made of trees with index pages.
    pub(super) indexed: Option<usize>,
    /// The first disk that takes part had no vote any more.
    pub(super) voteless: Option<usize>,
}

impl Background {
    /// What an engine did between two looks at its counters.
    pub(super) fn note(
        &mut self,
        (from, to): (usize, usize),
        on: bool,
        counters: (&Counters, &Counters),
    ) {
        let (before, after) = counters;
        let done = |of: &Counters| {
            (of.checkpoints, of.destaged, of.resynced, of.rebuilt, of.healed, of.equalised)
        };
        if on || done(before) != done(after) {
            extend(&mut self.windows, (from, to));
        }
        if after.destaged > 0 {
            self.destaged.get_or_insert(to);
        }
        if after.rebuilt > 0 {
            self.rebuilt.get_or_insert(to);
        }
        if after.moved > 0 {
            self.emptied.get_or_insert(to);
        }
    }

    /// Places were rebuilt between two looks, and the host had writes under way.
    pub(super) fn note_rebuilding(&mut self, events: (usize, usize)) {
        extend(&mut self.rebuilding, events);
    }

    /// Whether a crash after so many events came then.
    pub(super) fn is_rebuilding(&self, point: usize) -> bool {
        holds(&self.rebuilding, point)
    }

    /// An optimization was under way between two looks.
    pub(super) fn note_optimizing(&mut self, events: (usize, usize)) {
        extend(&mut self.optimizing, events);
    }

    /// Whether something of it was under way when so many events had come.
    pub(super) fn is_on(&self, point: usize) -> bool {
        holds(&self.windows, point)
    }

    /// The same of an optimization.
    pub(super) fn is_optimizing(&self, point: usize) -> bool {
        holds(&self.optimizing, point)
    }
}

fn extend(windows: &mut Vec<(usize, usize)>, (from, to): (usize, usize)) {
    match windows.last_mut().filter(|last| last.1 == from) {
        Some(last) => last.1 = to,
        None if to > from => windows.push((from, to)),
        None => {}
    }
}

fn holds(windows: &[(usize, usize)], point: usize) -> bool {
    let behind = windows.partition_point(|window| window.1 < point);
    windows.get(behind).is_some_and(|window| window.0 < point)
}
