//! On which processors threads run, and where their buffers lie.

use std::fs;

use serde_json::Value;

use crate::place::{Place, count, noise};
use crate::rights::is_root;

/// The processors of this process, as numbers.
fn allowed() -> Vec<u32> {
    let status = fs::read_to_string("/proc/self/status").expect("its own status");
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    list.expect("a list").trim().split(',').flat_map(range).collect()
}

fn range(item: &str) -> std::ops::RangeInclusive<u32> {
    let (first, last) = item.split_once('-').unwrap_or((item, item));
    let number = |text: &str| text.parse().expect("a number");
    number(first)..=number(last)
}

/// Where each load thread of a process may run, by its number.
fn bound(process: u32) -> Vec<(String, String)> {
    let tasks = fs::read_dir(format!("/proc/{process}/task")).expect("its threads");
    let mut found = Vec::new();
    for task in tasks {
        let status = task.expect("a thread").path().join("status");
        let status = fs::read_to_string(status).unwrap_or_default();
        let value = |key: &str| status.lines().find_map(|line| line.strip_prefix(key));
        let name = value("Name:").unwrap_or_default().trim();
        if name.starts_with("plumb-") {
            let list = value("Cpus_allowed_list:").unwrap_or_default().trim();
            found.push((name.to_owned(), list.to_owned()));
        }
    }
    found.sort();
    found
}

/// Runs a line with three threads; where they ran, and the result.
fn look(place: &Place, options: &str) -> (Vec<String>, Value) {
    let line = format!("--json -b4K -r -o2 -g100i -t3 -d60 -W0 {options} f.dat");
    let run = place.start(&line).phase("measuring");
    let bound = bound(run.id());
    let names: Vec<&str> = bound.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["plumb-0", "plumb-1", "plumb-2"], "{options}");
    let result = run.interrupt().with(0).json();
    (bound.into_iter().map(|(_, list)| list).collect(), result)
}

#[test]
fn threads_run_where_the_options_say() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    let allowed = allowed();
    let all = fs::read_to_string("/proc/self/status").expect("its own status");
    let all = all.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let all = all.expect("a list").trim();
    let (first, last) = (allowed[0], *allowed.last().expect("one at least"));
    let mode = |result: &Value| result["time_spans"][0]["mode"].clone();

    let in_turn: Vec<String> =
        (0..3).map(|thread| allowed[thread % allowed.len()].to_string()).collect();
    let has_classes = |result: &Value| result["host"]["heterogeneous"] == true;
    for options in ["-a", "-aup"] {
        let (bound, result) = look(&place, options);
        if !has_classes(&result) {
            assert_eq!(bound, in_turn, "{options}");
        }
    }
    if last < 64 {
        // A list is put in order by class alone.
        let (bound, result) = look(&place, &format!("-aup -a{last},{first}"));
        let want = [last, first, last].map(|cpu| cpu.to_string());
        assert_eq!(bound, want);
        let used = serde_json::json!([[0, last], [0, first]]);
        assert_eq!(mode(&result)["effective_affinity"], used);
        let (bound, _) = look(&place, &format!("-a{first}"));
        assert_eq!(bound, [first, first, first].map(|cpu| cpu.to_string()));
    }
    let (bound, result) = look(&place, "-n");
    assert_eq!(bound, [all, all, all]);
    assert_eq!(mode(&result)["effective_affinity"], Value::Null);

    let (bound, result) = look(&place, "-ac");
    assert_eq!(mode(&result)["processor_order"], "core_aware");
    let mut bound: Vec<u32> = bound.iter().map(|cpu| cpu.parse().expect("a number")).collect();
    bound.dedup();
    assert!(bound.iter().all(|cpu| allowed.contains(cpu)), "{bound:?}");
}

#[test]
fn buffers_lie_apart_unless_told_otherwise() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    let separation = |option: &str| {
        let result = place.json(&format!("-b4K -r -o2 -t2 -d0 -W0 {option} f.dat"));
        count(&result, "/time_spans/0/mode/buffer_separation_bytes")
    };
    let page = rustix::param::page_size() as u64;
    let apart = separation("-bsp");
    // (line / 8) × (page / 8) × page, with lines of 64 bytes or more (spec 15.4).
    assert!(apart >= 8 * (page / 8) * page && apart.is_power_of_two(), "{apart}");
    assert_eq!(separation(""), apart);
    assert_eq!(separation("-bsn"), 0);
    let text = place.run("-bsp -b4K -d0 -W0 f.dat").succeeds_quietly().stdout;
    assert!(text.contains("buffer separation: thread optimized ("), "{text}");
}

/// The kernel's setting for pages of the usual size.
const HUGE_PAGES: &str = "/proc/sys/vm/nr_hugepages";

/// Pages that nobody uses.
fn huge_pages_free() -> u64 {
    let facts = fs::read_to_string("/proc/meminfo").expect("facts about memory");
    let free = facts.lines().find_map(|line| line.strip_prefix("HugePages_Free:"));
    free.and_then(|free| free.trim().parse().ok()).unwrap_or(0)
}

/// Pages set aside for a test, given back after it.
struct HugePages {
    before: String,
}

impl HugePages {
    fn set_aside(pages: u64) -> Option<Self> {
        let before = fs::read_to_string(HUGE_PAGES).ok()?;
        let total: u64 = before.trim().parse().ok()?;
        let held = Self { before };
        fs::write(HUGE_PAGES, (total + pages).to_string()).ok()?;
        (huge_pages_free() >= pages).then_some(held)
    }
}

impl Drop for HugePages {
    fn drop(&mut self) {
        // A machine with a few pages more is not worth failing twice for.
        let _ = fs::write(HUGE_PAGES, self.before.trim());
    }
}

#[test]
fn large_pages_are_used_or_asked_for() {
    let place = Place::new();
    place.write("f.dat", noise(1 << 20));
    if huge_pages_free() == 0 {
        let outcome = place.run("-l -b4K -r -o4 -d1 -W0 f.dat").ends_with(1);
        for word in ["Cannot allocate memory", "nr_hugepages", "-l"] {
            assert!(outcome.stderr.contains(word), "{word}: {}", outcome.stderr);
        }
    }
    let name = "large_pages_are_used_or_asked_for";
    let held = if is_root() { HugePages::set_aside(4) } else { None };
    if held.is_none() && huge_pages_free() < 4 {
        println!("skipped {name}: no huge pages");
        return;
    }
    let line = "--json -l -b4K -r -o4 -t2 -g100i -d60 -W0 f.dat";
    let run = place.start(line).phase("measuring");
    let maps = fs::read_to_string(format!("/proc/{}/smaps", run.id())).expect("its memory");
    let result = run.interrupt().with(0).json();
    assert!(maps.lines().any(|line| line.starts_with("VmFlags:") && line.contains(" ht")));
    // Large pages come before separation (spec 15.4).
    assert_eq!(count(&result, "/time_spans/0/mode/buffer_separation_bytes"), 0);
    assert!(count(&result, "/total/io_count") > 0);
}
