//! CPU time of other processes, as the kernel accounts it: all threads, workers of the kernel that act
//! for the process included.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

/// The unit of times in /proc/PID/stat: the kernel's interface has it at 100 per second.
const TICK: Duration = Duration::from_millis(10);

/// User and system time of every child that has been waited for, and of the children of those. Counted
/// in nanoseconds and shown in ticks: a difference is wrong by 20 ms at most.
pub(super) fn of_children() -> Result<Duration, String> {
    let stat =
        fs::read_to_string("/proc/self/stat").map_err(|e| format!("/proc/self/stat: {e}"))?;
    parse_children(&stat).ok_or(format!("/proc/self/stat: no times of children in `{stat}`"))
}

/// Fields 16 and 17; the name in field 2 can hold blanks and brackets.
fn parse_children(stat: &str) -> Option<Duration> {
    let (_, after_name) = stat.rsplit_once(") ")?;
    let mut ticks = after_name.split(' ').skip(13).map(str::parse::<u32>);
    let (user, system) = (ticks.next()?.ok()?, ticks.next()?.ok()?);
    Some(TICK * (user + system))
}

/// CPU time of the threads that a process has now.
pub(super) fn of_threads(process: u32) -> Result<Duration, String> {
    let folder = format!("/proc/{process}/task");
    let threads = fs::read_dir(&folder).map_err(|error| format!("{folder}: {error}"))?;
    let mut sum = Duration::ZERO;
    for thread in threads {
        let thread = thread.map_err(|error| format!("{folder}: {error}"))?;
        sum += of_thread(&thread.path())?;
    }
    Ok(sum)
}

/// The first number of `schedstat`: nanoseconds on a processor.
fn of_thread(folder: &Path) -> Result<Duration, String> {
    let file = folder.join("schedstat");
    let text = fs::read_to_string(&file).map_err(|error| format!("{}: {error}", file.display()))?;
    let nanos = text.split(' ').next().and_then(|word| word.parse().ok());
    nanos.map(Duration::from_nanos).ok_or(format!("{}: `{text}`", file.display()))
}

/// What a command printed on standard output, and the CPU time that it took.
pub(super) fn spent(command: &mut Command) -> Result<(String, Duration), String> {
    let before = of_children()?;
    let output = command.output().map_err(|error| format!("cannot be run: {error}"))?;
    let spent = of_children()?.saturating_sub(before);
    if !output.status.success() {
        let errors = String::from_utf8_lossy(&output.stderr);
        return Err(format!("{}: {}", output.status, errors.trim()));
    }
    Ok((String::from_utf8_lossy(&output.stdout).into_owned(), spent))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_of_children_are_found_whatever_the_name() {
        let stat = "7 (a b) c) S 1 2 3 4 5 6 7 8 9 10 11 12 150 25 20 0 1";
        assert_eq!(parse_children(stat), Some(Duration::from_millis(1750)));
        assert_eq!(parse_children("7 (a) S 1"), None);
    }

    #[test]
    fn a_child_that_computes_is_seen() {
        let mut command = Command::new("sh");
        command.args(["-c", "i=0; while [ $i -lt 100000 ]; do i=$((i+1)); done; echo $i"]);
        let (output, spent) = spent(&mut command).expect("sh runs");
        assert_eq!(output, "100000\n");
        assert!(spent >= TICK, "{spent:?}");
    }

    #[test]
    fn a_child_that_fails_says_why() {
        let mut command = Command::new("sh");
        command.args(["-c", "echo no such thing >&2; exit 3"]);
        let error = spent(&mut command).expect_err("it fails");
        assert!(error.contains('3') && error.ends_with("no such thing"), "{error}");
    }

    #[test]
    fn threads_of_this_process_have_spent_something() {
        assert!(of_threads(std::process::id()).expect("our own") > Duration::ZERO);
    }
}
