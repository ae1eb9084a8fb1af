//! The series of a JSON result as a flat table: a row per interval, a column per figure.

use serde_json::Value;

/// Columns: name with its unit, a value per row; all of one length.
pub type Columns = Vec<(String, Vec<Option<f64>>)>;

/// (column, place in an interval, factor).
const FIGURES: &[(&str, &str, f64)] = &[
    ("end_s", "/end_ns", 1e-9),
    ("read_iops", "/read/iops_per_s", 1.0),
    ("write_iops", "/write/iops_per_s", 1.0),
    ("read_mib_per_s", "/read/bytes_per_s", 1.0 / 1_048_576.0),
    ("write_mib_per_s", "/write/bytes_per_s", 1.0 / 1_048_576.0),
    ("read_mean_ms", "/read/latency_ns/mean", 1e-6),
    ("write_mean_ms", "/write/latency_ns/mean", 1e-6),
    ("read_max_ms", "/read/latency_ns/max", 1e-6),
    ("write_max_ms", "/write/latency_ns/max", 1e-6),
];

/// The table of a result: a row per interval of each time span; empty where no intervals were kept.
#[must_use]
pub fn of_result(result: &Value) -> Columns {
    let mut rows: Vec<(f64, &Value)> = Vec::new();
    for span in result["time_spans"].as_array().into_iter().flatten() {
        let number = span["number"].as_f64().unwrap_or(0.0);
        let series = span["intervals"]["series"].as_array().into_iter().flatten();
        rows.extend(series.map(|interval| (number, interval)));
    }
    if rows.is_empty() {
        return Vec::new();
    }
    let spans = rows.iter().map(|(number, _)| Some(*number)).collect();
    let mut columns = vec![("time_span".to_owned(), spans)];
    for (name, pointer, factor) in FIGURES {
        let value = |(_, interval): &(f64, &Value)| {
            interval.pointer(pointer).and_then(Value::as_f64).map(|value| value * factor)
        };
        columns.push(((*name).to_owned(), rows.iter().map(value).collect()));
    }
    columns
}

/// The table as CSV with a heading; what is not known is empty.
#[must_use]
pub fn csv(columns: &Columns) -> String {
    let names: Vec<&str> = columns.iter().map(|(name, _)| name.as_str()).collect();
    let mut text = names.join(",");
    text.push('\n');
    let rows = columns.first().map_or(0, |(_, values)| values.len());
    for row in 0..rows {
        let cells: Vec<String> = columns
            .iter()
            .map(|(_, values)| values[row].map_or_else(String::new, |value| format!("{value}")))
            .collect();
        text.push_str(&cells.join(","));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn intervals_are_rows() {
        let result = json!({ "time_spans": [{ "number": 1, "intervals": { "series": [
            { "end_ns": 1_000_000_000, "read": { "iops_per_s": 5.0, "bytes_per_s": 1_048_576.0,
              "latency_ns": { "mean": 2e6, "max": 3_000_000 } }, "write": { "latency_ns": null } },
        ]}}]});
        let table = of_result(&result);
        assert_eq!(
            csv(&table),
            "time_span,end_s,read_iops,write_iops,read_mib_per_s,write_mib_per_s,read_mean_ms,\
             write_mean_ms,read_max_ms,write_max_ms\n1,1,5,,1,,2,,3,\n"
        );
        assert!(of_result(&json!({})).is_empty());
        assert_eq!(csv(&Vec::new()), "\n");
    }
}
