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
        percentile(&self.name.to_lowercase()).is_some()
    }
}

/// (6.1) Throughput 2 %, mean latency 3 %, percentiles up to 99 % 5 %, higher ones 10 %, CPU per I/O
/// 5 %. A name that says nothing is throughput where more is better, else a mean latency.
fn delta(name: &str, higher_is_better: bool) -> f64 {
    let name = name.to_lowercase();
    if let Some(percent) = percentile(&name) {
        return if percent > 99.0 + 1e-9 { 0.10 } else { 0.05 };
    }
    if name.contains("cpu") {
        0.05
    } else if higher_is_better {
        0.02
    } else {
        0.03
    }
}

/// The percentile that a name speaks of: `p99`, `lat_p99_9_ms`, `p999`, `99.9th`, `4-nines`, `max`.
fn percentile(name: &str) -> Option<f64> {
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
        if next.is_some_and(|next| *next == "nines") {
            let digits: i32 = word.parse().ok()?;
            return Some(100.0 - 10_f64.powi(2 - digits));
        }
        let ordinal = ["th", "st", "nd", "rd"].iter().find_map(|end| word.strip_suffix(end));
        let Some(digits) = word.strip_prefix('p').or(ordinal) else { continue };
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
