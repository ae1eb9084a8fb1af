//! What `--poll` and `--sqpoll` do not go with.

use super::error::CommandLineError;
use super::line::Scan;
use super::table::Id;
use super::values::Fault;
use crate::profile::error::ErrorClass;
use crate::profile::model::RawProfile;

/// Fails where `-u` says how the ring is used (spec 15.2: no SQPOLL, no IOPOLL).
pub(super) fn check(scan: &Scan<'_>, profile: &RawProfile) -> Result<(), CommandLineError> {
    let polls = |id| matches!(id, Id::Poll | Id::SubmitThread);
    let Some(given) = scan.options.iter().rev().find(|given| polls(given.id)) else {
        return Ok(());
    };
    if profile.time_spans.iter().all(|span| span.io_ring.is_none()) {
        return Ok(());
    }
    let what = " does not go with -u, which submits and waits by itself";
    Err(given.error(&Fault::option(what, "leave one of them out").of(ErrorClass::IoRing)))
}
