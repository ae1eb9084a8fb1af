//! `plumb space job` of a pool that another program has: that one is asked, and works beside its requests.

use std::time::{Duration, Instant};

use plumb_tier::pool::{self, JobsTold, PoolError, RegisteredPool};
use plumb_tier::{JobKind, JobState};
use plumb_units::Bytes;
use serde_json::{Value, json};

use super::report::{self, Reply};
use super::upkeep::{self, PARTIAL};

/// Over how long a rate is seen.
const SEEN_FOR: Duration = Duration::from_secs(1);

/// What work is left in a pool that a program has, and, if `wait`, when nothing of it goes on any more; `None` when no program
/// has it.
pub(super) fn told(found: &RegisteredPool, wait: bool) -> Result<Option<Reply>, report::Failure> {
    let began = Instant::now();
    let Some(first) = ask(found)? else { return Ok(None) };
    let mut last = first.clone();
    let mut tell = upkeep::tell_progress();
    // Without work there is no rate to be seen.
    let mut more = last.works;
    while more {
        std::thread::sleep(SEEN_FOR);
        let Some(next) = ask(found)? else { return Ok(None) };
        last = next;
        tell(&last.jobs);
        more = wait && last.works;
    }
    let look = pool::look(Some(found.id), &found.disks)?;
    let names: Vec<String> = look.config.disks.iter().map(|disk| disk.name.clone()).collect();
    Ok(Some(in_words(&found.name, (&first, &last), &names, (wait, began.elapsed()))))
}

fn ask(found: &RegisteredPool) -> Result<Option<JobsTold>, report::Failure> {
    match pool::jobs_in_use(&report::registry(), found) {
        // It ended a moment ago.
        Err(PoolError::NotInUse { .. }) => Ok(None),
        told => Ok(Some(told?)),
    }
}

fn left(jobs: &[JobState]) -> u64 {
    jobs.iter().map(|job| job.bytes_left).sum()
}

/// What waits for something has no end that could be expected.
fn goes_on(jobs: &[JobState]) -> u64 {
    jobs.iter().filter(|job| job.waits.is_none()).map(|job| job.bytes_left).sum()
}

fn in_words(
    pool: &str,
    (first, last): (&JobsTold, &JobsTold),
    names: &[String],
    (wait, elapsed): (bool, Duration),
) -> Reply {
    let left = left(&last.jobs);
    let seen_ms = last.unix_ms.saturating_sub(first.unix_ms);
    let gone = goes_on(&first.jobs).saturating_sub(goes_on(&last.jobs));
    let rate = gone.saturating_mul(1000).checked_div(seen_ms).unwrap_or(0);
    let expected = (rate > 0).then(|| goes_on(&last.jobs) as f64 / rate as f64);
    let mut text = upkeep::jobs_in_words_of(&last.jobs, names);
    let ends = match expected {
        Some(seconds) if last.works => {
            format!(", {}/s, {seconds:.0} s expected", Bytes(rate))
        }
        _ => String::new(),
    };
    text.push_str(&unreadable_in_words(pool, &last.unreadable));
    text.push_str(&format!(
        "pool {pool}: in use; {} done by the program that has it, {} to go{ends}\n",
        Bytes(last.bytes_done),
        Bytes(left)
    ));
    let json = json!({
        "pool": pool,
        "jobs": upkeep::jobs_as_json(&last.jobs),
        "bytes_done": last.bytes_done,
        "bytes_left": left,
        "bytes_total": last.bytes_done.saturating_add(left),
        "bytes_per_s": rate as f64,
        "expected_s": expected,
        "elapsed_s": elapsed.as_secs_f64(),
        "unreadable": unreadable_as_json(&last.unreadable),
        "beside_another_program": true,
        "uptime_s": Duration::from_millis(last.uptime_ms).as_secs_f64(),
        "goes_on": last.works,
    });
    // A scan that somebody began meanwhile is no work of the pool's own.
    let own = last.jobs.iter().any(|job| job.kind != JobKind::Scan && job.bytes_left > 0);
    let waits = own || !last.unreadable.is_empty();
    Reply { json, text, status: if wait && waits { PARTIAL } else { 0 } }
}

/// Virtual disks of which something cannot be read now, with the bytes.
pub(super) fn unreadable_in_words(pool: &str, unreadable: &[(String, u64)]) -> String {
    let line = |(name, bytes): &(String, u64)| {
        let bytes = Bytes(*bytes);
        format!(
            "{bytes} of {name} cannot be read, for disks are away: connect them; plumb space status {pool} says which, and what they have\n"
        )
    };
    unreadable.iter().map(line).collect()
}

pub(super) fn unreadable_as_json(unreadable: &[(String, u64)]) -> Value {
    unreadable.iter().map(|(name, bytes)| json!({ "vdisk": name, "bytes": bytes })).collect()
}

/// Ranges that are listed in words, at most.
pub(super) const LISTED: usize = 20;

/// Extents in which a scan met blocks without a good copy.
pub(super) fn lost_in_words(lost: &[(String, u64, u64)]) -> String {
    let line = |(name, from, bytes): &(String, u64, u64)| {
        let last = from.saturating_add(*bytes).saturating_sub(1);
        format!("  {name}: of bytes {from} to {last} some blocks have no good copy\n")
    };
    let mut text: String = lost.iter().take(LISTED).map(line).collect();
    if lost.len() > LISTED {
        text.push_str(&format!("  and {} other ranges: --json has all\n", lost.len() - LISTED));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(unix_ms: u64, left: u64, waits: Option<plumb_tier::Wait>) -> JobsTold {
        let job =
            |kind, disk, bytes_left, waits| JobState { kind, disk, bytes_left, stuck: 0, waits };
        let jobs = vec![
            job(JobKind::Rebuild, Some(1), left, None),
            job(JobKind::Resync, Some(0), 1 << 30, waits),
        ];
        JobsTold {
            unix_ms,
            uptime_ms: 9000,
            works: true,
            bytes_done: 64 << 20,
            jobs,
            unreadable: vec![],
        }
    }

    #[test]
    fn what_cannot_be_read_is_waited_for_in_vain() {
        let nothing = JobsTold { jobs: vec![], works: false, ..at(1000, 0, None) };
        let some = JobsTold { unreadable: vec![("v".to_owned(), 4096)], ..nothing.clone() };
        for (told, wait, status) in [(&nothing, true, 0), (&some, false, 0), (&some, true, PARTIAL)]
        {
            let reply = in_words("tank", (told, told), &[], (wait, Duration::ZERO));
            assert_eq!(reply.status, status);
            let is_said = reply.text.contains("4KiB of v cannot be read, for disks are away");
            assert_eq!(is_said, !told.unreadable.is_empty(), "{}", reply.text);
        }
    }

    #[test]
    fn rate_and_end_are_of_what_goes_on() {
        let waits = Some(plumb_tier::Wait::Disk);
        let names = ["a.img".to_owned(), "b.img".to_owned()];
        let (first, last) = (at(1000, 96 << 20, waits), at(3000, 64 << 20, waits));
        let seen = Duration::from_secs(2);
        let reply = in_words("tank", (&first, &last), &names, (false, seen));
        assert_eq!(reply.json["bytes_per_s"], 16_777_216.0);
        assert_eq!(reply.json["expected_s"], 4.0);
        assert_eq!(reply.status, 0);
        assert!(reply.text.starts_with("rebuild of b.img: 64MiB to go\nresync of a.img"));
        assert!(reply.text.ends_with("1.06GiB to go, 16MiB/s, 4 s expected\n"), "{}", reply.text);
        // More came than went, or nobody saw it go.
        for pair in [(&last, &first), (&last, &last)] {
            let reply = in_words("tank", pair, &names, (true, seen));
            assert!(reply.json["expected_s"].is_null() && reply.status == PARTIAL);
        }
    }
}
