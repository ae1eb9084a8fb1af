//! What is done to a target before it is measured, so that flash is in the state that it will be in (method, 2.3).

use std::borrow::Cow;

use serde::{Deserialize, Serialize};

use super::perform::Order;
use super::record::{Purpose, RunRecord};
use super::sweep::GAP_S;
use super::{Access, Setting};
use crate::steady::{Level, ROUNDS, Window};

/// How much is done.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Conditioning {
    /// Nothing but each run's own warm-up, and what is not steady after it is cut off (5.1).
    #[default]
    None,
    /// 300 s of warm-up before each measurement, as published.
    D0,
    /// The file is written twice from end to end in blocks of 128 KiB, then the first setting is run in rounds
    /// until it is steady, 25 of them at most. It covers the file, not the whole device.
    PtsFile,
}

/// The step of these runs.
pub(super) const CONDITIONING: &str = "conditioning";
/// Warm-up of the published procedure in seconds.
pub const PUBLISHED_WARM_UP_S: u32 = 300;
/// Bytes per I/O while the file is filled.
const FILL_BLOCK: u64 = 128 << 10;
/// Times that it is filled.
const FILLS: u64 = 2;
/// Seconds of a run that fills, and of a round at most.
const RUN_S: u32 = 60;
/// Rounds at most, and about as many as are needed.
const ROUNDS_MOST: usize = 25;
const ROUNDS_LIKELY: usize = 7;

impl Conditioning {
    /// Every level.
    pub const ALL: [Self; 3] = [Self::None, Self::D0, Self::PtsFile];

    /// The word that options and documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::D0 => "d0",
            Self::PtsFile => "pts-file",
        }
    }

    /// The level of a word.
    #[must_use]
    pub fn of_keyword(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.keyword() == word)
    }

    /// The run that is to come before all others; `None` when enough was done. `first` is the setting that is
    /// measured first.
    pub(super) fn next(self, first: &Setting, runs: &[RunRecord]) -> Option<Order> {
        let blocks = first.file_bytes.filter(|_| self == Self::PtsFile)? / FILL_BLOCK;
        let own: Vec<&RunRecord> = runs.iter().filter(|run| run.step == CONDITIONING).collect();
        let place = filled(&own, blocks);
        let setting = if place < FILLS * blocks {
            // What writes nothing will not write the rest either.
            if own.iter().any(|run| run.usable().is_none_or(|summary| summary.io_count == 0)) {
                return None;
            }
            fill(first, place % blocks * FILL_BLOCK)
        } else {
            let round = round(first);
            let rates = rates(&own, &round);
            let tried = own.iter().filter(|run| run.setting == round).count();
            if tried >= ROUNDS_MOST || is_steady(&rates) {
                return None;
            }
            round
        };
        let before = own.iter().filter(|run| run.setting == setting).count();
        let repetition = plumb_units::convert::to_u32(before) + 1;
        let purpose = if repetition > 1 { Purpose::Repeat } else { Purpose::Measure };
        Some(Order { step: CONDITIONING.to_owned(), purpose, repetition, setting })
    }

    /// Seconds that it takes at least, likely and at most, where files are written with so many bytes per second.
    pub(super) fn forecast_s(self, first: &Setting, bytes_per_s: f64) -> (f64, f64, f64) {
        let Some(bytes) = first.file_bytes.filter(|_| self == Self::PtsFile) else {
            return (0.0, 0.0, 0.0);
        };
        let each = bytes as f64 * f64::from(first.files) / bytes_per_s;
        // A run of its own for each time that the file is filled, and for what one does not write.
        let runs = (each / f64::from(RUN_S)).ceil().max(1.0) * FILLS as f64;
        let fills = runs * (f64::from(RUN_S) + GAP_S);
        let rounds = |count: usize| count as f64 * (round(first).seconds() + GAP_S);
        (fills + rounds(ROUNDS), fills + rounds(ROUNDS_LIKELY), fills + rounds(ROUNDS_MOST))
    }

    /// What was done, in a sentence for the remarks.
    pub(super) fn note(self, first: &Setting, runs: &[RunRecord]) -> String {
        let own: Vec<&RunRecord> = runs.iter().filter(|run| run.step == CONDITIONING).collect();
        match self {
            Self::None => "conditioning: none but the warm-up of each run, and what was not steady after it was \
                           cut off"
                .to_owned(),
            Self::D0 => format!("conditioning: {PUBLISHED_WARM_UP_S} s of warm-up before each measurement (d0)"),
            Self::PtsFile => {
                let blocks = first.file_bytes.unwrap_or(0) / FILL_BLOCK;
                let times = filled(&own, blocks) as f64 / blocks.max(1) as f64;
                let rates = rates(&own, &round(first));
                let word = if is_steady(&rates) { "steady" } else { "not steady" };
                format!(
                    "conditioning: the file was written {times:.1} times in 128 KiB, then {} rounds of the first \
                     setting: {word} (pts-file; it covers the file, not the whole device)",
                    rates.len()
                )
            }
        }
    }
}

/// Blocks of each file that were written in order, all passes together.
fn filled(own: &[&RunRecord], blocks: u64) -> u64 {
    let mut place = 0;
    let fills = |run: &&&RunRecord| {
        let setting = &run.setting;
        (setting.block_bytes, setting.write_percent, setting.access)
            == (FILL_BLOCK, 100, Access::Sequential)
    };
    for run in own.iter().filter(fills) {
        let written = run.usable().map_or(0, |summary| summary.io_count);
        // At the end a run goes back to where it began.
        let left = blocks - place % blocks.max(1);
        place += (written / u64::from(run.setting.files.max(1))).min(left);
    }
    place
}

fn fill(first: &Setting, offset: u64) -> Setting {
    let mut setting = Setting {
        threads: 1,
        // As many as the first setting at most: a limit holds for this too.
        outstanding: first.threads.saturating_mul(first.outstanding).clamp(1, 8),
        block_bytes: FILL_BLOCK,
        write_percent: 100,
        access: Access::Sequential,
        rate: None,
        latency: false,
        warm_up_s: 0,
        measured_s: RUN_S,
        cool_down_s: 0,
        ..first.clone()
    };
    setting.options.retain(|name, _| name == "engine");
    if offset > 0 {
        setting.options.insert("base-offset".to_owned(), offset.to_string());
    }
    setting
}

fn round(first: &Setting) -> Setting {
    Setting {
        warm_up_s: 0,
        measured_s: first.measured_s.min(RUN_S),
        cool_down_s: 0,
        ..first.clone()
    }
}

fn rates(own: &[&RunRecord], round: &Setting) -> Vec<f64> {
    own.iter()
        .filter(|run| run.setting == *round)
        .filter_map(|run| Some(run.usable()?.iops))
        .collect()
}

fn is_steady(rates: &[f64]) -> bool {
    rates.len() >= ROUNDS && Window::of(rates).is_some_and(|window| window.is_steady(Level::Pts))
}

/// The runs that findings are made of.
pub(super) fn counted(runs: &[RunRecord]) -> Cow<'_, [RunRecord]> {
    if runs.iter().all(|run| run.step != CONDITIONING) {
        return Cow::Borrowed(runs);
    }
    Cow::Owned(runs.iter().filter(|run| run.step != CONDITIONING).cloned().collect())
}

/// Seconds that a device is left alone before a run that writes less than the one before it: what that one wrote
/// may still be on its way (method, 4.2). A sixth of the measurement, ten at most.
pub(super) fn settle_s(last: &Setting, next: &Setting) -> f64 {
    let is_calmer = last.write_percent > next.write_percent;
    if is_calmer { (f64::from(next.measured_s) / 6.0).min(10.0) } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::{Outcome, Summary};

    fn performed(order: Order, io_count: u64, iops: f64) -> RunRecord {
        RunRecord {
            run: 1,
            key: String::new(),
            step: order.step,
            purpose: order.purpose,
            repetition: order.repetition,
            setting: order.setting,
            started_s: 0.0,
            ended_s: 1.0,
            ended: None,
            outcome: Outcome::Measured,
            summary: Some(Summary { io_count, iops, ..Summary::default() }),
            result: None,
            command: Vec::new(),
            counters: None,
        }
    }

    /// Ten blocks in each of two files, of which a run writes seven; rounds as given.
    fn conditioned(rates: &[f64]) -> (Vec<RunRecord>, String) {
        let first =
            Setting { files: 2, file_bytes: Some(10 * FILL_BLOCK + 5), ..Setting::default() };
        let mut runs = Vec::new();
        let mut rounds = rates.iter();
        while let Some(order) = Conditioning::PtsFile.next(&first, &runs) {
            let is_fill = order.setting.block_bytes == FILL_BLOCK;
            let rate = if is_fill { Some(&7.0) } else { rounds.next() };
            let Some(rate) = rate else { break };
            runs.push(performed(order, if is_fill { 14 } else { 100 }, *rate));
        }
        let note = Conditioning::PtsFile.note(&first, &runs);
        (runs, note)
    }

    #[test]
    fn the_file_is_filled_twice_and_then_run_until_steady() {
        let (runs, note) = conditioned(&[100.0, 200.0, 101.0, 99.0, 100.0, 101.0, 100.0, 7.0]);
        let offsets: Vec<u64> = runs
            .iter()
            .filter(|run| run.setting.write_percent == 100)
            .map(|run| {
                run.setting.options.get("base-offset").map_or(0, |o| o.parse().expect("bytes"))
            })
            .map(|bytes: u64| bytes / FILL_BLOCK)
            .collect();
        assert_eq!(offsets, [0, 7, 0, 7]);
        // The window must be past the second round.
        assert_eq!(runs.len() - offsets.len(), 7);
        assert!(
            note.contains("2.0 times") && note.contains("7 rounds") && note.contains(": steady"),
            "{note}"
        );
        let numbers: Vec<u32> = runs[4..].iter().map(|run| run.repetition).collect();
        assert_eq!(numbers, [1, 2, 3, 4, 5, 6, 7]);
        assert!(counted(&runs).is_empty());
    }

    #[test]
    fn what_never_settles_ends_after_25_rounds() {
        let rates: Vec<f64> = (0..30).map(|n| if n % 2 == 0 { 100.0 } else { 150.0 }).collect();
        let (runs, note) = conditioned(&rates);
        assert_eq!(runs.len(), 4 + 25);
        assert!(note.contains("not steady"), "{note}");
    }

    #[test]
    fn only_what_is_asked_for_is_done() {
        let first = Setting { file_bytes: Some(1 << 30), ..Setting::default() };
        for level in [Conditioning::None, Conditioning::D0] {
            assert_eq!(level.next(&first, &[]), None);
        }
        // A device has no file to be filled.
        let device = Setting { file_bytes: None, ..first };
        assert_eq!(Conditioning::PtsFile.next(&device, &[]), None);
        for level in Conditioning::ALL {
            assert_eq!(Conditioning::of_keyword(level.keyword()), Some(level));
        }
    }

    #[test]
    fn reads_after_writes_wait() {
        let with =
            |write_percent, measured_s| Setting { write_percent, measured_s, ..Setting::default() };
        assert_eq!(settle_s(&with(100, 60), &with(0, 60)), 10.0);
        assert_eq!(settle_s(&with(100, 60), &with(30, 12)), 2.0);
        assert_eq!(settle_s(&with(0, 60), &with(100, 60)), 0.0);
        assert_eq!(settle_s(&with(30, 60), &with(30, 600)), 0.0);
    }
}
