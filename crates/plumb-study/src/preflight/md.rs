//! Arrays of md: degraded, or busy with themselves.

use plumb_io::block_stack::BlockDevice;

use super::health::folder;
use super::{Check, Scene, Verdict, unseen};

const ID: &str = "health-md";
/// States in which an array serves; `read-auto` is one that was assembled and not written to since.
const WELL: [&str; 5] = ["clean", "active", "active-idle", "write-pending", "read-auto"];
/// Levels without copies: nothing of them can be missing, and there is nothing to put right.
const WITHOUT_COPIES: [&str; 2] = ["raid0", "linear"];
/// What an array does to itself, by the words of `/proc/mdstat`.
const ACTIONS: [&str; 5] = ["resync", "recovery", "reshape", "check", "repair"];

/// What is known of an array; `None` where it was not to be read.
#[derive(Debug, Default)]
struct Array {
    state: Option<String>,
    level: Option<String>,
    missing: Option<u64>,
    action: Option<String>,
    mismatches: Option<u64>,
}

impl Array {
    /// By its folder in `/sys` and, for what is not there, by its lines of `/proc/mdstat`; `None` for what is no array.
    fn of(scene: &Scene, device: &BlockDevice, mdstat: Option<&str>) -> Option<Self> {
        let md = format!("{}/md", folder(device));
        let text = |name: &str| scene.tree.text(format!("{md}/{name}"));
        let number = |name: &str| scene.tree.number(format!("{md}/{name}"));
        let told = mdstat.and_then(|text| Self::of_mdstat(text, &device.name)).unwrap_or_default();
        let state = text("array_state").or(told.state);
        let is_array = device.name.starts_with("md") && device.number == device.disk;
        (is_array || state.is_some()).then(|| Self {
            state,
            level: text("level").or(told.level),
            missing: number("degraded").or(told.missing),
            action: text("sync_action").or(told.action),
            mismatches: number("mismatch_cnt"),
        })
    }

    /// By `name : active raid1 sdb1[1] sda1[0]` and the lines that follow it.
    fn of_mdstat(text: &str, name: &str) -> Option<Self> {
        let head =
            |line: &str| line.strip_prefix(name)?.trim_start().strip_prefix(':').map(str::to_owned);
        let mut lines = text.lines().skip_while(|line| head(line).is_none());
        let first = head(lines.next()?)?;
        let rest: Vec<&str> = lines.take_while(|line| line.starts_with([' ', '\t'])).collect();
        let mut words = first.split_whitespace();
        let state = words.next()?;
        let level = words.find(|word| !word.starts_with('('));
        let level = level.filter(|word| !word.contains('[')).map(str::to_owned);
        let words = || rest.iter().flat_map(|line| line.split_whitespace());
        // `[2/1]`: of two devices one is there.
        let missing = words().find_map(|word| {
            let (all, there) = word.strip_prefix('[')?.strip_suffix(']')?.split_once('/')?;
            all.parse::<u64>().ok()?.checked_sub(there.parse().ok()?)
        });
        let action = words().map(|word| word.split('=').next().unwrap_or(word));
        let action = action.into_iter().find(|word| ACTIONS.contains(word)).unwrap_or("idle");
        Some(Self {
            state: Some(state.to_owned()),
            level,
            missing,
            action: Some(action.to_owned()),
            mismatches: None,
        })
    }

    /// What of it was not to be read, in words.
    fn unread(&self, name: &str) -> Option<String> {
        if self.state.is_none() {
            return Some(format!("the state of {name} was not read"));
        }
        if self.level.as_deref().is_some_and(|level| WITHOUT_COPIES.contains(&level)) {
            return None;
        }
        let all = [
            (self.missing.is_none(), "whether it lacks devices"),
            (self.action.is_none(), "whether it is busy with itself"),
            (self.mismatches.is_none(), "how many mismatches"),
        ];
        let unread: Vec<&str> =
            all.into_iter().filter(|(is_so, _)| *is_so).map(|(_, what)| what).collect();
        match &*unread {
            [] => None,
            ["how many mismatches"] => Some(format!("how many mismatches {name} had was not read")),
            _ => Some(format!("of {name} was not read: {}", unread.join(", "))),
        }
    }
}

/// Degraded arrays, those that are busy with themselves, and those whose copies differ.
pub(super) fn md(scene: &Scene) -> Check {
    let mdstat = scene.tree.text("/proc/mdstat");
    let mut arrays = 0;
    let (mut bad, mut notable, mut unread) = (Vec::new(), Vec::new(), Vec::new());
    for device in scene.target.devices(scene.tree) {
        let Some(array) = Array::of(scene, &device, mdstat.as_deref()) else { continue };
        let name = &device.name;
        arrays += 1;
        if let Some(state) = array.state.as_ref().filter(|state| !WELL.contains(&state.as_str())) {
            bad.push(format!("{name} is {state}"));
        }
        if let Some(missing) = array.missing.filter(|missing| *missing > 0) {
            bad.push(format!("{name} lacks {missing} devices"));
        }
        let is_busy = |action: &&String| !["idle", "frozen"].contains(&action.as_str());
        if let Some(action) = array.action.as_ref().filter(is_busy) {
            bad.push(format!("{name} is doing a {action}"));
        }
        let mismatches = array.mismatches.filter(|count| *count > 0);
        notable.extend(mismatches.map(|count| format!("{name} had {count} mismatches")));
        unread.extend(array.unread(name));
    }
    if !bad.is_empty() {
        let remedy = "wait for the array, or stop the check: echo idle > md/sync_action";
        return Check::new(ID, Verdict::Block, bad.join("; "), remedy);
    }
    if !notable.is_empty() {
        notable.extend(unread);
        return Check::new(ID, Verdict::Warn, notable.join("; "), "repair the array first");
    }
    if !unread.is_empty() {
        let remedy = "look at /proc/mdstat, `mdadm --detail`";
        return Check::new(ID, Verdict::Unknown, unread.join("; "), remedy);
    }
    if let Some(unseen) = unseen::devices(scene, ID) {
        return unseen;
    }
    Check::ok(ID, format!("{arrays} md arrays under the target"))
}
