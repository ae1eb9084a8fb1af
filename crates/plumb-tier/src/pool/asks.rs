//! What a program that does not have a pool asks of the one that has it: a file beside the list of pools, a line for
//! each wish, that the pool's engine looks for while it runs. What came of it is told by events.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_io::FlushQueue;
use plumb_io::exclusive::{self, ExclusiveError};
use plumb_io::system_tree::SystemTree;

use super::open::PoolError;
use super::registry::{RegisteredPool, Registry};
use super::tiering::unix_seconds;
use crate::engine::{Engine, OptimizeSettings};
use crate::events::Event;
use crate::optimizer::{PinId, TierName};

/// The longest file of wishes that is read.
const ASKS_MAX: u64 = 64 << 10;

/// What may be asked of a pool that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Do without a disk for now.
    Offline(u16),
    /// Take a disk back.
    Online(u16),
    /// Tell no more that a disk failed before.
    Clear(u16),
    /// Do not wait for a missing disk any longer: rebuild what it held on others.
    Retire(u16),
    /// Empty a disk and do without it.
    Leave(u16),
    /// Verify every copy of every block.
    Scan,
    /// The same, and take what lies where checksums are lost for what should.
    ScanAccepting,
    /// Optimize a virtual disk, with default settings.
    Optimize(u16),
    /// Move the little that continuous mode moves.
    Trickle(u16),
    /// End its optimization: what has moved stays where it is.
    EndOptimization(u16),
    /// Pin a range of a virtual disk, first byte and bytes, to a tier.
    Pin(u16, (u64, u64), TierName),
    /// Remove a pin of a virtual disk.
    Unpin(u16, PinId),
    /// Hand out what reports are told from ([`super::live`]).
    Publish,
}

impl Ask {
    fn line(self) -> String {
        let (word, disk) = match self {
            Self::Offline(disk) => ("offline", disk),
            Self::Online(disk) => ("online", disk),
            Self::Clear(disk) => ("clear", disk),
            Self::Retire(disk) => ("retire", disk),
            Self::Leave(disk) => ("leave", disk),
            Self::Scan => ("scan", 0),
            Self::ScanAccepting => ("scan-accepting", 0),
            Self::Optimize(vdisk) => ("optimize", vdisk),
            Self::EndOptimization(vdisk) => ("end-optimization", vdisk),
            Self::Trickle(vdisk) => ("trickle", vdisk),
            Self::Publish => ("publish", 0),
            Self::Pin(vdisk, (start, len), tier) => {
                return format!("pin {vdisk} {start} {len} {}\n", tier.name());
            }
            Self::Unpin(vdisk, pin) => return format!("unpin {vdisk} {}\n", pin.0),
        };
        format!("{word} {disk}\n")
    }

    fn parse(line: &str) -> Option<Self> {
        let mut words = line.split(' ');
        let (word, disk) = (words.next()?, words.next()?.parse().ok()?);
        let rest: Vec<&str> = words.collect();
        let number = |text: &str| text.parse::<u64>().ok();
        match (word, rest.as_slice()) {
            ("pin", [start, len, tier]) => {
                let all = [TierName::Performance, TierName::Capacity];
                let tier = all.into_iter().find(|known| known.name() == *tier)?;
                return Some(Self::Pin(disk, (number(start)?, number(len)?), tier));
            }
            ("unpin", [pin]) => return Some(Self::Unpin(disk, PinId(number(pin)?))),
            (_, []) => {}
            _ => return None,
        }
        Some(match word {
            "offline" => Self::Offline(disk),
            "online" => Self::Online(disk),
            "clear" => Self::Clear(disk),
            "retire" => Self::Retire(disk),
            "leave" => Self::Leave(disk),
            "scan" => Self::Scan,
            "scan-accepting" => Self::ScanAccepting,
            "optimize" => Self::Optimize(disk),
            "trickle" => Self::Trickle(disk),
            "publish" => Self::Publish,
            "end-optimization" => Self::EndOptimization(disk),
            _ => return None,
        })
    }

    /// Hands it to an engine. What cannot be is told by an event, or refused by the engine without a word: whoever
    /// asked has looked before.
    pub fn apply<Q: FlushQueue>(self, engine: &mut Engine<Q>) {
        let all = engine.config().disks.len();
        let known = |disk: u16| usize::from(disk) < all;
        match self {
            Self::Offline(disk) if known(disk) => engine.take_offline(disk),
            Self::Online(disk) if known(disk) => engine.attach(disk),
            Self::Clear(disk) if known(disk) => engine.clear_failures(disk),
            Self::Retire(disk) if known(disk) => engine.retire(disk),
            // A refusal leaves everything as it is; whoever asked reads of it in the events.
            Self::Leave(disk) if known(disk) && engine.leave(disk).is_err() => {
                engine.tell(Event::DiskCannotLeave(disk));
            }
            Self::Scan => engine.scan(),
            Self::ScanAccepting => engine.scan_accepting_unverified(),
            Self::Publish => engine.publish(),
            Self::Optimize(vdisk) if tiered(engine, vdisk) => {
                let settings = OptimizeSettings::default();
                engine.optimize(vdisk.into(), &settings, unix_seconds() as f64);
            }
            Self::Trickle(vdisk) if tiered(engine, vdisk) => {
                let settings = engine.continuous_settings(vdisk.into());
                engine.optimize(vdisk.into(), &settings, unix_seconds() as f64);
            }
            Self::EndOptimization(vdisk) if tiered(engine, vdisk) => {
                engine.cancel_optimization(vdisk.into());
            }
            Self::Pin(vdisk, (start, len), tier) if tiered(engine, vdisk) => {
                let inside =
                    start.checked_add(len).is_some_and(|end| end <= engine.size(vdisk.into()));
                if inside {
                    // A range that is none is refused: whoever asked sees no pin.
                    let _ = engine.tiering_mut(vdisk.into()).pins.set(start, len, tier);
                }
            }
            Self::Unpin(vdisk, pin) if tiered(engine, vdisk) => {
                engine.tiering_mut(vdisk.into()).pins.clear(pin);
            }
            _ => {}
        }
    }
}

/// Whether a virtual disk is there and has two tiers.
fn tiered<Q: FlushQueue>(engine: &Engine<Q>, vdisk: u16) -> bool {
    let own = engine.config().vdisks.get(usize::from(vdisk));
    own.is_some_and(|own| !own.is_removed() && own.tiers.len() > 1)
}

fn path(registry: &Registry, pool: &str) -> PathBuf {
    registry.folder().join(format!("{pool}.asks"))
}

/// Whether some program has the pool now.
#[must_use]
pub fn is_in_use(pool: &RegisteredPool) -> bool {
    owner(pool).is_some()
}

/// Which program has the pool now, in words.
#[must_use]
pub fn owner(pool: &RegisteredPool) -> Option<String> {
    let tree = SystemTree::default();
    pool.disks.iter().find_map(|path| match exclusive::open(path, Duration::ZERO, &tree) {
        Err(ExclusiveError::InUse { owner, .. }) => Some(owner),
        Err(ExclusiveError::Busy { .. }) => Some("another program".to_owned()),
        _ => None,
    })
}

/// How long a program that has a pool may take to look for wishes; it does ten times a second.
const TAKEN_WITHIN: Duration = Duration::from_secs(10);
/// How often to look whether it has.
const LOOK: Duration = Duration::from_millis(20);

/// Asks something of the program that has the pool, and waits until it has taken the wish.
///
/// # Errors
/// When none has it, or it ended without taking the wish, or that cannot be written down.
pub fn ask(registry: &Registry, pool: &RegisteredPool, wish: Ask) -> Result<(), PoolError> {
    if !is_in_use(pool) {
        return Err(PoolError::NotInUse { name: pool.name.clone() });
    }
    let path = path(registry, &pool.name);
    let written = OpenOptions::new().create(true).append(true).open(&path);
    // One write: lines of two programs never mix.
    let line = wish.line();
    let written = written.and_then(|mut file| file.write_all(line.as_bytes()));
    written.map_err(|source| PoolError::Write { path: path.clone(), source })?;
    wait_until_taken(&path, &line, || is_in_use(pool)).then_some(()).ok_or_else(|| {
        // Whoever uses it next was not asked.
        forget(registry, &pool.name);
        PoolError::NotInUse { name: pool.name.clone() }
    })
}

/// Waits until a line is not in the file of wishes any more; `false` when nobody is there to take it. A program that is
/// there and slow takes it later.
fn wait_until_taken(path: &Path, line: &str, in_use: impl Fn() -> bool) -> bool {
    let began = Instant::now();
    let waits = || fs::read_to_string(path).is_ok_and(|text| text.contains(line));
    for turn in 1_u32.. {
        if !waits() {
            return true;
        }
        // Looking at the disks is no small matter; it is done now and then.
        if turn % 25 == 0 && !in_use() {
            // It may have taken it as the last thing that it did.
            return !waits();
        }
        if began.elapsed() > TAKEN_WITHIN {
            return true;
        }
        std::thread::sleep(LOOK);
    }
    true
}

/// Wishes that nobody took belong to a use that is over.
pub(super) fn forget(registry: &Registry, pool: &str) {
    // There are none, mostly.
    let _ = std::fs::remove_file(path(registry, pool));
}

/// Takes a wish back that nobody took; others stay.
pub(super) fn take_back(registry: &Registry, pool: &str, wish: Ask) {
    let asks = path(registry, pool);
    let left: Vec<Ask> = take(&asks).into_iter().filter(|other| *other != wish).collect();
    if left.is_empty() {
        return;
    }
    let lines: String = left.into_iter().map(Ask::line).collect();
    let written = OpenOptions::new().create(true).append(true).open(&asks);
    // Whoever wished for it sees that it did not come true.
    let _ = written.and_then(|mut file| file.write_all(lines.as_bytes()));
}

/// The wishes in a text; what is none is left out.
pub(super) fn parse(text: &str) -> Vec<Ask> {
    text.lines().filter_map(Ask::parse).collect()
}

/// Takes what was asked since the last time.
pub(super) fn take(asks: &PathBuf) -> Vec<Ask> {
    let taken = asks.with_extension("asks-taken");
    if std::fs::rename(asks, &taken).is_err() {
        return Vec::new();
    }
    let mut text = String::new();
    let read = File::open(&taken).and_then(|file| file.take(ASKS_MAX).read_to_string(&mut text));
    // A file that cannot be removed is replaced by the next one.
    let _ = std::fs::remove_file(&taken);
    read.map_or_else(|_| Vec::new(), |_| parse(&text))
}

/// Takes the wishes if all of them are this one; others are left for who can do them.
pub(super) fn take_if_all(asks: &PathBuf, wish: Ask) -> bool {
    let all = |text: String| {
        let found = parse(&text);
        !found.is_empty() && found.iter().all(|other| *other == wish)
    };
    fs::read_to_string(asks).is_ok_and(all) && take(asks).contains(&wish)
}

/// Where an engine's wishes are.
pub(super) fn place(registry: &Registry, pool: &str) -> PathBuf {
    path(registry, pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_wish_that_nobody_takes_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let asks = folder.path().join("p.asks");
        let line = Ask::Optimize(1).line();
        std::fs::write(&asks, &line).expect("written");
        assert!(!wait_until_taken(&asks, &line, || false), "it is still there");
        let reads = || {
            assert_eq!(take(&asks), [Ask::Optimize(1)]);
            false
        };
        assert!(wait_until_taken(&asks, &line, reads), "taken as the last thing");
        assert!(wait_until_taken(&asks, &line, || false), "taken before");
        std::fs::write(&asks, Ask::Scan.line()).expect("written");
        assert!(wait_until_taken(&asks, &line, || false), "another one's");
    }

    #[test]
    fn wishes_are_taken_once_and_what_is_none_is_left_out() {
        let folder = tempfile::tempdir().expect("a folder");
        let asks = folder.path().join("p.asks");
        assert_eq!(take(&asks), []);
        let all = [
            Ask::Offline(3),
            Ask::Online(4),
            Ask::Clear(7),
            Ask::Retire(5),
            Ask::Leave(6),
            Ask::Scan,
            Ask::ScanAccepting,
            Ask::Optimize(1),
            Ask::EndOptimization(1),
            Ask::Trickle(0),
            Ask::Pin(2, (4096, u64::MAX), TierName::Capacity),
            Ask::Pin(0, (0, 1), TierName::Performance),
            Ask::Unpin(2, PinId(7)),
            Ask::Publish,
        ];
        let lines: String = all.iter().map(|ask| ask.line()).collect();
        std::fs::write(
            &asks,
            format!(
                "{lines}offline\noffline x\nfly 3\nscan 0 1\npin 0 0 1\npin 0 0 1 tape\nunpin 0\n"
            ),
        )
        .expect("written");
        assert!(!take_if_all(&asks, Ask::Publish), "others are asked, too");
        assert_eq!(take(&asks), all);
        assert_eq!(take(&asks), []);
        std::fs::write(&asks, Ask::Publish.line().repeat(2)).expect("written");
        assert!(take_if_all(&asks, Ask::Publish) && !take_if_all(&asks, Ask::Publish));
    }
}
