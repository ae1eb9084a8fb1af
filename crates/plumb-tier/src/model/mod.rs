//! Exhaustive models of the protocols (T3): every interleaving, every crash, every subset that survives, and
//! for each rule that leaving it out loses data.

mod cache;
mod doorbell;
mod explore;
mod mirror;
mod moves;
mod voters;

use cache::Cache;
use explore::{Found, Until, explore, explore_scripts};
use mirror::Mirror;
use moves::{Harm, Moves};
use voters::{Begins, Voters};

/// A model was explored to its end, and has as many states as the documents say: one that was cut down says so.
fn is_recorded(what: &str, found: &Found) {
    let grouped = |number: u64| {
        let digits = number.to_string();
        let first = digits.len() % 3;
        let rest = digits.as_bytes()[first..].chunks(3).map(String::from_utf8_lossy);
        let head = (first > 0).then(|| digits[..first].into());
        head.into_iter().chain(rest).collect::<Vec<_>>().join(",")
    };
    let row = format!("| {what} | {} | {} |", grouped(found.states), grouped(found.crashes));
    println!("{row}");
    assert!(found.wrong.is_empty(), "{what}: {found:?}");
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let text = std::fs::read_to_string(root.join("docs/internals/required-tests.md"));
    let text = text.expect("it is part of the documents");
    assert!(text.lines().any(|line| line == row), "not in docs/internals/required-tests.md: {row}");
}

/// How far the models of data go when somebody has the time: `PLUMB_MODEL_REQUESTS=3`, in an optimized build.
fn more_requests() -> Option<usize> {
    std::env::var("PLUMB_MODEL_REQUESTS").ok().and_then(|text| text.parse().ok())
}

/// All scripts of that many requests, going on after so many crashes.
fn cache_found(rules: cache::Rules, len: usize, starts: u8, until: Until) -> Found {
    let model = |script: &[cache::Op]| vec![Cache { rules, script: script.to_vec(), starts }];
    explore_scripts(&cache::OPS, len, until, model)
}

#[test]
fn the_write_cache_loses_nothing() {
    let more = more_requests().map(|len| (len, 1));
    for (len, starts) in [(3, 0), (2, 1)].into_iter().chain(more) {
        let found = cache_found(cache::ALL, len, starts, Until::Exhausted);
        is_recorded(&format!("write cache: {len} requests, {starts} starts after a crash"), &found);
    }
}

fn cache_without(change: impl Fn(&mut cache::Rules)) {
    let mut rules = cache::ALL;
    change(&mut rules);
    let lost = |(len, starts)| !cache_found(rules, len, starts, Until::Wrong).wrong.is_empty();
    assert!([(2, 0), (2, 1), (3, 0)].into_iter().any(lost), "nothing is lost without it");
}

#[test]
fn fua_needs_a_flush_of_the_log() {
    cache_without(|rules| rules.fua_flushes_log = false);
}

#[test]
fn a_write_needs_its_record_on_every_copy() {
    cache_without(|rules| rules.all_copies = false);
}

#[test]
fn the_tail_needs_a_flush_of_the_log() {
    cache_without(|rules| rules.flush_before_tail = false);
}

#[test]
fn the_tail_stops_at_what_is_not_at_home() {
    cache_without(|rules| rules.tail_waits = false);
}

#[test]
fn live_lines_send_writes_to_the_log() {
    cache_without(|rules| rules.live_to_log = false);
}

#[test]
fn clean_lines_still_send_writes_to_the_log() {
    cache_without(|rules| rules.clean_to_log = false);
}

#[test]
fn a_block_has_one_destage_and_no_write_meanwhile() {
    cache_without(|rules| rules.one_destage = false);
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

/// All scripts of that many requests while an extent moves and something goes wrong.
fn moves_found(rules: moves::Rules, harm: Harm, len: usize, until: Until) -> Found {
    let model = |script: &[moves::Op]| vec![Moves { rules, harm, script: script.to_vec() }];
    explore_scripts(&moves::OPS, len, until, model)
}

#[test]
fn a_move_loses_nothing() {
    for harm in moves::HARMS {
        let found = moves_found(moves::ALL, harm, 3, Until::Exhausted);
        is_recorded(&format!("move: 3 requests, {harm:?}"), &found);
    }
}

fn moves_without(change: impl Fn(&mut moves::Rules)) {
    moves_harmed_without(Harm::Nothing, change);
}

fn moves_harmed_without(harm: Harm, change: impl Fn(&mut moves::Rules)) {
    let mut rules = moves::ALL;
    change(&mut rules);
    let lost = |len: usize| !moves_found(rules, harm, len, Until::Wrong).wrong.is_empty();
    assert!((0..4).any(lost), "nothing is lost without it");
}

#[test]
fn a_hold_has_a_deadline_and_waits_for_nobody_who_waits_for_the_log() {
    moves_harmed_without(Harm::Hangs, |rules| rules.deadline = false);
    moves_without(|rules| rules.leaves_waiters = false);
}

#[test]
fn only_what_is_settled_and_verifies_is_moved() {
    moves_harmed_without(Harm::Rot, |rules| rules.verified = false);
    moves_harmed_without(Harm::Tentative, |rules| rules.verified = false);
}

#[test]
fn a_move_is_written_to_every_copy() {
    moves_harmed_without(Harm::CopyFails, |rules| rules.all_copies = false);
}

#[test]
fn a_move_is_committed_after_the_flush_of_the_new_place() {
    moves_without(|rules| rules.flush_new = false);
}

#[test]
fn what_is_written_while_an_extent_is_copied_is_copied_again() {
    moves_without(|rules| rules.write_dirties = false);
    moves_without(|rules| rules.destage_dirties = false);
}

#[test]
fn writes_are_held_from_the_last_copy_until_the_commit_is_durable() {
    moves_without(|rules| rules.hold = false);
    moves_without(|rules| rules.hold_until_durable = false);
}

#[test]
fn an_old_place_is_free_when_the_commit_is_durable_and_its_readers_have_ended() {
    moves_without(|rules| rules.free_durable = false);
    moves_without(|rules| rules.readers_end = false);
}

#[test]
fn a_moved_extent_keeps_its_checksums() {
    moves_without(|rules| rules.sums_stay = false);
}

#[test]
fn a_start_makes_the_copies_of_the_log_equal() {
    cache_without(|rules| rules.copies_equal = false);
}

#[test]
fn records_that_a_start_did_not_find_never_come_back() {
    cache_without(|rules| rules.epoch_raised = false);
}

/// All scripts of that many requests on a new and on a written block.
fn mirror_found(rules: mirror::Rules, len: usize, until: Until) -> Found {
    explore_scripts(&mirror::OPS, len, until, |script| {
        let model = |fresh| Mirror { rules, script: script.to_vec(), fresh };
        vec![model(true), model(false)]
    })
}

#[test]
fn a_mirrored_block_loses_nothing() {
    for len in std::iter::once(2).chain(more_requests()) {
        let found = mirror_found(mirror::ALL, len, Until::Exhausted);
        is_recorded(&format!("mirrored block: {len} requests"), &found);
    }
}

fn mirror_without(change: impl Fn(&mut mirror::Rules)) {
    let mut rules = mirror::ALL;
    change(&mut rules);
    let lost = |len| !mirror_found(rules, len, Until::Wrong).wrong.is_empty();
    assert!([1, 2].into_iter().any(lost), "nothing is lost without it");
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
fn a_stale_copy_is_not_read() {
    mirror_without(|rules| rules.stale_unread = false);
}

#[test]
fn a_copy_that_returns_gets_what_it_missed() {
    mirror_without(|rules| rules.resync_copies = false);
}

#[test]
fn a_copy_that_returns_is_flushed_before_it_counts() {
    mirror_without(|rules| rules.resync_flushes = false);
}

#[test]
fn a_write_is_on_every_copy_before_the_acknowledgement() {
    mirror_without(|rules| rules.all_copies = false);
}

#[test]
fn a_flush_is_of_every_disk() {
    mirror_without(|rules| rules.flush_all = false);
}

/// Disks, steps, and where it begins.
const VOTERS: [(u8, u8, Begins); 6] = [
    (2, 6, Begins::Whole),
    (3, 4, Begins::Whole),
    (4, 3, Begins::Whole),
    (3, 4, Begins::Alone),
    (4, 4, Begins::HalfTold),
    (5, 3, Begins::HalfTold),
];

#[test]
fn at_most_one_part_of_the_voters_starts() {
    for (disks, steps, begins) in VOTERS {
        let model = Voters { rules: voters::ALL, disks, steps, begins };
        let found = explore(&model, Until::Exhausted);
        is_recorded(&format!("voters: {disks} disks, {begins:?}, {steps} steps"), &found);
    }
}

fn is_lost((disks, steps, begins): (u8, u8, Begins), rules: voters::Rules) -> bool {
    !explore(&Voters { rules, disks, steps, begins }, Until::Wrong).wrong.is_empty()
}

fn voters_without(change: impl Fn(&mut voters::Rules)) {
    let mut rules = voters::ALL;
    change(&mut rules);
    let lost = |case| is_lost(case, rules);
    assert!(VOTERS.into_iter().any(lost), "nothing is lost without it");
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

#[test]
fn new_voters_come_after_the_old_ones() {
    // A start that is held to the lists of others as well would need no such order.
    let rules = voters::Rules { lists: false, ..voters::ALL };
    let lost =
        |case| is_lost(case, voters::Rules { old_first: false, ..rules }) && !is_lost(case, rules);
    assert!(VOTERS.into_iter().any(lost), "nothing is lost without it");
}

#[test]
fn a_generation_counts_when_all_its_voters_have_it() {
    voters_without(|rules| rules.all_have_it = false);
}

#[test]
fn a_generation_in_one_copy_is_not_had_without_the_others() {
    voters_without(|rules| rules.alone = false);
}

#[test]
fn an_older_list_counts_until_half_of_it_have_the_new_one() {
    voters_without(|rules| rules.half_told = false);
}

#[test]
fn a_start_is_held_to_the_lists_that_others_may_go_by() {
    voters_without(|rules| rules.lists = false);
}
