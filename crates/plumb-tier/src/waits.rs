//! What work that is left waits for, when nothing can go on: a disk, or room on one (RES-4).

use crate::format::{Config, Geometry, MediaType};

/// What is missing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wait {
    /// A disk that has what is wanted, or that lacks it.
    Disk,
    /// Free slabs on a disk of that kind that has no other copy of the same.
    Room,
}

impl Wait {
    /// As it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Disk => "disk",
            Self::Room => "room",
        }
    }
}

/// What becomes of a place on a disk that was given up or is to leave.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fate {
    GoesOn,
    Waits(Wait),
}

/// What disks that were given up or are to leave wait for, and the virtual disks that lie on them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    disks: Vec<Vec<Fate>>,
    vdisks: Vec<Vec<Fate>>,
    /// Slabs that are to go elsewhere, and free ones that could take them.
    wanted: Vec<MediaType>,
    free: Vec<(MediaType, usize)>,
}

impl Waits {
    /// As a configuration has it and disks are here.
    pub(crate) fn of(
        config: &Config,
        geometry: &Geometry,
        takes_part: impl Fn(u16) -> bool,
    ) -> Self {
        let disks = 0..u16::try_from(config.disks.len()).unwrap_or(u16::MAX);
        let goes = |disk: u16| config.is_retired(disk) || config.disks[usize::from(disk)].leaving;
        let mut found = Self {
            disks: vec![Vec::new(); config.disks.len()],
            vdisks: vec![Vec::new(); config.vdisks.len()],
            ..Self::default()
        };
        if !disks.clone().any(goes) {
            return found;
        }
        // Room on each that may take more, and what it is made of.
        let room = |disk: u16| {
            let own = &config.disks[usize::from(disk)];
            let slabs = usize::try_from(geometry.slabs(own.device_bytes)).unwrap_or(usize::MAX);
            let free = slabs.saturating_sub(config.used_slabs(disk).len());
            (takes_part(disk) && !goes(disk)).then_some((disk, own.media, free))
        };
        let rooms: Vec<(u16, MediaType, usize)> = disks.filter_map(room).collect();
        found.free = rooms.iter().map(|(_, media, free)| (*media, *free)).collect();
        let has_room = |wanted: MediaType, taken: &[u16], slabs: usize| {
            let fits = |(disk, media, free): &(u16, MediaType, usize)| {
                *media == wanted && *free >= slabs.max(1) && !taken.contains(disk)
            };
            rooms.iter().any(fits)
        };
        let fate = |others_have_it: bool, has_room: bool| match (others_have_it, has_room) {
            (false, _) => Fate::Waits(Wait::Disk),
            (true, false) => Fate::Waits(Wait::Room),
            (true, true) => Fate::GoesOn,
        };
        for (nth, vdisk) in config.vdisks.iter().enumerate() {
            let copies = usize::from(vdisk.copies).max(1);
            let mut note = |disk: u16, fate: Fate, (media, slabs): (MediaType, usize)| {
                found.disks[usize::from(disk)].push(fate);
                found.vdisks[nth].push(fate);
                found.wanted.extend(std::iter::repeat_n(media, slabs));
            };
            for (tier, row) in
                vdisk.tiers.iter().flat_map(|tier| tier.rows.iter().map(move |row| (tier, row)))
            {
                let taken: Vec<u16> = row.slabs.iter().map(|slab| slab.0).collect();
                for column in taken.chunks(copies) {
                    for disk in column.iter().copied().filter(|disk| goes(*disk)) {
                        let has_it = column.iter().any(|other| takes_part(*other));
                        let fate = fate(has_it, has_room(tier.media, &taken, 1));
                        note(disk, fate, (tier.media, 1));
                    }
                }
            }
            let logs = vdisk.cache.iter().flat_map(|cache| &cache.copies);
            let taken: Vec<u16> = logs.clone().map(|copy| copy.disk).collect();
            for copy in logs.filter(|copy| goes(copy.disk)) {
                let has_it = taken.iter().any(|other| takes_part(*other));
                let has_room = has_room(MediaType::Ssd, &taken, copy.slabs.len());
                note(copy.disk, fate(has_it, has_room), (MediaType::Ssd, copy.slabs.len()));
            }
        }
        found
    }

    /// What a disk waits for; `None` when something of it can go on, or it holds nothing.
    pub(crate) fn of_disk(&self, disk: u16) -> Option<Wait> {
        waits(self.disks.get(usize::from(disk))?)
    }

    /// What anything of a disk waits for, or will once the rest has gone elsewhere; `None` when all of it can.
    pub(crate) fn of_any(&self, disk: u16) -> Option<Wait> {
        let fates = self.disks.get(usize::from(disk))?;
        let is = |wait: Wait| fates.contains(&Fate::Waits(wait));
        let lacks_room = |media: MediaType| {
            let wanted = self.wanted.iter().filter(|own| **own == media).count();
            wanted > self.free.iter().filter(|own| own.0 == media).map(|own| own.1).sum()
        };
        let fills = || self.wanted.iter().any(|media| lacks_room(*media));
        if is(Wait::Room) || !fates.is_empty() && !is(Wait::Disk) && fills() {
            return Some(Wait::Room);
        }
        is(Wait::Disk).then_some(Wait::Disk)
    }

    /// What a virtual disk waits for, in the configuration's order.
    pub(crate) fn of_vdisk(&self, vdisk: usize) -> Option<Wait> {
        waits(self.vdisks.get(vdisk)?)
    }
}

/// One thing is enough for something to go on; room, before what nobody has.
fn waits(fates: &[Fate]) -> Option<Wait> {
    let is = |fate: Fate| fates.contains(&fate);
    match (is(Fate::GoesOn), is(Fate::Waits(Wait::Room)), is(Fate::Waits(Wait::Disk))) {
        (true, ..) | (_, false, false) => None,
        (_, true, _) => Some(Wait::Room),
        (_, _, true) => Some(Wait::Disk),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::format::{DiskConfig, DiskState, Row, Tier, VirtualDisk};

    /// Three disks, a mirror of one row on the first two; the second was given up.
    fn config(media: [MediaType; 3]) -> Config {
        let disk = |media| DiskConfig { media, device_bytes: 256 << 20, ..DiskConfig::default() };
        let mut disks: Vec<DiskConfig> = media.into_iter().map(disk).collect();
        disks[1].state = DiskState::Retired;
        let rows = vec![Row { slabs: vec![(0, 0), (1, 0)] }];
        let vdisk = VirtualDisk {
            id: 1,
            first_extent: 0,
            extents: 8,
            name: "v".to_owned(),
            copies: 2,
            columns: 1,
            interleave: 64 << 10,
            tiers: vec![Tier { media: MediaType::Ssd, rows }],
            cache: None,
        };
        Config { disks, vdisks: vec![vdisk], extent_bytes: 1 << 20, ..Config::default() }
    }

    #[test]
    fn what_was_given_up_waits_for_room_or_for_who_has_it() {
        use MediaType::{Hdd, Ssd};
        let geometry = Geometry { config_bytes: 1 << 20, ..Geometry::standard(16 << 20, 1 << 30) };
        let geometry = Geometry { journal_bytes: 8 << 20, tree_bytes: 4 << 20, ..geometry };
        for (media, here, expected) in [
            ([Ssd, Ssd, Ssd], [true, false, true], None),
            ([Ssd, Ssd, Hdd], [true, false, true], Some(Wait::Room)),
            ([Ssd, Ssd, Ssd], [true, false, false], Some(Wait::Room)),
            ([Ssd, Ssd, Ssd], [false, false, true], Some(Wait::Disk)),
        ] {
            let config = config(media);
            let waits = Waits::of(&config, &geometry, |disk| here[usize::from(disk)]);
            assert_eq!(waits.of_disk(1), expected, "{media:?} {here:?}");
            assert_eq!(waits.of_vdisk(0), expected, "{media:?} {here:?}");
            assert_eq!(waits.of_disk(0), None);
        }
    }
}
