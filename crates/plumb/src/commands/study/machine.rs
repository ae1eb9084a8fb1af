//! The machine that a study is measured on: looked at before, compared when it goes on and at the end.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use jiff::Timestamp;
use plumb_io::system_tree::SystemTree;
use plumb_study::environment::{self, Level, differences};
use plumb_study::preflight::{self, Asked, Check, Plan, Sample, Target, Verdict};
use plumb_study::study::Device;
use serde_json::{Value, json};

use crate::commands::version;

/// How long traffic and processors are watched.
const WATCHED: Duration = Duration::from_secs(1);

/// How long programs that are asked have, so that all is told within two seconds.
const ANSWERED: Duration = Duration::from_millis(700);

/// Every check of the preflight on a target, after `watched` of watching.
pub(in crate::commands) fn look(
    tree: &SystemTree,
    path: &Path,
    plan: Plan,
    watched: Duration,
) -> io::Result<Vec<Check>> {
    let target = Target::find(tree, path, plan)?;
    // They read from the disks: that is not to be taken for the load of others.
    let said = Asked::about(tree, &target).until(Instant::now() + ANSWERED);
    let before = Sample::take(tree);
    thread::sleep(watched);
    let after = Sample::take(tree);
    Ok(preflight::check(tree, &target, (&before, &after), &said))
}

/// The same for as long as a person waits.
pub(in crate::commands) fn look_for_a_second(
    tree: &SystemTree,
    path: &Path,
    plan: Plan,
) -> io::Result<Vec<Check>> {
    look(tree, path, plan, WATCHED)
}

/// All verdicts, as documents hold them.
pub(in crate::commands) fn verdicts(checks: &[Check], accepted: &[String]) -> Value {
    json!({
        "verdict": preflight::worst(checks, accepted).keyword(),
        "accepted": accepted,
        "checks": checks.iter().map(Check::to_json).collect::<Vec<_>>(),
    })
}

/// Where nobody looked, and why.
pub(in crate::commands) fn not_looked(why: &str) -> Value {
    json!({
        "verdict": Verdict::Unknown.keyword(), "accepted": [], "checks": [], "absent": why,
    })
}

/// The environment of a study now, without a preflight; of a simulated device there is none.
pub(super) fn environment(target: &Path, device: &Device) -> Value {
    match device {
        Device::Simulated(_) => json!({ "simulated": true }),
        Device::Real => {
            let now = Timestamp::now().to_string();
            environment::record(
                &SystemTree::default(),
                &version::tool(),
                &[target.to_owned()],
                &now,
            )
        }
    }
}

/// What of the environment is not as it was: what forbids going on, and what is only told. The file that a study
/// makes for itself is none of both.
pub(super) fn changes(was: &Value, is: &Value) -> (Vec<String>, Vec<String>) {
    let found = differences(was, is).into_iter();
    let told = found.filter(|found| matches!(found.level, Level::Hardware | Level::Label));
    let (forbids, told): (Vec<_>, Vec<_>) = told.partition(|found| found.level == Level::Hardware);
    let texts =
        |list: Vec<environment::Difference>| list.into_iter().map(|found| found.text).collect();
    (texts(forbids), texts(told))
}

/// Bytes per second that files are assumed to be written with where nothing was tried.
const ASSUMED_PER_S: f64 = 500e6;
/// Files smaller than this are written before a probe is.
const WORTH_A_PROBE: u64 = 256 << 20;
/// What a probe writes at most, and for how long.
const PROBE_BYTES: u64 = 128 << 20;
const PROBE_TIME: Duration = Duration::from_secs(2);
/// A probe takes no more of the free space than one part in this many.
const PROBE_SHARE: u64 = 20;

/// How fast files are written, and how that is known.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::commands) struct Writing {
    pub(in crate::commands) bytes_per_s: f64,
    pub(in crate::commands) is_measured: bool,
}

impl Writing {
    /// Where nothing was tried.
    pub(in crate::commands) const ASSUMED: Self =
        Self { bytes_per_s: ASSUMED_PER_S, is_measured: false };

    /// Seconds that `bytes` take.
    pub(in crate::commands) fn seconds(self, bytes: u64) -> f64 {
        bytes as f64 / self.bytes_per_s
    }

    /// How it is known, in words.
    pub(in crate::commands) fn words(self) -> String {
        let how = if self.is_measured { "measured by a probe" } else { "assumed" };
        format!("{:.0} MB/s, {how}", self.bytes_per_s / 1e6)
    }
}

/// How fast the file system that is to hold `target` takes `bytes` (method, 4.1): measured for up to two seconds on
/// a file without a name where that many bytes are worth it, assumed otherwise.
pub(in crate::commands) fn writing(target: &Path, bytes: u64) -> Writing {
    if bytes < WORTH_A_PROBE {
        return Writing::ASSUMED;
    }
    let folder = target.parent().filter(|folder| !folder.as_os_str().is_empty());
    match probe(folder.unwrap_or(Path::new("."))) {
        Ok(Some(bytes_per_s)) => Writing { bytes_per_s, is_measured: true },
        // Where nothing can be written the run itself says why.
        Ok(None) | Err(_) => Writing::ASSUMED,
    }
}

fn probe(folder: &Path) -> io::Result<Option<f64>> {
    let space = rustix::fs::statvfs(folder)?;
    let most = (space.f_bavail.saturating_mul(space.f_frsize) / PROBE_SHARE).min(PROBE_BYTES);
    let mut file = nameless(folder)?;
    // Content that does not compress: every word another one.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut block = vec![0_u8; 1 << 20];
    for word in block.chunks_exact_mut(8) {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        word.copy_from_slice(&state.to_le_bytes());
    }
    let began = Instant::now();
    let mut written = 0;
    while written + (1 << 20) <= most && began.elapsed() < PROBE_TIME {
        file.write_all(&block)?;
        written += 1 << 20;
        // What only the page cache has is not written.
        if written.is_multiple_of(16 << 20) {
            file.sync_data()?;
        }
    }
    file.sync_data()?;
    let took = began.elapsed().as_secs_f64();
    Ok((written > 0 && took > 0.0).then(|| written as f64 / took))
}

/// A file that is gone when it is closed, whatever becomes of us.
fn nameless(folder: &Path) -> io::Result<File> {
    let flags = rustix::fs::OFlags::TMPFILE.bits().cast_signed();
    let opened = OpenOptions::new().write(true).custom_flags(flags).mode(0o600).open(folder);
    opened.or_else(|_| {
        // Not every file system has such files.
        let path = folder.join(format!(".plumb-probe-{}", std::process::id()));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path)?;
        fs::remove_file(&path)?;
        Ok(file)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_measures_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let target = folder.path().join("f");
        assert_eq!(writing(&target, 1 << 20), Writing::ASSUMED);
        let found = writing(&target, 1 << 40);
        assert!(found.is_measured && found.bytes_per_s > 0.0, "{found:?}");
        assert_eq!(fs::read_dir(folder.path()).expect("a list").count(), 0);
        assert_eq!(writing(&folder.path().join("none/f"), 1 << 40), Writing::ASSUMED);
        assert!(found.words().ends_with("measured by a probe"), "{}", found.words());
    }

    #[test]
    fn hardware_forbids_what_a_kernel_only_tells() {
        let environment = |model: &str, kernel: &str, size: u64| {
            json!({ "groups": {
                "cpu": { "model": model }, "kernel": { "release": kernel },
                "target": [{ "size_bytes": size }],
            } })
        };
        let was = environment("a", "6.1", 1);
        assert_eq!(changes(&was, &environment("a", "6.1", 2)), (Vec::new(), Vec::new()));
        let (forbids, told) = changes(&was, &environment("b", "6.2", 1));
        assert_eq!(forbids, ["processor: a and b"]);
        assert_eq!(told, ["kernel: 6.1 and 6.2"]);
    }
}
