//! Jobs of cron, anacron and at: what they do, and whether they are due before the planned end.

use jiff::civil::DateTime;
use jiff::{SignedDuration, Timestamp, ToSpan, Zoned};

use super::Scene;
use super::tasks::does;

/// Tables with a user in each line.
const SYSTEM: &str = "/etc/crontab";
const SYSTEM_FOLDER: &str = "/etc/cron.d";
/// Folders of the tables of users: Debian's, and that of others.
const OF_USERS: &[&str] = &["/var/spool/cron/crontabs", "/var/spool/cron"];
/// Folders whose programs a line of a table, or anacron, runs.
const PERIODIC: &[(&str, i64)] = &[
    ("/etc/cron.hourly", 0),
    ("/etc/cron.daily", 1),
    ("/etc/cron.weekly", 7),
    ("/etc/cron.monthly", 31),
];
const ANACRON: &str = "/etc/anacrontab";
const STAMPS: &str = "/var/spool/anacron";
/// Folders of jobs of at.
const AT: &[&str] = &["/var/spool/cron/atjobs", "/var/spool/at"];
/// Minutes ahead that are looked at.
const AHEAD_MOST: i64 = 7 * 24 * 60;

/// When a job is due.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Due {
    /// In so many minutes.
    In(i64),
    /// Not before the planned end.
    Later,
    /// That cannot be told.
    Unknown,
}

/// A job that makes the disks work, or one that only may.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Job {
    /// Where it stands.
    pub(super) place: String,
    /// What it does to the disks; `None` where nothing is known of it.
    pub(super) does: Option<&'static str>,
    pub(super) due: Due,
}

/// All jobs, and folders that could not be looked into.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Jobs {
    pub(super) jobs: Vec<Job>,
    pub(super) unread: Vec<&'static str>,
}

/// Reads every table; `minutes` from `now` is the planned end.
pub(super) fn jobs(scene: &Scene, now: &Zoned, minutes: i64) -> Jobs {
    let mut found = Jobs::default();
    let window = Window { now: now.datetime(), minutes: minutes.clamp(1, AHEAD_MOST) };
    let mut periodic: Vec<(&str, Due)> = Vec::new();
    let mut tables = vec![(SYSTEM.to_owned(), true)];
    tables.extend(files(scene, SYSTEM_FOLDER).map(|path| (path, true)));
    for folder in OF_USERS {
        if is_closed(scene, folder) {
            found.unread.push(folder);
        }
        tables.extend(files(scene, folder).map(|path| (path, false)));
    }
    for (path, has_user) in tables {
        let Some(text) = scene.tree.text(&path) else { continue };
        let lines: Vec<Line> = text.lines().filter_map(|line| Line::of(line, has_user)).collect();
        for line in &lines {
            let due = window.due(line);
            let runs = PERIODIC.iter().find(|(folder, _)| line.command.contains(folder));
            if let Some((folder, _)) = runs {
                periodic.push((folder, due));
                continue;
            }
            if is_left_to_systemd(scene, &line.command) {
                continue;
            }
            let does = does(&line.command).or_else(|| does(&path));
            found.jobs.push(Job { place: path.clone(), does, due });
        }
        // A table that is not understood may do what its name says.
        if lines.is_empty() && path.starts_with(SYSTEM_FOLDER) {
            found.jobs.push(Job { does: does(&path), place: path, due: Due::Unknown });
        }
    }
    let anacron = scene.tree.text(ANACRON);
    for (folder, days) in PERIODIC {
        let stamp = folder.rsplit('/').next().unwrap_or_default();
        let by_table = periodic.iter().find(|(of, _)| of == folder).map(|(_, due)| *due);
        // Where both are there, a table's line leaves the work to anacron.
        let due = match anacron.is_some() && *days > 0 {
            true => by_stamp(scene, stamp, *days, &window),
            false => by_table.unwrap_or(Due::Unknown),
        };
        found.jobs.extend(files(scene, folder).map(|place| Job { does: does(&place), place, due }));
    }
    for line in anacron.unwrap_or_default().lines() {
        let words: Vec<&str> = line.split_whitespace().collect();
        let (Some(period), Some(id)) = (words.first(), words.get(2)) else { continue };
        let days = match *period {
            "@daily" => 1,
            "@weekly" => 7,
            "@monthly" => 31,
            period => match period.parse() {
                Ok(days) => days,
                Err(_) => continue,
            },
        };
        let command = words[3.min(words.len())..].join(" ");
        if PERIODIC.iter().any(|(folder, _)| command.contains(folder)) {
            continue;
        }
        let due = by_stamp(scene, id, days, &window);
        found.jobs.push(Job { place: format!("{ANACRON} {id}"), does: does(&command), due });
    }
    for folder in AT {
        if is_closed(scene, folder) {
            found.unread.push(folder);
        }
        for path in files(scene, folder) {
            let Some(at) = path.rsplit('/').next().and_then(time_of_at) else { continue };
            let minutes = at.duration_since(now.timestamp()).as_mins();
            let due = match minutes {
                minutes if minutes <= window.minutes => Due::In(minutes.max(0)),
                _ => Due::Later,
            };
            let text = scene.tree.text(&path).unwrap_or_default();
            // Its environment comes first; the commands are last.
            let commands: Vec<&str> = text.lines().rev().take(5).collect();
            found.jobs.push(Job { does: does(&commands.join("\n")), place: path, due });
        }
    }
    found
}

/// The files of a folder, hidden ones left out.
fn files<'a>(scene: &Scene, folder: &'a str) -> impl Iterator<Item = String> + use<'a> {
    let tree = scene.tree.clone();
    let names = tree.names(folder).into_iter().map(|name| name.to_string_lossy().into_owned());
    names
        .filter(|name| !name.starts_with('.'))
        .map(move |name| format!("{folder}/{name}"))
        .filter(move |path| tree.path(path).is_file())
}

/// Whether a folder is there and may not be looked into.
fn is_closed(scene: &Scene, folder: &str) -> bool {
    let refused = |error: std::io::Error| error.kind() == std::io::ErrorKind::PermissionDenied;
    std::fs::read_dir(scene.tree.path(folder)).is_err_and(refused)
}

/// Debian's lines that do nothing where systemd runs: its timers do it.
fn is_left_to_systemd(scene: &Scene, command: &str) -> bool {
    const RUNS: &str = "/run/systemd/system";
    command.contains(RUNS) && scene.tree.path(RUNS).exists()
}

/// When anacron runs what it ran last on the day in its stamp.
fn by_stamp(scene: &Scene, id: &str, days: i64, window: &Window) -> Due {
    let stamp = scene.tree.text(format!("{STAMPS}/{id}"));
    let last = stamp.and_then(|text| jiff::civil::Date::strptime("%Y%m%d", text).ok());
    let Some(last) = last else { return Due::Unknown };
    let Ok(next) = last.checked_add(days.days()) else { return Due::Unknown };
    let end = window.now.saturating_add(window.minutes.minutes());
    match next <= end.date() {
        true => Due::In(0),
        false => Due::Later,
    }
}

/// The time in the name of a job of at: a letter, five hex digits of its number, eight of minutes since 1970.
fn time_of_at(name: &str) -> Option<Timestamp> {
    let digits = name.get(1..).filter(|digits| digits.len() == 13)?;
    let minutes = i64::from_str_radix(digits.get(5..)?, 16).ok()?;
    Timestamp::from_duration(SignedDuration::from_mins(minutes)).ok()
}

/// A line of a table.
struct Line {
    /// Minute, hour, day of the month, month, day of the week; `None` for what is not understood, such as `@reboot`.
    times: Option<[Vec<bool>; 5]>,
    /// Whether the days of the month and of the week are any.
    any_day: (bool, bool),
    command: String,
}

/// First and last of each field.
const FIELDS: [(usize, usize); 5] = [(0, 59), (0, 23), (1, 31), (1, 12), (0, 7)];
const NAMES: [&str; 19] = [
    "jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec", "sun",
    "mon", "tue", "wed", "thu", "fri", "sat",
];
const MONTHS: usize = 12;

impl Line {
    fn of(line: &str, has_user: bool) -> Option<Self> {
        let line = line.trim();
        let first = line.chars().next()?;
        if !(first.is_ascii_digit() || "*@".contains(first)) {
            return None;
        }
        let words: Vec<&str> = line.split_whitespace().collect();
        let fields: Vec<&str> = match words[0] {
            "@hourly" => vec!["0", "*", "*", "*", "*"],
            "@daily" | "@midnight" => vec!["0", "0", "*", "*", "*"],
            "@weekly" => vec!["0", "0", "*", "*", "0"],
            "@monthly" => vec!["0", "0", "1", "*", "*"],
            "@yearly" | "@annually" => vec!["0", "0", "1", "1", "*"],
            word if word.starts_with('@') => vec![],
            _ => words.iter().take(5).copied().collect(),
        };
        let before = if first == '@' { 1 } else { 5 } + usize::from(has_user);
        let command = words.get(before..).filter(|command| !command.is_empty())?.join(" ");
        let read = || {
            let all = fields.iter().zip(FIELDS).map(|(field, ends)| values(field, ends));
            all.collect::<Option<Vec<_>>>()?.try_into().ok()
        };
        let any = |place: usize| fields.get(place).is_some_and(|field| field.starts_with('*'));
        Some(Self { times: read(), any_day: (any(2), any(4)), command })
    }

    fn is_at(&self, times: &[Vec<bool>; 5], at: DateTime) -> bool {
        let place = |value: i8| usize::try_from(value).unwrap_or(0);
        let of_week = place(at.weekday().to_sunday_zero_offset());
        let day = times[2][place(at.day())];
        let week_day = times[4][of_week] || (of_week == 0 && times[4][7]);
        // Where both are restricted either will do.
        let is_day = match self.any_day {
            (false, false) => day || week_day,
            _ => day && week_day,
        };
        times[0][place(at.minute())]
            && times[1][place(at.hour())]
            && is_day
            && times[3][place(at.month())]
    }
}

/// Which values a field names: `*`, `5`, `1-5`, `*/10`, `mon-fri`, several with commas.
fn values(field: &str, (first, last): (usize, usize)) -> Option<Vec<bool>> {
    let mut wanted = vec![false; last + 1];
    for part in field.split(',') {
        let (range, step) = part.split_once('/').unwrap_or((part, "1"));
        let step: usize = step.parse().ok().filter(|step| *step > 0)?;
        let value = |word: &str| -> Option<usize> {
            let lower = word.to_lowercase();
            let named = NAMES.iter().position(|name| *name == lower);
            let named = named.map(|at| if at < MONTHS { at + 1 } else { at - MONTHS });
            named.or(word.parse().ok()).filter(|value| (first..=last).contains(value))
        };
        let (low, high) = match range.split_once('-') {
            _ if range == "*" => (first, last),
            Some((low, high)) => (value(low)?, value(high)?),
            None if part.contains('/') => (value(range)?, last),
            None => (value(range)?, value(range)?),
        };
        (low..=high).step_by(step).for_each(|at| wanted[at] = true);
    }
    Some(wanted)
}

/// From now to the planned end.
struct Window {
    now: DateTime,
    minutes: i64,
}

impl Window {
    fn due(&self, line: &Line) -> Due {
        let Some(times) = &line.times else { return Due::Unknown };
        let is_due = |minutes: &i64| line.is_at(times, self.now.saturating_add(minutes.minutes()));
        (0..=self.minutes).find(is_due).map_or(Due::Later, Due::In)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(line: &str, minutes: i64, wanted: Due) {
        // A Tuesday.
        let now = "2026-11-24T01:30:20".parse().expect("a time");
        let line = Line::of(line, true).expect("a line");
        assert_eq!(Window { now, minutes }.due(&line), wanted);
    }

    #[test]
    fn lines_are_due_when_they_say() {
        check("57 0 * * 0 root checkarray", 60, Due::Later);
        check("57 1 * * 2 root checkarray", 60, Due::In(27));
        check("57 1 * * tue root checkarray", 26, Due::Later);
        check("*/10 * * * * root x", 60, Due::In(0));
        check("35-40 1 * * * root x", 60, Due::In(5));
        // A day of the month or a day of the week, where both are given.
        check("40 1 1 * mon-wed root x", 60, Due::In(10));
        check("40 1 1 * * root x", 60, Due::Later);
        check("0 2 24 nov * root x", 60, Due::In(30));
        check("@hourly root x", 60, Due::In(30));
        check("@daily root x", 60, Due::Later);
        check("@reboot root x", 60, Due::Unknown);
        check("1~5 1 * * * root x", 60, Due::Unknown);
        check("0 0 * * 7 root x", 6 * 24 * 60, Due::In((4 * 24 + 22) * 60 + 30));
        assert!(Line::of("MAILTO=root", true).is_none());
        assert!(Line::of("# 1 1 * * * root x", true).is_none());
        assert!(Line::of("57 0 * * 0", true).is_none());
        assert_eq!(Line::of("1 2 * * * tar c /", false).expect("a line").command, "tar c /");
    }

    #[test]
    fn jobs_of_at_have_their_time_in_their_name() {
        let found = time_of_at("a0000101c9a3f0").expect("a time");
        assert_eq!(found.as_second(), 0x01_c9a3f0 * 60);
        for name in ["a00001", "a0000101c9a3fz", "", "=0000101c9a3f00"] {
            assert_eq!(time_of_at(name), None, "{name}");
        }
    }
}
