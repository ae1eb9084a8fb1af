//! What is done to a target before it is measured, so that flash is in the state that it will be in (method, 2.3).

use std::borrow::Cow;
use std::time::Duration;

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
    /// The same with a whole block device, whose content is lost.
    PtsDevice,
}

/// The step of these runs.
pub(super) const CONDITIONING: &str = "conditioning";
/// Warm-up of the published procedure in seconds.
pub const PUBLISHED_WARM_UP_S: u32 = 300;
/// Bytes per I/O while the file is filled.
const FILL_BLOCK: u64 = 128 << 10;
/// Times that it is filled.
const FILLS: u64 = 2;
/// Seconds of a run that fills, and of a round, at most.
const RUN_S: u32 = 60;
/// Seconds of the first run that fills: what is written in it says how long the others take.
const FIRST_FILL_S: u32 = 5;
/// Rounds at most, and about as many as are needed.
const ROUNDS_MOST: usize = 25;
const ROUNDS_LIKELY: usize = 7;

impl Conditioning {
    /// Every level.
    pub const ALL: [Self; 4] = [Self::None, Self::D0, Self::PtsFile, Self::PtsDevice];

    /// The word that options and documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::D0 => "d0",
            Self::PtsFile => "pts-file",
            Self::PtsDevice => "pts-device",
        }
    }

    /// The level of a word.
    #[must_use]
    pub fn of_keyword(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|level| level.keyword() == word)
    }

    /// Bytes of each target that are filled, if any are.
    fn bytes_to_fill(self, first: &Setting, device_bytes: Option<u64>) -> Option<u64> {
        match self {
            Self::None | Self::D0 => None,
            Self::PtsFile => first.file_bytes,
            Self::PtsDevice => device_bytes.filter(|_| first.file_bytes.is_none()),
        }
    }

    /// The run that is to come before all others; `None` when enough was done. `first` is the setting that is
    /// measured first, `device_bytes` what a device has that is filled.
    pub(super) fn next(
        self,
        first: &Setting,
        device_bytes: Option<u64>,
        runs: &[RunRecord],
    ) -> Option<Order> {
        let blocks = self.bytes_to_fill(first, device_bytes)? / FILL_BLOCK;
        let own: Vec<&RunRecord> = runs.iter().filter(|run| run.step == CONDITIONING).collect();
        let place = filled(&own, blocks);
        let setting = if place < FILLS * blocks {
            // What writes nothing will not write the rest either.
            if own.iter().any(|run| run.usable().is_none_or(|summary| summary.io_count == 0)) {
                return None;
            }
            let left = (blocks - place % blocks) * u64::from(first.files);
            fill(first, place % blocks * FILL_BLOCK, fill_s(&own, left))
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
    pub(super) fn forecast_s(
        self,
        first: &Setting,
        device_bytes: Option<u64>,
        bytes_per_s: f64,
    ) -> (f64, f64, f64) {
        let Some(bytes) = self.bytes_to_fill(first, device_bytes) else {
            return (0.0, 0.0, 0.0);
        };
        let each = bytes as f64 * f64::from(first.files) / bytes_per_s;
        // A run of its own for each time that it is filled, and for what one does not write.
        let runs = (each / f64::from(RUN_S)).ceil().max(1.0) * FILLS as f64 + 1.0;
        let fills = FILLS as f64 * each.max(1.0) + f64::from(FIRST_FILL_S) + runs * GAP_S;
        let rounds = |count: usize| count as f64 * (round(first).seconds() + GAP_S);
        (fills + rounds(ROUNDS), fills + rounds(ROUNDS_LIKELY), fills + rounds(ROUNDS_MOST))
    }

    /// What was done, in a sentence for the remarks.
    pub(super) fn note(
        self,
        first: &Setting,
        device_bytes: Option<u64>,
        runs: &[RunRecord],
    ) -> String {
        let own: Vec<&RunRecord> = runs.iter().filter(|run| run.step == CONDITIONING).collect();
        match self {
            Self::None => "conditioning: none but the warm-up of each run, and what was not steady after it was \
                           cut off"
                .to_owned(),
            Self::D0 => format!("conditioning: {PUBLISHED_WARM_UP_S} s of warm-up before each measurement (d0)"),
            Self::PtsFile | Self::PtsDevice => {
                let blocks = self.bytes_to_fill(first, device_bytes).unwrap_or(0) / FILL_BLOCK;
                let times = filled(&own, blocks) as f64 / blocks.max(1) as f64;
                let rates = rates(&own, &round(first));
                let word = if is_steady(&rates) { "steady" } else { "not steady" };
                let (what, level) = match self {
                    Self::PtsDevice => {
                        ("whole device", "pts-device; it was not purged before (blkdiscard)")
                    }
                    _ => ("file", "pts-file; it covers the file, not the whole device"),
                };
                format!(
                    "conditioning: the {what} was written {times:.1} times in 128 KiB, then {} rounds of the first \
                     setting: {word} ({level})",
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

/// Seconds that so many blocks take at the rate of the last run that wrote some, rounded up, and one more.
fn fill_s(own: &[&RunRecord], left: u64) -> u32 {
    let rate = own.last().and_then(|run| run.usable()).map(|summary| summary.iops);
    match rate.filter(|rate| *rate > 0.0) {
        Some(rate) => {
            let seconds = (left as f64 / rate).ceil().min(f64::from(RUN_S - 1));
            u32::try_from(Duration::from_secs_f64(seconds).as_secs()).unwrap_or(RUN_S) + 1
        }
        None => FIRST_FILL_S,
    }
}

fn fill(first: &Setting, offset: u64, measured_s: u32) -> Setting {
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
        measured_s,
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
        conditioned_by(Conditioning::PtsFile, rates)
    }

    /// The same of a file, or of a device of ten blocks and a part of one.
    fn conditioned_by(level: Conditioning, rates: &[f64]) -> (Vec<RunRecord>, String) {
        let bytes = Some(10 * FILL_BLOCK + 512);
        let (files, file_bytes, device_bytes) = match level {
            Conditioning::PtsDevice => (1, None, bytes),
            _ => (2, bytes, None),
        };
        let first = Setting { files, file_bytes, ..Setting::default() };
        let mut runs = Vec::new();
        let mut rounds = rates.iter();
        while let Some(order) = level.next(&first, device_bytes, &runs) {
            let is_fill = order.setting.block_bytes == FILL_BLOCK;
            let rate = if is_fill { Some(&7.0) } else { rounds.next() };
            let Some(rate) = rate else { break };
            let written = 7 * u64::from(files);
            runs.push(performed(order, if is_fill { written } else { 100 }, *rate));
        }
        let note = level.note(&first, device_bytes, &runs);
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
    fn a_device_is_filled_as_a_file_is() {
        let rates = [100.0, 200.0, 101.0, 99.0, 100.0, 101.0, 100.0, 7.0];
        let (file, _) = conditioned(&rates);
        let (device, note) = conditioned_by(Conditioning::PtsDevice, &rates);
        let offset = |run: &RunRecord| run.setting.options.get("base-offset").cloned();
        let [file, own] = [&file, &device].map(|runs| runs.iter().map(offset).collect::<Vec<_>>());
        assert_eq!(file, own);
        assert!(device.iter().all(|run| run.setting.file_bytes.is_none()), "it has its own size");
        assert!(note.contains("the whole device was written 2.0 times"), "{note}");
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
            assert_eq!(level.next(&first, Some(1 << 30), &[]), None);
        }
        // A device has no file to be filled.
        let device = Setting { file_bytes: None, ..first };
        assert_eq!(Conditioning::PtsFile.next(&device, Some(1 << 30), &[]), None);
        assert_eq!(Conditioning::PtsDevice.next(&device, None, &[]), None);
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
