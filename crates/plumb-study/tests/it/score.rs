//! Counting how often a decision is right.

use std::collections::BTreeMap;

/// Right and all, by what was asked.
#[derive(Default)]
pub(crate) struct Score(BTreeMap<String, (u32, u32)>);

impl Score {
    /// Adds one answer.
    pub(crate) fn add(&mut self, what: &str, right: bool) {
        let (good, all) = self.0.entry(what.to_owned()).or_default();
        *good += u32::from(right);
        *all += 1;
    }

    /// Prints every share.
    pub(crate) fn print(&self) {
        for (what, (good, all)) in &self.0 {
            println!("{what}: {good} of {all}");
        }
    }

    /// The share of right answers, 0…1; prints it.
    #[track_caller]
    pub(crate) fn share(&self, what: &str) -> f64 {
        let (good, all) = *self.0.get(what).unwrap_or_else(|| panic!("{what} never happened"));
        let share = f64::from(good) / f64::from(all);
        println!("{what}: {good} of {all}, {:.1} %", share * 100.0);
        share
    }

    /// How many answers there were.
    pub(crate) fn count(&self, what: &str) -> u32 {
        self.0.get(what).map_or(0, |(_, all)| *all)
    }

    /// Fails unless at least this share was right.
    #[track_caller]
    pub(crate) fn at_least(&self, what: &str, wanted: f64) {
        let share = self.share(what);
        assert!(share >= wanted, "{what}: {share:.4} is less than {wanted}");
    }

    /// Fails unless at most this share happened.
    #[track_caller]
    pub(crate) fn at_most(&self, what: &str, wanted: f64) {
        let share = self.share(what);
        assert!(share <= wanted, "{what}: {share:.4} is more than {wanted}");
    }
}
