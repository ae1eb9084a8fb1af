//! Runs on a real target, each a child process `plumb run --json`.
//!
//! A child, not a call: a run that dies (a mapped file that is cut off, memory that ends) takes no study with
//! it, each begins in the same state of memory, and the line in the journal is what anybody can repeat by
//! hand.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::{Duration, Instant};

use plumb_io::mark::{self, Standing};
use plumb_io::system_tree::SystemTree;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use super::Setting;
use super::perform::{Due, Perform, Performance, Performed, says_enough};
use super::setting::size;

/// The environment variable by which a run knows whose child it is: it ends when that process does.
pub const PARENT: &str = "PLUMB_STUDY_PID";

/// How often a rest looks whether the user wants an end.
const LOOK: Duration = Duration::from_millis(100);

/// Performs runs by calling the program itself.
pub struct ChildRuns<'a> {
    /// The program.
    program: PathBuf,
    /// File or device, absolute.
    target: PathBuf,
    /// Targets whose content may be overwritten.
    destroy: Vec<PathBuf>,
    /// Whether an earlier process of the study was interrupted.
    goes_on: bool,
    began: Instant,
    offset_s: f64,
    stops: &'a dyn Fn() -> bool,
    now: &'a dyn Fn() -> String,
}

impl<'a> ChildRuns<'a> {
    /// Runs of `program` on `target`. `stops` says whether the user wants an end, `now` the time, RFC 3339.
    #[must_use]
    pub fn new(
        program: PathBuf,
        target: PathBuf,
        destroy: Vec<PathBuf>,
        stops: &'a dyn Fn() -> bool,
        now: &'a dyn Fn() -> String,
    ) -> Self {
        let (goes_on, began) = (false, Instant::now());
        Self { program, target, destroy, goes_on, began, offset_s: 0.0, stops, now }
    }

    /// The same after an interruption: files of the study's own, of the size that it gave them, that a run of Plumb
    /// was writing to when it was killed are written to again. Nothing else is.
    #[must_use]
    pub fn going_on(self) -> Self {
        Self { goes_on: true, ..self }
    }

    fn elapsed(&self) -> f64 {
        self.offset_s + self.began.elapsed().as_secs_f64()
    }

    /// The files of a setting that a killed run of an earlier process of the study left half-way through its writes.
    fn left(&self, setting: &Setting) -> Vec<PathBuf> {
        let Some(bytes) = setting.file_bytes.filter(|_| self.goes_on) else { return Vec::new() };
        let files = targets(&self.target, setting).into_iter();
        files.filter(|path| was_left(path, bytes)).collect()
    }

    fn command(&self, due: &Due, left: &[PathBuf]) -> Vec<OsString> {
        let setting = &due.order.setting;
        let mut words: Vec<OsString> = vec!["run".into()];
        words.extend(setting.arguments(due.seed).into_iter().map(OsString::from));
        let targets = targets(&self.target, setting);
        if let Some(bytes) = setting.file_bytes
            && targets.iter().any(|path| must_be_made(path, bytes))
        {
            words.push(format!("-c{}", size(bytes)).into());
        }
        for path in self.destroy.iter().chain(left) {
            let mut word = OsString::from("--destroy=");
            word.push(path);
            words.push(word);
        }
        words.extend(["--json", "--progress-style=json"].map(OsString::from));
        words.extend(targets.into_iter().map(PathBuf::into_os_string));
        words
    }

    fn watch(&self, child: &mut Child, early_end: bool) -> Watched {
        let stdout = child.stdout.take();
        let reader = std::thread::spawn(move || {
            let mut bytes = Vec::new();
            // A result that was cut off is no JSON, and is told as such.
            let _ = stdout.map(|mut stdout| stdout.read_to_end(&mut bytes));
            bytes
        });
        let mut said = Vec::new();
        let mut progress = Series::default();
        let mut is_told = false;
        let mut is_stopped = false;
        if let Some(stderr) = child.stderr.take() {
            for line in BufReader::new(stderr).lines() {
                let Ok(line) = line else { break };
                is_stopped |= (self.stops)();
                match serde_json::from_str::<Value>(&line) {
                    Ok(snapshot) if snapshot.get("phase").is_some() => progress.add(&snapshot),
                    _ => said.push(line),
                }
                let enough = early_end && progress.is_new() && progress.says_enough();
                if (enough || is_stopped) && !is_told {
                    is_told = true;
                    let pid = i32::try_from(child.id()).ok().and_then(Pid::from_raw);
                    // It may have ended by itself.
                    let _ = pid.map(|pid| kill_process(pid, Signal::INT));
                }
            }
        }
        let bytes = reader.join().unwrap_or_default();
        Watched { bytes, said, is_stopped: is_stopped || (self.stops)(), is_told }
    }
}

/// What a run that was watched said, and how it ended.
struct Watched {
    bytes: Vec<u8>,
    said: Vec<String>,
    /// Whether the study is to end.
    is_stopped: bool,
    /// Whether the run was told to end before its time.
    is_told: bool,
}

impl Watched {
    /// What it gave.
    fn outcome(self, status: io::Result<ExitStatus>) -> Performance {
        let status = match status {
            _ if self.is_stopped => return Performance::Aborted,
            Err(error) => return Performance::Failed(error.to_string()),
            Ok(status) => status,
        };
        if !status.success() {
            return Performance::Failed(format!("{status}: {}", self.said.join(" ")));
        }
        match serde_json::from_slice::<Value>(&self.bytes) {
            Ok(result) if result["interrupted"] == true && !self.is_told => {
                Performance::Failed(CUT_SHORT.to_owned())
            }
            Ok(result) => Performance::Result(Box::new(result)),
            Err(error) => Performance::Failed(format!("its result is no JSON: {error}")),
        }
    }
}

/// Why a run does not count that neither the study nor its own time ended.
const CUT_SHORT: &str = "somebody else ended it before its time, by a signal";

impl Perform for ChildRuns<'_> {
    fn resume_at(&mut self, seconds: f64) {
        self.offset_s = seconds;
        self.began = Instant::now();
    }

    fn rest(&mut self, seconds: f64) {
        let end = Instant::now() + Duration::from_secs_f64(seconds);
        while !(self.stops)() {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                break;
            }
            std::thread::sleep(left.min(LOOK));
        }
    }

    fn perform(&mut self, due: Due) -> Performed {
        let started_s = self.elapsed();
        let setting = &due.order.setting;
        let left = self.left(setting);
        let words = self.command(&due, &left);
        let spawned = Command::new(&self.program)
            .args(&words)
            .env(PARENT, std::process::id().to_string())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn();
        let outcome = match spawned {
            Err(error) => Performance::Failed(format!(
                "{} cannot be started: {error}",
                self.program.display()
            )),
            Ok(mut child) => {
                let watched = self.watch(&mut child, due.early_end);
                let status = child.wait();
                // Such a run renews no mark itself: to it the file is one that the user gave up.
                let has_written =
                    setting.write_percent > 0 && status.as_ref().is_ok_and(ExitStatus::success);
                for path in left.iter().filter(|_| has_written) {
                    seal(path);
                }
                watched.outcome(status)
            }
        };
        let word = |word: &OsString| word.to_string_lossy().into_owned();
        let shown = words.iter().map(word).filter(|word| word != "--progress-style=json");
        Performed {
            started_s,
            ended_s: self.elapsed(),
            ended: Some((self.now)()),
            outcome,
            command: std::iter::once("plumb".to_owned()).chain(shown).collect(),
            counters: None,
        }
    }
}

/// The files of a setting: the target itself, or parts beside it that differ by number and count.
#[must_use]
pub fn targets(target: &Path, setting: &Setting) -> Vec<PathBuf> {
    if setting.files == 1 {
        return vec![target.to_owned()];
    }
    let part = |number: u32| {
        let mut name = target.as_os_str().to_owned();
        name.push(format!(".{number}of{}", setting.files));
        PathBuf::from(name)
    };
    (1..=setting.files).map(part).collect()
}

/// Whether a killed run of Plumb left a file of that size half-way through its writes.
fn was_left(path: &Path, bytes: u64) -> bool {
    let standing = || -> io::Result<bool> {
        let file = fs::File::open(path)?;
        let found = file.metadata()?;
        let tree = SystemTree::default();
        let is_one = found.is_file() && found.len() == bytes;
        Ok(is_one && mark::verify(file.as_fd(), path, &tree)? == Standing::Unfinished)
    };
    // What cannot be looked at is not ours.
    standing().unwrap_or(false)
}

/// Says that a file which a killed run had left is as Plumb left it now: a run wrote to it and ended properly.
fn seal(path: &Path) {
    let file = fs::File::options().read(true).write(true).open(path);
    // Where it cannot be said, the next run of the study names the file again.
    let _ = file.map(|file| mark::seal(file.as_fd(), path, &SystemTree::default()));
}

/// Whether a file of that size is to be made: nothing is there, or a file of another size.
#[must_use]
pub fn must_be_made(path: &Path, bytes: u64) -> bool {
    match fs::metadata(path) {
        Ok(found) if found.file_type().is_block_device() => false,
        Ok(found) => found.len() != bytes,
        Err(_) => true,
    }
}

/// Bytes that have to be written before settings can be run: each file of each new size once.
#[must_use]
pub fn bytes_to_make<'a>(target: &Path, settings: impl Iterator<Item = &'a Setting>) -> u64 {
    files_to_make(target, settings).iter().map(|(_, bytes)| bytes).sum()
}

/// Bytes that the files beside the target will take beyond what they have, so that all settings can be run.
#[must_use]
pub fn bytes_beside<'a>(target: &Path, settings: impl Iterator<Item = &'a Setting>) -> u64 {
    let allocated = |path: &Path| fs::metadata(path).map_or(0, |found| found.blocks() * 512);
    let files = files_to_make(target, settings).into_iter();
    let beside = files.filter(|(path, _)| path != target);
    beside.map(|(path, bytes)| bytes.saturating_sub(allocated(&path))).sum()
}

/// Bytes that the file system has to find, so that all settings can be run: of each file its largest size, beyond what it
/// has.
#[must_use]
pub fn bytes_to_find<'a>(target: &Path, settings: impl Iterator<Item = &'a Setting>) -> u64 {
    let allocated = |path: &Path| fs::metadata(path).map_or(0, |found| found.blocks() * 512);
    let mut largest: BTreeMap<PathBuf, u64> = BTreeMap::new();
    for (path, bytes) in files_to_make(target, settings) {
        let most = largest.entry(path).or_default();
        *most = bytes.max(*most);
    }
    let beyond = largest.iter().map(|(path, bytes)| bytes.saturating_sub(allocated(path)));
    beyond.fold(0, u64::saturating_add)
}

/// The files that are not there in the size that settings want, each of each size once.
fn files_to_make<'a>(
    target: &Path,
    settings: impl Iterator<Item = &'a Setting>,
) -> Vec<(PathBuf, u64)> {
    let mut made: Vec<(PathBuf, u64)> = Vec::new();
    for setting in settings {
        let Some(bytes) = setting.file_bytes else { continue };
        for path in targets(target, setting) {
            let file = (path, bytes);
            if !made.contains(&file) && must_be_made(&file.0, bytes) {
                made.push(file);
            }
        }
    }
    made
}

/// Throughput and latency of each second of the measurement, as the progress tells them.
#[derive(Debug, Default)]
struct Series {
    iops: Vec<f64>,
    latency: Vec<f64>,
    second: f64,
    is_new: bool,
}

impl Series {
    fn add(&mut self, snapshot: &Value) {
        self.is_new = false;
        let elapsed = snapshot["phase_elapsed_s"].as_f64().unwrap_or_default();
        if snapshot["phase"] != "measuring" || elapsed < self.second + 1.0 {
            return;
        }
        let Some(iops) = snapshot["iops"].as_f64() else { return };
        self.second = elapsed.floor();
        self.is_new = true;
        self.iops.push(iops);
        self.latency.extend(snapshot["latency_mean_us"].as_f64());
    }

    /// Whether the last snapshot began a second at which a look pays.
    fn is_new(&self) -> bool {
        self.is_new && self.iops.len().is_multiple_of(5)
    }

    fn says_enough(&self) -> bool {
        let latency = if self.latency.len() == self.iops.len() { &self.latency[..] } else { &[] };
        says_enough(&self.iops, latency)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::study::{Order, Purpose};

    #[test]
    fn parts_have_names_of_their_own() {
        let with = |files| Setting { files, ..Setting::default() };
        let names = |files| -> Vec<String> {
            let paths = targets(Path::new("/d/f.dat"), &with(files));
            paths.iter().map(|path| path.display().to_string()).collect()
        };
        assert_eq!(names(1), ["/d/f.dat"]);
        assert_eq!(names(2), ["/d/f.dat.1of2", "/d/f.dat.2of2"]);
    }

    #[test]
    fn a_file_that_a_killed_run_left_is_sealed_by_the_next_that_writes_and_ends_properly() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("f");
        let tree = SystemTree::default();
        fs::write(&target, [0; 4096]).expect("written");
        let file = fs::File::options().write(true).open(&target).expect("open");
        // What a run that was killed leaves: a writer that is no more.
        mark::begin(file.as_fd(), &target, &tree).expect("marked");
        let mut mark = [0; 512];
        let length = rustix::fs::fgetxattr(&file, "user.plumb.made", &mut mark).expect("a mark");
        let own = String::from_utf8_lossy(&mark[..length]).into_owned();
        let (writer, _) = own.rsplit_once('/').expect("boot, process, start");
        let none = rustix::fs::XattrFlags::empty();
        let dead = format!("{writer}/1");
        rustix::fs::fsetxattr(&file, "user.plumb.made", dead.as_bytes(), none).expect("marked");
        let standing = || mark::verify(file.as_fd(), &target, &tree).expect("readable");
        assert_eq!(standing(), Standing::Unfinished);
        // Programs that end well and badly, whatever they are called with.
        let perform = |program: &str, write_percent: u32, goes_on: bool| {
            let (stops, now) = (|| false, String::new);
            let (program, target) = (program.into(), target.clone());
            let mut runs = ChildRuns::new(program, target, Vec::new(), &stops, &now);
            runs.goes_on = goes_on;
            let setting = Setting { write_percent, file_bytes: Some(4096), ..Setting::default() };
            let (step, purpose) = ("sweep".to_owned(), Purpose::Measure);
            let order = Order { step, purpose, repetition: 1, setting };
            let done = runs.perform(Due { run: 1, seed: 1, order: &order, early_end: false });
            done.command.iter().any(|word| word.starts_with("--destroy="))
        };
        for (program, write_percent, goes_on) in
            [("false", 30, true), ("true", 0, true), ("true", 30, false)]
        {
            assert_eq!(perform(program, write_percent, goes_on), goes_on);
            assert_eq!(standing(), Standing::Unfinished, "{program} {write_percent} {goes_on}");
        }
        assert!(perform("true", 30, true));
        assert_eq!(standing(), Standing::Intact);
        assert!(!perform("true", 30, true), "nothing is left to be named");
    }

    #[test]
    fn a_run_that_somebody_else_ended_is_none() {
        let outcome = |interrupted: bool, is_told: bool, is_stopped: bool| {
            let bytes = json!({ "interrupted": interrupted }).to_string().into_bytes();
            let watched = Watched { bytes, said: Vec::new(), is_stopped, is_told };
            watched.outcome(Ok(ExitStatus::default()))
        };
        let is_result = |outcome| matches!(outcome, Performance::Result(_));
        assert!(is_result(outcome(false, false, false)));
        // Steady and precise: the study ended it early.
        assert!(is_result(outcome(true, true, false)));
        assert_eq!(outcome(true, false, false), Performance::Failed(CUT_SHORT.to_owned()));
        // Ctrl-C in a terminal ends both.
        assert_eq!(outcome(true, false, true), Performance::Aborted);
    }

    #[test]
    fn each_new_file_is_made_once() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("f");
        let with = |files, bytes| Setting { files, file_bytes: Some(bytes), ..Setting::default() };
        let settings = [with(1, 100), with(1, 100), with(2, 50), Setting::default()];
        assert_eq!(bytes_to_make(&target, settings.iter()), 200);
        fs::write(&target, [0; 100]).expect("written");
        assert_eq!(bytes_to_make(&target, settings.iter()), 100);
        fs::write(&target, [0; 99]).expect("written");
        assert_eq!(bytes_to_make(&target, settings.iter()), 200);
        // Room beside the target: what is there of another size gives back what it has.
        assert_eq!(bytes_beside(&target, settings.iter()), 100);
        let larger = [with(2, 1 << 20), with(1, 1 << 20)];
        assert_eq!(bytes_beside(&target, larger.iter()), 2 << 20);
        let part = fs::File::create(folder.path().join("f.1of2")).expect("a file");
        io::Write::write_all(&mut &part, &vec![7; 1 << 19]).expect("written");
        part.sync_all().expect("on the medium");
        let left = (2 << 20) - part.metadata().expect("it is there").blocks() * 512;
        assert_eq!(bytes_beside(&target, larger.iter()), left);
        assert!(left < 2 << 20, "{left}");
        // What grows again is found once, in its largest size.
        let sizes = [with(2, 1 << 20), with(2, 1 << 22), with(2, 1 << 21)];
        assert_eq!(bytes_to_find(&target, sizes.iter()), left + (6 << 20));
        let endless = [with(1, u64::MAX), with(2, u64::MAX)];
        assert_eq!(bytes_to_find(&target, endless.iter()), u64::MAX);
    }

    #[test]
    fn a_second_counts_once_and_only_while_it_is_measured() {
        let mut series = Series::default();
        for tenth in 0..400_u32 {
            let seconds = f64::from(tenth) / 10.0;
            let wobble = f64::from(tenth * 37 % 11);
            series.add(&json!({ "phase": "warmup", "phase_elapsed_s": seconds, "iops": 1.0 }));
            series.add(&json!({
                "phase": "measuring", "phase_elapsed_s": seconds, "iops": 1000.0 + wobble,
                "latency_mean_us": 8000.0 - wobble,
            }));
            assert!(tenth > 300 || !series.says_enough(), "after {tenth} tenths of a second");
        }
        assert_eq!((series.iops.len(), series.latency.len()), (39, 39));
    }
}
