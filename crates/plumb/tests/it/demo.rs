//! `plumb space demo`, as its users meet it.

use std::fs;

use serde_json::Value;

use crate::program::plumb;

fn json(line: &str) -> Value {
    let said = plumb(line).succeeds_quietly();
    serde_json::from_str(&said.stdout).expect("it is JSON")
}

#[test]
fn three_cases_are_shown_and_are_the_same_each_time() {
    let found = json("space demo --scale 512 --json");
    let rate = |case: &str| found["cases"][case]["iops_per_s"].as_f64().expect("a rate");
    let share = |case: &str, tier: &str| found["cases"][case][tier].as_f64().expect("a share");
    let (empty, used, optimized) = (rate("empty"), rate("used"), rate("optimized"));
    assert!((50.0..90.0).contains(&(empty / used)), "{empty} {used}");
    assert!(optimized > 0.95 * empty, "{optimized} {empty}");
    for case in ["empty", "optimized"] {
        assert!(share(case, "performance_tier_share") > 0.999, "{found}");
    }
    assert!(share("used", "performance_tier_share") < 0.01, "{found}");
    assert!(share("used", "capacity_tier_share") > 0.5, "{found}");
    assert_eq!((&found["scale"], &found["placement_status"]), (&512.into(), &1.into()));
    assert_eq!(found["optimization"]["up"], found["optimization"]["up_requested"]);
    assert_eq!(found, json("space demo --scale 512 --json"));
}

#[test]
fn the_demonstration_is_told_and_drawn() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let page = folder.path().join("demo.html");
    let line = format!("space demo --scale 1024 --html {}", page.display());
    let text = plumb(&line).succeeds_quietly().stdout;
    for words in [
        "1:1024 of the full test's",
        "1. The space is empty",
        "2. The Performance tier is full",
        "Storage Tiers Optimization: 100MiB is to move to the SSDs, 100MiB to the HDDs",
        "3. The same load",
        "The file is completely on tier now.",
    ] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let drawn = fs::read_to_string(&page).expect("a page");
    assert!(
        drawn.contains("<svg") && drawn.contains("Performance tier full"),
        "{} bytes",
        drawn.len()
    );
    let before = drawn.len();
    let said = plumb(&line).ends_with(1).stderr;
    assert!(said.contains("does not exist yet"), "{said}");
    assert_eq!(fs::read_to_string(&page).map(|page| page.len()).ok(), Some(before));
    // Before anything is made: slabs are powers of two.
    for scale in ["0", "7", "100", "2048", "1.5"] {
        let said = plumb(&format!("space demo --scale {scale}")).ends_with(2).stderr;
        assert!(said.contains("a power of two, 1 to 1024"), "{said}");
    }
}

#[test]
fn writes_that_wait_for_their_checksums_are_slower() {
    let rate = |found: &Value| found["cases"]["empty"]["iops_per_s"].as_f64().expect("a rate");
    let (one, other) = (
        json("space demo --scale 1024 --json"),
        json("space demo --scale 1024 --write-through --json"),
    );
    // A frame of the journal for each round of them, which passes others by (0281), and no more than that.
    let share = rate(&other) / rate(&one);
    assert!((0.95..0.975).contains(&share), "{} {}", rate(&one), rate(&other));
    assert_eq!(other["write_through"], true);
}
