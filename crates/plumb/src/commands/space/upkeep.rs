//! `plumb space status|scan|job|clear|repair`: health, and work that a pool has to be started for.

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::atomic::Ordering;

use clap::{Arg, ArgAction, ArgMatches, Command, ValueHint, value_parser};
use plumb_tier::pool::{self, OpenPool, PoolError, RegisteredPool, ScanError, Scanned};
use plumb_tier::{ChangeError, Counters, Event, JobKind, JobState, StartError, Wait};
use plumb_units::Bytes;
use serde_json::json;

use super::jobs::{self, LISTED};
use super::older::{WrongWord, not_older};
use super::optimize::signalled;
use super::report::{self, Reply};

/// For clap.
pub(super) fn commands() -> [Command; 7] {
    let switch = |name: &'static str, about: &'static str| {
        let disk = Arg::new("disk").value_name("DISK").required(true);
        let disk = disk.value_parser(value_parser!(PathBuf)).value_hint(ValueHint::AnyPath);
        Command::new(name).about(about).args([
            report::pool_argument(),
            disk.help("Which: where it is, or its name in the pool"),
            report::json_option(),
        ])
    };
    let wait = Arg::new("wait")
        .long("wait")
        .action(ArgAction::SetTrue)
        .help("Do the work and end when it is done");
    [
        Command::new("status")
            .about("Tell the health of a pool; starts and changes nothing")
            .args([report::pool_argument(), report::json_option()])
            .after_help("Exit status: 0 Healthy, 1 Warning, 2 Unhealthy, 3 Unknown, also of a pool that there is not and for a \
                 wrong command line."),
        Command::new("scan")
            .about("Read and verify every copy of every block and of metadata, and heal what can be healed")
            .args([
                report::pool_argument(),
                Arg::new("accept-unverified").long("accept-unverified").action(ArgAction::SetTrue).help(
                    "Where checksums are lost on all disks: take what lies there for what should; of copies that \
                     differ, what most of them hold",
                ),
                report::json_option(),
            ])
            .after_help(
                "Reads of blocks whose checksums are lost fail until these are written or accepted: what was never \
                 written cannot be told from the rest, and such a block may hold what somebody else deleted. A scan \
                 lists them first; check what is on the virtual disk after you have accepted them.\n\n\
                 A pool that a load has is scanned by that load's program, beside its requests; what these read is \
                 counted with it.\n\n\
                 Damaged copies of metadata are written anew from what is known: map and checksums by a checkpoint, the \
                 configuration as a new generation, superblocks where they lie. The journal is not read: each checkpoint \
                 begins it anew.\n\n\
                 Exit status: 0 when every block has a good copy here; 2 when one has none, cannot be judged, or cannot be read \
                 while disks are away, when a copy of metadata stays damaged, when a virtual disk serves nothing as its log cannot be read, and of a wrong command line; 1 when the scan could not be made, or not to its end; 5 when a signal ended it, and what it had read is well; 3 when another program has the pool \
                 that does not scan for others.",
            ),
        Command::new("job")
            .about("Show work that waits: disks to bring up to date, to rebuild, to empty")
            .args([report::pool_argument(), wait, report::json_option()])
            .after_help(format!(
                "{}\n\nOf a pool that a load or another command has, that program is asked; under load the same work goes on beside the \
                 requests, and --wait waits until nothing of it goes on any more.\n\n\
                 Exit status with --wait: 0 when nothing is left, 5 when something waits for a disk or for room, or a signal ended it; 3 when a program \
                 has the pool that does not answer.",
                report::STARTS
            )),
        switch("offline", "Have a pool that is in use do without a disk for now")
            .after_help(
                "What was written meanwhile is copied when it is back: plumb space online. A disk that holds the last copy of \
                 something, or the only journal here, stays.\n\n\
                 Exit status: 0 when the program that has the pool goes on without it; 3 when the disk is needed, no program has \
                 the pool, or that program does not answer.",
            ),
        switch("online", "Have a pool that is in use take back a disk that was offline or lost"),
        switch("clear", "Tell no more that a disk failed before, or that blocks of it were healed")
            .after_help(
                "A disk that fails and holds the last copy of something stays in its pool for that, and is told as one to be \
                 replaced from then on, also when it works again. Once you know why it failed, and that it is well, this \
                 forgets what was noted of it, the blocks that had to be healed included; another failure is told anew.\n\n\
                 Exit status: 0 when it is forgotten, 5 when the program that has the pool did not do so within seconds.",
            ),
        Command::new("repair")
            .about("Bring everything up to date, and make anew what lost disks held")
            .args([
                report::pool_argument(),
                Arg::new("give-up-missing")
                    .long("give-up-missing")
                    .action(ArgAction::SetTrue)
                    .help("Do not wait for disks that are missing: make anew on others what they held"),
                Arg::new("without-quorum").long("without-quorum").value_name("POOL").help(
                    "The pool's name again: start it although half of its voting disks or more are not here. What \
                     they took since these were last with them is lost",
                ),
                Arg::new("accept-older").long("accept-older").action(ArgAction::SetTrue).requires("without-quorum").help(
                    "With --without-quorum: also where the disks that are here are older than the pool was, or nobody \
                     knows. Blocks that were written since are lost: they read as zeros, or as what they held before",
                ),
                Arg::new("unread-end").long("unread-end").value_name("POOL").conflicts_with("without-quorum").help(
                    "The pool's name again: what no copy of its journal, or of a write cache's log, gives at its end was \
                     being written when the power went, and was not durable",
                ),
                Arg::new("without-cache").long("without-cache").value_name("POOL/VDISK").help(
                    "A virtual disk that is detached because no copy of its write cache's log is here: give that cache \
                     up. What only the log held is lost, and what the tiers hold may be older in any block",
                ),
                report::json_option(),
            ])
            .after_help(
                "For example:\n  plumb space repair tank --give-up-missing\n\n\
                 --without-quorum is for disks that are lost for good. The disks that are here are all that vote from \
                 then on. If the others come back and only waited, they are brought up to date; if they went on \
                 without these, nothing of them is taken, and the pool says that it is split. Where this machine saw the \
                 pool go on without the disks that are here, because they failed or were away, or never used it, a \
                 second word is asked for: --accept-older. What is lost then is not only what the others took last: \
                 the map is as old as these disks, and what was written since reads as zeros, also where a disk that is \
                 here holds it.\n\n\
                 --unread-end is for a power cut that left the sectors that were being written unreadable on all copies: \
                 nothing that was durable lay there. Where later rounds were written behind them, something did, and the \
                 pool is refused as before. A sector that went bad by itself within the last round looks the same, and \
                 what it held is given up then: with all disks here and no power cut, find out first why it cannot be read. A part of the journal that can be \
                 read, was durable and is damaged on all copies is given up with all that was promised since.\n\n\
                 --without-cache is for a log that is lost for good. Nobody can tell which blocks had newer data in it: \
                 check what is on the virtual disk, or restore it. It has no write cache from then on, and a log that \
                 comes back is not read.\n\n\
                 Exit status: 0 when nothing is left, 5 when something waits for a disk or for room, or a signal ended it.",
            ),
    ]
}

/// Starts a pool by an operator's word where it has no quorum.
fn open_by_word(pool: &RegisteredPool, accept_older: bool) -> Result<OpenPool, report::Failure> {
    let registry = report::registry();
    match open(pool) {
        Err(PoolError::Start(StartError::NoQuorum { .. } | StartError::Outdated { .. })) => {}
        other => return Ok(other?),
    }
    if !accept_older {
        not_older(pool)?;
    }
    let opened = pool::open_by_word(pool, (1, 4096));
    Ok(pool::note_start(&registry, pool, opened)?.chronicled(&registry))
}

/// Starts a pool by an operator's word on what cannot be read at the end of its journal or logs.
fn open_to_unread_end(pool: &RegisteredPool) -> Result<OpenPool, report::Failure> {
    let registry = report::registry();
    let opened = pool::open_to_unread_end(pool, (1, 4096));
    Ok(pool::note_start(&registry, pool, opened)?.chronicled(&registry))
}

fn find(matches: &ArgMatches) -> Result<RegisteredPool, report::Failure> {
    Ok(report::registry().find(&report::text(matches, "pool"))?)
}

/// `status`.
pub(super) fn status(matches: &ArgMatches) -> report::Outcome {
    let mut found = find(matches)?;
    // A pool of which nothing can be read has no health that could be told.
    let patience = std::time::Duration::from_secs(found.settings.time_out_s);
    let look = match pool::look_within(Some(found.id), &found.disks, Some(patience)) {
        Ok(look) => look,
        // What this program lacks says nothing of a pool.
        Err(error @ (PoolError::Files { .. } | PoolError::CannotLook { .. })) => {
            return Err(error.into());
        }
        Err(error) => {
            let status = pool::HealthStatus::Unknown;
            let text = format!("pool {}: {}: {error}\n", found.name, status.name());
            let json = json!({
                "name": found.name,
                "health": status.name(),
                "cause": error.to_string(),
                "action": "connect its disks",
            });
            return Ok(Reply { json, text, status: status.exit_status() });
        }
    };
    // Nobody asks them again.
    found.disks.retain(|path| !look.silent.contains(path));
    let health = pool::health(&report::registry(), &found, &look);
    let mut reply = report::describe(&look, &health);
    let store = pool::TieringStore::of(&report::registry(), &found);
    let mut tiered =
        look.config.vdisks.iter().filter(|own| !own.is_removed() && own.tiers.len() > 1);
    if let Some(last) = tiered.next_back().filter(|_| pool::is_in_use(&found)) {
        // Whoever has it counts all of them anew, one after the other. If it does not answer, what was counted before is told,
        // with its age.
        let _ = pool::live(&report::registry(), &found, (last, look.config.extent_bytes));
    }
    let fillings = look.config.vdisks.iter();
    let fillings = fillings.filter_map(|vdisk| store.warning(&look.config, vdisk));
    let (lines, objects): (Vec<String>, Vec<serde_json::Value>) =
        fillings.map(|filling| (filling.text, filling.json)).unzip();
    reply.text.extend(lines);
    reply.json["filling"] = objects.into();
    Ok(Reply { status: health.worst().exit_status(), ..reply })
}

fn open(pool: &RegisteredPool) -> Result<OpenPool, PoolError> {
    let registry = report::registry();
    let opened = pool::open(pool, Vec::new(), (1, 4096));
    Ok(pool::note_start(&registry, pool, opened)?.chronicled(&registry))
}

/// `scan`.
pub(super) fn scan(matches: &ArgMatches) -> report::Outcome {
    let found = find(matches)?;
    let accept = matches.get_flag("accept-unverified");
    let mut tell = tell_progress();
    if pool::is_in_use(&found) {
        let (kind, disk, stuck, waits) = (JobKind::Scan, None, 0, None);
        let job = |bytes_left| JobState { kind, disk, bytes_left, stuck, waits };
        let mut tell = |left| tell(&[job(left)]);
        match pool::scan_in_use(&report::registry(), &found, accept, &mut tell) {
            // It ended a moment ago.
            Err(ScanError::Pool(PoolError::NotInUse { .. })) => {}
            scanned => return Ok(scan_told(&found.name, &scanned?, None)),
        }
    }
    let mut open = open(&found)?;
    let stop = signalled();
    let began = std::time::Instant::now();
    if accept {
        open.engine.scan_accepting_unverified();
    } else {
        open.engine.scan();
    }
    pool::work(&mut open, &mut tell, &|| stop.load(Ordering::Relaxed));
    let is_scan = |job: &&JobState| job.kind == JobKind::Scan;
    // Unless it had just ended by itself.
    let unread = open.engine.jobs().iter().find(is_scan).map(|job| job.bytes_left);
    // What the start met counts as well.
    let scanned = Scanned::since(&open.engine, &Counters::default(), began.elapsed());
    let vdisks = (0_u32..).zip(&open.engine.config().vdisks);
    let serves = |nth: u32| !open.engine.is_detached(nth);
    let detached = vdisks.filter(|(nth, own)| !own.is_removed() && !serves(*nth));
    let detached: Vec<String> = detached.map(|(_, own)| own.name.clone()).collect();
    open.end()?;
    let told = scan_told(&found.name, &scanned, Some(&detached));
    Ok(match unread {
        Some(unread) if stop.load(Ordering::Relaxed) => ended_early(told, unread),
        _ => told,
    })
}

/// A scan that a signal ended: what it read is as good as ever, and what it did not read is not known.
fn ended_early(mut told: Reply, unread: u64) -> Reply {
    told.text.push_str(&format!(
        "ended early, by a signal: {} were not read; the next scan begins anew\n",
        Bytes(unread)
    ));
    told.json["interrupted"] = true.into();
    told.json["bytes_unread"] = unread.into();
    told.status = if told.status == 0 { PARTIAL } else { told.status };
    told
}

/// What a scan found, and which virtual disks serve nothing; `None` where another program scanned.
fn scan_told(pool: &str, scanned: &Scanned, detached: Option<&[String]>) -> Reply {
    let beside = detached.is_none();
    let detached = detached.unwrap_or_default();
    let left = &scanned.ranges;
    let elapsed = std::time::Duration::from_millis(scanned.elapsed_ms).as_secs_f64();
    let away = match scanned.away {
        0 => String::new(),
        blocks => format!(", {blocks} that cannot be read while disks are away"),
    };
    let mut text = format!(
        "pool {pool}: {} blocks verified, {} mismatches, {} healed, {} without a good copy{away}, {elapsed:.1} s\n",
        scanned.blocks_verified, scanned.mismatches, scanned.healed, scanned.unrecoverable,
    );
    if scanned.away > 0 {
        text.push_str(&format!(
            "connect the disks that are missing, and scan again; plumb space status {pool} says which, and what they have\n"
        ));
    }
    for name in detached {
        text.push_str(&format!(
            "{name} serves nothing: no copy of its write cache's log can be read; plumb space status {pool} says what to do\n"
        ));
    }
    let (damaged, left_over) = (scanned.metadata_damaged, scanned.metadata_unhealed);
    let mended = match (damaged, left_over) {
        (0, _) => String::new(),
        (_, 0) => ", and written anew".to_owned(),
        _ => format!(", and {left_over} of them could not be written anew"),
    };
    text.push_str(&format!(
        "metadata: {} copies of pages verified, {damaged} damaged{mended}\n",
        scanned.metadata_verified
    ));
    if beside {
        text.push_str("the program that has it scanned; what it read beside that counts as well\n");
    }
    if scanned.unverified > 0 {
        text.push_str(&format!(
            "the checksums of {} blocks were lost; copies of {} of them differ or cannot be read; {} accepted\n",
            scanned.unverified, scanned.unverified_differ, scanned.accepted
        ));
    }
    for (name, from, bytes) in left.iter().take(LISTED) {
        let last = from.saturating_add(*bytes).saturating_sub(1);
        text.push_str(&format!("  {name}: bytes {from} to {last} cannot be read\n"));
    }
    if left.len() > LISTED {
        text.push_str(&format!("  and {} other ranges: --json has all\n", left.len() - LISTED));
    }
    text.push_str(&jobs::lost_in_words(&scanned.lost));
    let range = |(name, from, bytes): &(String, u64, u64)| json!({ "vdisk": name, "offset_bytes": from, "bytes": bytes });
    let json = json!({
        "pool": pool,
        "blocks_verified": scanned.blocks_verified,
        "mismatches": scanned.mismatches,
        "healed": scanned.healed,
        "unrecoverable": scanned.unrecoverable,
        "unreadable": scanned.away,
        "unverified": scanned.unverified,
        "unverified_differ": scanned.unverified_differ,
        "accepted": scanned.accepted,
        "metadata_verified": scanned.metadata_verified,
        "metadata_damaged": damaged,
        "metadata_unhealed": left_over,
        "detached": detached,
        "unverified_ranges": left.iter().map(range).collect::<Vec<_>>(),
        "lost_ranges": scanned.lost.iter().map(range).collect::<Vec<_>>(),
        "beside_another_program": beside,
        "interrupted": false,
        "bytes_unread": 0,
        "elapsed_s": elapsed,
    });
    let lost = scanned.unrecoverable + scanned.away + left_over;
    let bad = lost > 0 || !left.is_empty() || !detached.is_empty();
    let status = if bad { 2 } else { 0 };
    Reply { json, text, status }
}

/// `offline` and `online`.
pub(super) fn switch(matches: &ArgMatches, online: bool) -> report::Outcome {
    let found = find(matches)?;
    let path = matches.get_one::<PathBuf>("disk").expect("clap requires it");
    let look = pool::look(Some(found.id), &found.disks)?;
    let disk = pool::find_disk(&look, path)?;
    let (registry, pool) = (report::registry(), &found.name);
    let name = &look.config.disks[usize::from(disk)].name;
    let text = if online {
        pool::ask_online(&registry, &found, disk)?;
        format!(
            "the program that has pool {pool} was asked to take back disk {name}; plumb space events {pool} says what came of it\n"
        )
    } else {
        pool::ask_offline(&registry, &found, disk)?;
        format!(
            "the program that has pool {pool} goes on without disk {name}; plumb space online {pool} {name} has it taken back\n"
        )
    };
    let json = json!({ "pool": found.name, "disk": name, "asked": if online { "online" } else { "offline" } });
    Ok(Reply { json, text, status: 0 })
}

/// `clear`.
pub(super) fn clear(matches: &ArgMatches) -> report::Outcome {
    let found = find(matches)?;
    let path = matches.get_one::<PathBuf>("disk").expect("clap requires it");
    let look = pool::look(Some(found.id), &found.disks)?;
    let disk = pool::find_disk(&look, path)?;
    let is_cleared = pool::clear_failures(&report::registry(), &found, (&look.config, disk))?;
    let name = &look.config.disks[usize::from(disk)].name;
    let text = match is_cleared {
        true => format!("pool {}: nothing is noted of disk {name} any more\n", found.name),
        false => format!(
            "pool {}: the program that has it was asked to forget what it noted of disk {name}, and has not yet\n",
            found.name
        ),
    };
    let json = json!({ "pool": found.name, "disk": name, "cleared": is_cleared });
    Ok(Reply { json, text, status: if is_cleared { 0 } else { PARTIAL } })
}

/// `job`.
pub(super) fn job(matches: &ArgMatches) -> report::Outcome {
    let found = find(matches)?;
    let wait = matches.get_flag("wait");
    if pool::is_in_use(&found)
        && let Some(reply) = jobs::told(&found, wait)?
    {
        return Ok(reply);
    }
    do_work(&found, &|pool| Ok(open(pool)?), wait, |_| {})
}

/// `repair`.
pub(super) fn repair(matches: &ArgMatches) -> report::Outcome {
    let found = find(matches)?;
    let give_up = matches.get_flag("give-up-missing");
    let named = |id: &str, option: &'static str| match matches.get_one::<String>(id) {
        Some(other) if *other != found.name => {
            let (name, other) = (found.name.clone(), other.clone());
            Err(report::Failure::from(WrongWord::Name { option, name, other }))
        }
        word => Ok(word.is_some()),
    };
    let without_quorum = named("without-quorum", "--without-quorum")?;
    let unread_end = named("unread-end", "--unread-end")?;
    let older = matches.get_flag("accept-older");
    let opened = |pool: &RegisteredPool| match (without_quorum, unread_end) {
        (true, _) => open_by_word(pool, older),
        (false, true) => open_to_unread_end(pool),
        (false, false) => Ok(open(pool)?),
    };
    let open = |pool: &RegisteredPool| Ok(open(pool)?);
    let Some(name) = matches.get_one::<String>("without-cache") else {
        return do_work(&found, &opened, true, |open| {
            if give_up {
                open.engine.retire_missing();
            }
        });
    };
    let nth = give_up_cache(&found, &opened, name)?;
    do_work(&found, &open, true, |open| {
        open.engine.tell(Event::CacheGivenUp(nth));
        if give_up {
            open.engine.retire_missing();
        }
    })
}

/// Starts a pool and gives up the cache of a virtual disk that is detached; its number.
fn give_up_cache(
    found: &RegisteredPool,
    opened: &dyn Fn(&RegisteredPool) -> Result<OpenPool, report::Failure>,
    name: &str,
) -> Result<u16, report::Failure> {
    let (pool, vdisk) = report::split(name)?;
    if pool != found.name {
        let pool = found.name.clone();
        return Err(report::VdiskError::OtherPool { pool, other: name.to_owned() }.into());
    }
    let mut open = opened(found)?;
    let (nth, _) = report::find(open.engine.config(), &pool, &vdisk)?;
    // Disks that are back may have the log.
    if !open.detached().contains(&nth) {
        open.end()?;
        let error = ChangeError::CacheHere { name: name.to_owned() };
        return Err(PoolError::from(error).into());
    }
    open.engine.give_up_cache(&vdisk).map_err(PoolError::from)?;
    Ok(u16::try_from(nth).unwrap_or(u16::MAX))
}

/// Starts a pool, has it do what waits if `wait`, and tells what was done and what is left.
fn do_work(
    found: &RegisteredPool,
    opened: &dyn Fn(&RegisteredPool) -> Result<OpenPool, report::Failure>,
    wait: bool,
    ask: impl Fn(&mut OpenPool),
) -> report::Outcome {
    let mut open = opened(found)?;
    // A disk that came back takes part first; then it is known what it lacks.
    open.work_until(|engine| engine.returning().is_empty() && engine.is_quiet());
    ask(&mut open);
    let began = std::time::Instant::now();
    let stop = signalled();
    let stops = || stop.load(Ordering::Relaxed);
    if wait {
        pool::work(&mut open, &mut tell_progress(), &stops);
    }
    let counters = open.engine.counters();
    let jobs = open.engine.jobs();
    let seconds = began.elapsed().as_secs_f64();
    let unreadable = open.engine.unreadable();
    let names: Vec<String> =
        open.engine.config().disks.iter().map(|disk| disk.name.clone()).collect();
    open.end()?;
    let (done, left) =
        (counters.background_bytes(), jobs.iter().map(|job| job.bytes_left).sum::<u64>());
    let mut text = jobs_in_words_of(&jobs, &names);
    text.push_str(&jobs::unreadable_in_words(&found.name, &unreadable));
    text.push_str(&format!(
        "pool {}: {} done, {} to go, {seconds:.1} s\n",
        found.name,
        Bytes(done),
        Bytes(left)
    ));
    let interrupted = stops() && left > 0;
    if interrupted {
        text.push_str("ended early, by a signal: the rest is done when the pool is next in use, or by the same command\n");
    }
    let rate = if seconds > 0.0 { done as f64 / seconds } else { 0.0 };
    // What waits for something has no end that could be expected.
    let goes_on = jobs.iter().filter(|job| job.waits.is_none()).map(|job| job.bytes_left);
    let expected = (rate > 0.0).then(|| goes_on.sum::<u64>() as f64 / rate);
    let json = json!({
        "pool": found.name,
        "jobs": jobs_as_json(&jobs),
        "bytes_done": done,
        "bytes_left": left,
        "bytes_total": done + left,
        "bytes_per_s": rate,
        "expected_s": expected,
        "elapsed_s": seconds,
        "unreadable": jobs::unreadable_as_json(&unreadable),
        "beside_another_program": false,
        "interrupted": interrupted,
    });
    let status = if wait && (left > 0 || !unreadable.is_empty()) { PARTIAL } else { 0 };
    Ok(Reply { json, text, status })
}

/// Exit status when a part of the work is left that cannot be done now.
pub(super) const PARTIAL: u8 = 5;

/// Tells a terminal how far the work is.
pub(crate) fn tell_progress() -> impl FnMut(&[JobState]) {
    let shown = std::io::stderr().is_terminal();
    move |jobs| {
        if shown {
            let left = jobs.iter().map(|job| job.bytes_left).sum();
            eprint!("\r{:<24}", format!("{} to go", Bytes(left)));
        }
    }
}

/// Work that is left, a line each.
pub(crate) fn jobs_in_words(jobs: &[JobState]) -> String {
    jobs_in_words_of(jobs, &[])
}

pub(super) fn jobs_in_words_of(jobs: &[JobState], names: &[String]) -> String {
    let line = |job: &JobState| {
        let disk = job.disk.map(|disk| match names.get(usize::from(disk)) {
            Some(name) => format!(" of {name}"),
            None => format!(" of disk {disk}"),
        });
        let stuck = match job.stuck {
            0 => String::new(),
            extents => format!(", {extents} extents wait for a disk that has a good copy"),
        };
        let disk = disk.unwrap_or_default();
        let waits = match job.waits {
            None => "",
            Some(Wait::Disk) if job.stuck > 0 => ": connect the missing disks",
            Some(Wait::Disk) if job.kind == JobKind::Resync => {
                "; it waits for that disk: connect it"
            }
            Some(Wait::Disk) => {
                "; it waits for a disk that has what is missing: connect the missing disks"
            }
            Some(Wait::Room) => {
                "; it waits for room, which no other disk of its kind has: add one: plumb pool add-disk"
            }
        };
        format!("{}{disk}: {} to go{stuck}{waits}\n", job.kind.name(), Bytes(job.bytes_left))
    };
    jobs.iter().map(line).collect()
}

/// Work that is left, for programs.
pub(crate) fn jobs_as_json(jobs: &[JobState]) -> serde_json::Value {
    let one = |job: &JobState| {
        json!({
            "kind": job.kind.name(),
            "disk": job.disk,
            "bytes_left": job.bytes_left,
            "stuck_extents": job.stuck,
            "waits_for": job.waits.map(Wait::name),
        })
    };
    jobs.iter().map(one).collect()
}
