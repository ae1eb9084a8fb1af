//! Tiers that are optimized, as their users meet them.

use std::process::Command;

use serde_json::Value;

use crate::program::{Outcome, outcome, path};

/// A pool with two tiers, and 42 MiB on them.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder"));
        let disks = "--ssd a.img --ssd b.img --hdd c.img --hdd d.img";
        place.plumb(&format!("pool new tank --file-size 128M {disks}")).succeeds_quietly();
        let line = "vdisk new tank/data --ssd-tier 16M --hdd-tier 32M --resiliency mirror2";
        place.plumb(line).succeeds_quietly();
        place
    }

    fn plumb(&self, line: &str) -> Outcome {
        let mut command = Command::new(path());
        command.args(line.split_whitespace()).current_dir(self.0.path());
        outcome(command.env("PLUMB_POOLS", self.0.path().join("pools")))
    }

    fn json(&self, line: &str) -> Value {
        let said = self.plumb(&format!("{line} --json"));
        serde_json::from_str(&said.stdout).unwrap_or_else(|_| panic!("{line}: {said:?}"))
    }
}

#[test]
fn a_space_is_filled_loaded_optimized_and_pinned() {
    let place = Place::new();
    place.plumb("run -b1M -s -w100 -o4 -t1 -d2 -W0 -f36M space:tank/data").ends_with(0);
    // Hot is what the fill put on the Capacity tier; some room is left there.
    place.plumb("run -b4K -r -w0 -o8 -t1 -d1 -W0 -B32M -f36M space:tank/data").ends_with(0);
    let report = place.json("space report tank/data");
    assert!(report["host_ios"].as_u64().is_some_and(|ios| ios > 100), "{report}");
    assert_eq!(report["table"].as_array().map(Vec::len), Some(20));
    let csv = place.plumb("space report tank/data --csv").succeeds_quietly().stdout;
    assert!(csv.lines().count() > 20, "{csv}");
    place.plumb("space report tank/data --last").ends_with(1);

    let advice = place.json("space optimize tank/data --advise");
    for name in ["Optimize-Volume", "tier-optimize"] {
        assert_eq!(place.json(&format!("{name} tank/data --advise")), advice, "section 2");
    }
    let up = advice["up"].as_u64().expect("a count");
    assert!((1..=14).contains(&up), "{advice}");
    let done = place.json("space optimize tank/data");
    assert_eq!((&done["moves"]["up"], &done["moves"]["stop"]), (&up.into(), &"done".into()));
    assert_eq!(place.json("space report tank/data --last")["moves"], done["moves"]);
    let kept = place.plumb("space report tank/data --last --csv").succeeds_quietly().stdout;
    assert_eq!(kept, csv, "the window that was optimized by is the one that was reported");
    assert_eq!(place.json("space report tank/data")["host_ios"], 0, "a new window");
    place.plumb("space report tank/data --diff").ends_with(1);
    // Be it in the same second: both reports are kept.
    let again = place.plumb("space optimize tank/data").succeeds_quietly().stdout;
    assert!(again.contains("no I/O in window"), "{again}");
    let last = place.plumb("space report tank/data --last").succeeds_quietly().stdout;
    assert!(
        again.ends_with(&last) && last.starts_with("Storage Tier Optimization Report"),
        "{last}"
    );

    // The early warning of that moment is kept with it.
    assert!(last.contains("\nvirtual disk data: Performance tier holds "), "{last}");
    let kept = place.json("space report tank/data --last");
    assert!(kept["filling"]["performance_used_bytes"].as_u64() > Some(0), "{kept}");

    let list = place.json("space report tank/data --list");
    let names: Vec<&str> =
        list["reports"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    assert_eq!(names.len(), 2, "{list}");
    let found = place.json("space report tank/data --diff");
    let figure = |name: &str| {
        let figures = found["figures"].as_array().into_iter().flatten();
        figures.clone().find(|row| row["figure"] == name).cloned().unwrap_or_default()
    };
    assert_eq!((&found["before"], &found["after"]), (&names[0].into(), &names[1].into()));
    let moved = figure("extents moved up");
    let up = up as f64;
    assert_eq!((&moved["before"], &moved["difference"]), (&up.into(), &(-up).into()), "{found}");
    assert_eq!(
        found,
        place.json(&format!("space report tank/data --diff {} {}", names[0], names[1]))
    );
    place.plumb("space report tank/data --diff 12345").ends_with(1);
    // The other figures, the differences and the names for spreadsheets, too.
    let figures =
        place.plumb("space report tank/data --last --csv=figures").succeeds_quietly().stdout;
    for line in ["figure,value\n", "\nmoves.up,0\n", "\nfilling.performance_used_bytes,"] {
        assert!(figures.contains(line), "{line}: {figures}");
    }
    assert!(!figures.contains("\ntable"), "{figures}");
    let changes = place.plumb("space report tank/data --diff --csv").succeeds_quietly().stdout;
    let line = format!("\n\"extents moved up\",{up},0,{}\n", -up);
    assert!(changes.starts_with("figure,before,after,difference\n"), "{changes}");
    assert!(changes.contains(&line), "{line}: {changes}");
    let list = place.plumb("space report tank/data --list --csv").succeeds_quietly().stdout;
    assert!(list.starts_with(&format!("report,made\n{},", names[0])), "{list}");
    place.plumb("space report tank/data --csv=all").ends_with(2);
    let status = place.json("space status tank");
    let filling = &status["filling"][0];
    assert_eq!(
        filling["performance_bytes"],
        place.json("space report tank/data")["performance_tier_bytes"]
    );
    // The load asked the files of the Capacity tier for many random I/Os: that is what to expect of them. Those of the Performance
    // tier were written by a stream, so that there is nothing to compare with.
    assert_eq!(filling["vdisk"], "data");
    let iops = filling["expected_iops_when_full"].as_u64().unwrap_or(0);
    let text = place.plumb("space status tank").succeeds_quietly().stdout;
    let expected = format!("about {iops} random");
    assert!(text.contains("Performance tier holds") && text.contains(&expected), "{text}");
    // Whose line is longer is the machine's affair.
    let whose = match filling["expected_iops_line_basis"].as_str() {
        Some("hosts") => "as hosts ask at present",
        Some("write-back cache") => "as emptying the write-back cache asks",
        other => panic!("{other:?}"),
    };
    assert!(text.contains(&format!(" in line at each, {whose}")), "{text}");
    // How many stood in line at files that answer at once is the machine's affair.
    let basis = filling["expected_iops_basis"].as_str().unwrap_or_default();
    assert!(basis.starts_with("measured disks"), "{filling}");
    assert!(filling["expected_iops_line"].as_f64().is_some_and(|line| line >= 1.0), "{filling}");
    for told in [&done["moves"], &advice] {
        assert_eq!(told["break_even_basis"], "reference devices", "{told}");
        assert!(told["break_even_ios"].as_f64().is_some_and(|ios| (7.2..7.3).contains(&ios)));
    }

    let pin = "tier pin tank/data --offset 32M --length 2M --tier capacity";
    let found = place.json(pin);
    assert_eq!((&found["pins"][0]["state"], &found["pins"][0]["pin"]), (&4.into(), &1.into()));
    let text = place.plumb("tier pins tank/data").succeeds_quietly().stdout;
    assert!(
        text.contains("pin 1: 2MiB from 32MiB to the Capacity tier: Not on tier, Pending"),
        "{text}"
    );
    let found = place.json(&format!("{pin} --now"));
    assert_eq!(
        (&found["pins"][0]["pin"], &found["pins"][0]["placement_status"]),
        (&1.into(), &1.into()),
        "the pin that is there"
    );
    place.plumb("tier pin tank/data --offset 0 --length 1M --tier capacity").succeeds_quietly();
    place.plumb("tier unpin tank/data --pin 1").succeeds_quietly();
    place.plumb("tier unpin tank/data --pin 1").ends_with(1);
    place.plumb("tier pin tank/data --offset 41M --length 2M --tier capacity").ends_with(1);
    assert_eq!(place.json("tier pins tank/data")["pins"].as_array().map(Vec::len), Some(1));
    let scan = place.json("space scan tank");
    assert_eq!((&scan["mismatches"], &scan["unrecoverable"]), (&0.into(), &0.into()));
}

/// The heat map is worth little and may be lost (C13): a damaged one stops nobody, is said, and is gone with its window.
#[test]
fn a_damaged_heat_map_is_said_and_costs_no_start() {
    let place = Place::new();
    place.plumb("run -b1M -s -w100 -o4 -t1 -d1 -W0 -f36M space:tank/data").ends_with(0);
    let whole = place.json("space report tank/data");
    assert_eq!(whole["quality"]["heat_counted_anew"], false, "{whole}");
    let folder = place.0.path().join("pools/tank.tiering");
    let heat = std::fs::read_dir(folder).expect("it is kept").filter_map(Result::ok);
    let heat =
        heat.map(|entry| entry.path()).find(|path| path.extension().is_some_and(|is| is == "heat"));
    let heat = heat.expect("a heat map is kept");
    let mut bytes = std::fs::read(&heat).expect("it is there");
    bytes[50] ^= 4;
    std::fs::write(&heat, &bytes).expect("room");
    let report = place.json("space report tank/data");
    assert_eq!(report["quality"]["heat_counted_anew"], true, "{report}");
    let text = place.plumb("space report tank/data").succeeds_quietly().stdout;
    assert!(text.contains("counted anew: what was kept was damaged"), "{text}");
    place.plumb("space optimize tank/data --advise").succeeds_quietly();
    place.plumb("run -b4K -r -w0 -o8 -t1 -d1 -W0 -f36M space:tank/data").ends_with(0);
    let events = place.plumb("space events tank").succeeds_quietly().stdout;
    assert!(
        events.contains("virtual disk data: its heat map cannot be read: heat is counted anew"),
        "{events}"
    );
    // A new map is kept; its window still lacks what was lost, until an optimization begins the next one.
    let report = place.json("space report tank/data");
    assert!(report["host_ios"].as_u64().is_some_and(|ios| ios > 0), "{report}");
    assert_eq!(report["quality"]["heat_counted_anew"], true, "{report}");
    place.plumb("space optimize tank/data").succeeds_quietly();
    let report = place.json("space report tank/data");
    assert_eq!(report["quality"]["heat_counted_anew"], false, "{report}");
}

/// What was moved before an early stop is told as it was, beside the run that goes on (10.7, REP-3).
#[test]
fn reports_and_differences_after_an_early_stop_are_of_what_was_done() {
    let place = Place::new();
    let load = "run -b4K -r -w0 -o8 -t1 -d1 -W0 -B32M -f36M space:tank/data";
    place.plumb("run -b1M -s -w100 -o4 -t1 -d2 -W0 -f36M space:tank/data").ends_with(0);
    place.plumb(load).ends_with(0);
    // Two extents per second at most: a run of one second leaves some.
    let early = place.json("space optimize tank/data --run-limit 1 --max-rate 2M --movers 1");
    let (up, wanted) = (early["moves"]["up"].as_u64(), early["moves"]["up_requested"].as_u64());
    assert_eq!(early["moves"]["stop"], "time", "{early}");
    assert!(up < wanted && wanted > Some(0), "{early}");
    let percent =
        |report: &Value, name: &str| report["optimization"][name].as_f64().unwrap_or(-1.0);
    assert!(
        percent(&early, "share_expected_percent") < percent(&early, "share_planned_percent"),
        "{early}"
    );
    let advice = early["advice"]["suggestions"].to_string();
    assert!(advice.contains("extents were not moved (time)"), "{advice}");
    place.plumb(load).ends_with(0);
    let advised = place.json("space optimize tank/data --advise");
    assert!(
        advised["up"].as_u64().is_some_and(|up| up > 0),
        "what was left is planned again: {advised}"
    );
    let done = place.json("space optimize tank/data");
    assert_eq!(done["moves"]["stop"], "done", "{done}");
    let found = place.json("space report tank/data --diff");
    let rows = found["figures"].as_array().into_iter().flatten();
    let row = rows.clone().find(|row| row["figure"] == "extents moved up").expect("a figure");
    assert_eq!(
        (row["before"].as_f64(), row["after"].as_f64()),
        (early["moves"]["up"].as_f64(), done["moves"]["up"].as_f64())
    );
    let row =
        rows.clone().find(|row| row["figure"] == "expected after the moves, %").expect("a figure");
    assert_eq!(row["before"], early["expected_percent"], "{found}");
}

/// What the cache's log writes is in what its disks are asked, and apart from data (section 12, CNT-1).
#[test]
fn counters_tell_the_cache_log_tiers_and_dirty_regions() {
    let place = Place::new();
    place.plumb("run -b1M -s -w100 -o4 -t1 -d1 -W0 -f36M space:tank/data").ends_with(0);
    place.plumb("run -b4K -r -w50 -o8 -t1 -d2 -W0 -f36M space:tank/data").ends_with(0);
    let perf = place.json("space perf tank")["counters"].clone();
    let of = |set: &str, instance: &str, name: &str| {
        let value = perf[set][instance][name].as_u64();
        value.unwrap_or_else(|| panic!("{set} {instance} {name}: {perf}"))
    };
    let cached = of("Write Cache", "data", "Write Cache Bytes [B]");
    assert!(cached > 0, "{perf}");
    assert!(of("Write Cache", "data", "Cache Checkpoints [n]") > 0);
    let disks = |name: &str| of("Physical Disk", "_Total", name);
    assert!(disks("Cache Log Write Bytes [B]") >= 2 * cached, "two copies of each record: {perf}");
    let parts = ["Data Writes [n]", "Cache Log Writes [n]", "Metadata Writes [n]"].map(disks);
    assert!(parts.iter().all(|count| *count > 0), "{parts:?}");
    assert_eq!(disks("Writes [n]"), parts.iter().sum::<u64>());
    assert!(disks("Flushes [n]") > 0);
    for name in ["Tier Read 99% [ns]", "Tier Write 50% [ns]"] {
        assert!(of("Tier", "data:ssd", name) > 0, "{name}");
    }
    for name in ["Flushing Count [n]", "Flushed Count [n]", "Flushed Bytes [B]"] {
        of("Dirty Regions", "tank", name);
    }
    assert_eq!(of("Dirty Regions", "tank", "Status [code]"), 1);
}

#[test]
fn what_cannot_be_optimized_is_refused() {
    let place = Place::new();
    place.plumb("vdisk new tank/flat --ssd-tier 16M --resiliency mirror2").succeeds_quietly();
    let said = place.plumb("space optimize tank/flat").ends_with(1).stderr;
    assert!(said.contains("one tier only"), "{said}");
    place.plumb("space optimize tank/none").ends_with(1);
    place.plumb("space optimize tank/data --movers 9").ends_with(2);
    place.plumb("space optimize tank/data --max-iops 0").ends_with(2);
    let said = place.plumb("space optimize tank/data --max-rate 63K").ends_with(2).stderr;
    assert!(said.contains("at least 64K"), "{said}");
    // Who names a time does not want it done now.
    for (line, words) in [
        ("--at 02:00", "add --mode scheduled,"),
        ("--every 5 --mode scheduled", "add --mode continuous,"),
        ("--runs 1", "add --mode scheduled or --mode continuous,"),
        ("--runs 1 --advise", "--runs is of another mode than advise"),
    ] {
        let said = place.plumb(&format!("space optimize tank/data {line}")).ends_with(1).stderr;
        assert!(said.contains(words), "{said}");
    }
    place.plumb("space optimize tank/data --advise --mode scheduled").ends_with(2);
    assert_eq!(place.json("space report tank/data --list")["reports"], serde_json::json!([]));
}

/// Each optimization of a night opens the pool anew: what the last ones moved is known from start to start, and so is the guard
/// against extents that go back and forth (10.3).
#[test]
fn what_a_pin_moves_is_no_thrash_from_start_to_start() {
    let place = Place::new();
    place.plumb("run -b1M -s -w100 -o4 -t1 -d1 -W0 -f36M space:tank/data").ends_with(0);
    place.plumb("run -b4K -r -w0 -o8 -t1 -d1 -W0 -B32M -f36M space:tank/data").ends_with(0);
    let done = place.json("space optimize tank/data");
    let up = done["moves"]["up"].as_u64();
    assert!(up >= Some(4), "{done}");
    let pin = "tier pin tank/data --offset 32M --length 4M --tier capacity";
    place.plumb(pin).succeeds_quietly();
    let done = place.json("space optimize tank/data");
    assert_eq!(done["moves"]["down"], 4, "{done}");
    // They went up and down again, and it was the pin that moved them.
    let report = place.json("space report tank/data");
    let advice = &report["advice"];
    assert_eq!((&advice["thrash_percent"], &advice["bar_doubled"]), (&0.0.into(), &false.into()));
}

/// Pins are not on the disks: who imports a pool elsewhere is told that it begins without them (0081).
#[test]
fn an_import_elsewhere_says_that_pins_stay_behind() {
    let place = Place::new();
    place.plumb("run -b1M -s -w100 -o4 -t1 -d1 -W0 -f4M space:tank/data").ends_with(0);
    place.plumb("tier pin tank/data --offset 0 --length 1M --tier capacity").succeeds_quietly();
    let import = "pool import a.img b.img c.img d.img";
    let words = "pins, heat and reports stay on the machine where they were made: here data begins";
    let elsewhere = |line: &str| {
        let mut command = Command::new(path());
        command.args(line.split_whitespace()).current_dir(place.0.path());
        outcome(command.env("PLUMB_POOLS", place.0.path().join("elsewhere")))
    };
    let said = elsewhere(import).succeeds_quietly().stdout;
    assert!(said.contains(words), "{said}");
    // Where they were made, and the list was lost, they are there.
    std::fs::remove_file(place.0.path().join("pools/tank.pool")).expect("it was listed");
    let said = place.plumb(import).succeeds_quietly().stdout;
    assert!(!said.contains("pins, heat"), "{said}");
    assert_eq!(place.json("tier pins tank/data")["pins"].as_array().map(Vec::len), Some(1));
}

/// What limits an optimization limits it in every mode, and in the unit that is to run it (10.1, 10.5, 10.6).
#[test]
fn budgets_are_kept_in_every_mode_and_by_the_unit() {
    let place = Place::new();
    let limits = "--run-limit 60 --movers 3 --priority normal --max-rate 1M --max-iops 70 --max-moved 8M --max-promoted 4M --reserve 10";
    for (mode, rest) in [("scheduled --at 02:30", "--runs 2"), ("continuous --every 7", "")] {
        let line = format!("space optimize tank/data --mode {mode} {limits} {rest} --print-unit");
        let unit = place.plumb(&line).succeeds_quietly().stdout;
        let wanted = format!("space optimize tank/data --mode {mode} {limits} {rest}");
        let command = unit.lines().find(|line| line.starts_with("ExecStart=")).unwrap_or_default();
        assert!(command.ends_with(wanted.trim_end()), "{unit}");
        // The service finds the pool, too.
        let pools =
            format!("\nEnvironment=PLUMB_POOLS={}\n", place.0.path().join("pools").display());
        assert!(unit.contains(&pools), "{unit}");
        // It is a command that this program takes.
        let again = command.rsplit_once("plumb ").map_or("", |(_, line)| line);
        let again = place.plumb(&format!("{again} --print-unit")).succeeds_quietly().stdout;
        assert_eq!(again, unit);
    }
    for mode in ["manual", "advise"] {
        let line = format!("space optimize tank/data --mode {mode} --print-unit");
        let said = place.plumb(&line).ends_with(1).stderr;
        assert!(said.contains("--mode scheduled"), "{said}");
    }
    assert_eq!(place.json("space report tank/data --list")["reports"], serde_json::json!([]));

    place.plumb("run -b1M -s -w100 -o4 -t1 -d1 -W0 -f36M space:tank/data").ends_with(0);
    place.plumb("run -b4K -r -w0 -o8 -t1 -d1 -W0 -B32M -f36M space:tank/data").ends_with(0);
    let advised = |limits: &str| {
        let advice = place.json(&format!("space optimize tank/data --advise {limits}"));
        (advice["up"].as_u64(), advice["down"].as_u64(), advice["budget_spent"] == true)
    };
    let (up, down, spent) = advised("");
    assert!(up >= Some(3) && !spent, "{up:?}");
    // Both copies are written to SSDs.
    assert_eq!(advised("--max-promoted 2M").0, Some(1));
    // A budget that no extent fits into is told before anything is done, with the least that helps (10.1).
    for line in ["", "--advise", "--mode continuous --runs 1", "--mode scheduled"] {
        let line = format!("space optimize tank/data --max-promoted 1M {line}");
        let said = place.plumb(&line).ends_with(1).stderr;
        assert!(said.contains("--max-promoted 1MiB admits no move"), "{said}");
        assert!(said.contains("allow 2MiB at least"), "{said}");
    }
    place.plumb("space optimize tank/data --max-moved 1000K").ends_with(1);
    let advice = place.json("space optimize tank/data --advise --max-promoted 2M");
    assert_eq!(advice["up_requested"].as_u64(), up, "{advice}");
    assert!(advised("--reserve 50").1 > down, "room is made");
    // Twice: each optimization has its own budget.
    for _ in 0..2 {
        let line = "space optimize tank/data --mode continuous --runs 1 --max-promoted 2M";
        place.plumb(line).ends_with(0);
        let last = place.json("space report tank/data --last");
        let moves = &last["moves"];
        assert_eq!((&moves["up"], &moves["stop"]), (&1.into(), &"budget".into()), "{last}");
    }
    let done = place.json("space optimize tank/data --max-promoted 2M");
    assert_eq!((&done["moves"]["up"], &done["moves"]["stop"]), (&1.into(), &"budget".into()));
    // What was wanted is told, not what a budget left of it (10.7).
    assert!(done["moves"]["up_requested"].as_u64() > Some(1), "{done}");
    let left = done["advice"]["suggestions"].to_string();
    assert!(left.contains("extents were not moved (budget): raise the budget"), "{left}");
}

#[test]
fn modes_run_when_they_are_due_and_a_pool_in_use_is_asked() {
    let place = Place::new();
    place.plumb("run -b1M -s -w100 -o4 -t1 -d1 -W0 -f36M space:tank/data").ends_with(0);
    place.plumb("run -b4K -r -w0 -o8 -t1 -d1 -W0 -B32M -f36M space:tank/data").ends_with(0);
    // The load's sketch is there for whoever asks later (BEY-1).
    let now = place.json("space report tank/data");
    let points = now["what_if_lru"].as_array().map_or(&[][..], Vec::as_slice);
    let share = points.last().and_then(|point| point["by_extents"]["hit_share"].as_f64());
    assert!(share.is_some_and(|share| share > 0.5), "{now}");
    let done = place.json("space optimize tank/data --mode continuous --runs 1");
    assert_eq!(done["runs"], 1);
    let report = place.json("space report tank/data --last");
    assert!(report["moves"]["up"].as_u64().is_some_and(|up| up > 0), "{report}");
    let unit = place.plumb("space optimize tank/data --mode scheduled --at 02:30 --print-unit");
    let unit = unit.succeeds_quietly().stdout;
    assert!(unit.contains("space optimize tank/data --mode scheduled --at 02:30\n"), "{unit}");
    place.plumb("space optimize tank/data --mode scheduled --at 25:00").ends_with(2);
    place.plumb("space optimize tank/none --mode scheduled").ends_with(1);

    let mut command = Command::new(path());
    let load = "run -b4K -r -w0 -o4 -t1 -d30 -W0 -f36M space:tank/data";
    command.args(load.split_whitespace()).current_dir(place.0.path());
    command.env("PLUMB_POOLS", place.0.path().join("pools")).stdout(std::process::Stdio::null());
    let mut load = command.spawn().expect("it starts");
    // Told by a file, once a second: whoever opened the pool to look would keep the load from it.
    for _ in 0..100 {
        if place.json("space perf tank")["running"] == true {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    let asked = place.json("space optimize tank/data");
    assert_eq!(asked["asked"], true, "{asked}");
    // Kept reports are there for everybody, meanwhile too.
    place.plumb("space report tank/data --last").succeeds_quietly();
    // What is counted is told while it is counted (BEY-1), with its age, and the load goes on.
    let live = place.json("space report tank/data");
    assert!(live["told_by_owner_age_s"].as_f64().is_some_and(|age| age < 5.0), "{live}");
    assert!(live["host_ios"].as_u64().is_some_and(|ios| ios > 0), "{live}");
    assert!(live["what_if_lru"].as_array().is_some_and(|points| !points.is_empty()), "{live}");
    let later = place.json("space report tank/data");
    assert!(later["host_ios"].as_u64() > live["host_ios"].as_u64(), "{later} {live}");
    for line in ["space report tank/data", "tier pins tank/data", "tier show tank/data"] {
        let text = place.plumb(line).succeeds_quietly().stdout;
        assert!(text.contains("Pool tank is in use: this is what"), "{line}: {text}");
    }
    let advice = place.json("space optimize tank/data --advise");
    assert!(advice["host_ios"].as_u64() > live["host_ios"].as_u64(), "{advice}");
    assert!(advice["told_by_owner_age_s"].is_number(), "{advice}");
    let shown = place.json("tier show tank/data");
    assert!(shown["tiers"][0]["used_bytes"].as_u64().is_some_and(|used| used > 0), "{shown}");
    // Pins are set and removed by the program that has the pool, and are there when it has ended.
    let pin = "tier pin tank/data --tier performance --offset";
    let pinned = place.json(&format!("{pin} 1M --length 3M"));
    assert_eq!(pinned["pins"][0]["bytes"], 3 << 20, "{pinned}");
    assert!(pinned["told_by_owner_age_s"].is_number(), "{pinned}");
    let number = pinned["pins"][0]["pin"].as_u64().expect("its number");
    let other = place.json(&format!("{pin} 8M --length 1M --now"));
    assert_eq!(other["optimization_asked"], true, "{other}");
    let other = other["pins"][0]["pin"].as_u64().expect("its number");
    place.plumb(&format!("{pin} 1T --length 3M")).ends_with(1);
    place.plumb(&format!("tier unpin tank/data --pin {other}")).succeeds_quietly();
    place.plumb(&format!("tier unpin tank/data --pin {other}")).ends_with(1);
    assert_eq!(place.json("space perf tank")["running"], true, "the load went on meanwhile");
    assert!(load.wait().is_ok_and(|ended| ended.success()));
    let pins = place.json("tier pins tank/data");
    let pins: Vec<_> =
        pins["pins"].as_array().expect("pins").iter().map(|pin| &pin["pin"]).collect();
    assert!(pins.contains(&&number.into()) && !pins.contains(&&other.into()), "{pins:?}");
    let found = place.json("space report tank/data --list");
    // A third one if the second had ended when the pin asked for it.
    let count = found["reports"].as_array().map(Vec::len);
    assert!(matches!(count, Some(2 | 3)), "{found}");
    // Done, or called off by the end of the load: told in any case.
    let last = place.json("space report tank/data --last");
    assert!(["done", "cancelled"].iter().any(|stop| last["moves"]["stop"] == **stop), "{last}");
}

/// What a program counted and had not kept when it was killed is missed, and that is said wherever the window is told (section 11).
#[test]
fn a_load_that_was_killed_leaves_a_window_that_says_so() {
    let place = Place::new();
    place.plumb("run -b1M -s -w100 -o4 -t1 -d1 -W0 -f36M space:tank/data").ends_with(0);
    place.plumb("space optimize tank/data").succeeds_quietly();
    let whole = place.json("space report tank/data");
    assert_eq!(whole["quality"]["heat_uncounted_s"], 0, "{whole}");
    let mut load = Command::new(path());
    load.args("run -b4K -r -w30 -o4 -t1 -d120 -W0 -f20M space:tank/data".split(' '));
    load.current_dir(place.0.path()).env("PLUMB_POOLS", place.0.path().join("pools"));
    let mut load = load.stdout(std::process::Stdio::null()).spawn().expect("it starts");
    let began = std::time::Instant::now();
    let counts = || {
        let files = std::fs::read_dir(place.0.path().join("pools/tank.tiering"));
        let mut files = files.expect("it is kept").filter_map(Result::ok);
        files.any(|file| file.path().extension().is_some_and(|is| is == "counting"))
    };
    while !counts() && began.elapsed().as_secs() < 60 {
        std::thread::sleep(std::time::Duration::from_millis(200));
    }
    std::thread::sleep(std::time::Duration::from_secs(5));
    load.kill().expect("it is ours");
    load.wait().expect("it ends");
    let lived_s = began.elapsed().as_secs() + 2;

    for _ in 0..2 {
        let text = place.plumb("space report tank/data").succeeds_quietly().stdout;
        assert!(
            text.contains("of the window not counted: a program ended without a word"),
            "{text}"
        );
        assert!(text.contains("no I/O counted in window; no moves"), "{text}");
        let report = place.json("space report tank/data");
        let missed_s = report["quality"]["heat_uncounted_s"].as_u64().unwrap_or(0);
        assert!((2..=lived_s).contains(&missed_s), "{missed_s} s of {lived_s}: {report}");
        assert!(report["quality"]["serviced_half_width_points"].is_null(), "{report}");
    }
    let events = place.plumb("space events tank").succeeds_quietly().stdout;
    assert_eq!(events.matches("a program ended without a word").count(), 1, "{events}");
    // A load that ends by itself leaves it as it was, an optimization begins a window that is whole.
    place.plumb("run -b4K -r -w0 -o8 -t1 -d1 -W0 -f36M space:tank/data").ends_with(0);
    let report = place.json("space report tank/data");
    assert!(report["host_ios"].as_u64().is_some_and(|ios| ios > 0), "{report}");
    assert!(report["quality"]["heat_uncounted_s"].as_u64().is_some_and(|s| s >= 2), "{report}");
    let csv = place.plumb("space report tank/data --csv=figures").succeeds_quietly().stdout;
    assert!(csv.contains("\nquality.heat_uncounted_s,"), "{csv}");
    let done = place.json("space optimize tank/data");
    assert!(done["quality"]["heat_uncounted_s"].as_u64().is_some_and(|s| s >= 2), "{done}");
    let report = place.json("space report tank/data");
    assert_eq!(report["quality"]["heat_uncounted_s"], 0, "{report}");
    let events = place.plumb("space events tank").succeeds_quietly().stdout;
    assert_eq!(events.matches("a program ended without a word").count(), 1, "{events}");
}
