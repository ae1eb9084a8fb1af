//! The kernel's text files, `/sys` and `/proc`, under a root that tests can fake.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

/// The tree that holds `/sys`, `/proc` and `/dev`: `/` on a running machine, a folder in tests.
///
/// The kernel leaves out what it does not know, so a file that cannot be read is `None`, never an
/// error: callers say what its absence means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SystemTree {
    root: PathBuf,
}

impl Default for SystemTree {
    fn default() -> Self {
        Self::new("/")
    }
}

impl SystemTree {
    /// The tree below `root`.
    #[must_use]
    pub fn new(root: impl Into<PathBuf>) -> Self {
        Self { root: root.into() }
    }

    /// Whether this is the machine itself, so that its paths may be opened and asked.
    #[must_use]
    pub fn is_real(&self) -> bool {
        self.root == Path::new("/")
    }

    /// Where `path` (absolute, as on a real machine) lies.
    #[must_use]
    pub fn path(&self, path: impl AsRef<Path>) -> PathBuf {
        let path = path.as_ref();
        self.root.join(path.strip_prefix("/").unwrap_or(path))
    }

    /// A file's text without the blanks at its ends.
    #[must_use]
    pub fn text(&self, path: impl AsRef<Path>) -> Option<String> {
        let bytes = fs::read(self.path(path)).ok()?;
        Some(String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file that holds one decimal number.
    #[must_use]
    pub fn number(&self, path: impl AsRef<Path>) -> Option<u64> {
        self.text(path)?.parse().ok()
    }

    /// A file that holds a CPU list such as `0-3,8`.
    #[must_use]
    pub fn cpu_list(&self, path: impl AsRef<Path>) -> Option<Vec<u32>> {
        parse_cpu_list(&self.text(path)?)
    }

    /// The names in a folder, in byte order; none when it does not exist.
    #[must_use]
    pub fn names(&self, path: impl AsRef<Path>) -> Vec<OsString> {
        let Ok(folder) = fs::read_dir(self.path(path)) else { return Vec::new() };
        let mut names: Vec<_> = folder.filter_map(|entry| Some(entry.ok()?.file_name())).collect();
        names.sort();
        names
    }
}

/// Reads a CPU list as the kernel writes it: ascending numbers and ranges, `0-3,8`; empty for none.
///
/// `None` for anything else, a range the wrong way round included.
#[must_use]
pub fn parse_cpu_list(text: &str) -> Option<Vec<u32>> {
    let mut cpus = Vec::new();
    for part in text.trim().split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let (first, last): (u32, u32) = (first.parse().ok()?, last.parse().ok()?);
        if first > last || last > CPU_MAX {
            return None;
        }
        cpus.extend(first..=last);
    }
    cpus.sort_unstable();
    cpus.dedup();
    Some(cpus)
}

/// Writes CPU numbers (ascending) as the kernel does: `0-3,8`.
#[must_use]
pub fn format_cpu_list(cpus: &[u32]) -> String {
    cpus.chunk_by(|a, b| a.checked_add(1) == Some(*b))
        .map(|run| match run {
            [first, .., last] => format!("{first}-{last}"),
            [only] => only.to_string(),
            [] => unreachable!("chunk_by yields no empty chunk"),
        })
        .collect::<Vec<_>>()
        .join(",")
}

/// No machine has more CPUs than `u16` groups of 64 can name; a longer list is not a CPU list.
const CPU_MAX: u32 = (1 << 16) * 64 - 1;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_lists_round_trip() {
        for (text, cpus) in [
            ("", vec![]),
            ("0", vec![0]),
            ("0-3,8", vec![0, 1, 2, 3, 8]),
            ("63-65", vec![63, 64, 65]),
        ] {
            assert_eq!(parse_cpu_list(text), Some(cpus.clone()), "{text}");
            assert_eq!(format_cpu_list(&cpus), text);
        }
        for text in ["3-1", "a", "1-", "-1", "0-99999999", "0 1"] {
            assert_eq!(parse_cpu_list(text), None, "{text}");
        }
    }
}
