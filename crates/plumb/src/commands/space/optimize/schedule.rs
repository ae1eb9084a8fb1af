//! When an optimization is due: once a day at a time of the clock on the wall, or every so many minutes.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use plumb_tier::pool::unix_seconds;

const DAY: i64 = 86_400;

/// What makes an optimization due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Schedule {
    /// Seconds after midnight, local time.
    Daily(i64),
    /// Seconds from one beginning to the next.
    Every(u64),
}

/// A time of day.
pub(super) fn time_of_day(text: &str) -> Result<i64, String> {
    let wrong = || "it must be a time of day, such as 01:00".to_owned();
    let (hours, minutes) = text.split_once(':').ok_or_else(wrong)?;
    let digits = |text: &str| text.len() == 2 && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(hours) || !digits(minutes) {
        return Err(wrong());
    }
    let (hours, minutes): (i64, i64) =
        (hours.parse().map_err(|_| wrong())?, minutes.parse().map_err(|_| wrong())?);
    if hours < 24 && minutes < 60 { Ok(hours * 3600 + minutes * 60) } else { Err(wrong()) }
}

/// What is known from one look at the clock to the next.
#[derive(Debug)]
pub(super) struct Waiting {
    schedule: Schedule,
    /// The day of the last run, or of the beginning if its time had passed by then.
    day: Option<i64>,
    /// When the last run began.
    last: Option<u64>,
    /// The clock, seconds since 1970, at the last look.
    seen: u64,
}

/// Seconds after its time in which a daily run still begins: an hour that the clock leaves out, and a while. What was missed by more waits for the next
/// day (14): the day is not to be hurt.
const LATE: i64 = 2 * 3600;

/// A clock that is set back by so many seconds or more was wrong before.
const WRONG: u64 = 12 * 3600;

impl Waiting {
    pub(super) fn new(schedule: Schedule) -> Self {
        Self { schedule, day: None, last: None, seen: 0 }
    }

    /// Whether a run is due: `local` are the seconds of the clock on the wall, `unix` those since 1970. A time that comes
    /// twice in a day counts once, one that is left out counts as soon as it is over (14). A clock that is set back by more than
    /// that holds nothing up: what was remembered of the time ahead is forgotten (section 18).
    pub(super) fn is_due(&mut self, local: i64, unix: u64) -> bool {
        let was_wrong = self.seen.saturating_sub(unix) >= WRONG;
        self.seen = unix;
        match self.schedule {
            Schedule::Every(seconds) => {
                // Set back by less than that it goes on waiting, and does not run twice.
                let waited = |last: u64| {
                    unix.saturating_sub(last) >= seconds || last.saturating_sub(unix) > seconds
                };
                let due = self.last.is_none_or(waited);
                if due {
                    self.last = Some(unix);
                }
                due
            }
            Schedule::Daily(at) => {
                let (day, time) = (local.div_euclid(DAY), local.rem_euclid(DAY));
                let passed = time >= at;
                let Some(last) = self.day else {
                    // Whoever starts late waits for tomorrow.
                    self.day = Some(if passed { day } else { day - 1 });
                    return false;
                };
                let is_ahead = day + 1 < last || was_wrong && day < last;
                let last = if is_ahead { day - i64::from(!passed) } else { last };
                self.day = Some(last);
                let due = passed && day > last;
                if due {
                    self.day = Some(day);
                }
                due && time - at <= LATE
            }
        }
    }
}

/// The clock on the wall, in seconds: as `date` has the zone at this moment, UTC without it.
pub(super) fn local() -> i64 {
    let unix = i64::try_from(unix_seconds()).unwrap_or(i64::MAX);
    let said = Command::new("date").arg("+%z").output();
    let zone = said.ok().and_then(|said| String::from_utf8(said.stdout).ok());
    unix.saturating_add(zone.as_deref().and_then(offset).unwrap_or(0))
}

/// Seconds of `+0530`.
fn offset(zone: &str) -> Option<i64> {
    let zone = zone.trim();
    let (sign, digits) = match zone.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = digits.split_at_checked(2)?;
    Some(sign * (hours.parse::<i64>().ok()? * 3600 + minutes.parse::<i64>().ok()? * 60))
}

/// Between two looks at the clock.
pub(super) const LOOK: Duration = Duration::from_secs(5);

/// A unit for systemd that does the same, by the list of pools in that folder.
pub(super) fn unit(vdisk: &str, command: &str, pools: Option<&Path>) -> String {
    let pools = pools.map_or_else(String::new, |folder| {
        format!("Environment={}\n", word(&format!("PLUMB_POOLS={}", folder.display())))
    });
    format!(
        "[Unit]\nDescription=Storage Tiers Optimization of {vdisk}\n\n[Service]\n{pools}ExecStart={command}\n\
         Restart=on-failure\n\n[Install]\nWantedBy=multi-user.target\n"
    )
}

/// A word of a unit, quoted where it would not be one otherwise (systemd.syntax(7); a `%` begins a specifier).
pub(super) fn word(text: &str) -> String {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=:,@".contains(c);
    if !text.is_empty() && text.chars().all(is_plain) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            '%' => out.push_str("%%"),
            '\n' => out.push_str("\\n"),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn once_a_day_at_its_time() {
        let at = time_of_day("01:00").expect("a time");
        let mut waiting = Waiting::new(Schedule::Daily(at));
        let mut due = |day: i64, hour: i64, minute: i64| {
            waiting.is_due(day * DAY + hour * 3600 + minute * 60, 0)
        };
        assert!(!due(10, 9, 0), "today's has passed");
        assert!(!due(10, 23, 59) && !due(11, 0, 59));
        assert!(due(11, 1, 0));
        assert!(!due(11, 1, 1));
        // The clock is set back by an hour, and 01:00 comes again.
        assert!(!due(11, 0, 30) && !due(11, 1, 0));
        // 01:00 is left out.
        assert!(!due(12, 0, 59) && due(12, 2, 0));
        // A machine that slept through its time waits for the next night, and one that slept a little does not.
        assert!(!due(20, 15, 0) && !due(20, 15, 1));
        assert!(due(21, 3, 0) && !due(21, 3, 1) && !due(22, 3, 1) && due(23, 1, 0));
        let mut early = Waiting::new(Schedule::Daily(at));
        assert!(!early.is_due(DAY, 0) && early.is_due(DAY + at, 0));
    }

    #[test]
    fn a_clock_that_is_set_back_holds_up_no_schedule() {
        let mut waiting = Waiting::new(Schedule::Daily(3600));
        let mut due = |day: i64, hour: i64| waiting.is_due(day * DAY + hour * 3600, 0);
        assert!(!due(20, 0) && due(20, 1));
        // Over midnight: 01:00 of that day comes twice, and counts once.
        assert!(!due(19, 23) && !due(20, 1));
        assert!(due(21, 1));
        // By nine days: today's has passed, or has not.
        assert!(!due(12, 9) && !due(13, 0) && due(13, 1));
        assert!(!due(4, 0) && due(4, 1));
        let mut waiting = Waiting::new(Schedule::Every(900));
        let found: Vec<bool> =
            [5000, 5900, 100, 101, 999, 1000].map(|unix| waiting.is_due(0, unix)).into();
        assert_eq!(found, [true, true, true, false, false, true]);
    }

    /// A clock that is far ahead for a while, or is set: an optimization a day, as far as can be told, and none twice.
    #[test]
    fn a_clock_that_was_far_ahead_costs_no_day() {
        for ahead in [1, 2, 30, 3650] {
            let mut waiting = Waiting::new(Schedule::Daily(3600));
            let mut due = |day: i64, hour: i64| {
                let local = day * DAY + hour * 3600;
                waiting.is_due(local, u64::try_from(local).expect("after 1970"))
            };
            assert!(!due(20, 0) && due(20, 1) && !due(20, 9));
            assert!(
                !due(20 + ahead, 9) && !due(20 + ahead, 10),
                "{ahead}: another day's is missed"
            );
            assert!(!due(20, 10) && !due(20, 23) && !due(21, 0), "{ahead}: the clock is set right");
            assert!(due(21, 1) && !due(21, 2) && due(22, 1), "{ahead}: nothing is left out");
            // Right before its time.
            assert!(!due(23, 0) && !due(23 + ahead, 9) && !due(23, 0), "{ahead}");
            assert!(due(23, 1) && !due(23, 2) && due(24, 1), "{ahead}");
        }
        let mut waiting = Waiting::new(Schedule::Every(900));
        let mut due = |unix: u64| waiting.is_due(0, unix);
        assert!(due(90_000) && !due(89_990) && !due(90_890), "a little back: no second run");
        assert!(due(90_900) && due(900_000) && !due(900_001), "far ahead");
        assert!(due(90_910) && !due(90_920) && due(91_810), "and set right");
    }

    #[test]
    fn every_so_many_minutes_from_the_first_on() {
        let mut waiting = Waiting::new(Schedule::Every(900));
        let found: Vec<bool> =
            [5000, 5001, 5899, 5900, 6799, 6801].map(|unix| waiting.is_due(0, unix)).into();
        assert_eq!(found, [true, false, false, true, false, true]);
    }

    #[test]
    fn a_unit_has_what_the_service_cannot_know() {
        for (text, wanted) in [
            ("/usr/bin/plumb", "/usr/bin/plumb"),
            ("/opt/my tools/plumb", "\"/opt/my tools/plumb\""),
            ("/a\"b\\c/100%", "\"/a\\\"b\\\\c/100%%\""),
            ("", "\"\""),
        ] {
            assert_eq!(word(text), wanted);
        }
        let found = unit("tank/data", "plumb x", Some(Path::new("/srv/my pools")));
        assert!(found.contains("\nEnvironment=\"PLUMB_POOLS=/srv/my pools\"\nExecStart=plumb x\n"));
        assert!(!unit("tank/data", "plumb x", None).contains("Environment"));
    }

    #[test]
    fn times_and_zones_are_read() {
        assert_eq!((time_of_day("00:00"), time_of_day("23:59")), (Ok(0), Ok(86_340)));
        for wrong in ["24:00", "1:00", "01:60", "0100", "", "aa:bb", "+1:00"] {
            assert!(time_of_day(wrong).is_err(), "{wrong}");
        }
        assert_eq!(
            [offset("+0530\n"), offset("-0800"), offset("+0000")],
            [Some(19_800), Some(-28_800), Some(0)]
        );
        assert_eq!([offset(""), offset("CET"), offset("+")], [None, None, None]);
    }
}
