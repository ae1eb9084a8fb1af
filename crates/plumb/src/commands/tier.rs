//! `plumb tier`: the tiers of a virtual disk and what is used of them.

mod pins;

use std::process::ExitCode;

use clap::{ArgMatches, Command};
use plumb_tier::{VirtualDisk, pool};
use plumb_units::Bytes;
use serde_json::json;

use super::space::optimize::Seen;
use super::space::report::{self, Reply};

/// For clap.
pub(crate) fn command() -> Command {
    Command::new("tier")
        .about("The tiers of a virtual disk, and what is pinned to them")
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(
            Command::new("show")
                .about("Show what each tier has and what is used of it")
                .args([report::vdisk_argument(), report::json_option()])
                .after_help(report::STARTS),
        )
        .subcommands(pins::commands())
}

/// Does what the subcommand says.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    match matches.subcommand() {
        Some((name, matches)) => {
            let reply = match name {
                "show" => show(matches),
                "pin" => pins::pin(matches),
                "unpin" => pins::unpin(matches),
                "pins" => pins::pins(matches),
                other => unreachable!("clap let {other} pass"),
            };
            report::print(reply, matches.get_flag("json"))
        }
        subcommand => unreachable!("clap let {subcommand:?} pass"),
    }
}

fn show(matches: &ArgMatches) -> report::Outcome {
    let name = report::text(matches, "vdisk");
    let (pool, vdisk) = report::split(&name)?;
    let found = report::registry().find(&pool)?;
    let look = pool::look(Some(found.id), &found.disks)?;
    let (_, own) = report::find(&look.config, &pool, &vdisk)?;
    if own.tiers.len() > 1 {
        let seen = Seen::open(matches)?;
        let reply = seen.dated(told(&name, own, look.geometry.slab_bytes, seen.used_bytes()));
        seen.end()?;
        return Ok(reply);
    }
    let started = pool::open(&found, Vec::new(), (1, 4096));
    let registry = report::registry();
    let started = pool::note_start(&registry, &found, started)?.with_start_noted(&registry);
    let (nth, own) = report::find(started.engine.config(), &pool, &vdisk)?;
    let reply = told(&name, own, look.geometry.slab_bytes, started.engine.mapped_bytes(nth));
    started.engine.shut_down().map_err(|source| pool::PoolError::Halted { name: pool, source })?;
    Ok(reply)
}

fn told(name: &str, own: &VirtualDisk, slab_bytes: u64, used: [u64; 2]) -> Reply {
    let row = slab_bytes * u64::from(own.columns);
    let (mut text, mut tiers) = (String::new(), Vec::new());
    for (tier, used) in own.tiers.iter().zip(used) {
        let bytes = row.saturating_mul(u64::try_from(tier.rows.len()).unwrap_or(u64::MAX));
        let (media, resiliency) = (report::media(tier.media), report::resiliency(own.copies));
        text.push_str(&format!(
            "tier {name} {media}: {} of {} used, {resiliency}\n",
            Bytes(used),
            Bytes(bytes)
        ));
        tiers.push(json!({
            "media": media,
            "bytes": bytes,
            "used_bytes": used,
            "resiliency": resiliency,
            "columns": own.columns,
        }));
    }
    Reply { json: json!({ "vdisk": name, "tiers": tiers }), text, status: 0 }
}
