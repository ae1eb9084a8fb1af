//! How much hotter an extent must be to be worth a move (10.3).

use plumb_units::Nanos;

/// What a move and an I/O take, as measured on the devices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MoveTimes {
    /// An extent read from or written to the Capacity tier.
    pub move_capacity: Nanos,
    /// An extent read from or written to the Performance tier.
    pub move_performance: Nanos,
    /// A random I/O on the Capacity tier.
    pub io_capacity: Nanos,
    /// A random I/O on the Performance tier.
    pub io_performance: Nanos,
}

impl MoveTimes {
    /// A 10K rpm disk and a SATA or SAS SSD: `sas-10k-300` and `sas-ssd-200` of spec 19.1, an extent of 1 MiB. The disk
    /// takes 3.5 ms to get there, 3 ms to turn and 8.7 ms for the data; the SSD 2.1 ms at 500 MB/s; 412 random I/Os per
    /// second against 30,107.
    #[must_use]
    pub fn reference() -> Self {
        Self {
            move_capacity: Nanos(15_200_000),
            move_performance: Nanos(2_100_000),
            io_capacity: Nanos(2_427_000),
            io_performance: Nanos(33_000),
        }
    }

    /// Random I/Os that have to follow until a move has paid for itself; without end where the Capacity tier is no
    /// slower (10.3).
    #[must_use]
    pub fn break_even(&self) -> f32 {
        let saved = self.io_capacity.since(self.io_performance).0;
        if saved == 0 {
            return f32::INFINITY;
        }
        (self.move_capacity.0.saturating_add(self.move_performance.0)) as f32 / saved as f32
    }
}

/// The bar that a gain has to clear.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bar {
    /// `A`: the least gain, in I/Os of score.
    pub break_even: f32,
    /// `H`: the least gain as a share of the victim's score.
    pub hysteresis: f32,
    /// Times which the bar is raised: 1, or 2 while the thrash guard is on or in continuous mode.
    pub raised: f32,
}

impl Bar {
    /// `A` of the reference devices, `H` = 0.25.
    #[must_use]
    pub fn reference() -> Self {
        Self { break_even: MoveTimes::reference().break_even(), hysteresis: 0.25, raised: 1.0 }
    }

    /// No gain is too small.
    #[must_use]
    pub fn none() -> Self {
        Self { break_even: 0.0, hysteresis: 0.0, raised: 1.0 }
    }

    /// The least gain for a place held by a victim of this score, or by nobody.
    #[must_use]
    pub fn height(&self, victim: f32) -> f32 {
        self.break_even.max(self.hysteresis * victim) * self.raised
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_reference_devices_break_even_after_some_seven_ios() {
        let count = MoveTimes::reference().break_even();
        assert!((4.0..8.0).contains(&count), "{count}");
        let same = MoveTimes { io_capacity: Nanos(33_000), ..MoveTimes::reference() };
        assert_eq!(same.break_even(), f32::INFINITY, "nothing is worth a move to a tier as slow");
    }

    #[test]
    fn the_bar_is_the_higher_of_both() {
        let bar = Bar { break_even: 5.0, hysteresis: 0.25, raised: 1.0 };
        assert_eq!([0.0, 20.0, 100.0].map(|victim| bar.height(victim)), [5.0, 5.0, 25.0]);
        let raised = Bar { raised: 2.0, ..bar };
        assert_eq!(raised.height(100.0), 50.0);
    }
}
