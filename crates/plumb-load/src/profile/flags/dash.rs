//! The sign that makes a token an option (spec 3.10, D-23).

use super::table::OptionRow;

/// What word processors make of a hyphen: en dash, em dash, horizontal bar, minus sign.
const TYPOGRAPHIC: [char; 4] = ['\u{2013}', '\u{2014}', '\u{2015}', '\u{2212}'];

/// The beginning of an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Sign {
    /// Its bytes.
    pub(super) len: usize,
    /// Whether it stands for `--`.
    pub(super) long: bool,
    /// Whether a typographic dash is in it.
    pub(super) typographic: bool,
}

/// The sign a token begins with; `None` for a target.
pub(super) fn sign(token: &str) -> Option<Sign> {
    let mut chars = token.chars();
    let first = chars.next().filter(|&c| is_dash(c))?;
    let rest = chars.as_str();
    match chars.next() {
        Some(second) if is_dash(second) => Some(Sign {
            len: first.len_utf8() + second.len_utf8(),
            long: true,
            typographic: is_typographic(first) || is_typographic(second),
        }),
        _ => {
            let typographic = is_typographic(first);
            let name = rest.split_once('=').map_or(rest, |(name, _)| name);
            // Word processors join two hyphens into one dash.
            let long = typographic && OptionRow::by_long_name(name).is_some();
            Some(Sign { len: first.len_utf8(), long, typographic })
        }
    }
}

fn is_dash(c: char) -> bool {
    c == '-' || is_typographic(c)
}

fn is_typographic(c: char) -> bool {
    TYPOGRAPHIC.contains(&c)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// `kind` is `target`, `short` or `long`, the text what follows the sign.
    fn check(token: &str, kind: &str, rest: &str) {
        let sign = sign(token);
        let found = match sign {
            None => "target",
            Some(sign) if sign.long => "long",
            Some(_) => "short",
        };
        let len = sign.map_or(0, |sign| sign.len);
        assert_eq!((found, &token[len..]), (kind, rest), "{token}");
    }

    #[test]
    fn four_dashes_and_the_hyphen_are_signs() {
        for dash in ["-", "–", "—", "―", "−"] {
            check(&format!("{dash}b4K"), "short", "b4K");
            check(&format!("{dash}-random"), "long", "random");
            check(&format!("-{dash}random"), "long", "random");
            check(dash, "short", "");
        }
        for other in ["‐r", "‒r", "a–r", "./–r", "", " -r", "/r"] {
            check(other, "target", other);
        }
    }

    #[test]
    fn one_typographic_dash_before_a_long_name_is_two() {
        check("—threads=4", "long", "threads=4");
        check("–json", "long", "json");
        check("–thread", "short", "thread");
        check("–threads4", "short", "threads4");
        check("-threads", "short", "threads");
    }

    #[test]
    fn two_of_them_end_the_options() {
        for token in ["--", "––", "-–", "—-"] {
            check(token, "long", "");
        }
        check("---", "long", "-");
    }
}
