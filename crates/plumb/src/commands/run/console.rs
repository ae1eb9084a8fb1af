//! Who watches a run for the user: shows where it is, passes on what happens, hands events and Ctrl-C in.

use std::io::Write;

use jiff::Zoned;
use plumb_io::event::Event;
use plumb_load::session::{Observer, Snapshot};

use super::beside::Beside;
use super::events::Events;
use crate::message::Printer;
use crate::progress::Progress;

/// What upstream prints when a run is ended by hand (spec 6.14).
const INTERRUPTED: &str = "\n*** Interrupted by Ctrl-C. Stopping I/O Request Generator. ***\n";

/// An observer of a session. `N` takes what DISKSPD prints while it runs: standard output, but standard
/// error when that is a document (D-20). `P` takes the progress.
pub(super) struct Console<'a, N, P: Write> {
    /// Warnings.
    pub(super) printer: Printer,
    /// The live line.
    pub(super) progress: Progress<P>,
    /// Lines of `-v`, dots, the interruption.
    pub(super) notes: N,
    /// `-v`.
    pub(super) verbose: bool,
    /// What is recorded while it measures.
    pub(super) beside: Beside,
    /// `-y`.
    pub(super) events: &'a Events,
    /// Whether Ctrl-C or SIGTERM came.
    pub(super) signalled: &'a dyn Fn() -> bool,
    /// Whether the user was told of it.
    pub(super) told: bool,
}

impl<N: Write, P: Write> Console<'_, N, P> {
    /// Nobody is left to tell when notes cannot be written; the result will say so.
    fn note(&mut self, text: &str) {
        self.progress.clear();
        let _ = self.notes.write_all(text.as_bytes()).and_then(|()| self.notes.flush());
    }

    fn warn(&mut self, text: &str) {
        self.progress.clear();
        self.printer.warning(text);
    }

    fn signal(&mut self, event: Option<&Event>) {
        if let Some(Err(error)) = event.map(Event::signal) {
            self.warn(&error.to_string());
        }
    }
}

impl<N: Write, P: Write> Observer for Console<'_, N, P> {
    fn verbose(&mut self, line: &str) {
        if self.verbose {
            let now = Zoned::now().strftime("%Y-%m-%dT%H:%M:%S");
            self.note(&format!("{now}: {line}\n"));
        }
    }

    fn warning(&mut self, text: &str) {
        self.warn(text);
    }

    fn progress(&mut self, snapshot: &Snapshot) {
        self.progress.show(snapshot);
    }

    fn dots(&mut self, count: u64) {
        let count = usize::try_from(count).unwrap_or(usize::MAX);
        self.note(&".".repeat(count.min(MOST_DOTS)));
    }

    fn interrupted(&mut self) -> bool {
        if (self.signalled)() {
            if !std::mem::replace(&mut self.told, true) {
                self.note(INTERRUPTED);
                self.signal(self.events.stop.as_ref());
            }
            return true;
        }
        self.events.stop.as_ref().is_some_and(is_signalled)
    }

    fn may_start(&mut self) -> bool {
        self.events.start_wait.as_ref().is_none_or(is_signalled)
    }

    fn measurement_started(&mut self) {
        self.beside.begin();
        self.signal(self.events.started.as_ref());
    }

    fn measurement_finished(&mut self) {
        self.beside.end();
        self.signal(self.events.finished.as_ref());
    }
}

/// An event whose file can no longer be asked will not be signalled any more either.
fn is_signalled(event: &Event) -> bool {
    event.is_signalled().unwrap_or(false)
}

/// Dots printed at once: with `-P1` on a fast device nobody reads more.
const MOST_DOTS: usize = 1000;

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use plumb_io::event::EventFolder;
    use plumb_load::profile::model::Synchronization;

    use super::*;
    use crate::progress::Style;

    fn console<'a>(
        events: &'a Events,
        signalled: &'a dyn Fn() -> bool,
        verbose: bool,
    ) -> Console<'a, Vec<u8>, Vec<u8>> {
        let progress = Progress::new(Style::Silent, Vec::new(), || 80);
        let printer = Printer::on_stderr();
        let (notes, beside) = (Vec::new(), Beside::default());
        Console { printer, progress, notes, verbose, beside, events, signalled, told: false }
    }

    fn events(folder: &EventFolder) -> Events {
        let name = |name: &str| Some(name.to_owned());
        let names = Synchronization {
            started_event: name("started"),
            finished_event: name("finished"),
            start_wait_event: name("go"),
            stop_event: name("stop"),
        };
        Events::open(&names, folder).expect("events can be made")
    }

    #[test]
    fn verbose_lines_have_the_local_time() {
        let events = Events::default();
        for verbose in [true, false] {
            let mut console = console(&events, &|| false, verbose);
            console.verbose("finished test...");
            console.dots(3);
            let notes = String::from_utf8(console.notes).expect("text");
            let rest = match verbose {
                true => {
                    let (time, rest) = notes.split_once(": ").expect("a time");
                    let digits = time.replace(|c: char| c.is_ascii_digit(), "9");
                    assert_eq!(digits, "9999-99-99T99:99:99");
                    rest.strip_prefix("finished test...\n").expect("the line")
                }
                false => &notes,
            };
            assert_eq!(rest, "...");
        }
    }

    #[test]
    fn an_interruption_is_told_once_and_signals_the_stop_event() {
        let folder = tempfile::tempdir().expect("a folder");
        let events = events(&EventFolder::at(folder.path().join("events")));
        let flag = Cell::new(false);
        let signalled = || flag.get();
        let mut console = console(&events, &signalled, false);
        assert!(!console.interrupted());
        flag.set(true);
        assert!(console.interrupted() && console.interrupted());
        assert_eq!(console.notes, INTERRUPTED.as_bytes());
        let stop = events.stop.as_ref().expect("it was asked for");
        assert!(stop.is_signalled().expect("it can be asked"));
        // It stays so for later time spans.
        flag.set(false);
        assert!(console.interrupted());
    }

    #[test]
    fn events_are_waited_for_and_signalled() {
        let folder = tempfile::tempdir().expect("a folder");
        let events = events(&EventFolder::at(folder.path().join("events")));
        let mut console = console(&events, &|| false, false);
        let is_signalled = |event: &Option<Event>| {
            event.as_ref().is_some_and(|event| event.is_signalled().expect("it can be asked"))
        };
        assert!(!console.may_start());
        events.start_wait.as_ref().expect("asked for").signal().expect("it can be signalled");
        assert!(console.may_start());
        assert!(!is_signalled(&events.started));
        console.measurement_started();
        assert!(is_signalled(&events.started) && !is_signalled(&events.finished));
        console.measurement_finished();
        assert!(is_signalled(&events.finished));
    }

    #[test]
    fn without_events_a_run_starts_at_once_and_goes_on() {
        let events = Events::default();
        let mut console = console(&events, &|| false, false);
        assert!(console.may_start() && !console.interrupted());
    }
}
