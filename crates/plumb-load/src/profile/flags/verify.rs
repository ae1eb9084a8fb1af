//! What `--verify` does not go with.

use plumb_io::verify::SECTOR;

use super::error::CommandLineError;
use super::line::{Given, Scan};
use super::options::EngineChoice;
use super::table::Id;
use super::values::Fault;
use super::warnings::Warnings;
use crate::profile::error::ErrorClass;
use crate::profile::model::{DistributionKind, RawProfile, Target, TimeSpan, WriteContent};

/// Refuses a profile that cannot be verified, if that is asked for.
pub(super) fn apply(
    scan: &Scan<'_>,
    profile: &RawProfile,
    warnings: &mut Warnings,
) -> Result<(), CommandLineError> {
    let last = |id| scan.options.iter().rev().find(|given| given.id == id);
    let Some(verify) = last(Id::Verify) else {
        let help = "add --verify=crc32c, or leave --verify-state out";
        let Some(state) = last(Id::VerifyState) else { return Ok(()) };
        return Err(state.error(&Fault::option(" needs --verify", help)));
    };
    if matches!(scan.run.engine, EngineChoice::Null | EngineChoice::Nop | EngineChoice::NopFile) {
        let what = " does not go with an engine that keeps nothing (null, nop, nop-file)";
        return Err(verify.error(&Fault::option(what, "use another engine, or none")));
    }
    for span in &profile.time_spans {
        conflicts(verify, span)?;
    }
    if profile.profile_only || scan.run.profile_json {
        warnings.add(verify.index, "--verify is no part of a profile: give it to the run");
    }
    Ok(())
}

fn conflicts(verify: &Given<'_>, span: &TimeSpan) -> Result<(), CommandLineError> {
    let refuse = |class, what: String, help: &str| {
        Err(verify.error(&Fault::option(format!(" does not go with {what}"), help).of(class)))
    };
    if span.random_write_data {
        let (class, what) = (ErrorClass::WriteBuffer, "random content for every write (-Zr)");
        return refuse(class, what.to_owned(), "leave it out: verified content does not compress");
    }
    for target in &span.targets {
        if target.write_content != WriteContent::Sequential {
            let help = "leave it out: what is written must say where it belongs";
            let what = format!("content of your own for '{}' (-Z)", target.path);
            return refuse(ErrorClass::WriteBuffer, what, help);
        }
        if target.memory_mapped {
            let help = "leave -Sm out: copies of several requests may mix within a sector";
            let what = format!("the memory mapped target '{}' (-Sm)", target.path);
            return refuse(ErrorClass::MmapConflict, what, help);
        }
        if let Some((class, what, value)) = not_whole(target) {
            let what = format!(
                "{what} of {value} bytes for '{}': what is verified are sectors of {SECTOR} bytes",
                target.path
            );
            return refuse(class, what, "make it a multiple of 512");
        }
    }
    Ok(())
}

/// The first length or offset of a target that is no multiple of a sector.
fn not_whole(target: &Target) -> Option<(ErrorClass, &'static str, u64)> {
    let ranges = target
        .distribution
        .iter()
        .filter(|distribution| distribution.kind == DistributionKind::Absolute)
        .flat_map(|distribution| &distribution.ranges)
        .map(|range| (ErrorClass::Distribution, "a range (-rdabs)", range.size));
    let figures = [
        (ErrorClass::BlockSize, "a block size (-b)", u64::from(target.block_size)),
        (ErrorClass::Alignment, "an alignment or stride (-r, -s)", target.alignment),
        (ErrorClass::BaseOffset, "a base offset (-B)", target.base_file_offset),
        (ErrorClass::ThreadStride, "a thread stride (-T)", target.thread_stride),
    ];
    let mut figures = figures.into_iter().chain(ranges);
    figures.find(|(_, _, value)| !value.is_multiple_of(SECTOR.into()))
}
