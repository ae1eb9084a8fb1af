//! What programs of the machine say of its disks, volumes, pools and timers: the kernel's files do not tell it.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plumb_io::system_tree::SystemTree;

use super::Target;

/// In a faked tree, where a file holds what each program would have printed: its name and what it is asked about,
/// such as `smartctl sda`.
const FAKED: &str = "/said";
/// Bytes of an answer that are read.
const ANSWER_MOST: u64 = 4 << 20;
/// Where programs of the administrator are, beside `PATH`.
const FOLDERS: &[&str] = &["/usr/sbin", "/sbin", "/usr/bin", "/bin", "/usr/local/sbin"];

/// A program and what it is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Question {
    /// Name and subject, which the answer goes by.
    key: String,
    program: &'static str,
    arguments: Vec<String>,
}

impl Question {
    fn new(program: &'static str, subject: &str, arguments: &[&str]) -> Self {
        let key =
            if subject.is_empty() { program.to_owned() } else { format!("{program} {subject}") };
        Self { key, program, arguments: arguments.iter().map(|text| (*text).to_owned()).collect() }
    }
}

/// What is worth asking about a target.
fn questions(tree: &SystemTree, target: &Target) -> Vec<Question> {
    let mut all = Vec::new();
    for disk in target.disks(tree) {
        if disk.name.starts_with("sd") || disk.name.starts_with("hd") {
            let node = format!("/dev/{}", disk.name);
            // A drive that sleeps is not woken.
            let asked = ["-j", "-H", "-A", "-c", "-n", "standby", &node];
            all.push(Question::new("smartctl", &disk.name, &asked));
        }
    }
    let uuid = |device: &plumb_io::block_stack::BlockDevice| {
        tree.text(format!("/sys/dev/block/{}/dm/uuid", device.number)).unwrap_or_default()
    };
    let uuids: Vec<String> = target.devices(tree).iter().map(uuid).collect();
    if uuids.iter().any(|uuid| uuid.starts_with("LVM-")) {
        let fields = "lv_dm_path,lv_name,vg_name,pool_lv,origin,lv_attr,lv_health_status,copy_percent,data_percent,\
                      metadata_percent";
        let asked = ["-a", "--readonly", "--reportformat", "json", "--nosuffix", "-o", fields];
        all.push(Question::new("lvs", "", &asked));
    }
    let is_mapped = |device: &plumb_io::block_stack::BlockDevice| {
        tree.path(format!("/sys/dev/block/{}/dm/name", device.number)).exists()
    };
    if target.devices(tree).iter().any(is_mapped) {
        all.push(Question::new("dmsetup", "status", &["status"]));
    }
    if uuids.iter().any(|uuid| uuid.starts_with("mpath-")) {
        all.push(Question::new("multipath", "", &["-ll"]));
    }
    if let Some(mount) = &target.stack.mount {
        let pool = mount.source.split('/').next().unwrap_or_default();
        // No name begins with a dash, which would be an option.
        if mount.kind == "zfs" && !pool.starts_with('-') {
            let listed = ["list", "-Hp", "-o", "health,fragmentation,capacity", pool];
            all.push(Question::new("zpool", "list", &listed));
            all.push(Question::new("zpool", "status", &["status", pool]));
            let asked = ["get", "-Hp", "-o", "value", "recordsize", &mount.source];
            all.push(Question::new("zfs", "recordsize", &asked));
        }
        if mount.kind == "btrfs" {
            let folder = mount.point.to_string_lossy();
            all.push(Question::new("btrfs", "scrub", &["scrub", "status", &folder]));
        }
    }
    all.push(Question::new("systemctl", "timers", &["list-timers", "--output=json", "--no-pager"]));
    all
}

/// What was said, by program and subject.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Answers(BTreeMap<String, String>);

impl Answers {
    /// What a program printed; `None` where it is not there, printed nothing, or took too long.
    pub(super) fn of(&self, key: &str) -> Option<&str> {
        self.0.get(key).map(String::as_str).filter(|text| !text.trim().is_empty())
    }

    /// The same as JSON.
    pub(super) fn json(&self, key: &str) -> Option<serde_json::Value> {
        serde_json::from_str(self.of(key)?).ok()
    }
}

/// Programs that were asked and may not have answered yet.
#[derive(Debug, Default)]
pub struct Asked {
    running: Vec<(String, Child, JoinHandle<String>)>,
    answers: Answers,
}

impl Asked {
    /// Asks whatever has something to say about a target; in a faked tree, files that hold the answers.
    #[must_use]
    pub fn about(tree: &SystemTree, target: &Target) -> Self {
        let questions = questions(tree, target);
        if tree.is_real() {
            let folders = std::env::var_os("PATH").unwrap_or_default();
            return Self::of(&questions, &folders);
        }
        let mut asked = Self::default();
        for question in questions {
            if let Some(text) = tree.text(format!("{FAKED}/{}", question.key)) {
                asked.answers.0.insert(question.key, text);
            }
        }
        asked
    }

    fn of(questions: &[Question], folders: &OsString) -> Self {
        let mut asked = Self::default();
        for question in questions {
            let Some(program) = found(question.program, folders) else { continue };
            let child = Command::new(program)
                .args(&question.arguments)
                .env("LC_ALL", "C")
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::null())
                .spawn();
            let Ok(mut child) = child else { continue };
            let Some(output) = child.stdout.take() else { continue };
            let reader = thread::spawn(move || {
                let mut bytes = Vec::new();
                // What was read before an error is no answer of a program that ended well; it is judged like one.
                let _ = output.take(ANSWER_MOST).read_to_end(&mut bytes);
                String::from_utf8_lossy(&bytes).into_owned()
            });
            asked.running.push((question.key.clone(), child, reader));
        }
        asked
    }

    /// What was said until `deadline`; who has not ended by then is ended, and has said nothing.
    #[must_use]
    pub fn until(mut self, deadline: Instant) -> Answers {
        for (key, mut child, reader) in self.running {
            while !reader.is_finished() && Instant::now() < deadline {
                thread::sleep(Duration::from_millis(5));
            }
            let is_done = reader.is_finished();
            if !is_done {
                // It may have ended meanwhile.
                let _ = child.kill();
            }
            // Exit statuses are no help: smartctl sets bits for what it found.
            let _ = child.wait();
            // A child of it may hold the pipe open: such a reader is left to itself.
            if is_done && let Ok(text) = reader.join() {
                self.answers.0.insert(key, text);
            }
        }
        self.answers
    }
}

/// A program's place.
fn found(program: &str, folders: &OsString) -> Option<PathBuf> {
    let beside = FOLDERS.iter().map(PathBuf::from);
    std::env::split_paths(folders)
        .filter(|folder| folder.is_absolute())
        .chain(beside)
        .map(|folder| folder.join(program))
        .find(|path: &PathBuf| Path::is_file(path))
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn programs_are_run_and_ended_when_they_take_too_long() {
        let folder = tempfile::tempdir().expect("a folder");
        for (name, script) in [
            ("quick", "#!/bin/sh\necho \"$LC_ALL $1\"\nexit 4\n"),
            ("slow", "#!/bin/sh\necho early\nexec sleep 30\n"),
        ] {
            let path = folder.path().join(name);
            std::fs::write(&path, script).expect("a script");
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755))
                .expect("a mode");
        }
        let questions = [
            Question::new("slow", "", &[]),
            Question::new("quick", "x", &["-n"]),
            Question::new("nowhere-to-be-found", "", &[]),
        ];
        let start = Instant::now();
        let asked = Asked::of(&questions, &folder.path().as_os_str().to_owned());
        let answers = asked.until(start + Duration::from_millis(500));
        assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
        assert_eq!(answers.of("quick x"), Some("C -n\n"));
        assert_eq!(answers.of("slow"), None);
        assert_eq!(answers.of("nowhere-to-be-found"), None);
    }
}
