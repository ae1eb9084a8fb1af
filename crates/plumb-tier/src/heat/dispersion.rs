//! How many times as much as single I/Os the scores of extents vary by chance.
//!
//! I/Os that come one by one have a variance as large as their number. Where they come in bunches it is as many times that as come
//! together, and the heat map cannot tell one from the other by a single window. Two windows tell: where a load goes on as it is,
//! what an extent's score wins in each differs by chance alone. Of some thousand extents, chosen by their numbers, is kept what they won in the
//! window before. What most of them are off by counts, so that those whose load did change, one in five or so, do not.
//!
//! Where scores vary from day to day for reasons of their own, windows take that for chance, too. So they are believed up to eight times, and beyond
//! that as far as [hours](super::bunches) say the same.

use super::bunches::{self, Hours};
use super::trend::LEFT_MOST;
use crate::format::bytes::{Reader, Writer};
use crate::format::checksum::crc;

/// Extents that are followed.
pub(super) const WITNESSES: usize = 4096;
/// So many of them with I/Os enough tell something.
const TELLING_LEAST: usize = 64;
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
pub(super) const MOST_BY_WINDOWS: f32 = 8.0;
/// Nor than this, whatever was seen: as many as an extent of 1 MiB has blocks.
pub(super) const MOST: f32 = 256.0;

/// An extent, its score when the window began, and what that had won in the window before, both in sixteenths; and what it wins by the hour.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Witness {
    extent: u32,
    score: f32,
    won: f32,
    hours: Hours,
}

/// The extents that are followed: those whose numbers are strewn lowest, of those that were not cold.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Witnesses {
    /// By extent.
    list: Vec<Witness>,
    /// All that are strewn so low are followed; those that are not listed had neither score nor I/Os.
    reach: u32,
    /// How long the window before was; 0: too short to be compared, or not known.
    hours: u32,
    /// What was made of the last two windows that could be compared, and of hours when they last told something.
    found: Dispersion,
}

/// How many times as much as single I/Os those of a load vary.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Dispersion {
    /// From one window to the next, however much that is.
    by_windows: f32,
    /// From one hour to the next.
    by_hours: f32,
}

impl Dispersion {
    /// What is believed.
    pub(super) fn believed(self) -> f32 {
        let both = self.by_windows.min(self.by_hours).min(MOST);
        self.by_windows.min(MOST_BY_WINDOWS).max(both)
    }
}

impl Default for Witnesses {
    fn default() -> Self {
        let found = Dispersion { by_windows: 1.0, by_hours: 1.0 };
        Self { list: Vec::new(), reach: 0, hours: 0, found }
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

    /// By what this window, which has lasted so long, and the one before differ, and by what hours do; what was known before, where they cannot be
    /// compared. `scores` are those of all extents now, in sixteenths.
    pub(super) fn dispersion(
        &self,
        hours: u64,
        half_life: f32,
        scores: impl Iterator<Item = (u32, f32)>,
    ) -> Dispersion {
        Dispersion {
            by_windows: self.compare(hours, half_life, scores).unwrap_or(self.found.by_windows),
            by_hours: bunches::of_hours(self.list.iter().map(|witness| &witness.hours))
                .unwrap_or(self.found.by_hours),
        }
    }

    /// The hour has ended; the next one begins `later` hours after it did. `score` has the scores at its end, in sixteenths.
    pub(super) fn end_hour(&mut self, later: u64, half_life: f32, score: impl Fn(u32) -> f32) {
        let keep = (-(later as f32) / half_life).exp2();
        let ends: Vec<f32> = self.list.iter().map(|witness| score(witness.extent)).collect();
        let mut levels = [0.0; 2];
        for (witness, now) in self.list.iter().zip(&ends) {
            if witness.hours.before >= 0.0 {
                levels[0] += witness.hours.before;
                levels[1] += witness.hours.won_by(*now);
            }
        }
        let levels = bunches::alike(levels);
        for (witness, now) in self.list.iter_mut().zip(&ends) {
            witness.hours.end(*now, now * keep, levels);
            if later > 1 {
                witness.hours.forget_before();
            }
        }
    }

    fn compare(
        &self,
        hours: u64,
        half_life: f32,
        scores: impl Iterator<Item = (u32, f32)>,
    ) -> Option<f32> {
        let keeps = [kept(self.hours.into(), half_life)?, kept(hours, half_life)?];
        let won = scores.filter_map(|(extent, now)| {
            let witness = self.get(extent)?;
            let (score, before) = witness.map_or((0.0, 0.0), |own| (own.score, own.won));
            let won = [before, (now - score * keeps[1]).max(0.0)];
            (won[0] + won[1] > 0.0).then_some(won)
        });
        of_windows(keeps, &won.take(4 * WITNESSES).collect::<Vec<_>>())
    }
}

/// By what extents won in two windows, of which so much is left of a score.
fn of_windows(keeps: [f32; 2], won: &[[f32; 2]]) -> Option<f32> {
    // What a steady load wins of the score that it leads to, and the variance of that score by such a window, over the mean.
    let gain = keeps.map(|keep| 1.0 - keep);
    let vary = keeps.map(|keep| (1.0 + keep) / (1.0 - keep) / 2.0);
    let level = level(gain, won);
    if !(BUSIER_MOST.recip()..=BUSIER_MOST).contains(&level) {
        return None;
    }
    let off = |own: &[f32; 2]| {
        let scores = [own[0] / gain[0], own[1] / gain[1] / level];
        let mean = (own[0] + own[1]) / (gain[0] + gain[1] * level);
        (scores[0] - scores[1]).powi(2) / (16.0 * mean * (vary[0] + vary[1] / level))
    };
    let telling = won.iter().filter(|own| own[0] + own[1] >= ENOUGH);
    let mut off: Vec<f32> = telling.map(off).collect();
    if off.len() < TELLING_LEAST {
        return None;
    }
    off.sort_unstable_by(f32::total_cmp);
    off.truncate(off.len() - off.len() / LEFT_OUT);
    let mean = off.iter().sum::<f32>() / off.len() as f32;
    Some((mean * OF_THE_OTHERS).max(1.0))
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
    found: Vec<(u32, Witness)>,
    reach: u32,
    dispersion: Dispersion,
}

impl Gathered {
    /// At the end of a window of so many hours, with what is known of the one before.
    pub(super) fn new(
        before: Witnesses,
        hours: Option<u64>,
        (half_life, dispersion): (f32, Dispersion),
    ) -> Self {
        let window = hours.and_then(|hours| Some((hours, kept(hours, half_life)?)));
        Self { before, window, found: Vec::new(), reach: u32::MAX, dispersion }
    }

    /// An extent: what is remembered of its score by its entry, its score now, and the one with which it begins the new window.
    #[inline]
    pub(super) fn note(&mut self, extent: u32, (remembered, now, next): (f32, f32, f32)) {
        let place = strewn(extent);
        if place > self.reach || now <= 0.0 && next <= 0.0 {
            return;
        }
        let keep = self.window.map_or(0.0, |window| window.1);
        let before = self.before.get(extent);
        let score = before.map_or(remembered, |own| own.map_or(0.0, |own| own.score));
        let won = (now - score * keep).max(0.0);
        // What the hour has won so far stays, whatever becomes of the score.
        let hours = before.flatten().map_or(Hours::new(), |own| own.hours.moved_by(next - now));
        self.found.push((place, Witness { extent, score: next, won, hours }));
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

    pub(super) fn witnesses(mut self) -> Witnesses {
        self.keep_lowest();
        let mut list: Vec<Witness> = self.found.iter().map(|one| one.1).collect();
        list.sort_unstable_by_key(|witness| witness.extent);
        let hours = self.window.map_or(0, |window| u32::try_from(window.0).unwrap_or(u32::MAX));
        Witnesses { list, reach: self.reach, hours, found: self.dispersion }
    }
}

impl Witnesses {
    /// As bytes: hours, dispersion by windows and by hours, reach, how many, then each, and a checksum.
    pub(super) fn save(&self, bytes: &mut Writer) {
        let start = bytes.0.len();
        bytes.u32(self.hours);
        bytes.u32(self.found.by_windows.to_bits());
        bytes.u32(self.found.by_hours.to_bits());
        bytes.u32(self.reach);
        bytes.u32(u32::try_from(self.list.len()).unwrap_or(0));
        for witness in &self.list {
            bytes.u32(witness.extent);
            bytes.u32(witness.score.to_bits());
            bytes.u32(witness.won.to_bits());
            let Hours { at, before, off, won } = witness.hours;
            [at, before, off, won].iter().for_each(|value| bytes.u32(value.to_bits()));
        }
        let sum = crc(0, &bytes.0[start..]);
        bytes.u32(sum);
    }

    /// Reads them back from a snapshot of version 3, which lacks what is known by the hour, or later; `None` if they are damaged.
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
        let (reach, count) = (from.u32()?, from.u32()?);
        let mut list = Vec::new();
        let sound = |value: f32| (0.0..=f32::MAX).contains(&value);
        for _ in 0..count {
            let extent = from.u32()?;
            let (score, won) = (float(&mut from)?, float(&mut from)?);
            let mut own = Hours::new();
            if of > 3 {
                let mut next = || float(&mut from);
                own = Hours { at: next()?, before: next()?, off: next()?, won: next()? };
            }
            let follows = list.last().is_none_or(|last: &Witness| last.extent < extent);
            let is_sound = sound(score) && sound(won) && own.is_sound();
            if !follows || !is_sound || list.len() == WITNESSES {
                return None;
            }
            list.push(Witness { extent, score, won, hours: own });
        }
        let found = Dispersion { by_windows, by_hours };
        let is_sound = (1.0..=f32::MAX).contains(&by_windows) && sound(by_hours);
        is_sound.then_some(Self { list, reach, hours, found })
    }
}

#[cfg(test)]
mod tests {
    use super::super::{HeatMap, HeatSettings, HostIoKind};
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

    /// A program before this one kept nothing of hours: windows go on, up to eight times, until hours have told.
    #[test]
    fn what_an_older_program_kept_goes_on() {
        let map = after(4, (43, 16), 0);
        let mut bytes = map.save(9);
        let at = bytes.len() - 4 - 28 * map.witnesses.list.len() - 20;
        let tail = bytes.split_off(at);
        let mut old = Writer(Vec::new());
        old.0.extend_from_slice(&tail[..4]);
        old.u32(MOST_BY_WINDOWS.to_bits());
        old.0.extend_from_slice(&tail[12..20]);
        tail[20..tail.len() - 4]
            .chunks_exact(28)
            .for_each(|one| old.0.extend_from_slice(&one[..12]));
        let sum = crc(0, &old.0);
        old.u32(sum);
        bytes.extend(old.0);
        bytes[8] = 3;
        let header = crc(0, &bytes[..84]);
        bytes[84..88].copy_from_slice(&header.to_le_bytes());
        let restored = HeatMap::restore(&bytes, 9, HeatSettings::new(EXTENTS)).expect("a snapshot");
        assert_eq!(restored.map.witnesses.list.len(), WITNESSES);
        assert_eq!(restored.map.dispersion(), MOST_BY_WINDOWS);
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
        let found = map.dispersion();
        assert!(found > 7.0, "{found}");
        map.begin_window();
        assert_eq!(map.dispersion(), found, "a window of no hours");
        // Nothing comes any more: what is known stays.
        for day in 4..=5 {
            map.advance(24 * day);
            let now = map.dispersion();
            assert_eq!(now, found, "day {day}");
            map.begin_window();
        }
        let restored = HeatMap::restore(&map.save(9), 9, HeatSettings::new(EXTENTS));
        assert_eq!(restored.expect("a snapshot").map.dispersion(), found);
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
