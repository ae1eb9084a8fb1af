//! Whether the machine is fit for a measurement (method, 2.1): looked at, never changed.
//!
//! Everything comes from `/sys`, `/proc` and a few files under a root that tests can fake, and from what programs of the
//! machine say of drives, volumes, pools and timers: asked for, never told to change anything. What cannot be seen is `unknown` and says how to see it; nothing is silently fine.

mod cron;
mod file_facts;
mod health;
mod kernel_log;
mod load;
mod machine;
mod md;
mod network;
mod programs;
mod queue;
mod sample;
mod space;
mod target;
mod tasks;
mod tier;
mod unseen;
mod volumes;

pub use programs::{Answers, Asked};
pub use sample::Sample;
pub use space::UNWRITTEN_MUCH;
pub use target::{Plan, Target, never_written_share};

use plumb_io::system_tree::SystemTree;
use serde_json::{Value, json};

/// What a check says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// Looked at, and fine.
    Ok,
    /// Good to know.
    Note,
    /// It cannot be seen: no permission, or no file that says it.
    Unknown,
    /// Results may not mean what they seem to.
    Warn,
    /// Do not measure now.
    Block,
}

impl Verdict {
    /// The word that documents use.
    #[must_use]
    pub fn keyword(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Note => "note",
            Self::Unknown => "unknown",
            Self::Warn => "warn",
            Self::Block => "block",
        }
    }
}

/// One check with its outcome.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// Its name, as in `--accept`.
    pub id: &'static str,
    /// What it says.
    pub verdict: Verdict,
    /// What was seen.
    pub evidence: String,
    /// What to do; empty where there is nothing to do.
    pub remedy: &'static str,
}

impl Check {
    fn new(
        id: &'static str,
        verdict: Verdict,
        evidence: impl Into<String>,
        remedy: &'static str,
    ) -> Self {
        Self { id, verdict, evidence: evidence.into(), remedy }
    }

    fn ok(id: &'static str, evidence: impl Into<String>) -> Self {
        Self::new(id, Verdict::Ok, evidence, "")
    }

    /// As an object.
    #[must_use]
    pub fn to_json(&self) -> Value {
        json!({
            "id": self.id,
            "verdict": self.verdict.keyword(),
            "evidence": self.evidence,
            "remedy": (!self.remedy.is_empty()).then_some(self.remedy),
        })
    }
}

/// What the checks look at.
struct Scene<'a> {
    tree: &'a SystemTree,
    target: &'a Target,
    before: &'a Sample,
    after: &'a Sample,
    said: &'a Answers,
}

type Look = fn(&Scene) -> Check;

/// Every check, in the order in which they are told.
const CHECKS: &[(&str, Look)] = &[
    ("sched-window", tasks::window),
    ("health-smart", health::smart),
    ("health-nvme", health::nvme),
    ("health-md", md::md),
    ("health-lvm", volumes::lvm),
    ("health-zfs", volumes::zfs),
    ("health-btrfs", volumes::btrfs),
    ("health-multipath", volumes::multipath),
    ("health-fabric", network::fabric),
    ("klog", kernel_log::kernel_log),
    ("capacity", space::capacity),
    ("tier", tier::tier),
    ("tasks-timers", tasks::timers),
    ("tasks-running", tasks::running),
    ("backup", tasks::backup),
    ("load-psi", load::pressure),
    ("load-cpu", load::processors),
    ("load-disk", load::disks),
    ("load-net", network::load),
    ("mem", load::memory),
    ("write-cache", queue::write_cache),
    ("scheduler", queue::scheduler),
    ("governor", machine::governor),
    ("numa", machine::numa),
    ("thermal", machine::thermal),
    ("align", queue::alignment),
    ("fs", space::file_system),
    ("file-size", space::file_size),
    ("privileges", machine::privileges),
    ("clock", machine::clock),
    ("virt", machine::virtualised),
    ("space-old", space::leftovers),
];

/// The names of all checks.
pub fn ids() -> impl Iterator<Item = &'static str> {
    CHECKS.iter().map(|(id, _)| *id)
}

/// Runs every check on a target, given two looks at the machine some time apart, and what its programs said.
#[must_use]
pub fn check(
    tree: &SystemTree,
    target: &Target,
    (before, after): (&Sample, &Sample),
    said: &Answers,
) -> Vec<Check> {
    let scene = Scene { tree, target, before, after, said };
    CHECKS.iter().map(|(_, check)| check(&scene)).collect()
}

/// The heaviest verdict that was not accepted.
#[must_use]
pub fn worst(checks: &[Check], accepted: &[String]) -> Verdict {
    let counted = checks.iter().filter(|check| !accepted.iter().any(|id| id == check.id));
    counted.map(|check| check.verdict).max().unwrap_or(Verdict::Ok)
}

#[cfg(test)]
mod tests;
