//! Whether a run was steady, by all that the method asks of it (5.1): the cut of its warm-up, the window gate, and changes of level, of throughput and of
//! latency.

use plumb_units::convert::{floor_u64, to_usize};

use crate::stats::describe::mean;
use crate::steady::{self, Level, ROUNDS, TwoPhases, WarmUp, Window};

/// I/Os that an interval has at least (5.1).
const IOS_LEAST: f64 = 200.0;
/// Seconds of a round of the window gate (5.1 b), where there are five of them.
const ROUND_S: f64 = 10.0;

/// How far the highest and the lowest of five rounds lie apart by chance in one of a hundred cases, in standard deviations of a round, and how far they seem to drift
/// [Tukey: studentized range; normal law].
const BY_CHANCE: (f64, f64) = (4.60, 3.26);

/// What is steady or not.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Quantity {
    /// I/Os per second.
    Throughput,
    /// Mean latency.
    Latency,
}

/// What the gate says of rounds of some length.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Gate {
    /// Of what.
    pub of: Quantity,
    /// Seconds of a round.
    pub round_s: f64,
    /// What the last five rounds look like.
    pub window: Window,
    /// I/Os of a round; infinite where the values are no rates.
    ios: f64,
}

/// Whether what counts of a run is steady.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Verdict {
    /// It passed the gate; by what came nearest to failing it.
    Steady(Gate),
    /// The best cut of this leaves out half of the run (5.1 a).
    Unsettled(Quantity),
    /// Its rounds differ by too much, or drift (5.1 b).
    Varies(Gate),
    /// It has fewer than five intervals of 200 I/Os.
    TooShort,
}

/// How steady a run was.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Steadiness {
    /// What is left out at its beginning, in intervals of the series: the larger of what throughput and latency ask for.
    pub warm_up: WarmUp,
    /// A change of level in what follows.
    pub phases: Option<TwoPhases>,
    /// Whether what counts is steady.
    pub verdict: Verdict,
}

/// Consecutive intervals, together.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Part {
    iops: f64,
    /// Of those I/Os; `None` where it is not known, or none completed.
    latency: Option<f64>,
}

impl Part {
    /// Parts of the same length together.
    fn of(parts: &[Self]) -> Self {
        let iops = mean(&parts.iter().map(|part| part.iops).collect::<Vec<_>>());
        let known = parts.iter().filter_map(|part| Some((part.iops, part.latency?)));
        let (rate, time) = known
            .fold((0.0, 0.0), |(rate, time), (iops, latency)| (rate + iops, time + iops * latency));
        Self { iops, latency: (rate > 0.0).then(|| time / rate) }
    }
}

impl Steadiness {
    /// Of I/Os per second and mean latencies per interval of so many seconds, which are joined until 200 I/Os fall in each (5.1). A latency is NaN where nothing
    /// completed; there are none where none was measured.
    #[must_use]
    pub fn of_run(iops: &[f64], latency: &[f64], interval_s: f64) -> Self {
        let ios = mean(iops) * interval_s;
        // Without any there is no such interval.
        let join = match ios > 0.0 {
            true => to_usize(floor_u64((IOS_LEAST / ios).ceil())).max(1),
            false => iops.len() + 1,
        };
        Self::of_parts(iops, latency, interval_s, Some(join))
    }

    /// Of any positive value per interval.
    #[must_use]
    pub fn of_series(series: &[f64], interval_s: f64) -> Self {
        Self::of_parts(series, &[], interval_s, None)
    }

    /// Whether what counts is steady, or too short to tell.
    #[must_use]
    pub fn may_be_steady(&self) -> bool {
        !matches!(self.verdict, Verdict::Unsettled(_) | Verdict::Varies(_))
    }

    /// The first interval that counts.
    #[must_use]
    pub fn cut(&self) -> usize {
        self.warm_up.drop + self.phases.map_or(0, |phases| phases.at)
    }

    /// `rates`: of so many intervals together; `None` of values that are none.
    fn of_parts(iops: &[f64], latency: &[f64], interval_s: f64, rates: Option<usize>) -> Self {
        let join = rates.unwrap_or(1);
        let part_s = interval_s * join as f64;
        let of = |(nth, iops): (usize, &f64)| {
            let latency = latency.get(nth).copied().and_then(known);
            Part { iops: *iops, latency }
        };
        let parts: Vec<Part> = iops.iter().enumerate().map(of).collect();
        // What fills no interval is left out at the beginning, as nothing is known to be steady there.
        let odd = parts.len() % join;
        let joined: Vec<Part> = parts[odd..].chunks_exact(join).map(Part::of).collect();
        let of = |quantity| Self::values(&joined, quantity);
        let (x, l) = (of(Quantity::Throughput), of(Quantity::Latency));
        let found = steady::warm_up_of_run(&x, &l);
        let unsettled = match steady::cut(&x).settled {
            true => Quantity::Latency,
            false => Quantity::Throughput,
        };
        // MSER takes the half of what drifts ever so little: what passes the strict gate all along is steady.
        let is_calm = || {
            let gates = Gate::all(&joined, part_s, rates.is_some());
            !gates.is_empty() && gates.iter().all(|gate| gate.window.is_steady(Level::Strict))
        };
        let warm_up = match found.settled || !is_calm() {
            true => {
                let drop = if found.drop > 0 { odd + found.drop * join } else { 0 };
                WarmUp { drop, ..found }
            }
            false => WarmUp { drop: 0, settled: true },
        };
        let phases = steady::two_phases(&iops[warm_up.drop..], interval_s);
        let cut = warm_up.drop + phases.map_or(0, |phases| phases.at);
        let odd = (parts.len() - cut) % join;
        let rest: Vec<Part> = parts[cut + odd..].chunks_exact(join).map(Part::of).collect();
        let gates = Gate::all(&rest, part_s, rates.is_some());
        // What throughput does is told first.
        let is_first = |gate: &Gate| gate.used() > 1.0 && gate.of == Quantity::Throughput;
        let order =
            |a: &Gate, b: &Gate| is_first(a).cmp(&is_first(b)).then(a.used().total_cmp(&b.used()));
        let nearest = gates.into_iter().max_by(order);
        let verdict = match nearest {
            _ if !warm_up.settled => Verdict::Unsettled(unsettled),
            None => Verdict::TooShort,
            Some(gate) if gate.used() <= 1.0 => Verdict::Steady(gate),
            Some(gate) => Verdict::Varies(gate),
        };
        Self { warm_up, phases, verdict }
    }

    /// One of them by part; what is not known of a latency is as before it.
    fn values(parts: &[Part], quantity: Quantity) -> Vec<f64> {
        match quantity {
            Quantity::Throughput => parts.iter().map(|part| part.iops).collect(),
            Quantity::Latency => {
                let first = parts.iter().find_map(|part| part.latency);
                let mut last = match first {
                    Some(first) => first,
                    None => return Vec::new(),
                };
                let of = |part: &Part| {
                    last = part.latency.unwrap_or(last);
                    last
                };
                parts.iter().map(of).collect()
            }
        }
    }
}

impl Gate {
    /// Of the last five rounds of ten seconds, where there are so many, and of the whole in fifths, of throughput and latency; none of fewer than five parts.
    fn all(parts: &[Part], part_s: f64, are_rates: bool) -> Vec<Self> {
        let fifth = parts.len() / ROUNDS;
        if fifth == 0 {
            return Vec::new();
        }
        let ten = to_usize(floor_u64((ROUND_S / part_s).ceil()));
        let mut lengths = vec![fifth];
        if ten < fifth {
            lengths.push(ten);
        }
        let mut gates = Vec::new();
        for length in lengths {
            let last = &parts[parts.len() - ROUNDS * length..];
            let rounds: Vec<Part> = last.chunks_exact(length).map(Part::of).collect();
            for of in [Quantity::Throughput, Quantity::Latency] {
                let window = Window::of(&Steadiness::values(&rounds, of));
                let round_s = length as f64 * part_s;
                let iops = Part::of(&rounds).iops;
                let ios = if are_rates { iops * round_s } else { f64::INFINITY };
                gates.extend(window.map(|window| Self { of, round_s, window, ios }));
            }
        }
        gates
    }

    /// How far rounds may differ and drift: as much as the gate allows, or chance does to so few I/Os.
    #[must_use]
    pub fn limits(&self) -> (f64, f64) {
        let (excursion, drift) = Level::Standard.limits();
        let one = 1.0 / self.ios.sqrt();
        (excursion.max(BY_CHANCE.0 * one), drift.max(BY_CHANCE.1 * one))
    }

    /// How much of that is used: 1 at its limit.
    fn used(&self) -> f64 {
        let (excursion, drift) = self.limits();
        let used = (self.window.excursion / excursion).max(self.window.drift / drift);
        if used.is_nan() { f64::INFINITY } else { used }
    }
}

/// Mean latency over all I/Os; `None` where none is known.
pub(crate) fn latency(iops: &[f64], latency: &[f64]) -> Option<f64> {
    let part = |(iops, latency): (&f64, &f64)| Part { iops: *iops, latency: known(*latency) };
    let parts: Vec<Part> = iops.iter().zip(latency).map(part).collect();
    Part::of(&parts).latency
}

fn known(latency: f64) -> Option<f64> {
    latency.is_finite().then_some(latency)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::study::random::Random;

    /// A minute at 10,000 I/Os per second that differ by as much, times what `of` says of each second.
    fn minute(of: impl Fn(u32) -> f64) -> Vec<f64> {
        (0..60).map(|second| 1e4 * (1.0 + wobble(second)) * of(second)).collect()
    }

    fn wobble(second: u32) -> f64 {
        (f64::from(second * 37 % 11) - 5.0) * 0.002
    }

    /// Of a closed loop: as many are in flight all the time.
    fn verdict(iops: &[f64]) -> Verdict {
        let latency: Vec<f64> = iops.iter().map(|iops| 8.0 / iops).collect();
        Steadiness::of_run(iops, &latency, 1.0).verdict
    }

    fn excursion(iops: &[f64]) -> Option<f64> {
        match verdict(iops) {
            Verdict::Varies(gate) => Some(gate.window.excursion),
            _ => None,
        }
    }

    /// 5.1(b): nothing of the warm-up says that these are not steady.
    #[test]
    fn what_the_gate_does_not_pass_is_not_steady() {
        assert!(matches!(verdict(&minute(|_| 1.0)), Verdict::Steady(_)));
        for (what, series) in [
            ("the last 5 s at 2 %", minute(|s| if s < 55 { 1.0 } else { 0.02 })),
            ("the last 8 s at 40 %", minute(|s| if s < 52 { 1.0 } else { 0.4 })),
            ("a wave of 15 s", minute(|s| 1.0 + 0.6 * (f64::from(s) * 0.4189).sin())),
            ("a stall of 6 s", minute(|s| if (31..37).contains(&s) { 0.0 } else { 1.0 })),
            ("a drift", minute(|s| 1.0 + 0.0012 * f64::from(s))),
            ("a ramp of 9 s", (1..10).map(|s| 300.0 * f64::from(s)).collect()),
        ] {
            assert!(steady::warm_up(&series).settled || what == "a drift", "{what}");
            assert!(!Steadiness::of_run(&series, &[], 1.0).may_be_steady(), "{what}");
            assert!(
                matches!(verdict(&series), Verdict::Varies(_) | Verdict::Unsettled(_)),
                "{what}"
            );
        }
        // In the middle of a long run a stall that its fifths do not show is past.
        let long: Vec<f64> =
            (0..600).map(|s| if (200..206).contains(&s) { 0.0 } else { 1e4 }).collect();
        assert!(matches!(verdict(&long), Verdict::Steady(_)));
        let rounds = [100.0, 104.0, 98.0, 101.0, 103.0].map(|level| [level * 100.0; 10]).concat();
        let Verdict::Steady(gate) = verdict(&rounds) else {
            panic!("the worked example is steady")
        };
        assert!((gate.window.excursion - 0.059).abs() < 0.001 && gate.round_s == 10.0);
    }

    #[test]
    fn a_calm_run_is_steady_where_mser_would_cut_it_in_half() {
        // 1.2 % in a minute, and next to no noise.
        let slow: Vec<f64> = (0..60).map(|s| 1e4 * (1.0 + f64::from(s) * 2e-4)).collect();
        assert!(!steady::cut(&slow).settled);
        let found = Steadiness::of_run(&slow, &[], 1.0);
        assert!(matches!(found.verdict, Verdict::Steady(_)) && found.cut() == 0, "{found:?}");
        // 4 % are too much.
        let fast: Vec<f64> = (0..60).map(|s| 1e4 * (1.0 + f64::from(s) * 7e-4)).collect();
        assert_eq!(verdict(&fast), Verdict::Unsettled(Quantity::Throughput));
    }

    /// 5.1: of X and of L, the larger.
    #[test]
    fn latency_alone_may_not_be_steady() {
        let rate = minute(|_| 1.0);
        let of = |latency: &dyn Fn(u32) -> f64| {
            let latency: Vec<f64> = (0..60).map(latency).collect();
            Steadiness::of_run(&rate, &latency, 1.0)
        };
        let rising = of(&|s| if s < 45 { 1.0 + wobble(s) } else { 1.5 });
        let Verdict::Varies(gate) = rising.verdict else { panic!("{rising:?}") };
        assert_eq!(gate.of, Quantity::Latency);
        let climbing = of(&|s| 1.0 + f64::from(s) * 0.01);
        assert_eq!(climbing.verdict, Verdict::Unsettled(Quantity::Latency));
        // That of a second in which nothing completed is not known.
        let unknown = of(&|s| if s == 30 { f64::NAN } else { 1.0 + wobble(s) });
        assert!(matches!(unknown.verdict, Verdict::Steady(_)), "{unknown:?}");
        let warm = of(&|s| if s < 15 { 4.0 } else { 1.0 + wobble(s) });
        assert!(warm.warm_up.settled && (15..=20).contains(&warm.warm_up.drop), "{warm:?}");
        assert!(matches!(warm.verdict, Verdict::Steady(_)));
        let (rate, latency) = ([3.0, 1.0, 5.0], [2.0, 6.0, f64::NAN]);
        assert_eq!(super::latency(&rate, &latency), Some(3.0), "each I/O counts");
    }

    /// 5.1: 200 I/Os fall in an interval. A disk of 50 I/Os per second differs by chance from second to second.
    #[test]
    fn few_ios_are_joined() {
        let disk: Vec<f64> = (0..60).map(|s| if s % 2 == 0 { 30.0 } else { 70.0 }).collect();
        assert!(matches!(verdict(&disk), Verdict::Steady(_)), "{:?}", verdict(&disk));
        assert_eq!(verdict(&disk[..19]), Verdict::TooShort);
        assert_eq!(verdict(&[0.0; 60]), Verdict::TooShort);
        assert_eq!(verdict(&[500.0, 1500.0, 4000.0]), Verdict::TooShort);
        assert_eq!(verdict(&[]), Verdict::TooShort);
        // What is left out is told in seconds that were measured: 62 are fifteen of four and two.
        let slow_start: Vec<f64> = (0..122).map(|s| if s < 22 { 10.0 } else { 70.0 }).collect();
        let found = Steadiness::of_run(&slow_start, &[], 1.0);
        assert!((22..=26).contains(&found.cut()), "{found:?}");
    }

    /// 5.1: a round of few I/Os differs from the next by chance.
    #[test]
    fn chance_of_few_ios_is_no_unsteadiness() {
        let mut random = Random::new(5, 1);
        let mut series = |rate: f64, last: f64| -> Vec<f64> {
            let of = |second: u32| if second < 52 { rate } else { rate * last };
            (0..60)
                .map(|second| (of(second) + of(second).sqrt() * random.normal()).round())
                .collect()
        };
        let mut unsteady = |rate: f64, last: f64| {
            let is = |_: &u32| !Steadiness::of_run(&series(rate, last), &[], 1.0).may_be_steady();
            (0..100).filter(is).count()
        };
        for rate in [10.0, 30.0, 100.0, 1000.0] {
            let found = unsteady(rate, 1.0);
            assert!(found <= 6, "{rate}: {found} of 100");
        }
        assert!(unsteady(100.0, 0.4) >= 95 && unsteady(1000.0, 0.8) >= 95);
    }

    #[test]
    fn what_follows_a_beginning_is_judged() {
        let begins = |after: f64| {
            minute(|s| if s < 20 { 0.6 } else { 1.0 } * if s < 52 { 1.0 } else { after })
        };
        let found = Steadiness::of_run(&begins(1.0), &[], 1.0);
        assert_eq!(found.cut(), 20);
        let Verdict::Steady(gate) = found.verdict else { panic!("{found:?}") };
        assert_eq!(gate.round_s, 8.0, "a fifth of what is left");
        assert!(excursion(&begins(0.8)).is_some_and(|excursion| excursion > 0.15));
    }

    #[test]
    fn excursions_are_told() {
        let halves = minute(|s| if s / 10 % 2 == 0 { 1.0 } else { 0.7 });
        assert!((0.3..0.4).contains(&excursion(&halves).expect("not steady")));
    }
}
