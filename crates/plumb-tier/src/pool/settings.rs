//! What is settled about a pool and may be changed: kept by the machine that serves it, beside where its disks are.

use std::fmt::Write as _;

use plumb_units::Nanos;

use crate::io::TIME_OUT;

/// The shortest and the longest time-out, in seconds.
pub const TIME_OUT_RANGE: std::ops::RangeInclusive<u64> = 1..=3600;
/// The longest time after which a missing disk is given up, in seconds: thirty days.
pub const RETIRE_AFTER_MAX: u64 = 30 * 86_400;

/// The settings of a pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PoolSettings {
    /// How long a disk may take for one I/O before it counts as missing, in seconds.
    pub time_out_s: u64,
    /// After how many seconds a missing disk is given up, and what it held is made anew on others; 0: at once, `None`: never
    /// (RES-4).
    pub retire_after_s: Option<u64>,
}

impl Default for PoolSettings {
    fn default() -> Self {
        Self { time_out_s: TIME_OUT.0 / 1_000_000_000, retire_after_s: Some(300) }
    }
}

impl PoolSettings {
    pub(super) fn time_out(&self) -> Nanos {
        Nanos::from_secs(self.time_out_s)
    }

    pub(super) fn retire_after(&self) -> Option<Nanos> {
        self.retire_after_s.map(Nanos::from_secs)
    }

    /// Lines of the pool's file: of what is as ever there are none.
    pub(super) fn render(&self, text: &mut String) {
        let usual = Self::default();
        if self.time_out_s != usual.time_out_s {
            let _ = writeln!(text, "time-out {}", self.time_out_s);
        }
        if self.retire_after_s != usual.retire_after_s {
            let after = self.retire_after_s.map_or("never".to_owned(), |after| after.to_string());
            let _ = writeln!(text, "retire-after {after}");
        }
    }

    /// Takes a line of it; `None` when it is another one's, or says what cannot be.
    pub(super) fn take(&mut self, line: &str) -> Option<()> {
        match line.split_once(' ')? {
            ("time-out", text) => {
                self.time_out_s = text.parse().ok().filter(|s| TIME_OUT_RANGE.contains(s))?;
            }
            ("retire-after", "never") => self.retire_after_s = None,
            ("retire-after", text) => {
                let after = text.parse().ok().filter(|after| *after <= RETIRE_AFTER_MAX)?;
                self.retire_after_s = Some(after);
            }
            _ => return None,
        }
        Some(())
    }
}
