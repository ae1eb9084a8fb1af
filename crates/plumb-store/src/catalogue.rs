//! The catalogue: a row per document, in SQLite.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::{Connection, ErrorCode, OptionalExtension, params};

use crate::document::{StoredRun, Summary};
use crate::store::{Entry, StudyEntry};

/// How long one process waits for another.
const PATIENCE: Duration = Duration::from_secs(30);

/// Between two attempts to open a catalogue that others are making.
const PAUSE: Duration = Duration::from_millis(10);

/// The version of the tables, in the file's `user_version`.
const TABLES_VERSION: i64 = 2;

const TABLES: &str = "
    CREATE TABLE IF NOT EXISTS runs (
        id TEXT PRIMARY KEY,
        stored_at TEXT NOT NULL,
        origin TEXT NOT NULL,
        label TEXT,
        summary TEXT NOT NULL
    ) STRICT;
    CREATE INDEX IF NOT EXISTS runs_by_label ON runs (label, id);
    CREATE TABLE IF NOT EXISTS studies (
        id TEXT PRIMARY KEY,
        stamp TEXT NOT NULL,
        created TEXT NOT NULL,
        summary TEXT NOT NULL
    ) STRICT;
";

/// An open catalogue.
#[derive(Debug)]
pub(crate) struct Catalogue(Connection);

/// Why a catalogue cannot be used.
#[derive(Debug)]
pub(crate) enum CatalogueError {
    /// Its content is no catalogue any more: it can be made anew.
    Damaged,
    /// A later version made it.
    TooNew,
    /// What SQLite says.
    Sqlite(rusqlite::Error),
}

impl From<rusqlite::Error> for CatalogueError {
    fn from(error: rusqlite::Error) -> Self {
        match error.sqlite_error_code() {
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Self::Damaged,
            _ => Self::Sqlite(error),
        }
    }
}

fn is_busy(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}

type Outcome<T> = Result<T, CatalogueError>;

impl Catalogue {
    /// Opens it, and makes it if it is not there.
    pub(crate) fn open(path: &Path) -> Outcome<Self> {
        let deadline = Instant::now() + PATIENCE;
        loop {
            match Self::prepared(path) {
                // Several that make one catalogue at once: SQLite asks nobody to wait while the way of
                // its journal changes, since both may hold what the other one needs.
                Err(CatalogueError::Sqlite(error))
                    if is_busy(&error) && Instant::now() < deadline =>
                {
                    thread::sleep(PAUSE);
                }
                other => return other,
            }
        }
    }

    fn prepared(path: &Path) -> Outcome<Self> {
        let connection = Connection::open(path)?;
        connection.busy_timeout(PATIENCE)?;
        // No log with an index in shared memory: writing to that memory ends the process where the file system is full
        // and its blocks are smaller than a page (docs/decisions/0135-a-rollback-journal.md).
        let _: String =
            connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?;
        connection.execute_batch("PRAGMA synchronous = FULL")?;
        let version: i64 = connection.query_row("PRAGMA user_version", [], |row| row.get(0))?;
        if version > TABLES_VERSION {
            return Err(CatalogueError::TooNew);
        }
        if version < TABLES_VERSION {
            connection.execute_batch(&format!(
                "BEGIN IMMEDIATE; {TABLES} PRAGMA user_version = {TABLES_VERSION}; COMMIT;"
            ))?;
        }
        Ok(Self(connection))
    }

    /// Reads all of it: whether its pages and indexes are what they should be.
    pub(crate) fn check(&self) -> Outcome<()> {
        let told: String = self.0.query_row("PRAGMA integrity_check(1)", [], |row| row.get(0))?;
        if told == "ok" { Ok(()) } else { Err(CatalogueError::Damaged) }
    }

    /// Enters a document; nothing happens if it is there.
    pub(crate) fn enter(&self, run: &StoredRun) -> Outcome<()> {
        let summary = serde_json::to_string(&run.summary).expect("a summary is JSON");
        let words = "INSERT OR IGNORE INTO runs (id, stored_at, origin, label, summary) \
                     VALUES (?1, ?2, ?3, ?4, ?5)";
        let origin = run.origin.keyword();
        self.0.prepare(words)?.execute(params![
            run.id,
            run.stored_at,
            origin,
            run.label,
            summary
        ])?;
        Ok(())
    }

    pub(crate) fn forget(&self, id: &str) -> Outcome<()> {
        self.0.prepare("DELETE FROM runs WHERE id = ?1")?.execute([id])?;
        Ok(())
    }

    /// Enters a study, in the place of an older entry.
    pub(crate) fn enter_study(&self, entry: &StudyEntry) -> Outcome<()> {
        let words = "INSERT OR REPLACE INTO studies (id, stamp, created, summary) \
                     VALUES (?1, ?2, ?3, ?4)";
        let summary = entry.summary.to_string();
        self.0.prepare(words)?.execute(params![entry.id, entry.stamp, entry.created, summary])?;
        Ok(())
    }

    pub(crate) fn forget_study(&self, id: &str) -> Outcome<()> {
        self.0.prepare("DELETE FROM studies WHERE id = ?1")?.execute([id])?;
        Ok(())
    }

    /// Every study, oldest first.
    pub(crate) fn studies(&self) -> Outcome<Vec<StudyEntry>> {
        let words = "SELECT id, stamp, created, summary FROM studies ORDER BY created, id";
        let mut statement = self.0.prepare(words)?;
        let entries = statement.query_map([], |row| {
            let summary: String = row.get(3)?;
            Ok(StudyEntry {
                id: row.get(0)?,
                stamp: row.get(1)?,
                created: row.get(2)?,
                summary: serde_json::from_str(&summary).unwrap_or_default(),
            })
        })?;
        Ok(entries.collect::<Result<_, _>>()?)
    }

    /// Every id, ascending.
    pub(crate) fn ids(&self) -> Outcome<Vec<String>> {
        let mut statement = self.0.prepare("SELECT id FROM runs ORDER BY id")?;
        let ids = statement.query_map([], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// Every run, oldest first; only those with a label if there is one.
    pub(crate) fn list(&self, label: Option<&str>) -> Outcome<Vec<Entry>> {
        let words = "SELECT id, stored_at, origin, label, summary FROM runs \
                     WHERE ?1 IS NULL OR label = ?1 ORDER BY id";
        let mut statement = self.0.prepare(words)?;
        let entries = statement.query_map([label], |row| {
            let summary: String = row.get(4)?;
            Ok(Entry {
                id: row.get(0)?,
                stored_at: row.get(1)?,
                origin: row.get(2)?,
                label: row.get(3)?,
                summary: serde_json::from_str::<Summary>(&summary).unwrap_or_default(),
            })
        })?;
        Ok(entries.collect::<Result<_, _>>()?)
    }

    /// Ids that begin so, at most `most`.
    pub(crate) fn beginning(&self, prefix: &str, most: u32) -> Outcome<Vec<String>> {
        let words = "SELECT id FROM runs WHERE substr(id, 1, length(?1)) = ?1 ORDER BY id LIMIT ?2";
        let mut statement = self.0.prepare(words)?;
        let ids = statement.query_map(params![prefix, most], |row| row.get(0))?;
        Ok(ids.collect::<Result<_, _>>()?)
    }

    /// The newest id, of a label if there is one; `back` runs before that.
    pub(crate) fn newest(&self, label: Option<&str>, back: u32) -> Outcome<Option<String>> {
        let words = "SELECT id FROM runs WHERE ?1 IS NULL OR label = ?1 \
                     ORDER BY id DESC LIMIT 1 OFFSET ?2";
        let mut statement = self.0.prepare(words)?;
        Ok(statement.query_row(params![label, back], |row| row.get(0)).optional()?)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use super::*;

    #[test]
    fn no_catalogue_is_shared_memory_and_an_older_one_is_changed() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("catalogue");
        let older = Connection::open(&path).expect("a database");
        let words = "PRAGMA journal_mode = WAL";
        let mode: String = older.query_row(words, [], |row| row.get(0)).expect("a mode");
        assert_eq!(mode, "wal");
        older.execute_batch("CREATE TABLE other (id TEXT)").expect("a table");
        drop(older);
        let catalogue = Catalogue::open(&path).expect("it is changed");
        assert_eq!(catalogue.ids().expect("a list"), Vec::<String>::new());
        let names = std::fs::read_dir(folder.path()).expect("a folder");
        let names: Vec<_> = names.map(|entry| entry.expect("a name").file_name()).collect();
        assert_eq!(names, ["catalogue"]);
    }

    #[test]
    fn several_make_one_catalogue_at_once() {
        const OPENERS: usize = 6;
        for _ in 0..20 {
            let folder = tempfile::tempdir().expect("a folder");
            let path = folder.path().join("catalogue");
            let start = Barrier::new(OPENERS);
            thread::scope(|scope| {
                for _ in 0..OPENERS {
                    scope.spawn(|| {
                        start.wait();
                        let catalogue = Catalogue::open(&path).expect("it waits for the others");
                        assert_eq!(catalogue.ids().expect("a list"), Vec::<String>::new());
                    });
                }
            });
        }
    }
}
