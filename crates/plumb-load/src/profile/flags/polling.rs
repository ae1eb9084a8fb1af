//! What `--poll` and `--sqpoll` do not go with.

use super::error::CommandLineError;
use super::line::Scan;
use super::options::EngineChoice;
use super::table::Id;
use super::values::Fault;
use crate::profile::error::ErrorClass;
use crate::profile::model::RawProfile;

/// Fails where `-u` says how the ring is used (spec 15.2: no SQPOLL, no IOPOLL), and beside an engine that
/// has no ring.
pub(super) fn check(scan: &Scan<'_>, profile: &RawProfile) -> Result<(), CommandLineError> {
    let polls = |id| matches!(id, Id::Poll | Id::SubmitThread);
    let Some(given) = scan.options.iter().rev().find(|given| polls(given.id)) else {
        return Ok(());
    };
    if !matches!(scan.run.engine, EngineChoice::Auto | EngineChoice::Uring) {
        let what = " needs io_uring, and --engine chooses another engine";
        let help = "leave one of them out, or write --engine=uring";
        return Err(given.error(&Fault::option(what, help)));
    }
    if profile.time_spans.iter().all(|span| span.io_ring.is_none()) {
        return Ok(());
    }
    let what = " does not go with -u, which submits and waits by itself";
    Err(given.error(&Fault::option(what, "leave one of them out").of(ErrorClass::IoRing)))
}
