//! Sequential curves of whole baselines of at most forty runs, on devices from those that one I/O fills to those that need some
//! two hundred, against the exhaustive plan's without noise (method, 2.8 and 4.4).

use std::sync::LazyLock;

use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Choices, Next, Order, Part, Planner, RunRecord, Setting,
    SimulatedDevice, Simulation, State, Step, Told, baseline_findings, rehearse,
};

use crate::baseline_cases::scored;
use crate::choice_cases::{drawn_device, quiet};
use crate::random::Random;
use crate::score::Score;

/// Distance in true throughput that counts as none.
const WITHIN: f64 = 0.03;
/// Factor in outstanding I/Os that counts as none; what is less than one I/O off counts as none, too.
const DEPTH_WITHIN: f64 = 1.5;

/// How far the devices need to be filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Named ones, whose corners lie at 36 to 192.
    Named,
    /// 24 to 160.
    Deep,
    /// 1 to 4.
    Shallow,
    /// As `choice_cases` draws them.
    Any,
    /// A ceiling below what the device gives, beside a corner at 12 to 150.
    Capped,
    /// 8 to 160, of a sharpness of 8 to 20.
    Sharp,
    /// 160 to 500.
    Far,
}

/// So many of each kind that is drawn, or as `PLUMB_DEEP_DEVICES` says.
fn each(usual: u64) -> u64 {
    let given = std::env::var("PLUMB_DEEP_DEVICES").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// `PLUMB_DEEP_FROM` for others.
fn from() -> u64 {
    let given = std::env::var("PLUMB_DEEP_FROM").ok();
    given.and_then(|text| text.parse().ok()).unwrap_or(0)
}

/// A device that takes so long for one I/O, and gives so much.
fn filled_by(ms: f64, mib_per_s: f64) -> SimulatedDevice {
    SimulatedDevice {
        latency_us: ms * 1e3,
        max_mib_per_s: mib_per_s,
        noise: 0.0,
        ripple: 0.0,
        ..SimulatedDevice::default()
    }
}

fn drawn(number: u64, corner: (f64, f64)) -> SimulatedDevice {
    let mut random = Random::seeded(number + from() + 318_000);
    let mut between = |low: f64, high: f64| random.between(low.ln(), high.ln()).exp();
    let corner = between(corner.0, corner.1);
    let mib_per_s = between(500.0, 10_000.0);
    // One I/O of 512 KiB takes its time, and that of its bytes.
    let ms = ((corner - 1.0).max(0.05) * 0.5 / mib_per_s) * 1e3;
    SimulatedDevice {
        seed: number + 1,
        max_iops: between(30_000.0, 300_000.0),
        sharpness: between(2.5, 8.0),
        write_cost: between(0.8, 2.0),
        beyond: if number.is_multiple_of(4) { -between(0.02, 0.08) } else { 0.0 },
        ..filled_by(ms, mib_per_s)
    }
}

/// With a ceiling, a sharp corner, or one far away.
fn drawn_edge(number: u64, kind: Kind) -> SimulatedDevice {
    let mut random = Random::seeded(number + from() + 356_000);
    let mut between = |low: f64, high: f64| random.between(low.ln(), high.ln()).exp();
    let (corners, sharpness) = match kind {
        Kind::Capped => ((12.0, 150.0), (2.0, 12.0)),
        Kind::Sharp => ((8.0, 160.0), (8.0, 20.0)),
        _ => ((160.0, 500.0), (2.5, 20.0)),
    };
    let corner = between(corners.0, corners.1);
    let mib_per_s = between(200.0, 20_000.0);
    let ms = (corner - 1.0) * 0.5 / mib_per_s * 1e3;
    SimulatedDevice {
        seed: number + 1,
        max_iops: between(50_000.0, 1e6),
        sharpness: between(sharpness.0, sharpness.1),
        write_cost: between(0.6, 2.0),
        // Two I/Os of 512 KiB are a MiB.
        cap_iops: if kind == Kind::Capped { between(0.35, 0.95) * 2.0 * mib_per_s } else { 0.0 },
        ..filled_by(ms, mib_per_s)
    }
}

static DEVICES: LazyLock<Vec<(Kind, SimulatedDevice)>> = LazyLock::new(|| {
    let fabric =
        SimulatedDevice { max_iops: 200_000.0, sharpness: 6.0, ..filled_by(8.0, 12_000.0) };
    let named = [
        filled_by(20.0, 2500.0),
        filled_by(10.0, 3000.0),
        filled_by(5.0, 6000.0),
        filled_by(15.0, 1200.0),
        fabric,
    ];
    let mut all: Vec<_> = named.into_iter().map(|device| (Kind::Named, device)).collect();
    for number in 0..each(3) {
        all.push((Kind::Deep, drawn(number, (24.0, 160.0))));
        all.push((Kind::Shallow, drawn(number + 1000, (1.0, 4.0))));
        all.push((Kind::Any, quiet(&drawn_device(number + from() + 500))));
    }
    all
});

/// What ends in another way than by bending slowly within what is looked at first.
const EDGES: [Kind; 3] = [Kind::Capped, Kind::Sharp, Kind::Far];
static EDGE_DEVICES: LazyLock<Vec<(Kind, SimulatedDevice)>> = LazyLock::new(|| {
    let of = |kind: Kind| (0..each(10)).map(move |number| (kind, drawn_edge(number, kind)));
    EDGES.into_iter().flat_map(of).collect()
});

/// The exhaustive plan takes every o up to the end of a range, which need not be asked for one by one.
struct Quicker<'a>(&'a BaselinePlanner);

impl Planner for Quicker<'_> {
    fn next(&self, runs: &[RunRecord]) -> Next {
        if let Some(last) = runs.last() {
            let more = last.setting.outstanding + 1;
            let ends = [37, 73, 145, 289, 577, 33, 65, 129, 257, 513];
            let setting = Setting { outstanding: more, ..last.setting.clone() };
            let is_new = runs.iter().all(|run| run.setting != setting);
            if last.step.starts_with("sequential") && !ends.contains(&more) && is_new {
                let (step, purpose) = (last.step.clone(), last.purpose);
                return Next::Run(Box::new(Order { step, purpose, repetition: 1, setting }));
            }
        }
        self.0.next(runs)
    }

    fn seed(&self) -> u64 {
        self.0.seed()
    }

    fn early_end(&self, order: &Order) -> bool {
        self.0.early_end(order)
    }

    fn rest_s(&self, last: &Setting, next: &Order) -> f64 {
        self.0.rest_s(last, next)
    }

    fn known(&self, runs: &[RunRecord]) -> Option<Vec<&Order>> {
        self.0.known(runs)
    }

    fn reference(&self, runs: &[RunRecord]) -> Option<Setting> {
        self.0.reference(runs)
    }
}

/// What a plan chooses of sequential I/O. Seconds of a run are all the same here: few are enough.
fn choices(device: &SimulatedDevice, seed: u64, exhaustive: bool) -> (Vec<RunRecord>, Choices) {
    let (warm_up_s, measured_s) = (Some(0), Some(3));
    let part = if exhaustive { Part::Olap } else { Part::All };
    let options = BaselineOptions { seed, part, exhaustive, warm_up_s, measured_s, ..scored() };
    let planner = BaselinePlanner::new(options);
    let mut simulation = Simulation::new(device.clone());
    let runs = match exhaustive {
        true => rehearse(&Quicker(&planner), &mut simulation),
        false => rehearse(&planner, &mut simulation),
    };
    assert!(exhaustive || runs.len() <= 40, "{} runs", runs.len());
    let choices = planner.choices(&runs);
    (runs, choices)
}

/// What the exhaustive plan chooses on each of them.
fn wanted(devices: &[(Kind, SimulatedDevice)]) -> Vec<Choices> {
    devices.iter().map(|(_, device)| choices(device, 1, true).1).collect()
}

fn score(devices: &[(Kind, SimulatedDevice)], wanted: &[Choices], noise: f64) -> Score {
    let mut score = Score::default();
    for (number, ((kind, quiet), wanted)) in devices.iter().zip(wanted).enumerate() {
        let device = SimulatedDevice { noise, ..quiet.clone() };
        let (runs, found) = choices(&device, number as u64 + 1, false);
        for (step, found, wanted) in [
            (Step::Reads, &found.reads, &wanted.reads),
            (Step::Writes, &found.writes, &wanted.writes),
        ] {
            let [(curve, setting), (all, instead)] =
                [found, wanted].map(|answer| answer.as_ref().expect("both are run"));
            let off = quiet.truth(setting).0 / quiet.truth(instead).0 - 1.0;
            let is_near = off.abs() <= WITHIN;
            let depths = [setting.outstanding, instead.outstanding];
            let (less, more) = (depths[0].min(depths[1]), depths[0].max(depths[1]));
            let is_as_deep = more - less <= 1 || f64::from(more) <= DEPTH_WITHIN * f64::from(less);
            score.add(&format!("{kind:?}: depth"), is_as_deep);
            score.add(&format!("{kind:?}: within 3 %"), is_near);
            score.add(&format!("{kind:?}: not 3 % less"), off >= -WITHIN);
            score.add(&format!("{kind:?}: verdict"), curve.verdict == all.verdict);
            if !is_near || !is_as_deep || curve.verdict != all.verdict {
                let own = runs.iter().filter(|run| run.step == step.keyword());
                let own: Vec<String> = own.map(|run| run.setting.outstanding.to_string()).collect();
                println!(
                    "{number} {kind:?} {noise}: {step:?}: {} o{} ({} o{}): {:+.1} %, {} runs, {}",
                    curve.verdict.keyword(),
                    setting.outstanding,
                    all.verdict.keyword(),
                    instead.outstanding,
                    off * 100.0,
                    runs.len(),
                    own.join(" ")
                );
            }
        }
    }
    score.print();
    score
}

/// (2.8, 4.4) The verdict and the choice of the exhaustive plan, wherever the corner lies.
#[test]
fn sequential_curves_end_where_the_exhaustive_plan_ends_them() {
    let wanted = wanted(&DEVICES);
    for (noise, share) in [(0.0, 1.0), (0.005, 0.97), (0.01, 0.94)] {
        println!("noise {noise}");
        let score = score(&DEVICES, &wanted, noise);
        for kind in [Kind::Named, Kind::Deep, Kind::Shallow, Kind::Any] {
            score.at_least(&format!("{kind:?}: verdict"), share);
            score.at_least(&format!("{kind:?}: not 3 % less"), share);
            score.at_least(&format!("{kind:?}: within 3 %"), share);
            if [Kind::Named, Kind::Deep].contains(&kind) {
                score.at_least(&format!("{kind:?}: depth"), share);
            }
        }
    }
}

/// (2.8, 3.2, 4.4) So with ceilings and with corners that are sharp, which are looked for below the plateau that was run; and with
/// corners that are as far away as may be run. Which side of the farthest that can be seen one lies on is chance for some.
#[test]
fn ceilings_and_sharp_and_far_corners_are_those_of_the_exhaustive_plan() {
    let wanted = wanted(&EDGE_DEVICES);
    // Without noise, and with 0.5 %: verdicts of what is far, and all others.
    for (noise, far, share) in [(0.0, 0.9, 0.95), (0.005, 0.85, 0.9)] {
        println!("noise {noise}");
        let score = score(&EDGE_DEVICES, &wanted, noise);
        for kind in EDGES {
            let verdict = if kind == Kind::Far { far } else { 0.95 };
            score.at_least(&format!("{kind:?}: verdict"), verdict);
            score.at_least(&format!("{kind:?}: not 3 % less"), 0.95);
            score.at_least(&format!("{kind:?}: within 3 %"), 0.95);
            score.at_least(&format!("{kind:?}: depth"), share);
        }
    }
}

/// (4.4) A curve that ends for want of runs says so, and how to go on; one that was searched to its end does not, nor does a
/// baseline that is not finished.
#[test]
fn a_curve_that_was_cut_short_says_so() {
    let device = filled_by(10.0, 3000.0);
    let options = scored();
    let planner = BaselinePlanner::new(options.clone());
    let runs = rehearse(&planner, &mut Simulation::new(device));
    let sentence = |runs: &[RunRecord], state| {
        let told = Told { study: "s", state, runs_exhaustive: 97, ..Told::default() };
        let findings = baseline_findings(&options, runs, told).findings;
        let reads = findings.into_iter().find(|finding| finding.id == Step::Reads.keyword());
        let reads = reads.expect("a curve");
        (reads.decision["verdict"].as_str().expect("a word").to_owned(), reads.sentence)
    };
    let (verdict, said) = sentence(&runs, State::Complete);
    assert_eq!(verdict, "knee", "{said}");
    assert!(!said.contains("were left"), "{said}");
    // As if steps before had used all others up: sequential I/O had three runs each.
    let of = |step: Step| runs.iter().filter(move |run| run.step == step.keyword());
    let is_sequential = |run: &&RunRecord| run.step.starts_with("sequential");
    let mut few: Vec<RunRecord> =
        runs.iter().take_while(|run| !is_sequential(run)).cloned().collect();
    few.extend(of(Step::Reads).take(3).chain(of(Step::Writes).take(3)).cloned());
    let confirm = RunRecord { step: Step::Confirm.keyword().to_owned(), ..runs[0].clone() };
    few.resize(40, confirm);
    let (verdict, said) = sentence(&few, State::Complete);
    assert_eq!(verdict, "extend", "{said}");
    let remedy = "No more of the 40 runs were left for it: go on with --exhaustive, or with plumb sweep --vary \
                  o=8,15,27,50,92,170,313,576 --set t=1 --set b=512K --set w=0 --set access=sequential.";
    assert!(said.contains(remedy), "{said}");
    let (_, said) = sentence(&few, State::Partial);
    assert!(!said.contains("were left"), "{said}");
    // So does one whose knee may lie far from the settings that were run.
    let steps = [(2, 100.0), (4, 200.0), (16, 800.0), (64, 3200.0), (256, 6000.0), (512, 6010.0)];
    let first = of(Step::Reads).next().expect("a run").clone();
    let mut few: Vec<RunRecord> =
        runs.iter().take_while(|run| !is_sequential(run)).cloned().collect();
    few.extend(steps.map(|(outstanding, iops)| with_rate(&first, outstanding, iops)));
    let confirm = RunRecord { step: Step::Confirm.keyword().to_owned(), ..runs[0].clone() };
    few.resize(40, confirm);
    let (verdict, said) = sentence(&few, State::Complete);
    assert_eq!(verdict, "knee", "{said}");
    let remedy = "No more of the 40 runs were left to look between o = 64 and 512: go on with --exhaustive, or with plumb \
                  sweep --vary o=64,86,116,156,210,283,380,512 --set t=1 ";
    assert!(said.contains(remedy), "{said}");
    let (_, said) = sentence(&few, State::Partial);
    assert!(!said.contains("were left"), "{said}");
}

/// (4.4) A curve that still climbs when all runs of its own are used up has those of latencies with two and four outstanding I/Os:
/// soft corners of deep devices take a step more than others.
#[test]
fn soft_corners_of_deep_devices_are_seen() {
    let device = SimulatedDevice {
        max_iops: 8400.0,
        sharpness: 1.4,
        write_cost: 1.9,
        beyond: 0.03,
        ..filled_by(14.0, 1360.0)
    };
    let (_, all) = choices(&device, 1, true);
    let verdict = |found: &Choices| found.reads.as_ref().map(|(curve, _)| curve.verdict);
    let mut lent = 0;
    for seed in 1..=6 {
        let noisy = SimulatedDevice { seed, noise: 0.005, ripple: 0.01, ..device.clone() };
        let (runs, found) = choices(&noisy, seed, false);
        let alone: Vec<u32> = runs
            .iter()
            .filter(|run| run.step == Step::Latency.keyword() && run.setting.threads == 1)
            .map(|run| run.setting.outstanding)
            .filter(|outstanding| *outstanding <= 4)
            .collect();
        assert_eq!(verdict(&found), verdict(&all), "{seed}: {} runs, {alone:?}", runs.len());
        assert_eq!(alone.first(), Some(&1), "one at a time is always run");
        assert!(runs.len() <= 40, "{seed}: {}", runs.len());
        lent += usize::from(alone.len() < 3);
    }
    assert!(lent > 0, "no curve needed more runs than its own");
}

/// (4.4) Where reads need many I/Os at once, writes are tried with as many before a climb would get there; where they need few,
/// writes are searched for themselves.
#[test]
fn writes_are_tried_where_reads_ended() {
    for (device, is_deep) in [(filled_by(10.0, 3000.0), true), (filled_by(0.3, 3000.0), false)] {
        let runs = rehearse(&BaselinePlanner::new(scored()), &mut Simulation::new(device));
        let own = |step: Step| {
            let own = runs.iter().filter(|run| run.step == step.keyword());
            own.map(|run| run.setting.outstanding).collect::<Vec<_>>()
        };
        let (reads, writes) = (own(Step::Reads), own(Step::Writes));
        let said = format!("{reads:?} {writes:?}");
        assert_eq!(reads[..2], [2, 8], "{said}");
        assert_eq!(writes[0], 2, "{said}");
        match is_deep {
            true => assert!(writes[1] > 32 && reads.contains(&writes[1]), "{said}"),
            false => assert_eq!(writes[1], 8, "{said}"),
        }
    }
}

/// The same run with another o and another rate.
fn with_rate(run: &RunRecord, outstanding: u32, iops: f64) -> RunRecord {
    let mut run = run.clone();
    run.setting.outstanding = outstanding;
    let summary = run.summary.as_mut().expect("a result");
    summary.iops = iops;
    summary.latency_ms = Some(f64::from(outstanding) / iops * 1e3);
    run
}

/// (2.6, 4.4) A range that ends at or a little beyond what pre-test 2 has run, on a device that is far from full there.
#[test]
fn a_range_that_ends_early_has_a_verdict() {
    let device = SimulatedDevice { max_iops: 100_000.0, noise: 0.003, ..filled_by(8.0, 6000.0) };
    for outstanding_most in [48, 64, 96, 103, 128] {
        let options = BaselineOptions { outstanding_most, ..scored() };
        let planner = BaselinePlanner::new(options.clone());
        let runs = rehearse(&planner, &mut Simulation::new(device.clone()));
        let told = Told { study: "s", state: State::Complete, ..Told::default() };
        let findings = baseline_findings(&options, &runs, told).findings;
        let of = |id: &str| findings.iter().find(|finding| finding.id == id).expect("a curve");
        let random = of(Step::RandomOne.keyword());
        let said = format!("{outstanding_most}: {}", random.sentence);
        assert_eq!(random.decision["verdict"], "never-plateaued", "{said}");
        assert!(runs.len() <= 40, "{said}");
    }
}
