//! `docs/reference/commands.md`: every command but `run` with its options, made from what clap is told.

use std::path::Path;

use clap::{Arg, Command};

/// Commands whose options are a reference of their own.
const ELSEWHERE: [&str; 2] = ["run", "diskspd"];

fn reference() -> String {
    let mut text = "# Commands\n\nEvery command beside `plumb run` ([options.md](options.md)), with its options. \
                    Made from the program's own tables by a test.\n"
        .to_owned();
    let mut plumb = super::command();
    plumb.build();
    for command in plumb.get_subcommands().filter(|c| !ELSEWHERE.contains(&c.get_name())) {
        section(&mut text, command);
        for inner in command.get_subcommands() {
            section(&mut text, inner);
        }
    }
    text
}

fn section(text: &mut String, command: &Command) {
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage: ");
    let about = command.get_about().map(ToString::to_string).unwrap_or_default();
    let name = command.get_bin_name().unwrap_or(command.get_name());
    text.push_str(&format!("\n## {name}\n\n{about}.\n\n    {usage}\n"));
    let shown: Vec<&Arg> = command
        .get_arguments()
        .filter(|arg| !arg.is_hide_set() && arg.get_id() != "help")
        .collect();
    if shown.is_empty() {
        return;
    }
    text.push_str("\n| argument | meaning |\n|---|---|\n");
    for arg in shown {
        let help = arg.get_help().map(ToString::to_string).unwrap_or_default();
        text.push_str(&format!("| `{}` | {} |\n", cell(&written(arg)), cell(&help)));
    }
}

/// `--size SIZE`, `TARGET`, `--quick`.
fn written(arg: &Arg) -> String {
    let values: Vec<String> =
        arg.get_value_names().unwrap_or_default().iter().map(ToString::to_string).collect();
    let takes = arg.get_action().takes_values();
    let values = if takes { values.join(" ") } else { String::new() };
    match arg.get_long() {
        Some(long) => format!("--{long} {values}").trim().to_owned(),
        None => values,
    }
}

/// A bar would end the cell.
fn cell(text: &str) -> String {
    text.replace('|', "\\|")
}

/// With `PLUMB_BLESS=1` the file is made anew.
#[test]
fn the_reference_of_commands_is_fresh() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/commands.md");
    let fresh = reference();
    for option in ["--simulate FILE", "--conditioning LEVEL", "--quick", "--csv FILE"] {
        assert!(fresh.contains(option), "{option}");
    }
    if std::env::var_os("PLUMB_BLESS").is_some() {
        std::fs::write(&path, &fresh).expect("the reference can be written");
    }
    let kept = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        kept == fresh,
        "docs/reference/commands.md is stale: run PLUMB_BLESS=1 cargo test -p plumb reference"
    );
}
