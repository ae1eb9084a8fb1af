//! Keeping what a running engine hands out, and going on with what was kept.

use std::sync::mpsc::sync_channel;
use std::sync::{Arc, Mutex, PoisonError};

use plumb_io::FlushQueue;

use super::super::open::OpenPool;
use super::{TieringError, TieringStore, unix_seconds};
use crate::engine::{Engine, KeepWith, Kept};
use crate::tier_report::HeatGap;

/// Keeps what a running engine hands out, on a thread of its own: files may be slow, requests must not.
#[derive(Debug)]
pub struct TieringKeeper {
    store: TieringStore,
    failed: Arc<Mutex<Option<TieringError>>>,
    /// Whether the engine serves requests, so that its heat maps have more than what is kept.
    counts: bool,
}

impl TieringKeeper {
    /// One that keeps it there.
    #[must_use]
    pub fn new(store: TieringStore) -> Self {
        Self { store, failed: Arc::default(), counts: false }
    }

    /// Where to look, once the engine has ended, whether something could not be kept.
    #[must_use]
    pub fn failure(&self) -> Arc<Mutex<Option<TieringError>>> {
        Arc::clone(&self.failed)
    }

    /// Begins to keep; ends when the last one who can hand something in is gone.
    fn begin(self) -> KeepWith {
        let (sender, inbox) = sync_channel::<Vec<Kept>>(2);
        let store = self.store;
        let failed = Arc::clone(&self.failed);
        let counts = self.counts;
        let work = move || {
            for kept in inbox {
                let now = unix_seconds();
                for own in kept {
                    let went = match counts && !own.is_last {
                        true => {
                            store.write(&own).and_then(|()| store.is_kept_until(own.vdisk, now))
                        }
                        false => store.keep(&own),
                    };
                    if let Err(error) = went {
                        *failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                    }
                }
            }
        };
        let thread = std::thread::Builder::new().name("plumb-tiering".to_owned()).spawn(work).ok();
        KeepWith::new(sender, thread)
    }
}

impl OpenPool {
    /// Goes on with what was kept of the pool's virtual disks, and keeps it from now on: every 15 minutes, and when the
    /// engine ends. What was kept and cannot be read is left as it is: then nothing is kept, and [`TieringKeeper::failure`]
    /// says why. The pool works all the same. From now on the engine serves requests: if its program is killed, whoever starts the
    /// pool next says what was not counted.
    pub fn keep_tiering(&mut self, keeper: TieringKeeper) {
        self.go_on_with(TieringKeeper { counts: true, ..keeper });
    }

    /// The same, for a command that serves no requests.
    pub(in super::super) fn go_on_with(&mut self, keeper: TieringKeeper) {
        let restored = restore_tiering(&mut self.engine, &keeper.store);
        let restored = restored.map(|()| begin_to_count(&mut self.engine, &keeper));
        match restored {
            Ok(began) => {
                if let Err(error) = began {
                    *keeper.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
                }
                self.hand_out_to(keeper);
            }
            Err(error) => {
                *keeper.failed.lock().unwrap_or_else(PoisonError::into_inner) = Some(error);
            }
        }
    }

    /// What is kept is kept by it from now on.
    pub(in super::super) fn hand_out_to(&mut self, keeper: TieringKeeper) {
        keeper.store.forget_views();
        self.engine.keep_with(keeper.begin());
    }
}

/// Notes that what an engine counts from now on is not kept yet.
fn begin_to_count<Q: FlushQueue>(
    engine: &mut Engine<Q>,
    keeper: &TieringKeeper,
) -> Result<(), TieringError> {
    if !keeper.counts {
        return Ok(());
    }
    for (nth, id) in live(engine) {
        if !keeper.store.knows(id) {
            // When its window began is known from now on.
            keeper.store.write(&engine.kept(nth))?;
        }
        keeper.store.is_kept_until(id, unix_seconds())?;
    }
    Ok(())
}

/// Numbers and ids of the virtual disks that there are.
fn live<Q: FlushQueue>(engine: &Engine<Q>) -> Vec<(u32, u128)> {
    (0..)
        .zip(&engine.config().vdisks)
        .filter(|(_, vdisk)| !vdisk.is_removed())
        .map(|(nth, vdisk)| (nth, vdisk.id))
        .collect()
}

/// Hours by which a clock has gone on between two seconds of it; none if it was set back.
fn hours_between(from_s: u64, to_s: u64) -> u64 {
    (to_s / 3600).saturating_sub(from_s / 3600)
}

/// Gives an engine what was kept of its virtual disks.
///
/// # Errors
/// When that cannot be read.
pub fn restore_tiering<Q: FlushQueue>(
    engine: &mut Engine<Q>,
    store: &TieringStore,
) -> Result<(), TieringError> {
    let extent_bytes: u64 = engine.config().extent_bytes.into();
    let seconds = unix_seconds();
    let mut passed = None;
    for (nth, id) in live(engine) {
        // A report that cannot be kept is lost, and no reason not to start.
        let _ = store.keep_interrupted(id);
        let Some(state) = store.restore(id, extent_bytes)? else {
            engine.tiering_mut(nth).window_start_s = seconds as f64;
            continue;
        };
        let used = engine.mapped_bytes(nth)[0] / extent_bytes;
        let own = engine.tiering_mut(nth);
        own.pins = state.pins;
        own.history = state.history;
        own.window_start_s = state.window_start_s;
        own.working_sets = state.working_sets;
        own.heat_gap = state.heat_gap;
        own.uncounted_s = state.uncounted_s;
        own.measured = state.measured;
        own.brought = state.last.map_or(state.brought, |last| last.brought_until(used));
        let hours = state.last.map_or(0, |last| hours_between(last.at_s, seconds));
        passed = Some(passed.map_or(hours, |least: u64| least.min(hours)));
        if let Some(heat) = state.heat {
            // Whatever is wrong with it costs heat and no start (C13): it is said, and counted anew.
            let gap = match engine.restore_heat(nth, &heat, state.served) {
                Err(_) => Some(HeatGap::All),
                Ok(0) => None,
                Ok(pages) => Some(HeatGap::Pages(pages)),
            };
            if let Some(gap) = gap {
                engine.note_lost_heat(nth, gap, seconds as f64);
            }
        }
        if let Some(what_if) = state.what_if {
            // A curve that cannot be read is drawn anew.
            engine.restore_what_if(nth, &what_if);
        }
    }
    // Where a clock was ahead once the maps' hours are, too, and they go on all the same (HEAT-3).
    if let (Some(hours), Some((nth, _))) = (passed, live(engine).first()) {
        let saved = engine.heat(*nth).epoch();
        engine.set_hour(saved.saturating_add(hours));
    }
    engine.set_hour(seconds / 3600);
    for (nth, id) in live(engine) {
        store.tell_uncounted(engine, (nth, id), seconds);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::super::figures;
    use super::*;
    use crate::scenario::{Rig, Scenario};

    /// A clock was a year ahead while heat was kept: from then on the map's hours are, and those between two uses of the pool count.
    #[test]
    fn heat_ages_behind_a_clock_that_was_ahead() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = TieringStore { folder: folder.path().join("p.tiering") };
        let engine = || Rig::sparse(&Scenario::reference(1024).sizes()).expect("room").engine;
        let mut first = engine();
        let id = first.config().vdisks[0].id;
        let ahead = unix_seconds() / 3600 + 8760;
        first.set_hour(ahead);
        store.keep(&first.kept(0)).expect("room");
        let hour = |passed_h: u64| {
            let path = store.path(id, "json");
            let bytes = fs::read(&path).expect("it is there");
            let mut value = figures::parse(&bytes).expect("it is whole");
            let used = value["performance_used"].as_array_mut().expect("samples");
            used.last_mut().expect("one")[0] = (unix_seconds() - 3600 * passed_h).into();
            fs::write(&path, figures::with_sum(&value)).expect("room");
            let mut next = engine();
            restore_tiering(&mut next, &store).expect("it is whole");
            next.heat(0).epoch()
        };
        assert_eq!((hour(0), hour(30)), (ahead, ahead + 30));
        // It is set right, or back: nothing is known of what passed.
        assert_eq!(hours_between(8760 * 3600, 3600), 0);
        // Of several uses no part of an hour is lost.
        let uses = [(0, 1800), (1800, 3599), (3599, 3600), (3600, 9000)];
        assert_eq!(uses.iter().map(|(from, to)| hours_between(*from, *to)).sum::<u64>(), 2);
    }
}
