//! Kernel events of the measured part (spec 10.3).

use std::io::{self, Write};

use crate::result::model::TraceCounts;

/// Writes the block. The kernel counts events without session buffers, so of the buffer statistics
/// only the events that were lost are there.
///
/// # Errors
/// What `out` reports.
pub fn write(trace: &TraceCounts, out: &mut dyn Write) -> io::Result<()> {
    writeln!(out, "\n\n\nETW:\n----\n")?;
    for (title, counters) in &trace.classes {
        writeln!(out, "\t{title}")?;
        for (name, count) in counters {
            writeln!(out, "\t\t{name}: {count}")?;
        }
    }
    writeln!(out, "\tETW Buffer Settings & Statistics\n\t\tLost Events: {}", trace.lost)
}
