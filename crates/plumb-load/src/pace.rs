//! When the next I/O of a thread and target may start (spec 6.9).

use plumb_units::{Nanos, Rate};

use crate::profile::model::{Target, ThroughputUnit};

/// One thread's meter for one target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pace {
    /// Keep the queue full: the device sets the rate.
    Closed,
    /// At most `rate` (`-g`), counted from the start signal.
    Capped {
        /// Exact: never rounded to "no limit" (D-04).
        rate: Rate,
        /// Bytes per I/O.
        block: u32,
        /// Bytes issued since the start.
        issued: u64,
        /// Experiment flag 1: sleeps may be longer than 1 ms.
        long_sleeps: bool,
    },
    /// Bursts of `size` I/Os with a pause behind each (`-i`, `-j`).
    Bursts {
        /// I/Os per burst, at least 1.
        size: u64,
        /// The pause.
        think: Nanos,
        /// I/Os left in this burst.
        left: u64,
        /// No I/O before this time.
        resume: Nanos,
    },
}

impl Pace {
    /// The meter of one of `sharers` threads on `target`. A limit and a burst together: only the limit
    /// acts.
    #[must_use]
    pub fn new(target: &Target, sharers: u32, experiment_flags: u32) -> Self {
        let throughput = target.throughput;
        let rate = match throughput.unit {
            ThroughputUnit::BytesPerMilli => Rate::bytes_per_milli(throughput.value.into()),
            ThroughputUnit::Iops => Rate::iops(throughput.value.into(), target.block_size),
        };
        if let Some(rate) = rate {
            return Self::Capped {
                rate,
                block: target.block_size,
                issued: 0,
                long_sleeps: experiment_flags & 1 != 0,
            };
        }
        if target.burst_size == 0 || target.think_time == 0 {
            return Self::Closed;
        }
        let size = u64::from(target.burst_size / sharers.max(1)).max(1);
        let think = Nanos::from_millis(target.think_time.into());
        Self::Bursts { size, think, left: size, resume: Nanos::ZERO }
    }

    /// Whether it ever holds anything back.
    #[must_use]
    pub fn holds_back(&self) -> bool {
        *self != Self::Closed
    }

    /// How long the next I/O must wait, `elapsed` after the start signal; zero: it may go now.
    #[must_use]
    pub fn wait(&self, elapsed: Nanos) -> Nanos {
        const MILLI: u64 = 1_000_000;
        match *self {
            Self::Closed => Nanos::ZERO,
            Self::Capped { rate, block, issued, long_sleeps } => {
                let wanted = issued.saturating_add(block.into());
                if rate.allows(elapsed.0, wanted) {
                    return Nanos::ZERO;
                }
                if !long_sleeps {
                    return Nanos(MILLI);
                }
                let due = Nanos(rate.due_nanos(wanted)).since(elapsed);
                Nanos(due.0.max(MILLI))
            }
            Self::Bursts { resume, .. } => resume.since(elapsed),
        }
    }

    /// Takes note that an I/O was issued `elapsed` after the start signal.
    pub fn issued(&mut self, elapsed: Nanos) {
        match self {
            Self::Closed => {}
            Self::Capped { block, issued, .. } => *issued = issued.saturating_add((*block).into()),
            Self::Bursts { size, think, left, resume } => {
                *left -= 1;
                if *left == 0 {
                    *left = *size;
                    *resume = elapsed + *think;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::profile::model::Throughput;

    fn capped(value: u32, unit: ThroughputUnit, block_size: u32, flags: u32) -> Pace {
        let throughput = Throughput { value, unit };
        Pace::new(&Target { throughput, block_size, ..Target::default() }, 1, flags)
    }

    #[test]
    fn a_limit_is_reached_and_never_passed() {
        let mut pace = capped(1500, ThroughputUnit::Iops, 8192, 1);
        let (mut now, mut issued) = (Nanos::ZERO, 0);
        while now < Nanos::from_secs(2) {
            match pace.wait(now) {
                Nanos::ZERO => {
                    pace.issued(now);
                    issued += 1;
                }
                wait => now += wait,
            }
        }
        assert!((2995..=3000).contains(&issued), "{issued} I/Os in 2 s at 1500 per second");
    }

    #[test]
    fn short_sleeps_are_one_millisecond() {
        let pace = capped(1, ThroughputUnit::Iops, 512, 0);
        assert_eq!(pace.wait(Nanos::ZERO), Nanos::from_millis(1));
        let pace = capped(1, ThroughputUnit::Iops, 512, 1);
        assert_eq!(pace.wait(Nanos::ZERO), Nanos::from_secs(1));
    }

    #[test]
    fn a_burst_pauses_behind_its_last_io() {
        let target = Target { burst_size: 5, think_time: 20, ..Target::default() };
        let mut pace = Pace::new(&target, 2, 0);
        for _ in 0..2 {
            assert_eq!(pace.wait(Nanos(7)), Nanos::ZERO);
            pace.issued(Nanos(7));
        }
        assert_eq!(pace.wait(Nanos(7)), Nanos::from_millis(20), "5 / 2 threads = 2 per burst");
        assert_eq!(pace.wait(Nanos(20_000_007)), Nanos::ZERO);
    }
}
