//! Sectors that were being written when the power went, and cannot be read on that copy until they are written again (section
//! 17's fault model), as one of the things that a crash leaves. All is drawn apart, so that states without are what they were.

use plumb_io::sim::power::{Choice, CrashKind, Event, PowerQueue, Trace};
use plumb_units::convert::to_u64;

use super::history::Shape;
use super::states::Crash;
use crate::random::Random;

/// What is never torn, and is lost as a whole.
const SECTOR: u64 = 512;

/// What cannot be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LostSectors {
    /// The only disk of which that is so, whatever lay there; `None` where it is so of all disks, and of metadata alone: data are written in their
    /// place, and the only copy that cannot be read is gone.
    disk: Option<u32>,
    /// Disk, and bytes from its start, from and to.
    ranges: Vec<(u32, u64, u64)>,
}

impl LostSectors {
    /// If the power was cut: in one state of three of those in which all other copies are what they should be (`may_be`). Of all disks
    /// where something has one copy only, and in one of four else. The same disks as `before`, if that is said.
    pub(super) fn draw(
        shape: &Shape,
        may_be: bool,
        (crash, choice): (Crash, &Choice),
        before: Option<&Self>,
    ) -> Option<Self> {
        let mut random = Random::new(crash.seed ^ 0x1057_5ec7);
        let is_cut = crash.kind == CrashKind::Power;
        if !(may_be && is_cut && random.one_in(3)) {
            return before.cloned();
        }
        let drawn = u32::try_from(random.below(shape.disks.into())).unwrap_or(0);
        let everywhere = !shape.tolerates_loss() || random.one_in(4);
        let disk = before.map_or((!everywhere).then_some(drawn), |before| before.disk);
        let all = random.one_in(3);
        let mut ranges = before.map_or_else(Vec::new, |before| before.ranges.clone());
        let slabs = shape.geometry().slab(0);
        for &(at, offset, len) in &choice.unsure {
            let may_be = match disk {
                Some(disk) => at == disk,
                None => offset < slabs,
            };
            match random.below(3) {
                _ if !may_be => {}
                0 => ranges.push((at, offset, offset + len)),
                _ if all => ranges.push((at, offset, offset + len)),
                1 => {
                    let from = offset + random.below(len.div_ceil(SECTOR)) * SECTOR;
                    ranges.push((at, from, from + SECTOR));
                }
                _ => {}
            }
        }
        (!ranges.is_empty()).then_some(Self { disk, ranges })
    }

    /// Whether a start may need an operator's word.
    pub(super) fn is_everywhere(&self) -> bool {
        self.disk.is_none()
    }

    /// Reads of it fail from here on, until what they meet is written.
    pub(super) fn lose(&self, made: &mut PowerQueue) {
        for &(disk, from, to) in &self.ranges {
            made.faults_mut(disk).unreadable.push((from, to));
        }
    }

    /// What is left of it after so many events of a run: a sector that was written meanwhile holds something.
    pub(super) fn after(self, trace: &Trace, point: usize) -> Option<Self> {
        let mut ranges = self.ranges;
        for event in trace.events.iter().take(point) {
            if let Event::Write { disk, offset, payload, .. } = event {
                let end = offset + to_u64(payload.bytes());
                ranges.retain(|(own, from, to)| own != disk || *to <= *offset || end <= *from);
            }
        }
        (!ranges.is_empty()).then_some(Self { ranges, ..self })
    }

    /// For messages.
    pub(super) fn told(lost: Option<&Self>) -> String {
        lost.map_or_else(String::new, |lost| {
            let first: Vec<_> = lost.ranges.iter().take(4).collect();
            format!(", {} places not readable of {:?}: {first:?}", lost.ranges.len(), lost.disk)
        })
    }
}
