//! Pools of threads, weights, several time spans, templates (spec 3.8, 6.2).

use serde_json::Value;

use crate::place::{Place, count, noise};

fn place() -> Place {
    let place = Place::new();
    place.write("a.dat", noise(4 << 20));
    place.write("b.dat", noise(4 << 20));
    place
}

/// I/Os of a thread by target.
fn ios(result: &Value, span: usize, thread: usize) -> Vec<u64> {
    let at = format!("/time_spans/{span}/threads/{thread}/targets");
    let targets = result.pointer(&at).and_then(Value::as_array).expect("targets");
    targets.iter().map(|target| count(target, "/total/io_count")).collect()
}

/// Whether a share of `all` is what a draw with that chance yields.
#[track_caller]
fn assert_share(some: u64, all: u64, chance: f64) {
    let share = some as f64 / all as f64;
    // Five standard deviations, and the I/Os in flight at the end.
    let tolerance = 5.0 * (chance * (1.0 - chance) / all as f64).sqrt() + 16.0 / all as f64;
    assert!(all > 500 && (share - chance).abs() < tolerance, "{some} of {all}: not {chance}");
}

#[test]
fn every_pool_thread_works_on_every_target() {
    let place = place();
    let result = place.json("-F3 -o2 -b4K -r -d1 -W0 a.dat b.dat");
    let threads = result["time_spans"][0]["threads"].as_array().expect("threads");
    assert_eq!(threads.len(), 3);
    for thread in 0..3 {
        let ios = ios(&result, 0, thread);
        assert!(ios.len() == 2 && ios.iter().all(|ios| *ios > 10), "{ios:?}");
    }
    // 3 threads, 2 targets, 2 requests each.
    assert_eq!(count(&result, "/littles_law/configured_outstanding"), 12);

    // Without weights each request takes any target, all alike.
    let result = place.json("-F2 -O4 -b4K -r -d1 -W0 a.dat b.dat");
    assert_eq!(count(&result, "/littles_law/configured_outstanding"), 8);
    for thread in 0..2 {
        let ios = ios(&result, 0, thread);
        assert_share(ios[0], ios[0] + ios[1], 0.5);
    }
}

/// Two time spans: a weighted pool, and a plain one with its own durations.
const PROFILE: &str = "<Profile>
  <TimeSpans>
    <TimeSpan>
      <Duration>1</Duration>
      <Warmup>0</Warmup>
      <ThreadCount>2</ThreadCount>
      <RequestCount>4</RequestCount>
      <Targets>
        <Target>
          <Path>*1</Path>
          <BlockSize>4096</BlockSize>
          <Random>4096</Random>
          <Weight>3</Weight>
        </Target>
        <Target>
          <Path>*2</Path>
          <BlockSize>8192</BlockSize>
          <Random>8192</Random>
          <Weight>1</Weight>
          <ThreadTargets>
            <ThreadTarget><Thread>0</Thread></ThreadTarget>
            <ThreadTarget><Thread>1</Thread><Weight>7</Weight></ThreadTarget>
          </ThreadTargets>
        </Target>
      </Targets>
    </TimeSpan>
    <TimeSpan>
      <Duration>1</Duration>
      <Warmup>0</Warmup>
      <Targets>
        <Target><Path>*2</Path><BlockSize>16384</BlockSize><RequestCount>1</RequestCount></Target>
      </Targets>
    </TimeSpan>
  </TimeSpans>
</Profile>";

#[test]
fn weights_and_time_spans_of_a_profile_take_effect() {
    let place = place();
    place.write("p.xml", PROFILE);
    let result = place.json("-Xp.xml a.dat b.dat");
    assert_eq!(result["time_spans"].as_array().map(Vec::len), Some(2));

    // 3 to 1 on the first thread, 3 to 7 on the second.
    for (thread, chance) in [(0, 0.75), (1, 0.3)] {
        let ios = ios(&result, 0, thread);
        assert_share(ios[0], ios[0] + ios[1], chance);
    }
    let by_target = |span: usize, target: usize, key: &str| {
        count(&result, &format!("/time_spans/{span}/targets/{target}/total/{key}"))
    };
    assert_eq!(by_target(0, 1, "bytes"), by_target(0, 1, "io_count") * 8192);
    assert_eq!(by_target(1, 0, "bytes"), by_target(1, 0, "io_count") * 16384);
    assert_eq!(result["time_spans"][1]["targets"][0]["path"], "b.dat");
    assert_eq!(result["time_spans"][1]["mode"]["submission"], "synchronous");

    let both = |key: &str| -> u64 {
        (0..2).map(|span| count(&result, &format!("/time_spans/{span}/{key}"))).sum()
    };
    assert_eq!(count(&result, "/total/io_count"), both("total/io_count"));
    assert_eq!(count(&result, "/elapsed_ns"), both("elapsed_ns"));

    // The text report has the totals of both, and the time spans one after the other.
    let text = place.run("-Xp.xml -d1 a.dat b.dat").succeeds_quietly().stdout;
    let report = plumb_load::convert::read_text(&text).expect("a report");
    assert_eq!(report.time_spans.len(), 2);
    let ios: u128 = report.time_spans.iter().map(|span| span.reads().1).sum();
    let totals = text.split("Totals:\n").nth(1).expect("totals");
    let read = totals.lines().find_map(|line| line.strip_prefix("read   |")).expect("reads");
    let shown = read.split('|').nth(1).map(str::trim);
    assert_eq!(shown, Some(ios.to_string().as_str()), "{text}");
}

#[test]
fn a_profile_says_what_its_templates_lack() {
    let place = place();
    place.write("p.xml", PROFILE);
    for (line, word) in [
        ("-Xp.xml", "*1"),
        ("-Xp.xml a.dat", "*2"),
        ("-Xp.xml a.dat b.dat a.dat", "a.dat"),
        ("-Xp.xml -b4K a.dat b.dat", "-b4K"),
        ("-Xnone.xml a.dat b.dat", "none.xml"),
    ] {
        let outcome = place.run(line).ends_with(3);
        assert!(outcome.stderr.contains(word), "{line}: {}", outcome.stderr);
        assert_eq!(outcome.stdout, "", "{line}");
    }
}

#[test]
fn files_are_made_once_when_the_profile_says_so() {
    let place = Place::new();
    let span = |size: u64| {
        format!(
            "<TimeSpan><Duration>0</Duration><Warmup>0</Warmup><Targets><Target><Path>f.dat</Path>\
             <FileSize>{size}</FileSize></Target></Targets></TimeSpan>"
        )
    };
    let spans = [1 << 20, 3 << 20, 2 << 20].map(span).concat();
    for (policy, size, times) in [
        ("<PrecreateFiles>UseMaxSize</PrecreateFiles>", 3 << 20, 1),
        ("<PrecreateFiles>CreateOnlyFilesWithConstantSizes</PrecreateFiles>", 2 << 20, 3),
        ("", 2 << 20, 3),
    ] {
        let profile = format!("<Profile>{policy}<TimeSpans>{spans}</TimeSpans></Profile>");
        place.write("p.xml", profile);
        let outcome = place.run("-v -Xp.xml").succeeds_quietly();
        let made = outcome.stdout.matches(": Creating file 'f.dat' of size ").count();
        assert_eq!((place.read("f.dat").len(), made), (size, times), "{policy}");
    }
}
