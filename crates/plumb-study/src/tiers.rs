//! What a tier of fast devices did (method, section 7).

use serde_json::Value;

/// A change of the rate below this, with the file off the fast tier, is a tier miss.
const MISS: f64 = -0.80;

/// What the preflight says of a file that cannot be on the fast tier as a whole.
pub(crate) const OFF_FAST: &str = "a part of it will be slow";

/// Whether a file of that size cannot be made wholly on the fast tier: to be told before it is made.
#[must_use]
pub fn spills(file_bytes: u64, copies: u64, free_on_fast: u64) -> bool {
    file_bytes.saturating_mul(copies) > free_on_fast
}

/// What is to be said of a relative change of I/Os per second that a tier may have caused: the rate fell by more than 80 %,
/// and the preflight in the environment of what fell found a faster tier over the target. `None` otherwise.
#[must_use]
pub fn miss(change: f64, environment: &Value) -> Option<String> {
    if change >= MISS {
        return None;
    }
    let checks = environment["preflight"]["checks"].as_array()?;
    let tier = checks.iter().find(|check| check["id"] == "tier" && check["verdict"] == "warn")?;
    let evidence = tier["evidence"].as_str()?;
    let what = match evidence.contains(OFF_FAST) {
        true => "tier miss, not a fault of a device",
        false => "where the file is off the fast tier, a tier miss and not a fault of a device",
    };
    let percent = change * -100.0;
    Some(format!("{percent:.1} % fewer I/Os per second: {what} ({evidence})"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::identities::per_device;

    #[test]
    fn the_published_cases() {
        // A new space, all in the fast tier: 120 429 on four devices.
        assert_eq!(per_device(120_429.0, 1.0, 4.0).round(), 30_107.0);
        let tiered = |verdict: &str, evidence: &str| {
            let check = json!({ "id": "tier", "verdict": verdict, "evidence": evidence });
            json!({ "preflight": { "checks": [{ "id": "fs", "verdict": "warn" }, check] } })
        };
        let off = tiered("warn", &format!("c is a cache; {OFF_FAST}"));
        let change = |now: f64| now / 120_429.0 - 1.0;
        // The fast tier is full: 1 628, 98.6 % less.
        let said = miss(change(1628.0), &off).expect("a miss");
        assert!(said.starts_with("98.6 % fewer I/Os per second: tier miss, not"), "{said}");
        let said = miss(change(1628.0), &tiered("warn", "c is a cache")).expect("a miss");
        assert!(said.contains("where the file is off the fast tier, a tier miss"), "{said}");
        for environment in [tiered("ok", "no cache"), tiered("unknown", "c"), Value::Null] {
            assert_eq!(miss(change(1628.0), &environment), None);
        }
        // After promotion: 115 870 over all, 120 000 without the first 30 s, within 0.4 %.
        for now in [115_870.0, 120_000.0, 0.2 * 120_429.0] {
            assert_eq!(miss(change(now), &off), None);
        }
        assert!(change(120_000.0).abs() < 0.004);
        assert!(spills(64 << 30, 2, 133_143_986_176) && !spills(32 << 30, 2, 133_143_986_176));
    }
}
