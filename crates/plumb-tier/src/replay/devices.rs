//! The disks of a simulated space, in virtual time.

use plumb_io::stack::{Access, AccessKind, DeviceModel};
use plumb_units::Nanos;

/// A disk and what is counted of it.
#[derive(Debug)]
struct Device {
    model: DeviceModel,
    in_flight: u32,
    busy_since: Nanos,
    busy: Nanos,
    written: u64,
    /// When its next access ends.
    next: Option<Nanos>,
}

/// All disks.
#[derive(Debug)]
pub(super) struct Devices(Vec<Device>);

impl Devices {
    pub(super) fn new(models: impl IntoIterator<Item = DeviceModel>) -> Self {
        let device = |model| Device {
            model,
            in_flight: 0,
            busy_since: Nanos::ZERO,
            busy: Nanos::ZERO,
            written: 0,
            next: None,
        };
        Self(models.into_iter().map(device).collect())
    }

    /// Begins an access; times never go back.
    pub(super) fn submit(&mut self, disk: usize, now: Nanos, access: Access) {
        let device = &mut self.0[disk];
        if device.in_flight == 0 {
            device.busy_since = now;
        }
        device.in_flight += 1;
        if access.kind == AccessKind::Write {
            device.written += u64::from(access.len);
        }
        device.model.submit(now, access);
        device.next = device.model.next_end();
    }

    /// The disk whose access ends next, and when.
    pub(super) fn next_end(&self) -> Option<(Nanos, usize)> {
        let ends = self.0.iter().enumerate().filter_map(|(nth, device)| Some((device.next?, nth)));
        ends.min()
    }

    /// Ends the next access of a disk: its slot.
    pub(super) fn finish(&mut self, disk: usize, now: Nanos) -> Option<u32> {
        let device = &mut self.0[disk];
        let slot = device.model.finish(now);
        device.next = device.model.next_end();
        slot?;
        device.in_flight -= 1;
        if device.in_flight == 0 {
            device.busy += now.since(device.busy_since);
            device.busy_since = now;
        }
        slot
    }

    /// Of several disks the one with the least to do.
    pub(super) fn idlest(&self, disks: impl Iterator<Item = usize>) -> usize {
        disks.min_by_key(|disk| self.0[*disk].in_flight).unwrap_or(0)
    }

    /// Time in which each of a range of disks was busy until now, in sum.
    pub(super) fn busy(&self, disks: std::ops::Range<usize>, now: Nanos) -> Nanos {
        let busy = |device: &Device| match device.in_flight {
            0 => device.busy,
            _ => device.busy + now.since(device.busy_since),
        };
        self.0[disks].iter().fold(Nanos::ZERO, |sum, device| sum + busy(device))
    }

    /// Bytes written to a range of disks.
    pub(super) fn written(&self, disks: std::ops::Range<usize>) -> u64 {
        self.0[disks].iter().map(|device| device.written).sum()
    }
}
