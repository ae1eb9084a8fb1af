//! Long names say what the short ones say.

use super::super::Parsed;
use super::super::table::{OPTIONS, OptionRow, Shape, Value};
use super::{Scene, error, read_in, workload};

/// A value for each long name that takes one, and what must be beside it to be accepted.
const SAMPLES: [(&str, &str, &str); 59] = [
    ("affinity", "1,4-6", ""),
    ("affinity-unordered", "", ""),
    ("base-offset", "1M:2M", ""),
    ("block-size", "3b", ""),
    ("buffer-separation", "n", ""),
    ("burst-size", "3", "-j5"),
    ("bypass-io", "full", "-Su"),
    ("completion-depth", "4", ""),
    ("cooldown", "3", ""),
    ("create", "10b", ""),
    ("distribution", "pct90/10", "-r"),
    ("duration", "60", ""),
    ("experiment-flags", "1", ""),
    ("help", "", ""),
    ("interlocked", "8K", "-t2"),
    ("io-priority", "1", ""),
    ("io-ring", "50p", ""),
    ("io-ring-unregistered", "8", ""),
    ("iops-interval", "250", ""),
    ("max-offset", "2G", ""),
    ("mmap-flush", "v", "-Sm"),
    ("open-hint", "rt", ""),
    ("outstanding", "32", ""),
    ("pool-threads", "4", ""),
    ("profile", "p.xml", ""),
    ("profile-only", "xml", ""),
    ("progress", "9", ""),
    ("random", "8K", ""),
    ("random-percent", "40", ""),
    ("result-format", "xml", ""),
    ("seed", "42", ""),
    ("sequential", "8K", ""),
    ("signal-event", "go", ""),
    ("signal-finish", "b", ""),
    ("signal-start", "a", ""),
    ("stop-event", "d", ""),
    ("system-info", "xml", ""),
    ("think-time", "3", "-i5"),
    ("thread-outstanding", "16", "-F2"),
    ("thread-stride", "1M", "-t2"),
    ("threads", "4", ""),
    ("throughput", "100i", ""),
    ("trace", "DISK_IO", ""),
    ("wait-start", "c", ""),
    ("warmup", "0", ""),
    ("write-percent", "30", ""),
    ("write-source", "2M,a=b,c", ""),
    // Without a value: these need company, or are asked for alone.
    ("affinity-default", "", ""),
    ("cached", "", ""),
    ("completion-routines", "", ""),
    ("disable-all-cache", "", ""),
    ("large-pages", "", ""),
    ("latency", "", ""),
    ("mmap", "", ""),
    ("no-affinity", "", ""),
    ("no-cache", "", ""),
    ("parallel-async", "", ""),
    ("random-write-data", "", ""),
    ("zero-buffers", "", ""),
];

/// What the line asks for, whatever its tokens are.
fn meaning(line: &str) -> Parsed {
    let profile = "<Profile><TimeSpans><TimeSpan><Targets><Target><Path>x</Path></Target></Targets>\
                   </TimeSpan></TimeSpans></Profile>";
    let mut scene = Scene { profile: Some(profile), ..Scene::default() };
    match read_in(&mut scene, line) {
        Ok(Parsed::Run(mut invocation)) => {
            invocation.tokens.clear();
            Parsed::Run(invocation)
        }
        Ok(other) => other,
        Err(error) => panic!("{line}: {error}"),
    }
}

fn check(row: &OptionRow, value: &str, beside: &str) {
    let target = match row.long {
        "system-info" | "profile" | "help" | "signal-event" => "",
        _ => "f",
    };
    let long = if value.is_empty() { String::new() } else { format!("={value}") };
    let spelled = meaning(&format!("{beside} --{}{long} {target}", row.long));
    let mut short: Vec<_> = row.short.split(", ").map(|short| format!("{short}{value}")).collect();
    if let Shape::Words(_) = row.shape {
        short = vec![if value == "full" { "-SY" } else { "-Sy" }.to_owned()];
    }
    for short in short {
        assert_eq!(spelled, meaning(&format!("{beside} {short} {target}")), "{short}");
    }
    if let Value::Required(_) = row.value {
        let apart = meaning(&format!("{beside} --{} {value} {target}", row.long));
        assert_eq!(spelled, apart, "--{}", row.long);
    }
    // `--sequential` and the like only state the default.
    let states_a_default = ["affinity-default", "cached"].contains(&row.long)
        || (value.is_empty() && row.value != Value::None);
    // -i and -j are only accepted together.
    let needs_company = ["burst-size", "think-time"].contains(&row.long);
    if !states_a_default && !needs_company && !target.is_empty() {
        assert_ne!(spelled, meaning(&format!("{beside} f")), "--{} does nothing", row.long);
    }
}

#[test]
fn every_long_option_equals_its_short_one() {
    for (name, ..) in SAMPLES {
        assert!(OptionRow::by_long_name(name).is_some(), "{name} is no option");
    }
    for row in OPTIONS.iter().filter(|row| !row.short.is_empty()) {
        let sample = SAMPLES.iter().find(|(name, ..)| *name == row.long);
        let (_, value, beside) = sample.copied().unwrap_or((row.long, "", ""));
        assert!(value.is_empty() == (row.value == Value::None), "--{} lacks a sample", row.long);
        check(row, value, beside);
        if let Value::Optional(_) = row.value {
            check(row, "", beside);
        }
    }
}

#[test]
fn long_names_are_one_each() {
    for (index, row) in OPTIONS.iter().enumerate() {
        assert!(OPTIONS[..index].iter().all(|other| other.long != row.long), "{}", row.long);
        let plain = row.long.bytes().all(|byte| byte == b'-' || byte.is_ascii_lowercase());
        assert!(plain && !row.long.is_empty(), "{}", row.long);
    }
}

#[test]
fn values_are_there_when_needed_and_only_then() {
    for (line, class) in [
        ("--threads", "long-option"),
        ("--threads= f", "long-option"),
        ("--random= f", "long-option"),
        ("--profile-only= f", "long-option"),
        ("--json= f", "long-option"),
        ("--latency=1 f", "long-option"),
        ("--latency= f", "long-option"),
        ("--help=1", "long-option"),
        ("--zero-buffers=1M f", "long-option"),
        ("--verbose=s f", "long-option"),
    ] {
        assert_eq!(error(line).class.keyword(), class, "{line}");
    }
    let empty = ["--threads".into(), String::new().into(), "f".into()];
    let error = super::parse(&empty, &mut Scene::default()).expect_err("no value");
    assert_eq!(error.class.keyword(), "long-option");
    // A required value is the next token whatever it looks like, and no dash in it is touched.
    let events = workload("--signal-start --latency --stop-event –x f");
    let events = &events.profile.synchronization;
    assert_eq!(events.started_event.as_deref(), Some("--latency"));
    assert_eq!(events.stop_event.as_deref(), Some("–x"));
}

#[test]
fn a_value_never_selects_another_option() {
    for (line, class) in [
        ("--block-size=sp f", "block-size"),
        ("--block-size sn f", "block-size"),
        ("--outstanding=c4 f", "bad-number"),
        ("--random=d f", "alignment"),
        ("--sequential=i4K f", "stride"),
        ("--max-offset=s f", "max-offset"),
        ("--open-hint=5M f", "hint"),
        ("--io-ring=n f", "io-ring"),
        ("--io-ring-unregistered=n8 f", "io-ring"),
        ("--result-format=p f", "result-format"),
        ("--result-format=sxml f", "result-format"),
        ("--profile-only=s", "result-format"),
        ("--affinity=g f", "affinity"),
        ("--affinity=up f", "affinity"),
        ("--affinity=,1 f", "affinity"),
        ("--write-source=r f", "write-buffer"),
        ("--bypass-io=Y f", "bypass-io"),
        ("--interlocked=i f", "stride"),
    ] {
        assert_eq!(error(line).class.keyword(), class, "{line}");
    }
}
