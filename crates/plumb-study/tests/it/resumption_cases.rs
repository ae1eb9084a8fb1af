//! Studies that go on after an interruption at every place, on devices whose runs differ for reasons of their own (method, 4.3).

use std::cell::Cell;
use std::path::Path;

use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Changed, Device, Due, End, FORMAT, Findings, Kind, Order,
    Perform, Performed, Planner, Preset, RunRecord, SimulatedDevice, Simulation, Study,
    StudyFolder, SweepOptions, SweepPlanner, Told, Watch, baseline_findings, sweep_findings, work,
};

use crate::baseline_cases::scored;
use crate::score::Score;

/// Stops when so many runs are over.
struct StopAfter(usize);

impl Watch for StopAfter {
    fn checks(&mut self, _: &Order) {}
    fn begins(&mut self, _: u32, _: &Order) {}
    fn finished(&mut self, _: &RunRecord) {
        self.0 -= 1;
    }
    fn stops(&mut self) -> bool {
        self.0 == 0
    }
}

const NEVER: usize = usize::MAX;

type Conclude<'a> = &'a dyn Fn(&[RunRecord], Told) -> Findings;

fn study() -> Study {
    Study {
        format: FORMAT,
        id: "s".to_owned(),
        kind: Kind::Sweep,
        title: String::new(),
        created: "2026-01-01T00:00:00Z".to_owned(),
        tool: "plumb".to_owned(),
        epoch: 1,
        target: "/data/f".to_owned(),
        device: Device::Simulated(serde_json::json!({})),
        devices: None,
        copies: 1,
        seed: 1,
        request: serde_json::json!({}),
        runs_most: 99,
        runs_exhaustive: 99,
        estimate_s: 1.0,
        estimate_range_s: None,
        critical: [].into(),
        environment: None,
    }
}

/// Works on a study in `place` until `stop` runs are over, and concludes.
fn worked(
    place: &Path,
    planner: &dyn Planner,
    device: &SimulatedDevice,
    stop: usize,
    conclude: Conclude,
) -> (End, Findings, usize) {
    let folder = match StudyFolder::open(place, "s") {
        Ok(folder) => folder,
        Err(_) => StudyFolder::create(place, &study()).expect("made"),
    };
    let mut journal = folder.journal().expect("a journal");
    let mut performer = Simulation::new(device.clone());
    let changed = Changed::default();
    let end = work(&folder, &mut journal, planner, &mut performer, &mut StopAfter(stop), &changed);
    let resumptions = folder.resumptions().expect("a list");
    let told = Told { study: "s", resumptions: resumptions.records(), ..Told::default() };
    let findings = conclude(journal.records(), told);
    (end.expect("written"), findings, journal.records().len())
}

/// The device as it is, one with a slow run now and then, one that drifts, and one whose runs differ much.
fn devices() -> Vec<(&'static str, SimulatedDevice)> {
    let usual = || SimulatedDevice { real_ms_per_run: 0, ..SimulatedDevice::default() };
    vec![
        ("quiet", usual()),
        (
            "one run in five is slow",
            SimulatedDevice { slow_run_every: 5, slow_run: 0.3, ..usual() },
        ),
        (
            "one run in eight is slow",
            SimulatedDevice { slow_run_every: 8, slow_run: 0.2, ..usual() },
        ),
        (
            "one run in three is half as fast",
            SimulatedDevice { slow_run_every: 3, slow_run: 0.5, ..usual() },
        ),
        ("one run in ten hangs", SimulatedDevice { slow_run_every: 10, slow_run: 0.9, ..usual() }),
        (
            "one run in four is slow, and it drifts",
            SimulatedDevice { slow_run_every: 4, slow_run: 0.4, drift_per_hour: -0.5, ..usual() },
        ),
        ("drifts", SimulatedDevice { drift_per_hour: -0.5, ..usual() }),
        ("noisy", SimulatedDevice { noise: 0.03, ..usual() }),
    ]
}

fn check(what: &str, planner: &dyn Planner, every: usize, conclude: Conclude, score: &mut Score) {
    const SPOILT: &str = "is not one measurement";
    for (name, device) in devices() {
        let whole = tempfile::tempdir().expect("a folder");
        let (end, findings, runs) = worked(whole.path(), planner, &device, NEVER, conclude);
        assert_eq!(end, End::Complete);
        for stop in (1..runs).step_by(every) {
            let place = tempfile::tempdir().expect("a folder");
            let (end, _, _) = worked(place.path(), planner, &device, stop, conclude);
            assert_eq!(end, End::Stopped);
            let (end, resumed, again) = worked(place.path(), planner, &device, NEVER, conclude);
            assert_eq!((end, again), (End::Complete, runs), "{what}, {name}: stopped after {stop}");
            let said = resumed.notes.join("; ");
            assert!(!said.contains(SPOILT), "{what}, {name}: stopped after {stop}: {said}");
            if resumed != findings {
                println!("{what}, {name}, stopped after {stop}: {said}");
            }
            score.add("the same findings", resumed == findings);
        }
        // A device that came back as another is told, where runs of it do not differ as much themselves.
        if name != "quiet" && name != "drifts" {
            continue;
        }
        let place = tempfile::tempdir().expect("a folder");
        worked(place.path(), planner, &device, runs / 2, conclude);
        let other = SimulatedDevice { max_iops: 0.5 * device.max_iops, ..device };
        let (_, resumed, _) = worked(place.path(), planner, &other, NEVER, conclude);
        let said = resumed.notes.join("; ");
        println!("{what}, {name}, another device: {said}");
        score.add("another device", said.contains("when it went on after run"));
    }
}

#[test]
fn an_interruption_is_told_only_where_it_changed_something() {
    let mut score = Score::default();
    let options = SweepOptions {
        vary: vec!["o=1,2,4,8,16".to_owned(), "w=0,50".to_owned()],
        repetitions: Some(2),
        ..SweepOptions::default()
    };
    let plan = options.plan().expect("a plan");
    let planner = SweepPlanner::new(plan.clone());
    check("sweep", &planner, 2, &|runs, told| sweep_findings(&plan, runs, told), &mut score);
    let options = BaselineOptions { preset: Preset::Quick, ..scored() };
    let planner = BaselinePlanner::new(options.clone());
    check(
        "baseline",
        &planner,
        5,
        &|runs, told| baseline_findings(&options, runs, told),
        &mut score,
    );
    score.print();
    score.at_least("the same findings", 0.99);
    score.at_least("another device", 1.0);
}

/// A device that rests between its runs, in the middle of which somebody ends the study.
struct Rests<'a> {
    device: Simulation,
    stopped: &'a Cell<bool>,
    performed: usize,
}

impl Perform for Rests<'_> {
    fn resume_at(&mut self, seconds: f64) {
        self.device.resume_at(seconds);
    }

    fn perform(&mut self, due: Due) -> Performed {
        self.performed += 1;
        self.device.perform(due)
    }

    fn rest(&mut self, _: f64) {
        self.stopped.set(true);
    }
}

/// Stops once it is told to.
struct StopWhen<'a>(&'a Cell<bool>);

impl Watch for StopWhen<'_> {
    fn checks(&mut self, _: &Order) {}
    fn begins(&mut self, _: u32, _: &Order) {}
    fn finished(&mut self, _: &RunRecord) {}
    fn stops(&mut self) -> bool {
        self.0.get()
    }
}

#[test]
fn a_study_that_is_ended_while_its_device_rests_begins_no_run() {
    let place = tempfile::tempdir().expect("a folder");
    let folder = StudyFolder::create(place.path(), &study()).expect("made");
    let mut journal = folder.journal().expect("a journal");
    let options = SweepOptions {
        vary: vec!["o=1,2,4".to_owned()],
        set: vec!["size=1G".to_owned()],
        gap: Some(30),
        ..SweepOptions::default()
    };
    let planner = SweepPlanner::new(options.plan().expect("a plan"));
    let stopped = Cell::new(false);
    let device = Simulation::new(SimulatedDevice::default());
    let mut rests = Rests { device, stopped: &stopped, performed: 0 };
    let mut watch = StopWhen(&stopped);
    let end = work(&folder, &mut journal, &planner, &mut rests, &mut watch, &Changed::default());
    assert_eq!(end.expect("written"), End::Stopped);
    assert_eq!((journal.records().len(), rests.performed), (1, 1));
}
