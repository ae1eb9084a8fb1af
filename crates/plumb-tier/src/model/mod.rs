//! Exhaustive models of the protocols (T3): every interleaving, every crash, every subset that survives, and
//! for each rule that leaving it out loses data.

mod cache;
mod explore;
mod mirror;
mod voters;

use cache::{Cache, Op};
use explore::{Found, explore};
use mirror::Mirror;
use voters::Voters;

/// All scripts of that many requests, or until one of them lost something.
fn cache_found(rules: cache::Rules, len: usize, until_wrong: bool) -> Found {
    let ops =
        [Op::Small(0), Op::Small(1), Op::Fua(0), Op::Fua(1), Op::Large(0), Op::Large(1), Op::Flush];
    let mut total = Found::default();
    let mut scripts: Vec<Vec<Op>> = vec![Vec::new()];
    for _ in 0..len {
        let longer = |script: &Vec<Op>| {
            ops.map(|op| script.iter().copied().chain([op]).collect::<Vec<Op>>())
        };
        scripts = scripts.iter().flat_map(longer).collect();
    }
    for script in scripts {
        let found = explore(&Cache { rules, script });
        total.states += found.states;
        total.crashes += found.crashes;
        for (kind, count) in found.wrong {
            *total.wrong.entry(kind).or_default() += count;
        }
        if until_wrong && !total.wrong.is_empty() {
            break;
        }
    }
    total
}

#[test]
fn the_write_cache_loses_nothing() {
    let found = cache_found(cache::ALL, 3, false);
    println!("write cache: {} states, {} crashes", found.states, found.crashes);
    assert!(found.wrong.is_empty(), "{found:?}");
    assert!(found.states > 50_000, "{found:?}");
}

fn cache_without(change: impl Fn(&mut cache::Rules)) {
    let mut rules = cache::ALL;
    change(&mut rules);
    let found = cache_found(rules, 3, true);
    assert!(!found.wrong.is_empty(), "nothing is lost without it: {found:?}");
}

#[test]
fn fua_needs_a_flush_of_the_log() {
    cache_without(|rules| rules.fua_by_round = false);
}

#[test]
fn the_tail_needs_a_flush_of_the_log() {
    cache_without(|rules| rules.flush_before_tail = false);
}

#[test]
fn clean_lines_still_send_writes_to_the_log() {
    cache_without(|rules| rules.clean_to_log = false);
}

#[test]
fn a_destage_cleans_its_own_line_only() {
    cache_without(|rules| rules.cleans_own = false);
}

#[test]
fn a_line_is_clean_after_its_home_was_flushed() {
    cache_without(|rules| rules.home_flushed = false);
}

#[test]
fn a_log_copy_that_missed_records_is_not_read() {
    cache_without(|rules| rules.expel_durable = false);
}

#[test]
fn a_log_copy_that_returns_gets_what_it_missed() {
    cache_without(|rules| rules.return_copies = false);
}

/// All scripts of that many requests on a new and on a written block, or until one lost something.
fn mirror_found(rules: mirror::Rules, len: usize, until_wrong: bool) -> Found {
    let write = |sectors| [mirror::Op::Write(sectors, false), mirror::Op::Write(sectors, true)];
    let writes = [[true, true], [true, false]].into_iter().flat_map(write);
    let ops: Vec<mirror::Op> = writes.chain([mirror::Op::Flush]).collect();
    let mut total = Found::default();
    let mut scripts: Vec<Vec<mirror::Op>> = vec![Vec::new()];
    for _ in 0..len {
        let longer = |script: &Vec<mirror::Op>| {
            let with = |op: &mirror::Op| script.iter().chain([op]).copied().collect::<Vec<_>>();
            ops.iter().map(with).collect::<Vec<_>>()
        };
        scripts = scripts.iter().flat_map(longer).collect();
    }
    for (script, fresh) in scripts.into_iter().flat_map(|s| [(s.clone(), true), (s, false)]) {
        let found = explore(&Mirror { rules, script, fresh });
        total.states += found.states;
        total.crashes += found.crashes;
        for (kind, count) in found.wrong {
            *total.wrong.entry(kind).or_default() += count;
        }
        if until_wrong && !total.wrong.is_empty() {
            break;
        }
    }
    total
}

#[test]
fn a_mirrored_block_loses_nothing() {
    let found = mirror_found(mirror::ALL, 2, false);
    println!("mirror: {} states, {} crashes", found.states, found.crashes);
    assert!(found.wrong.is_empty(), "{found:?}");
    assert!(found.states > 10_000, "{found:?}");
}

fn mirror_without(change: impl Fn(&mut mirror::Rules)) {
    let mut rules = mirror::ALL;
    change(&mut rules);
    let found = mirror_found(rules, 2, true);
    assert!(!found.wrong.is_empty(), "nothing is lost without it: {found:?}");
}

#[test]
fn first_writes_are_tentative() {
    mirror_without(|rules| rules.tentative = false);
}

#[test]
fn a_lost_disk_has_all_its_open_places_stale() {
    mirror_without(|rules| rules.stale_open = false);
}

#[test]
fn decisions_are_durable_before_copies_are_made_equal() {
    mirror_without(|rules| rules.decide_first = false);
}

#[test]
fn the_intent_is_durable_before_the_write() {
    mirror_without(|rules| rules.intent = false);
}

#[test]
fn checksums_are_committed_after_the_flush() {
    mirror_without(|rules| rules.flush_first = false);
}

#[test]
fn a_failed_copy_is_stale_before_the_acknowledgement() {
    mirror_without(|rules| rules.stale_durable = false);
}

#[test]
fn at_most_one_part_of_the_voters_starts() {
    for (disks, steps) in [(2, 6), (3, 4)] {
        let found = explore(&Voters { rules: voters::ALL, disks, steps });
        println!("voters, {disks} disks, {steps} steps: {} states", found.states);
        assert!(found.wrong.is_empty(), "{disks} disks: {found:?}");
        assert!(found.states > 1_000, "{found:?}");
    }
}

fn voters_without(change: impl Fn(&mut voters::Rules)) {
    let mut rules = voters::ALL;
    change(&mut rules);
    let lost = |(disks, steps)| !explore(&Voters { rules, disks, steps }).wrong.is_empty();
    assert!([(2, 4), (3, 4), (2, 6)].into_iter().any(lost), "nothing is lost without it");
}

#[test]
fn going_on_needs_half_of_the_voters() {
    voters_without(|rules| rules.half = false);
}

#[test]
fn a_start_needs_more_than_half_of_the_voters() {
    voters_without(|rules| rules.majority = false);
}

#[test]
fn a_start_raises_the_epoch_first() {
    voters_without(|rules| rules.epoch_first = false);
}
