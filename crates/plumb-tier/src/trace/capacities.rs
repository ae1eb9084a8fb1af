//! The companion file of a trace: how large its devices are.

use std::collections::HashMap;
use std::io::{self, BufRead, Read};
use std::path::Path;

use super::TraceError;

/// A longer line is no line.
const LINE_LONGEST: u64 = 4096;
/// What a line looks like.
const SHAPE: &str = "device_id,capacity (bytes)";

/// Bytes of each device, by its name.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Capacities(HashMap<String, u64>);

impl Capacities {
    /// Reads `device_id,capacity` lines, which messages call `path`; the first may name the columns.
    ///
    /// # Errors
    /// The file fails, or a line is none.
    pub fn read(mut input: impl BufRead, path: &Path) -> Result<Self, TraceError> {
        let mut found = HashMap::new();
        let mut bytes = Vec::new();
        for line in 1.. {
            bytes.clear();
            let read = input.by_ref().take(LINE_LONGEST).read_until(b'\n', &mut bytes);
            let read = read.map_err(|source| TraceError::Read { path: path.to_owned(), source })?;
            if read == 0 {
                break;
            }
            let bad = |what: String| TraceError::Line {
                path: path.to_owned(),
                line,
                what,
                remedy: format!("a line is: {SHAPE}. Correct the line, or leave out --capacities"),
            };
            let text =
                std::str::from_utf8(&bytes).map_err(|_| bad("it is not UTF-8".to_owned()))?;
            let text = text.trim();
            if text.is_empty() || text.starts_with('#') {
                continue;
            }
            let names_columns =
                line == 1 && text.contains(',') && !text.bytes().any(|byte| byte.is_ascii_digit());
            if names_columns {
                continue;
            }
            let (device, capacity) = entry(text).map_err(bad)?;
            if found.insert(device.to_owned(), capacity).is_some_and(|other| other != capacity) {
                return Err(bad(format!("device {device:?} had another capacity before")));
            }
        }
        match found.is_empty() {
            false => Ok(Self(found)),
            true => Err(TraceError::Read {
                path: path.to_owned(),
                source: io::Error::other(format!("it has no line {SHAPE}")),
            }),
        }
    }

    /// Bytes of a device, if it is known.
    pub(super) fn of(&self, device: &str) -> Option<u64> {
        self.0.get(device).copied()
    }
}

fn entry(text: &str) -> Result<(&str, u64), String> {
    let (device, capacity) = text.split_once(',').ok_or_else(|| "it has no comma".to_owned())?;
    let capacity = capacity.split(',').next().unwrap_or_default().trim();
    let bytes = capacity
        .parse()
        .map_err(|_| format!("the capacity is {capacity:?}, not a whole number"))?;
    match device.trim() {
        "" => Err("it names no device".to_owned()),
        device => Ok((device, bytes)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Capacities, TraceError> {
        Capacities::read(text.as_bytes(), Path::new("size.csv"))
    }

    #[test]
    fn devices_have_their_capacities() {
        let found = read("device_id,capacity\n0,42949672960\n# one more\n1, 1024 ,x\n1,1024\n");
        let found = found.expect("a companion");
        assert_eq!(
            [found.of("0"), found.of("1"), found.of("2")],
            [Some(40 << 30), Some(1024), None]
        );
    }

    #[test]
    fn bad_lines_are_told_with_their_number_and_what_to_do() {
        for (text, number, words) in [
            ("0,1\n1;2\n", 2, "no comma"),
            ("0,1\n1,x\n", 2, "\"x\""),
            ("0,-1\n", 1, "\"-1\""),
            ("a,b\n\n,7\n", 3, "no device"),
            ("0,1\n0,2\n", 2, "another capacity"),
        ] {
            match read(text) {
                Err(TraceError::Line { line, what, remedy, .. }) => {
                    assert_eq!(line, number, "{text}");
                    assert!(
                        what.contains(words) && remedy.contains("device_id,capacity"),
                        "{what}"
                    );
                }
                other => panic!("{text}: {other:?}"),
            }
        }
        assert!(matches!(read("device,size\n"), Err(TraceError::Read { .. })));
        assert!(Capacities::read(&b"0,1\xff\n"[..], Path::new("x")).is_err());
    }
}
