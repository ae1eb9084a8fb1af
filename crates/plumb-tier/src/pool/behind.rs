//! Which copies of a pool are out of date, told without a start: by the program that has it, else by its journal, which is
//! read and not changed.

use std::io::{Seek, SeekFrom};
use std::path::Path;

use plumb_io::TargetFile;
use plumb_units::convert::to_u32;

use super::chronicle::{counters, plain};
use super::devices::DeviceQueue;
use super::live::now_ms;
use super::look::{Look, open_to_read};
use super::open::shortage;
use super::registry::{RegisteredPool, Registry};
use crate::assembly::{Terms, assemble};
use crate::chain;
use crate::chain::UnreadEnd;
use crate::format::frame;
use crate::io::{Io, SlotPlan, TIME_OUT};
use crate::marks::Marks;
use crate::recover::{What, load, read_checkpoint};
use crate::unread::Unreadable;

/// Counters that are older were not written by a program that still has the pool: it writes them once a second.
const TOLD_MS: u64 = 5_000;
/// How often a journal is read that somebody writes to meanwhile.
const TRIES: u32 = 3;

/// What is out of date in a pool.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Behind {
    /// Extents whose place on a disk is out of date, by ordinal; of disks that take part.
    pub disks: Vec<u32>,
    /// Such places, by virtual disk in the configuration's order, those that were removed too.
    pub vdisks: Vec<u32>,
    /// What cannot be read as disks are here now, by virtual disk in the same order; `None` when nobody can tell.
    pub unreadable: Option<Vec<Unreadable>>,
    /// The program that has it fails every FLUSH, of some virtual disks or of all: what a last copy was given could not be
    /// flushed.
    pub flushes_fail: bool,
}

/// What is out of date in a pool. `None` when nobody can tell: its journal cannot be read.
#[must_use]
pub fn behind(registry: &Registry, pool: &RegisteredPool, look: &Look) -> Option<Behind> {
    let told = told(registry, &pool.name, look).or_else(|| (0..TRIES).find_map(|_| read(look)));
    let mut found = told?;
    found.unreadable = match may_lack(look, &found) {
        true => (0..TRIES).find_map(|_| lacking(look)),
        false => Some(vec![Unreadable::default(); look.config.vdisks.len()]),
    };
    Some(found)
}

/// Whether a virtual disk has places of which no copy may be here that is up to date: only then it is worth to read where its
/// extents are.
fn may_lack(look: &Look, found: &Behind) -> bool {
    let is_good = |disk: u16| {
        let nth = usize::from(disk);
        look.disks[nth].standing.takes_part() && found.disks.get(nth).is_none_or(|own| *own == 0)
    };
    let shown = look.config.vdisks.iter().filter(|vdisk| !vdisk.is_removed());
    let mut columns = shown.flat_map(|vdisk| {
        let rows = vdisk.tiers.iter().flat_map(|tier| &tier.rows);
        rows.flat_map(|row| row.slabs.chunks(usize::from(vdisk.copies).max(1)))
    });
    columns.any(|column| !column.iter().any(|slab| is_good(slab.0)))
}

/// What has no copy here that is up to date, by map and journal.
fn lacking(look: &Look) -> Option<Vec<Unreadable>> {
    // The numbers in a configuration are its word alone: what no start would take memory for is none to take here.
    if shortage(look).is_some() {
        return None;
    }
    let (mut io, plan) = reader(look)?;
    let (members, _) = assemble(&mut io, plan, (0, Terms::More)).ok()?;
    let newest = read_checkpoint(&mut io, &members).ok()?;
    let (core, _) = load(io, members, &newest, What::Places).ok()?;
    Some((0..look.config.vdisks.len()).map(|nth| core.unreadable_of(nth)).collect())
}

/// What the program says that has the pool now. Without one, `None`.
fn told(registry: &Registry, pool: &str, look: &Look) -> Option<Behind> {
    let seen = counters(registry, pool)?;
    let is_alive = Path::new("/proc").join(seen.process.to_string()).exists();
    if !seen.running || !is_alive || now_ms().saturating_sub(seen.unix_ms) > TOLD_MS {
        return None;
    }
    let value = |set: &str, instance: &str, name: &str| {
        let is_it = |one: &&(String, String, String, String, u64)| {
            (one.0.as_str(), one.1.as_str(), one.2.as_str()) == (set, instance, name)
        };
        seen.counters.iter().find(is_it).map(|one| one.4)
    };
    let small = |count: u64| u32::try_from(count).unwrap_or(u32::MAX);
    let mut found = Behind::default();
    for vdisk in &look.config.vdisks {
        let bytes = match vdisk.is_removed() {
            true => 0,
            false => value("Virtual Disk", &vdisk.name, "Stale Bytes")?,
        };
        let share = u64::from(look.config.extent_bytes) / u64::from(vdisk.columns.max(1));
        found.vdisks.push(small(bytes.div_ceil(share.max(1))));
    }
    let fails = |one: &(String, String, String, String, u64)| {
        (one.0.as_str(), one.2.as_str(), one.4) == ("Dirty Regions", "Status", 2)
    };
    found.flushes_fail = seen.counters.iter().any(fails);
    let any = found.vdisks.iter().any(|places| *places > 0);
    for (disk, seen) in look.config.disks.iter().zip(&look.disks) {
        if !seen.standing.takes_part() {
            found.disks.push(0);
            continue;
        }
        let value = |name: &str| value("Physical Disk", &plain(&disk.name), name);
        // They were written before it came back.
        value("Online").filter(|online| *online == 1)?;
        // A mark where nothing of the extent lies costs nobody a copy.
        let extents = if any { value("Stale Extents")? } else { 0 };
        found.disks.push(small(extents));
    }
    Some(found)
}

/// The disks that take part, which nothing is written to.
fn reader(look: &Look) -> Option<(Io<DeviceQueue>, SlotPlan)> {
    let here = || look.disks.iter().filter(|disk| disk.standing.takes_part());
    let files: Option<Vec<TargetFile>> = here().map(|disk| target(disk.path.as_deref()?)).collect();
    let files = files?;
    let count = to_u32(files.len());
    let plan = SlotPlan {
        data_slots: 1,
        data_bytes: 4096,
        control_bytes: 256 << 10,
        files: count,
        time_out: TIME_OUT,
    };
    // Copies of the journal that lack a frame are given it as at a start: in memory only.
    let queue = DeviceQueue::unchanging(&plan, DeviceQueue::calls(&plan, files).ok()?);
    Some((Io::new(queue, plan), plan))
}

/// What the journal says, on the disks that take part.
fn read(look: &Look) -> Option<Behind> {
    let (mut io, plan) = reader(look)?;
    let (members, _) = assemble(&mut io, plan, (0, Terms::More)).ok()?;
    let newest = read_checkpoint(&mut io, &members).ok()?;
    let chain = chain::read(&mut io, &members, (newest.page.link, UnreadEnd::Unknown));
    if chain.is_cut || chain.is_rotten || !chain.has_state() || !newest.leads_to(&chain) {
        return None;
    }
    let config = &members.config;
    let mut marks = Marks::new(config.disks.len());
    for record in chain.bodies().flat_map(frame::records) {
        marks.replay(config, record);
    }
    let shown = || config.vdisks.iter().filter(|vdisk| !vdisk.is_removed());
    let online = members.online();
    let on = |disk: u16| match online.contains(&disk) {
        true => shown().map(|vdisk| marks.of(vdisk, disk)).sum(),
        false => 0,
    };
    let of = |vdisk: &crate::VirtualDisk| match vdisk.is_removed() {
        true => 0,
        false => online.iter().map(|disk| marks.of(vdisk, *disk)).sum(),
    };
    Some(Behind {
        disks: (0_u16..).take(config.disks.len()).map(on).collect(),
        vdisks: config.vdisks.iter().map(of).collect(),
        unreadable: None,
        flushes_fail: false,
    })
}

fn target(path: &Path) -> Option<TargetFile> {
    let mut file = open_to_read(path).ok()?;
    let size = file.seek(SeekFrom::End(0)).ok()?;
    let path = path.to_owned();
    Some(TargetFile { descriptor: file.into(), path, size, priority: None, mapping: None })
}
