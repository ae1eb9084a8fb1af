//! Whole optimizations in histories: a plan made from the heat of the requests so far, its moves by several at a time and
//! throttled, while requests and faults go on; ended by their time, called off in the middle, and gone on with.

use plumb_units::Nanos;
use plumb_units::convert::{to_u32, to_usize};

use super::history::{Shape, Step};
use super::run::{Run, Wrong};
use crate::engine::{Optimization, OptimizeSettings};
use crate::random::Random;
use crate::tier_report::MoveStop;

/// Which histories have some; by this one those do not that are known to meet a broken rule.
const CHOICE: u64 = 0x6f70_7469_026a;
/// One history in so many with two tiers has some.
const SHARE: u64 = 3;
/// Bytes per second of moves at most, of extents of 64 KiB; the throttle lets a tenth go at a time.
const RATES: [Option<u64>; 4] = [None, Some(256 << 10), Some(1 << 20), Some(4 << 20)];
/// Turns in which an optimization that was called off has ended.
const TURNS_TO_END: u32 = 4000;

/// The same history, some with optimizations in it. They have random numbers of their own: the others stay what they are.
pub(super) fn with(shape: &Shape, mut history: Vec<Step>, seed: u64) -> Vec<Step> {
    let mut random = Random::new(seed ^ CHOICE);
    if shape.rotating == 0 || !random.one_in(SHARE) {
        return history;
    }
    let mut at = 8 + to_usize(random.below(24));
    while at < history.len() {
        let run = one(&mut random);
        let steps = run.len();
        // Requests go on between its steps.
        for step in run {
            at = (at + to_usize(random.below(6))).min(history.len());
            history.insert(at, step);
            at += 1;
        }
        at += steps + to_usize(random.below(30));
    }
    history
}

/// Whether a history has any.
pub(super) fn are_in(history: &[Step]) -> bool {
    history.iter().any(|step| matches!(step, Step::Optimize { .. }))
}

/// One that begins, and goes on for a while; now and then it is called off, and the next one may follow at once.
fn one(random: &mut Random) -> Vec<Step> {
    let mut out = vec![begin(random)];
    for _ in 0..1 + random.below(4) {
        // Whoever waits for the throttle is let go on every tenth of a second.
        out.push(Step::Sleep { millis: 1 + random.below(130) });
        out.push(Step::Poll);
    }
    if random.one_in(2) {
        out.push(Step::CallOff { wait: random.one_in(2) });
        out.extend(random.one_in(2).then(|| begin(random)));
    }
    out
}

/// One in the life after a crash, for those that had some before: its power is cut, too.
pub(super) fn once_more(more: &mut Vec<Step>, seed: u64) {
    let mut random = Random::new(seed ^ CHOICE);
    let at = (4 + to_usize(random.below(4))).min(more.len());
    more.splice(at..at, [begin(&mut random), Step::Poll]);
    more.extend([Step::Sleep { millis: 100 }, Step::Poll]);
}

/// One that begins.
fn begin(random: &mut Random) -> Step {
    let mut byte = |bound: u64| u8::try_from(random.below(bound)).unwrap_or(0);
    // With room to be kept free extents only go down, and come up with the next one.
    let (reserve, movers, rate) = (byte(4), 1 + byte(8), byte(4));
    let millis = if random.one_in(4) { 1 + random.below(300) } else { 60_000 };
    Step::Optimize { reserve: reserve.saturating_sub(1), movers, rate, millis }
}

impl Run {
    fn vdisks(&self) -> u32 {
        to_u32(self.engine.config().vdisks.len())
    }

    /// Whether an optimization is under way.
    pub(super) fn optimizes(&self) -> bool {
        (0..self.vdisks()).any(|vdisk| self.engine.optimizing(vdisk))
    }

    /// Begins one of each virtual disk, unless it has one under way. Any gain is worth a move.
    pub(super) fn optimize(&mut self, (reserve, movers): (u8, u8), rate: u8, millis: u64) {
        let settings = OptimizeSettings {
            reserve: reserve.into(),
            movers: movers.into(),
            rate: RATES[usize::from(rate) % RATES.len()],
            time: Nanos::from_millis(millis),
            raised: 0.0,
            ..OptimizeSettings::default()
        };
        for vdisk in 0..self.vdisks() {
            let now_s = self.engine.queue_mut().now().as_secs_f64();
            self.engine.optimize(vdisk, &settings, now_s);
        }
    }

    /// Calls all off; with `wait` until they have ended.
    pub(super) fn call_off(&mut self, wait: bool) {
        (0..self.vdisks()).for_each(|vdisk| self.engine.cancel_optimization(vdisk));
        for turn in 0..TURNS_TO_END {
            if !wait || !self.optimizes() || self.wrong.is_some() {
                return;
            }
            self.poll();
            if turn % 64 == 63 {
                self.engine.queue_mut().advance(Nanos::from_secs(2));
            }
        }
        self.wrong = Some("an optimization that was called off does not end".into());
    }

    /// What has ended adds up.
    pub(super) fn judge_optimizations(&mut self) -> Result<(), Wrong> {
        for vdisk in 0..self.vdisks() {
            let Some(done) = self.engine.take_optimization(vdisk) else { continue };
            let moves = &done.report.facts.moves;
            self.background.optimized.push((moves.stop, moves.up + moves.down));
            judge(&done)?;
        }
        Ok(())
    }
}

/// Moves that were asked for are made, refused, or left by whoever ended them (10.7).
fn judge(done: &Optimization) -> Result<(), Wrong> {
    let moves = &done.report.facts.moves;
    let refused: u64 = done.refused.iter().map(|one| one.1).sum();
    let asked = moves.up_requested + moves.down_requested;
    let ended = moves.up + moves.down + refused;
    let cut_short = matches!(moves.stop, MoveStop::Time | MoveStop::Cancelled | MoveStop::Error);
    let more = moves.up > moves.up_requested || moves.down > moves.down_requested;
    if more || ended > asked || ended < asked && !cut_short {
        return Err(format!("an optimization does not add up: {moves:?}, {:?}", done.refused));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::super::history::{sectors, steps};
    use super::super::oracle::Oracle;
    use super::super::run::new_pool;
    use super::super::{STEPS, history_seed};
    use super::*;

    /// Optimizations of histories end in every way there is, most of them with extents moved; a third of the histories with two
    /// tiers has some.
    #[test]
    fn optimizations_of_histories_move_and_end_in_every_way() {
        let (mut two_tiers, mut with_some) = (0, 0);
        let mut ended: BTreeMap<&str, (u64, u64)> = BTreeMap::new();
        for seed in (0..240).map(|nth| history_seed(0x0b71, nth)) {
            let shape = Shape::new(seed);
            let plain = steps(&shape, STEPS, seed);
            let history = with(&shape, plain.clone(), seed);
            two_tiers += u32::from(shape.rotating > 0);
            if !are_in(&history) {
                assert_eq!(history, plain);
                continue;
            }
            with_some += 1;
            if with_some > 40 {
                continue;
            }
            let oracle = Oracle::new(plumb_units::convert::index(sectors()));
            let mut run =
                Run::start(&shape, new_pool(&shape), &[], oracle, seed).expect("it starts");
            run.take(&history).unwrap_or_else(|wrong| panic!("{seed}: {wrong}"));
            for (stop, moved) in &run.background.optimized {
                let of = ended.entry(stop.name()).or_default();
                *of = (of.0 + 1, of.1 + moved);
            }
        }
        println!("{with_some} of {two_tiers}, ended: {ended:?}");
        assert!(
            with_some * 4 > two_tiers && with_some * 2 < two_tiers,
            "{with_some} of {two_tiers}"
        );
        for (stop, least) in [("done", 20), ("cancelled", 10), ("time", 1)] {
            assert!(ended.get(stop).is_some_and(|of| of.0 >= least && of.1 >= least), "{ended:?}");
        }
    }
}
