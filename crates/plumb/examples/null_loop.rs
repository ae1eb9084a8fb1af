//! The run loop on the queue that performs nothing: what an I/O costs in code of ours alone.
//!
//! `cargo xtask instructions` runs it under callgrind, for two numbers of I/Os; the difference is free
//! of the start-up.
//!
//!     cargo run --release -p plumb --example null_loop -- IOS DEPTH counts|latencies
#![forbid(unsafe_code)]

use std::env;
use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::AtomicU64;
use std::thread;
use std::time::Duration;

use plumb_io::clock::{Clock, StampClock};
use plumb_io::engine::{Choice, Ladder, LadderOptions};
use plumb_io::{Errno, IoQueue, Opener, QueueSpec, QueueUse};
use plumb_load::assemble::{Shared, issuer};
use plumb_load::plan::{PlanOptions, ThreadPlan, plan};
use plumb_load::profile::model::{Target, TimeSpan};
use plumb_load::run_loop::{
    Controls, Counts, Latencies, Level, Live, LoopCounts, Surroundings, run_loop,
};

/// The target that nobody opens.
const TARGET_BYTES: u64 = 1 << 30;
/// Long against what a look costs: the looks must not be seen in the count.
const LOOK: Duration = Duration::from_millis(10);

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let [ios, depth, level] = words.as_slice() else {
        return Err("usage: null_loop IOS DEPTH counts|latencies".into());
    };
    let measure_latency = match *level {
        "counts" => false,
        "latencies" => true,
        _ => return Err(format!("`{level}`: use `counts` or `latencies`").into()),
    };
    println!("{} I/Os", drive(ios.parse()?, depth.parse()?, measure_latency)?);
    Ok(())
}

/// Random 4 KiB reads, at least `ios` of them; how many there were.
fn drive(ios: u64, depth: u32, measure_latency: bool) -> Result<u64, Box<dyn Error>> {
    let target = Target {
        path: "nothing".into(),
        block_size: 4096,
        alignment: 4096,
        random_ratio: 100,
        request_count: depth,
        ..Target::default()
    };
    let span = TimeSpan { measure_latency, targets: vec![target], ..TimeSpan::default() };
    let planned = plan(&span, PlanOptions { processors: &[], separation: 0, batch: None });
    let plan = &planned.threads[0];
    let spec = QueueSpec {
        depth: plan.requests,
        regions: plan.regions(&span),
        measures_latency: measure_latency,
        ..QueueSpec::default()
    };
    let user = Drive { span: &span, plan, ios };
    Ladder::new(Choice::Null, LadderOptions::default()).open(spec, user)?
}

struct Drive<'a> {
    span: &'a TimeSpan,
    plan: &'a ThreadPlan,
    ios: u64,
}

impl QueueUse for Drive<'_> {
    type Output = Result<u64, Box<dyn Error>>;

    fn with<Q: IoQueue>(self, mut queue: Q) -> Self::Output {
        if self.span.measure_latency {
            self.run::<Q, Latencies>(&mut queue)
        } else {
            self.run::<Q, Counts>(&mut queue)
        }
    }
}

impl Drive<'_> {
    fn run<Q: IoQueue, L: Level>(&self, queue: &mut Q) -> Result<u64, Box<dyn Error>> {
        let interlocked = [Arc::new(AtomicU64::new(0))];
        let shared = Shared {
            span: self.span,
            sizes: &[TARGET_BYTES],
            interlocked: &interlocked,
            experiment_flags: 0,
            continue_on_error: false,
            open_loop: None,
        };
        let mut issuer = issuer::<L>(&shared, self.plan, None)?;
        let (clock, _) = StampClock::new();
        let controls = Controls::default();
        let live = Live::default();
        controls.start(clock.now());
        controls.measure(clock.now());
        let around = Surroundings {
            clock: &clock,
            controls: &controls,
            live: &live,
            dispatch: self.plan.dispatch,
        };
        let outcome: Result<LoopCounts, Errno> = thread::scope(|scope| {
            scope.spawn(|| {
                while live.read().completions < self.ios {
                    thread::sleep(LOOK);
                }
                controls.stop();
            });
            run_loop(queue, &mut issuer, &around)
        });
        outcome?;
        Ok(live.read().completions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_loop_stops_after_what_was_asked_for() {
        for (depth, measure_latency) in [(32, false), (1, true), (128, true)] {
            let ios = drive(1000, depth, measure_latency).expect("nothing can fail");
            assert!(ios >= 1000, "{ios} at depth {depth}");
        }
    }
}
