//! What the ends of a device say about their use: file systems, members of something larger,
//! encryption.
//!
//! Offsets are those of the formats themselves, in bytes from the start unless said otherwise. A
//! format that is missing here is no danger: any byte that is not zero counts as data (see `Ends`).

use super::ends::Ends;
use super::partition_table;

/// Something recognised.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Signature {
    /// Where its magic number stands.
    pub(super) offset: u64,
    /// What it is, with its name if it has one.
    pub(super) what: String,
}

/// A format that is known by some bytes at one place.
struct Format {
    what: &'static str,
    magic: &'static [u8],
    offset: u64,
    name: Name,
}

/// Where a format keeps the name that users gave.
enum Name {
    None,
    At(u64, usize),
    Wide(u64, usize),
}

const fn format(what: &'static str, offset: u64, magic: &'static [u8]) -> Format {
    Format { what, magic, offset, name: Name::None }
}

const fn named(
    what: &'static str,
    offset: u64,
    magic: &'static [u8],
    name_at: u64,
    name_len: usize,
) -> Format {
    Format { what, magic, offset, name: Name::At(name_at, name_len) }
}

/// Formats with one fixed place.
const FORMATS: &[Format] = &[
    named("XFS file system", 0, b"XFSB", 108, 12),
    named("btrfs file system", 65_600, b"_BHRfS_M", 65_835, 256),
    Format {
        what: "F2FS file system",
        magic: &[0x10, 0x20, 0xf5, 0xf2],
        offset: 1024,
        name: Name::Wide(1148, 512),
    },
    named("FAT file system", 54, b"FAT12   ", 43, 11),
    named("FAT file system", 54, b"FAT16   ", 43, 11),
    named("FAT file system", 54, b"FAT     ", 43, 11),
    named("FAT file system", 82, b"FAT32   ", 71, 11),
    format("exFAT file system", 3, b"EXFAT   "),
    format("NTFS file system", 3, b"NTFS    "),
    format("ReFS file system", 3, b"ReFS\0\0\0\0"),
    named("ISO 9660 file system", 32_769, b"CD001", 32_808, 32),
    format("UDF file system", 32_769, b"BEA01"),
    format("squashfs file system", 0, b"hsqs"),
    format("squashfs file system", 0, b"sqsh"),
    named("EROFS file system", 1024, &[0xe2, 0xe1, 0xf5, 0xe0], 1088, 16),
    format("cramfs file system", 0, &[0x45, 0x3d, 0xcd, 0x28]),
    // The revision, 2, and the checksum's size come first, then the magic number.
    named("NILFS2 file system", 1024, &[2, 0, 0, 0, 0, 0, 0x34, 0x34], 1192, 80),
    named("ReiserFS file system", 65_588, b"ReIsEr", 65_636, 16),
    format("Reiser4 file system", 65_536, b"ReIsEr4"),
    named("JFS file system", 32_768, b"JFS1", 32_920, 16),
    format("GFS2 file system", 65_536, &[0x01, 0x16, 0x19, 0x70, 0, 0, 0, 1]),
    format("OCFS2 file system", 1024, b"OCFSV2"),
    format("OCFS2 file system", 2048, b"OCFSV2"),
    format("OCFS2 file system", 4096, b"OCFSV2"),
    format("OCFS2 file system", 8192, b"OCFSV2"),
    format("APFS container", 32, b"NXSB"),
    format("HFS+ file system", 1024, b"H+\0\x04"),
    format("HFSX file system", 1024, b"HX\0\x05"),
    format("UFS file system", 9564, &[0x54, 0x19, 0x01, 0x00]),
    format("UFS2 file system", 66_908, &[0x19, 0x01, 0x54, 0x19]),
    format(
        "bcache device",
        4120,
        b"\xc6\x85\x73\xf6\x4e\x1a\x45\xca\x82\x65\xf5\x7f\x48\xba\x6d\x81",
    ),
    format(
        "bcachefs device",
        4120,
        b"\xc6\x85\x73\xf6\x66\xce\x90\xa9\xd9\x6a\x60\xcf\x80\x3d\xf7\xef",
    ),
    format("LUKS1 encrypted device", 0, b"LUKS\xba\xbe\0\x01"),
    named("LUKS2 encrypted device", 0, b"LUKS\xba\xbe\0\x02", 24, 48),
    // The second header of LUKS2 outlives the first; the smallest header takes 16 KiB.
    format("LUKS2 encrypted device (second header)", 0x4000, b"SKUL\xba\xbe"),
    format("LUKS2 encrypted device (second header)", 0x8000, b"SKUL\xba\xbe"),
    format("LUKS2 encrypted device (second header)", 0x1_0000, b"SKUL\xba\xbe"),
    format("LUKS2 encrypted device (second header)", 0x2_0000, b"SKUL\xba\xbe"),
    format("LUKS2 encrypted device (second header)", 0x4_0000, b"SKUL\xba\xbe"),
    format("LUKS2 encrypted device (second header)", 0x8_0000, b"SKUL\xba\xbe"),
    format("BitLocker encrypted device", 3, b"-FVE-FS-"),
    format("dm-verity hash tree", 0, b"verity\0\0"),
    format("dm-integrity device", 0, b"integrt\0"),
    format("dm-snapshot store", 0, b"SnAp"),
    format("VDO device", 0, b"dmvdo001"),
    // Two copies of what says so lie at each end.
    format("disk of a Plumb storage pool", 65_536, b"PLUMBSB1"),
    format("disk of a Plumb storage pool", 131_072, b"PLUMBSB1"),
    format("Stratis pool member", 516, b"!Stra0tis\x86\xff\x02^\x41rh"),
    format("Ceph BlueStore device", 0, b"bluestore block device"),
    format("Oracle ASM disk", 32, b"ORCLDISK"),
    format("software RAID member (md 1.1)", 0, &MD_MAGIC),
    named("software RAID member (md 1.2)", 4096, &MD_MAGIC, 4128, 32),
];

const MD_MAGIC: [u8; 4] = [0xfc, 0x4e, 0x2b, 0xa9];

/// All that is recognised, partition tables included, by place.
pub(super) fn everything(ends: &Ends) -> Vec<Signature> {
    let mut found = formats(ends);
    // A boot sector of a file system ends in the same two bytes as an MBR.
    let has_boot_sector = found.iter().any(|signature| signature.offset < 510);
    found.extend(partition_table::find(ends, has_boot_sector));
    found.sort();
    found
}

fn formats(ends: &Ends) -> Vec<Signature> {
    let mut found: Vec<Signature> = FORMATS
        .iter()
        .filter(|format| ends.has(format.offset, format.magic))
        .map(|format| {
            let name = match format.name {
                Name::None => None,
                Name::At(offset, len) => ends.name(offset, len),
                Name::Wide(offset, len) => ends.wide_name(offset, len),
            };
            signature(format.offset, format.what, name)
        })
        .collect();
    found.extend(ext(ends));
    found.extend(swap(ends));
    found.extend(lvm(ends));
    found.extend(zfs(ends));
    found.extend(at_the_end(ends));
    found
}

fn signature(offset: u64, what: &str, name: Option<String>) -> Signature {
    let what = match name {
        Some(name) => format!("{what} \"{name}\""),
        None => what.to_owned(),
    };
    Signature { offset, what }
}

/// ext2, 3 and 4 share a superblock at byte 1024: magic at +56, feature bits at +92, +96, +100, name
/// at +120. ext3 has a journal; ext4 has features that ext3 does not know.
fn ext(ends: &Ends) -> Option<Signature> {
    const SUPERBLOCK: u64 = 1024;
    const HAS_JOURNAL: u32 = 0x4;
    const JOURNAL_DEVICE: u32 = 0x8;
    /// filetype, needs_recovery, journal_dev, meta_bg.
    const EXT3_INCOMPATIBLE: u32 = 0x2 | 0x4 | 0x8 | 0x10;
    /// sparse_super, large_file, btree_dir.
    const EXT3_READ_ONLY: u32 = 0x1 | 0x2 | 0x4;
    if !ends.has(SUPERBLOCK + 56, &[0x53, 0xef]) {
        return None;
    }
    let compatible = ends.u32(SUPERBLOCK + 92)?;
    let incompatible = ends.u32(SUPERBLOCK + 96)?;
    let read_only = ends.u32(SUPERBLOCK + 100)?;
    let what = if incompatible & JOURNAL_DEVICE != 0 {
        "journal of an ext file system"
    } else if incompatible & !EXT3_INCOMPATIBLE != 0 || read_only & !EXT3_READ_ONLY != 0 {
        "ext4 file system"
    } else if compatible & HAS_JOURNAL != 0 {
        "ext3 file system"
    } else {
        "ext2 file system"
    };
    Some(signature(SUPERBLOCK + 56, what, ends.name(SUPERBLOCK + 120, 16)))
}

/// Swap space has its magic number in the last ten bytes of the first page, whatever the page size
/// of the machine that made it; hibernation writes its own there.
fn swap(ends: &Ends) -> Option<Signature> {
    const HIBERNATED: [&[u8]; 4] = [b"S1SUSPEND", b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"];
    [4096, 8192, 16_384, 32_768, 65_536].into_iter().find_map(|page| {
        let offset = page - 10;
        let magic = ends.at(offset, 10)?;
        let what = if magic == b"SWAPSPACE2" || magic == b"SWAP-SPACE" {
            "swap space"
        } else if HIBERNATED.iter().any(|hibernated| magic.starts_with(hibernated)) {
            "swap space with a hibernated system"
        } else {
            return None;
        };
        // Byte 1024: version, last page, bad pages, uuid (16 bytes), name (16 bytes).
        Some(signature(offset, what, ends.name(1052, 16)))
    })
}

/// A label in one of the first four sectors: LABELONE, and at +24 the kind.
fn lvm(ends: &Ends) -> Option<Signature> {
    let offset = (0..4)
        .map(|sector| sector * 512)
        .find(|&offset| ends.has(offset, b"LABELONE") && ends.has(offset + 24, b"LVM2 001"))?;
    Some(signature(offset, "LVM physical volume", None))
}

/// Four labels of 256 KiB, two at each end of the size rounded down to 256 KiB. The second half of a
/// label is a ring of uberblocks, 1 KiB or more each, that start with 0xbab10c in either byte order.
fn zfs(ends: &Ends) -> Option<Signature> {
    const LABEL: u64 = 256 << 10;
    const MAGIC: u64 = 0x00ba_b10c;
    let end = ends.size() / LABEL * LABEL;
    let labels = [Some(0), Some(LABEL), end.checked_sub(2 * LABEL), end.checked_sub(LABEL)];
    labels.into_iter().flatten().find_map(|label| {
        let mut slots = (LABEL / 2..LABEL).step_by(1024).map(|slot| label + slot);
        let offset = slots.find(|&slot| {
            ends.u64(slot).is_some_and(|word| word == MAGIC || word.swap_bytes() == MAGIC)
        })?;
        Some(signature(offset, "ZFS pool member", None))
    })
}

/// Formats that count from the end: (place, magic number, what).
fn at_the_end(ends: &Ends) -> Vec<Signature> {
    let before_end = |bytes: u64| ends.size().checked_sub(bytes);
    let last_block = |bytes: u64| (ends.size() / bytes).checked_sub(1).map(|block| block * bytes);
    let last_4k = last_block(4096).map(|block| block + 60);
    // 8 KiB from the end, rounded down to 4 KiB.
    let md_1_0 = before_end(8192).map(|at| at / 4096 * 4096);
    let places: [(Option<u64>, &[u8], &str); 10] = [
        (md_1_0, &MD_MAGIC, "software RAID member (md 1.0)"),
        // In the byte order of the machine that made it.
        (last_block(65_536), &MD_MAGIC, "software RAID member (md 0.90)"),
        (last_block(65_536), &[0xa9, 0x2b, 0x4e, 0xfc], "software RAID member (md 0.90)"),
        // The second last sector, of 512 or 4096 bytes.
        (before_end(1024), b"Intel Raid ISM Cfg Sig. ", "firmware RAID member (Intel)"),
        (before_end(8192), b"Intel Raid ISM Cfg Sig. ", "firmware RAID member (Intel)"),
        // The last sector.
        (before_end(512), &[0xde, 0x11, 0xde, 0x11], "firmware RAID member (DDF)"),
        (before_end(4096), &[0xde, 0x11, 0xde, 0x11], "firmware RAID member (DDF)"),
        // The magic number stands at +60 of the last 4 KiB: version 8, 8.4 in use, version 9.
        (last_4k, &[0x83, 0x74, 0x02, 0x6b], "DRBD device"),
        (last_4k, &[0x83, 0x74, 0x02, 0x6c], "DRBD device"),
        (last_4k, &[0x83, 0x74, 0x02, 0x6d], "DRBD device"),
    ];
    places
        .into_iter()
        .filter_map(|(offset, magic, what)| {
            let offset = offset?;
            ends.has(offset, magic).then(|| signature(offset, what, None))
        })
        .collect()
}

#[cfg(test)]
mod tests;
