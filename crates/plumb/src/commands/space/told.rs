//! `plumb space events|perf`: what a pool's engine said, and says while it runs.

use std::fmt::Write as _;
use std::time::{SystemTime, UNIX_EPOCH};

use clap::{Arg, ArgMatches, Command, value_parser};
use plumb_tier::pool::{self, LoggedCounters};
use serde_json::{Map, Value, json};

use super::report::{self, Reply};

/// For clap.
pub(super) fn commands() -> [Command; 2] {
    [
        Command::new("events")
            .about("Show what happened to a pool: disks lost and back, blocks healed, work done")
            .args([
                report::pool_argument(),
                Arg::new("last")
                    .long("last")
                    .value_name("N")
                    .value_parser(value_parser!(usize))
                    .default_value("50")
                    .help("Only the last N"),
                report::json_option(),
            ])
            .after_help(
                "Events are kept beside the list of pools, some thousands of them; they are of no consequence for \
                 data. Works while the pool is in use.",
            ),
        Command::new("perf")
            .about("Show a pool's counters: requests, bytes by tier and cache, times, disks, integrity")
            .args([report::pool_argument(), report::json_option()])
            .after_help(
                "A pool that is in use writes its counters once a second; of one that is not they are those of its \
                 last use. All are counted from the pool's start.",
            ),
    ]
}

/// `events`.
pub(super) fn events(matches: &ArgMatches) -> report::Outcome {
    let registry = report::registry();
    let found = registry.find(&report::text(matches, "pool"))?;
    let last = *matches.get_one::<usize>("last").expect("it has a default");
    let mut events = pool::events(&registry, &found.name);
    let all = events.len();
    events.drain(..all.saturating_sub(last));
    let mut text = String::new();
    for event in &events {
        let _ = writeln!(text, "{}  {:<11}  {}", when(event.unix_ms), event.severity, event.text);
    }
    if events.is_empty() {
        let _ = writeln!(text, "nothing was written down about pool {}", found.name);
    }
    let list: Vec<Value> = events
        .iter()
        .map(|event| {
            json!({
                "time": when(event.unix_ms),
                "unix_ms": event.unix_ms,
                "severity": event.severity,
                "event": event.name,
                "text": event.text,
            })
        })
        .collect();
    Ok(Reply { json: json!({ "pool": found.name, "events": list }), text, status: 0 })
}

/// `perf`.
pub(super) fn perf(matches: &ArgMatches) -> report::Outcome {
    let registry = report::registry();
    let found = registry.find(&report::text(matches, "pool"))?;
    let Some(seen) = pool::counters(&registry, &found.name) else {
        let name = &found.name;
        let text = format!(
            "pool {name} has no counters on this machine yet: a program that serves its host I/O writes them\n"
        );
        let json = json!({ "pool": name, "counters": null });
        return Ok(Reply { json, text, status: 0 });
    };
    let running = seen.running && is_alive(seen.process);
    let age_ms = now_ms().saturating_sub(seen.unix_ms);
    let mut text = format!(
        "pool {}: {}, {:.1} s of use, written {:.1} s ago\n",
        found.name,
        if running { "in use" } else { "not in use" },
        seconds(seen.uptime_ms),
        seconds(age_ms)
    );
    let mut before = None;
    for (set, instance, name, unit, value) in &seen.counters {
        if before != Some((set, instance)) {
            let _ = writeln!(text, "{set} {instance}");
            before = Some((set, instance));
        }
        let _ = match unit.as_str() {
            "1e-3" => {
                writeln!(text, "  {name:<28} {:>12}.{:03} n", value / 1000, value % 1000)
            }
            _ => writeln!(text, "  {name:<28} {value:>16} {unit}"),
        };
    }
    let json = json!({
        "pool": found.name,
        "running": running,
        "uptime_s": seconds(seen.uptime_ms),
        "age_s": seconds(age_ms),
        "counters": by_set(&seen),
    });
    Ok(Reply { json, text, status: 0 })
}

/// Set, instance, then name with its unit: `Read Bytes [B]`.
fn by_set(seen: &LoggedCounters) -> Value {
    let mut sets = Map::new();
    for (set, instance, name, unit, value) in &seen.counters {
        let instances = sets.entry(set.clone()).or_insert_with(|| json!({}));
        if let Some(instances) = instances.as_object_mut() {
            let own = instances.entry(instance.clone()).or_insert_with(|| json!({}));
            if let Some(own) = own.as_object_mut() {
                own.insert(format!("{name} [{unit}]"), json!(value));
            }
        }
    }
    Value::Object(sets)
}

fn is_alive(process: u32) -> bool {
    std::path::Path::new(&format!("/proc/{process}")).exists()
}

fn seconds(millis: u64) -> f64 {
    std::time::Duration::from_millis(millis).as_secs_f64()
}

fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}

/// Date and time of day, UTC.
pub(crate) fn when(unix_ms: u64) -> String {
    let (days, millis) = (unix_ms / 86_400_000, unix_ms % 86_400_000);
    let (year, month, day) = date(days);
    let (seconds, millis) = (millis / 1000, millis % 1000);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{millis:03}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60
    )
}

/// Year, month and day of a day counted from 1970-01-01: the calendar's 400 years are counted from a first of March, so
/// that leap days come last.
fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    (year, month, of_year - (153 * shifted + 2) / 5 + 1)
}

#[cfg(test)]
mod tests {
    #[test]
    fn times_are_told_as_the_calendar_has_them() {
        for (unix_ms, told) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (951_782_399_999, "2000-02-28T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_709_251_199_000, "2024-02-29T23:59:59.000Z"),
            (1_704_067_199_000, "2023-12-31T23:59:59.000Z"),
            (4_107_542_400_000, "2100-03-01T00:00:00.000Z"),
        ] {
            assert_eq!(super::when(unix_ms), told);
        }
    }
}
