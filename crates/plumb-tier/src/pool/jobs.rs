//! What work is left in a pool that another program has, be it a load or a command: its engine writes that down beside the list
//! of pools when it is asked. The pool's disks are not opened.
//!
//! ```text
//! plumb-jobs 2 <milliseconds since 1970> <milliseconds of use> <true: work goes on> <bytes done>
//! unreadable <bytes> <virtual disk>     for each of which something cannot be read, for disks are away
//! <kind> <disk, or -> <bytes left> <extents that are stuck> <what it waits for, or ->     for each
//! ```
//!
//! with a tab between fields.

use std::fs::File;
use std::io::Write;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use plumb_io::FlushQueue;

use super::asks::{self, Ask, ask, is_in_use};
use super::chronicle::{plain, read};
use super::live::now_ms;
use super::open::PoolError;
use super::registry::{RegisteredPool, Registry};
use crate::engine::{Engine, JobKind, JobState};
use crate::waits::Wait;

const HEADING: &str = "plumb-jobs 2";
/// How a line of a virtual disk begins of which something cannot be read.
const UNREADABLE: &str = "unreadable\t";
/// The file's extension.
pub(super) const EXTENSION: &str = "jobs";
/// The longest file that is read.
const FILE_MAX: u64 = 1 << 20;
/// Jobs of a file: two of each disk, and scans.
const JOBS_MAX: usize = 4096;
/// How long an engine that has taken the wish may take to write.
const WRITTEN_WITHIN: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_millis(20);

/// What work is left in a pool that another program has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobsTold {
    /// When that was: milliseconds since 1970.
    pub unix_ms: u64,
    /// How long the program had had the pool then, in milliseconds.
    pub uptime_ms: u64,
    /// Whether any of it goes on; what does not waits.
    pub works: bool,
    /// Bytes brought up to date or made anew since it has the pool.
    pub bytes_done: u64,
    /// In the order of disks.
    pub jobs: Vec<JobState>,
    /// Virtual disks of which something cannot be read, for disks are away, with the bytes.
    pub unreadable: Vec<(String, u64)>,
}

impl JobsTold {
    fn text(&self) -> String {
        let mut text = format!(
            "{HEADING}\t{}\t{}\t{}\t{}\n",
            self.unix_ms, self.uptime_ms, self.works, self.bytes_done
        );
        for (vdisk, bytes) in self.unreadable.iter().take(JOBS_MAX) {
            text.push_str(&format!("{UNREADABLE}{bytes}\t{}\n", plain(vdisk)));
        }
        for job in self.jobs.iter().take(JOBS_MAX) {
            let disk = job.disk.map_or("-".to_owned(), |disk| disk.to_string());
            let waits = job.waits.map_or("-", Wait::name);
            let (kind, left, stuck) = (job.kind.name(), job.bytes_left, job.stuck);
            text.push_str(&format!("{kind}\t{disk}\t{left}\t{stuck}\t{waits}\n"));
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next()?.split('\t').collect();
        let [HEADING, unix_ms, uptime_ms, works, bytes_done] = head[..] else { return None };
        let (unreadable, jobs): (Vec<&str>, Vec<&str>) =
            lines.take(2 * JOBS_MAX).partition(|line| line.starts_with(UNREADABLE));
        let vdisk = |line: &str| {
            let (bytes, name) = line[UNREADABLE.len()..].split_once('\t')?;
            Some((plain(name), bytes.parse().ok()?))
        };
        Some(Self {
            unix_ms: unix_ms.parse().ok()?,
            uptime_ms: uptime_ms.parse().ok()?,
            works: works.parse().ok()?,
            bytes_done: bytes_done.parse().ok()?,
            jobs: jobs.into_iter().take(JOBS_MAX).map(job).collect::<Option<_>>()?,
            unreadable: unreadable.into_iter().take(JOBS_MAX).map(vdisk).collect::<Option<_>>()?,
        })
    }
}

fn job(line: &str) -> Option<JobState> {
    let fields: Vec<&str> = line.split('\t').collect();
    let [kind, disk, bytes_left, stuck, waits] = fields[..] else { return None };
    let kinds = [JobKind::Resync, JobKind::Rebuild, JobKind::Empty, JobKind::Scan, JobKind::Settle];
    Some(JobState {
        kind: kinds.into_iter().find(|known| known.name() == kind)?,
        disk: if disk == "-" { None } else { Some(disk.parse().ok()?) },
        bytes_left: bytes_left.parse().ok()?,
        stuck: stuck.parse().ok()?,
        waits: match waits {
            "-" => None,
            word => Some([Wait::Disk, Wait::Room].into_iter().find(|one| one.name() == word)?),
        },
    })
}

/// Reads any text as work that is left.
pub(super) fn fuzz(text: &str) {
    if let Some(told) = JobsTold::parse(text) {
        assert_eq!(JobsTold::parse(&told.text()), Some(told));
    }
}

fn path(registry: &Registry, pool: &str) -> PathBuf {
    registry.folder().join(format!("{pool}.{EXTENSION}"))
}

/// Writes down what work an engine has left.
#[derive(Debug)]
pub(super) struct JobTeller {
    path: PathBuf,
}

impl JobTeller {
    pub(super) fn new(registry: &Registry, pool: &str) -> Self {
        Self { path: path(registry, pool) }
    }

    /// Of an engine that has been used for that long.
    pub(super) fn tell<Q: FlushQueue>(&self, engine: &Engine<Q>, uptime: Duration) {
        let told = JobsTold {
            unix_ms: now_ms(),
            uptime_ms: u64::try_from(uptime.as_millis()).unwrap_or(u64::MAX),
            works: engine.works(),
            bytes_done: engine.counters().background_bytes(),
            jobs: engine.jobs(),
            unreadable: engine.unreadable(),
        };
        let beside = self.path.with_extension("jobs-new");
        // Best effort: whoever asked is told that nothing was heard.
        let _ = File::create(&beside)
            .and_then(|mut file| file.write_all(told.text().as_bytes()))
            .and_then(|()| std::fs::rename(&beside, &self.path));
    }
}

/// Asks the program that has a pool what work is left, and waits for its answer.
///
/// # Errors
/// When none has it ([`PoolError::NotInUse`]), or it does not answer ([`PoolError::NoAnswer`]).
pub fn jobs_in_use(registry: &Registry, pool: &RegisteredPool) -> Result<JobsTold, PoolError> {
    let since = now_ms();
    ask(registry, pool, Ask::Jobs)?;
    let path = path(registry, &pool.name);
    let answer = || {
        let text = read(&path, FILE_MAX)?;
        JobsTold::parse(&text).filter(|told| told.unix_ms >= since)
    };
    let began = Instant::now();
    for turn in 1_u32.. {
        if let Some(told) = answer() {
            return Ok(told);
        }
        // Looking at the disks is no small matter; it is done now and then.
        if turn % 25 == 0 && !is_in_use(pool) {
            return answer().ok_or_else(|| PoolError::NotInUse { name: pool.name.clone() });
        }
        if began.elapsed() > WRITTEN_WITHIN {
            break;
        }
        std::thread::sleep(LOOK);
    }
    asks::take_back(registry, &pool.name, Ask::Jobs);
    answer().ok_or_else(|| PoolError::NoAnswer { name: pool.name.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_back() {
        let job = |kind, disk, waits| JobState { kind, disk, bytes_left: 5, stuck: 6, waits };
        let told = JobsTold {
            unix_ms: 1,
            uptime_ms: 2,
            works: true,
            bytes_done: 3,
            jobs: vec![
                job(JobKind::Resync, Some(0), Some(Wait::Disk)),
                job(JobKind::Rebuild, Some(1), Some(Wait::Room)),
                job(JobKind::Empty, Some(u16::MAX), None),
                job(JobKind::Scan, None, None),
                job(JobKind::Settle, None, None),
            ],
            unreadable: vec![("v".to_owned(), 4096), (String::new(), u64::MAX)],
        };
        assert_eq!(JobsTold::parse(&told.text()), Some(told));
        for text in [
            "",
            "plumb-jobs 1\t1\t2\ttrue\t3\n",
            "plumb-jobs 2\t1\t2\ttrue\t3\nfly\t-\t1\t2\t-\n",
            "plumb-jobs 2\t1\t2\ttrue\t3\nscan\t-\t1\t2\n",
            "plumb-jobs 2\t1\t2\ttrue\t3\nunreadable\tmany\tv\n",
        ] {
            assert_eq!(JobsTold::parse(text), None, "{text:?}");
        }
    }
}
