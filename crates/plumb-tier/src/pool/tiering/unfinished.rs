//! A mark beside what is kept of a virtual disk, while a program counts its host I/O: until when that is kept. Who finds it and
//! has the pool knows that the program ended without a word, and that what it counted since is lost (HEAT-6).

use std::fs::{self, File};
use std::io::ErrorKind;
use std::path::Path;

use plumb_io::FlushQueue;
use plumb_units::convert::index;

use super::super::chronicle;
use super::super::registry::Registry;
use super::{TieringError, TieringStore, read, replace};
use crate::engine::Engine;
use crate::events::Event;

/// The mark has this extension.
const MARK: &str = "counting";
/// Counters are written once a second: so much longer the program may have lived.
const COUNTERS_AGE_S: u64 = 1;

impl TieringStore {
    /// What a program counts of a virtual disk is kept until that second, and it goes on counting.
    pub(super) fn is_kept_until(&self, vdisk: u128, unix_s: u64) -> Result<(), TieringError> {
        let path = self.path(vdisk, MARK);
        replace(&path, format!("{unix_s}\n").as_bytes())
            .map_err(|source| TieringError::Io { path, source })
    }

    /// All that was counted of a virtual disk is kept.
    pub(super) fn all_is_kept(&self, vdisk: u128) -> Result<(), TieringError> {
        let path = self.path(vdisk, MARK);
        let removed = match fs::remove_file(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
            // A mark that a power cut brings back would be told as a gap.
            other => other.and_then(|()| File::open(&self.folder)?.sync_all()),
        };
        removed.map_err(|source| TieringError::Io { path, source })
    }

    /// Seconds that were not counted, at most, up to `now_s`; `None` if all that was counted is kept. `window_start_s` is when the
    /// window began.
    fn uncounted(&self, vdisk: u128, (window_start_s, now_s): (f64, u64)) -> Option<u64> {
        let bytes = read(&self.path(vdisk, MARK)).ok()??;
        let text = String::from_utf8(bytes).ok();
        let kept_s = text.and_then(|text| text.trim_end().parse().ok());
        // Of a mark that is damaged no more is known than that it was there.
        let kept_s: u64 =
            kept_s.unwrap_or_else(|| plumb_units::convert::floor_u64(window_start_s.max(0.0)));
        let counters = self.chronicled().and_then(|(registry, pool)| {
            let found = chronicle::counters(&registry, &pool)?;
            let last_s = found.unix_ms.div_ceil(1000);
            (found.running && last_s >= kept_s).then_some(last_s + COUNTERS_AGE_S)
        });
        let end_s = counters.map_or(now_s, |end_s| end_s.min(now_s));
        Some(end_s.saturating_sub(kept_s).max(1))
    }

    /// The list of pools beside which it is kept, and the name of the pool.
    fn chronicled(&self) -> Option<(Registry, String)> {
        let name = self.folder.file_name()?.to_str()?.strip_suffix(".tiering")?;
        let parent = self.folder.parent().unwrap_or(Path::new("."));
        Some((Registry::at(parent), name.to_owned()))
    }

    /// Tells of a program that counted and ended without a word: in the report of this window, once by an event, and never again. The
    /// caller has the pool, so that none counts now.
    pub(super) fn tell_uncounted<Q: FlushQueue>(
        &self,
        engine: &mut Engine<Q>,
        (nth, id): (u32, u128),
        now_s: u64,
    ) {
        let window_start_s = engine.tiering(nth).window_start_s;
        let Some(seconds) = self.uncounted(id, (window_start_s, now_s)) else { return };
        let own = engine.tiering_mut(nth);
        own.uncounted_s = own.uncounted_s.saturating_add(seconds);
        // Where that cannot be written it is found again, and told again.
        if self.keep(&engine.kept(nth)).is_ok()
            && let Some((registry, pool)) = self.chronicled()
        {
            let vdisk = u16::try_from(index(nth)).unwrap_or(u16::MAX);
            let event = Event::HeatNotCounted { vdisk, seconds };
            chronicle::note_event(&registry, &pool, &event, engine.config());
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use plumb_io::engine::SparseQueue;

    use super::super::keeper::restore_tiering;
    use super::*;
    use crate::scenario::{Emulated, Rig, Scenario};
    use crate::tier_report::HeatGap;

    const NOW: u64 = 1_000_000;

    fn engine() -> Engine<Emulated<SparseQueue>> {
        Rig::sparse(&Scenario::reference(1024).sizes()).expect("room").engine
    }

    fn store(folder: &Path) -> TieringStore {
        TieringStore { folder: folder.join("p.tiering") }
    }

    fn events(folder: &Path) -> Vec<(String, String)> {
        let events = chronicle::events(&Registry::at(folder), "p");
        events.into_iter().map(|event| (event.name, event.text)).collect()
    }

    /// As if counters had been written last so many seconds after [`NOW`].
    fn counters(folder: &Path, after_s: u64, running: bool) -> PathBuf {
        let path = folder.join("p.perf");
        let ms = (NOW + after_s) * 1000 - 300;
        fs::write(&path, format!("plumb-perf 1\t{ms}\t6\t7\t{running}\n")).expect("room");
        path
    }

    /// A program is killed, then another one: whoever asks is told of both, until the window is over; of a clean end nothing.
    #[test]
    fn what_a_killed_program_counted_is_missed_in_its_window() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        let mut first = engine();
        let id = first.config().vdisks[0].id;
        restore_tiering(&mut first, &store).expect("nothing is no error");
        store.write(&first.kept(0)).expect("room");
        store.is_kept_until(id, NOW).expect("room");
        drop(first);
        counters(folder.path(), 90, true);

        let mut next = engine();
        restore_tiering(&mut next, &store).expect("it is whole");
        assert_eq!(next.tiering(0).uncounted_s, 91);
        let report = next.tier_report(0, next.tiering(0).window_start_s + 95.0);
        assert_eq!(report.to_json()["quality"]["heat_uncounted_s"], 91);
        assert!(report.to_text().contains("up to 2 minutes of the window not counted"));
        let told = events(folder.path());
        assert_eq!(told.len(), 1, "{told:?}");
        assert_eq!(told[0].0, "heat-not-counted");
        assert!(told[0].1.contains("up to 2 minutes"), "{told:?}");

        // Who looks once more finds the same, and tells it no second time; who counts and is killed adds to it.
        let mut again = engine();
        restore_tiering(&mut again, &store).expect("it is whole");
        assert_eq!((again.tiering(0).uncounted_s, events(folder.path()).len()), (91, 1));
        store.is_kept_until(id, NOW).expect("room");
        counters(folder.path(), 9, true);
        let mut last = engine();
        restore_tiering(&mut last, &store).expect("it is whole");
        assert_eq!((last.tiering(0).uncounted_s, events(folder.path()).len()), (101, 2));

        // One that ends as it should leaves no more than there was, and a new window nothing.
        store.is_kept_until(id, NOW).expect("room");
        store.keep(&last.kept(0)).expect("room");
        let mut later = engine();
        restore_tiering(&mut later, &store).expect("it is whole");
        assert_eq!((later.tiering(0).uncounted_s, events(folder.path()).len()), (101, 2));
        assert!(later.optimize(0, &crate::engine::OptimizeSettings::default(), 5.0));
        assert_eq!(later.tiering(0).uncounted_s, 0);
        later.tiering_mut(0).uncounted_s = 7;
        later.note_lost_heat(0, HeatGap::All, 5.0);
        assert_eq!(later.tiering(0).uncounted_s, 0, "its window begins here");
    }

    /// Where nobody wrote when the program was there last, it may have been until now; of a damaged mark the window is all that is
    /// known.
    #[test]
    fn without_counters_the_time_is_bounded_by_now() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = store(folder.path());
        assert_eq!(store.uncounted(7, (0.0, NOW)), None);
        fs::create_dir_all(&store.folder).expect("room");
        store.is_kept_until(7, NOW).expect("room");
        let found = |window_start_s, now_s| store.uncounted(7, (window_start_s, now_s));
        assert_eq!(found(0.0, NOW + 500), Some(500));
        assert_eq!(found(0.0, NOW - 500), Some(1), "a clock that was set back");
        counters(folder.path(), 20, false);
        assert_eq!(found(0.0, NOW + 500), Some(500), "of a program that ended, another one");
        counters(folder.path(), 20, true);
        assert_eq!(found(0.0, NOW + 500), Some(21));
        fs::write(store.path(7, MARK), b"\xff?").expect("room");
        assert_eq!(found((NOW - 9) as f64, NOW + 500), Some(30));
        store.all_is_kept(7).expect("it goes");
        store.all_is_kept(7).expect("it is gone");
        assert_eq!(found(0.0, NOW + 500), None);
    }
}
