//! Plumb's own block about verification (`--verify`).

use std::io::{self, Write};

use plumb_io::verify::{Checked, LISTED};
use plumb_units::Bytes;

use super::spans;
use crate::result::model::RunResult;
use crate::result::verify::VerifyResult;

/// Writes the block and the empty line before it; nothing where nothing was verified.
///
/// # Errors
/// What `out` reports.
pub fn write(result: &RunResult, out: &mut dyn Write) -> io::Result<()> {
    let several = result.time_spans.len() > 1;
    for (number, (span, _)) in (1..).zip(spans(result)) {
        let Some(verify) = &span.verify else { continue };
        writeln!(out, "\nVerification (CRC-32C)\n----------------------")?;
        if several {
            writeln!(out, "\ttimespan: {number:>3}")?;
        }
        write_span(verify, out)?;
    }
    Ok(())
}

fn write_span(verify: &VerifyResult, out: &mut dyn Write) -> io::Result<()> {
    write!(out, "\thistory: {:016x}", verify.history)?;
    match &verify.state {
        Some(path) => write!(out, ", state file: '{path}'")?,
        None => write!(out, ", ends with this run")?,
    }
    writeln!(out, "{}", if verify.follows_a_cut { ", the run before was cut off" } else { "" })?;
    write_check("checked before the load", verify.before, out)?;
    write_check("read back after the load", verify.after, out)?;
    let line = "-".repeat(96);
    writeln!(
        out,
        "\n  stale | misplaced |   torn | foreign |  block |        written |        checked | target\n{line}"
    )?;
    for target in &verify.targets {
        let [stale, misplaced, torn, foreign] = target.mismatches;
        writeln!(
            out,
            "{stale:>7} | {misplaced:>9} | {torn:>6} | {foreign:>7} | {:>6} | {:>14} | {:>14} | {}",
            target.block, target.written, target.checked, target.path
        )?;
    }
    writeln!(out, "{line}")?;
    match verify.complaint() {
        None if verify.targets.iter().all(|target| target.checked == 0) => {
            writeln!(
                out,
                "\t[??] nothing was checked: nothing that was read had been written before"
            )
        }
        None if verify.after.is_some_and(|after| !after.complete) => writeln!(
            out,
            "\t[??] what was read is what was acknowledged; not all of it was read back"
        ),
        None => writeln!(out, "\t[ok] everything that was read is what was acknowledged"),
        Some(_) => write_mismatches(verify, out),
    }
}

fn write_check(name: &str, checked: Option<Checked>, out: &mut dyn Write) -> io::Result<()> {
    let Some(checked) = checked else { return Ok(()) };
    write!(out, "\t{name}: {} of {}", Bytes(checked.bytes), Bytes(checked.of_bytes))?;
    if !checked.complete {
        write!(out, ", ended by the user")?;
    }
    if let Some(first) = checked.unreadable {
        let why = first.errno.map_or("the target ends there".to_owned(), |errno| errno.to_string());
        let bytes = Bytes(checked.unreadable_bytes);
        write!(out, "; {bytes} cannot be read, the first at {}: {why}", first.offset)?;
    }
    writeln!(out)
}

fn write_mismatches(verify: &VerifyResult, out: &mut dyn Write) -> io::Result<()> {
    for mismatch in &verify.first {
        writeln!(out, "\t[!!] {mismatch} ({})", mismatch.pass.keyword())?;
    }
    if verify.first.len() >= LISTED {
        writeln!(out, "\tfurther ones are counted only")?;
    }
    if verify.state_failed {
        writeln!(out, "\t[!!] the state file could not be written: it knows less than it should")?;
    }
    Ok(())
}
