//! The body of `plumb_io::conformance` on virtual disks: on the owner's thread and from others.

use std::fs::OpenOptions;

use plumb_io::clock::StampClock;
use plumb_io::conformance::{Subject, TargetKind, check};
use plumb_io::{
    BufferPlacement, OpenQueueError, Opener, QueueMode, QueueSpec, QueueUse, TargetFile,
};
use plumb_tier::space::{SpaceFile, SpaceQueue, SpaceServer};

use crate::disks::{self, MIB};

/// Opens queues whose files are virtual disks of one copy count each, 1 to 3.
struct Spaces {
    forwarded: bool,
}

impl Opener for Spaces {
    fn open<U: QueueUse>(&self, spec: QueueSpec, user: U) -> Result<U::Output, OpenQueueError> {
        let file = |(nth, file): (u32, &TargetFile)| SpaceFile::of(file, nth, MIB);
        let files = (0..).zip(&spec.files).map(file).collect();
        let (clients, vdisks) = (spec.depth, three());
        if self.forwarded {
            // Fewer clients than slots: some requests wait in the ring.
            let clients = clients.div_ceil(2);
            let server =
                SpaceServer::spawn(move || Ok::<_, ()>(disks::started(3, vdisks, clients)));
            let server = server.expect("a pool in memory");
            return Ok(user.with(server.client(files, &spec)?));
        }
        let engine = disks::started(3, vdisks, clients);
        Ok(user.with(SpaceQueue::open(engine, files, &spec, StampClock::monotonic())?))
    }
}

fn three() -> Vec<plumb_tier::NewVirtualDisk> {
    (1..=3).map(|copies| disks::vdisk(&format!("v{copies}"), copies, MIB)).collect()
}

fn run(name: &str, forwarded: bool) {
    check(&Subject {
        name,
        opener: &Spaces { forwarded },
        clock: &StampClock::monotonic(),
        file: &|_, wish| {
            let null = OpenOptions::new().read(true).write(wish.writable).open("/dev/null");
            let (descriptor, path) = (null.expect("it is everywhere").into(), "space:p/v".into());
            TargetFile { descriptor, path, size: wish.size, priority: None, mapping: None }
        },
        engine: "space+memory",
        target: TargetKind::Data,
        mode: QueueMode::Asynchronous,
        placement: BufferPlacement::System,
        register_buffers: false,
        measures_latency: true,
    });
}

#[test]
fn space_on_its_own_thread() {
    run("space_on_its_own_thread", false);
}

#[test]
fn space_from_other_threads() {
    run("space_from_other_threads", true);
}
