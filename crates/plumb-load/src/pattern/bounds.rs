//! The part of a target that I/O may touch (spec 6.4).

use crate::profile::model::Target;

/// Offsets here and in all patterns are relative to `base`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Bounds {
    /// Bytes from the start of the target.
    pub base: u64,
    /// Bytes that sequential I/O may cover.
    pub rel: u64,
    /// Size of the space of aligned starting offsets: a multiple of `align`, and every aligned start
    /// below it leaves room for a whole block.
    pub aligned: u64,
    /// Bytes.
    pub align: u64,
    /// Bytes per I/O.
    pub block: u32,
}

/// A target in which a thread finds no room for a single block.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
#[error(
    "target '{path}' is too small for relative thread {relative_thread}: size {size} bytes, base \
     offset {base}, thread stride {stride}, block size {block}"
)]
#[diagnostic(
    code(plumb::load::too_small),
    help("make the file larger (-c<size>), or choose a smaller -b, -B, -T or fewer threads")
)]
pub struct TooSmall {
    /// Which target.
    pub path: String,
    /// Index of the thread among those of the target.
    pub relative_thread: u32,
    /// Usable bytes: the target's size or its maximum offset.
    pub size: u64,
    /// `-B`.
    pub base: u64,
    /// `-T`.
    pub stride: u64,
    /// `-b`.
    pub block: u32,
}

impl Bounds {
    /// The bounds of `target` when it is `size` bytes long; `None` when not a single block fits.
    #[must_use]
    pub fn new(target: &Target, size: u64) -> Option<Self> {
        let end = match target.max_file_size {
            0 => size,
            max => size.min(max),
        };
        let rel = end.checked_sub(target.base_file_offset)?;
        let room = rel.checked_sub(target.block_size.into())?;
        // A stride near 2^64 leaves one aligned offset; the sum cannot exceed rel otherwise.
        let aligned = (room / target.alignment * target.alignment).saturating_add(target.alignment);
        Some(Self {
            base: target.base_file_offset,
            rel,
            aligned,
            align: target.alignment,
            block: target.block_size,
        })
    }

    /// The bounds for a thread, which must find room for a block at its own start.
    ///
    /// # Errors
    /// When it does not (spec 6.4).
    pub fn for_thread(target: &Target, size: u64, relative_thread: u32) -> Result<Self, TooSmall> {
        let start = target.thread_stride.checked_mul(relative_thread.into());
        let end = start.and_then(|start| start.checked_add(target.block_size.into()));
        Self::new(target, size)
            .filter(|bounds| end.is_some_and(|end| end <= bounds.rel))
            .ok_or_else(|| TooSmall {
                path: target.path.clone(),
                relative_thread,
                size: if target.max_file_size == 0 { size } else { size.min(target.max_file_size) },
                base: target.base_file_offset,
                stride: target.thread_stride,
                block: target.block_size,
            })
    }

    /// The last aligned start that leaves room for a block.
    #[must_use]
    pub fn last_start(&self) -> u64 {
        self.aligned - self.align
    }

    /// Whether a block at `offset` stays inside.
    #[inline(always)]
    #[must_use]
    pub fn fits(&self, offset: u64) -> bool {
        offset.saturating_add(u64::from(self.block)) <= self.rel
    }
}
