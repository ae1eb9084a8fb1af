//! How the block layer treats the device: caches, schedulers, limits, alignment.

use plumb_io::block_stack::{DiskFacts, WriteCache};

use super::{Check, Scene, Verdict};

/// What a completed write means.
pub(super) fn write_cache(scene: &Scene) -> Check {
    const ID: &str = "write-cache";
    let disks = scene.target.disks(scene.tree);
    let mut seen = Vec::new();
    let (mut volatile, mut unknown) = (false, disks.is_empty());
    for disk in &disks {
        let (word, is_back) = match DiskFacts::read(scene.tree, disk).write_cache {
            Some(WriteCache::WriteBack) => ("write back", true),
            Some(WriteCache::WriteThrough) => ("write through", false),
            None => {
                unknown = true;
                ("unknown", false)
            }
        };
        volatile |= is_back;
        seen.push(format!("{} {word}", disk.name));
    }
    let evidence = seen.join(", ");
    if volatile {
        let evidence = format!(
            "{evidence}: without write-through (-Sw, -Sh) a completed write may be in a cache that loses it"
        );
        return Check::new(
            ID,
            Verdict::Note,
            evidence,
            "measure as it will be used, and say which",
        );
    }
    if unknown {
        let evidence = "what the disks' write caches do is not known";
        return Check::new(ID, Verdict::Unknown, evidence, "look at the controller's own tool");
    }
    Check::ok(ID, format!("{evidence}, as the kernel believes: completed writes are durable"))
}

/// Scheduler, queue sizes, and limits that hold this process down.
pub(super) fn scheduler(scene: &Scene) -> Check {
    const ID: &str = "scheduler";
    let mut caps = Vec::new();
    let own: Vec<String> =
        scene.target.devices(scene.tree).iter().map(|device| device.number.to_string()).collect();
    let mut cgroup = own_cgroup(scene);
    while let Some(path) = cgroup {
        for file in ["io.max", "io.latency", "cpu.max"] {
            let text = scene.tree.text(format!("/sys/fs/cgroup{path}/{file}")).unwrap_or_default();
            for line in text.lines().filter(|line| is_limit(file, line, &own)) {
                caps.push(format!("{path} {file}: {line}"));
            }
        }
        cgroup = path.rsplit_once('/').map(|(parent, _)| parent.to_owned());
    }
    // The root has no limits, but the cost model that all groups share.
    let model = scene.tree.text("/sys/fs/cgroup/io.cost.qos").unwrap_or_default();
    let is_on = |line: &&str| line.split_whitespace().any(|word| word == "enable=1");
    let costs = model.lines().filter(is_on).filter(|line| is_limit("io.cost.qos", line, &own));
    caps.extend(costs.map(|line| format!("the cost model io.cost.qos: {line}")));
    caps.extend(first_version(scene, &own));
    let mut seen = Vec::new();
    let mut unseen = Vec::new();
    if scene.tree.text("/proc/self/cgroup").is_none() {
        unseen.push("which cgroup limits this process".to_owned());
    }
    for disk in scene.target.disks(scene.tree) {
        let queue = format!("/sys/dev/block/{}/queue", disk.number);
        let facts = DiskFacts::read(scene.tree, &disk);
        if facts.scheduler.is_none() && scene.tree.text(format!("{queue}/nr_requests")).is_none() {
            unseen.push(format!("the queue of {}", disk.name));
        }
        let word = |value: Option<String>| value.unwrap_or_else(|| "unknown".to_owned());
        let file = |name: &str| word(scene.tree.text(format!("{queue}/{name}")));
        seen.push(format!(
            "{}: {}, nr_requests {}, read_ahead_kb {}, nomerges {}, rq_affinity {}, max_sectors_kb {}, \
             io_poll {}, wbt_lat_usec {}",
            disk.name,
            word(facts.scheduler),
            file("nr_requests"),
            file("read_ahead_kb"),
            file("nomerges"),
            file("rq_affinity"),
            file("max_sectors_kb"),
            file("io_poll"),
            file("wbt_lat_usec")
        ));
    }
    if !caps.is_empty() {
        let remedy = "run outside of this cgroup, or take the limit as a cap of the result";
        return Check::new(ID, Verdict::Warn, format!("limited by {}", caps.join("; ")), remedy);
    }
    if seen.is_empty() {
        let evidence = "no disk under the target is visible";
        return Check::new(
            ID,
            Verdict::Unknown,
            evidence,
            "look at the settings where the disks are",
        );
    }
    if !unseen.is_empty() {
        let evidence = format!("{} cannot be seen; {}", unseen.join(" and "), seen.join("; "));
        let remedy = "look where /sys and /proc of the host are readable";
        return Check::new(ID, Verdict::Unknown, evidence, remedy);
    }
    Check::ok(ID, seen.join("; "))
}

/// The path of our cgroup (v2), `/` for the root.
fn own_cgroup(scene: &Scene) -> Option<String> {
    let text = scene.tree.text("/proc/self/cgroup")?;
    let path = text.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(path.trim_end_matches('/').to_owned())
}

/// Limits of the first version of cgroups, which has a tree of its own for each controller: `4:blkio:/user.slice`.
fn first_version(scene: &Scene, own: &[String]) -> Vec<String> {
    const THROTTLED: [&str; 4] = ["read_bps", "write_bps", "read_iops", "write_iops"];
    let text = scene.tree.text("/proc/self/cgroup").unwrap_or_default();
    let mut caps = Vec::new();
    for line in text.lines() {
        let mut fields = line.splitn(3, ':').skip(1);
        let (Some(controllers), Some(path)) = (fields.next(), fields.next()) else { continue };
        let mut cgroup = Some(path.trim_end_matches('/').to_owned());
        while let Some(path) = cgroup {
            for controller in controllers.split(',') {
                let file = |name: &str| {
                    scene.tree.text(format!("/sys/fs/cgroup/{controller}{path}/{name}"))
                };
                if controller == "blkio" {
                    for what in THROTTLED {
                        let name = format!("blkio.throttle.{what}_device");
                        let text = file(&name).unwrap_or_default();
                        // `8:16 1048576`
                        let is_own = |line: &&str| {
                            let device = line.split_whitespace().next();
                            own.is_empty()
                                || own.iter().any(|number| Some(number.as_str()) == device)
                        };
                        let lines = text.lines().filter(|line| !line.is_empty()).filter(is_own);
                        caps.extend(lines.map(|line| format!("{path} {name}: {line}")));
                    }
                }
                if controller == "cpu" {
                    let quota = file("cpu.cfs_quota_us").and_then(|text| text.parse::<i64>().ok());
                    let quota = quota.filter(|quota| *quota > 0);
                    caps.extend(quota.map(|quota| format!("{path} cpu.cfs_quota_us: {quota}")));
                }
            }
            cgroup = path.rsplit_once('/').map(|(parent, _)| parent.to_owned());
        }
    }
    caps
}

/// Whether a line of a limit file limits anything of the target's; where no device is known each may be one.
fn is_limit(file: &str, line: &str, own: &[String]) -> bool {
    match file {
        "cpu.max" => !line.starts_with("max"),
        // `8:16 rbps=max wbps=max riops=max wiops=500`, `8:16 target=10`
        _ => {
            let mut words = line.split_whitespace();
            let device = words.next().unwrap_or_default();
            let is_own = own.is_empty() || own.iter().any(|number| number == device);
            is_own && words.any(|word| !word.ends_with("=max"))
        }
    }
}

/// Blocks and partitions against the physical block.
pub(super) fn alignment(scene: &Scene) -> Check {
    const ID: &str = "align";
    let mut wrong = Vec::new();
    let mut largest = 0;
    for leaf in &scene.target.stack.leaves {
        let physical = DiskFacts::read(scene.tree, leaf).physical_block_bytes.unwrap_or(0);
        largest = largest.max(physical);
        if physical == 0 {
            continue;
        }
        let start = scene.tree.number(format!("/sys/dev/block/{}/start", leaf.number));
        let misplaced = start.filter(|start| !(start * 512).is_multiple_of(physical));
        wrong.extend(misplaced.map(|start| {
            format!("{} begins at sector {start}, not on a multiple of {physical} bytes", leaf.name)
        }));
        let block = scene.target.plan.block_bytes.filter(|block| !block.is_multiple_of(physical));
        wrong.extend(block.map(|block| {
            format!(
                "I/Os of {block} bytes are no multiple of the {physical} bytes of {}",
                leaf.name
            )
        }));
    }
    if !wrong.is_empty() {
        let remedy =
            "use a multiple of the physical block: others are read, changed and written back";
        return Check::new(ID, Verdict::Warn, wrong.join("; "), remedy);
    }
    if largest == 0 {
        let evidence = "the physical block size is not known";
        return Check::new(ID, Verdict::Unknown, evidence, "take 4 KiB or more");
    }
    Check::ok(ID, format!("physical blocks of {largest} bytes"))
}
