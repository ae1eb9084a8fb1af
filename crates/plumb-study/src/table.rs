//! Curves as comma-separated tables: columns by header.

use crate::identities::MIB;
use crate::knee::{self, Row};
use crate::stats::describe::median;

/// Why a table cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, miette::Diagnostic)]
pub enum TableError {
    /// No line at all.
    #[error("the table is empty")]
    #[diagnostic(
        code(plumb::table::empty),
        help("the first line names the columns: o,iops,avg_lat_ms")
    )]
    Empty,
    /// A column that is needed is missing.
    #[error("line {line}: there is no column `{column}` in `{header}`")]
    #[diagnostic(
        code(plumb::table::column),
        help(
            "the first line names the columns: o,iops,avg_lat_ms; mib_per_s with a block size does \
             for iops"
        )
    )]
    Column {
        /// From 1.
        line: usize,
        /// Its name.
        column: &'static str,
        /// The header as it is.
        header: String,
    },
    /// A cell that is no number.
    #[error("line {line}: `{column}` is `{value}`, which is no {wanted}")]
    #[diagnostic(
        code(plumb::table::cell),
        help(
            "correct the cell, or remove the line; what was not measured is an empty cell, NA or -"
        )
    )]
    Cell {
        /// From 1.
        line: usize,
        /// The column.
        column: &'static str,
        /// The cell.
        value: String,
        /// What it should be.
        wanted: &'static str,
    },
    /// A line with too few cells, or too many.
    #[error("line {line} has {found} cells, the header {wanted}")]
    #[diagnostic(
        code(plumb::table::cells),
        help(
            "the table was cut short or changed, or a number is written with the separator inside: 8000, not 8,000"
        )
    )]
    Cells {
        /// From 1.
        line: usize,
        /// On this line.
        found: usize,
        /// In the header.
        wanted: usize,
    },
    /// A column that is there twice: which one is meant is not known.
    #[error("line {line}: the column `{column}` is there {times} times")]
    #[diagnostic(code(plumb::table::twice), help("rename or remove all but the one that is meant"))]
    Twice {
        /// From 1.
        line: usize,
        /// Its name.
        column: &'static str,
        /// How often it is there.
        times: usize,
    },
    /// More settings than any curve has.
    #[error("the table has {found} different o, a curve at most {SETTINGS_MOST}")]
    #[diagnostic(
        code(plumb::table::settings),
        help("a row is a run, not an I/O or an interval: give the mean of each run")
    )]
    Settings {
        /// In this table.
        found: usize,
    },
    /// Rows of several numbers of threads: a curve is of one.
    #[error("the table has rows of several numbers of threads: t = {}", found.join(", "))]
    #[diagnostic(
        code(plumb::table::threads),
        help(
            "give a table for each: what o is best for depends on t; `plumb sweep FILE --vary t=1,2,4 --vary o=1..32` \
             measures and judges both"
        )
    )]
    Threads {
        /// As they are written, each once.
        found: Vec<String>,
    },
    /// Only a header.
    #[error("the table has a header and no rows")]
    #[diagnostic(code(plumb::table::rows), help("add a line per run: o,iops,avg_lat_ms"))]
    NoRows,
}

/// Different o of a curve at most: the work of the fit grows with their square.
pub const SETTINGS_MOST: usize = 1000;

/// A curve as it was read.
#[derive(Debug, Clone, PartialEq)]
pub struct Table {
    /// A row per run.
    pub rows: Vec<Row>,
    /// Bytes per I/O: as given, or as both rates say where both are there.
    pub block_bytes: Option<f64>,
    /// Threads, where a column has them.
    pub threads: Option<f64>,
}

/// Reads a table with the columns `o`, `iops` (or `mib_per_s` where the block size is known) and, if
/// there is one, `avg_lat_ms`; of `t`, or `threads`, there is one number, and other columns are of no concern. Cells are separated by commas, semicolons or
/// tabs, and may be in quotes; empty lines and lines that begin with `#` are skipped. A cell of `iops` that is empty, or
/// says that there is no value (`NA`, `-`, `NaN` and the like), is a run without a rate: `NaN` in its row.
///
/// # Errors
/// The table has not this shape.
pub fn read(text: &str, block_bytes: Option<f64>) -> Result<Table, TableError> {
    let text = text.trim_start_matches('\u{feff}');
    let mut lines = (1..)
        .zip(text.lines())
        .filter(|(_, line)| !line.trim().is_empty() && !line.trim_start().starts_with('#'));
    let (header_line, header) = lines.next().ok_or(TableError::Empty)?;
    let separator = [',', ';', '\t'].into_iter().find(|c| header.contains(*c)).unwrap_or(',');
    let names: Vec<String> =
        cells(header, separator).iter().map(|name| name.to_lowercase()).collect();
    let place = |wanted: &str| names.iter().position(|name| name == wanted);
    for column in ["o", "iops", "mib_per_s", "avg_lat_ms"] {
        let times = names.iter().filter(|name| *name == column).count();
        if times > 1 {
            return Err(TableError::Twice { line: header_line, column, times });
        }
    }
    let missing =
        |column| TableError::Column { line: header_line, column, header: header.trim().to_owned() };
    let o_place = place("o").ok_or_else(|| missing("o"))?;
    let iops_place = place("iops");
    let mib_place = place("mib_per_s");
    if iops_place.is_none() && (mib_place.is_none() || block_bytes.is_none()) {
        return Err(missing("iops"));
    }
    let latency_place = place("avg_lat_ms");
    let threads_place = place("t").or_else(|| place("threads"));
    let mut threads: Vec<String> = Vec::new();

    let mut rows = Vec::new();
    let mut decimals = 0;
    let mut blocks = Vec::new();
    for (line, text) in lines {
        let cells = cells(text, separator);
        // A separator at the end of a line makes an empty cell.
        let has_more = cells.iter().skip(names.len()).any(|cell| !cell.is_empty());
        if cells.len() < names.len() || has_more {
            return Err(TableError::Cells { line, found: cells.len(), wanted: names.len() });
        }
        if let Some(own) = threads_place.map(|place| &cells[place])
            && !own.is_empty()
            && !threads.contains(own)
        {
            threads.push(own.clone());
        }
        let number = |place: usize, column| number(&cells[place], line, column);
        let o = whole(&cells[o_place], line)?;
        let mib = mib_place.map(|place| number(place, "mib_per_s")).transpose()?.flatten();
        let iops = match iops_place {
            Some(place) => number(place, "iops")?,
            None => mib.zip(block_bytes).map(|(mib, block)| mib * MIB / block),
        };
        blocks.extend(mib.zip(iops).filter(|(_, iops)| *iops > 0.0).map(|(m, i)| m * MIB / i));
        let latency_ms = match latency_place {
            Some(place) => {
                decimals = decimals.max(places(&cells[place]));
                number(place, "avg_lat_ms")?.filter(|latency| *latency > 0.0)
            }
            None => None,
        };
        rows.push(Row {
            o,
            iops: iops.unwrap_or(f64::NAN),
            latency_ms,
            latency_half_unit_ms: 0.0,
            law: None,
        });
    }
    if rows.is_empty() {
        return Err(TableError::NoRows);
    }
    if threads.len() > 1 {
        return Err(TableError::Threads { found: threads });
    }
    let mut settings: Vec<u64> = rows.iter().map(|row| row.o).collect();
    settings.sort_unstable();
    settings.dedup();
    if settings.len() > SETTINGS_MOST {
        return Err(TableError::Settings { found: settings.len() });
    }
    let half_unit = 0.5 * 10_f64.powi(-decimals);
    for row in &mut rows {
        row.latency_half_unit_ms = half_unit;
    }
    let inferred = (!blocks.is_empty()).then(|| round_block(median(&blocks)));
    let threads = threads.first().and_then(|text| text.parse().ok());
    let threads = threads.filter(|threads: &f64| threads.is_finite() && *threads >= 1.0);
    Ok(Table { rows, block_bytes: block_bytes.or(inferred), threads })
}

/// Rates are rounded in print: the nearest multiple of 512 bytes is meant where it is near.
fn round_block(bytes: f64) -> f64 {
    let nearest = (bytes / 512.0).round() * 512.0;
    if nearest > 0.0 && (bytes / nearest - 1.0).abs() < 0.005 { nearest } else { bytes }
}

/// The cells of a line, without blanks and quotes around them. A separator between quotes separates nothing, and two
/// quotes there are one [RFC 4180].
fn cells(line: &str, separator: char) -> Vec<String> {
    let mut cells = vec![String::new()];
    let mut is_quoted = false;
    let mut letters = line.trim_end_matches(['\r', '\n']).chars().peekable();
    while let Some(letter) = letters.next() {
        let cell = cells.last_mut().expect("there is one from the start");
        match letter {
            '"' if is_quoted && letters.peek() == Some(&'"') => {
                letters.next();
                cell.push('"');
            }
            '"' if is_quoted => is_quoted = false,
            '"' if cell.trim().is_empty() => is_quoted = true,
            letter if letter == separator && !is_quoted => cells.push(String::new()),
            letter => cell.push(letter),
        }
    }
    cells.into_iter().map(|cell| cell.trim().to_owned()).collect()
}

/// No rate and no latency is larger; what is, is no measurement.
const VALUE_MOST: f64 = 1e15;

/// How people, spreadsheets and programs write that there is no value, in small letters.
const NO_VALUE: [&str; 11] =
    ["", "-", "–", "—", "na", "n/a", "#n/a", "<na>", "null", "none", "missing"];

/// `None` for a cell without a value.
fn number(cell: &str, line: usize, column: &'static str) -> Result<Option<f64>, TableError> {
    if NO_VALUE.contains(&cell.to_lowercase().as_str()) {
        return Ok(None);
    }
    let wrong = || TableError::Cell {
        line,
        column,
        value: cell.to_owned(),
        wanted: "positive number up to 1e15",
    };
    let value: f64 = cell.parse().map_err(|_| wrong())?;
    if value.is_nan() {
        return Ok(None);
    }
    if (0.0..=VALUE_MOST).contains(&value) { Ok(Some(value)) } else { Err(wrong()) }
}

fn whole(cell: &str, line: usize) -> Result<u64, TableError> {
    let wrong = || TableError::Cell {
        line,
        column: "o",
        value: cell.to_owned(),
        wanted: "whole number from 1",
    };
    // Some programs write 8 as 8.0.
    let digits = cell.strip_suffix(".0").unwrap_or(cell);
    digits.parse().ok().filter(|o| *o > 0 && *o <= 1 << 32).ok_or_else(wrong)
}

/// Decimal places as written.
fn places(cell: &str) -> i32 {
    let digits = cell.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    i32::try_from(digits.min(12)).unwrap_or(12)
}

/// Judges any bytes as a table and asserts what always holds.
///
/// # Panics
/// When it does not.
#[doc(hidden)]
pub fn fuzz_table(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let table = match read(&text, None) {
        Ok(table) => table,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    let knee = knee::find(&table.rows, &knee::Options::default());
    let layout = crate::findings::Layout::default();
    let decision = crate::decision::of_knee(&knee, &knee::Options::default(), &layout);
    let is_tested = |o: &serde_json::Value| {
        o.is_null() || table.rows.iter().any(|row| o.as_u64() == Some(row.o))
    };
    assert!(is_tested(&decision["plateau_o"]) && is_tested(&decision["recommended_o"]));
    let fitted = knee.fit.iter().flat_map(|fit| &fit.ln_x);
    assert!(fitted.clone().all(|value| value.is_finite()), "{table:?}");
    let explained = crate::explain::explain(&serde_json::Value::Object(decision));
    assert!(explained.is_ok());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error(text: &str) -> String {
        read(text, None).expect_err("it is wrong").to_string()
    }

    #[test]
    fn columns_go_by_their_names() {
        let text = "\u{feff}rep, Avg_Lat_ms ,o,origin,IOPS\r\n1,0.553,1,x,14411.29\r\n\r\n# no\r\n\
                    2,0.65,2.0,y,\r\n";
        let rows = read(text, None).expect("a table").rows;
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].o, rows[0].iops, rows[0].latency_ms), (1, 14411.29, Some(0.553)));
        assert!(rows[1].o == 2 && rows[1].iops.is_nan());
        assert!((rows[1].latency_half_unit_ms - 0.0005).abs() < 1e-12);
    }

    #[test]
    fn rates_may_be_in_mib_where_blocks_are_known() {
        let rows = read("o;mib_per_s\n4;2\n", Some(4096.0)).expect("a table").rows;
        assert_eq!((rows[0].iops, rows[0].latency_ms), (512.0, None));
        let both = read("o,iops,mib_per_s\n1,14411.29,112.59\n", None).expect("a table");
        assert_eq!(both.block_bytes, Some(8192.0));
        assert!(error("o;mib_per_s\n4;2\n").contains("no column `iops`"));
    }

    #[test]
    fn what_is_wrong_is_named() {
        assert_eq!(error(""), "the table is empty");
        assert_eq!(error("o,iops\n"), "the table has a header and no rows");
        assert!(error("a,b\n1,2\n").contains("line 1: there is no column `o` in `a,b`"));
        assert!(error("o,iops\n1,x\n").contains("line 2: `iops` is `x`"));
        assert!(error("o,iops\n1,-3\n").contains("`-3`"));
        assert!(error("o,iops\n0,3\n").contains("whole number from 1"));
        assert!(error("o,iops\n1\n").contains("line 2 has 1 cells, the header 2"));
        assert!(read("o,iops\n1,NaN\n", None).is_ok_and(|table| table.rows[0].iops.is_nan()));
        assert!(error("o,iops\n1,1e308\n").contains("up to 1e15"));
        assert!(
            error("o,iops,Iops\n1,2,3\n").contains("line 1: the column `iops` is there 2 times")
        );
        let long: String = (1..=1001).map(|o| format!("{o},{o}\n")).collect();
        assert!(
            error(&format!("o,iops\n{long}")).contains("1001 different o, a curve at most 1000")
        );
    }

    #[test]
    fn what_was_not_measured_may_be_written_in_many_ways() {
        for cell in ["", "-", "–", "NA", "n/a", "N/A", "#N/A", "<NA>", "nan", "NaN", "NULL", "None"]
        {
            let table = read(&format!("o,iops,avg_lat_ms\n1,{cell},{cell}\n2,10,0.2\n"), None);
            let rows = table.unwrap_or_else(|error| panic!("{cell}: {error}")).rows;
            assert!(rows[0].iops.is_nan() && rows[0].latency_ms.is_none(), "{cell}");
            assert_eq!((rows[1].iops, rows[1].latency_ms), (10.0, Some(0.2)), "{cell}");
        }
        // What is no number is none, and a row is of some o.
        assert!(error("o,iops\n1,inf\n").contains("`iops` is `inf`"));
        assert!(error("o,iops\n1,5\nNA,10\n").contains("line 3: `o` is `NA`"));
    }

    #[test]
    fn separators_inside_of_cells_are_never_read_as_other_numbers() {
        // As spreadsheets write thousands.
        assert!(
            error("o,iops,avg_lat_ms\n12,8,000,1.5\n").contains("line 2 has 4 cells, the header 3")
        );
        assert!(error("o,iops,avg_lat_ms\n12,\"8,000\",1.5\n").contains("`iops` is `8,000`"));
        let read = |text: &str| read(text, None).expect("a table").rows;
        let quoted = read("\"o\",\"a, b\",iops\n\"12\",\"x \"\"y\"\", z\", \"8000\" \n");
        assert_eq!((quoted[0].o, quoted[0].iops), (12, 8000.0));
        assert_eq!(read("o,iops\n1,2,\n")[0].iops, 2.0);
    }

    /// Random test 2's published table: a setting of threads and outstanding I/Os a row is no curve.
    #[test]
    fn a_curve_is_of_one_number_of_threads() {
        let read = |text: &str| read(text, None).map(|table| table.rows.len());
        let splits = "t,o,iops,avg_lat_ms\n1,120,57499.10,2.086\n2,60,62619.14,1.915\n";
        let found = vec!["1".to_owned(), "2".to_owned()];
        assert_eq!(read(splits), Err(TableError::Threads { found }));
        assert_eq!(read("t,o,iops\n2,1,100\n2,2,190\n"), Ok(2));
        assert_eq!(read("threads,o,iops\n2,1,100\n,2,190\n"), Ok(2));
        let threads = |text: &str| super::read(text, None).expect("a table").threads;
        assert_eq!(threads("threads,o,iops\n,1,100\n2,2,190\n"), Some(2.0));
        assert_eq!([threads("t,o,iops\nall,1,100\n"), threads("o,iops\n1,100\n")], [None; 2]);
    }
}
