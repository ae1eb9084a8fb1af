//! Turns a folder of XML results into one table, as `Process-DiskSpd` does (spec 12.1).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use super::error::ConvertError;
use super::model::{ImportedResult, ImportedSpan, LatencyBucket};
use super::read_xml;
use crate::profile::model::Target;
use crate::profile::xml;

/// Larger files are skipped.
const BYTES_MAX: u64 = 256 << 20;

/// A deviation of the IOPS beyond this share of their mean is pointed out.
const VARIATION_MAX: f64 = 0.10;

/// Percentiles of the table.
const PERCENTILES: [f64; 10] = [25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.9, 99.99, 99.999, 100.0];

/// What was done with a folder.
#[derive(Debug, Default)]
pub struct ConvertReport {
    /// Rows of the table, in its order: the names of the files without `.xml`.
    pub rows: Vec<String>,
    /// Files that are not in the table.
    pub skipped: Vec<Skipped>,
    /// `*.lat.tsv` files that were not there before.
    pub latency_files: Vec<PathBuf>,
    /// What the reader of the table should know, in sentences.
    pub warnings: Vec<String>,
}

/// A file that is not in the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skipped {
    /// Its name in the folder.
    pub file: String,
    /// Why it was passed over.
    pub reason: String,
}

impl fmt::Display for Skipped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.file, self.reason)
    }
}

/// Writes a row per `*.xml` result of `folder` to `output`: tab separated, every field in double quotes,
/// columns in alphabetical order; and beside each result `<name>.lat.tsv` with its percentiles.
///
/// # Errors
/// The folder cannot be listed, holds no result of one time span, or a table cannot be written.
pub fn process_folder(folder: &Path, output: &Path) -> Result<ConvertReport, ConvertError> {
    let mut report = ConvertReport::default();
    let mut table = String::new();
    for path in documents(folder)? {
        let name = path.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let result = match load(&path) {
            Ok(result) => result,
            Err(reason) => {
                let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
                report.skipped.push(Skipped { file, reason });
                continue;
            }
        };
        let span = &result.time_spans[0];
        latency_file(&folder.join(format!("{name}.lat.tsv")), span, &mut report)?;
        let row = row(&name, &result, span, &mut report.warnings);
        for note in &result.notes {
            report.warnings.push(format!("{name}: {note}"));
        }
        if table.is_empty() {
            push_line(&mut table, row.keys().map(String::as_str));
        }
        push_line(&mut table, row.values().map(String::as_str));
        report.rows.push(name);
    }
    if report.rows.is_empty() {
        let (path, skipped) = (folder.to_owned(), report.skipped);
        return Err(ConvertError::NoResults { path, skipped });
    }
    write(output, &table)?;
    Ok(report)
}

/// The `*.xml` files of a folder by name.
fn documents(folder: &Path) -> Result<Vec<PathBuf>, ConvertError> {
    let failed = |source| ConvertError::Folder { path: folder.to_owned(), source };
    let mut documents = Vec::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        let is_xml =
            path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("xml"));
        if is_xml && !path.is_dir() {
            documents.push(path);
        }
    }
    documents.sort();
    Ok(documents)
}

/// A result of one measured time span, or why it is none.
fn load(path: &Path) -> Result<ImportedResult, String> {
    let metadata = std::fs::metadata(path).map_err(|error| error.to_string())?;
    if !metadata.is_file() {
        return Err("no regular file".to_owned());
    }
    if metadata.len() > BYTES_MAX {
        return Err(format!("{} bytes, and at most {BYTES_MAX} are read", metadata.len()));
    }
    let bytes = std::fs::read(path).map_err(|error| error.to_string())?;
    let text = xml::decode(&bytes).map_err(|violation| violation.message)?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(&text);
    if text.lines().next() != Some("<Results>") {
        return Err("the first line is not <Results>".to_owned());
    }
    let result = read_xml(text).map_err(|error| error.to_string())?;
    match result.time_spans.as_slice() {
        [] => Err("no time span".to_owned()),
        [only] if only.is_interrupted() => Err("interrupted before the measurement".to_owned()),
        [_] => Ok(result),
        several => Err(format!("{} time spans, and a row has room for one", several.len())),
    }
}

/// Percentile, read ms, write ms per line, unless the file is there already.
fn latency_file(
    path: &Path,
    span: &ImportedSpan,
    report: &mut ConvertReport,
) -> Result<(), ConvertError> {
    if span.latency.is_empty() || path.exists() {
        return Ok(());
    }
    let mut lines = String::new();
    for bucket in &span.latency {
        let (read, write) = (millis(bucket.read_ms), millis(bucket.write_ms));
        lines.push_str(&format!("{}\t{read}\t{write}\n", bucket.percentile));
    }
    write(path, &lines)?;
    report.latency_files.push(path.to_owned());
    Ok(())
}

fn write(path: &Path, text: &str) -> Result<(), ConvertError> {
    std::fs::write(path, text)
        .map_err(|source| ConvertError::Write { path: path.to_owned(), source })
}

fn push_line<'a>(table: &mut String, fields: impl Iterator<Item = &'a str>) {
    let quoted: Vec<_> =
        fields.map(|field| format!("\"{}\"", field.replace('"', "\"\""))).collect();
    table.push_str(&quoted.join("\t"));
    table.push('\n');
}

/// The columns by name, which is their order.
fn row(
    name: &str,
    result: &ImportedResult,
    span: &ImportedSpan,
    warnings: &mut Vec<String>,
) -> BTreeMap<String, String> {
    let profile_span = result.profile.as_ref().and_then(|profile| profile.time_spans.first());
    let target = profile_span.and_then(|span| span.targets.first());
    let mut row = BTreeMap::new();
    let mut put = |column: &str, value: String| {
        row.insert(column.to_owned(), value);
    };
    let path = target.map(|target| target.path.clone()).or_else(|| first_path(span));
    put("ResultFileName", name.to_owned());
    put("Path", path.unwrap_or_default());
    put("System", result.computer_name.clone().unwrap_or_default());
    let affinity = profile_span.map(|span| if span.disable_affinity { "False" } else { "True" });
    put("Affinity", affinity.unwrap_or_default().to_owned());
    put("TestTime", format!("{:.2}", span.seconds));
    put("Threads", span.thread_count.to_string());
    let of_target = |value: fn(&Target) -> String| target.map(value).unwrap_or_default();
    put("WriteRatio", of_target(|target| target.write_ratio.to_string()));
    put("Block", of_target(|target| target.block_size.to_string()));
    put("Outstanding", of_target(|target| target.request_count.to_string()));
    put("Align", of_target(|target| target.alignment.to_string()));
    let pattern = |target: &Target| match target.random_ratio {
        0 => "Sequential".to_owned(),
        _ => "Random".to_owned(),
    };
    put("Pattern", of_target(pattern));
    let percent = |value: Option<f64>| value.map(|v| format!("{v:.2}")).unwrap_or_default();
    let hottest = |of: fn(&super::CpuPercents) -> f64| {
        percent(span.cpus.iter().map(|cpu| of(&cpu.percents)).reduce(f64::max))
    };
    put("CPU", percent(span.cpu_average.map(|average| average.usage)));
    put("CPUKern", percent(span.cpu_average.map(|average| average.kernel)));
    put("CPUHotCore", hottest(|percents| percents.usage));
    put("CPUHotCoreKern", hottest(|percents| percents.kernel));
    for (column, value) in ["Add1", "Add2", "Add3"].into_iter().zip(additions(name)) {
        put(column, value);
    }
    latencies(span, &mut put);
    rates(name, span, &mut put, warnings);
    row
}

fn first_path(span: &ImportedSpan) -> Option<String> {
    Some(span.threads.first()?.targets.first()?.path.clone())
}

fn latencies(span: &ImportedSpan, put: &mut impl FnMut(&str, String)) {
    let figures = &span.figures;
    for (direction, mean, value) in [
        ("Read", figures.read.latency_mean_ms, read_ms as fn(&LatencyBucket) -> Option<f64>),
        ("Write", figures.write.latency_mean_ms, write_ms),
    ] {
        put(&format!("Lat{direction}AV"), millis(mean));
        for percentile in PERCENTILES {
            let is_it = |bucket: &&LatencyBucket| (bucket.percentile - percentile).abs() < 1e-9;
            let bucket = span.latency.iter().find(is_it);
            put(&format!("Lat{direction}{percentile}"), millis(bucket.and_then(value)));
        }
    }
}

fn read_ms(bucket: &LatencyBucket) -> Option<f64> {
    bucket.read_ms
}

fn write_ms(bucket: &LatencyBucket) -> Option<f64> {
    bucket.write_ms
}

fn millis(value: Option<f64>) -> String {
    value.map(|millis| format!("{millis:.3}")).unwrap_or_default()
}

fn rates(
    name: &str,
    span: &ImportedSpan,
    put: &mut impl FnMut(&str, String),
    warnings: &mut Vec<String>,
) {
    let per_second =
        |count: u128| if span.seconds > 0.0 { count as f64 / span.seconds } else { 0.0 };
    let (reads, writes) = (span.reads(), span.writes());
    for (direction, (bytes, ios), deviation) in [
        ("Read", reads, span.figures.read.iops_std_dev),
        ("Write", writes, span.figures.write.iops_std_dev),
    ] {
        let iops = per_second(ios);
        put(&format!("{direction}Bytes"), bytes.to_string());
        put(&format!("{direction}BW"), per_second(bytes).to_string());
        put(&format!("{direction}IOPS"), iops.to_string());
        let variation = deviation.filter(|_| iops > 0.0).map(|deviation| deviation / iops);
        if let Some(variation) = variation.filter(|variation| *variation > VARIATION_MAX) {
            warnings.push(format!(
                "{name}: the {} IOPS vary by {:.1} % (standard deviation over mean), more than \
                 {:.0} %: the run was not steady",
                direction.to_lowercase(),
                variation * 100.0,
                VARIATION_MAX * 100.0
            ));
        }
        let variation = variation.map(|variation| variation.to_string()).unwrap_or_default();
        put(&format!("{direction}IOPSCoV"), variation);
    }
    put("TotBW", per_second(reads.0 + writes.0).to_string());
    put("TotIOPS", (per_second(reads.1) + per_second(writes.1)).to_string());
}

/// `-wc<a>wicpw<b>vm<c>` in a name gives a, b, c; `-basevm<n>` gives base, base, n.
fn additions(name: &str) -> [String; 3] {
    let word =
        |text: &str| -> String { text.chars().take_while(|c| c.is_alphanumeric()).collect() };
    let coded = || {
        let (_, rest) = name.split_once("-wc")?;
        let (a, rest) = rest.split_once("wicpw")?;
        let (b, rest) = rest.split_once("vm")?;
        Some([a.to_owned(), b.to_owned(), word(rest)])
    };
    let base = || {
        let (_, rest) = name.split_once("-basevm")?;
        Some(["base".to_owned(), "base".to_owned(), word(rest)])
    };
    coded().or_else(base).unwrap_or_else(|| ["na", "na", "na"].map(str::to_owned))
}
