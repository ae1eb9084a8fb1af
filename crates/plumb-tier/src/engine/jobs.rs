//! Work in the background as whoever drives an engine sees it.

use plumb_io::FlushQueue;
use plumb_units::convert::to_u64;

use super::Engine;
use super::standstill::Job;
use crate::format::DiskState;
use crate::waits::{Wait, Waits};

/// What kind of work it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// A disk is brought up to date.
    Resync,
    /// What a disk held that was given up is made anew on others.
    Rebuild,
    /// What a disk holds that is to be removed moves to others.
    Empty,
    /// Every copy of every block and of metadata is verified.
    Scan,
    /// What was being written when the pool was last in use is looked at, and its copies made equal.
    Settle,
}

impl JobKind {
    /// As it is shown.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Resync => "resync",
            Self::Rebuild => "rebuild",
            Self::Empty => "empty",
            Self::Scan => "scan",
            Self::Settle => "settle",
        }
    }
}

/// Work that is left to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct JobState {
    /// What.
    pub kind: JobKind,
    /// Ordinal of the disk that it is about; `None` for all.
    pub disk: Option<u16>,
    /// Bytes to go, of a disk that is emptied or rebuilt at most.
    pub bytes_left: u64,
    /// Extents of it that no disk here can help now.
    pub stuck: u32,
    /// What it waits for, if it does not go on by itself.
    pub waits: Option<Wait>,
}

impl<Q: FlushQueue> Engine<Q> {
    /// Whether such work is under way, or can be, whatever requests there are.
    #[must_use]
    pub fn works(&self) -> bool {
        self.frozen
            || !self.jobs.is_empty()
            || self.rebuilding
            || self.stale_disk().is_some()
            || !self.core.deferred.is_empty()
    }

    /// All work that is left, in the order of disks.
    #[must_use]
    pub fn jobs(&self) -> Vec<JobState> {
        let members = &self.core.members;
        let config = &members.config;
        let mut jobs = Vec::new();
        let goes_on = self.works();
        let waits = Waits::of(config, &members.geometry, |disk| members.is_online(disk));
        for (disk, own) in (0_u16..).zip(&config.disks) {
            let nth = usize::from(disk);
            let (stale, kept) = (members.stale[nth].len(), members.kept[nth].len());
            let stuck = members.stuck[nth].len();
            let slabs = to_u64(config.used_slabs(disk).len()) * members.geometry.slab_bytes;
            let comes_back = matches!(own.state, DiskState::Online | DiskState::Missing);
            if comes_back && stale > kept {
                let (stale, kept_there) = (&members.stale[nth], &members.kept[nth]);
                let comes = stale.iter().filter(|extent| !kept_there.has(*extent));
                let bytes_left: u64 = comes.map(|extent| self.core.share_on(disk, extent)).sum();
                let stuck = if kept > 0 { 0 } else { stuck };
                let is_away = own.state == DiskState::Missing;
                let waits = (is_away || !goes_on).then_some(Wait::Disk);
                let kind = JobKind::Resync;
                // A disk that is away is marked for extents of which it has nothing, too.
                if !is_away || bytes_left > 0 {
                    jobs.push(JobState { kind, disk: Some(disk), bytes_left, stuck, waits });
                }
            }
            let kind = match own.state {
                DiskState::Retired => JobKind::Rebuild,
                DiskState::Online if own.leaving => JobKind::Empty,
                _ => continue,
            };
            if slabs > 0 {
                let bytes_left = slabs - self.arrived(disk).min(slabs);
                let stuck = self.stuck_on_the_way(disk);
                // Where there would be room, somebody has a block that nobody here has.
                let waits = waits.of_disk(disk).or((!goes_on).then_some(Wait::Disk));
                jobs.push(JobState { kind, disk: Some(disk), bytes_left, stuck, waits });
            }
        }
        if !self.core.deferred.is_empty() {
            let bytes_left = u64::from(self.core.deferred.len()) * u64::from(config.extent_bytes);
            let kind = JobKind::Settle;
            jobs.push(JobState { kind, disk: None, bytes_left, stuck: 0, waits: None });
        }
        let scans = self.jobs.iter().filter_map(|job| match job {
            Job::Scan(stage, _) => Some(*stage),
            _ => None,
        });
        for stage in scans {
            let bytes_left = self.scan_left(stage);
            jobs.push(JobState {
                kind: JobKind::Scan,
                disk: None,
                bytes_left,
                stuck: 0,
                waits: None,
            });
        }
        jobs
    }

    /// Bytes of the slab that moves off that disk which need not be copied any more.
    fn arrived(&self, disk: u16) -> u64 {
        let members = &self.core.members;
        let moving = members.config.moving.filter(|moving| moving.from.0 == disk);
        let Some((moving, to)) = moving.zip(members.config.moving_to()) else { return 0 };
        let columns = members.config.vdisks[usize::from(moving.vdisk)].columns;
        let share = u64::from(members.config.extent_bytes) / u64::from(columns.max(1));
        let left = u64::from(members.kept[usize::from(to.0)].len()) * share;
        members.geometry.slab_bytes.saturating_sub(left)
    }

    fn stuck_on_the_way(&self, disk: u16) -> u32 {
        let members = &self.core.members;
        let moving = members.config.moving.filter(|moving| moving.from.0 == disk);
        let to = moving.and_then(|_| members.config.moving_to());
        to.map_or(0, |to| members.stuck[usize::from(to.0)].len())
    }
}
