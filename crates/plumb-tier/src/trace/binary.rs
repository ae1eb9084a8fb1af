//! Plumb's own traces: a record of 32 bytes for each I/O.
//!
//! ```text
//! header   magic "PLUMTRAC" 8 · version, 1 4 · flags (bit 0: synthetic) 4 · zeros 12 · CRC-32C 4
//! record   nanoseconds since the first I/O 8 · offset 8 · bytes 4 · volume 4 · 0 read or 1 write 1 · zeros 3
//!          · CRC-32C 4
//! ```

use std::io::{self, Write};

use plumb_units::Nanos;

use super::TraceIo;
use crate::format::bytes::{Reader, Writer};
use crate::format::checksum::crc;
use crate::heat::{HostIo, HostIoKind};

const MAGIC: u64 = u64::from_le_bytes(*b"PLUMTRAC");
const VERSION: u32 = 1;
const SYNTHETIC: u32 = 1;
/// Bytes of the header and of a record.
pub(super) const RECORD: usize = 32;

/// Whether these first bytes of a file are those of Plumb's own trace.
#[must_use]
pub fn is_binary(bytes: &[u8]) -> bool {
    Reader(bytes).u64() == Some(MAGIC)
}

/// Writes a trace.
#[derive(Debug)]
pub struct TraceWriter<W: Write>(W);

impl<W: Write> TraceWriter<W> {
    /// Begins a trace; `synthetic` marks it as made by a generator, for ever.
    ///
    /// # Errors
    /// As `out` has them.
    pub fn new(mut out: W, synthetic: bool) -> io::Result<Self> {
        let mut bytes = Writer::default();
        bytes.u64(MAGIC);
        bytes.u32(VERSION);
        bytes.u32(if synthetic { SYNTHETIC } else { 0 });
        (0..3).for_each(|_| bytes.u32(0));
        bytes.u32(crc(0, &bytes.0));
        out.write_all(&bytes.0)?;
        Ok(Self(out))
    }

    /// Adds an I/O.
    ///
    /// # Errors
    /// As the output has them; an I/O above 4 GiB is refused.
    pub fn add(&mut self, io: &TraceIo) -> io::Result<()> {
        let len = u32::try_from(io.io.len).map_err(|_| io::ErrorKind::InvalidInput)?;
        let mut bytes = Writer::default();
        bytes.u64(io.at.0);
        bytes.u64(io.io.offset);
        bytes.u32(len);
        bytes.u32(io.volume);
        bytes.u32(u32::from(io.io.kind == HostIoKind::Write));
        bytes.u32(crc(0, &bytes.0));
        self.0.write_all(&bytes.0)
    }

    /// Ends the trace and gives the output back, flushed.
    ///
    /// # Errors
    /// As the output has them.
    pub fn end(mut self) -> io::Result<W> {
        self.0.flush()?;
        Ok(self.0)
    }
}

/// Reads a header: whether the trace is synthetic.
pub(super) fn header(bytes: &[u8; RECORD]) -> Result<bool, String> {
    let mut fields = Reader(bytes);
    if fields.u64() != Some(MAGIC) {
        return Err("it does not begin as a trace of Plumb's".to_owned());
    }
    let version = fields.u32().unwrap_or(0);
    if version != VERSION {
        return Err(format!("it has version {version}, this program reads version {VERSION}"));
    }
    let flags = fields.u32().unwrap_or(0);
    match Reader(&bytes[28..]).u32() == Some(crc(0, &bytes[..28])) {
        true => Ok(flags & SYNTHETIC != 0),
        false => Err("its header is damaged".to_owned()),
    }
}

/// Reads a record: time, volume, I/O.
pub(super) fn record(bytes: &[u8; RECORD]) -> Result<TraceIo, String> {
    if Reader(&bytes[28..]).u32() != Some(crc(0, &bytes[..28])) {
        return Err("its checksum is wrong".to_owned());
    }
    let mut fields = Reader(bytes);
    let mut next = || -> Option<TraceIo> {
        let (at, offset) = (Nanos(fields.u64()?), fields.u64()?);
        let (len, volume) = (u64::from(fields.u32()?), fields.u32()?);
        let kind = match fields.u32()? {
            0 => HostIoKind::Read,
            1 => HostIoKind::Write,
            _ => return None,
        };
        let is_sound = len > 0 && len <= 1 << 30;
        let is_sound = is_sound && offset.checked_add(len).is_some_and(|end| end <= 1 << 56);
        is_sound.then_some(TraceIo { at, volume, io: HostIo { kind, offset, len } })
    };
    next().ok_or_else(|| "its direction, size or offset cannot be".to_owned())
}
