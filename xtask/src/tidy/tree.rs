//! The files of the repository, in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::{fs, io};

/// What is never looked at: what git does not keep, and what cargo builds.
const SKIPPED: &[&str] = &[".git", "target", "fuzz/corpus", "fuzz/artifacts"];

/// Path from the root, joined by `/` → text; `None` for what is no text.
pub(crate) struct Tree {
    files: BTreeMap<String, Option<String>>,
}

impl Tree {
    /// Reads the repository.
    ///
    /// # Errors
    /// When a folder or file cannot be read.
    pub(crate) fn read(root: &Path) -> io::Result<Self> {
        let mut files = BTreeMap::new();
        let mut folders = vec![String::new()];
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(root.join(&folder))? {
                let entry = entry?;
                let name = entry.file_name().to_string_lossy().into_owned();
                let path = if folder.is_empty() { name } else { format!("{folder}/{name}") };
                let skipped = SKIPPED.iter().any(|skip| {
                    path == *skip || path.strip_suffix(skip).is_some_and(|rest| rest.ends_with('/'))
                });
                if skipped || path.ends_with(".dat") {
                    continue;
                }
                if entry.file_type()?.is_dir() {
                    folders.push(path);
                } else {
                    files.insert(path, String::from_utf8(fs::read(entry.path())?).ok());
                }
            }
        }
        Ok(Self { files })
    }

    /// A made-up tree.
    #[cfg(test)]
    pub(crate) fn planted(files: &[(&str, &str)]) -> Self {
        let text = |(path, text): &(&str, &str)| ((*path).to_owned(), Some((*text).to_owned()));
        Self { files: files.iter().map(text).collect() }
    }

    /// Whether there is such a file or folder; `""` is the root.
    pub(crate) fn exists(&self, path: &str) -> bool {
        let folder = format!("{path}/");
        path.is_empty()
            || self.files.contains_key(path)
            || self.files.keys().any(|file| file.starts_with(&folder))
    }

    /// The text of a file.
    pub(crate) fn text(&self, path: &str) -> Option<&str> {
        self.files.get(path)?.as_deref()
    }

    /// Every path.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str)
    }

    /// Every text file.
    pub(crate) fn texts(&self) -> impl Iterator<Item = (&str, &str)> {
        self.files.iter().filter_map(|(path, text)| Some((path.as_str(), text.as_deref()?)))
    }

    /// Every text file whose name ends so.
    pub(crate) fn texts_with<'a>(
        &'a self,
        suffix: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a str)> {
        self.texts().filter(move |(path, _)| path.ends_with(suffix))
    }
}
