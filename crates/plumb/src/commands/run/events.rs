//! The named events of a run (`-ys -yf -yr -yp`, spec 3.6).

use plumb_io::event::{Event, EventError, EventFolder};
use plumb_load::profile::model::Synchronization;

/// Those that were asked for, held open until the run is over.
#[derive(Debug, Default)]
pub(super) struct Events {
    /// Signalled when the measurement starts.
    pub(super) started: Option<Event>,
    /// Signalled when it ends.
    pub(super) finished: Option<Event>,
    /// Waited for before the warm-up.
    pub(super) start_wait: Option<Event>,
    /// Ends the run when signalled.
    pub(super) stop: Option<Event>,
}

impl Events {
    /// Creates or joins them.
    ///
    /// # Errors
    /// What the system refuses.
    pub(super) fn open(names: &Synchronization, folder: &EventFolder) -> Result<Self, EventError> {
        let open = |name: &Option<String>| {
            name.as_deref().map(|name| Event::create(folder, name)).transpose()
        };
        Ok(Self {
            started: open(&names.started_event)?,
            finished: open(&names.finished_event)?,
            start_wait: open(&names.start_wait_event)?,
            stop: open(&names.stop_event)?,
        })
    }
}
