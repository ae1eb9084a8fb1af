//! Curves that a baseline did not search to their end, and how to go on.

use super::findings::Study;
use super::options::Step;
use super::planner::BaselinePlanner;
use crate::bracket;
use crate::knee;
use crate::study::Setting;
use crate::study::findings::Finding;

/// The final verdict on a curve that rises as far as it may be measured (2.6).
pub(super) const NEVER: &str = "never-plateaued";

impl Study<'_> {
    /// (2.6) Whether throughput still rises where the search may go no further: no run that is left would change it.
    pub(super) fn never_plateaued(
        &self,
        step: Step,
        template: &Setting,
        knee: &knee::Knee,
    ) -> bool {
        let most = self.options.o_most(step, template);
        knee.verdict == knee::Verdict::Extend && knee.settings.iter().any(|s| s.o >= most)
    }

    pub(super) fn say_never(&self, finding: &mut Finding, step: Step, template: &Setting) {
        let most = self.options.o_most(step, template);
        let reason = finding.decision["reason"].as_str().unwrap_or_default();
        let more = match self.options.is_most_by_outstanding(step, template) {
            true => {
                let now = self.options.outstanding_most;
                format!("allow more with --max-outstanding (now {now})")
            }
            false => format!(
                "measure more with {}",
                sweep_of(template, &format!("{most}..{}*2", 4 * most))
            ),
        };
        finding.sentence = format!(
            "Never plateaued: {reason}, and o = {most} is as far as this goes. Use it, or {more}."
        );
        finding.decision.insert("verdict".to_owned(), NEVER.into());
    }

    /// (4.4) Whether the search ended for no other reason than that no runs were left: where throughput still rose, or where the
    /// knee may lie far from the settings that were run.
    pub(super) fn is_cut_short(&self, step: Step, template: &Setting, knee: &knee::Knee) -> bool {
        let planner = BaselinePlanner::new(self.options.clone());
        let is_open = knee.verdict == knee::Verdict::Extend || bracket::coarse(knee).is_some();
        is_open && planner.goes_on(step, template, self.runs)
    }

    pub(super) fn say_cut_short(
        &self,
        finding: &mut Finding,
        step: Step,
        template: &Setting,
        knee: &knee::Knee,
    ) {
        let runs = self.options.runs_most();
        let os: Vec<u64> = knee.settings.iter().map(|setting| setting.o).collect();
        let (what, first, last) = match bracket::coarse(knee) {
            Some((low, high)) => {
                // A knee is seen where something beyond it was run.
                let beyond = os.iter().find(|o| **o > high).map_or(high, |o| (*o).min(2 * high));
                (format!("to look between o = {low} and {high}"), low, beyond)
            }
            None => {
                let most = self.options.o_most(step, template);
                let is_bound = self.options.is_most_by_outstanding(step, template);
                let end =
                    os.last().map_or(1, |last| if is_bound { most } else { most.max(2 * last) });
                let plateau = knee.marks.map_or(u64::MAX, |marks| marks.plateau);
                let rising = os.iter().rev().skip(1).find(|o| **o <= plateau);
                ("for it".to_owned(), rising.or(os.first()).copied().unwrap_or(1), end)
            }
        };
        finding.sentence.push_str(&format!(
            " No more of the {runs} runs were left {what}: go on with --exhaustive, or with {}.",
            sweep_of(template, &between(first, last))
        ));
    }
}

/// The command that measures such settings with these o.
fn sweep_of(template: &Setting, os: &str) -> String {
    format!(
        "plumb sweep --vary o={os} --set t={} --set b={}K --set w={} --set access={}",
        template.threads,
        template.block_bytes / 1024,
        template.write_percent,
        template.access.keyword()
    )
}

/// Settings of a sweep that goes on: enough for a curve …
const GO_ON: u32 = 7;
/// … and no nearer to each other than this.
const GO_ON_LEAST: f64 = 1.1;

/// Numbers from the first to the last, each larger by the same factor: powers of two would be those that were run.
fn between(first: u64, last: u64) -> String {
    let span = last as f64 / first as f64;
    let factor = span.powf(1.0 / f64::from(GO_ON)).max(GO_ON_LEAST);
    let mut list = vec![first];
    let mut value = first as f64 * factor;
    while value < last as f64 * 0.999 {
        let rounded = plumb_units::convert::floor_u64(value.round());
        if list.last().is_some_and(|before| *before < rounded) {
            list.push(rounded);
        }
        value *= factor;
    }
    if list.last().is_some_and(|before| *before < last) {
        list.push(last);
    }
    list.iter().map(u64::to_string).collect::<Vec<_>>().join(",")
}
