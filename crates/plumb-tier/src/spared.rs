//! Whether a start can do without the disks that are away: it leaves them out durably, and whoever is left out is not asked
//! for journal and map again.

use plumb_io::FlushQueue;

use crate::chain::{self, UnreadEnd};
use crate::extents::Extents;
use crate::format::page::Checkpoint;
use crate::io::Io;
use crate::members::Members;
use crate::mutation::{Mutation, active};
use crate::recover::{StartError, is_whole, read_checkpoint};
use crate::tree::{MAP, Sources, Trees};

impl Members {
    /// Whether a disk that has journal and map is not here, and is about to be left out.
    fn leaves_metadata_out(&self) -> bool {
        let away = |nth: usize| !self.online[nth] && !self.gone[nth];
        self.config.disks.iter().enumerate().any(|(nth, disk)| disk.metadata && away(nth))
    }
}

/// Reads checkpoint, map and journal as the start is going to, before it leaves a disk out that has them, too. What a start
/// would be refused for then is refused here, while the pool still names that disk as one that has them: it is asked when
/// it is back. Nothing is decided; of the map a rotten copy is written anew where another one is whole.
pub(crate) fn ask_before<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &Members,
    unread_end: UnreadEnd,
) -> Result<(), StartError> {
    if !members.leaves_metadata_out() || active(Mutation::LeftOutUnasked) {
        return Ok(());
    }
    let (checkpoint, ..) = read_checkpoint(io, members)?;
    ask_map(io, members, &checkpoint)?;
    is_whole(&chain::look(io, members, (checkpoint.link, unread_end)))
}

fn ask_map<Q: FlushQueue>(
    io: &mut Io<Q>,
    members: &Members,
    checkpoint: &Checkpoint,
) -> Result<(), StartError> {
    let mut extents = Extents::new(&members.config, &members.geometry);
    extents.places_only = true;
    let mut trees = Trees::new(&extents, &members.geometry, members.pool_seed);
    let sources = Sources::of(io, members);
    let map = &checkpoint.roots[..=MAP];
    trees.load(io, &members.geometry, &sources, map, &mut extents)?;
    Ok(())
}
