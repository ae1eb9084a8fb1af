//! What a baseline calls a maximum, and what it says of the cost of latencies, on simulated devices.

use plumb_study::stats::describe::median;
use plumb_study::study::{
    Access, BaselinePlanner, Finding, RunRecord, SimulatedDevice, Simulation, Told,
    baseline_findings, rehearse,
};

use crate::baseline_cases::{devices, scored};

fn study(device: &SimulatedDevice) -> (Vec<RunRecord>, Vec<Finding>) {
    let options = scored();
    let planner = BaselinePlanner::new(options.clone());
    let runs = rehearse(&planner, &mut Simulation::new(device.clone()));
    let told = Told { study: "s", runs_exhaustive: 97, ..Told::default() };
    let findings = baseline_findings(&options, &runs, told).findings;
    (runs, findings)
}

/// The highest median rate of any setting of small random I/O, and that setting in a few letters.
fn highest(runs: &[RunRecord]) -> (f64, String) {
    let level = |run: &RunRecord| {
        let same = runs.iter().filter(|other| other.setting == run.setting);
        median(&same.filter_map(|run| Some(run.usable()?.iops)).collect::<Vec<_>>())
    };
    let random = runs.iter().filter(|run| run.setting.access == Access::Random);
    let usable = random.filter(|run| run.usable().is_some());
    let levels = usable.map(|run| (level(run), run.setting.short()));
    levels.max_by(|a, b| a.0.total_cmp(&b.0)).expect("runs")
}

fn named<'a>(findings: &'a [Finding], id: &str) -> &'a Finding {
    findings.iter().find(|finding| finding.id == id).expect(id)
}

#[test]
fn nothing_is_called_a_maximum_that_another_setting_exceeds() {
    // The balanced choice lies well below what more outstanding I/Os give.
    let balanced = SimulatedDevice {
        max_iops: 100_000.0,
        latency_us: 200.0,
        sharpness: 3.0,
        latency_cost: 0.0,
        noise: 0.001,
        ripple: 0.002,
        ..SimulatedDevice::default()
    };
    let mut all = devices();
    all.push(("balanced choice", balanced.clone()));
    let mut quoted = 0;
    for (name, device) in &all {
        let (runs, findings) = study(device);
        let (most, with) = highest(&runs);
        let cost = named(&findings, "latency-cost");
        let without = cost.decision["evidence"][0]["value"].as_f64().expect("a rate");
        let calls = findings.iter().any(|finding| finding.sentence.contains("as the maximum"));
        assert_eq!(calls, without >= most, "{name}: {without} of {most}: {}", cost.sentence);
        quoted += usize::from(calls);
        if !calls {
            let wanted = format!("{most:.0} with {with}");
            assert!(cost.sentence.contains(&wanted), "{name}: {wanted}: {}", cost.sentence);
        }
    }
    println!("{quoted} of {} quote a maximum", all.len());
    let (runs, findings) = study(&balanced);
    let (most, with) = highest(&runs);
    // What comes first says that it is a choice, and what another setting gave.
    let first = named(&findings, "findings");
    let wanted =
        format!("the chosen setting; the highest I/Os per second are {most:.0} with {with}");
    assert!(first.sentence.contains(&wanted), "{wanted}: {}", first.sentence);
    let table = first.table.as_ref().expect("a table");
    let place = table.columns.iter().position(|column| column == "highest with").expect("a column");
    assert_eq!(table.rows[0][place], with);
    // What the interval of each row covers, and the runs that the figures rest on.
    let place = |name: &str| table.columns.iter().position(|column| column == name).expect(name);
    let each = first.decision["evidence"].as_array().expect("a list");
    assert_eq!(each.len(), table.rows.len());
    for (row, evidence) in table.rows.iter().zip(each) {
        let runs = evidence["value"].as_array().expect("rates").len();
        assert_eq!(row[place("runs")], runs);
        let inside = row[place("ci95 covers")] == "variation inside its one run only";
        assert_eq!(inside, runs == 1, "{row:?}");
    }
    let alone = named(&findings, "latency-alone");
    let means = alone.decision["evidence"][0]["value"].as_array().expect("a list");
    let mut means: Vec<f64> = means.iter().map(|mean| mean.as_f64().expect("a number")).collect();
    means.sort_by(f64::total_cmp);
    let median = f64::midpoint(means[(means.len() - 1) / 2], means[means.len() / 2]);
    let told = alone.decision["value"].as_f64().expect("a number");
    assert!((told - median).abs() <= 1e-9 * median, "{told} of {means:?}");
}

#[test]
fn a_cost_of_latencies_that_may_be_none_is_unclear() {
    let mut words = Vec::new();
    for latency_cost in [0.0, 0.06, 0.25] {
        let device = SimulatedDevice {
            latency_cost,
            noise: 0.002,
            ripple: 0.002,
            ..SimulatedDevice::default()
        };
        let (_, findings) = study(&device);
        let cost = named(&findings, "latency-cost");
        let low = cost.decision["interval"][0].as_f64().expect("a number");
        let verdict = cost.decision["verdict"].as_str().expect("a word").to_owned();
        assert_eq!(verdict == "unclear", low <= 0.0, "{}", cost.sentence);
        assert_eq!(
            verdict == "unclear",
            cost.sentence.contains("cannot be told"),
            "{}",
            cost.sentence
        );
        let reading = named(&findings, "reading").table.as_ref().expect("a table");
        let is_said = |row: &Vec<serde_json::Value>| {
            row[3].as_str().is_some_and(|text| text.starts_with("Measuring latencies costs"))
        };
        assert_eq!(verdict == "unclear", !reading.rows.iter().any(is_said), "{verdict}");
        words.push(verdict);
    }
    assert_eq!(words, ["unclear", "measured", "costly"]);
}
