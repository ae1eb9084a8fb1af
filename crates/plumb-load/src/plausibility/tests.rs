//! The arithmetic over made-up figures, and the probes on this machine.

use std::fs::File;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;

use plumb_io::block_stack::{BlockDevice, DeviceNumber, Mount};

use super::*;

/// `verdict value sentence` of an item.
fn check(item: &PlausibilityItem, verdict: Plausibility, value: Option<f64>, sentence: &str) {
    assert_eq!((item.verdict, item.sentence.as_str()), (verdict, sentence));
    match (item.value, value) {
        (Some(got), Some(want)) => assert!((got - want).abs() < 1e-9, "{got} is not {want}"),
        (got, want) => assert_eq!(got, want),
    }
}

const OK: Plausibility = Plausibility::Ok;
const BAD: Plausibility = Plausibility::Suspicious;
const UNKNOWN: Plausibility = Plausibility::Unknown;

fn device(minor: u32, name: &str) -> BlockDevice {
    let number = DeviceNumber { major: 8, minor };
    BlockDevice { number, name: name.to_owned(), disk: number }
}

fn stack(devices: &[(u32, &str)]) -> BlockStack {
    let devices: Vec<_> = devices.iter().map(|(minor, name)| device(*minor, name)).collect();
    BlockStack { mount: None, leaves: devices.clone(), devices }
}

fn mounted(kind: &str) -> BlockStack {
    let mount = Mount {
        number: 1,
        device: DeviceNumber { major: 0, minor: 9 },
        point: "/m".into(),
        kind: kind.to_owned(),
        source: "none".to_owned(),
        options: Vec::new(),
        super_options: Vec::new(),
    };
    BlockStack { mount: Some(mount), devices: Vec::new(), leaves: Vec::new() }
}

fn checked<'a>(path: &'a str, file: &'a File, stack: &'a BlockStack) -> CheckedTarget<'a> {
    CheckedTarget {
        path,
        descriptor: file.as_fd(),
        size: 1 << 20,
        start: 0,
        end: 1 << 20,
        stack,
        is_read: true,
        is_written: true,
        is_direct: true,
    }
}

fn file() -> File {
    tempfile::tempfile_in(env!("CARGO_MANIFEST_DIR")).expect("a file")
}

/// The items of one direction; the other one moved nothing.
fn traffic(is_direct: bool, moved: Traffic, seen: Traffic) -> PlausibilityItem {
    asked(is_direct, Issued { moved, ..Issued::default() }, seen)
}

fn asked(is_direct: bool, issued: Issued, seen: Traffic) -> PlausibilityItem {
    let devices = vec![device(0, "sda")];
    let group = traffic::Group { devices, leaves: Vec::new(), issued, is_direct };
    let items = traffic::items(&group, seen);
    let [item] = items.try_into().expect("one item");
    item
}

#[test]
fn reads_are_compared_with_the_device() {
    let read = |is_direct, moved, seen| {
        let bytes = |read| Traffic { read, written: 0 };
        traffic(is_direct, bytes(moved), bytes(seen))
    };
    check(&read(true, 1000, 990), OK, Some(0.99), "/dev/sda saw 99 % of the bytes read.");
    check(
        &read(false, 1000, 30),
        BAD,
        Some(0.03),
        "/dev/sda saw 3.0 % of the bytes read: the page cache served the rest, so these are figures \
         of memory.",
    );
    check(
        &read(true, 1000, 0),
        BAD,
        Some(0.0),
        "/dev/sda saw 0.0 % of the bytes read although they went past the page cache: holes, \
         compression or a cache of the file system served the rest.",
    );
    check(
        &read(true, 1000, 2000),
        BAD,
        Some(2.0),
        "/dev/sda saw 200 % of the bytes read: read-ahead, blocks larger than the I/Os, or other \
         programs take the rest.",
    );
    // The bounds belong to what agrees.
    assert_eq!(read(true, 1000, 900).verdict, OK);
    assert_eq!(read(true, 1000, 1250).verdict, OK);
    assert_eq!(read(true, 1000, 899).verdict, BAD);
}

#[test]
fn writes_are_compared_with_the_device() {
    let write = |is_direct, moved, seen| {
        let bytes = |written| Traffic { read: 0, written };
        traffic(is_direct, bytes(moved), bytes(seen))
    };
    check(&write(true, 1000, 1100), OK, Some(1.1), "/dev/sda saw 110 % of the bytes written.");
    check(
        &write(false, 10_000, 1),
        BAD,
        Some(0.0001),
        "/dev/sda saw less than 0.1 % of the bytes written: the rest is still in memory, so these \
         are figures of memory.",
    );
    check(
        &write(true, 1000, 3000),
        BAD,
        Some(3.0),
        "/dev/sda saw 300 % of the bytes written: metadata and copies of the file system, earlier \
         writes, or other programs make up the rest.",
    );
    assert!(write(true, 1000, 100).sentence.contains("although they went past the page cache"));
}

#[test]
fn what_failed_may_have_reached_the_device_or_not() {
    let read = |moved, failed, seen| {
        let bytes = |read| Traffic { read, written: 0 };
        asked(true, Issued { moved: bytes(moved), failed: bytes(failed) }, bytes(seen))
    };
    let agrees = "/dev/sda saw 100 % of the bytes that reads asked for, 65 % of which failed.";
    check(&read(350, 650, 1000), OK, Some(1.0), agrees);
    // All failed on the way to the device.
    assert_eq!(read(350, 650, 350).verdict, OK);
    assert_eq!(read(350, 650, 314).verdict, BAD);
    assert_eq!(read(350, 650, 1251).verdict, BAD);
    let bytes = |written| Traffic { read: 0, written };
    let written = Issued { moved: bytes(500), failed: bytes(500) };
    check(
        &asked(true, written, bytes(990)),
        OK,
        Some(0.99),
        "/dev/sda saw 99 % of the bytes that writes asked for, 50 % of which failed.",
    );
}

#[test]
fn a_direction_without_io_has_no_item() {
    let group = traffic::Group {
        leaves: Vec::new(),
        devices: vec![device(0, "sda")],
        issued: Issued::default(),
        is_direct: true,
    };
    assert_eq!(traffic::items(&group, Traffic { read: 1 << 30, written: 1 << 30 }), []);
}

#[test]
fn targets_on_the_same_devices_are_counted_together() {
    let file = file();
    let stacks = [
        stack(&[(0, "sda")]),
        stack(&[(32, "sdc")]),
        stack(&[(0, "sda"), (16, "sdb")]),
        mounted("tmpfs"),
        stack(&[(16, "sdb")]),
    ];
    let mut targets: Vec<_> = stacks.iter().map(|stack| checked("t", &file, stack)).collect();
    targets[4].is_direct = false;
    let issued: Vec<Issued> = [1, 2, 4, 8, 16]
        .iter()
        .map(|n| Issued {
            moved: Traffic { read: *n, written: *n * 100 },
            failed: Traffic { read: *n * 10, written: *n * 1000 },
        })
        .collect();
    let groups = traffic::groups(&targets, &issued);
    let lines: Vec<String> = groups
        .iter()
        .map(|group| {
            let names: Vec<&str> = group.devices.iter().map(|d| d.name.as_str()).collect();
            let Issued { moved: Traffic { read, written }, failed } = group.issued;
            let lost = (failed.read, failed.written);
            format!("{} {read} {written} {lost:?} {}", names.join("+"), group.is_direct)
        })
        .collect();
    assert_eq!(lines, ["sdc 2 200 (20, 2000) true", "sda+sdb 21 2100 (210, 21000) false"]);
}

#[test]
fn what_lies_below_a_device_is_compared_too() {
    let file = file();
    let on_loop = |leaves: &[(u32, &str)]| {
        let (above, below) = (stack(&[(7, "loop0")]), stack(leaves));
        BlockStack { leaves: below.devices, ..above }
    };
    let stacks =
        [on_loop(&[(16, "sdb"), (0, "sda")]), on_loop(&[(0, "sda")]), stack(&[(32, "sdc")])];
    let targets: Vec<_> = stacks.iter().map(|stack| checked("t", &file, stack)).collect();
    let moved = Traffic { read: 1000, written: 500 };
    let issued = [Issued { moved, ..Issued::default() }; 3];
    let groups = traffic::groups(&targets, &issued);
    let leaves: Vec<Vec<&str>> = groups
        .iter()
        .map(|group| group.leaves.iter().map(|device| device.name.as_str()).collect())
        .collect();
    // A disk is its own leaf, and compared once.
    assert_eq!(leaves, [vec!["sda", "sdb"], vec![]]);
    let seen = |read, written| traffic::items_below(&groups[0], Traffic { read, written });
    let [read, write] = seen(20, 2000).try_into().expect("two directions");
    let sentence = "/dev/sda, /dev/sdb, below /dev/loop0, saw 1.0 % of the bytes read: holes, a cache or \
                    compression between the two took the rest, so these are not the disks' figures.";
    check(&read, BAD, Some(0.01), sentence);
    let sentence = "/dev/sda, /dev/sdb, below /dev/loop0, saw 200 % of the bytes written.";
    check(&write, OK, Some(2.0), sentence);
    assert_eq!((read.key, write.key), ("disk_read_ratio", "disk_write_ratio"));
    let [read, _] = seen(1990, 900).try_into().expect("two directions");
    check(
        &read,
        OK,
        Some(0.995),
        "/dev/sda, /dev/sdb, below /dev/loop0, saw 100 % of the bytes read.",
    );
}

#[test]
fn what_has_no_device_is_said_to_have_none() {
    let file = file();
    let (nfs, tmpfs, disk) = (mounted("nfs4"), mounted("tmpfs"), stack(&[(0, "sda")]));
    let targets = [
        checked("far", &file, &nfs),
        checked("far", &file, &nfs),
        checked("memory", &file, &tmpfs),
        checked("near", &file, &disk),
    ];
    let items = traffic::without_device(&targets);
    assert_eq!(items.len(), 1);
    check(
        &items[0],
        UNKNOWN,
        None,
        "'far' lies on nfs4, which shows no block device here: what reached storage is not known.",
    );
}

#[test]
fn memory_is_no_storage() {
    assert_eq!(target::medium_item("f", &stack(&[(0, "sda")])), None);
    assert_eq!(target::medium_item("f", &stack(&[(0, "ramdisk")])), None);
    for (stack, medium) in [(mounted("tmpfs"), "tmpfs"), (stack(&[(0, "zram0")]), "zram0")] {
        let item = target::medium_item("f", &stack).expect("an item");
        let sentence = format!("'f' lies on {medium}, which is memory and no storage device.");
        check(&item, BAD, None, &sentence);
    }
}

#[test]
fn what_was_never_written_is_told() {
    let item = |holes, unwritten, is_read| {
        target::allocation_item("f", Allocation { bytes: 1000, holes, unwritten }, is_read)
    };
    check(&item(5, 5, true), OK, Some(0.01), "1.0 % of 'f' was never written.");
    check(
        &item(300, 200, true),
        BAD,
        Some(0.5),
        "50 % of 'f' was never written: reading there gives zeros without a look at the device; let \
         -c<size> create the file.",
    );
    check(
        &item(0, 1000, false),
        BAD,
        Some(1.0),
        "100 % of 'f' was never written: the first write to each place allocates it, which later \
         writes do not pay for.",
    );
}

#[test]
fn what_fits_into_memory_is_told() {
    let gib = 1 << 30;
    check(
        &target::memory_item("f", gib, 4 * gib),
        BAD,
        Some(0.25),
        "The part of 'f' in use (1GiB) fits into memory (4GiB), whose page cache will hold it; -Su \
         goes past it.",
    );
    check(
        &target::memory_item("f", 6 * gib, 4 * gib),
        OK,
        Some(1.5),
        "The part of 'f' in use is 1.5 times as large as memory.",
    );
    assert_eq!(target::memory_item("f", gib, 0).verdict, UNKNOWN);
}

#[test]
fn loops_without_direct_io_are_told() {
    let facts = |loop_is_direct| DiskFacts { loop_is_direct, ..DiskFacts::default() };
    assert_eq!(target::loop_item("f", "sda", &facts(None)), None);
    let item = target::loop_item("f", "loop0", &facts(Some(true))).expect("an item");
    check(&item, OK, Some(1.0), "/dev/loop0 passes direct I/O on to the file behind it.");
    let item = target::loop_item("f", "loop0", &facts(Some(false))).expect("an item");
    check(
        &item,
        BAD,
        Some(0.0),
        "Direct I/O to 'f' ends at /dev/loop0: the file behind it goes through the page cache \
         (losetup --direct-io=on changes that).",
    );
}

#[test]
fn busy_processors_are_told() {
    let seconds = Nanos::from_secs;
    let generator =
        |busiest, elapsed| processor::generator_item(busiest, elapsed, false).expect("an item");
    check(
        &generator(seconds(4), seconds(10)),
        OK,
        Some(0.4),
        "The busiest thread used 40 % of a processor.",
    );
    check(
        &generator(Nanos(9_900_000_000), seconds(10)),
        BAD,
        Some(0.99),
        "The busiest thread used 99 % of a processor: the generator, not the target, may set the \
         rate; add threads (-t, -F) to find out.",
    );
    // The counters are read around the measurement: no thread is busier than a processor.
    assert_eq!(generator(Nanos(101_000_000), Nanos(100_000_000)).value, Some(1.0));
    assert_eq!(processor::generator_item(seconds(1), Nanos(99_999_999), false), None);
    assert_eq!(processor::generator_item(seconds(0), seconds(0), false), None);
    // Who polls is busy, I/O or not.
    let polling = |busiest| processor::generator_item(busiest, seconds(10), true).expect("an item");
    assert_eq!(polling(seconds(4)).verdict, OK);
    let busy = polling(seconds(10));
    assert_eq!((busy.verdict, busy.value), (Plausibility::Unknown, Some(1.0)));
    assert!(busy.sentence.contains("(--poll)"), "{}", busy.sentence);

    let cpu = |user, kernel| CpuUsage {
        socket: 0,
        node: 0,
        group: 0,
        core: 0,
        class: 0,
        cpu: 0,
        user,
        kernel,
        idle: 100.0 - user - kernel,
    };
    assert_eq!(processor::saturation_item(&[]), None);
    let item = processor::saturation_item(&[cpu(50.0, 10.0), cpu(0.0, 0.0)]).expect("an item");
    check(&item, OK, Some(0.3), "All processors together were 30 % busy.");
    let item = processor::saturation_item(&[cpu(50.0, 48.0), cpu(0.0, 96.0)]).expect("an item");
    check(
        &item,
        BAD,
        Some(0.97),
        "All processors together were 97 % busy: they, not the target, may set the rate.",
    );
}

#[test]
fn work_that_others_did_or_took_is_told() {
    let spent = |io_wq| CpuSpent { process: Nanos(1000), io_wq: Nanos(io_wq) };
    check(
        &processor::io_wq_item(spent(0)),
        OK,
        Some(0.0),
        "Kernel workers (io-wq) took 0.0 % of the CPU time.",
    );
    check(
        &processor::io_wq_item(spent(740)),
        BAD,
        Some(0.74),
        "Kernel workers (io-wq) took 74 % of the CPU time: the file system or driver starts no I/O without \
         blocking, so requests were handed to kernel workers and latencies contain that.",
    );
    check(
        &processor::steal_item(0.01),
        OK,
        Some(0.01),
        "The hypervisor gave 1.0 % of the processors' time to others.",
    );
    assert_eq!(processor::steal_item(0.05).verdict, BAD);
}

#[test]
fn percentages_are_short() {
    for (share, text) in [
        (0.0, "0.0 %"),
        (0.0005, "less than 0.1 %"),
        (0.0234, "2.3 %"),
        (0.0994, "9.9 %"),
        (0.0996, "10 %"),
        (1.0, "100 %"),
    ] {
        assert_eq!(percent(share), text);
    }
}

#[test]
fn holes_and_written_places_of_a_file_are_seen() {
    let check_allocation = |file: &File, start, end, holes| {
        let got = allocation(file.as_fd(), start, end).expect("it can be told");
        assert_eq!(got, Allocation { bytes: end - start, holes, unwritten: 0 });
    };
    for file in [file(), tempfile::tempfile_in("/dev/shm").expect("a file in memory")] {
        file.set_len(16 << 20).expect("a length");
        check_allocation(&file, 0, 16 << 20, 16 << 20);
        file.write_all_at(&vec![1; 4 << 20], 4 << 20).expect("written");
        // Data that only the page cache holds is data.
        let waiting = allocation(file.as_fd(), 4 << 20, 8 << 20).expect("it can be told");
        assert_eq!((waiting.holes, waiting.unwritten), (0, 0));
        file.sync_all().expect("synced");
        check_allocation(&file, 0, 16 << 20, 12 << 20);
        check_allocation(&file, 4 << 20, 8 << 20, 0);
        check_allocation(&file, 6 << 20, 10 << 20, 2 << 20);
    }
    let null = File::open("/dev/null").expect("a device");
    assert_eq!(allocation(null.as_fd(), 0, 1 << 20), None);
}

#[test]
fn allocated_but_unwritten_places_are_seen() {
    let file = file();
    let flags = rustix::fs::FallocateFlags::empty();
    let found = rustix::fs::fallocate(&file, flags, 0, 8 << 20)
        .map(|()| allocation(file.as_fd(), 0, 8 << 20));
    match found {
        Ok(Some(Allocation { unwritten, .. })) if unwritten > 0 => assert_eq!(unwritten, 8 << 20),
        other => println!("skipped allocated_but_unwritten_places_are_seen: {other:?}"),
    }
}

#[test]
fn direct_reads_are_told_from_cached_ones() {
    let test = "direct_reads_are_told_from_cached_ones";
    let on_disk = file();
    on_disk.write_all_at(&vec![7; 1 << 20], 0).expect("written");
    on_disk.sync_all().expect("synced");
    match probe_direct(on_disk.as_fd(), 1 << 20) {
        DirectProbe::Direct => {}
        other => println!("skipped {test}: no direct I/O beside the sources: {other:?}"),
    }
    let in_memory = tempfile::tempfile_in("/dev/shm").expect("a file in memory");
    in_memory.write_all_at(&vec![7; 1 << 20], 0).expect("written");
    match probe_direct(in_memory.as_fd(), 1 << 20) {
        DirectProbe::Unknown(why) => println!("skipped {test}: tmpfs takes no O_DIRECT: {why}"),
        probe => assert_eq!(probe, DirectProbe::Cached),
    }
    assert!(matches!(probe_direct(in_memory.as_fd(), 100), DirectProbe::Unknown(_)));
}

#[test]
fn a_run_on_this_machine_is_observed() {
    let tree = SystemTree::default();
    let topology = Topology::read(&tree);
    let file = file();
    file.write_all_at(&vec![7; 1 << 20], 0).expect("written");
    let stack = plumb_io::block_stack::underlying(file.as_fd(), &tree).expect("its layers");
    let target = checked("here", &file, &stack);
    let items = before_run(&[target, target], 1 << 40, &tree);
    assert!(items.iter().any(|item| item.key == "direct_io"), "{items:?}");
    assert_eq!(items.iter().filter(|item| item.key == "unwritten_share").count(), 1, "{items:?}");

    let baseline = Baseline::read(&tree);
    let observed = baseline.elapse(&tree, &topology, Nanos::from_secs(1));
    assert_eq!(observed.cpus.len(), topology.processors.len());
    let moved = Traffic { read: 1 << 40, written: 0 };
    let issued = [Issued { moved, ..Issued::default() }, Issued::default()];
    let items = observed.items(&[target, target], &issued, false);
    let read: Vec<_> = items.iter().filter(|item| item.key == "device_read_ratio").collect();
    // A tebibyte cannot have been read meanwhile.
    assert!(read.len() == 1 && read[0].verdict != Plausibility::Ok, "{items:?}");
    for key in ["generator_cpu_share", "machine_cpu_share", "io_wq_cpu_share", "steal_share"] {
        assert_eq!(items.iter().filter(|item| item.key == key).count(), 1, "{key}");
    }
}

#[test]
fn direct_reads_reach_the_device() {
    let test = "direct_reads_reach_the_device";
    let tree = SystemTree::default();
    let topology = Topology::read(&tree);
    let file = file();
    let bytes = 8 << 20;
    file.write_all_at(&vec![7; 8 << 20], 0).expect("written");
    file.sync_all().expect("synced");
    let stack = plumb_io::block_stack::underlying(file.as_fd(), &tree).expect("its layers");
    let link = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let flags = rustix::fs::OFlags::RDONLY | rustix::fs::OFlags::DIRECT;
    let direct = rustix::fs::open(link, flags, rustix::fs::Mode::empty());
    let (Ok(direct), false) = (direct, stack.devices.is_empty()) else {
        println!("skipped {test}: no block device, or no direct I/O beside the sources");
        return;
    };
    let baseline = Baseline::read(&tree);
    let placement = plumb_sys::memory::BufferPlacement::System;
    let mut buffer = plumb_sys::memory::Block::new(bytes, placement).expect("memory");
    let read = rustix::io::pread(&direct, buffer.bytes_mut(), 0).expect("read");
    let observed = baseline.elapse(&tree, &topology, Nanos::from_millis(1));
    let moved = Traffic { read: plumb_units::convert::to_u64(read), written: 0 };
    let issued = [Issued { moved, ..Issued::default() }];
    let items = observed.items(&[checked("here", &file, &stack)], &issued, false);
    let seen = items.iter().find(|item| item.key == "device_read_ratio").expect("an item");
    // Others may read meanwhile, so there is no upper bound.
    assert!(seen.value.is_some_and(|share| share >= 0.99), "{seen:?}");
}

#[test]
fn what_an_io_took_of_the_processors_is_a_sentence() {
    let sentence =
        |spent, ios| processor::per_io_item(Nanos(spent), ios).expect("an item").sentence;
    assert!(sentence(1_500, 2).starts_with("Each I/O took 750 ns of CPU time"));
    assert!(sentence(5_125_000, 1000).starts_with("Each I/O took 5.12 µs of CPU time"));
    assert_eq!(processor::per_io_item(Nanos(7), 0), None);
}
