//! The kernel's pages of events, in the format of its ring buffer (`events/header_page`, `header_event`).
//!
//! A page has a time, a length, then events: a word of 5 bits of type and 27 bits of time since the event
//! before, then data. Types 1 to 28 have as many words of data, 0 has its length in the word behind, 29 is
//! padding, 30 extends the time, 31 sets it.

use std::fs::File;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use plumb_units::convert;

/// Where fields lie in an event.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Layout {
    id: u16,
    device: usize,
    sector: usize,
    sectors: usize,
    flags: usize,
}

impl Layout {
    /// Reads an event's `format` file.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let id = text.lines().find_map(|line| line.strip_prefix("ID: "))?.trim().parse().ok()?;
        let field = |name: &str| -> Option<usize> {
            let line = text.lines().find(|line| {
                let declaration =
                    line.trim().strip_prefix("field:").and_then(|rest| rest.split(';').next());
                let last = declaration.and_then(|words| words.rsplit(' ').next());
                last.is_some_and(|word| word.split('[').next() == Some(name))
            })?;
            let (_, rest) = line.split_once("offset:")?;
            rest.split(';').next()?.parse().ok()
        };
        Some(Self {
            id,
            device: field("dev")?,
            sector: field("sector")?,
            sectors: field("nr_sector")?,
            flags: field("rwbs")?,
        })
    }
}

/// What happened to a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// It was handed to the driver.
    Issue,
    /// The driver gave it back undone; it will be issued again.
    Requeue,
    /// It is done.
    Complete,
}

/// Where the fields of each event lie.
pub(super) type Layouts = [(What, Layout); 3];

/// An event of a block device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Raw {
    /// On the trace's clock.
    pub(super) ticks: u64,
    pub(super) what: What,
    /// As the kernel packs it.
    pub(super) device: u32,
    pub(super) sector: u64,
    pub(super) sectors: u64,
    pub(super) is_write: bool,
}

/// Reads all pages of one processor.
pub(super) fn read(pipe: &Path, layouts: &Layouts, out: &mut Vec<Raw>) -> io::Result<()> {
    const NONBLOCK: i32 = 0o4000;
    let mut pipe = File::options().read(true).custom_flags(NONBLOCK).open(pipe)?;
    // Each read gives one page, whatever its size, as long as the buffer holds it.
    let mut page = vec![0; 65536];
    loop {
        match pipe.read(&mut page) {
            Ok(0) => return Ok(()),
            Ok(length) => parse(&page[..length], layouts, out),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
}

/// Reads any bytes as a page.
///
/// # Panics
/// When an event lies outside of it.
#[doc(hidden)]
pub fn fuzz_pages(bytes: &[u8]) {
    let issue = Layout { id: 1, device: 8, sector: 16, sectors: 24, flags: 34 };
    let mut events = Vec::new();
    let layouts = [(What::Issue, 1), (What::Requeue, 3), (What::Complete, 2)];
    parse(bytes, &layouts.map(|(what, id)| (what, Layout { id, ..issue })), &mut events);
    assert!(events.len() <= bytes.len() / 4, "an event has a word at least");
}

fn parse(page: &[u8], layouts: &Layouts, out: &mut Vec<Raw>) {
    let (Some(mut time), Some(commit)) = (word64(page, 0), word64(page, 8)) else { return };
    // The upper bits of the length say that events were lost before this page.
    let end = page.len().min(16 + convert::to_usize(commit & 0xf_ffff));
    let mut at = 16;
    while at + 4 <= end {
        let Some(head) = word32(page, at) else { return };
        let (kind, delta) = (head & 31, u64::from(head >> 5));
        at += 4;
        let words = match kind {
            0 | 29 => {
                let Some(length) = word32(page, at) else { return };
                // The length counts itself.
                if kind == 29 && delta == 0 {
                    return;
                }
                time = time.wrapping_add(delta);
                let length = convert::index(length).max(4).div_ceil(4) * 4;
                if kind == 0 {
                    event(page.get(at + 4..end.min(at + length)), time, layouts, out);
                }
                at = at.saturating_add(length);
                continue;
            }
            30 | 31 => {
                let Some(more) = word32(page, at) else { return };
                let stamp = (u64::from(more) << 27) + delta;
                time = if kind == 30 {
                    time.wrapping_add(stamp)
                } else {
                    // A set time has 59 bits; those above stay as they were.
                    (time & !((1 << 59) - 1)) | stamp
                };
                at += 4;
                continue;
            }
            words => convert::index(words),
        };
        time = time.wrapping_add(delta);
        event(page.get(at..end.min(at + words * 4)), time, layouts, out);
        at += words * 4;
    }
}

fn event(data: Option<&[u8]>, ticks: u64, layouts: &Layouts, out: &mut Vec<Raw>) {
    let Some(data) = data else { return };
    let id = data.get(..2).map(|bytes| u16::from_ne_bytes([bytes[0], bytes[1]]));
    let Some((what, layout)) = layouts.iter().find(|(_, layout)| Some(layout.id) == id) else {
        return;
    };
    let (Some(device), Some(sector), Some(sectors), Some(flags)) = (
        word32(data, layout.device),
        word64(data, layout.sector),
        word32(data, layout.sectors),
        data.get(layout.flags..),
    ) else {
        return;
    };
    // A flush goes before or alone: `FW`, `FF`; the first letter that names a direction counts.
    let is_write = match flags.iter().take(4).find(|letter| b"RWDN".contains(letter)) {
        Some(b'R') => false,
        Some(b'W') => true,
        _ => return,
    };
    let (what, sectors) = (*what, u64::from(sectors));
    if sectors > 0 {
        out.push(Raw { ticks, what, device, sector, sectors, is_write });
    }
}

fn word32(bytes: &[u8], at: usize) -> Option<u32> {
    let bytes = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(bytes.try_into().expect("four bytes")))
}

fn word64(bytes: &[u8], at: usize) -> Option<u64> {
    let bytes = bytes.get(at..at.checked_add(8)?)?;
    Some(u64::from_ne_bytes(bytes.try_into().expect("eight bytes")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const FORMAT: &str = "name: block_rq_issue\nID: 2104\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\n\
        \tfield:dev_t dev;\toffset:8;\tsize:4;\tsigned:0;\n\
        \tfield:sector_t sector;\toffset:16;\tsize:8;\tsigned:0;\n\
        \tfield:unsigned int nr_sector;\toffset:24;\tsize:4;\tsigned:0;\n\
        \tfield:char rwbs[10];\toffset:34;\tsize:10;\tsigned:0;\n\nprint fmt: \"%d\", REC->dev\n";

    fn layout() -> Layout {
        Layout::parse(FORMAT).expect("a format")
    }

    #[test]
    fn fields_are_where_the_kernel_says() {
        let want = Layout { id: 2104, device: 8, sector: 16, sectors: 24, flags: 34 };
        assert_eq!(layout(), want);
        assert_eq!(Layout::parse("ID: 1\n"), None);
    }

    fn data(id: u16, sector: u64, rwbs: &[u8]) -> Vec<u8> {
        let mut data = vec![0; 48];
        data[..2].copy_from_slice(&id.to_ne_bytes());
        data[8..12].copy_from_slice(&(254_u32 << 20).to_ne_bytes());
        data[16..24].copy_from_slice(&sector.to_ne_bytes());
        data[24..28].copy_from_slice(&8_u32.to_ne_bytes());
        data[34..34 + rwbs.len()].copy_from_slice(rwbs);
        data
    }

    #[test]
    fn a_page_is_read_event_by_event() {
        let mut body: Vec<u8> = Vec::new();
        let mut push = |kind: u32, delta: u32, bytes: &[u8]| {
            body.extend_from_slice(&(kind | delta << 5).to_ne_bytes());
            body.extend_from_slice(bytes);
        };
        push(12, 5, &data(2104, 16, b"RA"));
        push(30, 3, &1_u32.to_ne_bytes());
        let mut long = 52_u32.to_ne_bytes().to_vec();
        long.extend(data(2107, 16, b"RA"));
        push(0, 2, &long);
        push(12, 1, &data(2105, 17, b"R"));
        push(12, 1, &data(2104, 99, b"FWS"));
        push(12, 1, &data(2104, 98, b"D"));
        push(29, 0, &[0; 4]);
        let mut page = 1000_u64.to_ne_bytes().to_vec();
        page.extend_from_slice(&u64::try_from(body.len()).expect("small").to_ne_bytes());
        page.extend(body);
        page.resize(4096, 0);
        let mut out = Vec::new();
        let ids = [(What::Issue, 2104), (What::Requeue, 2105), (What::Complete, 2107)];
        parse(&page, &ids.map(|(what, id)| (what, Layout { id, ..layout() })), &mut out);
        let seen: Vec<_> =
            out.iter().map(|raw| (raw.ticks, raw.what, raw.sector, raw.is_write)).collect();
        let extended = 1005 + (1 << 27) + 3;
        assert_eq!(
            seen,
            [
                (1005, What::Issue, 16, false),
                (extended + 2, What::Complete, 16, false),
                (extended + 3, What::Requeue, 17, false),
                (extended + 4, What::Issue, 99, true)
            ]
        );
    }

    #[test]
    fn damaged_pages_are_read_as_far_as_they_go() {
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for round in 0..20_000_usize {
            let mut page = vec![0_u8; 16 + round % 300];
            for byte in &mut page {
                state ^= state << 13;
                state ^= state >> 7;
                state ^= state << 17;
                *byte = state.to_le_bytes()[3];
            }
            fuzz_pages(&page);
        }
    }
}
