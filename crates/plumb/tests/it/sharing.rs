//! Who has a pool and who wants it: optimizations that a load is asked for within limits, and commands that give way to a load.

use std::io::Write;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::spaces::Place;

/// A pool with two tiers and 36 MiB on them; what is hot is on the Capacity tier.
fn with_hot_ones() -> Place {
    let place = Place::new();
    let disks = "--ssd a.img --ssd b.img --hdd c.img --hdd d.img";
    place.plumb(&format!("pool new tank --file-size 128M {disks}")).succeeds_quietly();
    let line = "vdisk new tank/data --ssd-tier 16M --hdd-tier 32M --resiliency mirror2";
    place.plumb(line).succeeds_quietly();
    place.plumb("run -b1M -s -w100 -o4 -t1 -d1 -W0 -f36M space:tank/data").ends_with(0);
    // However slow the machine is: what is hot has to be worth its move.
    for _ in 0..20 {
        place.plumb("run -b4K -r -w0 -o8 -t1 -d1 -W0 -B32M -f36M space:tank/data").ends_with(0);
        let advice = place.json("space optimize tank/data --advise");
        if advice["up"].as_u64() >= Some(3) {
            return place;
        }
    }
    panic!("nothing becomes hot");
}

/// Something that goes on while others look at it; killed when nobody looks any more.
struct Running(Option<Child>);

impl Running {
    /// Waits until its pool says that it runs: told by a file, once a second. Whoever opened the pool to look would keep others
    /// from it.
    fn start(place: &Place, line: &str) -> Self {
        let mut command: Command = place.command(line);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let own = Self(Some(command.spawn().expect("it starts")));
        wait_for("it runs", || place.json("space perf tank")["running"] == true);
        own
    }

    fn process(&self) -> Pid {
        Pid::from_child(self.0.as_ref().expect("it was not waited for"))
    }

    fn ended(mut self) -> Output {
        self.0.take().expect("it was not waited for").wait_with_output().expect("it ends")
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(mut child) = self.0.take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[track_caller]
fn wait_for(what: &str, mut is: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is() {
        assert!(began.elapsed() < Duration::from_secs(30), "{what}");
        std::thread::sleep(Duration::from_millis(100));
    }
}

fn reports(place: &Place) -> usize {
    let list = place.json("space report tank/data --list");
    list["reports"].as_array().map_or(0, Vec::len)
}

/// A load on what is hot.
fn load_of(seconds: u32) -> String {
    format!("run -d{seconds} -b4K -r -w0 -o4 -t1 -W0 -B32M -f36M space:tank/data")
}

/// 10.1, 10.5: budgets and limits bound the optimization of whoever has the pool, and its report says them.
#[test]
fn a_load_optimizes_within_the_limits_that_it_was_asked_for() {
    let place = with_hot_ones();
    let load = Running::start(&place, &load_of(120));
    let limits = "--run-limit 77 --movers 2 --max-promoted 2M --max-iops 5000 --priority normal --reserve 10";
    let asked = place.json(&format!("space optimize tank/data {limits}"));
    assert_eq!(asked["asked"], true, "{asked}");
    wait_for("it ends", || reports(&place) == 1);
    let last = place.json("space report tank/data --last");
    let moves = &last["moves"];
    assert_eq!((&moves["up"], &moves["stop"]), (&1.into(), &"budget".into()), "{last}");
    let told = |name: &str| last["moves"]["limits"][name].clone();
    assert_eq!((told("run_limit_s"), told("movers")), (77.0.into(), 2.into()), "{last}");
    assert_eq!((told("promoted_bytes"), told("moved_bytes")), ((2 << 20).into(), Value::Null));
    assert_eq!((told("ios_per_s"), told("priority")), (5000.into(), "normal".into()));
    assert!(told("reserve_bytes").as_u64().is_some_and(|bytes| bytes >= 1 << 20), "{last}");
    let text = place.plumb("space report tank/data --last").succeeds_quietly().stdout;
    assert!(text.contains("2MiB written to the Performance tier"), "{text}");

    // A trickle stays one: its time and rate are its own, its budget is what was asked for.
    place.plumb("space optimize tank/data --mode continuous --runs 1 --max-moved 3M").ends_with(0);
    wait_for("it ends", || reports(&place) == 2);
    let last = place.json("space report tank/data --last");
    let told = &last["moves"]["limits"];
    assert_eq!((&told["run_limit_s"], &told["moved_bytes"]), (&900.0.into(), &(3 << 20).into()));
    assert!(told["bytes_per_s"].as_u64().is_some_and(|rate| rate < 1 << 30), "{last}");
    let moved = last["moves"]["up"].as_u64().zip(last["moves"]["down"].as_u64());
    assert!(moved.is_some_and(|(up, down)| up + down <= 3), "{last}");

    // What is not understood is refused by its name, and nothing moves.
    let file =
        std::fs::File::options().create(true).append(true).open(place.file("pools/tank.asks"));
    let foreign = "optimize 0 within 1 00000000000000ff max-moved=4194304 colour=7 end\n\
                   optimize 0 within 2 00000000000000fe max-moved=4194304 end\noptimize 0 within 1 00000000000000fd max-mo";
    file.expect("room").write_all(foreign.as_bytes()).expect("room");
    let refused = |place: &Place| {
        let events = place.plumb("space events tank").succeeds_quietly().stdout;
        ["'colour' is no limit that is known", "written in version '2'", "it was cut off"]
            .iter()
            .all(|why| events.contains(why))
    };
    wait_for("all three are refused", || refused(&place));
    let answers = std::fs::read_to_string(place.file("pools/tank.answers")).expect("it answers");
    assert!(answers.contains("00000000000000ff\trefused\t'colour'"), "{answers}");

    // One at a time: the second is refused while the first is slow.
    place.plumb("tier pin tank/data --offset 32M --length 4M --tier performance").ends_with(0);
    let slow = "space optimize tank/data --max-rate 64K --movers 1";
    place.plumb(slow).ends_with(0);
    let refused = place.plumb(slow).ends_with(3).stderr;
    assert!(
        refused.contains("refused: an optimization of the virtual disk is under way"),
        "{refused}"
    );
    assert_eq!(reports(&place), 2, "nothing else has moved");
    kill_process(load.process(), Signal::INT).expect("it is there");
    let load = load.ended();
    assert!(load.status.success(), "{load:?}");
    let last = place.json("space report tank/data --last");
    assert_eq!(last["moves"]["stop"], "cancelled", "{last}");
    assert_eq!(last["moves"]["limits"]["bytes_per_s"], 64 << 10, "{last}");
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()));
}

/// Who has the pool and does not know of limits, or takes no wishes, moves nothing: that is told, and the wish taken back.
#[test]
fn a_program_that_does_not_take_limits_is_told() {
    let place = with_hot_ones();
    let disk = std::fs::File::options().write(true).open(place.file("a.img")).expect("it is there");
    rustix::fs::flock(&disk, rustix::fs::FlockOperation::LockExclusive).expect("nobody has it");
    let asks = place.file("pools/tank.asks");
    // Versions before took what they did not know, and left it out.
    let (taken, ended) =
        (asks.clone(), std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false)));
    let until = std::sync::Arc::clone(&ended);
    let older = std::thread::spawn(move || {
        let mut all = String::new();
        while !until.load(std::sync::atomic::Ordering::Relaxed) {
            if let Ok(text) = std::fs::read_to_string(&taken) {
                std::fs::remove_file(&taken).expect("it is there");
                all.push_str(&text);
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        all
    });
    let line = "space optimize tank/data --max-moved 4M --movers 8";
    let refused = place.plumb(line).ends_with(3).stderr;
    assert!(refused.contains("leave out --movers and --max-moved, or wait"), "{refused}");
    ended.store(true, std::sync::atomic::Ordering::Relaxed);
    let all = older.join().expect("it ends");
    assert!(
        all.starts_with("optimize 0 within 1 ")
            && all.ends_with(" movers=8 max-moved=4194304 end\n")
    );
    // And this one takes none, with limits or without.
    for line in [line, "space optimize tank/data"] {
        let refused = place.plumb(line).ends_with(3).stderr;
        assert!(refused.contains("when asked"), "{refused}");
        assert!(!std::fs::exists(&asks).expect("known"), "taken back");
    }
    drop(disk);
    let done = place.json("space optimize tank/data --max-promoted 2M");
    assert_eq!(done["moves"]["stop"], "budget", "{done}");
}

/// A command that optimizes ends for a load, as for Ctrl-C, and says so; the load waits for that, and runs.
#[test]
fn a_load_interrupts_a_command_that_optimizes() {
    let place = with_hot_ones();
    let slow = "space optimize tank/data --max-rate 64K --movers 1 --json";
    let command = Running::start(&place, slow);
    // Others are refused as ever, and leave it alone.
    let refused = place.plumb("vdisk new tank/other --ssd-tier 1M").ends_with(3).stderr;
    assert!(refused.contains("in use"), "{refused}");
    let began = Instant::now();
    let load = place.plumb("run -b4K -r -w50 -o4 -t1 -d1 -W0 --verify crc32c -L space:tank/data");
    let took = began.elapsed();
    let load = load.ends_with(0);
    let note = "pool tank is in use by a command that optimizes it: it was asked to end; waiting for that, 60 s at most";
    assert!(load.stderr.contains(note), "{}", load.stderr);
    assert!(took < Duration::from_secs(20), "{took:?}");
    let command = command.ended();
    assert_eq!(command.status.code(), Some(5), "{command:?}");
    let done: Value = serde_json::from_slice(&command.stdout).expect("JSON");
    let moves = &done["moves"];
    assert_eq!(moves["stop"], "interrupted by a load", "{done}");
    let moved = moves["up"].as_u64().zip(moves["down"].as_u64());
    let wanted = moves["up_requested"].as_u64().zip(moves["down_requested"].as_u64());
    let left = wanted.zip(moved).map(|(wanted, moved)| wanted.0 + wanted.1 - moved.0 - moved.1);
    assert!(left.is_some_and(|left| left > 0), "{done}");
    let kept = place.plumb("space report tank/data --last").succeeds_quietly().stdout;
    let told = "extents were not moved (interrupted by a load): the next optimization goes on";
    assert!(kept.contains(told), "{kept}");
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()));
    let done = place.json("space optimize tank/data");
    assert_eq!(done["moves"]["stop"], "done", "{done}");

    // A load gives way to nobody, and nobody waits for it, whoever gave way before.
    let first = Running::start(&place, &load_of(120));
    let began = Instant::now();
    let refused = place.plumb(&load_of(1)).ends_with(3).stderr;
    assert!(refused.contains("in use") && !refused.contains("asked to end"), "{refused}");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    kill_process(first.process(), Signal::INT).expect("it is there");
    assert!(first.ended().status.success());
}

/// 10.7: an optimization ends when somebody asks whoever makes it, a load or a command, and the report says so.
#[test]
fn an_optimization_that_another_program_makes_is_cancelled() {
    let place = with_hot_ones();
    let cancel = "space optimize tank/data --cancel";
    let none = place.plumb(cancel).ends_with(1).stderr;
    assert!(none.contains("pool tank is not in use by any program"), "{none}");
    place.plumb(&format!("{cancel} --movers 2")).ends_with(2);
    let slow = "space optimize tank/data --max-rate 64K --movers 1";
    let load = Running::start(&place, &load_of(120));
    let none = place.plumb(cancel).ends_with(3).stderr;
    assert!(none.contains("no optimization of the virtual disk is under way"), "{none}");
    place.plumb(slow).ends_with(0);
    let done = place.json(cancel);
    assert_eq!(done["cancelled"], true, "{done}");
    wait_for("it ends", || reports(&place) == 1);
    assert_eq!(place.json("space perf tank")["running"], true, "the load goes on");
    let last = place.json("space report tank/data --last");
    assert_eq!(last["moves"]["stop"], "cancelled", "{last}");
    kill_process(load.process(), Signal::INT).expect("it is there");
    assert!(load.ended().status.success());

    let command = Running::start(&place, slow);
    place.plumb(cancel).ends_with(0);
    let command = command.ended();
    assert_eq!(command.status.code(), Some(5), "{command:?}");
    let last = place.json("space report tank/data --last");
    assert_eq!((&last["moves"]["stop"], reports(&place)), (&"cancelled".into(), 2), "{last}");
}

/// 10.7: who is killed while it optimizes, a command or a load, leaves a note, and the next start keeps it as a report.
#[test]
fn an_optimization_whose_program_was_killed_is_told_by_the_next_start() {
    let place = with_hot_ones();
    let slow = "space optimize tank/data --max-rate 64K --movers 1";
    let note = |place: &Place| {
        let files = std::fs::read_dir(place.file("pools/tank.tiering")).expect("it is kept");
        let names = files.flatten().map(|file| file.file_name().to_string_lossy().into_owned());
        names.filter(|name| name.ends_with(".optimizing")).count() == 1
    };
    for (nth, by_load) in [(1, false), (2, true)] {
        let line = if by_load { load_of(120) } else { slow.to_owned() };
        let killed = Running::start(&place, &line);
        if by_load {
            place.plumb(slow).ends_with(0);
        }
        wait_for("it is noted", || note(&place));
        kill_process(killed.process(), Signal::KILL).expect("it is there");
        assert!(!killed.ended().status.success());
        assert_eq!(reports(&place), nth - 1, "nobody has started the pool");
        wait_for("the pool is free", || place.plumb("space report tank/data").status == 0);
        assert!(reports(&place) == nth && !note(&place));
        let last = place.json("space report tank/data --last");
        assert_eq!(last["moves"]["stop"], "interrupted", "{last}");
        assert_eq!(last["moves"]["limits"]["bytes_per_s"], 64 << 10, "{last}");
        let told = "extents were not moved (interrupted): the next optimization goes on";
        assert!(last["advice"]["suggestions"].to_string().contains(told), "{last}");
    }
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()));
}

/// A command that was killed is waited for by nobody, and Ctrl-C ends the wait.
#[test]
fn commands_that_are_gone_are_not_asked() {
    let place = with_hot_ones();
    let command = Running::start(&place, "space optimize tank/data --max-rate 64K --movers 1");
    kill_process(command.process(), Signal::KILL).expect("it is there");
    command.ended();
    assert!(
        std::fs::exists(place.file("pools/tank.gives-way")).expect("known"),
        "its file is there"
    );
    let load = place.plumb(&load_of(1)).ends_with(0);
    assert!(!load.stderr.contains("asked to end"), "{}", load.stderr);
    // The demonstration of a command that does not end.
    let file = std::fs::File::open(place.file("pools/tank.gives-way")).expect("it is there");
    rustix::fs::flock(&file, rustix::fs::FlockOperation::LockExclusive).expect("nobody has it");
    let disk = std::fs::File::options().write(true).open(place.file("a.img")).expect("it is there");
    rustix::fs::flock(&disk, rustix::fs::FlockOperation::LockExclusive).expect("nobody has it");
    let mut command = place.command(&load_of(1));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let waiting = Running(Some(command.spawn().expect("it starts")));
    let asked = || std::fs::read_to_string(place.file("pools/tank.gives-way")).unwrap_or_default();
    wait_for("it asks", || asked().starts_with("load "));
    let began = Instant::now();
    kill_process(waiting.process(), Signal::INT).expect("it is there");
    let waited = waiting.ended();
    assert!(began.elapsed() < Duration::from_secs(15), "{:?}", began.elapsed());
    assert_eq!(waited.status.code(), Some(3), "{waited:?}");
}
