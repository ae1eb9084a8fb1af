//! `caps.toml`: limits that somebody declared, kept in a file (method, 2.11).

use serde::Deserialize;

use crate::knee::{DeclaredCap, Limit};

/// Why a file holds no limits.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum CapsError {
    /// No TOML, or a key that nobody reads.
    #[error("{what}")]
    #[diagnostic(
        code(plumb::caps::toml),
        help("write [[cap]], then name = \"VM limit\" and iops = 1920 or mib-per-s = 48")
    )]
    Toml {
        /// What the reader says, with the place.
        what: String,
    },
    /// A limit without a height, or with one that is none.
    #[error("the cap `{name}` {what}")]
    #[diagnostic(
        code(plumb::caps::value),
        help("say iops, mib-per-s or both, each a positive number, and count as 1 or more")
    )]
    Value {
        /// Whose.
        name: String,
        /// What is wrong.
        what: &'static str,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    #[serde(default)]
    cap: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct Entry {
    name: String,
    iops: Option<f64>,
    mib_per_s: Option<f64>,
    #[serde(default = "one")]
    count: u32,
}

fn one() -> u32 {
    1
}

/// Most of one kind.
const COUNT_MOST: u32 = 100_000;

/// The limits of a file: of each entry its rates, and where there are several of its kind, those of all together as well.
///
/// # Errors
/// It is no such file; where, and why.
pub fn of_toml(text: &str) -> Result<Vec<DeclaredCap>, CapsError> {
    let file: File =
        toml::from_str(text).map_err(|error| CapsError::Toml { what: error.to_string() })?;
    let mut caps = Vec::new();
    for entry in file.cap {
        let refused = |what| Err(CapsError::Value { name: entry.name.clone(), what });
        if entry.name.trim().is_empty() || entry.name.contains('=') {
            return refused("needs a name, without `=`");
        }
        if !(1..=COUNT_MOST).contains(&entry.count) {
            return refused("has a count that is none");
        }
        let rates = [(entry.iops, false), (entry.mib_per_s, true)];
        let rates: Vec<(f64, bool)> =
            rates.into_iter().filter_map(|(rate, is_mib)| Some((rate?, is_mib))).collect();
        if rates.is_empty() {
            return refused("says no rate");
        }
        for (rate, is_mib) in rates {
            if !(rate.is_finite() && rate > 0.0) {
                return refused("has a rate that is no positive number");
            }
            let limit = |rate| if is_mib { Limit::MibPerS(rate) } else { Limit::Iops(rate) };
            caps.push(DeclaredCap { name: entry.name.clone(), limit: limit(rate) });
            if entry.count > 1 {
                caps.push(DeclaredCap {
                    name: format!("{} × {}", entry.count, entry.name),
                    limit: limit(rate * f64::from(entry.count)),
                });
            }
        }
    }
    Ok(caps)
}

/// A limit as `--cap` takes it, so that it can be kept as a word.
#[must_use]
pub fn word(cap: &DeclaredCap) -> String {
    match cap.limit {
        Limit::Iops(iops) => format!("{}={iops}iops", cap.name),
        Limit::MibPerS(mib) => format!("{}={mib}MiB/s", cap.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::knee::name_cap;

    /// The published case: a VM that is allowed 1920, on four disks of 5000 each.
    const PUBLISHED: &str = "[[cap]]\nname = \"VM limit\"\niops = 1920\nmib-per-s = 48\n\n\
                             [[cap]]\nname = \"disk\"\niops = 5000\ncount = 4\n";

    #[test]
    fn the_published_limits_and_their_words() {
        let caps = of_toml(PUBLISHED).expect("limits");
        let words: Vec<String> = caps.iter().map(word).collect();
        assert_eq!(
            words,
            ["VM limit=1920iops", "VM limit=48MiB/s", "disk=5000iops", "4 × disk=20000iops"]
        );
        for (cap, text) in caps.iter().zip(&words) {
            assert_eq!(DeclaredCap::parse(text).as_ref(), Ok(cap));
        }
        let named = name_cap(1953.30, Some(4096.0), &caps).expect("within 5 %");
        assert_eq!(named.name, "VM limit");
        assert!((named.distance - 0.0173).abs() < 1e-4, "{named:?}");
        assert_eq!(name_cap(19_800.0, Some(4096.0), &caps).expect("all disks").name, "4 × disk");
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        for (text, says) in [
            ("[[cap]]\nname = \"a\"\n", "`a` says no rate"),
            ("[[cap]]\nname = \"a\"\niops = 0\n", "no positive number"),
            ("[[cap]]\nname = \"a\"\niops = nan\n", "no positive number"),
            ("[[cap]]\nname = \"a\"\niops = 1\ncount = 0\n", "count that is none"),
            ("[[cap]]\nname = \"a=b\"\niops = 1\n", "without `=`"),
            ("[[cap]]\nname = \"\"\niops = 1\n", "needs a name"),
            ("[[cap]]\niops = 1\n", "name"),
            ("[[cap]]\nname = \"a\"\niopps = 1\n", "iopps"),
            ("[[limit]]\nname = \"a\"\n", "limit"),
            ("cap", "cap"),
        ] {
            let error = of_toml(text).expect_err(text).to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
        assert_eq!(of_toml(""), Ok(Vec::new()));
    }
}
