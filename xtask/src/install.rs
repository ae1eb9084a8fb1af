//! What the gate needs beside cargo: parts of Rust, and system packages on Debian and its kin.

use std::process::{Command, Stdio};

use crate::command;

/// (what must be on the machine, the package that brings it).
const NEEDS: &[(Need, &str)] = &[
    (Need::Program("cc"), "gcc"),
    (Need::File("/usr/include/stdio.h"), "libc6-dev"),
    (Need::Program("losetup"), "mount"),
    (Need::Program("mkfs.ext4"), "e2fsprogs"),
    (Need::Program("mkfs.xfs"), "xfsprogs"),
    (Need::Program("mkfs.btrfs"), "btrfs-progs"),
    (Need::Program("valgrind"), "valgrind"),
    (Need::Program("chromium"), "chromium"),
];

/// (what cargo must be able to do, the part of Rust that brings it).
const COMPONENTS: &[(&str, &str)] = &[("fmt", "rustfmt"), ("clippy", "clippy")];

#[derive(Clone, Copy)]
enum Need {
    Program(&'static str),
    File(&'static str),
}

impl Need {
    fn is_met(self) -> bool {
        match self {
            Self::Program(name) => command::find(name).is_some(),
            Self::File(path) => std::path::Path::new(path).exists(),
        }
    }
}

/// Installs what is missing. What cannot be installed is named and is no error: the tests that need it
/// say so, and the gate compares them with the list for such a machine.
pub(crate) fn run() {
    components();
    let missing = missing();
    if missing.is_empty() {
        println!("install: nothing is missing");
        return;
    }
    println!("install: {}", missing.join(" "));
    if command::find("apt-get").is_none() {
        println!("install: no apt-get here: install them by hand; going on without");
        return;
    }
    // An old list can be good enough: only the installation itself decides.
    if !apt_get(&["update", "-q"]) {
        println!("install: the package lists could not be refreshed; trying with those there are");
    }
    let mut words = vec!["install", "-q", "-y", "--no-install-recommends"];
    words.extend(&missing);
    if !apt_get(&words) {
        // One package that does not exist must not keep the others away.
        for package in &missing {
            apt_get(&["install", "-q", "-y", "--no-install-recommends", package]);
        }
    }
    let still = self::missing();
    if !still.is_empty() {
        println!("install: still missing: {}; going on without", still.join(" "));
    }
}

/// A small installation of Rust has neither formatter nor lints.
fn components() {
    for (word, component) in COMPONENTS {
        let mut probe = Command::new("cargo");
        probe.args([word, "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
        if !probe.status().is_ok_and(|status| status.success()) {
            let mut rustup = Command::new("rustup");
            if let Err(error) = command::run(rustup.args(["component", "add", component])) {
                println!("install: no {component}, and rustup could not be run: {error}");
            }
        }
    }
}

fn missing() -> Vec<&'static str> {
    NEEDS.iter().filter(|(need, _)| !need.is_met()).map(|(_, package)| *package).collect()
}

fn apt_get(words: &[&str]) -> bool {
    let mut command = if crate::machine::is_root() {
        Command::new("apt-get")
    } else {
        let mut command = Command::new("sudo");
        command.args(["-n", "--preserve-env=DEBIAN_FRONTEND", "apt-get"]);
        command
    };
    command.env("DEBIAN_FRONTEND", "noninteractive").args(words);
    match command::run(&mut command) {
        Ok(outcome) => outcome.ok,
        Err(error) => {
            println!("install: apt-get could not be run: {error}");
            false
        }
    }
}
