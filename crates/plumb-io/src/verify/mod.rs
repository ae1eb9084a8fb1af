//! Verified I/O: what was written is what is read, and nothing that was acknowledged is lost.
//!
//! A [`Verification`] is a session of it; each target has a [`Space`], which knows what its blocks may
//! hold; a [`VerifyQueue`] around any [`IoQueue`](crate::IoQueue) stamps what is written and compares
//! what is read; [`check()`] reads everything back. With a state file all that is known of the targets
//! outlives the process (see [`state`]).

mod check;
mod findings;
mod queue;
mod sector;
mod space;
pub mod state;
#[cfg(test)]
mod tests;

use std::hash::{BuildHasher, Hasher};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

pub use check::{BUFFER, Checked, DEPTH, Unreadable, check};
pub use findings::{Findings, Kind, LISTED, Mismatch, Pass};
pub use queue::VerifyQueue;
pub use sector::{Content, Identity, SECTOR, WriteStamp, read, stamp};
pub use space::Space;
use space::SpaceSpec;
use state::{Session, State, StateError};

/// A session of verified I/O.
#[derive(Debug)]
pub struct Verification {
    session: Session,
    writes: AtomicU64,
    targets: AtomicU64,
    findings: Findings,
    state: Option<State>,
}

impl Verification {
    /// A session that ends with the process: a history of its own.
    #[must_use]
    pub fn new() -> Self {
        let session = Session { history: random(), number: 1, first: 1, was_cut: false };
        Self::of(session, None)
    }

    /// A session that goes on with what the state file at `path` knows; it is made if there is none.
    ///
    /// # Errors
    /// When the file cannot be used.
    pub fn with_state(path: &Path) -> Result<Self, StateError> {
        let (state, session) = State::open(path)?;
        Ok(Self::of(session, Some(state)))
    }

    fn of(session: Session, state: Option<State>) -> Self {
        Self {
            session,
            // Numbers of writes rise over all sessions.
            writes: AtomicU64::new(u64::from(session.number) << 44),
            targets: AtomicU64::new(0),
            findings: Findings::default(),
            state,
        }
    }

    /// Which history this session belongs to.
    #[must_use]
    pub fn history(&self) -> u64 {
        self.session.history
    }

    /// Whether the session before this one was cut off: it never said that it ended.
    #[must_use]
    pub fn follows_a_cut(&self) -> bool {
        self.session.was_cut
    }

    /// The state file.
    #[must_use]
    pub fn state_path(&self) -> Option<&Path> {
        self.state.as_ref().map(State::path)
    }

    /// Whether the state file knows a target of that path: what it holds is expected to stay.
    #[must_use]
    pub fn knows(&self, path: &Path) -> bool {
        self.state.as_ref().is_some_and(|state| state.knows(path))
    }

    /// Whether the state file knows a file or device that is not there any more.
    #[must_use]
    pub fn misses(&self, path: &Path) -> bool {
        self.state.as_ref().is_some_and(|state| state.misses(path))
    }

    /// The mismatches found.
    #[must_use]
    pub fn findings(&self) -> &Findings {
        &self.findings
    }

    /// Takes a target of `size` bytes in, of which the first `used` may be written, in blocks of `block`
    /// bytes, a multiple of [`SECTOR`]. The space may have smaller blocks: a state file keeps the finest that it has seen.
    ///
    /// Each target once: two spaces of one target know nothing of each other's writes.
    ///
    /// # Errors
    /// When the state file cannot take it in, or knows of content beyond its end.
    ///
    /// # Panics
    /// When `block` is no multiple of [`SECTOR`].
    pub fn space(
        &self,
        path: &Path,
        (size, used): (u64, u64),
        block: u32,
    ) -> Result<Arc<Space>, StateError> {
        assert!(block > 0 && block.is_multiple_of(SECTOR), "blocks are whole sectors: {block}");
        let Session { history, first, .. } = self.session;
        let name = path.display().to_string();
        let make = |number, block, blocks, state| {
            let path = name;
            Space::new(SpaceSpec { path, history, number, block, blocks, size, first, state })
        };
        let space = match &self.state {
            None => {
                let number = self.targets.fetch_add(1, Ordering::Relaxed);
                make(number, block, used.min(size) / u64::from(block), None)
            }
            Some(state) => {
                state.attach(path, (size, used), block, |number, block, blocks, target| {
                    make(number, block, blocks, Some(target))
                })?
            }
        };
        Ok(Arc::new(space))
    }

    /// Ends the session: all that is known is on the medium.
    ///
    /// # Errors
    /// When the state file cannot be written.
    pub fn close(&self) -> Result<(), StateError> {
        self.state.as_ref().map_or(Ok(()), State::close)
    }

    /// Whether the state file could not be kept up: it knows less than was acknowledged.
    #[must_use]
    pub fn state_failed(&self) -> bool {
        self.state.as_ref().is_some_and(State::failed)
    }

    fn next_write(&self) -> u64 {
        self.writes.fetch_add(1, Ordering::Relaxed)
    }
}

impl Default for Verification {
    fn default() -> Self {
        Self::new()
    }
}

/// A number that no other history has, for all practical purposes: hash maps get their keys from the
/// system's generator.
fn random() -> u64 {
    let mut hasher = std::hash::RandomState::new().build_hasher();
    hasher.write_u32(std::process::id());
    hasher.finish()
}
