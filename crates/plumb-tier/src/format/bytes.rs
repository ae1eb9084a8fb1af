//! Little-endian fields, written without limit and read without trust.

/// Bytes of a text at most.
pub(crate) const TEXT_MAX: usize = 255;

/// Appends fields.
#[derive(Debug, Default)]
pub(crate) struct Writer(pub(crate) Vec<u8>);

impl Writer {
    pub(crate) fn u8(&mut self, value: u8) {
        self.0.push(value);
    }
    pub(crate) fn u16(&mut self, value: u16) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub(crate) fn u32(&mut self, value: u32) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub(crate) fn u64(&mut self, value: u64) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    pub(crate) fn u128(&mut self, value: u128) {
        self.0.extend_from_slice(&value.to_le_bytes());
    }
    /// Length in two bytes, then UTF-8, cut after 255 bytes at a character's end.
    pub(crate) fn text(&mut self, value: &str) {
        let mut end = value.len().min(TEXT_MAX);
        while !value.is_char_boundary(end) {
            end -= 1;
        }
        self.u16(u16::try_from(end).unwrap_or(0));
        self.0.extend_from_slice(&value.as_bytes()[..end]);
    }
}

/// Puts fields into bytes that are there, from the front; what has no room is left out.
#[derive(Debug)]
pub(crate) struct Fields<'a>(&'a mut [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn new(bytes: &'a mut [u8]) -> Self {
        Self(bytes)
    }

    fn put<const N: usize>(&mut self, value: [u8; N]) -> &mut Self {
        if let Some((head, tail)) = std::mem::take(&mut self.0).split_first_chunk_mut::<N>() {
            *head = value;
            self.0 = tail;
        }
        self
    }

    pub(crate) fn u32(&mut self, value: u32) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    pub(crate) fn u64(&mut self, value: u64) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    /// Zeros to the end.
    pub(crate) fn zeros(&mut self) {
        self.0.fill(0);
    }
}

/// Takes fields from the front; `None` when too few bytes are left.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl<'a> Reader<'a> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (head, tail) = self.0.split_first_chunk::<N>()?;
        self.0 = tail;
        Some(*head)
    }
    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.take().map(|[byte]: [u8; 1]| byte)
    }
    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.take().map(u16::from_le_bytes)
    }
    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_le_bytes)
    }
    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_le_bytes)
    }
    pub(crate) fn u128(&mut self) -> Option<u128> {
        self.take().map(u128::from_le_bytes)
    }
    pub(crate) fn text(&mut self) -> Option<&'a str> {
        let len = usize::from(self.u16()?);
        if len > TEXT_MAX || len > self.0.len() {
            return None;
        }
        let (head, tail) = self.0.split_at(len);
        self.0 = tail;
        std::str::from_utf8(head).ok()
    }
}
