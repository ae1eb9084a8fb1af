//! Kernel, processors, memory, and what the machine runs in.

use std::collections::BTreeMap;

use plumb_io::system_tree::SystemTree;
use plumb_load::result::model::HostFacts;
use serde_json::{Map, Value, json};

pub(super) fn groups(tree: &SystemTree) -> Map<String, Value> {
    let host = HostFacts::read(tree);
    let info = tree.text("/proc/cpuinfo").unwrap_or_default();
    let word = |key: &str| {
        info.lines().find_map(|line| {
            let (name, value) = line.split_once(':')?;
            (name.trim() == key).then(|| value.trim().to_owned())
        })
    };
    let nodes: std::collections::BTreeSet<u32> =
        host.topology.processors.iter().map(|cpu| cpu.node).collect();
    let is_guest = word("flags").is_some_and(|flags| flags.split(' ').any(|f| f == "hypervisor"));
    let groups = json!({
        "kernel": {
            "release": host.kernel,
            "command_line": tree.text("/proc/cmdline"),
            "mitigations": mitigations(tree),
        },
        "cpu": {
            "model": host.processor_name,
            "processors": host.topology.processors.len(),
            "nodes": nodes.len(),
            "smt": tree.number("/sys/devices/system/cpu/smt/active").map(|active| active != 0),
        },
        "power": {
            "governor": host.power_scheme,
            "microcode": word("microcode"),
            "clock": tree.text("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
        },
        "memory": { "bytes": host.memory_bytes },
        "virt": {
            "guest": is_guest,
            "vendor": tree.text("/sys/class/dmi/id/sys_vendor"),
            "product": tree.text("/sys/class/dmi/id/product_name"),
        },
    });
    match groups {
        Value::Object(groups) => groups,
        _ => unreachable!("an object was written"),
    }
}

fn mitigations(tree: &SystemTree) -> BTreeMap<String, String> {
    const FOLDER: &str = "/sys/devices/system/cpu/vulnerabilities";
    let all = tree.names(FOLDER).into_iter().filter_map(|name| {
        let name = name.into_string().ok()?;
        let text = tree.text(format!("{FOLDER}/{name}"))?;
        Some((name, text))
    });
    all.collect()
}
