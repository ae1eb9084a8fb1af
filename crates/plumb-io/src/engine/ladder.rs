//! Which engine a queue gets, decided by trying.

use std::fmt;

use super::{NullQueue, SyncQueue};
use crate::{OpenQueueError, Opener, QueueSpec, QueueUse};

/// An engine by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The best one that runs here and fits the way the queue is used.
    #[default]
    Auto,
    /// `pread` and `pwrite`, one at a time.
    Sync,
    /// No target: I/Os complete at once.
    Null,
}

impl Choice {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Sync, Self::Null];

    /// As it is typed and reported.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Sync => "sync",
            Self::Null => "null",
        }
    }

    /// The engine of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// What may be asked of the ring beyond the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct UringOptions {}

/// What may be asked of the engines beyond the defaults.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct LadderOptions {
    /// For io_uring.
    pub uring: UringOptions,
}

/// Opens queues on the engine of choice, or on the best that runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Ladder {
    choice: Choice,
    options: LadderOptions,
}

impl Ladder {
    /// A ladder for `choice`.
    #[must_use]
    pub const fn new(choice: Choice, options: LadderOptions) -> Self {
        Self { choice, options }
    }
}

impl Opener for Ladder {
    fn open<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        let _ = self.options;
        match self.choice {
            Choice::Null => Ok(user.with(NullQueue::open(&spec)?)),
            Choice::Auto | Choice::Sync => Ok(user.with(SyncQueue::open(spec)?)),
        }
    }
}
