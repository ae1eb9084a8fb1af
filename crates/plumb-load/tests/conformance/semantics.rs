//! The set `semantics`: judged on what the real run loop pushed into a recording queue.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, Condvar, Mutex};

use plumb_io::clock::ManualClock;
use plumb_io::topology::{Processor, Topology};
use plumb_io::{Done, Errno, IoQueue, LaneIndex, Op, OpKind, QueueFacts, Slot};
use plumb_load::affinity;
use plumb_load::assemble::{self, Shared};
use plumb_load::pace::Pace;
use plumb_load::pattern::{Bounds, distribution};
use plumb_load::plan::{PlanOptions, ThreadPlan, plan};
use plumb_load::profile::flags::{self, Parsed};
use plumb_load::profile::json;
use plumb_load::profile::model::{Profile, Target, Throughput, ThroughputUnit, TimeSpan};
use plumb_load::rng::Rng;
use plumb_load::run_loop::{Controls, Counts, Dispatch, Live, Surroundings, run_loop};
use plumb_units::Nanos;
use serde_json::Value;

use crate::nowhere::Nowhere;
use crate::report::{Set, folder};

#[test]
fn semantics() {
    let path = folder().join("semantics/vectors.json");
    let text = std::fs::read_to_string(&path).expect("the vectors are readable");
    let vectors: Value = serde_json::from_str(&text).expect("the vectors are JSON");
    let mut set = Set::new("semantics");
    let lists =
        vectors.as_object().expect("an object").iter().filter(|(_, value)| value.is_array());
    for (kind, _) in lists.filter(|(kind, _)| JUDGES.iter().all(|(known, _)| known != kind)) {
        set.case(kind, Err("nobody checks this kind".to_owned()));
    }
    for (kind, judge) in JUDGES {
        let cases = vectors[kind].as_array().map_or(&[][..], Vec::as_slice);
        set.kind(kind, cases.len());
        for (number, case) in cases.iter().enumerate() {
            let id = case["id"].as_str().map_or_else(|| format!("{kind}-{number}"), str::to_owned);
            set.case(&id, judge(case, &vectors));
        }
    }
    set.finish();
}

type Judge = fn(&Value, &Value) -> Result<(), String>;

const JUDGES: [(&str, Judge); 9] = [
    ("rng", rng),
    ("offsets", offsets),
    ("interlocked", interlocked),
    ("effective", effective),
    ("throughput", throughput),
    ("throttle_admission", throttle_admission),
    ("affinity_order", affinity_order),
    ("ring_batch", ring_batch),
    ("buffer_separation", buffer_separation),
];

fn number(value: &Value) -> u64 {
    value.as_u64().expect("a number")
}

fn numbers(value: &Value) -> Vec<u64> {
    value.as_array().expect("a list").iter().map(number).collect()
}

fn same<T: PartialEq + std::fmt::Debug>(got: &T, want: &T) -> Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("got {got:?}, want {want:?}")) }
}

/// The profile of a case's `args`; a target is added where they name none.
fn profile(case: &Value, more: &[&str]) -> Profile {
    let args = case["args"].as_array().expect("args").iter();
    let mut args: Vec<OsString> = args.map(|arg| arg.as_str().expect("text").into()).collect();
    args.extend(more.iter().map(OsString::from));
    args.push("target".into());
    match flags::parse(&args, &mut Nowhere) {
        Ok(Parsed::Run(invocation)) => invocation.profile,
        other => panic!("{args:?} is no run: {other:?}"),
    }
}

fn rng(case: &Value, _: &Value) -> Result<(), String> {
    let mut rng = Rng::new(number(&case["seed"]));
    let want: Vec<String> = case["first"]
        .as_array()
        .expect("draws")
        .iter()
        .map(|draw| draw.as_str().expect("text").to_owned())
        .collect();
    let got: Vec<String> = want.iter().map(|_| format!("{:#018x}", rng.next64())).collect();
    same(&got, &want)
}

/// Completes every I/O at once and keeps what was pushed; stops the loop after `limit` of them.
struct Recording<'a> {
    ops: Vec<Op>,
    limit: usize,
    in_line: VecDeque<Done>,
    seen: u32,
    controls: &'a Controls,
    buffer: Vec<u8>,
    turnstile: Option<(&'a Turnstile, u64)>,
}

impl<'a> Recording<'a> {
    fn new(limit: usize, block: usize, controls: &'a Controls) -> Self {
        let (ops, in_line) = (Vec::new(), VecDeque::new());
        Self { ops, limit, in_line, seen: 0, controls, buffer: vec![0; block], turnstile: None }
    }
}

impl IoQueue for Recording<'_> {
    fn push(&mut self, op: Op) {
        self.ops.push(op);
        self.in_line
            .push_back(Done { slot: op.slot, result: i32::try_from(op.len).expect("small") });
        if self.ops.len() >= self.limit {
            self.controls.stop();
        }
    }
    fn submit_and_wait(&mut self, _wanted: u32, _timeout: Nanos) -> Result<(), Errno> {
        if let Some((turnstile, thread)) = self.turnstile
            && !self.controls.is_stopping()
        {
            turnstile.pass();
            if !turnstile.enter(thread) {
                self.controls.stop();
            }
        }
        Ok(())
    }
    fn look(&mut self) -> u32 {
        self.seen = u32::try_from(self.in_line.len()).expect("few");
        self.seen
    }
    fn pop(&mut self) -> Option<Done> {
        self.seen = self.seen.checked_sub(1)?;
        self.in_line.pop_front()
    }
    fn buffer_mut(&mut self, _slot: Slot, _lane: LaneIndex) -> &mut [u8] {
        &mut self.buffer
    }
    fn facts(&self) -> QueueFacts {
        QueueFacts { engine: "recording".into(), ..QueueFacts::default() }
    }
}

/// What the run loop of one planned thread pushes, `ios` of it; `Err` when it finds no room.
fn pushed(
    profile: &Profile,
    thread: &ThreadPlan,
    sizes: &[u64],
    shared: &[Arc<AtomicU64>],
    ios: usize,
    turnstile: Option<(&Turnstile, u64)>,
) -> Result<Vec<Op>, String> {
    let span = &profile.time_spans[0];
    let around = Shared {
        span,
        sizes,
        interlocked: shared,
        experiment_flags: 0,
        continue_on_error: false,
        open_loop: None,
        witnessed: None,
    };
    let mut issuer = assemble::issuer::<Counts>(&around, thread, None)
        .map_err(|_| "target too small".to_owned())?;
    let (clock, controls, live) = (ManualClock::default(), Controls::default(), Live::default());
    let block = span.targets.iter().map(|target| target.block_size).max().unwrap_or(0);
    let mut queue = Recording::new(ios, usize::try_from(block).expect("small"), &controls);
    queue.turnstile = turnstile;
    let loop_around =
        Surroundings { clock: &clock, controls: &controls, live: &live, dispatch: thread.dispatch };
    run_loop(&mut queue, &mut issuer, &loop_around).expect("a recording cannot fail");
    queue.ops.truncate(ios);
    Ok(queue.ops)
}

fn planned(span: &TimeSpan) -> Vec<ThreadPlan> {
    plan(span, PlanOptions::default()).threads
}

fn offsets(case: &Value, _: &Value) -> Result<(), String> {
    // A case may ask for the offsets of threads that its own line does not start.
    let threads = case["threads"].as_array().expect("threads").iter();
    let needed = threads.map(|thread| number(&thread["relative_thread"]) + 1).max().unwrap_or(1);
    let mut profile = profile(case, &[]);
    if profile.time_spans[0].total_threads() < needed {
        profile = self::profile(case, &[&format!("-t{needed}")]);
    }
    let span = &profile.time_spans[0];
    let plans = planned(span);
    let shared: Vec<_> = span.targets.iter().map(|_| Arc::new(AtomicU64::new(0))).collect();
    let sizes = vec![number(&case["target_size"]); span.targets.len()];
    let ios = usize::try_from(number(&case["ios"])).expect("few");
    for wanted in case["threads"].as_array().expect("threads") {
        let relative = number(&wanted["relative_thread"]);
        let thread = plans
            .iter()
            .find(|plan| u64::from(plan.targets[0].relative_thread) == relative)
            .ok_or("no such thread is planned")?;
        // Each request of a parallel target walks the sequence: look at one of them.
        let requests = if span.targets[0].parallel_async { thread.requests } else { 1 };
        let all = ios * usize::try_from(requests).expect("few");
        let ops = pushed(&profile, thread, &sizes, &shared, all, None);
        if let Some(error) = wanted["error"].as_str() {
            same(&ops.map(|_| ()), &Err(error.to_owned()))?;
            continue;
        }
        let ops = ops?;
        for request in 0..requests {
            let own = ops.iter().filter(|op| requests == 1 || op.slot.0 == request);
            let got: Vec<u64> = own.map(|op| op.offset).collect();
            same(&got, &numbers(&wanted["offsets"]))?;
        }
        if let Some(types) = wanted["types"].as_str() {
            let letter = |op: &Op| if op.kind == OpKind::Write { 'W' } else { 'R' };
            same(&ops.iter().map(letter).collect::<String>(), &types.to_owned())?;
        }
    }
    Ok(())
}

/// Lets threads go on one at a time, in a given order.
struct Turnstile {
    order: Vec<u64>,
    turn: Mutex<usize>,
    changed: Condvar,
}

impl Turnstile {
    /// Waits for the thread's turn; false once every turn was taken.
    fn enter(&self, thread: u64) -> bool {
        let mut turn = self.turn.lock().expect("not poisoned");
        while *turn < self.order.len() && self.order[*turn] != thread {
            turn = self.changed.wait(turn).expect("not poisoned");
        }
        *turn < self.order.len()
    }

    fn pass(&self) {
        *self.turn.lock().expect("not poisoned") += 1;
        self.changed.notify_all();
    }
}

fn interlocked(case: &Value, _: &Value) -> Result<(), String> {
    // One request per thread, so that a thread takes the shared position once per turn.
    let profile = profile(case, &["-o1"]);
    let plans = planned(&profile.time_spans[0]);
    let shared = [Arc::new(AtomicU64::new(0))];
    let sizes = [number(&case["target_size"])];
    let order = numbers(&case["order"]);
    let turnstile =
        Turnstile { order: order.clone(), turn: Mutex::new(0), changed: Condvar::new() };
    let mut queues: Vec<VecDeque<u64>> = std::thread::scope(|scope| {
        let threads: Vec<_> = plans
            .iter()
            .map(|thread| {
                let (profile, sizes, shared, turnstile) = (&profile, &sizes, &shared, &turnstile);
                scope.spawn(move || {
                    let id = u64::from(thread.id);
                    if !turnstile.enter(id) {
                        return VecDeque::new();
                    }
                    let seat = Some((turnstile, id));
                    let ops = pushed(profile, thread, sizes, shared, usize::MAX, seat);
                    ops.expect("room").into_iter().map(|op| op.offset).collect()
                })
            })
            .collect();
        threads.into_iter().map(|thread| thread.join().expect("no panic")).collect()
    });
    let got: Vec<Option<u64>> = order
        .iter()
        .map(|thread| queues[usize::try_from(*thread).expect("small")].pop_front())
        .collect();
    same(&got, &numbers(&case["offsets"]).into_iter().map(Some).collect())
}

fn effective(case: &Value, _: &Value) -> Result<(), String> {
    let profile = profile(case, &[]);
    let target = &profile.time_spans[0].targets[0];
    let bounds = Bounds::new(target, number(&case["target_size"])).ok_or("too small")?;
    let wanted = target.distribution.as_ref().ok_or("no distribution")?;
    let effective = distribution::effective(wanted, &bounds);
    same(&u64::from(effective.io_total), &number(&case["io_total"]))?;
    let got: Vec<[u64; 4]> = effective
        .ranges
        .iter()
        .map(|range| [range.io_base.into(), range.io.into(), range.offset, range.length])
        .collect();
    let want = case["ranges"].as_array().expect("ranges").iter();
    let want =
        want.map(|range| ["IOBase", "IO", "Offset", "Length"].map(|key| number(&range[key])));
    same(&got, &want.collect())
}

fn throughput(case: &Value, _: &Value) -> Result<(), String> {
    let target = Target {
        block_size: u32::try_from(number(&case["block"])).expect("32 bits"),
        throughput: Throughput {
            value: u32::try_from(number(&case["iops"])).expect("32 bits"),
            unit: ThroughputUnit::Iops,
        },
        ..Target::default()
    };
    let span = TimeSpan { targets: vec![target], ..TimeSpan::default() };
    let raw =
        plumb_load::profile::model::RawProfile { time_spans: vec![span], ..Default::default() };
    let normal = json::normalised(&raw);
    let got = &normal["TimeSpans"][0]["Targets"][0]["ThroughputBytesPerMillisecond"];
    same(&number(got), &number(&case["bytes_per_ms"]))
}

fn throttle_admission(case: &Value, _: &Value) -> Result<(), String> {
    let block = number(&case["block"]);
    let target = Target {
        block_size: u32::try_from(block).expect("32 bits"),
        throughput: Throughput {
            value: u32::try_from(number(&case["bytes_per_ms"])).expect("32 bits"),
            unit: ThroughputUnit::BytesPerMilli,
        },
        ..Target::default()
    };
    let mut pace = Pace::new(&target, 1, 0);
    for _ in 0..number(&case["issued_bytes"]) / block {
        pace.issued(Nanos::ZERO);
    }
    let may = pace.wait(Nanos::from_millis(number(&case["elapsed_ms"]))) == Nanos::ZERO;
    same(&Some(may), &case["may_issue"].as_bool())
}

fn machine(entries: &Value) -> Topology {
    let small = |value: &Value| u8::try_from(number(value)).expect("small");
    let processors = entries.as_array().expect("processors").iter().map(|entry| Processor {
        group: u16::try_from(number(&entry["group"])).expect("small"),
        number: small(&entry["cpu"]),
        core: u32::try_from(number(&entry["core"])).expect("small"),
        node: 0,
        socket: 0,
        class: small(&entry["class"]),
        allowed: true,
    });
    Topology { processors: processors.collect(), caches: Vec::new() }
}

fn affinity_order(case: &Value, vectors: &Value) -> Result<(), String> {
    let name = case["machine"].as_str().expect("a machine's name");
    let topology = machine(&vectors["affinity_machines"][name]);
    let profile = profile(case, &[]);
    let span = &profile.time_spans[0];
    let order = affinity::order(&topology, &span.affinity, span.effective_traversal())
        .map_err(|error| error.to_string())?;
    let got: Vec<Vec<u64>> =
        order.iter().map(|(group, cpu)| vec![u64::from(*group), u64::from(*cpu)]).collect();
    let want: Vec<Vec<u64>> =
        case["order"].as_array().expect("places").iter().map(numbers).collect();
    same(&got, &want)
}

fn ring_batch(case: &Value, _: &Value) -> Result<(), String> {
    let requests = number(&case["requests"]);
    let profile = profile(case, &[&format!("-o{requests}")]);
    let dispatch = planned(&profile.time_spans[0])[0].dispatch;
    let want = u32::try_from(number(&case["batch"])).expect("small");
    same(&dispatch, &Dispatch::Ring { batch: want })
}

fn buffer_separation(case: &Value, _: &Value) -> Result<(), String> {
    let (page, line) = (number(&case["page_size"]), number(&case["cache_line"]));
    same(&affinity::separation_alignment(page, line), &number(&case["alignment"]))
}
