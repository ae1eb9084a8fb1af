//! The network, where it is on the way to the data.

use plumb_io::block_stack::BlockDevice;

use super::health::{folder, nvme_controllers};
use super::kernel_log::{is_trouble, mentions, read_log};
use super::{Check, Scene, Verdict, unseen};

/// Load of a link that warns, in per cent.
const BUSY: f64 = 5.0;
/// Options of a mount that say how its data comes.
const TOLD: &[&str] = &["vers", "proto", "nconnect", "rsize", "wsize"];

/// How data is reached that is on another machine.
struct Way {
    said: String,
    /// Something about it that is not as it should be.
    trouble: Option<String>,
    /// What the kernel's log calls it.
    names: Vec<String>,
}

/// Every way to another machine under the target.
fn ways(scene: &Scene) -> Vec<Way> {
    let mut found = Vec::new();
    if let Some(mount) = scene.target.stack.mount.as_ref().filter(|mount| mount.is_remote()) {
        let is_told =
            |option: &&String| option.split_once('=').is_some_and(|(name, _)| TOLD.contains(&name));
        let options: Vec<&str> =
            mount.super_options.iter().filter(is_told).map(String::as_str).collect();
        let options =
            if options.is_empty() { String::new() } else { format!(" ({})", options.join(", ")) };
        let server = mount.source.trim_start_matches('/').split([':', '/']).next();
        found.push(Way {
            said: format!("{} from {}{options}", mount.kind, mount.source),
            trouble: None,
            names: server.map(|server| format!("server {server}")).into_iter().collect(),
        });
    }
    for name in nvme_controllers(scene) {
        let read = |file: &str| scene.tree.text(format!("/sys/class/nvme/{name}/{file}"));
        let Some(transport) = read("transport").filter(|transport| transport != "pcie") else {
            continue;
        };
        let address = read("address").map_or_else(String::new, |address| format!(" ({address})"));
        let state = read("state").filter(|state| state != "live");
        found.push(Way {
            said: format!("{name} is attached by {transport}{address}"),
            trouble: state.map(|state| format!("{name} is {state}")),
            names: vec![name],
        });
    }
    found.extend(scene.target.disks(scene.tree).iter().filter_map(|disk| of_disk(scene, disk)));
    found
}

/// How a disk is reached that is on another machine: over iSCSI, Fibre Channel, or as a device of the network.
fn of_disk(scene: &Scene, disk: &BlockDevice) -> Option<Way> {
    let name = disk.name.clone();
    let numbered = |part: &str, prefix: &str| {
        part.strip_prefix(prefix).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()))
    };
    let kinds = [
        ("nbd", "a network block device"),
        ("rbd", "a device of Ceph"),
        ("drbd", "a mirror by DRBD"),
    ];
    if let Some((prefix, what)) = kinds.into_iter().find(|(prefix, _)| numbered(&name, prefix)) {
        let connected = scene.tree.path(format!("{}/pid", folder(disk))).exists();
        let trouble = (prefix == "nbd" && !connected).then(|| format!("{name} is not connected"));
        return Some(Way { said: format!("{name} is {what}"), trouble, names: vec![name] });
    }
    let place = scene.tree.path(folder(disk)).canonicalize().ok()?;
    let parts = || place.iter().filter_map(|part| part.to_str());
    if let Some(session) = parts().find(|part| numbered(part, "session")) {
        let read =
            |file: &str| scene.tree.text(format!("/sys/class/iscsi_session/{session}/{file}"));
        let target = read("targetname").unwrap_or_else(|| session.to_owned());
        let number = session.trim_start_matches("session");
        let connections: Vec<String> = scene
            .tree
            .names("/sys/class/iscsi_connection")
            .iter()
            .filter_map(|name| name.to_str())
            .filter(|name| {
                name.strip_prefix("connection")
                    .is_some_and(|rest| rest.split(':').next() == Some(number))
            })
            .map(str::to_owned)
            .collect();
        let state = read("state").filter(|state| state != "LOGGED_IN");
        return Some(Way {
            said: format!(
                "{name} is {target} over iSCSI, {session}, {} connections",
                connections.len()
            ),
            trouble: state.map(|state| format!("{session} is {state}")),
            names: connections.into_iter().chain([session.to_owned(), name]).collect(),
        });
    }
    let port = parts().find(|part| part.starts_with("rport-"))?;
    let state = scene.tree.text(format!("/sys/class/fc_remote_ports/{port}/port_state"));
    let trouble = state.filter(|state| state != "Online").map(|state| format!("{port} is {state}"));
    Some(Way {
        said: format!("{name} is reached over Fibre Channel, {port}"),
        trouble,
        names: vec![port.to_owned(), name],
    })
}

/// Interfaces that are up, and their speed in Mbit/s where it is known.
fn links(scene: &Scene) -> Vec<(String, Option<u64>)> {
    const NET: &str = "/sys/class/net";
    let names = scene.tree.names(NET).into_iter().map(|name| name.to_string_lossy().into_owned());
    let read = |name: &str, file: &str| scene.tree.text(format!("{NET}/{name}/{file}"));
    names
        .filter(|name| name != "lo" && read(name, "operstate").as_deref() == Some("up"))
        .map(|name| {
            // `-1` where nobody knows.
            let speed = read(&name, "speed").and_then(|text| text.parse().ok());
            (name, speed.filter(|speed| *speed > 0))
        })
        .collect()
}

/// What the kernel's log says of connections last: lost, timed out, made anew.
fn logged(scene: &Scene, ways: &[Way]) -> Option<String> {
    const TRANSPORT: &[&str] =
        &["conn error", "reconnect", "connection lost", "connection closed", "not responding"];
    let log = read_log(scene)?;
    let names: Vec<&String> = ways.iter().flat_map(|way| &way.names).collect();
    let last = log.lines().rfind(|line| {
        let lower = line.to_lowercase();
        (is_trouble(line) || TRANSPORT.iter().any(|word| lower.contains(word)))
            && names.iter().any(|name| mentions(line, name))
    })?;
    Some(format!("the kernel's log says: {}", last.trim()))
}

/// Whether the data is on another machine.
pub(super) fn fabric(scene: &Scene) -> Check {
    const ID: &str = "health-fabric";
    let ways = ways(scene);
    if ways.is_empty() {
        let absent =
            || Check::ok(ID, "nothing under the target is remote, as far as the kernel shows");
        return unseen::devices(scene, ID).unwrap_or_else(absent);
    }
    let mut said: Vec<String> = ways.iter().map(|way| way.said.clone()).collect();
    said.push("the network is part of every I/O".to_owned());
    let speeds: Vec<String> = links(scene)
        .iter()
        .map(|(name, speed)| match speed {
            Some(speed) => format!("{name} {speed} Mbit/s"),
            None => format!("{name} of unknown speed"),
        })
        .collect();
    if !speeds.is_empty() {
        said.push(format!("links: {}", speeds.join(", ")));
    }
    let mut trouble: Vec<String> = ways.iter().filter_map(|way| way.trouble.clone()).collect();
    trouble.extend(logged(scene, &ways));
    let evidence = trouble.iter().chain(&said).cloned().collect::<Vec<_>>().join("; ");
    match trouble.is_empty() {
        true => Check::new(
            ID,
            Verdict::Note,
            evidence,
            "record sessions and link speed with the result",
        ),
        false => {
            Check::new(ID, Verdict::Warn, evidence, "find out why the connection fails: `dmesg`")
        }
    }
}

/// The load of the links, where they are on the way.
pub(super) fn load(scene: &Scene) -> Check {
    const ID: &str = "load-net";
    const REMEDY: &str = "look at `sar -n DEV 1` on both sides";
    if ways(scene).is_empty() {
        let absent = || Check::ok(ID, "no network on the way");
        return unseen::devices(scene, ID).unwrap_or_else(absent);
    }
    let seconds = scene.after.seconds_since(scene.before);
    let (mut seen, mut verdict, mut is_known) = (Vec::new(), Verdict::Ok, false);
    for (name, speed) in links(scene) {
        let (before, after) = (scene.before.links.get(&name), scene.after.links.get(&name));
        let Some((before, after)) = before.zip(after) else { continue };
        let most = after.0.saturating_sub(before.0).max(after.1.saturating_sub(before.1));
        let rate = most as f64 / seconds;
        let Some(speed) = speed else {
            seen.push(format!("{name} {:.1} MiB/s of an unknown speed", rate / f64::from(1 << 20)));
            continue;
        };
        is_known = true;
        let share = rate * 8.0 / (speed as f64 * 1e6) * 100.0;
        seen.push(format!("{name} {share:.1} % busy"));
        if share > BUSY {
            verdict = Verdict::Warn;
        }
    }
    let again = scene.after.sent_again.zip(scene.before.sent_again);
    match again.map(|(after, before)| after.saturating_sub(before)) {
        Some(again) if again > 0 => {
            seen.push(format!("{again} segments of TCP sent again"));
            verdict = Verdict::Warn;
        }
        Some(_) => seen.push("none sent again".to_owned()),
        None => {}
    }
    if verdict == Verdict::Warn {
        return Check::new(
            ID,
            verdict,
            seen.join("; "),
            "stop what uses the link, and find what loses packets",
        );
    }
    if !is_known {
        let seen = seen.iter().map(|said| format!("; {said}")).collect::<String>();
        let evidence = format!("the target is remote; how busy its link is cannot be told{seen}");
        return Check::new(ID, Verdict::Unknown, evidence, REMEDY);
    }
    Check::ok(ID, seen.join("; "))
}
