//! A look at a pool's disks that changes nothing, takes no lock and starts no engine.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use plumb_io::system_tree::SystemTree;
use plumb_io::{TargetFile, contents, exclusive};
use plumb_units::convert::{index, to_u32};

use super::devices::DeviceQueue;
use super::open::{PoolError, leads_to, make_room, of_the_disk};
use crate::assembly::{
    Found, Terms, assemble, discover, is_apart, is_fork, is_outdated, is_split, newest_config,
    served, unserved,
};
use crate::format::superblock::Superblock;
use crate::format::{BLOCK_LEN, Config, DiskState, Geometry};
use crate::io::{Io, SlotPlan, TIME_OUT};
use crate::recover::{StartError, read_checkpoint};

/// How a disk stands to its pool.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskStanding {
    /// Here, and takes part.
    Present,
    /// Not here, though the configuration counts on it.
    Away,
    /// Expelled or lost, and not here.
    Missing,
    /// Expelled, lost or given up, and here again: the next start takes it back.
    Returning,
    /// An older copy of itself is here: it was put back as it had been before the pool was served last (LAY-8).
    Outdated,
    /// Here, but shorter than recorded: never written to.
    TooSmall,
    /// Here, and nobody can write to it: a device that is set read-only, or a file in a file system that is mounted so.
    ReadOnly,
    /// It went on without the others.
    Split,
    /// Given up, and not here: what it held is rebuilt on other disks.
    Retired,
    /// Here, and takes part until what it holds is on other disks.
    Leaving,
    /// It was removed: it holds nothing of the pool.
    Removed,
}

impl DiskStanding {
    /// Whether it is here and part of every write.
    #[must_use]
    pub const fn takes_part(self) -> bool {
        matches!(self, Self::Present | Self::Leaving)
    }
}

/// A disk of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DiskLook {
    /// Where it is, if it is here.
    pub path: Option<PathBuf>,
    /// How it stands.
    pub standing: DiskStanding,
    /// A disk of another pool is where it was added.
    pub foreign: bool,
}

/// What a pool's disks say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Look {
    /// The newest configuration that can be read.
    pub config: Config,
    /// Sizes of the areas of each disk.
    pub geometry: Geometry,
    /// By ordinal.
    pub disks: Vec<DiskLook>,
    /// Paths that are not disks of the pool, and why.
    pub strays: Vec<(PathBuf, String)>,
    /// Paths of which nothing was heard in time: nobody knows what is there.
    pub silent: Vec<PathBuf>,
    /// Why no start would accept what is here, and what to do; too few voters are told apart from it.
    pub refusal: Option<(String, &'static str)>,
    /// Bytes that a crash leaves old or new as a whole: those of the smallest physical sector of the disks that are
    /// here, 4096 at most (section 17).
    pub atomic_unit: u32,
}

impl Look {
    /// How many of the disks that vote are here, and how many there are.
    #[must_use]
    pub fn voters(&self) -> (usize, usize) {
        let here = |voter: &&u16| {
            let disk = self.disks.get(usize::from(**voter));
            disk.is_some_and(|disk| disk.standing.takes_part())
        };
        (self.config.voters.iter().filter(here).count(), self.config.voters.len())
    }
}

/// What a disk says of itself.
#[derive(Debug)]
pub(super) struct Said {
    /// All superblock copies that can be read.
    pub(super) copies: Vec<Superblock>,
    /// Its length in bytes.
    pub(super) size: u64,
    /// What its head holds where copies should be, if there are copies at its end only.
    instead: Option<String>,
}

impl Said {
    /// Whether it says that it is a disk of that pool, and nothing else says that it is somebody's.
    pub(super) fn is_of(&self, pool: u128) -> bool {
        self.instead.is_none() && self.copies.iter().any(|copy| copy.pool == pool)
    }

    /// Which disk of that pool it says that it is.
    pub(super) fn ids_of(&self, pool: u128) -> Vec<u128> {
        let own = self.copies.iter().filter(|copy| copy.pool == pool);
        own.map(|copy| copy.device).collect()
    }
}

/// Opens a disk to look at it. Nothing else than a file or a block device is opened: a FIFO would be waited for.
pub(super) fn open_to_read(path: &Path) -> std::io::Result<File> {
    use std::os::unix::fs::FileTypeExt;
    let kind = std::fs::metadata(path)?.file_type();
    if kind.is_fifo() || kind.is_socket() || kind.is_char_device() {
        return Err(std::io::Error::other("it is neither a file nor a block device"));
    }
    File::open(path)
}

/// Reads what a disk says of itself.
pub(super) fn superblocks(path: &Path) -> std::io::Result<Said> {
    said_by(open_to_read(path)?)
}

/// The same, whatever it is: for who waits for so long and no longer.
fn superblocks_in_time(path: &Path) -> std::io::Result<Said> {
    said_by(File::open(path)?)
}

fn said_by(mut file: File) -> std::io::Result<Said> {
    use std::io::Seek;
    let size = file.seek(std::io::SeekFrom::End(0))?;
    let mut copies = Vec::new();
    let mut bytes = vec![0; BLOCK_LEN];
    let mut read = |offset: u64, copies: &mut Vec<Superblock>| {
        if file.read_exact_at(&mut bytes, offset).is_ok() {
            copies.extend(Superblock::decode(&bytes));
        }
    };
    let [head_a, head_b, ..] = Geometry::superblocks(u64::MAX);
    read(head_a, &mut copies);
    read(head_b, &mut copies);
    let heads = copies.len();
    let ends = copies.iter().map(|copy| copy.device_bytes).max().unwrap_or(size);
    let [_, _, tail_a, tail_b] = Geometry::superblocks(ends);
    read(tail_a, &mut copies);
    read(tail_b, &mut copies);
    let mut instead = None;
    if heads == 0 && !copies.is_empty() {
        // Somebody made something else of it: that is his.
        instead = contents::marks_at_head(&file, size)?.into_iter().next().map(|mark| mark.1);
    }
    Ok(Said { copies, size, instead })
}

/// Why a disk cannot be one of a pool's; `None` if it can.
pub(super) fn stray(pool: Option<u128>, found: &Said) -> Option<String> {
    let Said { copies, size, instead } = found;
    let Some(first) = copies.first() else {
        return Some("it holds no pool".to_owned());
    };
    if let Some(pool) = pool.filter(|pool| copies.iter().all(|copy| copy.pool != *pool)) {
        return Some(format!("it belongs to pool {:032x}, not to {pool:032x}", first.pool));
    }
    if let Some(what) = instead {
        return Some(format!("it holds {what} now, and only its end is the pool's still"));
    }
    let recorded = copies.iter().map(|copy| copy.device_bytes).max().unwrap_or(0);
    (recorded > *size).then(|| format!("it has {size} bytes, and had {recorded}"))
}

/// Files that a look has open beside the disks, at most.
const LOOKS_BESIDE: u64 = 8;

/// Looks at `paths` as disks of the pool of that id, or of whichever they belong to.
///
/// # Errors
/// When no configuration can be read from any of them.
pub fn look(pool: Option<u128>, paths: &[PathBuf]) -> Result<Look, PoolError> {
    look_within(pool, paths, None)
}

/// The same, without disks that do not say within that time what they are; without one they are waited for.
///
/// # Errors
/// When no configuration can be read from any of those that do.
pub fn look_within(
    pool: Option<u128>,
    paths: &[PathBuf],
    patience: Option<Duration>,
) -> Result<Look, PoolError> {
    let (mut strays, mut silent) = (Vec::new(), Vec::new());
    let mut too_small: Vec<(PathBuf, u128)> = Vec::new();
    let mut foreign: Vec<PathBuf> = Vec::new();
    let mut good: Vec<TargetFile> = Vec::new();
    let (mut read_only, tree): (Vec<PathBuf>, _) = (Vec::new(), SystemTree::default());
    let mut atomic_unit = 4096;
    make_room(paths.len(), LOOKS_BESIDE)?;
    let say = if patience.is_some() { superblocks_in_time } else { superblocks };
    for (path, said) in paths.iter().zip(all_say(paths, patience, say)) {
        let Some(said) = said else {
            silent.push(path.clone());
            continue;
        };
        let found = match of_the_disk(path, said)? {
            Ok(found) => found,
            Err(error) => {
                strays.push((path.clone(), error.to_string()));
                continue;
            }
        };
        if let Some(why) = pool.and_then(|_| leads_to(&good, path)) {
            strays.push((path.clone(), why));
            continue;
        }
        if let Some(why) = stray(pool, &found) {
            let ours = |copy: &&Superblock| pool.is_none_or(|pool| copy.pool == pool);
            let id = found.copies.iter().find(ours).map(|copy| copy.device);
            if found.instead.is_none() {
                too_small.extend(id.map(|id| (path.clone(), id)));
                foreign.extend((id.is_none() && !found.copies.is_empty()).then(|| path.clone()));
            }
            strays.push((path.clone(), why));
            continue;
        }
        if let Ok(file) = of_the_disk(path, open_to_read(path))? {
            atomic_unit = atomic_unit.min(exclusive::atomic_sector(&file));
            read_only.extend(exclusive::is_read_only(&file, path, &tree).then(|| path.clone()));
            good.push(TargetFile {
                descriptor: file.into(),
                path: path.clone(),
                size: found.size,
                priority: None,
                mapping: None,
            });
        }
    }
    let places: Vec<PathBuf> = good.iter().map(|file| file.path.clone()).collect();
    let files = to_u32(good.len());
    let plan = SlotPlan {
        data_slots: 1,
        data_bytes: 4096,
        control_bytes: 64 << 10,
        files,
        time_out: TIME_OUT,
    };
    let mut io = Io::new(DeviceQueue::calls(&plan, good)?, plan);
    // Nothing is written here.
    let mut found = discover(&mut io, plan, Terms::Any).map_err(|error| match error {
        StartError::NoPool { .. } => StartError::NoPool { devices: paths.len() },
        other => other,
    })?;
    let config = newest_config(&mut io, &mut found, Terms::More)?;
    let served = served(&config, &found);
    let unserved = unserved(&mut io, &config, &found, served);
    let geometry = found.first().map(|one| one.block.geometry);
    let geometry = geometry.ok_or(StartError::Metadata { what: "superblock" })?;
    let disk = |(ordinal, disk): (u16, &crate::format::DiskConfig)| {
        let ours = |one: &&Found| one.block.ordinal == ordinal && one.block.device == disk.id;
        let missing = disk.state != DiskState::Online;
        if config.is_gone(ordinal) {
            return DiskLook { path: None, standing: DiskStanding::Removed, foreign: false };
        }
        let Some(one) = found.iter().find(ours) else {
            if let Some((path, _)) = too_small.iter().find(|(_, id)| *id == disk.id) {
                let standing = DiskStanding::TooSmall;
                return DiskLook { path: Some(path.clone()), standing, foreign: false };
            }
            let standing = match disk.state {
                DiskState::Online => DiskStanding::Away,
                DiskState::Missing => DiskStanding::Missing,
                DiskState::Retired => DiskStanding::Retired,
            };
            let foreign = foreign.iter().any(|path| *path == Path::new(&disk.name));
            return DiskLook { path: None, standing, foreign };
        };
        let standing = match missing {
            true if is_split(&config, disk, &one.block) && !unserved.contains(&ordinal) => {
                DiskStanding::Split
            }
            true => DiskStanding::Returning,
            false if is_fork(&config, disk, &one.block) => DiskStanding::Split,
            false if is_outdated(&config, &one.block, served) => DiskStanding::Outdated,
            false if is_apart(&config, disk, &one.block) => DiskStanding::Split,
            false if disk.leaving => DiskStanding::Leaving,
            false => DiskStanding::Present,
        };
        let path = &places[index(one.file.0)];
        let would_be_written = standing.takes_part() || standing == DiskStanding::Returning;
        let standing = match would_be_written && read_only.contains(path) {
            true => DiskStanding::ReadOnly,
            false => standing,
        };
        DiskLook { path: Some(path.clone()), standing, foreign: false }
    };
    let disks = (0_u16..).zip(&config.disks).map(disk).collect();
    let twins = |ordinal: u16| {
        let is_it = |one: &&Found| {
            let known = config.disks.get(usize::from(ordinal));
            one.block.ordinal == ordinal && known.is_some_and(|disk| disk.id == one.block.device)
        };
        let mut paths: Vec<String> = found
            .iter()
            .filter(is_it)
            .map(|one| places[index(one.file.0)].display().to_string())
            .collect();
        paths.sort();
        format!("{} say that they are disk {ordinal} of the pool", paths.join(" and "))
    };
    let refusal = refusal(&mut io, plan, twins);
    Ok(Look { config, geometry, disks, strays, silent, refusal, atomic_unit })
}

/// What all of them say, in their order; `None` of those that do not within `patience`. Each is asked by a thread of its own, and
/// those that wait for an answer are left behind: a request to a disk that hangs can be taken back by nobody.
fn all_say<T: Send + 'static>(
    paths: &[PathBuf],
    patience: Option<Duration>,
    ask: fn(&Path) -> T,
) -> Vec<Option<T>> {
    let Some(patience) = patience else {
        return paths.iter().map(|path| Some(ask(path))).collect();
    };
    let mut answers: Vec<Option<T>> = paths.iter().map(|_| None).collect();
    let (teller, told) = mpsc::channel();
    let mut asked = 0;
    for (nth, path) in paths.iter().enumerate() {
        let (own, teller) = (path.clone(), teller.clone());
        let asker = move || {
            // Nobody listens any more to who is late.
            let _ = teller.send((nth, ask(&own)));
        };
        match thread::Builder::new().name("plumb-look".to_owned()).spawn(asker) {
            Ok(_) => asked += 1,
            // Without a thread there is no time-out.
            Err(_) => answers[nth] = Some(ask(path)),
        }
    }
    let until = Instant::now() + patience;
    for _ in 0..asked {
        let left = until.saturating_duration_since(Instant::now());
        let Ok((nth, answer)) = told.recv_timeout(left) else { break };
        answers[nth] = Some(answer);
    }
    answers
}

/// What a start does before it writes anything: it puts the disks together and looks for a checkpoint. What lies deeper
/// is read by a start only.
fn refusal(
    io: &mut Io<DeviceQueue>,
    plan: SlotPlan,
    twins: impl Fn(u16) -> String,
) -> Option<(String, &'static str)> {
    let assembled = assemble(io, plan, (0, Terms::More));
    let error = match assembled.and_then(|(members, _)| read_checkpoint(io, &members)) {
        Ok(_) | Err(StartError::NoQuorum { .. }) => return None,
        Err(error) => error,
    };
    let action = match &error {
        StartError::Duplicate { .. } => "take one of the two off",
        StartError::Split { .. } => "start without that disk, or without the others",
        StartError::FeatureToWrite { .. } => "use a newer version of Plumb",
        StartError::Outdated { .. } => "attach the disk itself and not an older copy of it",
        _ => "attach the disks that are missing; without them only a backup has what is lost",
    };
    let text = match error {
        StartError::Duplicate { ordinal } => twins(ordinal),
        other => other.to_string(),
    };
    Some((text, action))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_does_not_answer_keeps_nobody_waiting() {
        fn ask(path: &Path) -> usize {
            while path.ends_with("hangs") {
                thread::park();
            }
            path.as_os_str().len()
        }
        let paths = ["a", "hangs", "ccc", "hangs"].map(PathBuf::from);
        let began = Instant::now();
        let answers = all_say(&paths, Some(Duration::from_millis(300)), ask);
        assert_eq!(answers, [Some(1), None, Some(3), None]);
        assert!(began.elapsed() < Duration::from_secs(20), "each was waited for");
        let answers = all_say(&["a".into(), "bb".into()], None, ask);
        assert_eq!(answers, [Some(1), Some(2)]);
    }
}
