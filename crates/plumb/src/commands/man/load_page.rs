//! The page of `plumb run`, from the table of its options.

use std::fmt::Write as _;

use plumb_load::profile::flags::table::{Group, OPTIONS, OptionRow};

/// The page as roff.
pub(super) fn roff() -> String {
    let mut page = String::new();
    let mut add = |text: &str| {
        page.push_str(text);
        page.push('\n');
    };
    let version = crate::commands::version::VERSION;
    add(&format!(".TH PLUMB-RUN 1 \"\" \"plumb {version}\" \"Plumb\""));
    add(".SH NAME\nplumb\\-run, diskspd \\- put load on files and devices");
    add(".SH SYNOPSIS\n.B plumb run\n[\\fIoptions\\fR] \\fItarget\\fR ...");
    add(".br\n.B diskspd\n[\\fIoptions\\fR] \\fItarget\\fR ...");
    add(".SH DESCRIPTION");
    for paragraph in DESCRIPTION {
        add(&format!(".PP\n{}", text(paragraph)));
    }
    add(".SH OPTIONS");
    for group in Group::ALL {
        add(&format!(".SS {}", text(group.title())));
        for row in OPTIONS.iter().filter(|row| row.group == group) {
            add(&option(row));
        }
    }
    add(".SH EXIT STATUS");
    for (status, when) in EXIT_STATUS {
        add(&format!(".TP\n.B {status}\n{}", text(when)));
    }
    add(".SH SEE ALSO\n.BR plumb (1),\n.BR plumb\\-convert (1)");
    page
}

const DESCRIPTION: &[&str] = &[
    "Runs the workload that the options describe on every target, a file or a block device, and reports \
     throughput, IOPS, latencies and CPU. Command lines, XML profiles and results are those of DISKSPD \
     2.3.",
    "A short option is one token: -b4K, never -b 4K; its letter's case matters. A long option takes \
     --name=value, or --name value where the value is required. Sizes are digits and at most one of \
     K, M, G, T (powers of 1024) or b (blocks). All targets come after all options; -- ends the options. \
     Targets such as *1 and #1, and the option -?, need quotes in most shells.",
];

const EXIT_STATUS: &[(u8, &str)] = &[
    (0, "The run completed, after Ctrl-C too; or -?, -Rp, -Rs or --version was given."),
    (1, "The run failed; or -ye was given."),
    (3, "The command line or the profile is wrong, or there were no arguments."),
];

/// The forms, then what it does.
fn option(row: &OptionRow) -> String {
    let mut entry = String::from(".TP\n");
    let forms = [row.short_form(), row.long_form()];
    let forms: Vec<String> =
        forms.iter().filter(|form| !form.is_empty()).map(|form| bold(form)).collect();
    writeln!(entry, "{}", forms.join(", ")).expect("a string takes it");
    let (help, default) = match row.help.rsplit_once(" [") {
        Some((help, default)) => (help, default.strip_suffix(']')),
        None => (row.help, None),
    };
    let mut sentence = format!("{}. ", capitalised(help));
    if let Some(default) = default {
        write!(sentence, "Default: {default}. ").expect("a string takes it");
    }
    sentence.push_str(row.details);
    write!(entry, "{}", text(sentence.trim_end())).expect("a string takes it");
    entry
}

fn capitalised(help: &str) -> String {
    let mut chars = help.chars();
    chars.next().map(|first| first.to_uppercase().chain(chars).collect()).unwrap_or_default()
}

/// Bold up to the value: `\fB\-b\fR<size>`.
fn bold(form: &str) -> String {
    let end = form.find(['<', '[', '=']).unwrap_or(form.len());
    format!("\\fB{}\\fR{}", escape(&form[..end]), escape(&form[end..]))
}

/// Text that roff takes as text, on lines of one sentence each.
fn text(prose: &str) -> String {
    escape(prose).split_inclusive(". ").map(str::trim_end).map(guard).collect::<Vec<_>>().join("\n")
}

fn escape(text: &str) -> String {
    text.replace('\\', "\\e").replace('-', "\\-").replace('`', "")
}

/// A line that begins with a control character is a command to roff.
fn guard(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_in_the_text_is_a_command() {
        assert_eq!(text(".x -b. 'y"), "\\&.x \\-b.\n\\&'y");
        assert_eq!(bold("--seed[=<n>]"), "\\fB\\-\\-seed\\fR[=<n>]");
        assert_eq!(bold("-b<size>"), "\\fB\\-b\\fR<size>");
        assert_eq!(text("a\\b"), "a\\eb");
    }

    #[test]
    fn every_option_is_on_the_page() {
        let page = roff();
        for row in OPTIONS {
            assert!(page.contains(&escape(&format!("--{}", row.long))), "--{}", row.long);
        }
        let commands = ["TH", "SH", "SS", "TP", "PP", "B", "BR", "br"];
        for line in page.lines().filter_map(|line| line.strip_prefix('.')) {
            let word = line.split_whitespace().next().unwrap_or_default();
            assert!(commands.contains(&word), ".{line}");
        }
    }
}
