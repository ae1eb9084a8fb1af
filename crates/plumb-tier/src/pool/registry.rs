//! Which disks this machine has seen a pool on. The truth is on the disks; this only says where to look.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::emulation::Emulated;
use super::settings::PoolSettings;

/// Names the folder instead of the user's.
const VARIABLE: &str = "PLUMB_POOLS";
const HEADING: &str = "plumb-pool 1";
const SUFFIX: &str = "pool";
/// The largest file that is read.
const FILE_MAX: u64 = 4 << 20;

/// A pool as the registry knows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredPool {
    /// Its name.
    pub name: String,
    /// Its id.
    pub id: u128,
    /// Where its disks were last.
    pub disks: Vec<PathBuf>,
    /// What its disks are slowed down to.
    pub emulated: Vec<Emulated>,
    /// What is settled about it.
    pub settings: PoolSettings,
}

/// The pools of this machine.
#[derive(Debug, Clone)]
pub struct Registry {
    folder: PathBuf,
}

/// Nobody else changes what is known of a pool as long as this is kept. It goes with the program, too.
#[derive(Debug)]
pub struct Claim {
    _file: File,
}

/// What the registry cannot do.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RegistryError {
    /// A name that cannot be a pool's or virtual disk's.
    #[error("'{name}' cannot be a name")]
    #[diagnostic(
        code(plumb::tier::name),
        help("1 to 64 letters, digits, '.', '_' or '-'; the first a letter or digit")
    )]
    Name {
        /// As typed.
        name: String,
    },
    /// No pool of that name.
    #[error("there is no pool named '{name}'{}", listed(.known))]
    #[diagnostic(
        code(plumb::tier::unknown_pool),
        help(
            "`plumb pool new` makes one; `plumb pool import DISK…` finds one that is on disks already"
        )
    )]
    Unknown {
        /// The name.
        name: String,
        /// Pools that there are.
        known: Vec<String>,
    },
    /// A pool has that name.
    #[error("there is a pool named '{name}' already")]
    #[diagnostic(
        code(plumb::tier::pool_exists),
        help("choose another name; see `plumb pool list`")
    )]
    Exists {
        /// The name.
        name: String,
    },
    /// A file of it is of no use.
    #[error("{} is not what `plumb pool` writes", path.display())]
    #[diagnostic(
        code(plumb::tier::registry_damaged),
        help("remove the file, then name the pool's disks: plumb pool import DISK…")
    )]
    Damaged {
        /// Which.
        path: PathBuf,
    },
    /// The system refuses.
    #[error("cannot use {}", path.display())]
    #[diagnostic(
        code(plumb::tier::registry_io),
        help("name a folder for the list of pools that you may write to: PLUMB_POOLS=/path")
    )]
    Io {
        /// Which file or folder.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

fn listed(names: &[String]) -> String {
    if names.is_empty() { String::new() } else { format!(" (there is: {})", names.join(", ")) }
}

/// Characters of the longest name of a pool or a virtual disk.
pub const NAME_MAX: usize = 64;

/// Whether a pool or a virtual disk may be called that.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    (1..=NAME_MAX).contains(&name.len())
        && name.chars().all(plain)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

impl Registry {
    /// The one of this user: `PLUMB_POOLS`, else `/var/lib/plumb/pools` for root, else in the user's state
    /// folder.
    #[must_use]
    pub fn of_user(is_root: bool) -> Self {
        let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
        let folder = match (variable(VARIABLE), is_root) {
            (Some(folder), _) => PathBuf::from(folder),
            (None, true) => return Self::of_root(),
            (None, false) => {
                let home = || PathBuf::from(variable("HOME").unwrap_or_default());
                let state = variable("XDG_STATE_HOME").map(PathBuf::from);
                state.unwrap_or_else(|| home().join(".local/state")).join("plumb/pools")
            }
        };
        Self { folder }
    }

    /// The one that a service of the machine has, which nobody names another.
    #[must_use]
    pub fn of_root() -> Self {
        Self::at("/var/lib/plumb/pools")
    }

    /// One in that folder.
    #[must_use]
    pub fn at(folder: impl Into<PathBuf>) -> Self {
        Self { folder: folder.into() }
    }

    /// Where it is.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    fn path(&self, name: &str) -> Result<PathBuf, RegistryError> {
        if !is_name(name) {
            return Err(RegistryError::Name { name: name.to_owned() });
        }
        Ok(self.folder.join(format!("{name}.{SUFFIX}")))
    }

    /// Names of all pools, sorted.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn names(&self) -> Result<Vec<String>, RegistryError> {
        let entries = match std::fs::read_dir(&self.folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            other => {
                other.map_err(|source| RegistryError::Io { path: self.folder.clone(), source })?
            }
        };
        let name = |entry: io::Result<std::fs::DirEntry>| {
            let path = entry.ok()?.path();
            let is_pool = path.extension().is_some_and(|extension| extension == SUFFIX);
            let name = path.file_stem()?.to_str()?.to_owned();
            (is_pool && is_name(&name)).then_some(name)
        };
        let mut names: Vec<String> = entries.filter_map(name).collect();
        names.sort();
        Ok(names)
    }

    /// What is known of a pool.
    ///
    /// # Errors
    /// When there is none of that name, or its file is of no use.
    pub fn find(&self, name: &str) -> Result<RegisteredPool, RegistryError> {
        let path = self.path(name)?;
        let too_large = std::fs::metadata(&path).is_ok_and(|found| found.len() > FILE_MAX);
        if too_large {
            return Err(RegistryError::Damaged { path });
        }
        match std::fs::read(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let known = self.names().unwrap_or_default();
                Err(RegistryError::Unknown { name: name.to_owned(), known })
            }
            Err(source) => Err(RegistryError::Io { path, source }),
            Ok(bytes) => parse(name, &bytes).ok_or(RegistryError::Damaged { path }),
        }
    }

    /// Whether there is a pool of that name.
    ///
    /// # Errors
    /// When it cannot be a name.
    pub fn has(&self, name: &str) -> Result<bool, RegistryError> {
        Ok(self.path(name)?.exists())
    }

    /// Whether a pool could be written down: asked before its disks are written to.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn is_ready(&self) -> Result<(), RegistryError> {
        let refused = |source| RegistryError::Io { path: self.folder.clone(), source };
        std::fs::create_dir_all(&self.folder).map_err(refused)?;
        let probe = self.folder.join(format!(".probe.{}", std::process::id()));
        File::create(&probe).and_then(|_| std::fs::remove_file(&probe)).map_err(refused)
    }

    /// Writes down where a pool is, in place of what was known.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn put(&self, pool: &RegisteredPool) -> Result<(), RegistryError> {
        let path = self.path(&pool.name)?;
        let refused = |source| RegistryError::Io { path: path.clone(), source };
        let mut text = format!("{HEADING}\nid {:032x}\n", pool.id);
        for model in &pool.emulated {
            let _ = writeln!(text, "emulate {}", model.name());
        }
        pool.settings.render(&mut text);
        for disk in &pool.disks {
            // A path may hold a line end; nobody names a disk so.
            let _ = writeln!(text, "disk {}", disk.display());
        }
        std::fs::create_dir_all(&self.folder).map_err(refused)?;
        let beside = self.folder.join(format!(".{}.{}", pool.name, std::process::id()));
        let written = File::create(&beside).and_then(|mut file| {
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            std::fs::rename(&beside, &path)?;
            File::open(&self.folder)?.sync_all()
        });
        if written.is_err() {
            // Best effort: the error that led here is the one to report.
            let _ = std::fs::remove_file(&beside);
        }
        written.map_err(refused)
    }

    /// Waits until no other program changes what is known of a pool, and keeps others from it until the answer is dropped: what
    /// was found before may not be so any more, and is to be found again.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn claim(&self, name: &str) -> Result<Claim, RegistryError> {
        self.path(name)?;
        let path = self.folder.join(format!(".{name}.lock"));
        let refused = |source| RegistryError::Io { path: self.folder.clone(), source };
        std::fs::create_dir_all(&self.folder).map_err(refused)?;
        let options = File::options().write(true).create(true).truncate(false).open(&path);
        let file = options.map_err(refused)?;
        file.lock().map_err(refused)?;
        Ok(Claim { _file: file })
    }

    /// Forgets a pool; its disks stay as they are.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn forget(&self, name: &str) -> Result<(), RegistryError> {
        let path = self.path(name)?;
        let others = [
            super::findings::EXTENSION,
            super::scans::EXTENSION,
            super::jobs::EXTENSION,
            super::answers::EXTENSION,
            super::way::EXTENSION,
        ];
        for said in ["events", "events-before", "perf"].into_iter().chain(others) {
            // What was said about it goes with it, if it is there.
            let _ = std::fs::remove_file(self.folder.join(format!("{name}.{said}")));
        }
        // Whoever waits for it finds no pool.
        let _ = std::fs::remove_file(self.folder.join(format!(".{name}.lock")));
        match std::fs::remove_file(&path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => {
                Err(RegistryError::Io { path, source: error })
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn parse(name: &str, bytes: &[u8]) -> Option<RegisteredPool> {
    let text = std::str::from_utf8(bytes).ok()?;
    let mut lines = text.lines();
    if lines.next()? != HEADING {
        return None;
    }
    let id = u128::from_str_radix(lines.next()?.strip_prefix("id ")?, 16).ok()?;
    let (mut disks, mut emulated) = (Vec::new(), Vec::new());
    let mut settings = PoolSettings::default();
    for line in lines {
        match line.split_once(' ')? {
            ("emulate", model) => emulated.push(Emulated::named(model)?),
            ("disk", path) => disks.push(Path::new(path).to_owned()),
            _ => settings.take(line)?,
        }
    }
    Some(RegisteredPool { name: name.to_owned(), id, disks, emulated, settings })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two that add to one pool wait for one another, and each finds what the other one put.
    #[test]
    fn whoever_claims_a_pool_has_it_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(folder.path());
        let pool = RegisteredPool {
            name: "a".to_owned(),
            id: 7,
            disks: Vec::new(),
            emulated: Vec::new(),
            settings: PoolSettings::default(),
        };
        registry.put(&pool).expect("written");
        std::thread::scope(|scope| {
            for own in 0..4 {
                let registry = &registry;
                scope.spawn(move || {
                    for nth in 0..8 {
                        let _claim = registry.claim("a").expect("it waits");
                        let mut found = registry.find("a").expect("it is there");
                        found.disks.push(format!("/disk {own} {nth}").into());
                        std::thread::sleep(std::time::Duration::from_millis(1));
                        registry.put(&found).expect("written");
                    }
                });
            }
        });
        assert_eq!(registry.find("a").expect("it is there").disks.len(), 32);
        assert_eq!(registry.names().expect("one"), ["a"]);
        assert!(matches!(registry.claim("../x"), Err(RegistryError::Name { .. })));
    }

    #[test]
    fn what_is_put_is_found() {
        let folder = tempfile::tempdir().expect("a folder");
        let registry = Registry::at(folder.path().join("new/pools"));
        assert_eq!(registry.names().expect("none yet"), Vec::<String>::new());
        let pool = |name: &str| RegisteredPool {
            name: name.to_owned(),
            id: 7,
            disks: vec!["/dev/sda".into(), "/a file".into()],
            emulated: vec![Emulated::Sas10k300],
            settings: PoolSettings { time_out_s: 5, retire_after_s: None },
        };
        for name in ["b", "a.1"] {
            registry.put(&pool(name)).expect("written");
        }
        let usual = RegisteredPool { settings: PoolSettings::default(), ..pool("c") };
        registry.put(&usual).expect("written");
        assert_eq!(registry.find("c").expect("it is there"), usual);
        registry.forget("c").expect("it goes");
        assert_eq!(registry.names().expect("two"), ["a.1", "b"]);
        assert_eq!(registry.find("b").expect("it is there"), pool("b"));
        let unknown = registry.find("c").expect_err("never put").to_string();
        assert!(unknown.contains("a.1, b"), "{unknown}");
        registry.forget("b").expect("it goes");
        assert!(!registry.has("b").expect("a name"));
        for bad in ["", "../x", ".x", "a/b", "-x", &"x".repeat(65)] {
            assert!(matches!(registry.find(bad), Err(RegistryError::Name { .. })), "{bad}");
        }
        for damaged in [
            "",
            "plumb-pool 2\nid 0\n",
            "plumb-pool 1\nid x\n",
            "plumb-pool 1\nid 1\nx\n",
            "plumb-pool 1\nid 1\nemulate floppy\n",
            "plumb-pool 1\nid 1\ntime-out 0\n",
            "plumb-pool 1\nid 1\ntime-out soon\n",
            "plumb-pool 1\nid 1\nretire-after -1\n",
        ] {
            std::fs::write(folder.path().join("new/pools/d.pool"), damaged).expect("written");
            assert!(matches!(registry.find("d"), Err(RegistryError::Damaged { .. })), "{damaged}");
        }
    }

    /// Lists of pools and wishes are files that anybody may have written.
    #[test]
    fn damaged_lists_and_wishes_are_read_or_refused() {
        let whole = format!(
            "{HEADING}\nid 00000000000000000000000000000007\nemulate sas-10k-300\ntime-out 9\nretire-after never\ndisk /dev/sda\ndisk /a file\n"
        );
        assert!(parse("p", whole.as_bytes()).is_some());
        let folder = tempfile::tempdir().expect("a folder");
        let asks = folder.path().join("p.asks");
        let mut random = crate::random::Random::new(9);
        let mut small = |bound: usize| {
            usize::try_from(random.below(u64::try_from(bound).expect("it fits"))).expect("it fits")
        };
        let mut read = 0;
        for nth in 0..20_000 {
            let mut bytes = whole.as_bytes().to_vec();
            for _ in 0..=small(4) {
                let at = small(bytes.len());
                match small(4) {
                    0 => bytes.truncate(at.max(1)),
                    1 => bytes.insert(at, b'\n'),
                    _ => bytes[at] = b"\t\n 9x\xff-"[small(7)],
                }
            }
            read += usize::from(parse("p", &bytes).is_some());
            if nth % 100 == 0 {
                bytes.extend_from_slice(b"\noffline 99999\nscan 1\nretire x\n");
                let text = String::from_utf8_lossy(&bytes);
                std::fs::write(&asks, text.as_bytes()).expect("written");
                assert_eq!(super::super::asks::take(&asks), [Ok(super::super::Ask::Scan)]);
            }
        }
        assert!(read > 100, "{read}");
    }
}
