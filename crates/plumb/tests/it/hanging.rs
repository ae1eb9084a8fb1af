//! A disk that hangs, with the kernel's own rings (section 18: device hangs).

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::rights::{Loop, is_root};
use crate::sealed::{self, become_the_program};
use crate::spaces::{Place, events};

/// A file system on a loop device whose writes stand still when it is told to.
struct Frozen {
    at: PathBuf,
    _below: Loop,
}

fn run(program: &str, arguments: &[&str]) -> bool {
    Command::new(program).args(arguments).output().is_ok_and(|output| output.status.success())
}

fn text(path: &Path) -> &str {
    path.to_str().expect("plain")
}

impl Frozen {
    /// `None` where loop devices and mounts are not to be had.
    fn new(place: &Place) -> Option<Self> {
        let (file, at) = (place.file("below.img"), place.file("below"));
        std::fs::File::create(&file).and_then(|file| file.set_len(400 << 20)).expect("sparse");
        std::fs::create_dir(&at).expect("a folder");
        let below = Loop::attach(&file).filter(|_| is_root())?;
        let made =
            run("mkfs.ext4", &["-q", &below.path()]) && run("mount", &[&below.path(), text(&at)]);
        made.then_some(Self { at, _below: below })
    }

    fn freeze(&self) {
        assert!(run("fsfreeze", &["--freeze", text(&self.at)]), "ext4 can be frozen");
    }

    fn thaw(&self) {
        run("fsfreeze", &["--unfreeze", text(&self.at)]);
    }
}

impl Drop for Frozen {
    fn drop(&mut self) {
        self.thaw();
        run("umount", &["-l", text(&self.at)]);
    }
}

/// A load that does not outlive its test, which may fail while the load's disk hangs: until that is over a killed one does not end.
struct Load<'a>(Child, &'a Frozen);

impl Drop for Load<'_> {
    fn drop(&mut self) {
        self.1.thaw();
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The others go on beside it, their flushes as well: each I/O that the kernel cannot start at once has a worker of its own.
#[test]
fn a_disk_that_hangs_is_left_out_and_the_load_goes_on() {
    become_the_program();
    goes_on("a_disk_that_hangs_is_left_out_and_the_load_goes_on", "");
}

/// Nor do they wait for it where calls are all that there is, as in most containers: each has a thread of its own.
#[test]
fn without_io_uring_a_disk_that_hangs_is_left_out_too() {
    become_the_program();
    goes_on("without_io_uring_a_disk_that_hangs_is_left_out_too", "ring");
}

fn goes_on(name: &str, denied: &str) {
    let place = Place::new();
    let Some(below) = Frozen::new(&place) else {
        let why = "no loop device with a file system here: it needs root";
        println!("skipped {name}: {why}");
        return;
    };
    let file = below.at.join("x");
    std::fs::File::create(&file).and_then(|file| file.set_len(160 << 20)).expect("sparse");
    let disk = Loop::attach(&file).expect("another loop device");
    let line = format!(
        "pool new tank --file-size 160M --slab 16M --ssd a.img --ssd {} --ssd c.img",
        disk.path()
    );
    place.plumb(&line).succeeds_quietly();
    place.plumb("pool set tank --time-out 3").succeeds_quietly();
    place.plumb("vdisk new tank/two --size 64M --resiliency mirror2").succeeds_quietly();
    let line = "-b4K -r -w50 -o8 -t1 -d20 -W0 -D1000 --verify crc32c --json space:tank/two";
    let told = place.file("stdout");
    let mut command = sealed::command(&format!("hanging::{name}"), denied, line);
    place.at_home(&mut command);
    command.stdout(Stdio::null()).stderr(Stdio::null());
    let mut load = Load(command.spawn().expect("it starts"), &below);
    std::thread::sleep(Duration::from_millis(500));
    let ended = load.0.try_wait().expect("asked").and_then(|status| status.code());
    if ended == Some(sealed::NO_FILTERS) {
        println!("skipped {name}: this kernel has no seccomp filters");
        return;
    }
    let began = Instant::now();
    let until = |what: &str, is_so: &dyn Fn() -> bool| {
        while !is_so() {
            assert!(began.elapsed().as_secs() < 120, "never {what}: {:?}", events(&place));
            std::thread::sleep(Duration::from_millis(50));
        }
    };
    until("begun", &|| place.json("space perf tank")["running"] == true);
    std::thread::sleep(Duration::from_secs(2));
    below.freeze();
    let is_told = |word: &str| events(&place).iter().any(|event| event == word);
    until("without it", &|| is_told("disk-lost") || is_told("halted"));
    // Longer than a disk may take to answer.
    std::thread::sleep(Duration::from_secs(5));
    below.thaw();
    let status = load.0.wait().expect("it ends");
    let events = events(&place);
    let result: serde_json::Value =
        serde_json::from_slice(&std::fs::read(&told).expect("its result")).expect("JSON");
    assert!(status.success(), "{status}: {events:?}");
    assert!(!events.iter().any(|event| event == "halted"), "{events:?}");
    assert_eq!(events.iter().filter(|event| *event == "disk-lost").count(), 1, "{events:?}");
    let verify = &result["time_spans"][0]["verify"];
    assert_eq!(verify["mismatches"], 0, "{verify}");
    place.plumb("space job tank --wait").ends_with(0);
    assert_eq!(place.json("space scan tank")["unrecoverable"], 0);
}
