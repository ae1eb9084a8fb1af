//! Quantiles and tail probabilities of the normal, t and binomial distributions.
//!
//! Source of the series: Abramowitz & Stegun 26.5 (incomplete beta), Lanczos 1964 (gamma), Wichura 1988
//! (AS 241, normal quantile).

use plumb_units::convert;

/// ln Γ(x) for x > 0, to about 1e-14 relative.
fn ln_gamma(x: f64) -> f64 {
    const G: f64 = 7.0;
    const SERIES: [f64; 8] = [
        676.520_368_121_885_1,
        -1_259.139_216_722_402_8,
        771.323_428_777_653_1,
        -176.615_029_162_140_6,
        12.507_343_278_686_905,
        -0.138_571_095_265_720_12,
        9.984_369_578_019_572e-6,
        1.505_632_735_149_311_6e-7,
    ];
    let x = x - 1.0;
    let t = x + G + 0.5;
    let sum = SERIES
        .iter()
        .zip(1_u32..)
        .fold(0.999_999_999_999_809_9, |sum, (factor, k)| sum + factor / (x + f64::from(k)));
    0.5 * (2.0 * std::f64::consts::PI).ln() + (x + 0.5) * t.ln() - t + sum.ln()
}

/// The regularised incomplete beta function I_x(a, b), a and b > 0, by its continued fraction.
#[must_use]
pub fn incomplete_beta(a: f64, b: f64, x: f64) -> f64 {
    if x <= 0.0 {
        return 0.0;
    }
    if x >= 1.0 {
        return 1.0;
    }
    if x > (a + 1.0) / (a + b + 2.0) {
        return 1.0 - incomplete_beta(b, a, 1.0 - x);
    }
    let front = ln_gamma(a + b) - ln_gamma(a) - ln_gamma(b) + a * x.ln() + b * (-x).ln_1p();
    front.exp() * continued_fraction(a, b, x) / a
}

/// Lentz's method. The number of terms grows with the root of the larger parameter.
fn continued_fraction(a: f64, b: f64, x: f64) -> f64 {
    const TINY: f64 = 1e-300;
    const TERMS: u32 = 200_000;
    let away = |value: f64| if value.abs() < TINY { TINY } else { value };
    let mut c = 1.0;
    let mut d = 1.0 / away(1.0 - (a + b) * x / (a + 1.0));
    let mut fraction = d;
    for m in 1..TERMS {
        let m = f64::from(m);
        let even = m * (b - m) * x / ((a + 2.0 * m - 1.0) * (a + 2.0 * m));
        let odd = -(a + m) * (a + b + m) * x / ((a + 2.0 * m) * (a + 2.0 * m + 1.0));
        let mut step = 1.0;
        for term in [even, odd] {
            d = 1.0 / away(1.0 + term * d);
            c = away(1.0 + term / c);
            step = d * c;
            fraction *= step;
        }
        if (step - 1.0).abs() < 1e-15 {
            break;
        }
    }
    fraction
}

/// Probability that |t| with `df` degrees of freedom exceeds `t`: the two-sided p-value.
#[must_use]
pub fn t_two_sided(t: f64, df: f64) -> f64 {
    if t.is_infinite() { 0.0 } else { incomplete_beta(df / 2.0, 0.5, df / (df + t * t)) }
}

/// The quantile of the t distribution with `df` degrees of freedom for 0.5 ≤ `p` < 1.
#[must_use]
pub fn t_quantile(p: f64, df: f64) -> f64 {
    let tail = 2.0 * (1.0 - p);
    let (mut low, mut high) = (0.0, 1.0);
    while t_two_sided(high, df) > tail && high < 1e12 {
        high *= 2.0;
    }
    loop {
        let middle = f64::midpoint(low, high);
        // No number lies between.
        if middle <= low || middle >= high {
            return middle;
        }
        if t_two_sided(middle, df) > tail {
            low = middle;
        } else {
            high = middle;
        }
    }
}

/// The factor of a two-sided 95 % interval.
#[must_use]
pub fn t_95(df: f64) -> f64 {
    t_quantile(0.975, df)
}

/// Probability that a standard normal value is farther from 0 than `z` ≥ 0, to about 2e-7 [Abramowitz & Stegun, 7.1.26].
#[must_use]
pub fn normal_two_sided(z: f64) -> f64 {
    let x = z / std::f64::consts::SQRT_2;
    let t = 1.0 / (1.0 + 0.327_591_1 * x);
    let series = 1.061_405_429_f64
        .mul_add(t, -1.453_152_027)
        .mul_add(t, 1.421_413_741)
        .mul_add(t, -0.284_496_736)
        .mul_add(t, 0.254_829_592);
    series * t * (-x * x).exp()
}

/// The quantile of the standard normal distribution, 0 < `p` < 1, to about 1e-7 (AS 241, PPND7).
#[must_use]
pub fn normal_quantile(p: f64) -> f64 {
    let q = p - 0.5;
    if q.abs() <= 0.425 {
        let r = 0.180_625 - q * q;
        return q
            * (((59.109_374_72 * r + 159.291_132_02) * r + 50.434_271_938) * r + 3.387_132_717_9)
            / (((67.187_563_6 * r + 78.757_757_664) * r + 17.895_169_469) * r + 1.0);
    }
    let r = (-(if q < 0.0 { p } else { 1.0 - p }).ln()).sqrt();
    let value = if r <= 5.0 {
        let r = r - 1.6;
        (((0.170_238_21 * r + 1.306_728_48) * r + 2.756_815_39) * r + 1.423_437_27)
            / ((0.120_211_32 * r + 0.737_001_64) * r + 1.0)
    } else {
        let r = r - 5.0;
        (((0.017_337_203 * r + 0.428_682_94) * r + 3.081_226_3) * r + 6.657_905_1)
            / ((0.012_258_202 * r + 0.241_978_94) * r + 1.0)
    };
    if q < 0.0 { -value } else { value }
}

/// Probability of at most `k` successes in `n` trials of probability `p`.
#[must_use]
pub fn binomial_below(k: u64, n: u64, p: f64) -> f64 {
    if k >= n { 1.0 } else { incomplete_beta((n - k) as f64, k as f64 + 1.0, 1.0 - p) }
}

/// The smallest k that at most k successes in `n` trials of probability `p` reach probability `q`.
#[must_use]
pub fn binomial_quantile(q: f64, n: u64, p: f64) -> u64 {
    let reaches = |k: u64| binomial_below(k, n, p) >= q;
    // Cornish–Fisher's guess is off by one at most where there are many; each evaluation costs more the larger n is.
    let z = normal_quantile(q.clamp(1e-300, 1.0 - 1e-15));
    let (mean, deviation) = (n as f64 * p, (n as f64 * p * (1.0 - p)).sqrt());
    let guess = mean + z * deviation + (z * z - 1.0) * (1.0 - 2.0 * p) / 6.0 - 0.5;
    let guess = convert::floor_u64(guess.max(0.0).ceil()).min(n);
    // Everything below `low` does not reach it, `high` does.
    let (mut low, mut high, mut step) = (0, n, 1);
    if reaches(guess) {
        high = guess;
        while low < high {
            let next = high.saturating_sub(step);
            if !reaches(next) {
                low = next + 1;
                break;
            }
            high = next;
            step *= 2;
        }
    } else {
        low = guess + 1;
        while low < high {
            let next = (low - 1).saturating_add(step).min(n);
            if reaches(next) {
                high = next;
                break;
            }
            low = next + 1;
            step *= 2;
        }
    }
    while low < high {
        let middle = low + (high - low) / 2;
        if reaches(middle) {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    low.min(n)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn near(found: f64, wanted: f64, tolerance: f64) {
        assert!((found - wanted).abs() <= tolerance, "{found} is not {wanted}");
    }

    #[test]
    fn t_quantiles_are_those_of_the_tables() {
        for (df, wanted) in [
            (1.0, 12.7062),
            (2.0, 4.30265),
            (4.0, 2.77645),
            (9.0, 2.26216),
            (19.0, 2.09302),
            (30.0, 2.04227),
            (1e7, 1.95996),
        ] {
            near(t_95(df), wanted, 6e-5);
        }
        near(t_quantile(0.5, 3.0), 0.0, 1e-9);
    }

    #[test]
    fn p_values_reach_far_into_the_tail() {
        near(t_two_sided(2.262_157, 9.0), 0.05, 1e-6);
        let far = t_two_sided(13.9, 9.0);
        assert!((1e-7..3e-7).contains(&far), "{far}");
        assert_eq!(t_two_sided(f64::INFINITY, 3.0), 0.0);
    }

    #[test]
    fn normal_quantiles() {
        near(normal_quantile(0.975), 1.959_964, 1e-6);
        near(normal_quantile(0.9), 1.281_552, 1e-6);
        near(normal_quantile(0.5), 0.0, 1e-12);
        near(normal_quantile(0.001), -3.090_232, 1e-5);
        near(normal_quantile(1e-12), -7.034_48, 1e-4);
    }

    #[test]
    fn normal_tails() {
        for p in [0.9, 0.5, 0.1, 0.05, 0.001] {
            near(normal_two_sided(-normal_quantile(p / 2.0)), p, 1e-6);
        }
        near(normal_two_sided(0.0), 1.0, 1e-6);
        near(normal_two_sided(f64::INFINITY), 0.0, 1e-12);
    }

    #[test]
    fn binomials_agree_with_sums_by_hand() {
        // 4 coins: 1, 4, 6, 4, 1 of 16.
        for (k, wanted) in [(0, 1.0), (1, 5.0), (2, 11.0), (3, 15.0), (4, 16.0)] {
            near(binomial_below(k, 4, 0.5), wanted / 16.0, 1e-12);
        }
        assert_eq!(binomial_quantile(0.5, 4, 0.5), 2);
        assert_eq!(binomial_quantile(0.025, 4, 0.5), 0);
        assert_eq!(binomial_quantile(0.975, 4, 0.5), 4);
        // From any guess the same as one by one.
        for (n, p) in [(1, 0.3), (7, 0.02), (40, 0.5), (40, 0.97), (300, 1e-4), (300, 0.1)] {
            for q in [1e-9, 0.025, 0.3, 0.975, 1.0 - 1e-9, 1.0] {
                let wanted = (0..=n).find(|k| binomial_below(*k, n, p) >= q);
                assert_eq!(Some(binomial_quantile(q, n, p)), wanted, "{q} of {n} by {p}");
            }
        }
    }
}
