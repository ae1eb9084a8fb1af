//! The store: documents in a folder, a catalogue beside them.

use std::collections::hash_map::RandomState;
use std::fs;
use std::hash::{BuildHasher, Hasher};
use std::io;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde_json::Value;

use crate::catalogue::{Catalogue, CatalogueError};
use crate::document::{NewRun, STORE_VERSION, StoredRun, Summary};
use crate::durable;

/// A run as a list shows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Entry {
    /// Its name.
    pub id: String,
    /// When it was stored, RFC 3339.
    pub stored_at: String,
    /// How it came: `run`, `import`, `study`.
    pub origin: String,
    /// What the user calls it.
    pub label: Option<String>,
    /// Its figures.
    pub summary: Summary,
}

/// A study as a list shows it: many runs of one question, in a folder of their own that the store does not read.
#[derive(Debug, Clone, PartialEq)]
pub struct StudyEntry {
    /// Its name.
    pub id: String,
    /// Of what it was made: an entry with another stamp is an old one.
    pub stamp: String,
    /// When the study was planned, RFC 3339.
    pub created: String,
    /// What a list shows.
    pub summary: Value,
}

/// Why the store cannot do what it is asked to.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum StoreError {
    /// The system refuses.
    #[error("cannot {what} {}", path.display())]
    #[diagnostic(
        code(plumb::store::files),
        help(
            "runs are kept below the state directory (XDG_STATE_HOME): it needs room and your rights"
        )
    )]
    Files {
        /// `read` and the like.
        what: &'static str,
        /// Of what.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// SQLite refuses.
    #[error("the catalogue {} cannot be used", path.display())]
    #[diagnostic(
        code(plumb::store::catalogue),
        help("it is made anew from the documents when it is moved away; is the disk full?")
    )]
    Catalogue {
        /// The file.
        path: PathBuf,
        /// Why.
        source: rusqlite::Error,
    },
    /// A later version of Plumb made it.
    #[error("the store {} was made by a later version of Plumb", path.display())]
    #[diagnostic(code(plumb::store::too_new), help("use that version, or another XDG_STATE_HOME"))]
    TooNew {
        /// The store, or a document.
        path: PathBuf,
    },
    /// A document that is none.
    #[error("{} is no document of a run", path.display())]
    #[diagnostic(code(plumb::store::document), help("it is damaged: remove the file"))]
    Document {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// No run has that name.
    #[error("no stored run is called `{name}`")]
    #[diagnostic(
        code(plumb::store::unknown),
        help(
            "name an id of `plumb runs list` or its beginning, a label, or `latest`; `~2` at its end \
             means the second before that"
        )
    )]
    Unknown {
        /// As asked for.
        name: String,
    },
    /// Several have.
    #[error("`{name}` may be {}", ids.join(", "))]
    #[diagnostic(code(plumb::store::ambiguous), help("write more of the id"))]
    Ambiguous {
        /// As asked for.
        name: String,
        /// The first of them.
        ids: Vec<String>,
    },
}

/// An open store. Several processes may have it open.
#[derive(Debug)]
pub struct Store {
    folder: PathBuf,
    catalogue: Catalogue,
    damaged: Vec<PathBuf>,
}

const CATALOGUE: &str = "catalogue.sqlite";
const RUNS: &str = "runs";

impl Store {
    /// Opens the store in a folder, which is made if it is not there, and brings its catalogue up to date.
    ///
    /// # Errors
    /// The folder or the catalogue cannot be used.
    pub fn open(folder: &Path) -> Result<Self, StoreError> {
        let runs = folder.join(RUNS);
        fs::create_dir_all(&runs).map_err(files("make", &runs))?;
        let path = folder.join(CATALOGUE);
        let checked = || Catalogue::open(&path).and_then(|it| it.check().map(|()| it));
        let catalogue = match checked() {
            Err(CatalogueError::Damaged) => {
                set_aside(folder)?;
                Catalogue::open(&path)
            }
            other => other,
        };
        let catalogue = catalogue.map_err(|error| of_catalogue(&path, error))?;
        let mut store = Self { folder: folder.to_owned(), catalogue, damaged: Vec::new() };
        durable::sweep_incoming(&runs).map_err(files("read", &runs))?;
        store.reconcile()?;
        Ok(store)
    }

    /// Documents that cannot be read; they are left alone.
    #[must_use]
    pub fn damaged(&self) -> &[PathBuf] {
        &self.damaged
    }

    /// Keeps a run: when this returns, it survives a loss of power. Returns its id.
    ///
    /// # Errors
    /// It cannot be written; then nothing of it is there.
    pub fn add(&self, run: NewRun) -> Result<String, StoreError> {
        let now = Timestamp::now();
        let mut run = StoredRun::new(String::new(), now.to_string(), run);
        loop {
            run.id = new_id(now);
            let path = self.path(&run.id);
            let mut text = serde_json::to_vec(&run).expect("a run is JSON");
            text.push(b'\n');
            match durable::create(&path, &text) {
                Ok(()) => break,
                // Another run of this second drew the same number.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(files("write", &path)(source)),
            }
        }
        self.in_catalogue(|catalogue| catalogue.enter(&run))?;
        Ok(run.id)
    }

    /// All runs, oldest first; of a label if there is one.
    ///
    /// # Errors
    /// The catalogue cannot be read.
    pub fn list(&self, label: Option<&str>) -> Result<Vec<Entry>, StoreError> {
        self.in_catalogue(|catalogue| catalogue.list(label))
    }

    /// The id that is meant: an id or its beginning, a label (its newest run), `latest`; each may be
    /// followed by `~n`, the n-th before it.
    ///
    /// # Errors
    /// There is none, or there are several.
    pub fn resolve(&self, name: &str) -> Result<String, StoreError> {
        let (base, back) = match name.split_once('~') {
            Some((base, back)) => match back.parse::<u32>() {
                Ok(back) => (base, back),
                Err(_) => return Err(StoreError::Unknown { name: name.to_owned() }),
            },
            None => (name, 0),
        };
        let label = if base == "latest" { None } else { Some(base) };
        let newest = |label| self.in_catalogue(|catalogue| catalogue.newest(label, back));
        if let Some(id) = newest(label)? {
            return Ok(id);
        }
        if back > 0 || base.is_empty() || label.is_none() {
            return Err(StoreError::Unknown { name: name.to_owned() });
        }
        let mut ids = self.in_catalogue(|catalogue| catalogue.beginning(base, 5))?;
        match ids.len() {
            0 => Err(StoreError::Unknown { name: name.to_owned() }),
            1 => Ok(ids.remove(0)),
            _ if ids[0] == base => Ok(ids.remove(0)),
            _ => Err(StoreError::Ambiguous { name: name.to_owned(), ids }),
        }
    }

    /// The document of a run.
    ///
    /// # Errors
    /// There is no run of that id, or it cannot be read.
    pub fn read(&self, id: &str) -> Result<StoredRun, StoreError> {
        read(&self.path(id)).map_err(|error| match error {
            StoreError::Files { source, .. } if source.kind() == io::ErrorKind::NotFound => {
                StoreError::Unknown { name: id.to_owned() }
            }
            other => other,
        })
    }

    /// Removes a run for good.
    ///
    /// # Errors
    /// It is not there or cannot be removed.
    pub fn remove(&self, id: &str) -> Result<(), StoreError> {
        let path = self.path(id);
        durable::remove(&path).map_err(files("remove", &path))?;
        self.in_catalogue(|catalogue| catalogue.forget(id))
    }

    /// The studies that were entered, oldest first.
    ///
    /// # Errors
    /// The catalogue cannot be read.
    pub fn studies(&self) -> Result<Vec<StudyEntry>, StoreError> {
        self.in_catalogue(Catalogue::studies)
    }

    /// Enters a study, in the place of an older entry.
    ///
    /// # Errors
    /// The catalogue cannot be written.
    pub fn enter_study(&self, entry: &StudyEntry) -> Result<(), StoreError> {
        self.in_catalogue(|catalogue| catalogue.enter_study(entry))
    }

    /// Forgets a study; its folder is not the store's.
    ///
    /// # Errors
    /// The catalogue cannot be written.
    pub fn forget_study(&self, id: &str) -> Result<(), StoreError> {
        self.in_catalogue(|catalogue| catalogue.forget_study(id))
    }

    /// Where the document of an id lies.
    #[must_use]
    pub fn path(&self, id: &str) -> PathBuf {
        self.folder.join(RUNS).join(format!("{id}.json"))
    }

    fn in_catalogue<T>(
        &self,
        work: impl FnOnce(&Catalogue) -> Result<T, CatalogueError>,
    ) -> Result<T, StoreError> {
        work(&self.catalogue).map_err(|error| of_catalogue(&self.folder.join(CATALOGUE), error))
    }

    /// Enters documents that the catalogue lacks, forgets rows whose document is gone.
    fn reconcile(&mut self) -> Result<(), StoreError> {
        let known = self.in_catalogue(Catalogue::ids)?;
        let runs = self.folder.join(RUNS);
        let mut there = Vec::new();
        for entry in fs::read_dir(&runs).map_err(files("read", &runs))? {
            let name = entry.map_err(files("read", &runs))?.file_name();
            let id = name.to_str().and_then(|name| name.strip_suffix(".json"));
            there.extend(id.filter(|id| !id.starts_with('.')).map(str::to_owned));
        }
        there.sort();
        for id in there.iter().filter(|id| known.binary_search(id).is_err()) {
            let path = self.path(id);
            match read(&path) {
                Ok(run) if run.id == *id => self.in_catalogue(|catalogue| catalogue.enter(&run))?,
                // Removed by another process just now.
                Err(StoreError::Files { source, .. })
                    if source.kind() == io::ErrorKind::NotFound => {}
                _ => self.damaged.push(path),
            }
        }
        for id in known.iter().filter(|id| there.binary_search(id).is_err()) {
            // It may have come after the folder was read.
            if !self.path(id).exists() {
                self.in_catalogue(|catalogue| catalogue.forget(id))?;
            }
        }
        Ok(())
    }
}

fn read(path: &Path) -> Result<StoredRun, StoreError> {
    let text = fs::read(path).map_err(files("read", path))?;
    let document = |source| StoreError::Document { path: path.to_owned(), source };
    let value: Value = serde_json::from_slice(&text).map_err(document)?;
    let version = value.get("store_version").and_then(Value::as_u64).unwrap_or(0);
    if version > u64::from(STORE_VERSION) {
        return Err(StoreError::TooNew { path: path.to_owned() });
    }
    serde_json::from_value(value).map_err(document)
}

/// Sorts by time: `20261122-014200-7f3a9c`.
fn new_id(now: Timestamp) -> String {
    let number = RandomState::new().build_hasher().finish() & 0xFF_FFFF;
    format!("{}-{number:06x}", now.strftime("%Y%m%d-%H%M%S"))
}

/// A damaged catalogue makes room for a new one; it is kept beside it.
fn set_aside(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(CATALOGUE);
    let aside = folder.join(format!("{CATALOGUE}.damaged-{}", new_id(Timestamp::now())));
    fs::rename(&path, aside).map_err(files("rename", &path))?;
    for suffix in ["-journal", "-wal", "-shm"] {
        let _ = fs::remove_file(folder.join(format!("{CATALOGUE}{suffix}")));
    }
    Ok(())
}

fn of_catalogue(path: &Path, error: CatalogueError) -> StoreError {
    let path = path.to_owned();
    match error {
        CatalogueError::TooNew => StoreError::TooNew { path },
        CatalogueError::Sqlite(source) => StoreError::Catalogue { path, source },
        CatalogueError::Damaged => {
            let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT);
            StoreError::Catalogue { path, source: rusqlite::Error::SqliteFailure(code, None) }
        }
    }
}

fn files(what: &'static str, path: &Path) -> impl Fn(io::Error) -> StoreError {
    let path = path.to_owned();
    move |source| StoreError::Files { what, path: path.clone(), source }
}
