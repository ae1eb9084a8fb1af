//! The demonstration as a page with plots.

use plumb_study::report::{
    self, Axis, Block, Chart, Data, Headline, Layer, Plot, Report, Section, Side, Tile, Tone,
};
use plumb_tier::scenario::{Case, LoadOutcome, Scenario, ScenarioOutcome};
use plumb_units::Bytes;

use super::grouped;

const CASES: [Case; 3] = [Case::Empty, Case::Used, Case::Optimized];

/// What a case is called on the page.
fn words(case: Case) -> &'static str {
    match case {
        Case::Empty => "empty space",
        Case::Used => "Performance tier full",
        Case::Optimized => "after an optimization",
    }
}

/// The whole file.
pub(super) fn html(scenario: &Scenario, found: &ScenarioOutcome) -> String {
    let rates = found.cases.each_ref().map(LoadOutcome::iops);
    let plots = [over_time(scenario, found), shares(found)];
    let section = Section {
        id: "course".to_owned(),
        title: "Three times the same load".to_owned(),
        blocks: plots.into_iter().map(|plot| Block::Plot(Box::new(plot))).collect(),
    };
    let tile = |(case, iops): (Case, f64)| Tile {
        name: words(case).to_owned(),
        value: format!("{} I/Os per second", grouped(iops)),
        note: "random 4 KiB writes, 320 outstanding".to_owned(),
        link: "iops".to_owned(),
    };
    let moves = found.optimization.report.facts.moves;
    let finding = |tone, text: String| Headline::new(tone, text, "plot", "iops");
    let page = Report {
        title: "A tiered space on emulated disks".to_owned(),
        facts: facts(scenario, found),
        tiles: CASES.into_iter().zip(rates).map(tile).collect(),
        findings: vec![
            finding(
                Tone::Worse,
                format!(
                    "A file that was written when the Performance tier was full is slower by a factor of {:.0}: it lies on rotating disks.",
                    rates[0] / rates[1]
                ),
            ),
            finding(
                Tone::Better,
                format!(
                    "After {} moved up and {} down the same file is at {:.1} % of the first rate.",
                    Bytes(moves.up << 20),
                    Bytes(moves.down << 20),
                    100.0 * rates[2] / rates[0]
                ),
            ),
        ],
        sections: vec![section],
    };
    report::html(&page)
}

fn facts(scenario: &Scenario, found: &ScenarioOutcome) -> Vec<(String, String)> {
    let (sizes, load) = (scenario.sizes(), scenario.load(scenario.files()[0]));
    [
        (
            "Scale",
            format!("1:{} in sizes and durations; rates are as at full size", scenario.scale),
        ),
        ("Disks", "emulated, in virtual time: 4 SSDs, 4 HDDs of 10,000 turns a minute".to_owned()),
        ("Performance tier", Bytes(sizes.tier).to_string()),
        ("Write-back cache", Bytes(sizes.cache).to_string()),
        ("File", Bytes(load.bytes).to_string()),
        ("Each case", format!("{:.3} s", load.duration.as_secs_f64())),
        ("Virtual time in all", format!("{:.0} s", found.virtual_s)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

/// I/Os per second of the three cases, one over the other.
fn over_time(scenario: &Scenario, found: &ScenarioOutcome) -> Plot {
    let interval_s = scenario.load(scenario.files()[0]).interval.as_secs_f64();
    let mut data = Data::new(&["end_s", "empty_iops", "used_iops", "optimized_iops"]);
    let count = found.cases.iter().map(|case| case.series.len()).max().unwrap_or(0);
    let end_s = |nth: usize| (nth + 1) as f64 * interval_s;
    for nth in 0..count {
        let iops = |case: usize| {
            found.cases[case].series.get(nth).map_or_else(String::new, |iops| format!("{iops:.0}"))
        };
        data.add([format!("{:.4}", end_s(nth)), iops(0), iops(1), iops(2)]);
    }
    let line = |((case, outcome), tone): ((Case, &LoadOutcome), u8)| Layer::Line {
        name: words(case).to_owned(),
        side: Side::Left,
        tone,
        points: outcome.series.iter().enumerate().map(|(nth, iops)| (end_s(nth), *iops)).collect(),
    };
    let rates = found.cases.each_ref().map(|case| grouped(case.iops()));
    Plot {
        id: "iops".to_owned(),
        title: "I/Os per second over time".to_owned(),
        sentence: format!(
            "{}, {} and {} I/Os per second on average.",
            rates[0], rates[1], rates[2]
        ),
        chart: Chart {
            x: Axis::from_zero("seconds of virtual time"),
            left: Axis::logarithmic("I/Os per second"),
            right: None,
            layers: CASES.into_iter().zip(&found.cases).zip(1..).map(line).collect(),
        },
        data,
    }
}

/// Who served each case.
fn shares(found: &ScenarioOutcome) -> Plot {
    let mut data = Data::new(&["case", "performance_percent", "capacity_percent", "cache_percent"]);
    let mut bars = Vec::new();
    for (nth, (case, outcome)) in CASES.into_iter().zip(&found.cases).enumerate() {
        let used = &outcome.used;
        let parts =
            [used.performance, used.capacity, used.cache].map(|part| 100.0 * used.share(part));
        let [one, other, cache] = parts.map(|share| format!("{share:.2}"));
        data.add([words(case).to_owned(), one, other, cache]);
        bars.push((nth as f64, parts.to_vec()));
    }
    let names =
        CASES.into_iter().enumerate().map(|(nth, case)| (nth as f64, words(case).to_owned()));
    let parts = [("Performance tier", 1), ("Capacity tier", 2), ("write-back cache", 3)];
    let rates = found.cases.each_ref().map(|case| 100.0 * case.used.share(case.used.performance));
    Plot {
        id: "shares".to_owned(),
        title: "Bytes by who served them".to_owned(),
        sentence: format!(
            "The Performance tier served {:.1} %, {:.1} % and {:.1} %.",
            rates[0], rates[1], rates[2]
        ),
        chart: Chart {
            x: Axis::named("", names.collect()),
            left: Axis::from_zero("% of bytes"),
            right: None,
            layers: vec![Layer::Bars {
                parts: parts.map(|(name, tone)| (name.to_owned(), tone)).into(),
                bars,
            }],
        },
        data,
    }
}
