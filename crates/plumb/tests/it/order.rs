//! Where I/O goes (spec 6.5, 6.6): writes into files of zeroes leave their traces.

use std::collections::BTreeSet;

use crate::place::{Place, can, count, document, number};

/// Blocks of the files here.
const BLOCK: usize = 4096;

/// What a run left behind.
struct Traces {
    /// Blocks that were written to.
    blocks: Vec<usize>,
    /// I/Os that were counted; those in flight at the end were not.
    ios: usize,
}

impl Traces {
    /// Runs a line on a new file of zeroes, of 1024 blocks.
    fn of(place: &Place, name: &str, line: &str) -> Self {
        place.run(&format!("-Z -c4M -d0 -W0 {name}")).succeeds_quietly();
        let outcome = place.run(&format!("--json -b4K -w100 -d1 -W0 {line} {name}"));
        let result = document(&outcome.ends_with(0).stdout);
        let bytes = place.read(name);
        let blocks = bytes.chunks(BLOCK).enumerate();
        let blocks = blocks.filter(|(_, block)| block.iter().any(|byte| *byte != 0));
        let ios = usize::try_from(count(&result, "/total/io_count")).expect("a few");
        let traces = Self { blocks: blocks.map(|(number, _)| number).collect(), ios };
        assert!(traces.ios >= 30 && !traces.blocks.is_empty(), "{line}: {} I/Os", traces.ios);
        traces
    }

    /// Whether the blocks are `from`, `from + step`, … without a gap.
    fn is_run(&self, from: usize, step: usize) -> bool {
        let wanted = (0..self.blocks.len()).map(|place| from + place * step);
        self.blocks.iter().copied().eq(wanted)
    }

    /// Whether so many blocks were written, and what came behind the measurement.
    fn is_about(&self, blocks: usize) -> bool {
        (blocks..=blocks + 40).contains(&self.blocks.len())
    }

    /// Blocks without a written one before them.
    fn pieces(&self) -> usize {
        let gaps = self.blocks.windows(2).filter(|pair| pair[0] + 1 != pair[1]);
        gaps.count() + 1
    }
}

/// A rule for a line of options.
type Rule = (&'static str, fn(&Traces) -> bool);

const RULES: &[Rule] = &[
    // One thread walks from the start, in steps.
    ("-g200i", |seen| seen.is_run(0, 1) && seen.is_about(seen.ios)),
    ("-g200i -s8K", |seen| seen.is_run(0, 2) && seen.is_about(seen.ios)),
    ("-g200i -o1 -s", |seen| seen.is_run(0, 1) && seen.is_about(seen.ios)),
    ("-g200i -u -o4", |seen| seen.is_run(0, 1) && seen.is_about(seen.ios)),
    ("-g200i -B1M", |seen| seen.is_run(256, 1) && seen.is_about(seen.ios)),
    // From the end back to the start.
    ("-f128K -s", |seen| seen.is_run(0, 1) && seen.blocks.len() == 32),
    ("-B1M:64K -s", |seen| seen.is_run(256, 1) && seen.blocks.len() == 16),
    // Two threads: each its own walk, one walk together, walks from different places.
    ("-g200i -t2", |seen| seen.is_run(0, 1) && seen.is_about(seen.ios / 2)),
    ("-g200i -t2 -si", |seen| seen.is_run(0, 1) && seen.is_about(seen.ios)),
    ("-g200i -F3 -si", |seen| seen.is_run(0, 1) && seen.is_about(seen.ios)),
    ("-g200i -t2 -T2M", |seen| {
        let (low, high): (Vec<usize>, Vec<usize>) =
            seen.blocks.iter().partition(|block| **block < 512);
        let halves = [(low, 0), (high, 512)];
        halves.into_iter().all(|(blocks, from)| {
            let half = Traces { blocks, ios: seen.ios / 2 };
            half.is_run(from, 1) && half.blocks.len() > 20
        })
    }),
    // Four requests walk the same way.
    ("-g200i -p -o4", |seen| seen.is_run(0, 1) && seen.is_about(seen.ios / 4)),
    // Anywhere.
    ("-g200i -r", |seen| seen.pieces() * 2 > seen.ios),
    ("-g200i -r64K", |seen| seen.blocks.iter().all(|block| block % 16 == 0)),
    ("-g200i -r -B1M -f2M", |seen| seen.blocks.iter().all(|block| (256..512).contains(block))),
    ("-g200i -r -f8K -B4K", |seen| seen.blocks == [1]),
    // Half of the I/Os go on where the one before was.
    ("-g200i -rs50", |seen| (seen.ios / 4..seen.ios * 3 / 4).contains(&seen.pieces())),
    // Parts of the target.
    ("-g200i -r -rdabs100/1M", |seen| seen.blocks.iter().all(|block| *block < 256)),
    ("-g200i -r -rdpct0/50:100/50", |seen| seen.blocks.iter().all(|block| *block >= 512)),
    ("-g200i -r -rdabs90/1M:10/3M", |seen| {
        let outside = seen.blocks.iter().filter(|block| **block >= 256).count();
        (1..seen.ios / 4).contains(&outside)
    }),
];

#[test]
fn io_goes_where_the_options_say() {
    let place = Place::new();
    let numbered: Vec<(usize, &Rule)> = RULES.iter().enumerate().collect();
    Place::each(&numbered, |(number, (line, holds))| {
        if !can("io_goes_where_the_options_say", line) {
            return;
        }
        let traces = Traces::of(&place, &format!("{number}.dat"), line);
        assert!(holds(&traces), "{line}: {} I/Os, blocks {:?}", traces.ios, traces.blocks);
    });
}

#[test]
fn the_seed_decides_the_order() {
    let place = Place::new();
    let sets: Vec<_> = ["-z5", "-z5", "-z6"]
        .iter()
        .enumerate()
        .map(|(number, seed)| {
            // One request at a time, so that what was issued is what was drawn first.
            let line = format!("-g150i -o1 -r {seed}");
            let traces = Traces::of(&place, &format!("{number}.dat"), &line);
            BTreeSet::from_iter(traces.blocks)
        })
        .collect();
    let (fewer, more) = match sets[0].len() <= sets[1].len() {
        true => (&sets[0], &sets[1]),
        false => (&sets[1], &sets[0]),
    };
    // The slower run is the beginning of the faster one.
    assert!(fewer.is_subset(more), "{fewer:?}\n{more:?}");
    let common = sets[2].intersection(&sets[0]).count();
    assert!(common * 2 < sets[2].len(), "{common} blocks in common");
}

#[test]
fn a_distribution_is_reported_as_it_takes_effect() {
    let place = Place::new();
    place.run("-c4M -d0 -W0 f.dat").succeeds_quietly();
    let line = "-b4K -r -rdpct90/10:5/20 -o4 -d1 -W0 f.dat";
    let text = place.run(line).succeeds_quietly().stdout;
    for line in [
        "target: f.dat [thread: 0]",
        "    90% of IO => [     0    -    408KiB)",
        "     5% of IO => [   408KiB -   1.20MiB)",
        "     5% of IO => [  1.20MiB -      4MiB)",
    ] {
        assert!(text.lines().any(|shown| shown == line), "{line}: {text}");
    }
    let result = place.json(line);
    let at = "/time_spans/0/threads/0/targets/0/effective_distribution";
    assert!(number(&result, &format!("{at}/ranges/0/length_bytes")) > 0.0, "{result:#}");
}
