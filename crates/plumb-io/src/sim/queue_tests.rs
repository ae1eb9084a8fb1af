use std::fs::File;

use plumb_units::Nanos;

use crate::clock::{Clock, ManualClock};
use crate::sim::{DiskSpec, Fault, FaultKind, RandomFaults, Service, SimOpener, Stalls};
use crate::{
    Errno, FileIndex, IoQueue, LaneIndex, LaneSpec, Memory, Op, OpKind, Opener, QueueSpec,
    QueueUse, RegionSpec, Slot, TargetFile,
};

const MILLI: Nanos = Nanos(1_000_000);

/// Runs `body` on a queue of that depth.
fn with<R>(
    disk: DiskSpec,
    depth: u32,
    body: impl FnOnce(&mut dyn IoQueue, &ManualClock) -> R,
) -> R {
    struct Body<F>(F, ManualClock);
    impl<R, F: FnOnce(&mut dyn IoQueue, &ManualClock) -> R> QueueUse for Body<F> {
        type Output = R;
        fn with<Q: IoQueue>(self, mut queue: Q) -> R {
            (self.0)(&mut queue, &self.1)
        }
    }
    let null = File::open("/dev/null").expect("it is everywhere");
    let file = TargetFile {
        descriptor: null.into(),
        path: "sim".into(),
        size: 1 << 30,
        priority: None,
        mapping: None,
    };
    let lane = LaneSpec { first_slot: 0, slots: depth, bytes: 4096 };
    let regions = vec![RegionSpec { lanes: vec![lane] }];
    let spec = QueueSpec { depth, files: vec![file], regions, ..QueueSpec::default() };
    let clock = ManualClock::default();
    let opener = SimOpener::new(disk, clock.clone());
    opener.open(spec, Body(body, clock)).expect("a little memory")
}

fn read(slot: u32) -> Op {
    let (kind, memory) = (OpKind::Read, Memory::Lane(LaneIndex(0)));
    Op { kind, file: FileIndex(0), slot: Slot(slot), len: 4096, offset: 0, memory }
}

/// Keeps `depth` reads in flight until `total` are done; (virtual time, slot, result) of each.
fn drive(disk: DiskSpec, depth: u32, total: usize) -> Vec<(u64, u32, i32)> {
    with(disk, depth, |queue, clock| {
        (0..depth).for_each(|slot| queue.push(read(slot)));
        let mut seen = Vec::new();
        while seen.len() < total {
            queue.submit_and_wait(1, Nanos::NEVER).expect("a simulated queue takes all");
            queue.look();
            while let Some(done) = queue.pop() {
                seen.push((clock.now().0, done.slot.0, done.result));
                queue.push(read(done.slot.0));
            }
        }
        seen
    })
}

fn disk(parallelism: u32) -> DiskSpec {
    DiskSpec { service: Service::Constant(MILLI), parallelism, ..DiskSpec::default() }
}

#[test]
fn the_whole_depth_is_in_flight() {
    let ends: Vec<_> = drive(disk(8), 16, 32).iter().map(|seen| seen.0 / MILLI.0).collect();
    let expected: Vec<_> = [1, 2, 3, 4].iter().flat_map(|&end| [end; 8]).collect();
    assert_eq!(ends, expected);
}

#[test]
fn one_seed_is_one_history() {
    let disk = |seed| DiskSpec {
        seed,
        service: Service::Exponential { base: Nanos(50), mean: Nanos(1000) },
        stalls: Some(Stalls { every: Nanos(10_000), length: Nanos(2000) }),
        parallelism: 3,
        random_faults: RandomFaults { error_one_in: 20, short_one_in: 30 },
        ..DiskSpec::default()
    };
    let history = drive(disk(1), 8, 2000);
    assert_eq!(history, drive(disk(1), 8, 2000));
    assert_ne!(history, drive(disk(2), 8, 2000));
    let results = |wanted| history.iter().filter(|seen| seen.2 == wanted).count();
    assert!((60..140).contains(&results(-5)), "{}", results(-5));
    assert!((35..100).contains(&results(2048)), "{}", results(2048));
}

#[test]
fn time_never_passes_the_timeout() {
    with(disk(1), 2, |queue, clock| {
        queue.push(read(0));
        queue.push(read(1));
        queue.submit_and_wait(2, Nanos(600_000)).expect("no error");
        assert_eq!((clock.now(), queue.look()), (Nanos(600_000), 0));
        queue.submit_and_wait(0, Nanos::NEVER).expect("no error");
        assert_eq!(clock.now(), Nanos(600_000), "looking takes no time");
        queue.submit_and_wait(2, Nanos(600_000)).expect("no error");
        assert_eq!((clock.now(), queue.look()), (Nanos(1_200_000), 1));
        queue.submit_and_wait(2, Nanos::NEVER).expect("no error");
        assert_eq!((clock.now(), queue.look()), (Nanos(2_000_000), 2));
    });
}

#[test]
fn faults_strike_the_io_they_are_meant_for() {
    let fault = |at, kind| Fault { at, kind };
    let faults = vec![
        fault(0, FaultKind::Delay(MILLI)),
        fault(1, FaultKind::Error(Errno(5))),
        fault(2, FaultKind::Short(512)),
    ];
    let history = drive(DiskSpec { faults, ..disk(1) }, 1, 4);
    let milli = MILLI.0;
    let expected =
        [(2 * milli, 0, 4096), (3 * milli, 0, -5), (4 * milli, 0, 512), (5 * milli, 0, 4096)];
    assert_eq!(history, expected);
}
