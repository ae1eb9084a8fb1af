//! What the optimizations of a pool's virtual disks go by, kept from start to start beside the list of pools: heat
//! maps, pins, what moved lately, reports.
//!
//! None of it is needed to read data (C13). A file is written anew beside the old one and takes its place; pins, which
//! somebody typed, are kept twice, and what cannot be read is said and never taken for empty.

pub(super) mod figures;
mod keeper;
mod unfinished;
mod warning;

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u32};
use serde_json::Value;

pub use self::keeper::{TieringKeeper, restore_tiering};

use self::figures::{measured_of, note_sample, parse, render, restored, samples};
use super::live;
use super::registry::{RegisteredPool, Registry};
use crate::engine::{Engine, Kept, Optimization, Served};
use crate::heat::HeatFileError;
use crate::optimizer::{Measured, MoveHistory, PinTable};
use crate::tier_report::{Filling, HeatGap, Sample, Warning, in_present_names};

/// What the text of a kept report is called in its document.
pub const REPORT_TEXT: &str = "text";
/// Reports that are kept (REP-3).
const REPORTS: usize = 90;
/// What is noted of an optimization under way has this extension.
const UNDER_WAY: &str = "optimizing";
/// How often.
const NOTED_EVERY: Duration = Duration::from_secs(5);
/// The largest file that is read: the bound of a heat map, and some.
const FILE_MAX: u64 = 256 << 20;

/// What is kept cannot be had.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum TieringError {
    /// The system refuses.
    #[error("cannot use {}", path.display())]
    #[diagnostic(
        code(plumb::tier::tiering_io),
        help("make the folder of the list of pools one that you may write to: PLUMB_POOLS=/path")
    )]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// Both copies of the pins are damaged.
    #[error("the pins in {} cannot be read", path.display())]
    #[diagnostic(
        code(plumb::tier::pins_damaged),
        help("remove the file and its .before, then pin again; data is not affected")
    )]
    Damaged {
        /// Which file.
        path: PathBuf,
    },
    /// A report is damaged.
    #[error("the report in {} cannot be read", path.display())]
    #[diagnostic(
        code(plumb::tier::report_damaged),
        help("remove the file; the others are not affected")
    )]
    Report {
        /// Which file.
        path: PathBuf,
    },
    /// The heat map is of no use.
    #[error("the heat map in {} is of no use", path.display())]
    #[diagnostic(
        code(plumb::tier::heat_damaged),
        help("remove the file: heat is counted anew, no data is affected")
    )]
    Heat {
        /// Which file.
        path: PathBuf,
        /// Why.
        source: HeatFileError,
    },
}

/// Where it is kept, for one pool.
#[derive(Debug, Clone)]
pub struct TieringStore {
    folder: PathBuf,
}

/// What was kept of a virtual disk.
#[derive(Debug)]
pub(super) struct Restored {
    pub(super) heat: Option<Vec<u8>>,
    pub(super) what_if: Option<Vec<u8>>,
    pub(super) pins: PinTable,
    pub(super) history: MoveHistory,
    pub(super) window_start_s: f64,
    pub(super) working_sets: Vec<u64>,
    pub(super) heat_gap: Option<HeatGap>,
    pub(super) uncounted_s: u64,
    pub(super) measured: Measured,
    pub(super) brought: i64,
    /// How full the Performance tier was when that was kept.
    pub(super) last: Option<Sample>,
    pub(super) served: Served,
}

impl TieringStore {
    /// The one of a pool, in a folder beside the registry's file of it.
    #[must_use]
    pub fn of(registry: &Registry, pool: &RegisteredPool) -> Self {
        Self::named(registry, &pool.name)
    }

    /// The one of the pool of that name.
    pub(super) fn named(registry: &Registry, pool: &str) -> Self {
        Self { folder: registry.folder().join(format!("{pool}.tiering")) }
    }

    fn path(&self, vdisk: u128, suffix: &str) -> PathBuf {
        self.folder.join(format!("{vdisk:032x}.{suffix}"))
    }

    /// Whether anything was kept of a virtual disk on this machine.
    #[must_use]
    pub fn knows(&self, vdisk: u128) -> bool {
        ["json", "before"].iter().any(|suffix| self.path(vdisk, suffix).exists())
    }

    /// Keeps what an engine hands out that counts no more host I/O.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn keep(&self, kept: &Kept) -> Result<(), TieringError> {
        self.write(kept)?;
        self.all_is_kept(kept.vdisk)
    }

    fn write(&self, kept: &Kept) -> Result<(), TieringError> {
        let io = |path: &Path| {
            let path = path.to_owned();
            move |source| TieringError::Io { path, source }
        };
        fs::create_dir_all(&self.folder).map_err(io(&self.folder))?;
        let moves = kept.tiering.history.save();
        for (suffix, bytes) in [("heat", &kept.heat), ("what-if", &kept.what_if), ("moves", &moves)]
        {
            let path = self.path(kept.vdisk, suffix);
            replace(&path, bytes).map_err(io(&path))?;
        }
        let path = self.path(kept.vdisk, "json");
        let before = read(&path).ok().flatten().and_then(|bytes| parse(&bytes));
        let mut samples = before.as_ref().map(samples).unwrap_or_default();
        let (at_s, used, brought) = (unix_seconds(), kept.performance.0, kept.tiering.brought);
        note_sample(&mut samples, Sample { at_s, used, brought });
        if read(&path).ok().flatten().is_some_and(|bytes| parse(&bytes).is_some()) {
            // A copy that can be read stays until the new one is there.
            let before = self.path(kept.vdisk, "before");
            fs::copy(&path, &before).map_err(io(&before))?;
        }
        replace(&path, &render(kept, &samples)).map_err(io(&path))?;
        let Some(published) = &kept.published else { return Ok(()) };
        // The last one: whoever finds it finds the others.
        let path = self.path(kept.vdisk, "view");
        let bytes = live::save(kept.vdisk, published, &kept.heat, live::now_ms());
        replace(&path, &bytes).map_err(io(&path))
    }

    /// What was published last of a virtual disk.
    pub(super) fn view_bytes(&self, vdisk: u128) -> Result<Option<Vec<u8>>, TieringError> {
        let path = self.path(vdisk, "view");
        read(&path).map_err(|source| TieringError::Io { path, source })
    }

    /// What was published in a use of the pool that is over is not to be read any more.
    fn forget_views(&self) {
        let files = fs::read_dir(&self.folder).into_iter().flatten().flatten();
        for path in files.map(|entry| entry.path()) {
            if path.extension().is_some_and(|extension| extension == "view") {
                // One that stays is told with its age.
                let _ = fs::remove_file(path);
            }
        }
    }

    /// What was kept of a virtual disk; `None` if nothing was. Lost heat and histories are no error: they are counted
    /// anew.
    pub(super) fn restore(
        &self,
        vdisk: u128,
        extent_bytes: u64,
    ) -> Result<Option<Restored>, TieringError> {
        let path = self.path(vdisk, "json");
        let load = |path: &Path| {
            read(path).map_err(|source| TieringError::Io { path: path.to_owned(), source })
        };
        let (first, second) = (load(&path)?, load(&self.path(vdisk, "before"))?);
        if first.is_none() && second.is_none() {
            return Ok(None);
        }
        let value = first.as_deref().and_then(parse).or_else(|| second.as_deref().and_then(parse));
        let state = value.as_ref().and_then(|value| restored(value, extent_bytes));
        let mut state = state.ok_or(TieringError::Damaged { path })?;
        state.heat = load(&self.path(vdisk, "heat"))?;
        state.what_if = load(&self.path(vdisk, "what-if"))?;
        let moves = load(&self.path(vdisk, "moves"))?;
        state.history = moves.and_then(|bytes| MoveHistory::restore(&bytes)).unwrap_or_default();
        Ok(Some(state))
    }

    pub(super) fn heat_error(&self, vdisk: u128, source: HeatFileError) -> TieringError {
        TieringError::Heat { path: self.path(vdisk, "heat"), source }
    }

    /// How the Performance tier of a virtual disk fills, by what was kept of it; `None` if nothing was.
    ///
    /// # Errors
    /// When the system refuses, or what was kept is damaged.
    pub fn filling(&self, vdisk: u128) -> Result<Option<Filling>, TieringError> {
        let Some(value) = self.figures(vdisk)? else { return Ok(None) };
        let slots = value["performance_slots"].as_u64();
        Ok(slots.and_then(|slots| Filling::of(&samples(&value), slots)))
    }

    /// What the disks of a virtual disk were measured to take, by what was kept of it.
    ///
    /// # Errors
    /// When the system refuses, or what was kept is damaged.
    pub fn measured(&self, vdisk: u128) -> Result<Measured, TieringError> {
        let value = self.figures(vdisk)?;
        Ok(value.as_ref().map(measured_of).unwrap_or_default())
    }

    fn figures(&self, vdisk: u128) -> Result<Option<Value>, TieringError> {
        let path = self.path(vdisk, "json");
        let bytes =
            read(&path).map_err(|source| TieringError::Io { path: path.clone(), source })?;
        let Some(bytes) = bytes else { return Ok(None) };
        parse(&bytes).ok_or(TieringError::Damaged { path }).map(Some)
    }

    /// Keeps the reports of optimizations that have ended in an engine.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn keep_results<Q: FlushQueue>(&self, engine: &mut Engine<Q>) -> Result<(), TieringError> {
        for nth in 0..to_u32(engine.config().vdisks.len()) {
            if let Some(done) = engine.take_optimization(nth) {
                let id = engine.config().vdisks[index(nth)].id;
                let warning = self.warning_now(engine, nth);
                self.keep_report(id, unix_seconds(), &done, warning.as_ref())?;
            }
        }
        self.note_under_way(engine)
    }

    /// Notes every five seconds what would be told of the optimizations under way if this program ended now: whoever starts the pool
    /// next keeps that as the report of one that was interrupted.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn note_under_way<Q: FlushQueue>(&self, engine: &Engine<Q>) -> Result<(), TieringError> {
        for nth in 0..to_u32(engine.config().vdisks.len()) {
            if !engine.optimizing(nth) {
                continue;
            }
            let config = engine.config();
            let vdisk = &config.vdisks[index(nth)];
            let path = self.path(vdisk.id, UNDER_WAY);
            let modified = fs::metadata(&path).and_then(|found| found.modified());
            let age = modified.ok().and_then(|at| at.elapsed().ok());
            if age.is_some_and(|age| age < NOTED_EVERY) {
                continue;
            }
            let Some(so_far) = engine.optimization_so_far(nth) else { continue };
            let io = |source| TieringError::Io { path: path.clone(), source };
            fs::create_dir_all(&self.folder).map_err(io)?;
            // Not flushed to disk: requests go on meanwhile, and a note that a power cut took is worth no wait.
            let beside = path.with_extension(format!("{UNDER_WAY}.{}", std::process::id()));
            let warning = self.warning(config, vdisk);
            let note = document(&so_far, warning.as_ref());
            let written = fs::write(&beside, note.to_string());
            written.and_then(|()| fs::rename(&beside, &path)).map_err(io)?;
        }
        Ok(())
    }

    /// Keeps what was noted of an optimization whose program ended without a word; nobody else has the pool now.
    fn keep_interrupted(&self, vdisk: u128) -> Result<(), TieringError> {
        let path = self.path(vdisk, UNDER_WAY);
        let io = |source| TieringError::Io { path: path.clone(), source };
        let Some(bytes) = read(&path).map_err(io)? else { return Ok(()) };
        // One that is damaged tells nothing.
        if let Ok(json) = serde_json::from_slice(&bytes).map(in_present_names)
            && json["optimization"].is_object()
        {
            let modified = fs::metadata(&path).and_then(|found| found.modified()).map_err(io)?;
            let since = modified.duration_since(std::time::UNIX_EPOCH);
            self.keep_document(vdisk, since.map_or(0, |since| since.as_secs()), &json)?;
        }
        fs::remove_file(&path).map_err(io)
    }

    /// A kept report, one of [`TieringStore::reports`]; as [`REPORT_TEXT`] the text of its fixed layout.
    ///
    /// # Errors
    /// When the system refuses, or it is damaged.
    pub fn report(&self, path: &Path) -> Result<Value, TieringError> {
        let bytes = fs::read(path);
        let bytes = bytes.map_err(|source| TieringError::Io { path: path.to_owned(), source })?;
        let damaged = |_| TieringError::Report { path: path.to_owned() };
        serde_json::from_slice(&bytes).map(in_present_names).map_err(damaged)
    }

    /// Keeps the report of an optimization that ended at `unix_s`, with the early warning of that moment, under the next second that
    /// has none yet; the oldest of more than 90 go. Returns it as it is kept.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn keep_report(
        &self,
        vdisk: u128,
        unix_s: u64,
        done: &Optimization,
        warning: Option<&Warning>,
    ) -> Result<Value, TieringError> {
        let json = document(done, warning);
        self.keep_document(vdisk, unix_s, &json)?;
        match fs::remove_file(self.path(vdisk, UNDER_WAY)) {
            Err(source) if source.kind() != io::ErrorKind::NotFound => {
                Err(TieringError::Io { path: self.path(vdisk, UNDER_WAY), source })
            }
            _ => Ok(json),
        }
    }

    fn keep_document(&self, vdisk: u128, unix_s: u64, json: &Value) -> Result<(), TieringError> {
        let folder = self.folder.join(format!("{vdisk:032x}.reports"));
        let failed = |path: &Path| {
            let path = path.to_owned();
            move |source| TieringError::Io { path, source }
        };
        fs::create_dir_all(&folder).map_err(failed(&folder))?;
        let named = |second: u64| folder.join(format!("{second:012}.json"));
        let path = (unix_s..).map(named).find(|path| !path.exists());
        let path = path.unwrap_or_else(|| named(unix_s));
        self.note_measured(vdisk, json)?;
        replace(&path, format!("{json:#}\n").as_bytes()).map_err(failed(&path))?;
        let kept = self.reports(vdisk)?;
        for old in kept.iter().take(kept.len().saturating_sub(REPORTS)) {
            fs::remove_file(old).map_err(failed(old))?;
        }
        Ok(())
    }

    /// What the window of a report served is what was measured, later, of the placement that the one before it made (10.7). It is added to
    /// that one, unless its window is part of the same.
    fn note_measured(&self, vdisk: u128, report: &Value) -> Result<(), TieringError> {
        let Some(path) = self.reports(vdisk)?.pop() else { return Ok(()) };
        // One that is damaged stays as it is.
        let Ok(mut before) = self.report(&path) else { return Ok(()) };
        let start = report["window_start_s"].as_f64().unwrap_or(0.0);
        let is_later = before["window_end_s"].as_f64().is_some_and(|end| end <= start);
        if is_later && !report["serviced_percent"].is_null() && before["optimization"].is_object() {
            before["optimization"]["share_measured_later_percent"] =
                report["serviced_percent"].clone();
            let failed = |source| TieringError::Io { path: path.clone(), source };
            replace(&path, format!("{before:#}\n").as_bytes()).map_err(failed)?;
        }
        Ok(())
    }

    /// The report that was kept last, if any.
    ///
    /// # Errors
    /// When the system refuses, or the report is damaged.
    pub fn last_report(&self, vdisk: u128) -> Result<Option<Value>, TieringError> {
        let Some(path) = self.reports(vdisk)?.pop() else { return Ok(None) };
        self.report(&path).map(Some)
    }

    /// The reports that are kept of a virtual disk, the oldest first.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn reports(&self, vdisk: u128) -> Result<Vec<PathBuf>, TieringError> {
        let folder = self.folder.join(format!("{vdisk:032x}.reports"));
        let failed = |source| TieringError::Io { path: folder.clone(), source };
        let entries = match fs::read_dir(&folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => other.map_err(failed)?,
        };
        let mut paths = Vec::new();
        for entry in entries {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                paths.push(path);
            }
        }
        paths.sort();
        Ok(paths)
    }
}

/// A report as it is kept.
fn document(done: &Optimization, warning: Option<&Warning>) -> Value {
    let mut json = done.to_json();
    let mut text = done.report.to_text();
    if let Some(warning) = warning {
        text.push_str(&format!("\n{}", warning.text.trim_start()));
        json["filling"] = warning.json.clone();
    }
    json[REPORT_TEXT] = text.into();
    json
}

/// Writes beside the file, durably, and puts it in its place.
fn replace(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = path.as_os_str().to_owned();
    beside.push(format!(".{}", std::process::id()));
    let beside = PathBuf::from(beside);
    let written = File::create(&beside).and_then(|mut file| {
        file.write_all(bytes)?;
        file.sync_all()?;
        fs::rename(&beside, path)?;
        File::open(path.parent().unwrap_or(Path::new(".")))?.sync_all()
    });
    if written.is_err() {
        // Best effort: the error that led here is the one to report.
        let _ = fs::remove_file(&beside);
    }
    written
}

fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    match fs::metadata(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(error),
        Ok(found) if found.len() > FILE_MAX => return Ok(Some(Vec::new())),
        Ok(_) => {}
    }
    fs::read(path).map(Some)
}

/// Seconds since 1970.
#[must_use]
pub fn unix_seconds() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    since.map_or(0, |since| since.as_secs())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::Tiering;
    use crate::optimizer::TierName;
    use crate::tier_report::WindowBytes;

    fn kept(folder: &Path, pins: PinTable) -> (TieringStore, Kept) {
        let store = TieringStore { folder: folder.join("p.tiering") };
        let tiering = Tiering {
            pins,
            history: MoveHistory::new(),
            window_start_s: 1.5,
            working_sets: vec![3, 4],
            heat_gap: Some(HeatGap::All),
            uncounted_s: 61,
            measured: figures::sample_measured(),
            brought: -5,
        };
        let bytes = WindowBytes::of_fields([5, 6, 7, 8, 9, 10]);
        let served = Served { performance: 1, cache: 2, capacity: 3, unmapped: 4, bytes };
        let performance = (30, 40);
        let (heat, what_if, published, is_last) = (vec![1, 2], vec![3], None, true);
        let kept =
            Kept { vdisk: 7, heat, what_if, served, performance, tiering, published, is_last };
        (store, kept)
    }

    /// Who reads it later is warned as whoever saw it made.
    #[test]
    fn the_early_warning_is_kept_with_the_report() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = TieringStore { folder: folder.path().join("p.tiering") };
        let full = Sample { at_s: 7, used: 100, brought: 0 };
        let full = Filling::of(&[full], 100).expect("a sample");
        let basis = crate::optimizer::IopsBasis::Reference;
        let line_basis = crate::optimizer::LineBasis::Hosts;
        let iops = crate::optimizer::ExpectedIops { iops: 824, line: None, line_basis, basis };
        let warning = Warning::of("data", &full, 1 << 20, iops);
        let done = result();
        let made = store.keep_report(7, 5, &done, Some(&warning)).expect("room");
        let kept = store.last_report(7).expect("it is whole").expect("it is there");
        assert_eq!((&kept[REPORT_TEXT], &kept["filling"]), (&made[REPORT_TEXT], &warning.json));
        let text = kept[REPORT_TEXT].as_str().unwrap_or_default();
        let line = "\n\nvirtual disk data: Performance tier holds 100MiB of 100MiB: full;";
        assert!(text.starts_with(&done.report.to_text()) && text.contains(line), "{text}");
    }

    /// The result of an optimization, of a replay.
    fn result() -> Optimization {
        use crate::replay::{Layout, Policy, Replay};
        let policies = [Policy::Every { hours: 0.5 }];
        let mut replay = Replay::new(Layout::default(), &[64 << 20], &policies).expect("a space");
        let workload = "uniform:extents=128,rate=1,hours=1";
        let workload = crate::trace::WorkloadSpec::parse(workload).expect("a workload");
        workload.generate().for_each(|io| replay.feed(&io).expect("room"));
        let devices = replay.end().outcomes.remove(0).devices.expect("devices");
        Optimization {
            report: devices.report.expect("the last run's"),
            planning_s: 0.25,
            share_before: None,
            share_planned: None,
            refused: Vec::new(),
        }
    }

    /// 10.7: what a placement was expected to serve, and what it was measured to in the window after it.
    #[test]
    fn what_a_placement_serves_later_is_added_to_its_report() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = TieringStore { folder: folder.path().join("p.tiering") };
        let mut done = result();
        let facts = &done.report.facts;
        let (length, served) =
            (facts.window_end_s - facts.window_start_s, facts.answered_performance);
        let mut of_window = |start: f64, served: u64| {
            let facts = &mut done.report.facts;
            (facts.window_start_s, facts.window_end_s) = (start, start + length);
            facts.answered_performance = served;
            let second = plumb_units::convert::floor_u64(start + length);
            store.keep_report(7, second, &done, None).expect("room");
            done.report.serviced_percent()
        };
        let first = of_window(10_000.0, served);
        let second = of_window(10_000.0 + length, served / 2);
        assert!(first.is_some() && second.is_some() && first != second, "{first:?}, {second:?}");
        // A trickle's window that goes on says nothing about its own placement.
        of_window(10_000.0 + 1.5 * length, served / 4);
        let third = of_window(10_000.0 + 3.0 * length, served / 8);
        let later: Vec<Value> = store
            .reports(7)
            .expect("they are there")
            .iter()
            .map(|path| store.report(path).expect("whole")["optimization"].take())
            .map(|mut told| told["share_measured_later_percent"].take())
            .collect();
        assert_eq!(
            later.iter().map(Value::as_f64).collect::<Vec<_>>(),
            [second, None, third, None]
        );
    }

    /// What a program that was killed had noted is kept once, as a report that says so; damaged notes cost nothing.
    #[test]
    fn an_optimization_that_nobody_ended_is_told_as_interrupted() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = TieringStore { folder: folder.path().join("p.tiering") };
        store.keep_interrupted(7).expect("nothing is no error");
        let done = result();
        store.keep_report(7, 5, &done, None).expect("room");
        let note = store.path(7, UNDER_WAY);
        fs::write(&note, document(&done, None).to_string()).expect("room");
        store.keep_interrupted(7).expect("it is whole");
        store.keep_interrupted(7).expect("once");
        assert_eq!((store.reports(7).expect("they are there").len(), note.exists()), (2, false));
        let last = store.last_report(7).expect("it is whole").expect("it is there");
        assert_eq!(last[REPORT_TEXT], done.report.to_text());
        for damaged in ["{\"moves\": 3", "{}", ""] {
            fs::write(&note, damaged).expect("room");
            store.keep_interrupted(7).expect("it is left out");
            assert!(!note.exists(), "{damaged}");
        }
        // Who ends by itself takes its note away.
        fs::write(&note, document(&done, None).to_string()).expect("room");
        store.keep_report(7, 9, &done, None).expect("room");
        store.keep_interrupted(7).expect("nothing is left");
        assert_eq!(store.reports(7).expect("they are there").len(), 3);
    }

    /// Whoever kept a report, it is told in the names of today.
    #[test]
    fn a_report_of_an_older_program_is_told_in_the_names_of_today() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = TieringStore { folder: folder.path().join("p.tiering") };
        let kept = store.keep_report(7, 5, &result(), None).expect("room");
        assert_eq!(
            (&kept["schema_version"], store.last_report(7).expect("whole")),
            (&2.into(), Some(kept.clone()))
        );
        let path = store.reports(7).expect("they are there").remove(0);
        let old =
            r#"{ "quality": { "confidence_percent": 1.5, "ios_lost": 3 }, "optimization": {} }"#;
        fs::write(&path, old).expect("room");
        let told = store.last_report(7).expect("it is whole").expect("it is there");
        let quality = serde_json::json!({ "serviced_half_width_points": 1.5, "ios_lost": 3 });
        assert_eq!((&told["quality"], &told["schema_version"]), (&quality, &2.into()));
    }

    /// REP-3, and a second of which there is one already is not lost.
    #[test]
    fn the_last_90_reports_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let store = TieringStore { folder: folder.path().join("p.tiering") };
        let done = result();
        for second in (1..=93).chain([93]) {
            store.keep_report(7, second, &done, None).expect("room");
        }
        store.keep_report(8, 5, &done, None).expect("room");
        let kept = store.reports(7).expect("they are there");
        let names: Vec<String> = kept
            .iter()
            .map(|path| path.file_stem().expect("a name").to_string_lossy().into_owned())
            .collect();
        let wanted: Vec<String> = (5..=94).map(|second| format!("{second:012}")).collect();
        assert_eq!(names, wanted);
        assert_eq!(store.reports(8).expect("it is there").len(), 1);
        let last = store.last_report(7).expect("it is whole").expect("it is there");
        assert_eq!(last["advice"], done.report.to_json()["advice"]);
        assert_eq!(last[REPORT_TEXT], done.report.to_text());
    }

    #[test]
    fn what_is_kept_is_restored_and_damage_never_empties_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut pins = PinTable::new(1 << 20);
        pins.set(0, 1 << 20, TierName::Performance).expect("a range");
        let gone = pins.set(5, 6, TierName::Capacity).expect("a range");
        pins.clear(gone);
        let (store, own) = kept(folder.path(), pins.clone());
        assert!(store.restore(7, 1 << 20).expect("nothing is no error").is_none());
        store.keep(&own).expect("room");
        store.keep(&own).expect("room");
        let found = store.restore(7, 1 << 20).expect("it is whole").expect("it is there");
        assert_eq!((&found.pins, found.served, found.window_start_s), (&pins, own.served, 1.5));
        assert_eq!((found.heat, found.working_sets), (Some(vec![1, 2]), vec![3, 4]));
        assert_eq!((found.what_if, found.heat_gap), (Some(vec![3]), Some(HeatGap::All)));
        assert_eq!((found.uncounted_s, found.brought), (61, -5));
        let filling = store.filling(7).expect("it is whole").expect("it is there");
        assert_eq!((filling.used, filling.slots, filling.per_hour), (30, 40, None));
        assert_eq!(store.measured(7).expect("it is whole"), figures::sample_measured());
        assert_eq!(found.measured, figures::sample_measured());
        assert_eq!(store.measured(8).expect("nothing is no error"), Measured::default());
        // One copy damaged, then both.
        let path = store.path(7, "json");
        let mut bytes = fs::read(&path).expect("it is there");
        bytes[20] ^= 1;
        fs::write(&path, &bytes).expect("room");
        let found = store.restore(7, 1 << 20).expect("there is another").expect("it is there");
        assert_eq!(found.pins, pins);
        store.keep(&own).expect("room");
        assert!(store.restore(7, 1 << 20).is_ok());
        fs::write(store.path(7, "json"), &bytes).expect("room");
        fs::write(store.path(7, "before"), b"").expect("room");
        let error = store.restore(7, 1 << 20).expect_err("neither can be read");
        assert!(matches!(error, TieringError::Damaged { .. }), "{error}");
    }
}
