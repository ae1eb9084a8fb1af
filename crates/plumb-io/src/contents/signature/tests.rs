//! Formats from made-up bytes at their documented places, and from the tools that write them.

use std::process::{Command, Stdio};

use super::*;

const SIZE: usize = 16 << 20;

/// All that is recognised in an image, as `offset: what` lines.
fn recognised(image: &[u8]) -> Vec<String> {
    let found = everything(&Ends::of(image));
    found.iter().map(|signature| format!("{}: {}", signature.offset, signature.what)).collect()
}

/// All that is recognised, without places.
fn whats(ends: &Ends) -> String {
    let found = everything(ends);
    found.iter().map(|signature| signature.what.as_str()).collect::<Vec<_>>().join(" + ")
}

/// An image of `SIZE` bytes with `parts` written into it.
fn image(parts: &[(usize, &[u8])]) -> Vec<u8> {
    let mut image = vec![0; SIZE];
    for (offset, bytes) in parts {
        image[*offset..offset + bytes.len()].copy_from_slice(bytes);
    }
    image
}

fn check(parts: &[(usize, &[u8])], want: &[&str]) {
    assert_eq!(recognised(&image(parts)), want, "{parts:?}");
}

#[test]
fn every_listed_format_is_recognised_alone() {
    for format in FORMATS {
        let offset = plumb_units::convert::to_usize(format.offset);
        let found = recognised(&image(&[(offset, format.magic)]));
        assert_eq!(found, [format!("{offset}: {}", format.what)]);
    }
}

#[test]
fn names_are_told() {
    check(&[(0, b"XFSB"), (108, b"data\0")], &["0: XFS file system \"data\""]);
    check(&[(65_600, b"_BHRfS_M"), (65_835, b"pool")], &["65600: btrfs file system \"pool\""]);
    let wide: Vec<u8> = "flash".encode_utf16().flat_map(u16::to_le_bytes).collect();
    check(
        &[(1024, &[0x10, 0x20, 0xf5, 0xf2]), (1148, &wide)],
        &["1024: F2FS file system \"flash\""],
    );
    check(&[(0, b"LUKS\xba\xbe\0\x02"), (24, b"safe")], &["0: LUKS2 encrypted device \"safe\""]);
    check(
        &[(4096, &MD_MAGIC), (4128, b"host:0")],
        &["4096: software RAID member (md 1.2) \"host:0\""],
    );
    check(&[(4086, b"SWAPSPACE2"), (1024, &[1]), (1052, b"fast")], &["4086: swap space \"fast\""]);
}

#[test]
fn the_ext_family_is_told_apart_by_features() {
    let ext = |compatible: u32, incompatible: u32, read_only: u32, want: &str| {
        check(
            &[
                (1080, &[0x53, 0xef]),
                (1116, &compatible.to_le_bytes()),
                (1120, &incompatible.to_le_bytes()),
                (1124, &read_only.to_le_bytes()),
                (1144, b"root"),
            ],
            &[&format!("1080: {want} \"root\"")],
        );
    };
    ext(0x38, 0x2, 0x1, "ext2 file system");
    ext(0x3c, 0x2, 0x1, "ext3 file system");
    ext(0x3c, 0x2c2, 0x6b, "ext4 file system");
    ext(0x38, 0x2, 0x8, "ext4 file system");
    ext(0, 0x8, 0, "journal of an ext file system");
}

#[test]
fn swap_of_any_page_size_is_recognised() {
    for page in [4096, 8192, 16_384, 65_536] {
        check(&[(page - 10, b"SWAPSPACE2")], &[&format!("{}: swap space", page - 10)]);
    }
    check(&[(4086, b"SWAP-SPACE")], &["4086: swap space"]);
    for magic in [b"S1SUSPEND\0".as_slice(), b"S2SUSPEND", b"ULSUSPEND", b"LINHIB0001"] {
        check(&[(4086, magic)], &["4086: swap space with a hibernated system"]);
    }
}

#[test]
fn lvm_labels_lie_in_one_of_four_sectors() {
    for sector in 0..4_usize {
        let offset = sector * 512;
        check(
            &[(offset, b"LABELONE"), (offset + 24, b"LVM2 001")],
            &[&format!("{offset}: LVM physical volume")],
        );
    }
    check(&[(2048, b"LABELONE"), (2072, b"LVM2 001")], &[]);
}

#[test]
fn each_label_of_zfs_is_enough() {
    let label = 256 << 10;
    for (start, bytes) in [
        (0, 0x00ba_b10c_u64.to_le_bytes()),
        (label, 0x00ba_b10c_u64.to_be_bytes()),
        (SIZE - 2 * label, 0x00ba_b10c_u64.to_le_bytes()),
        (SIZE - label, 0x00ba_b10c_u64.to_le_bytes()),
    ] {
        let offset = start + label / 2 + 7 * 1024;
        check(&[(offset, &bytes)], &[&format!("{offset}: ZFS pool member")]);
    }
}

#[test]
fn formats_at_the_end_are_recognised() {
    for (back, bytes, what) in [
        (8192, MD_MAGIC.as_slice(), "software RAID member (md 1.0)"),
        (65_536, &MD_MAGIC, "software RAID member (md 0.90)"),
        (65_536, &[0xa9, 0x2b, 0x4e, 0xfc], "software RAID member (md 0.90)"),
        (1024, b"Intel Raid ISM Cfg Sig. 1.3.00", "firmware RAID member (Intel)"),
        (512, &[0xde, 0x11, 0xde, 0x11], "firmware RAID member (DDF)"),
        (4036, &[0x83, 0x74, 0x02, 0x6b], "DRBD device"),
        (4036, &[0x83, 0x74, 0x02, 0x6d], "DRBD device"),
    ] {
        check(&[(SIZE - back, bytes)], &[&format!("{}: {what}", SIZE - back)]);
    }
}

/// A GPT header with `entries` at block 2 of `block` bytes.
fn gpt(block: u64) -> Vec<u8> {
    let mut header = b"EFI PART".to_vec();
    header.resize(92, 0);
    header[72..80].copy_from_slice(&2_u64.to_le_bytes());
    header[80..84].copy_from_slice(&128_u32.to_le_bytes());
    header[84..88].copy_from_slice(&128_u32.to_le_bytes());
    assert!(block >= 512);
    header
}

#[test]
fn partition_tables_are_counted() {
    let entry = |kind: u8| [0, 0, 0, 0, kind, 0, 0, 0, 1, 0, 0, 0, 9, 0, 0, 0];
    let signature: (usize, &[u8]) = (510, &[0x55, 0xaa]);
    check(&[signature], &["510: boot sector"]);
    check(&[signature, (446, &entry(0x83))], &["510: MBR partition table with 1 partition"]);
    check(
        &[signature, (446, &entry(0x83)), (494, &entry(0x8e))],
        &["510: MBR partition table with 2 partitions"],
    );
    check(&[signature, (446, &entry(0xee))], &["510: protective MBR of a GPT"]);
    check(&[signature, (446, &[7]), (462, &entry(0x83))], &["510: boot sector"]);

    for block in [512_usize, 4096] {
        let header = gpt(plumb_units::convert::to_u64(block));
        check(
            &[
                signature,
                (446, &entry(0xee)),
                (block, &header),
                (2 * block, &[1]),
                (2 * block + 256, &[1]),
            ],
            &[&format!("{block}: GPT partition table with 2 partitions")],
        );
        check(
            &[(SIZE - block, &header)],
            &[&format!("{}: GPT partition table (copy at the end)", SIZE - block)],
        );
    }
    // Entries that are out of sight, or a header of nonsense, still make a table.
    check(&[(512, b"EFI PART")], &["512: GPT partition table"]);
}

#[test]
fn a_boot_sector_of_a_file_system_is_no_partition_table() {
    check(&[(3, b"EXFAT   "), (510, &[0x55, 0xaa]), (446, &[0; 64])], &["3: exFAT file system"]);
}

#[test]
fn arbitrary_bytes_never_break_the_parsers() {
    // A small generator: the parsers must take anything of any size.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    for round in 0..200 {
        let mut bytes = vec![0_u8; plumb_units::convert::to_usize(draw() % (300 << 10))];
        for byte in &mut bytes {
            *byte = draw().to_le_bytes()[0];
        }
        // Keep the magic numbers, so that what follows them is read.
        for format in FORMATS.iter().skip(round % 7).step_by(7) {
            let offset = plumb_units::convert::to_usize(format.offset);
            if let Some(place) = bytes.get_mut(offset..offset + format.magic.len()) {
                place.copy_from_slice(format.magic);
            }
        }
        for (offset, magic) in [(512, b"EFI PART".as_slice()), (1080, &[0x53, 0xef])] {
            if let Some(place) = bytes.get_mut(offset..offset + magic.len()) {
                place.copy_from_slice(magic);
            }
        }
        crate::contents::fuzz_device(&bytes);
    }
}

#[test]
fn recorded_output_of_real_tools_is_recognised() {
    let recorded = include_str!("recorded.txt");
    let mut images = 0;
    for image in recorded.split("\nmake ").skip(1) {
        let mut lines = image.lines();
        let tool = lines.next().expect("a tool");
        let mut field = |name: &str| {
            let line = lines.next().and_then(|line| line.strip_prefix(name));
            line.unwrap_or_else(|| panic!("{tool}: no {name}")).trim().to_owned()
        };
        let size = field("size").parse().expect("a size");
        let want = field("find");
        let rows: Vec<_> = lines.filter_map(|line| line.split_once(' ')).map(row).collect();
        assert_eq!(whats(&Ends::sparse(size, &rows)), want, "{tool}");
        images += 1;
    }
    assert!(images > 20, "{images} images");
}

/// A row `offset hex`.
fn row((offset, hex): (&str, &str)) -> (u64, Vec<u8>) {
    let byte = |pair: &[u8]| {
        let pair = std::str::from_utf8(pair).expect("digits");
        u8::from_str_radix(pair, 16).expect("a byte")
    };
    (offset.parse().expect("an offset"), hex.as_bytes().chunks(2).map(byte).collect())
}

/// Formats an image with a tool and checks that this, and nothing else, is recognised in it.
fn made_by(test: &str, tool: &str, args: &[&str], mib: u64, want: &str) {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("image");
    let file = std::fs::File::create(&path).expect("an image");
    file.set_len(mib << 20).expect("a length");
    // Tools of the administrator are not in every user's path.
    let search = format!("{}:/usr/sbin:/sbin", std::env::var("PATH").unwrap_or_default());
    let mut command = Command::new(tool);
    command.args(args).arg(&path).env("PATH", search);
    match command.stdin(Stdio::null()).output() {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            println!("skipped {test}: there is no {tool}");
            return;
        }
        output => {
            let output = output.expect("the tool starts");
            let said = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.success(), "{tool} {args:?}: {said}");
        }
    }
    let file = std::fs::File::open(&path).expect("the image");
    assert_eq!(whats(&Ends::read(&file, mib << 20).expect("its ends")), want, "{tool} {args:?}");
}

#[test]
fn mkfs_ext4_makes_ext4() {
    let args = ["-q", "-L", "four"];
    made_by("mkfs_ext4_makes_ext4", "mkfs.ext4", &args, 16, "ext4 file system \"four\"");
    let args = ["-q", "-t", "ext2"];
    made_by("mkfs_ext4_makes_ext4", "mkfs.ext4", &args, 16, "ext2 file system");
}

#[test]
fn mkswap_makes_swap() {
    made_by("mkswap_makes_swap", "mkswap", &["-q", "-L", "fast"], 16, "swap space \"fast\"");
}

#[test]
fn mkfs_xfs_makes_xfs() {
    let args = ["-q", "-L", "ex"];
    made_by("mkfs_xfs_makes_xfs", "mkfs.xfs", &args, 320, "XFS file system \"ex\"");
}

#[test]
fn mkfs_btrfs_makes_btrfs() {
    let args = ["-q", "-L", "bee"];
    made_by("mkfs_btrfs_makes_btrfs", "mkfs.btrfs", &args, 256, "btrfs file system \"bee\"");
}
