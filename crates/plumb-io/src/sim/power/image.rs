//! What a disk holds: sparse, cheap to copy.

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::Arc;

use plumb_units::convert::{to_u64, to_usize};

/// Bytes per page of an image.
pub const PAGE_BYTES: u64 = 4096;
const PAGE_LEN: usize = 4096;

type Page = [u8; PAGE_LEN];
type Pages = HashMap<u64, Arc<Page>, BuildHasherDefault<PageHasher>>;

/// Page numbers need no more than one multiplication to be strewn.
#[derive(Debug, Default, Clone)]
struct PageHasher(u64);

impl Hasher for PageHasher {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, bytes: &[u8]) {
        for &byte in bytes {
            self.write_u64(u64::from(byte));
        }
    }
    fn write_u64(&mut self, value: u64) {
        self.0 = (self.0 ^ value).wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(29);
    }
}

/// What a write stores. Whole pages are shared by everybody who keeps them, and by the images that they land on.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Payload(Stored);

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Stored {
    Pages(Arc<[Arc<Page>]>),
    Bytes(Arc<[u8]>),
}

impl Payload {
    /// What is written to byte `offset` of a disk.
    #[must_use]
    pub fn new(offset: u64, bytes: &[u8]) -> Self {
        let (pages, rest) = bytes.as_chunks::<PAGE_LEN>();
        if offset.is_multiple_of(PAGE_BYTES) && rest.is_empty() {
            return Self(Stored::Pages(pages.iter().map(|page| Arc::new(*page)).collect()));
        }
        Self(Stored::Bytes(bytes.into()))
    }

    /// How many bytes.
    #[must_use]
    pub fn bytes(&self) -> usize {
        match &self.0 {
            Stored::Pages(pages) => pages.len() * PAGE_LEN,
            Stored::Bytes(bytes) => bytes.len(),
        }
    }

    /// The part that begins at byte `at`: `len` bytes, which divide a page, or what is left.
    #[must_use]
    pub fn part(&self, at: usize, len: usize) -> &[u8] {
        match &self.0 {
            Stored::Pages(pages) => &pages[at / PAGE_LEN][at % PAGE_LEN..][..len],
            Stored::Bytes(bytes) => &bytes[at..bytes.len().min(at + len)],
        }
    }
}

/// The bytes of a disk; zero where nothing was written. Copies share their pages.
#[derive(Debug, Clone, Default)]
pub struct Image {
    size: u64,
    base: Arc<Pages>,
    top: Pages,
}

impl Image {
    /// An empty disk of that many bytes.
    #[must_use]
    pub fn new(size: u64) -> Self {
        Self { size, ..Self::default() }
    }

    /// Length in bytes.
    #[must_use]
    pub fn size(&self) -> u64 {
        self.size
    }

    /// A copy that shares everything so far: cheap however much was written.
    #[must_use]
    pub fn fork(&mut self) -> Self {
        if !self.top.is_empty() {
            let base = Arc::make_mut(&mut self.base);
            base.extend(self.top.drain());
        }
        Self { size: self.size, base: Arc::clone(&self.base), top: Pages::default() }
    }

    fn page(&self, number: u64) -> Option<&Arc<Page>> {
        self.top.get(&number).or_else(|| self.base.get(&number))
    }

    /// Fills `buffer` from `offset` on.
    ///
    /// # Panics
    /// When the range does not lie on the disk.
    pub fn read(&self, offset: u64, buffer: &mut [u8]) {
        assert!(offset + to_u64(buffer.len()) <= self.size, "read behind the end of the disk");
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + to_u64(done);
            let skip = to_usize(at % PAGE_BYTES);
            let len = (PAGE_LEN - skip).min(buffer.len() - done);
            let target = &mut buffer[done..done + len];
            match self.page(at / PAGE_BYTES) {
                Some(page) => target.copy_from_slice(&page[skip..skip + len]),
                None => target.fill(0),
            }
            done += len;
        }
    }

    /// Stores `bytes` from `offset` on.
    ///
    /// # Panics
    /// When the range does not lie on the disk.
    pub fn write(&mut self, offset: u64, bytes: &[u8]) {
        assert!(offset + to_u64(bytes.len()) <= self.size, "write behind the end of the disk");
        let mut done = 0;
        while done < bytes.len() {
            let at = offset + to_u64(done);
            let skip = to_usize(at % PAGE_BYTES);
            let len = (PAGE_LEN - skip).min(bytes.len() - done);
            let number = at / PAGE_BYTES;
            let source = &bytes[done..done + len];
            if let Ok(whole) = <&Page>::try_from(source) {
                self.top.insert(number, Arc::new(*whole));
            } else {
                let shared =
                    || self.base.get(&number).map_or_else(|| Arc::new([0; PAGE_LEN]), Arc::clone);
                let page = self.top.entry(number).or_insert_with(shared);
                Arc::make_mut(page)[skip..skip + len].copy_from_slice(source);
            }
            done += len;
        }
    }

    /// Turns one bit, 0 to 7, of the byte at `offset` over.
    ///
    /// # Panics
    /// When the byte does not lie on the disk.
    pub fn flip(&mut self, offset: u64, bit: u8) {
        let mut byte = [0];
        self.read(offset, &mut byte);
        self.write(offset, &[byte[0] ^ 1 << bit]);
    }

    /// Stores what a write to `offset` carries.
    ///
    /// # Panics
    /// When the range does not lie on the disk.
    pub fn put(&mut self, offset: u64, payload: &Payload) {
        match &payload.0 {
            Stored::Bytes(bytes) => self.write(offset, bytes),
            Stored::Pages(pages) => {
                let end = offset + to_u64(payload.bytes());
                assert!(end <= self.size, "write behind the end of the disk");
                for (number, page) in (offset / PAGE_BYTES..).zip(pages.iter()) {
                    self.top.insert(number, Arc::clone(page));
                }
            }
        }
    }

    /// Offsets in bytes of all pages ever written, ascending.
    #[must_use]
    pub fn written(&self) -> Vec<u64> {
        let mut all: Vec<u64> =
            self.base.keys().chain(self.top.keys()).map(|number| number * PAGE_BYTES).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
