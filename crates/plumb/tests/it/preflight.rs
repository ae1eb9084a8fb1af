//! `plumb check`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::program::plumb;
use crate::rights::{Loop, is_root};

/// The time that a preflight may take.
const MOST: Duration = Duration::from_secs(2);

#[test]
fn every_check_has_a_verdict_within_two_seconds() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("new.dat");
    let line = format!("check {} --size 1M --json", file.display());
    // The best of three: the machine may be busy.
    let look = || {
        let start = Instant::now();
        (plumb(&line), start.elapsed())
    };
    let (mut outcome, mut took) = look();
    for _ in 0..2 {
        if took > MOST {
            (outcome, took) = look();
        }
    }
    assert!([0, 3].contains(&outcome.status), "{outcome:#?}");
    assert!(took <= MOST, "{took:?}: it watches for one second");
    let answer: Value = serde_json::from_str(&outcome.stdout).expect("one object");
    let checks = answer["checks"].as_array().expect("a list");
    assert_eq!(checks.len(), 32);
    for check in checks {
        let verdict = check["verdict"].as_str().expect("a word");
        assert!(["ok", "note", "warn", "block", "unknown"].contains(&verdict), "{check}");
        assert!(check["evidence"].as_str().is_some_and(|text| !text.is_empty()), "{check}");
        assert_eq!(check["remedy"].is_null(), verdict == "ok", "{check}");
    }
    let blocks = checks.iter().any(|check| check["verdict"] == "block");
    assert_eq!(outcome.status == 3, blocks);
    assert!(!file.exists(), "it only looks");
}

#[test]
fn what_was_never_written_is_not_read_unnoticed() {
    let bench = crate::sweeps::Bench::with("");
    let sparse = || {
        let file = fs::File::create(bench.path("f")).expect("a file");
        file.set_len(1 << 20).expect("a size");
    };
    sparse();
    let fs_check = |line: &str| {
        let answer: Value = serde_json::from_str(&bench.call(line).stdout).expect("one object");
        let checks = answer["checks"].as_array().expect("a list").clone();
        checks.into_iter().find(|check| check["id"] == "fs").expect("it is there")
    };
    let check = fs_check("check f --json");
    assert_eq!(check["verdict"], "block", "{check}");
    assert!(check["evidence"].as_str().expect("words").contains("100.0 % of the file"), "{check}");
    // One of another size is made anew, and what is written is written.
    assert_ne!(fs_check("check f --size 2M --json")["verdict"], "block");
    let refused = bench.call("baseline f --quick --olap --id b --destroy f").ends_with(3);
    assert!(refused.stderr.contains("fs"), "{}", refused.stderr);
    let runs = "--duration 1 --repetitions 1 --id";
    let said = bench.call(&format!("quick f {runs} q --destroy f"));
    assert!(said.stderr.contains("was never written"), "{}", said.stderr);
    sparse();
    let sweep = format!("sweep f --vary o=1,2 --set w=0 --set t=1 --warmup 0 {runs} s");
    let said = bench.call(&sweep);
    assert!(said.stderr.contains("was never written"), "{}", said.stderr);
    fs::write(bench.path("f"), vec![7; 1 << 20]).expect("written");
    assert_ne!(fs_check("check f --json")["verdict"], "block");
}

#[test]
fn programs_of_the_machine_are_asked() {
    use std::os::unix::fs::PermissionsExt;

    let folder = tempfile::tempdir().expect("a folder");
    let asked = folder.path().join("systemctl");
    let soon = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("later");
    let next = (soon.as_secs() + 300) * 1_000_000;
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = list-timers ] && echo '[{{\"unit\":\"fstrim.timer\",\"next\":{next}}}]'\n"
    );
    fs::write(&asked, script).expect("a script");
    fs::set_permissions(&asked, fs::Permissions::from_mode(0o755)).expect("a mode");
    let target = folder.path().join("f").display().to_string();
    let look = |seconds: &str| {
        let mut command = std::process::Command::new(crate::program::path());
        command.args(["check", &target, "--size", "1M", "--for", seconds, "--json"]);
        let outcome = crate::program::outcome(command.env("PATH", folder.path()));
        let answer: Value = serde_json::from_str(&outcome.stdout).expect("one object");
        let checks = answer["checks"].as_array().expect("a list").clone();
        checks.into_iter().find(|check| check["id"] == "tasks-timers").expect("it is there")
    };
    let due = look("600");
    assert_eq!(due["verdict"], "block", "{due}");
    assert!(due["evidence"].as_str().expect("words").contains("fstrim.timer"), "{due}");
    // A job of this machine's own cron may be due in that minute.
    let later = look("60");
    assert!(!later["evidence"].as_str().expect("words").contains("fstrim.timer"), "{later}");
}

#[test]
fn what_programs_of_a_copied_tree_said_is_read() {
    let root = tempfile::tempdir().expect("a folder");
    let write = |path: &str, text: &str| {
        let path = root.path().join(path);
        fs::create_dir_all(path.parent().expect("below the root")).expect("folders");
        fs::write(path, text).expect("a file");
    };
    write("proc/self/mountinfo", "25 1 0:40 / /data rw - zfs tank/data rw\n");
    write("said/zpool list", "ONLINE\t3\t91\n");
    write("said/zpool status", "  scan: none requested\n");
    let line = format!("check /data/file --system-root {}", root.path().display());
    let outcome = plumb(&line);
    assert!(
        outcome.stdout.contains("warn    health-zfs        pool tank is ONLINE, 91 % full"),
        "{outcome:#?}"
    );
    write("said/zpool status", "  scan: scrub in progress since Sunday\n");
    let outcome = plumb(&line).ends_with(3);
    assert!(outcome.stdout.contains("block   health-zfs"), "{outcome:#?}");
}

#[test]
fn an_empty_system_tree_is_fine_in_nothing() {
    let root = tempfile::tempdir().expect("a folder");
    let line = format!("check /data/file --system-root {} --json", root.path().display());
    let answer: Value = serde_json::from_str(&plumb(&line).stdout).expect("one object");
    for check in answer["checks"].as_array().expect("a list") {
        let verdict = check["verdict"].as_str().expect("a word");
        assert!(["unknown", "note"].contains(&verdict), "{check}");
        assert!(check["remedy"].as_str().is_some_and(|what| !what.is_empty()), "{check}");
    }
}

#[test]
fn holes_are_no_room_and_a_folder_is_no_target() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("sparse.dat");
    fs::File::create(&path).expect("a file").set_len(4 << 40).expect("a size");
    let line = format!("check {} --size 4T --json", path.display());
    let outcome = plumb(&line).ends_with(3);
    let answer: Value = serde_json::from_str(&outcome.stdout).expect("one object");
    let checks = answer["checks"].as_array().expect("a list");
    let capacity = checks.iter().find(|check| check["id"] == "capacity").expect("it is there");
    assert_eq!(capacity["verdict"], "block", "{capacity}");
    // A pipe has nobody at its other end: who opens it waits for ever.
    let pipe = folder.path().join("pipe");
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    let socket = folder.path().join("socket");
    let _held = std::os::unix::net::UnixListener::bind(&socket).expect("a socket");
    let told = |path: &Path| path.display().to_string();
    for (wrong, what) in [
        (told(folder.path()), "is a folder"),
        ("/dev/null".to_owned(), "is a character device"),
        (told(&pipe), "is a pipe"),
        (told(&socket), "is a socket"),
    ] {
        for line in [format!("check {wrong}"), format!("monitor {wrong} --for 1")] {
            let refused = plumb(&line).ends_with(2).stderr;
            assert!(refused.contains(&format!("{wrong} {what}")), "{line}: {refused}");
        }
    }
}

#[test]
fn what_blocks_ends_with_3_unless_it_is_accepted() {
    let root = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(root.path().join("proc/7")).expect("folders");
    fs::write(root.path().join("proc/7/comm"), "fstrim\n").expect("a file");
    let line = format!("check /data/file --system-root {}", root.path().display());
    let outcome = plumb(&line).ends_with(3);
    assert!(outcome.stdout.starts_with("/data/file: block\nblock   tasks-running"), "{outcome:#?}");
    assert!(outcome.stdout.contains("do: wait for it to end"), "{outcome:#?}");
    let outcome = plumb(&format!("{line} --accept tasks-running")).ends_with(0);
    assert!(outcome.stdout.contains("(accepted)"), "{outcome:#?}");
    plumb(&format!("{line} --accept everything")).ends_with(2);
    plumb("check").ends_with(2);
    plumb("check f --size 0").ends_with(2);
    let outcome = plumb("check /no/such/folder/file").ends_with(2);
    assert!(outcome.stderr.contains("/no/such/folder/file"), "{outcome:#?}");
}

/// Something mounted, unmounted after the test.
struct Mounted(std::path::PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        // A test that fails is not to fail twice.
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

#[test]
fn a_mounted_device_blocks_and_says_what_to_do() {
    const NAME: &str = "a_mounted_device_blocks_and_says_what_to_do";
    let bench = crate::sweeps::Bench::with("");
    let image = bench.path("image");
    fs::File::create(&image).and_then(|file| file.set_len(64 << 20)).expect("a file");
    if !is_root() {
        println!("skipped {NAME}: only root mounts");
        return;
    }
    let Some(device) = Loop::attach(&image) else {
        println!("skipped {NAME}: no loop device");
        return;
    };
    let made = Command::new("mkfs.ext4").args(["-q", "-F"]).arg(device.path()).status();
    if !made.is_ok_and(|status| status.success()) {
        println!("skipped {NAME}: no mkfs.ext4");
        return;
    }
    let at = bench.path("mounted");
    fs::create_dir(&at).expect("a folder");
    let status = Command::new("mount").arg(device.path()).arg(&at).status().expect("mount");
    assert!(status.success(), "{status}");
    let mounted = Mounted(at.clone());
    let fs_check = || {
        let outcome = bench.call(&format!("check {} --json", device.path()));
        let answer: Value = serde_json::from_str(&outcome.stdout).expect("one object");
        let checks = answer["checks"].as_array().expect("a list").clone();
        let check = checks.into_iter().find(|check| check["id"] == "fs").expect("it is there");
        (outcome.status, check)
    };
    let (status, check) = fs_check();
    assert_eq!((status, &check["verdict"]), (3, &"block".into()), "{check}");
    assert!(check["evidence"].as_str().expect("words").contains("in use"), "{check}");
    assert!(check["remedy"].as_str().expect("words").contains("name a file"), "{check}");
    // A baseline writes: it ends there, not at its first run.
    let blocked = bench.call(&format!("baseline {} --quick --id b", device.path())).ends_with(3);
    assert!(blocked.stderr.contains("in use"), "{}", blocked.stderr);
    assert!(!bench.study("b").exists());
    drop(mounted);
    let (_, check) = fs_check();
    assert_ne!(check["verdict"], "block", "{check}");
}
