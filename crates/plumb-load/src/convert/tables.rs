//! The tables of a text report (spec 7.4, 10.2). Columns are known by their titles.

use std::collections::BTreeMap;

use super::error::ImportError;
use super::model::{
    CpuPercents, Figures, ImportedCpu, ImportedSize, ImportedSpan, ImportedTarget, ImportedThread,
    IoCount, LatencyBucket,
};
use super::read_text::Line;
use super::sizes;
use crate::result::model::WaitStatistics;

/// The three tables of I/Os and what else is told by thread.
#[derive(Default)]
pub(super) struct IoTables {
    pub(super) total: IoTable,
    pub(super) read: IoTable,
    pub(super) write: IoTable,
    pub(super) waits: BTreeMap<u32, WaitStatistics>,
}

/// One table of I/Os.
#[derive(Default)]
pub(super) struct IoTable {
    rows: Vec<IoRow>,
    all: Figures,
}

struct IoRow {
    line: usize,
    thread: u32,
    count: IoCount,
    figures: Figures,
    path: String,
    file_size: ImportedSize,
}

impl IoTables {
    /// Puts the rows of the tables together: their order is the same in all three.
    pub(super) fn finish(
        self,
        title: Line<'_>,
        span: &mut ImportedSpan,
    ) -> Result<(), ImportError> {
        let Self { total, read, write, mut waits } = self;
        let rows = total.rows.len();
        if rows == 0 || read.rows.len() != rows || write.rows.len() != rows {
            return Err(title.error(format!(
                "results with {rows} rows in 'Total IO', {} in 'Read IO' and {} in 'Write IO'",
                read.rows.len(),
                write.rows.len()
            )));
        }
        span.figures.read = read.all;
        span.figures.write = write.all;
        span.figures.total = total.all;
        for ((total, read), write) in total.rows.into_iter().zip(read.rows).zip(write.rows) {
            for other in [&read, &write] {
                if other.thread != total.thread || other.path != total.path {
                    let what = format!(
                        "thread {} of '{}' where 'Total IO' has thread {} of '{}'",
                        other.thread, other.path, total.thread, total.path
                    );
                    return Err(ImportError::Text { line: other.line, what });
                }
            }
            let mut target = ImportedTarget {
                path: total.path,
                file_size: total.file_size,
                read: read.count,
                write: write.count,
                ..ImportedTarget::default()
            };
            target.figures.read = read.figures;
            target.figures.write = write.figures;
            target.figures.total = total.figures;
            match span.threads.last_mut() {
                Some(thread) if thread.id == total.thread => thread.targets.push(target),
                _ => span.threads.push(ImportedThread {
                    id: total.thread,
                    waits: waits.remove(&total.thread),
                    targets: vec![target],
                    ..ImportedThread::default()
                }),
            }
        }
        Ok(())
    }
}

pub(super) fn count(line: Line<'_>, text: &str) -> Result<u64, ImportError> {
    integer(line, text)
}

pub(super) fn seconds(line: Line<'_>, text: &str) -> Result<f64, ImportError> {
    let text = text.trim();
    let seconds = float(line, text.strip_suffix('s').unwrap_or(text))?;
    seconds.filter(|seconds| *seconds >= 0.0).ok_or_else(|| no_number(line, text))
}

fn integer<T: std::str::FromStr>(line: Line<'_>, text: &str) -> Result<T, ImportError> {
    text.trim().parse().map_err(|_| no_number(line, text))
}

/// `None` for `N/A` and what is no number.
fn float(line: Line<'_>, text: &str) -> Result<Option<f64>, ImportError> {
    let text = text.trim();
    if text == "N/A" || text.contains('#') {
        return Ok(None);
    }
    let number = text.split('(').next().unwrap_or_default();
    let value: f64 = number.parse().map_err(|_| no_number(line, text))?;
    Ok(Some(value).filter(|value| value.is_finite()))
}

fn no_number(line: Line<'_>, text: &str) -> ImportError {
    let shown: String = text.trim().chars().take(40).collect();
    line.error(format!("'{shown}' is no number"))
}

/// The titles of a table, without the blanks around them.
fn titles(text: &str) -> Vec<&str> {
    text.split('|').map(str::trim).collect()
}

/// The cells of a row of `columns` columns; the last one may hold anything.
fn cells(line: Line<'_>, columns: usize) -> Result<Vec<&str>, ImportError> {
    let cells: Vec<_> = line.text.splitn(columns, '|').collect();
    if cells.len() == columns {
        return Ok(cells);
    }
    Err(line.error(format!("a row of {} cells in a table of {columns} columns", cells.len())))
}

fn is_rule(line: &Line<'_>) -> bool {
    let text = line.text.trim_end();
    text.len() >= 10 && text.bytes().all(|byte| byte == b'-')
}

/// Whether a line is the header of the CPU table.
pub(super) fn is_cpu_header(text: &str) -> bool {
    let titles = titles(text);
    titles.contains(&"CPU") && titles.contains(&"Usage")
}

/// Reads the CPU table from its header on; returns how many lines it took.
pub(super) fn cpus(lines: &[Line<'_>], span: &mut ImportedSpan) -> Result<usize, ImportError> {
    let titles = titles(lines[0].text);
    let mut read = 1 + usize::from(lines.get(1).is_some_and(is_rule));
    for line in &lines[read..] {
        read += 1;
        if is_rule(line) {
            continue;
        }
        if let Some((_, means)) = line.text.split_once("avg.|") {
            let line = Line { text: means, ..*line };
            let cells = cells(line, 4)?;
            span.cpu_average = Some(CpuPercents {
                usage: percent(line, cells[0])?,
                user: percent(line, cells[1])?,
                kernel: percent(line, cells[2])?,
                idle: percent(line, cells[3])?,
            });
            return Ok(read);
        }
        if !line.text.contains('|') {
            return Err(line.error("the CPU table ends without its means"));
        }
        let cells = cells(*line, titles.len())?;
        let mut cpu = ImportedCpu::default();
        for (title, cell) in titles.iter().zip(&cells) {
            match *title {
                "Socket" => cpu.socket = Some(integer(*line, cell)?),
                "Node" => cpu.node = Some(integer(*line, cell)?),
                "Group" => cpu.group = Some(integer(*line, cell)?),
                "Core" => cpu.core = Some(integer(*line, cell)?),
                "Class" => cpu.class = Some(integer(*line, cell.trim().trim_end_matches('P'))?),
                "CPU" => cpu.id = integer(*line, cell)?,
                "Usage" => cpu.percents.usage = percent(*line, cell)?,
                "User" => cpu.percents.user = percent(*line, cell)?,
                "Kernel" => cpu.percents.kernel = percent(*line, cell)?,
                "Idle" => cpu.percents.idle = percent(*line, cell)?,
                _ => {}
            }
        }
        span.cpus.push(cpu);
    }
    Err(lines[0].error("the CPU table ends without its means"))
}

fn percent(line: Line<'_>, cell: &str) -> Result<f64, ImportError> {
    let cell = cell.trim();
    Ok(float(line, cell.strip_suffix('%').unwrap_or(cell))?.unwrap_or(0.0))
}

/// Reads a table of I/Os from its title on; returns how many lines it took.
pub(super) fn io(
    lines: &[Line<'_>],
    drops_zeros: bool,
    table: &mut IoTable,
) -> Result<usize, ImportError> {
    let Some(header) = lines.get(1).filter(|line| line.text.starts_with("thread")) else {
        return Err(lines[0].error("a title without its table"));
    };
    let titles = titles(header.text);
    let mut read = 2 + usize::from(lines.get(2).is_some_and(is_rule));
    for line in &lines[read..] {
        read += 1;
        if is_rule(line) {
            continue;
        }
        if let Some(totals) = line.text.strip_prefix("total:") {
            let line = Line { text: totals, ..*line };
            // No thread, no file, and for neither a separator.
            let cells = cells(line, titles.len() - 2)?;
            table.all = figures(line, &titles[1..], &cells)?.1;
            return Ok(read);
        }
        let cells = cells(*line, titles.len())?;
        let (count, figures) = figures(*line, &titles, &cells)?;
        let (path, file_size) = file(*line, cells[cells.len() - 1], drops_zeros)?;
        table.rows.push(IoRow {
            line: line.number,
            thread: integer(*line, cells[0])?,
            count,
            figures,
            path,
            file_size,
        });
    }
    Err(lines[0].error("the table ends without its total"))
}

fn figures(
    line: Line<'_>,
    titles: &[&str],
    cells: &[&str],
) -> Result<(IoCount, Figures), ImportError> {
    let (mut count, mut figures) = (IoCount::default(), Figures::default());
    for (title, cell) in titles.iter().zip(cells) {
        match *title {
            "bytes" => count.bytes = integer(line, cell)?,
            "I/Os" => count.ios = integer(line, cell)?,
            "AvgLat" => figures.latency_mean_ms = float(line, cell)?,
            "LatStdDev" => figures.latency_std_dev_ms = float(line, cell)?,
            "IopsStdDev" => figures.iops_std_dev = float(line, cell)?,
            _ => {}
        }
    }
    // The mean of nothing is printed as 0.000.
    if figures.latency_std_dev_ms.is_none() {
        figures.latency_mean_ms = None;
    }
    Ok((count, figures))
}

/// ` <path> (<size>)`
fn file(
    line: Line<'_>,
    cell: &str,
    drops_zeros: bool,
) -> Result<(String, ImportedSize), ImportError> {
    let parts = cell.trim_end().strip_suffix(')').and_then(|cell| cell.rsplit_once(" ("));
    let size = parts.and_then(|(_, size)| sizes::size(size, drops_zeros));
    match (parts, size) {
        (Some((path, _)), Some(size)) => {
            Ok((path.strip_prefix(' ').unwrap_or(path).to_owned(), size))
        }
        _ => Err(line.error("the row does not end in a path and its size")),
    }
}

/// Reads percentiles from their title on; returns how many lines they took.
pub(super) fn latency(
    lines: &[Line<'_>],
    buckets: &mut Vec<LatencyBucket>,
) -> Result<usize, ImportError> {
    let mut read = 1;
    for line in &lines[1..] {
        let Some((label, _)) = line.text.split_once('|') else {
            if is_rule(line) {
                read += 1;
                continue;
            }
            break;
        };
        read += 1;
        if label.trim() == "%-ile" {
            continue;
        }
        let Some(percentile) = percentile(label.trim()) else {
            return Err(line.error(format!("'{}' is no percentile", label.trim())));
        };
        let cells = cells(*line, 4)?;
        buckets.push(LatencyBucket {
            percentile,
            read_ms: float(*line, cells[1])?,
            write_ms: float(*line, cells[2])?,
            total_ms: float(*line, cells[3])?,
        });
    }
    Ok(read)
}

/// `min`, `25th`, `3-nines`, `max`.
fn percentile(label: &str) -> Option<f64> {
    match label {
        "min" => return Some(0.0),
        "max" => return Some(100.0),
        _ => {}
    }
    if let Some(nines) = label.strip_suffix("-nines") {
        let nines = nines.parse::<usize>().ok().filter(|nines| (3..=15).contains(nines))?;
        return format!("99.{}", "9".repeat(nines - 2)).parse().ok();
    }
    let number: u32 = label.strip_suffix("th")?.parse().ok()?;
    (1..=99).contains(&number).then(|| f64::from(number))
}

/// Reads wait statistics from their title on; returns how many lines they took. The two tables of 2.3,
/// whose form is not established, are passed over.
pub(super) fn waits(
    lines: &[Line<'_>],
    waits: &mut BTreeMap<u32, WaitStatistics>,
) -> Result<usize, ImportError> {
    let Some(header) = lines.get(1).filter(|line| line.text.starts_with("thread")) else {
        return Ok(1);
    };
    let titles = titles(header.text);
    if !matches!(titles[..], ["thread", "completion wait", _, "lookaside", _]) {
        return Ok(1);
    }
    let mut read = 2;
    for line in &lines[2..] {
        if is_rule(line) {
            read += 1;
            continue;
        }
        if !line.text.contains('|') {
            break;
        }
        read += 1;
        let cells = cells(*line, titles.len())?;
        let Some((throttle_wait, throttle_sleep)) = cells[2].split_once('-') else {
            return Err(line.error("throttle waits and sleeps are not divided by '-'"));
        };
        let mut lookaside_completion = [0; 8];
        for (count, text) in lookaside_completion.iter_mut().zip(cells[4].split_ascii_whitespace())
        {
            *count = integer(*line, text)?;
        }
        waits.insert(
            integer(*line, cells[0])?,
            WaitStatistics {
                wait: integer(*line, cells[1])?,
                throttle_wait: integer(*line, throttle_wait)?,
                throttle_sleep: integer(*line, throttle_sleep)?,
                lookaside: integer(*line, cells[3])?,
                wait_completion: [0; 8],
                lookaside_completion,
            },
        );
    }
    Ok(read)
}
