//! Traces of host I/O (spec 20): read from what others recorded, or made by a seeded generator.

mod binary;
mod capacities;
mod fit;
mod generate;
mod line;
mod reader;
#[cfg(test)]
mod tests;
mod zipf;

pub use binary::{TraceWriter, is_binary};
pub use capacities::Capacities;
pub use generate::{FittedShare, Generator, REUSE, WorkloadError, WorkloadSpec, workload_kinds};
pub use reader::{Strictness, TraceError, TraceReader, TraceSummary, fuzz_trace};
pub use zipf::{Zipf, fit_theta};

use plumb_units::Nanos;

use crate::heat::HostIo;

/// One I/O of a trace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceIo {
    /// Since the trace's first I/O.
    pub at: Nanos,
    /// Which of the trace's volumes, in the order of their first I/Os.
    pub volume: u32,
    /// What was done.
    pub io: HostIo,
}

/// How a trace is written down.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TraceFormat {
    /// Enterprise servers: `Timestamp,Hostname,DiskNumber,Type,Offset,Size,ResponseTime`.
    Msr,
    /// A cloud's: `device_id,opcode,offset,length,timestamp`.
    Alibaba,
    /// Another cloud's: `Timestamp,Offset,Size,IOType,VolumeID`.
    Tencent,
    /// Financial and web search: `ASU,LBA,Size,Opcode,Timestamp`.
    Spc,
    /// `ns pid process lba size W|R major minor hash`.
    Fiu,
    /// What blkparse prints.
    Blkparse,
    /// Plumb's own: 32 bytes for each I/O.
    Plumb,
}

impl TraceFormat {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Msr,
        Self::Alibaba,
        Self::Tencent,
        Self::Spc,
        Self::Fiu,
        Self::Blkparse,
        Self::Plumb,
    ];

    /// As it is named on a command line.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Msr => "msr",
            Self::Alibaba => "alibaba",
            Self::Tencent => "tencent",
            Self::Spc => "spc",
            Self::Fiu => "fiu",
            Self::Blkparse => "blkparse",
            Self::Plumb => "plumb",
        }
    }

    /// The format of that name.
    #[must_use]
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|format| format.name() == name)
    }

    /// Whether its times are whole seconds: I/Os of one second would arrive all at once.
    #[must_use]
    pub fn has_whole_seconds(self) -> bool {
        self == Self::Tencent
    }

    /// What a line looks like.
    #[must_use]
    pub fn shape(self) -> &'static str {
        match self {
            Self::Msr => {
                "Timestamp (100 ns),Hostname,DiskNumber,Read|Write,Offset (bytes),Size (bytes)[,ResponseTime]"
            }
            Self::Alibaba => "device_id,R|W,offset (bytes),length (bytes),timestamp (us)",
            Self::Tencent => {
                "Timestamp (s),Offset (512 bytes),Size (512 bytes),IOType (0 read, 1 write),VolumeID"
            }
            Self::Spc => "ASU,LBA (512 bytes),Size (bytes),r|w,Timestamp (s)[,...]",
            Self::Fiu => "ns pid process lba size (512 bytes) W|R major minor hash",
            Self::Blkparse => {
                "major,minor cpu sequence seconds pid action RWBS sector + sectors [process]; action Q counts"
            }
            Self::Plumb => "a header of 32 bytes and records of 32 bytes",
        }
    }
}
