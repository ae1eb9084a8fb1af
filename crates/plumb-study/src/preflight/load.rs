//! What else the machine is doing.

use super::{Check, Scene, Verdict};

/// Pressure stall information.
pub(super) fn pressure(scene: &Scene) -> Check {
    const ID: &str = "load-psi";
    // (file, line, per cent that warn, per cent that block)
    const LIMITS: [(&str, &str, f64, f64); 3] = [
        ("io", "some", 1.0, 5.0),
        ("cpu", "some", 5.0, f64::INFINITY),
        ("memory", "full", 0.0, f64::INFINITY),
    ];
    let mut seen = Vec::new();
    let mut verdict = Verdict::Ok;
    let mut is_blind = false;
    for (file, line, warns, blocks) in LIMITS {
        let text = scene.tree.text(format!("/proc/pressure/{file}")).unwrap_or_default();
        let Some(share) = average(&text, line, "avg10=") else {
            // What the others say is no less true.
            seen.push(format!("/proc/pressure/{file} cannot be read"));
            is_blind = true;
            verdict = verdict.max(Verdict::Unknown);
            continue;
        };
        // Load that comes and goes: it may be back, and may be over.
        let longer = average(&text, line, "avg60=");
        let over = longer.map_or_else(String::new, |longer| format!(" ({longer:.2} % over 60 s)"));
        seen.push(format!("{file} {line} {share:.2} %{over}"));
        let found = match share.max(longer.unwrap_or(0.0)) {
            _ if share > blocks => Verdict::Block,
            most if most > warns => Verdict::Warn,
            _ => Verdict::Ok,
        };
        verdict = verdict.max(found);
    }
    let remedy = match verdict {
        Verdict::Ok | Verdict::Note => "",
        Verdict::Unknown if is_blind => "boot with psi=1",
        _ => "find out what waits, and stop it: `top`, `iotop`",
    };
    Check::new(ID, verdict, format!("over the last 10 s: {}", seen.join(", ")), remedy)
}

/// `some avg10=0.05 avg60=…`
fn average(text: &str, line: &str, which: &str) -> Option<f64> {
    let line = text.lines().find(|found| found.starts_with(line))?;
    let share: f64 =
        line.split_whitespace().find_map(|word| word.strip_prefix(which))?.parse().ok()?;
    // What is no share of the time is not one that is small.
    (0.0..=100.0).contains(&share).then_some(share)
}

/// Processors that are busy already.
pub(super) fn processors(scene: &Scene) -> Check {
    const ID: &str = "load-cpu";
    const REMEDY: &str = "stop what uses the processors: `top`";
    let shares: Vec<(f64, f64)> = scene
        .before
        .processors
        .iter()
        .zip(&scene.after.processors)
        .filter(|(before, after)| after.all > before.all)
        .map(|(before, after)| {
            let all = (after.all - before.all) as f64;
            let of = |part: u64, earlier: u64| part.saturating_sub(earlier) as f64 / all * 100.0;
            (of(after.idle, before.idle), of(after.stolen, before.stolen))
        })
        .collect();
    let Some(((idle, stolen), cores)) = shares.split_first() else {
        return Check::new(ID, Verdict::Unknown, "/proc/stat shows no time passing", REMEDY);
    };
    let least = cores.iter().map(|core| core.0).fold(100.0, f64::min);
    let evidence =
        format!("{idle:.0} % idle, the busiest processor {least:.0} % idle, {stolen:.1} % stolen");
    if *stolen > 1.0 {
        let remedy = "ask whoever runs the host: other guests take processor time";
        return Check::new(ID, Verdict::Warn, evidence, remedy);
    }
    if *idle < 90.0 || least < 50.0 {
        return Check::new(ID, Verdict::Warn, evidence, REMEDY);
    }
    Check::ok(ID, evidence)
}

/// Traffic on the devices under the target.
pub(super) fn disks(scene: &Scene) -> Check {
    const ID: &str = "load-disk";
    const REMEDY: &str = "find out who does I/O there, and stop it: `iotop`";
    let seconds = scene.after.seconds_since(scene.before);
    let mut seen = Vec::new();
    let mut verdict = Verdict::Ok;
    for device in scene.target.devices(scene.tree) {
        let (before, after) =
            (scene.before.disks.get(&device.number), scene.after.disks.get(&device.number));
        let Some((before, after)) = before.zip(after) else { continue };
        let rate = after.0.saturating_sub(before.0) as f64 / seconds;
        let busy = after.1.saturating_sub(before.1) as f64 / 10.0 / seconds;
        seen.push(format!("{} {rate:.0} I/Os per second, {busy:.0} % busy", device.name));
        let found = match (busy, rate) {
            (busy, _) if busy > 10.0 => Verdict::Block,
            (busy, rate) if busy > 1.0 || rate > 5.0 => Verdict::Warn,
            _ => Verdict::Ok,
        };
        verdict = verdict.max(found);
    }
    if seen.is_empty() {
        return Check::new(ID, Verdict::Unknown, "no device under the target is counted", REMEDY);
    }
    let remedy = if verdict == Verdict::Ok { "" } else { REMEDY };
    Check::new(ID, verdict, seen.join("; "), remedy)
}

/// Memory that is short, or full of writes to come.
pub(super) fn memory(scene: &Scene) -> Check {
    const ID: &str = "mem";
    const DIRTY_MOST_KIB: u64 = 64 << 10;
    let Some(text) = scene.tree.text("/proc/meminfo") else {
        return Check::new(ID, Verdict::Unknown, "/proc/meminfo cannot be read", "mount /proc");
    };
    let kib = |name: &str| {
        let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
        line.split_whitespace().next()?.parse::<u64>().ok()
    };
    let value = |name: &str| kib(name).unwrap_or(0);
    let dirty = value("Dirty") + value("Writeback");
    let swapped = value("SwapTotal").saturating_sub(value("SwapFree"));
    let needed = ["MemTotal", "Dirty", "Writeback", "SwapTotal", "SwapFree"];
    let missing: Vec<&str> = needed.into_iter().filter(|name| kib(name).is_none()).collect();
    let told = |value: Option<u64>| {
        value.map_or_else(|| "unknown".to_owned(), |kib| format!("{} MiB", kib >> 10))
    };
    let evidence = format!(
        "{}, {} available, {} MiB to be written, {} MiB in swap",
        told(kib("MemTotal")),
        told(kib("MemAvailable")),
        dirty >> 10,
        swapped >> 10
    );
    if dirty > DIRTY_MOST_KIB {
        return Check::new(ID, Verdict::Warn, evidence, "run `sync`, and wait");
    }
    if swapped > 0 {
        return Check::new(
            ID,
            Verdict::Warn,
            evidence,
            "free memory, then `swapoff -a && swapon -a`",
        );
    }
    if !missing.is_empty() {
        let evidence = format!("/proc/meminfo does not tell {}", missing.join(", "));
        return Check::new(ID, Verdict::Unknown, evidence, "look at `free`, and run `sync`");
    }
    Check::ok(ID, evidence)
}
