//! What work takes: by the clock, and in processor time, which other work on the machine does not lengthen.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::process::{Pid, WaitId, WaitIdOptions};
use rustix::time::{ClockId, clock_gettime};

use crate::program::Outcome;

/// What something took.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Spent {
    /// By the clock.
    pub(crate) wall_s: f64,
    /// Of processors.
    pub(crate) processor_s: f64,
    /// Processors that others had meanwhile, in the mean.
    pub(crate) others: f64,
}

impl Spent {
    /// The middle of several, each figure by itself.
    pub(crate) fn median(all: &[Self]) -> Self {
        let middle = |of: fn(&Self) -> f64| {
            let mut values: Vec<f64> = all.iter().map(of).collect();
            values.sort_by(f64::total_cmp);
            values[values.len() / 2]
        };
        Self {
            wall_s: middle(|one| one.wall_s),
            processor_s: middle(|one| one.processor_s),
            others: middle(|one| one.others),
        }
    }

    /// Fails where it took more processor time than `most_s`, or more than that by the clock: where others had processors
    /// meanwhile, too, it may take `PATIENCE` times as long.
    #[track_caller]
    pub(crate) fn is_within(self, most_s: f64, what: &str) {
        println!("{what}: {self:.2?}, {most_s} s at most");
        assert!(self.processor_s <= most_s, "{what} takes {self:.2?}");
        let wall_most = if self.others < QUIET { most_s } else { most_s * PATIENCE };
        assert!(self.wall_s <= wall_most, "{what} takes {self:.2?}, {wall_most} s at most");
    }
}

/// Processors of others up to which a machine is quiet.
const QUIET: f64 = 0.1;
/// How many times as long work may take where it is not.
const PATIENCE: f64 = 4.0;

/// This work, done by this thread alone, so many times.
pub(crate) fn by_thread(times: u32, work: impl Fn()) -> Spent {
    let processor_s = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
    };
    let once = |_| {
        let watch = Watch::begun();
        let before = processor_s();
        work();
        watch.ended(processor_s() - before)
    };
    Spent::median(&(0..times).map(once).collect::<Vec<_>>())
}

/// This command, so many times; it must end well.
pub(crate) fn by_command(times: u32, command: impl Fn() -> Command) -> Spent {
    let once = |_| {
        let mut command = command();
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let watch = Watch::begun();
        let mut child = command.spawn().expect("the program can be started");
        let processor_s = until_over(&child);
        let spent = watch.ended(processor_s);
        let status = child.wait().expect("it is over").code().expect("it ends by itself");
        let (stdout, stderr) = (String::new(), String::new());
        Outcome { status, stdout, stderr }.ends_with(0);
        spent
    };
    Spent::median(&(0..times).map(once).collect::<Vec<_>>())
}

/// Waits for its end and leaves it to be waited for; the processor time of it and of those that it waited for.
fn until_over(child: &Child) -> f64 {
    let id = WaitId::Pid(Pid::from_child(child));
    rustix::process::waitid(id, WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("ours");
    let stat = Stat::of(child.id()).expect("it is not waited for yet");
    stat.own_s + stat.children_s
}

/// A stop watch that looks at the machine, too.
pub(crate) struct Watch {
    begun: Instant,
    busy_s: f64,
}

impl Watch {
    pub(crate) fn begun() -> Self {
        Self { begun: Instant::now(), busy_s: busy_s() }
    }

    /// What was spent, of which so much by ourselves.
    pub(crate) fn ended(&self, processor_s: f64) -> Spent {
        let wall_s = self.begun.elapsed().as_secs_f64();
        let others = ((busy_s() - self.busy_s - processor_s) / wall_s).max(0.0);
        Spent { wall_s, processor_s, others }
    }
}

/// Seconds that all processors together were busy, or taken away by a host.
fn busy_s() -> f64 {
    let text = fs::read_to_string("/proc/stat").expect("/proc");
    let ticks: Vec<f64> = text
        .lines()
        .next()
        .expect("a line for all processors")
        .split_whitespace()
        .skip(1)
        .map(|cell| cell.parse().expect("ticks"))
        .collect();
    // user nice system idle iowait irq softirq steal; time of guests is in the first two.
    let busy: f64 = ticks.iter().take(8).sum::<f64>() - ticks[3] - ticks[4];
    busy / ticks_per_s()
}

fn ticks_per_s() -> f64 {
    rustix::param::clock_ticks_per_second() as f64
}

/// What the kernel says of a process.
#[derive(Debug, Clone, Copy)]
struct Stat {
    parent: u32,
    own_s: f64,
    children_s: f64,
}

impl Stat {
    fn of(process: u32) -> Option<Self> {
        let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
        // Its name may have blanks and brackets.
        let cells: Vec<&str> = text.rsplit_once(") ")?.1.split_whitespace().collect();
        let ticks = |place: usize| cells.get(place)?.parse::<f64>().ok();
        Some(Self {
            parent: cells.get(1)?.parse().ok()?,
            own_s: (ticks(11)? + ticks(12)?) / ticks_per_s(),
            children_s: (ticks(13)? + ticks(14)?) / ticks_per_s(),
        })
    }
}

/// Processor time of a process and all below it, by process: of all its threads, and of its first one, if its command line
/// has `word`.
pub(crate) fn below(process: u32, word: &str) -> BTreeMap<u32, (f64, f64)> {
    let mut stats: BTreeMap<u32, Stat> = BTreeMap::new();
    for entry in fs::read_dir("/proc").expect("/proc").flatten() {
        let id = entry.file_name().to_str().and_then(|name| name.parse().ok());
        if let Some((id, stat)) = id.and_then(|id| Some((id, Stat::of(id)?))) {
            stats.insert(id, stat);
        }
    }
    let is_below = |mut id: u32| {
        while id != process {
            match stats.get(&id) {
                Some(stat) if stat.parent > 1 => id = stat.parent,
                _ => return false,
            }
        }
        true
    };
    let of = |(id, stat): (&u32, &Stat)| {
        let line = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        let has_word = String::from_utf8_lossy(&line).contains(word);
        let first = fs::read_to_string(format!("/proc/{id}/task/{id}/schedstat"));
        let first_ns: Option<f64> =
            first.ok().and_then(|text| text.split(' ').next()?.parse().ok()).filter(|_| has_word);
        (*id, (stat.own_s, first_ns.unwrap_or(0.0) * 1e-9))
    };
    stats.iter().filter(|(id, _)| is_below(**id)).map(of).collect()
}

/// What was added between two looks at processes, over all of them.
pub(crate) fn added(
    before: &BTreeMap<u32, (f64, f64)>,
    after: &BTreeMap<u32, (f64, f64)>,
) -> (f64, f64) {
    after.iter().fold((0.0, 0.0), |sum, (id, now)| {
        let then = before.get(id).copied().unwrap_or_default();
        (sum.0 + (now.0 - then.0).max(0.0), sum.1 + (now.1 - then.1).max(0.0))
    })
}
