//! How I/O is handed in: `-x`, `-u`, `-oc`, `--batch`, and the engines.

use serde_json::Value;

use crate::place::{Place, can, count, noise, words};
use crate::program::plumb;

fn place() -> Place {
    let place = Place::new();
    place.write("f.dat", noise(4 << 20));
    place
}

/// The effective mode of the only time span.
fn mode(result: &Value) -> &Value {
    &result["time_spans"][0]["mode"]
}

#[test]
fn each_option_is_in_force() {
    let place = place();
    let line = "-b4K -r -o8 -t2 -g300i -d1 -W0";
    Place::each(
        &[
            ("-L", "submission", "latency"),
            ("-o8", "submission", "peak"),
            ("-o1", "submission", "synchronous"),
            ("-oc1", "completion_depth", "1"),
            ("-oc16", "completion_depth", "16"),
            ("--batch=1", "batch", "1"),
            ("-L", "batch", "8"),
            ("-o8", "batch", "32"),
            ("-u", "submission", "ring"),
        ],
        |(option, key, want)| {
            if !can("each_option_is_in_force", option) {
                return;
            }
            let result = place.json(&format!("{line} {option} f.dat"));
            let value = mode(&result)[key].to_string();
            assert_eq!(value.trim_matches('"'), *want, "{option}");
            assert!(count(&result, "/total/io_count") > 100, "{option}");
        },
    );
}

#[test]
fn completion_routines_issue_the_next_io_themselves() {
    let result = place().json("-b4K -r -o8 -t2 -x -d1 -W0 f.dat");
    assert_eq!(mode(&result)["submission"], "routines");
    assert!(count(&result, "/total/io_count") > 1000);
    // They never wait with requests at hand.
    assert_eq!(count(&result, "/time_spans/0/threads/0/waits/throttle_waits"), 0);
}

#[test]
fn the_ring_gathers_what_it_is_told_to() {
    let name = "the_ring_gathers_what_it_is_told_to";
    let place = place();
    if !can(name, "-u") {
        return;
    }
    Place::each(
        &[
            // Option, completions wanted per submission with 8 requests, and whether registered.
            ("-u", 2, true),
            ("-un", 2, false),
            ("-u8", 8, true),
            ("-u50p", 4, true),
            ("-u1", 1, true),
            ("-un100p", 8, false),
        ],
        |(option, batch, registered)| {
            // The warm-up counts neither here nor there.
            let result = place.json(&format!("-b4K -r -o8 -t2 -L -d1 -W1 {option} f.dat"));
            let ring = &mode(&result)["ring"];
            assert_eq!(ring["registered_buffers"], *registered, "{option}");
            let flags = words(&result, "/time_spans/0/queues/0/flags");
            assert_eq!(flags.contains(&"fixed_buffers"), *registered, "{option}: {flags:?}");
            for thread in 0..2 {
                let at = format!("/time_spans/0/threads/{thread}");
                let submits = count(&result, &format!("{at}/submits"));
                let ios = count(&result, &format!("{at}/targets/0/total/io_count"));
                // A submission hands in what the previous wait has brought, `batch` at least.
                let most = ios / batch + 16;
                assert!(submits <= most, "{option}: {submits} for {ios} I/Os");
                // And it hands in no more than there are requests.
                assert!(submits * 8 + 64 >= ios, "{option}: {submits} for {ios} I/Os");
            }
        },
    );
    // A single request goes through the ring as well, which it would not without -u.
    let result = place.json("-u -o1 -b4K -d1 -W0 f.dat");
    assert_eq!(result["engine"], "uring");
    assert_eq!(place.json("-o1 -b4K -d0 -W0 f.dat")["engine"], "sync");
}

#[test]
fn a_thread_of_the_kernels_submits_and_polling_needs_its_device() {
    let place = place();
    let name = "a_thread_of_the_kernels_submits_and_polling_needs_its_device";
    if !can(name, "--engine=uring") {
        return;
    }
    for line in ["-o8 -r -w50 -c1M", "-o1 -L -c1M", "-o32 -t2 -L -c1M -Zr -w100"] {
        // Where processors are few and busy, the kernel's thread waits for one at each turn: the best of three runs.
        let mut ios = 0;
        for _ in 0..3 {
            let result = place.json(&format!("--sqpoll -b4K -d1 -W0 {line} sq.dat"));
            let flags = words(&result, "/time_spans/0/queues/0/flags");
            assert!(flags.contains(&"sqpoll"), "{line}: {flags:?}");
            assert_eq!(count(&result, "/total/errors"), 0, "{line}");
            ios = ios.max(count(&result, "/total/io_count"));
            if ios > 100 {
                break;
            }
        }
        assert!(ios > 100, "{line}: {ios}");
    }
    // That thread looks for submissions all the time: no generator at its limit, and none of io-wq's.
    let result = place.json("--sqpoll -b4K -o8 -r -g300i -d1 -W0 f.dat");
    let items = result["time_spans"][0]["plausibility"].as_array().expect("a list");
    for key in ["generator_cpu_share", "io_wq_cpu_share"] {
        let item = items.iter().find(|item| item["key"] == key).expect(key);
        assert_eq!(item["verdict"], "ok", "{item}");
    }
    let refused = place.run("--poll -b4K -d1 -W0 f.dat").ends_with(1).stderr;
    assert!(refused.contains("(--poll)") && refused.contains("-Su"), "{refused}");
    for option in ["--sqpoll", "--poll -Su"] {
        let line = format!("{option} --engine=aio -b4K -d1 -W0 f.dat");
        let refused = place.run(&line).ends_with(3).stderr;
        let told = refused.contains("needs io_uring") && refused.contains("--engine=uring");
        assert!(told, "{refused}");
    }
}

#[test]
fn every_engine_does_the_same_work() {
    let place = place();
    let name = "every_engine_does_the_same_work";
    Place::each(&["uring", "aio", "threads", "sync"], |engine| {
        if !can(name, &format!("--engine={engine}")) {
            return;
        }
        let result = place
            .json(&format!("--engine={engine} -c1M -b4K -r -o8 -t2 -w50 -L -d1 -W0 {engine}.dat"));
        assert_eq!(result["engine"], *engine);
        for direction in ["read", "write"] {
            let ios = count(&result, &format!("/{direction}/io_count"));
            assert!(ios > 50, "{engine}: {ios} {direction}s");
            assert_eq!(count(&result, &format!("/{direction}/bytes")), ios * 4096, "{engine}");
        }
    });
    Place::each(&["null", "nop"], |engine| {
        if !can(name, &format!("--engine={engine}")) {
            return;
        }
        let kept = place.path(&format!("{engine}.json"));
        let kept = kept.display();
        let line = format!(
            "--engine={engine} --output json={kept} --output xml={kept}.xml --output text={kept}.txt -b4K -o8 \
             -d1 -W0 nowhere.dat"
        );
        let result = place.json(&line);
        assert_eq!(result["time_spans"][0]["queues"][0]["touches_target"], false, "{engine}");
        // Such a result is no baseline, and nothing that a baseline is held against.
        for (allowed, form) in [("", ""), ("--allow parameters ", ""), ("", ".xml"), ("", ".txt")] {
            let line = format!("compare {allowed}{kept}{form} {kept}{form}");
            let told = plumb(&line).ends_with(1).stderr;
            assert!(told.contains("the baseline touched no target"), "{told}");
        }
    });
    assert!(!place.names().contains(&"nowhere.dat".to_owned()));
}

#[test]
fn a_batch_is_said_first_and_not_passed_over_in_silence() {
    let place = place();
    for (line, warns, says) in [
        (
            "--engine=sync --batch=8 -o8 -L",
            true,
            "\tsubmission: one I/O at a time; profile latency\n",
        ),
        ("--engine=sync -o8 -L", false, "\tsubmission: one I/O at a time; profile latency\n"),
        (
            "--engine=null --batch=8 -o8 -L",
            false,
            "\tsubmission: batches of up to 8; profile latency\n",
        ),
        (
            "--engine=null -o32 -L",
            false,
            "\tsubmission: batches of up to 8, after a burst of completions of up to 24; profile latency\n",
        ),
    ] {
        let outcome = place.run(&format!("{line} -b4K -r -d1 -W0 f.dat")).ends_with(0);
        let told = outcome.stderr.contains("--batch has no effect here: the engine sync");
        assert_eq!(told, warns, "{line}: {}", outcome.stderr);
        let (_, block) = outcome.stdout.split_once("\nPlausibility\n").expect("the block");
        let (_, first) = block.split_once('\n').expect("its rule");
        assert!(first.starts_with(says), "{line}: {first}");
    }
}

#[test]
fn the_ring_is_not_for_other_engines() {
    let place = place();
    for engine in ["aio", "threads", "sync"] {
        let outcome = place.run(&format!("--engine={engine} -u -o4 -d1 -W0 f.dat")).ends_with(1);
        let error = format!("the {engine} engine cannot be used here: ring submission (-u)");
        assert!(outcome.stderr.contains(&error), "{}", outcome.stderr);
        assert!(outcome.stderr.contains("leave out -u"), "{}", outcome.stderr);
    }
}

/// An engine that performs one I/O at a time does so whatever is outstanding, and every format says so.
#[test]
fn one_io_at_a_time_is_said_in_every_format() {
    let place = place();
    let line = "--engine=sync -o8 -b4K -r -d1 -W0 -L f.dat";
    let json = place.run(&format!("--json {line}")).ends_with(0).stdout;
    let json: Value = serde_json::from_str(&json).expect("JSON");
    let mode = &json["time_spans"][0]["mode"];
    let told = (&mode["profile"], &mode["submission"], &mode["batch"], &mode["burst"]);
    assert_eq!(told, (&"latency".into(), &"synchronous".into(), &1.into(), &1.into()));
    let xml = place.run(&format!("-Rxml {line}")).ends_with(0).stdout;
    let own = "<Submission Profile=\"latency\" Gathering=\"synchronous\" Batch=\"1\" Burst=\"1\"/>";
    assert!(xml.contains(own), "{xml}");
}
