//! `plumb pool remove-disk|replace-disk`: disks leave a pool.

use clap::{Arg, ArgAction, ArgMatches, Command};
use plumb_tier::pool::{self, Leaving, RegisteredPool, Removal};
use serde_json::json;
use std::path::{Path, PathBuf};

use super::super::space::report::{self, Reply};
use super::super::space::upkeep;

/// For clap.
pub(super) fn remove_command() -> Command {
    let flag = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).action(ArgAction::SetTrue).help(help)
    };
    Command::new("remove-disk")
        .about("Empty a disk and take it out of a pool")
        .long_about(
            "Take a disk out of a pool. While it works, what it holds moves to others first, and every copy stays \
             where it can be read until the other disk has it: nothing is less redundant meanwhile. A disk that is \
             not here is given up, and what it held is made anew from other copies. Refused when the others have no \
             room, or when nobody else has what is on it.",
        )
        .args([
            report::pool_argument(),
            super::disk("disk").value_name("DISK").required(true).help("Which: where it is, or its name in the pool"),
            flag("later", "Only remember it: it is emptied whenever the pool is started, under load too"),
            flag("cancel", "Let it stay after all, with what it has").conflicts_with("later"),
            report::json_option(),
        ])
        .after_help(
            "For example:\n  plumb pool remove-disk tank /dev/disk/by-id/nvme-1\n\n\
             Exit status: 0 when it is out, or was asked to go later or to stay; 5 when a part of it is left.",
        )
}

/// For clap.
pub(super) fn replace_command() -> Command {
    Command::new("replace-disk")
        .about("Bring a new disk into a pool in the place of another")
        .long_about(
            "Bring a blank disk into a pool, then take another one out: the same as add-disk and remove-disk. The old \
             one may work, or be gone. Where what it holds would have no room, nothing is done.",
        )
        .args([
            report::pool_argument(),
            super::disk("old").value_name("OLD").required(true).help("The disk to take out"),
            super::disk("new").value_name("NEW").required(true).help("A block device or a file"),
            super::media(),
            super::destroy("What NEW holds may be lost: its path again"),
            report::json_option(),
        ])
        .after_help(
            "For example:\n  plumb pool replace-disk tank /dev/disk/by-id/nvme-1 /dev/disk/by-id/nvme-9",
        )
}

/// `remove-disk`.
pub(super) fn remove(matches: &ArgMatches) -> report::Outcome {
    let found = report::registry().find(&report::text(matches, "pool"))?;
    let how = match (matches.get_flag("later"), matches.get_flag("cancel")) {
        (true, _) => Leaving::Later,
        (_, true) => Leaving::Never,
        _ => Leaving::Now,
    };
    take_out(&found, path(matches, "disk"), how)
}

/// `replace-disk`.
pub(super) fn replace(matches: &ArgMatches) -> report::Outcome {
    let registry = report::registry();
    let found = registry.find(&report::text(matches, "pool"))?;
    let disks = (path(matches, "old"), &super::wish(matches, "new"));
    let removal = pool::replace_disk(&registry, &found, disks, &mut upkeep::tell_progress())?;
    Ok(told(&found, &removal, Leaving::Now))
}

fn path<'a>(matches: &'a ArgMatches, name: &str) -> &'a Path {
    matches.get_one::<PathBuf>(name).expect("clap requires it")
}

fn take_out(found: &RegisteredPool, disk: &Path, how: Leaving) -> report::Outcome {
    if how != Leaving::Now && pool::is_in_use(found) {
        let look = pool::look(Some(found.id), &found.disks)?;
        let ordinal = pool::find_disk(&look, disk)?;
        let (registry, pool) = (report::registry(), &found.name);
        let name = &look.config.disks[usize::from(ordinal)].name;
        let (asked, text) = if how == Leaving::Never {
            pool::ask_to_stay(&registry, found, ordinal)?;
            (
                "stay",
                format!("the program that has pool {pool} was asked to let disk {name} stay\n"),
            )
        } else {
            pool::ask_to_leave(&registry, found, ordinal)?;
            let text = format!(
                "the program that has pool {pool} was asked to empty disk {name}; plumb space events {pool} says what \
                 came of it\n"
            );
            ("leave", text)
        };
        let json = json!({ "pool": pool, "disk": name, "asked": asked });
        return Ok(Reply { json, text, status: 0 });
    }
    let removal =
        pool::remove_disk(&report::registry(), found, disk, how, &mut upkeep::tell_progress())?;
    Ok(told(found, &removal, how))
}

/// Exit status when a part of the work is left.
const PARTIAL: u8 = 5;

fn told(found: &RegisteredPool, removal: &Removal, how: Leaving) -> Reply {
    let (pool, name) = (&found.name, &removal.name);
    let mut text = match (how, removal.is_gone) {
        (Leaving::Never, _) => format!("disk {name} stays in pool {pool}\n"),
        (_, true) => {
            let blank = match removal.is_blank {
                true => "can be used for anything",
                false => "was not reached, and still says that it belongs to it",
            };
            let seconds = removal.elapsed.as_secs_f64();
            format!(
                "disk {name} is out of pool {pool} and {blank}; {} extents moved, {seconds:.1} s\n",
                removal.extents
            )
        }
        (Leaving::Later, false) => format!(
            "disk {name} leaves pool {pool}: it is emptied whenever the pool is started, or by \
             plumb space job {pool} --wait\n"
        ),
        (Leaving::Now, false) => format!(
            "disk {name} is not empty yet: nothing more of it can be moved now. See plumb space status {pool}\n"
        ),
    };
    text.push_str(&upkeep::jobs_in_words(&removal.jobs));
    let json = json!({
        "pool": pool,
        "disk": name,
        "removed": removal.is_gone,
        "blank": removal.is_blank,
        "extents_moved": removal.extents,
        "elapsed_s": removal.elapsed.as_secs_f64(),
        "jobs": upkeep::jobs_as_json(&removal.jobs),
    });
    let status = if how == Leaving::Now && !removal.is_gone { PARTIAL } else { 0 };
    Reply { json, text, status }
}
