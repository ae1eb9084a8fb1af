//! Pools on files: made, started, changed, moved, damaged, destroyed.

use std::path::{Path, PathBuf};

use plumb_tier::pool::{
    self, Behind, DiskStanding, DiskWish, Facts, Findings, HealthStatus, PoolError, PoolWish,
    RegisteredPool, Registry, judge, look,
};
use plumb_tier::{Engine, MediaType, NewVirtualDisk, Request, RequestKind, StartError};
use plumb_units::Nanos;

use crate::disks::{MIB, vdisk};

struct Place {
    folder: tempfile::TempDir,
    registry: Registry,
}

impl Place {
    fn new() -> Self {
        let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
        let registry = Registry::at(folder.path().join("pools"));
        Self { folder, registry }
    }

    fn disk(&self, nth: u32) -> PathBuf {
        let path = self.folder.path().join(format!("disk{nth}.img"));
        if !path.exists() {
            std::fs::File::create(&path).expect("made").set_len(96 * MIB).expect("sparse");
        }
        path
    }

    fn make(&self, disks: u32) -> RegisteredPool {
        let disks = (0..disks).map(|nth| wish(&self.disk(nth))).collect();
        let wish = PoolWish { name: "p".to_owned(), disks, slab_bytes: None, emulated: Vec::new() };
        pool::make(&self.registry, &wish).expect("files of nothing but holes are taken")
    }

    fn pool(&self) -> RegisteredPool {
        self.registry.find("p").expect("it was made")
    }

    fn add(&self, wanted: &NewVirtualDisk) {
        let started = pool::open(&self.pool(), Vec::new(), (1, 4096)).expect("it starts");
        started.engine.add_virtual_disk(wanted).expect("it fits");
    }
}

fn wish(path: &Path) -> DiskWish {
    DiskWish { path: path.to_owned(), media: None, destroy: false }
}

/// Performs one request on client 0.
fn perform(engine: &mut Engine<pool::DeviceQueue>, request: Request) -> Result<(), i32> {
    engine.submit(0, request);
    for nth in 0..100_000_u64 {
        engine.poll(Nanos(nth * 1_000_000), Nanos::from_millis(5));
        if let Some((_, outcome)) = engine.pop() {
            return outcome.map_err(|errno| errno.0);
        }
    }
    panic!("{request:?} never ends");
}

fn write(engine: &mut Engine<pool::DeviceQueue>, vdisk: u32, block: u64, byte: u8) {
    engine.buffer_mut(0).fill(byte);
    let kind = RequestKind::Write { fua: true };
    perform(engine, Request { kind, vdisk, offset: block * 4096, len: 4096 }).expect("written");
}

fn read(engine: &mut Engine<pool::DeviceQueue>, vdisk: u32, block: u64) -> Result<u8, i32> {
    engine.buffer_mut(0).fill(0xee);
    let kind = RequestKind::Read;
    perform(engine, Request { kind, vdisk, offset: block * 4096, len: 4096 })?;
    let bytes = engine.buffer_mut(0);
    assert!(bytes.iter().all(|byte| *byte == bytes[0]), "a block is whole");
    Ok(bytes[0])
}

/// The number of a virtual disk.
fn number(engine: &Engine<pool::DeviceQueue>, name: &str) -> u32 {
    let vdisks = (0..).zip(&engine.config().vdisks);
    vdisks.into_iter().find(|own| own.1.name == name).expect("it is there").0
}

fn start(place: &Place) -> Engine<pool::DeviceQueue> {
    pool::open(&place.pool(), Vec::new(), (1, 4096)).expect("it starts").engine
}

#[test]
fn what_is_written_is_there_after_a_clean_end_and_after_none() {
    let place = Place::new();
    place.make(2);
    place.add(&vdisk("v", 2, 16 * MIB));
    let mut engine = start(&place);
    for block in 0..8 {
        write(&mut engine, 0, block * 300, 7);
    }
    engine.shut_down().expect("a clean end");
    let mut engine = start(&place);
    for block in 0..8 {
        assert_eq!(read(&mut engine, 0, block * 300), Ok(7));
        assert_eq!(read(&mut engine, 0, block * 300 + 1), Ok(0), "never written");
    }
    write(&mut engine, 0, 0, 9);
    drop(engine);
    let mut engine = start(&place);
    assert_eq!(read(&mut engine, 0, 0), Ok(9), "FUA survives an engine that ends without a word");
    assert_eq!(read(&mut engine, 0, 300), Ok(7));
}

#[test]
fn a_pool_in_use_is_refused_and_names_its_user() {
    let place = Place::new();
    place.make(2);
    let first = start(&place);
    let second = pool::open(&place.pool(), Vec::new(), (1, 4096)).expect_err("it is in use");
    assert!(second.to_string().contains("this program has it open"), "{second}");
    // A look needs no lock.
    assert_eq!(look(None, &place.pool().disks).expect("it can be looked at").voters(), (2, 2));
    drop(first);
    start(&place);
}

#[test]
fn virtual_disks_come_and_go() {
    let place = Place::new();
    place.make(2);
    for name in ["a", "b", "c"] {
        place.add(&vdisk(name, 2, 16 * MIB));
    }
    let mut engine = start(&place);
    let [a, b, c] = ["a", "b", "c"].map(|name| number(&engine, name));
    for (vdisk, byte) in [(a, 10), (b, 11), (c, 12)] {
        write(&mut engine, vdisk, 5, byte);
    }
    engine.shut_down().expect("a clean end");
    start(&place).remove_virtual_disk("b").expect("it goes");
    assert!(start(&place).remove_virtual_disk("b").is_err(), "it is gone");
    let mut engine = start(&place);
    assert_eq!(read(&mut engine, a, 5), Ok(10));
    assert_eq!(read(&mut engine, c, 5), Ok(12));
    assert_eq!(read(&mut engine, b, 5), Err(22), "nothing can be read of it");
    engine.shut_down().expect("a clean end");
    // Its slabs and extents are used again, and show nothing of it.
    place.add(&vdisk("d", 2, 16 * MIB));
    let mut engine = start(&place);
    let d = number(&engine, "d");
    let first = |nth: u32| engine.config().vdisks[usize::try_from(nth).expect("few")].first_extent;
    assert_eq!(
        (first(a), first(d), first(c)),
        (0, 16, 32),
        "in the place of the one that was removed"
    );
    assert_eq!(read(&mut engine, d, 5), Ok(0));
    write(&mut engine, d, 5, 20);
    assert_eq!(read(&mut engine, d, 5), Ok(20));
    assert_eq!(read(&mut engine, c, 5), Ok(12));
    engine.shut_down().expect("a clean end");
    let twice = start(&place).add_virtual_disk(&vdisk("a", 2, MIB)).expect_err("it exists");
    assert!(twice.to_string().contains("named a already"), "{twice}");
    let much = start(&place).add_virtual_disk(&vdisk("z", 2, 1 << 30)).expect_err("no room");
    assert!(much.to_string().contains("free slab"), "{much}");
}

/// A pool that holds nothing takes what a new one takes, however many virtual disks it has had and whoever died meanwhile.
#[test]
fn fifty_rounds_of_virtual_disks_leave_room_for_one_of_full_size() {
    let place = Place::new();
    for nth in 0..2 {
        let file = std::fs::File::create(place.disk(nth)).expect("made");
        file.set_len(1 << 30).expect("sparse");
    }
    place.make(2);
    let full = vdisk("full", 1, 2 * 61 * 16 * MIB);
    place.add(&full);
    start(&place).remove_virtual_disk("full").expect("it goes");
    let mut there: Vec<String> = Vec::new();
    for round in 0..50_u64 {
        // Of one copy and of two, of 16 to 272 MiB, and up to four at a time.
        for nth in 0..1 + round % 3 {
            let slabs = 1 + (round * 13 + nth * 7) % 17;
            let copies = if nth == 1 { 2 } else { 1 };
            let name = format!("v{round}-{nth}");
            place.add(&vdisk(&name, copies, slabs * 16 * MIB));
            there.push(name);
        }
        let mut engine = start(&place);
        let mark = u8::try_from(round + 1).expect("few");
        let config = engine.config().clone();
        for (nth, own) in (0_u32..).zip(&config.vdisks).filter(|own| !own.1.is_removed()) {
            let last = u64::from(own.extents) * 256 - 1;
            let before = if own.name.starts_with(&format!("v{round}-")) { 0 } else { mark - 1 };
            assert_eq!(read(&mut engine, nth, 0), Ok(before), "nothing of others");
            write(&mut engine, nth, 0, mark);
            write(&mut engine, nth, last, mark + 1);
        }
        if round % 7 == 3 {
            drop(engine);
            engine = start(&place);
            assert_eq!(engine.config().vdisks, config.vdisks);
        }
        for (nth, own) in (0_u32..).zip(&config.vdisks).filter(|own| !own.1.is_removed()) {
            assert_eq!(read(&mut engine, nth, 0), Ok(mark), "{}", own.name);
            assert_eq!(read(&mut engine, nth, u64::from(own.extents) * 256 - 1), Ok(mark + 1));
        }
        engine.shut_down().expect("a clean end");
        let first = usize::try_from(round).expect("few") % there.len();
        there.rotate_left(first);
        for name in there.split_off(1) {
            start(&place).remove_virtual_disk(&name).expect("it goes");
        }
    }
    start(&place).remove_virtual_disk(&there[0]).expect("it goes");
    place.add(&full);
    let engine = start(&place);
    assert_eq!(engine.config().vdisks[0].extents, 2 * 61 * 16);
    engine.shut_down().expect("a clean end");
}

/// RES-7: there is a third copy of journal and tree before anything is written to a virtual disk of three copies, and only then.
#[test]
fn journal_and_tree_have_as_many_copies_as_a_new_virtual_disk() {
    let place = Place::new();
    let media = |nth| Some(if nth < 2 { MediaType::Ssd } else { MediaType::Hdd });
    let disks =
        (0..5).map(|nth| DiskWish { media: media(nth), ..wish(&place.disk(nth)) }).collect();
    let wish = PoolWish { name: "p".to_owned(), disks, slab_bytes: None, emulated: Vec::new() };
    pool::make(&place.registry, &wish).expect("files of nothing but holes are taken");
    let holders = || -> Vec<bool> {
        let found = look(None, &place.pool().disks).expect("it can be looked at");
        found.config.disks.iter().map(|disk| disk.metadata).collect()
    };
    assert_eq!(holders(), [true, true, false, false, false]);
    for (name, copies) in [("two", 2), ("three", 3)] {
        place.add(&NewVirtualDisk { tier_bytes: [0, 8 * MIB], ..vdisk(name, copies, 8 * MIB) });
        assert_eq!(holders(), [true, true, copies > 2, false, false], "{name}");
    }
}

#[test]
fn a_disk_that_is_added_gets_slabs_and_metadata() {
    let place = Place::new();
    place.make(1);
    assert!(start(&place).add_virtual_disk(&vdisk("v", 2, MIB)).is_err(), "one disk, two copies");
    for nth in [1, 2] {
        let (pool, disk) = (place.pool(), wish(&place.disk(nth)));
        pool::add_disk(&place.registry, &pool, &disk).expect("it is taken");
    }
    let found = look(None, &place.pool().disks).expect("it can be looked at");
    assert_eq!((found.voters(), found.disks.len()), ((3, 3), 3));
    assert!(found.config.disks.iter().all(|disk| disk.metadata), "three copies of the journal");
    place.add(&vdisk("v", 3, 16 * MIB));
    let mut engine = start(&place);
    write(&mut engine, 0, 1, 3);
    engine.shut_down().expect("a clean end");
    // The first disk can go: all that it had is on the others.
    std::fs::remove_file(place.disk(0)).expect("pulled");
    assert_eq!(read(&mut start(&place), 0, 1), Ok(3));
}

#[test]
fn a_disk_that_was_pulled_comes_back_and_is_brought_up_to_date() {
    let place = Place::new();
    place.make(3);
    place.add(&vdisk("v", 3, 16 * MIB));
    let mut engine = start(&place);
    (0..40).for_each(|block| write(&mut engine, 0, block * 16, 1));
    engine.shut_down().expect("a clean end");
    let away = place.folder.path().join("away");
    std::fs::rename(place.disk(1), &away).expect("pulled");
    let look_now = || look(None, &place.pool().disks).expect("two are here");
    assert_eq!(look_now().disks[1].standing, DiskStanding::Away);
    assert_eq!(
        judge(&Facts::of(&look_now(), &Findings::default(), Some(&Behind::default()))).vdisks[0]
            .operational,
        "Incomplete"
    );
    let mut engine = start(&place);
    (0..20).for_each(|block| write(&mut engine, 0, block * 16, 2));
    engine.shut_down().expect("a clean end");
    assert_eq!(look_now().disks[1].standing, DiskStanding::Missing);
    let health = judge(&Facts::of(&look_now(), &Findings::default(), Some(&Behind::default())));
    assert_eq!(health.vdisks[0].operational, "Degraded");
    assert_eq!((health.worst(), health.pool.operational), (HealthStatus::Warning, "Degraded"));
    std::fs::rename(&away, place.folder.path().join("disk1.img")).expect("put back");
    assert_eq!(look_now().disks[1].standing, DiskStanding::Returning);
    let mut engine = start(&place);
    let mut now = 0;
    while engine.stale_places() > 0 || !engine.is_quiet() || !engine.returning().is_empty() {
        now += 2_000_000;
        assert!(now < 60_000_000_000, "it is never up to date");
        engine.poll(Nanos(now), Nanos::from_millis(5));
    }
    assert!(engine.counters().resynced > 0);
    engine.shut_down().expect("a clean end");
    // It alone can serve now, beside one voter.
    std::fs::rename(place.disk(0), &away).expect("pulled");
    assert_eq!(
        judge(&Facts::of(&look_now(), &Findings::default(), Some(&Behind::default()))).vdisks[0]
            .operational,
        "Incomplete"
    );
    let mut engine = start(&place);
    for block in 0..40 {
        assert_eq!(read(&mut engine, 0, block * 16), Ok(if block < 20 { 2 } else { 1 }));
    }
}

#[test]
fn disks_are_refused_by_what_they_hold() {
    let place = Place::new();
    let pool = place.make(1);
    let says = |error: PoolError| {
        use miette::Diagnostic;
        format!("{error}\n{}", error.help().map(|help| help.to_string()).unwrap_or_default())
    };
    let other = |disks: Vec<DiskWish>| {
        let wish = PoolWish { name: "q".to_owned(), disks, slab_bytes: None, emulated: Vec::new() };
        pool::make(&place.registry, &wish).map_err(says)
    };
    let member = other(vec![wish(&place.disk(0))]).expect_err("it is another pool's");
    assert!(member.contains("In a Pool") && member.contains("--destroy"), "{member}");
    let data = place.folder.path().join("data");
    std::fs::write(&data, vec![1; 96 << 20]).expect("written");
    let refused = other(vec![wish(&data)]).expect_err("it holds data");
    let exact = format!("--destroy {}", data.display());
    assert!(refused.contains("holds data") && refused.ends_with(&exact), "{refused}");
    let small = place.folder.path().join("small");
    std::fs::File::create(&small).expect("made").set_len(8 * MIB).expect("sparse");
    let refused = other(vec![wish(&small)]).expect_err("too small");
    assert!(refused.contains("Insufficient Capacity"), "{refused}");
    let twice = other(vec![wish(&place.disk(1)), wish(&place.disk(1))]).expect_err("twice");
    assert!(twice.contains("named twice"), "{twice}");
    let gone = other(vec![wish(&place.folder.path().join("none"))]).expect_err("not there");
    assert!(gone.contains("cannot open disk"), "{gone}");
    let held = start(&place);
    let destroyed = DiskWish { destroy: true, ..wish(&place.disk(0)) };
    let refused = other(vec![destroyed.clone()]).expect_err("no word opens a disk in use");
    assert!(refused.contains("in use"), "{refused}");
    drop(held);
    other(vec![DiskWish { destroy: true, ..wish(&data) }]).expect("the user's word");
    assert!(
        pool::make(
            &place.registry,
            &PoolWish {
                name: "p".to_owned(),
                disks: Vec::new(),
                slab_bytes: None,
                emulated: Vec::new()
            }
        )
        .is_err_and(|error| error.to_string().contains("already"))
    );
    drop(pool);
}

#[test]
fn a_pool_is_destroyed_only_by_the_users_word() {
    let place = Place::new();
    let pool = place.make(2);
    place.add(&vdisk("v", 2, MIB));
    let refused =
        pool::destroy(&place.registry, &pool, false).expect_err("it holds a virtual disk");
    assert!(refused.to_string().contains("1 virtual disks: v"), "{refused}");
    assert_eq!(
        pool::destroy(&place.registry, &pool, true).expect("it goes"),
        Vec::<PathBuf>::new()
    );
    assert!(place.registry.find("p").is_err());
    assert!(look(None, &pool.disks).is_err(), "nothing is left on its disks");
}

#[test]
fn wrong_disks_are_never_written_to() {
    let place = Place::new();
    let first = place.make(2);
    place.add(&vdisk("v", 2, 16 * MIB));
    // One is cut short, another one is somebody else's: LAY-8.
    let disk = std::fs::OpenOptions::new().write(true).open(place.disk(1)).expect("it is there");
    disk.set_len(95 * MIB).expect("cut");
    let found = look(None, &first.disks).expect("it can be looked at");
    assert_eq!(found.disks[1].standing, DiskStanding::TooSmall);
    assert_eq!(
        judge(&Facts::of(&found, &Findings::default(), Some(&Behind::default()))).disks[1]
            .operational,
        "Not Usable"
    );
    let before = std::fs::read(place.disk(1)).expect("read");
    let refused = pool::open(&first, Vec::new(), (1, 4096)).expect_err("one of two voters");
    assert!(refused.to_string().contains("1 of 2 voting disks"), "{refused}");
    assert!(before == std::fs::read(place.disk(1)).expect("read"), "it was written to");
    disk.set_len(96 * MIB).expect("restored");
    // Its copy, named beside it.
    let copy = place.folder.path().join("copy");
    std::fs::copy(place.disk(0), &copy).expect("copied");
    let mut both = first.clone();
    both.disks.push(copy);
    let found = look(None, &both.disks).expect("it can be looked at");
    let health = judge(&Facts::of(&found, &Findings::default(), Some(&Behind::default())));
    assert_eq!(health.pool.operational, "Read-only (Starting)", "{health:?}");
    let refused = pool::open(&both, Vec::new(), (1, 4096)).expect_err("two say that they are one");
    assert!(refused.to_string().contains("two devices"), "{refused}");
    // Of another pool.
    let other = PoolWish {
        name: "q".to_owned(),
        disks: vec![wish(&place.disk(7))],
        slab_bytes: None,
        emulated: Vec::new(),
    };
    let other = pool::make(&place.registry, &other).expect("made");
    let mut mixed = first;
    mixed.disks.extend(other.disks);
    let started = pool::open(&mixed, Vec::new(), (1, 4096)).expect("its own two are enough");
    assert_eq!(started.absent.len(), 1);
    assert!(started.absent[0].1.contains("belongs to pool"), "{:?}", started.absent);
}

#[test]
fn two_tiers_and_a_cache_come_and_go() {
    use plumb_tier::MediaType::{Hdd, Ssd};
    let place = Place::new();
    let of = |nth, media| DiskWish { media: Some(media), ..wish(&place.disk(nth)) };
    let disks = vec![of(0, Ssd), of(1, Ssd), of(2, Hdd), of(3, Hdd)];
    let wished = PoolWish { name: "p".to_owned(), disks, slab_bytes: None, emulated: Vec::new() };
    pool::make(&place.registry, &wished).expect("made");
    let both = |name: &str| NewVirtualDisk {
        tier_bytes: [16 * MIB, 16 * MIB],
        cache_bytes: MIB,
        ..vdisk(name, 2, 0)
    };
    place.add(&both("a"));
    place.add(&both("b"));
    for round in 0..3_u8 {
        let mut engine = start(&place);
        let extents = u64::from(engine.config().vdisks[0].extents);
        // One block per extent: the last ones lie on rotating disks, and go through the log.
        let b = number(&engine, "b");
        for vdisk in [0, b] {
            (0..extents).for_each(|nth| write(&mut engine, vdisk, nth * 256, 1 + round));
        }
        if round % 2 == 0 {
            engine.shut_down().expect("a clean end");
        } else {
            drop(engine);
        }
        let mut engine = start(&place);
        for nth in 0..extents {
            assert_eq!(read(&mut engine, b, nth * 256), Ok(1 + round));
        }
        engine.remove_virtual_disk("a").expect("it goes");
        place.add(&both("a"));
        let mut engine = start(&place);
        assert_eq!(engine.config().vdisks[0].name, "a", "in its old place");
        for nth in 0..extents {
            assert_eq!(read(&mut engine, 0, nth * 256), Ok(0), "nothing of the old one");
            assert_eq!(read(&mut engine, b, nth * 256), Ok(1 + round));
        }
        engine.shut_down().expect("a clean end");
    }
}

/// A pool whose disks are files takes the time of the models that it was made with, and no other time.
#[test]
fn disks_that_are_emulated_take_their_time() {
    let place = Place::new();
    let disks = |from: u32| (from..from + 2).map(|nth| wish(&place.disk(nth))).collect();
    let models = vec![pool::Emulated::Sas10k300];
    let mut wished =
        PoolWish { name: "p".to_owned(), disks: disks(0), slab_bytes: None, emulated: models };
    for disk in &mut wished.disks {
        disk.media = Some(plumb_tier::MediaType::Hdd);
    }
    pool::make(&place.registry, &wished).expect("files are taken");
    place.add(&NewVirtualDisk { tier_bytes: [0, 16 * MIB], ..vdisk("v", 2, 0) });
    let took = |emulated: Vec<pool::Emulated>| {
        let found = RegisteredPool { emulated, ..place.pool() };
        let mut open = pool::open(&found, Vec::new(), (1, 4096)).expect("it starts");
        write(&mut open.engine, 0, 0, 1);
        let began = std::time::Instant::now();
        for block in 1..11 {
            write(&mut open.engine, 0, block * 300, 1);
        }
        let (took, engine) = (began.elapsed(), open.engine.facts().engine);
        open.end().expect("it ends");
        (took, engine)
    };
    // A durable write is two I/Os one after the other at least, of half a turn of 6 ms each on average.
    let (slow, engine) = took(place.pool().emulated);
    assert!(slow.as_millis() >= 40 && engine.starts_with("emulated+"), "{slow:?} on {engine}");
    let (_, engine) = took(Vec::new());
    assert!(!engine.contains("emulated"), "{engine}");
}

/// Whoever only reads needs no quorum; whoever would write is refused, and no byte of the disks changes (LAY-3).
/// Sets a feature word in all superblock copies of a disk: the one that who reads must know, or the one for who writes.
fn set_feature(path: &Path, at: usize, word: u32) {
    use std::os::unix::fs::FileExt;
    let file = std::fs::File::options().read(true).write(true).open(path).expect("a disk");
    let mut bytes = vec![0; 4096];
    file.read_exact_at(&mut bytes, 64 << 10).expect("a superblock");
    let magic = bytes[..8].to_vec();
    let mut copies = 0;
    for offset in (0..96 * MIB).step_by(4096) {
        file.read_exact_at(&mut bytes, offset).expect("it is there");
        if bytes[..8] != magic[..] {
            continue;
        }
        bytes[at..at + 4].copy_from_slice(&word.to_le_bytes());
        let seed = plumb_sys::crc32c::checksum(&bytes[24..40]);
        let crc = plumb_sys::crc32c::append(seed, &bytes[..4092]);
        bytes[4092..].copy_from_slice(&crc.to_le_bytes());
        file.write_all_at(&bytes, offset).expect("written");
        copies += 1;
    }
    assert_eq!(copies, 4);
}

/// LAY-5: a feature that only who writes has to know lets others read.
#[test]
fn features_that_this_version_does_not_know_refuse_writes_or_all() {
    const INCOMPAT: usize = 12;
    const RO_COMPAT: usize = 16;
    let place = Place::new();
    place.make(2);
    place.add(&vdisk("v", 2, 16 * MIB));
    let mut engine = start(&place);
    write(&mut engine, 0, 5, 7);
    engine.shut_down().expect("a clean end");
    set_feature(&place.disk(1), RO_COMPAT, 4);
    let before = std::fs::read(place.disk(0)).expect("it can be read");
    let refused = pool::open(&place.pool(), Vec::new(), (1, 4096)).expect_err("it would write");
    let feature = StartError::FeatureToWrite { ordinal: 1, word: 4 };
    assert!(matches!(&refused, PoolError::Start(why) if *why == feature), "{refused}");
    let found = look(None, &place.pool().disks).expect("it is read");
    let health = judge(&Facts::of(&found, &Findings::default(), Some(&Behind::default())));
    assert_eq!(
        (health.pool.status, health.pool.operational),
        (HealthStatus::Unhealthy, "Read-only (Starting)")
    );
    let mut open = pool::open_to_read(&place.pool(), (1, 4096)).expect("to read it does");
    assert!(matches!(&open.unchanging, Some(PoolError::Start(why)) if *why == feature));
    assert_eq!(read(&mut open.engine, 0, 5), Ok(7));
    let request =
        Request { kind: RequestKind::Write { fua: false }, vdisk: 0, offset: 0, len: 4096 };
    assert_eq!(perform(&mut open.engine, request), Err(30));
    open.end().expect("it ends");
    assert!(std::fs::read(place.disk(0)).expect("it can be read") == before, "it was written to");
    // What who reads must know, too.
    set_feature(&place.disk(1), INCOMPAT, 2);
    let refused = pool::open_to_read(&place.pool(), (1, 4096)).expect_err("nobody can tell");
    let feature = StartError::Feature { ordinal: 1, word: 2 };
    assert!(matches!(&refused, PoolError::Start(why) if *why == feature), "{refused}");
    [INCOMPAT, RO_COMPAT].iter().for_each(|at| set_feature(&place.disk(1), *at, 0));
    let mut engine = start(&place);
    assert_eq!(read(&mut engine, 0, 5), Ok(7));
}

#[test]
fn a_pool_without_a_quorum_is_read_and_stays_as_it_is() {
    let place = Place::new();
    place.make(2);
    place.add(&vdisk("v", 2, 16 * MIB));
    let mut open = pool::open(&place.pool(), Vec::new(), (1, 4096)).expect("it starts");
    for block in 0..8 {
        write(&mut open.engine, 0, block * 100, 1 + u8::try_from(block).expect("few"));
    }
    // Not ended: what is left to settle is settled in memory.
    drop(open);
    std::fs::rename(place.disk(1), place.folder.path().join("away")).expect("it moves");
    let alone = || std::fs::read(place.disk(0)).expect("it can be read");
    let before = alone();
    let refused = pool::open(&place.pool(), Vec::new(), (1, 4096)).expect_err("one of two");
    assert!(refused.to_string().contains("1 of 2 voting disks"), "{refused}");
    let found = look(None, &place.pool().disks).expect("one is here");
    let health = judge(&Facts::of(&found, &Findings::default(), Some(&Behind::default())));
    assert_eq!(health.pool.operational, "Read-only (Incomplete)");
    assert!(health.pool.status >= HealthStatus::Unhealthy, "{health:?}");
    let mut open = pool::open_to_read(&place.pool(), (1, 4096)).expect("to read it does");
    assert!(open.engine.is_unchanging());
    for block in 0..8 {
        let found = read(&mut open.engine, 0, block * 100);
        assert_eq!(found, Ok(1 + u8::try_from(block).expect("few")));
    }
    let rofs = Err(30);
    for kind in [
        RequestKind::Write { fua: false },
        RequestKind::Write { fua: true },
        RequestKind::Discard,
        RequestKind::WriteZeroes,
    ] {
        let request = Request { kind, vdisk: 0, offset: 0, len: 4096 };
        assert_eq!(perform(&mut open.engine, request), rofs, "{kind:?}");
    }
    assert_eq!(read(&mut open.engine, 0, 0), Ok(1), "a refused write changes nothing");
    open.end().expect("it ends");
    assert!(alone() == before, "the disk was written to");
    // With all of them it goes on as if nothing had been.
    std::fs::rename(place.folder.path().join("away"), place.disk(1)).expect("it moves back");
    let mut open = pool::open_to_read(&place.pool(), (1, 4096)).expect("it starts");
    assert!(!open.engine.is_unchanging());
    write(&mut open.engine, 0, 0, 99);
    assert_eq!(read(&mut open.engine, 0, 0), Ok(99));
    open.end().expect("it ends");
}
