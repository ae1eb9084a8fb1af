//! Processors, clocks, temperatures, and what this process may see.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use plumb_io::block_stack::BlockDevice;
use plumb_io::nvme_log::HealthLog;

use super::health::nvme_controllers;
use super::{Check, Scene, Verdict, unseen};

const CPUS: &str = "/sys/devices/system/cpu";

/// Frequency scaling: governors, what the processors prefer by themselves, boost, and how long they sleep.
pub(super) fn governor(scene: &Scene) -> Check {
    const ID: &str = "governor";
    let of_each = |file: &str| -> Vec<String> {
        let mut found: Vec<String> = Vec::new();
        for name in scene.tree.names(CPUS) {
            let path = format!("{CPUS}/{}/cpufreq/{file}", name.to_string_lossy());
            let word = scene.tree.text(path).filter(|word| !found.contains(word));
            found.extend(word);
        }
        found
    };
    let governors = of_each("scaling_governor");
    let preferences = of_each("energy_performance_preference");
    let mut beside = Vec::new();
    let no_turbo = scene.tree.text(format!("{CPUS}/intel_pstate/no_turbo"));
    let boost = scene.tree.text(format!("{CPUS}/cpufreq/boost"));
    let boosts = no_turbo.map(|off| off == "0").or(boost.map(|on| on == "1"));
    beside.extend(
        boosts.map(|on| format!("turbo {}", if on { "on: clocks depend on heat" } else { "off" })),
    );
    let deepest = scene
        .tree
        .names(format!("{CPUS}/cpu0/cpuidle"))
        .iter()
        .filter_map(|name| name.to_str())
        .map(|name| format!("{CPUS}/cpu0/cpuidle/{name}"))
        .filter(|state| scene.tree.text(format!("{state}/disable")).is_none_or(|off| off == "0"))
        .filter_map(|state| scene.tree.number(format!("{state}/latency")))
        .max();
    beside.extend(deepest.map(|latency| format!("{latency} µs to wake from the deepest sleep")));
    let with = |said: String| [vec![said], beside.clone()].concat().join("; ");
    if governors.is_empty() && preferences.is_empty() {
        let evidence = "no scaling governor is visible: the host decides, or the clock is fixed";
        let remedy = "look at the host's power settings";
        return Check::new(ID, Verdict::Unknown, with(evidence.to_owned()), remedy);
    }
    let mut said = Vec::new();
    if !governors.is_empty() {
        said.push(format!("governor {}", governors.join(", ")));
    }
    if !preferences.is_empty() {
        said.push(format!("energy preference {}", preferences.join(", ")));
    }
    let said = with(said.join("; "));
    if governors.iter().any(|governor| governor != "performance") {
        let remedy = "set it: cpupower frequency-set -g performance";
        return Check::new(ID, Verdict::Warn, said, remedy);
    }
    // A number, or a word; 0 is as performance.
    if preferences.iter().any(|preference| !["performance", "0"].contains(&preference.as_str())) {
        let remedy = "write performance to cpufreq/energy_performance_preference of each processor";
        return Check::new(ID, Verdict::Warn, said, remedy);
    }
    Check::ok(ID, said)
}

/// Whether the device hangs on another node than our processors.
pub(super) fn numa(scene: &Scene) -> Check {
    const ID: &str = "numa";
    let allowed = scene.tree.text("/proc/self/status").and_then(|text| {
        let list = text.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"))?;
        plumb_io::system_tree::parse_cpu_list(list)
    });
    let Some(allowed) = allowed else {
        let evidence = "which processors we may use cannot be read";
        return Check::new(
            ID,
            Verdict::Unknown,
            evidence,
            "mount /proc; see `lscpu`, `taskset -p`",
        );
    };
    if let Some(unseen) = unseen::devices(scene, ID) {
        return unseen;
    }
    let (mut far, mut beside, mut untold) = (Vec::new(), Vec::new(), Vec::new());
    let nodes = scene.tree.names("/sys/devices/system/node");
    let is_node = |name: &str| name.strip_prefix("node").is_some_and(|n| n.parse::<u32>().is_ok());
    let nodes = nodes.iter().filter(|name| name.to_str().is_some_and(is_node)).count();
    for disk in scene.target.disks(scene.tree) {
        beside.extend(interrupts(scene, &disk));
        let Some(node) = node_of(scene, &disk) else {
            untold.extend((nodes > 1).then_some(disk.name));
            continue;
        };
        let path = format!("/sys/devices/system/node/node{node}/cpulist");
        let near = scene.tree.cpu_list(path).unwrap_or_default();
        if !near.is_empty() && !allowed.iter().any(|cpu| near.contains(cpu)) {
            far.push(format!(
                "{} is on node {node}, none of whose processors we may use",
                disk.name
            ));
        }
    }
    let threads = scene.tree.number(format!("{CPUS}/smt/active"));
    beside.extend(threads.map(|on| format!("SMT {}", if on == 0 { "off" } else { "on" })));
    let with = |said: String| [vec![said], beside.clone()].concat().join("; ");
    if far.is_empty() && !untold.is_empty() {
        let said = format!("the node of {} was not read", untold.join(", "));
        return Check::new(
            ID,
            Verdict::Unknown,
            with(said),
            "look at `lspci -vv` of its controller",
        );
    }
    if far.is_empty() {
        return Check::ok(ID, with("no device is on a node that we may not use".to_owned()));
    }
    let remedy = "run on the device's node: numactl -N, or -a";
    Check::new(ID, Verdict::Warn, with(far.join("; ")), remedy)
}

/// A disk's place among the devices, and of each above it, the nearest first; none where it cannot be found.
fn above(scene: &Scene, disk: &BlockDevice) -> Vec<PathBuf> {
    let find = || {
        let root = scene.tree.path("/").canonicalize().ok()?;
        let place = scene.tree.path(format!("/sys/dev/block/{}", disk.number));
        let place = place.canonicalize().ok()?;
        let place = place.strip_prefix(&root).ok()?;
        Some(place.ancestors().map(|folder| Path::new("/").join(folder)).collect())
    };
    find().unwrap_or_default()
}

/// The node of a disk, or of the nearest device above it that has one; -1 for none in particular. `None` where none tells.
fn node_of(scene: &Scene, disk: &BlockDevice) -> Option<i64> {
    let device = PathBuf::from(format!("/sys/dev/block/{}/device", disk.number));
    let places = [device.clone(), device.join("device")].into_iter().chain(above(scene, disk));
    places.into_iter().find_map(|place| scene.tree.text(place.join("numa_node"))?.parse().ok())
}

/// Where the interrupts of a disk's controller are served: vectors of the nearest device above it that has any.
fn interrupts(scene: &Scene, disk: &BlockDevice) -> Option<String> {
    let places = above(scene, disk);
    let mut listed = places.iter().map(|folder| scene.tree.names(folder.join("msi_irqs")));
    let vectors = listed.find(|vectors| !vectors.is_empty())?;
    let mut processors = BTreeSet::new();
    for vector in &vectors {
        let folder = format!("/proc/irq/{}", vector.to_string_lossy());
        let list = ["effective_affinity_list", "smp_affinity_list"]
            .iter()
            .find_map(|file| scene.tree.cpu_list(format!("{folder}/{file}")));
        processors.extend(list.unwrap_or_default());
    }
    let count = vectors.len();
    Some(match processors.len() {
        0 => format!("{}: {count} interrupts, where they are served is not told", disk.name),
        served => format!("{}: {count} interrupts, served by {served} processors", disk.name),
    })
}

/// Temperatures and throttling.
pub(super) fn thermal(scene: &Scene) -> Check {
    const ID: &str = "thermal";
    let mut hot = Vec::new();
    let mut seen = 0;
    for name in scene.tree.names("/sys/class/hwmon") {
        let folder = format!("/sys/class/hwmon/{}", name.to_string_lossy());
        for file in scene.tree.names(&folder) {
            let file = file.to_string_lossy();
            let Some(sensor) = file.strip_suffix("_input").filter(|name| name.starts_with("temp"))
            else {
                continue;
            };
            let Some(value) = scene.tree.number(format!("{folder}/{file}")) else { continue };
            seen += 1;
            let limit = ["max", "crit"]
                .iter()
                .find_map(|kind| scene.tree.number(format!("{folder}/{sensor}_{kind}")));
            if let Some(limit) = limit.filter(|limit| *limit > 0 && value >= *limit) {
                let what = scene.tree.text(format!("{folder}/name")).unwrap_or_default();
                hot.push(format!("{what} {sensor}: {} °C of {} °C", value / 1000, limit / 1000));
            }
        }
    }
    if !hot.is_empty() {
        return Check::new(
            ID,
            Verdict::Warn,
            hot.join("; "),
            "let it cool down, and look at the fans",
        );
    }
    let drives = drives(scene);
    if let Some((_, hot)) = drives.iter().find(|(is_hot, _)| *is_hot) {
        let remedy = "let it cool down: a drive that is too warm slows itself down";
        return Check::new(ID, Verdict::Warn, hot.clone(), remedy);
    }
    let drives: String = drives.iter().map(|(_, said)| format!("; {said}")).collect();
    if seen == 0 && !drives.is_empty() {
        return Check::ok(ID, format!("no sensor of the kernel's is visible{drives}"));
    }
    if seen == 0 {
        let evidence = "no temperature is visible";
        return Check::new(
            ID,
            Verdict::Unknown,
            evidence,
            "load the sensors' drivers, or ask the host",
        );
    }
    Check::ok(ID, format!("{seen} sensors, all below their limits{drives}"))
}

/// What drives of NVMe say of their temperature, and whether one is too warm now.
fn drives(scene: &Scene) -> Vec<(bool, String)> {
    /// The bit of the critical warnings that means temperature.
    const TOO_WARM: u8 = 0x02;
    let logs = nvme_controllers(scene).into_iter();
    let logs = logs.filter_map(|name| HealthLog::read(scene.tree, &name).map(|log| (name, log)));
    logs.map(|(name, log)| {
        let now = log.celsius.map_or_else(String::new, |celsius| format!("{celsius} °C, "));
        let said = format!(
            "{name} {now}slowed itself down {} times and was {} min too warm since it was made",
            log.slowed, log.minutes_hot
        );
        (log.critical_warning & TOO_WARM != 0, said)
    })
    .collect()
}

/// The number of the user whose rights this process has.
pub(super) fn effective_user(scene: &Scene) -> Option<String> {
    let status = scene.tree.text("/proc/self/status")?;
    let ids = status.lines().find_map(|line| line.strip_prefix("Uid:"))?;
    ids.split_whitespace().nth(1).map(str::to_owned)
}

/// What this process may do.
pub(super) fn privileges(scene: &Scene) -> Check {
    const ID: &str = "privileges";
    match effective_user(scene).as_deref() {
        Some("0") => Check::ok(ID, "root: devices, fast allocation and counters are available"),
        Some(user) => {
            let evidence = format!(
                "user {user}: raw devices, fast allocation, the kernel's log and SMART will be missing"
            );
            Check::new(ID, Verdict::Note, evidence, "run as root if they are wanted")
        }
        None => {
            let evidence = "/proc/self/status cannot be read";
            Check::new(ID, Verdict::Unknown, evidence, "mount /proc")
        }
    }
}

/// Clock sources that are the processor's own counter.
const COUNTERS: [&str; 2] = ["tsc", "arch_sys_counter"];
/// Those of guests that are read without a system call, through a page that the host keeps.
const WITHOUT_CALLS: [&str; 2] = ["kvm-clock", "hyperv_clocksource_tsc_page"];

/// The clock that latencies are taken from.
pub(super) fn clock(scene: &Scene) -> Check {
    const ID: &str = "clock";
    const FILE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";
    match scene.tree.text(FILE) {
        Some(name) if COUNTERS.contains(&name.as_str()) => Check::ok(ID, name),
        Some(name) if WITHOUT_CALLS.contains(&name.as_str()) => {
            let evidence = format!(
                "{name}: reading it takes some 25 to 50 ns, several times what the counter itself takes; that \
                 matters below 20 µs"
            );
            let remedy = "boot the guest with clocksource=tsc, if its host keeps the counter steady (`constant_tsc` \
                          and `nonstop_tsc` in /proc/cpuinfo) and it is not moved to another host";
            Check::new(ID, Verdict::Warn, evidence, remedy)
        }
        Some(name) => {
            let evidence = format!("{name}: reading it takes long beside latencies below 20 µs");
            Check::new(
                ID,
                Verdict::Warn,
                evidence,
                "boot with clocksource=tsc, if the machine's is sound",
            )
        }
        None => Check::new(ID, Verdict::Unknown, "the clock source cannot be read", "mount /sys"),
    }
}

/// Whether layers below are out of sight.
pub(super) fn virtualised(scene: &Scene) -> Check {
    const ID: &str = "virt";
    let Some(info) = scene.tree.text("/proc/cpuinfo") else {
        let evidence = "whether this is a guest cannot be read";
        return Check::new(
            ID,
            Verdict::Unknown,
            evidence,
            "mount /proc, or see `systemd-detect-virt`",
        );
    };
    let is_guest = info
        .lines()
        .filter(|line| line.starts_with("flags"))
        .any(|line| line.split_whitespace().any(|flag| flag == "hypervisor"));
    let product = scene.tree.text("/sys/class/dmi/id/product_name").unwrap_or_default();
    let in_container =
        ["/run/.containerenv", "/.dockerenv"].iter().any(|path| scene.tree.path(path).exists());
    let mut seen = Vec::new();
    if in_container {
        seen.push("in a container: other containers share the disks and the page cache".to_owned());
    }
    if is_guest {
        let product = if product.is_empty() { "unnamed" } else { product.as_str() };
        seen.push(format!(
            "a guest ({product}): the host's caches, limits and neighbours are out of sight"
        ));
    }
    if seen.is_empty() {
        return Check::ok(ID, "no hypervisor and no container found");
    }
    Check::new(
        ID,
        Verdict::Note,
        seen.join("; "),
        "ask the host for its limits, and give them as --cap",
    )
}
