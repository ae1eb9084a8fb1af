//! `plumb space report`: reports on a virtual disk, of the present window and those that are kept.

use clap::{Arg, ArgAction, ArgMatches, Command};
use plumb_tier::pool::{self, REPORT_TEXT, TieringStore, unix_seconds};
use plumb_tier::tier_report::{csv_of, diff, figures_csv};
use serde_json::{Value, json};

use super::super::report::{self, Reply};
use super::super::told;
use super::{Seen, look};

/// For clap.
pub(super) fn command() -> Command {
    Command::new("report")
        .about("Which share of I/O the Performance tier serves, and how large it would have to be for more")
        .args([
            report::vdisk_argument(),
            Arg::new("last")
                .long("last")
                .action(ArgAction::SetTrue)
                .help("The report of the last optimization, instead of what was counted since"),
            Arg::new("list")
                .long("list")
                .action(ArgAction::SetTrue)
                .conflicts_with("last")
                .help("Name the reports that are kept: the last 90"),
            Arg::new("diff")
                .long("diff")
                .value_names(["OLD", "NEW"])
                .num_args(0..=2)
                .conflicts_with_all(["last", "list"])
                .help("Compare two kept reports [default: the last two; with one name: that and the last]"),
            Arg::new("csv")
                .long("csv")
                .value_name("WHAT")
                .num_args(0..=1)
                .require_equals(true)
                .default_missing_value("table")
                .value_parser(["table", "figures"])
                .conflicts_with("json")
                .help("Print CSV: the table, with --diff or --list theirs; or =figures, all the others, a line for each"),
            report::json_option(),
        ])
        .after_help(format!(
            "{} --last, --list and --diff read what is kept, and start nothing.\n\nWhile another program has the pool, that \
             program is asked for what it has counted; the report says how many seconds ago it told it.",
            report::STARTS
        ))
}

/// `report`.
pub(crate) fn report(matches: &ArgMatches) -> report::Outcome {
    if matches.get_flag("list") || matches.get_flag("last") || matches.contains_id("diff") {
        return kept(matches);
    }
    let mut own = Seen::open(matches)?;
    let found = own.report(unix_seconds() as f64);
    let filling = own.filling();
    let mut json = found.to_json();
    let mut text = found.to_text();
    if let Some(filling) = filling {
        text.push_str(&format!("\n{}", filling.text.trim_start()));
        json["filling"] = filling.json;
    }
    let reply = match csv(matches) {
        None => own.dated(Reply { json, text, status: 0 }),
        Some(csv) => Reply { text: csv.of(&json), json, status: 0 },
    };
    own.end()?;
    Ok(reply)
}

/// What is asked for as CSV.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Csv {
    /// The table alone: a spreadsheet's rows are alike.
    Table,
    /// What else a report has: names and values.
    Figures,
}

impl Csv {
    fn of(self, report: &Value) -> String {
        match self {
            Self::Table => csv_of(report),
            Self::Figures => figures_csv(report),
        }
    }
}

fn csv(matches: &ArgMatches) -> Option<Csv> {
    let what = matches.get_one::<String>("csv")?;
    Some(if what == "figures" { Csv::Figures } else { Csv::Table })
}

/// The figures of two reports beside each other.
fn csv_of_changes(rows: &[Value]) -> String {
    let mut out = String::from("figure,before,after,difference\n");
    for row in rows {
        let name = row["figure"].as_str().unwrap_or_default();
        let figure = |name: &str| row[name].as_f64().map_or_else(String::new, |v| v.to_string());
        let [before, after, by] = ["before", "after", "difference"].map(figure);
        // Names have commas.
        out.push_str(&format!("\"{name}\",{before},{after},{by}\n"));
    }
    out
}

/// What a kept report is called: when it was made, in seconds since 1970.
fn called(path: &std::path::Path) -> String {
    let stem = path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default();
    stem.trim_start_matches('0').to_owned()
}

/// When a kept report of that name was made.
fn made(name: &str) -> String {
    name.parse::<u64>().map_or_else(|_| String::new(), |second| told::when(second * 1000))
}

/// Kept reports: the last one, their names, or two of them beside each other. Whoever has the pool is not disturbed.
fn kept(matches: &ArgMatches) -> report::Outcome {
    let name = report::text(matches, "vdisk");
    let (found, nth) = look(&name)?;
    let store = TieringStore::of(&report::registry(), &found);
    let id = pool::look(Some(found.id), &found.disks)?.config.vdisks[usize::from(nth)].id;
    let paths = store.reports(id)?;
    if matches.get_flag("list") {
        let names: Vec<String> = paths.iter().map(|path| called(path)).collect();
        let text = match names.is_empty() {
            _ if csv(matches).is_some() => {
                let row = |name: &String| format!("{name},{}\n", made(name));
                format!("report,made\n{}", names.iter().map(row).collect::<String>())
            }
            true => format!("virtual disk {name} has no kept reports yet\n"),
            false => names.iter().map(|name| format!("{name}  {}\n", made(name))).collect(),
        };
        return Ok(Reply { json: json!({ "vdisk": name, "reports": names }), text, status: 0 });
    }
    if matches.get_flag("last") {
        let kept = store.last_report(id)?;
        let mut json = kept.ok_or(report::VdiskError::NoReport { name })?;
        let text = json.as_object_mut().and_then(|json| json.remove(REPORT_TEXT));
        let text = text.as_ref().and_then(Value::as_str).map(str::to_owned);
        // Reports of versions before have no text.
        let text = text.unwrap_or_else(|| format!("{json:#}\n"));
        let text = csv(matches).map_or(text, |csv| csv.of(&json));
        return Ok(Reply { text, json, status: 0 });
    }
    if paths.len() < 2 {
        return Err(report::VdiskError::FewReports { name, found: paths.len() }.into());
    }
    let mut wanted: Vec<String> =
        matches.get_many::<String>("diff").into_iter().flatten().cloned().collect();
    if wanted.is_empty() {
        wanted.push(called(&paths[paths.len() - 2]));
    }
    if wanted.len() == 1 {
        wanted.push(called(&paths[paths.len() - 1]));
    }
    let mut reports = Vec::new();
    for report in &wanted {
        let path = paths.iter().find(|path| called(path) == *report);
        let path = path.ok_or_else(|| report::VdiskError::UnknownReport {
            name: name.clone(),
            report: report.clone(),
        })?;
        reports.push(store.report(path)?);
    }
    let changes = diff(&reports[0], &reports[1]);
    let number = |value: Option<f64>| match value {
        None => "-".to_owned(),
        Some(value) if value.fract() == 0.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.2}"),
    };
    let mut text = format!(
        "virtual disk {name}\n{:<44} {:>16} {:>16} {:>16}\n",
        "report", wanted[0], wanted[1], "difference"
    );
    let mut rows = Vec::new();
    for change in &changes {
        let by = change.before.zip(change.after).map(|(before, after)| after - before);
        text.push_str(&format!(
            "{:<44} {:>16} {:>16} {:>16}\n",
            change.name,
            number(change.before),
            number(change.after),
            number(by)
        ));
        rows.push(json!({
            "figure": change.name.trim_start(),
            "before": change.before,
            "after": change.after,
            "difference": by,
        }));
    }
    if csv(matches).is_some() {
        text = csv_of_changes(&rows);
    }
    let json = json!({ "vdisk": name, "before": wanted[0], "after": wanted[1], "figures": rows });
    Ok(Reply { json, text, status: 0 })
}
