//! Baselines of devices that take many I/Os at once: `N* = X_max·L₀`, the outstanding I/Os at the corner (1.11), is 30 to
//! 1000, where the devices of `baseline_cases` have 2 to 120. Settings and verdicts are held against those of the exhaustive plan.

use std::cell::RefCell;
use std::collections::VecDeque;

use plumb_study::knee::Verdict;
use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Choices, Next, Order, Part, Planner, RunRecord, Setting,
    SimulatedDevice, Simulation, Step, rehearse,
};

use crate::baseline_cases::scored;
use crate::choice_cases::{WITHIN, quiet, with_exhaustive};
use crate::random::Random;
use crate::score::Score;

/// Devices; `PLUMB_FAR_DEVICES` for more, `PLUMB_FAR_FROM` for others.
fn numbers() -> std::ops::Range<u64> {
    let given = |name: &str, usual: u64| {
        std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
    };
    let from = given("PLUMB_FAR_FROM", 1);
    from..from + given("PLUMB_FAR_DEVICES", 8)
}

/// SD of ln X between runs; none is the first.
const NOISES: [f64; 3] = [0.0, 0.003, 0.01];

const BLOCK: f64 = 8192.0;
const LARGE: f64 = 524_288.0;

/// A device with a corner of small random I/O at 30 to 1000 outstanding, of large sequential I/O at 3 to 400, and the threads
/// that its baseline begins with.
fn device(number: u64) -> (SimulatedDevice, BaselineOptions) {
    let mut random = Random::seeded(number + 230_000);
    let threads = random.one_of(&[4, 8, 8, 16, 32]);
    let mut between = |low: f64, high: f64| random.between(low.ln(), high.ln()).exp();
    let corner = between(30.0, 1000.0);
    let latency_s = between(1e-4, 2e-2);
    let write_cost = between(0.8, 2.0);
    let cost = 0.7 + 0.3 * write_cost;
    // The bytes of one large I/O take time besides. Small ones must not be held up by bytes.
    let large = between(3.0, 400.0).max(1.5 + cost * corner * BLOCK / LARGE);
    let bytes_per_s = (large - 1.0) * LARGE / latency_s;
    let max_iops = corner / latency_s * cost.sqrt();
    let sequential_cost = (0.5 * max_iops * LARGE / bytes_per_s / write_cost).min(1.0);
    let usual = SimulatedDevice {
        seed: number,
        max_iops,
        max_mib_per_s: bytes_per_s / f64::from(1 << 20),
        latency_us: latency_s * 1e6,
        sharpness: between(1.6, 12.0),
        write_cost,
        sequential_cost,
        ripple: 0.005,
        ..SimulatedDevice::default()
    };
    let device = match number % 5 {
        0 => SimulatedDevice { cap_iops: max_iops / cost * between(0.4, 0.9), ..usual },
        1 => SimulatedDevice { beyond: -between(0.02, 0.1), ..usual },
        _ => usual,
    };
    (device, BaselineOptions { threads, ..scored() })
}

/// The exhaustive plan, asked once for each range instead of for each of its hundreds of runs.
struct Ranges {
    planner: BaselinePlanner,
    due: RefCell<VecDeque<Order>>,
}

impl Ranges {
    /// The other settings of the range that this order begins; none of a step without one.
    fn rest(&self, order: &Order) -> Vec<Order> {
        let (from, to) = match Step::of_keyword(&order.step) {
            Some(Step::RandomOne) => (1, 12),
            Some(Step::Reads) => (8, 36),
            Some(Step::Writes) => (4, 32),
            _ => return Vec::new(),
        };
        let step = Step::of_keyword(&order.step).expect("it has one");
        let most = self.planner.options().o_most(step, &order.setting);
        let first = order.setting.outstanding;
        let mut ends = std::iter::successors(Some(to), |last| Some(2 * last));
        let end = ends.find(|last| *last >= first).expect("doublings go on");
        // Of a range that began too late all is missing that lies below.
        let last = if first < from { from - 1 } else { end.min(u32::try_from(most).expect("few")) };
        let with = |outstanding| {
            let setting = Setting { outstanding, ..order.setting.clone() };
            Order { setting, ..order.clone() }
        };
        (first + 1..=last).map(with).collect()
    }
}

impl Planner for Ranges {
    fn next(&self, runs: &[RunRecord]) -> Next {
        if let Some(order) = self.due.borrow_mut().pop_front() {
            // Pre-test 1 ran it.
            if order.setting.outstanding != 12 || order.step != "random-1" {
                return Next::Run(Box::new(order));
            }
        }
        let next = self.planner.next(runs);
        if let Next::Run(order) = &next {
            self.due.borrow_mut().extend(self.rest(order));
        }
        next
    }

    fn seed(&self) -> u64 {
        self.planner.seed()
    }

    fn early_end(&self, order: &Order) -> bool {
        self.planner.early_end(order)
    }

    fn rest_s(&self, last: &Setting, next: &Order) -> f64 {
        self.planner.rest_s(last, next)
    }

    fn known(&self, _: &[RunRecord]) -> Option<Vec<&Order>> {
        None
    }

    fn reference(&self, runs: &[RunRecord]) -> Option<Setting> {
        self.planner.reference(runs)
    }
}

/// What the exhaustive plan chooses: small random I/O, reads, writes; runs that it took.
fn exhaustive(device: &SimulatedDevice, options: &BaselineOptions) -> ([Answer; 3], usize) {
    let run = |part: Part| {
        let skip = vec!["latency".to_owned()];
        let options = BaselineOptions { part, skip, exhaustive: true, ..options.clone() };
        let planner = BaselinePlanner::new(options.clone());
        let ranges = Ranges { planner: BaselinePlanner::new(options), due: RefCell::default() };
        let runs = rehearse(&ranges, &mut Simulation::new(device.clone()));
        (planner.choices(&runs), runs.len())
    };
    let (random, runs) = run(Part::Oltp);
    let (sequential, more) = run(Part::Olap);
    let ([random, ..], [_, reads, writes]) = (answers(&random), answers(&sequential));
    ([random, reads, writes].map(|answer| answer.expect("its step was run")), runs + more)
}

/// A verdict and a setting.
type Answer = (Verdict, Setting);

fn answers(choices: &Choices) -> [Option<Answer>; 3] {
    let of = |curve: &Option<(plumb_study::knee::Knee, Setting)>| {
        curve.as_ref().map(|(curve, setting)| (curve.verdict, setting.clone()))
    };
    let random = choices.random_curve.as_ref();
    [
        random.map(|curve| (curve.verdict, choices.random.clone())),
        of(&choices.reads),
        of(&choices.writes),
    ]
}

#[derive(Default)]
struct Tally(Score);

impl Tally {
    /// Right is the verdict with the same setting, or with one of the same true throughput to 3 % either way.
    fn count(
        &mut self,
        whose: &str,
        device: &SimulatedDevice,
        found: &[Answer; 3],
        wanted: &[Answer; 3],
    ) {
        let names = ["random", "reads", "writes"];
        for ((what, found), wanted) in names.into_iter().zip(found).zip(wanted) {
            let off = device.truth(&found.1).0 / device.truth(&wanted.1).0 - 1.0;
            let is_same = found.0 == wanted.0 && (found.1 == wanted.1 || off.abs() <= WITHIN);
            self.0.add(&format!("{whose}: {what}"), is_same);
            self.0.add(&format!("{whose}: in all"), is_same);
            self.0.add(&format!("{whose}: verdicts"), found.0 == wanted.0);
            self.0.add(&format!("{whose}: not 3 % less"), off >= -WITHIN);
            if !is_same {
                println!(
                    "{whose}, device {}: {what}: {} {} ({} {}): {:+.1} %",
                    device.seed,
                    found.0.keyword(),
                    found.1.short(),
                    wanted.0.keyword(),
                    wanted.1.short(),
                    off * 100.0
                );
            }
        }
    }
}

#[test]
fn corners_far_up_are_found_in_forty_runs() {
    let mut tally = Tally::default();
    for number in numbers() {
        let (shape, options) = device(number);
        let (wanted, all) = exhaustive(&quiet(&shape), &options);
        for noise in NOISES {
            let ripple = if noise > 0.0 { shape.ripple } else { 0.0 };
            let device = SimulatedDevice { noise, ripple, ..shape.clone() };
            let planner = BaselinePlanner::new(options.clone());
            let runs = rehearse(&planner, &mut Simulation::new(device.clone()));
            assert!(runs.len() <= 40, "device {number}: {} runs instead of {all}", runs.len());
            let found = answers(&planner.choices(&runs)).map(|answer| answer.expect("it is run"));
            tally.count(&format!("searched, noise {noise}"), &device, &found, &wanted);
            if noise > 0.0 && with_exhaustive() {
                let (all, _) = exhaustive(&device, &options);
                tally.count(&format!("exhaustive, noise {noise}"), &device, &all, &wanted);
                let other = SimulatedDevice { seed: number * 104_729 + 7, ..device.clone() };
                let (again, _) = exhaustive(&other, &options);
                let name = format!("exhaustive with itself, noise {noise}");
                tally.count(&name, &device, &again, &all);
                tally.count(
                    &format!("searched with exhaustive, noise {noise}"),
                    &device,
                    &found,
                    &all,
                );
            }
        }
    }
    tally.0.print();
    // Without noise there is nothing that could excuse a search.
    tally.0.at_least("searched, noise 0: in all", 0.95);
    tally.0.at_least("searched, noise 0.003: in all", 0.85);
    tally.0.at_least("searched, noise 0.01: in all", 0.75);
}
