//! What a run takes of memory: but for two cells per target and interval of `-D` nothing grows with its length.

use std::time::Duration;

use crate::program;

/// The largest resident memory of a run, in KiB, as the kernel kept it.
fn peak_kib(arguments: &str) -> u64 {
    let mut child = std::process::Command::new(program::path())
        .args(arguments.split(' '))
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("plumb starts");
    let status = format!("/proc/{}/status", child.id());
    let mut peak = 0;
    while child.try_wait().expect("it can be waited for").is_none() {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let now = line.and_then(|line| line.trim().strip_suffix(" kB")?.trim().parse().ok());
        peak = peak.max(now.unwrap_or(0));
        std::thread::sleep(Duration::from_millis(20));
    }
    assert!(peak > 0, "the kernel tells how much was resident");
    peak
}

#[test]
fn a_longer_run_takes_no_more_memory() {
    let run = |seconds: u32| {
        let load = format!("run --engine=null -W0 -d{seconds} -L -D100 -r -b4K -o32 -t2 -w30");
        peak_kib(&format!("{load} --progress-style=none none"))
    };
    let (short, long) = (run(1), run(6));
    // 50 more intervals cost 2 cells of 64 bytes each, and histograms a page here and there.
    assert!(long < short + 768, "{short} KiB after 1 s, {long} KiB after 6 s");
}

/// With `-D`, too: an interval has 2 cells of 64 bytes per target, however many threads there are. A development build has some
/// 10 MiB more of itself, and a late steering thread has the spare histograms of all threads touched, most with short intervals.
#[test]
fn many_threads_with_deep_queues_stay_below_100_mib() {
    let all = [("", 100), ("-w30", 100), ("-D100", 100), ("-w30 -D100", 100), ("-w30 -D10", 108)];
    for (more, most) in all {
        let load = format!("run --engine=null -W0 -d1 -L {more} -r -b4K -o128 -t64");
        let peak = peak_kib(&format!("{} --progress-style=none none", load.replace("  ", " ")));
        assert!(
            peak < most << 10,
            "{peak} KiB with 64 threads of 128 outstanding 4 KiB I/Os {more}"
        );
    }
}
