//! The report: one HTML file without a network, findings first, every plot with its data and a sentence.

mod ceiling;
mod chart;
mod counters;
mod details;
mod html;
mod of_against;
mod of_curve;
mod of_run;
mod of_runs;
mod of_study;
mod page;
mod plot;
mod run_view;
mod study_plots;
mod tiles;

pub(crate) use of_run::facts as reading_facts;
pub(crate) use run_view::{interval_latency, slowest_ms, spreads};

pub use chart::{Axis, Cell, Chart, Dot, Layer, Scale, Side};
pub use details::{Detail, worth_a_look};
pub use html::html;
pub use page::{Block, Data, Headline, Plot, Report, Section, Table, Tile, Tone};
pub use run_view::{Buckets, CoreView, IntervalView, RunView, SideView, SpanView, Workload};

use plumb_units::convert::to_u64;
use plumb_units::words::number_of;

use crate::findings::Layout;
use crate::knee::{self, DeclaredCap, Options, Row};
use crate::study::{Findings, RunRecord, Study};

/// Runs that a report shows one by one.
const DETAILED_MOST: usize = 12;

/// A curve that somebody brings.
#[derive(Debug, Clone, PartialEq)]
pub struct Curve {
    /// What it is called.
    pub name: String,
    /// Its rows.
    pub rows: Vec<Row>,
    /// Bytes per I/O, where they are known.
    pub block_bytes: Option<f64>,
    /// Limits that were declared.
    pub caps: Vec<DeclaredCap>,
}

/// A study with its runs.
#[derive(Debug, Clone)]
pub struct StudyView {
    /// Its plan.
    pub plan: Study,
    /// What it found so far.
    pub findings: Option<Findings>,
    /// Its finished runs.
    pub runs: Vec<RunRecord>,
    /// Single runs that are shown with everything, see [`worth_a_look`].
    pub details: Vec<Detail>,
}

/// Everything that a report is made of.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    /// Runs, in the order they were named.
    pub runs: Vec<RunView>,
    /// Curves.
    pub curves: Vec<Curve>,
    /// Studies.
    pub studies: Vec<StudyView>,
    /// An earlier study, or an earlier run, that is drawn under the others and compared with them.
    pub earlier: Option<Earlier>,
}

/// What is drawn under the rest: the baseline.
#[derive(Debug, Clone)]
pub enum Earlier {
    /// A study.
    Study(Box<StudyView>),
    /// A run.
    Run(Box<RunView>),
}

/// Makes the report. `made` says when and by which program.
#[must_use]
pub fn make(sources: &Sources, made: &str) -> Report {
    let mut report = Report { title: title(sources), ..Report::default() };
    let (earlier_study, earlier_run) = match &sources.earlier {
        Some(Earlier::Study(study)) => (Some(study.as_ref()), None),
        Some(Earlier::Run(run)) => (None, Some(run.as_ref())),
        None => (None, None),
    };
    for (number, study) in (1..).zip(&sources.studies) {
        let (findings, sections) =
            of_study::found(study, earlier_study, &format!("study-{number}"));
        report.facts.extend(of_study::facts(study));
        report.tiles.extend(tiles::of_study(study, &format!("study-{number}")));
        report.findings.extend(findings);
        report.sections.extend(sections);
    }
    for (number, curve) in (1..).zip(&sources.curves) {
        let caps = curve.caps.clone();
        let options = Options { block_bytes: curve.block_bytes, caps, ..Options::default() };
        let knee = knee::find(&curve.rows, &options);
        let id = format!("curve-{number}");
        let (findings, section) =
            of_curve::found(&knee, &options, &Layout::default(), &id, &curve.name);
        report.findings.extend(findings);
        report.sections.push(section);
    }
    let runs = &sources.runs;
    if let [only] = runs.as_slice() {
        report.facts.extend(facts(only));
        report.tiles.extend(tiles::of_run(only, "run-1"));
    }
    if runs.len() > 1 && earlier_run.is_none() {
        let (findings, sections) = of_runs::over_all(runs);
        report.findings.extend(findings);
        report.sections.extend(sections);
    }
    if let Some(earlier) = earlier_run {
        let mut both = vec![earlier.clone()];
        both.extend(runs.iter().cloned());
        let (findings, sections) = of_runs::against(&both);
        report.findings.extend(findings);
        report.sections.extend(sections);
    }
    for (number, run) in (1..).zip(runs.iter().take(DETAILED_MOST)) {
        let id = format!("run-{number}");
        let under = earlier_run.filter(|earlier| of_runs::are_alike(earlier, run));
        if let [_] = runs.as_slice() {
            report.findings.extend(of_run::findings(run, &id));
        }
        report.sections.extend(of_run::sections(run, &id, under));
    }
    if runs.len() > DETAILED_MOST {
        let left = runs.len() - DETAILED_MOST;
        let text = format!(
            "{left} more runs are in the table only; name them alone to see them in detail."
        );
        report.sections.push(Section {
            id: "rest".into(),
            title: "Further runs".into(),
            blocks: vec![Block::Paragraph(text)],
        });
    }
    report.facts.push(("Report".to_owned(), made.to_owned()));
    report
}

/// The findings as lines for a terminal.
#[must_use]
pub fn summary(report: &Report) -> String {
    let line = |finding: &Headline| {
        let word = match finding.tone.word() {
            "" => String::new(),
            word => format!("{word}: "),
        };
        format!("- {word}{}\n", finding.text)
    };
    std::iter::once(format!("{}\n", report.title)).chain(report.findings.iter().map(line)).collect()
}

fn title(sources: &Sources) -> String {
    match (sources.studies.as_slice(), sources.curves.as_slice(), sources.runs.as_slice()) {
        ([study], [], []) => study.plan.title.clone(),
        ([], [curve], []) => format!("The curve of {}", curve.name),
        ([], [], [run]) => match run.first() {
            Some(span) => format!("{}: {}", run.name, span.title()),
            None => run.name.clone(),
        },
        ([], [], runs) => number_of(to_u64(runs.len()), "run"),
        _ => "Storage performance".to_owned(),
    }
}

fn facts(run: &RunView) -> Vec<(String, String)> {
    let mut facts = Vec::new();
    let mut add = |name: &str, value: &Option<String>| {
        facts.extend(value.as_ref().map(|value| (name.to_owned(), value.clone())));
    };
    add("Started", &run.started_at);
    add("Command", &run.command_line);
    add("Measured by", &run.epoch);
    add("Engine", &run.engine);
    facts.extend(run.machine.iter().cloned());
    facts
}

#[cfg(test)]
mod tests;
