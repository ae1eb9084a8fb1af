//! The early warning: when a Performance tier will be full, in words and for programs.

use plumb_units::Bytes;
use serde_json::{Value, json};

use super::Filling;
use crate::optimizer::{ExpectedIops, IopsBasis, LineBasis};

/// In words and for programs.
#[derive(Debug, Clone, PartialEq)]
pub struct Warning {
    /// A line.
    pub text: String,
    /// An object.
    pub json: Value,
}

impl Warning {
    /// Of a virtual disk with extents of so many bytes, whose Capacity tier is expected to take so many writes per second.
    #[must_use]
    pub fn of(name: &str, found: &Filling, extent_bytes: u64, iops: ExpectedIops) -> Self {
        told(name, found, (extent_bytes, iops)).dated(0)
    }

    /// Says how old it is what was counted.
    #[must_use]
    pub fn dated(self, age_s: u64) -> Self {
        let Self { text, mut json } = self;
        json["age_s"] = age_s.into();
        let text = match age_s / 60 {
            0 => text,
            minutes => format!("{}, as counted {minutes} min ago\n", text.trim_end()),
        };
        Self { text, json }
    }
}

/// Less than that is called by its hours, and not a day.
const SOME_OF_A_DAY_S: u64 = 23 * 3600;

fn told(name: &str, found: &Filling, (extent_bytes, expected): (u64, ExpectedIops)) -> Warning {
    let bytes = |extents: u64| Bytes(extents.saturating_mul(extent_bytes));
    let hours = found.hours_left();
    let when = match (found.is_full(), found.per_hour, hours) {
        (true, ..) => "full".to_owned(),
        (_, None, _) => "its present rate is not known yet".to_owned(),
        (_, _, Some(hours)) => {
            let rate = match (found.by_day, found.over_s) {
                (false, _) => "present rate".to_owned(),
                (true, Some(over @ ..SOME_OF_A_DAY_S)) => format!(
                    "rate of the last {:.1} hours, which is more than the present one",
                    over as f64 / 3600.0
                ),
                (true, _) => "last day's rate, which is more than the present one".to_owned(),
            };
            // An hour is no measure of minutes.
            let left = if hours < 1.0 {
                match (hours * 60.0).round() {
                    ..=1.0 => "1 minute".to_owned(),
                    minutes => format!("{minutes} minutes"),
                }
            } else {
                format!("{hours:.1} hours")
            };
            format!("full in {left} at the {rate}")
        }
        (_, Some(_), None) => "it does not fill at present".to_owned(),
    };
    let then = if found.is_full() { "" } else { " then" };
    // Reads and writes of a disk's own time are one figure: which of them it was asked for is not told apart.
    let line = expected.line.map_or_else(String::new, |line| {
        let whose = match expected.line_basis {
            LineBasis::Hosts => "as hosts ask at present",
            LineBasis::Cache => "as emptying the write-back cache asks",
        };
        format!(", with {:.0} in line at each, {whose}", line.max(1.0))
    });
    let by = match expected.basis {
        IopsBasis::Measured => {
            format!(
                ", if one takes its disks as long as their random I/Os of up to 64 KiB did, reads and writes{line}"
            )
        }
        IopsBasis::MeasuredOtherwise => format!(
            ", if its disks are as much quicker or slower than the reference disks as they were with other numbers of random I/Os{line}"
        ),
        IopsBasis::Reference => {
            format!(
                " of 4 KiB, if its disks are like the reference disks (10,000 turns a minute){line}"
            )
        }
    };
    let iops = expected.iops;
    let text = format!(
        "  virtual disk {name}: Performance tier holds {} of {}: {when}; new data goes to the Capacity tier{then}: \
         about {iops} random writes per second{by}\n",
        bytes(found.used),
        bytes(found.slots),
    );
    let json = json!({
        "vdisk": name,
        "performance_used_bytes": bytes(found.used).0,
        "performance_bytes": bytes(found.slots).0,
        "gain_bytes_per_hour": found.per_hour.map(|rate| rate * extent_bytes as f64),
        "gain_is_of": if found.by_day { "the last day" } else { "the present" },
        "gain_over_hours": found.over_s.map(|over| over as f64 / 3600.0),
        "hours_until_full": hours,
        "expected_iops_when_full": iops,
        "expected_iops_basis": expected.basis.name(),
        "expected_iops_line": expected.line,
        "expected_iops_line_basis": expected.line.map(|_| expected.line_basis.name()),
    });
    Warning { text, json }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn expected(basis: IopsBasis) -> ExpectedIops {
        ExpectedIops { iops: 824, line: Some(8.75), line_basis: LineBasis::Hosts, basis }
    }

    #[test]
    fn every_state_has_its_words() {
        let text = |used, per_hour| {
            let by_day = [Some(10.0), Some(20.0)].contains(&per_hour);
            let over_s = Some(if per_hour == Some(20.0) { 9000 } else { 86_400 });
            let Warning { text, json } = told(
                "data",
                &Filling { used, slots: 100, per_hour, by_day, over_s, at_s: 0 },
                (1 << 20, expected(IopsBasis::Reference)),
            );
            assert_eq!(json["performance_bytes"], 100 << 20);
            text
        };
        for (text, words) in [
            (text(40, Some(5.0)), "holds 40MiB of 100MiB: full in 12.0 hours at the present rate;"),
            (text(40, Some(120.0)), "full in 30 minutes at the "),
            (text(40, Some(60_000.0)), "full in 1 minute at the "),
            (text(40, Some(10.0)), "full in 6.0 hours at the last day's rate, which is more than"),
            (
                text(40, Some(20.0)),
                "full in 3.0 hours at the rate of the last 2.5 hours, which is more",
            ),
            (
                text(40, None),
                "random writes per second of 4 KiB, if its disks are like the reference disks (10,000 turns a minute), with 9 in line at each, as hosts",
            ),
            (text(40, Some(-5.0)), "it does not fill at present"),
            (text(40, None), "is not known yet; new data goes to the Capacity tier then: about"),
            (
                text(100, None),
                "of 100MiB: full; new data goes to the Capacity tier: about 824 random",
            ),
        ] {
            assert!(text.contains(words), "{text}");
        }
        let full =
            Filling { used: 100, slots: 100, per_hour: None, by_day: false, over_s: None, at_s: 0 };
        let now = told("data", &full, (1 << 20, expected(IopsBasis::Measured)));
        let old = now.clone().dated(125);
        assert!(old.text.ends_with(", as counted 2 min ago\n"), "{old:?}");
        assert_eq!(
            (&old.json["age_s"], now.clone().dated(59).text),
            (&125.into(), now.text.clone())
        );
        let Warning { text, json } = now;
        assert_eq!(json["hours_until_full"], 0.0, "full is full at whatever rate");
        let words = "did, reads and writes, with 9 in line at each, as hosts ask at present\n";
        assert!(text.contains(words), "{text}");
        assert_eq!(
            (&json["expected_iops_basis"], &json["expected_iops_line"]),
            (&"measured disks".into(), &8.75.into())
        );
        assert_eq!(json["expected_iops_line_basis"], "hosts");
        let cache = ExpectedIops { line_basis: LineBasis::Cache, ..expected(IopsBasis::Measured) };
        let Warning { text, json } = told("data", &full, (1 << 20, cache));
        let words = "with 9 in line at each, as emptying the write-back cache asks\n";
        assert!(text.contains(words), "{text}");
        assert_eq!(json["expected_iops_line_basis"], "write-back cache");
        let unknown = ExpectedIops { line: None, ..cache };
        assert!(told("data", &full, (1 << 20, unknown)).json["expected_iops_line_basis"].is_null());
        let other = told("data", &full, (1 << 20, expected(IopsBasis::MeasuredOtherwise)));
        assert!(
            other.text.contains("as they were with other numbers of random I/Os, with 9 in line"),
            "{other:?}"
        );
    }
}
