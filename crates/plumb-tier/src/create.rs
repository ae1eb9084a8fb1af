//! Making a pool: slabs are given out, every disk gets its configuration, journal and superblocks.

use plumb_io::{FileIndex, FlushQueue};
use plumb_units::convert::{to_u32, to_u64};

use crate::extents::{move_reserve, slots_of_tier};
use crate::format::frame::Link;
use crate::format::page::{Checkpoint, Root};
use crate::format::superblock::{RecordName, Superblock};
use crate::format::{
    BLOCK_BYTES, CacheConfig, CacheCopy, Config, DiskConfig, DiskState, Generation, Geometry,
    MediaType, Row, Tier, VirtualDisk,
};
use crate::io::{Io, SlotPlan};
use crate::members::Members;
use crate::metadata_disks::metadata_copies;
use crate::random::Random;

/// A disk to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewDisk {
    /// What it is.
    pub media: MediaType,
    /// Its length in bytes.
    pub bytes: u64,
    /// For messages.
    pub name: String,
}

/// A virtual disk to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewVirtualDisk {
    /// Unique in the pool.
    pub name: String,
    /// Replicas: 1, 2 or 3.
    pub copies: u8,
    /// Disks that a stripe spans.
    pub columns: u8,
    /// Bytes on one disk before the stripe goes on: a power of two from 16 KiB.
    pub interleave: u32,
    /// Bytes on solid-state disks and on rotating disks; either may be 0.
    pub tier_bytes: [u64; 2],
    /// Bytes of the write-back cache on solid-state disks: a multiple of 4 KiB, 0 for none. Each of its
    /// copies takes whole slabs.
    pub cache_bytes: u64,
}

/// A pool to be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewPool {
    /// Its name.
    pub name: String,
    /// Bytes of an extent: a power of two, 64 KiB to 16 MiB.
    pub extent_bytes: u32,
    /// Sizes of the areas of each disk.
    pub geometry: Geometry,
    /// In the order of the queue's files.
    pub disks: Vec<NewDisk>,
    /// Its virtual disks.
    pub vdisks: Vec<NewVirtualDisk>,
}

/// Why a pool was not made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum CreateError {
    /// Nothing was asked for that can be made.
    #[error("that cannot be made: {reason}")]
    #[diagnostic(code(plumb::tier::layout))]
    Layout {
        /// What does not fit.
        reason: String,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// Not enough disks or space for a virtual disk.
    #[error(
        "virtual disk {name} needs {needed} {} disks with a free slab each, and {found} have one{}",
        kind(*media),
        if *room > 0 { format!(" once it has {}", to_ask(*room)) } else { String::new() }
    )]
    #[diagnostic(code(plumb::tier::space))]
    Space {
        /// Which virtual disk.
        name: String,
        /// Of which kind.
        media: MediaType,
        /// columns x copies.
        needed: usize,
        /// With free slabs.
        found: usize,
        /// Bytes that it could have on these disks.
        room: u64,
        /// What to do.
        #[help]
        remedy: String,
    },
    /// Not enough solid-state disks for a write-back cache.
    #[error(
        "the write-back cache of virtual disk {name} needs {needed} solid-state disks with {slabs} free \
         slabs each; {found} have them"
    )]
    #[diagnostic(
        code(plumb::tier::cache),
        help("add solid-state disks, or ask for a smaller cache or none")
    )]
    Cache {
        /// Which virtual disk.
        name: String,
        /// As many as copies.
        needed: usize,
        /// With free slabs.
        found: usize,
        /// Per disk.
        slabs: u32,
    },
    /// A disk did not take what was written.
    #[error("cannot write to {name}")]
    #[diagnostic(code(plumb::tier::create_io), help("see the kernel's log, or leave the disk out"))]
    Io {
        /// Which disk.
        name: String,
    },
}

fn kind(media: MediaType) -> &'static str {
    match media {
        MediaType::Ssd => "solid-state",
        MediaType::Hdd => "rotating",
    }
}

/// A size to ask for: never rounded up.
pub(crate) fn to_ask(bytes: u64) -> String {
    match bytes.is_multiple_of(1 << 20) {
        true => format!("{}M", bytes >> 20),
        false => format!("{}K", bytes >> 10),
    }
}

/// A virtual disk that does not fit, of which so many rows would.
pub(crate) fn no_space(
    wanted: &NewVirtualDisk,
    (media, found): (MediaType, usize),
    room: u64,
) -> CreateError {
    let remedy = match room {
        0 => "nothing was changed; add disks, or ask for fewer copies or fewer columns".to_owned(),
        room => {
            format!("nothing was changed; ask for {} or less on them, or add disks", to_ask(room))
        }
    };
    let needed = usize::from(wanted.copies) * usize::from(wanted.columns);
    CreateError::Space { name: wanted.name.clone(), media, needed, found, room, remedy }
}

/// Bytes of a write-back cache, at least: a few records.
pub(crate) const CACHE_MIN: u64 = 64 << 10;
/// Disks that vote, at most (LAY-3).
pub(crate) const VOTERS: usize = 16;

/// Plans the configuration: who holds what.
fn plan(pool: &NewPool, random: &mut Random) -> Result<Config, CreateError> {
    let layout =
        |reason: String, remedy: &str| CreateError::Layout { reason, remedy: remedy.to_owned() };
    if pool.disks.is_empty() {
        return Err(layout("it has no disks".into(), "name one disk or more"));
    }
    let extent = u64::from(pool.extent_bytes);
    if !pool.geometry.is_sane() || !extent.is_power_of_two() || pool.geometry.slab_bytes < extent {
        return Err(layout(
            format!("slabs of {} bytes and extents of {extent}", pool.geometry.slab_bytes),
            "use powers of two, extents no larger than slabs",
        ));
    }
    let mut free: Vec<u32> =
        pool.disks.iter().map(|disk| pool.geometry.slabs(disk.bytes)).collect();
    let total = free.clone();
    let mut vdisks = Vec::new();
    let mut first_extent = 0;
    for wanted in &pool.vdisks {
        let mut vdisk = VirtualDisk {
            id: random.id(),
            name: wanted.name.clone(),
            copies: wanted.copies,
            columns: wanted.columns,
            interleave: wanted.interleave,
            first_extent,
            extents: 0,
            tiers: Vec::new(),
            cache: None,
        };
        for (media, bytes) in [MediaType::Ssd, MediaType::Hdd].into_iter().zip(wanted.tier_bytes) {
            if bytes > 0 {
                let tier = plan_tier(pool, wanted, (media, bytes), &mut free, &total)?;
                let slots =
                    slots_of_tier(&vdisk, tier.rows.len(), &pool.geometry, pool.extent_bytes);
                let tiers = wanted.tier_bytes.iter().filter(|bytes| **bytes > 0).count();
                vdisk.extents += slots - move_reserve(slots, tiers);
                vdisk.tiers.push(tier);
            }
        }
        if wanted.cache_bytes > 0 {
            vdisk.cache = Some(plan_cache(pool, wanted, &mut free, &total)?);
        }
        if vdisk.tiers.is_empty() {
            return Err(layout(
                format!("virtual disk {} has no tier", wanted.name),
                "give it a size",
            ));
        }
        first_extent += vdisk.extents;
        vdisks.push(vdisk);
    }
    // Journal and tree go to solid-state disks first.
    let mut order: Vec<usize> = (0..pool.disks.len()).collect();
    order.sort_by_key(|&disk| (pool.disks[disk].media == MediaType::Hdd, disk));
    let copies = metadata_copies(
        pool.disks.iter().map(|disk| disk.media),
        pool.vdisks.iter().map(|vdisk| vdisk.copies),
    );
    let metadata = &order[..order.len().min(copies)];
    let disk = |(nth, disk): (usize, &NewDisk)| DiskConfig {
        id: random.id(),
        media: disk.media,
        state: DiskState::Online,
        metadata: metadata.contains(&nth),
        leaving: false,
        known_epoch: 0,
        served_epoch: 0,
        device_bytes: disk.bytes,
        name: disk.name.clone(),
    };
    let disks = pool.disks.iter().enumerate().map(disk).collect();
    order.truncate(VOTERS);
    order.sort_unstable();
    Ok(Config {
        generation: Generation { epoch: 1, number: 1, id: random.id() },
        ancestors: Vec::new(),
        pool: random.id(),
        name: pool.name.clone(),
        extent_bytes: pool.extent_bytes,
        disks,
        voters: order.into_iter().filter_map(|disk| u16::try_from(disk).ok()).collect(),
        vdisks,
        moving: None,
        lists: Vec::new(),
    })
}

/// Rows for at least `bytes`, each on the disks with most free slabs.
fn plan_tier(
    pool: &NewPool,
    wanted: &NewVirtualDisk,
    (media, bytes): (MediaType, u64),
    free: &mut [u32],
    total: &[u32],
) -> Result<Tier, CreateError> {
    let width = usize::from(wanted.copies) * usize::from(wanted.columns);
    let row_bytes = pool.geometry.slab_bytes * u64::from(wanted.columns);
    let mut rows = Vec::new();
    for _ in 0..bytes.div_ceil(row_bytes.max(1)) {
        let mut able: Vec<usize> = (0..free.len())
            .filter(|&disk| pool.disks[disk].media == media && free[disk] > 0)
            .collect();
        if able.len() < width || width == 0 {
            return Err(no_space(wanted, (media, able.len()), row_bytes * to_u64(rows.len())));
        }
        able.sort_by_key(|&disk| (std::cmp::Reverse(free[disk]), disk));
        let mut slabs = Vec::with_capacity(width);
        for &disk in &able[..width] {
            slabs.push((u16::try_from(disk).unwrap_or(u16::MAX), total[disk] - free[disk]));
            free[disk] -= 1;
        }
        rows.push(Row { slabs });
    }
    Ok(Tier { media, rows })
}

/// A log with a copy on each of as many solid-state disks as the virtual disk has copies (RES-7).
fn plan_cache(
    pool: &NewPool,
    wanted: &NewVirtualDisk,
    free: &mut [u32],
    total: &[u32],
) -> Result<CacheConfig, CreateError> {
    let slabs = wanted.cache_bytes.div_ceil(pool.geometry.slab_bytes);
    let slabs = u32::try_from(slabs).unwrap_or(u32::MAX);
    let misfit = !wanted.cache_bytes.is_multiple_of(BLOCK_BYTES)
        || wanted.cache_bytes < CACHE_MIN
        || wanted.tier_bytes.contains(&0);
    if misfit {
        return Err(CreateError::Layout {
            reason: format!(
                "virtual disk {} has a write-back cache of {} bytes and tiers of {:?} bytes",
                wanted.name, wanted.cache_bytes, wanted.tier_bytes
            ),
            remedy: format!("give it two tiers and a cache of {CACHE_MIN} bytes or more, or none"),
        });
    }
    let copies = usize::from(wanted.copies);
    let mut able: Vec<usize> = (0..free.len())
        .filter(|&disk| pool.disks[disk].media == MediaType::Ssd && free[disk] >= slabs)
        .collect();
    if able.len() < copies || copies == 0 {
        return Err(CreateError::Cache {
            name: wanted.name.clone(),
            needed: copies,
            found: able.len(),
            slabs,
        });
    }
    able.sort_by_key(|&disk| (std::cmp::Reverse(free[disk]), disk));
    let copy = |&disk: &usize| {
        let first = total[disk] - free[disk];
        free[disk] -= slabs;
        let disk = u16::try_from(disk).unwrap_or(u16::MAX);
        CacheCopy { disk, current: true, slabs: (first..first + slabs).collect() }
    };
    Ok(CacheConfig { bytes: wanted.cache_bytes, copies: able[..copies].iter().map(copy).collect() })
}

/// Makes a pool on the queue's files, which are overwritten without a question.
///
/// # Errors
/// When the disks have no room for what is asked, or one cannot be written.
pub fn create<Q: FlushQueue>(
    queue: Q,
    slots: SlotPlan,
    pool: &NewPool,
    seed: u64,
) -> Result<Config, CreateError> {
    let mut random = Random::new(seed);
    let config = plan(pool, &mut random)?;
    let blocks = config.disks.iter().zip(0_u16..).map(|(disk, ordinal)| {
        Some(Superblock {
            incompat: 0,
            ro_compat: 0,
            pool: config.pool,
            device: disk.id,
            ordinal,
            sector: 512,
            device_bytes: disk.device_bytes,
            geometry: pool.geometry,
            created: 0,
            version: 0,
            generation: config.generation,
            epoch_started: 0,
            epoch_served: 0,
            area: 1,
            records: [RecordName::default(); 2],
        })
    });
    let mut io = Io::new(queue, slots);
    io.name_files((0..to_u32(config.disks.len())).map(|file| Some(FileIndex(file))).collect());
    let named = |disk: u16| CreateError::Io { name: config.disks[usize::from(disk)].name.clone() };
    // Nobody has the generation yet.
    let members = Members::new(config.clone(), (blocks.collect(), &[]), random.next());
    let Some(mut members) = members else {
        return Err(CreateError::Layout { reason: "no disks".into(), remedy: "name some".into() });
    };
    let metadata = members.metadata();
    let page = Checkpoint {
        sequence: 2,
        link: Link { lsn: 1, position: 0, chain: 0, epoch: 0 },
        roots: [Root::default(); 2],
    };
    let journal = pool.geometry.journal();
    let mut failed = io.write(&metadata, journal, &page.encode(config.pool));
    // What an older pool left there must not be taken for this one's.
    failed.extend(io.write(&metadata, journal + BLOCK_BYTES, &[0; 4096]));
    failed.extend(io.write(&metadata, journal + 2 * BLOCK_BYTES, &[0; 4096]));
    failed.extend(io.flush(&metadata));
    let all = members.online();
    failed.extend(members.publish(&mut io, &all));
    match failed.first() {
        Some(disk) => Err(named(*disk)),
        None => Ok(config),
    }
}
