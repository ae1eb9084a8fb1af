//! What the program asks the kernel for, call by call, against the cases of the specification (6.5, 6.6): the kernel's
//! tracepoints of the calls write it down.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::Value;

use crate::place::Place;
use crate::program::{outcome, path, repository};

const TRACING: &str = "/sys/kernel/tracing";
const CALLS: [&str; 2] = ["sys_enter_pread64", "sys_enter_pwrite64"];

/// An instance of the tracer for this test alone.
struct Tracer(PathBuf);

impl Tracer {
    /// `Err` says what is missing.
    fn new() -> Result<Self, String> {
        let root = Path::new(TRACING);
        if !root.join("events/syscalls").exists() {
            let mut mount = Command::new("mount");
            // Mounted as every reader of traces finds it; without the right it stays as it was.
            let _ = mount.args(["-t", "tracefs", "tracefs", TRACING]).output();
        }
        if !root.join("events/syscalls").exists() {
            return Err(format!("{TRACING} shows no system calls"));
        }
        let folder = root.join(format!("instances/plumb-test-{}", std::process::id()));
        fs::create_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
        let tracer = Self(folder);
        // What came first is kept; threads of who is traced are traced.
        tracer.set("options/overwrite", "0");
        tracer.set("options/event-fork", "1");
        for call in CALLS {
            tracer.set(&format!("events/syscalls/{call}/enable"), "1");
        }
        Ok(tracer)
    }

    fn set(&self, file: &str, value: &str) {
        fs::write(self.0.join(file), value).expect(file);
    }

    /// The calls of a run, by thread: whether it writes, bytes, offset.
    fn calls(&self, place: &Place, line: &str) -> BTreeMap<String, Vec<(bool, u64, u64)>> {
        self.set("trace", "");
        let pids = self.0.join("set_event_pid");
        let script = format!("echo $$ > {}; exec {} {line}", pids.display(), path().display());
        let mut shell = Command::new("sh");
        let told = outcome(shell.args(["-c", &script]).current_dir(place.folder()));
        assert_eq!(told.status, 0, "{line}: {}", told.stderr);
        let trace = fs::read_to_string(self.0.join("trace")).expect("the trace");
        let mut calls: BTreeMap<String, Vec<(bool, u64, u64)>> = BTreeMap::new();
        for call in trace.lines().filter(|line| !line.starts_with('#')) {
            let is_write = call.contains(" sys_pwrite64(");
            if !is_write && !call.contains(" sys_pread64(") {
                continue;
            }
            let thread = call.split(" [").next().unwrap_or_default().trim().to_owned();
            let field = |name: &str| {
                let (_, rest) = call.split_once(name)?;
                let digits = rest.split([',', ')']).next()?.trim();
                u64::from_str_radix(digits.strip_prefix("0x").unwrap_or(digits), 16).ok()
            };
            let (bytes, offset) = (field("count:"), field("pos:"));
            let numbers = bytes.zip(offset).unwrap_or_else(|| panic!("no call: {call}"));
            calls.entry(thread).or_default().push((is_write, numbers.0, numbers.1));
        }
        calls
    }
}

impl Drop for Tracer {
    fn drop(&mut self) {
        // An instance is a folder of files that cannot be removed one by one.
        let _ = fs::remove_dir(&self.0);
    }
}

/// Bytes of `-b`.
fn block_size(arguments: &[&str]) -> u64 {
    let given = arguments.iter().find_map(|word| word.strip_prefix("-b")).expect("-b");
    match given.strip_suffix('K') {
        Some(kib) => kib.parse::<u64>().expect("a number") << 10,
        None => given.parse().expect("a number"),
    }
}

#[test]
fn the_program_asks_for_the_offsets_of_the_specification() {
    let name = "the_program_asks_for_the_offsets_of_the_specification";
    let tracer = match Tracer::new() {
        Ok(tracer) => tracer,
        Err(why) => {
            println!("skipped {name}: {why}");
            return;
        }
    };
    let vectors = "crates/plumb-load/tests/data/conformance/semantics/vectors.json";
    let vectors = fs::read_to_string(repository().join(vectors)).expect("the cases");
    let vectors: Value = serde_json::from_str(&vectors).expect("JSON");
    let place = Place::new();
    let (mut seen, mut writes) = (0, 0);
    for case in vectors["offsets"].as_array().expect("cases") {
        let id = case["id"].as_str().expect("an id");
        let threads = case["threads"].as_array().expect("threads");
        let arguments: Vec<&str> =
            case["args"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
        // Those that fail and those with several requests are left to the conformance tests.
        let is_plain = threads.iter().all(|thread| thread.get("error").is_none());
        if !is_plain || arguments.contains(&"-p") {
            continue;
        }
        let size = case["target_size"].as_u64().expect("a size");
        let file = File::create(place.path("f.dat")).expect("a file");
        file.set_len(size).expect("room");
        let line = format!(
            "run --engine=sync -o1 -d1 -W0 -g400i --destroy f.dat {} f.dat",
            arguments.join(" ")
        );
        let calls = tracer.calls(&place, &line);
        // Beside I/O a thread reads some bytes of files of the system's.
        let block = block_size(&arguments);
        // Without -t only the first of the threads in the case runs.
        let count =
            if arguments.iter().any(|word| word.starts_with("-t")) { threads.len() } else { 1 };
        for thread in &threads[..count] {
            let types = thread["types"].as_str().unwrap_or_default().as_bytes();
            let wanted: Vec<(bool, u64)> = thread["offsets"]
                .as_array()
                .expect("offsets")
                .iter()
                .enumerate()
                .map(|(nth, offset)| {
                    (types.get(nth) == Some(&b'W'), offset.as_u64().expect("an offset"))
                })
                .collect();
            let matches = |calls: &&Vec<(bool, u64, u64)>| {
                let of_target = calls.iter().filter(|(_, bytes, _)| *bytes == block);
                let begin = of_target.take(wanted.len());
                begin.map(|(is_write, _, offset)| (*is_write, *offset)).eq(wanted.iter().copied())
            };
            let found = calls.values().filter(matches).count();
            assert_eq!(found, 1, "{id}: {line}\nwanted {wanted:?}\n{calls:#?}");
            writes += wanted.iter().filter(|(is_write, _)| *is_write).count();
        }
        seen += count;
    }
    assert!(seen >= 20 && writes >= 20, "{seen} threads, {writes} writes");
}
