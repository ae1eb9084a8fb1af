//! One line of a trace as text.

use super::TraceFormat;
use crate::heat::{HostIo, HostIoKind};

/// Bytes of a sector in traces.
const SECTOR: u64 = 512;
/// A longer I/O is a damaged line.
const LONGEST: u64 = 1 << 30;

/// What a line says.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Line<'a> {
    /// An I/O: nanoseconds since some beginning, and the name of its volume.
    Io { at: u64, volume: Volume<'a>, io: HostIo },
    /// Something that is no I/O, as it should be.
    Other,
    /// A step of an I/O that is no I/O of its own: only the first one counts.
    Step,
    /// Nothing that follows is an I/O.
    End,
}

/// A volume as a trace names it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Volume<'a> {
    /// In one field.
    One(&'a str),
    /// In two.
    Two(&'a str, &'a str),
}

/// What is wrong with a line.
pub(super) type Fault = String;

/// Reads a line.
pub(super) fn parse(format: TraceFormat, line: &str) -> Result<Line<'_>, Fault> {
    match format {
        TraceFormat::Msr => msr(&fields(line)?),
        TraceFormat::Alibaba => alibaba(&fields(line)?),
        TraceFormat::Tencent => tencent(&fields(line)?),
        TraceFormat::Spc => spc(&fields(line)?),
        TraceFormat::Fiu => fiu(line),
        TraceFormat::Blkparse => blkparse(line),
        TraceFormat::Plumb => Err("a text where records of 32 bytes should be".to_owned()),
    }
}

/// At least five fields between commas, at most seven are looked at.
fn fields(line: &str) -> Result<[&str; 7], Fault> {
    let (mut found, mut count) = ([""; 7], 0);
    for field in line.split(',') {
        if let Some(place) = found.get_mut(count) {
            *place = field.trim();
        }
        count += 1;
    }
    match count {
        5.. => Ok(found),
        _ => Err(format!("it has {count} fields between commas")),
    }
}

fn number(what: &str, text: &str) -> Result<u64, Fault> {
    text.parse().map_err(|_| format!("{what} is {text:?}, not a whole number"))
}

/// Seconds with up to nine decimals as nanoseconds.
fn seconds(text: &str) -> Result<u64, Fault> {
    let wrong = || format!("the timestamp is {text:?}, not seconds");
    let (whole, part) = text.split_once('.').unwrap_or((text, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    if whole.is_empty() || !digits(whole) || !digits(part) {
        return Err(wrong());
    }
    let whole: u64 = whole.parse().map_err(|_| wrong())?;
    let part = part.bytes().chain(std::iter::repeat(b'0')).take(9);
    let nanos = part.fold(0, |sum, digit| sum * 10 + u64::from(digit - b'0'));
    whole.checked_mul(1_000_000_000).and_then(|ns| ns.checked_add(nanos)).ok_or_else(wrong)
}

fn scaled(what: &str, value: u64, unit: u64) -> Result<u64, Fault> {
    value.checked_mul(unit).ok_or_else(|| format!("{what} is {value}, too large"))
}

fn kind(text: &str) -> Result<HostIoKind, Fault> {
    match text {
        "R" | "r" | "Read" | "read" => Ok(HostIoKind::Read),
        "W" | "w" | "Write" | "write" => Ok(HostIoKind::Write),
        _ => Err(format!("the direction is {text:?}, neither read nor write")),
    }
}

fn io<'a>(
    at: u64,
    volume: Volume<'a>,
    kind: HostIoKind,
    offset: u64,
    len: u64,
) -> Result<Line<'a>, Fault> {
    if len == 0 || len > LONGEST {
        return Err(format!("the size is {len} bytes, not 1 byte to 1 GiB"));
    }
    // The volume is part of the address later on.
    if offset.checked_add(len).is_none_or(|end| end > 1 << 56) {
        return Err(format!("the offset is {offset}, beyond 64 PiB"));
    }
    Ok(Line::Io { at, volume, io: HostIo { kind, offset, len } })
}

fn msr<'a>(fields: &[&'a str; 7]) -> Result<Line<'a>, Fault> {
    let [at, host, disk, direction, offset, size, _] = *fields;
    if host.is_empty() || disk.is_empty() {
        return Err("the host or the disk has no name".to_owned());
    }
    let at = scaled("the timestamp", number("the timestamp", at)?, 100)?;
    let (offset, size) = (number("the offset", offset)?, number("the size", size)?);
    io(at, Volume::Two(host, disk), kind(direction)?, offset, size)
}

fn alibaba<'a>(fields: &[&'a str; 7]) -> Result<Line<'a>, Fault> {
    let [device, direction, offset, len, at, ..] = *fields;
    number("the device", device)?;
    let at = scaled("the timestamp", number("the timestamp", at)?, 1000)?;
    let (offset, len) = (number("the offset", offset)?, number("the length", len)?);
    io(at, Volume::One(device), kind(direction)?, offset, len)
}

fn tencent<'a>(fields: &[&'a str; 7]) -> Result<Line<'a>, Fault> {
    let [at, offset, size, direction, volume, ..] = *fields;
    number("the volume", volume)?;
    let offset = scaled("the offset", number("the offset", offset)?, SECTOR)?;
    let size = scaled("the size", number("the size", size)?, SECTOR)?;
    let kind = match direction {
        "0" => HostIoKind::Read,
        "1" => HostIoKind::Write,
        _ => return Err(format!("the type is {direction:?}, neither 0 (read) nor 1 (write)")),
    };
    io(seconds(at)?, Volume::One(volume), kind, offset, size)
}

fn spc<'a>(fields: &[&'a str; 7]) -> Result<Line<'a>, Fault> {
    let [asu, lba, size, opcode, at, ..] = *fields;
    number("the ASU", asu)?;
    let offset = scaled("the LBA", number("the LBA", lba)?, SECTOR)?;
    io(seconds(at)?, Volume::One(asu), kind(opcode)?, offset, number("the size", size)?)
}

/// The process may have blanks in its name, so fields are counted from both ends.
fn fiu(line: &str) -> Result<Line<'_>, Fault> {
    let fields: Vec<&str> = line.split_ascii_whitespace().collect();
    let [at, _pid, .., lba, size, direction, major, minor, _hash] = fields.as_slice() else {
        return Err(format!("it has {} fields between blanks, not 9", fields.len()));
    };
    if fields.len() < 9 {
        return Err(format!("it has {} fields between blanks, not 9", fields.len()));
    }
    let offset = scaled("the LBA", number("the LBA", lba)?, SECTOR)?;
    let size = scaled("the size", number("the size", size)?, SECTOR)?;
    io(number("the timestamp", at)?, Volume::Two(major, minor), kind(direction)?, offset, size)
}

/// Requests as they are queued (action Q); the summary at the end is no part of the trace.
fn blkparse(line: &str) -> Result<Line<'_>, Fault> {
    let mut words = line.split_ascii_whitespace();
    let device = words.next().unwrap_or_default();
    if device.starts_with("CPU") || device == "Total" {
        return Ok(Line::End);
    }
    let Some((major, minor)) = device.split_once(',') else {
        return Err(format!("the device is {device:?}, not major,minor"));
    };
    number("the device's major number", major)?;
    number("the device's minor number", minor)?;
    let mut next = |what: &str| words.next().ok_or_else(|| format!("{what} is missing"));
    number("the processor", next("the processor")?)?;
    number("the sequence number", next("the sequence number")?)?;
    let at = seconds(next("the timestamp")?)?;
    next("the process id")?;
    let (action, rwbs) = (next("the action")?, next("the kind of request")?);
    let kind = match (rwbs.contains('R'), rwbs.contains('W')) {
        (true, false) => HostIoKind::Read,
        (false, true) => HostIoKind::Write,
        // Discards, flushes, plugs, messages.
        _ => return Ok(Line::Other),
    };
    if rwbs.contains('D') {
        return Ok(Line::Other);
    }
    if action != "Q" {
        return Ok(Line::Step);
    }
    let sector = match next("the sector") {
        Ok(text) if !text.starts_with('[') => number("the sector", text)?,
        // A flush that writes nothing.
        _ => return Ok(Line::Other),
    };
    match next("the size") {
        Ok("+") => {}
        _ => return Ok(Line::Other),
    }
    let size = scaled("the size", number("the size", next("the size")?)?, SECTOR)?;
    if size == 0 {
        return Ok(Line::Other);
    }
    io(at, Volume::Two(major, minor), kind, scaled("the sector", sector, SECTOR)?, size)
}
