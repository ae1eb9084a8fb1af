//! A scan that a program asks of another one that has the pool: the owner's engine scans, and writes down beside the list of
//! pools how far it is and what it found. The pool's disks are not opened.

use std::fs::File;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use plumb_io::FlushQueue;
use plumb_units::convert::to_u32;

use super::asks::{self, Ask, ask, is_in_use};
use super::chronicle::{plain, read};
use super::live::now_ms;
use super::open::PoolError;
use super::registry::{RegisteredPool, Registry};
use crate::core::Counters;
use crate::engine::{Engine, JobKind};

const HEADING: &str = "plumb-scan 4";
/// How a line of an extent with lost blocks begins.
const LOST: &str = "lost\t";
/// The file's extension.
pub(super) const EXTENSION: &str = "scan";
/// The longest file that is read.
const FILE_MAX: u64 = 16 << 20;
/// Ranges that are written down, at most.
const RANGES_MAX: usize = 65_536;
/// How often the owner writes how far it is.
const TOLD_EVERY: Duration = Duration::from_secs(1);
/// How long it may take to begin.
const BEGUN_WITHIN: Duration = Duration::from_secs(5);
/// How often to look.
const LOOK: Duration = Duration::from_millis(100);
/// And whether it is still there, in looks.
const LOOKS: u32 = 20;

/// What a scan did. Reads of a load that went on beside it count as well.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Scanned {
    /// Blocks whose checksum was compared.
    pub blocks_verified: u64,
    /// Blocks that did not match on one copy.
    pub mismatches: u64,
    /// Blocks rewritten from a good copy.
    pub healed: u64,
    /// Blocks without a good copy.
    pub unrecoverable: u64,
    /// Blocks that could not be read: a disk that is away has what is good of them.
    pub away: u64,
    /// Blocks whose checksums are lost (LAY-7).
    pub unverified: u64,
    /// Of these, blocks whose copies differ or cannot be read.
    pub unverified_differ: u64,
    /// Of these, blocks that were accepted as they are.
    pub accepted: u64,
    /// Copies of metadata that were read: pages of map and checksums, superblocks, configurations.
    pub metadata_verified: u64,
    /// Copies of metadata that were damaged.
    pub metadata_damaged: u64,
    /// Of these, copies that could not be written anew.
    pub metadata_unhealed: u64,
    /// Milliseconds that it took.
    pub elapsed_ms: u64,
    /// What is left whose checksums are lost: virtual disk, first byte, bytes.
    pub ranges: Vec<(String, u64, u64)>,
    /// Extents in which blocks without a good copy were met by the scan, or since it: virtual disk, first byte, bytes.
    pub lost: Vec<(String, u64, u64)>,
}

impl Scanned {
    /// What an engine did since it had counted that much; what of it is left unverified.
    #[must_use]
    pub fn since<Q: FlushQueue>(engine: &Engine<Q>, before: &Counters, elapsed: Duration) -> Self {
        let now = engine.counters();
        let vdisks = &engine.config().vdisks;
        let name = |nth: u32| {
            let own = usize::try_from(nth).ok().and_then(|nth| vdisks.get(nth));
            own.map(|own| own.name.clone()).unwrap_or_default()
        };
        let runs = engine.unverified().into_iter();
        Self {
            blocks_verified: now.blocks_verified - before.blocks_verified,
            mismatches: now.mismatches - before.mismatches,
            healed: now.healed - before.healed,
            unrecoverable: now.unrecoverable - before.unrecoverable,
            away: now.away - before.away,
            unverified: now.unverified - before.unverified,
            unverified_differ: now.unverified_differ - before.unverified_differ,
            accepted: now.accepted - before.accepted,
            metadata_verified: now.metadata_verified - before.metadata_verified,
            metadata_damaged: now.metadata_damaged - before.metadata_damaged,
            metadata_unhealed: now.metadata_unhealed - before.metadata_unhealed,
            elapsed_ms: u64::try_from(elapsed.as_millis()).unwrap_or(u64::MAX),
            ranges: runs.map(|run| (name(run.vdisk), run.offset, run.len)).collect(),
            lost: (0..to_u32(vdisks.len()))
                .flat_map(|nth| engine.lost_of(nth).into_iter().map(move |own| (nth, own)))
                .map(|(nth, (from, len))| (name(nth), from, len))
                .collect(),
        }
    }
}

/// How a scan stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    Running,
    Ended,
    /// Its program ended before it did.
    Cut,
}

/// A scan as it was written down.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Told {
    /// When it was asked for last: milliseconds since 1970.
    asked_ms: u64,
    state: State,
    bytes_left: u64,
    scanned: Scanned,
}

impl Told {
    fn text(&self) -> String {
        let word = match self.state {
            State::Running => "running",
            State::Ended => "ended",
            State::Cut => "cut",
        };
        let own = &self.scanned;
        let counts = [
            own.blocks_verified,
            own.mismatches,
            own.healed,
            own.unrecoverable,
            own.away,
            own.unverified,
            own.unverified_differ,
            own.accepted,
            own.metadata_verified,
            own.metadata_damaged,
            own.metadata_unhealed,
            own.elapsed_ms,
        ];
        let counts = counts.map(|count| count.to_string()).join("\t");
        let mut text =
            format!("{HEADING}\t{}\t{word}\t{}\n{counts}\n", self.asked_ms, self.bytes_left);
        for (vdisk, from, len) in own.ranges.iter().take(RANGES_MAX) {
            text.push_str(&format!("{from}\t{len}\t{}\n", plain(vdisk)));
        }
        for (vdisk, from, len) in own.lost.iter().take(RANGES_MAX) {
            text.push_str(&format!("{LOST}{from}\t{len}\t{}\n", plain(vdisk)));
        }
        text
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let head: Vec<&str> = lines.next()?.split('\t').collect();
        let [HEADING, asked_ms, word, bytes_left] = head[..] else { return None };
        let state = match word {
            "running" => State::Running,
            "ended" => State::Ended,
            "cut" => State::Cut,
            _ => return None,
        };
        let counts: Option<Vec<u64>> =
            lines.next()?.split('\t').map(|count| count.parse().ok()).collect();
        let counts: [u64; 12] = counts?.try_into().ok()?;
        let [
            verified,
            mismatches,
            healed,
            lost,
            away,
            unverified,
            differ,
            accepted,
            metadata @ ..,
            elapsed,
        ] = counts;
        let [metadata_verified, metadata_damaged, metadata_unhealed] = metadata;
        let range = |line: &str| {
            let mut fields = line.splitn(3, '\t');
            let (from, len) = (fields.next()?.parse().ok()?, fields.next()?.parse().ok()?);
            Some((plain(fields.next()?), from, len))
        };
        let (lost_lines, lines): (Vec<&str>, Vec<&str>) =
            lines.take(2 * RANGES_MAX).partition(|line| line.starts_with(LOST));
        let ranges = |lines: Vec<&str>| {
            lines.into_iter().take(RANGES_MAX).map(range).collect::<Option<Vec<_>>>()
        };
        let lost_lines = lost_lines.into_iter().map(|line| &line[LOST.len()..]).collect();
        let scanned = Scanned {
            blocks_verified: verified,
            mismatches,
            healed,
            unrecoverable: lost,
            away,
            unverified,
            unverified_differ: differ,
            accepted,
            metadata_verified,
            metadata_damaged,
            metadata_unhealed,
            elapsed_ms: elapsed,
            ranges: ranges(lines)?,
            lost: ranges(lost_lines)?,
        };
        let (asked_ms, bytes_left) = (asked_ms.parse().ok()?, bytes_left.parse().ok()?);
        Some(Self { asked_ms, state, bytes_left, scanned })
    }
}

/// Reads any text as a scan.
pub(super) fn fuzz(text: &str) {
    if let Some(told) = Told::parse(text) {
        assert_eq!(Told::parse(&told.text()), Some(told));
    }
}

fn path(registry: &Registry, pool: &str) -> PathBuf {
    registry.folder().join(format!("{pool}.{EXTENSION}"))
}

/// Writes down how the scans of an engine go.
#[derive(Debug)]
pub(super) struct ScanTeller {
    path: PathBuf,
    /// When somebody asked for one last, in milliseconds since 1970.
    asked_ms: u64,
    /// When it began, and what was counted then.
    began: Option<(Instant, Counters)>,
    told: Option<Instant>,
}

impl ScanTeller {
    pub(super) fn new(registry: &Registry, pool: &str) -> Self {
        Self { path: path(registry, pool), asked_ms: 0, began: None, told: None }
    }

    /// A wish for a scan was taken: whoever asked takes nothing older for its result.
    pub(super) fn asked(&mut self) {
        self.asked_ms = now_ms();
        self.told = None;
    }

    /// Whether a scan whose end was not told has ended.
    pub(super) fn is_over<Q: FlushQueue>(&self, engine: &Engine<Q>) -> bool {
        self.began.is_some() && !engine.is_scanning()
    }

    /// Looks at an engine; `ends` when it is about to end.
    pub(super) fn watch<Q: FlushQueue>(&mut self, engine: &Engine<Q>, ends: bool) {
        let scans = engine.is_scanning();
        if self.began.is_none() && scans {
            self.began = Some((Instant::now(), engine.counters()));
            self.told = None;
        }
        let Some((began, before)) = &self.began else { return };
        let state = match (scans, ends) {
            (true, false) if self.told.is_some_and(|at| at.elapsed() < TOLD_EVERY) => return,
            (true, false) => State::Running,
            (true, true) => State::Cut,
            (false, _) => State::Ended,
        };
        let own = |job: &&crate::JobState| job.kind == JobKind::Scan;
        let bytes_left = engine.jobs().iter().filter(own).map(|job| job.bytes_left).sum();
        let mut scanned = Scanned::since(engine, before, began.elapsed());
        if state == State::Running {
            scanned.ranges.clear();
            scanned.lost.clear();
        }
        let text = Told { asked_ms: self.asked_ms, state, bytes_left, scanned }.text();
        let beside = self.path.with_extension("scan-new");
        // Best effort: whoever asked is told that nothing was heard.
        let _ = File::create(&beside)
            .and_then(|mut file| std::io::Write::write_all(&mut file, text.as_bytes()))
            .and_then(|()| std::fs::rename(&beside, &self.path));
        self.told = Some(Instant::now());
        if state != State::Running {
            self.began = None;
        }
    }
}

/// Why there is no result of a scan that another program was asked for.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum ScanError {
    /// It could not be asked.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Pool(#[from] PoolError),
    /// It does other work for somebody.
    #[error("pool {pool} is in use by a program that does not scan when asked")]
    #[diagnostic(
        code(plumb::tier::scan_not_taken),
        help("nothing was done; wait until it has ended, and scan again")
    )]
    NotTaken {
        /// The pool.
        pool: String,
    },
    /// It ended before the scan did.
    #[error(
        "the program that has pool {pool} ended before the scan did: {} were not read",
        plumb_units::Bytes(*bytes_left)
    )]
    #[diagnostic(
        code(plumb::tier::scan_cut),
        help(
            "what was found so far is told by plumb space status; scan again: plumb space scan {pool}"
        )
    )]
    Cut {
        /// The pool.
        pool: String,
        /// What it had to go.
        bytes_left: u64,
    },
    /// It died.
    #[error("the program that has pool {pool} ended without a word before the scan was done")]
    #[diagnostic(code(plumb::tier::scan_lost), help("scan again: plumb space scan {pool}"))]
    Lost {
        /// The pool.
        pool: String,
    },
}

/// Has the program that has a pool scan it, tells `progress` the bytes to go, and says what came of it.
///
/// # Errors
/// When none has it ([`PoolError::NotInUse`]), or the one that has it does not scan, or ends before the scan does.
pub fn scan_in_use(
    registry: &Registry,
    pool: &RegisteredPool,
    accept_unverified: bool,
    progress: &mut dyn FnMut(u64),
) -> Result<Scanned, ScanError> {
    let wish = if accept_unverified { Ask::ScanAccepting } else { Ask::Scan };
    let since = now_ms();
    ask(registry, pool, wish)?;
    let (path, asked) = (path(registry, &pool.name), Instant::now());
    let name = || pool.name.clone();
    let mut begun = false;
    for turn in 1_u32.. {
        let text = read(&path, FILE_MAX);
        let told = text.as_deref().and_then(Told::parse).filter(|told| told.asked_ms >= since);
        match told {
            Some(told) if told.state == State::Ended => return Ok(told.scanned),
            Some(told) if told.state == State::Cut => {
                return Err(ScanError::Cut { pool: name(), bytes_left: told.bytes_left });
            }
            Some(told) => {
                begun = true;
                progress(told.bytes_left);
            }
            None if !begun && asked.elapsed() > BEGUN_WITHIN => {
                asks::take_back(registry, &pool.name, wish);
                return Err(ScanError::NotTaken { pool: name() });
            }
            None => {}
        }
        // Looking at the disks is no small matter; it is done now and then.
        if turn % LOOKS == 0 && !is_in_use(pool) {
            // It may have written that as the last thing that it did.
            let last = read(&path, FILE_MAX).as_deref().and_then(Told::parse);
            match last.filter(|told| told.asked_ms >= since && told.state != State::Running) {
                Some(_) => continue,
                None => return Err(ScanError::Lost { pool: name() }),
            }
        }
        std::thread::sleep(LOOK);
    }
    Err(ScanError::Lost { pool: name() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_down_is_read_back() {
        let scanned = Scanned {
            blocks_verified: 9,
            mismatches: 8,
            healed: 7,
            unrecoverable: 6,
            away: 14,
            unverified: 5,
            unverified_differ: 4,
            accepted: 3,
            metadata_verified: 13,
            metadata_damaged: 12,
            metadata_unhealed: 1,
            elapsed_ms: 2,
            ranges: vec![("v".to_owned(), 4096, 8192), (String::new(), 0, u64::MAX)],
            lost: vec![("w".to_owned(), 65_536, 65_536)],
        };
        for state in [State::Running, State::Ended, State::Cut] {
            let told = Told { asked_ms: 11, state, bytes_left: 12, scanned: scanned.clone() };
            assert_eq!(Told::parse(&told.text()), Some(told));
        }
        for text in ["", "plumb-scan 4\t1\tended\t2\n1\t2\n", "plumb-scan 3\t1\tended\t2\n"] {
            assert_eq!(Told::parse(text), None);
        }
    }
}
