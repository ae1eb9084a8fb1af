//! `plumb pool set`: what is settled about a pool, changed.

use clap::{Arg, ArgGroup, ArgMatches, Command, value_parser};
use plumb_tier::pool::{PoolSettings, RETIRE_AFTER_MAX, TIME_OUT_RANGE};

use super::super::space::report;

/// For clap.
pub(super) fn command() -> Command {
    Command::new("set")
        .about("Change what is settled about a pool")
        .args([
            report::pool_argument(),
            Arg::new("time-out")
                .long("time-out")
                .value_name("SECONDS")
                .value_parser(value_parser!(u64).range(TIME_OUT_RANGE))
                .help("How long a disk may take for one I/O before it counts as missing [default: 30]"),
            Arg::new("retire-after")
                .long("retire-after")
                .value_name("SECONDS")
                .value_parser(retirement)
                .help("When a missing disk is given up, and rebuilt on others: always (at once), never, or after so long [default: 300]"),
            report::json_option(),
        ])
        .group(ArgGroup::new("settings").args(["time-out", "retire-after"]).required(true).multiple(true))
        .after_help(
            "This machine keeps it, beside where the disks are; whoever has the pool goes by it from the next start on.\n\n\
             For example:\n  plumb pool set tank --retire-after never\n  plumb pool set tank --time-out 5 --retire-after 60",
        )
}

/// `always`, `never`, or seconds.
fn retirement(text: &str) -> Result<Option<u64>, String> {
    match text {
        "always" => Ok(Some(0)),
        "never" => Ok(None),
        _ => match text.parse() {
            Ok(after) if after <= RETIRE_AFTER_MAX => Ok(Some(after)),
            _ => Err(format!("name seconds up to {RETIRE_AFTER_MAX}, 'always' or 'never'")),
        },
    }
}

/// `set`.
pub(super) fn run(matches: &ArgMatches) -> report::Outcome {
    let registry = report::registry();
    let name = registry.find(&report::text(matches, "pool"))?.name;
    let _claim = registry.claim(&name)?;
    let mut found = registry.find(&name)?;
    let settings = &mut found.settings;
    if let Some(seconds) = matches.get_one("time-out") {
        settings.time_out_s = *seconds;
    }
    if let Some(after) = matches.get_one::<Option<u64>>("retire-after") {
        settings.retire_after_s = *after;
    }
    registry.put(&found)?;
    report::pool(&registry, &found)
}

/// The settings in words; nothing of what is as ever.
pub(crate) fn in_words(settings: &PoolSettings) -> String {
    let usual = PoolSettings::default();
    let mut text = String::new();
    if settings.time_out_s != usual.time_out_s {
        text.push_str(&format!("  time-out: {} s\n", settings.time_out_s));
    }
    if settings.retire_after_s != usual.retire_after_s {
        let when = match settings.retire_after_s {
            None => "never".to_owned(),
            Some(0) => "at once".to_owned(),
            Some(after) => format!("after {after} s"),
        };
        text.push_str(&format!("  missing disks are given up: {when}\n"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_disks_are_given_up_at_once_never_or_after_seconds() {
        assert_eq!(retirement("always"), Ok(Some(0)));
        assert_eq!(retirement("never"), Ok(None));
        assert_eq!(retirement("60"), Ok(Some(60)));
        for bad in ["", "-1", "5m", "2592001", "Never"] {
            assert!(retirement(bad).is_err(), "{bad}");
        }
        let settings = PoolSettings { time_out_s: 30, retire_after_s: Some(0) };
        assert_eq!(in_words(&settings), "  missing disks are given up: at once\n");
        assert_eq!(in_words(&PoolSettings::default()), "");
    }
}
