//! What a figure of a baseline has against it: runs of its setting that contradict each other.

use super::findings::Study;
use crate::knee;
use crate::study::sweep_findings::rates;
use crate::study::{RunRecord, Setting};

/// SD of ln X between runs where nothing is known (6.2).
pub(super) const ASSUMED: f64 = 0.015;
/// ln of what runs of one setting may differ by before their middle is no answer, whatever others differ by.
const DIFFER_MOST: f64 = 0.182_321_556_793_954_6; // ln 1.2

/// Settings of a study whose runs contradict each other (method, 3.3): judged by what runs of all settings that were repeated
/// differ by, of any step and kind of I/O.
pub(super) fn irreproducible(runs: &[RunRecord], random: Option<&knee::Knee>) -> Vec<Setting> {
    let mut groups: Vec<(&Setting, Vec<f64>)> = Vec::new();
    for run in runs {
        let Some(summary) = run.usable() else { continue };
        match groups.iter_mut().find(|(setting, _)| **setting == run.setting) {
            Some((_, logs)) => logs.push(summary.iops.ln()),
            None => groups.push((&run.setting, vec![summary.iops.ln()])),
        }
    }
    let logs: Vec<&[f64]> = groups.iter().map(|(_, logs)| &**logs).collect();
    let fit = random.and_then(|curve| curve.fit.as_ref());
    let few = || knee::Spread {
        deviation: fit.map_or(ASSUMED, |fit| fit.noise.max(ASSUMED)),
        freedom: fit.map_or(0.0, |fit| fit.freedom).max(knee::ASSUMED_FOR),
    };
    let found = knee::contradicting(&logs, few);
    found.into_iter().map(|index| groups[index].0.clone()).collect()
}

/// Runs of one setting that differ by more than a figure of them can be relied on.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Contradiction {
    /// I/Os per second, ascending.
    pub(super) iops: Vec<f64>,
    /// By more than runs of the study's other settings do (3.3).
    pub(super) is_irreproducible: bool,
}

impl Contradiction {
    /// In words: `its runs differ by 30 % (100 and 130 I/Os per second)`.
    pub(super) fn told(&self) -> String {
        let (first, last) = (self.iops[0], self.iops[self.iops.len() - 1]);
        let each: Vec<String> = self.iops.iter().map(|iops| format!("{iops:.0}")).collect();
        let each = match each.split_last() {
            Some((last, others)) if !others.is_empty() => {
                format!("{} and {last}", others.join(", "))
            }
            _ => each.concat(),
        };
        let by = (last / first - 1.0) * 100.0;
        let word = if self.is_irreproducible { ", which makes it irreproducible" } else { "" };
        format!("its runs differ by {by:.0} % ({each} I/Os per second){word}")
    }
}

impl Study<'_> {
    /// What the runs of a setting have against their middle.
    pub(super) fn contradiction(&self, setting: &Setting) -> Option<Contradiction> {
        let mut iops = rates(setting, self.runs).0;
        iops.sort_by(f64::total_cmp);
        let logs: Vec<f64> = iops.iter().map(|iops| iops.ln()).collect();
        let is_irreproducible = self.irreproducible.contains(setting);
        let is_far = logs.len() > 1 && knee::range(&logs) > DIFFER_MOST;
        (is_irreproducible || is_far).then_some(Contradiction { iops, is_irreproducible })
    }
}
