//! `plumb vdisk`: virtual disks.

use std::process::ExitCode;

use clap::{Arg, ArgAction, ArgMatches, Command, value_parser};
use plumb_tier::NewVirtualDisk;
use plumb_tier::pool::{self, DiskStanding, Look, PoolError};
use plumb_tier::{ChangeError, CreateError, MediaType};
use plumb_units::Bytes;
use serde_json::{Value, json};

use super::space::report::{self, Reply, VdiskError};

/// For clap.
pub(crate) fn command() -> Command {
    Command::new("vdisk")
        .about("Virtual disks in a pool")
        .subcommand_required(true)
        .disable_help_subcommand(true)
        .subcommand(new())
        .subcommand(
            Command::new("list")
                .about("List virtual disks")
                .args([report::pool_argument().required(false), report::json_option()])
                .after_help("Exit status without POOL: 0, or 3 when nothing can be told of one of the pools."),
        )
        .subcommand(
            Command::new("show")
                .about("Show a virtual disk; starts and changes nothing")
                .args([report::vdisk_argument(), report::json_option()]),
        )
        .subcommand(
            Command::new("rm")
                .alias("remove")
                .about("Remove a virtual disk and all that it holds")
                .args([
                    report::vdisk_argument(),
                    Arg::new("destroy")
                        .long("destroy")
                        .value_name("POOL/VDISK")
                        .action(ArgAction::Append)
                        .help("What it holds may be lost: its name again"),
                    report::json_option(),
                ])
                .after_help("For example:\n  plumb vdisk rm tank/data --destroy tank/data"),
        )
}

fn new() -> Command {
    let size = |name: &'static str, help: &'static str| {
        Arg::new(name).long(name).value_name("SIZE").value_parser(report::size).help(help)
    };
    Command::new("new")
        .about("Make a virtual disk")
        .args([
            report::vdisk_argument(),
            size("size", "Its size, on solid-state disks if the pool has any"),
            size("ssd-tier", "Space on solid-state disks"),
            size("hdd-tier", "Space on rotating disks"),
            Arg::new("write-cache")
                .long("write-cache")
                .value_name("SIZE")
                .value_parser(cache_size)
                .help(
                    "A log on solid-state disks for small writes to the tier on rotating ones, 0 for none \
                     [default: 1G, a quarter of the solid-state tier at most; none with fewer solid-state disks than \
                     copies, or without room]",
                ),
            Arg::new("resiliency")
                .long("resiliency")
                .value_name("SETTING")
                .value_parser(["simple", "mirror2", "mirror3"])
                .help(
                    "Copies of everything: 1, 2 or 3 [default: mirror2 if there are disks for it]",
                ),
            Arg::new("columns")
                .long("columns")
                .value_name("N")
                .value_parser(value_parser!(u8).range(1..=32))
                .help("Disks that a stripe spans [default: as many as there are, 8 at most]"),
            Arg::new("interleave")
                .long("interleave")
                .value_name("SIZE")
                .value_parser(report::size)
                .default_value("256K")
                .help("Bytes on one disk before the stripe goes on to the next"),
            report::json_option(),
        ])
        .after_help(
            "For example:\n  plumb vdisk new tank/data --size 4G --resiliency mirror2\n  \
             plumb vdisk new tank/fast --ssd-tier 2G --resiliency simple --columns 2\n  \
             plumb vdisk new tank/both --ssd-tier 4G --hdd-tier 16G --write-cache 256M",
        )
}

/// Does what the subcommand says.
pub(crate) fn run(matches: &ArgMatches) -> ExitCode {
    let (name, matches) = matches.subcommand().expect("clap requires one");
    let reply = match name {
        "new" => make(matches),
        "list" => list(matches),
        "show" => show(&report::text(matches, "vdisk")),
        "rm" => remove(matches),
        other => unreachable!("clap let {other} pass"),
    };
    report::print(reply, matches.get_flag("json"))
}

fn make(matches: &ArgMatches) -> report::Outcome {
    let name = report::text(matches, "vdisk");
    let (pool, vdisk) = report::split(&name)?;
    let found = report::registry().find(&pool)?;
    let look = pool::look(Some(found.id), &found.disks)?;
    let mut wanted = wanted(matches, vdisk, &look)?;
    let add = |wanted: &NewVirtualDisk| {
        let started = pool::open(&found, Vec::new(), (1, 4096));
        let registry = report::registry();
        let started = pool::note_start(&registry, &found, started)?.with_start_noted(&registry);
        started.engine.add_virtual_disk(wanted).map(|_| ()).map_err(PoolError::from)
    };
    let asked = matches.get_one::<u64>("write-cache").is_some();
    let mut without = !asked && wanted.cache_bytes == 0 && !wanted.tier_bytes.contains(&0);
    match add(&wanted) {
        Err(PoolError::Change(ChangeError::Layout(CreateError::Cache { .. }))) if !asked => {
            wanted.cache_bytes = 0;
            without = true;
            add(&wanted)?;
        }
        other => other?,
    }
    let mut reply = show(&name)?;
    if without {
        let why =
            "no write-back cache: there are fewer solid-state disks with room for it than copies";
        reply.text.push_str(&format!("warning: {why}\n"));
        reply.json["warning"] = why.into();
    }
    reply.text.push_str(&rounded(&wanted, &reply.json, look.geometry.slab_bytes));
    Ok(reply)
}

/// What is said of tiers that became larger than was asked: they are made of whole slabs, one on the disk of each column.
fn rounded(wanted: &NewVirtualDisk, made: &Value, slab_bytes: u64) -> String {
    let tiers = made["tiers"].as_array().into_iter().flatten();
    let asked = wanted.tier_bytes.into_iter().filter(|bytes| *bytes > 0);
    let larger = tiers.zip(asked).filter_map(|(tier, asked)| {
        let bytes = tier["bytes"].as_u64().filter(|bytes| *bytes > asked)?;
        let (media, columns) = (tier["media"].as_str()?, made["columns"].as_u64()?);
        let (bytes, asked, slab) = (Bytes(bytes), Bytes(asked), Bytes(slab_bytes));
        Some(format!(
            "note: its {media} tier has {bytes} where {asked} were asked for: whole slabs of {slab} in {columns} \
             column(s)\n"
        ))
    });
    larger.collect()
}

/// A size with a unit, or 0.
fn cache_size(text: &str) -> Result<u64, String> {
    if text == "0" { Ok(0) } else { report::size(text) }
}

/// A write-back cache that nobody asked for: 1 GiB, a quarter of the Performance tier at most (section 2); none where
/// it could not be as redundant as the data (RES-7).
fn default_cache(tier_bytes: [u64; 2], copies: u8, solid: usize) -> u64 {
    let fits = !tier_bytes.contains(&0) && solid >= usize::from(copies);
    let bytes = (tier_bytes[0] / 4).min(1 << 30) / 4096 * 4096;
    if fits && bytes >= CACHE_LEAST { bytes } else { 0 }
}

/// The smallest cache that is made by itself.
const CACHE_LEAST: u64 = 1 << 20;

fn layout(reason: String, remedy: &str) -> PoolError {
    CreateError::Layout { reason, remedy: remedy.to_owned() }.into()
}

/// What is asked for, with the defaults that the pool's disks suggest.
fn wanted(matches: &ArgMatches, name: String, look: &Look) -> Result<NewVirtualDisk, PoolError> {
    let bytes = |name: &str| matches.get_one::<u64>(name).copied();
    let here = |media: MediaType| {
        let disks = look.config.disks.iter().zip(&look.disks);
        disks
            .filter(|(disk, look)| disk.media == media && look.standing == DiskStanding::Present)
            .count()
    };
    let mut tier_bytes =
        [bytes("ssd-tier").unwrap_or_default(), bytes("hdd-tier").unwrap_or_default()];
    match (bytes("size"), tier_bytes) {
        (Some(size), [0, 0]) => tier_bytes[usize::from(here(MediaType::Ssd) == 0)] = size,
        (Some(_), _) => {
            return Err(layout(
                "both a size and the size of a tier are given".to_owned(),
                "use --size alone, or --ssd-tier and --hdd-tier",
            ));
        }
        (None, [0, 0]) => {
            return Err(layout(
                format!("virtual disk {name} has no size"),
                "add --size, --ssd-tier or --hdd-tier",
            ));
        }
        (None, _) => {}
    }
    let media = [MediaType::Ssd, MediaType::Hdd].into_iter().zip(tier_bytes);
    let disks = media.filter(|(_, bytes)| *bytes > 0).map(|(media, _)| here(media)).min();
    let disks = disks.unwrap_or(0);
    let copies = match matches.get_one::<String>("resiliency").map(String::as_str) {
        Some("simple") => 1,
        Some("mirror2") => 2,
        Some(_) => 3,
        None if disks >= 2 => 2,
        None => 1,
    };
    let columns = matches.get_one::<u8>("columns").copied();
    let columns = columns
        .unwrap_or_else(|| u8::try_from((disks / usize::from(copies)).clamp(1, 8)).unwrap_or(8));
    let interleave = bytes("interleave").unwrap_or(256 << 10);
    let slab = look.geometry.slab_bytes;
    if !interleave.is_power_of_two() || !(16 << 10..=slab).contains(&interleave) {
        return Err(layout(
            format!("an interleave of {interleave} bytes"),
            "use a power of two from 16K to the size of a slab",
        ));
    }
    let interleave = u32::try_from(interleave).unwrap_or(u32::MAX);
    let solid = here(MediaType::Ssd);
    let cache_bytes =
        bytes("write-cache").unwrap_or_else(|| default_cache(tier_bytes, copies, solid));
    let most = tier_bytes[0] / 4;
    if cache_bytes > most {
        let remedy =
            format!("use {most} bytes or less, a quarter of the tier on solid-state disks");
        return Err(layout(format!("a write-back cache of {cache_bytes} bytes"), &remedy));
    }
    Ok(NewVirtualDisk { name, copies, columns, interleave, tier_bytes, cache_bytes })
}

fn show(name: &str) -> report::Outcome {
    let (pool, vdisk) = report::split(name)?;
    let found = report::registry().find(&pool)?;
    let look = pool::look(Some(found.id), &found.disks)?;
    let (_, own) = report::find(&look.config, &pool, &vdisk)?;
    let health = pool::health(&report::registry(), &found, &look);
    let shown = look.config.vdisks.iter().filter(|vdisk| !vdisk.is_removed());
    let mut all = shown.zip(health.vdisks.iter().zip(&health.unreadable));
    let found = all.find(|(one, _)| one.id == own.id);
    let (_, health) =
        found.ok_or_else(|| VdiskError::Unknown { pool: pool.clone(), name: vdisk.clone() })?;
    Ok(report::describe_vdisk(&look, own, health))
}

fn list(matches: &ArgMatches) -> report::Outcome {
    let registry = report::registry();
    if let Some(name) = matches.get_one::<String>("pool") {
        let reply = list_of(&registry, &registry.find(name)?)?;
        return Ok(listed(vec![reply], 0));
    }
    let names = registry.names()?;
    let (replies, status) = report::of_all(&registry, &names, |found| list_of(&registry, found));
    Ok(listed(replies.into_iter().map(|(_, reply)| reply).collect(), status))
}

/// Virtual disks of a pool.
fn list_of(registry: &pool::Registry, found: &pool::RegisteredPool) -> report::Outcome {
    let look = pool::look(Some(found.id), &found.disks)?;
    let health = pool::health(registry, found, &look);
    let shown = look.config.vdisks.iter().filter(|vdisk| !vdisk.is_removed());
    let (mut text, mut vdisks) = (String::new(), Vec::new());
    for (vdisk, health) in shown.zip(health.vdisks.iter().zip(&health.unreadable)) {
        let reply = report::describe_vdisk(&look, vdisk, health);
        text.push_str(&reply.text);
        vdisks.push(reply.json);
    }
    Ok(Reply { json: vdisks.into(), text, status: 0 })
}

/// Those of all pools, and the pools of which nothing can be told.
fn listed(replies: Vec<Reply>, status: u8) -> Reply {
    let (mut text, mut vdisks, mut untold) = (String::new(), Vec::new(), Vec::new());
    for reply in replies {
        text.push_str(&reply.text);
        match reply.json {
            serde_json::Value::Array(own) => vdisks.extend(own),
            pool => untold.push(pool),
        }
    }
    if text.is_empty() {
        text.push_str("no virtual disks; `plumb vdisk new POOL/NAME --size 4G` makes one\n");
    }
    Reply { json: json!({ "vdisks": vdisks, "untold_pools": untold }), text, status }
}

fn remove(matches: &ArgMatches) -> report::Outcome {
    let name = report::text(matches, "vdisk");
    let (pool, vdisk) = report::split(&name)?;
    let found = report::registry().find(&pool)?;
    let started = pool::open(&found, Vec::new(), (1, 4096));
    let registry = report::registry();
    let started = pool::note_start(&registry, &found, started)?.with_start_noted(&registry);
    let (nth, _) = report::find(started.engine.config(), &pool, &vdisk)?;
    let bytes: u64 = started.engine.mapped_bytes(nth).iter().sum();
    let named = matches.get_many::<String>("destroy").into_iter().flatten();
    if bytes > 0 && !named.into_iter().any(|it| *it == name) {
        // Nothing was changed, and a clean end leaves the next start less to do; it is no failure if not.
        let _ = started.engine.shut_down();
        return Err(VdiskError::HoldsData { name, bytes }.into());
    }
    started.engine.remove_virtual_disk(&vdisk).map_err(PoolError::from)?;
    let text = format!("virtual disk {name} is gone\n");
    Ok(Reply { json: json!({ "removed": name, "bytes_freed": bytes }), text, status: 0 })
}

#[cfg(test)]
mod tests {
    #[test]
    fn a_cache_is_made_where_it_can_be_as_redundant_as_the_data() {
        let gib = 1_u64 << 30;
        for (tiers, copies, solid, cache) in [
            ([40 * gib, 100 * gib], 2, 2, gib),
            ([gib, 100 * gib], 2, 4, gib / 4),
            ([40 * gib, 100 * gib], 2, 1, 0),
            ([40 * gib, 0], 1, 4, 0),
            ([0, 40 * gib], 1, 4, 0),
            ([2 << 20, gib], 1, 1, 0),
        ] {
            assert_eq!(
                super::default_cache(tiers, copies, solid),
                cache,
                "{tiers:?} {copies} {solid}"
            );
        }
    }
}
