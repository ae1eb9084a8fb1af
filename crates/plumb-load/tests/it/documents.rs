//! Results as other programs see them: well-formed, valid, in the order that readers rely on.

use plumb_io::engine::Choice;
use plumb_load::profile::model::{Target, TimeSpan};
use plumb_load::result::{json, text, xml};
use roxmltree::{Document, Node};
use serde_json::{Value, json};

use crate::golden::{check_file, written};
use crate::made_up;
use crate::reference;
use crate::runs::run;
use crate::watcher::Watcher;

fn all() -> [plumb_load::result::model::RunResult; 5] {
    [
        made_up::two_targets(),
        made_up::two_spans(),
        made_up::interrupted(),
        made_up::failed(),
        made_up::verified(),
    ]
}

/// The schema, and the schema without room for members that it does not know.
fn schemas() -> (Value, Value) {
    let schema: Value = serde_json::from_str(json::SCHEMA).expect("the schema is JSON");
    let mut strict = schema.clone();
    close(&mut strict);
    (schema, strict)
}

fn close(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            if members.contains_key("properties") {
                members.insert("additionalProperties".to_owned(), json!(false));
            }
            members.values_mut().for_each(close);
        }
        Value::Array(elements) => elements.iter_mut().for_each(close),
        _ => {}
    }
}

/// Fails if a document breaks the schema or has a member beyond it.
pub(crate) fn assert_strictly_valid(value: &Value) {
    let (_, strict) = schemas();
    let strict = jsonschema::validator_for(&strict).expect("a schema");
    let complaints: Vec<String> = strict
        .iter_errors(value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
}

#[test]
fn every_result_obeys_the_schema_and_has_no_member_beyond_it() {
    let (open, strict) = schemas();
    jsonschema::meta::validate(&open).expect("the schema is a schema");
    let strict = jsonschema::validator_for(&strict).expect("a schema");
    for result in all() {
        let document = written(json::write, &result);
        let value: Value = serde_json::from_str(&document).expect("JSON");
        let complaints: Vec<String> = strict
            .iter_errors(&value)
            .map(|error| format!("{}: {error}", error.instance_path()))
            .collect();
        assert!(complaints.is_empty(), "{}: {complaints:#?}", result.command_line);
        assert_eq!(value["schema_version"], json::SCHEMA_VERSION);
    }
}

#[test]
fn a_real_run_obeys_the_schema_too() {
    let target = Target {
        path: "none".to_owned(),
        random_ratio: 100,
        write_ratio: 30,
        request_count: 8,
        ..Target::default()
    };
    let span = TimeSpan {
        duration: 1,
        warmup: 0,
        measure_latency: true,
        calculate_iops_std_dev: true,
        io_bucket_duration: 100,
        targets: vec![target],
        ..TimeSpan::default()
    };
    let result = run(span, Choice::Null, &mut Watcher::default()).result;
    let (_, strict) = schemas();
    let strict = jsonschema::validator_for(&strict).expect("a schema");
    let document = written(json::write, &result);
    let value: Value = serde_json::from_str(&document).expect("JSON");
    let complaints: Vec<String> = strict
        .iter_errors(&value)
        .map(|error| format!("{}: {error}", error.instance_path()))
        .collect();
    assert!(complaints.is_empty(), "{complaints:#?}");
    assert!(value["total"]["latency_ns"]["p99"].as_u64() > Some(0));
    Document::parse(&written(xml::write, &result)).expect("well-formed");
}

#[test]
fn the_schema_refuses_what_is_wrong() {
    let (open, strict) = schemas();
    let [open, strict] =
        [open, strict].map(|schema| jsonschema::validator_for(&schema).expect("a schema"));
    let document = written(json::write, &made_up::two_targets());
    let value: Value = serde_json::from_str(&document).expect("JSON");
    let broken = |change: &dyn Fn(&mut Value)| {
        let mut broken = value.clone();
        change(&mut broken);
        broken
    };
    for (name, document) in [
        ("no total", broken(&|value| drop(value.as_object_mut().map(|v| v.remove("total"))))),
        ("a negative count", broken(&|value| value["total"]["io_count"] = json!(-1))),
        ("another version", broken(&|value| value["schema_version"] = json!(2))),
        ("an unknown verdict", broken(&|v| v["littles_law"]["verdict"] = json!("fine"))),
        ("a bucket of two", broken(&|v| v["read"]["latency_ns"]["buckets"] = json!([[1, 2]]))),
    ] {
        assert!(!open.is_valid(&document), "{name} is accepted");
    }
    let grown = broken(&|value| value["from_the_future"] = json!(1));
    assert!(open.is_valid(&grown), "readers tolerate members that they do not know");
    assert!(!strict.is_valid(&grown), "but this test does not");
}

#[test]
fn members_stand_in_the_order_of_the_schema_and_the_totals_first() {
    let (schema, _) = schemas();
    let want: Vec<&str> =
        schema["required"].as_array().expect("a list").iter().filter_map(Value::as_str).collect();
    for result in all() {
        let document = written(json::write, &result);
        let members: Vec<&str> = document
            .lines()
            .filter_map(|line| line.strip_prefix("  \"")?.split_once('"'))
            .map(|(member, _)| member)
            .collect();
        assert_eq!(members, want);
        let value: Value = serde_json::from_str(&document).expect("JSON");
        for (key, total) in
            [("io_count", &value["total"]["io_count"]), ("bytes", &value["total"]["bytes"])]
        {
            let (_, rest) = document.split_once(&format!("\"{key}\": ")).expect("the key");
            let first = rest.split([',', '\n']).next().expect("a number");
            assert_eq!(first, total.to_string(), "the first {key} is the total's");
        }
    }
}

#[test]
fn what_other_programs_read_is_there() {
    let document = written(json::write, &made_up::two_targets());
    let value: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(value["engine"], "uring");
    for side in ["total", "read", "write"] {
        let counted = &value[side];
        for member in ["io_count", "bytes", "iops_per_s", "errors"] {
            assert!(counted[member].is_number(), "{side}.{member}");
        }
        for member in ["mean", "p50", "p90", "p95", "p99", "p99_9", "max"] {
            assert!(counted["latency_ns"][member].is_number(), "{side}.latency_ns.{member}");
        }
    }
    assert_eq!(value["total"]["io_count"], 9_000 + 3_900 + 13_000);
    let per_io = value["cpu"]["process_ns_per_io"].as_f64().expect("a number");
    assert!((per_io - 1_234_000_000.0 / 25_900.0).abs() < 1e-6);
    assert!(value["littles_law"]["residual"].is_number());
    // Intervals add up to the whole, in counts and in latencies.
    let series = value["time_spans"][0]["intervals"]["series"].as_array().expect("a list");
    assert_eq!(series.len(), 4);
    for side in ["total", "read", "write"] {
        let sum = |member: &[&str]| -> u64 {
            let number = |interval: &Value| {
                let member = member.iter().fold(&interval[side], |value, key| &value[key]);
                member.as_u64().unwrap_or(0)
            };
            series.iter().map(number).sum()
        };
        assert_eq!(sum(&["io_count"]), value[side]["io_count"]);
        assert_eq!(sum(&["latency_ns", "count"]), value[side]["latency_ns"]["count"]);
    }
}

#[test]
fn errors_are_counted_by_name_and_direction() {
    let document = written(json::write, &made_up::two_spans());
    let value: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(value["total"]["errors"], 14);
    assert_eq!(value["read"]["errors"], Value::Null, "f1 both reads and writes");
    let targets = &value["time_spans"][1]["targets"];
    assert_eq!(targets[0]["errors_by_name"], json!({"EIO": 12, "ENOSPC": 1}));
    assert_eq!(targets[1]["read"]["errors"], 1, "f2 only reads");
    assert_eq!(targets[1]["write"]["errors"], 0);
    assert_eq!(value["littles_law"]["verdict"], "see_time_spans");
}

#[test]
fn a_result_without_a_measurement_is_still_a_document() {
    let document = written(json::write, &made_up::interrupted());
    let value: Value = serde_json::from_str(&document).expect("JSON");
    assert_eq!(value["total"]["io_count"], 0);
    assert_eq!(value["total"]["iops_per_s"], 0.0);
    assert_eq!(value["littles_law"]["residual"], Value::Null);
    assert_eq!(value["time_spans"][0]["state"], "interrupted");
    assert_eq!(value["time_spans"][1]["state"], "not_run");
    let failed = written(json::write, &made_up::failed());
    let value: Value = serde_json::from_str(&failed).expect("JSON");
    assert_eq!(value["time_spans"][0]["state"], "failed");
    assert_eq!(value["total"]["io_count"], 0, "a failed span is no part of the totals");
}

fn child<'a, 'input>(node: Node<'a, 'input>, name: &str) -> Node<'a, 'input> {
    let found = node.children().find(|child| child.has_tag_name(name));
    found.unwrap_or_else(|| panic!("no {name} in {node:?}"))
}

fn names(node: Node<'_, '_>) -> Vec<String> {
    let elements = node.children().filter(Node::is_element);
    elements.map(|element| element.tag_name().name().to_owned()).collect()
}

#[test]
fn xml_is_well_formed_with_nasty_paths() {
    for result in all() {
        let document = written(xml::write, &result);
        assert!(document.starts_with("<Results>\n"));
        assert!(document.ends_with("\n</Results>"));
        let parsed = Document::parse(&document).expect("well-formed");
        let children = names(parsed.root_element());
        assert_eq!(children[..2], ["System", "Profile"]);
        assert!(children[2..].iter().all(|name| name == "TimeSpan"));
        assert_eq!(children.len(), 2 + result.time_spans.len());
    }
    let document = written(xml::write, &made_up::two_targets());
    let parsed = Document::parse(&document).expect("well-formed");
    let span = child(parsed.root_element(), "TimeSpan");
    let path = child(child(child(span, "Thread"), "Target"), "Path");
    let want = made_up::NASTY_PATH.replace('\u{1}', "\u{fffd}");
    assert_eq!(path.text(), Some(want.as_str()));
}

#[test]
fn xml_elements_stand_in_the_published_order() {
    let document = written(xml::write, &made_up::two_targets());
    let parsed = Document::parse(&document).expect("well-formed");
    let system = child(parsed.root_element(), "System");
    assert_eq!(
        names(system),
        [
            "ComputerName",
            "ProcessorName",
            "Tool",
            "RunTime",
            "PowerScheme",
            "PageSize",
            "ProcessorTopology"
        ]
    );
    assert_eq!(names(child(system, "Tool")), ["Version", "VersionDate", "Epoch"]);
    let span = child(parsed.root_element(), "TimeSpan");
    assert_eq!(
        names(span),
        [
            "TestTimeSeconds",
            "ThreadCount",
            "RequestCount",
            "ProcCount",
            "EffectiveBufferSeparation",
            "EffectiveAffinity",
            "CpuUtilization",
            "Latency",
            "Iops",
            "Thread",
            "Thread",
            "Plausibility"
        ]
    );
    let buckets = child(span, "Latency").children().filter(|node| node.has_tag_name("Bucket"));
    assert_eq!(buckets.count(), 108);
    let thread = child(span, "Thread");
    assert_eq!(names(thread), ["Id", "Target", "WaitStatistics"]);
    assert_eq!(
        names(child(thread, "Target")),
        [
            "Path",
            "BytesCount",
            "FileSize",
            "IOCount",
            "ReadBytes",
            "ReadCount",
            "WriteBytes",
            "WriteCount",
            "Distribution",
            "AverageReadLatencyMilliseconds",
            "ReadLatencyStdev",
            "AverageWriteLatencyMilliseconds",
            "WriteLatencyStdev",
            "AverageLatencyMilliseconds",
            "LatencyStdev",
            "Iops"
        ]
    );
    let waits = child(thread, "WaitStatistics");
    assert_eq!(names(waits)[4..], ["WaitCompletion", "LookasideCompletion"]);
}

#[test]
fn an_interrupted_span_is_an_error_element() {
    let document = written(xml::write, &made_up::interrupted());
    let parsed = Document::parse(&document).expect("well-formed");
    let span = child(parsed.root_element(), "TimeSpan");
    assert_eq!(names(span), ["Error", "Plausibility"]);
    assert_eq!(child(span, "Error").text(), Some(text::INTERRUPTED));
}

/// A writer that takes nothing any more after some bytes.
struct Full(usize);

impl std::io::Write for Full {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.checked_sub(bytes.len()).ok_or(std::io::ErrorKind::StorageFull)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_full_disk_is_reported_as_such() {
    let result = made_up::two_targets();
    for writer in [text::write, xml::write, json::write] {
        let error = writer(&result, &mut Full(3000)).expect_err("no room");
        assert_eq!(error.kind(), std::io::ErrorKind::StorageFull);
    }
}

#[test]
fn the_reference_is_made_from_the_schema() {
    let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    check_file(&root.join("docs/reference/json-result.md"), &reference::page(json::SCHEMA));
}
