//! How many times as much as single I/Os the scores of extents vary by chance.
//!
//! I/Os that come one by one have a variance as large as their number. Where they come in bunches it is as many times that as come
//! together, and the heat map cannot tell one from the other by a single window. Two windows tell: where a load goes on as it is,
//! what an extent's score wins in each differs by chance alone. Of some thousand extents, chosen by their numbers, is kept what they won in the
//! window before. What most of them are off by counts, so that those whose load did change, one in five or so, do not.
//!
//! Where scores vary from day to day for reasons of their own, windows take that for chance, too. So they are believed up to eight times, and beyond
//! that as far as [hours](super::bunches) say the same.

use super::bunches::{self, EXACT, Hours, UNKNOWN};
use super::chances::{Lies, Told};
use super::outcomes::{Course, Later, Mark, Outcomes};
use super::sleepers::{Noted, Sleepers};
use super::trend::LEFT_MOST;
use crate::format::bytes::{Reader, Writer};
use crate::format::checksum::crc;

/// Extents that are followed.
pub(super) const WITNESSES: usize = 4096;
/// So many of them with I/Os enough tell something.
const TELLING_LEAST: usize = 64;
/// So many of a kind.
const KIND_LEAST: f32 = 8.0;
/// What is left of what windows said of kinds after one window more.
const KINDS_FADE: f32 = 0.75;
/// Both windows together have won so much at least, in sixteenths of an I/O.
const ENOUGH: f32 = 4.0 * 16.0;
/// Either has won so much where it tells whether all became busier.
const MANY: f32 = 16.0 * 16.0;
/// Windows one of which was so many times as busy are not compared.
const BUSIER_MOST: f32 = 16.0;
/// The share of those that differ most, which does not count; and what the mean of the others' squares has to be multiplied by to
/// be the variance, where differences are of a normal law.
const LEFT_OUT: usize = 4;
const OF_THE_OTHERS: f32 = 2.715;
/// A dispersion is no larger than this by what windows alone say.
pub(crate) const MOST_BY_WINDOWS: f32 = 8.0;
/// Nor than this, whatever was seen: as many as an extent of 1 MiB has blocks.
pub(super) const MOST: f32 = 256.0;
/// Of what looks sure, it may be more: a client may ask for one block a thousand times.
pub(super) const MOST_OF_SURE: f32 = 65_536.0;

/// An extent, its score when the window began, and what that had won in the window before, both in sixteenths; and what it wins by the hour.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Witness {
    extent: u32,
    score: f32,
    won: f32,
    hours: Hours,
    mark: Mark,
}

/// The extents that are followed: those whose numbers are strewn lowest, of those that were not cold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Witnesses {
    /// By extent.
    list: Vec<Witness>,
    /// Those that were cold when they began to be followed; some are listed above as well.
    sleepers: Sleepers,
    /// All that are strewn so low are followed; those that are not listed had neither score nor I/Os.
    reach: u32,
    /// How long the window before was; 0: too short to be compared, or not known.
    hours: u32,
    /// What was made of the last two windows that could be compared, and of hours when they last told something.
    found: Dispersion,
    /// How far those are that were marked, and what became of those before.
    course: Course,
    outcomes: Outcomes,
}

/// How many times as much as single I/Os those of a load vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dispersion {
    /// From one window to the next, however much that is.
    by_windows: f32,
    /// From one hour to the next.
    by_hours: f32,
    /// From one window to the next, of extents whose hours say 1, 2, 4 and so on or more; 0 where that is not known.
    kinds: Kinds,
    /// The same with what is known of those that were cold.
    with_sleepers: Kinds,
}

/// Kinds of extents, by how many of their I/Os come together by what their hours say: up to 2, to 4 and so on.
const KINDS: usize = 9;
type Kinds = [[f32; 3]; KINDS];

/// The kind of an extent whose hours say that.
fn kind(by_hours: f32) -> usize {
    let nth = plumb_units::convert::floor_u64(by_hours.max(1.0).log2().into());
    plumb_units::convert::to_usize(nth).min(KINDS - 1)
}

impl Dispersion {
    /// What is believed.
    pub(super) fn believed(self) -> f32 {
        let both = self.by_windows.min(self.by_hours).min(MOST);
        self.least().max(both)
    }

    /// What is believed of any extent, whatever its hours say.
    pub(super) fn least(self) -> f32 {
        self.by_windows.min(MOST_BY_WINDOWS)
    }

    /// How far an extent is believed whose hours say so much: as windows say of its kind together with the neighbours of that, for what hours say
    /// of one extent is not exact.
    fn most(kinds: &Kinds, by_hours: f32, most: f32) -> f32 {
        let nth = kind(by_hours);
        let near = kinds[nth.saturating_sub(1)..(nth + 2).min(KINDS)].iter();
        let mut all = [0.0; 3];
        near.for_each(|one| all.iter_mut().zip(one).for_each(|(all, one)| *all += one));
        let [squares, singles, count] = all;
        if count >= KIND_LEAST { (squares / singles).clamp(1.0, most) } else { 1.0 }
    }
}

impl Default for Witnesses {
    fn default() -> Self {
        let found = Dispersion {
            by_windows: 1.0,
            by_hours: 1.0,
            kinds: Kinds::default(),
            with_sleepers: Kinds::default(),
        };
        Self {
            list: Vec::new(),
            sleepers: Sleepers::default(),
            reach: 0,
            hours: 0,
            found,
            course: Course::default(),
            outcomes: Outcomes::default(),
        }
    }
}

/// Numbers of extents, strewn.
#[inline]
fn strewn(extent: u32) -> u32 {
    let mut z = extent ^ 0x9e37_79b9;
    z = (z ^ (z >> 16)).wrapping_mul(0x85eb_ca6b);
    z = (z ^ (z >> 13)).wrapping_mul(0xc2b2_ae35);
    z ^ (z >> 16)
}

/// What is left of a score after so many hours, if a window of so many can be compared with another.
fn kept(hours: u64, half_life: f32) -> Option<f32> {
    let keep = (-(hours as f32) / half_life).exp2();
    (keep <= LEFT_MOST).then_some(keep)
}

impl Witnesses {
    /// What is known of an extent that is followed; the inner is none where it was cold.
    fn get(&self, extent: u32) -> Option<Option<&Witness>> {
        let found = || self.list.binary_search_by_key(&extent, |witness| witness.extent).ok();
        (strewn(extent) <= self.reach && self.reach > 0).then(|| Some(&self.list[found()?]))
    }

    /// The extents that are followed, and where those lay that are marked.
    #[cfg(test)]
    pub(super) fn marks(&self) -> impl Iterator<Item = (u32, Option<Lies>)> {
        self.list.iter().map(|witness| (witness.extent, witness.mark.marked()))
    }

    /// What is to be expected of extents by their scores.
    pub(super) fn later(&self) -> Later {
        Later::new(&self.outcomes)
    }

    /// Whether the window before was such that this one can be compared with it.
    pub(super) fn know(&self, half_life: f32) -> bool {
        kept(self.hours.into(), half_life).is_some()
    }

    /// By what this window, which has lasted so long, and the one before differ, and by what hours do; what was known before, where they cannot be
    /// compared. `scores` are those of all extents now, in sixteenths.
    pub(super) fn dispersion(
        &self,
        hours: u64,
        half_life: f32,
        scores: impl Iterator<Item = (u32, f32)>,
    ) -> Dispersion {
        let (by_windows, kinds) = self
            .compare(hours, half_life, scores)
            .unwrap_or((self.found.by_windows, [Kinds::default(); 2]));
        let known = |now: &Kinds, before: &Kinds| -> Kinds {
            std::array::from_fn(|nth| {
                std::array::from_fn(|what| now[nth][what] + KINDS_FADE * before[nth][what])
            })
        };
        Dispersion {
            by_windows,
            kinds: known(&kinds[0], &self.found.kinds),
            with_sleepers: known(&kinds[1], &self.found.with_sleepers),
            by_hours: bunches::of_hours(self.list.iter().map(|witness| &witness.hours))
                .unwrap_or(self.found.by_hours),
        }
    }

    /// What those that are followed tell, with their scores now, in sixteenths, and whether they look changed.
    pub(super) fn told(&self, found: &Dispersion, look: impl Fn(u32) -> (f32, bool)) -> Vec<Told> {
        let told = |own: &Witness| {
            let (off, won) = (own.hours.off, own.hours.won);
            let most =
                Dispersion::most(&found.kinds, off / won.max(f32::MIN_POSITIVE) / 16.0, MOST);
            let off = off.min(16.0 * most * won);
            let (score, looks_changed) = look(own.extent);
            Told { extent: own.extent, score, off, won, looks_changed }
        };
        self.list.iter().map(told).collect()
    }

    /// The same with those that were cold when they began to be followed, and with bunches of any size.
    pub(super) fn told_with_sleepers(
        &self,
        found: &Dispersion,
        look: impl Fn(u32) -> (f32, bool),
    ) -> Vec<Told> {
        let others = self.list.iter().filter(|own| self.sleepers.get(own.extent).is_none());
        let others = others.map(|own| (own.extent, &own.hours));
        let told = |(extent, hours): (u32, &Hours)| {
            let (off, won) = (hours.off, hours.won);
            let by_hours = off / won.max(f32::MIN_POSITIVE) / 16.0;
            // Before windows can be compared hours tell alone.
            let most = match found.with_sleepers.iter().any(|[.., count]| *count > 0.0) {
                true => Dispersion::most(&found.with_sleepers, by_hours, MOST_OF_SURE),
                false => MOST_OF_SURE,
            };
            let (score, looks_changed) = look(extent);
            Told { extent, score, off: off.min(16.0 * most * won), won, looks_changed }
        };
        let mut all: Vec<Told> = self.sleepers.iter().chain(others).map(told).collect();
        all.sort_unstable_by_key(|one| one.extent);
        all
    }

    /// Until the first window that has a load has ended those that had something in this hour are followed from then on, though they were cold. `was_cold`: it is known that
    /// they had nothing in the hours before.
    pub(super) fn wake(&mut self, touched: impl Iterator<Item = u32>, was_cold: bool) {
        let before = if was_cold { 0.0 } else { UNKNOWN };
        self.sleepers.wake(touched.map(|extent| (strewn(extent), extent)), before, strewn);
    }

    /// The hour has ended; the next one begins `later` hours after it did. `score` has the scores at its end, in sixteenths.
    pub(super) fn end_hour(&mut self, later: u64, half_life: f32, score: impl Fn(u32) -> f32) {
        let keep = (-(later as f32) / half_life).exp2();
        let ends: Vec<f32> = self.list.iter().map(|witness| score(witness.extent)).collect();
        let mut levels = [0.0; 3];
        for (witness, now) in self.list.iter().zip(&ends) {
            let three = witness.hours.three(*now).unwrap_or_default();
            levels.iter_mut().zip(three).for_each(|(level, won)| *level += won);
        }
        if self.list.is_empty() {
            levels = self.sleepers.levels(&score);
        }
        let levels = bunches::alike(levels);
        for (witness, now) in self.list.iter_mut().zip(&ends) {
            witness.hours.end(*now, now * keep, levels.filter(|_| *now <= EXACT));
            if later > 1 {
                witness.hours.forget_before();
            }
        }
        self.sleepers.end_hour((keep, later == 1), levels, score);
    }

    fn compare(
        &self,
        hours: u64,
        half_life: f32,
        scores: impl Iterator<Item = (u32, f32)>,
    ) -> Option<(f32, [Kinds; 2])> {
        let keeps = [kept(self.hours.into(), half_life)?, kept(hours, half_life)?];
        let won = scores.filter_map(|(extent, now)| {
            let witness = self.get(extent)?;
            let (score, before) = witness.map_or((0.0, 0.0), |own| (own.score, own.won));
            let won = [before, (now - score * keeps[1]).max(0.0)];
            let by_hours = witness.and_then(|own| own.hours.dispersion());
            let slept = self.sleepers.get(extent).map_or(by_hours, Hours::dispersion);
            (won[0] + won[1] > 0.0).then_some((won, [by_hours, slept].map(|one| one.map(kind))))
        });
        let (won, kinds): (Vec<_>, Vec<_>) = won.take(4 * WITNESSES).unzip();
        of_windows(keeps, (&won, &kinds))
    }
}

/// By what extents won in two windows, of which so much is left of a score.
fn of_windows(
    keeps: [f32; 2],
    (won, kinds): (&[[f32; 2]], &[[Option<usize>; 2]]),
) -> Option<(f32, [Kinds; 2])> {
    // What a steady load wins of the score that it leads to, and the variance of that score by such a window, over the mean.
    let gain = keeps.map(|keep| 1.0 - keep);
    let vary = keeps.map(|keep| (1.0 + keep) / (1.0 - keep) / 2.0);
    let level = level(gain, won);
    if !(BUSIER_MOST.recip()..=BUSIER_MOST).contains(&level) {
        return None;
    }
    // Squares, and what there would be of them if I/Os came one by one.
    let off = |own: &[f32; 2]| {
        let scores = [own[0] / gain[0], own[1] / gain[1] / level];
        let mean = (own[0] + own[1]) / (gain[0] + gain[1] * level);
        ((scores[0] - scores[1]).powi(2), 16.0 * mean * (vary[0] + vary[1] / level))
    };
    let mut sums = [Kinds::default(); 2];
    let mut all = Vec::new();
    for (own, kind) in won.iter().zip(kinds).filter(|(own, _)| own[0] + own[1] >= ENOUGH) {
        let (square, single) = off(own);
        all.push(square / single);
        for (sums, kind) in sums.iter_mut().zip(kind) {
            let Some(kind) = *kind else { continue };
            let [squares, singles, count] = &mut sums[kind];
            (*squares, *singles, *count) = (*squares + square, *singles + single, *count + 1.0);
        }
    }
    if all.len() < TELLING_LEAST {
        return None;
    }
    all.sort_unstable_by(f32::total_cmp);
    all.truncate(all.len() - all.len() / LEFT_OUT);
    let mean = all.iter().sum::<f32>() / all.len() as f32;
    let kinds = sums;
    Some(((mean * OF_THE_OTHERS).max(1.0), kinds))
}

/// How many times as busy all were in the second window: the extent in the middle of those with many I/Os, or all together, whose I/Os are
/// too few then for who has changed to matter.
fn level(gain: [f32; 2], won: &[[f32; 2]]) -> f32 {
    let ratio = |own: &[f32; 2]| own[1] / gain[1] / (own[0] / gain[0]);
    let mut ratios: Vec<f32> =
        won.iter().filter(|own| own[0].min(own[1]) >= MANY).map(ratio).collect();
    if ratios.len() < TELLING_LEAST {
        let sum = |nth: usize| won.iter().map(|own| own[nth]).sum::<f32>();
        return ratio(&[sum(0), sum(1)]);
    }
    let middle = ratios.len() / 2;
    *ratios.select_nth_unstable_by(middle, f32::total_cmp).1
}

/// Who is followed from a new window on.
#[derive(Debug)]
pub(super) struct Gathered {
    before: Witnesses,
    /// Of the window that ends: hours, and what is left of a score.
    window: Option<(u64, f32)>,
    hours: Option<u64>,
    half_life: f32,
    /// Extents of the virtual disk: the last page may have entries beyond them.
    extents: u32,
    /// Of a score, however short the window was.
    left: f32,
    found: Vec<(u32, Witness)>,
    sleepers: Noted,
    reach: u32,
    dispersion: Dispersion,
}

impl Gathered {
    /// At the end of a window of so many hours, with what is known of the one before.
    pub(super) fn new(
        before: Witnesses,
        hours: Option<u64>,
        (half_life, dispersion): (f32, Dispersion),
        extents: u32,
    ) -> Self {
        let window = hours.and_then(|hours| Some((hours, kept(hours, half_life)?)));
        let left = hours.map_or(0.0, |hours| (-(hours as f32) / half_life).exp2());
        Self {
            before,
            window,
            hours,
            half_life,
            extents,
            left,
            found: Vec::new(),
            sleepers: Noted::default(),
            reach: u32::MAX,
            dispersion,
        }
    }

    /// An extent: what is remembered of its score by its entry, its score now, and the one with which it begins the new window.
    #[inline]
    pub(super) fn note(&mut self, extent: u32, (remembered, now, next): (f32, f32, f32)) {
        let place = strewn(extent);
        let is_cold = now <= 0.0 && next <= 0.0;
        let slept = self.before.sleepers.get(extent);
        if (is_cold || slept.is_some()) && extent < self.extents {
            self.sleepers.note((place, extent), slept, next - now);
        }
        if place > self.reach || is_cold {
            return;
        }
        let keep = self.window.map_or(0.0, |window| window.1);
        let before = self.before.get(extent);
        let score = before.map_or(remembered, |own| own.map_or(0.0, |own| own.score));
        let won = (now - score * keep).max(0.0);
        // What the hour has won so far stays, whatever becomes of the score.
        let hours = before.flatten().map_or(Hours::new(), |own| own.hours.moved_by(next - now));
        let mut mark = before.flatten().map_or(Mark::NONE, |own| own.mark);
        if self.before.course.counts() {
            mark = mark.after((now - score * self.left).max(0.0), self.left);
        }
        self.found.push((place, Witness { extent, score: next, won, hours, mark }));
        if self.found.len() >= 2 * WITNESSES {
            self.keep_lowest();
        }
    }

    fn keep_lowest(&mut self) {
        if self.found.len() > WITNESSES {
            let (_, last, _) = self.found.select_nth_unstable_by_key(WITNESSES - 1, |one| one.0);
            self.reach = last.0;
            self.found.truncate(WITNESSES);
        }
    }

    pub(super) fn witnesses(mut self, is_fast: impl Fn(u32) -> Option<bool>) -> Witnesses {
        self.keep_lowest();
        let mut list: Vec<Witness> = self.found.iter().map(|one| one.1).collect();
        list.sort_unstable_by_key(|witness| witness.extent);
        let hours = self.window.map_or(0, |window| u32::try_from(window.0).unwrap_or(u32::MAX));
        let (mut course, mut outcomes) = (self.before.course, self.before.outcomes);
        course.end(self.hours.unwrap_or(0));
        let ended = course.ended();
        if let Some(over) = ended {
            let keep = (-(over as f32) / self.half_life).exp2();
            outcomes.learn(list.iter().map(|witness| witness.mark), keep);
        }
        if ended.is_some() || self.hours.is_none() {
            for witness in &mut list {
                let lies = is_fast(witness.extent).map(Lies::on);
                witness.mark = lies.map_or(Mark::NONE, |lies| Mark::new(witness.score, lies));
            }
            course = Course::default();
        }
        Witnesses {
            list,
            sleepers: self.sleepers.sleepers(),
            reach: self.reach,
            hours,
            found: self.dispersion,
            course,
            outcomes,
        }
    }
}

impl Witnesses {
    /// As bytes: hours, dispersion by windows and by hours, what windows say of each kind, how far marks are and what became of those before, reach, how many, then each, and a checksum.
    pub(super) fn save(&self, bytes: &mut Writer) {
        let start = bytes.0.len();
        bytes.u32(self.hours);
        bytes.u32(self.found.by_windows.to_bits());
        bytes.u32(self.found.by_hours.to_bits());
        self.found.kinds.iter().flatten().for_each(|sum| bytes.u32(sum.to_bits()));
        self.course.save(bytes);
        self.outcomes.save(bytes);
        bytes.u32(self.reach);
        bytes.u32(u32::try_from(self.list.len()).unwrap_or(0));
        for witness in &self.list {
            bytes.u32(witness.extent);
            bytes.u32(witness.score.to_bits());
            bytes.u32(witness.won.to_bits());
            let Hours { at, before: [last, first], off, won } = witness.hours;
            [at, last, first, off, won].iter().for_each(|value| bytes.u32(value.to_bits()));
            witness.mark.save(bytes);
        }
        self.found.with_sleepers.iter().flatten().for_each(|sum| bytes.u32(sum.to_bits()));
        self.sleepers.save(bytes);
        let sum = crc(0, &bytes.0[start..]);
        bytes.u32(sum);
    }

    /// Reads them back from a snapshot of version 3, which lacks what is known by the hour, of version 4, which has other sums of hours and
    /// no kinds, of version 5, which has no marks, of version 6, in which nobody is followed who is cold, or later; `None` if they are damaged.
    pub(super) fn restore(bytes: &[u8], of: u32) -> Option<Self> {
        let (body, sum) = bytes.split_at_checked(bytes.len().checked_sub(4)?)?;
        if Reader(sum).u32()? != crc(0, body) {
            return None;
        }
        let mut from = Reader(body);
        let float = |from: &mut Reader<'_>| from.u32().map(f32::from_bits);
        let hours = from.u32()?;
        let by_windows = float(&mut from)?;
        let by_hours = if of == 3 { 1.0 } else { float(&mut from)? };
        let mut kinds = Kinds::default();
        for sum in kinds.iter_mut().flatten().filter(|_| of > 4) {
            *sum = float(&mut from)?;
        }
        let (course, outcomes) = match of {
            ..6 => Default::default(),
            _ => (Course::restore(&mut from)?, Outcomes::restore(&mut from)?),
        };
        let (reach, count) = (from.u32()?, from.u32()?);
        let mut list = Vec::new();
        let sound = |value: f32| (0.0..=f32::MAX).contains(&value);
        for _ in 0..count {
            let extent = from.u32()?;
            let (score, won) = (float(&mut from)?, float(&mut from)?);
            let mut next = || float(&mut from);
            let hours = match of {
                3 => Hours::new(),
                4 => {
                    let [at, last, _, _] = [next()?, next()?, next()?, next()?];
                    Hours { at, before: [last, UNKNOWN], ..Hours::new() }
                }
                _ => {
                    let (at, before) = (next()?, [next()?, next()?]);
                    Hours { at, before, off: next()?, won: next()? }
                }
            };
            let mark = if of < 6 { Mark::NONE } else { Mark::restore(&mut from)? };
            let follows = list.last().is_none_or(|last: &Witness| last.extent < extent);
            let is_sound = sound(score) && sound(won) && hours.is_sound();
            if !follows || !is_sound || list.len() == WITNESSES {
                return None;
            }
            list.push(Witness { extent, score, won, hours, mark });
        }
        let mut with_sleepers = kinds;
        for sum in with_sleepers.iter_mut().flatten().filter(|_| of > 6) {
            *sum = float(&mut from)?;
        }
        let sleepers = if of > 6 { Sleepers::restore(&mut from)? } else { Sleepers::default() };
        let found = Dispersion { by_windows, by_hours, kinds, with_sleepers };
        let is_sound = (1.0..=f32::MAX).contains(&by_windows) && sound(by_hours);
        let sums = kinds.iter().chain(&with_sleepers).flatten();
        let is_sound = is_sound && sums.copied().all(sound);
        is_sound.then_some(Self { list, sleepers, reach, hours, found, course, outcomes })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HeatMap, HeatSettings, HostIoKind, outcomes, sleepers};
    use super::*;
    use crate::random::Random;

    /// Extents of a map.
    const EXTENTS: u32 = 20_000;

    /// Days of a load in which `per_day` I/Os come to each extent, so many at once, and each day of so many extents one changes to
    /// another load; the map at the end of the last one.
    fn after(days: u64, (per_day, bunch): (u64, u64), changes: u64) -> HeatMap {
        let mut map = HeatMap::new(HeatSettings::new(EXTENTS));
        let mut random = Random::new(per_day + bunch);
        let mut busy = vec![1_u64; 20_000];
        for hour in 0..24 * days {
            if hour > 0 && hour % 24 == 0 {
                map.begin_window();
                let mut change = |busy: &mut u64| {
                    if changes > 0 && random.one_in(changes) {
                        *busy = 1 + 9 * random.below(2);
                    }
                };
                busy.iter_mut().for_each(&mut change);
            }
            map.advance(hour);
            for (extent, busy) in (0..EXTENTS).zip(&busy) {
                // As many chances as there are bunches that may come in an hour.
                let chances = 8 * busy;
                let odds = 24 * 8 * bunch / per_day.max(1);
                let came = (0..chances).filter(|_| random.one_in(odds.max(2))).count();
                let count = bunch * u64::try_from(came).expect("few");
                map.record_many(extent, HostIoKind::Read, count);
            }
        }
        map.advance(24 * days);
        map
    }

    #[test]
    fn what_comes_one_by_one_varies_as_chance_does() {
        for per_day in [2, 9, 43] {
            let found = after(4, (per_day, 1), 0).dispersion();
            assert!((1.0..1.4).contains(&found), "{per_day}: {found}");
        }
    }

    #[test]
    fn what_comes_in_bunches_varies_as_many_times_more() {
        for (rate, most) in [((9, 2), 3.2), ((9, 4), 6.0), ((43, 2), 2.6), ((43, 4), 5.2)] {
            let found = after(4, rate, 0).dispersion();
            assert!((0.9 * rate.1 as f32..most).contains(&found), "{rate:?}: {found}");
        }
        // Of more than eight at a time hours tell how many they are.
        for rate in [(9, 8), (43, 8), (43, 16), (64, 32), (64, 64)] {
            let found = after(4, rate, 0).dispersion();
            let times = found / rate.1 as f32;
            assert!((0.9..1.1).contains(&times), "{rate:?}: {found}");
        }
    }

    /// Days of which each has another load for each extent, hour after hour: that is no bunch of I/Os.
    #[test]
    fn what_windows_alone_say_is_believed_up_to_eight_times() {
        let found = after(4, (90, 1), 1).varies();
        assert!(found.by_windows > 12.0 && found.by_hours < 4.0, "{found:?}");
        assert_eq!(found.believed(), MOST_BY_WINDOWS);
    }

    /// What comes to each extent once a day at an hour of its own, 500 at a time, is as much tomorrow as today.
    #[test]
    fn what_comes_at_the_same_hour_each_day_is_no_chance() {
        let mut map = HeatMap::new(HeatSettings::new(EXTENTS));
        for hour in 0..96 {
            if hour > 0 && hour % 24 == 0 {
                map.begin_window();
            }
            map.advance(hour);
            let own = (0..EXTENTS).filter(|extent| u64::from(strewn(*extent) % 24) == hour % 24);
            own.for_each(|extent| map.record_many(extent, HostIoKind::Read, 500));
        }
        map.advance(96);
        let found = map.varies();
        assert!(found.by_hours > 100.0 && found.believed() < 1.5, "{found:?}");
    }

    /// The map as a program of version 3 to 6 saved it: nothing of hours, or of pairs of them, and nothing of kinds; nothing of marks; nobody who was cold.
    fn as_of(version: u8, map: &HeatMap) -> Vec<u8> {
        let mut bytes = map.save(9);
        let cold = 12 * KINDS + 4 + sleepers::SAVED * map.witnesses.sleepers.iter().count();
        bytes.truncate(bytes.len() - cold);
        let (kinds, marks, each) = (12 + 12 * KINDS, 8 + outcomes::SAVED, 40);
        let head = kinds + marks + 8;
        let at = bytes.len() - 4 - each * map.witnesses.list.len() - head;
        let tail = bytes.split_off(at);
        let mut old = Writer(Vec::new());
        old.0.extend_from_slice(&tail[..4]);
        let windows = if version > 4 { map.witnesses.found.by_windows } else { MOST_BY_WINDOWS };
        old.u32(windows.to_bits());
        if version > 3 {
            old.0.extend_from_slice(&tail[8..12]);
        }
        if version > 4 {
            old.0.extend_from_slice(&tail[12..kinds]);
        }
        if version > 5 {
            old.0.extend_from_slice(&tail[kinds..head - 8]);
        }
        old.0.extend_from_slice(&tail[head - 8..head]);
        for one in tail[head..tail.len() - 4].chunks_exact(each) {
            old.0.extend_from_slice(&one[..[12, 20, 32, 40][usize::from(version) - 3]]);
            (0..if version == 4 { 2 } else { 0 }).for_each(|_| old.u32(9.0_f32.to_bits()));
        }
        let sum = crc(0, &old.0);
        old.u32(sum);
        bytes.extend(old.0);
        bytes[8] = version;
        let header = crc(0, &bytes[..84]);
        bytes[84..88].copy_from_slice(&header.to_le_bytes());
        bytes
    }

    /// Of version 5 all goes on but what became of extents: that is seen anew.
    #[test]
    fn what_the_program_before_kept_goes_on() {
        let mut map = HeatMap::new(HeatSettings::new(EXTENTS));
        for hour in 0..96 {
            map.advance(hour);
            if hour > 0 && hour % 24 == 0 {
                map.begin_window_of(|extent| Some(extent % 10 == 0));
            }
            (0..EXTENTS).for_each(|extent| map.record_many(extent, HostIoKind::Read, 3));
        }
        let restore = |bytes: &[u8]| {
            HeatMap::restore(bytes, 9, HeatSettings::new(EXTENTS)).expect("a snapshot").map
        };
        let now = restore(&map.save(9));
        assert_eq!(now.witnesses, map.witnesses);
        assert!(
            now.witnesses.later().of(70.0, Lies::Slow).is_some(),
            "two days after the first plan"
        );
        let old = restore(&as_of(5, &map));
        assert_eq!(old.dispersion(), map.dispersion());
        assert!(old.witnesses.later().of(70.0, Lies::Slow).is_none());
        // Of version 6 all goes on but those that were cold.
        let last = restore(&as_of(6, &map));
        assert_eq!(last.witnesses.list, map.witnesses.list);
        assert!(last.witnesses.later().of(70.0, Lies::Slow).is_some());
        let hours =
            |map: &HeatMap| map.witnesses.list.iter().map(|own| own.hours).collect::<Vec<_>>();
        assert_eq!(hours(&old), hours(&map));
    }

    /// Windows go on, up to eight times, until hours have told.
    #[test]
    fn what_an_older_program_kept_goes_on() {
        let map = after(4, (43, 16), 0);
        for (version, known) in [(3, MOST_BY_WINDOWS), (4, 16.0)] {
            let bytes = as_of(version, &map);
            let settings = HeatSettings::new(EXTENTS);
            let restored = HeatMap::restore(&bytes, 9, settings).expect("a snapshot").map;
            assert_eq!(restored.witnesses.list.len(), WITNESSES);
            let found = restored.dispersion();
            assert!((0.9 * known..1.1 * known).contains(&found), "version {version}: {found}");
            let told = restored.witnesses.list.iter().map(|own| own.hours.won).sum::<f32>();
            assert_eq!(told, 0.0, "version {version}");
        }
    }

    /// Where some extents get another load, the others tell how far chance goes.
    #[test]
    fn who_changes_is_left_out() {
        let found = after(4, (43, 1), 10).dispersion();
        assert!((1.0..2.5).contains(&found), "{found}");
    }

    #[test]
    fn it_is_known_from_two_windows_on_and_kept_where_a_window_tells_nothing() {
        let mut map = after(2, (9, 8), 0);
        assert_eq!(map.dispersion(), 1.0, "when the first window began is not known");
        map = after(3, (9, 8), 0);
        let before = map.dispersion();
        assert!(before > 7.0, "{before}");
        map.begin_window();
        // Who has become hot meanwhile is followed for others, who say nearly the same.
        let is_kept = |found: f32| (found / before - 1.0).abs() < 1e-4;
        assert!(is_kept(map.dispersion()), "a window of no hours: {}", map.dispersion());
        // Nothing comes any more: what is known stays.
        for day in 4..=5 {
            map.advance(24 * day);
            assert!(is_kept(map.dispersion()), "day {day}: {}", map.dispersion());
            map.begin_window();
        }
        let restored = HeatMap::restore(&map.save(9), 9, HeatSettings::new(EXTENTS));
        assert_eq!(restored.expect("a snapshot").map.dispersion(), map.dispersion());
    }

    #[test]
    fn a_snapshot_within_a_window_changes_nothing() {
        let map = after(4, (43, 4), 0);
        let bytes = map.save(9);
        let restored = HeatMap::restore(&bytes, 9, HeatSettings::new(EXTENTS));
        let restored = restored.expect("a snapshot").map;
        assert_eq!(restored.dispersion(), map.dispersion());
        assert_eq!(restored.witnesses, map.witnesses);
        assert_eq!(map.witnesses.list.len(), WITNESSES);
        // Damaged, nobody is followed: the pages are read all the same.
        let mut torn = bytes.clone();
        let at = torn.len() - 9;
        torn[at] ^= 1;
        for bytes in [&torn[..], &bytes[..bytes.len() - 1]] {
            let restored = HeatMap::restore(bytes, 9, HeatSettings::new(EXTENTS)).expect("whole");
            assert_eq!((restored.pages_lost, restored.map.dispersion()), (0, 1.0));
        }
    }
}
