//! The usage text and the reference.

use std::path::Path;

use super::super::table::OPTIONS;
use super::super::{reference, usage};

#[test]
fn the_usage_has_every_option_and_fits_a_terminal() {
    let usage = usage("plumb run");
    for row in OPTIONS {
        assert!(usage.contains(&row.long_form()), "--{}", row.long);
        assert!(usage.contains(&row.short_form()), "{}", row.short);
        assert!(usage.contains(row.help), "--{}", row.long);
    }
    for line in usage.lines() {
        assert!(line.chars().count() <= 100, "{line}");
    }
    assert!(usage.find("Examples:") < usage.find("--block-size="));
    assert!(usage.contains("'#1', '*1', '-?'"));
}

#[test]
fn the_examples_are_accepted() {
    for line in usage("plumb run").lines().filter_map(|line| line.strip_prefix("  plumb run ")) {
        if !line.contains("-X") {
            assert!(super::read(line).is_ok(), "{line}");
        }
    }
}

/// With `PLUMB_BLESS=1` the file is made anew.
#[test]
fn the_reference_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/options.md");
    let fresh = reference();
    if std::env::var_os("PLUMB_BLESS").is_some() {
        std::fs::write(&path, &fresh).expect("the reference can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == fresh,
        "docs/reference/options.md is stale: run PLUMB_BLESS=1 cargo test -p plumb-load reference"
    );
}
