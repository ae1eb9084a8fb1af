//! A decision as programs read it: `{id, verdict, value, interval, flags, evidence, rule, parameters}`
//! (method, section 10), with the keys of its kind beside them.

mod comparison;
mod curve;
mod plain;
mod series;

pub use comparison::{Subject, of_comparison};
pub use curve::of_knee;
pub(crate) use curve::over_budget;
pub use plain::{ChoiceMade, HOLM, of_choice, plain};
pub use series::of_history;

use serde_json::{Map, Value, json};

/// What a decision is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rule {
    /// A knee (3.2).
    Knee,
    /// A comparison (6.1, 6.2).
    Compare,
    /// Change points (6.4).
    History,
    /// A choice among settings (2.7).
    Best,
    /// How many files (2.5).
    Files,
    /// Drift of the device, by its reference setting (4.2).
    Drift,
    /// A figure that was measured, with what it rests on.
    Figure,
    /// What holds throughput down (2.12).
    Bottleneck,
    /// Whether the machine is fit for a measurement (2.1).
    Preflight,
    /// Help with reading a result (8).
    Reading,
}

impl Rule {
    /// Every rule.
    pub const ALL: [Self; 10] = [
        Self::Knee,
        Self::Compare,
        Self::History,
        Self::Best,
        Self::Files,
        Self::Drift,
        Self::Figure,
        Self::Bottleneck,
        Self::Preflight,
        Self::Reading,
    ];

    /// The word in a decision.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Knee => "knee",
            Self::Compare => "compare",
            Self::History => "history",
            Self::Best => "best",
            Self::Files => "files",
            Self::Drift => "drift",
            Self::Figure => "figure",
            Self::Bottleneck => "bottleneck",
            Self::Preflight => "preflight",
            Self::Reading => "reading",
        }
    }

    /// The rule in sentences, a step each.
    #[must_use]
    pub fn sentences(self) -> &'static [&'static str] {
        match self {
            Self::Knee => &[
                "Rows that contradict Little's law or failed are left out; each o has the median of ln X.",
                "ln X is fitted on ln N as a concave curve of straight pieces, robustly: single settings \
                 far off get no weight and are listed.",
                "The plateau is the first setting beyond which the fitted elasticity d ln X/d ln N is below \
                 tau, moved to a neighbour where the measured values say so.",
                "unclear: noise above 8 %, or above 3 % and a quarter of the gain. flat: the plateau is the \
                 first setting, or the gain is below max(2 sigma, 2 %, tau/2). extend: the elasticity at the \
                 end is above tau by more than its error allows, or too little lies beyond the plateau. \
                 knee: otherwise.",
                "balance is where normalised throughput exceeds normalised latency most, lean has most \
                 throughput per latency.",
                "balanced recommends the first tested setting that keeps 97 % of the fitted throughput at balance or \
                 plateau, whichever is less (a search counts from the fit at every o, tested or not); throughput the \
                 plateau; latency lean. A latency budget lowers any of them.",
            ],
            Self::Compare => &[
                "The effect is the ratio of the geometric means minus 1, its sign turned so that + is better.",
                "Its 95 % interval comes from ln x of whole runs: Welch from five runs a side on; below, one \
                 standard deviation for both, or Welch where that is wider and the sides have different numbers of runs \
                 or spreads of three to one and more; ln x ~ arm + time for interleaved runs, an assumed \
                 spread between runs for single ones.",
                "Runs that agree more closely than they can be known have the error that is their metric's at least: \
                 0.32 % for percentiles, which are buckets of a histogram, else an SD of 0.2 % between runs.",
                "better: the interval lies above 0 and the effect is at least delta. worse: the same below. \
                 same: the interval lies within ±delta. unclear: otherwise.",
                "From six runs a side on, the shift by ranks must agree, or it is unclear.",
            ],
            Self::History => &[
                "Lone values beyond six robust standard deviations from a running median of seven are put \
                 back to it and listed.",
                "Segments are split where the energy statistic is largest, candidates at p < 0.01, then \
                 pruned weakest first at p < 0.001 and steps of 2 %; no level is shorter than four values.",
                "A change point is the first value of the new level. With fewer than eight values the last \
                 is compared with those before it.",
            ],
            Self::Best => &[
                "Each setting has the mean of ln X of its runs; the spread between runs is pooled over all \
                 repetitions, or taken from the curve before where too few were repeated, and has the t quantile of \
                 its degrees of freedom.",
                "A setting is worse than the best when it is so by 2 % or more and significantly at 5 %, with \
                 Holm's correction for many comparisons. The rest is the best set.",
                "Of the best set the cheapest is chosen: fewest threads or outstanding I/Os; but none that \
                 was seen to give 5 % less.",
                "unclear: the 95 % interval of some of the best set reaches a loss of 2 % or more. best: otherwise.",
            ],
            Self::Files => &[
                "The numbers of files are run in turn, with the same bytes and the same outstanding I/Os in all.",
                "They are compared two by two, fewest first, as two sets of runs: more files are taken only where they are \
                 better by 2 % or more and their 95 % interval lies above 0.",
                "unclear: the interval of another number against the chosen one includes 0 and reaches 2 % or more. best: \
                 otherwise.",
            ],
            Self::Drift => &[
                "A reference setting is run at the start, after every ten runs and at the end; by a baseline that searches \
                 at the end only. Baselines, and sweeps with fewer than three such runs, go by all that was run again.",
                "ln X of these runs is put on a straight line over time, where there are several settings each with a level of \
                 its own. Drift is told above 2 % and outside its 95 % interval, and taken out of every figure; above 10 % the \
                 study is disturbed.",
            ],
            Self::Figure => &[
                "The figure is that of whole runs: their median. Its interval comes from repetitions where there \
                 are any, else from inside the run, and then covers no variation between runs.",
            ],
            Self::Bottleneck => &[
                "The first of these that matches names it: disturbed, a ceiling, the processor of this host or \
                 the generator, one core, the device, a queue above the device, imbalance, not determined.",
                "What was seen is the median of the runs at and beyond the plateau; device figures are those of \
                 the device on top, and only where the page cache is bypassed.",
            ],
            Self::Preflight => &[
                "Each check looks at the machine once and says ok, note, warn, block, or unknown where it cannot \
                 see; nothing is changed.",
                "The verdict is the heaviest of those that were not accepted (--accept). block ends the work \
                 before the first run.",
            ],
            Self::Reading => &[
                "Each of the rules R1 to R24 looks at a run, or at the whole study, and says what it sees in its \
                 numbers; a rule whose facts are not known says nothing.",
                "warn: the result may not mean what it seems to. info: good to know.",
            ],
        }
    }

    /// The rule of a decision.
    #[must_use]
    pub fn of_keyword(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|rule| rule.keyword() == word)
    }
}

/// A piece of evidence: a name, its value, and the sum that led to it where there is one.
fn evidence(name: &str, value: impl Into<Value>, arithmetic: impl Into<String>) -> Value {
    let arithmetic: String = arithmetic.into();
    let mut item = json!({ "name": name, "value": value.into() });
    if !arithmetic.is_empty() {
        item["arithmetic"] = arithmetic.into();
    }
    item
}

/// The keys of an object.
fn object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(map) => map,
        other => panic!("an object was written, not {other}"),
    }
}

/// A number, or null where there is none.
fn number(value: f64) -> Value {
    if value.is_finite() { value.into() } else { Value::Null }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_found_by_their_word() {
        for rule in Rule::ALL {
            assert_eq!(Rule::of_keyword(rule.keyword()), Some(rule));
            assert!(!rule.sentences().is_empty());
        }
        assert_eq!(Rule::of_keyword("guess"), None);
        assert_eq!(number(f64::INFINITY), Value::Null);
    }
}
