//! How much of the disks' time moves take while requests keep these disks busy (10.5, 10.6).
//!
//! Requests that have a disk for themselves half of the time or more lose to moves about what these take of it, whatever their
//! percentiles say: behind many others in a line one wait more is not seen. So what moves take then is a small share of the time,
//! by what a moved extent was measured to take.

use plumb_io::FlushQueue;
use plumb_units::Nanos;
use plumb_units::convert::{floor_u64, index};

use super::Engine;
use crate::io::Io;

/// Pieces in which extents move, and what one takes of a disk's time until that is measured: on SSDs and on rotating disks, to which
/// each may be a way of its own.
const PIECE: u64 = 128 << 10;
const PIECE_TIMES: [Nanos; 2] = [Nanos(1_000_000), Nanos(8_000_000)];
/// The share of disks' time that moves take where requests keep these busy.
const BESIDE: f64 = 0.05;
/// Disks with less than this share of requests are as good as idle.
const IDLE: f64 = 0.02;
/// How much of what is known of a disk comes from the last judgement.
const NEWEST: f64 = 0.2;

/// Which share of the time each disk has requests, lately.
#[derive(Debug, Default)]
pub(super) struct Shares {
    /// By ordinal: nanoseconds with requests until the last look, and their share of the time.
    disks: Vec<(u64, f64)>,
}

impl Shares {
    /// Looks at what disks did in so long a time until `now`.
    pub(super) fn look<Q: FlushQueue>(&mut self, io: &Io<Q>, now: Nanos, passed: Nanos) {
        self.disks.resize(io.disks(), (0, 0.0));
        for (disk, (before, share)) in (0..).zip(&mut self.disks) {
            let host_ns = io.busy(disk).host_ns(now);
            let now = host_ns.saturating_sub(*before) as f64 / passed.0.max(1) as f64;
            *before = host_ns;
            *share += NEWEST * (now.min(1.0) - *share);
        }
    }

    fn of(&self, disk: u16) -> f64 {
        self.disks.get(usize::from(disk)).map_or(0.0, |disk| disk.1)
    }
}

/// The share of a disk's time that moves may take where requests have it for such a share; `None`: all that they can.
fn beside(requests: f64) -> Option<f64> {
    (requests > IDLE).then(|| (1.0 - 2.0 * requests).max(BESIDE))
}

impl<Q: FlushQueue> Engine<Q> {
    /// Bytes per second with which moves of a virtual disk take such a share of the time of a tier's disks, by what a moved extent
    /// was measured to take of them.
    pub(super) fn rate_of_share(&self, vdisk: u32, tier: usize, share: f64) -> u64 {
        let config = &self.core.members.config;
        let (own, extent_bytes) = (&config.vdisks[index(vdisk)], u64::from(config.extent_bytes));
        let measured = self.measured(vdisk);
        let measure = [measured.performance, measured.capacity][tier];
        let unmeasured = || Nanos(PIECE_TIMES[tier].0 * extent_bytes.div_ceil(PIECE));
        let each = measure.moved(extent_bytes).unwrap_or_else(unmeasured);
        // All copies are written.
        let each = each.0.max(1).saturating_mul(own.copies.max(1).into());
        let all = own.tier_disks(tier).saturating_mul(extent_bytes * 1_000_000_000);
        floor_u64(all as f64 * share / each as f64)
    }

    /// Bytes per second that moves may take beside the requests that keep disks busy; `None`: as many as they can.
    pub(super) fn rate_beside_requests(&self) -> Option<u64> {
        let vdisks = &self.core.members.config.vdisks;
        let of_tier = |vdisk: usize, tier: usize| {
            let slabs = vdisks[vdisk].tiers.get(tier)?.rows.iter().flat_map(|row| &row.slabs);
            let requests = slabs.map(|(disk, _)| self.moves.shares.of(*disk)).fold(0.0, f64::max);
            let vdisk = u32::try_from(vdisk).unwrap_or(u32::MAX);
            Some(self.rate_of_share(vdisk, tier, beside(requests)?))
        };
        let moving =
            |vdisk: &usize| self.moves.is_moving(|extent| self.core.vdisk(extent) == *vdisk);
        let moving = (0..vdisks.len()).filter(moving);
        moving
            .flat_map(|vdisk| [0, 1].into_iter().filter_map(move |tier| of_tier(vdisk, tier)))
            .min()
    }

    /// Judges how fast moves go, if it is time.
    pub(super) fn judge_moves(&mut self) {
        let Some(passed) = self.moves.throttle.is_due(self.now) else { return };
        self.moves.shares.look(&self.core.io, self.now, passed);
        let beside = match self.moves.is_idle() {
            true => None,
            false => self.rate_beside_requests(),
        };
        self.moves.throttle.judge(self.now, beside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moves_take_what_requests_leave_and_little_of_busy_disks() {
        assert_eq!([0.0, 0.01].map(beside), [None, None]);
        let found = [0.1, 0.25, 0.45, 0.6, 1.0].map(|share| beside(share).unwrap_or(-1.0));
        let wanted = [0.8, 0.5, 0.1, BESIDE, BESIDE];
        let off =
            found.iter().zip(wanted).map(|(found, wanted): (&f64, f64)| (found - wanted).abs());
        assert!(off.fold(0.0, f64::max) < 1e-9, "{found:?}");
    }
}
