//! Manual pages and completions: made from what the program accepts.

use std::fs;

use plumb_load::profile::flags::table::OPTIONS;

use crate::program::plumb;

#[test]
fn every_page_is_written() {
    let folder = tempfile::tempdir().expect("a folder");
    let folder = folder.path().join("man1");
    plumb(&format!("man --dir {}", folder.display())).succeeds_quietly();
    let mut names: Vec<String> = fs::read_dir(&folder)
        .expect("the folder was made")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a name"))
        .collect();
    names.sort();
    assert_eq!(
        names,
        [
            "diskspd.1",
            "plumb-baseline.1",
            "plumb-check.1",
            "plumb-compare.1",
            "plumb-completions.1",
            "plumb-convert.1",
            "plumb-diskspd.1",
            "plumb-explain.1",
            "plumb-help.1",
            "plumb-history.1",
            "plumb-knee.1",
            "plumb-man.1",
            "plumb-monitor.1",
            "plumb-plan-show.1",
            "plumb-plan.1",
            "plumb-pool-add-disk.1",
            "plumb-pool-import.1",
            "plumb-pool-list.1",
            "plumb-pool-new.1",
            "plumb-pool-remove-disk.1",
            "plumb-pool-remove.1",
            "plumb-pool-replace-disk.1",
            "plumb-pool-set.1",
            "plumb-pool-show.1",
            "plumb-pool.1",
            "plumb-profile-explain.1",
            "plumb-profile-list.1",
            "plumb-profile-show.1",
            "plumb-profile.1",
            "plumb-quick.1",
            "plumb-report.1",
            "plumb-run.1",
            "plumb-runs-export.1",
            "plumb-runs-import.1",
            "plumb-runs-list.1",
            "plumb-runs-rerun.1",
            "plumb-runs-rm.1",
            "plumb-runs-show.1",
            "plumb-runs.1",
            "plumb-space-clear.1",
            "plumb-space-demo.1",
            "plumb-space-events.1",
            "plumb-space-job.1",
            "plumb-space-offline.1",
            "plumb-space-online.1",
            "plumb-space-optimize.1",
            "plumb-space-perf.1",
            "plumb-space-repair.1",
            "plumb-space-report.1",
            "plumb-space-scan.1",
            "plumb-space-simulate.1",
            "plumb-space-status.1",
            "plumb-space-torture.1",
            "plumb-space.1",
            "plumb-sweep.1",
            "plumb-tier-pin.1",
            "plumb-tier-pins.1",
            "plumb-tier-show.1",
            "plumb-tier-unpin.1",
            "plumb-tier.1",
            "plumb-vdisk-list.1",
            "plumb-vdisk-new.1",
            "plumb-vdisk-rm.1",
            "plumb-vdisk-show.1",
            "plumb-vdisk.1",
            "plumb-version.1",
            "plumb.1",
        ]
    );
    let main = fs::read_to_string(folder.join("plumb.1")).expect("the page");
    assert!(main.contains("plumb\\-convert(1)"), "{main}");
    let run = fs::read_to_string(folder.join("plumb-run.1")).expect("the page");
    assert_eq!(run, plumb("man run").succeeds_quietly().stdout);
    assert_eq!(run, plumb("man plumb-run").succeeds_quietly().stdout);
    for row in OPTIONS {
        let name = format!("\\-\\-{}", row.long.replace('-', "\\-"));
        assert!(run.contains(&name), "--{}", row.long);
    }
}

#[test]
fn a_page_that_does_not_exist_is_refused() {
    let outcome = plumb("man walk").ends_with(1);
    assert!(outcome.stderr.contains("`walk`") && outcome.stderr.contains("plumb-run"));
    plumb("man --dir /proc/no/such").ends_with(1);
}

#[test]
fn every_shell_completes_the_options_of_run() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let script = plumb(&format!("completions {shell}")).succeeds_quietly().stdout;
        for row in OPTIONS {
            assert!(script.contains(row.long), "{shell}: --{}", row.long);
        }
        for command in [
            "convert",
            "completions",
            "diskspd",
            "check",
            "knee",
            "compare",
            "history",
            "explain",
            "torture",
            "profile",
            "runs",
        ] {
            assert!(script.contains(command), "{shell}: {command}");
        }
    }
    plumb("completions").ends_with(2);
    plumb("completions tcsh").ends_with(2);
}

#[test]
fn a_torture_run_ends_with_its_figures() {
    let outcome = plumb("space torture --seed 5 --states 60 --json").succeeds_quietly();
    let result: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    assert!(result["crash_states"].as_u64().is_some_and(|states| states >= 60), "{result}");
    assert_eq!((&result["violations"], &result["seed"]), (&0.into(), &5.into()));
    plumb("space torture --minutes 0").ends_with(2);
    let outcome = plumb("space torture --history 3 --beyond --json").succeeds_quietly();
    let result: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("it is JSON");
    assert_eq!((&result["histories"], &result["violations"]), (&1.into(), &0.into()));
    assert_eq!((&result["history"], result["seed"].is_null()), (&3.into(), true));
    for other in ["--seed 4", "--states 9", "--minutes 1", "--threads 2"] {
        plumb(&format!("space torture --history 3 {other}")).ends_with(2);
    }
    plumb("space").ends_with(2);
}
