//! What makes a single result unfit to be compared, or doubtful (method, 1.3 and 3.2, 1).

use serde_json::Value;

use super::{Allowance, Incomparable, add_once};

/// What a result says against itself.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct Fitness {
    /// Whether no target was touched (engines `null` and `nop`): it measures the tool.
    pub no_target: bool,
    /// Whether it was ended before its time.
    pub interrupted: bool,
    /// I/Os that failed.
    pub errors: u64,
    /// r of Little's law, as a share, where it is above what a sound result may have: its figures contradict each
    /// other.
    pub contradiction: Option<f64>,
}

impl Fitness {
    /// Of the JSON result of `plumb run`.
    pub(super) fn of_json(result: &Value) -> Self {
        let spans = result["time_spans"].as_array().into_iter().flatten();
        let measured: Vec<&Value> = spans.filter(|span| span["state"] == "measured").collect();
        let errors = measured.iter().filter_map(|span| span["total"]["errors"].as_u64());
        let queues =
            measured.iter().flat_map(|span| span["queues"].as_array().into_iter().flatten());
        let laws = measured.iter().map(|span| &span["littles_law"]);
        let contradicts = |law: &&Value| law["verdict"] == "accounting_error";
        Self {
            no_target: queues.into_iter().any(|queue| queue["touches_target"] == false),
            interrupted: result["interrupted"].as_bool().unwrap_or(false),
            errors: errors.sum(),
            contradiction: laws
                .filter(contradicts)
                .map(|law| law["residual"].as_f64().unwrap_or(f64::INFINITY))
                .reduce(f64::max),
        }
    }

    /// Refuses it, or adds what is to be said with every decision to `remarks`. `of` says which result it is.
    pub(super) fn judge(
        &self,
        of: &str,
        allowed: &[Allowance],
        remarks: &mut Vec<String>,
    ) -> Result<(), Incomparable> {
        if self.no_target {
            return Err(Incomparable::NoTarget { of: of.to_owned() });
        }
        if let Some(residual) = self.contradiction {
            let what = format!(
                "rate times latency is {:+.1} % off the outstanding I/Os (Little's law), more than any sound \
                 result can be",
                residual * 100.0
            );
            return Err(Incomparable::Contradiction { of: of.to_owned(), what });
        }
        if self.errors > 0 {
            if !allowed.contains(&Allowance::Errors) {
                return Err(Incomparable::Errors { of: of.to_owned(), errors: self.errors });
            }
            add_once(
                remarks,
                format!("{of}: {} I/Os failed, and no figure counts them", self.errors),
            );
        }
        if self.interrupted {
            add_once(
                remarks,
                format!("{of} was interrupted: it holds less time than was asked for"),
            );
        }
        Ok(())
    }
}
