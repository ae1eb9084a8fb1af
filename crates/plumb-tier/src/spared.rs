//! Whether a start can do without the disks that are away: it leaves them out durably, and whoever is left out is not asked
//! for journal and map again.

use plumb_io::FlushQueue;

use crate::assembly::How;
use crate::core::Halt;
use crate::io::Io;
use crate::members::Members;
use crate::mutation::{Mutation, active};
use crate::recover::{Begun, StartError, begin};

impl Members {
    /// Whether a disk that has journal and map is not here, and is about to be left out.
    pub(crate) fn leaves_metadata_out(&self) -> bool {
        let away = |nth: usize| !self.online[nth] && !self.gone[nth];
        self.config.disks.iter().enumerate().any(|(nth, disk)| disk.metadata && away(nth))
    }
}

/// A start begins without a disk that has journal and map, with nothing written, before it leaves it out. What it would be
/// refused for then, or halt for, it is refused for here, while the pool still names that disk as one that has them: it is
/// asked when it is back.
pub(crate) fn try_without<Q: FlushQueue>(
    mut io: Io<Q>,
    members: Members,
    how: How,
) -> Result<(Io<Q>, Members), StartError> {
    if active(Mutation::LeftOutUnasked) {
        return Ok((io, members));
    }
    let events = std::mem::take(&mut io.events);
    io.tries = true;
    let tried = begin(io, members.clone(), how, true).and_then(|Begun { mut core, .. }| {
        if core.counters.checkpoints == 0 {
            core.checkpoint(true)?;
        }
        Ok(core.io)
    });
    io = match tried {
        Err(StartError::Halted { source: Halt::MetadataFull }) => return Err(StartError::NoRoom),
        other => other?,
    };
    io.tries = false;
    io.events = events;
    Ok((io, members))
}
