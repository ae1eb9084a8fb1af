//! What is different between two kept reports (REP-3).

use serde_json::Value;

/// A figure of two reports.
#[derive(Debug, Clone, PartialEq)]
pub struct ReportChange {
    /// What it is, with its unit.
    pub name: String,
    /// In the earlier one, if it has it.
    pub before: Option<f64>,
    /// In the later one.
    pub after: Option<f64>,
}

/// Name, unit and place of the figures that are compared.
const FIGURES: [(&str, &str); 13] = [
    ("host I/Os", "/host_ios"),
    ("Performance tier, bytes", "/performance_tier_bytes"),
    ("I/Os serviced from the Performance tier, %", "/serviced_percent"),
    ("  by the write-back cache, %", "/serviced_by_cache_percent"),
    ("  expected after the moves, %", "/expected_percent"),
    ("working set, bytes", "/advice/working_set_bytes"),
    ("promoted and demoted again, %", "/advice/thrash_percent"),
    ("pinned to the Performance tier, bytes", "/pinned_performance/bytes"),
    ("pinned to the Capacity tier, bytes", "/pinned_capacity/bytes"),
    ("extents moved up", "/moves/up"),
    ("extents moved down", "/moves/down"),
    ("bytes moved", "/moves/bytes"),
    ("seconds of moving", "/moves/seconds"),
];

/// All figures of both, in the order of a report, and the tier sizes that serve 80, 90, 95 and 99 %.
#[must_use]
pub fn diff(before: &Value, after: &Value) -> Vec<ReportChange> {
    let figure = |(name, place): (&str, &str)| {
        let of = |report: &Value| report.pointer(place).and_then(Value::as_f64);
        ReportChange { name: name.to_owned(), before: of(before), after: of(after) }
    };
    let size = |share: u64| {
        let of = |report: &Value| {
            let sizes = report.pointer("/advice/sizes")?.as_array()?;
            sizes.iter().find(|size| size["ios_percent"] == share)?["bytes"].as_f64()
        };
        let name = format!("tier that serves {share} %, bytes");
        ReportChange { name, before: of(before), after: of(after) }
    };
    FIGURES.into_iter().map(figure).chain([80, 90, 95, 99].map(size)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn every_figure_is_taken_from_its_place() {
        let report = |add: u64| {
            let size = |share: u64| json!({ "ios_percent": share, "bytes": add + share });
            let sizes = [80, 90, 95, 99].map(size);
            json!({
                "host_ios": add, "performance_tier_bytes": add + 1, "serviced_percent": add + 2,
                "serviced_by_cache_percent": add + 3, "expected_percent": null,
                "pinned_performance": { "bytes": add + 7 }, "pinned_capacity": { "bytes": add + 8 },
                "moves": { "up": add + 9, "down": add + 10, "bytes": add + 11, "seconds": add + 12 },
                "advice": {
                    "working_set_bytes": add + 5, "thrash_percent": add + 6,
                    "sizes": sizes,
                },
            })
        };
        let found = diff(&report(0), &report(1000));
        assert_eq!(found.len(), 17);
        for (nth, change) in found.iter().enumerate() {
            let wanted = match nth {
                4 => None,
                13.. => Some([80.0, 90.0, 95.0, 99.0][nth - 13]),
                nth => Some(nth as f64),
            };
            assert_eq!(
                (change.before, change.after),
                (wanted, wanted.map(|value| value + 1000.0)),
                "{change:?}"
            );
        }
        assert!(diff(&json!({}), &json!({})).iter().all(|change| change.before.is_none()));
    }
}
