//! Which run of a baseline comes next.

use std::borrow::Cow;

use plumb_units::convert::{to_u32, to_usize};

use super::curve::Share;
use super::doubt;
use super::options::{BaselineOptions, FILE_COUNTS, PAIRS_MOST, Preset, REPETITIONS, Step};
use crate::bracket;
use crate::compare::{self, Metric, Verdict};
use crate::knee::{self, Knee};
use crate::split::{self, Pair};
use crate::study::best::{Best, Candidate, LOSS_MOST, Noise, NoiseSource, choose_best};
use crate::study::conditioning::{CONDITIONING, counted, settle_s};
use crate::study::drift::{ANCHOR, Drift, without_drift};
use crate::study::engine::{Extent, Next, Planner};
use crate::study::perform::Order;
use crate::study::random::Random;
use crate::study::record::{Purpose, RunRecord};
use crate::study::sweep::{ANCHOR_EVERY, rows, same_but_o};
use crate::study::sweep_findings::rates;
use crate::study::{Access, Setting};

/// A baseline at work.
#[derive(Debug)]
pub struct BaselinePlanner {
    pub(super) options: BaselineOptions,
}

/// What the steps so far chose; what a step that is left out would have chosen is the published default.
#[derive(Debug, Clone, PartialEq)]
pub struct Choices {
    /// F.
    pub files: u32,
    /// Small random I/O: the setting to begin with, then the chosen one.
    pub random: Setting,
    /// The curve of random test 1.
    pub random_curve: Option<Knee>,
    /// The pairs of random test 2, with the outcome.
    pub pairs: Vec<Setting>,
    /// Which of the pairs.
    pub pair: Option<Best>,
    /// Sequential reads: the curve, and its setting.
    pub reads: Option<(Knee, Setting)>,
    /// Sequential writes.
    pub writes: Option<(Knee, Setting)>,
    /// SD of ln X between runs of small random I/O, where it was measured.
    pub noise: Option<Noise>,
}

/// Runs that later steps need at least: threads, reads, writes, latency. With two for threads most searches over them end
/// too early, with four nearly none (docs/decisions/0213-far-corners-of-a-search.md).
const KEPT_BACK: [(Step, usize); 4] =
    [(Step::RandomTwo, 4), (Step::Reads, 7), (Step::Writes, 7), (Step::Latency, 4)];
/// How many of those for threads a noisy curve may use.
const LENT: usize = 2;
/// How often a pair is run at most where it is in doubt: while threads are chosen, and in the end.
const DOUBTED_MOST: (usize, usize) = (3, 4);
/// A loss by another number of threads that counts.
const DELTA: f64 = 0.02;
/// Most outstanding I/Os of one thread whose latency is measured.
const LATENCY_LAST: u32 = 4;
/// Scatter about a curve above which what its answer rests on is run three times instead of twice.
pub(super) const NOISY: f64 = 0.006;
/// Where the streams of random numbers begin that put ranges in order: those before are of runs.
pub(super) const ORDERS_FROM: u64 = 1 << 32;

/// A run that is missing, with its step.
type Missing = Box<(Step, Setting)>;

/// A step's answer, or the run that it needs first.
pub(super) enum Ask<T> {
    Run(Setting),
    Have(T),
}

/// Unwraps an answer, or returns the run with its step.
macro_rules! have {
    ($ask:expr, $step:expr) => {
        match $ask {
            Ask::Run(setting) => return Err(Box::new(($step, setting))),
            Ask::Have(answer) => answer,
        }
    };
}

impl BaselinePlanner {
    /// Of these options.
    #[must_use]
    pub fn new(options: BaselineOptions) -> Self {
        Self { options }
    }

    /// What it is to do.
    #[must_use]
    pub fn options(&self) -> &BaselineOptions {
        &self.options
    }

    /// What the runs so far chose, as far as they reach.
    #[must_use]
    pub fn choices(&self, runs: &[RunRecord]) -> Choices {
        let mut choices = self.begin();
        // What is missing is left as it is.
        let _ = self.decide(&mut choices, &counted(runs));
        choices
    }

    /// The same judged again by `runs` of which a drift was taken out. What small random I/O chose stays, as the steps after it
    /// were run with that: where its runs now say otherwise it is not certain.
    pub(super) fn judge_again(&self, choices: &mut Choices, runs: &[RunRecord]) {
        choices.noise = noise(choices.random_curve.as_ref(), runs);
        if let Some(best) = choices.pair.as_mut() {
            best.judged_by(choose_best(&split_candidates(&choices.pairs, runs), choices.noise));
        }
        for (curve, setting) in [&mut choices.reads, &mut choices.writes].into_iter().flatten() {
            let own = runs.iter().filter(|run| same_but_o(&run.setting, setting));
            *curve = knee::find(&rows(own), &self.options.knee_options(setting, runs));
            setting.outstanding = chosen(curve).unwrap_or(setting.outstanding);
        }
    }

    fn begin(&self) -> Choices {
        Choices {
            files: 1,
            random: self.options.random(1),
            random_curve: None,
            pairs: Vec::new(),
            pair: None,
            reads: None,
            writes: None,
            noise: None,
        }
    }

    /// Goes through the steps; the first run that is missing ends it.
    ///
    /// What small random I/O chose must not change while it is confirmed: the steps after it would begin anew. Nothing
    /// follows from the choices of sequential I/O, which therefore count every run.
    fn decide(&self, choices: &mut Choices, whole: &[RunRecord]) -> Result<(), Missing> {
        let has = |step| self.options.has(step);
        let all = &*without_anchors(whole);
        let runs = &*without_confirmation(all);
        if has(Step::PretestOne) {
            have!(once(&choices.random, runs), Step::PretestOne);
        }
        if has(Step::PretestTwo) {
            choices.files = have!(self.files(runs), Step::PretestTwo);
            choices.random = self.options.random(choices.files);
        }
        if has(Step::RandomOne) {
            let seen = &*self.seen_by(Step::RandomOne, whole, runs);
            let curve = self.curve(Step::RandomOne, &choices.random, seen, (Share::Own, 0));
            let curve = have!(curve, Step::RandomOne);
            choices.random.outstanding = chosen(&curve).unwrap_or(choices.random.outstanding);
            choices.random_curve = Some(curve);
        }
        choices.noise = noise(choices.random_curve.as_ref(), runs);
        if has(Step::RandomTwo) {
            self.split(choices, &self.seen_by(Step::RandomTwo, whole, runs), all)?;
        }
        // Where a run more may tell, it is kept for the end.
        let is_open = in_doubt(&choices.pairs, choices.noise, runs, DOUBTED_MOST.1).is_some();
        let reserve = usize::from(is_open && has(Step::Confirm));
        // Runs that one curve does not need are the other's that still climbs, or whose knee may lie far from what was run.
        for share in [Share::Own, Share::Rest] {
            for (step, percent) in [(Step::Reads, 0), (Step::Writes, 100)] {
                let is_reads = step == Step::Reads;
                let answer = if is_reads { &mut choices.reads } else { &mut choices.writes };
                let climbs = |(curve, _): &(Knee, Setting)| {
                    curve.verdict == knee::Verdict::Extend || bracket::coarse(curve).is_some()
                };
                let is_open = share == Share::Own || answer.as_ref().is_some_and(climbs);
                if !has(step) || !is_open {
                    continue;
                }
                let mut setting = self.options.sequential(choices.files, percent);
                let seen = &*self.seen_by(step, whole, all);
                let curve = have!(self.curve(step, &setting, seen, (share, reserve)), step);
                setting.outstanding = chosen(&curve).unwrap_or(setting.outstanding);
                *answer = Some((curve, setting));
            }
        }
        if has(Step::Latency) {
            for setting in apart(&choices.random, &self.options) {
                // The last run is the reference's, which says more than two and four I/Os of one thread; so does a curve's end.
                let is_over = !self.options.is_exhaustive() && runs.len() >= self.runs_most();
                if is_over && setting.threads == 1 && setting.outstanding > 1 {
                    continue;
                }
                have!(once(&setting, runs), Step::Latency);
            }
        }
        Ok(())
    }

    /// What a step goes by: `runs`, in an exhaustive plan without the drift that was to be seen when the step ended. What comes
    /// later must not change what it chose.
    fn seen_by<'a>(
        &self,
        step: Step,
        whole: &[RunRecord],
        runs: &'a [RunRecord],
    ) -> Cow<'a, [RunRecord]> {
        let last = whole.iter().rposition(|run| run.step == step.keyword());
        let drift = last.filter(|_| self.options.is_exhaustive());
        let drift = drift.and_then(|last| Drift::of_repetitions(&whole[..=last]));
        match drift.filter(Drift::is_real) {
            Some(drift) => runs.iter().map(|run| without_drift(run, Some(&drift))).collect(),
            None => Cow::Borrowed(runs),
        }
    }

    /// 2.5: the numbers of files that are compared.
    pub(super) fn file_counts(&self) -> Vec<u32> {
        let size = self.options.size.unwrap_or(0);
        let fits = |files: &u32| {
            u64::from(*files) <= self.options.outstanding_most
                && self.options.threads.is_multiple_of(*files)
                && size.is_multiple_of(u64::from(*files))
        };
        let counts: [u32; FILE_COUNTS] = [1, 2, 4];
        counts.into_iter().filter(fits).collect()
    }

    /// The fewest of them that nothing is better than.
    fn files(&self, runs: &[RunRecord]) -> Ask<u32> {
        let counts = self.file_counts();
        let setting = |files: u32| self.options.random(files);
        for repetition in 1..=REPETITIONS {
            for files in &counts {
                if tries(&setting(*files), runs) < repetition {
                    return Ask::Run(setting(*files));
                }
            }
        }
        let mut kept = 1;
        for files in counts.into_iter().skip(1) {
            let (a, b) = (rates(&setting(kept), runs).0, rates(&setting(files), runs).0);
            let Some(found) = compare::of_runs(&a, &b) else { continue };
            let found = compare::judge(found, &Metric::named("iops", true));
            if found.verdict == Verdict::Better {
                kept = files;
            }
        }
        Ask::Have(kept)
    }

    /// Runs at most beside the reference at the end.
    fn runs_most(&self) -> usize {
        let most = to_usize(self.options.runs_most());
        if most > ANCHOR_EVERY { most - 1 } else { most }
    }

    /// The reference setting, where it is due: once at the end, and every ten runs of an exhaustive plan, which takes a day.
    fn anchor(&self, runs: &[RunRecord], is_done: bool) -> Option<Order> {
        let is_anchor = |run: &RunRecord| run.purpose == Purpose::Anchor;
        let anchors = runs.iter().filter(|run| is_anchor(run)).count();
        let since = runs.iter().rev().take_while(|run| !is_anchor(run)).count();
        let has_room =
            self.options.is_exhaustive() || runs.len() < to_usize(self.options.runs_most());
        let is_due = match is_done {
            true => since > 0 && runs.len() >= ANCHOR_EVERY && has_room,
            false => since >= ANCHOR_EVERY && self.options.is_exhaustive(),
        };
        let setting = self.reference(runs).filter(|_| is_due)?;
        Some(Order {
            step: ANCHOR.to_owned(),
            purpose: Purpose::Anchor,
            repetition: to_u32(anchors) + 1,
            setting,
        })
    }

    /// Runs that a step may still add, so that later ones have enough.
    pub(super) fn left(&self, step: Step, runs: &[RunRecord]) -> usize {
        // A noisy curve needs its repetitions: a peak over threads is a peak of the load that it finds.
        let lent = if step == Step::RandomOne && is_noisy(runs) { LENT } else { 0 };
        self.left_with(step, runs, lent)
    }

    /// The same where later ones lend so many.
    pub(super) fn left_with(&self, step: Step, runs: &[RunRecord], lent: usize) -> usize {
        let later = KEPT_BACK.iter().filter(|(other, _)| *other > step && self.options.has(*other));
        let kept: usize = later.map(|(_, count)| count).sum();
        let kept = kept.saturating_sub(lent);
        to_usize(self.options.runs_most()).saturating_sub(kept + runs.len())
    }

    /// 2.7: the same N, split between threads. The repetitions at the end move the verdict, but not the choice.
    fn split(
        &self,
        choices: &mut Choices,
        runs: &[RunRecord],
        all: &[RunRecord],
    ) -> Result<(), Missing> {
        let pairs = self.pairs(&choices.random, choices.files);
        if pairs.is_empty() {
            return Ok(());
        }
        if self.options.is_exhaustive() {
            let mut order: Vec<&Setting> = pairs.iter().collect();
            Random::new(self.options.seed, ORDERS_FROM).shuffle(&mut order);
            if let Some(missing) = order.into_iter().find(|pair| tries(pair, runs) == 0) {
                return Err(Box::new((Step::RandomTwo, missing.clone())));
            }
        } else {
            have!(self.fewest(&pairs, choices, runs), Step::RandomTwo);
        }
        let candidates = split_candidates(&pairs, runs);
        // Pairs that a search went back to are repetitions as well.
        choices.noise = noise(choices.random_curve.as_ref(), runs);
        choices.pair = choose_best(&candidates, choices.noise);
        if let Some(best) = &choices.pair {
            choices.random = pairs[best.chosen].clone();
        }
        if let Some(best) = choices.pair.as_mut().filter(|_| all.len() > runs.len()) {
            let noise = noise(choices.random_curve.as_ref(), all);
            best.judged_by(choose_best(&split_candidates(&pairs, all), noise));
        }
        choices.pairs = pairs;
        Ok(())
    }

    /// Runs that find the fewest threads which give all there is, beginning with as many as random test 1 had.
    fn fewest(&self, pairs: &[Setting], choices: &Choices, runs: &[RunRecord]) -> Ask<()> {
        let used = runs.iter().filter(|run| run.step == Step::RandomTwo.keyword()).count();
        if used >= PAIRS_MOST || self.left(Step::RandomTwo, runs) == 0 {
            return Ask::Have(());
        }
        let rate = |pair: &Setting| {
            let found = rates(pair, runs).0;
            match found.is_empty() {
                // One that failed is not tried again.
                true => (tries(pair, runs) > 0).then_some(0.0),
                false => Some(crate::stats::describe::mean(&found)),
            }
        };
        let measured: Vec<Option<f64>> = pairs.iter().map(rate).collect();
        let near = |index: &usize| pairs[*index].threads.abs_diff(choices.random.threads);
        let Some(start) = (0..pairs.len()).min_by_key(near) else { return Ask::Have(()) };
        let split = |setting: &Setting| Pair {
            threads: setting.threads.into(),
            o: setting.outstanding.into(),
        };
        let splits: Vec<Pair> = pairs.iter().map(split).collect();
        let loss = choices.noise.map_or(0.0, |noise| noise.reach(1, 1)).clamp(DELTA, LOSS_MOST);
        let next = split::next_pair(&splits, &measured, start, loss);
        let next = next.or_else(|| split::far_corner(&measured, loss));
        match next.or_else(|| in_doubt(pairs, choices.noise, runs, DOUBTED_MOST.0)) {
            Some(next) => Ask::Run(pairs[next].clone()),
            None => Ask::Have(()),
        }
    }

    /// The least repeated of what the choices rest on; `None` when all were repeated, or as many runs are used as there may be:
    /// where repetitions change the choice, others are to be repeated.
    fn confirm(&self, choices: &Choices, runs: &[RunRecord]) -> Option<Setting> {
        if !self.options.has(Step::Confirm)
            || self.options.is_exhaustive()
            || runs.len() >= self.runs_most()
        {
            return None;
        }
        let mut list = Vec::new();
        if self.options.has(Step::RandomOne) || self.options.has(Step::RandomTwo) {
            list.push(choices.random.clone());
        }
        list.extend([&choices.reads, &choices.writes].into_iter().flatten().map(|c| c.1.clone()));
        // What contradicts itself is run up to five times (3.3), and before all else where a third run may tell which of two is off.
        let irreproducible = doubt::irreproducible(runs, choices.random_curve.as_ref());
        let is_torn = |setting: &&Setting| irreproducible.contains(setting);
        if let Some(torn) = list.iter().filter(is_torn).find(|s| tries(s, runs) == 2) {
            return Some(torn.clone());
        }
        let noise = noise(choices.random_curve.as_ref(), runs);
        if let Some(index) = in_doubt(&choices.pairs, noise, runs, DOUBTED_MOST.1) {
            return Some(choices.pairs[index].clone());
        }
        if self.options.has(Step::Latency) {
            list.push(Setting { latency: false, ..choices.random.clone() });
        }
        let wanted = |setting: &Setting| match irreproducible.contains(setting) {
            true => knee::IRREPRODUCIBLE_RUNS.max(self.options.confirmations()),
            false => self.options.confirmations(),
        };
        list.into_iter()
            .filter(|setting| tries(setting, runs) < wanted(setting))
            .min_by_key(|setting| tries(setting, runs))
    }
}

impl Planner for BaselinePlanner {
    fn next(&self, all: &[RunRecord]) -> Next {
        let (options, first) = (&self.options, self.options.random(1));
        if let Some(order) = options.conditioning.next(&first, options.device_bytes, all) {
            return Next::Run(Box::new(order));
        }
        let runs = &*counted(all);
        let mut choices = self.begin();
        let due = match self.decide(&mut choices, runs) {
            Err(due) => Some(*due),
            Ok(()) => {
                let again = self.confirm(&choices, &without_anchors(runs));
                again.map(|setting| (Step::Confirm, setting))
            }
        };
        if let Some(order) = self.anchor(runs, due.is_none()) {
            return Next::Run(Box::new(order));
        }
        let Some((step, setting)) = due else { return Next::Done };
        let runs = &*without_anchors(runs);
        let repetition = u32::try_from(tries(&setting, runs)).unwrap_or(u32::MAX) + 1;
        Next::Run(Box::new(Order {
            step: step.keyword().to_owned(),
            purpose: if repetition > 1 { Purpose::Repeat } else { Purpose::Measure },
            repetition,
            setting,
        }))
    }

    fn seed(&self) -> u64 {
        self.options.seed
    }

    fn early_end(&self, order: &Order) -> bool {
        self.options.preset == Preset::Standard
            && !self.options.full_length
            && order.step != CONDITIONING
            // One run against several before it.
            && order.step != ANCHOR
    }

    fn rest_s(&self, last: &Setting, next: &Order) -> f64 {
        settle_s(last, &next.setting).max(self.options.gap_s.into())
    }

    fn known(&self, _: &[RunRecord]) -> Option<Vec<&Order>> {
        None
    }

    fn extent(&self, runs: &[RunRecord]) -> Option<Extent> {
        self.options.is_exhaustive().then(|| Self::extent(self, runs))
    }

    fn reference(&self, runs: &[RunRecord]) -> Option<Setting> {
        let counted = |run: &&RunRecord| run.usable().is_some() && run.step != CONDITIONING;
        runs.iter().find(counted).map(|run| run.setting.clone())
    }
}

/// What there is without the repetitions at the end.
fn without_confirmation(runs: &[RunRecord]) -> Vec<RunRecord> {
    runs.iter().filter(|run| run.step != Step::Confirm.keyword()).cloned().collect()
}

/// What there is without the runs that show drift: a reference must not move what was chosen before it.
pub(super) fn without_anchors(runs: &[RunRecord]) -> Vec<RunRecord> {
    runs.iter().filter(|run| run.purpose != Purpose::Anchor).cloned().collect()
}

/// How often a setting was run, well or not.
pub(super) fn tries(setting: &Setting, runs: &[RunRecord]) -> usize {
    runs.iter().filter(|run| run.setting == *setting).count()
}

/// Whether the repetitions of pre-test 2 differ by as much as makes a curve noisy.
pub(super) fn is_noisy(runs: &[RunRecord]) -> bool {
    let is_pretest = |run: &&RunRecord| {
        [Step::PretestOne, Step::PretestTwo].iter().any(|step| run.step == step.keyword())
    };
    let mut groups: Vec<(&Setting, Vec<f64>)> = Vec::new();
    for run in runs.iter().filter(is_pretest) {
        let Some(summary) = run.usable() else { continue };
        match groups.iter_mut().find(|(setting, _)| **setting == run.setting) {
            Some((_, logs)) => logs.push(summary.iops.ln()),
            None => groups.push((&run.setting, vec![summary.iops.ln()])),
        }
    }
    let logs: Vec<Vec<f64>> = groups.into_iter().map(|(_, logs)| logs).collect();
    Noise::pooled(&logs).is_some_and(|noise| noise.deviation > NOISY)
}

fn once(setting: &Setting, runs: &[RunRecord]) -> Ask<()> {
    if tries(setting, runs) > 0 { Ask::Have(()) } else { Ask::Run(setting.clone()) }
}

/// The pair to run again, fewer than `most` times so far, where that may tell whether threads make a difference.
fn in_doubt(
    pairs: &[Setting],
    noise: Option<Noise>,
    runs: &[RunRecord],
    most: usize,
) -> Option<usize> {
    let candidates = split_candidates(pairs, runs);
    choose_best(&candidates, noise)?.in_doubt(&candidates, most)
}

/// What runs of small random I/O differ by: by all repetitions there are, whatever they repeat; where there are too few,
/// by the scatter of the settings about their curve.
fn noise(curve: Option<&Knee>, runs: &[RunRecord]) -> Option<Noise> {
    let mut settings: Vec<&Setting> = Vec::new();
    for run in runs {
        let setting = &run.setting;
        if setting.access == Access::Random && setting.latency && !settings.contains(&setting) {
            settings.push(setting);
        }
    }
    let logs = |setting: &&Setting| rates(setting, runs).0.iter().map(|iops| iops.ln()).collect();
    let logs: Vec<Vec<f64>> = settings.iter().map(logs).collect();
    Noise::pooled(&logs).or_else(|| {
        let curve = curve?;
        let fit = curve.fit.as_ref()?;
        let counted = curve.settings.iter().filter(|setting| setting.counts()).count();
        let freedom = counted.saturating_sub(fit.corners.len() + 2).max(1) as f64;
        Some(Noise { deviation: fit.sigma, freedom, source: NoiseSource::Curve })
    })
}

/// The same load, split between threads: the fewest cost least.
pub(super) fn split_candidates(pairs: &[Setting], runs: &[RunRecord]) -> Vec<Candidate> {
    let candidate = |pair: &Setting| {
        let label = format!("t{} o{}", pair.threads, pair.outstanding);
        pair.candidate(label, rates(pair, runs).0, pair.threads.into())
    };
    pairs.iter().map(candidate).collect()
}

/// The o that a curve recommends; where it gives no answer, the tested one with most throughput.
pub(super) fn chosen(curve: &Knee) -> Option<u32> {
    let o = match (curve.verdict, curve.marks) {
        (knee::Verdict::Knee, Some(marks)) => Some(marks.recommended),
        (knee::Verdict::Flat, _) => curve.settings.first().map(|setting| setting.o),
        _ => {
            let counted = curve.settings.iter().filter(|setting| setting.counts());
            counted.max_by(|a, b| a.ln_x.total_cmp(&b.ln_x)).map(|setting| setting.o)
        }
    };
    o.and_then(|o| u32::try_from(o).ok())
}

/// 2.10: the chosen setting without latencies and with, and one thread with 1, 2 and 4 outstanding, as far as so many
/// are wanted.
pub(super) fn apart(random: &Setting, options: &BaselineOptions) -> Vec<Setting> {
    let alone = |outstanding| Setting { threads: 1, outstanding, ..random.clone() };
    let is_wanted = |setting: &Setting| setting.total_outstanding() <= options.outstanding_most;
    let mut list = vec![Setting { latency: false, ..random.clone() }, random.clone(), alone(1)];
    list.extend([alone(2), alone(LATENCY_LAST)].into_iter().filter(is_wanted));
    list
}
