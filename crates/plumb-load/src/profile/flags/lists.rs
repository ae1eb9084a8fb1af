//! Values that are lists: processors and distributions (spec 3.5).

use super::values::{Fault, one_char, size};
use crate::profile::distribution::with_tail;
use crate::profile::model::{AffinityEntry, Distribution, DistributionKind, DistributionRange};

/// The largest processor number of a group (D-26).
const PROCESSOR_MAX: u32 = 255;
/// The largest group number.
const GROUP_MAX: u32 = 65535;

/// Text that is read from left to right.
struct Reader<'a> {
    text: &'a str,
    next: usize,
}

impl Reader<'_> {
    fn peek(&self) -> Option<char> {
        self.text[self.next..].chars().next()
    }

    /// Steps over `c` if it is next.
    fn skip(&mut self, c: char) -> bool {
        let found = self.peek() == Some(c);
        if found {
            self.next += c.len_utf8();
        }
        found
    }

    /// Digits, saturated; `None` if there are none. The bytes they take come beside them.
    fn number(&mut self) -> Option<(u32, std::ops::Range<usize>)> {
        let start = self.next;
        let digits = self.text[start..].bytes().take_while(u8::is_ascii_digit).count();
        self.next += digits;
        let range = start..self.next;
        (digits > 0).then(|| (self.text[range.clone()].parse().unwrap_or(u32::MAX), range))
    }

    /// A fault at the next character.
    fn here(&self, what: &str, help: &str) -> Fault {
        Fault::value(what, help).bytes(one_char(self.text, self.next))
    }
}

/// `-a<list>`: processors, ranges of them and groups; `g<grp>` alone is the whole group.
pub(super) fn affinity(text: &str) -> Result<Vec<AffinityEntry>, Fault> {
    let help = "write processors and ranges, as in {}0,4-7, after g and a group number if it is not \
                group 0, as in {}g1,0-3; {}g1 is the whole group";
    let mut reader = Reader { text, next: 0 };
    let mut entries = Vec::new();
    let mut group = 0;
    loop {
        let item = reader.next;
        let is_group = reader.skip('g');
        if is_group {
            group = number(&mut reader, GROUP_MAX, "group", help)?;
        } else {
            let first = number(&mut reader, PROCESSOR_MAX, "processor", help)?;
            let last = match reader.skip('-') {
                true => number(&mut reader, PROCESSOR_MAX, "processor", help)?,
                false => first,
            };
            if last < first {
                let what = ": the range of processors is the wrong way round";
                return Err(Fault::value(what, help).bytes(item..reader.next));
            }
            for processor in first..=last {
                let processor = u8::try_from(processor).expect("at most 255");
                entries
                    .push(AffinityEntry { group: group_number(group), processor: Some(processor) });
            }
        }
        match reader.peek() {
            None if is_group && item > 0 => {
                let what = ": a whole group stands alone in its option";
                return Err(Fault::value(what, help).bytes(item..reader.next));
            }
            None if is_group => {
                return Ok(vec![AffinityEntry { group: group_number(group), processor: None }]);
            }
            None => return Ok(entries),
            Some(',') if reader.next + 1 == text.len() => {
                return Err(reader.here(": the list is incomplete", help));
            }
            Some(',') => reader.next += 1,
            Some(_) => return Err(reader.here(": unexpected character in the list", help)),
        }
    }
}

fn group_number(group: u32) -> u16 {
    u16::try_from(group).expect("at most 65535")
}

fn number(reader: &mut Reader<'_>, max: u32, what: &str, help: &str) -> Result<u32, Fault> {
    let expected = format!(": the number of a {what} is expected");
    let Some((number, bytes)) = reader.number() else {
        return Err(reader.here(&expected, help));
    };
    if number > max {
        let what = format!(": {what} number out of range (at most {max})");
        return Err(Fault::value(what, help).bytes(bytes));
    }
    Ok(number)
}

/// `-rd<dist>`, the tail included.
pub(super) fn distribution(text: &str, block: u64) -> Result<Distribution, Fault> {
    let help = "write percent of I/O and of the target, as in {}pct90/10:5/20, or sizes, as in \
                {}abs90/1G";
    let (kind, start) = match text.as_bytes() {
        [b'p', b'c', b't', ..] => (DistributionKind::Percent, 3),
        [b'a', b'b', b's', ..] => (DistributionKind::Absolute, 3),
        _ => {
            let what = ": unknown type of distribution, pct or abs is expected";
            return Err(Fault::value(what, help));
        }
    };
    let mut reader = Reader { text, next: start };
    let mut ranges = Vec::new();
    loop {
        let io = percent(&mut reader, 0, "IO%", help)?;
        if !reader.skip('/') {
            return Err(reader.here(": a / is expected after IO%", help));
        }
        let size = match kind {
            DistributionKind::Percent => percent(&mut reader, 1, "Target%", help)?.into(),
            DistributionKind::Absolute => range_size(&mut reader, block)?,
        };
        ranges.push(DistributionRange { io, size });
        match reader.peek() {
            None => break,
            Some(':') => reader.next += 1,
            Some(_) => {
                return Err(reader.here(": unexpected character in the distribution", help));
            }
        }
    }
    if ranges.iter().try_fold(0_u64, |sum, range| sum.checked_add(range.size)).is_none() {
        return Err(Fault::value(": the ranges together exceed 64 bits", help));
    }
    Ok(Distribution { kind, ranges: with_tail(kind, ranges) })
}

fn percent(reader: &mut Reader<'_>, min: u32, what: &str, help: &str) -> Result<u32, Fault> {
    let expected = format!(": {what} is not an integer");
    let Some((number, bytes)) = reader.number() else {
        return Err(reader.here(&expected, help));
    };
    if !(min..=100).contains(&number) {
        let what = format!(": {what} must be {min}..100");
        return Err(Fault::value(what, help).bytes(bytes));
    }
    Ok(number)
}

/// A size above 0, up to what follows it.
fn range_size(reader: &mut Reader<'_>, block: u64) -> Result<u64, Fault> {
    let start = reader.next;
    let rest = &reader.text[start..];
    let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
    let suffix = rest[digits..].starts_with(|c: char| "KMGTBkmgtb".contains(c));
    let len = digits + usize::from(suffix);
    let fault = |fault: Fault| {
        // The help of a size would lack the rest of the distribution.
        let help = "write sizes behind the slashes, as in {}abs90/1G:5/64K".to_owned();
        Fault { what: format!(": range size{}", fault.what), help, ..fault }.in_part(start, len)
    };
    let size = size(&rest[..len], block).map_err(fault)?;
    if size == 0 {
        return Err(fault(Fault::value(" of zero", "")));
    }
    reader.next += len;
    Ok(size)
}
