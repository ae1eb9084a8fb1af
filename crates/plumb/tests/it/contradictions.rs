//! What contradicts itself, or a study that is there, is refused with its name.

use std::fs;

use crate::sweeps::{Bench, finding};

const DEVICE: &str = "seed = 2\n";

#[track_caller]
fn refused(bench: &Bench, line: &str, words: &[&str]) {
    let found = bench.call(line).ends_with(2);
    for word in words {
        assert!(found.stderr.contains(word), "{line}: `{word}` is not in\n{}", found.stderr);
    }
}

#[test]
fn a_study_goes_on_as_it_was_begun_or_not_at_all() {
    let bench = Bench::with(DEVICE);
    bench
        .call("sweep f --simulate DEVICE --set o=4 --vary t=1,2 --repetitions 2 --id s")
        .ends_with(0);
    bench.call("baseline f --simulate DEVICE --quick --size 1G --olap --id b").ends_with(0);
    bench.call("quick f --simulate DEVICE --repetitions 2 --id q").ends_with(0);
    let findings = ["s", "b", "q"].map(|id| bench.findings(id));
    for (line, words) in [
        ("sweep --resume s --vary t=1,4", &["--vary says t=1,4", "begun with t=1,2"][..]),
        ("sweep --resume s --set o=8", &["--set says o=8", "o=4"]),
        ("sweep --resume s --repetitions 3", &["--repetitions says 3", "with 2"]),
        ("sweep --resume s --adaptive", &["--adaptive"]),
        ("sweep --resume s --no-anchors", &["--no-anchors"]),
        ("sweep other --resume s", &["other", "target"]),
        ("sweep --resume s --id t", &["--id says t", "with s"]),
        ("baseline --resume b --oltp", &["--oltp says oltp", "olap"]),
        ("baseline --resume b --d0-timing", &["--d0-timing", "quick"]),
        ("baseline --resume b --size 2G", &["--size"]),
        ("baseline --resume b --cap 100iops", &["--cap says 100iops", "none"]),
        ("quick --resume q --repetitions 3", &["--repetitions says 3", "with 2"]),
    ] {
        refused(&bench, line, words);
    }
    fs::write(bench.path("other.toml"), "seed = 9\n").expect("written");
    refused(&bench, "quick --resume q --simulate other.toml", &["--simulate"]);
    // What says the same is no contradiction; how long it may take can be said anew.
    for line in [
        "sweep f --resume s --set o=4 --vary t=1,2 --repetitions 2 --simulate DEVICE --budget 9h",
        "baseline f --resume b --quick --size 1G --olap",
        "quick --resume q --repetitions 2",
    ] {
        bench.call(line).ends_with(0);
    }
    assert_eq!(["s", "b", "q"].map(|id| bench.findings(id)), findings);
    // Nothing is run for a look.
    let told = bench.call("baseline --resume b --dry-run").ends_with(0);
    assert!(told.stdout.contains("of them are there"), "{}", told.stdout);
    let told = bench.call("quick --resume q --dry-run").ends_with(0);
    assert!(told.stdout.contains("16 runs, 16 of them are there"), "{}", told.stdout);
}

#[test]
fn what_means_nothing_is_refused_whether_it_is_run_or_not() {
    let bench = Bench::with(DEVICE);
    fs::write(bench.path("plan.toml"), "target = \"f\"\nvary = [\"o=1,2\"]\nrepetitions = 0\n")
        .expect("written");
    fs::write(bench.path("named.toml"), "target = \"f\"\nvary = [\"o=1,2\"]\nid = \"a/b\"\n")
        .expect("written");
    fs::write(bench.path("twice.toml"), "vary = [\"o=1,2\"]\nanchors = true\nno-anchors = true\n")
        .expect("written");
    for (line, words) in [
        ("sweep f --vary o=1,2 --dry-run --id ../../evil", &["--id", "letters, digits"][..]),
        ("baseline f --dry-run --id a/b", &["--id", "letters, digits"]),
        ("sweep f --vary o=1,2 --duration 0 --dry-run", &["--duration"]),
        ("sweep f --vary engine=uring,foo --dry-run", &["engine=foo", "no run of this"]),
        ("sweep f --vary b=4K,4096 --dry-run", &["`4096` is `4K` again"]),
        (
            "sweep f --vary o=1..32 --adaptive --order sorted --dry-run",
            &["cannot be sorted", "--order"],
        ),
        ("sweep --plan named.toml --dry-run", &["`a/b`", "no name of a study"]),
        ("sweep --plan twice.toml --dry-run", &["both `anchors` and `no-anchors`"]),
        ("baseline f --duration 0 --dry-run", &["--duration"]),
        ("sweep f --vary o=1,2 --set o=4 --dry-run", &["`o` is set, and varied too"]),
        ("sweep f --vary o=1,2 --set colour=red", &["does not say what to set"]),
        ("sweep --plan plan.toml --dry-run", &["`0` is no number of repetitions"]),
        ("knee --csv f.csv --threads 0.5", &["--threads", "a whole number"]),
    ] {
        refused(&bench, line, words);
    }
}

#[test]
fn settings_are_ranked_among_those_that_ask_for_the_same() {
    let bench = Bench::with(DEVICE);
    let line = "sweep f --simulate DEVICE --vary b=4K,64K --vary w=0,100 --vary o=2,16 --set size=1G --id s";
    bench.call(line).ends_with(0);
    let findings = bench.findings("s");
    for (id, block, writes) in [
        ("best-b4K-w0", 4096, 0),
        ("best-b4K-w100", 4096, 100),
        ("best-b64K-w0", 65_536, 0),
        ("best-b64K-w100", 65_536, 100),
    ] {
        let best = finding(&findings, id);
        let rows = best["table"]["rows"].as_array().expect("rows");
        assert_eq!(rows.len(), 2, "{id}");
        assert!(rows.iter().all(|row| row[5] == block && row[6] == writes), "{rows:?}");
    }
    let said = finding(&findings, "reading")["decision"]["evidence"].to_string();
    assert!(said.contains("R1 of the best setting of b64K w100"), "{said}");
}
