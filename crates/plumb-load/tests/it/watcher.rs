//! An observer that keeps what it is told.

use plumb_load::session::{Observer, Snapshot};

/// Keeps everything; ends the run after `interrupt_after` questions, if set.
#[derive(Debug, Default)]
pub(crate) struct Watcher {
    pub(crate) verbose: Vec<String>,
    pub(crate) warnings: Vec<String>,
    pub(crate) snapshots: Vec<Snapshot>,
    pub(crate) dots: u64,
    pub(crate) interrupt_after: Option<u32>,
    asked: u32,
}

impl Observer for Watcher {
    fn verbose(&mut self, line: &str) {
        self.verbose.push(line.to_owned());
    }
    fn warning(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }
    fn progress(&mut self, snapshot: &Snapshot) {
        self.snapshots.push(*snapshot);
    }
    fn dots(&mut self, count: u64) {
        self.dots += count;
    }
    fn interrupted(&mut self) -> bool {
        self.asked += 1;
        self.interrupt_after.is_some_and(|after| self.asked > after)
    }
}
