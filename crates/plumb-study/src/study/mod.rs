//! A study: many runs that answer one question, and the folder in which it stands on disk.
//!
//! `<state>/plumb/studies/<id>/` holds
//!
//! | file | content | written |
//! |---|---|---|
//! | `plan.json` | [`Study`]: what is asked, of what, with which seed | before the first run |
//! | `journal.ndjson` | a [`RunRecord`] per line, one for each finished run | a line per run, synced |
//! | `runs/<n>.json` | the whole result of `plumb run --json` | before the run's line |
//! | `resumptions.ndjson` | a [`Resumption`] for each time that it went on after an interruption | before the first run then |
//! | `findings.json` | [`Findings`]: decisions with their evidence | at the end, and at each interruption |
//! | `environment-after.json` | the environment record after the last run; that before the first is in the plan | at the end |
//! | `report.html` | the findings as a page, where the program that works on it makes one | with the findings |
//! | `lock` | nothing; locked by the process that works on the study | – |
//!
//! What is written whole is written to a temporary name, synced and renamed; the journal only grows. A
//! process that dies at any instant leaves at most an unfinished last line, which the next one cuts off,
//! and a result without its line, which is replaced. A study is a function of its plan and its journal:
//! after an interruption the same runs follow as would have without.

mod against;
mod amplification;
mod axis;
mod baseline;
mod behind;
mod beside;
mod best;
mod bottleneck;
mod child;
mod conditioning;
mod document;
mod drift;
mod engine;
mod findings;
mod folder;
mod forecast;
mod imitation;
mod journal;
mod loads;
mod machine;
mod options;
mod perform;
mod plan_error;
mod quick;
pub(crate) mod random;
mod record;
mod reference;
mod remarks;
mod resumption;
mod run_notes;
mod setting;
mod simulated;
mod summary;
mod sweep;
mod sweep_findings;
mod threads;
mod workloads;

pub use against::{Against, against};
pub use axis::{Axis, AxisError, Parameter};
pub use baseline::{
    BaselineOptions, BaselinePlanner, Choices, Part, Preset, Step, baseline_findings,
};
pub(crate) use behind::Behind;
pub use beside::Beside;
pub use best::{Best, Candidate, Noise, NoiseSource, Standing, choose_best};
pub use child::{
    ChildRuns, PARENT, bytes_beside, bytes_to_find, bytes_to_make, must_be_made, targets,
};
pub use conditioning::{Conditioning, PUBLISHED_WARM_UP_S};
pub use document::{Device, FORMAT, Kind, Study};
pub use drift::Drift;
pub use engine::{Changed, End, Extent, Next, Planner, Watch, counted_runs, rehearse, work};
pub use findings::{Finding, Findings, State, Table};
pub use folder::{StudyError, StudyFolder, check_name, studies, studies_folder};
pub use forecast::{Forecast, left_in_order_s, left_s};
pub use journal::{Journal, Lines, Resumptions};
pub(crate) use machine::remote;
pub use options::{RunOrder, SweepOptions, SweepPlan, seconds};
pub use perform::{Due, Order, Perform, Performance, Performed, may_end_early, says_enough};
pub use plan_error::PlanError;
pub use quick::{QUICK_BYTES, quick_findings, quick_plan};
pub use record::{Outcome, Percentile, Purpose, RunRecord, Summary};
pub use resumption::Resumption;
pub use setting::{Access, Setting};
pub use simulated::{SimulatedDevice, Simulation};
pub use summary::{SteadyPart, summarise};
pub use sweep::{GAP_S, SWEEP, SweepPlanner};
pub use sweep_findings::{Told, sweep_findings};
