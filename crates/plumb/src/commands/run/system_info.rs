//! `-Rs`: the machine as results show it.

use std::process::ExitCode;

use jiff::Timestamp;
use plumb_io::system_tree::SystemTree;
use plumb_load::profile::model::ResultFormat;
use plumb_load::result::model::HostFacts;
use plumb_load::result::{text, xml};

use crate::commands::version;

/// Prints the System block or element. Needs no target and no privilege.
pub(super) fn run(format: ResultFormat) -> ExitCode {
    let host = HostFacts::read(&SystemTree::default());
    let mut document = Vec::new();
    let written = match format {
        ResultFormat::Text => text::system::write(&host, Timestamp::now(), &mut document),
        ResultFormat::Xml => {
            xml::system::write_system(&host, &version::tool(), Timestamp::now(), &mut document)
        }
    };
    written.expect("memory takes what is written");
    super::super::print(&String::from_utf8_lossy(&document))
}
