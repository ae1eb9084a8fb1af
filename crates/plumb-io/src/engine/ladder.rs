//! Which engine a queue gets, decided by trying.

use std::fmt;

use plumb_sys::aio::AioReservation;
use plumb_sys::ring::RingReservation;

use super::{
    AioQueue, NopQueue, NullQueue, SyncQueue, ThreadsQueue, UringOptions, UringQueue, aio, nop,
    uring,
};
use crate::stack::Split;
use crate::{OpenQueueError, Opener, QueueMode, QueueSpec, QueueUse};

/// An engine by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Choice {
    /// The best one that runs here and fits the way the queue is used.
    #[default]
    Auto,
    /// io_uring.
    Uring,
    /// Linux native AIO.
    Aio,
    /// Plain calls on a pool of threads.
    Threads,
    /// `pread` and `pwrite`, one at a time.
    Sync,
    /// No target: I/Os complete at once.
    Null,
    /// No target: empty operations through a real ring.
    Nop,
    /// The same for which the kernel looks up a file and a buffer.
    NopFile,
}

impl Choice {
    /// All of them, in the order in which they are offered.
    pub const ALL: [Self; 8] = [
        Self::Auto,
        Self::Uring,
        Self::Aio,
        Self::Threads,
        Self::Sync,
        Self::Null,
        Self::Nop,
        Self::NopFile,
    ];

    /// As it is typed and reported.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Uring => "uring",
            Self::Aio => "aio",
            Self::Threads => "threads",
            Self::Sync => "sync",
            Self::Null => "null",
            Self::Nop => "nop",
            Self::NopFile => nop::NOP_FILE,
        }
    }

    /// The engine of that name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|choice| choice.name() == name)
    }

    /// Whether it leaves the targets alone, so that they need not even be opened.
    #[must_use]
    pub const fn has_no_target(self) -> bool {
        matches!(self, Self::Null | Self::Nop | Self::NopFile)
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

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

    /// io_uring or a clear error.
    fn forced_uring<U: QueueUse>(
        &self,
        spec: QueueSpec,
        user: U,
    ) -> Result<U::Output, OpenQueueError> {
        let ring = self.reserve_ring(&spec).map_err(|reason| uring::no_ring("uring", reason))?;
        Self::uring(ring, spec, user)
    }

    /// The ring of `spec`, once the kernel is known to take submissions.
    fn reserve_ring(&self, spec: &QueueSpec) -> Result<RingReservation, String> {
        uring::probe()?;
        uring::reserve(spec, self.options.uring)
    }

    fn uring<U: QueueUse>(
        ring: RingReservation,
        spec: QueueSpec,
        user: U,
    ) -> Result<U::Output, OpenQueueError> {
        let split = Split::new(&spec)?;
        let queue = UringQueue::on(ring, spec)?;
        // The fast path has no mapped files and no second look at them.
        Ok(if split.is_empty() { user.with(queue) } else { user.with(split.around(queue)) })
    }

    fn aio<U: QueueUse>(
        reservation: AioReservation,
        spec: QueueSpec,
        notes: Vec<String>,
        user: U,
    ) -> Result<U::Output, OpenQueueError> {
        let split = Split::new(&spec)?;
        Ok(user.with(split.around(AioQueue::open(reservation, spec, notes)?)))
    }

    fn threads<U: QueueUse>(
        spec: QueueSpec,
        notes: Vec<String>,
        user: U,
    ) -> Result<U::Output, OpenQueueError> {
        let split = Split::new(&spec)?;
        Ok(user.with(split.around(ThreadsQueue::open(spec, notes)?)))
    }

    /// The best asynchronous engine that is to be had for so many requests; the reasons against the better
    /// ones go with it.
    fn best<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        let mut notes = match self.reserve_ring(&spec) {
            Ok(ring) => return Self::uring(ring, spec, user),
            Err(reason) => vec![format!("uring: {reason}")],
        };
        match aio::reserve(spec.depth) {
            Ok(reservation) => Self::aio(reservation, spec, notes, user),
            Err(reason) => {
                notes.push(format!("aio: {reason}"));
                Self::threads(spec, notes, user)
            }
        }
    }

    fn synchronous<U: QueueUse>(spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        let split = Split::new(&spec)?;
        Ok(user.with(split.around(SyncQueue::open(spec)?)))
    }

    /// The choice that a queue of that mode is opened by, or why it cannot be had whatever the machine is like.
    fn resolve(&self, mode: QueueMode, mapped_only: bool) -> Result<Choice, OpenQueueError> {
        let unavailable = |engine: Choice, reason: &str, remedy: &str| {
            Err(OpenQueueError::Unavailable {
                engine: engine.name().to_owned(),
                reason: reason.to_owned(),
                remedy: remedy.to_owned(),
            })
        };
        let choice = match self.choice {
            Choice::Auto if self.options.uring.needs_a_ring() => Choice::Uring,
            Choice::Uring | Choice::Auto => self.choice,
            other if self.options.uring.needs_a_ring() => {
                return unavailable(
                    other,
                    "polling (--poll, --sqpoll) is io_uring's",
                    "leave them out, or choose --engine auto or uring",
                );
            }
            other => other,
        };
        match (choice, mode) {
            (Choice::Null | Choice::Nop | Choice::NopFile, _) => Ok(choice),
            (Choice::Aio | Choice::Threads | Choice::Sync, QueueMode::Ring) => unavailable(
                choice,
                "ring submission (-u) is io_uring's",
                "leave out -u, or choose --engine auto or uring",
            ),
            (Choice::Uring, QueueMode::Ring) => Ok(choice),
            (Choice::Uring | Choice::Aio | Choice::Threads, _) if mapped_only => unavailable(
                choice,
                "every target is memory mapped (-Sm): its I/O is a copy by the processor",
                "leave out --engine, or leave out -Sm",
            ),
            _ => Ok(choice),
        }
    }
}

/// Whether no target needs an engine.
fn is_mapped_only(spec: &QueueSpec) -> bool {
    !spec.files.is_empty() && spec.files.iter().all(|file| file.mapping.is_some())
}

impl Opener for Ladder {
    fn open<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        match (self.resolve(spec.mode, is_mapped_only(&spec))?, spec.mode) {
            (Choice::Null, _) => Ok(user.with(NullQueue::open(&spec)?)),
            (Choice::Nop, _) => {
                uring::probe().map_err(|reason| uring::no_ring("nop", reason))?;
                Ok(user.with(NopQueue::open(&spec)?))
            }
            (Choice::NopFile, _) => {
                uring::probe().map_err(|reason| uring::no_ring(nop::NOP_FILE, reason))?;
                Ok(user.with(NopQueue::open_with_files(&spec)?))
            }
            (Choice::Sync, _) | (Choice::Auto, QueueMode::Synchronous) => {
                Self::synchronous(spec, user)
            }
            (Choice::Uring, _) | (Choice::Auto, QueueMode::Ring) => self.forced_uring(spec, user),
            (Choice::Aio, _) => {
                let reservation = aio::reserve(spec.depth).map_err(aio::no_aio)?;
                Self::aio(reservation, spec, Vec::new(), user)
            }
            (Choice::Threads, _) => Self::threads(spec, Vec::new(), user),
            (Choice::Auto, QueueMode::Asynchronous) => self.best(spec, user),
        }
    }

    fn check(&self, mode: QueueMode, mapped_only: bool) -> Result<(), OpenQueueError> {
        match (self.resolve(mode, mapped_only)?, mode) {
            (Choice::Uring, _) | (Choice::Auto, QueueMode::Ring) => {
                uring::probe().map_err(|reason| uring::no_ring("uring", reason))
            }
            (choice @ (Choice::Nop | Choice::NopFile), _) => {
                uring::probe().map_err(|reason| uring::no_ring(choice.name(), reason))
            }
            (Choice::Aio, _) => aio::reserve(1).map(drop).map_err(aio::no_aio),
            (Choice::Auto | Choice::Null | Choice::Sync | Choice::Threads, _) => Ok(()),
        }
    }
}
