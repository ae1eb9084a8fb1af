//! A folder for runs on real files: starting them, watching them, reading their results.

use std::fs::{self, File, Permissions};
use std::io::{BufRead, BufReader, Read, Seek};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};
use std::sync::OnceLock;

use rustix::fs::{CWD, FileType, Mode, OFlags, mknodat};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

use crate::program::{Outcome, outcome, path};

/// A folder that is gone after the test.
pub(crate) struct Place {
    folder: TempDir,
    /// Another program than the build's, and its folder.
    copy: Option<(TempDir, PathBuf)>,
}

impl Place {
    /// On the file system of the build, not in /tmp: that may lie in memory, where direct I/O is unlike a
    /// disk's.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        Self { folder, copy: None }
    }

    /// Where every user may read and write, with a program that all can reach: the build may lie in
    /// somebody's home.
    pub(crate) fn for_everybody() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let open = |path: &Path, mode| {
            fs::set_permissions(path, Permissions::from_mode(mode)).expect("a new mode");
        };
        open(folder.path(), 0o777);
        let tools = tempfile::tempdir().expect("a folder");
        open(tools.path(), 0o755);
        let program = tools.path().join("plumb");
        // By another process: a descriptor of ours, if it got into a child just now, would keep the
        // copy from being run (ETXTBSY).
        let copied = Command::new("cp").args([path(), &program]).status().expect("cp runs");
        assert!(copied.success(), "{copied}");
        open(&program, 0o755);
        Self { folder, copy: Some((tools, program)) }
    }

    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Writes a file that Plumb did not make.
    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        fs::write(self.path(name), bytes).expect("a file");
    }

    /// Makes a named pipe.
    pub(crate) fn pipe(&self, name: &str) {
        let mode = Mode::from_raw_mode(0o600);
        mknodat(CWD, self.path(name), FileType::Fifo, mode, 0).expect("a named pipe");
    }

    pub(crate) fn read(&self, name: &str) -> Vec<u8> {
        fs::read(self.path(name)).expect("a file")
    }

    /// What is in the folder.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = fs::read_dir(self.folder.path()).expect("the folder");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }

    /// `plumb run` with arguments that have no blanks in them, and no progress shown.
    pub(crate) fn command(&self, line: &str) -> Command {
        let program = self.copy.as_ref().map_or(path(), |(_, program)| program);
        self.program(program, &format!("run --progress-style=none {line}"))
    }

    /// Another program, or Plumb by another name.
    pub(crate) fn program(&self, program: &Path, line: &str) -> Command {
        let mut command = Command::new(program);
        command.current_dir(self.folder.path()).args(line.split_whitespace());
        command
    }

    pub(crate) fn run(&self, line: &str) -> Outcome {
        outcome(&mut self.command(line))
    }

    /// The result of a run that ends well.
    #[track_caller]
    pub(crate) fn json(&self, line: &str) -> Value {
        document(&self.run(&format!("--json {line}")).ends_with(0).stdout)
    }

    /// Does something for every case, all at once.
    pub(crate) fn each<T: Sync>(cases: &[T], act: impl Fn(&T) + Sync) {
        std::thread::scope(|scope| {
            let act = &act;
            let threads: Vec<_> = cases.iter().map(|case| scope.spawn(move || act(case))).collect();
            for thread in threads {
                thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
            }
        });
    }

    /// Starts a run whose progress can be followed.
    pub(crate) fn start(&self, line: &str) -> Running {
        Running::new(self.program(path(), &format!("run --progress-style=json {line}")))
    }
}

/// Whether this machine can do what a line asks for; says that `test` skips it otherwise.
pub(crate) fn can(test: &str, line: &str) -> bool {
    /// What a line needs when it has one of these words, how to find out, and what came of it.
    type Need = (&'static [&'static str], &'static str, OnceLock<bool>);
    static NEEDS: [Need; 3] = [
        (&["-u", "-un", "--engine=uring", "--engine=nop"], "-u", OnceLock::new()),
        (&["--engine=aio"], "--engine=aio", OnceLock::new()),
        (&["-S", "-Su", "-Sh", "-Suw", "-h"], "-Su", OnceLock::new()),
    ];
    NEEDS.iter().all(|(words, probe, works)| {
        let needs = |word: &str| {
            let sign = word.trim_end_matches(|c: char| c.is_ascii_digit() || c == 'p');
            words.contains(&word) || (words[0] == "-u" && words.contains(&sign))
        };
        if !line.split_whitespace().any(needs) {
            return true;
        }
        let works = works.get_or_init(|| {
            let place = Place::new();
            place.write("f.dat", [1; 8192]);
            place.run(&format!("{probe} -b4K -o2 -d0 -W0 f.dat")).status == 0
        });
        if !works {
            println!("skipped {test}: {probe} does not work here, which {line} needs");
        }
        *works
    })
}

/// A run that lasts.
pub(crate) struct Running {
    child: Child,
    stdout: File,
    stderr: BufReader<ChildStderr>,
    said: String,
}

/// A run that is over.
#[derive(Debug)]
pub(crate) struct Ended {
    pub(crate) status: ExitStatus,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Running {
    pub(crate) fn new(mut command: Command) -> Self {
        let stdout = tempfile::tempfile().expect("a file for standard output");
        command
            .stdin(Stdio::null())
            .stdout(stdout.try_clone().expect("one more descriptor"))
            .stderr(Stdio::piped())
            .env("LC_ALL", "C")
            .env("TZ", "UTC");
        let mut child = command.spawn().expect("the program can be started");
        let stderr = BufReader::new(child.stderr.take().expect("a pipe"));
        Self { child, stdout, stderr, said: String::new() }
    }

    /// Waits until a line on standard error has this in it.
    #[track_caller]
    pub(crate) fn until(mut self, word: &str) -> Self {
        loop {
            let begin = self.said.len();
            let read = self.stderr.read_line(&mut self.said).expect("standard error can be read");
            assert!(read > 0, "it ended before {word}: {}", self.said);
            if self.said[begin..].contains(word) {
                return self;
            }
        }
    }

    /// Waits for a phase to be reported: creating, preparing, warmup, measuring or cooldown.
    #[track_caller]
    pub(crate) fn phase(self, phase: &str) -> Self {
        self.until(&format!("\"phase\":\"{phase}\""))
    }

    pub(crate) fn id(&self) -> u32 {
        self.child.id()
    }

    pub(crate) fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).expect("it still runs");
    }

    /// Ctrl-C, and what comes of it.
    pub(crate) fn interrupt(self) -> Ended {
        self.signal(Signal::INT);
        self.end()
    }

    /// Waits for its end.
    pub(crate) fn end(mut self) -> Ended {
        self.stderr.read_to_string(&mut self.said).expect("standard error can be read");
        let status = self.child.wait().expect("it ends");
        let mut stdout = String::new();
        self.stdout.rewind().expect("a file");
        self.stdout.read_to_string(&mut stdout).expect("it prints UTF-8");
        Ended { status, stdout, stderr: self.said }
    }

    /// The flags of its descriptors for a file.
    pub(crate) fn open_flags(&self, file: &Path) -> Vec<OFlags> {
        let process = PathBuf::from(format!("/proc/{}", self.id()));
        let descriptors = fs::read_dir(process.join("fd")).expect("the process is there");
        let mut found = Vec::new();
        for descriptor in descriptors {
            // A descriptor may be closed meanwhile.
            let Ok(descriptor) = descriptor else { continue };
            if fs::read_link(descriptor.path()).is_ok_and(|target| target == file) {
                let info = process.join("fdinfo").join(descriptor.file_name());
                let Ok(info) = fs::read_to_string(info) else { continue };
                let flags = info.lines().find_map(|line| line.strip_prefix("flags:"));
                let flags = flags.expect("every descriptor has flags").trim();
                let flags = u32::from_str_radix(flags, 8).expect("an octal number");
                found.push(OFlags::from_bits_retain(flags));
            }
        }
        found
    }
}

impl Ended {
    /// Fails unless it ended by itself with this status.
    #[track_caller]
    pub(crate) fn with(self, status: i32) -> Self {
        assert_eq!(self.status.code(), Some(status), "{self:#?}");
        self
    }

    /// The result, when it is a JSON document.
    #[track_caller]
    pub(crate) fn json(&self) -> Value {
        document(&self.stdout)
    }
}

/// A JSON document and nothing else.
#[track_caller]
pub(crate) fn document(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

/// A count in a JSON result, by its path: `/total/io_count`.
#[track_caller]
pub(crate) fn count(result: &Value, at: &str) -> u64 {
    let value = result.pointer(at).and_then(Value::as_u64);
    value.unwrap_or_else(|| panic!("no count at {at}: {result:#}"))
}

/// A number in a JSON result.
#[track_caller]
pub(crate) fn number(result: &Value, at: &str) -> f64 {
    let value = result.pointer(at).and_then(Value::as_f64);
    value.unwrap_or_else(|| panic!("no number at {at}: {result:#}"))
}

/// The words of a list in a JSON result.
#[track_caller]
pub(crate) fn words<'a>(result: &'a Value, at: &str) -> Vec<&'a str> {
    let list = result.pointer(at).and_then(Value::as_array);
    let list = list.unwrap_or_else(|| panic!("no list at {at}: {result:#}"));
    list.iter().map(|word| word.as_str().expect("a word")).collect()
}

/// Bytes that neither repeat nor compress, the same every time.
pub(crate) fn noise(size: usize) -> Vec<u8> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut bytes = Vec::with_capacity(size + 8);
    while bytes.len() < size {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        bytes.extend_from_slice(&state.to_le_bytes());
    }
    bytes.truncate(size);
    bytes
}
