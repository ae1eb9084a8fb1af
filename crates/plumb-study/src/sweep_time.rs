//! How many runs a sweep is, and how long it takes (method, 4.1).

/// Seconds of one run beside its measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RunTime {
    /// Warm-up.
    pub warm_up_s: f64,
    /// Measurement.
    pub measured_s: f64,
    /// Cool-down.
    pub cool_down_s: f64,
    /// Between runs: start-up, settling.
    pub gap_s: f64,
}

impl RunTime {
    /// Seconds of one run.
    #[must_use]
    pub fn seconds(self) -> f64 {
        self.warm_up_s + self.measured_s + self.cool_down_s + self.gap_s
    }
}

/// Runs of a full cross product of axes with so many values each, times repetitions.
#[must_use]
pub fn runs(axes: &[u64], repetitions: u64) -> u64 {
    axes.iter().product::<u64>() * repetitions
}

/// Seconds that creating files of these sizes takes, once for each new size, at so many bytes per second.
#[must_use]
pub fn creation_s(file_bytes: &[u64], bytes_per_s: f64) -> f64 {
    let mut sizes = file_bytes.to_vec();
    sizes.sort_unstable();
    sizes.dedup();
    sizes.iter().map(|bytes| *bytes as f64).sum::<f64>() / bytes_per_s
}

/// (4.1) Seconds of a whole sweep.
#[must_use]
pub fn sweep_s(runs: u64, each: RunTime, creation_s: f64) -> f64 {
    runs as f64 * each.seconds() + creation_s
}

#[cfg(test)]
mod tests {
    use super::*;

    fn minutes(seconds: f64) -> f64 {
        seconds / 60.0
    }

    #[test]
    fn published_sweeps() {
        let each = RunTime { warm_up_s: 5.0, measured_s: 120.0, ..RunTime::default() };
        let full = runs(&[2, 4, 4, 4, 4], 1);
        assert_eq!(full, 512);
        assert_eq!(sweep_s(full, each, 0.0), 64_000.0);
        assert_eq!(minutes(64_000.0).floor(), 1066.0);
        assert!((minutes(64_000.0) / 60.0 - 17.8).abs() < 0.05);
        let short = runs(&[2, 2, 4, 3], 1);
        assert_eq!(short, 48);
        let quick = RunTime { warm_up_s: 3.0, ..each };
        assert_eq!(sweep_s(short, quick, 0.0), 5904.0);
        assert!((minutes(5904.0) - 98.4).abs() < 1e-9);
        assert_eq!(minutes(sweep_s(short, each, 0.0)), 100.0);
        // What both estimates leave out: about 16 min for the 440 GB file.
        let file = creation_s(&[440 << 30, 440 << 30], 500e6);
        assert!((minutes(file) - 16.0).abs() < 0.5, "{file}");
    }

    #[test]
    fn the_documents_own_plan_takes_a_day() {
        // Pre-tests 1 and 2, random tests 1 (extended) and 2, sequential reads and writes.
        let plan = [1, 2, 24, 12, 29, 29].iter().sum::<u64>();
        assert_eq!(plan, 97);
        let each = RunTime { warm_up_s: 300.0, measured_s: 600.0, ..RunTime::default() };
        assert_eq!(sweep_s(plan, each, 0.0), 24.0 * 3600.0 + 15.0 * 60.0);
        assert_eq!(sweep_s(24, each, 0.0), 6.0 * 3600.0);
    }
}
