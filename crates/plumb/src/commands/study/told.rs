//! A study as it is told: its progress on standard error, its findings on standard output.

use std::cell::Cell;
use std::io::Write;
use std::path::Path;

use plumb_study::study::{
    self, Device, Extent, Finding, Findings, Forecast, GAP_S, Next, Order, Outcome, Planner,
    Purpose, RunRecord, State, Study, Watch,
};
use plumb_units::words::number_of;
use serde_json::Value;

/// A line per run on standard error.
pub(super) struct Teller<'a> {
    study: &'a Study,
    planner: &'a dyn Planner,
    stops: &'a dyn Fn() -> bool,
    /// Whether the end was told.
    said: &'a Cell<bool>,
    runs: Vec<RunRecord>,
    begun: String,
    /// How many runs were told last, of a plan that may be extended, and after how many runs.
    told: Option<(Extent, u64)>,
    /// The most runs that were told.
    most_told: u64,
}

/// Runs of a plan above which nobody works out anew after each of them what is left.
const FORECAST_MOST: u64 = 500;

impl<'a> Teller<'a> {
    pub(super) fn new(
        study: &'a Study,
        planner: &'a dyn Planner,
        runs: &[RunRecord],
        stops: &'a dyn Fn() -> bool,
        said: &'a Cell<bool>,
    ) -> Self {
        let told = planner.extent(runs).map(|extent| (extent, runs.len() as u64));
        let most_told = told.map_or(0, |(extent, _)| extent.planned);
        let (runs, begun) = (runs.to_vec(), String::new());
        Self { study, planner, stops, said, runs, begun, told, most_told }
    }

    pub(super) fn starts(&self, folder: &Path) {
        let what = match &self.study.device {
            Device::Real => self.study.target.clone(),
            Device::Simulated(_) => "a simulated device, in virtual time".to_owned(),
        };
        let from = match self.runs.len() {
            0 => String::new(),
            done => format!(", {done} of them are there"),
        };
        let likely = self.study.estimate_s;
        let (low, high) = self.study.estimate_range_s.unwrap_or((likely, likely));
        let time = from_to(low, high);
        let many = |runs: u64| if runs == 1 { "run" } else { "runs" };
        let takes = match self.told {
            Some((extent, _)) => format!(
                "{}{from}, {time} as planned{}",
                number_of(extent.planned, "run"),
                extension(extent, self.planner, &self.runs)
            ),
            None => format!(
                "{} {}{from}, {time} in all",
                self.study.runs_in_words(),
                many(self.study.runs_most)
            ),
        };
        say(&format!(
            "{} `{}` of {what}: {takes}; kept in {}",
            self.study.kind.keyword(),
            self.study.id,
            folder.display()
        ));
    }

    /// How many runs a plan takes whose ranges are extended, by what was found so far; says it where that is more than before.
    fn extends(&mut self) -> Option<String> {
        let (before, after) = self.told?;
        let done = self.runs.len() as u64;
        if done < after + before.settled {
            return Some(before.planned.to_string());
        }
        let now = self.planner.extent(&self.runs)?;
        self.told = Some((now, done));
        // Counted down and up again, it is no more than was told.
        if now.planned > self.most_told {
            say(&format!(
                "what was found asks for more: {} runs in all, where {} were planned",
                now.planned, self.most_told
            ));
            self.most_told = now.planned;
        }
        Some(now.planned.to_string())
    }

    /// Seconds left, by the runs so far; 0 where nothing is said: a search on a simulated device is over before anybody has read it.
    fn left(&self) -> f64 {
        if let Some(seconds) = study::left_in_order_s(self.planner, &self.runs) {
            return seconds;
        }
        if self.study.device != Device::Real {
            return 0.0;
        }
        let is_rehearsed = self.study.runs_most <= FORECAST_MOST;
        let told = if is_rehearsed { study::left_s(self.planner, &self.runs) } else { None };
        let elapsed = self.runs.last().map_or(0.0, |run| run.ended_s);
        told.unwrap_or(self.study.estimate_s - elapsed)
    }
}

/// Why a run has no figures, in a line.
pub(super) fn why(run: &RunRecord) -> String {
    match &run.outcome {
        Outcome::Measured => "nothing was measured".to_owned(),
        Outcome::Aborted => "interrupted".to_owned(),
        // What a program prints may have lines, and marks under a word.
        Outcome::Failed(why) => {
            let words: Vec<&str> = why
                .split_whitespace()
                .filter(|word| word.chars().any(char::is_alphanumeric))
                .collect();
            format!("failed: {}", words.join(" "))
        }
    }
}

impl Watch for Teller<'_> {
    fn checks(&mut self, order: &Order) {
        say(&format!("before it goes on: {}, the reference", order.setting.short()));
    }

    fn begins(&mut self, _: u32, order: &Order) {
        let word = match order.purpose {
            Purpose::Measure => String::new(),
            Purpose::Repeat => format!(", repetition {}", order.repetition),
            Purpose::Anchor => ", the reference".to_owned(),
        };
        let step = match order.step.as_str() {
            "sweep" => String::new(),
            step => format!("{step}: "),
        };
        self.begun = format!("{step}{}{word}", order.setting.short());
    }

    fn finished(&mut self, record: &RunRecord) {
        self.runs.push(record.clone());
        let figures = match (&record.outcome, &record.summary) {
            (_, Some(summary)) => {
                let width = summary
                    .half_width
                    .map_or(String::new(), |half| format!(" ±{:.1} %", half * 100.0));
                let latency =
                    summary.latency_ms.map_or(String::new(), |ms| format!(", {ms:.3} ms"));
                format!("{:.0} IOPS{width}, {:.1} MiB/s{latency}", summary.iops, summary.mib_per_s)
            }
            (_, None) => why(record),
        };
        let left = match self.left() {
            seconds if seconds > 0.0 => format!("; about {} left", duration(seconds)),
            _ => String::new(),
        };
        let of = self.extends().unwrap_or_else(|| self.study.runs_in_words());
        say(&format!("run {} of {of}: {}: {figures}{left}", record.run, self.begun));
    }

    fn stops(&mut self) -> bool {
        if (self.stops)() && !self.said.replace(true) {
            say("stopping");
        }
        (self.stops)()
    }
}

/// What extensions of its ranges may add to a plan, in words; nothing where there are none.
pub(in crate::commands) fn extension(
    extent: Extent,
    planner: &dyn Planner,
    runs: &[RunRecord],
) -> String {
    if extent.extended <= extent.planned {
        return String::new();
    }
    // No run takes longer than the longest so far, or the first.
    let next = match planner.next(runs) {
        Next::Run(order) => Some(order.setting),
        _ => None,
    };
    let settings = runs.iter().map(|run| &run.setting).chain(&next);
    let each_s = settings.map(|setting| setting.seconds() + GAP_S).fold(0.0, f64::max);
    format!(
        "; a range at whose end throughput still rises is extended, up to {} in all, {}",
        number_of(extent.extended, "run"),
        duration(extent.extended as f64 * each_s)
    )
}

/// Progress that nobody reads is not worth failing for.
fn say(line: &str) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// `45 s`, `12 min`, `3 h 20 min`.
pub(in crate::commands) fn duration(seconds: f64) -> String {
    let whole = plumb_units::convert::floor_u64(seconds.max(0.0).ceil());
    match whole {
        0..=90 => format!("{whole} s"),
        91..=5400 => format!("{} min", whole.div_ceil(60)),
        _ => format!("{} h {} min", whole / 3600, whole % 3600 / 60),
    }
}

/// `12 min`, or `10 min to 20 min` where the two differ.
pub(in crate::commands) fn from_to(low: f64, high: f64) -> String {
    match (duration(low), duration(high)) {
        (low, high) if low == high => low,
        (low, high) => format!("{low} to {high}"),
    }
}

/// `36 to 40 runs, 28 min to 44 min, likely 33 min`.
pub(in crate::commands) fn expected(forecast: &Forecast) -> String {
    let runs = match forecast.runs {
        (least, most) if least == most => number_of(most, "run"),
        (least, most) => format!("{least} to {}", number_of(most, "run")),
    };
    let (low, high) = forecast.seconds;
    let time = from_to(low, high);
    let likely = duration(forecast.likely_s);
    match time == likely {
        true => format!("{runs}, {time}"),
        false => format!("{runs}, {time}, likely {likely}"),
    }
}

/// Findings in plain words.
pub(in crate::commands) fn text(findings: &Findings, study: &Study) -> String {
    let mut text = format!("{} `{}`: {}\n", study.kind.keyword(), findings.study, study.title);
    let state = match findings.state {
        State::Complete => "complete",
        State::Partial => "not finished",
    };
    let runs = number_of(findings.runs, "run");
    // What runs everything is no less than an exhaustive plan.
    text.push_str(&match findings.runs >= findings.runs_exhaustive {
        true => format!("{state}; {runs}\n"),
        false => format!("{state}; {runs} (an exhaustive plan: {})\n", findings.runs_exhaustive),
    });
    for finding in &findings.findings {
        text.push_str(&format!("\n{}\n  {}\n", finding.title, finding.sentence));
        text.push_str(&remarks(finding));
    }
    if !findings.notes.is_empty() {
        text.push_str("\nRemarks\n");
        for note in &findings.notes {
            text.push_str(&format!("  - {note}\n"));
        }
    }
    text
}

/// What warns in a preflight or by a reading rule, a line each; the rest is in the findings.
fn remarks(finding: &Finding) -> String {
    let (word, of, says) = match finding.id.as_str() {
        "preflight" => (1, 0, 2),
        "reading" => (2, 1, 3),
        _ => return String::new(),
    };
    let rows = finding.table.iter().flat_map(|table| &table.rows);
    let cell = |row: &[Value], place: usize| {
        row.get(place).and_then(Value::as_str).unwrap_or_default().to_owned()
    };
    let whom = |row: &[Value]| match finding.id.as_str() {
        "reading" => format!(" ({})", cell(row, 0)),
        _ => String::new(),
    };
    rows.filter(|row| ["warn", "block"].contains(&cell(row, word).as_str()))
        .map(|row| format!("  - {}{}: {}\n", cell(row, of), whom(row), cell(row, says)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_round() {
        assert_eq!(duration(0.2), "1 s");
        assert_eq!(duration(600.0), "10 min");
        assert_eq!(duration(87_300.0), "24 h 15 min");
        let mut forecast = Forecast { runs: (3, 3), seconds: (30.0, 30.0), likely_s: 30.0 };
        assert_eq!(expected(&forecast), "3 runs, 30 s");
        forecast = Forecast { runs: (33, 40), seconds: (1600.0, 2700.0), likely_s: 1990.0 };
        assert_eq!(expected(&forecast), "33 to 40 runs, 27 min to 45 min, likely 34 min");
    }
}
