//! What can be wrong with a profile or a command line, as stable keywords (spec 14).

use std::fmt;

macro_rules! classes {
    ($($variant:ident $keyword:literal),+ $(,)?) => {
        /// Class of an error in a command line or profile; its keyword is stable.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[expect(missing_docs, reason = "the keywords are the documentation")]
        pub enum ErrorClass { $($variant),+ }

        impl ErrorClass {
            /// Every class.
            pub const ALL: &[Self] = &[$(Self::$variant),+];

            /// The stable keyword.
            #[must_use]
            pub fn keyword(self) -> &'static str {
                match self { $(Self::$variant => $keyword),+ }
            }
        }
    };
}

classes! {
    Affinity "affinity", AffinityConflict "affinity-conflict", Alignment "alignment",
    BadNumber "bad-number", BaseOffset "base-offset", BlockSize "block-size",
    BufferSeparation "buffer-separation", BurstConflict "burst-conflict", BypassIo "bypass-io",
    CacheMode "cache-mode", CompletionDepth "completion-depth", Distribution "distribution",
    Duplicate "duplicate", Etw "etw", FileSize "file-size", FlushMode "flush-mode", Hint "hint",
    IoRing "io-ring", LongOption "long-option", MaxOffset "max-offset",
    MmapConflict "mmap-conflict", NoTarget "no-target", NoTimespan "no-timespan",
    NotWellFormed "not-well-formed", OptionAfterTarget "option-after-target",
    PoolConflict "pool-conflict", Priority "priority", RandomRatio "random-ratio",
    RequestCount "request-count", ResultFormat "result-format", Schema "schema", Seed "seed",
    SeqConflict "seq-conflict", SeqRandConflict "seq-rand-conflict", Stride "stride", Sync "sync",
    TemplateTarget "template-target", ThreadConflict "thread-conflict",
    ThreadStride "thread-stride", ThreadTarget "thread-target", Throughput "throughput",
    ThroughputConflict "throughput-conflict", UnknownOption "unknown-option", Verbose "verbose",
    Weight "weight", WriteBuffer "write-buffer", WriteRatio "write-ratio",
    XmlIncompatible "xml-incompatible", XmlLoad "xml-load",
}

impl fmt::Display for ErrorClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.keyword())
    }
}

/// A rule of spec 3.7 or 15.8 that a profile breaks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// Its class.
    pub class: ErrorClass,
    /// What is wrong, naming the object (time span, target) and the value.
    pub message: String,
    /// What to do instead.
    pub help: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
