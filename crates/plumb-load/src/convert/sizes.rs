//! Sizes as text reports show them (spec 7.1, 15.10).

use plumb_units::convert;

use super::model::ImportedSize;

const UNITS: [(&str, u32); 5] = [("KiB", 10), ("MiB", 20), ("GiB", 30), ("TiB", 40), ("PiB", 50)];

/// Reads `64KiB`, `1.95MiB`, `512` or `512B`; `None` when it is no size.
///
/// Two decimals are rounded. A whole number is exact in the layout of 2.2, which shows it only for a
/// multiple of the unit; 2.3 drops zeros after the point (`drops_zeros`), so that it may be rounded too.
pub(super) fn size(text: &str, drops_zeros: bool) -> Option<ImportedSize> {
    let text = text.trim();
    let (number, shift) = UNITS
        .iter()
        .find_map(|(unit, shift)| Some((text.strip_suffix(unit)?, *shift)))
        .unwrap_or((text.strip_suffix('B').unwrap_or(text), 0));
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    if let Ok(whole) = number.parse::<u64>() {
        let bytes = whole.checked_mul(1 << shift)?;
        return Some(ImportedSize { bytes, exact: shift == 0 || !drops_zeros });
    }
    let (whole, decimals) = number.split_once('.')?;
    let decimals_fit = (1..=2).contains(&decimals.len());
    let is_number = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if shift == 0 || !decimals_fit || !is_number(whole) || !is_number(decimals) {
        return None;
    }
    let units = number.parse::<f64>().ok().filter(|units| *units < 1e15)?;
    let bytes = convert::floor_u64((units * f64::exp2(f64::from(shift))).round());
    Some(ImportedSize { bytes, exact: false })
}

#[cfg(test)]
mod tests {
    use plumb_units::Bytes;

    use super::*;

    #[test]
    fn sizes_are_exact_where_the_report_is() {
        let exact = |bytes| Some(ImportedSize { bytes, exact: true });
        let rounded = |bytes| Some(ImportedSize { bytes, exact: false });
        for (text, size_22, size_23) in [
            ("0", exact(0), exact(0)),
            ("1023", exact(1023), exact(1023)),
            ("1023B", exact(1023), exact(1023)),
            ("64KiB", exact(65536), rounded(65536)),
            ("1.5GiB", rounded(1_610_612_736), rounded(1_610_612_736)),
            ("953.67MiB", rounded(999_995_474), rounded(999_995_474)),
            ("", None, None),
            ("KiB", None, None),
            ("-1KiB", None, None),
            ("1.KiB", None, None),
            ("1.234KiB", None, None),
            ("1.5", None, None),
            ("1e9KiB", None, None),
            ("99999999999999999999", None, None),
            ("99999999999999PiB", None, None),
        ] {
            assert_eq!(size(text, false), size_22, "{text}");
            assert_eq!(size(text, true), size_23, "{text}");
        }
    }

    #[test]
    fn a_shown_size_is_read_as_exactly_as_it_is_shown() {
        for bytes in [1_u64, 1023, 1024, 1025, 999_999, 1_000_000_000, 1 << 40, u64::MAX >> 9] {
            let back = size(&Bytes(bytes).to_string(), false).expect("a size");
            assert!(!back.exact || back.bytes == bytes);
            assert!(back.bytes.abs_diff(bytes) as f64 <= bytes as f64 * 0.005, "{bytes}");
        }
    }
}
