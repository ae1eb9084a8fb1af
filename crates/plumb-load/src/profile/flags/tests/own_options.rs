//! Plumb's own options.

use super::super::options::{
    EngineChoice, OnError, Output, OutputFormat, ProgressStyle, RunOptions,
};
use super::super::{ErrorFormat, Parsed};
use super::{error, read, workload};
use crate::profile::model::ResultFormat;

#[test]
fn they_say_how_a_run_is_made_and_reported() {
    let options = workload(
        "--json --output text=b.txt --output=xml=c=d.xml --profile-json --error-format json \
         --progress-style=none --engine uring --destroy=/dev/x --destroy y --batch=4096 \
         --on-error continue -r f",
    )
    .options;
    let output = |format, path: &str| Output { format, path: path.into() };
    assert_eq!(
        options,
        RunOptions {
            json: true,
            outputs: vec![
                output(OutputFormat::Text, "b.txt"),
                output(OutputFormat::Xml, "c=d.xml")
            ],
            profile_json: true,
            error_format: ErrorFormat::Json,
            progress_style: ProgressStyle::None,
            engine: EngineChoice::Uring,
            destroy: vec!["/dev/x".into(), "y".into()],
            batch: Some(4096),
            on_error: OnError::Continue,
        }
    );
    assert_eq!(workload("-r f").options, RunOptions::default());
}

#[test]
fn they_leave_the_workload_alone() {
    let own =
        "--json --output=json=o --engine=null --batch 1 --on-error=stop --progress-style plain";
    for line in ["-b4K -r -t2 f", "-Rp -Rxml *1", "-z5 -W0 f g"] {
        let plain = workload(line);
        let with = workload(&format!("{own} --profile-json {line}"));
        assert_eq!(plain.profile, with.profile, "{line}");
        assert_eq!(plain.warnings, with.warnings, "{line}");
    }
    // The normalised profile of a run is that of a run: a template is still refused.
    assert_eq!(error("--profile-json *1").class.keyword(), "template-target");
    let info = read("--error-format=json -Rsxml");
    assert_eq!(info, Ok(Parsed::SystemInfo(ResultFormat::Xml)));
    assert_eq!(error("--json").class.keyword(), "no-target");
}

#[test]
fn json_goes_to_one_place() {
    let json = |line: &str| workload(line).options.json;
    assert!(json("--json f") && json("--json --json f") && !json("f"));
    assert_eq!(error("--json=a f").class.keyword(), "long-option");
    // An optional value is joined: the next token is a target.
    assert_eq!(workload("--json a f").profile.time_spans[0].targets.len(), 2);
}

#[test]
fn wrong_values_are_refused_before_the_passes() {
    for (line, class) in [
        ("-b0 --engine=fast f", "long-option"),
        ("-b0 --batch=0 f", "bad-number"),
        ("--batch=4097 f", "bad-number"),
        ("--batch=8x f", "bad-number"),
        ("--batch f", "bad-number"),
        ("--output=a.txt f", "long-option"),
        ("--output=csv=a f", "long-option"),
        ("--output=xml= f", "long-option"),
        ("--output=xml=a --output=text=a f", "duplicate"),
        ("--error-format=xml f", "long-option"),
        ("--on-error f", "long-option"),
        ("--engine", "long-option"),
        ("-Rjson f", "result-format"),
    ] {
        assert_eq!(error(line).class.keyword(), class, "{line}");
    }
}
