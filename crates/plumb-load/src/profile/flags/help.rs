//! The usage text and the reference, both made from the table of options.

use std::fmt::Write as _;

use super::table::{Group, OPTIONS, OptionRow};

/// Command lines worth starting from, and what they measure.
/// Each uses what those before it have made.
const EXAMPLES: [(&str, &str); 6] = [
    (
        "-c1G -b4K -r -o32 -t4 -w30 -d30 -Sh -L test.dat",
        "random 4 KiB I/O, 30 % writes, past the page cache, with latency",
    ),
    (
        "--create=1G --block-size=4K --random --outstanding=32 --unbuffered test.dat",
        "long names say the same; both may be mixed",
    ),
    ("-b1M -s -o4 -d60 -Su test.dat", "sequential reads of 1 MiB"),
    ("-b8K -r -g500i -o8 -D -L test.dat", "at most 500 I/Os per second, counted every second"),
    ("-Rpxml -b8K -r -o8 -L test.dat > profile.xml", "the line as a profile; nothing is run"),
    ("-Xprofile.xml -Rxml", "the workload of a profile, the result as XML"),
];

const HEAD: &str = "\
Measures storage the way DISKSPD does: same options, profiles and results. A target is a file, a
block device, or a template of a profile (*1, *2, ...). All targets come after all options.
";

const RULES: &str = "\
A short option is one token: -b4K, never -b 4K. A required value of a long option is joined with =
or is the next token; an optional one (shown in brackets) is joined with =. -- ends the options.
Sizes are digits and at most one of K, M, G, T (powers of 1024) or b (blocks of the size of -b).
Most shells want #1, *1 and -? in quotes: '#1', '*1', '-?'.
";

/// Columns before the text of an option.
const INDENT: usize = 42;

/// What `-?` prints; `program` is what the user called, as in `plumb run`.
#[must_use]
pub fn usage(program: &str) -> String {
    let mut text = format!("Usage: {program} [options] target...\n\n{HEAD}\nExamples:\n");
    for (line, meaning) in EXAMPLES {
        let _ = writeln!(text, "  {program} {line}\n      {meaning}");
    }
    let _ = write!(text, "\n{RULES}");
    for group in Group::ALL {
        let _ = writeln!(text, "\n{}:", group.title());
        for row in rows(group) {
            let forms = forms(row);
            if forms.chars().count() + 2 < INDENT {
                let _ = writeln!(text, "  {forms:width$}{}", row.help, width = INDENT - 2);
            } else {
                let _ = writeln!(text, "  {forms}\n{:INDENT$}{}", "", row.help);
            }
        }
    }
    text
}

fn rows(group: Group) -> impl Iterator<Item = &'static OptionRow> {
    OPTIONS.iter().filter(move |row| row.group == group)
}

/// Both forms; long names without a short one are set apart by blanks.
fn forms(row: &OptionRow) -> String {
    match row.short_form().as_str() {
        "" => row.long_form(),
        short => format!("{short}, {}", row.long_form()),
    }
}

/// `docs/reference/options.md`.
#[must_use]
pub fn reference() -> String {
    let mut text = head();
    for group in Group::ALL {
        let _ = write!(text, "\n## {}\n", group.title());
        for row in rows(group) {
            text += &entry(row);
        }
    }
    text
}

fn head() -> String {
    let mut text = String::from(
        "# Options of `plumb run`\n\n\
         <!-- Made from the table of options. To make it anew: PLUMB_BLESS=1 cargo test -p plumb-load -->\n\n\
         `plumb run [options] target...`\n\n\
         A short option is one token: `-b4K`, never `-b 4K`. A required value of a long option is joined\n\
         with `=` or is the next token; an optional one, shown in brackets, is joined with `=`. `--` ends\n\
         the options. All targets come after all options. Short and long options mix freely; order,\n\
         repeats, conflicts and values of both are the same. A value of a long option never selects another\n\
         option.\n\n\
         Sizes are digits and at most one of `K`, `M`, `G`, `T` (powers of 1024) or `b` (blocks of the size\n\
         of `-b`). Most shells want `#1`, `*1` and `-?` in quotes: `'#1'`, `'*1'`, `'-?'`.\n\n\
         Examples:\n\n",
    );
    for (line, meaning) in EXAMPLES {
        let _ = writeln!(text, "- `plumb run {line}`: {meaning}");
    }
    text
}

fn entry(row: &OptionRow) -> String {
    let (help, default) = match row.help.rsplit_once(" [") {
        Some((help, default)) => (help, default.strip_suffix(']')),
        None => (row.help, None),
    };
    let mut text = String::from("\n### ");
    match row.short_form().as_str() {
        "" => {}
        short => short.split(", ").for_each(|short| {
            let _ = write!(text, "`{short}` ");
        }),
    }
    let _ = write!(text, "`{}`\n\n{}.", row.long_form(), capitalised(&help.replace('<', "\\<")));
    if !row.details.is_empty() {
        let _ = write!(text, " {}", row.details);
    }
    let scope = row.scope;
    let _ = match default {
        Some(default) => write!(text, "\n\nScope: {scope}. Default: {default}."),
        None => write!(text, "\n\nScope: {scope}."),
    };
    if row.goes_with_profile() {
        text += " Goes with `-X`.";
    }
    text.push('\n');
    text
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}
