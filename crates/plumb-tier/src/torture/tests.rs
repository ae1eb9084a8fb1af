use super::*;
use crate::mutation::Mutation;

/// States in which a broken rule must be noticed, so that it is the same on every machine.
const NOTICED_WITHIN: u64 = 3000;
/// And time (T2): processor time of the thread that looks, which others on the machine do not use up.
const NOTICED_IN: Duration = Duration::from_secs(20);

/// CI's share of T1: `PLUMB_TORTURE_STATES` and `PLUMB_TORTURE_SEED` make it longer or another one.
#[test]
fn nothing_acknowledged_is_ever_lost() {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse().ok());
    let options = TortureOptions {
        seed: number("PLUMB_TORTURE_SEED").unwrap_or(1),
        history: None,
        states: Some(number("PLUMB_TORTURE_STATES").unwrap_or(10_000)),
        time: None,
        threads: 2,
        shrinking: Duration::from_secs(20),
        beyond: true,
    };
    let report = torture(&options, &|_| true);
    println!(
        "{} states of {} histories, {} with background work, {} with a cache, {} with moves, {} in an optimization, {} with a rebuild, {} demanding, {} after a failed disk, {} crashed thrice, {} with an older copy, {} beyond what is borne, {} with several disks, {} with a missed generation, {} with index pages, {} with rot while it served, {} with lost sectors, {:?}",
        report.crash_states,
        report.histories,
        report.with_background,
        report.with_cache,
        report.with_moves,
        report.with_optimization,
        report.with_rebuild,
        report.demanding,
        report.with_failed_disk,
        report.with_third_crash,
        report.with_older_copy,
        report.beyond_tolerance,
        report.with_several_failed,
        report.with_missed_generation,
        report.with_index_pages,
        report.with_live_rot,
        report.with_lost_sectors,
        report.elapsed
    );
    if let Some(violation) = report.violations.first() {
        panic!("{violation:#?}");
    }
    assert!(report.with_background * 10 >= report.crash_states * 8, "{report:?}");
    assert!(report.demanding * 2 >= report.crash_states, "{report:?}");
    let shares = [
        ("cache", report.with_cache),
        ("moves", report.with_moves),
        ("optimization", report.with_optimization),
        ("rebuild", report.with_rebuild),
        ("older copy", report.with_older_copy),
        ("several disks", report.with_several_failed),
        ("index pages", report.with_index_pages),
        ("rot while it serves", report.with_live_rot),
        ("lost sectors", report.with_lost_sectors),
    ];
    for (name, share) in shares {
        assert!(share * 50 >= report.crash_states, "{name}: {report:?}");
    }
}

/// Every cell of the failure matrix, and of the list of required tests, names tests that there are.
#[test]
fn every_cell_of_the_failure_matrix_has_its_test() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut sources = String::new();
    for folder in [
        "plumb-tier/src",
        "plumb-tier/tests",
        "plumb-io/tests",
        "plumb-io/src",
        "plumb/tests",
        "plumb/src",
    ] {
        let mut folders = vec![root.join("crates").join(folder)];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).expect("it can be listed").flatten() {
                let path = entry.path();
                if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|extension| extension == "rs") {
                    sources.push_str(&std::fs::read_to_string(path).expect("it can be read"));
                }
            }
        }
    }
    for (document, least) in [("failure-matrix.md", 30), ("required-tests.md", 10)] {
        let text = std::fs::read_to_string(root.join("docs/internals").join(document));
        let text = text.expect("it is part of the documents");
        let cells: Vec<&str> =
            text.lines().filter(|line| line.starts_with("| ") && line.contains('`')).collect();
        assert!(cells.len() >= least, "{document}: {} cells", cells.len());
        // Every second piece stands between marks; files have a path, commands words, variables capitals.
        let names = cells.iter().flat_map(|cell| cell.split('`').skip(1).step_by(2));
        let is_test = |name: &&str| {
            name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_')
                && name.contains('_')
        };
        for name in names.filter(is_test) {
            assert!(
                sources.contains(&format!("#[test]\nfn {name}()"))
                    || sources.contains(&format!("#[test]\n    fn {name}()")),
                "{document}: no test {name}"
            );
        }
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

/// The seed that a violation names leads to the same violation.
#[test]
fn a_violation_is_met_again_by_the_seed_of_its_history() {
    let options = TortureOptions {
        seed: 7,
        history: None,
        states: Some(NOTICED_WITHIN),
        time: None,
        threads: 1,
        shrinking: Duration::ZERO,
        beyond: true,
    };
    crate::mutation::set(Some(Mutation::CommitUnflushed));
    let found = torture(&options, &|_| true);
    let history = found.violations.first().map(|violation| violation.history_seed);
    let named = TortureOptions { seed: 0, history, states: None, ..options };
    let again = torture(&named, &|_| true);
    crate::mutation::set(None);
    assert!(history.is_some(), "it is noticed");
    assert_eq!((again.histories, &again.violations), (1, &found.violations));
    // It is the rule that was missing, and not the history.
    let kept = torture(&named, &|_| true);
    assert_eq!((kept.histories, kept.violations.len(), kept.interrupted), (1, 0, false));
    assert!(kept.crash_states > 0);
}

/// Histories that meet a rule soon with the engine as it is. They are checked first; where they show nothing any
/// more, others are, one after the other.
fn known(mutation: Mutation) -> &'static [u64] {
    match mutation {
        Mutation::MovedSlotReusedEarly => &[2_749_890_410_330_805_917],
        Mutation::CommitFirstCopy => &[11_878_843_922_934_342_159],
        Mutation::RingOverrun => &[5_207_516_293_338_601_926],
        Mutation::LossUnrecorded => &[2_561_053_361_828_326_785],
        Mutation::CheckpointEarly => &[5_018_679_244_836_122_794],
        Mutation::AckBeforeCrcFirst => &[11_501_169_825_929_383_895],
        Mutation::ReadUnverified => &[7_165_131_871_274_000_042],
        Mutation::AckBeforeLog => &[16_160_065_106_482_391_582],
        Mutation::CleanWrittenDirectly => &[1_497_328_247_344_957_574],
        Mutation::DestageUnlocked => &[10_432_922_719_399_047_009],
        Mutation::RebuildMarksLate => &[16_224_840_290_966_929_488],
        Mutation::LogCopyKept | Mutation::LogReturnUncopied => &[16_726_576_251_989_828_978],
        Mutation::LogEpochKept => &[9_503_604_969_298_489_423],
        Mutation::OldCopyTaken => &[11_690_006_874_431_863_027],
        Mutation::HalfStarts => &[14_336_469_805_942_138_168],
        Mutation::SlotReusedEarly => &[11_219_321_044_550_315_147],
        Mutation::ReadUnpinned => &[15_613_909_958_337_926_846],
        _ => &[],
    }
}

/// What came after the crash is left out at once, and of the rest as much as time allows.
#[test]
fn a_broken_promise_is_told_by_a_short_history() {
    crate::mutation::set(Some(Mutation::CommitUnflushed));
    let broken = |seed| usual_history(seed, Duration::ZERO, &mut Tally::default());
    let found = (0..500).filter_map(|nth| broken(history_seed(7, nth)));
    let shares: Vec<f64> = found
        .take(3)
        .map(|long| {
            let limit = Duration::from_secs(20);
            let short = usual_history(long.history_seed, limit, &mut Tally::default());
            let short = short.expect("the same history breaks the same rule");
            assert!(short.crash_at.is_some() && short.crash_at <= long.crash_at, "{short:#?}");
            short.history.len() as f64 / long.history.len() as f64
        })
        .collect();
    crate::mutation::set(None);
    assert_eq!(shares.len(), 3, "they are noticed");
    // How many steps are left depends on how far this machine gets.
    let some = shares.iter().filter(|share| **share <= 0.25).count();
    assert!(some >= 1 && shares.iter().all(|share| *share <= 0.6), "of all steps: {shares:?}");
}

/// How a broken rule was noticed.
#[derive(Debug)]
struct Noticed {
    history: u64,
    states: u64,
    took: Duration,
    what: String,
}

/// Processor time of this thread.
pub(super) fn thread_time() -> Duration {
    let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec.unsigned_abs(), u32::try_from(time.tv_nsec).unwrap_or(0))
}

/// Breaks one rule and lets the checker look for it.
fn notice(mutation: Mutation) -> Option<Noticed> {
    let number = |name: &str| std::env::var(name).ok().and_then(|text| text.parse::<u64>().ok());
    let seed = number("PLUMB_MUTATION_SEED").unwrap_or(7);
    let within = number("PLUMB_MUTATION_STATES").unwrap_or(NOTICED_WITHIN);
    let fresh = number("PLUMB_MUTATION_SEED").is_some();
    let first = known(mutation).iter().copied().filter(|_| !fresh);
    crate::mutation::set(Some(mutation));
    let (mut tally, start) = (Tally::default(), thread_time());
    let noticed = first.chain((0..).map(|nth| history_seed(seed, nth))).find_map(|history| {
        let found = usual_history(history, Duration::ZERO, &mut tally);
        let took = thread_time().saturating_sub(start);
        match found {
            Some(violation) => Some(Some((history, took, violation.what))),
            None if tally.states > within || took > NOTICED_IN && !fresh => Some(None),
            None => None,
        }
    });
    crate::mutation::set(None);
    let (history, took, what) = noticed.flatten()?;
    Some(Noticed { history, states: tally.states, took, what })
}

/// Every second rule, from the first or the second on.
fn are_noticed(from: usize) {
    let named = std::env::var("PLUMB_MUTATION").ok();
    let elsewhere =
        |mutation: Mutation| Mutation::SEEN_ELSEWHERE.iter().any(|(other, _)| *other == mutation);
    let wanted = |mutation: &Mutation| match &named {
        Some(names) => names.split(',').any(|name| format!("{mutation:?}") == name),
        None => !elsewhere(*mutation),
    };
    let (mut missed, mut late) = (Vec::new(), Vec::new());
    let all = Mutation::ALL.iter().copied().filter(wanted);
    for mutation in all.skip(from).step_by(2) {
        match notice(mutation) {
            Some(Noticed { history, states, took, what }) => {
                println!("{mutation:?}: {took:?}, {states} states, history {history}: {what}");
                late.extend((took > NOTICED_IN).then_some((mutation, took)));
            }
            None => missed.push(mutation),
        }
    }
    assert!(missed.is_empty(), "not noticed within {NOTICED_WITHIN} states: {missed:?}");
    assert!(late.is_empty(), "noticed later than after {NOTICED_IN:?}: {late:?}");
}

#[test]
fn broken_rules_are_noticed() {
    are_noticed(0);
}

#[test]
fn other_broken_rules_are_noticed() {
    are_noticed(1);
}

/// Histories in which a promise was broken once, long into a run.
const ONCE_BROKEN: [u64; 20] = [
    // A crash left a generation on a disk in one copy, which the others confirmed: they went on without it by the list of that
    // generation, and by itself it was more than half of the one before, with two that were lost.
    9_638_547_635_702_054_481,
    // A scan mended superblocks over the only two copies that were alike, beside one that a failed update had left: no copy could
    // be confirmed any more, and the disk was nobody's.
    5_389_741_109_549_121_105,
    // A disk that came back was in sync with a former owner's data, where the other one had forgotten the newest content.
    4_111_843_939_946_643_025,
    // Nothing was written of an open extent, and the disk that came back had it in sync: who had been its last holder, away, missed
    // what was written then, and had no mark.
    9_353_574_233_103_318_609,
    // It was the simulator's: of a write that failed in part a crash made the whole, after a flush and a look at it.
    8_567_603_218_009_144_913,
    // A disk had its vote again and not yet its journal, and two of three that were there had none.
    406_794_432_712_719_953,
    // Two starts in a row were cut short while they wrote superblocks, and one disk lost both head copies.
    13_855_695_547_548_966_057,
    15_968_111_084_384_199_711,
    // A scan waited for a disk that hung, again for each of its blocks, and a write that waited for room failed.
    10_241_539_199_918_268_179,
    // Two updates of a disk's superblocks failed in a row, the second one in the half that the first one had left whole; it took
    // part all the while, for what only it held, and no two of its copies were alike.
    17_134_229_167_861_186_129,
    // Both disks of a log were away; it went on with the one that came back first, and the other copy was taken for whole.
    8_953_946_116_293_770_833,
    // A write waited for room in a log for ever: the last disk of what lay there failed with each attempt to make some, and stayed.
    4_374_962_638_318_321_233,
    // A superblock's update could not be flushed; the disk came back, its cache gave two new copies, and the next update wrote over
    // the two that were on the medium, and could not be flushed either.
    9_297_256_548_298_112_593,
    // The last extent that a disk lacked was discarded, and it counted as up to date; the discard was not durable when the power
    // went and the other disk stayed away.
    9_382_313_445_914_640_840,
    // A disk of three left, and another one was lost before it knew: those two that did were too few of the list before.
    6_621_393_463_236_184_707,
    // Starts that were cut short had left a generation on a disk that was away already; nobody had served under it, and it was
    // taken for a part of the pool that had gone on.
    1_590_237_937_889_295_953,
    // A start confirmed first writes, and could make no checkpoint, for another virtual disk's only copy could not be flushed: the
    // next crash tore a write over one of them before that was durable, and it was unwritten.
    13_424_262_880_347_209_297,
    // A block had rotted on one disk and was healed, and before that was durable it was written over: the power cut tore that on all
    // three disks and brought the rot back, and the copy with it was taken for the interrupted write.
    10_192_015_754_617_634_929,
    // The newest checkpoint had rotted on the disks that were here, and a start that left out the one that had it found no room behind the
    // one before, and halted, as all later starts did.
    1_894_997_665_707_280_391,
    3_974_949_451_710_118_136,
];

/// The same of those in which more fails than a space bears.
const ONCE_BROKEN_BEYOND: [u64; 11] = [
    // A write waited for room in a log for as long as a disk hung, stayed for what only it had, and hung at a flush, and failed.
    3_283_341_848_966_250_065,
    // A sector of a log could not be read on one disk, the other copy did not count as up to date, and what both had was given up.
    11_130_240_339_660_226_129,
    // A write was under way when the disk of its only copy was lost, and the checker asked for all of it.
    5_580_695_390_864_850_513,
    // The disk with the only copy of a log failed a flush before a start had read it, and the log was closed where reading was to begin.
    18_140_771_955_240_975_953,
    // A disk forgot what a failed flush was for, and the checker asked for what rested on that.
    8_558_486_611_341_995_093,
    // A flush failed before a start knew which disk the file was, and another one was done without.
    6_907_830_976_038_354_513,
    // The flush behind the second half of an update of superblocks failed, the next one began with the first half, and a power cut tore all.
    16_200_666_073_307_332_177,
    UNFLUSHED_FOR_A_VOTE,
    // The flush of a disk with the only copy hung while a round committed first writes, and these were written over before anybody knew their
    // commit to be durable.
    6_119_785_059_347_555_568,
    // A first write was read from the one copy that had it, a start could not flush it to the other one, and the checker asked for it when the first
    // one was gone.
    9_327_740_318_636_934_609,
    CONFIRMED_UNHELD,
];

/// A start found a first write on one of two disks, lost that one, and could not give it to the other, and confirmed it all the same.
const CONFIRMED_UNHELD: u64 = 18_288_015_465_912_385_105;

/// A disk with the only copy of a virtual disk failed a flush when it was to get its vote back, and nothing of the mirror beside it was taken for
/// durable any more, which has another copy of all.
const UNFLUSHED_FOR_A_VOTE: u64 = 12_633_001_207_131_192_913;

/// A history that holds fails without a rule.
fn fails_without(rule: Mutation, history: u64) {
    let went = || one_history(history, Duration::ZERO, &mut Tally::default());
    assert_eq!(went(), None);
    crate::mutation::set(Some(rule));
    let without = went();
    crate::mutation::set(None);
    println!("{rule:?}: {:?}", without.as_ref().map(|found| &found.what));
    assert!(without.is_some(), "{rule:?} is not noticed");
}

#[test]
fn a_first_write_is_confirmed_where_every_copy_holds_it() {
    fails_without(Mutation::ConfirmedUnheld, CONFIRMED_UNHELD);
}

#[test]
fn a_flush_that_fails_where_nobody_waits_for_it_costs_a_mirror_nothing() {
    fails_without(Mutation::UnflushedStays, UNFLUSHED_FOR_A_VOTE);
}

/// One copy of three had rotted, which the checker did not read before a write to the same block was torn on all of them: nobody can tell
/// which is right then, and it asked for that.
const ONCE_ASKED_TOO_MUCH: u64 = 1_975_563_554_084_148_547;

#[test]
fn histories_that_broke_a_promise_once_keep_it() {
    let mut tally = Tally::default();
    assert_eq!(one_history(ONCE_ASKED_TOO_MUCH, Duration::ZERO, &mut tally), None);
    assert!(tally.states > 30, "{tally:?}");
    for seed in ONCE_BROKEN {
        let mut tally = Tally::default();
        assert_eq!(usual_history(seed, Duration::ZERO, &mut tally), None, "{seed}");
        assert!(tally.states > 0, "{seed}");
    }
    for seed in ONCE_BROKEN_BEYOND {
        let mut tally = Tally::default();
        assert_eq!(one_history(seed, Duration::ZERO, &mut tally), None, "{seed}");
        assert!(tally.unborne > 0, "{seed}");
    }
}
