//! The published behaviour of DISKSPD as cases (spec 14): `PLUMB_CONFORMANCE_DIR` names another folder
//! of the same layout; one line per set, failing ids above it.
#![forbid(unsafe_code)]

#[path = "conformance/cmdline.rs"]
mod cmdline;
#[path = "conformance/nowhere.rs"]
mod nowhere;
#[path = "conformance/profiles.rs"]
mod profiles;
#[path = "conformance/report.rs"]
mod report;
#[path = "conformance/reports.rs"]
mod reports;
#[path = "conformance/results.rs"]
mod results;
#[path = "conformance/semantics.rs"]
mod semantics;
