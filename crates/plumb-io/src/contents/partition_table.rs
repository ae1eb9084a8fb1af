//! Partition tables: MBR, GPT and its copy at the end.

use super::ends::Ends;
use super::signature::Signature;

/// Logical block sizes that a table may count in. An image of a disk with 4 KiB blocks on one with
/// 512 byte blocks has its table where the first disk had it.
const BLOCK_SIZES: [u64; 4] = [512, 1024, 2048, 4096];

/// The tables found. `is_taken` says that the first sector belongs to something else.
pub(super) fn find(ends: &Ends, is_taken: bool) -> Vec<Signature> {
    let mut found: Vec<Signature> =
        BLOCK_SIZES.iter().filter_map(|&block| gpt(ends, block)).collect();
    let has_gpt = !found.is_empty();
    found.extend(BLOCK_SIZES.iter().filter_map(|&block| gpt_copy(ends, block)));
    if !has_gpt && !is_taken {
        found.extend(mbr(ends));
    }
    found.extend(apple(ends));
    found.extend(bsd(ends));
    found
}

/// A GUID partition table: header in block 1, its entries where the header says.
///
/// ```text
/// +0 "EFI PART"   +72 block of the entries (8)   +80 number of entries (4)   +84 bytes of an entry (4)
/// entry: +0 type (16 bytes, zero when unused)
/// ```
fn gpt(ends: &Ends, block: u64) -> Option<Signature> {
    if !ends.has(block, b"EFI PART") {
        return None;
    }
    let what = match gpt_partitions(ends, block) {
        Some(1) => "GPT partition table with 1 partition".to_owned(),
        Some(count) => format!("GPT partition table with {count} partitions"),
        None => "GPT partition table".to_owned(),
    };
    Some(Signature { offset: block, what })
}

/// Used entries; `None` when the header makes no sense or its entries are out of sight.
fn gpt_partitions(ends: &Ends, block: u64) -> Option<u32> {
    let entries = ends.u64(block + 72)?.checked_mul(block)?;
    let count = ends.u32(block + 80)?;
    let bytes = u64::from(ends.u32(block + 84)?);
    if count > 1024 || !(128..=4096).contains(&bytes) {
        return None;
    }
    let mut used = 0;
    for entry in 0..u64::from(count) {
        let kind = ends.at(entries.checked_add(entry * bytes)?, 16)?;
        used += u32::from(kind.iter().any(|byte| *byte != 0));
    }
    Some(used)
}

/// The copy of the header in the last block.
fn gpt_copy(ends: &Ends, block: u64) -> Option<Signature> {
    let offset = (ends.size() / block).checked_sub(1)? * block;
    let what = "GPT partition table (copy at the end)".to_owned();
    (offset > block && ends.has(offset, b"EFI PART")).then_some(Signature { offset, what })
}

/// A master boot record: four entries of 16 bytes at 446 (+0 boot flag, +4 type, +12 sectors), then
/// 0x55 0xaa.
fn mbr(ends: &Ends) -> Option<Signature> {
    const PROTECTIVE: u8 = 0xee;
    if !ends.has(510, &[0x55, 0xaa]) {
        return None;
    }
    let entries = [446, 462, 478, 494].map(|offset| ends.at(offset, 16).unwrap_or(&[0; 16]));
    let makes_sense = entries.iter().all(|entry| [0, 0x80].contains(&entry[0]));
    let used = entries.iter().filter(|entry| entry[4] != 0 && entry[12..] != [0; 4]);
    let kinds: Vec<u8> = used.map(|entry| entry[4]).collect();
    let what = match kinds.as_slice() {
        _ if !makes_sense => "boot sector".to_owned(),
        [] => "boot sector".to_owned(),
        kinds if kinds.contains(&PROTECTIVE) => "protective MBR of a GPT".to_owned(),
        [_] => "MBR partition table with 1 partition".to_owned(),
        kinds => format!("MBR partition table with {} partitions", kinds.len()),
    };
    Some(Signature { offset: 510, what })
}

/// An Apple partition map: driver descriptor in block 0, first entry in block 1.
fn apple(ends: &Ends) -> Option<Signature> {
    let found = ends.has(0, b"ER") && ends.has(512, b"PM\0\0");
    found.then(|| Signature { offset: 512, what: "Apple partition map".to_owned() })
}

/// A BSD disk label in sector 0 or 1: its magic number first and at +132.
fn bsd(ends: &Ends) -> Option<Signature> {
    const MAGIC: [u8; 4] = [0x57, 0x45, 0x56, 0x82];
    let offset = [0, 64, 128, 512]
        .into_iter()
        .find(|offset| ends.has(*offset, &MAGIC) && ends.has(offset + 132, &MAGIC))?;
    Some(Signature { offset, what: "BSD disk label".to_owned() })
}
