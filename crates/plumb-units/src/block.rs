//! Logical blocks and their addresses.

/// A logical block address: counts blocks, never bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lba(pub u64);

/// A logical block size: a power of two, 512 bytes or more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlockSize(u32);

impl BlockSize {
    /// `None` unless `bytes` is a power of two of at least 512.
    #[must_use]
    pub fn new(bytes: u32) -> Option<Self> {
        (bytes.is_power_of_two() && bytes >= 512).then_some(Self(bytes))
    }

    /// Bytes per block.
    #[must_use]
    pub fn bytes(self) -> u32 {
        self.0
    }

    /// Whether `offset` lies on a block boundary.
    #[must_use]
    pub fn divides(self, offset: u64) -> bool {
        offset.is_multiple_of(u64::from(self.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn block_size_is_a_power_of_two_of_at_least_512() {
        assert_eq!(BlockSize::new(512).map(BlockSize::bytes), Some(512));
        for bad in [0, 256, 513, 1000, 4095] {
            assert_eq!(BlockSize::new(bad), None, "{bad}");
        }
    }
}
