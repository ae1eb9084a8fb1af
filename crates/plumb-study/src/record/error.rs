//! How well one run knows its own figures (method, 5.2, 5.4 and 6.2): relative standard errors.

use super::Figures;
use crate::compare::SteadyRun;
use crate::percentile;
use crate::stats::distribution::normal_quantile;

/// Of its throughput, by batch means; 0 where its series is not long enough to tell.
pub(super) fn of_rate(run: &Figures) -> f64 {
    SteadyRun::of_iops(&run.series, run.interval_s)
        .filter(|steady| steady.mean > 0.0)
        .map_or(0.0, |steady| steady.error / steady.mean)
}

/// Of its mean latency: what moves the throughput moves that, too (Little), and beside it I/Os differ.
pub(super) fn of_mean_latency(run: &Figures) -> f64 {
    let single = match (run.latency_ms, run.latency_deviation_ms) {
        (Some(mean), Some(deviation)) if mean > 0.0 && run.count > 0 => {
            deviation / mean / (run.count as f64).sqrt()
        }
        _ => 0.0,
    };
    of_rate(run).hypot(single)
}

/// Of one of its percentiles, in percent: half the width of the 95 % interval by order statistics (5.4), between the
/// percentiles that the result has, with what moves the throughput. One stall delays everything in flight: where I/Os beyond it lie in few of
/// the intervals, these are what it rests on.
pub(super) fn of_percentile(run: &Figures, percent: f64) -> f64 {
    let support = percentile::support(percent / 100.0, run.count);
    let (Some((low, high)), Some(own)) = (support.interval, at(run, percent)) else {
        return of_rate(run);
    };
    let rank = |rank: u64| rank as f64 / run.count as f64 * 100.0;
    let below = at(run, rank(low)).map_or(0.0, |value| own - value);
    let above = at(run, rank(high)).map_or(0.0, |value| value - own);
    let near = |(other, _): &&(f64, (usize, usize))| (other - percent).abs() < 1e-6;
    let clustered = match run.spreads.iter().find(near) {
        Some((_, (with, all))) if 2 * with < *all && *with > 0 => {
            (support.above / *with as f64).max(1.0).sqrt()
        }
        _ => 1.0,
    };
    of_rate(run).hypot(below.max(above).max(0.0) * clustered / 1.96)
}

/// Logarithm of the latency at a percentile, on a straight line over the quantiles of a normal law between the ones that
/// the result has; `None` below the first and behind the last of them.
fn at(run: &Figures, percent: f64) -> Option<f64> {
    let depth = |percent: f64| normal_quantile(percent / 100.0);
    let known = || run.percentiles.iter().filter(|(percent, ms)| *percent < 100.0 && *ms > 0.0);
    let wanted = depth(percent);
    let before = known().rfind(|(other, _)| *other <= percent + 1e-9)?;
    if (before.0 - percent).abs() < 1e-9 {
        return Some(before.1.ln());
    }
    let behind = known().find(|(other, _)| *other > percent)?;
    let share = (wanted - depth(before.0)) / (depth(behind.0) - depth(before.0));
    Some(before.1.ln() + share * (behind.1.ln() - before.1.ln()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A run of log-normal latencies with a deviation of 0.8 of their logarithms.
    fn run(count: u64) -> Figures {
        let normal = [(50.0, 0.0), (90.0, 1.2816), (95.0, 1.6449), (99.0, 2.3263)];
        let tail = [(99.9, 3.0902), (99.99, 3.719)];
        let ms = |(percent, z): (f64, f64)| (percent, (0.8 * z).exp());
        Figures {
            count,
            iops: 100.0,
            interval_s: 1.0,
            percentiles: normal.into_iter().chain(tail).map(ms).collect(),
            latency_ms: Some(1.377),
            latency_deviation_ms: Some(1.306),
            ..Figures::default()
        }
    }

    #[test]
    fn a_percentile_is_known_as_well_as_its_order_statistics() {
        // 13 of 13,200 I/Os lie above: the asymptotic error is sqrt(p q / n) / f(q), in logarithms 0.8 sqrt(p q / n) / phi(z).
        let asymptotic = |p: f64, z: f64, n: f64| {
            let density = (-z * z / 2.0).exp() / std::f64::consts::TAU.sqrt();
            0.8 * (p * (1.0 - p) / n).sqrt() / density
        };
        for (percent, z, count) in
            [(99.9, 3.0902, 13_200), (99.0, 2.3263, 13_200), (50.0, 0.0, 13_200)]
        {
            let (found, known) =
                (of_percentile(&run(count), percent), asymptotic(percent / 100.0, z, count as f64));
            assert!((0.9..1.5).contains(&(found / known)), "{percent}: {found} for {known}");
        }
        // Of a few stalls less is known.
        let few = Figures { spreads: vec![(99.9, (3, 120))], ..run(13_200) };
        let ratio = of_percentile(&few, 99.9) / of_percentile(&run(13_200), 99.9);
        assert!((ratio - (13.2_f64 / 3.0).sqrt()).abs() < 1e-9, "{ratio}");
        assert!((of_mean_latency(&run(13_200)) - 1.306 / 1.377 / 13_200_f64.sqrt()).abs() < 1e-9);
        assert_eq!(of_mean_latency(&Figures::default()), 0.0);
        assert_eq!(of_percentile(&Figures::default(), 99.0), 0.0);
    }
}
