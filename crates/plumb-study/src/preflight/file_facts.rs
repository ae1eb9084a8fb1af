//! How a file is kept: what its file system does to its data, from where on it takes direct I/O, and in how many pieces
//! it lies.

use std::fs::File;

use plumb_sys::device as node;
use rustix::fs::{AtFlags, IFlags, StatxAttributes, StatxFlags, ioctl_getflags, statx};

/// Extents that are counted at most.
const EXTENTS_MOST: u64 = 100_000;
/// Pieces from which on a file may count as scattered …
const PIECES_FROM: u64 = 64;
/// … and their mean size in bytes below which it does.
const PIECE_LEAST: u64 = 4 << 20;

/// What the file system says of a file, or of the folder that it will be made in. What is not told is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct FileFacts {
    /// Its data is compressed.
    pub(super) is_compressed: bool,
    /// It is encrypted.
    pub(super) is_encrypted: bool,
    /// Each read is checked against a tree of hashes (fs-verity); it cannot be written.
    pub(super) is_verified: bool,
    /// It was asked to be written in place where the file system would copy.
    pub(super) is_in_place: Option<bool>,
    /// Bytes that offsets and lengths of direct I/O are multiples of; 0 where there is none.
    pub(super) direct_bytes: Option<u32>,
    /// Pieces, and the bytes in them.
    pub(super) pieces: Option<(u64, u64)>,
}

impl FileFacts {
    /// Asks. `is_folder` where the file is to be made there: it inherits what the folder is marked with.
    pub(super) fn of(file: &File, is_folder: bool) -> Self {
        let told = statx(file, "", AtFlags::EMPTY_PATH, StatxFlags::DIOALIGN).ok();
        let has = |attribute| told.is_some_and(|told| told.stx_attributes.contains(attribute));
        let tells_direct = |mask: u32| mask & StatxFlags::DIOALIGN.bits() != 0 && !is_folder;
        let marks = ioctl_getflags(file).ok();
        Self {
            is_compressed: has(StatxAttributes::COMPRESSED),
            is_encrypted: has(StatxAttributes::ENCRYPTED),
            is_verified: has(StatxAttributes::VERITY),
            is_in_place: marks.map(|marks| marks.contains(IFlags::NOCOW)),
            direct_bytes: told
                .filter(|told| tells_direct(told.stx_mask))
                .map(|told| told.stx_dio_offset_align),
            pieces: if is_folder { None } else { pieces(file) },
        }
    }

    /// What of it makes results other than those of a plain file.
    pub(super) fn wrong(&self, block_bytes: Option<u64>) -> Vec<String> {
        let mut wrong = Vec::new();
        if self.is_compressed {
            wrong.push(
                "the file is compressed: what reaches the device depends on the data".to_owned(),
            );
        }
        if self.is_encrypted {
            wrong.push("the file is encrypted: processors take part in each I/O".to_owned());
        }
        if self.is_verified {
            wrong.push(
                "the file is sealed by fs-verity: each read is verified, nothing can be written"
                    .to_owned(),
            );
        }
        match (self.direct_bytes, block_bytes) {
            (Some(0), _) => {
                wrong.push(
                    "there is no direct I/O on this file: the page cache is measured".to_owned(),
                );
            }
            (Some(least), Some(block)) if !block.is_multiple_of(least.into()) => {
                wrong.push(format!(
                    "direct I/O takes multiples of {least} bytes, and I/Os of {block} are planned"
                ));
            }
            _ => {}
        }
        if let Some((count, bytes)) = self.pieces
            && count >= PIECES_FROM
            && bytes / count < PIECE_LEAST
        {
            wrong.push(format!(
                "the file lies in {count} pieces of {} KiB on average: sequential I/O is not sequential below",
                (bytes / count) >> 10
            ));
        }
        wrong
    }

    /// The rest of it, for the evidence.
    pub(super) fn said(&self) -> String {
        let mut said = String::new();
        if let Some(least) = self.direct_bytes.filter(|least| *least > 0) {
            said.push_str(&format!("; direct I/O in multiples of {least} bytes"));
        }
        if let Some((count, _)) = self.pieces {
            let more = if count >= EXTENTS_MOST { " or more" } else { "" };
            said.push_str(&format!("; extents: {count}{more}"));
        }
        said
    }
}

/// Extents that are joined on the device count as one piece.
fn pieces(file: &File) -> Option<(u64, u64)> {
    let (mut count, mut bytes, mut end) = (0_u64, 0_u64, None);
    let visit = |extent: node::Extent| {
        if extent.physical.is_none() || extent.physical != end {
            count += 1;
        }
        bytes += extent.len;
        end = extent.physical.map(|at| at.saturating_add(extent.len));
        count < EXTENTS_MOST
    };
    node::extents(file, visit).ok()?;
    Some((count, bytes))
}
