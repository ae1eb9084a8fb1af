//! `plumb space status|scan|job`: health, and work that a pool has to be started for.

use clap::{Arg, ArgAction, ArgMatches, Command};
use plumb_tier::pool::{self, Facts, OpenPool, PoolError, RegisteredPool};
use plumb_units::Bytes;
use serde_json::json;

use super::report::{self, Reply};

/// For clap.
pub(super) fn commands() -> [Command; 3] {
    let wait = Arg::new("wait")
        .long("wait")
        .action(ArgAction::SetTrue)
        .help("Do the work and end when it is done");
    [
        Command::new("status")
            .about("Tell the health of a pool; starts and changes nothing")
            .args([report::pool_argument(), report::json_option()])
            .after_help("Exit status: 0 Healthy, 1 Warning, 2 Unhealthy, 3 Unknown."),
        Command::new("scan")
            .about("Read and verify every copy of every block, and heal what can be healed")
            .args([report::pool_argument(), report::json_option()])
            .after_help(
                "Exit status: 0 when every block has a good copy, 2 when one has none, 1 when the scan \
                 could not be made.",
            ),
        Command::new("job")
            .about("Show work that waits: disks that came back and are not up to date")
            .args([report::pool_argument(), wait, report::json_option()]),
    ]
}

fn find(matches: &ArgMatches) -> Result<RegisteredPool, report::Failure> {
    Ok(report::registry().find(&report::text(matches, "pool"))?)
}

/// `status`.
pub(super) fn status(matches: &ArgMatches) -> report::Outcome {
    let found = find(matches)?;
    // A pool of which nothing can be read has no health that could be told.
    let look = match pool::look(Some(found.id), &found.disks) {
        Ok(look) => look,
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
    let health = pool::judge(&Facts::of(&look));
    Ok(Reply { status: health.worst().exit_status(), ..report::describe(&look, &health) })
}

fn end(pool: &RegisteredPool, open: OpenPool) -> Result<(), PoolError> {
    let halted = |source| PoolError::Halted { name: pool.name.clone(), source };
    open.engine.shut_down().map(|_| ()).map_err(halted)
}

/// `scan`.
pub(super) fn scan(matches: &ArgMatches) -> report::Outcome {
    let found = find(matches)?;
    let mut open = pool::open(&found, Vec::new(), (1, 4096))?;
    let began = std::time::Instant::now();
    open.engine.scan();
    open.work();
    let counters = open.engine.counters();
    let elapsed = began.elapsed();
    end(&found, open)?;
    let text = format!(
        "pool {}: {} blocks verified, {} mismatches, {} healed, {} without a good copy, {:.1} s\n",
        found.name,
        counters.blocks_verified,
        counters.mismatches,
        counters.healed,
        counters.unrecoverable,
        elapsed.as_secs_f64()
    );
    let json = json!({
        "pool": found.name,
        "blocks_verified": counters.blocks_verified,
        "mismatches": counters.mismatches,
        "healed": counters.healed,
        "unrecoverable": counters.unrecoverable,
        "elapsed_s": elapsed.as_secs_f64(),
    });
    let status = if counters.unrecoverable > 0 { 2 } else { 0 };
    Ok(Reply { json, text, status })
}

/// `job`.
pub(super) fn job(matches: &ArgMatches) -> report::Outcome {
    let found = find(matches)?;
    let mut open = pool::open(&found, Vec::new(), (1, 4096))?;
    // A disk that came back takes part first; then it is known what it lacks.
    open.work_until(|engine| engine.returning().is_empty() && engine.is_quiet());
    let before = open.engine.stale_bytes();
    let began = std::time::Instant::now();
    if matches.get_flag("wait") {
        open.work();
    }
    let left = open.engine.stale_bytes();
    let done = before.saturating_sub(left) + resynced_before(&open, before, left);
    let seconds = began.elapsed().as_secs_f64();
    let (_, facts) = report::facts_of(&found, &open)?;
    let mut text = String::new();
    for disk in facts.disks.iter().filter(|disk| disk.stale > 0) {
        text.push_str(&format!("resync of {}: {} extents to go\n", disk.name, disk.stale));
    }
    text.push_str(&format!(
        "pool {}: {} done, {} to go, {seconds:.1} s\n",
        found.name,
        Bytes(done),
        Bytes(left)
    ));
    let json = json!({
        "pool": found.name,
        "kind": "resync",
        "bytes_done": done,
        "bytes_left": left,
        "bytes_total": done + left,
        "elapsed_s": seconds,
    });
    end(&found, open)?;
    Ok(Reply { json, text, status: 0 })
}

/// Extents that were brought up to date before they could be counted as waiting.
fn resynced_before(open: &OpenPool, before: u64, left: u64) -> u64 {
    let all = open.engine.counters().resynced * u64::from(open.engine.config().extent_bytes);
    all.saturating_sub(before.saturating_sub(left))
}
