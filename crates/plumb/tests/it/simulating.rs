//! `plumb space simulate`, as its users meet it.

use std::fs;
use std::path::PathBuf;

use serde_json::Value;

use crate::program::{plumb, repository};

/// A trace in a folder of its own.
fn trace(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let path = folder.path().join("t.csv");
    fs::write(&path, text).expect("a file");
    (folder, path)
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("it is JSON")
}

/// Two volumes, an hour: 128 extents of one, one of the other.
fn server_trace() -> String {
    let mut text = String::new();
    for nth in 0..1024_u64 {
        let at = 128_166_372_003_061_629 + nth * 35_156_250;
        let offset = (nth * 37 % 128) << 20;
        let kind = if nth % 4 == 0 { "Write" } else { "Read" };
        text.push_str(&format!("{at},usr,0,{kind},{offset},4096,1331\n"));
        if nth % 100 == 0 {
            text.push_str(&format!("{at},usr,1,Read,8192,512,1331\n"));
        }
    }
    text
}

#[test]
fn a_trace_is_replayed_against_sizes_and_policies() {
    let (_folder, path) = trace(&server_trace());
    let line = format!(
        "space simulate --trace {} --format msr --tier-size 1G,16M --policy never,every:0.25,lru",
        path.display()
    );
    let found = json(&plumb(&format!("{line} --json")).succeeds_quietly().stdout);
    assert_eq!((&found["ios"], &found["extents"]), (&1035.into(), &129.into()), "{found}");
    assert_eq!(
        (&found["synthetic"], &found["trace"]["volumes"][1]),
        (&false.into(), &"usr.1".into())
    );
    let outcomes = found["outcomes"].as_array().expect("a list");
    let shown: Vec<(u64, &str)> = outcomes
        .iter()
        .map(|outcome| {
            let policy = outcome["policy"].as_str().unwrap_or_default();
            (outcome["tier_bytes"].as_u64().unwrap_or(0) >> 20, policy)
        })
        .collect();
    let policies = ["never", "every:0.25", "lru"];
    let wanted: Vec<(u64, &str)> =
        [1024, 16].iter().flat_map(|size| policies.map(|policy| (*size, policy))).collect();
    assert_eq!(shown, wanted);
    assert_eq!(outcomes[0]["hit_share"], 1.0);
    assert!(outcomes[3]["hit_share"].as_f64().is_some_and(|share| share < 0.6), "{found}");
    assert_eq!(outcomes[4]["devices"]["runs"].as_array().map(Vec::len), Some(3));
    assert!(outcomes[4]["devices"]["report"]["table"].is_array(), "{found}");
    assert!(outcomes[2]["devices"].is_null() && found["what_if_lru"].as_array().is_some());

    let text = plumb(&format!("{line} --report")).succeeds_quietly().stdout;
    for words in [
        "1035 I/Os in 1.0 hours on 129 extents",
        "2 volumes side by side",
        "every:0.25",
        "HDD busy %",
    ] {
        assert!(text.contains(words), "{words}:\n{text}");
    }
    assert!(text.contains(
        "== 16MiB every:0.25: last optimization ==\n\nStorage Tier Optimization Report\n"
    ));
    assert!(!text.contains("synthetic"), "{text}");
    let one = plumb(&format!("{line} --volume usr.1 --json")).succeeds_quietly();
    assert_eq!(json(&one.stdout)["ios"], 11);
}

/// What only a trace has is not taken silently beside a workload that is made (and the other way round).
#[test]
fn options_of_another_input_are_refused() {
    let made = "space simulate --generate uniform:hours=0.01 --tier-size 64M --policy never";
    plumb(made).succeeds_quietly();
    for option in ["--lenient", "--format msr", "--volume a", "--capacities f", "--hours 3"] {
        let refused = plumb(&format!("{made} {option}")).ends_with(2).stderr;
        let name = option.split(' ').next().unwrap_or_default();
        assert!(refused.contains(name) && refused.contains("--generate"), "{option}: {refused}");
    }
}

#[test]
fn a_bad_line_ends_the_replay_or_is_left_out() {
    let (_folder, path) =
        trace(&format!("{}128166379602421629,usr,0,Fetch,0,4096,1\n", server_trace()));
    let line = format!(
        "space simulate --trace {} --format msr --tier-size 1G --policy never",
        path.display()
    );
    let refused = plumb(&line).ends_with(1).stderr;
    for words in ["t.csv, line 1036", "\"Fetch\"", "--lenient", "Hostname,DiskNumber"] {
        assert!(refused.contains(words), "{words}: {refused}");
    }
    let lenient = plumb(&format!("{line} --lenient")).succeeds_quietly().stdout;
    assert!(
        lenient.contains("1 bad lines left out") && lenient.contains("line 1036: "),
        "{lenient}"
    );
    let unknown = plumb(&line.replace(" --format msr", "")).ends_with(1).stderr;
    assert!(unknown.contains("--format") && unknown.contains("alibaba"), "{unknown}");
    let other = plumb(&line.replace("msr", "spc")).ends_with(1).stderr;
    assert!(other.contains("line 1:") && other.contains("ASU,LBA"), "{other}");
}

#[test]
fn workloads_are_synthetic_wherever_they_are_shown() {
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let saved = folder.path().join("kept.trace");
    let line = "space simulate --tier-size 64M --policy every:0.2,clairvoyant";
    let workload = "--generate zipf:extents=512,rate=20,hours=0.6,seed=9";
    let made =
        plumb(&format!("{line} {workload} --save {} --json", saved.display())).succeeds_quietly();
    let made = json(&made.stdout);
    assert_eq!(made["synthetic"], true);
    assert!(
        plumb(&format!("{line} {workload}"))
            .succeeds_quietly()
            .stdout
            .starts_with("synthetic workload zipf:")
    );
    // Kept, it is still synthetic, and replays to the same.
    let kept = format!("{line} --trace {}", saved.display());
    let again = json(&plumb(&format!("{kept} --json")).succeeds_quietly().stdout);
    assert_eq!((&again["synthetic"], &again["ios"]), (&true.into(), &made["ios"]));
    let share = |found: &Value| found["outcomes"][1]["hit_share"].as_f64().expect("a share");
    assert!((share(&made) - share(&again)).abs() < 0.02, "hours begin with the first I/O");
    assert!(plumb(&kept).succeeds_quietly().stdout.starts_with("synthetic workload "));
    let exists = plumb(&format!("{line} {workload} --save {}", saved.display())).ends_with(1);
    assert!(exists.stderr.contains("kept.trace"), "{}", exists.stderr);
}

#[test]
fn what_cannot_be_is_refused() {
    for (rest, status) in [
        ("--tier-size 1G", 2),
        ("--tier-size 1G --trace x --generate uniform", 2),
        ("--generate uniform", 2),
        ("--generate uniform --tier-size 0", 2),
        ("--generate uniform --tier-size 1G --policy hourly", 2),
        ("--generate pareto --tier-size 1G", 2),
        ("--trace no-such-file --format msr --tier-size 1G", 1),
        ("--generate uniform:hours=0.01 --tier-size 1G --copies 3 --hdds 2", 1),
    ] {
        plumb(&format!("space simulate {rest}")).ends_with(status);
    }
    // What may be is said.
    for (workload, words) in [
        ("uniform:extents=9", "extents cannot be '9'"),
        ("zipf:theta=-1", "from 0 to 3"),
        ("uniform:hours=0", "from 0.001 to 100000"),
        ("uniform:block=3000", "a power of two from 512 to 1M"),
    ] {
        let said = plumb(&format!("space simulate --generate {workload} --tier-size 1G"));
        let said = said.ends_with(2).stderr;
        assert!(said.contains(words) && said.contains("help: name a"), "{said}");
    }
    let full = plumb(
        "space simulate --generate uniform:extents=4096,hours=0.1 --tier-size 64M --hdd-size 16M",
    );
    let full = full.ends_with(1).stderr;
    assert!(full.contains("no room") && full.contains("disks"), "{full}");
}

/// A size or a policy that is named twice is one.
#[test]
fn a_space_is_simulated_once() {
    let line = "space simulate --generate uniform:extents=500,rate=20,hours=0.1 --json \
                --tier-size 64M,32M,64M --policy lru,never,lru";
    let found = json(&plumb(line).succeeds_quietly().stdout);
    let outcomes: Vec<(u64, &str)> = found["outcomes"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|one| {
            (one["tier_bytes"].as_u64().unwrap_or(0) >> 20, one["policy"].as_str().unwrap_or(""))
        })
        .collect();
    assert_eq!(outcomes, [(64, "lru"), (64, "never"), (32, "lru"), (32, "never")]);
}

/// A policy with a write-back cache is not held against a bound without one unless that is said.
#[test]
fn shares_with_and_without_a_write_cache_are_told_apart() {
    let line = "space simulate --generate uniform:extents=500,rate=20,hours=2,writes=50 --tier-size 64M \
                --policy daily,clairvoyant";
    let words = "clairvoyant and lru have no write-back cache";
    let text = plumb(line).succeeds_quietly().stdout;
    assert!(text.contains(words), "{text}");
    let text = plumb(&format!("{line} --write-cache 0")).succeeds_quietly().stdout;
    assert!(!text.contains(words), "{text}");
    let found = json(&plumb(&format!("{line} --write-cache 0 --json")).succeeds_quietly().stdout);
    let share = |nth: usize| found["outcomes"][nth]["hit_share"].as_f64();
    assert!(share(0) <= share(1), "nothing is above the bound: {found}");
}

/// Spec 20: diskspd XML and text for parameters.
#[test]
fn the_load_of_a_result_is_generated() {
    let reports = repository().join("crates/plumb-load/tests/data/conformance/results/reports");
    let like = |name: &str| {
        let file = reports.join(name);
        let line = "space simulate --tier-size 64M --policy lru --hours 0.05 --json --like";
        plumb(&format!("{line} {}", file.display()))
    };
    for name in ["random-read-latency.xml", "random-read-latency.txt"] {
        let found = json(&like(name).succeeds_quietly().stdout);
        let wanted = "uniform:extents=4096,rate=407.5,hours=0.05,writes=0,block=4096,seed=1";
        assert_eq!((&found["parameters"], &found["synthetic"]), (&wanted.into(), &true.into()));
        assert!(
            found["ios"].as_u64().is_some_and(|ios| (70_000..77_000).contains(&ios)),
            "{found}"
        );
    }
    for (name, words) in [
        ("interrupted-in-warmup.xml", "nothing was measured"),
        ("mixed-two-targets-smt.xml", "different"),
        ("real-random-mix-latency-doc.xml", "32MiB in all"),
        ("index.json", "no result"),
    ] {
        let refused = like(name).ends_with(2);
        let told = format!("{}{}", refused.stdout, refused.stderr);
        assert!(told.contains(words) && told.contains(name), "{name}: {told}");
    }
    let fitted = "--generate zipf:extents=512,top1=10,top10=40,reuse=30,hours=0.1,writes=65";
    let text = plumb(&format!("space simulate --tier-size 64M --policy lru {fitted}"));
    let text = text.succeeds_quietly().stdout;
    assert!(text.contains("\nparameters zipf:extents=512,rate="), "{text}");
    // What one law makes of two shares is told.
    assert!(text.contains("\nthe top 1 % of the extents take "), "{text}");
    assert!(text.contains(" of the I/O, asked for 40.0 %\n"), "{text}");
    let line = format!("space simulate --tier-size 64M --policy lru {fitted} --json");
    let found = json(&plumb(&line).succeeds_quietly().stdout);
    assert_eq!(found["fitted_shares"][0]["asked_percent"], 10.0, "{found}");
    let shares = "zipf:extents=2000,top1=2,top10=70,hours=1";
    let refused =
        plumb(&format!("space simulate --tier-size 64M --generate {shares}")).ends_with(2);
    assert!(refused.stderr.contains("20.0 % at most"), "{}", refused.stderr);
    let both =
        plumb("space simulate --tier-size 64M --generate uniform:reuse=9,rate=1").ends_with(2);
    assert!(both.stderr.contains("leave out reuse"), "{}", both.stderr);
}

/// I/Os of one second that came all at once would wait for each other, and for nothing that the trace says.
#[test]
fn whole_seconds_are_spread_and_that_is_told() {
    let mut text = String::new();
    for nth in 0..400_u32 {
        text.push_str(&format!("{},{},8,0,1283\n", 1000 + nth / 100, nth * 37 % 512 * 2048));
    }
    let (_folder, path) = trace(&text);
    let line = format!(
        "space simulate --trace {} --format tencent --tier-size 16M --policy never",
        path.display()
    );
    let text = plumb(&line).succeeds_quietly().stdout;
    assert!(text.contains("whole seconds: 400 I/Os are spread evenly"), "{text}");
    let found = json(&plumb(&format!("{line} --json")).succeeds_quietly().stdout);
    assert_eq!(found["trace"]["spread_over_seconds"], 400, "{found}");
    let mean = found["outcomes"][0]["devices"]["latency"]["mean_ns"].as_f64();
    assert!(mean.is_some_and(|mean| mean < 10e6), "{found}");
}

#[test]
fn devices_of_a_trace_have_the_capacities_of_its_companion() {
    let (folder, path) = trace("3,R,0,4096,1000\n3,W,1048576,4096,2000\n");
    let companion = folder.path().join("sizes.csv");
    fs::write(&companion, "device_id,capacity\n3,1048576\n").expect("a file");
    let line = format!(
        "space simulate --trace {} --format alibaba --capacities {} --tier-size 1G --policy lru",
        path.display(),
        companion.display()
    );
    let refused = plumb(&line).ends_with(1).stderr;
    assert!(refused.contains("line 2: it ends at 1052672, beyond the 1048576"), "{refused}");
    let lenient = plumb(&format!("{line} --lenient --json")).succeeds_quietly().stdout;
    assert_eq!(json(&lenient)["trace"]["bad_lines"], 1, "{lenient}");
    fs::write(&companion, "3;1048576\n").expect("a file");
    let refused = plumb(&line).ends_with(1).stderr;
    assert!(refused.contains("sizes.csv, line 1: it has no comma"), "{refused}");
    assert!(refused.contains("leave out --capacities"), "{refused}");
}
