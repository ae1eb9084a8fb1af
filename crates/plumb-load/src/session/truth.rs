//! `--truth` around a time span: where its targets lie, what the devices did, and the comparison.

use std::os::fd::AsFd;

use super::files::failed;
use super::span::{Ended, Session, SpanFailure};
use super::target::OpenTarget;
use crate::plan::ThreadPlan;
use crate::profile::model::TimeSpan;
use crate::result::model::{Failure, Plausibility, PlausibilityItem};
use crate::result::stamp_error::WakeUp;
use crate::witness::{Placement, Requests, Truth};
use plumb_io::Opener;
use plumb_io::block_trace::BlockTrace;
use plumb_io::clock::Clock;

/// I/Os that all threads together keep: 48 bytes each.
pub(super) const KEPT_MAX: usize = 4 << 20;

impl<O: Opener, C: Clock> Session<'_, O, C> {
    /// The kernel's block events, ready to be taken, with `--truth`.
    pub(super) fn block_trace(&self) -> Result<Option<BlockTrace>, SpanFailure> {
        let Some(clock) = self.options.truth else { return Ok(None) };
        BlockTrace::open(clock).map(Some).map_err(failed)
    }

    /// Where the targets lie, with `--truth`.
    pub(super) fn placements(
        &self,
        span: &TimeSpan,
        targets: &[OpenTarget],
    ) -> Result<Vec<Placement>, SpanFailure> {
        if self.options.truth.is_none() {
            return Ok(Vec::new());
        }
        let asked = span.targets.iter().zip(targets);
        let placed = asked.map(|(asked, open)| {
            let refuse = |why: String| {
                let help = "help: name a file on ext4 or XFS on one disk, or a block device, or leave out --truth";
                SpanFailure::Failed(Failure::new("truth", format!("{why}\n{help}")))
            };
            let Some(descriptor) = &open.descriptor else {
                return Err(refuse("this engine opens no target, so there is no truth about it".to_owned()));
            };
            let target = (asked.path.as_str(), open.size, open.is_device, asked.write_through);
            Placement::of(descriptor.as_fd(), target, &open.stack, self.tree).map_err(refuse)
        });
        placed.collect()
    }
}

/// What is said where the truth was asked for and was lost on the way; a warning said why.
pub(super) fn missing() -> PlausibilityItem {
    PlausibilityItem {
        key: "truth_matched_share",
        target: None,
        value: None,
        verdict: Plausibility::Unknown,
        sentence: "Truth: the kernel's events could not be read, so nothing was compared. See the warning of the run."
            .to_owned(),
    }
}

/// Holds every thread's I/Os against the device's requests.
pub(super) fn compare(
    outcomes: &mut [Ended],
    plans: &[ThreadPlan],
    placements: &[Placement],
    requests: &Requests,
    wake_up: WakeUp,
) -> Truth {
    let mut truth = Truth::default();
    for (plan, outcome) in plans.iter().zip(outcomes) {
        let Some(witness) = outcome.as_mut().ok().and_then(|outcome| outcome.witness.take()) else {
            continue;
        };
        let (ios, not_kept) = witness.into_ios();
        let placed: Vec<&Placement> =
            plan.targets.iter().map(|planned| &placements[planned.index]).collect();
        truth.compare((&ios, not_kept), &placed, requests, wake_up);
    }
    truth
}
