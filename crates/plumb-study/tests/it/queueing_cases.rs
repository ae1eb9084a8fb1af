//! Curves of queueing theory, which bend everywhere and have no corner: a generator of its own beside that of
//! corners, so that the analysis is not fitted to one.

use plumb_study::knee::{self, Options, Policy, Row, TAU, Verdict};

use crate::random::Random;
use crate::score::Score;

/// Throughput of a closed system at `n` requests, its most being 1.
#[derive(Debug, Clone, Copy)]
enum System {
    /// One queue and a delay: `n/(n + c)`, the bound of balanced jobs.
    Balanced { c: f64 },
    /// Exact mean value analysis: a single server and a delay of `z` service times [Reiser & Lavenberg 1980].
    Repairman { z: f64 },
    /// `m` queues in a ring, all equal, and a delay of `z` service times.
    Ring { m: f64, z: f64 },
    /// Scalability law with coherence costs [Gunther 2007].
    Law { alpha: f64, beta: f64 },
}

impl System {
    fn rate(self, n: u64) -> f64 {
        let load = n as f64;
        match self {
            Self::Balanced { c } => load / (load + c),
            Self::Repairman { z } => mean_value(n, 1.0, z),
            Self::Ring { m, z } => mean_value(n, m, z),
            Self::Law { alpha, beta } => {
                load / (1.0 + alpha * (load - 1.0) + beta * load * (load - 1.0))
            }
        }
    }
}

/// Throughput of `n` requests through `m` equal queues of service time 1 and a delay.
fn mean_value(n: u64, m: f64, z: f64) -> f64 {
    let mut queue = 0.0;
    let mut rate = 0.0;
    for load in 1..=n {
        let time = 1.0 + queue;
        rate = load as f64 / (z + m * time);
        queue = rate * time;
    }
    rate
}

/// Where the elasticity of the true curve between neighbours falls below τ; `None` if it never does.
fn plateau(os: &[u64], threads: u64, system: System) -> Option<usize> {
    (0..os.len() - 1).find(|at| {
        let (a, b) = (os[*at], os[at + 1]);
        let gain = (system.rate(b * threads) / system.rate(a * threads)).ln();
        gain / (b as f64 / a as f64).ln() < TAU
    })
}

#[test]
fn curves_without_a_corner() {
    let mut score = Score::default();
    let mut seed = 0;
    let mut cases = 0;
    while cases < 1500 {
        seed += 1;
        let mut random = Random::seeded(0x5eed_0000 + seed);
        let threads = random.one_of(&[1, 2, 4, 8]);
        let system = match random.one_of(&[0, 1, 2, 3]) {
            0 => System::Balanced { c: random.between(1.0, 5.0) * threads as f64 },
            1 => System::Repairman { z: random.between(2.0, 20.0) * threads as f64 },
            2 => System::Ring {
                m: random.one_of(&[2.0, 3.0]),
                z: random.between(2.0, 12.0) * threads as f64,
            },
            _ => System::Law { alpha: random.between(0.02, 0.1), beta: random.between(1e-4, 2e-3) },
        };
        let all: Vec<u64> = (1..=96).collect();
        let Some(at) = plateau(&all, threads, system) else { continue };
        let wanted = all[at] as f64;
        // Neither too near the end to be seen, nor so early that there is no rise.
        let last = (wanted * random.between(1.9, 2.6)).round();
        if !(6.0..=40.0).contains(&wanted) {
            continue;
        }
        cases += 1;
        let os: Vec<u64> = all.into_iter().filter(|o| *o as f64 <= last).collect();
        let sigma = random.one_of(&[0.002, 0.005, 0.01]);
        let repetitions = random.one_of(&[1, 3]);
        let top = random.between(1e3, 1e5);
        let mut rows = Vec::new();
        for o in &os {
            for _ in 0..repetitions {
                let iops = top * system.rate(o * threads) * (sigma * random.normal()).exp();
                let latency_ms = Some((o * threads) as f64 / iops * 1e3);
                rows.push(Row { o: *o, iops, latency_ms, latency_half_unit_ms: 0.0005, law: None });
            }
        }
        let options = Options {
            threads: Some(threads as f64),
            policy: Policy::Throughput,
            ..Options::default()
        };
        let found = knee::find(&rows, &options);
        score.add("verdict", found.verdict == Verdict::Knee);
        let Some(marks) = found.marks.filter(|_| found.verdict == Verdict::Knee) else {
            println!("seed {seed}: {system:?} o1…{last}: {}", found.reason);
            continue;
        };
        let cost = system.rate(marks.plateau * threads) / system.rate(os[at] * threads);
        let apart = (marks.plateau as f64 / wanted).ln();
        let is_near = apart.abs() <= 0.2 || marks.plateau.abs_diff(os[at]) <= 1;
        score.add("plateau", is_near && cost.ln().abs() < 0.04);
        score.add("throughput within 3 %", cost.ln().abs() < 0.03);
    }
    score.at_least("verdict", 0.95);
    score.at_least("plateau", 0.96);
    score.at_least("throughput within 3 %", 0.95);
}
