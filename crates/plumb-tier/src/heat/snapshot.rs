//! A heat map as bytes (HEAT-6). A damaged page costs the heat of its extents and nothing else.
//!
//! ```text
//!    0  magic "PLUMHEAT"            8      48  window's host I/Os        8
//!    8  version, 7                  4      56  pages dropped             8
//!   12  pages                       4      64  their I/Os                8
//!   16  virtual disk                16     72  I/Os missed               8
//!   32  extents                     4      80  first window's hour + 1   4
//!   36  the window's first hour + 1 4      84  CRC-32C of the 84 before  4
//!   40  epoch, in hours             8
//! then for each page: slab 4 · CRC-32C of slab and entries 4 · 256 entries of
//!   reads 2 · writes 2 · score 2 · epoch 1 · score when the window began 1
//! then hours of the window before 4 · dispersion by windows 4 · by hours 4 · for each of 9 kinds of extents squares of what windows differ by 4 ·
//!   what they would be by chance 4 · extents 4 · hours since extents were marked 4 · those of them that count 4 · what all won over what their scores said 4 · for each of 96 classes by score on the
//!   Performance tier and then on the other: extents that were marked 4 · scores 4 · what they won 4 · squares of the one 4 · products 4 · squares of the other 4 ·
//!   how low extents are strewn that are followed 4 · how many 4 ·
//!   for each of them extent 4 · score when the window began 4 · what it won in the window before 4 · score when the hour began 4 ·
//!   what it won in the hour before 4 · and in the one before that 4 · squares of what hours are off 4 · what they won 4 ·
//!   score when it was marked, negative on the Capacity tier 4 · what it won since then, negative if it was not 4 · then squares, what they would be and extents of each kind with those that were cold when they began to be followed ·
//!   how many of these 4 · for each extent 4 · score when the hour began 4 · what it won in the hour before 4 · and in the one before that 4 · squares of what
//!   hours are off 4 · what they won 4 · CRC-32C of these 4
//! ```
//!
//! The first hour of a window is 0 where it is not known: when none has begun yet, or none with a load, and as older programs wrote it. Version 1 lacks that of
//! the first window, with its checksum at 80: it is taken to have begun long ago, if one has. Versions 1 and 2 end with the pages; as when what follows
//! them is damaged, nobody is followed then until the next window. Version 3 lacks what is known by the hour, version 4 the
//! kinds, and has other sums of hours, which are left out, version 5 the marks and what became of them, version 6 those that were cold.

use plumb_units::convert::index;

use super::counter::FloatingCounter;
use super::dispersion::Witnesses;
use super::page::{Entry, Page};
use super::{Dropped, HeatMap, HeatSettings, PAGE_EXTENTS};
use crate::format::bytes::{Reader, Writer};
use crate::format::checksum::crc;

const MAGIC: u64 = u64::from_le_bytes(*b"PLUMHEAT");
const VERSION: u32 = 7;
const HEADER: usize = 88;
/// Of version 1.
const HEADER_1: usize = 84;
const PAGE: usize = 8 + 8 * 256;

/// Why bytes are no heat map of this virtual disk.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum HeatFileError {
    /// Not what a map begins with.
    #[error("these bytes are no heat snapshot")]
    #[diagnostic(
        code(plumb::tier::heat::foreign),
        help("go on without: heat is counted anew, no data is affected")
    )]
    Foreign,
    /// Written by a later version.
    #[error("the heat snapshot has version {found}; this program reads version {VERSION}")]
    #[diagnostic(
        code(plumb::tier::heat::version),
        help("use the program that wrote it, or go on without: heat is counted anew")
    )]
    Version {
        /// What it says.
        found: u32,
    },
    /// The header's checksum differs.
    #[error("the header of the heat snapshot is damaged")]
    #[diagnostic(
        code(plumb::tier::heat::damaged),
        help("go on without: heat is counted anew, no data is affected")
    )]
    Damaged,
    /// Another virtual disk's, or of another size.
    #[error("the heat snapshot is of another virtual disk: {found:032x}, not {wanted:032x}")]
    #[diagnostic(
        code(plumb::tier::heat::other_disk),
        help("restore the snapshot of this virtual disk, or go on without")
    )]
    OtherDisk {
        /// Whose it is.
        found: u128,
        /// Whose it should be.
        wanted: u128,
    },
}

/// A map read back.
#[derive(Debug)]
pub struct Restored {
    /// The map; what could not be read is cold.
    pub map: HeatMap,
    /// Pages that were damaged, missing, or of extents that the virtual disk does not have.
    pub pages_lost: u64,
}

impl HeatMap {
    /// The map as bytes, for the virtual disk of that id.
    #[must_use]
    pub fn save(&self, vdisk: u128) -> Vec<u8> {
        let mut bytes = Writer(Vec::with_capacity(HEADER + PAGE * self.pages.len()));
        bytes.u64(MAGIC);
        bytes.u32(VERSION);
        bytes.u32(u32::try_from(self.pages.len()).expect("fewer pages than extents"));
        bytes.u128(vdisk);
        bytes.u32(self.settings.extents);
        bytes.u32(hour_or_none(self.window));
        bytes.u64(self.epoch);
        bytes.u64(self.ios);
        bytes.u64(self.dropped.pages);
        bytes.u64(self.dropped.ios);
        bytes.u64(self.dropped.missed);
        bytes.u32(hour_or_none(self.first_window));
        bytes.u32(crc(0, &bytes.0));
        for page in self.pages.iter() {
            save_page(page, &mut bytes);
        }
        self.witnesses.save(&mut bytes);
        bytes.0
    }

    /// Reads a map back. It goes on in the hour in which it was saved, under the settings given; a virtual disk that
    /// has grown meanwhile keeps its heat.
    ///
    /// # Errors
    /// When the bytes are not a snapshot of virtual disk `vdisk`, or their header is damaged.
    pub fn restore(
        bytes: &[u8],
        vdisk: u128,
        settings: HeatSettings,
    ) -> Result<Restored, HeatFileError> {
        let header = Header::read(bytes)?;
        if header.vdisk != vdisk {
            return Err(HeatFileError::OtherDisk { found: header.vdisk, wanted: vdisk });
        }
        let mut map = Self::new(settings);
        (map.epoch, map.swept, map.window) = (header.epoch, header.epoch, header.window);
        map.first_window = header.first_window;
        let mut kept: u32 = 0;
        for page in bytes[header.len..].chunks_exact(PAGE).take(index(header.pages)) {
            let page = read_page(page).filter(|(slab, _)| map.lacks(*slab));
            if let Some((slab, entries)) = page {
                let nth = map.page_for(slab);
                map.pages.get_mut(nth).restore(header.epoch, &entries, &map.decay);
                map.working_set += map.pages.get(nth).window().0;
                kept += 1;
            }
        }
        let after = bytes.get(header.len + PAGE * index(header.pages)..);
        let witnesses = after.and_then(|bytes| Witnesses::restore(bytes, header.version));
        map.witnesses = witnesses.unwrap_or_default();
        map.ios = header.ios;
        map.dropped.pages = map.dropped.pages.saturating_add(header.dropped.pages);
        map.dropped.ios = map.dropped.ios.saturating_add(header.dropped.ios);
        map.dropped.missed = header.dropped.missed;
        Ok(Restored { map, pages_lost: u64::from(header.pages - kept) })
    }

    /// Whether the virtual disk has a slab of which there is no page.
    fn lacks(&self, slab: u32) -> bool {
        self.directory.get(index(slab)) == Some(&0)
    }
}

/// An hour as it is written.
fn hour_or_none(hour: Option<u64>) -> u32 {
    hour.and_then(|hour| u32::try_from(hour).ok()?.checked_add(1)).unwrap_or(0)
}

struct Header {
    version: u32,
    /// Its bytes.
    len: usize,
    pages: u32,
    vdisk: u128,
    epoch: u64,
    window: Option<u64>,
    first_window: Option<u64>,
    ios: u64,
    dropped: Dropped,
}

impl Header {
    fn read(bytes: &[u8]) -> Result<Self, HeatFileError> {
        let foreign = HeatFileError::Foreign;
        let mut fields = Reader(bytes);
        if fields.u64() != Some(MAGIC) {
            return Err(foreign);
        }
        let version = fields.u32().ok_or(foreign)?;
        let len = match version {
            1 => HEADER_1,
            2..=VERSION => HEADER,
            found => return Err(HeatFileError::Version { found }),
        };
        let head = bytes.get(..len).ok_or(foreign)?;
        if Reader(&head[len - 4..]).u32() != Some(crc(0, &head[..len - 4])) {
            return Err(HeatFileError::Damaged);
        }
        let mut next = || -> Option<Self> {
            let (pages, vdisk) = (fields.u32()?, fields.u128()?);
            let (_extents, window) = (fields.u32()?, fields.u32()?);
            let window = window.checked_sub(1).map(u64::from);
            let (epoch, ios) = (fields.u64()?, fields.u64()?);
            let (pages_dropped, ios_dropped) = (fields.u64()?, fields.u64()?);
            let missed = fields.u64()?;
            let first_window = match len {
                HEADER => fields.u32()?.checked_sub(1).map(u64::from),
                _ => window.map(|_| 0),
            };
            let dropped = Dropped { pages: pages_dropped, ios: ios_dropped, missed };
            Some(Self { version, len, pages, vdisk, epoch, window, first_window, ios, dropped })
        };
        next().ok_or(foreign)
    }
}

fn save_page(page: Page<'_>, bytes: &mut Writer) {
    let start = bytes.0.len();
    bytes.u32(page.head.slab);
    bytes.u32(0);
    for entry in page.entries() {
        bytes.u16(entry.reads.0);
        bytes.u16(entry.writes.0);
        bytes.u16(entry.score.0);
        bytes.u8(entry.epoch);
        bytes.u8(entry.before);
    }
    let sum = page_sum(&bytes.0[start..]);
    bytes.0[start + 4..start + 8].copy_from_slice(&sum.to_le_bytes());
}

/// Over the slab and the entries.
fn page_sum(page: &[u8]) -> u32 {
    crc(crc(0, &page[..4]), &page[8..])
}

fn read_page(bytes: &[u8]) -> Option<(u32, Box<[Entry; 256]>)> {
    let mut fields = Reader(bytes);
    let (slab, sum) = (fields.u32()?, fields.u32()?);
    // The last slab of the largest disk still has extents with numbers.
    if sum != page_sum(bytes) || slab > u32::MAX / PAGE_EXTENTS {
        return None;
    }
    let mut entries = Box::new([Entry::default(); 256]);
    for entry in entries.iter_mut() {
        *entry = Entry {
            reads: FloatingCounter(fields.u16()?),
            writes: FloatingCounter(fields.u16()?),
            score: FloatingCounter(fields.u16()?),
            epoch: fields.u8()?,
            before: fields.u8()?,
        };
    }
    Some((slab, entries))
}

/// Reads any bytes as a snapshot and saves what came of it; for fuzzing.
pub fn fuzz_heat(bytes: &[u8]) {
    let vdisk = Header::read(bytes).map_or(0, |header| header.vdisk);
    let settings = HeatSettings { limit_bytes: 1 << 20, ..HeatSettings::new(1 << 20) };
    if let Ok(mut restored) = HeatMap::restore(bytes, vdisk, settings.clone()) {
        let map = &mut restored.map;
        assert!(map.bytes() <= map.settings.limit_bytes, "the bound is the bound");
        map.touched().for_each(|(extent, _)| assert!(extent < 1 << 20, "an extent there is"));
        map.record_many(7, super::HostIoKind::Write, 9);
        map.advance(map.epoch().saturating_add(300));
        let again = HeatMap::restore(&map.save(vdisk), vdisk, settings).expect("what was saved");
        assert_eq!(again.pages_lost, 0, "what was saved is whole");
    }
}
