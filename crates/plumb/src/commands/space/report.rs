//! What the commands about pools share: options, names, replies.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Arg, ArgAction};
use miette::Diagnostic;
use plumb_io::exclusive::ExclusiveError;
use plumb_tier::pool::{
    self, DiskStanding, Health, Look, PoolError, RegisteredPool, Registry, RegistryError,
    ScanError, TieringError, Verdict,
};
use plumb_tier::{ChangeError, Config, MediaType, Unreadable, VirtualDisk};
use plumb_units::Bytes;
use serde_json::{Value, json};

use crate::message::Printer;

/// Exit status when a command was refused for what it would destroy or what is in use.
const REFUSED: u8 = 3;

/// What a command has to say.
pub(crate) struct Reply {
    /// For programs.
    pub(crate) json: Value,
    /// For people.
    pub(crate) text: String,
    /// The exit status.
    pub(crate) status: u8,
}

/// A reply, or why there is none.
pub(crate) type Outcome = Result<Reply, Failure>;

/// Why a command failed.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum Failure {
    #[error(transparent)]
    #[diagnostic(transparent)]
    Pool(#[from] PoolError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Vdisk(#[from] VdiskError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Tiering(#[from] TieringError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Scan(#[from] ScanError),
    #[error(transparent)]
    #[diagnostic(transparent)]
    Word(#[from] super::older::WrongWord),
}

impl From<RegistryError> for Failure {
    fn from(error: RegistryError) -> Self {
        Self::Pool(error.into())
    }
}

/// A file for a disk that cannot be made.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
#[error("cannot make {}", path.display())]
#[diagnostic(code(plumb::pool::file), help("name a file in a folder that you may write to"))]
pub(crate) struct FileError {
    pub(crate) path: PathBuf,
    pub(crate) source: std::io::Error,
}

/// A virtual disk that is not what was meant.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum VdiskError {
    #[error("'{name}' names no virtual disk")]
    #[diagnostic(code(plumb::vdisk::name), help("name it POOL/VDISK, e.g. tank/data"))]
    Name { name: String },
    #[error("the name of {what} has {len} characters, and may have {}: '{name}'", pool::NAME_MAX)]
    #[diagnostic(code(plumb::vdisk::name_length), help("nothing was changed; name it shorter"))]
    NameLength {
        /// A pool or a virtual disk.
        what: &'static str,
        len: usize,
        name: String,
    },
    #[error("pool {pool} has no virtual disk named '{name}'")]
    #[diagnostic(code(plumb::vdisk::unknown), help("see `plumb vdisk list {pool}`"))]
    Unknown { pool: String, name: String },
    #[error("virtual disk {name} is detached: no copy of its write cache's log is here")]
    #[diagnostic(
        code(plumb::vdisk::detached),
        help(
            "connect the missing disks; if all are here and the power went while it was written to: \
             plumb space repair {pool} --unread-end {pool}; if the log is lost for good: \
             plumb space repair {pool} --without-cache {name}"
        )
    )]
    Detached { pool: String, name: String },
    #[error("--without-cache names a virtual disk of pool {other}, and the pool is {pool}")]
    #[diagnostic(code(plumb::vdisk::other_pool), help("nothing was changed"))]
    OtherPool { pool: String, other: String },
    #[error("virtual disk {name} has one tier only")]
    #[diagnostic(
        code(plumb::vdisk::one_tier),
        help(
            "nothing can move; `plumb vdisk new` with --ssd-tier and --hdd-tier makes one with two"
        )
    )]
    OneTier { name: String },
    #[error("virtual disk {name} has {}, and a range of {} from {} on ends behind them", Bytes(*bytes), Bytes(*len), Bytes(*start))]
    #[diagnostic(code(plumb::vdisk::range), help("name a range within it"))]
    Range { name: String, start: u64, len: u64, bytes: u64 },
    #[error("virtual disk {name} has no pin {pin}")]
    #[diagnostic(code(plumb::vdisk::no_pin), help("see `plumb tier pins {name}`"))]
    NoPin { name: String, pin: u64 },
    #[error("virtual disk {name} has {found} kept reports: two are compared")]
    #[diagnostic(
        code(plumb::vdisk::few_reports),
        help("every `plumb space optimize {name}` keeps one")
    )]
    FewReports { name: String, found: usize },
    #[error("virtual disk {name} has no report '{report}'")]
    #[diagnostic(
        code(plumb::vdisk::unknown_report),
        help("`plumb space report {name} --list` names them")
    )]
    UnknownReport { name: String, report: String },
    #[error("virtual disk {name} was not optimized yet")]
    #[diagnostic(
        code(plumb::vdisk::no_report),
        help("leave out --last, or run `plumb space optimize {name}`")
    )]
    NoReport { name: String },
    #[error("there is no unit for mode {mode}: it ends by itself")]
    #[diagnostic(
        code(plumb::vdisk::no_unit),
        help("nothing was done: add --mode scheduled or --mode continuous")
    )]
    NoUnit { mode: String },
    #[error("--{option} is of another mode than {mode}")]
    #[diagnostic(
        code(plumb::vdisk::other_mode),
        help("nothing was done: add --mode {modes}, or leave out --{option}")
    )]
    OtherMode { option: String, mode: String, modes: String },
    #[error("pool {pool} is in use: {owner}")]
    #[diagnostic(code(plumb::vdisk::pool_in_use))]
    PoolInUse {
        pool: String,
        /// By whom, in words.
        owner: String,
        #[help]
        remedy: String,
    },
    #[error("nobody optimizes {name}: pool {pool} is not in use by any program")]
    #[diagnostic(
        code(plumb::vdisk::not_optimized),
        help("there is nothing to cancel; nothing was changed")
    )]
    NotOptimized { name: String, pool: String },
    #[error("virtual disk {name} holds {} of data", Bytes(*bytes))]
    #[diagnostic(
        code(plumb::vdisk::holds_data),
        help("nothing was changed. If all of this may be lost for good, add: --destroy {name}")
    )]
    HoldsData { name: String, bytes: u64 },
}

impl Failure {
    /// With everything that is known about it.
    pub(crate) fn diagnostic(&self) -> &dyn Diagnostic {
        match self {
            Self::Pool(error) => error,
            Self::File(error) => error,
            Self::Vdisk(error) => error,
            Self::Tiering(error) => error,
            Self::Scan(error) => error,
            Self::Word(error) => error,
        }
    }

    /// The exit status.
    pub(crate) fn status(&self) -> u8 {
        let refused = matches!(
            self,
            Self::Pool(
                PoolError::CannotPool { .. }
                    | PoolError::Change(
                        ChangeError::LastDisk { .. }
                            | ChangeError::HasDisk { .. }
                            | ChangeError::OnlyCopy { .. }
                            | ChangeError::NoRoom { .. }
                    )
                    | PoolError::HoldsData { .. }
                    | PoolError::Twice { .. }
                    | PoolError::SameDisk { .. }
                    | PoolError::Files { .. }
                    | PoolError::CannotLook { .. }
                    | PoolError::NotInUse { .. }
                    | PoolError::WishRefused { .. }
                    | PoolError::NoAnswer { .. }
                    | PoolError::Disk(
                        ExclusiveError::InUse { .. }
                            | ExclusiveError::Busy { .. }
                            | ExclusiveError::OtherName { .. }
                    )
                    | PoolError::Registry(RegistryError::Exists { .. })
            ) | Self::Vdisk(VdiskError::HoldsData { .. } | VdiskError::PoolInUse { .. })
                | Self::Word(_)
                | Self::Scan(ScanError::NotTaken { .. })
        );
        if refused { REFUSED } else { 1 }
    }
}

/// `--json`.
pub(crate) fn json_option() -> Arg {
    Arg::new("json")
        .long("json")
        .action(ArgAction::SetTrue)
        .help("Print the result as one JSON object")
}

/// What a command says of itself that only looks, but starts the pool for that.
pub(crate) const STARTS: &str = "This starts the pool where no other program has it, and goes on without disks that are away: they are brought up to date \
     when they are back. plumb space status starts nothing.";

/// A pool that there is.
pub(crate) fn pool_argument() -> Arg {
    Arg::new("pool").value_name("POOL").required(true).help("Name of the pool")
}

/// A virtual disk that there is.
pub(crate) fn vdisk_argument() -> Arg {
    Arg::new("vdisk").value_name("POOL/VDISK").required(true).help("The virtual disk")
}

/// A name to give.
pub(crate) fn new_name(id: &'static str, value: &'static str, help: &'static str) -> Arg {
    Arg::new(id).value_name(value).required(true).value_parser(name).help(help)
}

fn name(text: &str) -> Result<String, String> {
    match pool::is_name(text) {
        true => Ok(text.to_owned()),
        false => {
            Err("1 to 64 letters, digits, '.', '_' or '-'; the first a letter or digit".into())
        }
    }
}

/// A size with a unit: 256M, 4G.
pub(crate) fn size(text: &str) -> Result<u64, String> {
    match plumb_units::parse_size(text, 4096) {
        Ok(0) => Err("it must be above 0".to_owned()),
        Ok(bytes) => Ok(bytes),
        Err(error) => Err(error.to_string()),
    }
}

/// A text that clap requires.
pub(crate) fn text(matches: &clap::ArgMatches, name: &str) -> String {
    matches.get_one::<String>(name).expect("clap requires it").clone()
}

/// The pools that this user knows.
pub(crate) fn registry() -> Registry {
    Registry::of_user(rustix::process::geteuid().is_root())
}

/// Prints a reply or says why there is none.
pub(crate) fn print(outcome: Outcome, json: bool) -> ExitCode {
    let failed = outcome.as_ref().err().map_or(0, Failure::status);
    print_or(outcome, json, failed)
}

/// The same, with the exit status of a failure.
pub(crate) fn print_or(outcome: Outcome, json: bool, failed: u8) -> ExitCode {
    match outcome {
        Ok(reply) => {
            let text = if json { format!("{:#}\n", reply.json) } else { reply.text };
            super::super::print_and_exit(&text, reply.status)
        }
        Err(failure) => {
            let printer = if json { Printer::json() } else { Printer::on_stderr() };
            printer.error(failure.diagnostic());
            failed.into()
        }
    }
}

/// Splits `POOL/VDISK`.
pub(crate) fn split(name: &str) -> Result<(String, String), VdiskError> {
    let parts = name.split_once('/').filter(|(_, vdisk)| !vdisk.contains('/'));
    if let Some((pool, vdisk)) = parts {
        let both = [("the pool", pool), ("the virtual disk", vdisk)];
        let length = |text: &str| text.chars().count();
        if let Some((what, text)) = both.into_iter().find(|one| length(one.1) > pool::NAME_MAX) {
            let (len, name) = (length(text), text.to_owned());
            return Err(VdiskError::NameLength { what, len, name });
        }
    }
    match parts {
        Some((pool, vdisk)) if pool::is_name(pool) && pool::is_name(vdisk) => {
            Ok((pool.to_owned(), vdisk.to_owned()))
        }
        _ => Err(VdiskError::Name { name: name.to_owned() }),
    }
}

/// A virtual disk by name, with its place in the configuration.
pub(crate) fn find<'a>(
    config: &'a Config,
    pool: &str,
    name: &str,
) -> Result<(u32, &'a VirtualDisk), VdiskError> {
    let found = (0..).zip(&config.vdisks).find(|(_, vdisk)| vdisk.name == name);
    found.ok_or_else(|| VdiskError::Unknown { pool: pool.to_owned(), name: name.to_owned() })
}

/// What is known of a pool without starting it.
pub(crate) fn pool(registry: &Registry, pool: &RegisteredPool) -> Outcome {
    let look = pool::look(Some(pool.id), &pool.disks)?;
    let health = pool::health(registry, pool, &look);
    let mut reply = describe(&look, &health);
    let models: Vec<&str> = pool.emulated.iter().map(|model| model.name()).collect();
    if !models.is_empty() {
        reply.text.push_str(&format!("  as slow as: {}\n", models.join(", ")));
    }
    reply.json["emulated"] = json!(models);
    let settings = &pool.settings;
    reply.text.push_str(&super::super::pool::settings_in_words(settings));
    reply.json["time_out_s"] = json!(settings.time_out_s);
    reply.json["retire_after_s"] = json!(settings.retire_after_s);
    Ok(reply)
}

/// What `each` has to say of every pool: its replies, and of those of which nothing can be told why. What others have to say
/// is said all the same (HLT-5: of one that cannot be told the health is Unknown).
pub(crate) fn of_all(
    registry: &Registry,
    names: &[String],
    each: impl Fn(&RegisteredPool) -> Outcome,
) -> (Vec<(String, Reply)>, u8) {
    let mut status = 0;
    let mut one = |name: &String| {
        let found = registry.find(name).map_err(Failure::from);
        let reply = found.and_then(|found| each(&found)).unwrap_or_else(|failure| {
            status = super::UNKNOWN;
            untold(name, &failure)
        });
        (name.clone(), reply)
    };
    let replies = names.iter().map(&mut one).collect();
    (replies, status)
}

/// Of a pool of which nothing can be told, why.
fn untold(name: &str, failure: &Failure) -> Reply {
    let diagnostic = failure.diagnostic();
    let mut why = diagnostic.to_string();
    let mut source = std::error::Error::source(diagnostic);
    while let Some(error) = source {
        why.push_str(&format!(": {error}"));
        source = error.source();
    }
    let health = pool::HealthStatus::Unknown.name();
    let help = diagnostic.help().map(|help| help.to_string());
    let mut text = format!("pool {name}: {health}: {why}\n");
    if let Some(help) = &help {
        text.push_str(&format!("  {help}\n"));
    }
    let json = json!({ "name": name, "health": health, "error": why, "action": help });
    Reply { json, text, status: super::UNKNOWN }
}

/// Where a disk is, if that is not where it was when it joined.
fn elsewhere(name: &str, path: Option<&Path>) -> String {
    let moved = path.filter(|path| path.to_str() != Some(name));
    moved.map_or_else(String::new, |path| format!(" (now at {})", path.display()))
}

/// A pool with its disks, virtual disks and health.
pub(crate) fn describe(look: &Look, health: &Health) -> Reply {
    let config = &look.config;
    let worst = health.worst();
    let mut text = format!(
        "pool {} ({} disks): {}\n",
        config.name,
        look.disks.iter().filter(|disk| disk.standing != DiskStanding::Removed).count(),
        in_words(&health.pool)
    );
    let mut disks = Vec::new();
    for ((disk, found), verdict) in config.disks.iter().zip(&look.disks).zip(&health.disks) {
        if found.standing == DiskStanding::Removed {
            continue;
        }
        let slabs = look.geometry.slabs(disk.device_bytes);
        let size = u64::from(slabs) * look.geometry.slab_bytes;
        text.push_str(&format!(
            "  disk {}{}: {}, {} usable: {}\n",
            disk.name,
            elsewhere(&disk.name, found.path.as_deref()),
            media(disk.media),
            Bytes(size),
            in_words(verdict)
        ));
        disks.push(json!({
            "name": disk.name,
            "path": found.path.as_ref().map(|path| path.display().to_string()),
            "media": media(disk.media),
            "bytes": disk.device_bytes,
            "usable_bytes": size,
            "standing": standing(found.standing),
            "health": verdict.status.name(),
            "operational_status": verdict.operational,
            "cause": verdict.cause.as_ref().map(|(cause, _)| cause),
            "action": verdict.cause.as_ref().map(|(_, action)| action),
        }));
    }
    let shown = config.vdisks.iter().filter(|vdisk| !vdisk.is_removed());
    let mut vdisks = Vec::new();
    for (vdisk, health) in shown.zip(health.vdisks.iter().zip(&health.unreadable)) {
        let reply = describe_vdisk(look, vdisk, health);
        text.push_str(&format!("  {}", reply.text));
        vdisks.push(reply.json);
    }
    for (path, why) in &look.strays {
        text.push_str(&format!("  not one of its disks: {}: {why}\n", path.display()));
    }
    let full = pool::full_below(look.disks.iter().filter_map(|disk| disk.path.as_ref()));
    for path in &full {
        text.push_str(&format!(
            "  the file system below {} is full: what is written there fails; make room\n",
            path.display()
        ));
    }
    for path in &look.silent {
        text.push_str(&format!(
            "  {} does not answer: what is there is not known; see the kernel's log\n",
            path.display()
        ));
    }
    let json = json!({
        "name": config.name,
        "id": format!("{:032x}", config.pool),
        "health": worst.name(),
        "operational_status": health.pool.operational,
        "cause": health.pool.cause.as_ref().map(|(cause, _)| cause),
        "action": health.pool.cause.as_ref().map(|(_, action)| action),
        "slab_bytes": look.geometry.slab_bytes,
        "extent_bytes": config.extent_bytes,
        "voters": { "here": look.voters().0, "all": look.voters().1 },
        "full_below": full.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "do_not_answer": look.silent.iter().map(|path| path.display().to_string()).collect::<Vec<_>>(),
        "disks": disks,
        "vdisks": vdisks,
    });
    Reply { json, text, status: 0 }
}

/// Ranges that cannot be read that a text lists.
const RANGES_LISTED: usize = 8;

/// Ranges of a virtual disk that cannot be read, a line each; the first ones.
fn ranges_in_words(unreadable: &Unreadable) -> String {
    let line = |(from, bytes): &(u64, u64)| {
        let last = from.saturating_add(*bytes).saturating_sub(1);
        format!("    bytes {from} to {last}: no copy is here that is up to date\n")
    };
    let mut text: String = unreadable.ranges.iter().take(RANGES_LISTED).map(line).collect();
    let more = unreadable.ranges.len().saturating_sub(RANGES_LISTED);
    if more > 0 {
        text.push_str(&format!("    and {more} other ranges: --json has all\n"));
    }
    text
}

/// A virtual disk, and what is known of its health.
pub(crate) fn describe_vdisk(
    look: &Look,
    vdisk: &VirtualDisk,
    (verdict, unreadable): (&Verdict, &Option<Unreadable>),
) -> Reply {
    let config = &look.config;
    let size = u64::from(vdisk.extents) * u64::from(config.extent_bytes);
    let tiers: Vec<Value> = vdisk
        .tiers
        .iter()
        .map(|tier| {
            let row = look.geometry.slab_bytes * u64::from(vdisk.columns);
            let rows = u64::try_from(tier.rows.len()).unwrap_or(u64::MAX);
            let mut on: Vec<&str> = tier
                .rows
                .iter()
                .flat_map(|row| &row.slabs)
                .map(|slab| config.disks[usize::from(slab.0)].name.as_str())
                .collect();
            on.sort_unstable();
            on.dedup();
            json!({ "media": media(tier.media), "bytes": row.saturating_mul(rows), "disks": on })
        })
        .collect();
    let mut text = format!(
        "vdisk {}/{}: {}, {}, {} column(s), interleave {}, atomic writes of {}: {}\n",
        config.name,
        vdisk.name,
        Bytes(size),
        resiliency(vdisk.copies),
        vdisk.columns,
        Bytes(vdisk.interleave.into()),
        Bytes(look.atomic_unit.into()),
        in_words(verdict)
    );
    text.extend(unreadable.as_ref().map(ranges_in_words));
    let range = |(from, bytes): &(u64, u64)| json!({ "offset_bytes": from, "bytes": bytes });
    let ranges =
        unreadable.as_ref().map(|found| found.ranges.iter().map(range).collect::<Vec<_>>());
    let json = json!({
        "pool": config.name,
        "name": vdisk.name,
        "id": format!("{:032x}", vdisk.id),
        "bytes": size,
        "resiliency": resiliency(vdisk.copies),
        "copies": vdisk.copies,
        "columns": vdisk.columns,
        "interleave_bytes": vdisk.interleave,
        "atomic_unit_bytes": look.atomic_unit,
        "write_cache_bytes": vdisk.cache.as_ref().map_or(0, |cache| cache.bytes),
        "tiers": tiers,
        "unreadable_bytes": unreadable.as_ref().map(|found| found.bytes),
        "unreadable_ranges": ranges,
        "health": verdict.status.name(),
        "operational_status": verdict.operational,
        "cause": verdict.cause.as_ref().map(|(cause, _)| cause),
        "action": verdict.cause.as_ref().map(|(_, action)| action),
    });
    Reply { json, text, status: 0 }
}

/// What a disk is made of.
pub(crate) fn media(media: MediaType) -> &'static str {
    match media {
        MediaType::Ssd => "ssd",
        MediaType::Hdd => "hdd",
    }
}

/// The setting that makes so many copies.
pub(crate) fn resiliency(copies: u8) -> &'static str {
    match copies {
        1 => "simple",
        2 => "mirror2",
        _ => "mirror3",
    }
}

fn standing(standing: DiskStanding) -> &'static str {
    match standing {
        DiskStanding::Present => "present",
        DiskStanding::Away => "away",
        DiskStanding::Missing => "missing",
        DiskStanding::Returning => "returning",
        DiskStanding::Outdated => "outdated",
        DiskStanding::TooSmall => "too-small",
        DiskStanding::ReadOnly => "read-only",
        DiskStanding::Split => "split",
        DiskStanding::Retired => "retired",
        DiskStanding::Leaving => "leaving",
        DiskStanding::Removed => "removed",
    }
}

fn in_words(verdict: &Verdict) -> String {
    struct Shown<'a>(&'a Verdict);
    impl fmt::Display for Shown<'_> {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write!(f, "{}, {}", self.0.status.name(), self.0.operational)?;
            match &self.0.cause {
                Some((cause, action)) => write!(f, " ({cause}: {action})"),
                None => Ok(()),
            }
        }
    }
    Shown(verdict).to_string()
}
