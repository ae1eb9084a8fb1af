//! Disks that a pool went on without: what is lost with the others, and who has it.

use std::path::PathBuf;

use plumb_tier::DiskConfig;
use plumb_tier::pool::{self, DiskStanding, Findings, PoolError, RegisteredPool};

use super::report;
use super::told;

/// Words that are asked for where disks that are here are not what the pool was last.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub(crate) enum WrongWord {
    /// Another pool's name.
    #[error("{option} names {other}, and the pool is {name}")]
    #[diagnostic(code(plumb::other_name), help("nothing was changed; say: {option} {name}"))]
    Name { option: &'static str, name: String, other: String },
    /// It went on without the disks that are here, or nobody knows.
    #[error(
        "{why}: what was written since is lost, and blocks read as zeros, or as what they held before"
    )]
    #[diagnostic(
        code(plumb::older_disks),
        help(
            "nothing was changed. Connect {missing}; if they are lost for good and all of this may be: \
             plumb space repair {name} --without-quorum {name} --accept-older"
        )
    )]
    Older {
        name: String,
        why: String,
        /// What would have it.
        missing: String,
    },
    /// It went on without the disks that are here, and none of them is known to have a current copy of anything.
    #[error("{why}: no copy that is here is known to be current")]
    #[diagnostic(
        code(plumb::older_to_read),
        help(
            "nothing was changed. Connect {missing}; to read what is here all the same, in which blocks that were written since are \
             zeros or what they held before: plumb run --accept-older; if the others are lost for good: \
             plumb space repair {name} --without-quorum {name}"
        )
    )]
    OlderToRead {
        name: String,
        why: String,
        /// What would have it.
        missing: String,
        /// Why it is not started to be written to.
        source: Box<PoolError>,
    },
}

/// How disks that are here stand to what this machine knows of their pool.
struct Known {
    age: pool::Age,
    /// Those that are not here, by name: those that would have what was written last, if that is known.
    missing: String,
}

/// Of a pool's disks, but for those of which a start could not make use.
fn known(pool: &RegisteredPool, absent: &[(PathBuf, String)]) -> Result<Known, PoolError> {
    let is_used = |path: &&PathBuf| absent.iter().all(|one| one.0 != **path);
    let paths: Vec<PathBuf> = pool.disks.iter().filter(is_used).cloned().collect();
    let look = pool::look(Some(pool.id), &paths)?;
    let findings = Findings::of(&report::registry(), &pool.name);
    let away = look.config.disks.iter().zip(&look.disks);
    let away = away.filter(|own| own.1.path.is_none() && own.1.standing != DiskStanding::Removed);
    let away: Vec<_> = away.map(|own| own.0).collect();
    let has = |disk: &&&DiskConfig| findings.holders().contains(&disk.id);
    let names = |disks: Vec<&DiskConfig>| {
        let names: Vec<&str> = disks.into_iter().map(|disk| disk.name.as_str()).collect();
        names.join(", ")
    };
    let holders: Vec<&DiskConfig> = away.iter().filter(has).copied().collect();
    let missing = match holders.is_empty() {
        true if away.is_empty() => "the disks that are missing".to_owned(),
        true => names(away),
        false => format!("{}, which had the journal last", names(holders)),
    };
    Ok(Known { age: findings.age_of(look.config.generation), missing })
}

fn went_on(name: &str, unix_ms: u64) -> String {
    format!(
        "pool {name} went on without the disks that are here, on {} at the latest",
        told::when(unix_ms)
    )
}

/// Refuses disks that are older than the pool was when this machine used it last, or of which it knows nothing.
///
/// # Errors
/// Then, and when they cannot be looked at.
pub(super) fn not_older(pool: &RegisteredPool) -> Result<(), report::Failure> {
    let Known { age, missing } = known(pool, &[])?;
    let name = pool.name.clone();
    let why = match age {
        pool::Age::Newest => return Ok(()),
        pool::Age::Older(unix_ms) => went_on(&name, unix_ms),
        pool::Age::Unknown => format!(
            "this machine never saw pool {name} in use: nobody can tell whether it went on without the disks that are here"
        ),
    };
    Err(WrongWord::Older { name, why, missing }.into())
}

/// Since when a pool that was started to be read only, for lack of a quorum, had gone on without the disks that it is read from, if
/// it had; refused unless `accepted`. What the start decided in memory is not looked at.
///
/// # Errors
/// Then, and when they cannot be looked at.
pub(crate) fn older_to_read(
    pool: &RegisteredPool,
    (why_not, absent): (PoolError, &[(PathBuf, String)]),
    accepted: bool,
) -> Result<Option<u64>, report::Failure> {
    let Known { age, missing } = known(pool, absent)?;
    match age {
        pool::Age::Older(unix_ms) if accepted => Ok(Some(unix_ms)),
        pool::Age::Older(unix_ms) => {
            let name = pool.name.clone();
            let why = went_on(&name, unix_ms);
            let refused = WrongWord::OlderToRead { name, why, missing, source: Box::new(why_not) };
            pool::note_refused(&report::registry(), pool, &refused.to_string());
            Err(refused.into())
        }
        pool::Age::Newest | pool::Age::Unknown => Ok(None),
    }
}
