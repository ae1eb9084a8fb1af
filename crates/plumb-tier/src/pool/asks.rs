//! What a program that does not have a pool asks of the one that has it: a file beside the list of pools, a line for
//! each wish, that the pool's engine looks for while it runs. What came of it is told by events.

use std::fs::{self, File, OpenOptions};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use plumb_io::FlushQueue;
use plumb_io::exclusive::{self, ExclusiveError};
use plumb_io::system_tree::SystemTree;
use plumb_units::convert::index;

use super::answers::answer_to;
use super::limits::{OptimizeLimits, quoted};
use super::open::{PoolError, fresh_seed};
use super::registry::{RegisteredPool, Registry};
use super::tiering::unix_seconds;
use crate::engine::{Engine, OptimizeSettings};
use crate::events::Event;
use crate::optimizer::{PinId, TierName};

/// The longest file of wishes that is read.
const ASKS_MAX: u64 = 64 << 10;
/// What comes before the limits of an optimization, in which version they are written, and what ends them: a line that was cut
/// off has lost limits.
const WITHIN: &str = "within";
const WITHIN_VERSION: &str = "1";
const WITHIN_END: &str = "end";

/// What may be asked of a pool that is in use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ask {
    /// Do without a disk for now.
    Offline(u16),
    /// The same, if it can be spared; it is answered by its number ([`ask_offline`]).
    OfflineIfSpared(u16, u64),
    /// Take a disk back; it is answered by its number ([`ask_online`]).
    Online(u16, u64),
    /// Tell no more that a disk failed before.
    Clear(u16),
    /// Do not wait for a missing disk any longer: rebuild what it held on others.
    Retire(u16),
    /// Empty a disk and do without it; it is answered by its number ([`ask_to_leave`]).
    Leave(u16, u64),
    /// Let a disk stay that was to be emptied; it is answered by its number ([`ask_to_stay`]).
    Stay(u16, u64),
    /// Verify every copy of every block.
    Scan,
    /// The same, and take what lies where checksums are lost for what should.
    ScanAccepting,
    /// Optimize a virtual disk, with default settings.
    Optimize(u16),
    /// Move the little that continuous mode moves.
    Trickle(u16),
    /// Either of both, within budgets and limits; it is answered ([`ask_within`]).
    Within(u16, Within),
    /// End its optimization: what has moved stays where it is.
    EndOptimization(u16),
    /// The same; it is answered under that number ([`ask_cancel`]).
    Cancel(u16, u64),
    /// Pin a range of a virtual disk, first byte and bytes, to a tier.
    Pin(u16, (u64, u64), TierName),
    /// Remove a pin of a virtual disk.
    Unpin(u16, PinId),
    /// Hand out what reports are told from ([`super::live`]).
    Publish,
    /// Write down what work is left (`pool/jobs.rs`).
    Jobs,
}

/// An optimization within budgets and limits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Within {
    /// By which its answer is known.
    number: u64,
    trickle: bool,
    limits: OptimizeLimits,
}

/// A wish that is refused, whatever the engine: it is not understood as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refused {
    /// Of its answer, if that can be read.
    pub(super) number: Option<u64>,
    pub(super) why: String,
}

impl Ask {
    pub(super) fn line(self) -> String {
        let (word, disk) = match self {
            Self::Offline(disk) => ("offline", disk),
            Self::Clear(disk) => ("clear", disk),
            Self::Retire(disk) => ("retire", disk),
            Self::Scan => ("scan", 0),
            Self::ScanAccepting => ("scan-accepting", 0),
            Self::Optimize(vdisk) => ("optimize", vdisk),
            Self::EndOptimization(vdisk) => ("end-optimization", vdisk),
            Self::Trickle(vdisk) => ("trickle", vdisk),
            Self::Publish => ("publish", 0),
            Self::Jobs => ("jobs", 0),
            Self::OfflineIfSpared(disk, number) => {
                return format!("offline-if-spared {disk} {number}\n");
            }
            Self::Online(disk, number) => return format!("take-back {disk} {number}\n"),
            Self::Leave(disk, number) => return format!("empty {disk} {number}\n"),
            Self::Stay(disk, number) => return format!("stay {disk} {number}\n"),
            Self::Cancel(vdisk, number) => {
                return format!("cancel-optimization {vdisk} {number}\n");
            }
            Self::Pin(vdisk, (start, len), tier) => {
                return format!("pin {vdisk} {start} {len} {}\n", tier.name());
            }
            Self::Unpin(vdisk, pin) => return format!("unpin {vdisk} {}\n", pin.0),
            Self::Within(vdisk, Within { number, trickle, limits }) => {
                let word = if trickle { "trickle" } else { "optimize" };
                let limits = limits.words();
                return format!(
                    "{word} {vdisk} {WITHIN} {WITHIN_VERSION} {number:016x}{limits} {WITHIN_END}\n"
                );
            }
        };
        format!("{word} {disk}\n")
    }

    /// The wish in a line; `None` of what is none.
    fn read(line: &str) -> Option<Result<Self, Refused>> {
        let words: Vec<&str> = line.split(' ').collect();
        match words[..] {
            [word @ ("optimize" | "trickle"), vdisk, WITHIN, ref rest @ ..] => {
                Some(Self::within((word == "trickle", vdisk), rest))
            }
            _ => Self::parse(line).map(Ok),
        }
    }

    /// An optimization with limits, of a virtual disk and what comes behind the word for limits. What is not understood is not
    /// left out: then more would move than was asked for.
    fn within((trickle, vdisk): (bool, &str), rest: &[&str]) -> Result<Self, Refused> {
        let number = rest.get(1).and_then(|number| u64::from_str_radix(number, 16).ok());
        let refused = |why: String| Refused { number, why };
        let version = rest.first().copied().unwrap_or_default();
        if version != WITHIN_VERSION {
            let version = quoted(version);
            return Err(refused(format!(
                "its limits are written in version '{version}', and this program knows version {WITHIN_VERSION}"
            )));
        }
        let (Some(own), [_, _, limits @ .., WITHIN_END]) = (number, rest) else {
            return Err(refused("it was cut off".to_owned()));
        };
        let known = vdisk.parse();
        let vdisk = known
            .map_err(|_| refused(format!("'{}' is no number of a virtual disk", quoted(vdisk))))?;
        let limits = OptimizeLimits::parse(limits).map_err(|why| refused(why.to_string()))?;
        Ok(Self::Within(vdisk, Within { number: own, trickle, limits }))
    }

    /// By which its answer is known, of a wish that wants one.
    pub(super) fn number(self) -> Option<u64> {
        match self {
            Self::Within(_, within) => Some(within.number),
            Self::OfflineIfSpared(_, number)
            | Self::Online(_, number)
            | Self::Leave(_, number)
            | Self::Stay(_, number)
            | Self::Cancel(_, number) => Some(number),
            _ => None,
        }
    }

    /// Why an engine does not do what wants an answer; `Ok` when it does.
    pub(super) fn judge<Q: FlushQueue>(self, engine: &Engine<Q>) -> Result<(), String> {
        match self {
            Self::Within(vdisk, _) if !tiered(engine, vdisk) => {
                Err(format!("virtual disk number {vdisk} is not there, or has one tier only"))
            }
            Self::Within(vdisk, _) if engine.optimizing(vdisk.into()) => {
                Err("an optimization of the virtual disk is under way".to_owned())
            }
            Self::Cancel(vdisk, _) if !engine.optimizing(vdisk.into()) => {
                Err("no optimization of the virtual disk is under way".to_owned())
            }
            Self::Stay(disk, _) if engine.config().is_gone(disk) => {
                Err("that disk is out of the pool by now".to_owned())
            }
            Self::Online(disk, _) => engine.cannot_return(disk).map_or(Ok(()), Err),
            Self::OfflineIfSpared(disk, _) => {
                let Some(own) = engine.config().disks.get(usize::from(disk)) else {
                    return Err(format!("disk number {disk} is not there"));
                };
                let needed = engine.needs(disk).map(|why| format!("disk {} {why}", own.name));
                needed.map_or(Ok(()), Err)
            }
            _ => Ok(()),
        }
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
            ("offline-if-spared", [own]) => {
                return Some(Self::OfflineIfSpared(disk, number(own)?));
            }
            ("take-back", [own]) => return Some(Self::Online(disk, number(own)?)),
            ("empty", [own]) => return Some(Self::Leave(disk, number(own)?)),
            ("stay", [own]) => return Some(Self::Stay(disk, number(own)?)),
            ("cancel-optimization", [own]) => return Some(Self::Cancel(disk, number(own)?)),
            ("unpin", [pin]) => return Some(Self::Unpin(disk, PinId(number(pin)?))),
            (_, []) => {}
            _ => return None,
        }
        Some(match word {
            "offline" => Self::Offline(disk),
            "clear" => Self::Clear(disk),
            "retire" => Self::Retire(disk),
            "scan" => Self::Scan,
            "scan-accepting" => Self::ScanAccepting,
            "optimize" => Self::Optimize(disk),
            "trickle" => Self::Trickle(disk),
            "publish" => Self::Publish,
            "jobs" => Self::Jobs,
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
            Self::Offline(disk) | Self::OfflineIfSpared(disk, _) if known(disk) => {
                engine.take_offline(disk);
            }
            Self::Online(disk, _) if known(disk) => engine.attach(disk),
            Self::Clear(disk) if known(disk) => engine.clear_failures(disk),
            Self::Retire(disk) if known(disk) => engine.retire(disk),
            // A refusal leaves everything as it is; whoever asked reads of it in the events.
            Self::Leave(disk, _) if known(disk) && engine.leave(disk).is_err() => {
                engine.tell(Event::DiskCannotLeave(disk));
            }
            Self::Stay(disk, _) if known(disk) => engine.stay(disk),
            Self::Scan => engine.scan(),
            Self::ScanAccepting => engine.scan_accepting_unverified(),
            Self::Publish => engine.publish(),
            Self::Optimize(vdisk) if tiered(engine, vdisk) => {
                optimize(engine, vdisk, false, &OptimizeLimits::default());
            }
            Self::Trickle(vdisk) if tiered(engine, vdisk) => {
                optimize(engine, vdisk, true, &OptimizeLimits::default());
            }
            Self::Within(vdisk, within) if tiered(engine, vdisk) => {
                optimize(engine, vdisk, within.trickle, &within.limits);
            }
            Self::EndOptimization(vdisk) | Self::Cancel(vdisk, _) if tiered(engine, vdisk) => {
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

/// Begins an optimization within limits.
fn optimize<Q: FlushQueue>(
    engine: &mut Engine<Q>,
    vdisk: u16,
    trickle: bool,
    limits: &OptimizeLimits,
) {
    let settings = engine.settings_within(vdisk.into(), trickle, limits);
    engine.optimize(vdisk.into(), &settings, unix_seconds() as f64);
}

impl<Q: FlushQueue> Engine<Q> {
    /// How an optimization of a virtual disk is to be made that was asked for with limits: once and now, or a trickle through
    /// the day.
    ///
    /// # Panics
    /// When there is no such virtual disk.
    #[must_use]
    pub fn settings_within(
        &self,
        vdisk: u32,
        trickle: bool,
        limits: &OptimizeLimits,
    ) -> OptimizeSettings {
        let config = self.config();
        let extents = (config.extent_bytes.into(), config.vdisks[index(vdisk)].copies);
        let trickle = trickle.then(|| self.continuous_settings(vdisk));
        limits.settings(trickle, extents, self.performance_slots(vdisk))
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
/// How long an answer may take once the wish is taken; it is written before anything is done.
const ANSWERED_WITHIN: Duration = Duration::from_secs(5);

/// Asks something of the program that has the pool, and waits until it has taken the wish.
///
/// # Errors
/// When none has it, or it ended without taking the wish, or that cannot be written down; and of an optimization, and of what is
/// answered, when nobody takes it, which is then taken back.
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
    })?;
    // Another command that works takes none, and what comes at some time is not what was asked for.
    let now = matches!(wish, Ask::Optimize(_) | Ask::Trickle(_)) || wish.number().is_some();
    match now && take_back(registry, &pool.name, wish) {
        true => Err(PoolError::NoAnswer { name: pool.name.clone() }),
        false => Ok(()),
    }
}

/// Asks the program that has the pool for an optimization of a virtual disk within budgets and limits, or for a trickle, and
/// waits for its answer: a program that does not know of limits would leave the wish out without a word.
///
/// # Errors
/// When none has it, it refuses the wish ([`PoolError::WishRefused`]), or does not answer ([`PoolError::NoAnswer`]): then
/// nothing is done.
pub fn ask_within(
    registry: &Registry,
    pool: &RegisteredPool,
    (vdisk, trickle): (u16, bool),
    limits: &OptimizeLimits,
) -> Result<(), PoolError> {
    limits.check()?;
    let number = fresh_seed();
    let wish = Ask::Within(vdisk, Within { number, trickle, limits: *limits });
    ask_answered(registry, pool, (wish, number))
}

/// Asks the program that has the pool to do without a disk for now, and waits for its answer.
///
/// # Errors
/// When none has it, the disk cannot be spared ([`PoolError::WishRefused`]), or it does not answer
/// ([`PoolError::NoAnswer`]): then nothing is done.
pub fn ask_offline(registry: &Registry, pool: &RegisteredPool, disk: u16) -> Result<(), PoolError> {
    let number = fresh_seed();
    ask_answered(registry, pool, (Ask::OfflineIfSpared(disk, number), number))
}

/// Asks the program that has the pool to take a disk back, and waits until it says that it will try.
///
/// # Errors
/// When none has it, or it does not answer ([`PoolError::NoAnswer`]), as a command that works does not: then nothing is done.
pub fn ask_online(registry: &Registry, pool: &RegisteredPool, disk: u16) -> Result<(), PoolError> {
    let number = fresh_seed();
    ask_answered(registry, pool, (Ask::Online(disk, number), number))
}

/// Asks the program that has the pool to empty a disk and do without it, and waits until it says that it will try.
///
/// # Errors
/// As of [`ask_online`].
pub fn ask_to_leave(
    registry: &Registry,
    pool: &RegisteredPool,
    disk: u16,
) -> Result<(), PoolError> {
    let number = fresh_seed();
    ask_answered(registry, pool, (Ask::Leave(disk, number), number))
}

/// Asks the program that has the pool to let a disk stay that it is to empty, and waits for its answer. What has moved stays where
/// it is.
///
/// # Errors
/// As of [`ask_online`], and when the disk is out of the pool by then.
pub fn ask_to_stay(registry: &Registry, pool: &RegisteredPool, disk: u16) -> Result<(), PoolError> {
    let number = fresh_seed();
    ask_answered(registry, pool, (Ask::Stay(disk, number), number))
}

/// Asks the program that has the pool to end the optimization of a virtual disk, and waits for its answer. What has moved stays
/// where it is; the report is kept by that program.
///
/// # Errors
/// When none has it, no optimization is under way ([`PoolError::WishRefused`]), or it does not answer
/// ([`PoolError::NoAnswer`]).
pub fn ask_cancel(registry: &Registry, pool: &RegisteredPool, vdisk: u16) -> Result<(), PoolError> {
    let number = fresh_seed();
    ask_answered(registry, pool, (Ask::Cancel(vdisk, number), number))
}

fn ask_answered(
    registry: &Registry,
    pool: &RegisteredPool,
    (wish, number): (Ask, u64),
) -> Result<(), PoolError> {
    ask(registry, pool, wish)?;
    let name = || pool.name.clone();
    let answer = || match answer_to(registry, &pool.name, number)? {
        Ok(()) => Some(Ok(())),
        Err(why) => Some(Err(PoolError::WishRefused { name: name(), why })),
    };
    let began = Instant::now();
    for turn in 1_u32.. {
        if let Some(answer) = answer() {
            return answer;
        }
        if turn % 25 == 0 && !is_in_use(pool) {
            // It may have answered as the last thing that it did.
            return answer().unwrap_or_else(|| Err(PoolError::NotInUse { name: name() }));
        }
        if began.elapsed() > ANSWERED_WITHIN {
            break;
        }
        std::thread::sleep(LOOK);
    }
    // It may have answered in the last moment.
    answer().unwrap_or_else(|| Err(PoolError::NoAnswer { name: name() }))
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

/// Takes a wish back that nobody took; others stay. Whether it was there.
pub(super) fn take_back(registry: &Registry, pool: &str, wish: Ask) -> bool {
    let (asks, line) = (path(registry, pool), wish.line());
    if !fs::read_to_string(&asks).is_ok_and(|text| text.contains(&line)) {
        return false;
    }
    let text = take_text(&asks);
    let left: String = text.split_inclusive('\n').filter(|other| **other != line).collect();
    if left.is_empty() {
        return !text.is_empty();
    }
    let written = OpenOptions::new().create(true).append(true).open(&asks);
    // Whoever wished for it sees that it did not come true.
    let _ = written.and_then(|mut file| file.write_all(left.as_bytes()));
    left != text
}

/// The wishes in a text, also those that are refused; what is none is left out.
pub(super) fn parse(text: &str) -> Vec<Result<Ask, Refused>> {
    text.lines().filter_map(Ask::read).collect()
}

/// Takes what was asked since the last time.
pub(super) fn take(asks: &Path) -> Vec<Result<Ask, Refused>> {
    parse(&take_text(asks))
}

fn take_text(asks: &Path) -> String {
    let taken = asks.with_extension("asks-taken");
    if std::fs::rename(asks, &taken).is_err() {
        return String::new();
    }
    let mut bytes = Vec::new();
    let read = File::open(&taken).and_then(|file| file.take(ASKS_MAX).read_to_end(&mut bytes));
    // A file that cannot be removed is replaced by the next one.
    let _ = std::fs::remove_file(&taken);
    // One line that is no text costs the others nothing.
    read.map_or_else(|_| String::new(), |_| String::from_utf8_lossy(&bytes).into_owned())
}

/// Takes the wishes if all of them are of that kind; others are left for who can do them.
pub(super) fn take_if_all(asks: &Path, is: impl Fn(&Ask) -> bool) -> Vec<Ask> {
    let own = |asked: &Result<Ask, Refused>| asked.as_ref().is_ok_and(&is);
    let all = |text: String| {
        let found = parse(&text);
        !found.is_empty() && found.iter().all(own)
    };
    match fs::read_to_string(asks).is_ok_and(all) {
        true => take(asks).into_iter().flatten().filter(is).collect(),
        false => Vec::new(),
    }
}

/// Where an engine's wishes are.
pub(super) fn place(registry: &Registry, pool: &str) -> PathBuf {
    path(registry, pool)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn within(trickle: bool) -> Within {
        let limits = OptimizeLimits {
            run_limit_s: Some(60),
            max_moved: Some(8 << 20),
            normal_priority: trickle,
            ..OptimizeLimits::default()
        };
        Within { number: 0xab, trickle, limits }
    }

    /// What limits an optimization is understood as a whole, or the optimization is refused.
    #[test]
    fn limits_that_are_not_understood_refuse_the_wish_by_name() {
        let whole = "optimize 3 within 1 00000000000000ab run-limit=60 max-moved=8388608 end";
        assert_eq!(Ask::Within(3, within(false)).line().trim_end(), whole);
        assert_eq!(Ask::read(whole), Some(Ok(Ask::Within(3, within(false)))));
        let number = Some(0xab);
        for (line, number, wanted) in [
            (whole.replace("run-limit", "colour"), number, "'colour' is no limit that is known"),
            (whole.replace("60", "0"), number, "run-limit cannot be '0': it must be 1 to"),
            (whole.replace(" 1 ", " 2 "), number, "its limits are written in version '2'"),
            (
                whole.replace("optimize 3", "trickle x"),
                number,
                "'x' is no number of a virtual disk",
            ),
            (whole.replace("00000000000000ab", "run"), None, "it was cut off"),
            ("optimize 3 within".to_owned(), None, "its limits are written in version ''"),
        ] {
            let refused = Ask::read(&line).expect("a wish").expect_err(&line);
            assert_eq!(refused.number, number, "{line}");
            assert!(refused.why.starts_with(wanted), "{line}: {}", refused.why);
        }
        // Cut off anywhere behind the word for limits it is no other wish, and moves nothing.
        for len in "optimize 3 within".len()..whole.len() {
            assert!(matches!(Ask::read(&whole[..len]), Some(Err(_))), "{}", &whole[..len]);
        }
        for len in 0.."optimize 3 within".len() {
            let read = Ask::read(&whole[..len]);
            assert!(matches!(read, None | Some(Ok(Ask::Optimize(3)))), "{}", &whole[..len]);
        }
    }

    #[test]
    fn a_wish_is_taken_back_and_others_stay_as_they_are() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(folder.path());
        let asks = place(&registry, "p");
        let own = Ask::Within(3, within(false));
        let others = format!("{}optimize 1 within 9\n{}", Ask::Scan.line(), Ask::Publish.line());
        std::fs::write(&asks, format!("{}{others}", own.line())).expect("written");
        assert!(take_back(&registry, "p", own));
        assert_eq!(std::fs::read_to_string(&asks).expect("a file"), others);
        assert!(!take_back(&registry, "p", own), "it is not there any more");
        assert_eq!(std::fs::read_to_string(&asks).expect("a file"), others);
        std::fs::write(&asks, [b"\xff\xfe\n", Ask::Scan.line().as_bytes()].concat())
            .expect("written");
        assert_eq!(take(&asks), [Ok(Ask::Scan)], "what is no text costs the others nothing");
        std::fs::write(&asks, own.line()).expect("written");
        assert!(take_back(&registry, "p", own) && !asks.exists());
        assert!(!take_back(&registry, "p", own));
    }

    #[test]
    fn a_wish_that_nobody_takes_is_told() {
        let folder = tempfile::tempdir().expect("a folder");
        let asks = folder.path().join("p.asks");
        let line = Ask::Optimize(1).line();
        std::fs::write(&asks, &line).expect("written");
        assert!(!wait_until_taken(&asks, &line, || false), "it is still there");
        let reads = || {
            assert_eq!(take(&asks), [Ok(Ask::Optimize(1))]);
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
            Ask::OfflineIfSpared(3, u64::MAX),
            Ask::Online(4, 9),
            Ask::Clear(7),
            Ask::Retire(5),
            Ask::Leave(6, 0),
            Ask::Stay(6, 1),
            Ask::Scan,
            Ask::ScanAccepting,
            Ask::Optimize(1),
            Ask::EndOptimization(1),
            Ask::Cancel(1, u64::MAX),
            Ask::Trickle(0),
            Ask::Pin(2, (4096, u64::MAX), TierName::Capacity),
            Ask::Pin(0, (0, 1), TierName::Performance),
            Ask::Unpin(2, PinId(7)),
            Ask::Publish,
            Ask::Jobs,
            Ask::Within(3, within(false)),
            Ask::Within(u16::MAX, within(true)),
        ];
        let lines: String = all.iter().map(|ask| ask.line()).collect();
        std::fs::write(
            &asks,
            format!(
                "{lines}offline\noffline x\noffline-if-spared 3\nfly 3\nscan 0 1\npin 0 0 1\npin 0 0 1 tape\nunpin 0\n"
            ),
        )
        .expect("written");
        let publish = |ask: &Ask| *ask == Ask::Publish;
        assert_eq!(take_if_all(&asks, publish), [], "others are asked, too");
        assert_eq!(take(&asks), all.map(Ok));
        assert_eq!(take(&asks), []);
        std::fs::write(&asks, Ask::Publish.line().repeat(2)).expect("written");
        assert_eq!(take_if_all(&asks, publish), [Ask::Publish; 2]);
        assert_eq!(take_if_all(&asks, publish), []);
    }
}
