//! A thread that looks once per second.

use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use plumb_units::Nanos;
use rustix::time::{ClockId, clock_gettime};

use super::{Counters, Look, Watched};
use crate::system_tree::SystemTree;

/// A recording that goes on.
#[derive(Debug)]
pub struct Recorder {
    stop: Sender<()>,
    thread: JoinHandle<Counters>,
}

/// A last interval shorter than this share of a whole one is left out: its rates would be noise.
const LAST_LEAST: f64 = 0.3;

impl Recorder {
    /// Begins; the first look is taken at once.
    ///
    /// # Errors
    /// No thread can be started.
    pub fn start(tree: &SystemTree, watched: Watched, interval: Duration) -> std::io::Result<Self> {
        let (stop, stopped) = mpsc::channel();
        let tree = tree.clone();
        let work = move || {
            let slowed = watched.slowed(&tree);
            let begun = Instant::now();
            let since = || Nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX));
            let mut looks = vec![Look::take(&tree, &watched, since())];
            let mut due = interval;
            loop {
                let left = due.saturating_sub(begun.elapsed());
                match stopped.recv_timeout(left) {
                    Err(RecvTimeoutError::Timeout) => {
                        looks.push(Look::take(&tree, &watched, since()));
                        due += interval;
                    }
                    Ok(()) | Err(RecvTimeoutError::Disconnected) => break,
                }
            }
            if (begun.elapsed() + interval).saturating_sub(due) >= interval.mul_f64(LAST_LEAST) {
                looks.push(Look::take(&tree, &watched, since()));
            }
            let mut counters = counters(&watched, &looks);
            if let (Some(before), Some(after)) = (slowed, watched.slowed(&tree))
                && let Some(last) = counters.seconds.last_mut()
            {
                let events = last.throttle_events.unwrap_or(0) + after.saturating_sub(before);
                last.throttle_events = Some(events);
            }
            counters
        };
        let thread = thread::Builder::new().name("plumb counters".to_owned()).spawn(work)?;
        Ok(Self { stop, thread })
    }

    /// Ends it.
    ///
    /// # Panics
    /// When the thread did.
    #[must_use]
    pub fn stop(self) -> Counters {
        // It waits for nothing else.
        let _ = self.stop.send(());
        self.thread.join().expect("it only reads files")
    }
}

fn counters(watched: &Watched, looks: &[Look]) -> Counters {
    let start = looks.first().map_or(Nanos::ZERO, Look::at);
    let count = u64::try_from(looks.len()).unwrap_or(u64::MAX).max(1);
    Counters {
        devices: watched.device_names().map(str::to_owned).collect(),
        bottom: watched.bottom.clone(),
        processors: looks.first().map(Look::processors).unwrap_or_default(),
        sensors: watched.sensors.iter().map(|(name, _)| name.clone()).collect(),
        cost: Nanos(thread_time().0 / count),
        seconds: looks.windows(2).map(|pair| pair[1].since(&pair[0], start)).collect(),
    }
}

/// Processor time of this thread.
fn thread_time() -> Nanos {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    let part = |part: i64| u64::try_from(part).unwrap_or(0);
    Nanos(part(time.tv_sec) * 1_000_000_000 + part(time.tv_nsec))
}
