//! Byte counts, and the two ways DISKSPD writes and reads them.

use std::fmt;

/// A number of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Bytes(pub u64);

const UNITS: [(u64, &str); 4] =
    [(1 << 40, "TiB"), (1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")];

impl Bytes {
    /// The number right-aligned in `width` columns, then the unit; a plain number is not aligned
    /// (spec 7.1, distribution lines).
    #[must_use]
    pub fn aligned(self, width: usize) -> String {
        match self.parts() {
            (number, "") => number,
            (number, unit) => format!("{number:>width$}{unit}"),
        }
    }

    /// For a sentence: small numbers are `512 bytes`, not `512`.
    #[must_use]
    pub fn in_words(self) -> String {
        match self.parts() {
            (number, "") if self.0 == 1 => format!("{number} byte"),
            (number, "") => format!("{number} bytes"),
            (number, unit) => format!("{number}{unit}"),
        }
    }

    /// The number and its unit, apart.
    fn parts(self) -> (String, &'static str) {
        for (size, unit) in UNITS {
            if self.0 >= size {
                return if self.0.is_multiple_of(size) {
                    ((self.0 / size).to_string(), unit)
                } else {
                    (format!("{:.2}", self.0 as f64 / size as f64), unit)
                };
            }
        }
        (self.0.to_string(), "")
    }
}

/// The largest unit not above the value: `64KiB` when exact, else two decimals (spec 7.1).
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (number, unit) = self.parts();
        f.pad(&format!("{number}{unit}"))
    }
}

/// What is wrong with a size (spec 3.3).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseSizeError {
    /// No digit at the start.
    NoDigits,
    /// Something follows the number and its suffix, or is no suffix; its byte position in the text.
    Trailing(usize),
    /// Above 2^64 - 1.
    TooLarge,
}

impl fmt::Display for ParseSizeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NoDigits => "a size starts with a digit",
            Self::Trailing(_) => "a size is digits and at most one of K, M, G, T, b",
            Self::TooLarge => "the size is above 2^64 - 1",
        })
    }
}

impl std::error::Error for ParseSizeError {}

/// Reads a DISKSPD size: digits, then at most one of `K M G T b`, either case; `b` counts blocks of
/// `block` bytes (spec 3.3).
///
/// # Errors
/// Signs, blanks, fractions, anything after the suffix, and values above 2^64 - 1 (D-02).
pub fn parse_size(text: &str, block: u64) -> Result<u64, ParseSizeError> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    if digits == 0 {
        return Err(ParseSizeError::NoDigits);
    }
    let unit = match text.as_bytes()[digits..] {
        [] => 1,
        [b'k' | b'K'] => 1 << 10,
        [b'm' | b'M'] => 1 << 20,
        [b'g' | b'G'] => 1 << 30,
        [b't' | b'T'] => 1 << 40,
        [b'b' | b'B'] => block,
        [b'k' | b'K' | b'm' | b'M' | b'g' | b'G' | b't' | b'T' | b'b' | b'B', ..] => {
            return Err(ParseSizeError::Trailing(digits + 1));
        }
        _ => return Err(ParseSizeError::Trailing(digits)),
    };
    let number: u64 = text[..digits].parse().map_err(|_| ParseSizeError::TooLarge)?;
    number.checked_mul(unit).ok_or(ParseSizeError::TooLarge)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sentence_names_the_unit_always() {
        let words = [0, 1, 512, 1 << 10, 1536, 20 << 30].map(|bytes| Bytes(bytes).in_words());
        assert_eq!(words, ["0 bytes", "1 byte", "512 bytes", "1KiB", "1.50KiB", "20GiB"]);
    }

    #[test]
    fn sizes_print_as_in_the_spec() {
        for (bytes, text) in [
            (0, "0"),
            (1023, "1023"),
            (65536, "64KiB"),
            (1536, "1.50KiB"),
            (1 << 40, "1TiB"),
            (1_610_616_832, "1.50GiB"),
        ] {
            assert_eq!(Bytes(bytes).to_string(), text);
        }
        assert_eq!(Bytes(20480).aligned(6), "    20KiB");
        assert_eq!(Bytes(100).aligned(6), "100");
    }

    #[test]
    fn sizes_parse_as_in_the_spec() {
        let block = 4096;
        for (text, want) in [
            ("30", Ok(30)),
            ("4k", Ok(4096)),
            ("2b", Ok(8192)),
            ("18014398509481983K", Ok(18_446_744_073_709_550_592)),
            ("18014398509481984K", Err(ParseSizeError::TooLarge)),
            ("18446744073709551616", Err(ParseSizeError::TooLarge)),
            ("30KB", Err(ParseSizeError::Trailing(3))),
            ("1.5M", Err(ParseSizeError::Trailing(1))),
            ("", Err(ParseSizeError::NoDigits)),
            ("-5", Err(ParseSizeError::NoDigits)),
            ("\u{663}", Err(ParseSizeError::NoDigits)),
        ] {
            assert_eq!(parse_size(text, block), want, "{text}");
        }
    }
}
