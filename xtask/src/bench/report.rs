//! Tables for people, samples for programs.

use std::fmt::Write as _;

use super::spread::{Ratio, Spread};
use super::target::Kind;
use super::tool::Sample;

/// Runs of one tool at one target and depth.
pub(super) struct Row {
    pub(super) kind: Kind,
    pub(super) depth: u32,
    pub(super) tool: &'static str,
    pub(super) command: String,
    /// One for each repeat; none where it failed.
    pub(super) samples: Vec<Option<Sample>>,
}

impl Row {
    fn cpu(&self) -> Vec<f64> {
        self.figures(|sample| sample.cpu_ns_per_io)
    }

    fn iops(&self) -> Vec<f64> {
        self.figures(|sample| sample.iops)
    }

    /// NaN where a repeat is missing: those of two tools stay in pairs.
    fn figures(&self, figure: impl Fn(&Sample) -> f64) -> Vec<f64> {
        self.samples.iter().map(|sample| sample.as_ref().map_or(f64::NAN, &figure)).collect()
    }

    /// Repeats that were measured.
    pub(super) fn runs(&self) -> usize {
        self.samples.iter().flatten().count()
    }
}

/// A goal: our CPU time over a peer's, with latencies and the same batch.
struct Goal {
    kinds: &'static [Kind],
    depths: &'static [u32],
    peer: &'static str,
    at_most: f64,
}

const GOALS: &[Goal] = &[
    goal(&[Kind::Null], &[32, 128], "fio", 0.12),
    goal(&[Kind::Nop, Kind::NopFile], &[1], "t/io_uring", 1.00),
    goal(&[Kind::Nop, Kind::NopFile], &[32], "t/io_uring", 1.08),
    goal(&[Kind::Nop, Kind::NopFile], &[128], "t/io_uring", 1.12),
    goal(&[Kind::Cached], &[32, 128], "fio", 0.40),
    goal(&[Kind::Cached], &[32, 128], "fio tuned", 0.65),
    goal(&[Kind::Cached], &[32, 128], "t/io_uring", 1.05),
    goal(&[Kind::Cached], &[1, 4], "fio", 0.55),
    goal(&[Kind::Cached], &[1, 4], "fio tuned", 0.70),
    goal(&[Kind::Cached], &[1, 4], "t/io_uring", 1.08),
    goal(&[Kind::Loop, Kind::Ext4], &[32, 128], "fio", 0.45),
];

impl Goal {
    fn is_of(&self, row: &Row) -> bool {
        self.is_at(row.kind, row.depth)
    }

    fn is_at(&self, kind: Kind, depth: u32) -> bool {
        self.kinds.contains(&kind) && self.depths.contains(&depth)
    }
}

const fn goal(
    kinds: &'static [Kind],
    depths: &'static [u32],
    peer: &'static str,
    at_most: f64,
) -> Goal {
    Goal { kinds, depths, peer, at_most }
}

/// With latencies so much of the throughput without them is kept, at these targets and this depth.
const KEPT: (&[Kind], u32, f64) = (&[Kind::Cached, Kind::Ext4], 32, 0.97);

/// What a goal is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Measure {
    /// CPU time per I/O, ours over the peer's: at most the goal.
    Cpu,
    /// I/Os per second, ours over the peer's: at least the goal.
    Iops,
}

/// A goal at one target and depth.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Question {
    kind: Kind,
    pub(super) ours: &'static str,
    pub(super) peer: &'static str,
    pub(super) measure: Measure,
    goal: f64,
}

impl Question {
    /// The cells of a row that say what is asked.
    pub(super) fn name(&self, depth: u32) -> String {
        let Self { kind, peer, goal, .. } = self;
        let kind = kind.name();
        match self.measure {
            Measure::Cpu => format!("| {kind} | {depth} | {peer} | ≤ {goal:.2}"),
            Measure::Iops => format!("| {kind} | {depth} | IOPS without latencies | ≥ {goal:.2}"),
        }
    }

    /// What the quotient that is judged may not be above: of rates it is the inverse.
    pub(super) fn at_most(&self) -> f64 {
        match self.measure {
            Measure::Cpu => self.goal,
            Measure::Iops => 1.0 / self.goal,
        }
    }
}

/// The goals of a target at a depth.
pub(super) fn questions(kind: Kind, depth: u32) -> Vec<Question> {
    let goals = GOALS.iter().filter(|goal| goal.is_at(kind, depth)).map(|goal| Question {
        kind,
        ours: "plumb",
        peer: goal.peer,
        measure: Measure::Cpu,
        goal: goal.at_most,
    });
    let (kinds, at, least) = KEPT;
    let is_kept = kinds.contains(&kind) && at == depth;
    let kept = is_kept.then_some(Question {
        kind,
        ours: "plumb",
        peer: "plumb, no latencies",
        measure: Measure::Iops,
        goal: least,
    });
    goals.chain(kept).collect()
}

/// What is beside the goals of all that was measured, in Markdown: rows of one target and depth follow each other.
pub(super) fn goals(rows: &[Row]) -> String {
    let mut text = String::new();
    line(&mut text, "| target | depth | against | goal | measured | t/io_uring ÷ it | |");
    line(&mut text, "|---|---:|---|---:|---|---:|---|");
    for rows in rows.chunk_by(|one, next| (one.kind, one.depth) == (next.kind, next.depth)) {
        let Some(ours) = rows.iter().find(|row| row.tool == "plumb") else { continue };
        let place = format!("| {} | {} |", ours.kind.name(), ours.depth);
        for goal in GOALS.iter().filter(|goal| goal.is_of(ours)) {
            let Some(peer) = rows.iter().find(|row| row.tool == goal.peer) else { continue };
            let Some(ratio) = Ratio::of(&ours.cpu(), &peer.cpu()) else { continue };
            // What the kernel's own peak tool leaves of the goal.
            let least = rows.iter().find(|row| row.tool == "t/io_uring" && row.tool != peer.tool);
            let least = least.and_then(|least| Ratio::of(&least.cpu(), &peer.cpu()));
            let least = least.map_or_else(String::new, |least| format!("{:.2}", least.value));
            let verdict = ratio.verdict_by_medians(goal.at_most);
            let (peer, most) = (peer.tool, goal.at_most);
            line(
                &mut text,
                &format!("{place} {peer} | ≤ {most:.2} | {ratio} | {least} | {verdict} |"),
            );
        }
        let (kinds, depth, least) = KEPT;
        if let Some(bare) = rows.iter().find(|row| row.tool == "plumb, no latencies")
            && kinds.contains(&ours.kind)
            && depth == ours.depth
            && let Some(ratio) = Ratio::of(&bare.iops(), &ours.iops())
        {
            // The verdict is about the inverse, which is not to be above one over the goal.
            let verdict = ratio.verdict_by_medians(1.0 / least);
            let Some(ratio) = Ratio::of(&ours.iops(), &bare.iops()) else { continue };
            line(
                &mut text,
                &format!("{place} IOPS without latencies | ≥ {least:.2} | {ratio} | | {verdict} |"),
            );
        }
    }
    text
}

/// The tables of one target at one depth, in Markdown.
pub(super) fn tables(rows: &[Row]) -> String {
    let mut text = String::new();
    let Some(first) = rows.first() else { return text };
    let (kind, depth) = (first.kind, first.depth);
    line(&mut text, &format!("### {}, depth {depth}\n", kind.name()));
    line(&mut text, "| tool | CPU ns per I/O, median | min | max | runs |");
    line(&mut text, "|---|---:|---:|---:|---:|");
    for row in rows {
        if let Some(Spread { median, min, max }) = Spread::of(&row.cpu()) {
            let (tool, runs) = (row.tool, row.runs());
            line(&mut text, &format!("| {tool} | {median:.1} | {min:.1} | {max:.1} | {runs} |"));
        }
    }
    line(&mut text, "\n| ratio of CPU time | | goal | |\n|---|---:|---:|---|");
    let ours = &rows[0];
    for peer in &rows[1..] {
        ratio_line(&mut text, ours, peer);
    }
    // Of rates, not of CPU time: what latencies cost in throughput.
    if let Some(bare) = rows.iter().find(|row| row.tool == "plumb, no latencies")
        && let Some(ratio) = Ratio::of(&ours.iops(), &bare.iops())
    {
        line(&mut text, &format!("| IOPS with latencies / without | {ratio} | | |"));
    }
    line(&mut text, "");
    text
}

fn ratio_line(text: &mut String, ours: &Row, peer: &Row) {
    let Some(ratio) = Ratio::of(&ours.cpu(), &peer.cpu()) else {
        line(text, &format!("| {} / {} | none: runs are missing | | |", ours.tool, peer.tool));
        return;
    };
    let goal = GOALS.iter().find(|goal| goal.peer == peer.tool && goal.is_of(ours));
    let (bound, verdict) = match goal {
        Some(goal) => (format!("≤ {:.2}", goal.at_most), ratio.verdict(goal.at_most)),
        None => {
            line(text, &format!("| {} / {} | {ratio} | | |", ours.tool, peer.tool));
            return;
        }
    };
    line(text, &format!("| {} / {} | {ratio} | {bound} | {verdict} |", ours.tool, peer.tool));
}

fn line(text: &mut String, line: &str) {
    writeln!(text, "{line}").expect("writing to a string works");
}

/// Facts, commands and samples, one object.
pub(super) fn json(facts: &[(&str, String)], rows: &[Row]) -> String {
    let mut text = "{\n".to_owned();
    for (name, value) in facts {
        line(&mut text, &format!("  {}: {},", quote(name), quote(value)));
    }
    text.push_str("  \"rows\": [");
    for (index, row) in rows.iter().enumerate() {
        let list = |figures: Vec<f64>| {
            let word = |figure: &f64| match figure.is_finite() {
                true => format!("{figure:.3}"),
                false => "null".to_owned(),
            };
            figures.iter().map(word).collect::<Vec<_>>().join(", ")
        };
        let comma = if index == 0 { "" } else { "," };
        let (kind, depth, tool) = (quote(row.kind.name()), row.depth, quote(row.tool));
        let (command, cpu, iops) = (quote(&row.command), list(row.cpu()), list(row.iops()));
        write!(
            text,
            "{comma}\n    {{ \"target\": {kind}, \"depth\": {depth}, \"tool\": {tool}, \"command\": \
             {command}, \"cpu_ns_per_io\": [{cpu}], \"iops\": [{iops}] }}"
        )
        .expect("writing to a string works");
    }
    text.push_str("\n  ]\n}\n");
    text
}

/// A JSON string.
pub(crate) fn quote(text: &str) -> String {
    let mut quoted = "\"".to_owned();
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c.is_control() => {
                write!(quoted, "\\u{:04x}", u32::from(c)).expect("writing to a string works");
            }
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(tool: &'static str, cpu: &[f64]) -> Row {
        let sample =
            |cpu: &f64| cpu.is_finite().then_some(Sample { cpu_ns_per_io: *cpu, iops: 1000.0 });
        let command = format!("{tool} \"F\"");
        let samples = cpu.iter().map(sample).collect();
        Row { kind: Kind::Cached, depth: 32, tool, command, samples }
    }

    #[test]
    fn a_table_shows_spread_ratios_and_goals() {
        let rows = [row("plumb", &[40.0, 41.0, 39.0]), row("fio", &[100.0, 100.0, 100.0])];
        let text = tables(&rows);
        assert!(text.contains("| plumb | 40.0 | 39.0 | 41.0 | 3 |\n"), "{text}");
        let goal = "| plumb / fio | 0.40 (0.39 to 0.41) | ≤ 0.40 | undecided: the spread covers \
                    it |\n";
        assert!(text.contains(goal), "{text}");
    }

    /// The third of ours would else be held against the fourth of theirs, of another minute.
    #[test]
    fn a_repeat_that_is_missing_shifts_no_pair() {
        let gap = [row("plumb", &[40.0, f64::NAN, 39.0]), row("fio", &[100.0, 50.0, 100.0])];
        let text = tables(&gap);
        assert!(text.contains("| plumb | 39.5 | 39.0 | 40.0 | 2 |\n"), "{text}");
        assert!(text.contains("| plumb / fio | none: runs are missing | | |\n"), "{text}");
        assert!(json(&[], &gap).contains("[40.000, null, 39.000]"));
    }

    #[test]
    fn goals_stand_together() {
        let rows = [
            row("plumb", &[40.0, 41.0, 39.0]),
            row("plumb, no latencies", &[30.0, 30.0, 30.0]),
            row("fio", &[100.0, 100.0, 100.0]),
            row("fio tuned", &[50.0, 50.0, 50.0]),
            row("t/io_uring", &[36.0, 36.0, 36.0]),
        ];
        let text = goals(&rows);
        let expected = "| cached | 32 | fio | ≤ 0.40 | 0.40 (0.39 to 0.41) | 0.36 | met by the medians; the spread \
                        covers it |\n| cached | 32 | fio tuned | ≤ 0.65 | 0.80 (0.78 to 0.82) | 0.72 | MISSED |\n\
                        | cached | 32 | t/io_uring | ≤ 1.05 | 1.11 (1.08 to 1.14) |  | MISSED |\n| cached | 32 | \
                        IOPS without latencies | ≥ 0.97 | 1.00 (1.00 to 1.00) | | met |\n";
        assert!(text.ends_with(expected), "{text}");
    }

    #[test]
    fn samples_are_json() {
        let text = json(&[("date", "today\n".to_owned())], &[row("fio", &[1.5])]);
        assert_eq!(
            text,
            "{\n  \"date\": \"today\\u000a\",\n  \"rows\": [\n    { \"target\": \"cached\", \
             \"depth\": 32, \"tool\": \"fio\", \"command\": \"fio \\\"F\\\"\", \"cpu_ns_per_io\": \
             [1.500], \"iops\": [1000.000] }\n  ]\n}\n"
        );
    }
}
