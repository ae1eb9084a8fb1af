//! By which name it is called decides what it is.

use std::os::unix::fs::symlink;

use crate::program::{call, path, plumb};

#[test]
fn a_link_named_diskspd_is_diskspd() {
    let folder = tempfile::tempdir().expect("a folder");
    let link = folder.path().join("diskspd");
    symlink(path(), &link).expect("a link");

    // Without arguments: usage on standard output, 3 (spec 3.1).
    let outcome = call::<&str>(&link, &[]).ends_with(3);
    assert!(outcome.stdout.starts_with("Usage:"), "{}", outcome.stdout);
    assert_eq!(outcome.stderr, "");

    // Subcommands are targets there.
    let outcome = call(&link, &["-Rp", "convert"]).succeeds_quietly();
    assert!(outcome.stdout.contains("\tpath: 'convert'\n"), "{}", outcome.stdout);
    let name = link.display();
    assert!(outcome.stdout.starts_with(&format!("\nCommand Line: {name} -Rp convert\n\n")));
}

#[test]
fn diskspd_is_a_command_too() {
    let usage = plumb("diskspd").ends_with(3).stdout;
    assert!(usage.starts_with("Usage: plumb diskspd [options] target...\n"), "{usage}");
    assert_eq!(usage.replace("plumb diskspd ", "plumb run "), plumb("run").ends_with(3).stdout);
    let outcome = plumb("diskspd -Rp -b4K f").succeeds_quietly();
    assert!(outcome.stdout.starts_with("\nCommand Line: plumb diskspd -Rp -b4K f\n"));
}

#[test]
fn plumb_alone_explains_itself_on_standard_error() {
    let outcome = plumb("").ends_with(2);
    assert_eq!(outcome.stdout, "");
    assert!(outcome.stderr.contains("Usage: plumb <COMMAND>"), "{}", outcome.stderr);
}

#[test]
fn help_and_version_go_to_standard_output() {
    for line in ["--help", "-h", "-?", "help"] {
        let outcome = plumb(line).succeeds_quietly();
        for command in ["run", "convert", "man", "completions"] {
            assert!(outcome.stdout.contains(command), "{line}: {}", outcome.stdout);
        }
    }
    let version = format!("plumb {}\n", env!("CARGO_PKG_VERSION"));
    for line in ["--version", "-V", "version", "run --version", "diskspd --version"] {
        assert_eq!(plumb(line).succeeds_quietly().stdout, version, "{line}");
    }
    let usage = plumb("help run").succeeds_quietly().stdout;
    for line in ["run -?", "run --help", "help diskspd"] {
        assert_eq!(plumb(line).succeeds_quietly().stdout, usage, "{line}");
    }
    assert!(plumb("help man").succeeds_quietly().stdout.contains("--dir"));
}

#[test]
fn an_option_before_any_command_is_shown_where_it_belongs() {
    let outcome = plumb("-b4K f").ends_with(3);
    assert_eq!(outcome.stdout, "");
    assert_eq!(
        outcome.stderr,
        "error: `-b4K` is an option, and plumb expects a command first\nhelp: plumb run -b4K f\n"
    );
}

#[test]
fn an_unknown_command_is_refused() {
    let outcome = plumb("rum -b4K f").ends_with(2);
    assert!(outcome.stderr.contains("unrecognized subcommand 'rum'"), "{}", outcome.stderr);
    plumb("help rum").ends_with(2);
    plumb("man --folder").ends_with(2);
}
