//! Numbers in sentences.

/// `1 run`, `2 runs`: a number and what it counts, whose plural has an `s` more.
///
/// ```
/// assert_eq!(plumb_units::words::number_of(1, "run"), "1 run");
/// assert_eq!(plumb_units::words::number_of(0, "run"), "0 runs");
/// ```
#[must_use]
pub fn number_of(count: u64, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}
