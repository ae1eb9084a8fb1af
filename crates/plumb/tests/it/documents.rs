//! Command lines in the documents: each is one that the program takes.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::place::Place;
use crate::program::{outcome, path, repository};
use crate::sweeps::Bench;

/// Documents below a folder, with the folder's own.
fn documents(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            documents(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// The arguments of a line that calls `plumb`, without comments, redirections and cargo.
fn arguments(line: &str) -> Option<Vec<String>> {
    let code = line.strip_prefix("    ")?.trim_start();
    let words =
        code.strip_prefix("plumb ").or(code.strip_prefix("cargo run --release -p plumb -- "))?;
    // A table of commands has the program's name in its first column.
    // The reference has what must be filled in.
    if words.trim_start().starts_with("plumb") || words.contains(['<', '[']) {
        return None;
    }
    let words = words.split(['>', '|']).next().unwrap_or_default();
    let words = words.split(" #").next().unwrap_or_default();
    Some(words.split_whitespace().map(|word| word.trim_matches('\'').to_owned()).collect())
}

#[test]
fn every_command_line_in_the_documents_is_taken() {
    let folder = tempfile::tempdir().expect("a folder");
    let examples = repository().join("examples").canonicalize().expect("examples are there");
    symlink(&examples, folder.path().join("examples")).expect("a link");
    for name in ["profile.xml", "oltp.xml", "p.xml"] {
        symlink(examples.join("profiles/oltp.xml"), folder.path().join(name)).expect("a link");
    }

    let mut files: Vec<PathBuf> =
        ["README.md", "CONTRIBUTING.md"].map(|name| repository().join(name)).into();
    documents(&repository().join("docs"), &mut files);
    let mut seen = 0;
    for file in files {
        let text = fs::read_to_string(&file).expect("a document");
        for mut words in text.lines().filter_map(arguments) {
            let shown = format!("{}: plumb {}", file.display(), words.join(" "));
            // Read and checked, not run. `-Rs` and `--help` run nothing anyway and stand alone.
            let is_run = words.first().is_some_and(|word| word == "run");
            if !words.iter().any(|word| word.starts_with("-R") || word == "--help") {
                match is_run {
                    true => words.insert(1, "-Rp".to_owned()),
                    // What stands before it is read first, and refused where it is wrong.
                    false => words.push("--help".to_owned()),
                }
            }
            let mut command = Command::new(path());
            command.args(&words).current_dir(folder.path());
            let outcome = outcome(&mut command);
            assert_eq!(outcome.status, 0, "{shown}\n{}", outcome.stderr);
            seen += 1;
        }
    }
    assert!(seen >= 40, "{seen} command lines");
}

/// The block of the README that promises to work line after line, in a folder that has nothing but the examples.
#[test]
fn the_readmes_lines_work_one_after_the_other() {
    let text = fs::read_to_string(repository().join("README.md")).expect("the README");
    let block = text.split("work one after the other").nth(1).expect("the block's promise");
    let lines: Vec<&str> = block
        .lines()
        .skip_while(|line| !line.starts_with("    "))
        .take_while(|line| line.starts_with("    "))
        .collect();
    assert!(lines.len() >= 15, "{lines:?}");
    let place = Place::new();
    let release = place.path("target/release");
    fs::create_dir_all(&release).expect("a folder");
    symlink(path(), release.join("plumb")).expect("a link");
    // Whether the machine is fit now depends on the tests beside this one: it is asked until it is. That it has a task at a
    // time of its own soon is no test's fault.
    let patiently = |line: &&str| match line.trim_start().starts_with("plumb check ") {
        true => format!(
            "for _ in $(seq 60); do status=0; said=$({}) || status=$?; [ $status = 3 ] || break; \
             others=$(grep ^block <<< \"$said\" | grep -cv tasks-timers) || {{ status=0; break; }}; \
             echo $others blocks; sleep 2; done; [ $status = 0 ]",
            line.split('#').next().unwrap_or(line).trim(),
        ),
        false => (*line).to_owned(),
    };
    let script: Vec<String> = lines.iter().map(patiently).collect();
    assert!(script.iter().any(|line| line.starts_with("for ")), "{script:?}");
    // What each says is read where it is tested; here each has to end well.
    let script = format!("set -e\n{}\n", script.join("\n"));
    let mut shell = Command::new("bash");
    shell.args(["-x", "-o", "pipefail", "-c", &script]).current_dir(place.folder());
    shell.env("HOME", place.folder()).env("XDG_STATE_HOME", place.path("state"));
    shell.env("PLUMB_POOLS", place.path("pools"));
    let told = outcome(&mut shell);
    assert_eq!(told.status, 0, "{}", told.stderr);
    for file in ["f.dat", "p.xml", "r.xml", "before.json", "man/plumb.1"] {
        assert!(place.path(file).exists(), "{file}: {}", told.stderr);
    }
}

/// A line that makes a load, repeated while other tests keep the processors from emulated disks that are as fast as SSDs.
fn patiently(line: &str) -> String {
    format!(
        "for _ in $(seq 20); do said=$({}); rate=$(awk -F'|' '/^total:/ {{ print int($4); exit }}' <<< \"$said\"); \
         [ $rate -lt 3000 ] || break; sleep 1; done; echo \"$said\"",
        line.trim()
    )
}

/// The walk-through of a space with two tiers: each line works where it stands.
#[test]
fn the_walk_through_of_two_tiers_works_line_after_line() {
    let text = fs::read_to_string(repository().join("docs/guide/tiers.md")).expect("the guide");
    let lines: Vec<&str> = text.lines().filter(|line| line.starts_with("    plumb ")).collect();
    assert!(lines.len() >= 16, "{lines:?}");
    let mut loads = 0;
    let lines = lines.into_iter().map(|line| {
        let is_load = line.contains(" -b4K -r ");
        loads += u32::from(is_load);
        // Before the tier is full, and when it is optimized. The one between them is as slow as rotating disks, whatever else is done.
        if is_load && loads != 2 { patiently(line) } else { line.to_owned() }
    });
    let lines: Vec<String> = lines.collect();
    let place = Place::new();
    let programs = place.path("programs");
    fs::create_dir_all(&programs).expect("a folder");
    symlink(path(), programs.join("plumb")).expect("a link");
    let script = format!("set -e\nPATH={}:$PATH\n{}\n", programs.display(), lines.join("\n"));
    let mut shell = Command::new("bash");
    shell.args(["-x", "-c", &script]).current_dir(place.folder());
    shell.env("HOME", place.folder()).env("XDG_STATE_HOME", place.path("state"));
    shell.env("PLUMB_POOLS", place.path("pools"));
    let told = outcome(&mut shell);
    assert_eq!(told.status, 0, "{}", told.stderr);
    for words in ["Perf Tier Size Required", "Size of a Cache", "extents moved up", "ExecStart="] {
        assert!(told.stdout.contains(words), "{words}: {}", told.stdout);
    }
    // The drop and its end, in I/Os per second: of two loads that fill and three that read.
    let totals = told.stdout.split("\nTotal IO\n").skip(1);
    let rate = |total: &str| -> Option<f64> {
        let line = total.lines().find(|line| line.starts_with("total:"))?;
        line.split('|').nth(3)?.trim().parse().ok()
    };
    let rates: Vec<f64> = totals.filter_map(rate).collect();
    let [_, before, _, dropped, back] = rates[..] else { panic!("{rates:?}: {}", told.stdout) };
    assert!(dropped <= 1500.0, "rotating disks: {rates:?}");
    assert!(before >= 3.0 * dropped && back >= 3.0 * dropped, "{rates:?}");
    // And of the same load the Performance tier serves little before and nearly all after.
    let serviced: Vec<f64> = told
        .stdout
        .lines()
        .filter_map(|line| {
            line.strip_prefix("Percent of Total I/Os Serviced from the Performance Tier:")
        })
        .filter_map(|share| share.trim().strip_suffix(" %")?.parse().ok())
        .collect();
    // The optimization that ends the first window; then each window's report, and that of the optimization which ends it.
    let shares: Vec<f64> = match serviced[..] {
        [_, dropped, first, back, ..] if dropped == first => vec![dropped, back],
        _ => panic!("{serviced:?}: {}", told.stdout),
    };
    assert!(shares[0] <= 50.0 && shares[1] >= 90.0, "{shares:?}: {}", told.stdout);
}

#[test]
fn a_wrong_command_line_would_be_noticed() {
    for line in [
        "    plumb baseline f.dat --slow",
        "    plumb runs liszt",
        "    plumb compare a b --allow anything",
    ] {
        let mut words = arguments(line).expect("a command line");
        words.push("--help".to_owned());
        let outcome = outcome(Command::new(path()).args(&words));
        assert_eq!(outcome.status, 2, "{line}");
    }
    assert_eq!(arguments("plumb baseline: prose"), None);
}

/// The guide from a baseline to its comparison, followed line by line on a simulated device.
#[test]
fn the_guide_to_baselines_can_be_followed() {
    let bench = Bench::with("seed = 3\nmax-iops = 50000\nlatency-us = 500\nmax-mib-per-s = 1500\n");
    let guide = repository().join("docs/guide/before-and-after.md");
    let guide = fs::read_to_string(guide).expect("the guide is there");
    let mut followed = Vec::new();
    for words in guide.lines().filter_map(arguments) {
        let mut line = words.join(" ");
        if words[0] == "baseline" {
            line.push_str(" --simulate DEVICE --warmup 1 --duration 10");
        }
        let told = bench.call(&line);
        assert_eq!(told.status, 0, "{line}\n{}", told.stderr);
        assert!(!told.stdout.is_empty() || words[1] == "rm", "{line} says nothing");
        followed.push(words[0].clone());
    }
    for step in ["baseline", "report", "compare", "runs"] {
        assert!(followed.iter().any(|word| word == step), "the guide has no `plumb {step}`");
    }
}
