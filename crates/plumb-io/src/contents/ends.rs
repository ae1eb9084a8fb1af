//! The first and the last MiB of a device: where whatever uses it leaves its mark.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;

use plumb_units::convert::{to_u64, to_usize};

/// Bytes looked at from each end.
pub(super) const END: u64 = 1 << 20;

/// Both ends of a device or image, in memory.
pub(super) struct Ends {
    size: u64,
    head: Vec<u8>,
    /// Starts at `size - tail.len()`; overlaps the head of a small device.
    tail: Vec<u8>,
}

impl Ends {
    /// Reads the ends of something of `size` bytes.
    pub(super) fn read(file: &File, size: u64) -> io::Result<Self> {
        let len = size.min(END);
        let piece = |offset: u64| {
            let mut bytes = vec![0; to_usize(len)];
            file.read_exact_at(&mut bytes, offset).map(|()| bytes)
        };
        Ok(Self { size, head: piece(0)?, tail: piece(size - len)? })
    }

    /// The ends of something that is in memory as a whole.
    pub(super) fn of(bytes: &[u8]) -> Self {
        let len = bytes.len().min(to_usize(END));
        let tail = bytes[bytes.len() - len..].to_vec();
        Self { size: to_u64(bytes.len()), head: bytes[..len].to_vec(), tail }
    }

    /// Something of `size` bytes that is zero but for `rows` (offset, bytes).
    #[cfg(test)]
    pub(super) fn sparse(size: u64, rows: &[(u64, Vec<u8>)]) -> Self {
        let len = size.min(END);
        let end = |start: u64| {
            let mut bytes = vec![0; to_usize(len)];
            for (offset, row) in rows {
                let Some(at) = offset.checked_sub(start).map(to_usize) else { continue };
                if let Some(place) = bytes.get_mut(at..at + row.len()) {
                    place.copy_from_slice(row);
                }
            }
            bytes
        };
        Self { size, head: end(0), tail: end(size - len) }
    }

    /// Bytes of the whole.
    pub(super) fn size(&self) -> u64 {
        self.size
    }

    /// `len` bytes at `offset`; `None` unless they lie within one end.
    pub(super) fn at(&self, offset: u64, len: usize) -> Option<&[u8]> {
        let slice = |bytes: &'_ [u8], from: u64| -> Option<std::ops::Range<usize>> {
            let start = to_usize(from);
            let end = start.checked_add(len)?;
            (end <= bytes.len()).then_some(start..end)
        };
        if let Some(range) = slice(&self.head, offset) {
            return Some(&self.head[range]);
        }
        let in_tail = offset.checked_sub(self.size - to_u64(self.tail.len()))?;
        slice(&self.tail, in_tail).map(|range| &self.tail[range])
    }

    /// Whether these bytes stand at `offset`.
    pub(super) fn has(&self, offset: u64, magic: &[u8]) -> bool {
        self.at(offset, magic.len()) == Some(magic)
    }

    /// A little-endian number.
    pub(super) fn u32(&self, offset: u64) -> Option<u32> {
        Some(u32::from_le_bytes(self.at(offset, 4)?.try_into().ok()?))
    }

    /// A little-endian number.
    pub(super) fn u64(&self, offset: u64) -> Option<u64> {
        Some(u64::from_le_bytes(self.at(offset, 8)?.try_into().ok()?))
    }

    /// A name of at most `len` bytes, up to the first zero byte, without blanks at its ends; `None`
    /// for an empty one. What cannot be printed is shown as `?`.
    pub(super) fn name(&self, offset: u64, len: usize) -> Option<String> {
        let bytes = self.at(offset, len)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(len);
        printable(&String::from_utf8_lossy(&bytes[..end]))
    }

    /// A name of at most `len` UTF-16 units.
    pub(super) fn wide_name(&self, offset: u64, len: usize) -> Option<String> {
        let units = self.at(offset, len * 2)?.chunks_exact(2);
        let units: Vec<u16> = units.map(|pair| u16::from_le_bytes([pair[0], pair[1]])).collect();
        let end = units.iter().position(|unit| *unit == 0).unwrap_or(len);
        printable(&String::from_utf16_lossy(&units[..end]))
    }

    /// Where the first byte that is not zero stands.
    pub(super) fn first_byte(&self) -> Option<u64> {
        let place = |bytes: &[u8]| bytes.iter().position(|byte| *byte != 0).map(to_u64);
        let in_tail = || Some(place(&self.tail)? + self.size - to_u64(self.tail.len()));
        place(&self.head).or_else(in_tail)
    }
}

fn printable(name: &str) -> Option<String> {
    let name: String = name.chars().map(|c| if c.is_control() { '?' } else { c }).collect();
    let name = name.trim();
    (!name.is_empty()).then(|| name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_found_in_either_end() {
        let mut bytes = vec![0; 3 << 20];
        bytes[(1 << 20) - 1] = 1;
        bytes[2 << 20] = 2;
        let ends = Ends::of(&bytes);
        assert!(ends.has((1 << 20) - 1, &[1]));
        assert_eq!(ends.at((1 << 20) - 1, 2), None);
        assert!(ends.has(2 << 20, &[2, 0]));
        assert_eq!(ends.at((3 << 20) - 1, 2), None);
        assert_eq!(ends.at(u64::MAX, 2), None);
        assert_eq!(ends.first_byte(), Some((1 << 20) - 1));
    }

    #[test]
    fn small_things_are_all_end() {
        let ends = Ends::of(b"\0\0abc");
        assert_eq!((ends.size(), ends.first_byte()), (5, Some(2)));
        assert!(ends.has(2, b"abc"));
        assert_eq!(ends.u32(1), Some(u32::from_le_bytes(*b"\0abc")));
        assert_eq!(ends.u32(2), None);
        assert_eq!(Ends::of(&[]).first_byte(), None);
    }

    #[test]
    fn names_are_printable() {
        let ends = Ends::of(b"  ab\x1b \0c\0\0x\0y\0\0\0");
        assert_eq!(ends.name(0, 8).as_deref(), Some("ab?"));
        assert_eq!(ends.name(9, 2), None);
        assert_eq!(ends.wide_name(10, 3).as_deref(), Some("xy"));
    }
}
