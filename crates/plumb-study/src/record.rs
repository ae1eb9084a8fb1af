//! Results of runs as they are compared: figures per time span, and what makes them comparable
//! (method, 6.5).

mod comparable;
mod error;
mod fitness;
mod mode;
mod overview;

use plumb_load::convert::{self, ForeignEpoch, ImportError, ImportedResult, ImportedSpan};
use plumb_load::profile::json::normalised;
use serde_json::{Map, Value};

use crate::compare::{self, Between, Metric, SteadyRun};
use crate::decision::{self, Subject};
use crate::environment;
use crate::percentile::{self, Mark};
use crate::report;
use crate::tiers;

pub use comparable::{Allowance, Incomparable};
pub(crate) use comparable::{Circumstances, add_once};
pub use fitness::Fitness;
pub use mode::Mode;
pub use overview::Overview;

/// One result: one or more time spans of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// Whose measuring method, and which; `None` where the result does not say.
    pub epoch: Option<String>,
    /// The normalised profile; `None` where the result does not say.
    pub profile: Option<Value>,
    /// Who performed the I/O; `None` where the result does not say.
    pub engine: Option<String>,
    /// The environment that was stored with it, or what the result itself says of its machine; null without.
    pub environment: Value,
    /// What it says against itself.
    pub fitness: Fitness,
    /// What a list of results shows.
    pub overview: Overview,
    /// The effective mode of each measured time span; unknown where the result does not say.
    pub modes: Vec<Mode>,
    /// The measured time spans.
    pub spans: Vec<Figures>,
}

/// The figures of a time span.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Figures {
    /// I/Os.
    pub count: u64,
    /// I/Os per second.
    pub iops: f64,
    /// I/Os per second of each interval, where there are intervals.
    pub series: Vec<f64>,
    /// Mean latency of each of them in milliseconds, NaN where nothing completed; empty where it was not measured.
    pub latency_series: Vec<f64>,
    /// Seconds of an interval.
    pub interval_s: f64,
    /// Mean latency in milliseconds.
    pub latency_ms: Option<f64>,
    /// Standard deviation of the latencies in milliseconds, where the result has it.
    pub latency_deviation_ms: Option<f64>,
    /// (percent, milliseconds) of the latencies.
    pub percentiles: Vec<(f64, f64)>,
    /// (percent, intervals with an I/O that took as long, all intervals) of those of the tail; empty where latencies were
    /// not kept per interval.
    pub spreads: Vec<(f64, (usize, usize))>,
    /// Microseconds of processor time of the whole machine per I/O.
    pub cpu_us_per_io: Option<f64>,
}

/// Why a file is no result.
#[derive(Debug, thiserror::Error, miette::Diagnostic)]
pub enum RecordError {
    /// Neither text nor XML that can be read.
    #[error("it cannot be read as a result")]
    #[diagnostic(
        code(plumb::record::import),
        help("results are what DISKSPD or Plumb print: text, XML (-Rxml) or JSON (--json)")
    )]
    Import {
        /// What the reader says.
        source: ImportError,
    },
    /// JSON that is no result.
    #[error("it is JSON but no result: {what}")]
    #[diagnostic(code(plumb::record::json), help("take what `plumb run --json` prints, unchanged"))]
    Json {
        /// What is wrong.
        what: String,
    },
    /// Nothing was measured.
    #[error("it holds no time span that was measured")]
    #[diagnostic(code(plumb::record::nothing), help("the run was interrupted: run it again"))]
    Nothing,
}

/// Reads a result: JSON of `plumb run`, XML or text of DISKSPD or Plumb, or the document of a stored run.
///
/// # Errors
/// It is none, or nothing was measured.
pub fn read(bytes: &[u8]) -> Result<Vec<Record>, RecordError> {
    let is_json = bytes.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
    if is_json {
        let value: Value = serde_json::from_slice(bytes)
            .map_err(|source| RecordError::Json { what: source.to_string() })?;
        return of_object(&value);
    }
    let results = convert::read(bytes).map_err(|source| RecordError::Import { source })?;
    let mut records: Vec<Record> = results.iter().map(of_import).collect();
    let no_target = says_no_target(&String::from_utf8_lossy(bytes));
    records.iter_mut().for_each(|record| record.fitness.no_target = no_target);
    measured(records)
}

/// Whether a text or XML result of Plumb says that an engine touched no target.
fn says_no_target(report: &str) -> bool {
    report.lines().map(str::trim_start).any(|line| {
        line.starts_with("<Engine ") && line.contains("TouchesTarget=\"false\"")
            || line.starts_with("[!!] this engine touches no target")
    })
}

/// Reads the object of a result, or of a stored run with its environment.
///
/// # Errors
/// It is none, or nothing was measured.
pub fn of_object(value: &Value) -> Result<Vec<Record>, RecordError> {
    if value.get("store_version").is_none() {
        return measured(vec![of_json(value)?]);
    }
    let mut records = match &value["result"] {
        Value::String(text) => read(text.as_bytes())?,
        object => measured(vec![of_json(object)?])?,
    };
    let environment = &value["environment"];
    for record in records.iter_mut().filter(|_| !environment.is_null()) {
        record.environment = environment.clone();
    }
    Ok(records)
}

fn measured(records: Vec<Record>) -> Result<Vec<Record>, RecordError> {
    if records.iter().any(|record| record.spans.is_empty()) || records.is_empty() {
        return Err(RecordError::Nothing);
    }
    Ok(records)
}

fn of_import(result: &ImportedResult) -> Record {
    let foreign = result.foreign_epoch().map(|epoch| match epoch {
        ForeignEpoch::UpTo2018 => "DISKSPD up to 2.0.18".to_owned(),
        ForeignEpoch::From2020 => "DISKSPD 2.0.20 to 2.1".to_owned(),
        ForeignEpoch::From22 => "DISKSPD 2.2".to_owned(),
        ForeignEpoch::From23 => "DISKSPD 2.3 or later".to_owned(),
    });
    let own = result.tool.as_ref().and_then(|tool| tool.epoch).map(plumb_epoch);
    let overview = Overview::of_import(result);
    let measured = || result.time_spans.iter().filter(|span| !span.is_interrupted());
    let asked = |nth: usize| result.profile.as_ref().and_then(|all| all.time_spans.get(nth));
    let modes = result.time_spans.iter().enumerate().filter(|(_, span)| !span.is_interrupted());
    Record {
        epoch: own.or(foreign),
        profile: result.profile.as_ref().map(normalised),
        engine: engines(result),
        environment: Value::Null,
        fitness: Fitness { interrupted: overview.interrupted, ..Fitness::default() },
        overview,
        modes: modes.map(|(nth, span)| Mode::of_import(span, asked(nth))).collect(),
        spans: measured().map(imported).collect(),
    }
}

/// Bytes of the one target that all measured time spans have; `None` where there are several, whose order a stored environment
/// need not share.
fn only_target(value: &Value) -> Option<u64> {
    let spans = value["time_spans"].as_array()?.iter();
    let sizes = spans.filter(|span| span["state"] == "measured").map(|span| {
        let [target] = span["targets"].as_array()?.as_slice() else { return None };
        target["size_bytes"].as_u64().filter(|bytes| *bytes > 0)
    });
    let sizes: Vec<u64> = sizes.collect::<Option<_>>()?;
    let first = *sizes.first()?;
    sizes.iter().all(|bytes| *bytes == first).then_some(first)
}

/// Every engine that was at work, in order of first appearance, as JSON results have them; `None` where nothing says so.
fn engines(result: &ImportedResult) -> Option<String> {
    let mut engines: Vec<&str> = Vec::new();
    for own in result.time_spans.iter().filter_map(|span| span.submission.as_ref()) {
        for (engine, _) in &own.queues {
            if !engines.contains(&engine.as_str()) {
                engines.push(engine);
            }
        }
    }
    (!engines.is_empty()).then(|| engines.join(", "))
}

fn plumb_epoch(epoch: impl std::fmt::Display) -> String {
    format!("Plumb, measurement epoch {epoch}")
}

/// Of each interval, NaN where it is not known; empty where none is.
fn latencies(of: impl Iterator<Item = Option<f64>>) -> Vec<f64> {
    let all: Vec<f64> = of.map(|ms| ms.unwrap_or(f64::NAN)).collect();
    if all.iter().all(|ms| ms.is_nan()) { Vec::new() } else { all }
}

fn imported(span: &ImportedSpan) -> Figures {
    let (_, reads) = span.reads();
    let (_, writes) = span.writes();
    let count = u64::try_from(reads + writes).unwrap_or(u64::MAX);
    let iops = count as f64 / span.seconds;
    let busy = span.cpu_average.map(|average| average.usage / 100.0 * span.cpus.len() as f64);
    let total = |bucket: &convert::LatencyBucket| Some((bucket.percentile, bucket.total_ms?));
    let first = span.intervals.first().map_or(1000, |interval| interval.end_ms);
    Figures {
        count,
        iops,
        series: span.intervals.iter().map(|interval| interval.total_iops).collect(),
        latency_series: latencies(span.intervals.iter().map(report::interval_latency)),
        interval_s: first as f64 / 1e3,
        latency_ms: span.figures.total.latency_mean_ms,
        latency_deviation_ms: span.figures.total.latency_std_dev_ms,
        percentiles: span.latency.iter().filter_map(total).collect(),
        spreads: Vec::new(),
        cpu_us_per_io: busy.map(|busy| busy * 1e6 / iops),
    }
}

/// The names of percentiles in a JSON result.
const JSON_PERCENTILES: &[(&str, f64)] = &[
    ("p50", 50.0),
    ("p90", 90.0),
    ("p95", 95.0),
    ("p99", 99.0),
    ("p99_9", 99.9),
    ("p99_99", 99.99),
    ("p99_999", 99.999),
];

fn of_json(value: &Value) -> Result<Record, RecordError> {
    let wrong = |what: &str| RecordError::Json { what: what.to_owned() };
    let spans = value["time_spans"].as_array().ok_or_else(|| wrong("no `time_spans`"))?;
    let measured = spans.iter().filter(|span| span["state"] == "measured");
    let modes = measured.clone().map(Mode::of_json).collect();
    let spans = measured
        .map(|span| {
            let total = &span["total"];
            let count = total["io_count"].as_u64().ok_or_else(|| wrong("no `total.io_count`"))?;
            let iops =
                total["iops_per_s"].as_f64().ok_or_else(|| wrong("no `total.iops_per_s`"))?;
            let latency = &total["latency_ns"];
            let percentile =
                |(key, percent): &(&str, f64)| Some((*percent, latency[*key].as_f64()? / 1e6));
            let rate = |cell: &Value| cell["total"]["iops_per_s"].as_f64();
            let cells = span["intervals"]["series"].as_array().into_iter().flatten();
            let rated = cells.filter(|cell| rate(cell).is_some());
            let usage = span["cpu"]["mean"]["usage_percent"].as_f64();
            let processors = span["cpu"]["processors"].as_array().map_or(0, Vec::len);
            let percentiles: Vec<(f64, f64)> =
                JSON_PERCENTILES.iter().filter_map(percentile).collect();
            Ok(Figures {
                spreads: report::spreads(span, &percentiles),
                count,
                iops,
                series: rated.clone().filter_map(rate).collect(),
                latency_series: latencies(rated.map(|cell| {
                    cell["total"]["latency_ns"]["mean"].as_f64().map(|nanos| nanos / 1e6)
                })),
                interval_s: span["intervals"]["interval_ns"].as_f64().unwrap_or(1e9) / 1e9,
                latency_ms: latency["mean"].as_f64().map(|mean| mean / 1e6),
                latency_deviation_ms: latency["stddev"].as_f64().map(|nanos| nanos / 1e6),
                percentiles,
                cpu_us_per_io: usage.map(|usage| usage / 100.0 * processors as f64 * 1e6 / iops),
            })
        })
        .collect::<Result<_, _>>()?;
    let epoch = value.get("epoch").filter(|epoch| !epoch.is_null()).map(plumb_epoch);
    let profile = value.get("profile").filter(|profile| profile.is_object()).cloned();
    let engine = value["engine"].as_str().map(str::to_owned);
    let overview = Overview::of_json(value);
    let mut environment = environment::of_host(&value["host"]);
    if let Some(bytes) = only_target(value).filter(|_| environment.is_object()) {
        environment["groups"]["target"] = serde_json::json!([{ "size_bytes": bytes }]);
    }
    let fitness = Fitness::of_json(value);
    Ok(Record { epoch, profile, engine, environment, fitness, overview, modes, spans })
}

/// Compares the runs of two sides: a decision per time span and metric.
///
/// # Errors
/// The results must not be compared.
///
/// # Panics
/// When a side has no run.
pub fn compare(
    baseline: &[Record],
    candidate: &[Record],
    allowed: &[Allowance],
) -> Result<Vec<Map<String, Value>>, Incomparable> {
    let first = baseline.first().expect("a baseline");
    assert!(!candidate.is_empty(), "a candidate");
    let mut remarks = Vec::new();
    for (side, records) in [("the baseline", baseline), ("the candidate", candidate)] {
        for (number, record) in (1..).zip(records) {
            let of = match records.len() {
                1 => side.to_owned(),
                _ => format!("run {number} of {side}"),
            };
            record.fitness.judge(&of, allowed, &mut remarks)?;
        }
    }
    let mut circumstances = Circumstances::Same;
    for other in baseline[1..].iter().chain(candidate) {
        let found = comparable::comparable(first, other, allowed, &mut remarks)?;
        circumstances = circumstances.max(found);
    }
    let mut decisions = Vec::new();
    for span in 0..first.spans.len() {
        let figures = |records: &[Record]| -> Vec<Figures> {
            records.iter().map(|record| record.spans[span].clone()).collect()
        };
        let (a, b) = (figures(baseline), figures(candidate));
        let environments = candidate.iter().map(|record| &record.environment);
        let environment = environments.reduce(|one, other| if one.is_null() { other } else { one });
        let environment = environment.unwrap_or(&Value::Null);
        for mut decision in of_span(&a, &b, &[], circumstances, environment, &remarks) {
            decision.insert("time_span".to_owned(), (span + 1).into());
            decisions.push(decision);
        }
    }
    Ok(decisions)
}

/// A figure of a run, if it has that.
type Of<'a> = &'a dyn Fn(&Figures) -> Option<f64>;

/// Decisions on the figures of one time span, a metric each.
///
/// One run of each says how far runs differ, not that something changed, unless the series of both are long enough to
/// say how well each is known (6.2). `repeated` are the runs of each setting that was repeated, these and others: what
/// single runs differ by. `environment` is that of the candidate.
pub(crate) fn of_span(
    a: &[Figures],
    b: &[Figures],
    repeated: &[Vec<Figures>],
    circumstances: Circumstances,
    environment: &Value,
    remarks: &[String],
) -> Vec<Map<String, Value>> {
    let steady = |run: &Figures| {
        SteadyRun::of_iops(&run.series, run.interval_s).is_some_and(|run| run.long_enough)
    };
    let singles = matches!((a, b), ([_], [_])) && circumstances != Circumstances::Later;
    let is_pair = singles && !(a.iter().chain(b).all(steady));
    let is_same = singles && circumstances == Circumstances::Same;
    let mut decisions = Vec::new();
    let mut decide =
        |metric: &Metric, of: Of<'_>, error: &dyn Fn(&Figures) -> f64, remark: Option<String>| {
            let values = |runs: &[Figures]| -> Option<Vec<f64>> { runs.iter().map(of).collect() };
            let Some((x, y)) = values(a).zip(values(b)) else { return };
            let within = |runs: &[Figures]| match runs {
                [run] => error(run),
                _ => 0.0,
            };
            let is_iops = metric.higher_is_better;
            let among = Between::pooled(repeated.iter().filter_map(|runs| values(runs)));
            let estimate = compare::independent(&x, &y)
                .or_else(|| compare::single_among(&x, &y, among.as_ref()?))
                .or_else(|| compare::single(&x, &y, within(a), within(b)));
            let Some(estimate) = estimate else { return };
            let mut all = remarks.to_vec();
            all.extend(remark);
            let subject = Subject { baseline: x, candidate: y, remarks: all };
            let mut found = compare::judge(estimate, metric);
            if is_pair || is_same {
                found.as_a_pair(metric, is_pair);
            }
            if is_iops {
                found.notes.extend(tiers::miss(found.effect, environment));
            }
            decisions.push(decision::of_comparison(&found, metric, &subject));
        };
    decide(&Metric::named("iops", true), &|run| Some(run.iops), &error::of_rate, None);
    let mean = error::of_mean_latency;
    decide(&Metric::named("avg_lat_ms", false), &|run| run.latency_ms, &mean, None);
    for (name, percent) in [("p50_ms", 50.0), ("p99_ms", 99.0), ("p99_9_ms", 99.9)] {
        let fewest = a.iter().chain(b).map(|run| run.count).min().unwrap_or(0);
        let support = percentile::support(percent / 100.0, fewest);
        if support.mark == Mark::None {
            continue;
        }
        let value = |run: &Figures| {
            let near = |(other, _): &&(f64, f64)| (other - percent).abs() < 1e-6;
            run.percentiles.iter().find(near).map(|(_, ms)| *ms)
        };
        let spread = |run: &Figures| {
            let near = run.spreads.iter().find(|(other, _)| (other - percent).abs() < 1e-6);
            near.map(|(_, spread)| *spread)
        };
        let remark = format!(
            "mark {}: the percentile of a run rests on {:.0} I/Os above it or more",
            support.mark.keyword(),
            support.above
        );
        // The run that has fewest says how far all can be relied on.
        let weakest = percentile::weakest(a.iter().chain(b).map(spread));
        let remark = percentile::with_episodes(&remark, percent, weakest);
        let error = |run: &Figures| error::of_percentile(run, percent);
        decide(&Metric::named(name, false), &value, &error, Some(remark));
    }
    let rate = error::of_rate;
    decide(&Metric::named("cpu_us_per_io", false), &|run| run.cpu_us_per_io, &rate, None);
    decisions
}

/// Compares any bytes, read as a result, with themselves and asserts what always holds.
///
/// # Panics
/// When it does not.
#[doc(hidden)]
pub fn fuzz_record(bytes: &[u8]) {
    match read(bytes) {
        Ok(records) => {
            if let Ok(decisions) = compare(&records, &records, &[]) {
                let changed = |decision: &Map<String, Value>| {
                    ["better", "worse"].iter().any(|word| decision["verdict"] == *word)
                };
                assert!(!decisions.iter().any(changed), "it differs from itself");
            }
        }
        Err(error) => assert!(!error.to_string().is_empty()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn record(iops: f64) -> Record {
        let figures = Figures {
            count: 500_000,
            iops,
            interval_s: 1.0,
            latency_ms: Some(8e3 / iops),
            percentiles: vec![(50.0, 7e3 / iops), (99.0, 20e3 / iops), (99.9, 0.3)],
            ..Figures::default()
        };
        let profile =
            json!({ "TimeSpans": [{ "RandSeed": 1, "Targets": [{ "BlockSize": 4096 }] }] });
        Record {
            epoch: Some("Plumb 1".into()),
            profile: Some(profile),
            engine: Some("uring".into()),
            environment: Value::Null,
            fitness: Fitness::default(),
            overview: Overview::default(),
            modes: Vec::new(),
            spans: vec![figures],
        }
    }

    fn verdicts(a: &[Record], b: &[Record]) -> Vec<String> {
        let decisions = compare(a, b, &[]).expect("comparable");
        let word = |key: &str, decision: &Map<String, Value>| {
            decision[key].as_str().expect("a word").to_owned()
        };
        decisions.iter().map(|d| format!("{} {}", word("metric", d), word("verdict", d))).collect()
    }

    #[test]
    fn each_metric_has_a_verdict() {
        let [slow, slower] = [record(1000.0), record(1003.0)];
        let [fast, faster] = [record(1100.0), record(1098.0)];
        assert_eq!(
            verdicts(&[slow.clone(), slower], &[fast.clone(), faster]),
            ["iops better", "avg_lat_ms better", "p50_ms better", "p99_ms better", "p99_9_ms same"]
        );
        let single = compare(&[slow], &[fast], &[]).expect("comparable");
        assert_eq!(single[0]["flags"], json!(["single_run"]));
    }

    #[test]
    fn one_run_of_each_is_no_change_unless_it_can_be_one() {
        let verdict = |a: &Record, b: &Record| {
            let found = compare(std::slice::from_ref(a), std::slice::from_ref(b), &[]);
            let found = found.expect("comparable").remove(0);
            let said = found["notes"].to_string();
            assert_eq!(found["flags"], json!(["single_run"]));
            let word = found["verdict"].as_str().expect("a word").to_owned();
            assert_eq!(word == "unclear", said.contains("runs per side"), "{said}");
            (word, said)
        };
        let (slow, fast) = (record(1000.0), record(1200.0));
        // Nobody says what they were measured on, and they are numbers without a series.
        let (word, said) = verdict(&slow, &fast);
        assert_eq!(word, "unclear");
        assert!(said.contains("take 20.0 % for what runs of this system differ by"), "{said}");
        // A series that is worth it speaks for each.
        let with_series = |mut record: Record| {
            let iops = record.spans[0].iops;
            let wobble = |i: u32| iops * (1.0 + 0.002 * (f64::from(i * 37 % 11) - 5.0));
            record.spans[0].series = (0..120).map(wobble).collect();
            record
        };
        let (slow, fast) = (with_series(slow), with_series(fast));
        assert_eq!(verdict(&slow, &fast).0, "better");
        assert_eq!(verdict(&fast, &slow).0, "worse");
        // The same machine, as far as it is known: it may still be what its runs differ by.
        let on = |kernel: &str, mut record: Record| {
            record.environment = json!({ "groups": { "kernel": { "release": kernel } } });
            record
        };
        let (word, said) = verdict(&on("6.1", slow.clone()), &on("6.1", fast.clone()));
        assert_eq!(word, "better");
        assert!(said.contains("take 20.0 % for what runs of this system differ by"), "{said}");
        let (word, said) = verdict(&on("6.1", slow), &on("6.2", fast));
        assert_eq!(word, "better");
        assert!(said.contains("environment differs: kernel: 6.1 and 6.2"), "{said}");
        assert!(!said.contains("differ by until"), "{said}");
    }

    #[test]
    fn results_that_speak_against_themselves_are_refused_or_told() {
        let text = |edit: &dyn Fn(&mut Value)| {
            let span = json!({
                "state": "measured",
                "total": { "io_count": 60_000, "iops_per_s": 1000.0, "errors": 0 },
                "littles_law": { "verdict": "consistent", "residual": -0.001 },
            });
            let mut result = json!({
                "interrupted": false, "epoch": 1, "engine": "uring", "profile": {},
                "host": { "kernel": "6.1", "processor_name": "A" },
                "time_spans": [span],
            });
            edit(&mut result);
            read(result.to_string().as_bytes()).expect("a result")
        };
        let sound = text(&|_| {});
        let with = |edit: &dyn Fn(&mut Value), allowed: &[Allowance]| {
            let other = [sound.clone(), text(edit)].concat();
            compare(&sound, &other, allowed).map(|found| found[0]["notes"].to_string())
        };
        assert!(!with(&|_| {}, &[]).expect("comparable").contains("interrupted"));
        let interrupted = with(&|result| result["interrupted"] = true.into(), &[]);
        let said = interrupted.expect("comparable");
        assert!(said.contains("run 2 of the candidate was interrupted"), "{said}");
        let failed = |result: &mut Value| result["time_spans"][0]["total"]["errors"] = 7.into();
        let error = with(&failed, &[]).expect_err("I/Os failed").to_string();
        assert_eq!(
            error,
            "run 2 of the candidate has 7 I/Os that failed, and no figure counts them"
        );
        assert!(with(&failed, &[Allowance::Errors]).expect("allowed").contains("7 I/Os failed"));
        let contradicts = |result: &mut Value| {
            result["time_spans"][0]["littles_law"] =
                json!({ "verdict": "accounting_error", "residual": 0.031 });
        };
        let error = with(&contradicts, &[Allowance::Errors]).expect_err("a contradiction");
        assert!(matches!(error, Incomparable::Contradiction { .. }), "{error}");
        assert!(error.to_string().contains("+3.1 % off"), "{error}");
        let touches = |result: &mut Value| {
            result["time_spans"][0]["queues"] = json!([{ "touches_target": false }]);
        };
        let error = with(&touches, &[Allowance::Parameters]).expect_err("it measures the tool");
        assert!(matches!(error, Incomparable::NoTarget { .. }), "{error}");
        let kernel = with(&|result| result["host"]["kernel"] = "6.2".into(), &[]);
        assert!(kernel.expect("labelled").contains("kernel: 6.1 and 6.2"));
        let processor = with(&|result| result["host"]["processor_name"] = "B".into(), &[]);
        assert!(matches!(processor, Err(Incomparable::Hardware { .. })));
    }

    #[test]
    fn what_must_not_be_compared_is_refused() {
        let (a, mut b) = (record(1.0), record(1.0));
        let with = |b: &Record, allowed: &[Allowance]| {
            compare(std::slice::from_ref(&a), std::slice::from_ref(b), allowed)
        };
        b.profile.as_mut().expect("one")["TimeSpans"][0]["RandSeed"] = 7.into();
        assert!(with(&b, &[]).is_ok());
        b.profile.as_mut().expect("one")["TimeSpans"][0]["Targets"][0]["BlockSize"] = 8192.into();
        let error = with(&b, &[]).expect_err("differs");
        assert_eq!(
            error.to_string(),
            "the workloads differ: TimeSpans[0].Targets[0].BlockSize is 4096 and 8192"
        );
        let allowed = with(&b, &[Allowance::Parameters]).expect("allowed");
        assert!(allowed[0]["notes"].to_string().contains("different workloads"));
        b.epoch = Some("Plumb 2".into());
        assert!(matches!(with(&b, &[Allowance::Parameters]), Err(Incomparable::Epoch { .. })));
    }

    #[test]
    fn a_size_that_only_one_side_asked_for_is_no_other_workload_where_it_is_known() {
        let with = |asked: Value, environment: Value| {
            let mut sides = [record(1000.0), record(1000.0)];
            for (side, asked) in sides.iter_mut().zip([json!(5), asked]) {
                side.profile.as_mut().expect("one")["TimeSpans"][0]["Targets"][0]["FileSize"] =
                    asked;
                side.environment = environment.clone();
            }
            let [a, b] = sides;
            compare(&[a], &[b], &[]).map(|_| ()).map_err(|error| error.to_string())
        };
        let refused = with(Value::Null, Value::Null).expect_err("it may have any size");
        assert!(refused.contains("FileSize is 5 and not given: "), "{refused}");
        assert!(refused.contains("run both with the same -c"), "{refused}");
        assert_eq!(with(Value::Null, environment_of()), Ok(()));
        let refused = with(json!(6_000), environment_of()).expect_err("another size");
        assert!(refused.contains("FileSize is 5 and 6000"), "{refused}");
    }

    #[test]
    fn another_machine_or_engine_is_refused_unless_wanted() {
        let environment = |model: &str, kernel: &str, bytes: u64| {
            json!({ "groups": {
                "device": [{ "model": model }],
                "kernel": { "release": kernel },
                "target": [{ "size_bytes": bytes }],
            }})
        };
        let with = |environment: Value, engine: &str, allowed: &[Allowance]| {
            let mut a = record(1000.0);
            a.environment = self::environment_of();
            let b = Record { environment, engine: Some(engine.into()), ..record(1000.0) };
            compare(&[a], &[b], allowed).map(|found| found[0]["notes"].to_string())
        };
        let same = with(environment("A", "6.1", 5), "uring", &[]).expect("comparable");
        assert!(!same.contains("differs"), "{same}");
        let kernel = with(environment("A", "6.2", 5), "uring", &[]).expect("comparable");
        assert!(kernel.contains("environment differs: kernel: 6.1 and 6.2"), "{kernel}");
        let error = with(environment("B", "6.1", 5), "uring", &[]).expect_err("another device");
        assert!(matches!(error, Incomparable::Hardware { .. }), "{error}");
        let allowed = [Allowance::Hardware];
        let change = with(environment("B", "6.1", 5), "uring", &allowed).expect("allowed");
        assert!(change.contains("hardware change: device: model A and B"), "{change}");
        let error = with(environment("A", "6.1", 6), "uring", &allowed).expect_err("another size");
        assert!(matches!(error, Incomparable::Parameters { .. }), "{error}");
        let error = with(environment("A", "6.1", 5), "sync", &[]).expect_err("another engine");
        assert!(matches!(error, Incomparable::Engine { .. }), "{error}");
    }

    fn environment_of() -> Value {
        json!({ "groups": {
            "device": [{ "model": "A" }],
            "kernel": { "release": "6.1" },
            "target": [{ "size_bytes": 5 }],
        }})
    }

    #[test]
    fn what_is_no_result_is_refused() {
        for (text, says) in [
            ("{", "JSON but no result"),
            ("{}", "no `time_spans`"),
            ("{\"time_spans\":[]}", "no time span that was measured"),
            ("hello", "cannot be read as a result"),
        ] {
            let error = read(text.as_bytes()).expect_err("no result").to_string();
            assert!(error.contains(says), "{text}: {error}");
        }
    }
}
