//! The order of errors, repeats, events, profiles, warnings.

use serde_json::json;

use super::super::Parsed;
use super::{Scene, error, read, read_in, workload};
use crate::profile::json::normalised;

/// The class of the error, and the token it is about.
fn check(line: &str, class: &str, token: &str) {
    let error = error(line);
    let found = (error.class.keyword(), error.token.as_deref().unwrap_or("none"));
    assert_eq!(found, (class, token), "{line}: {error}");
}

#[test]
fn errors_come_in_the_order_of_the_passes() {
    // Order before shape before the first pass before the second before the profile's rules.
    check("--nope -b0 -t0 f -r", "option-after-target", "-r");
    check("-b0 -t0 --nope f", "unknown-option", "--nope");
    check("-t0 --block-size=x -b0 f", "block-size", "--block-size=x");
    check("-t0 -F4 -t2 -b0 f", "block-size", "-b0");
    check("-i5 -t0 f", "bad-number", "-t0");
    check("-i5", "no-target", "none");
    check("-i5 f", "burst-conflict", "-i5");
    // The first of its pass, from left to right.
    check("-q -t0 f", "unknown-option", "-q");
    check("-t0 -q f", "bad-number", "-t0");
    check("-W-1 -b0 f", "bad-number", "-W-1");
    // Help is an option of the second pass.
    check("-? -b0", "block-size", "-b0");
    check("-q -?", "unknown-option", "-q");
    assert_eq!(read("-? -q"), Ok(Parsed::Usage { exit_code: 0 }));
    assert_eq!(read("--version -q -t0"), Ok(Parsed::Version));
    // -Rs is looked at between the passes.
    check("-Rs -b0", "block-size", "-b0");
    check("-Rs -t0", "result-format", "-Rs");
    check("-t0 -Rs", "result-format", "-Rs");
    check("-Rs --", "result-format", "-Rs");
    check("-Rs -Rsxml", "result-format", "-Rsxml");
}

#[test]
fn the_end_of_options_makes_everything_a_target() {
    let paths = |line: &str| {
        let targets = &workload(line).profile.time_spans[0].targets;
        targets.iter().map(|target| target.path.clone()).collect::<Vec<_>>()
    };
    assert_eq!(paths("-r -- -f --latency –r --"), ["-f", "--latency", "–r", "--"]);
    assert_eq!(paths("–– f"), ["f"]);
    assert_eq!(paths("-r -– -q"), ["-q"]);
    check("f -- g", "option-after-target", "--");
    check("--", "no-target", "none");
    // As the value of an option it is no end.
    check("--duration -- --nope", "unknown-option", "--nope");
}

#[test]
fn repeats_and_conflicts_of_random_and_sequential() {
    for (line, class) in [
        ("-r -r f", "duplicate"),
        ("-rs100 -r8K -r4K f", "duplicate"),
        ("-rs40 -r8K -r4K f", "seq-rand-conflict"),
        ("-r8K -rs40 -rs40 f", "duplicate"),
        ("-rs40 -rs100 f", "duplicate"),
        ("-r -s0 f", "seq-rand-conflict"),
        ("-rs5 -si f", "seq-rand-conflict"),
        ("-s4K -s0 f", "duplicate"),
        ("-s -rs5 f", "seq-rand-conflict"),
        ("-si0 -rs5 f", "seq-rand-conflict"),
    ] {
        assert_eq!(error(line).class.keyword(), class, "{line}");
    }
    let target = |line: &str| workload(line).profile.time_spans[0].targets[0].clone();
    let mixed = target("-b4K -rs100 -rs40 -r2b f");
    assert_eq!((mixed.random_ratio, mixed.alignment), (40, 8192));
    let sequential = target("-b4K -s0 -s0 f");
    assert_eq!((sequential.random_ratio, sequential.alignment), (0, 4096));
}

#[test]
fn a_shared_source_beats_zeros_in_either_order() {
    for line in ["-Z -Z1M f", "-Z1M -Z f"] {
        let invocation = workload(line);
        let value = normalised(&invocation.profile);
        let content = &value["TimeSpans"][0]["Targets"][0]["WriteBufferContent"];
        assert_eq!(content["RandomDataSource"]["SizeInBytes"], 1 << 20, "{line}");
        assert_eq!(invocation.warnings, ["-Z has no effect beside -Z<size>"]);
    }
}

#[test]
fn numbers_read_as_in_c() {
    let span = |line: &str| workload(line).profile.time_spans[0].clone();
    assert_eq!(span("-d99999999999 f").duration, 2_147_483_647);
    assert_eq!(span("-d+7s f").duration, 7);
    assert_eq!(span("-z-2 f").rand_seed, u32::MAX - 1);
    assert_eq!(span("-z99999999999999999999 f").rand_seed, u32::MAX);
    assert_eq!(workload("-:-1 f").profile.experiment_flags, u32::MAX);
    assert_eq!(error("-d-99999999999 f").class.keyword(), "bad-number");
}

#[test]
fn a_bare_seed_is_the_low_half_of_the_uptime() {
    let mut scene = Scene { uptime: (7 << 32) | 5, ..Scene::default() };
    let Ok(Parsed::Run(invocation)) = read_in(&mut scene, "-z f") else { panic!("refused") };
    assert_eq!(invocation.profile.time_spans[0].rand_seed, 5);
}

#[test]
fn events_are_made_and_signalled_as_they_are_met() {
    let mut scene = Scene::default();
    let outcome = read_in(&mut scene, "-ysA --signal-event=go -yfB");
    assert_eq!(outcome, Ok(Parsed::SignalledEvent { name: "go".into() }));
    assert_eq!(scene.asked, ["create A", "signal go", "create B"]);

    let mut scene = Scene::default();
    let error = read_in(&mut scene, "-yego -t0 -ysA").expect_err("-t0");
    assert_eq!((error.exit_code, scene.asked.as_slice()), (3, &["signal go".to_owned()][..]));

    // An error of the first pass comes before any event.
    let mut scene = Scene::default();
    assert!(read_in(&mut scene, "-ysA -b0 f").is_err() && scene.asked.is_empty());
}

#[test]
fn events_that_fail_exit_with_1() {
    let error = error("-yenone f");
    assert_eq!((error.exit_code, error.class.keyword()), (1, "sync"));
    let mut scene = Scene { refuses_events: true, ..Scene::default() };
    let error = read_in(&mut scene, "-yrA f").expect_err("refused");
    assert_eq!((error.exit_code, error.class.keyword()), (1, "sync"));
    for line in ["-ys f", "-ya f", "-ysa/b f", "-yea/b"] {
        let error = super::error(line);
        assert_eq!((error.exit_code, error.class.keyword()), (3, "sync"), "{line}");
    }
}

const PROFILE: &str = "<Profile><ExperimentFlags>3</ExperimentFlags><TimeSpans>\
    <TimeSpan><Duration>3</Duration><Targets><Target><Path>*1</Path></Target></Targets></TimeSpan>\
    <TimeSpan><Duration>4</Duration><Targets><Target><Path>b</Path></Target></Targets></TimeSpan>\
    </TimeSpans></Profile>";

#[test]
fn a_profile_is_overridden_in_every_time_span() {
    let mut scene = Scene { profile: Some(PROFILE), ..Scene::default() };
    let line = "-d9 -z5 -bsn -Rxml -vs -:1 --engine=sync -Xp.xml a";
    let Ok(Parsed::Run(invocation)) = read_in(&mut scene, line) else { panic!("refused") };
    assert_eq!(scene.asked, ["read p.xml"]);
    let profile = normalised(&invocation.profile);
    for (span, path) in [(0, "a"), (1, "b")] {
        let span = &profile["TimeSpans"][span];
        assert_eq!([&span["Duration"], &span["RandSeed"], &span["Warmup"]], [9, 5, 5]);
        assert_eq!(span["Targets"][0]["Path"], path);
        assert_eq!(span["BufferSeparation"], "PDECacheLine");
    }
    assert_eq!([&profile["ResultFormat"], &profile["VerboseStats"]], [&json!("xml"), &json!(true)]);
    assert_eq!(profile["ExperimentFlags"], 1);
    assert_eq!(invocation.warnings, ["-bs has no effect beside -X"]);
}

#[test]
fn what_is_wrong_beside_a_profile() {
    let fails = |profile, line: &str| {
        let mut scene = Scene { profile, ..Scene::default() };
        let error = read_in(&mut scene, line).expect_err(line);
        (error.class.keyword(), error.token, scene.asked.len())
    };
    // The file is read once the line is known to be good.
    let x = |token: &str| Some(token.to_owned());
    assert_eq!(fails(None, "-Xp -t2"), ("xml-incompatible", x("-t2"), 0));
    assert_eq!(fails(None, "-t2 -Xp"), ("xml-incompatible", x("-Xp"), 0));
    assert_eq!(fails(None, "-Xp -W-1"), ("bad-number", x("-W-1"), 0));
    assert_eq!(fails(None, "-Xp -Xp"), ("xml-incompatible", x("-Xp"), 0));
    assert_eq!(fails(None, "-? -Xp"), ("xml-incompatible", x("-Xp"), 0));
    assert_eq!(fails(None, "-q -Xp"), ("xml-incompatible", x("-Xp"), 0));
    assert_eq!(fails(None, "-X"), ("xml-load", x("-X"), 0));
    assert_eq!(fails(None, "-Xp"), ("xml-load", x("-Xp"), 1));
    assert_eq!(fails(Some("<Profile>"), "-Xp"), ("not-well-formed", x("-Xp"), 1));
    assert_eq!(fails(Some("<Profile/>"), "-Xp"), ("schema", x("-Xp"), 1));
    assert_eq!(fails(Some(PROFILE), "-Xp"), ("template-target", None, 1));
    assert_eq!(fails(Some(PROFILE), "-Xp a b"), ("template-target", None, 1));
}

#[test]
fn warnings_name_what_has_no_effect() {
    for (line, want) in [
        ("-Lx -r f", "'-Lx': 'x' is ignored"),
        ("-hfoo f", "'-hfoo': 'foo' is ignored"),
        ("-d10s f", "'-d10s': 's' is ignored"),
        ("-g10x5i f", "'-g10x5i': 'x5' is ignored"),
        ("-eqx f", "'-eqx': 'x' is ignored"),
        ("--write-percent=50% f", "'--write-percent=50%': '%' is ignored"),
        (
            "-latency f",
            "'-latency': 'atency' is ignored; long names take two dashes: did you mean --latency?",
        ),
        ("-d 10 f", "-d without a value reads as 0: write -d10"),
        ("-c1G #1", "-c creates no drive or partition: '#1' stays as it is"),
        ("-c1G f d:", "-c creates no drive or partition: 'd:' stays as it is"),
        ("-O8 f", "-O has no effect without -F"),
        ("-oc4 -u f", "-oc has no effect with -u"),
        ("-l -bsn -bsp f", "-l takes precedence over -bsp for the I/O buffers"),
        ("–t1 —r f", "typographic dash read as - in '–t1' and 1 more"),
    ] {
        let warnings = workload(line).warnings;
        assert_eq!(warnings.iter().filter(|w| w.contains(want)).count(), 1, "{line}: {warnings:?}");
        assert_eq!(warnings.len(), 1, "{line}: {warnings:?}");
    }
    for line in ["-g10i f", "-d10 f", "-ag f", "-c1G #x ./d: d:x", "-l -bsp -bsn f", "-F2 -O8 -r f"]
    {
        assert_eq!(workload(line).warnings, [""; 0], "{line}");
    }
}
