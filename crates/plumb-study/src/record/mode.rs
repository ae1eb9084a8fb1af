//! The effective mode of a time span: what decides, beside the workload, how I/O is handed in, looked at and timed
//! (spec 15.14). Two results may be compared as performance only if it agrees.

use std::collections::BTreeMap;

use plumb_load::convert::ImportedSpan;
use plumb_load::profile::model::TimeSpan;
use serde_json::{Value, json};

/// Names of what is compared, and their values as the result has them.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mode(BTreeMap<String, Value>);

/// Keys of `mode` in a JSON result that are compared as they are.
const KEYS: [&str; 12] = [
    "submission",
    "batch",
    "burst",
    "ring",
    "completion_depth",
    "buffer_separation_bytes",
    "processor_order",
    "group_order",
    "efficiency_order",
    "stamps_latency",
    "measures_latency",
    "measures_intervals",
];

/// Flags of a ring that change what an I/O costs or when its completion is seen: who submits, who looks, when completions
/// are posted, and what the kernel looks up and pins anew for each I/O.
const RING_FLAGS: [&str; 8] = [
    "sqpoll",
    "iopoll",
    "defer_taskrun",
    "coop_taskrun",
    "taskrun_flag",
    "fixed_buffers",
    "fixed_files",
    "registered_ring",
];

const TRACED: &str = "traced (--truth)";

/// In how many of the queues a flag is in force.
fn in_force(flag: &str, queues: &[Value]) -> Value {
    let has = |queue: &&Value| {
        queue["flags"].as_array().is_some_and(|all| all.iter().any(|of| of == flag))
    };
    match queues.iter().filter(has).count() {
        0 => false.into(),
        all if all == queues.len() => true.into(),
        _ => "true for some threads only".into(),
    }
}

/// Whether a queue is a ring: other engines have no such flags, and which engine it is is compared by itself.
fn is_ring(queue: &Value) -> bool {
    let engine = queue["engine"].as_str().and_then(|name| name.split('+').next());
    engine.is_none_or(|engine| matches!(engine, "uring" | "nop" | "nop-file"))
}

impl Mode {
    /// Of a time span of a JSON result.
    pub(super) fn of_json(span: &Value) -> Self {
        let mode = &span["mode"];
        let kept = KEYS.iter().filter_map(|key| Some(((*key).to_owned(), mode.get(*key)?.clone())));
        let mut all: BTreeMap<String, Value> = kept.collect();
        if let Some(missing) = mode["bypass_io_missing"].as_array() {
            all.insert(
                "targets without the BypassIO they asked for".to_owned(),
                missing.len().into(),
            );
        }
        if let Some(taken) = mode["effective_affinity"].as_array() {
            all.insert("threads per processor".to_owned(), loads(taken));
        }
        if let Some(queues) = span["queues"].as_array()
            && queues.iter().all(is_ring)
        {
            for flag in RING_FLAGS {
                all.insert(flag.to_owned(), in_force(flag, queues));
            }
        }
        if mode.is_object() {
            all.insert(TRACED.to_owned(), span.get("truth").is_some().into());
            all.insert("arrivals".to_owned(), arrivals(&span["open_loop"]));
        }
        Self(all)
    }

    /// Of a time span of an XML or text result: what of it that says. Nothing is known of one that is not Plumb's.
    pub(super) fn of_import(span: &ImportedSpan, asked: Option<&TimeSpan>) -> Self {
        let Some(own) = &span.submission else { return Self::default() };
        let queue =
            |(engine, flags): &(String, Vec<String>)| json!({ "engine": engine, "flags": flags });
        let open = own.open_loop.as_ref();
        let mut told = serde_json::Map::new();
        if !own.gathering.is_empty() {
            told.insert("submission".to_owned(), own.gathering.as_str().into());
        }
        for (key, count) in [("batch", own.batch), ("burst", own.burst)] {
            told.extend(count.map(|count| (key.to_owned(), count.into())));
        }
        if let Some(asked) = asked {
            told.insert("completion_depth".to_owned(), asked.binding_completion_depth().into());
        }
        // Where submissions are gathered by the profile, that is told once.
        if !own.profile.is_empty() && own.profile != own.gathering {
            told.insert("stamps_latency".to_owned(), (own.profile == "latency").into());
        }
        let mut mode = Self::of_json(&json!({
            "mode": told,
            "queues": own.queues.iter().map(queue).collect::<Vec<_>>(),
            "open_loop": open.map(|(rate, kind)| json!({ "rate_per_s": rate, "arrival": kind })),
        }));
        match own.traced {
            Some(traced) => mode.0.insert(TRACED.to_owned(), traced.into()),
            None => mode.0.remove(TRACED),
        };
        mode
    }

    /// Whether nothing is known of it.
    pub(super) fn is_unknown(&self) -> bool {
        self.0.is_empty()
    }

    /// What differs, in words; what only one of the two says is not known to differ.
    pub(super) fn differences(&self, other: &Self) -> Vec<String> {
        let both = self.0.iter().filter_map(|(key, a)| Some((key, a, other.0.get(key)?)));
        both.filter(|(_, a, b)| a != b)
            .map(|(key, a, b)| {
                format!("{} is {} and {}", key.replace('_', " "), plain(a), plain(b))
            })
            .collect()
    }
}

/// How many threads the processors have that have any, ascending: equal up to renaming of processors.
fn loads(taken: &[Value]) -> Value {
    let mut by_processor: BTreeMap<String, u64> = BTreeMap::new();
    for processor in taken {
        *by_processor.entry(processor.to_string()).or_default() += 1;
    }
    let mut loads: Vec<u64> = by_processor.into_values().collect();
    loads.sort_unstable();
    json!(loads)
}

/// An open loop's arrivals in words, or that there are none.
fn arrivals(open: &Value) -> Value {
    match (open["rate_per_s"].as_f64(), open["arrival"].as_str()) {
        (Some(rate), Some(arrival)) => format!("{arrival}, {rate} per second").into(),
        _ => "a closed loop".into(),
    }
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => "not set".to_owned(),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use plumb_load::convert::ImportedSubmission;

    use super::*;

    fn span() -> Value {
        json!({
            "mode": {
                "submission": "latency", "batch": 8, "burst": 20, "ring": null, "completion_depth": 16,
                "stamps_latency": true, "effective_affinity": [[0, 0], [0, 1]], "bypass_io_missing": []
            },
            "queues": [{"engine": "uring+verify", "flags": ["defer_taskrun", "fixed_buffers", "no_sqarray"]}]
        })
    }

    /// XML results of Plumb's own say how I/Os were handed in, and are held against JSON results by that.
    #[test]
    fn what_an_xml_result_says_of_its_mode_is_compared() {
        let own = |profile: &str, batch, open: Option<f64>, flags: &[&str]| ImportedSpan {
            submission: Some(ImportedSubmission {
                profile: profile.to_owned(),
                gathering: profile.to_owned(),
                batch: Some(batch),
                burst: Some(24),
                queues: vec![(
                    "uring".to_owned(),
                    flags.iter().map(|flag| (*flag).to_owned()).collect(),
                )],
                open_loop: open.map(|rate| (rate, "uniform".to_owned())),
                traced: None,
            }),
            ..ImportedSpan::default()
        };
        let mode = |span: &ImportedSpan| Mode::of_import(span, None);
        let base = mode(&own("latency", 8, None, &[]));
        assert_eq!(base.differences(&base), [""; 0]);
        for (other, expected) in [
            (own("peak", 8, None, &[]), "submission is latency and peak"),
            (own("latency", 1, None, &[]), "batch is 8 and 1"),
            (own("latency", 8, None, &["sqpoll"]), "sqpoll is false and true"),
            (
                own("latency", 8, Some(500.0), &[]),
                "arrivals is a closed loop and uniform, 500 per second",
            ),
        ] {
            assert_eq!(base.differences(&mode(&other)), [expected]);
        }
        let traced = |traced| {
            let mut span = own("latency", 8, None, &[]);
            span.submission.as_mut().expect("it is told").traced = traced;
            mode(&span)
        };
        assert_eq!(base.differences(&traced(Some(true))), [""; 0], "one does not say");
        let found = traced(Some(false)).differences(&traced(Some(true)));
        assert_eq!(found, ["traced (--truth) is false and true"]);
        let asked = |depth| TimeSpan { completion_depth: depth, ..TimeSpan::default() };
        let visits = |depth| Mode::of_import(&own("peak", 8, None, &[]), Some(&asked(depth)));
        let found = visits(None).differences(&visits(Some(16)));
        assert_eq!(found, ["completion depth is not set and 16"]);
        let json = json!({
            "mode": { "submission": "latency", "batch": 8, "burst": 24 },
            "open_loop": { "rate_per_s": 500.0, "arrival": "uniform" },
            "truth": {},
        });
        let open = mode(&own("latency", 8, Some(500.0), &[]));
        assert_eq!(open.differences(&Mode::of_json(&json)), [""; 0]);
        assert!(mode(&ImportedSpan::default()).is_unknown());
    }

    #[test]
    fn each_part_of_the_mode_is_compared() {
        let base = Mode::of_json(&span());
        assert_eq!(base.differences(&base), [""; 0]);
        for (pointer, value, says) in [
            ("/mode/batch", json!(4), "batch is 8 and 4"),
            ("/mode/burst", json!(8), "burst is 20 and 8"),
            ("/mode/submission", json!("peak"), "submission is latency and peak"),
            ("/mode/ring", json!({"batch_ios": 8}), "ring is not set and {\"batch_ios\":8}"),
            ("/mode/stamps_latency", json!(false), "stamps latency is true and false"),
            ("/mode/effective_affinity", json!([[0, 1], [0, 1]]), "threads per processor"),
            ("/mode/bypass_io_missing", json!(["f"]), "BypassIO"),
            (
                "/queues/0/flags",
                json!(["defer_taskrun", "fixed_buffers", "sqpoll"]),
                "sqpoll is false and true",
            ),
            ("/queues/0/flags", json!(["fixed_buffers"]), "defer taskrun is true and false"),
            ("/queues/0/flags", json!(["defer_taskrun"]), "fixed buffers is true and false"),
            (
                "/queues",
                json!([span()["queues"][0], {"engine": "uring", "flags": ["defer_taskrun"]}]),
                "fixed buffers is true and true for some threads only",
            ),
        ] {
            let mut other = span();
            *other.pointer_mut(pointer).expect("it is there") = value;
            let found = base.differences(&Mode::of_json(&other));
            assert!(found.len() == 1 && found[0].contains(says), "{pointer}: {found:?}");
        }
        let mut open = span();
        open["open_loop"] = json!({"arrival": "poisson", "rate_per_s": 1000.0});
        let found = base.differences(&Mode::of_json(&open));
        assert_eq!(found, ["arrivals is a closed loop and poisson, 1000 per second"]);
        let mut traced = span();
        traced["truth"] = json!({});
        assert_eq!(
            base.differences(&Mode::of_json(&traced)),
            ["traced (--truth) is false and true"]
        );
    }

    /// What the kernel lacks and no I/O feels, and engines that have no ring.
    #[test]
    fn other_flags_are_not_compared() {
        for queues in [
            json!([{"engine": "uring", "flags": ["defer_taskrun", "fixed_buffers", "clamp"]}]),
            json!([{"engine": "aio", "flags": []}]),
        ] {
            let mut other = span();
            other["queues"] = queues;
            assert_eq!(Mode::of_json(&span()).differences(&Mode::of_json(&other)), [""; 0]);
        }
    }

    #[test]
    fn processors_are_equal_up_to_their_names() {
        let mut other = span();
        other["mode"]["effective_affinity"] = json!([[0, 5], [1, 3]]);
        assert_eq!(Mode::of_json(&span()).differences(&Mode::of_json(&other)), [""; 0]);
    }

    #[test]
    fn what_a_result_does_not_say_is_not_known_to_differ() {
        let nothing = Mode::of_json(&json!({}));
        assert!(nothing.is_unknown());
        assert_eq!(nothing.differences(&Mode::of_json(&span())), [""; 0]);
    }
}
