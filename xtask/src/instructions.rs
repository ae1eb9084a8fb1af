//! Instructions per I/O of the run loop on the queue that performs nothing, and of the heat map of a storage space, against committed
//! figures.
//!
//! callgrind counts exactly, whatever else the machine does. The example `null_loop`, or `heat_cost`, runs twice for each
//! figure; the difference of the two is free of start-up and teardown.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;
use std::{env, fs};

use crate::skips::Skip;
use crate::{command, history};

/// The committed figures.
const FILE: &str = "xtask/instructions.txt";
/// How to commit others.
const BLESS: &str = "cargo xtask instructions --bless";
/// The name under which the step says that it was skipped.
const NAME: &str = "null_instructions";
/// How far a figure may be from the committed one, either way, in percent: one that got better by more
/// has to be committed, or the next change may lose it again.
const TOLERANCE: f64 = 3.0;
/// Entries into the queue of the two runs; each is a batch of I/Os.
const RUNS: [u64; 2] = [5_000, 15_000];
/// Depth, and statistics level with the batch where it is not the loop's own, of each figure. Peers are
/// compared with batches of a quarter of the depth. Completions are in order and at once, but for `permuted`: then they come
/// when the loop waits, shuffled. `w30`: 30 of 100 I/Os are writes.
const CASES: [(u32, &str); 10] = [
    (32, "counts"),
    (32, "latencies"),
    (32, "latencies 8"),
    (128, "counts"),
    (128, "latencies"),
    (128, "latencies 32"),
    (32, "latencies 8 permuted"),
    (128, "latencies 32 permuted"),
    (32, "latencies 8 w30"),
    (32, "latencies 8 permuted w30"),
];

/// What is counted of a host I/O by the heat map: alone, and with the sketch of the what-if curve beside it.
const HEAT: [&str; 2] = ["map", "curve"];
/// I/Os of its two runs. By the first the sketch has found how few of the blocks it follows.
const HEAT_RUNS: [u64; 2] = [500_000, 1_000_000];
/// No figure of the heat map may be above this: a host I/O has 50 ns (HEAT-5), and 466 instructions took 48.8 where they were counted, in the
/// quickest of 21 rounds.
const HEAT_GOAL: f64 = 480.0;

/// With latencies no figure of reads in order may be above this, whatever is committed (the goal for user code per I/O); with
/// another compiler than that of the committed figures, by more than the tolerance.
const GOAL: f64 = 230.0;

/// One figure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Figure {
    /// Depth, statistics level and batch.
    pub(crate) name: String,
    /// Instructions per I/O.
    pub(crate) instructions: f64,
}

/// The chore: measures, and compares with the committed figures or replaces them.
///
/// # Errors
/// What could not be measured, or the figures that are out of bounds.
pub(crate) fn run(repository: &Path, bless: bool) -> Result<(), String> {
    if let Some(skip) = lack() {
        return Err(skip.why);
    }
    let measured = measure_all(repository)?;
    if bless {
        let path = repository.join(FILE);
        fs::write(&path, write(&measured)).map_err(|error| format!("{FILE}: {error}"))?;
        print!("{}", write(&measured));
        return Ok(());
    }
    judge(repository, &measured)?;
    meets_the_goal(&measured, false)
}

/// Whether no figure of reads in order with latencies, and none of the heat map, is above its goal.
fn meets_the_goal(measured: &[Figure], is_foreign: bool) -> Result<(), String> {
    let most = if is_foreign { GOAL * (1.0 + TOLERANCE / 100.0) } else { GOAL };
    let most_of = |figure: &Figure| match figure.name.split_once(' ') {
        Some((HEAT_NAME, _)) => HEAT_GOAL,
        Some((_, rest))
            if rest.contains("latencies") && !BESIDE.iter().any(|word| rest.contains(word)) =>
        {
            most
        }
        _ => f64::INFINITY,
    };
    match measured.iter().find(|figure| figure.instructions > most_of(figure)) {
        None => Ok(()),
        Some(figure) => Err(format!(
            "{}: {:.2} instructions per I/O, and {:.1} are the goal",
            figure.name,
            figure.instructions,
            most_of(figure)
        )),
    }
}

/// Words of figures that the goal is not about: it is of reads that the queue completes in order.
const BESIDE: [&str; 2] = ["permuted", "w30"];
/// The first word of the heat map's figures.
const HEAT_NAME: &str = "heat";

/// Those of the run loop.
fn of_the_loop(figures: Vec<Figure>) -> Vec<Figure> {
    figures.into_iter().filter(|figure| !figure.name.starts_with(HEAT_NAME)).collect()
}

/// The step of the gate; a skip where the machine cannot count.
///
/// Figures of another compiler are shown and held against the goal, not against those committed: its version is
/// not what the gate is about.
///
/// # Errors
/// As for [`run`].
pub(crate) fn check(repository: &Path) -> Result<Option<Skip>, String> {
    if let Some(skip) = lack() {
        println!("skipped {}: {}", skip.name, skip.why);
        return Ok(Some(skip));
    }
    let measured = measure_all(repository)?;
    let judged = judge(repository, &measured);
    let is_foreign = is_of_another_compiler(repository);
    match judged {
        Err(trouble) if is_foreign => println!("not judged: {trouble}"),
        _ => judged?,
    }
    meets_the_goal(&measured, is_foreign)?;
    let text = fs::read_to_string(repository.join(FILE)).map_err(|e| format!("{FILE}: {e}"))?;
    history::agrees(repository, &of_the_loop(read(&text)?))?;
    Ok(None)
}

fn is_of_another_compiler(repository: &Path) -> bool {
    fs::read_to_string(repository.join(FILE)).is_ok_and(|text| !text.contains(&compiler()))
}

/// What is missing here, if anything.
fn lack() -> Option<Skip> {
    let why = if !cfg!(target_arch = "x86_64") {
        format!("the committed figures are of x86_64, this is {}", env::consts::ARCH)
    } else if command::find("valgrind").is_none() {
        "valgrind is not installed".to_owned()
    } else {
        return None;
    };
    Some(Skip { name: NAME.to_owned(), why })
}

/// Counts what the run loop takes, and what the heat map does.
fn measure_all(repository: &Path) -> Result<Vec<Figure>, String> {
    let mut measured = measure(repository)?;
    let program = crate::target(repository).join("release/heat_cost");
    for what in HEAT {
        let words = |ios: u64| [ios.to_string(), what.to_owned()];
        let name = format!("{HEAT_NAME} {what}");
        measured.push(figure(&program, name, HEAT_RUNS.map(words))?);
    }
    Ok(measured)
}

/// Builds the examples and counts what the run loop takes.
///
/// # Errors
/// When they cannot be built or run.
pub(crate) fn measure(repository: &Path) -> Result<Vec<Figure>, String> {
    let mut build = Command::new("cargo");
    build.current_dir(repository).args(["build", "--locked", "--release"]);
    // With the command, which the gate builds next: each is linked on one processor.
    build.args(["--package", "plumb", "--package", "plumb-examples", "--bins"]);
    let outcome = command::run(&mut build).map_err(|error| format!("cargo: {error}"))?;
    if !outcome.ok {
        return Err("the examples do not build".to_owned());
    }
    let program = crate::target(repository).join("release/null_loop");
    let of = |(depth, level): &(u32, &str)| {
        let words = |entries: u64| {
            let mut words = vec![entries.to_string(), depth.to_string()];
            words.extend(level.split(' ').map(str::to_owned));
            words
        };
        figure(&program, format!("depth {depth} {level}"), RUNS.map(words))
    };
    CASES.iter().map(of).collect()
}

/// The difference of two runs, with these arguments.
fn figure<W: AsRef<[String]>>(
    program: &Path,
    name: String,
    [few, many]: [W; 2],
) -> Result<Figure, String> {
    let (few, start) = count(program, few.as_ref())?;
    let (many, end) = count(program, many.as_ref())?;
    if many <= few || end <= start {
        return Err(format!("callgrind: {start} instructions, then {end}: nothing to subtract"));
    }
    let instructions = to_f64(end - start) / to_f64(many - few);
    Ok(Figure { name, instructions })
}

/// I/Os and instructions of one run.
fn count(program: &Path, words: &[String]) -> Result<(u64, u64), String> {
    let valgrind = command::find("valgrind").ok_or("valgrind is not installed")?;
    let output = Command::new(valgrind)
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg(program)
        .args(words)
        .output()
        .map_err(|error| format!("valgrind: {error}"))?;
    let ios = parse_ios(&String::from_utf8_lossy(&output.stdout));
    let messages = String::from_utf8_lossy(&output.stderr);
    match (output.status.success(), ios, parse_refs(&messages)) {
        (true, Some(ios), Some(instructions)) => Ok((ios, instructions)),
        _ => Err(format!("callgrind did not count:\n{messages}")),
    }
}

/// `523200 I/Os`
fn parse_ios(output: &str) -> Option<u64> {
    output.trim().strip_suffix(" I/Os")?.parse().ok()
}

/// `==1== I   refs:      99,259,845`
fn parse_refs(messages: &str) -> Option<u64> {
    let refs = |line: &str| {
        let (_, number) = line.split_once(" refs:")?;
        number.trim().replace(',', "").parse().ok()
    };
    messages.lines().find_map(refs)
}

/// Compares with the committed figures and prints the outcome.
fn judge(repository: &Path, measured: &[Figure]) -> Result<(), String> {
    let text = fs::read_to_string(repository.join(FILE))
        .map_err(|error| format!("{FILE}: {error}; `{BLESS}` writes it"))?;
    let (report, out) = compare(&read(&text)?, measured);
    print!("{report}");
    let compiler = compiler();
    match out {
        0 => Ok(()),
        _ if !text.contains(&compiler) => Err(format!(
            "{out} figures are off by more than {TOLERANCE} %; they are of another compiler than \
             {compiler}: if that is the reason, `{BLESS}`"
        )),
        _ => Err(format!(
            "{out} figures are off by more than {TOLERANCE} %; if that is meant, `{BLESS}` \
             and say why in the commit"
        )),
    }
}

/// A line for each figure; how many are out of bounds.
fn compare(committed: &[Figure], measured: &[Figure]) -> (String, usize) {
    let mut report = String::new();
    let mut out = 0;
    for Figure { name, instructions } in measured {
        let known = committed.iter().find(|figure| figure.name == *name);
        let change = known.map(|known| (instructions / known.instructions - 1.0) * 100.0);
        let verdict = match change {
            Some(change) if change.abs() <= TOLERANCE => format!("{change:+.1} %"),
            Some(change) => {
                out += 1;
                format!("{change:+.1} %, OUT OF BOUNDS")
            }
            None => {
                out += 1;
                "NOT COMMITTED".to_owned()
            }
        };
        writeln!(report, "{name:<34} {instructions:>7.2} instructions per I/O  {verdict}")
            .expect("writing to a string works");
    }
    (report, out)
}

/// The committed form: a figure a line, `#` begins a comment.
fn write(figures: &[Figure]) -> String {
    let mut text = format!(
        "# Instructions per I/O of the run loop on `null`, random 4 KiB reads, in order, shuffled (permuted) and with 30 % writes\n\
         # (w30), and of the heat map of a storage space, random 4 KiB in 1 TiB, alone and with the what-if curve; written by\n\
         # `{BLESS}`\n# {}, {}\n",
        env::consts::ARCH,
        compiler()
    );
    for Figure { name, instructions } in figures {
        writeln!(text, "{name}: {instructions:.2}").expect("writing to a string works");
    }
    text
}

fn read(text: &str) -> Result<Vec<Figure>, String> {
    let figure = |line: &str| {
        let (name, number) = line.split_once(": ")?;
        let instructions: f64 = number.trim().parse().ok()?;
        Some(Figure { name: name.to_owned(), instructions })
    };
    text.lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty())
        .map(|line| figure(line).ok_or(format!("{FILE}: `{line}` is no figure; `{BLESS}`")))
        .collect()
}

/// `rustc 1.95.0 (…)`, or that it could not be asked.
pub(crate) fn compiler() -> String {
    let output = Command::new("rustc").arg("--version").output();
    match output {
        Ok(output) => String::from_utf8_lossy(&output.stdout).trim().to_owned(),
        Err(error) => format!("rustc could not be run: {error}"),
    }
}

/// Counts here are far below 2^53.
#[expect(clippy::cast_precision_loss, reason = "counts of a run of seconds are below 2^53")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(committed: &str, measured: &[(&str, f64)], want: &[&str]) {
        let figures = |(name, instructions): &(&str, f64)| Figure {
            name: (*name).to_owned(),
            instructions: *instructions,
        };
        let measured: Vec<Figure> = measured.iter().map(figures).collect();
        let (report, out) = compare(&read(committed).expect("figures"), &measured);
        let verdicts: Vec<&str> =
            report.lines().map(|line| line.split_once("per I/O  ").expect("a verdict").1).collect();
        assert_eq!(verdicts, want);
        assert_eq!(out, want.iter().filter(|verdict| !verdict.ends_with("%")).count());
    }

    #[test]
    fn three_percent_either_way_is_the_bound() {
        let committed = "# comment\ndepth 32 counts: 200.00\n";
        for (instructions, want) in [
            (200.0, "+0.0 %"),
            (205.0, "+2.5 %"),
            (195.0, "-2.5 %"),
            (206.2, "+3.1 %, OUT OF BOUNDS"),
            (190.0, "-5.0 %, OUT OF BOUNDS"),
        ] {
            check(committed, &[("depth 32 counts", instructions)], &[want]);
        }
        check(committed, &[("depth 128 counts", 200.0)], &["NOT COMMITTED"]);
    }

    #[test]
    fn the_goal_holds_whatever_is_committed() {
        let figure = |name: &str, instructions| Figure { name: name.to_owned(), instructions };
        for (name, instructions, is_foreign, want) in [
            ("depth 32 latencies 8", 230.0, false, true),
            ("depth 32 latencies 8", 230.1, false, false),
            ("depth 32 latencies 8", 236.0, true, true),
            ("depth 32 latencies 8", 237.0, true, false),
            ("depth 32 counts", 300.0, false, true),
            ("depth 32 latencies 8 permuted", 260.0, false, true),
            ("depth 32 latencies 8 permuted w30", 300.0, false, true),
            ("heat map", 480.0, false, true),
            ("heat map", 480.1, false, false),
            ("heat curve", 480.1, true, false),
        ] {
            let met = meets_the_goal(&[figure(name, instructions)], is_foreign);
            assert_eq!(met.is_ok(), want, "{name} {instructions}: {met:?}");
        }
    }

    #[test]
    fn what_is_written_can_be_read() {
        let figures = [Figure { name: "depth 32 counts".to_owned(), instructions: 188.25 }];
        assert_eq!(read(&write(&figures)), Ok(figures.to_vec()));
        assert!(read("depth 32 counts 188").is_err());
    }

    #[test]
    fn counts_are_found_in_the_output() {
        assert_eq!(parse_ios("523200 I/Os\n"), Some(523_200));
        assert_eq!(parse_ios("usage"), None);
        let messages = "==1== Events    : Ir\n==1== I   refs:      99,259,845\n";
        assert_eq!(parse_refs(messages), Some(99_259_845));
        assert_eq!(parse_refs("==1== \n"), None);
    }

    #[test]
    fn every_case_has_a_committed_figure() {
        let text = fs::read_to_string(crate::repository().join(FILE)).expect("the figures");
        let names: Vec<String> =
            read(&text).expect("figures").into_iter().map(|figure| figure.name).collect();
        let mut cases: Vec<String> =
            CASES.iter().map(|(depth, level)| format!("depth {depth} {level}")).collect();
        cases.extend(HEAT.map(|what| format!("{HEAT_NAME} {what}")));
        assert_eq!(names, cases);
        let figures = read(&text).expect("figures");
        assert_eq!(of_the_loop(figures).len(), CASES.len(), "those that the history has");
    }
}
