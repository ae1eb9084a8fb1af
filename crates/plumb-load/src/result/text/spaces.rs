//! Plumb's own block about storage spaces (`space:POOL/VDISK`).

use std::io::{self, Write};

use crate::result::model::RunResult;

/// Writes the block and the empty line before it; nothing where no space was used.
///
/// # Errors
/// What `out` reports.
pub fn write(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    for space in &result.spaces {
        let heading = format!("Storage space {}", space.pool);
        writeln!(out, "\n{heading}\n{}", "-".repeat(heading.len()))?;
        writeln!(out, "\trequests that reached its owner from other threads: {}", space.forwarded)?;
        writeln!(
            out,
            "\tblocks verified: {}, mismatches: {}, healed: {}, without a good copy: {}",
            space.blocks_verified, space.mismatches, space.healed, space.unrecoverable
        )?;
        if space.disks_lost > 0 || space.resynced > 0 {
            writeln!(
                out,
                "\tdisks lost: {}, extents brought up to date: {}",
                space.disks_lost, space.resynced
            )?;
        }
    }
    Ok(())
}
