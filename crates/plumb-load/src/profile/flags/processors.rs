//! `-a` against the processors of a machine.

use std::ffi::OsString;

use plumb_io::topology::Topology;

use super::Invocation;
use super::error::CommandLineError;
use super::line::Line;
use super::lists;
use super::table::Id;
use crate::affinity::{self, AffinityError};
use crate::profile::error::ErrorClass;
use crate::profile::model::AffinityTraversal;

impl Invocation {
    /// Fails if threads are to be bound to processors that `topology` lacks: points at the first `-a` that
    /// names one, or at the profile (`-X`) that does.
    ///
    /// # Errors
    /// What the first time span that asks for such processors is refused with, as an error of the line.
    pub fn check_processors(&self, topology: &Topology) -> Result<(), Box<CommandLineError>> {
        let bound = self.profile.time_spans.iter().filter(|span| !span.disable_affinity);
        let refused = bound.map(|span| {
            affinity::order(topology, &span.affinity, span.effective_traversal()).err()
        });
        match refused.flatten().next() {
            Some(refused) => Err(Box::new(self.without_processors(topology, &refused))),
            None => Ok(()),
        }
    }

    fn without_processors(&self, topology: &Topology, refused: &AffinityError) -> CommandLineError {
        let args: Vec<OsString> = self.tokens.iter().map(OsString::from).collect();
        let line = Line::read(&args);
        let scan = line.scan();
        let is_culprit = |value: &str| {
            let entries = lists::affinity(value).unwrap_or_default();
            let order = affinity::order(topology, &entries, AffinityTraversal::default());
            !entries.is_empty() && order.is_err()
        };
        let culprit = scan.options.iter().find(|given| match given.id {
            Id::Affinity => is_culprit(given.value),
            id => id == Id::Profile,
        });
        let help = miette::Diagnostic::help(refused).map(|help| help.to_string());
        let code = miette::Diagnostic::code(refused).map(|code| code.to_string());
        let code = code.unwrap_or_default().replace('_', "-");
        let error = CommandLineError::new(
            ErrorClass::Affinity,
            refused.to_string(),
            help.unwrap_or_default(),
        );
        let error = error.called(code.rsplit("::").next().unwrap_or_default());
        let error = match culprit {
            Some(given) => error.at(&line.whole(given.index), &line.tokens),
            None => error,
        };
        error.on(&line.tokens, scan.run.error_format)
    }
}
