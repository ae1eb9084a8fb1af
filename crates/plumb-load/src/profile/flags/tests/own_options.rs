//! Plumb's own options.

use super::super::options::{
    EngineChoice, Keep, OnError, Output, OutputFormat, ProgressStyle, RunOptions,
};
use super::super::{ErrorFormat, Parsed};
use super::{error, read, workload};
use crate::arrivals::{Arrival, OpenLoop};
use crate::profile::model::ResultFormat;

#[test]
fn they_say_how_a_run_is_made_and_reported() {
    let options = workload(
        "--json --output text=b.txt --output=xml=c=d.xml --profile-json --error-format json \
         --progress-style=none --engine uring --destroy=/dev/x --destroy y --batch=4096 \
         --verify=crc32c --verify-state s --on-error continue --rate 70 --poll --sqpoll --rate=1000 --accept-older \
         --arrival burst:100/5 --store --store=nightly -r f",
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
            store: Keep::As("nightly".into()),
            profile_json: true,
            truth: false,
            poll: true,
            submit_thread: true,
            error_format: ErrorFormat::Json,
            progress_style: ProgressStyle::None,
            engine: EngineChoice::Uring,
            destroy: vec!["/dev/x".into(), "y".into()],
            batch: Some(4096),
            rate: Some(1000),
            arrival: Some(Arrival::Burst { ios: 100, millis: 5 }),
            verify: true,
            verify_state: Some("s".into()),
            on_error: OnError::Continue,
            accept_older: true,
        }
    );
    assert_eq!(workload("-r f").options, RunOptions::default());
}

#[test]
fn a_result_is_kept_under_a_label_or_none() {
    assert_eq!(workload("--store f").options.store, Keep::Yes);
    assert_eq!(workload("--store=a.b-1@x f").options.store, Keep::As("a.b-1@x".into()));
    for line in ["--store=latest f", "--store=a/b f", "--store=a~1 f", "--store= f"] {
        assert_eq!(error(line).class.keyword(), "long-option", "{line}");
    }
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
    for line in ["-Rs --json", "--output=json=o -Rs", "-Rsxml --profile-json", "--engine null -Rs"]
    {
        assert_eq!(error(line).class.keyword(), "result-format", "{line}");
    }
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

#[test]
fn a_rate_opens_the_loop() {
    let open = |line: &str| workload(line).options.open_loop();
    let loop_of = |rate, arrival| Some(OpenLoop { rate, arrival });
    assert_eq!(open("f"), None);
    assert_eq!(open("--rate=1000 f"), loop_of(1000, Arrival::Uniform));
    assert_eq!(open("--arrival poisson --rate 7 f"), loop_of(7, Arrival::Poisson));
    let burst = Arrival::Burst { ios: 100, millis: 100 };
    assert_eq!(open("--rate 1000 --arrival=burst:100/100 f"), loop_of(1000, burst));
    for (line, class) in [
        ("--rate=0 f", "bad-number"),
        ("--rate=1.5 f", "bad-number"),
        ("--rate=1000000001 f", "bad-number"),
        ("--rate f", "bad-number"),
        ("--rate=9 --arrival=often f", "long-option"),
        ("--rate=9 --arrival=burst:5 f", "long-option"),
        ("--rate=9 --arrival=burst:0/1 f", "long-option"),
        ("--rate=9 --arrival=burst:1/-1 f", "long-option"),
        ("--rate=1000 --arrival=burst:100/101 f", "long-option"),
        ("--rate=100 -d10 --arrival=burst:1001/0 f", "long-option"),
        ("--arrival=poisson f", "long-option"),
        ("--rate=9 -g100 f", "throughput-conflict"),
        ("-g100i --rate=9 f", "throughput-conflict"),
        ("--rate=9 -i5 -j10 f", "burst-conflict"),
        ("--rate=9 -i5 f", "burst-conflict"),
        ("--rate=9 -j10 f", "burst-conflict"),
        ("--rate=9 -x f", "throughput-conflict"),
    ] {
        assert_eq!(error(line).class.keyword(), class, "{line}");
    }
}

#[test]
fn what_cannot_be_verified_is_refused() {
    let sound = workload("--verify=crc32c --verify-state=s -b4K -r512 -w30 -B1M f").options;
    assert!(sound.verify && sound.verify_state == Some("s".into()));
    for (line, class) in [
        ("--verify f", "long-option"),
        ("--verify=md5 f", "long-option"),
        ("--verify-state=s f", "long-option"),
        ("--verify=crc32c --verify-state= f", "long-option"),
        ("--verify=crc32c --engine=null f", "long-option"),
        ("--engine=nop --verify=crc32c f", "long-option"),
        ("--verify=crc32c -Z f", "write-buffer"),
        ("--verify=crc32c -Zr f", "write-buffer"),
        ("--verify=crc32c -Z1M f", "write-buffer"),
        ("--verify=crc32c -Sm f", "mmap-conflict"),
        ("--verify=crc32c -b1000 f", "block-size"),
        ("--verify=crc32c -b4K -r100 f", "alignment"),
        ("--verify=crc32c -b4K -B100 f", "base-offset"),
        ("--verify=crc32c -b4K -T100 -t2 f", "thread-stride"),
        ("--verify=crc32c -b4K -r -rdabs50/1000000:50/0 f", "distribution"),
    ] {
        assert_eq!(error(line).class.keyword(), class, "{line}");
    }
    let warnings = |line: &str| workload(line).warnings.len();
    assert_eq!((warnings("-Rp --verify=crc32c f"), warnings("--verify=crc32c f")), (1, 0));
}

#[test]
fn a_rate_measures_latency_and_has_requests_enough() {
    let span = |line: &str| workload(line).profile.time_spans[0].clone();
    let requests = |line: &str| span(line).targets[0].request_count;
    assert!(span("--rate=9 f").measure_latency);
    assert_eq!(requests("--rate=9 f"), 1024);
    assert_eq!(requests("--rate=9 -t3 f"), 342);
    assert_eq!(requests("--rate=200000 -b4K f"), 8000, "the arrivals of 40 ms");
    assert_eq!(requests("--rate=200000 -b4K -t4 f"), 2000);
    assert_eq!(requests("--rate=9000000 -b4K f"), 32_768, "what a ring takes in");
    assert_eq!(requests("--rate=200000 -b1M f"), 256);
    assert_eq!(requests("--rate=9 -t2 f g"), 256);
    assert_eq!(requests("--rate=9 -F2 f g"), 256);
    assert_eq!(requests("--rate=9 -b16M f"), 16, "not more than 256 MiB of buffers");
    assert_eq!(requests("--rate=9 -o1 f"), 1);
    assert_eq!(requests("--rate=9 -Sm f"), 2, "mapped targets do one at a time");
    assert_eq!(requests("f"), 2);
    let warnings = |line: &str| workload(line).warnings.len();
    assert_eq!((warnings("-Rp --rate=9 f"), warnings("--rate=9 f")), (1, 0));
}

/// What a profile says is obeyed; what it leaves open is as without one.
#[test]
fn a_rate_has_requests_enough_for_a_profile_that_does_not_say_how_many() {
    let said = "<RequestCount>3</RequestCount>";
    let target = |name: &str, says: &str| {
        format!("<Target><Path>{name}</Path><BlockSize>4096</BlockSize>{says}</Target>")
    };
    let document = |pool: &str, targets: &[String]| {
        format!(
            "<Profile><TimeSpans><TimeSpan>{pool}<Targets>{}</Targets></TimeSpan></TimeSpans></Profile>",
            targets.concat()
        )
    };
    let requests = |document: String, line: &str| -> Vec<u32> {
        let mut scene = super::Scene { profile: Some(&*document.leak()), ..Default::default() };
        let Ok(super::Parsed::Run(invocation)) = super::read_in(&mut scene, line) else {
            panic!("{line} is refused")
        };
        let spans = invocation.profile.time_spans.iter();
        spans.flat_map(|span| &span.targets).map(|target| target.request_count).collect()
    };
    let open = "-Xp.xml --rate=5000";
    let silent = [target("f", "")];
    assert_eq!(requests(document("", &silent), "-Xp.xml"), [2]);
    assert_eq!(requests(document("", &silent), open), [1024]);
    assert_eq!(requests(document("", &[target("f", said)]), open), [3]);
    let mixed = [target("f", said), target("g", "")];
    assert_eq!(requests(document("", &mixed), open), [3, 512]);
    let pool = format!("<ThreadCount>2</ThreadCount>{said}");
    assert_eq!(requests(document(&pool, &silent), open), [2], "the pool has its own");
    let pool = "<ThreadCount>2</ThreadCount>";
    assert_eq!(requests(document(pool, &silent), open), [512]);
}

#[test]
fn truth_measures_latencies_and_needs_a_run_of_its_own() {
    let with = workload("--truth -r f");
    assert!(with.options.truth && with.profile.time_spans[0].measure_latency);
    for line in ["--truth -D f", "--truth -Sm f", "--truth --rate 100 f"] {
        let error = error(line);
        assert_eq!(
            (error.class.keyword(), error.token.as_deref()),
            ("long-option", Some("--truth"))
        );
    }
}

#[test]
fn polling_is_not_for_ring_submission() {
    assert!(workload("--poll -r f").options.poll);
    assert!(workload("--sqpoll f").options.submit_thread);
    for line in ["--poll -u f", "--sqpoll -un f"] {
        assert_eq!(error(line).class.keyword(), "io-ring", "{line}");
    }
}
