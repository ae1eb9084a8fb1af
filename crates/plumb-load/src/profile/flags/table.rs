//! What an option is; the options themselves are in [`OPTIONS`].

use std::fmt;

pub use super::rows::OPTIONS;
use crate::profile::error::ErrorClass;

/// One option of the command line.
#[derive(Debug, Clone, Copy)]
pub struct OptionRow {
    /// What it does.
    pub(super) id: Id,
    /// Its short form without a value, empty if it has none.
    pub short: &'static str,
    /// Its long name without the dashes.
    pub long: &'static str,
    /// What follows it.
    pub value: Value,
    /// What a value of the long form may look like.
    pub(super) shape: Shape,
    /// Its place in the help.
    pub group: Group,
    /// What it is said of.
    pub scope: Scope,
    /// The class of an error in its value.
    pub(super) class: ErrorClass,
    /// What it does, in a line.
    pub help: &'static str,
    /// Values, repeats, conflicts.
    pub details: &'static str,
}

/// What follows an option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Value {
    /// Nothing.
    None,
    /// A value, shown like this.
    Required(&'static str),
    /// A value or nothing.
    Optional(&'static str),
}

/// What a value given to a long name may look like, so that it never selects another option.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Shape {
    /// Whatever the short form takes.
    Any,
    /// It starts with a digit.
    Digit,
    /// It does not start with a digit.
    NotDigit,
    /// It does not start with one of these.
    Not(&'static str),
    /// A digit, or `g` and more.
    Affinity,
    /// One of these words.
    Words(&'static [&'static str]),
    /// Takes none; the short form has this one.
    Fixed(&'static str),
}

/// A heading of the help.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[expect(missing_docs, reason = "the titles are the documentation")]
pub enum Group {
    Pattern,
    Area,
    Content,
    Threads,
    Time,
    Cache,
    Processors,
    Results,
    Profiles,
    Events,
    General,
    Plumb,
}

impl Group {
    /// All of them, in the order of the help.
    pub const ALL: [Self; 12] = [
        Self::Pattern,
        Self::Area,
        Self::Content,
        Self::Threads,
        Self::Time,
        Self::Cache,
        Self::Processors,
        Self::Results,
        Self::Profiles,
        Self::Events,
        Self::General,
        Self::Plumb,
    ];

    /// Its heading.
    #[must_use]
    pub fn title(self) -> &'static str {
        match self {
            Self::Pattern => "Size and order of I/O",
            Self::Area => "Targets and the part of them that is used",
            Self::Content => "Content of writes, buffers",
            Self::Threads => "Threads, outstanding I/O, limits",
            Self::Time => "Time",
            Self::Cache => "Caching",
            Self::Processors => "Processors",
            Self::Results => "Results",
            Self::Profiles => "Profiles",
            Self::Events => "Events between processes",
            Self::General => "General",
            Self::Plumb => "Plumb's own (no short form; accepted beside everything else)",
        }
    }
}

/// What an option is said of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// The whole profile.
    Profile,
    /// The time span.
    TimeSpan,
    /// Every target of the line.
    Target,
    /// The program, not the workload.
    Program,
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Profile => "profile",
            Self::TimeSpan => "time span",
            Self::Target => "target",
            Self::Program => "program",
        })
    }
}

/// What an option does. Several long names may share one, with a value of their own each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Help,
    Version,
    ExperimentFlags,
    AffinityDefault,
    Affinity,
    AffinityOrder,
    BlockSize,
    BufferSeparation,
    BaseOffset,
    Create,
    Cooldown,
    Duration,
    IopsInterval,
    Trace,
    MaxOffset,
    OpenHint,
    PoolThreads,
    Throughput,
    DisableAllCache,
    BurstSize,
    IoPriority,
    ThinkTime,
    LargePages,
    Latency,
    NoAffinity,
    MmapFlush,
    Outstanding,
    CompletionDepth,
    ThreadOutstanding,
    ParallelAsync,
    Progress,
    Random,
    RandomPercent,
    Distribution,
    ResultFormat,
    ProfileOnly,
    SystemInfo,
    Sequential,
    Interlocked,
    Cache,
    Threads,
    ThreadStride,
    IoRing,
    IoRingUnregistered,
    Verbose,
    VerboseStats,
    WritePercent,
    Warmup,
    CompletionRoutines,
    Profile,
    SignalStart,
    SignalFinish,
    WaitStart,
    StopEvent,
    SignalEvent,
    Seed,
    ZeroBuffers,
    RandomWriteData,
    WriteSource,
    Json,
    Output,
    ProfileJson,
    ErrorFormat,
    ProgressStyle,
    Engine,
    Destroy,
    Batch,
    Rate,
    Arrival,
    /// `--poll`.
    Poll,
    /// `--sqpoll`.
    SubmitThread,
    /// `--truth`.
    Truth,
    Verify,
    VerifyState,
    OnError,
    /// `--accept-older`.
    AcceptOlder,
    /// `--store`.
    Store,
    /// `-y` with a letter that names no event.
    UnknownEvent,
    /// No option at all.
    Unknown,
}

impl Id {
    /// The row that describes it; several may.
    pub(super) fn row(self) -> Option<&'static OptionRow> {
        OPTIONS.iter().find(|row| row.id == self)
    }

    /// Whether it is Plumb's own: says nothing of the workload.
    pub(super) fn is_plumbs(self) -> bool {
        self.row().is_some_and(|row| row.group == Group::Plumb)
    }

    /// Whether it may stand beside `-X`.
    pub(super) fn goes_with_profile(self) -> bool {
        self.is_plumbs()
            || matches!(
                self,
                Self::ExperimentFlags
                    | Self::BufferSeparation
                    | Self::Cooldown
                    | Self::Duration
                    | Self::Warmup
                    | Self::ResultFormat
                    | Self::ProfileOnly
                    | Self::SystemInfo
                    | Self::Verbose
                    | Self::VerboseStats
                    | Self::Profile
                    | Self::Seed
            )
    }

    /// The class of an error in its value.
    pub(super) fn class(self) -> ErrorClass {
        match self {
            Self::UnknownEvent => ErrorClass::Sync,
            _ => self.row().map_or(ErrorClass::UnknownOption, |row| row.class),
        }
    }
}

impl OptionRow {
    /// The option with exactly this long name.
    pub(super) fn by_long_name(name: &str) -> Option<&'static Self> {
        OPTIONS.iter().find(|row| row.long == name)
    }

    /// Whether it may stand beside `-X`.
    #[must_use]
    pub fn goes_with_profile(&self) -> bool {
        self.id.goes_with_profile()
    }

    /// The words its value is one of; empty if it is anything else.
    #[must_use]
    pub fn words(&self) -> &'static [&'static str] {
        match self.shape {
            Shape::Words(words) => words,
            _ => &[],
        }
    }

    /// The short form with its value, as in `-b<size>`; empty if there is none.
    #[must_use]
    pub fn short_form(&self) -> String {
        match (self.short, self.value, self.shape) {
            ("", ..) => String::new(),
            (short, Value::None, _) | (short, _, Shape::Words(_)) => short.to_owned(),
            (short, Value::Required(value), _) => format!("{short}{value}"),
            (short, Value::Optional(value), _) => format!("{short}[{value}]"),
        }
    }

    /// The long form with its value, as in `--block-size=<size>`.
    #[must_use]
    pub fn long_form(&self) -> String {
        let long = self.long;
        match self.value {
            Value::None => format!("--{long}"),
            Value::Required(value) => format!("--{long}={value}"),
            Value::Optional(value) => format!("--{long}[={value}]"),
        }
    }
}
