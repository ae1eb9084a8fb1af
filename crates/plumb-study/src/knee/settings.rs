//! Rows to settings: what is left out, and one value per o.

use super::{Options, rough};
use crate::identities::{self, Consistency, Law, Window};
use crate::stats::describe::{deviation, median, squares};
use crate::stats::distribution::t_two_sided;

/// A row of the table: one run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Row {
    /// Outstanding I/Os per thread and target.
    pub o: u64,
    /// I/Os per second.
    pub iops: f64,
    /// Mean latency in milliseconds, where measured.
    pub latency_ms: Option<f64>,
    /// Half a unit of the latency's last printed place, in milliseconds.
    pub latency_half_unit_ms: f64,
    /// What its run says of rate, latency and outstanding I/Os, where more is known of it than these means.
    pub law: Option<RunLaw>,
}

/// What a run says of its rate, latency and outstanding I/Os (1.3).
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum RunLaw {
    /// N is a limit and not kept up, or nobody measured latencies: they need not agree.
    NotAsked,
    /// This.
    Asked(Law),
}

/// A row that was left out.
#[derive(Debug, Clone, PartialEq)]
pub struct Dropped {
    /// Its o.
    pub o: u64,
    /// Why.
    pub reason: String,
}

/// All runs with one o.
#[derive(Debug, Clone, PartialEq)]
pub struct Setting {
    /// Outstanding I/Os per thread and target.
    pub o: u64,
    /// ln of all outstanding I/Os, relative to the first setting.
    pub u: f64,
    /// ln X of each run.
    pub runs: Vec<f64>,
    /// Median of ln X.
    pub ln_x: f64,
    /// Median of the mean latencies in milliseconds; N/X where none was measured.
    pub latency_ms: f64,
    /// Its runs differ by more than runs of this curve do: to be run up to five times.
    pub irreproducible: bool,
    /// It is irreproducible, and its runs, five or more, scatter by more than 3 %: kept in sight, excluded from the choice.
    pub excluded: bool,
    /// It lies off the fitted curve: excluded, to be repeated.
    pub off_curve: bool,
}

impl Setting {
    /// Whether it takes part in the choice.
    #[must_use]
    pub fn counts(&self) -> bool {
        !self.excluded && !self.off_curve
    }

    /// Whether it is to be repeated before it is believed.
    #[must_use]
    pub fn is_outlier(&self) -> bool {
        self.irreproducible || self.off_curve
    }

    /// Whether it is left out of the choice although each of several runs lies above `level` (ln X).
    pub(super) fn exceeds(&self, level: f64) -> bool {
        !self.counts() && self.runs.len() > 1 && self.runs.iter().all(|run| *run > level)
    }

    /// Whether its runs differ so much that they may contradict each other.
    pub(super) fn scatters(&self) -> bool {
        self.runs.len() > 1 && deviation(&self.runs) > SCATTER
    }

    /// I/Os per second.
    #[must_use]
    pub fn iops(&self) -> f64 {
        self.ln_x.exp()
    }
}

pub(super) struct Prepared {
    pub(super) settings: Vec<Setting>,
    pub(super) dropped: Vec<Dropped>,
    pub(super) notes: Vec<String>,
    pub(super) outstanding_per_o: f64,
}

/// Leaves out what must not be used and gathers the runs of each o.
pub(super) fn prepare(rows: &[Row], options: &Options) -> Prepared {
    let mut dropped = Vec::new();
    let mut notes = Vec::new();
    let mut usable: Vec<Row> = Vec::new();
    for row in rows {
        if row.iops.is_finite() && row.iops > 0.0 && row.o > 0 {
            usable.push(*row);
        } else {
            let reason = match row.iops.is_finite() {
                true => format!("{} I/Os per second: the run failed", row.iops),
                false => "there is no rate: the run failed, or was not measured".to_owned(),
            };
            dropped.push(Dropped { o: row.o, reason });
        }
    }
    let outstanding_per_o = outstanding_per_o(&usable, options, &mut notes);
    let is_guess = options.threads.is_none();
    drop_inconsistent(&mut usable, outstanding_per_o, is_guess, &mut dropped, &mut notes);
    usable.sort_by_key(|row| row.o);

    let mut settings: Vec<Setting> = Vec::new();
    for rows in usable.chunk_by(|a, b| a.o == b.o) {
        let runs: Vec<f64> = rows.iter().map(|row| row.iops.ln()).collect();
        let o = rows[0].o;
        let ln_x = median(&runs);
        let latencies: Vec<f64> = rows.iter().filter_map(|row| row.latency_ms).collect();
        let latency_ms = match latencies.as_slice() {
            [] => outstanding_per_o * o as f64 / ln_x.exp() * 1e3,
            measured => median(measured),
        };
        let first = settings.first().map_or(o, |setting| setting.o);
        let u = (o as f64 / first as f64).ln();
        settings.push(Setting {
            o,
            u,
            runs,
            ln_x,
            latency_ms,
            irreproducible: false,
            excluded: false,
            off_curve: false,
        });
    }
    Prepared { settings, dropped, notes, outstanding_per_o }
}

/// F·t as given, or as X·L/o says.
fn outstanding_per_o(rows: &[Row], options: &Options, notes: &mut Vec<String>) -> f64 {
    let ratios: Vec<f64> = rows
        .iter()
        .filter_map(|row| Some(identities::in_flight(row.iops, row.latency_ms?) / row.o as f64))
        .filter(|ratio| ratio.is_finite() && *ratio > 0.0)
        .collect();
    let files = options.files.unwrap_or(1.0);
    match (options.threads, ratios.as_slice()) {
        (Some(threads), _) => threads * files,
        (None, []) => files,
        (None, ratios) => {
            let inferred = (median(ratios) / files).round().max(1.0) * files;
            if inferred != files {
                notes.push(format!(
                    "no threads given: X·L says {inferred} outstanding I/Os per o, which is taken"
                ));
            }
            inferred
        }
    }
}

/// Rows whose rate and latency contradict the outstanding I/Os (1.3) are left out, however many they are: such a
/// result must not be used. Where nobody said how many are outstanding, and many rows contradict what X·L/o says in the
/// middle, that guess is no measure for them.
fn drop_inconsistent(
    rows: &mut Vec<Row>,
    outstanding_per_o: f64,
    is_guess: bool,
    dropped: &mut Vec<Dropped>,
    notes: &mut Vec<String>,
) {
    let check = |row: &Row| match row.law {
        Some(RunLaw::NotAsked) => None,
        Some(RunLaw::Asked(law)) => Some(law),
        None => {
            let latency = row.latency_ms?;
            let in_flight = identities::in_flight(row.iops, latency);
            let outstanding = outstanding_per_o * row.o as f64;
            let half_unit = row.latency_half_unit_ms;
            Some(Law::of(in_flight, outstanding, latency, half_unit, Window::UNKNOWN))
        }
    };
    let found: Vec<Option<Law>> = rows.iter().map(check).collect();
    let count = |verdict| found.iter().flatten().filter(|law| law.verdict == verdict).count();
    let contradicting = count(Consistency::AccountingError);
    notes.extend(low_notes(rows, &found));
    if contradicting == 0 {
        return;
    }
    if contradicting * 3 > rows.len() {
        let end = match is_guess {
            true => "give --threads and --files; no row was left out for it",
            false => "check the number of threads and files",
        };
        notes.push(format!(
            "{contradicting} of {} rows have X·L above N = {outstanding_per_o}·o: {end}",
            rows.len()
        ));
        if is_guess {
            return;
        }
    }
    let mut index = 0;
    rows.retain(|row| {
        let verdict = found[index];
        index += 1;
        let Some(Law { residual, verdict: Consistency::AccountingError, .. }) = verdict else {
            return true;
        };
        let reason = format!(
            "X·L is {:+.2} % off N: rate and latency contradict each other",
            residual * 100.0
        );
        dropped.push(Dropped { o: row.o, reason });
        false
    });
}

/// What is said of rows with less in flight than N: of a run whose intervals are known why, of a row of means what it may be.
fn low_notes(rows: &[Row], found: &[Option<Law>]) -> Vec<String> {
    let count = |verdict: Consistency, is_run: bool| {
        let all = rows.iter().zip(found);
        let is = |law: &Option<Law>| law.is_some_and(|law| law.verdict == verdict);
        all.filter(|(row, law)| is(law) && row.law.is_some() == is_run).count()
    };
    let notes = [
        (
            count(Consistency::GeneratorLimited, false),
            "the generator was the limit there (CPU, too few threads), or N is not F·t·o, or the device stood still \
             at the end of the run",
        ),
        (
            count(Consistency::GeneratorLimited, true),
            "the generator was the limit there (CPU, too few threads)",
        ),
        (
            count(Consistency::StoodStill, true),
            "nothing completed at the end of the run: the device stood still, and what was in flight then is in no \
             latency",
        ),
    ];
    let told = notes.iter().filter(|(count, _)| *count > 0);
    told.map(|(count, why)| {
        let rows = if *count == 1 { "row has" } else { "rows have" };
        format!("{count} {rows} X·L more than 5 % below N: {why}")
    })
    .collect()
}

/// (3.3) Settings whose runs contradict each other. Those that were run five times and whose SD of ln X is above 3 % are
/// excluded.
pub(super) fn mark_irreproducible(
    settings: &mut [Setting],
    others: Option<Spread>,
    notes: &mut Vec<String>,
) {
    let runs: Vec<&[f64]> = settings.iter().map(|setting| &*setting.runs).collect();
    let few = || rough::of_few(settings, others);
    for index in contradicting(&runs, few) {
        let setting = &mut settings[index];
        setting.irreproducible = true;
        // Before that its runs say little of which of them is wrong (docs/decisions/0279-pairs-that-contradict-each-other.md).
        let is_final = setting.runs.len() >= IRREPRODUCIBLE_RUNS;
        setting.excluded = is_final && setting.scatters();
        let then = match (!is_final, setting.excluded) {
            (true, _) => "run it up to 5 times; until then their middle counts",
            (false, true) => "it has no part in the choice",
            (false, false) => "its median counts",
        };
        notes.push(format!(
            "o{} is irreproducible: its {} runs differ by {:.1} %; {then}",
            setting.o,
            setting.runs.len(),
            range(&setting.runs).exp_m1() * 100.0
        ));
    }
}

/// (3.3) Which settings have runs (a list of ln X for each) that differ by more than max(3 %, 3·σ·√2), σ being what the other
/// settings' runs say, together with `few` where those are few; ascending. Three of σ are for one pair and a σ that is known:
/// many pairs and a σ from few runs need more (docs/decisions/0171-noise-from-few-runs.md).
pub(crate) fn contradicting(settings: &[&[f64]], few: impl FnOnce() -> Spread) -> Vec<usize> {
    let pairs: usize = settings.iter().map(|s| s.len() * s.len().saturating_sub(1) / 2).sum();
    let share = 0.01 / (pairs as f64).max(1.0);
    let mut widest: Vec<usize> =
        (0..settings.len()).filter(|index| settings[*index].len() > 1).collect();
    widest.sort_by(|a, b| range(settings[*b]).total_cmp(&range(settings[*a])));
    if widest.first().is_none_or(|index| range(settings[*index]) <= SCATTER) {
        return Vec::new();
    }
    let few = (widest.len() <= TYPICAL_FROM).then(few);
    let stands_off = |count: &usize| {
        let range = range(settings[widest[count - 1]]);
        let others = pooled_run_deviation(settings, &widest[*count..]);
        let noise = few.map_or(others, |few| few.with(others));
        let off = range / (noise.deviation.max(f64::MIN_POSITIVE) * std::f64::consts::SQRT_2);
        range > SCATTER && off > 3.0 && tail(off, noise.freedom) < share
    };
    // The widest may hide one another: those up to the last that stands off the rest are it [Rosner 1983]. Of few settings that
    // were repeated several are no exception: what their runs differ by is the noise.
    let found = match widest.len() {
        0..=TYPICAL_FROM if (2..=widest.len()).any(|count| stands_off(&count)) => 0,
        0..=TYPICAL_FROM => (1..=widest.len().min(1)).find(stands_off).unwrap_or(0),
        all => (1..=all / 2).rev().find(stands_off).unwrap_or(0),
    };
    let mut found = widest[..found].to_vec();
    found.retain(|index| range(settings[*index]) > SCATTER);
    found.sort_unstable();
    found
}

/// ln of the fastest of a setting's runs over the slowest.
pub(crate) fn range(runs: &[f64]) -> f64 {
    let low = runs.iter().copied().fold(f64::INFINITY, f64::min);
    runs.iter().copied().fold(f64::NEG_INFINITY, f64::max) - low
}

/// Chance of a distance of so many σ either way, σ being known with this freedom.
fn tail(off: f64, freedom: f64) -> f64 {
    if off.is_finite() && freedom > 0.0 { t_two_sided(off, freedom.min(1e6)) } else { 0.0 }
}

/// Difference of ln X between runs of a setting, and their SD, above which they may contradict each other.
const SCATTER: f64 = 0.03;
/// How often an irreproducible setting is run before it is given up.
pub(crate) const IRREPRODUCIBLE_RUNS: usize = 5;
/// Settings with repetitions of which more tell what is typical.
const TYPICAL_FROM: usize = 3;

/// The pooled SD of ln X between runs of these settings, and its degrees of freedom.
fn pooled_run_deviation(settings: &[&[f64]], these: &[usize]) -> Spread {
    let runs = || these.iter().map(|index| settings[*index]);
    let freedom: usize = runs().map(|runs| runs.len() - 1).sum();
    let within: f64 = runs().map(squares).sum();
    let freedom = freedom as f64;
    Spread { deviation: (within / freedom.max(1.0)).sqrt(), freedom }
}

/// An SD and what it rests on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Spread {
    /// SD of ln X between runs of a setting.
    pub deviation: f64,
    /// Its degrees of freedom.
    pub freedom: f64,
}

impl Spread {
    /// Both pooled.
    #[must_use]
    pub fn with(self, other: Self) -> Self {
        let squares = |one: Self| one.freedom * one.deviation.powi(2);
        let freedom = self.freedom + other.freedom;
        Self { deviation: ((squares(self) + squares(other)) / freedom.max(1.0)).sqrt(), freedom }
    }
}

/// What runs of a setting differ by, of those that do not contradict each other; `None` without repetitions.
pub(super) fn spread_of_runs(settings: &[Setting]) -> Option<Spread> {
    let says =
        |setting: &&Setting| setting.counts() && !(setting.irreproducible && setting.scatters());
    let (mut within, mut freedom) = (0.0, 0);
    for setting in settings.iter().filter(says) {
        within += squares(&setting.runs);
        freedom += setting.runs.len() - 1;
    }
    let freedom = freedom as f64;
    (freedom > 0.0).then(|| Spread { deviation: (within / freedom).sqrt(), freedom })
}

/// σ_rep (3.2, 1): pooled SD within o over the root of the mean number of runs.
pub(super) fn repetition_error(settings: &[Setting]) -> f64 {
    // What contradicts itself says nothing of the noise.
    let says =
        |setting: &&Setting| setting.counts() && !(setting.irreproducible && setting.scatters());
    let counted: Vec<&Setting> = settings.iter().filter(says).collect();
    let runs: usize = counted.iter().map(|setting| setting.runs.len()).sum();
    let freedom = runs - counted.len();
    if freedom == 0 {
        return 0.0;
    }
    let within: f64 = counted.iter().map(|setting| squares(&setting.runs)).sum();
    let per_setting = runs as f64 / counted.len() as f64;
    (within / freedom as f64 / per_setting).sqrt()
}
