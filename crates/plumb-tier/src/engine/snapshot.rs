//! All counters of a pool at one moment (section 12), and what must be true of them (CNT-1).

use plumb_io::FlushQueue;
use plumb_units::convert::{index, to_u64};

use super::part::{Part, PartKind, Step};
use super::{Account, Engine, VirtualDiskUse};
use crate::extents::is_second_tier;
use crate::format::{BLOCK_BYTES, DiskState, MediaType, VirtualDisk};
use crate::optimizer::TierName;

/// A counter of an instance of something, as `plumb space perf` shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Counter {
    /// What it counts things of.
    pub set: &'static str,
    /// Of which one; `_Total` for all of them together.
    pub instance: String,
    /// Its name.
    pub name: &'static str,
    /// What one of it is: `n`, `B`, `B/s`, `ns`, `%`, or `1e-3` for thousandths of one.
    pub unit: &'static str,
    /// Since the pool was started, or now.
    pub value: u64,
}

/// The instance that stands for all of a set.
const TOTAL: &str = "_Total";

/// Requests, and pieces of them, that are under way at a tier.
#[derive(Default)]
struct UnderWay {
    reads: u64,
    writes: u64,
}

impl<Q: FlushQueue> Engine<Q> {
    /// All counters.
    #[must_use]
    pub fn perf(&self) -> Vec<Counter> {
        let mut out = Vec::new();
        let config = self.config();
        for (nth, vdisk) in (0_u32..).zip(&config.vdisks).filter(|(_, vdisk)| !vdisk.is_removed()) {
            self.perf_of_vdisk(nth, vdisk, &mut out);
            self.perf_of_latency(nth, &vdisk.name, &mut out);
            for (tier, own) in vdisk.tiers.iter().enumerate() {
                let kind = if own.media == MediaType::Ssd { "ssd" } else { "hdd" };
                let instance = format!("{}:{kind}", vdisk.name);
                self.perf_of_tier((nth, tier > 0), &instance, &mut out);
            }
            self.perf_of_cache(nth, vdisk, &mut out);
            self.perf_of_heat(nth, &vdisk.name, &mut out);
        }
        self.perf_of_disks(&mut out);
        self.perf_of_optimizer(&mut out);
        self.perf_of_pool(&mut out);
        add_totals(&mut out);
        out
    }

    fn perf_of_vdisk(&self, nth: u32, vdisk: &VirtualDisk, out: &mut Vec<Counter>) {
        let own = &self.uses[index(nth)];
        let mut put = put("Virtual Disk", &vdisk.name, out);
        for (kind, own) in [
            (["Reads", "Read Bytes", "Avg. sec/Read", "Max. sec/Read", "Failed Reads"], own.reads),
            (
                ["Writes", "Write Bytes", "Avg. sec/Write", "Max. sec/Write", "Failed Writes"],
                own.writes,
            ),
            (
                ["Flushes", "Flush Bytes", "Avg. sec/Flush", "Max. sec/Flush", "Failed Flushes"],
                own.flushes,
            ),
            (
                ["Zeroes", "Zeroed Bytes", "Avg. sec/Zero", "Max. sec/Zero", "Failed Zeroes"],
                own.zeroes,
            ),
        ] {
            let all = (own.count + own.failed).max(1);
            put(kind[0], "n", own.count);
            put(kind[1], "B", own.bytes);
            put(kind[2], "ns", own.time_ns / all);
            put(kind[3], "ns", own.time_max_ns);
            put(kind[4], "n", own.failed);
        }
        put("Transfers", "n", own.reads.count + own.writes.count);
        put("Transfer Bytes", "B", own.reads.bytes + own.writes.bytes);
        put("Zero Read Bytes", "B", own.bytes(Account::Zeros));
        let mapped = self.mapped_bytes(nth);
        put("Active Bytes", "B", mapped[0] + mapped[1]);
        put("Active Slabs", "n", self.active_slabs(nth));
        let stale = self.stale_places_of(nth);
        put("Stale Bytes", "B", stale.bytes);
        put("Stale Slabs", "n", stale.slabs);
        let config = self.config();
        let slabs = |wanted: fn(&crate::format::DiskConfig) -> bool| {
            let slabs = vdisk.tiers.iter().flat_map(|tier| &tier.rows).flat_map(|row| &row.slabs);
            to_u64(slabs.filter(|(disk, _)| wanted(&config.disks[usize::from(*disk)])).count())
        };
        let slab_bytes = self.core.members.geometry.slab_bytes;
        let missing = slabs(|disk| disk.state == DiskState::Missing);
        put("Missing Slabs", "n", missing);
        put("Missing Bytes", "B", missing * slab_bytes);
        let leaving = slabs(|disk| disk.leaving || disk.state == DiskState::Retired);
        put("Need Reallocation Slabs", "n", leaving);
        put("Need Reallocation Bytes", "B", leaving * slab_bytes);
    }

    fn perf_of_latency(&self, nth: u32, name: &str, out: &mut Vec<Counter>) {
        let own = &self.request_times[index(nth)];
        let mut put = put("Virtual Disk Latency", name, out);
        for (names, times) in [
            (["Read 50%", "Read 99%", "Read 99.9%"], &own.reads),
            (["Write 50%", "Write 99%", "Write 99.9%"], &own.writes),
            (["Flush 50%", "Flush 99%", "Flush 99.9%"], &own.flushes),
        ] {
            for (name, share) in names.into_iter().zip([500, 990, 999]) {
                put(name, "ns", times.per_mille(share).unwrap_or(0));
            }
        }
    }

    fn under_way(&self, vdisk: u32, second: bool) -> UnderWay {
        let mut found = UnderWay::default();
        let at_devices = |part: &&Part| {
            matches!(part.step, Step::OldRead | Step::Reading | Step::Writing)
                && !part.is_background()
                && !part.kind.moves()
        };
        for part in self.parts.iter().filter(at_devices) {
            let place = self.core.extents.place(part.extent);
            if self.core.vdisk(part.extent) == index(vdisk) && is_second_tier(place) == second {
                match part.kind {
                    PartKind::Read => found.reads += 1,
                    _ => found.writes += 1,
                }
            }
        }
        found
    }

    fn perf_of_tier(&self, (nth, second): (u32, bool), instance: &str, out: &mut Vec<Counter>) {
        let own: &VirtualDiskUse = &self.uses[index(nth)];
        let (reads, writes) = (Account::TierRead(second), Account::TierWrite(second));
        let [count, bytes, time] = [
            [own.pieces(reads), own.pieces(writes)],
            [own.bytes(reads), own.bytes(writes)],
            [own.time_ns(reads), own.time_ns(writes)],
        ];
        let both = |pair: [u64; 2]| pair[0] + pair[1];
        let of = |value: u64, count: u64| value.checked_div(count).unwrap_or(0);
        let up_ns = self.now.since(self.started.unwrap_or(self.now)).0;
        // Little's law: what was under way on average is the time of all in the time that passed.
        let queue = |time: u64| of(time.saturating_mul(1000), up_ns);
        let now = self.under_way(nth, second);
        let mut put = put("Tier", instance, out);
        put("Tier Reads", "n", count[0]);
        put("Tier Writes", "n", count[1]);
        put("Tier Transfers", "n", both(count));
        put("Tier Read Bytes", "B", bytes[0]);
        put("Tier Write Bytes", "B", bytes[1]);
        put("Tier Transfer Bytes", "B", both(bytes));
        put("Avg. Tier Bytes/Read", "B", of(bytes[0], count[0]));
        put("Avg. Tier Bytes/Write", "B", of(bytes[1], count[1]));
        put("Avg. Tier Bytes/Transfer", "B", of(both(bytes), both(count)));
        put("Avg. Tier sec/Read", "ns", of(time[0], count[0]));
        put("Avg. Tier sec/Write", "ns", of(time[1], count[1]));
        put("Avg. Tier sec/Transfer", "ns", of(both(time), both(count)));
        put("Avg. Tier Read Queue Length", "1e-3", queue(time[0]));
        put("Avg. Tier Write Queue Length", "1e-3", queue(time[1]));
        put("Avg. Tier Queue Length", "1e-3", queue(both(time)));
        put("Current Tier Queue Length", "n", now.reads + now.writes);
        let times = &self.tier_times[index(nth)][usize::from(second)];
        for (names, times) in [
            (["Tier Read 50%", "Tier Read 99%", "Tier Read 99.9%"], &times.reads),
            (["Tier Write 50%", "Tier Write 99%", "Tier Write 99.9%"], &times.writes),
        ] {
            for (name, share) in names.into_iter().zip([500, 990, 999]) {
                put(name, "ns", times.per_mille(share).unwrap_or(0));
            }
        }
    }

    fn perf_of_cache(&self, nth: u32, vdisk: &VirtualDisk, out: &mut Vec<Counter>) {
        let (Some(cache), Some(log), Some(side)) =
            (&vdisk.cache, &self.core.logs[index(nth)], &self.caches[index(nth)])
        else {
            return;
        };
        let own = self.use_of(nth);
        let percent = |part: u64, of: u64| (part.saturating_mul(100)).checked_div(of).unwrap_or(0);
        // Both halves of a whole: what one lacks to 100 the other has.
        let halves = |part: u64, other: u64| match part + other {
            0 => (0, 0),
            all => (100 - percent(other, all), percent(other, all)),
        };
        let mut put = put("Write Cache", &vdisk.name, out);
        let (used, data) = (log.used(), to_u64(log.lines()) * BLOCK_BYTES);
        let reclaimable = used.saturating_sub(log.dirty * BLOCK_BYTES);
        put("Cache Size", "B", cache.bytes);
        for (names, bytes) in [
            (["Cache Used Bytes", "Cache Used %"], used),
            (["Cache Data Bytes", "Cache Data %"], data),
            (["Cache Reclaimable Bytes", "Cache Reclaimable %"], reclaimable),
        ] {
            put(names[0], "B", bytes);
            put(names[1], "%", percent(bytes, cache.bytes));
        }
        put("Cache Destages (Current)", "n", side.destaging.into());
        put("Cache Advances", "n", log.advances);
        put("Cache Checkpoints", "n", log.checkpoints);
        let (cached, bypassed) =
            (own.bytes(Account::CacheWrite), own.bytes(Account::TierWrite(true)));
        let shares = halves(cached, bypassed);
        put("Write Cache Bytes", "B", cached);
        put("Write Cache %", "%", shares.0);
        put("Write Bypass Bytes", "B", bypassed);
        put("Write Bypass %", "%", shares.1);
        put("Write Cache Overlap Bytes", "B", own.overlapping_bytes);
        put("Write Cache Overlap %", "%", percent(own.overlapping_bytes, cached));
        put("Write Cache Unaligned Bytes", "B", own.unaligned_bytes);
        put("Write Cache Unaligned %", "%", percent(own.unaligned_bytes, own.writes.bytes));
        let (cached, bypassed) =
            (own.bytes(Account::CacheRead), own.bytes(Account::TierRead(true)));
        let shares = halves(cached, bypassed);
        put("Read Cache Bytes", "B", cached);
        put("Read Cache %", "%", shares.0);
        put("Read Bypass Bytes", "B", bypassed);
        put("Read Bypass %", "%", shares.1);
        let [destaged, overwritten] = own.evicted.map(|blocks| blocks * BLOCK_BYTES);
        let shares = halves(destaged, overwritten);
        put("Evict Cache Bytes", "B", destaged + overwritten);
        put("Evict Cache Destaged Bytes", "B", destaged);
        put("Evict Cache Destaged %", "%", shares.0);
        put("Evict Cache Overwrite Bytes", "B", overwritten);
        put("Evict Cache Overwrite %", "%", shares.1);
    }

    fn perf_of_heat(&self, nth: u32, name: &str, out: &mut Vec<Counter>) {
        let heat = self.heat_as_it_is(nth);
        let dropped = heat.dropped();
        let mut put = put("Heat", name, out);
        put("Pages", "n", heat.pages());
        put("Dropped Pages", "n", dropped.pages);
        put("Bytes", "B", heat.bytes());
        put("Working-Set Extents", "n", heat.working_set());
        put("Host I/Os", "n", heat.ios());
        put("Host I/Os Lost", "n", dropped.ios.saturating_add(dropped.missed));
    }

    fn perf_of_optimizer(&self, out: &mut Vec<Counter>) {
        let moves = self.move_counters();
        let up_ns = self.now.since(self.started.unwrap_or(self.now)).0;
        let rate = u128::from(moves.bytes) * 1_000_000_000 / u128::from(up_ns.max(1));
        let mut put = put("Optimizer", &self.config().name, out);
        put("Extents Moved Up", "n", moves.up);
        put("Extents Moved Down", "n", moves.down);
        put("Aborted Moves", "n", moves.aborted);
        put("Moved Bytes", "B", moves.bytes);
        put("Moved Bytes/sec", "B/s", u64::try_from(rate).unwrap_or(u64::MAX));
        put("Moves Under Way", "n", self.moves.count.into());
        put("Moves Waiting", "n", to_u64(self.moves.waiting()));
        put("Throttle Rate", "B/s", self.move_rate().unwrap_or(0));
        put("Foreground 99% while Moving", "%", self.moves.throttle.ratio_percent().unwrap_or(0));
        for (names, to) in [
            (["Hold 50% (up)", "Hold 99% (up)", "Hold Max. (up)"], TierName::Performance),
            (["Hold 50% (down)", "Hold 99% (down)", "Hold Max. (down)"], TierName::Capacity),
        ] {
            for (name, share) in names.into_iter().zip([500, 990, 1000]) {
                put(name, "ns", self.hold_time(to, share).map_or(0, |time| time.0));
            }
        }
    }

    fn perf_of_disks(&self, out: &mut Vec<Counter>) {
        let members = &self.core.members;
        for (nth, disk) in members.config.disks.iter().enumerate() {
            if members.gone[nth] {
                continue;
            }
            let own = &self.core.io.uses[nth];
            let mut put = put("Physical Disk", &disk.name, out);
            put("Reads", "n", own.all_reads);
            put("Read Bytes", "B", own.all_read_bytes);
            put("Writes", "n", own.all_writes);
            put("Write Bytes", "B", own.all_write_bytes);
            put("Flushes", "n", own.flushes);
            put("Data Reads", "n", own.reads);
            put("Data Read Bytes", "B", own.read_bytes);
            put("Data Writes", "n", own.writes);
            put("Data Write Bytes", "B", own.write_bytes);
            put("Cache Log Writes", "n", own.log_writes);
            put("Cache Log Write Bytes", "B", own.log_write_bytes);
            put("Metadata Reads", "n", own.metadata_reads);
            put("Metadata Read Bytes", "B", own.metadata_read_bytes);
            put("Metadata Writes", "n", own.metadata_writes);
            put("Metadata Write Bytes", "B", own.metadata_write_bytes);
            put("Failed", "n", own.failed);
            put("Healed Blocks", "n", own.healed);
            put("Failed And Stayed", "n", own.stayed);
            put("Failed And Left", "n", own.erred);
            put("Online", "n", u64::from(disk.state == DiskState::Online));
            put("Stale Extents", "n", members.stale[nth].len().into());
        }
    }

    fn perf_of_pool(&self, out: &mut Vec<Counter>) {
        let counters = self.counters();
        let extent_bytes = u64::from(self.config().extent_bytes);
        let name = self.config().name.clone();
        let mut write = put("Pool", &name, out);
        write("Checkpoints", "n", counters.checkpoints);
        write("Disks Lost", "n", counters.disks_lost);
        write("Extents Resynced", "n", counters.resynced);
        write("Resync Bytes", "B", counters.resynced_bytes);
        write("Settled Bytes", "B", counters.settled_bytes);
        write("Extents Given Away", "n", counters.rebuilt + counters.moved);
        write("Repair Bytes", "B", counters.rebuilt_bytes);
        write("Cache Records", "n", counters.cache_records);
        write("Cache Blocks", "n", counters.cache_blocks);
        write("Blocks Destaged", "n", counters.destaged);
        let list = &self.core.extents.list;
        let mapped = to_u64(list.mapped_count());
        write("Extents Mapped", "n", mapped);
        drop(write);
        let open = to_u64(list.states().filter(|own| own.1.open).count());
        let mut write = put("Dirty Regions", &name, out);
        write("Dirty Count", "n", open);
        write("Dirty Bytes", "B", open * extent_bytes);
        write("Clean Count", "n", mapped.saturating_sub(open));
        write("Clean Bytes", "B", mapped.saturating_sub(open) * extent_bytes);
        write("Flushing Count", "n", self.round.flushing_blocks());
        write("Flushing Bytes", "B", self.round.flushing_blocks() * BLOCK_BYTES);
        write("Flushed Count", "n", self.round.flushed_blocks());
        write("Flushed Bytes", "B", self.round.flushed_blocks() * BLOCK_BYTES);
        // 1: all is well. 2: nothing is committed any more, of some or all, for a last copy could not be flushed.
        write("Status", "code", if self.fails_flushes() { 2 } else { 1 });
        write("Limit", "n", to_u64(list.len().min(self.core.open_limit)));
        drop(write);
        let mut write = put("Integrity", &name, out);
        write("Blocks Verified", "n", counters.blocks_verified);
        write("Mismatches", "n", counters.mismatches);
        write("Healed", "n", counters.healed);
        write("Unrecoverable", "n", counters.unrecoverable);
        write("Interrupted Writes", "n", counters.interrupted);
        write("Metadata Verified", "n", counters.metadata_verified);
        write("Metadata Damaged", "n", counters.metadata_damaged);
        write("Metadata Not Healed", "n", counters.metadata_unhealed);
    }
}

fn put<'a>(
    set: &'static str,
    instance: &'a str,
    out: &'a mut Vec<Counter>,
) -> impl FnMut(&'static str, &'static str, u64) + 'a {
    move |name, unit, value| {
        out.push(Counter { set, instance: instance.to_owned(), name, unit, value });
    }
}

/// Whether values of several instances add up: counts and bytes do, means and shares do not.
fn adds(counter: &Counter) -> bool {
    matches!(counter.unit, "n" | "B") && !counter.name.starts_with("Avg.")
}

/// Adds what all instances of a set come to, where there can be several.
fn add_totals(out: &mut Vec<Counter>) {
    for set in ["Virtual Disk", "Tier", "Write Cache", "Heat", "Physical Disk"] {
        let mut totals: Vec<Counter> = Vec::new();
        for counter in out.iter().filter(|counter| counter.set == set && adds(counter)) {
            match totals.iter_mut().find(|total| total.name == counter.name) {
                Some(total) => total.value += counter.value,
                None => totals.push(Counter { instance: TOTAL.to_owned(), ..counter.clone() }),
            }
        }
        out.append(&mut totals);
    }
}

/// Checks what must be true of counters at every moment (CNT-1): transfers are reads and writes; what a disk is asked is
/// data, records of caches and metadata; what the cache takes
/// and what passes it are the whole, and their shares, in whole per cent, those of their bytes; tiers, cache and zeros
/// are what the virtual disk was asked.
///
/// # Errors
/// The first that is not true.
pub fn identities(counters: &[Counter]) -> Result<(), String> {
    let of = |set: &str, instance: &str, name: &str| {
        let found = counters
            .iter()
            .find(|one| one.set == set && one.instance == instance && one.name == name);
        found.map_or(0, |one| one.value)
    };
    let same = |what: &str, one: u64, other: u64| match one == other {
        true => Ok(()),
        false => Err(format!("{what}: {one}, not {other}")),
    };
    let named = |set: &'static str, name: &'static str| {
        let wanted = move |one: &&Counter| one.set == set && one.name == name;
        counters.iter().filter(wanted).map(|one| one.instance.as_str())
    };
    for tier in named("Tier", "Tier Transfers") {
        for (all, parts) in [
            ("Tier Transfers", ["Tier Reads", "Tier Writes"]),
            ("Tier Transfer Bytes", ["Tier Read Bytes", "Tier Write Bytes"]),
        ] {
            let sum = parts.map(|name| of("Tier", tier, name)).iter().sum();
            same(&format!("{all} of {tier}"), of("Tier", tier, all), sum)?;
        }
    }
    for cache in named("Write Cache", "Cache Size").filter(|name| *name != TOTAL) {
        for (one, other, bytes) in [
            ("Write Cache %", "Write Bypass %", ["Write Cache Bytes", "Write Bypass Bytes"]),
            ("Read Cache %", "Read Bypass %", ["Read Cache Bytes", "Read Bypass Bytes"]),
        ] {
            let halves = [one, other].map(|name| of("Write Cache", cache, name));
            let bytes = bytes.map(|name| of("Write Cache", cache, name));
            let all = bytes[0] + bytes[1];
            same(
                &format!("{one} and {other} of {cache}"),
                halves[0] + halves[1],
                if all > 0 { 100 } else { 0 },
            )?;
            let off = u128::from(halves[0]) * u128::from(all);
            if off.abs_diff(u128::from(bytes[0]) * 100) > u128::from(all) {
                return Err(format!(
                    "{one} of {cache}: {}, where {} of {all} bytes are it",
                    halves[0], bytes[0]
                ));
            }
        }
    }
    for disk in named("Physical Disk", "Writes") {
        let of = |name: &str| of("Physical Disk", disk, name);
        for (all, parts) in [
            ("Reads", &["Data Reads", "Metadata Reads"][..]),
            ("Read Bytes", &["Data Read Bytes", "Metadata Read Bytes"]),
            ("Writes", &["Data Writes", "Cache Log Writes", "Metadata Writes"]),
            ("Write Bytes", &["Data Write Bytes", "Cache Log Write Bytes", "Metadata Write Bytes"]),
        ] {
            let sum = parts.iter().map(|name| of(name)).sum();
            same(&format!("{all} of disk {disk}"), of(all), sum)?;
        }
    }
    for vdisk in named("Virtual Disk", "Transfers") {
        let total = |name: &str| of("Virtual Disk", vdisk, name);
        same(
            &format!("Transfers of {vdisk}"),
            total("Transfers"),
            total("Reads") + total("Writes"),
        )?;
        let tiers = |name: &str| {
            let own = |one: &&Counter| {
                let tier = one.instance.rsplit_once(':').map(|(vdisk, _)| vdisk);
                one.set == "Tier"
                    && one.name == name
                    && (tier == Some(vdisk) || vdisk == TOTAL && one.instance == TOTAL)
            };
            counters.iter().filter(own).map(|one| one.value).sum::<u64>()
        };
        let cache = |name: &str| of("Write Cache", vdisk, name);
        let read = tiers("Tier Read Bytes") + cache("Read Cache Bytes") + total("Zero Read Bytes");
        same(&format!("bytes read from {vdisk} by who served them"), read, total("Read Bytes"))?;
        let written = tiers("Tier Write Bytes") + cache("Write Cache Bytes");
        same(
            &format!("bytes written to {vdisk} by who served them"),
            written,
            total("Write Bytes"),
        )?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn counters() -> Vec<Counter> {
        let mut out = Vec::new();
        type Row = (&'static str, &'static str, &'static [(&'static str, u64)]);
        let rows: [Row; 5] = [
            (
                "Physical Disk",
                "d",
                &[
                    ("Reads", 5),
                    ("Data Reads", 2),
                    ("Metadata Reads", 3),
                    ("Read Bytes", 50),
                    ("Data Read Bytes", 20),
                    ("Metadata Read Bytes", 30),
                    ("Writes", 9),
                    ("Data Writes", 2),
                    ("Cache Log Writes", 3),
                    ("Metadata Writes", 4),
                    ("Write Bytes", 90),
                    ("Data Write Bytes", 20),
                    ("Cache Log Write Bytes", 30),
                    ("Metadata Write Bytes", 40),
                ],
            ),
            (
                "Virtual Disk",
                "v",
                &[
                    ("Reads", 3),
                    ("Writes", 4),
                    ("Transfers", 7),
                    ("Read Bytes", 30),
                    ("Write Bytes", 40),
                    ("Zero Read Bytes", 5),
                ],
            ),
            (
                "Tier",
                "v:ssd",
                &[
                    ("Tier Reads", 1),
                    ("Tier Writes", 2),
                    ("Tier Transfers", 3),
                    ("Tier Read Bytes", 10),
                    ("Tier Write Bytes", 20),
                    ("Tier Transfer Bytes", 30),
                ],
            ),
            (
                "Tier",
                "v:hdd",
                &[
                    ("Tier Reads", 1),
                    ("Tier Transfers", 1),
                    ("Tier Read Bytes", 8),
                    ("Tier Transfer Bytes", 8),
                ],
            ),
            (
                "Write Cache",
                "v",
                &[
                    ("Cache Size", 99),
                    ("Write Cache Bytes", 20),
                    ("Write Cache %", 100),
                    ("Read Cache Bytes", 7),
                    ("Read Bypass Bytes", 8),
                    ("Read Cache %", 47),
                    ("Read Bypass %", 53),
                ],
            ),
        ];
        for (set, instance, values) in rows {
            for (name, value) in values {
                let unit = if name.ends_with('%') { "%" } else { "n" };
                put(set, instance, &mut out)(name, unit, *value);
            }
        }
        add_totals(&mut out);
        out
    }

    /// Whichever of the values is another one, it is noticed.
    #[test]
    fn no_counter_that_takes_part_can_be_wrong_alone() {
        assert_eq!(identities(&counters()), Ok(()));
        for nth in 0..counters().len() {
            let mut wrong = counters();
            // Its size does not stand for anything else, and a total has no shares.
            let is_total = wrong[nth].instance == TOTAL;
            if wrong[nth].name == "Cache Size" || is_total && wrong[nth].name == "Read Bypass Bytes"
            {
                continue;
            }
            wrong[nth].value += 1;
            assert!(identities(&wrong).is_err(), "{:?}", wrong[nth]);
        }
    }

    #[test]
    fn totals_are_sums_of_what_can_be_added() {
        let total = |name: &str| {
            let found = counters();
            let found = found.iter().find(|one| one.instance == TOTAL && one.name == name);
            found.map(|one| one.value)
        };
        assert_eq!(total("Tier Transfers"), Some(4));
        assert_eq!(total("Transfers"), Some(7));
        let shares = Counter {
            set: "Tier",
            instance: "v:ssd".to_owned(),
            name: "Avg. Tier Bytes/Read",
            unit: "B",
            value: 9,
        };
        let mut out = vec![shares];
        add_totals(&mut out);
        assert_eq!(out.len(), 1, "means do not add up");
    }
}
