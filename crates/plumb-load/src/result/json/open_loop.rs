//! What an open loop adds: service times and lag beside the response times.

use serde::Serialize;

use super::figures::{Buckets, Latency};
use crate::arrivals::OpenLoop;
use crate::result::model::TargetResult;
use crate::result::open_loop::OpenFigures;
use crate::tally::LatencySet;

#[derive(Serialize)]
pub(super) struct Open {
    arrival: String,
    rate_per_s: f64,
    verdict: &'static str,
    offered: u64,
    completed: u64,
    waited_for_request: u64,
    response_ns: Option<Latency>,
    service_ns: Option<Latency>,
    read_service_ns: Option<Latency>,
    write_service_ns: Option<Latency>,
    lag_ns: Option<Latency>,
}

impl Open {
    /// `None` in a closed loop.
    pub(super) fn of<'a>(
        open: Option<OpenLoop>,
        targets: impl IntoIterator<Item = &'a TargetResult> + Clone,
        buckets: Buckets,
    ) -> Option<Self> {
        let open = open?;
        let figures = OpenFigures::of(targets)?;
        let latency = |set: &LatencySet, buckets| Latency::new(set, buckets);
        let tally = &figures.tally;
        let side = |of: &crate::tally::Histogram| latency(&LatencySet::Binned(of.clone()), buckets);
        Some(Self {
            arrival: open.arrival.to_string(),
            rate_per_s: tally.rate,
            verdict: figures.verdict.keyword(),
            offered: tally.offered,
            completed: figures.completed,
            waited_for_request: tally.waited,
            response_ns: latency(&figures.response, Buckets::Without),
            service_ns: latency(&figures.service(), Buckets::Without),
            read_service_ns: side(&tally.service_read),
            write_service_ns: side(&tally.service_write),
            lag_ns: side(&tally.lag),
        })
    }
}
