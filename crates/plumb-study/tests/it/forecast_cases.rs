//! What a study is said to take, before it and on its way, against what it takes on devices that the forecast has not seen
//! (method, 4.1 and 4.5).

use plumb_study::study::{
    BaselineOptions, BaselinePlanner, Conditioning, Forecast, Part, Planner, Preset,
    SimulatedDevice, Simulation, SweepOptions, SweepPlanner, left_s, rehearse,
};

use crate::baseline_cases::scored;
use crate::random::Random;
use crate::score::Score;

/// Given in the environment: `PLUMB_FORECAST_DEVICES` for more devices, `PLUMB_FORECAST_FROM` for others.
fn given(name: &str, usual: u64) -> u64 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(usual)
}

/// Devices whose corners, sharpness and calm are drawn at random.
fn devices(count: u64) -> Vec<SimulatedDevice> {
    let from = given("PLUMB_FORECAST_FROM", 4000);
    let draw = |seed| {
        let mut random = Random::seeded(seed + from);
        let mut between = |low: f64, high: f64| random.between(low.ln(), high.ln()).exp();
        SimulatedDevice {
            seed,
            max_iops: between(200.0, 900_000.0),
            max_mib_per_s: between(150.0, 7000.0),
            latency_us: between(60.0, 5000.0),
            sharpness: between(2.0, 10.0),
            noise: between(0.001, 0.02),
            ripple: between(0.004, 0.08),
            ..SimulatedDevice::default()
        }
    };
    (1..=count).map(draw).collect()
}

/// A way to use the program, its plan, and what is said of it.
type Mode = (&'static str, Box<dyn Planner>, Forecast);

/// Bytes per second that files are written with; of account for conditioning only.
const WRITTEN: f64 = 1e9;

fn baseline(name: &'static str, options: BaselineOptions) -> Mode {
    let forecast = Forecast::of_baseline(&options, WRITTEN);
    (name, Box::new(BaselinePlanner::new(options)), forecast)
}

fn sweep(name: &'static str, options: &str) -> Mode {
    let plan = SweepOptions::of_toml(options).expect("keys").plan().expect("a plan");
    let planner = SweepPlanner::new(plan);
    let forecast = Forecast::of_sweep(&planner, WRITTEN);
    (name, Box::new(planner), forecast)
}

fn modes() -> Vec<Mode> {
    vec![
        baseline("baseline", scored()),
        baseline("baseline --quick", BaselineOptions { preset: Preset::Quick, ..scored() }),
        baseline("baseline --oltp", BaselineOptions { part: Part::Oltp, ..scored() }),
        baseline("baseline --olap", BaselineOptions { part: Part::Olap, ..scored() }),
        baseline("baseline --full-length", BaselineOptions { full_length: true, ..scored() }),
        baseline(
            "baseline --duration 1",
            BaselineOptions { measured_s: Some(1), warm_up_s: Some(0), ..scored() },
        ),
        sweep("sweep", "vary = [\"o=1..16\"]"),
        sweep("sweep of reads and writes", "vary = [\"o=1..8\", \"w=0,100\"]\nrepetitions = 2"),
        sweep("sweep --duration 1", "vary = [\"o=1..16\"]\nduration = 1\nwarmup = 0"),
        sweep("sweep --full-length", "vary = [\"o=1..16\"]\nfull-length = true"),
        sweep("sweep --adaptive", "vary = [\"o=1..64\"]\nset = [\"t=1\"]\nadaptive = true"),
        sweep(
            "sweep --adaptive of four curves",
            "vary = [\"o=1..32\", \"t=1,2,4,8\"]\nadaptive = true\nrepetitions = 2",
        ),
        sweep("sweep --budget", "vary = [\"o=1..16\", \"b=4K,64K\"]\nbudget = \"40m\""),
    ]
}

#[test]
fn a_study_takes_about_as_long_as_it_was_said_to() {
    let mut score = Score::default();
    for (name, planner, forecast) in modes() {
        let (low, high) = forecast.seconds;
        println!(
            "{name}: {:?} runs, {low:.0} to {high:.0} s, likely {:.0}",
            forecast.runs, forecast.likely_s
        );
        assert!(low <= forecast.likely_s && forecast.likely_s <= high, "{name}");
        // A range that holds everything says nothing; a search over one curve may end after eight runs, or need all.
        let widest = if name.contains("--adaptive") { 9.0 } else { 2.3 };
        assert!(high <= widest * low, "{name}");
        for device in devices(given("PLUMB_FORECAST_DEVICES", 5)) {
            let runs = rehearse(&*planner, &mut Simulation::new(device));
            let took = runs.last().expect("runs").ended_s;
            let is_near = (forecast.likely_s / took - 1.0).abs() <= 0.2;
            let is_within = (low..=high).contains(&took);
            let is_told = is_near || is_within;
            if !is_within {
                println!("  {} runs, {took:.0} s", runs.len());
            }
            score.add(&format!("{name}: within"), is_within);
            score.add("within", is_within);
            score.add(&format!("{name}: near"), is_near);
            score.add("near", is_near);
            score.add("told", is_told);
            let is_known = low >= 0.999 * high;
            if is_known {
                score.add("what is known takes that long", (took / high - 1.0).abs() <= 0.02);
            }
        }
    }
    score.print();
    score.at_least("told", 0.95);
    score.at_least("within", 0.95);
    for (name, ..) in modes() {
        score.at_least(&format!("{name}: within"), 0.8);
    }
    score.at_least("near", 0.7);
    score.at_least("what is known takes that long", 1.0);
}

#[test]
fn what_is_left_is_told_better_the_more_is_there() {
    let mut score = Score::default();
    for (name, planner, _) in modes() {
        for device in devices(3) {
            let device_seed = device.seed;
            let runs = rehearse(&*planner, &mut Simulation::new(device));
            let end = runs.last().expect("runs").ended_s;
            for done in (5..runs.len()).step_by(9) {
                let so_far = runs[done - 1].ended_s;
                let left = left_s(&*planner, &runs[..done]).expect("there are runs");
                let off = ((so_far + left) / end - 1.0).abs();
                let is_known = planner.known(&runs[..done]).is_some();
                let kind = if is_known { "known" } else { "searched" };
                if off > 0.1 {
                    println!(
                        "{name}, {} after {done} of {}: {left:.0} s, was {:.0}",
                        device_seed,
                        runs.len(),
                        end - so_far
                    );
                }
                score.add(&format!("{name}: within 10 %"), off <= 0.1);
                score.add(&format!("{kind}, within 10 %"), off <= 0.1);
                if 2 * done >= runs.len() {
                    score.add(&format!("{kind}, from the middle on, within 25 %"), off <= 0.25);
                }
            }
            assert!(left_s(&*planner, &runs).expect("there are runs") <= 0.0, "{name}");
        }
    }
    score.print();
    score.at_least("known, within 10 %", 1.0);
    // What a search still finds changes how long it takes.
    score.at_least("searched, within 10 %", 0.6);
    score.at_least("searched, from the middle on, within 25 %", 0.9);
}

#[test]
fn conditioning_is_said_too() {
    let options = BaselineOptions {
        conditioning: Conditioning::PtsFile,
        size: Some(8 << 30),
        part: Part::Oltp,
        ..scored()
    };
    let with = Forecast::of_baseline(&options, 2e9);
    let device = SimulatedDevice::default();
    let planner = BaselinePlanner::new(options);
    let runs = rehearse(&planner, &mut Simulation::new(device));
    let took = runs.last().expect("runs").ended_s;
    assert!((with.seconds.0..=with.seconds.1).contains(&took), "{took}: {with:?}");
    assert!((with.likely_s / took - 1.0).abs() <= 0.2, "{took}: {with:?}");
}
