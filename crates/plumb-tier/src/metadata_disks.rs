//! Which disks have journal and tree (section 4): solid-state ones where there are two.

use crate::format::MediaType;
use crate::members::Members;

/// Copies of journal and tree, at most.
const METADATA_COPIES: usize = 3;

/// How many copies of journal and tree there are to be (section 4): as many as there are solid-state disks that may have one,
/// or other disks where there are none of those, three at most; and no fewer than a virtual disk has of its data, nor than two.
pub(crate) fn metadata_copies(
    disks: impl Iterator<Item = MediaType>,
    copies: impl Iterator<Item = u8>,
) -> usize {
    let (rotate, fast): (Vec<_>, Vec<_>) = disks.partition(|media| *media == MediaType::Hdd);
    let eligible = if fast.is_empty() { rotate.len() } else { fast.len() };
    eligible.max(usize::from(copies.max().unwrap_or(0))).clamp(2, METADATA_COPIES)
}

impl Members {
    /// Which of the disks that take part gets journal and tree, of those that may: a solid-state one first.
    pub(crate) fn for_metadata(&self, may: impl Fn(&u16) -> bool) -> Option<u16> {
        let rotates = |disk: &u16| self.config.disks[usize::from(*disk)].media == MediaType::Hdd;
        self.each_online().filter(may).min_by_key(|disk| (rotates(disk), *disk))
    }

    /// How many copies of journal and tree there are to be, with `more` as one of the disks that may have them.
    pub(crate) fn metadata_wanted(&self, more: Option<u16>) -> usize {
        let own = |disk: u16| &self.config.disks[usize::from(disk)];
        let able = |disk: u16| self.takes_more(disk) && self.config.voters.contains(&disk);
        let all = (0..u16::try_from(self.online.len()).unwrap_or(u16::MAX))
            .filter(|disk| able(*disk) || more == Some(*disk) && !own(*disk).leaving);
        metadata_copies(
            all.map(|disk| own(disk).media),
            self.config.vdisks.iter().map(|own| own.copies),
        )
    }

    /// What brings journal and tree closer to where they are to be: which disk gets a copy, and which one gives up its own. Not one
    /// that `failed` to take one.
    pub(crate) fn metadata_step(&self, failed: &[u16]) -> Option<(Option<u16>, Option<u16>)> {
        let own = |disk: u16| &self.config.disks[usize::from(disk)];
        let rotates = |disk: &u16| own(*disk).media == MediaType::Hdd;
        let lacks = |disk: &u16| {
            self.takes_more(*disk)
                && !own(*disk).metadata
                && !failed.contains(disk)
                && self.config.voters.contains(disk)
        };
        let (have, wanted) = (self.each_metadata().count(), self.metadata_wanted(None));
        let next = self.for_metadata(lacks);
        if have < wanted {
            return next.map(|disk| (Some(disk), None));
        }
        let slow = self.each_metadata().filter(rotates).last()?;
        let faster = next.filter(|disk| !rotates(disk));
        (faster.is_some() || have > wanted).then_some((faster, Some(slow)))
    }

    /// Ordinals of the live copies of journal and tree.
    pub(crate) fn metadata(&self) -> Vec<u16> {
        self.each_metadata().collect()
    }

    /// The same, one after the other.
    pub(crate) fn each_metadata(&self) -> impl Iterator<Item = u16> + '_ {
        self.each_online().filter(|disk| self.config.disks[usize::from(*disk)].metadata)
    }
}
