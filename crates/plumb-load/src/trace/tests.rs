//! What is refused, and events that this machine makes while they are counted.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::*;

#[test]
fn what_linux_does_not_have_is_refused() {
    for (etw, class) in [
        (Etw { image_load: true, process: true, ..Etw::default() }, "IMAGE_LOAD"),
        (Etw { registry: true, ..Etw::default() }, "REGISTRY"),
    ] {
        assert_eq!(check(&etw), Err(TraceError::NoCounterpart { class }));
    }
    assert_eq!(check(&Etw { disk_io: true, network: true, ..Etw::default() }), Ok(()));
}

#[test]
fn hard_faults_are_part_of_page_faults() {
    let titles = |page, hard| {
        let etw = Etw { memory_page_faults: page, memory_hard_faults: hard, ..Etw::default() };
        classes(&etw).expect("known").iter().map(|class| class.title).collect::<Vec<_>>()
    };
    assert_eq!(titles(true, true), ["Memory Page Faults"]);
    assert_eq!(titles(false, true), ["Memory Hard Faults"]);
}

#[test]
fn without_tracepoints_the_mount_is_named() {
    let folder = tempfile::tempdir().expect("a folder");
    let tree = SystemTree::new(folder.path());
    let open = |tree: &SystemTree| {
        let etw = Etw { disk_io: true, ..Etw::default() };
        TraceSession::open(&etw, &Topology::default(), tree).map(|_| ())
    };
    let error = open(&tree).expect_err("no tracefs");
    assert_eq!(
        error.to_string(),
        "-eDISK_IO needs the kernel's tracepoints, and /sys/kernel/tracing does not show them"
    );
    let help = miette::Diagnostic::help(&error).expect("a remedy").to_string();
    assert!(help.contains("mount -t tracefs tracefs /sys/kernel/tracing"), "{help}");
    // There are tracepoints, but not these.
    std::fs::create_dir_all(tree.path("/sys/kernel/tracing/events/sched")).expect("folders");
    let tracepoint = "block/block_rq_complete";
    assert_eq!(open(&tree), Err(TraceError::NoTracepoint { class: "DISK_IO", tracepoint }));
}

#[test]
fn what_the_kernel_refuses_names_the_remedy() {
    let text = |errno| {
        let error = explain(errno, "PROCESS", 512);
        let help = miette::Diagnostic::help(&error).expect("a remedy").to_string();
        format!("{error}; {help}")
    };
    for errno in [Errno::ACCESS, Errno::PERM] {
        assert!(text(errno).contains("CAP_PERFMON"), "{}", text(errno));
    }
    assert!(text(Errno::MFILE).contains("needs 512 open files"), "{}", text(Errno::MFILE));
    assert!(text(Errno::MFILE).contains("ulimit -n"), "{}", text(Errno::MFILE));
    assert!(text(Errno::NOENT).contains("-ePROCESS cannot be counted"), "{}", text(Errno::NOENT));
}

/// A tree whose tracefs is the real one; unmounted at the end.
struct Traced {
    folder: tempfile::TempDir,
    mounted: Option<PathBuf>,
}

impl Traced {
    fn new() -> Option<Self> {
        let folder = tempfile::tempdir().expect("a folder");
        let point = folder.path().join("sys/kernel/tracing");
        std::fs::create_dir_all(&point).expect("folders");
        let mut mount = Command::new("mount");
        mount.args(["-t", "tracefs", "tracefs"]).arg(&point).stderr(Stdio::null());
        let is_mounted = mount.status().is_ok_and(|status| status.success());
        is_mounted.then_some(Self { folder, mounted: Some(point) })
    }

    fn tree(&self) -> SystemTree {
        SystemTree::new(self.folder.path())
    }
}

impl Drop for Traced {
    fn drop(&mut self) {
        if let Some(point) = &self.mounted {
            let undone = Command::new("umount").arg(point).status();
            if !undone.is_ok_and(|status| status.success()) {
                println!("{} could not be unmounted", point.display());
            }
        }
    }
}

/// Counts while `act` runs; `None` with the reason told when this machine does not let us.
fn count(test: &str, etw: Etw, act: impl FnOnce()) -> Option<TraceCounts> {
    let Some(traced) = Traced::new() else {
        println!("skipped {test}: tracefs cannot be mounted");
        return None;
    };
    let topology = Topology::read(&SystemTree::default());
    let session = match TraceSession::open(&etw, &topology, &traced.tree()) {
        Ok(session) => session,
        Err(error @ TraceError::NotAllowed { .. }) => {
            println!("skipped {test}: {error}");
            return None;
        }
        Err(error) => panic!("{error}"),
    };
    session.start().expect("started");
    act();
    Some(session.stop().expect("stopped"))
}

/// A counter of a class; `None` when this kernel lacks it.
fn counter(counts: &TraceCounts, title: &str, name: &str) -> Option<u64> {
    let (_, counters) = counts.classes.iter().find(|(class, _)| class == title)?;
    counters.iter().find(|(counter, _)| counter == name).map(|(_, count)| *count)
}

#[test]
fn processes_and_threads_are_counted() {
    let etw = Etw { process: true, thread: true, ..Etw::default() };
    let counts = count("processes_and_threads_are_counted", etw, || {
        for _ in 0..3 {
            Command::new("true").status().expect("it runs");
        }
        for _ in 0..5 {
            std::thread::spawn(|| {}).join().expect("it ends");
        }
    });
    let Some(counts) = counts else { return };
    let at_least = |title, name, least| {
        let count = counter(&counts, title, name);
        assert!(count.is_none_or(|count| count >= least), "{title} {name}: {count:?}");
        count
    };
    let processes = at_least("Process", "Start", 3).expect("every kernel counts these");
    let threads = at_least("Thread", "Start", 8).expect("every kernel counts these");
    assert!(processes + 5 <= threads, "{processes} {threads}");
    at_least("Process", "End", 3);
    at_least("Thread", "End", 8).expect("every kernel counts these");
    assert_eq!(counts.lost, 0);
}

#[test]
fn disk_writes_are_counted() {
    let etw = Etw { disk_io: true, ..Etw::default() };
    let mut is_on_disk = false;
    let counts = count("disk_writes_are_counted", etw, || {
        let mut file = tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file");
        for _ in 0..4 {
            file.write_all(&[7; 65536]).expect("written");
            file.sync_all().expect("synced");
        }
        let tree = SystemTree::default();
        let stack = plumb_io::block_stack::underlying(std::os::fd::AsFd::as_fd(&file), &tree);
        is_on_disk = stack.is_ok_and(|stack| !stack.devices.is_empty());
    });
    let Some(counts) = counts else { return };
    assert!(counter(&counts, "Disk I/O", "Read").is_some());
    if is_on_disk {
        let writes = counter(&counts, "Disk I/O", "Write");
        assert!(writes.is_some_and(|writes| writes >= 4), "{counts:?}");
    } else {
        println!("skipped disk_writes_are_counted: the sources lie on no block device");
    }
}

#[test]
fn connections_and_datagrams_are_counted() {
    let etw = Etw { network: true, ..Etw::default() };
    let counts = count("connections_and_datagrams_are_counted", etw, || {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a listener");
        let address = listener.local_addr().expect("an address");
        for _ in 0..3 {
            let mut client = TcpStream::connect(address).expect("connected");
            let (mut server, _) = listener.accept().expect("accepted");
            client.write_all(b"plumb").expect("sent");
            drop(client);
            let mut text = String::new();
            server.read_to_string(&mut text).expect("received");
            assert_eq!(text, "plumb");
        }
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).expect("a socket");
        let address = socket.local_addr().expect("an address");
        for _ in 0..3 {
            socket.send_to(b"plumb", address).expect("sent");
            socket.recv_from(&mut [0; 9]).expect("received");
        }
    });
    let Some(counts) = counts else { return };
    for name in ["Accept", "Connect", "Disconnect", "TCP/IP Send", "TCP/IP Receive"] {
        let count = counter(&counts, "Network", name);
        assert!(count.is_none_or(|count| count >= 3), "{name}: {counts:?}");
    }
    for name in ["UDP/IP Send", "UDP/IP Receive"] {
        let count = counter(&counts, "Network", name);
        assert!(count.is_none_or(|count| count >= 3), "{name}: {counts:?}");
    }
    assert!(counter(&counts, "Network", "Accept").is_some(), "{counts:?}");
}

#[test]
fn page_faults_are_counted() {
    let etw = Etw { memory_page_faults: true, ..Etw::default() };
    let counts = count("page_faults_are_counted", etw, || {
        let block =
            plumb_sys::memory::Block::new(1 << 20, plumb_sys::memory::BufferPlacement::System);
        block.expect("memory").touch();
    });
    let Some(counts) = counts else { return };
    let soft = counter(&counts, "Memory Page Faults", "Soft page fault");
    let pages = (1 << 20) / plumb_units::convert::to_u64(rustix::param::page_size());
    assert!(soft.is_some_and(|soft| soft >= pages), "{counts:?}");
    assert!(counter(&counts, "Memory Page Faults", "Hard page fault").is_some());
}

#[test]
fn every_path_of_a_tracepoint_has_a_system_and_a_name() {
    for class in [&DISK_IO, &PAGE_FAULTS, &HARD_FAULTS, &NETWORK, &PROCESS, &THREAD] {
        for source in class.counters {
            if let SourceKind::Tracepoint(event, _) = source.kind {
                assert_eq!(Path::new(event).components().count(), 2, "{event}");
            }
        }
    }
}
