//! How far a percentile can be relied on (method, 5.4).

/// The mark of a percentile: a report prints none without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// A hundred values or more lie above it.
    Good,
    /// Ten or more.
    Fair,
    /// Fewer, but a 95 % interval still has an upper end.
    Weak,
    /// There is no upper end: the value says nothing.
    None,
}

impl Mark {
    /// That of the percentile `p`, 0…1, of `count` values. An interval has an upper end where the largest value is beyond the
    /// percentile in 97.5 of 100 cases [Hahn & Meeker 1991].
    #[must_use]
    pub fn of(p: f64, count: u64) -> Self {
        let has_upper = count > 0 && 1.0 - (count as f64 * p.ln()).exp() >= 0.975;
        match count as f64 * (1.0 - p) {
            _ if !has_upper => Self::None,
            above if above >= 100.0 => Self::Good,
            above if above >= 10.0 => Self::Fair,
            _ => Self::Weak,
        }
    }

    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Good => "good",
            Self::Fair => "fair",
            Self::Weak => "weak",
            Self::None => "none",
        }
    }

    /// `value` as it is printed where it is weak: in brackets.
    #[must_use]
    pub fn bracketed(self, value: String) -> String {
        match self {
            Self::Good | Self::Fair => value,
            Self::Weak | Self::None => format!("[{value}]"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// (method, 5.4) A hundred, ten, and as many as an interval with an upper end needs.
    #[test]
    fn marks_go_by_what_lies_above() {
        let of = |p: f64, counts: [u64; 4]| counts.map(|count| Mark::of(p, count));
        let all = [Mark::None, Mark::Weak, Mark::Fair, Mark::Good];
        assert_eq!(of(0.5, [5, 6, 20, 200]), all);
        assert_eq!(of(0.998, [1_842, 1_844, 5_001, 50_001]), all);
        assert_eq!(Mark::of(0.5, 0), Mark::None);
        assert_eq!(Mark::Weak.bracketed("1 µs".to_owned()), "[1 µs]");
        assert_eq!(Mark::Fair.bracketed("1 µs".to_owned()), "1 µs");
    }
}
