//! Where more outstanding I/Os stop paying (method, section 3): a concave fit of ln X on ln N, four
//! marks on it, and one recommendation.

mod cap;
mod ceiling;
mod fall;
mod fit;
mod judge;
mod marks;
mod rough;
mod settings;
mod smooth;

pub use cap::{CapEvidence, DeclaredCap, Limit, NamedCap, name_cap};
pub use fit::ConcaveFit;
pub use judge::{Flag, Verdict};
pub(crate) use marks::{BALANCE_WITHIN, KEPT, WINDOW};
pub use marks::{Kept, Marks, Policy};
pub(crate) use rough::ASSUMED_FOR;
pub use settings::{Dropped, Row, RunLaw, Setting, Spread};
pub(crate) use settings::{IRREPRODUCIBLE_RUNS, contradicting, range};

use fit::Concave;

/// The elasticity below which more load is useless: 10 % more outstanding buys less than 1.2 %.
pub const TAU: f64 = 0.125;

/// What is known about the curve beside its rows.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Options {
    /// Threads per file, where known.
    pub threads: Option<f64>,
    /// Target files, where known.
    pub files: Option<f64>,
    /// Bytes per I/O, where known: a cap in MiB/s needs it.
    pub block_bytes: Option<f64>,
    /// Which mark is recommended.
    pub policy: Policy,
    /// Whether what was tested is what a search picked out of every o: the balanced recommendation counts from where the
    /// fit has the balance, tested or not (docs/decisions/0043-balance-by-the-fit.md). Otherwise all there is was tested.
    pub searched: bool,
    /// Largest mean latency in milliseconds that is acceptable.
    pub budget_ms: Option<f64>,
    /// Limits that somebody declared.
    pub caps: Vec<DeclaredCap>,
    /// What runs of a setting differ by elsewhere in the same study, where it was repeated.
    pub noise: Option<Spread>,
}

/// What a curve says.
#[derive(Debug, Clone, PartialEq)]
pub struct Knee {
    /// Whether there is a knee in the range.
    pub verdict: Verdict,
    /// Why the verdict is that one, in a sentence with its numbers.
    pub reason: String,
    /// Capped, dropping, with outliers.
    pub flags: Vec<Flag>,
    /// The marks; `None` where the verdict does not allow a choice.
    pub marks: Option<Marks>,
    /// The limit that holds throughput down, when one was declared and fits.
    pub named_cap: Option<NamedCap>,
    /// What was looked at for a cap.
    pub cap: CapEvidence,
    /// The settings, o ascending.
    pub settings: Vec<Setting>,
    /// Rows that were left out before anything was fitted.
    pub dropped: Vec<Dropped>,
    /// Outstanding I/Os per o: F·t, given or inferred from X·L.
    pub outstanding_per_o: f64,
    /// The fit, where there were enough settings.
    pub fit: Option<ConcaveFit>,
    /// Elasticity at the end of the range and its standard error.
    pub end_elasticity: Option<(f64, f64)>,
    /// Where to measure next: a range of o for `extend` and `flat`.
    pub next_range: Option<(u64, u64)>,
    /// Settings worth repeating before the answer is relied on.
    pub repeat: Vec<u64>,
    /// Remarks on the data.
    pub notes: Vec<String>,
}

impl Knee {
    /// The fit where it holds: through what is unclear none does, and no figure of it is told.
    #[must_use]
    pub fn told_fit(&self) -> Option<&ConcaveFit> {
        self.fit.as_ref().filter(|_| self.verdict != Verdict::Unclear)
    }

    /// Settings next to the plateau whose runs contradict each other may be it themselves: which of their runs is right decides.
    fn note_what_may_move_it(&mut self) {
        let Some(marks) = &self.marks else { return };
        let before = self.settings.iter().rfind(|setting| setting.o < marks.plateau);
        let near = |setting: &Setting| {
            [Some(marks.plateau), Some(marks.recommended), before.map(|setting| setting.o)]
                .contains(&Some(setting.o))
        };
        let open = self.settings.iter().filter(|one| one.irreproducible && !one.excluded);
        let open: Vec<String> =
            open.filter(|one| near(one)).map(|one| format!("o{}", one.o)).collect();
        if !open.is_empty() {
            self.notes.push(format!(
                "the plateau at o{} and the recommendation o{} rest on which of the runs of {} is right: they may be others when \
                 that is run again",
                marks.plateau,
                marks.recommended,
                open.join(" and ")
            ));
        }
    }

    /// The settings that lie off the curve or do not reproduce.
    #[must_use]
    pub fn outliers(&self) -> Vec<u64> {
        self.settings.iter().filter(|setting| setting.is_outlier()).map(|s| s.o).collect()
    }
}

/// Finds the knee of a curve (3.2).
#[must_use]
pub fn find(rows: &[Row], options: &Options) -> Knee {
    let mut prepared = settings::prepare(rows, options);
    let mut knee = Knee {
        verdict: Verdict::Unclear,
        reason: String::new(),
        flags: Vec::new(),
        marks: None,
        named_cap: None,
        cap: CapEvidence::default(),
        settings: Vec::new(),
        dropped: prepared.dropped,
        outstanding_per_o: prepared.outstanding_per_o,
        fit: None,
        end_elasticity: None,
        next_range: None,
        repeat: Vec::new(),
        notes: prepared.notes,
    };
    if prepared.settings.iter().filter(|setting| setting.counts()).count() < FEWEST {
        knee.reason = format!(
            "{} usable settings; a curve needs at least {FEWEST}",
            prepared.settings.iter().filter(|setting| setting.counts()).count()
        );
        if !knee.dropped.is_empty() {
            knee.reason.push_str(&format!("; {} rows were left out", knee.dropped.len()));
        }
        knee.settings = prepared.settings;
        return knee;
    }
    settings::mark_irreproducible(&mut prepared.settings, options.noise, &mut knee.notes);
    let repetition_error = settings::repetition_error(&prepared.settings);
    let doubt = rough::Doubt::of(&prepared.settings, options.noise);
    let concave = Concave::through(&mut prepared.settings, repetition_error, &doubt);
    knee.settings = prepared.settings;
    judge::judge(&mut knee, &concave, &doubt, options);
    knee.fit = Some(concave.into_fit());
    knee.note_what_may_move_it();
    knee
}

/// Settings below which nothing is said.
pub(crate) const FEWEST: usize = 3;
/// Noise about the fit, SD of ln X, above which nothing is said.
pub(crate) const NOISE_MOST: f64 = 0.08;

#[cfg(test)]
mod tests;
