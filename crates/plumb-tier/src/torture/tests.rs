use super::*;
use crate::mutation::Mutation;

/// CI's share of T1: `PLUMB_TORTURE_STATES` and `PLUMB_TORTURE_SEED` make it longer or another one.
#[test]
fn nothing_acknowledged_is_ever_lost() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let options = TortureOptions {
        seed: number("PLUMB_TORTURE_SEED").unwrap_or(1),
        states: Some(number("PLUMB_TORTURE_STATES").unwrap_or(10_000)),
        time: None,
        threads: 2,
        shrinking: Duration::from_secs(20),
    };
    let report = torture(&options, &|_| {});
    println!(
        "{} states of {} histories, {} with background work, {} with a cache, {} with a rebuild, {} demanding, {} after a failed disk, {:?}",
        report.crash_states,
        report.histories,
        report.with_background,
        report.with_cache,
        report.with_rebuild,
        report.demanding,
        report.with_failed_disk,
        report.elapsed
    );
    if let Some(violation) = report.violations.first() {
        panic!("{violation:#?}");
    }
    assert!(report.with_background * 10 >= report.crash_states * 8, "{report:?}");
    assert!(report.demanding * 2 >= report.crash_states, "{report:?}");
    for (name, share) in [("cache", report.with_cache), ("rebuild", report.with_rebuild)] {
        assert!(share * 50 >= report.crash_states, "{name}: {report:?}");
    }
}

/// One history again, by its own seed: `PLUMB_TORTURE_HISTORY`.
#[test]
fn a_history_is_checked_again() {
    let named = std::env::var("PLUMB_TORTURE_HISTORY").ok().and_then(|text| text.parse().ok());
    let mut tally = Tally::default();
    let found = one_history(named.unwrap_or(3), Duration::ZERO, &mut tally);
    assert_eq!(found, None);
    assert!(tally.states > 0, "{tally:?}");
}

/// A seed whose histories meet that rule early.
fn seed_for(mutation: Mutation) -> u64 {
    match mutation {
        Mutation::DestageUnlocked | Mutation::LogDataUnverified => 1,
        Mutation::CommitFirstCopy | Mutation::CleanWrittenDirectly => 2,
        Mutation::ReadStale
        | Mutation::ReadUnverified
        | Mutation::LogOverrun
        | Mutation::RebuiltUnmarked => 3,
        Mutation::RingOverrun => 5,
        Mutation::HalfStarts => 8,
        _ => 7,
    }
}

/// Breaks one rule and lets the checker look for it; after how many states it saw that.
fn states_until_caught(mutation: Mutation) -> Option<u64> {
    crate::mutation::set(Some(mutation));
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let options = TortureOptions {
        seed: number("PLUMB_MUTATION_SEED").unwrap_or_else(|| seed_for(mutation)),
        states: Some(number("PLUMB_MUTATION_STATES").unwrap_or(1_500)),
        time: None,
        threads: 1,
        shrinking: Duration::ZERO,
    };
    let report = torture(&options, &|_| {});
    crate::mutation::set(None);
    let violation = report.violations.first()?;
    println!(
        "{mutation:?}: {} states, {:?}, {}",
        report.crash_states, report.elapsed, violation.what
    );
    Some(report.crash_states)
}

/// Every second rule, from the first or the second on.
fn are_noticed(from: usize) {
    let only = std::env::var("PLUMB_MUTATION").ok();
    let missed: Vec<Mutation> = Mutation::OFTEN_SEEN
        .iter()
        .copied()
        .skip(from)
        .step_by(2)
        .filter(|mutation| only.as_ref().is_none_or(|name| format!("{mutation:?}") == *name))
        .filter(|mutation| states_until_caught(*mutation).is_none())
        .collect();
    assert!(missed.is_empty(), "not noticed: {missed:?}");
}

#[test]
fn broken_rules_are_noticed() {
    are_noticed(0);
}

#[test]
fn other_broken_rules_are_noticed() {
    are_noticed(1);
}
