//! The values of options: numbers, sizes and what is made of them (spec 3.3, 3.4).

use std::ops::Range;

use plumb_units::{Bytes, ParseSizeError, parse_size};

use crate::profile::error::ErrorClass;
use crate::profile::model::{Etw, FlushType, RingBatch, Throughput, ThroughputUnit, WriteContent};

/// What is wrong with an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Fault {
    /// `None` for the class of the option.
    pub(super) class: Option<ErrorClass>,
    /// What is said after the option's name.
    pub(super) what: String,
    /// What to type instead; `{}` stands for the option as it goes before a value.
    pub(super) help: String,
    pub(super) at: At,
}

/// The part of an option that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum At {
    /// All of its token.
    Option,
    /// All of its value.
    Value,
    /// These bytes of its value.
    Bytes(Range<usize>),
}

impl Fault {
    pub(super) fn option(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { class: None, what: what.into(), help: help.into(), at: At::Option }
    }

    pub(super) fn value(what: impl Into<String>, help: impl Into<String>) -> Self {
        Self { at: At::Value, ..Self::option(what, help) }
    }

    pub(super) fn of(self, class: ErrorClass) -> Self {
        Self { class: Some(class), ..self }
    }

    pub(super) fn bytes(self, bytes: Range<usize>) -> Self {
        Self { at: At::Bytes(bytes), ..self }
    }

    /// The fault of a part of a value that starts `offset` bytes in and is `len` bytes long.
    pub(super) fn in_part(self, offset: usize, len: usize) -> Self {
        let bytes = match self.at {
            At::Bytes(ref bytes) => offset + bytes.start..offset + bytes.end,
            At::Option | At::Value => offset..offset + len,
        };
        self.bytes(bytes)
    }
}

/// The bytes of the character at `start`; none at the end.
pub(super) fn one_char(text: &str, start: usize) -> Range<usize> {
    start..start + text[start..].chars().next().map_or(0, char::len_utf8)
}

/// A number read by the rules of C's `atoi`.
pub(super) struct Int {
    /// Saturated.
    pub(super) value: i32,
    /// Where reading stopped.
    pub(super) end: usize,
}

/// Optional blanks and sign, then digits up to the first other character; 0 if there are none.
pub(super) fn atoi(text: &str) -> Int {
    let (negative, start) = sign(text);
    let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Int { value: 0, end: 0 };
    }
    let limit = if negative { -i64::from(i32::MIN) } else { i64::from(i32::MAX) };
    let magnitude = digits_saturating(&text[start..start + digits], limit.unsigned_abs());
    let magnitude = i64::try_from(magnitude).expect("at most the limit");
    let value = if negative { -magnitude } else { magnitude };
    Int { value: i32::try_from(value).expect("within the limit"), end: start + digits }
}

/// Whether a `-` goes before the digits, and where they start.
fn sign(text: &str) -> (bool, usize) {
    let blanks = text.bytes().take_while(|byte| is_blank(*byte)).count();
    match text.as_bytes().get(blanks) {
        Some(b'-') => (true, blanks + 1),
        Some(b'+') => (false, blanks + 1),
        _ => (false, blanks),
    }
}

/// C's `isspace`.
fn is_blank(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t'..=b'\r')
}

fn digits_saturating(digits: &str, limit: u64) -> u64 {
    let add = |sum: u64, digit: u8| sum.saturating_mul(10).saturating_add(u64::from(digit - b'0'));
    digits.bytes().fold(0, add).min(limit)
}

/// A number above 0.
pub(super) fn positive(text: &str) -> Result<u32, Fault> {
    u32::try_from(atoi(text).value).ok().filter(|&value| value > 0).ok_or_else(|| {
        Fault::value(" needs a positive integer", "write a number from 1, as in {}4")
    })
}

/// A number of seconds.
pub(super) fn seconds(text: &str) -> Result<u32, Fault> {
    u32::try_from(atoi(text).value).map_err(|_| {
        Fault::value(": the time must not be negative", "write whole seconds, as in {}10")
    })
}

/// A number from `range`.
pub(super) fn within(text: &str, range: Range<u32>) -> Result<u32, Fault> {
    u32::try_from(atoi(text).value).ok().filter(|value| range.contains(value)).ok_or_else(|| {
        let (first, last) = (range.start, range.end - 1);
        let what = format!(" must be {first}..{last}");
        Fault::value(what, format!("write a number between {first} and {last}, as in {{}}{last}"))
    })
}

/// All of the text is a 32-bit number: larger ones saturate, a `-` wraps around (C's `strtoul`).
pub(super) fn seed(text: &str) -> Result<u32, Fault> {
    let (negative, start) = sign(text);
    let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    let end = start + digits;
    if digits == 0 || end < text.len() {
        let fault = Fault::value(
            ": the seed is not an integer",
            "write an unsigned number, as in {}42, or nothing for a seed from the time",
        );
        return Err(if digits == 0 { fault } else { fault.bytes(end..text.len()) });
    }
    let value = u32::try_from(digits_saturating(&text[start..end], u64::MAX));
    Ok(match value {
        Ok(value) if negative => value.wrapping_neg(),
        Ok(value) => value,
        Err(_) => u32::MAX,
    })
}

/// A size in bytes; `b` counts blocks of `block` bytes.
pub(super) fn size(text: &str, block: u64) -> Result<u64, Fault> {
    parse_size(text, block).map_err(|error| {
        let help = || {
            format!(
                "write digits and at most one of K, M, G, T or b (blocks of {}), as in {{}}64K",
                Bytes(block)
            )
        };
        match error {
            ParseSizeError::NoDigits if text.is_empty() => Fault::value(" needs a size", help()),
            ParseSizeError::NoDigits => Fault::value(
                format!(": a size starts with a digit, not with {:?}", first(text)),
                help(),
            )
            .bytes(one_char(text, 0)),
            ParseSizeError::Trailing(start) => {
                let after_suffix = text.as_bytes()[start - 1].is_ascii_alphabetic();
                let what = if after_suffix {
                    ": characters left over after the size suffix".to_owned()
                } else {
                    format!(": unknown size suffix {:?}", first(&text[start..]))
                };
                Fault::value(what, help()).bytes(start..text.len())
            }
            ParseSizeError::TooLarge => {
                Fault::value(": the size does not fit in 64 bits", "sizes are below 16 EiB")
            }
        }
    })
}

fn first(text: &str) -> char {
    text.chars().next().unwrap_or_default()
}

/// A size above 0.
pub(super) fn size_above_zero(text: &str, block: u64, what: &str) -> Result<u64, Fault> {
    match size(text, block)? {
        0 => Err(Fault::value(format!(": {what} must not be zero"), "write a size, as in {}64K")),
        size => Ok(size),
    }
}

/// `-b`: above 0 and below 4 GiB - 1.
pub(super) fn block_size(text: &str, block: u32) -> Result<u32, Fault> {
    let size = size_above_zero(text, block.into(), "the block size")?;
    u32::try_from(size).ok().filter(|&size| size < u32::MAX).ok_or_else(|| {
        Fault::value(
            ": the block size must be below 4 GiB - 1",
            "write a smaller block size, as in {}1M",
        )
    })
}

/// `-B`: the base and, after a colon, the length.
pub(super) fn base_and_length(text: &str, block: u64) -> Result<(u64, Option<u64>), Fault> {
    let Some((base, length)) = text.split_once(':') else {
        return Ok((size(text, block)?, None));
    };
    let start = base.len() + 1;
    let base = size(base, block).map_err(|fault| fault.in_part(0, base.len()))?;
    if length.is_empty() {
        let help = "write a length after the colon, as in {}1G:64M, or leave the colon out";
        return Err(Fault::value(": the length is missing", help).bytes(start..start));
    }
    let length = size(length, block).map_err(|fault| fault.in_part(start, length.len()))?;
    if base.checked_add(length).is_none() {
        let help = "base and length together are below 16 EiB";
        return Err(Fault::value(": base + length overflows 64 bits", help));
    }
    Ok((base, Some(length)))
}

/// `-g`: bytes per millisecond or, with a final `i`, IOPS. Whatever is between is ignored.
pub(super) fn throughput(text: &str) -> Result<Throughput, Fault> {
    let help = "write bytes per millisecond, as in {}1000, or IOPS, as in {}500i";
    let unit = match text.as_bytes().last() {
        Some(b'i') => ThroughputUnit::Iops,
        Some(b'0'..=b'9') => ThroughputUnit::BytesPerMilli,
        _ => {
            let last = text.char_indices().next_back().map_or(0, |(start, _)| start);
            let fault = Fault::value(": the value must end in a digit or i", help);
            return Err(fault.bytes(last..text.len()));
        }
    };
    match u32::try_from(atoi(text).value) {
        Ok(value @ 1..) => Ok(Throughput { value, unit }),
        _ => Err(Fault::value(" needs a positive integer", help)),
    }
}

/// The batch of `-u`, if there is one.
pub(super) fn ring_batch(text: &str) -> Result<Option<RingBatch>, Fault> {
    if text.is_empty() {
        return Ok(None);
    }
    let help = "write I/Os, as in {}16, or percent of a thread's requests, as in {}50p";
    let (negative, start) = sign(text);
    let digits = text[start..].bytes().take_while(u8::is_ascii_digit).count();
    let end = start + digits;
    let count = digits_saturating(&text[start..end], u64::from(u32::MAX));
    let count = u32::try_from(count).expect("saturated");
    let is_number = !negative && digits > 0 && matches!(&text[end..], "" | "p");
    if !is_number || count == 0 {
        let what = ": the batch must be a positive integer, optionally followed by p";
        let fault = Fault::value(what, help);
        return Err(if digits > 0 && !negative && count > 0 {
            fault.bytes(end..text.len())
        } else {
            fault
        });
    }
    let (batch, limit, unit) = match &text[end..] {
        "" => (RingBatch::Ios(count), 65536, "I/Os"),
        _ => (RingBatch::Percent(count), 100, "percent"),
    };
    if count > limit {
        let what = format!(": the batch is at most {limit} {unit}");
        return Err(Fault::value(what, help).bytes(start..text.len()));
    }
    Ok(Some(batch))
}

/// `-Z<size>[,<file>]`.
pub(super) fn write_source(text: &str, block: u64) -> Result<WriteContent, Fault> {
    let (bytes, file) = match text.split_once(',') {
        Some((bytes, file)) => (bytes, Some(file)),
        None => (text, None),
    };
    let size = size_above_zero(bytes, block, "the size of the write source")
        .map_err(|fault| fault.in_part(0, bytes.len()))?;
    let file = file.filter(|file| !file.is_empty()).map(str::to_owned);
    Ok(WriteContent::Random { size, file })
}

/// `-f` with letters: sequential, random, temporary.
pub(super) fn open_hints(text: &str) -> Result<(bool, bool, bool), Fault> {
    if let Some((start, _)) = text.char_indices().find(|(_, c)| !matches!(c, 'r' | 's' | 't')) {
        let what = ": a hint is r, s or t";
        let help = "write {}r for random, {}s for sequential access, {}t for a temporary file";
        return Err(Fault::value(what, help).bytes(one_char(text, start)));
    }
    Ok((text.contains('s'), text.contains('r'), text.contains('t')))
}

/// `-N`: one letter, in either case.
pub(super) fn mmap_flush(text: &str) -> Result<FlushType, Fault> {
    match text {
        "v" | "V" => Ok(FlushType::ViewOfFile),
        "n" | "N" => Ok(FlushType::NonVolatileMemory),
        "i" | "I" => Ok(FlushType::NonVolatileMemoryNoDrain),
        _ => Err(Fault::value(
            " must be v, n or i",
            "write {}v (flush the view), {}n (nonvolatile memory) or {}i (the same, no drain)",
        )),
    }
}

/// Switches on the event class or clock of one `-e`; says how much of the text counted.
pub(super) fn trace(text: &str, etw: &mut Etw) -> Result<usize, Fault> {
    let classes = [
        ("PROCESS", &mut etw.process),
        ("THREAD", &mut etw.thread),
        ("IMAGE_LOAD", &mut etw.image_load),
        ("DISK_IO", &mut etw.disk_io),
        ("MEMORY_PAGE_FAULTS", &mut etw.memory_page_faults),
        ("MEMORY_HARD_FAULTS", &mut etw.memory_hard_faults),
        ("NETWORK", &mut etw.network),
        ("REGISTRY", &mut etw.registry),
    ];
    let names = classes.each_ref().map(|(name, _)| *name).join(", ");
    if let Some((name, on)) = classes.into_iter().find(|(name, _)| *name == text) {
        *on = true;
        return Ok(name.len());
    }
    match text.as_bytes().first() {
        Some(b'q') => etw.use_perf_timer = true,
        Some(b's') => etw.use_system_timer = true,
        Some(b'c') => etw.use_cycles_counter = true,
        Some(b'p') => etw.use_paged_memory = true,
        first => {
            let help = format!("write {{}} and one of {names}, q, s, c, p");
            let what = if first.is_none() { " needs a value" } else { ": unknown event class" };
            return Err(Fault::value(what, help));
        }
    }
    Ok(1)
}

/// The name of an event.
pub(super) fn event_name(text: &str) -> Result<&str, Fault> {
    if text.is_empty() {
        return Err(Fault::value(" needs the name of an event", "write a name, as in {}go"));
    }
    let bad = text.char_indices().find(|(_, c)| *c == '/' || *c == '\0');
    match bad {
        None => Ok(text),
        Some((start, _)) => {
            let help = "write a name without slashes, as in {}go";
            let what = ": the name of an event has no slash";
            Err(Fault::value(what, help).bytes(one_char(text, start)))
        }
    }
}
