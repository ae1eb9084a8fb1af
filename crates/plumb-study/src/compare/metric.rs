//! What is compared: a name, a direction and the smallest effect that is relevant.

/// What is compared.
#[derive(Debug, Clone, PartialEq)]
pub struct Metric {
    /// Its name, as the user gave it.
    pub name: String,
    /// Whether more is better.
    pub higher_is_better: bool,
    /// δ: the smallest relative effect that is relevant.
    pub delta: f64,
}

impl Metric {
    /// A metric with the δ of its kind (6.1).
    #[must_use]
    pub fn named(name: &str, higher_is_better: bool) -> Self {
        Self { name: name.to_owned(), higher_is_better, delta: delta(name, higher_is_better) }
    }

    /// Whether it is an order statistic, read from a histogram.
    #[must_use]
    pub fn is_percentile(&self) -> bool {
        !self.higher_is_better && percentile(&self.name.to_lowercase()).is_some()
    }
}

/// (6.1) Throughput 2 %, mean latency 3 %, percentiles up to 99 % 5 %, higher ones 10 %, CPU per I/O
/// 5 %. A name that says nothing is throughput where more is better, else a mean latency.
fn delta(name: &str, higher_is_better: bool) -> f64 {
    let name = name.to_lowercase();
    // The highest of several throughputs, or their median, is a throughput: percentiles are those of latencies.
    match percentile(&name).filter(|_| !higher_is_better) {
        _ if name.contains("cpu") => 0.05,
        Some(percent) if percent > 99.0 + 1e-9 => 0.10,
        Some(_) => 0.05,
        None if higher_is_better => 0.02,
        None => 0.03,
    }
}

/// What may stand right behind a percentile in one word: `p99latency`, `p95ms`.
const BEHIND: [&str; 9] = ["latency", "lat", "ns", "us", "ms", "s", "th", "read", "write"];
/// A number with a percent sign speaks of a percentile from here on, and of a share of something below.
const PERCENT_LEAST: f64 = 90.0;

/// The percentile that a name speaks of: `p99`, `lat_p99_9_ms`, `p999`, `99.9th`, `percentile_99`, `99 %`, `4-nines`, `max`.
fn percentile(name: &str) -> Option<f64> {
    if let Some(percent) = before_percent_sign(name) {
        return Some(percent);
    }
    let words: Vec<&str> =
        name.split(|c: char| !c.is_alphanumeric() && c != '.').filter(|w| !w.is_empty()).collect();
    for (place, word) in words.iter().enumerate() {
        let next = words.get(place + 1);
        if matches!(*word, "max" | "maximum") {
            return Some(100.0);
        }
        if *word == "median" {
            return Some(50.0);
        }
        let nines = next.filter(|next| **next == "nines").map(|_| *word);
        if let Some(digits) = nines.or_else(|| word.strip_suffix("nines").filter(|d| !d.is_empty()))
        {
            let digits: i32 = digits.parse().ok()?;
            return Some(100.0 - 10_f64.powi(2 - digits));
        }
        let (word, next) = match (*word, next) {
            ("percentile" | "pctl" | "pct", Some(number)) => (*number, words.get(place + 2)),
            _ => (*word, next),
        };
        let is_behind = place > 0 && matches!(words[place - 1], "percentile" | "pctl" | "pct");
        let ordinal = ["th", "st", "nd", "rd"].iter().find_map(|end| word.strip_suffix(end));
        let bare = (words[place] != word || is_behind).then_some(word);
        let Some(digits) = word.strip_prefix('p').or(ordinal).or(bare) else { continue };
        let digits = BEHIND.iter().find_map(|end| digits.strip_suffix(end)).unwrap_or(digits);
        let is_number = |text: &str| {
            text.starts_with(|c: char| c.is_ascii_digit()) && text.parse::<f64>().is_ok()
        };
        if !is_number(digits) {
            continue;
        }
        // `p99_9` is 99.9, and so is `p999`.
        let all_nines = |text: &&&str| !text.is_empty() && text.chars().all(|c| c == '9');
        let text = match next.filter(all_nines) {
            Some(rest) if digits.starts_with("99") && !digits.contains('.') => {
                format!("{digits}.{rest}")
            }
            _ if digits.len() > 2 && !digits.contains('.') && digits != "100" => {
                format!("{}.{}", &digits[..2], &digits[2..])
            }
            _ => digits.to_owned(),
        };
        return text.parse().ok();
    }
    None
}

/// The number before a percent sign, where it is high enough to be a percentile.
fn before_percent_sign(name: &str) -> Option<f64> {
    let before = name.split_once('%')?.0.trim_end();
    let is_number = |c: char| c.is_ascii_digit() || c == '.';
    let digits = &before[before.trim_end_matches(is_number).len()..];
    digits.parse().ok().filter(|percent| (PERCENT_LEAST..=100.0).contains(percent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_what_is_relevant() {
        for (name, higher, wanted) in [
            ("iops", true, 0.02),
            ("mib_per_s", true, 0.02),
            ("avg_lat_ms", false, 0.03),
            ("latency_mean", false, 0.03),
            ("p50_ms", false, 0.05),
            ("lat_p99_ms", false, 0.05),
            ("p99", false, 0.05),
            ("p99.9", false, 0.10),
            ("latency_p99_9_ns", false, 0.10),
            ("p999_ms", false, 0.10),
            ("99.9th", false, 0.10),
            ("95th", false, 0.05),
            ("3-nines", false, 0.10),
            ("max", false, 0.10),
            ("cpu_us_per_io", false, 0.05),
            ("price", true, 0.02),
            // Throughput, whatever of it.
            ("max_iops", true, 0.02),
            ("iops_max", true, 0.02),
            ("median iops", true, 0.02),
            ("throughput_median", true, 0.02),
            ("p50_iops", true, 0.02),
            ("max_cpu", false, 0.05),
            ("percentile_99_ms", false, 0.05),
            ("percentile_99.9_ms", false, 0.10),
            ("99 percentile", false, 0.03),
            ("p99latency", false, 0.05),
            ("p999ms", false, 0.10),
            ("lat 99%", false, 0.05),
            ("lat 99.9 %", false, 0.10),
            ("latency of 70% reads", false, 0.03),
            ("3nines", false, 0.10),
            ("pages", false, 0.03),
        ] {
            assert_eq!(Metric::named(name, higher).delta, wanted, "{name}");
        }
        assert!(Metric::named("P99_ms", false).is_percentile());
        assert!(!Metric::named("cpu_us_per_io", false).is_percentile());
        assert_eq!(percentile("p99_9"), Some(99.9));
        assert_eq!(percentile("p9999"), Some(99.99));
        assert_eq!(percentile("4-nines"), Some(99.99));
        assert_eq!(percentile("latency_p100"), Some(100.0));
        assert_eq!(percentile("per_core"), None);
    }
}
