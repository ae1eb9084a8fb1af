//! Why options are no plan of a sweep.

use super::axis::AxisError;

/// Why options are no plan.
#[derive(Debug, Clone, PartialEq, thiserror::Error, miette::Diagnostic)]
pub enum PlanError {
    /// The file is no TOML, or has a key that nobody reads.
    #[error("the plan cannot be read: {what}")]
    #[diagnostic(
        code(plumb::plan::toml),
        help("keys are the names of the options of plumb sweep, without dashes in front")
    )]
    Toml {
        /// What the reader says, with the place.
        what: String,
    },
    /// An axis that means nothing.
    #[error(transparent)]
    #[diagnostic(transparent)]
    Axis(#[from] AxisError),
    /// The same parameter twice.
    #[error("`{name}` is varied twice")]
    #[diagnostic(code(plumb::plan::twice), help("give all its values in one --vary"))]
    Twice {
        /// The parameter.
        name: String,
    },
    /// The same parameter with one value for all settings, and with another, or with several.
    #[error("`{name}` is set, and {again} too")]
    #[diagnostic(code(plumb::plan::both), help("give it once: in --set, or in --vary"))]
    Again {
        /// The parameter.
        name: String,
        /// What else: `varied`, or `set to something else`.
        again: &'static str,
    },
    /// Nothing varies.
    #[error("nothing is varied")]
    #[diagnostic(
        code(plumb::plan::nothing),
        help("say --vary o=1..32, or `vary` in the plan file")
    )]
    Nothing,
    /// Several values for what is to be set.
    #[error("`{text}` sets several values")]
    #[diagnostic(code(plumb::plan::set), help("use --vary for several values"))]
    Several {
        /// As given.
        text: String,
    },
    /// A setting that would measure its own overlap.
    #[error("{setting}: sequential threads of one file walk over the same blocks")]
    #[diagnostic(
        code(plumb::plan::overlap),
        help(
            "say access=interlocked (one shared position) or access=apart (a stretch each), or t=1"
        )
    )]
    Overlap {
        /// In a few letters.
        setting: String,
    },
    /// `apart` without a known size.
    #[error("{setting}: threads can only be set apart in a file of known size")]
    #[diagnostic(code(plumb::plan::apart), help("say --set size=64G"))]
    Apart {
        /// In a few letters.
        setting: String,
    },
    /// An adaptive search without o or threads.
    #[error("an adaptive sweep searches o, or threads, and neither is varied by itself")]
    #[diagnostic(
        code(plumb::plan::adaptive),
        help("say --vary o=1..64, or --vary t:o=1:120,2:60,4:30,8:15")
    )]
    Adaptive,
    /// An order for a search, which goes where it finds most.
    #[error("an adaptive sweep chooses its next run by what it found: its order cannot be {order}")]
    #[diagnostic(code(plumb::plan::searched), help("leave away --order, or --adaptive"))]
    AdaptiveOrder {
        /// As asked for.
        order: &'static str,
    },
    /// A setting that `plumb run` would refuse.
    #[error("{setting}: no run of this can be started: {what}")]
    #[diagnostic(code(plumb::plan::load), help("plumb run --help says what each option takes"))]
    Load {
        /// In a few letters.
        setting: String,
        /// What `plumb run` says.
        what: String,
    },
    /// A value that is none.
    #[error("`{value}` is no {what}")]
    #[diagnostic(code(plumb::plan::value))]
    Value {
        /// What it should be.
        what: &'static str,
        /// As given.
        value: String,
        /// What to write.
        #[help]
        help: &'static str,
    },
    /// More runs than anybody waits for.
    #[error("{runs} runs are planned")]
    #[diagnostic(code(plumb::plan::runs), help("give fewer values, or search: --adaptive"))]
    Runs {
        /// How many.
        runs: u64,
    },
}
