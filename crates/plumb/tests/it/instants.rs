//! Studies that are killed at instants of their own progress, however long the machine takes for them.

use std::fs;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use crate::sweeps::Bench;

/// Instants at which a study is killed.
const INSTANTS: usize = 50;
/// A study that was over before it could be killed, or was killed elsewhere, is begun again so often.
const TRIES: usize = 40;
/// Nothing that a study waits for takes this long.
const PATIENCE: Duration = Duration::from_secs(60);

/// When a study is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Moment {
    /// The result of this run is there, and its line in the journal is not.
    Result(usize),
    /// The journal has the lines of so many runs, and the last of them has just come.
    Line(usize),
    /// The run behind so many is on its way.
    Midway(usize),
}

impl Moment {
    /// One of three for each run.
    fn nth(place: usize) -> Self {
        match (place / 3, place % 3) {
            (before, 0) => Self::Result(before + 1),
            (before, 1) => Self::Line(before + 1),
            (before, _) => Self::Midway(before),
        }
    }
}

/// How far a study had got when it died.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Progress {
    has_plan: bool,
    has_findings: bool,
    /// Whole lines of the journal.
    lines: usize,
    /// Results of runs.
    results: usize,
}

impl Progress {
    fn of(study: &Path) -> Self {
        let journal = fs::read(study.join("journal.ndjson")).unwrap_or_default();
        let results = fs::read_dir(study.join("runs")).into_iter().flatten().flatten();
        let is_result = |name: &Path| name.extension().is_some_and(|end| end == "json");
        Self {
            has_plan: study.join("plan.json").exists(),
            has_findings: study.join("findings.json").exists(),
            lines: journal.iter().filter(|byte| **byte == b'\n').count(),
            results: results.filter(|entry| is_result(&entry.path())).count(),
        }
    }

    fn is_under_way(self) -> bool {
        self.has_plan && !self.has_findings
    }

    /// Whether it died between a run's result and its line.
    fn is_between(self) -> bool {
        self.results > self.lines
    }

    /// Whether that is what was meant, as far as a folder tells.
    fn is_at(self, moment: Moment) -> bool {
        self.is_under_way()
            && match moment {
                Moment::Result(run) => self.is_between() && self.lines + 1 == run,
                Moment::Line(_) | Moment::Midway(_) => true,
            }
    }
}

/// What came of it.
#[derive(Debug, Default)]
pub(crate) struct Tally {
    /// Killed while it was under way: its plan written, its findings not.
    pub(crate) under_way: usize,
    /// Of these, between a run's result and its line in the journal.
    pub(crate) between: usize,
    /// Numbers of finished runs that they died with, each counted once.
    pub(crate) places: usize,
    /// Killed again while they went on.
    pub(crate) twice: usize,
    /// Went on behind a run of the reference that gave a rate.
    pub(crate) with_reference: usize,
    /// Runs of the whole study.
    pub(crate) runs: usize,
}

/// Kills the study that `plan` begins at fifty instants, each of which it is seen to have reached, and lets it go on: its
/// journal and findings must be those of a study that nobody killed, byte for byte.
pub(crate) fn kills_change_nothing(bench: &Bench, plan: &str) -> Tally {
    let command = plan.split(' ').next().expect("a command");
    bench.call(&format!("{plan} --id whole")).ends_with(0);
    let read = |id: &str, name: &str| {
        fs::read_to_string(bench.study(id).join(name)).expect("there").replace(id, "whole")
    };
    let whole = ["findings.json", "journal.ndjson"].map(|name| (name, read("whole", name)));
    let runs = bench.journal("whole").len();
    let mut tally = Tally { runs, ..Tally::default() };
    let mut places = vec![false; runs + 1];
    for nth in 0..INSTANTS {
        // Evenly over all runs and moments: 31 has no divisor with either count in common.
        let moment = Moment::nth((nth * 31 + 7) % (3 * runs));
        let (id, died) = (0..TRIES)
            .find_map(|again| {
                let id = format!("killed{nth}-{again}");
                let died = kill_at(bench, &format!("{plan} --id {id}"), &id, moment);
                died.is_at(moment).then_some((id, died))
            })
            .unwrap_or_else(|| panic!("{moment:?} was never met"));
        assert!(died.is_under_way(), "{died:?}");
        tally.under_way += 1;
        tally.between += usize::from(died.is_between());
        places[died.lines] = true;
        let resume = format!("{command} --resume {id}");
        if nth % 5 == 0 {
            let later = Moment::Midway(died.lines.midpoint(runs));
            tally.twice += usize::from(kill_at(bench, &resume, &id, later).is_under_way());
        }
        bench.call(&resume).ends_with(0);
        for (name, text) in &whole {
            assert_eq!(&read(&id, name), text, "{id} at {moment:?}: {name}");
        }
        // The reference was run before it went on, beside the journal.
        let resumptions = fs::read_to_string(bench.study(&id).join("resumptions.ndjson"));
        tally.with_reference += usize::from(resumptions.is_ok_and(|text| {
            let line: serde_json::Value =
                serde_json::from_str(text.lines().next().unwrap_or("{}")).unwrap_or_default();
            line["reference"]["summary"]["iops"].is_number()
        }));
    }
    tally.places = places.into_iter().filter(|place| *place).count();
    tally
}

/// Starts `line`, kills it at that moment of the study's, and says how far it had got.
fn kill_at(bench: &Bench, line: &str, id: &str, moment: Moment) -> Progress {
    let study = bench.study(id);
    let mut child = bench.start(line);
    let begun = Instant::now();
    let journal = study.join("journal.ndjson");
    let lines = || {
        let bytes = fs::read(&journal).unwrap_or_default();
        bytes.iter().filter(|byte| **byte == b'\n').count()
    };
    let is_there = || match moment {
        Moment::Result(run) => study.join(format!("runs/{run:04}.json")).exists(),
        Moment::Line(count) => lines() >= count,
        Moment::Midway(0) => journal.exists(),
        Moment::Midway(count) => lines() >= count,
    };
    // Whoever sleeps here comes too late for some.
    let mut looks = 0_u32;
    while !is_there() {
        looks += 1;
        if looks.is_multiple_of(64) && child.try_wait().expect("a child of ours").is_some() {
            return Progress::of(&study);
        }
        assert!(begun.elapsed() < PATIENCE, "{moment:?} does not come");
        if matches!(moment, Moment::Midway(_)) {
            thread::sleep(Duration::from_micros(200));
        }
    }
    if let Moment::Midway(_) = moment {
        thread::sleep(Duration::from_millis(MS_PER_RUN / 2));
    }
    child.kill().expect("a child of ours");
    child.wait().expect("it ends");
    Progress::of(&study)
}

/// Kills the study that `plan` begins as soon as it is there, in its first moments, and lets it go on: it is one that was
/// not even rehearsed yet, and its findings are those of a study that nobody killed.
pub(crate) fn kill_in_the_first_moments_loses_nothing(bench: &Bench, plan: &str) {
    let command = plan.split(' ').next().expect("a command");
    bench.call(&format!("{plan} --id whole")).ends_with(0);
    let expected = |id: &str| -> serde_json::Value {
        let plan = fs::read(bench.study(id).join("plan.json")).expect("a plan");
        serde_json::from_slice(&plan).expect("JSON")
    };
    let is_rehearsed = |id: &str| !expected(id)["estimate_range_s"].is_null();
    let id = (0..TRIES)
        .find_map(|again| {
            let id = format!("killed{again}");
            let mut child = bench.start(&format!("{plan} --id {id}"));
            let begun = Instant::now();
            while !bench.study(&id).join("plan.json").exists() {
                assert!(begun.elapsed() < PATIENCE, "no study begins");
            }
            child.kill().expect("a child of ours");
            child.wait().expect("it ends");
            (!is_rehearsed(&id)).then_some(id)
        })
        .expect("a plan is there before what it takes is known");
    bench.call(&format!("{command} --resume {id}")).ends_with(0);
    // What was found out later is as if nobody had killed it.
    for key in ["estimate_s", "estimate_range_s", "environment"] {
        assert_eq!(expected(&id)[key], expected("whole")[key], "{key}");
    }
    assert!(is_rehearsed(&id));
    for name in ["findings.json", "journal.ndjson"] {
        let read = |id: &str| fs::read_to_string(bench.study(id).join(name)).expect("there");
        assert_eq!(read(&id).replace(&id, "whole"), read("whole"), "{name}");
    }
}

/// Real time that a run of these studies takes: `real-ms-per-run` of their devices.
pub(crate) const MS_PER_RUN: u64 = 4;
