//! The environment of a run, and what of it makes results incomparable (method, 2.2 and 6.5).

mod difference;
mod machine;
mod target;

use std::path::PathBuf;

use plumb_io::system_tree::SystemTree;
use plumb_load::result::model::Tool;
use serde_json::{Map, Value, json};

pub use difference::{Difference, Level, differences};

/// Records the environment: groups of facts with a stamp each, equal where the facts are.
///
/// `at` is the time, RFC 3339. What the kernel does not tell is null. Nothing is changed, and nothing takes
/// longer than reading some files of sysfs.
#[must_use]
pub fn record(tree: &SystemTree, tool: &Tool, targets: &[PathBuf], at: &str) -> Value {
    let mut groups = machine::groups(tree);
    groups.insert(
        "tool".to_owned(),
        json!({ "name": tool.name, "version": tool.version, "epoch": tool.epoch }),
    );
    let mut volatile = Map::new();
    target::add(tree, targets, &mut groups, &mut volatile);
    let stamps: Map<String, Value> = groups
        .iter()
        .map(|(name, facts)| (name.clone(), format!("{:016x}", stamp(facts)).into()))
        .collect();
    json!({ "recorded_at": at, "groups": groups, "stamps": stamps, "volatile": volatile })
}

/// What the `host` of a JSON result says of its machine, in the groups of an environment record; null where there is
/// none.
#[must_use]
pub fn of_host(host: &Value) -> Value {
    if !host.is_object() {
        return Value::Null;
    }
    json!({ "groups": {
        "kernel": { "release": host["kernel"] },
        "cpu": { "model": host["processor_name"], "processors": host["processor_count"] },
        "power": { "governor": host["power_scheme"] },
        "memory": { "bytes": host["memory_bytes"] },
    } })
}

/// 64-bit FNV-1a of the facts as JSON with sorted keys [Fowler, Noll, Vo].
fn stamp(facts: &Value) -> u64 {
    facts.to_string().bytes().fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

#[cfg(test)]
mod tests;
