//! Layers that move data between fast and slow.

use super::health::folder;
use super::{Check, Scene, Verdict, unseen as layers};
use crate::tiers::{OFF_FAST, spills};

/// Whether a faster tier may serve the target.
pub(super) fn tier(scene: &Scene) -> Check {
    const ID: &str = "tier";
    let (mut found, mut unseen) = (Vec::new(), Vec::new());
    for device in scene.target.devices(scene.tree) {
        let folder = folder(&device);
        let name = &device.name;
        if name.starts_with("bcache") {
            let read = |file: &str| scene.tree.text(format!("{folder}/bcache/{file}"));
            let word = |file| read(file).unwrap_or_else(|| "unknown".to_owned());
            let hits = read("stats_five_minute/cache_hit_ratio");
            let hits =
                hits.map_or_else(String::new, |share| format!(", {share} % hits over 5 min"));
            found.push(format!(
                "{name} is bcache, state {}, dirty {}{hits}",
                word("state"),
                word("dirty_data")
            ));
        }
        let is_numbered = |rest: &str| rest.starts_with(|c: char| c.is_ascii_digit());
        if name.strip_prefix("cas").is_some_and(is_numbered) {
            found.push(format!("{name} is a cache of Open CAS"));
        }
        let uuid = scene.tree.text(format!("{folder}/dm/uuid")).unwrap_or_default();
        let is_cache = ["cdata", "cmeta", "cpool", "cvol"].iter().any(|part| uuid.contains(part));
        if is_cache || uuid.starts_with("CACHE-") {
            found.push(format!("{name} belongs to a cache of the device mapper"));
        }
        let Some(mapped) = scene.tree.text(format!("{folder}/dm/name")) else { continue };
        match scene.said.of("dmsetup status") {
            Some(listed) => {
                found.extend(of_mapper(listed, &mapped));
                found.extend(too_large(scene, listed, &mapped));
            }
            // What made these says what they are.
            None if ["LVM-", "CRYPT-", "mpath-", "part"]
                .iter()
                .any(|made| uuid.starts_with(made)) => {}
            None => unseen.push(mapped),
        }
    }
    if let Some(mount) = scene.target.stack.mount.as_ref().filter(|mount| mount.kind == "zfs") {
        let pool = mount.source.split('/').next().unwrap_or_default();
        match scene.said.of("zpool status") {
            Some(status) => {
                found.extend(of_pool(status).map(|what| format!("pool {pool} has {what}")));
            }
            None => unseen.push(format!("pool {pool}")),
        }
    }
    if !found.is_empty() {
        let mut evidence = found.join("; ");
        if !evidence.contains(OFF_FAST) {
            evidence += "; whether the file is on the fast tier is not known";
        }
        return Check::new(
            ID,
            Verdict::Warn,
            evidence,
            "run the same test twice: a hit ratio that rises shows it",
        );
    }
    if !unseen.is_empty() {
        let evidence = format!("whether {} has a cache was not read", unseen.join(", "));
        let remedy = "run as root, or look at `dmsetup status` and `zpool status`";
        return Check::new(ID, Verdict::Unknown, evidence, remedy);
    }
    if let Some(check) = layers::mapped(scene, ID) {
        return check;
    }
    Check::ok(ID, "no bcache, no cache of the device mapper and none of ZFS under the target")
}

/// That the file which is to be made is larger than what a cache of the device mapper has free (method, section 7): a
/// part of it is off the fast tier from the start. One copy is kept in a cache, however many lie under it.
fn too_large(scene: &Scene, listed: &str, mapped: &str) -> Option<String> {
    const GIB: f64 = (1_u64 << 30) as f64;
    let target = scene.target;
    let planned = target.plan.file_bytes.filter(|bytes| target.size_bytes != Some(*bytes))?;
    let free = free_of(listed, mapped)?;
    spills(planned, 1, free).then(|| {
        format!(
            "the file of {:.1} GiB is larger than the {:.3} GiB that are free on the fast tier of {mapped}: {OFF_FAST}",
            planned as f64 / GIB,
            free as f64 / GIB
        )
    })
}

/// Free bytes of a cache of the device mapper; its blocks are counted in sectors of 512 bytes.
fn free_of(listed: &str, mapped: &str) -> Option<u64> {
    let line = listed.lines().find_map(|line| line.strip_prefix(mapped)?.strip_prefix(':'))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    if *words.get(2)? != "cache" {
        return None;
    }
    let sectors: u64 = words.get(5)?.parse().ok()?;
    let (used, all) = words.get(6)?.split_once('/')?;
    let free = all.parse::<u64>().ok()?.saturating_sub(used.parse().ok()?);
    Some(free.saturating_mul(sectors).saturating_mul(512))
}

/// What `dmsetup status` says of a device that is a cache: `name: 0 2048 cache 8 27/1024 128 10/64 read-hits read-misses
/// write-hits write-misses demotions promotions dirty …`, or `name: 0 2048 writecache errors blocks free writing-back`.
fn of_mapper(listed: &str, mapped: &str) -> Option<String> {
    let line = listed.lines().find_map(|line| line.strip_prefix(mapped)?.strip_prefix(':'))?;
    let words: Vec<&str> = line.split_whitespace().collect();
    let count = |place: usize| words.get(place)?.parse::<u64>().ok();
    match *words.get(2)? {
        "cache" => {
            let (hits, misses) = (count(7)? + count(9)?, count(8)? + count(10)?);
            let share = 100.0 * hits as f64 / (hits + misses).max(1) as f64;
            let dirty = words.get(13).unwrap_or(&"unknown");
            Some(format!(
                "{mapped} is a cache of the device mapper, {} blocks used, {share:.0} % hits, {dirty} dirty",
                words.get(6)?
            ))
        }
        "writecache" => Some(format!(
            "{mapped} is a write cache of the device mapper, {} of {} blocks free",
            words.get(5)?,
            words.get(4)?
        )),
        _ => None,
    }
}

/// What of a pool is faster than the rest: sections of `zpool status`.
fn of_pool(status: &str) -> impl Iterator<Item = &'static str> + '_ {
    const SECTIONS: [(&str, &str); 3] = [
        ("special", "special devices for metadata and small blocks"),
        ("cache", "a cache of reads (L2ARC)"),
        ("logs", "a log of its own for synchronous writes"),
    ];
    let lines = status.lines().map(|line| line.split_whitespace().next().unwrap_or_default());
    lines.filter_map(|word| SECTIONS.iter().find(|(name, _)| *name == word).map(|(_, what)| *what))
}
